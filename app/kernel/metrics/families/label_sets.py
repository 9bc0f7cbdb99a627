"""Multilabel metrics averaged over samples: predicted label sets against actual ones, and the order of the labels by
score.
"""

from functools import partial

import numpy as np

from app.kernel.metrics.card import ANY_SETS, Condition, Inputs, Number, Orientation, Prevalence, over_units
from app.kernel.metrics.conditions import NO_WEIGHT
from app.kernel.numerics.arrays import Array, Mask, ratio
from app.kernel.samples.label_units import LabelScores, LabelSets, OrderedLabels

_of_sets = partial(
    over_units,
    inputs=Inputs.LABELS,
    prevalence=Prevalence.SENSITIVE,
    undefined=(NO_WEIGHT,),
    references=("tsoumakas2010", "beddar2025"),
)
# Metrics that regions and answers have too; their sizes may be areas.
_of_any_sets = partial(_of_sets, also=ANY_SETS)
_EMPTY_IN_SKLEARN = {"sklearn": "samples without labels on both sides count 0 there, and 1 with zero_division=1"}


def _share(part: Array, whole: Array, other: Array) -> Array:
    """Part of the whole (n); without a whole 1 where the other is empty too, and else 0."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), (other == 0).astype(np.float64))


@_of_any_sets(
    name="subset accuracy",
    formula=r"\frac{1}{n}\sum_i [Y_i = \hat Y_i]",
    sentence="Share of the samples predicted exactly: all of their labels, pixels or tokens, and nothing else.",
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
    symmetric=True,
    headline=True,
)
def hamming_loss(s: LabelSets) -> Array:
    wrong: Array = (s.actual + s.predicted_size - 2.0 * s.hits) / s.n_labels
    return wrong


@_of_any_sets(
    name="precision averaged over samples",
    formula=r"\frac{1}{n}\sum_i \frac{|Y_i \cap \hat Y_i|}{|\hat Y_i|}",
    sentence="Share of the labels, pixels or tokens predicted for a sample that it has, averaged over the samples.",
    elsewhere={"sklearn": "precision_score(average=samples)"},
    differs=_EMPTY_IN_SKLEARN,
)
def samples_precision(s: LabelSets) -> Array:
    return _share(s.hits, s.predicted_size, s.actual)


@_of_any_sets(
    name="recall averaged over samples",
    formula=r"\frac{1}{n}\sum_i \frac{|Y_i \cap \hat Y_i|}{|Y_i|}",
    sentence="Share of the labels, pixels or tokens of a sample that were predicted, averaged over the samples.",
    elsewhere={"sklearn": "recall_score(average=samples)"},
    differs=_EMPTY_IN_SKLEARN,
)
def samples_recall(s: LabelSets) -> Array:
    return _share(s.hits, s.actual, s.predicted_size)


@_of_sets(
    name="specificity averaged over samples",
    formula=r"\frac{1}{n}\sum_i \frac{|\overline{Y_i} \cap \overline{\hat Y_i}|}{|\overline{Y_i}|}",
    sentence="Share of the labels that a sample does not have that were not predicted, averaged over the samples.",
    on_request=True,
)
def samples_specificity(s: LabelSets) -> Array:
    absent = s.n_labels - s.actual
    return _share(absent - s.predicted_size + s.hits, absent, s.n_labels - s.predicted_size)


@_of_any_sets(
    name="F1 averaged over samples",
    formula=r"\frac{1}{n}\sum_i \frac{2|Y_i \cap \hat Y_i|}{|Y_i| + |\hat Y_i|}",
    sentence="F1 of the labels, pixels or tokens of each sample, averaged over the samples.",
    elsewhere={"sklearn": "f1_score(average=samples)"},
    differs=_EMPTY_IN_SKLEARN,
    symmetric=True,
    aliases=("token_f1",),
    headline_of=ANY_SETS,
    references=("tsoumakas2010", "rajpurkar2016", "beddar2025"),
)
def samples_f1(s: LabelSets) -> Array:
    both = s.actual + s.predicted_size
    return _share(2.0 * s.hits, both, both)


@_of_any_sets(
    name="F-beta averaged over samples",
    formula=r"\frac{1}{n}\sum_i \frac{(1+\beta^2)|Y_i \cap \hat Y_i|}{\beta^2|Y_i| + |\hat Y_i|}",
    sentence="F-beta of the labels, pixels or tokens of each sample, averaged over the samples.",
    elsewhere={"sklearn": "fbeta_score(average=samples)"},
    differs=_EMPTY_IN_SKLEARN,
    parameters=(Number("beta", 1.0, "weight of recall against precision", above=0.0),),
    on_request=True,
)
def samples_f_beta(s: LabelSets, beta: float = 1.0) -> Array:
    both = beta * beta * s.actual + s.predicted_size
    return _share((1.0 + beta * beta) * s.hits, both, both)


@_of_any_sets(
    name="Jaccard index averaged over samples",
    formula=r"\frac{1}{n}\sum_i \frac{|Y_i \cap \hat Y_i|}{|Y_i \cup \hat Y_i|}",
    sentence="Labels, pixels or tokens that are both there and predicted, over those that are either, averaged over the samples.",
    elsewhere={"sklearn": "jaccard_score(average=samples)"},
    differs=_EMPTY_IN_SKLEARN,
    symmetric=True,
    headline_of=ANY_SETS,
)
def samples_jaccard(s: LabelSets) -> Array:
    union = s.actual + s.predicted_size - s.hits
    return _share(s.hits, union, union)


_of_orders = partial(
    over_units,
    inputs=Inputs.LABEL_SCORES,
    prevalence=Prevalence.SENSITIVE,
    undefined=(NO_WEIGHT,),
    references=("tsoumakas2010", "beddar2025"),
)
_loss_of_orders = partial(_of_orders, orientation=Orientation.LOWER)


def _undecided(o: OrderedLabels) -> Mask:
    """Samples (n) with no label or with all of them: every order is right."""
    none_or_all: Mask = (o.count == 0) | (o.count == o.relevant.shape[1])
    return none_or_all


NO_LABEL_ORDER: Condition[LabelScores] = Condition(
    "no_label_order",
    "no sample with weight has some of the labels and not all of them",
    lambda s: s.have(~_undecided(s.in_order)) == 0,
)


@_of_orders(
    name="label ranking average precision",
    symbol="LRAP",
    formula=r"\frac{1}{n}\sum_i\frac{1}{|Y_i|}\sum_{j\in Y_i}\frac{|\{k\in Y_i: s_{ik}\ge s_{ij}\}|}{|\{k: s_{ik}\ge s_{ij}\}|}",
    sentence="Share of the labels scored as high as one of the sample's that are its own too, averaged; 1 for samples "
    "without labels.",
    aliases=("lrap", "samples_average_precision"),
    elsewhere={"sklearn": "label_ranking_average_precision_score", "torchmetrics": "MultilabelRankingAveragePrecision"},
    headline=True,
)
def label_ranking_average_precision(s: LabelScores) -> Array:
    o = s.in_order
    precision = (o.relevant * (o.relevant_above / o.above)).sum(axis=1)
    return np.where(_undecided(o), 1.0, precision / np.maximum(o.count, 1.0))


@_of_orders(
    name="AUC averaged over samples",
    formula=r"\frac{1}{n'}\sum_i P(s_{ij} > s_{ik}) + \tfrac{1}{2}P(s_{ij} = s_{ik}),\ j\in Y_i,\ k\notin Y_i",
    sentence="Chance that a label of the sample is scored higher than another one, averaged over the samples that have "
    "some labels and not all.",
    elsewhere={"sklearn": "roc_auc_score(average=samples)"},
    differs={"sklearn": "there is no value there if a sample has no label or all"},
    undefined=(NO_LABEL_ORDER,),
    on_request=True,
)
def roc_auc_ovr_samples(s: LabelScores) -> Array:
    o = s.in_order
    pairs = o.count * (o.relevant.shape[1] - o.count)
    # Pairs in which the other is scored as high or higher, and those in which the label is: tied ones are among both.
    wrong = (o.relevant * (o.above - o.relevant_above)).sum(axis=1)
    right = (~o.relevant * o.relevant_above).sum(axis=1)
    return 0.5 + 0.5 * ratio(right - wrong, pairs)


@_loss_of_orders(
    name="label ranking loss",
    formula=r"\frac{1}{n}\sum_i\frac{|\{(j,k): j\in Y_i,\ k\notin Y_i,\ s_{ij}\le s_{ik}\}|}{|Y_i|(L-|Y_i|)}",
    sentence="Share of the pairs of a label of the sample and another one in which the other is scored as high or "
    "higher; 0 for samples with no label or all.",
    elsewhere={"sklearn": "label_ranking_loss", "torchmetrics": "MultilabelRankingLoss"},
)
def label_ranking_loss(s: LabelScores) -> Array:
    o = s.in_order
    wrong = (o.relevant * (o.above - o.relevant_above)).sum(axis=1)
    pairs = o.count * (o.relevant.shape[1] - o.count)
    return np.where(_undecided(o), 0.0, wrong / np.maximum(pairs, 1.0))


@_loss_of_orders(
    name="coverage error",
    range=(0.0, None),
    ideal=None,
    formula=r"\frac{1}{n}\sum_i\max_{j\in Y_i}|\{k: s_{ik}\ge s_{ij}\}|",
    sentence="How many labels one has to take, the highest scores first, to have all of a sample's; 0 for samples "
    "without labels. At best the mean number of labels.",
    elsewhere={"sklearn": "coverage_error", "torchmetrics": "MultilabelCoverageError"},
)
def coverage_error(s: LabelScores) -> Array:
    o = s.in_order
    places: Array = (o.relevant * o.above).max(axis=1)
    return places


@_loss_of_orders(
    name="one error",
    formula=r"\frac{1}{n}\sum_i [\arg\max_j s_{ij} \notin Y_i]",
    sentence="Share of the samples whose highest scored label is none of theirs; of labels that share the highest score "
    "one is taken at random. 0 for samples without labels.",
)
def one_error(s: LabelScores) -> Array:
    o = s.in_order
    return np.where(o.count == 0, 0.0, 1.0 - o.relevant_first / o.first)
