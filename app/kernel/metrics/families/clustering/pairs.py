"""Groupings compared by their best matches and by pairs of samples: which of them belong together."""

from collections.abc import Callable
from functools import partial

import numpy as np

from app.kernel.matrix.contingency import Contingency
from app.kernel.metrics.card import Condition, Inputs, Prevalence, Scope, metric
from app.kernel.numerics.arrays import Array, Mask, total


def overall(code: str, reason: str, holds: Callable[[Contingency], Mask]) -> Condition[Contingency]:
    """A condition of a table as a whole."""
    return Condition(code, reason, holds, overall=True)


NO_SAMPLES = overall("no_samples", "the table holds no samples", lambda c: np.equal(c.n, 0))
NO_PAIR = overall("fewer_than_two_samples", "there is no pair of samples", lambda c: np.less(c.n, 2))
_ALONE_IN_CLASS = overall(
    "every_sample_alone", "every sample is a class of its own", lambda c: np.equal(c.actual_squares, c.n)
)
_ALONE_IN_CLUSTER = overall(
    "every_sample_alone", "every sample is a cluster of its own", lambda c: np.equal(c.predicted_squares, c.n)
)
_contingency = partial(metric, scope=Scope.OVERALL, inputs=Inputs.CONTINGENCY, prevalence=Prevalence.SENSITIVE)
_matched = partial(_contingency, undefined=(NO_SAMPLES,), references=("zhao2004", "beddar2025"), headline=True)


@_matched(
    name="purity",
    formula=r"\frac{1}{n}\sum_j\max_i n_{ij}",
    sentence="Share of the samples that belong to the most frequent class of their cluster; many small clusters are "
    "enough for 1.",
)
def purity(c: Contingency) -> Array:
    return total(np.maximum.reduce(c.counts, axis=-2)) / c.n


@_matched(
    name="inverse purity",
    formula=r"\frac{1}{n}\sum_i\max_j n_{ij}",
    sentence="Share of the samples that are in the cluster which holds most of their class; one cluster for all is "
    "enough for 1.",
)
def inverse_purity(c: Contingency) -> Array:
    return total(np.maximum.reduce(c.counts, axis=-1)) / c.n


@_contingency(
    name="Rand index",
    symbol="R",
    formula=r"\frac{a+b}{\binom n2}",
    sentence="Share of the pairs of samples that both groupings put together, or both apart; near 1 by chance alone "
    "where there are many groups.",
    elsewhere={"sklearn": "rand_score", "torchmetrics": "RandScore"},
    undefined=(NO_PAIR,),
    symmetric=True,
    degree=None,
    references=("rand1971", "beddar2025"),
)
def rand_index(c: Contingency) -> Array:
    return (c.together + c.apart) / (c.pairs - c.n)


@_contingency(
    name="Fowlkes-Mallows index of pairs",
    symbol="FM",
    formula=r"\sqrt{\frac{TP}{TP+FP}\cdot\frac{TP}{TP+FN}}\ \text{of pairs}",
    sentence="Geometric mean of the share of the pairs in one cluster that are of one class, and of the share of the "
    "pairs of one class that are in one cluster.",
    elsewhere={"sklearn": "fowlkes_mallows_score", "torchmetrics": "FowlkesMallowsIndex"},
    differs={"sklearn": "0 where every sample is alone in its class or in its cluster; here there is no value then"},
    undefined=(NO_PAIR, _ALONE_IN_CLASS, _ALONE_IN_CLUSTER),
    symmetric=True,
    degree=None,
    references=("fowlkes1983", "beddar2025"),
)
def pair_fowlkes_mallows(c: Contingency) -> Array:
    return np.sqrt(c.together / (c.actual_squares - c.n)) * np.sqrt(c.together / (c.predicted_squares - c.n))
