"""The labels of a sample against those predicted for it, averaged over the samples.

The functions give the value of each sample (n). A sample without labels for which none was predicted is right, and counts 1 where its formula divides 0 by 0.
"""

from functools import partial

import numpy as np

from app.kernel.metrics.card import ANY_SETS, Inputs, Orientation, Prevalence
from app.kernel.metrics.conditions import NO_WEIGHT_OF_SAMPLES
from app.kernel.metrics.over_units import over_units
from app.kernel.numerics.arrays import Array
from app.kernel.samples.labels.sets import LabelSets

_of_sets = partial(
    over_units,
    inputs=Inputs.LABELS,
    prevalence=Prevalence.SENSITIVE,
    undefined=(NO_WEIGHT_OF_SAMPLES,),
    references=("tsoumakas2010", "beddar2025"),
)
# The same of regions and answers, whose sizes may be areas.
_of_any_sets = partial(_of_sets, also=ANY_SETS)


def _share(part: Array, whole: Array, other: Array) -> Array:
    """Part of the whole (n); without a whole 1 where the other is empty too, and else 0."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), (other == 0).astype(np.float64))


@_of_any_sets(
    name="subset accuracy",
    formula=r"\frac{1}{n}\sum_i [Y_i = \hat Y_i]",
    sentence="Share of the samples whose labels are exactly those predicted.",
    aliases=("exact_match_ratio", "exact_match"),
    elsewhere={"sklearn": "accuracy_score", "torchmetrics": "MultilabelExactMatch"},
    symmetric=True,
    headline=True,
    is_share=True,
    references=("tsoumakas2010", "rajpurkar2016", "beddar2025"),
)
def subset_accuracy(s: LabelSets) -> Array:
    counted: Array = s.right.astype(np.float64)
    return counted


@_of_sets(
    name="Hamming loss",
    formula=r"\frac{1}{nL}\sum_i |Y_i \mathbin{\triangle} \hat Y_i|",
    sentence="Share of all answers, one for each sample and label, that are wrong.",
    elsewhere={"sklearn": "hamming_loss", "torchmetrics": "MultilabelHammingDistance"},
    orientation=Orientation.LOWER,
    ideal=0.0,
    symmetric=True,
    headline=True,
)
def hamming_loss(s: LabelSets) -> Array:
    wrong: Array = (s.actual + s.predicted_size - 2.0 * s.hits) / s.n_labels
    return wrong


@_of_any_sets(
    name="precision averaged over samples",
    formula=r"\frac{1}{n}\sum_i \frac{|Y_i \cap \hat Y_i|}{|\hat Y_i|}",
    sentence="Share of the labels predicted for a sample that it has, averaged over the samples.",
    elsewhere={"sklearn": "precision_score(average=samples)"},
    differs={"sklearn": "samples without labels on both sides count 0 there, and 1 with zero_division=1"},
)
def samples_precision(s: LabelSets) -> Array:
    return _share(s.hits, s.predicted_size, s.actual)


@_of_any_sets(
    name="recall averaged over samples",
    formula=r"\frac{1}{n}\sum_i \frac{|Y_i \cap \hat Y_i|}{|Y_i|}",
    sentence="Share of the labels of a sample that were predicted, averaged over the samples.",
    elsewhere={"sklearn": "recall_score(average=samples)"},
    differs={"sklearn": "samples without labels on both sides count 0 there, and 1 with zero_division=1"},
)
def samples_recall(s: LabelSets) -> Array:
    return _share(s.hits, s.actual, s.predicted_size)


@_of_any_sets(
    name="F1 averaged over samples",
    formula=r"\frac{1}{n}\sum_i \frac{2|Y_i \cap \hat Y_i|}{|Y_i| + |\hat Y_i|}",
    sentence="F1 of the labels of each sample, averaged over the samples.",
    elsewhere={"sklearn": "f1_score(average=samples)"},
    differs={"sklearn": "samples without labels on both sides count 0 there, and 1 with zero_division=1"},
    symmetric=True,
    aliases=("token_f1",),
    headline_of=ANY_SETS,
    references=("tsoumakas2010", "rajpurkar2016", "beddar2025"),
)
def samples_f1(s: LabelSets) -> Array:
    both = s.actual + s.predicted_size
    return _share(2.0 * s.hits, both, both)


@_of_any_sets(
    name="Jaccard index averaged over samples",
    formula=r"\frac{1}{n}\sum_i \frac{|Y_i \cap \hat Y_i|}{|Y_i \cup \hat Y_i|}",
    sentence="Labels on both sides over labels on either side, averaged over the samples.",
    elsewhere={"sklearn": "jaccard_score(average=samples)"},
    differs={"sklearn": "samples without labels on both sides count 0 there, and 1 with zero_division=1"},
    symmetric=True,
    headline_of=ANY_SETS,
)
def samples_jaccard(s: LabelSets) -> Array:
    union = s.actual + s.predicted_size - s.hits
    return _share(s.hits, union, union)
