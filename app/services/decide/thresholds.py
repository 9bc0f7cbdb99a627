"""The decision rule that is best for a metric: a threshold for two classes, a weight per class for more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import InvalidExpression, NoRule, NotComparable
from app.domain.expressions.expressions import parse
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import Rule
from app.domain.wording import rounded
from app.kernel.decide.class_weights import search_weights
from app.kernel.decide.rules import Constraint, NoFeasibleRule
from app.kernel.decide.rules import Corrected as Corrected
from app.kernel.decide.rules import Correction as Correction
from app.kernel.decide.thresholds import search_threshold
from app.kernel.matrix.table import Table
from app.kernel.metrics.expression import Expression, compute, is_list
from app.kernel.numerics.arrays import Array
from app.kernel.samples.curves import Curve, thin
from app.kernel.samples.scores import Scores
from app.services.estimands import Better, preference
from app.services.reasons import plain
from app.services.stored import scores_of

# Entries of probabilities up to which a search for class weights is repeated in resamples: some seconds.
MOST_RESAMPLED = 60_000
_WEIGHT_RESAMPLES = 20
_STARTS, _FEW_STARTS = 8, 3


@dataclass(frozen=True, slots=True)
class Limit:
    """What an expression has to keep to."""

    metric: str
    minimum: float | None
    maximum: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleQuestion:
    """What the rule is to be best for, and what it must keep to."""

    objective: str
    limits: Sequence[Limit] = ()
    correction: Correction = Correction.OPTIMISM
    resamples: int | None = None
    seed: int = 0
    max_points: int = 1000


@dataclass(frozen=True, slots=True)
class RuleValue:
    """An expression under the rule, and under the one that the evaluation was made with."""

    expression: str
    value: float | None
    default: float | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BestRule:
    """A rule, what it gains, and what of that is luck.

    Attributes:
        threshold: For two classes; with the middle 95 % of those found in resamples in ``low`` and ``high``.
        weights: By class, for more than two: argmax of weight times probability.
        curve: For two classes, thresholds, objectives, and whether the limits are kept there.
    """

    rule: Rule
    threshold: float | None = None
    low: float | None = None
    high: float | None = None
    weights: Mapping[str, float] | None = None
    better: Better
    objective: RuleValue
    limits: Sequence[RuleValue]
    corrected: Corrected | None
    counts: NDArray[Any]
    default_counts: NDArray[Any]
    default_threshold: float | None
    curve: tuple[Array, Array, NDArray[np.bool_]] | None
    note: str


def best_rule(source: MatrixInput, question: RuleQuestion) -> BestRule:
    """The rule that is best for a metric among those that keep to all limits.

    Raises:
        InvalidExpression: the objective or a limit is none, or has a value per class.
        NotComparable: the objective does not say what is better.
        NoRule: none keeps to the limits, or the input has scores of more than two classes.
    """
    if source.is_grouped:
        question = replace(question, correction=Correction.NONE)
    objective = _scalar(question.objective, source, "/objective")
    better = preference(objective)
    if better is None or better.better is Better.NEAREST:
        raise NotComparable(
            f"{question.objective} cannot be an objective: neither high nor low values of it are good as such",
            pointer="/objective",
        )
    limits = [
        (limit, _scalar(limit.metric, source, f"/constraints/{index}/metric"))
        for index, limit in enumerate(question.limits)
    ]
    constraints = [Constraint(expression, limit.minimum, limit.maximum) for limit, expression in limits]
    search = _Search(source, question, objective, constraints, maximize=better.better is Better.HIGHER)
    try:
        found = search.threshold() if len(source.labels) == 2 else search.weights()
    except NoFeasibleRule as error:
        raise NoRule(str(error)) from error
    values = [
        RuleValue(limit.metric, _value(expression, found.counts), _value(expression, found.default_counts))
        for limit, expression in limits
    ]
    return BestRule(
        rule=found.rule,
        threshold=found.threshold,
        low=found.low,
        high=found.high,
        weights=found.weights,
        better=better.better,
        objective=RuleValue(
            question.objective, _value(objective, found.counts), _value(objective, found.default_counts)
        ),
        limits=values,
        corrected=found.corrected,
        counts=found.counts,
        default_counts=found.default_counts,
        default_threshold=found.default_threshold,
        curve=found.curve,
        note=_note(found.corrected, asked=question.correction is not Correction.NONE, grouped=source.is_grouped),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Found:
    rule: Rule
    counts: Array
    default_counts: Array
    corrected: Corrected | None
    threshold: float | None = None
    low: float | None = None
    high: float | None = None
    weights: Mapping[str, float] | None = None
    default_threshold: float | None = None
    curve: tuple[Array, Array, NDArray[np.bool_]] | None = None


class _Search:
    def __init__(
        self,
        source: MatrixInput,
        question: RuleQuestion,
        objective: Expression,
        constraints: Sequence[Constraint],
        *,
        maximize: bool,
    ) -> None:
        self.source, self.question, self.objective, self.constraints = source, question, objective, constraints
        self.maximize = maximize
        self.scores: Scores = scores_of(source)

    def threshold(self) -> _Found:
        question, source = self.question, self.source
        given = source.facts.get("threshold")
        # Folds may have had a threshold each.
        default = given if isinstance(given, int | float) else 0.5 if self.scores.are_probabilities else None
        rule = search_threshold(
            self.scores,
            self.objective,
            positive=1 if source.positive is None else source.positive,
            constraints=self.constraints,
            default_threshold=default,
            maximize=self.maximize,
            correction=question.correction,
            resamples=question.resamples or 100,
            seed=question.seed,
        )
        defined = np.isfinite(rule.objectives)
        feasible = rule.feasible[defined].astype(np.float64)
        whole = Curve(
            rule.thresholds[defined],
            rule.objectives[defined],
            rule.thresholds[defined],
            None,
            ("threshold", question.objective),
            (("feasible", feasible),),
        )
        curve = thin(whole, question.max_points)
        return _Found(
            rule=Rule.THRESHOLD,
            threshold=rule.threshold,
            low=rule.low,
            high=rule.high,
            counts=rule.counts,
            default_counts=source.counts.astype(np.float64),
            default_threshold=rule.default_threshold,
            corrected=rule.corrected,
            curve=(curve.x, curve.y, curve.references[0][1] > 0),
        )

    def weights(self) -> _Found:
        question, source = self.question, self.source
        small = self.scores.n_samples * self.scores.n_classes <= MOST_RESAMPLED
        rule = search_weights(
            self.scores,
            self.objective,
            constraints=self.constraints,
            maximize=self.maximize,
            starts=_STARTS if small else _FEW_STARTS,
            sweeps=20 if small else 5,
            correction=question.correction if small else Correction.NONE,
            resamples=min(question.resamples or _WEIGHT_RESAMPLES, 5 * _WEIGHT_RESAMPLES),
            seed=question.seed,
        )
        return _Found(
            rule=Rule.ARGMAX,
            weights=dict(zip(source.labels, rule.weights.tolist(), strict=True)),
            counts=rule.counts,
            default_counts=source.counts.astype(np.float64),
            corrected=rule.corrected,
        )


def _scalar(text: str, source: MatrixInput, pointer: str) -> Expression:
    try:
        expression = parse(text, source.labels, source.positive)
        if is_list(expression):
            raise InvalidExpression(f"{text} has one value per class: name a class, or take the mean or the minimum")
    except InvalidExpression as error:
        error.pointer = pointer
        raise
    return expression


def _value(expression: Expression, counts: Array) -> float | None:
    found: float | None = plain(np.asarray(compute(expression, Table(counts))))  # type: ignore[assignment]  # a scalar
    return found


def _note(corrected: Corrected | None, *, asked: bool, grouped: bool) -> str:
    if corrected is None:
        why = (
            "It is not corrected: the samples come in groups, and resamples of single ones would show too little luck."
            if grouped
            else "Searching again in resamples would take too long on so many samples; the more there are, the less "
            "there is to correct."
            if asked
            else "It is not corrected, as asked."
        )
        return f"The rule was chosen on the samples that its value is computed from, so the value is optimistic. {why}"
    return (
        "The rule was chosen on the samples that its value is computed from, so the value is optimistic. The same "
        f"search in {corrected.resamples} resamples puts the optimism at {rounded(corrected.optimism, 4)}: expect "
        f"about {rounded(corrected.value, 4)} on new data of the same kind."
    )
