"""What clusters tell about classes and the other way round, in nats where it has a unit."""

from functools import partial

import numpy as np

from app.kernel.matrix.contingency import Contingency
from app.kernel.metrics.card import Inputs, Prevalence, Scope, metric
from app.kernel.metrics.families.clustering.pairs import NO_SAMPLES, overall
from app.kernel.metrics.parameters import Choice, Number
from app.kernel.numerics.arrays import Array, Mask, ratio

_AVERAGE = Choice(
    "average",
    "arithmetic",
    "how the two entropies become one bound: their arithmetic or geometric mean, the smaller or the larger one",
    ("arithmetic", "geometric", "min", "max"),
)
_ALL_TOGETHER = overall("trivial_grouping", "all samples are of one class and in one cluster", lambda c: c.all_together)
_ALL_ALONE = overall(
    "trivial_grouping", "every sample is a class of its own and a cluster of its own", lambda c: c.all_alone
)
_information = partial(
    metric,
    scope=Scope.OVERALL,
    inputs=Inputs.CONTINGENCY,
    prevalence=Prevalence.SENSITIVE,
    undefined=(NO_SAMPLES,),
)
_removed = partial(_information, references=("rosenberg2007",), biased=True)


def _share(information: Array, entropy: Array) -> Array:
    """Share of an entropy (...) that is known, 1 by definition where there is none to know."""
    return np.where(entropy == 0, 1.0, np.minimum(ratio(information, entropy), 1.0))


@_removed(
    name="homogeneity",
    symbol="h",
    formula=r"1-\frac{H(C|K)}{H(C)}=\frac{I}{H(C)}",
    sentence="Share of the uncertainty about the class that knowing the cluster removes: 1 if every cluster has samples "
    "of one class only, and by definition if there is but one class.",
    elsewhere={"sklearn": "homogeneity_score", "torchmetrics": "HomogeneityScore"},
    headline=True,
)
def homogeneity(c: Contingency) -> Array:
    return _defined(_share(c.information, c.class_entropy), c)


@_removed(
    name="completeness",
    symbol="c",
    formula=r"1-\frac{H(K|C)}{H(K)}=\frac{I}{H(K)}",
    sentence="Share of the uncertainty about the cluster that knowing the class removes: 1 if every class is in one "
    "cluster only, and by definition if there is but one cluster.",
    elsewhere={"sklearn": "completeness_score", "torchmetrics": "CompletenessScore"},
    headline=True,
)
def completeness(c: Contingency) -> Array:
    return _defined(_share(c.information, c.cluster_entropy), c)


@_removed(
    name="V-measure",
    symbol="V",
    formula=r"\frac{(1+\beta)\,h\,c}{\beta h+c}",
    sentence="Weighted harmonic mean of homogeneity and completeness; with beta 1 the mutual information over the mean "
    "of the entropies.",
    elsewhere={"sklearn": "v_measure_score", "torchmetrics": "VMeasureScore"},
    parameters=(Number("beta", 1.0, "weight of completeness against homogeneity", above=0.0),),
    headline=True,
)
def v_measure(c: Contingency, beta: float = 1.0) -> Array:
    # The same without the quotients, which do not exist where an entropy is 0.
    bound = beta * c.cluster_entropy + c.class_entropy
    return _defined(_share((1.0 + beta) * c.information, bound), c)


def _defined(values: Array, c: Contingency) -> Array:
    """Nothing can be said without samples, whatever holds by definition."""
    return np.where(c.n > 0, values, np.nan)


@_information(
    name="mutual information of classes and clusters",
    symbol="I",
    range=(0.0, None),
    ideal=None,
    formula=r"\sum_{ij}\frac{n_{ij}}{n}\ln\frac{n_{ij}\,n}{P_iT_j}",
    sentence="Nats that the cluster tells about the class; it grows with the number of groups.",
    elsewhere={"sklearn": "mutual_info_score", "torchmetrics": "MutualInfoScore"},
    symmetric=True,
    references=("vinh2010",),
    biased=True,
)
def mutual_information(c: Contingency) -> Array:
    return c.information


@_information(
    name="normalised mutual information",
    symbol="NMI",
    formula=r"\frac{I}{\operatorname{avg}(H(C),H(K))}",
    sentence="Mutual information over an average of the entropies of classes and clusters; not 0 by chance.",
    aliases=("nmi",),
    elsewhere={"sklearn": "normalized_mutual_info_score", "torchmetrics": "NormalizedMutualInfoScore"},
    differs={
        "sklearn": "1 where all samples are of one class and in one cluster, and 0 where the geometric mean or the minimum of "
        "the entropies is 0; here there is no value then"
    },
    parameters=(_AVERAGE,),
    undefined=(NO_SAMPLES, _ALL_TOGETHER),
    symmetric=True,
    references=("strehl2002", "vinh2010"),
    headline=True,
    biased=True,
)
def normalized_mutual_information(c: Contingency, average: str = "arithmetic") -> Array:
    bound = _bound(c, average)
    return np.where(bound > 0, np.minimum(ratio(c.information, bound), 1.0), np.nan)


@_information(
    name="adjusted mutual information",
    symbol="AMI",
    range=(None, 1.0),
    formula=r"\frac{I-E[I]}{\operatorname{avg}(H(C),H(K))-E[I]}",
    sentence="Mutual information beyond what clusters of these sizes have by chance, over the most that there can be: 0 on "
    "average for clusters drawn at random, 1 for the classes themselves.",
    aliases=("ami",),
    elsewhere={"sklearn": "adjusted_mutual_info_score", "torchmetrics": "AdjustedMutualInfoScore"},
    differs={
        "sklearn": "1 where both groupings put all samples together or every sample alone; here there is no value then"
    },
    parameters=(_AVERAGE,),
    undefined=(NO_SAMPLES, _ALL_TOGETHER, _ALL_ALONE),
    chance_corrected=True,
    symmetric=True,
    degree=None,
    biased=True,
    references=("vinh2010",),
)
def adjusted_mutual_information(c: Contingency, average: str = "arithmetic") -> Array:
    expected = c.expected_information
    bound = _bound(c, average) - expected
    # Where the bound is what is expected, rounding would stand in the place of 0.
    free = ~(c.all_together | c.all_alone | _is_expected(c, average))
    return np.where(free, ratio(c.information - expected, bound), np.nan)


def _is_expected(c: Contingency, average: str) -> Mask:
    """Do all clusterings with these sizes reach the bound (...)?"""
    together = (c.filled_classes == 1) | (c.filled_clusters == 1)
    alone = (c.filled_classes == c.n) | (c.filled_clusters == c.n)
    if average == "min":
        return np.asarray(together | alone)
    return np.asarray(together if average == "geometric" else c.all_together)


def _bound(c: Contingency, average: str) -> Array:
    first, second = c.class_entropy, c.cluster_entropy
    if average == "arithmetic":
        return (first + second) / 2.0
    if average == "geometric":
        return np.sqrt(first) * np.sqrt(second)
    return np.minimum(first, second) if average == "min" else np.maximum(first, second)
