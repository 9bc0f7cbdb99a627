"""Reasons for which a metric has no value. A card lists them in the order in which they explain a missing value.

``{label}`` in a reason is the class; for an overall metric, the classes at fault.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Condition
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.samples.scores import Scores
from app.kernel.units.overlaps import Overlaps
from app.kernel.units.queries import Queries


class ClassTotals(Protocol):
    """Members of each class and of the other classes: matrices and scores have both."""

    @property
    def actual(self) -> Array:
        """Members of each class (..., K)."""

    @property
    def rest(self) -> Array:
        """Members of all other classes (..., K)."""


def _no_actual(data: ClassTotals) -> Mask:
    return np.equal(data.actual, 0)


def _no_rest(data: ClassTotals) -> Mask:
    return np.equal(data.rest, 0)


def _one_actual_class(data: ClassTotals) -> Mask:
    alone: Mask = np.logical_or.reduce(_no_rest(data), axis=-1)
    return alone


# Conditions of matrices and of scores.

NO_ACTUAL = Condition("no_actual_samples", "class {label} has no actual samples", _no_actual)
NO_REST = Condition("no_other_samples", "every sample belongs to class {label}", _no_rest)
ONE_ACTUAL_CLASS = Condition("one_actual_class", "all samples belong to one class", _one_actual_class)


# Conditions of matrices.

OfMatrix = Condition[Table]

NO_SAMPLES = OfMatrix("no_samples", "the matrix holds no samples", lambda t: t.n == 0)
# Of several labels ``n`` is how many of them samples have, and a sample may have none.
NO_LABELS = OfMatrix("no_labels", "no sample has a label", lambda t: (t.n == 0) & np.any(t.n_each > 0, axis=-1))

NEVER_PREDICTED = OfMatrix("never_predicted", "class {label} is never predicted", lambda t: t.predicted == 0)
ALWAYS_PREDICTED = OfMatrix(
    "always_predicted", "every sample is predicted as class {label}", lambda t: t.predicted_rest == 0
)
ABSENT = OfMatrix(
    "absent_class", "class {label} occurs neither in the data nor in the predictions", lambda t: t.margins == 0
)
UNIVERSAL = OfMatrix(
    "universal_class",
    "class {label} is all there is, in the data and in the predictions",
    lambda t: (t.rest == 0) & (t.predicted_rest == 0),
)
NOTHING_CORRECT = OfMatrix(
    "nothing_correct",
    "no member and no non-member of class {label} is classified correctly",
    lambda t: (t.tp == 0) & (t.tn == 0),
)

NO_MISTAKES = OfMatrix(
    "no_mistakes", "no sample is mistaken for class {label} or missed in it", lambda t: (t.fp == 0) & (t.fn == 0)
)
NO_FALSE_POSITIVES = OfMatrix(
    "infinite", "class {label} has no false positive, so the ratio is infinite", lambda t: t.fp == 0
)
NO_TRUE_NEGATIVES = OfMatrix(
    "infinite", "class {label} has no true negative, so the ratio is infinite", lambda t: t.tn == 0
)
NO_TRUE_POSITIVES = OfMatrix(
    "infinite", "class {label} has no true positive, so the logarithm is infinite", lambda t: t.tp == 0
)
NO_ONE_SIDED_ERROR = OfMatrix(
    "infinite",
    "class {label} has no false positive or no false negative, so the odds ratio is infinite",
    lambda t: (t.fp == 0) | (t.fn == 0),
)
A_RATE_AT_ITS_END = OfMatrix(
    "infinite",
    "recall or specificity of class {label} is exactly 0 or 1, where the transformation is infinite",
    lambda t: (t.tp == 0) | (t.fn == 0) | (t.fp == 0) | (t.tn == 0),
)

ONE_PREDICTED_CLASS = OfMatrix(
    "one_predicted_class",
    "all samples are predicted as one class",
    lambda t: t.others_predicted == 0,
)
NO_CLASS_IN_COMMON = OfMatrix(
    "no_class_in_common",
    "no class both occurs and is predicted, so agreement by chance is impossible and has no variance",
    lambda t: (t.actual * t.predicted == 0).all(axis=-1),
)
CHANCE_IS_CERTAIN = OfMatrix(
    "chance_agreement_is_one",
    "all samples are of one class and predicted as that class, so agreement by chance is already complete",
    lambda t: t.chance_disagreement == 0,
)
POOLED_CHANCE_IS_CERTAIN = OfMatrix(
    "chance_agreement_is_one",
    "all samples are of one class and predicted as that class, so agreement by chance is already complete",
    lambda t: t.pooled_disagreement == 0,
)
NOT_PREDICTED_THOUGH_ACTUAL = OfMatrix(
    "never_predicted",
    "class {label} has actual samples but is never predicted",
    lambda t: (t.predicted == 0) & (t.actual > 0),
)
INFINITE_MARGIN_RATIO = OfMatrix(
    "infinite",
    "class {label} has actual samples but is never predicted, so the logarithm is infinite",
    lambda t: (t.predicted == 0) & (t.actual > 0),
)
AN_EMPTY_CLASS_IS_INFINITE = OfMatrix(
    "infinite",
    "class {label} has no actual samples, so the ratio is infinite",
    lambda t: (t.actual == 0) & (t.n_each > 0),
)
MARGINS = (NO_ACTUAL, NO_REST, NEVER_PREDICTED, ALWAYS_PREDICTED)

# Conditions of scores.

_OfSamples = Condition[Scores]


def _separated(s: Scores) -> Mask:
    (low, lowest), (high, highest) = s.outcomes.lowest.T, s.outcomes.highest.T
    separated: Mask = np.isfinite(low) & np.isfinite(lowest) & ((lowest >= high) | (highest <= low))
    return separated


NOT_PROBABILITIES = _OfSamples(
    "not_probabilities",
    "the input holds scores that are no probabilities",
    lambda s: np.full(s.n.shape, not s.are_probabilities),
)
NO_WEIGHT: Condition[Any] = Condition("no_samples", "all samples weigh nothing", lambda s: s.n == 0)
NO_MEMBERS: Condition[Any] = Condition("no_labels", "no sample has a label", lambda s: s.actual.sum(axis=-1) == 0)
NO_OTHERS: Condition[Any] = Condition("all_labels", "every sample has every label", lambda s: s.rest.sum(axis=-1) == 0)
ONE_SAMPLE = _OfSamples(
    "one_sample", "a curve over samples needs at least two of them", lambda s: np.full(s.n.shape, s.n_samples < 2)
)
WEIGHTED = _OfSamples(
    "weighted",
    "the samples carry weights, for which the package's curve is not defined",
    lambda s: np.full(s.n.shape, s.weights is not None),
)
CERTAIN = _OfSamples(
    "certain_probabilities",
    "class {label} was given probability 0 or 1, whose log odds are infinite",
    lambda s: (s.outcomes.lowest.min(axis=-1) <= 0.0) | (s.outcomes.highest.max(axis=-1) >= 1.0),
)
CONSTANT = _OfSamples(
    "constant_probabilities",
    "class {label} has the same probability in all samples, so there is no slope",
    lambda s: np.equal(s.outcomes.lowest.min(axis=-1), s.outcomes.highest.max(axis=-1)),
)
SEPARATED = _OfSamples(
    "infinite",
    "a threshold separates the members of class {label} from all others, so the slope is infinite",
    _separated,
)
UNFITTED = _OfSamples(
    "steps_without_end",
    "the steps to the line of class {label} did not come to an end in as many readings of the samples as they may take",
    lambda s: s.unfitted,
)
RULED_OUT = _OfSamples(
    "infinite",
    "a sample of class {label} was given probability 0, which without clipping costs infinitely much",
    lambda s: np.bincount(s.y[s.p_true == 0], minlength=s.n_classes) > 0,
)

# Conditions of rankings.

_OfQueries = Condition[Queries]
NO_QUERIES = _OfQueries("no_queries", "all queries weigh nothing", lambda q: q.n == 0)
NO_RELEVANT = _OfQueries(
    "no_relevant_items", "no query has a relevant item", lambda q: q.have(q.relevant_items > 0) == 0
)
NOTHING_FOUND = _OfQueries(
    "infinite",
    "a query has relevant items, none of which was retrieved, so the first of them has no rank",
    lambda q: q.have((q.relevant_items > 0) & (q.retrieved_relevant == 0)) > 0,
)
NO_IRRELEVANT = _OfQueries(
    "no_irrelevant_items",
    "in every query all items are relevant",
    lambda q: q.have(q.irrelevant_items > 0) == 0,
)
NO_PAIRS = _OfQueries(
    "no_pairs",
    "no query has both a relevant and an irrelevant item",
    lambda q: q.have((q.irrelevant_items > 0) & (q.relevant_items > 0)) == 0,
)

NOTHING_RETRIEVED = _OfQueries(
    "nothing_retrieved", "nothing was retrieved for any query", lambda q: q.have(q.retrieved_items > 0) == 0
)

# Conditions of overlapping sets.


def _of_items(code: str, reason: str, size: Callable[[Overlaps], Array]) -> Condition[Overlaps]:
    return Condition(code, reason, lambda s: s.total(size(s)) == 0)


def _of_class(code: str, reason: str, size: Callable[[tuple[Array, Array, Array]], Array]) -> Condition[Overlaps]:
    return Condition(code, reason, lambda s: size(s.classes) == 0)


NOTHING_ANYWHERE = _of_items(
    "nothing_anywhere", "no item has anything that is there or that was predicted", lambda s: s.union
)
NOTHING_PREDICTED = _of_items("nothing_predicted", "nothing was predicted for any item", lambda s: s.predicted_size)
NOTHING_THERE = _of_items("nothing_there", "there is nothing in any item", lambda s: s.actual)
CLASS_NOWHERE = _of_class(
    "class_nowhere",
    "no item of class {label} has anything that is there or that was predicted",
    lambda sums: sums[0] + sums[1],
)
CLASS_NOT_PREDICTED = _of_class(
    "class_not_predicted", "nothing was predicted for any item of class {label}", lambda sums: sums[1]
)
CLASS_NOT_THERE = _of_class("class_not_there", "there is nothing in any item of class {label}", lambda sums: sums[0])
