"""Overlap of actual and predicted sets, summed over items: of all items, and class by class.

Means over items of the same shares are metrics of label sets (``families.label_sets``).
"""

from functools import partial

from app.kernel.metrics.card import Inputs, Prevalence, Scope, metric, over_units
from app.kernel.metrics.conditions import (
    CLASS_NOT_PREDICTED,
    CLASS_NOT_THERE,
    CLASS_NOWHERE,
    NOTHING_ANYWHERE,
    NOTHING_PREDICTED,
    NOTHING_THERE,
)
from app.kernel.numerics.arrays import Array, mean, ratio
from app.kernel.numerics.weighted_units import Terms
from app.kernel.units.overlaps import Overlaps

_pooled = partial(over_units, inputs=Inputs.OVERLAPS, prevalence=Prevalence.SENSITIVE, references=("everingham2010",))
_of_classes = partial(
    metric,
    scope=Scope.CLASS,
    inputs=Inputs.CLASS_OVERLAPS,
    prevalence=Prevalence.INSENSITIVE,
    references=("everingham2010",),
)
_over_classes = partial(_of_classes, scope=Scope.OVERALL, symmetric=True, undefined=(CLASS_NOWHERE,), headline=True)


@_pooled(
    name="pooled intersection over union",
    symbol="IoU",
    formula=r"\frac{\sum_i |A_i \cap B_i|}{\sum_i |A_i \cup B_i|}",
    sentence="What belongs to both over what belongs to either, all items together: large items count most.",
    symmetric=True,
    undefined=(NOTHING_ANYWHERE,),
    headline=True,
)
def pooled_jaccard(s: Overlaps) -> Terms:
    return Terms(s.hits, s.union)


@_pooled(
    name="pooled F1",
    formula=r"\frac{2 \sum_i |A_i \cap B_i|}{\sum_i |A_i| + |B_i|}",
    sentence="Twice what belongs to both over the size of both, all items together; also called Dice.",
    symmetric=True,
    undefined=(NOTHING_ANYWHERE,),
)
def pooled_f1(s: Overlaps) -> Terms:
    return Terms(2.0 * s.hits, s.actual + s.predicted_size)


@_pooled(
    name="pooled precision",
    formula=r"\frac{\sum_i |A_i \cap B_i|}{\sum_i |B_i|}",
    sentence="Share of what was predicted that is there, all items together.",
    undefined=(NOTHING_PREDICTED,),
)
def pooled_precision(s: Overlaps) -> Terms:
    return Terms(s.hits, s.predicted_size)


@_pooled(
    name="pooled recall",
    formula=r"\frac{\sum_i |A_i \cap B_i|}{\sum_i |A_i|}",
    sentence="Share of what is there that was predicted, all items together.",
    undefined=(NOTHING_THERE,),
)
def pooled_recall(s: Overlaps) -> Terms:
    return Terms(s.hits, s.actual)


@_of_classes(
    name="intersection over union of a class",
    formula=r"\frac{\sum_{i \in c} |A_i \cap B_i|}{\sum_{i \in c} |A_i \cup B_i|}",
    sentence="What belongs to both over what belongs to either, all items of the class together.",
    symmetric=True,
    undefined=(CLASS_NOWHERE,),
)
def class_jaccard(s: Overlaps) -> Array:
    actual, predicted, common = s.classes
    return ratio(common, actual + predicted - common)


@_of_classes(
    name="F1 of a class of items",
    formula=r"\frac{2 \sum_{i \in c} |A_i \cap B_i|}{\sum_{i \in c} |A_i| + |B_i|}",
    sentence="Twice what belongs to both over the size of both, all items of the class together; also called Dice.",
    symmetric=True,
    undefined=(CLASS_NOWHERE,),
)
def class_f1(s: Overlaps) -> Array:
    actual, predicted, common = s.classes
    return ratio(2.0 * common, actual + predicted)


@_of_classes(
    name="precision of a class of items",
    formula=r"\frac{\sum_{i \in c} |A_i \cap B_i|}{\sum_{i \in c} |B_i|}",
    sentence="Share of what was predicted that is there, all items of the class together.",
    undefined=(CLASS_NOT_PREDICTED,),
)
def class_precision(s: Overlaps) -> Array:
    _, predicted, common = s.classes
    return ratio(common, predicted)


@_of_classes(
    name="recall of a class of items",
    formula=r"\frac{\sum_{i \in c} |A_i \cap B_i|}{\sum_{i \in c} |A_i|}",
    sentence="Share of what is there that was predicted, all items of the class together.",
    undefined=(CLASS_NOT_THERE,),
)
def class_recall(s: Overlaps) -> Array:
    actual, _, common = s.classes
    return ratio(common, actual)


@_over_classes(
    name="mean intersection over union of the classes",
    symbol="mIoU",
    formula=r"\frac{1}{K} \sum_c IoU_c",
    sentence="Mean over the classes of the intersection over union of all items of a class together.",
    aliases=("mean_iou",),
)
def mean_class_jaccard(s: Overlaps) -> Array:
    return mean(class_jaccard.compute(s))


@_over_classes(
    name="mean F1 of the classes of items",
    formula=r"\frac{1}{K} \sum_c F_{1,c}",
    sentence="Mean over the classes of the F1, or Dice, of all items of a class together.",
)
def mean_class_f1(s: Overlaps) -> Array:
    return mean(class_f1.compute(s))
