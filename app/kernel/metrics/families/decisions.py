"""Decisions and their costs: costs of given decisions, of the cheapest by the probabilities, and shares of decisions
that need not be classes.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import (
    COSTS,
    NO_DECISION,
    OF_DECISIONS,
    Better,
    Choice,
    Condition,
    Costs,
    Decision,
    DecisionName,
    Inputs,
    MatrixOf,
    Metric,
    Orientation,
    Part,
    Prevalence,
    Scope,
    matrix_of_costs,
    metric,
    relative_cost,
    total_cost,
)
from app.kernel.metrics.conditions import NO_ACTUAL, NO_SAMPLES, NO_WEIGHT, NOT_PROBABILITIES, ONE_ACTUAL_CLASS
from app.kernel.metrics.proportion import ConfusionCells
from app.kernel.numerics.arrays import Array, each, ratio, total
from app.kernel.samples.contingency import DecisionTable
from app.kernel.samples.influence import mean_of
from app.kernel.samples.losses import Codes
from app.kernel.samples.scores import Parameters, Scores

_cost = partial(
    metric,
    scope=Scope.OVERALL,
    prevalence=Prevalence.SENSITIVE,
    range=(0.0, None),
    orientation=Orientation.LOWER,
    parameters=(COSTS,),
    also=OF_DECISIONS,
    on_request=True,
)


@_cost(
    name="expected cost",
    formula=r"\frac{1}{n} \sum_{ij} n_{ij} c_{ij}",
    sentence="Mean cost of the decisions; without costs, the share of mistakes.",
    undefined=(NO_SAMPLES,),
    references=("elkan2001",),
)
def expected_cost(t: Table, costs: Costs = "zero_one") -> Array:
    return total_cost(t.counts, matrix_of_costs(costs, t.n_classes)) / t.n


@_cost(
    name="normalised cost",
    formula=r"\frac{\sum_{ij} n_{ij} c_{ij}}{\min_j \sum_i n_{i\cdot} c_{ij}}",
    sentence="Cost of the decisions as a share of what it costs to decide always for the one class that is cheapest then; 1 and more is no use.",
    undefined=(NO_SAMPLES, ONE_ACTUAL_CLASS),
    references=("drummond2006",),
)
def normalized_cost(t: Table, costs: Costs = "zero_one") -> Array:
    return _relative(t, costs)


@_cost(
    name="cost savings",
    formula=r"1 - \frac{\sum_{ij} n_{ij} c_{ij}}{\min_j \sum_i n_{i\cdot} c_{ij}}",
    sentence="Share of the cost of the best constant decision that is saved; 0 and less is no use.",
    range=(None, 1.0),
    orientation=Orientation.HIGHER,
    undefined=(NO_SAMPLES, ONE_ACTUAL_CLASS),
    references=("drummond2006",),
)
def cost_savings(t: Table, costs: Costs = "zero_one") -> Array:
    return 1.0 - _relative(t, costs)


def _relative(t: Table, costs: Costs) -> Array:
    return relative_cost(t.counts, t.actual, matrix_of_costs(costs, t.n_classes))


_Counted = Callable[[DecisionTable, Decision], tuple[Array, Array]]
_DECISION = DecisionName(
    "decision", "what is decided, by its name among the decisions of the matrix; it has to be given"
)
_BETTER = Choice(
    "better",
    Better.HIGHER.value,
    "which values are better, for comparisons and leaderboards: it is good to treat the ill and bad to treat others",
    tuple(one.value for one in Better),
)
_NEVER_DECIDED: Condition[DecisionTable] = Condition(
    "never_decided", "this is never decided", lambda t: (t.predicted == 0).any(axis=-1)
)


def _share(among: ConfusionCells, **facts: object) -> Callable[[_Counted], Metric[DecisionTable]]:
    """Turn a function that counts into a metric, the ratio of what it counts."""

    def declare(counted: _Counted) -> Metric[DecisionTable]:
        # The direction that is better does not affect the value.
        def compute(t: DecisionTable, decision: Decision = NO_DECISION, better: str = _BETTER.default) -> Array:  # noqa: ARG001
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
        declared: Metric[DecisionTable] = declare_one(**facts)(compute)
        return declared

    return declare


@_share(
    ConfusionCells.ALL,
    name="share of a decision",
    scope=Scope.OVERALL,
    prevalence=Prevalence.SENSITIVE,
    formula=r"\frac{n_{\cdot d}}{n}",
    sentence="Share of all samples about which this is decided.",
    undefined=(NO_SAMPLES,),
)
def decision_share(t: DecisionTable, decision: Decision) -> tuple[Array, Array]:
    return t.predicted[..., decision.place], t.n


@_share(
    ConfusionCells.ACTUAL,
    name="share of a class with a decision",
    scope=Scope.CLASS,
    prevalence=Prevalence.INSENSITIVE,
    formula=r"\frac{n_{kd}}{n_{k\cdot}}",
    sentence="Share of the samples of the class about which this is decided.",
    undefined=(NO_ACTUAL,),
)
def decision_share_of_class(t: DecisionTable, decision: Decision) -> tuple[Array, Array]:
    return t.counts[..., decision.place], t.actual


@_share(
    ConfusionCells.PREDICTED,
    name="share of a decision with a class",
    scope=Scope.CLASS,
    prevalence=Prevalence.SENSITIVE,
    formula=r"\frac{n_{kd}}{n_{\cdot d}}",
    sentence="Share of the samples about which this is decided that are of the class.",
    undefined=(_NEVER_DECIDED,),
)
def class_share_of_decision(t: DecisionTable, decision: Decision) -> tuple[Array, Array]:
    hits = t.counts[..., decision.place]
    return hits, each(t.predicted[..., decision.place]) + 0.0 * hits


_ANY_COSTS = replace(
    COSTS,
    description=f"{COSTS.description}; columns are what can be decided, the classes or anything else",
    matrix=MatrixOf.COSTS_OF_ANYTHING,
)


def cheapest_decisions(s: Scores, costs: Array) -> Codes:
    """Decision (n) with the lowest expected cost by the probabilities of each sample, the first of equals.

    Args:
        s: Probabilities.
        costs: (K, M) of actual classes and decisions.
    """
    return np.asarray((s.probabilities @ costs).argmin(axis=1))


def _paid(s: Scores, parameters: Parameters) -> Array:
    costs = matrix_of_costs(parameters["costs"], s.n_classes)
    paid: Array = costs[s.y, cheapest_decisions(s, costs)]
    return paid


@metric(
    name="minimum-cost decision cost",
    scope=Scope.OVERALL,
    inputs=Inputs.PROBABILITIES,
    prevalence=Prevalence.SENSITIVE,
    formula=r"\frac{1}{n} \sum_i c_{y_i d_i}, \quad d_i = \arg\min_j \sum_k p_{ik} c_{kj}",
    sentence="Mean cost where every sample gets the decision whose expected cost by its probabilities is lowest.",
    range=(0.0, None),
    orientation=Orientation.LOWER,
    parameters=(_ANY_COSTS,),
    undefined=(NOT_PROBABILITIES, NO_WEIGHT),
    references=("elkan2001",),
    on_request=True,
    # The rounding of matrix products depends on the number of rows, and so would ties between costs.
    influence=mean_of(_paid, is_mean=False),
)
def minimum_cost(s: Scores, costs: Costs = "zero_one") -> Array:
    return ratio(total(s.class_sums(_paid, ("costs", costs))), s.n)
