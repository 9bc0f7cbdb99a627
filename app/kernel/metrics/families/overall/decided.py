"""How often something is decided that need not be a class: shares of a table of classes and decisions."""

from collections.abc import Callable
from functools import partial

from app.kernel.matrix.contingency import Contingency
from app.kernel.metrics.card import Better, Condition, Inputs, Metric, Part, Prevalence, Scope, metric
from app.kernel.metrics.conditions import NO_ACTUAL, NO_SAMPLES
from app.kernel.metrics.parameters import NO_DECISION, Choice, Decision, DecisionName
from app.kernel.metrics.proportion import Cells
from app.kernel.numerics.arrays import Array, each, ratio

_Counted = Callable[[Contingency, Decision], tuple[Array, Array]]
_DECISION = DecisionName(
    "decision", "what is decided, by its name among the decisions of the matrix; it has to be given"
)
_BETTER = Choice(
    "better",
    Better.HIGHER.value,
    "which values are better, for comparisons and leaderboards: it is good to treat the ill and bad to treat others",
    tuple(one.value for one in Better),
)
_NEVER_DECIDED: Condition[Contingency] = Condition(
    "never_decided", "this is never decided", lambda t: (t.predicted == 0).any(axis=-1), overall=True
)


def _share(among: Cells, **facts: object) -> Callable[[_Counted], Metric[Contingency]]:
    """Turn a function that counts into a metric, the ratio of what it counts."""

    def declare(counted: _Counted) -> Metric[Contingency]:
        # Which direction is better says nothing about the value.
        def compute(t: Contingency, decision: Decision = NO_DECISION, better: str = _BETTER.default) -> Array:  # noqa: ARG001
            return ratio(*counted(t, decision))

        compute.__name__ = counted.__name__
        declare_one = partial(
            metric,
            inputs=Inputs.DECISIONS,
            on_request=True,
            ideal=None,
            references=("elkan2001",),
            parameters=(_DECISION, _BETTER),
            better_by=_BETTER.name,
            part=Part(lambda t, decision, **_: counted(t, decision), among),
        )
        declared: Metric[Contingency] = declare_one(**facts)(compute)
        return declared

    return declare


@_share(
    Cells.ALL,
    name="share of a decision",
    scope=Scope.OVERALL,
    prevalence=Prevalence.SENSITIVE,
    formula=r"\frac{n_{\cdot d}}{n}",
    sentence="Share of all samples about which this is decided.",
    undefined=(NO_SAMPLES,),
)
def decision_share(t: Contingency, decision: Decision) -> tuple[Array, Array]:
    return t.predicted[..., decision.place], t.n


@_share(
    Cells.ACTUAL,
    name="share of a class with a decision",
    scope=Scope.CLASS,
    prevalence=Prevalence.INSENSITIVE,
    formula=r"\frac{n_{kd}}{n_{k\cdot}}",
    sentence="Share of the samples of the class about which this is decided.",
    undefined=(NO_ACTUAL,),
)
def decision_share_of_class(t: Contingency, decision: Decision) -> tuple[Array, Array]:
    return t.counts[..., decision.place], t.actual


@_share(
    Cells.PREDICTED,
    name="share of a decision with a class",
    scope=Scope.CLASS,
    prevalence=Prevalence.SENSITIVE,
    formula=r"\frac{n_{kd}}{n_{\cdot d}}",
    sentence="Share of the samples about which this is decided that are of the class.",
    undefined=(_NEVER_DECIDED,),
)
def class_share_of_decision(t: Contingency, decision: Decision) -> tuple[Array, Array]:
    hits = t.counts[..., decision.place]
    return hits, each(t.predicted[..., decision.place]) + 0.0 * hits
