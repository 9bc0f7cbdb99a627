"""How the scores order the labels of a sample, averaged over the samples. Labels with one score share their places."""

from functools import partial

import numpy as np

from app.kernel.metrics.card import Inputs, Orientation, Prevalence
from app.kernel.metrics.conditions import NO_WEIGHT_OF_SAMPLES
from app.kernel.metrics.over_units import over_units
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.samples.labels.scores import LabelScores, OrderedLabels

_of_orders = partial(
    over_units,
    inputs=Inputs.LABEL_SCORES,
    prevalence=Prevalence.SENSITIVE,
    undefined=(NO_WEIGHT_OF_SAMPLES,),
    references=("tsoumakas2010", "beddar2025"),
)
_loss_of_orders = partial(_of_orders, orientation=Orientation.LOWER, ideal=0.0)


def _undecided(o: OrderedLabels) -> Mask:
    """Samples (n) with no label or with all of them: every order is right."""
    none_or_all: Mask = (o.count == 0) | (o.count == o.relevant.shape[1])
    return none_or_all


@_of_orders(
    name="label ranking average precision",
    symbol="LRAP",
    formula=r"\frac{1}{n}\sum_i\frac{1}{|Y_i|}\sum_{j\in Y_i}\frac{|\{k\in Y_i: s_{ik}\ge s_{ij}\}|}{|\{k: s_{ik}\ge s_{ij}\}|}",
    sentence="Share of the labels scored as high as one of the sample's that are its own too, averaged; 1 for samples "
    "without labels.",
    aliases=("lrap",),
    elsewhere={"sklearn": "label_ranking_average_precision_score", "torchmetrics": "MultilabelRankingAveragePrecision"},
    headline=True,
)
def label_ranking_average_precision(s: LabelScores) -> Array:
    o = s.in_order
    precision = (o.relevant * (o.relevant_above / o.above)).sum(axis=1)
    return np.where(_undecided(o), 1.0, precision / np.maximum(o.count, 1.0))


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
