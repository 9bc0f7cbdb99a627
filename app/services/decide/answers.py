"""Answers about decision rules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from app.domain.inputs.samples import DecidedBy
from app.domain.members import LEFT_OUT, typed
from app.kernel.decide.rules import Corrected
from app.kernel.numerics.arrays import Array
from app.services.estimands import Better

_MATRIX = typed(list[list[float]])


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleObjective:
    """The objective under the rule, and under the one that the evaluation was made with.

    Attributes:
        gain: How much better the rule is; never negative without constraints.
        corrected: The value less what the search itself contributed.
    """

    expression: str
    value: float | None
    default: float | None
    better: Better
    gain: float | None
    corrected: Corrected | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleConstraint:
    """A constraint under both rules.

    Attributes:
        probability: Probability that the population meets it under the rule, corrected for chance on these samples;
            null where that is not known.
        required: With a guarantee, the value that the rule had to show on these samples.
    """

    metric: str
    value: float | None
    default: float | None
    probability: float | None
    required: float | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, eq=False)
class RuleCurve:
    """The objective at every threshold.

    Attributes:
        feasible: Are the constraints met there on these samples?
    """

    x: Array = field(metadata=typed(list[float]))
    y: Array = field(metadata=typed(list[float]))
    feasible: NDArray[np.bool_] = field(metadata=typed(list[bool]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RuleSurface:
    """The objective for every class weight of a grid, and the best trade-offs between the recalls.

    Attributes:
        steps: Weights are positive multiples of 1 / steps with sum 1.
        weights: P points, in the order of the labels.
        objective: At each point; `null` where it has no value.
        feasible: Are the constraints met there on these samples?
        recalls: At each point, in the order of the labels; `null` for a class without samples.
        front: The points that no other one beats in one recall without losing in another, by their places.
        best_index: The place of the feasible point with the best objective; `null` where there is none.
    """

    steps: int
    labels: Sequence[str]
    weights: Array = field(metadata=_MATRIX)
    objective: Sequence[float | None]
    feasible: NDArray[np.bool_] = field(metadata=typed(list[bool]))
    recalls: Sequence[Sequence[float | None]]
    front: Sequence[int]
    best_index: int | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelRules:
    """A threshold for each label.

    Attributes:
        thresholds: In the order of the labels, as an input takes them; `null` for a label without a rule.
        rules: By label; `null` where there is none.
        undefined: Why, by label.
    """

    evaluation_id: UUID | None
    thresholds: Sequence[float | None]
    rules: Mapping[str, "DecisionRule | None"]
    undefined: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DecisionRule:
    """A decision rule, what it gains, and how much of that is due to chance.

    Attributes:
        evaluation_id: `null` for an input that is not saved.
        rule: `argmax`: of weight times probability.
        threshold: Two classes: predict the positive one from here on.
        low: The middle 95 % of the thresholds found in resamples.
        weights: More classes: their geometric mean is 1.
        constraints_probability: Probability that the population meets all of the constraints; null where that is not
            known.
        guarantee: The probability with which a rule chosen like this one meets all constraints in the population.
        surface: Where it was asked for: all rules of a grid of class weights.
        note: What to expect on new data.
    """

    evaluation_id: UUID | None
    rule: DecidedBy
    threshold: float | None
    low: float | None
    high: float | None
    default_threshold: float | None
    weights: Mapping[str, float] | None
    objective: RuleObjective
    constraints: Sequence[RuleConstraint]
    constraints_probability: float | None
    guarantee: float | None = field(default=None, metadata=LEFT_OUT)
    confusion_matrix: Array = field(metadata=_MATRIX)
    default_confusion_matrix: NDArray[Any] = field(metadata=_MATRIX)
    curve: RuleCurve | None
    surface: RuleSurface | None = field(default=None, metadata=LEFT_OUT)
    note: str
