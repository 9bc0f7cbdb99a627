"""Clusterings: matches with classes, pairs of samples, mutual information, and the compactness of clusters in space."""

from collections.abc import Callable
from functools import partial

import numpy as np

from app.kernel.metrics.card import Choice, Condition, Inputs, Number, Orientation, Prevalence, Scale, Scope, metric
from app.kernel.numerics.arrays import Array, Mask, ratio, total
from app.kernel.samples.contingency import SQUARES, Contingency
from app.kernel.samples.points import ClusteredPoints

_OfTable = Condition[Contingency]
NO_SAMPLES = _OfTable("no_samples", "the table holds no samples", lambda c: np.equal(c.n, 0))
NO_PAIR = _OfTable("fewer_than_two_samples", "there is no pair of samples", lambda c: np.less(c.n, 2))
_ALONE_IN_CLASS = _OfTable(
    "every_sample_alone", "every sample is a class of its own", lambda c: np.equal(c.actual_squares, c.n)
)
_ALONE_IN_CLUSTER = _OfTable(
    "every_sample_alone", "every sample is a cluster of its own", lambda c: np.equal(c.predicted_squares, c.n)
)


def _is_weighted(c: Contingency) -> Mask:
    return np.full(c.n.shape, c.is_weighted)


_ALL_TOGETHER = _OfTable(
    "trivial_grouping", "all samples are of one class and in one cluster", lambda c: c.all_together
)


def _too_large(matched: Callable[[Contingency], Array]) -> Condition[Contingency]:
    return _OfTable(
        "matching_too_large",
        "there are too many classes whose best cluster is not plain to find the best matching",
        lambda c: np.isnan(matched(c)),
    )


_INFORMATION = ("information", "class_entropy", "cluster_entropy")
_contingency = partial(
    metric, scope=Scope.OVERALL, inputs=Inputs.CONTINGENCY, prevalence=Prevalence.SENSITIVE, scale=Scale.LOGIT
)
_matched = partial(_contingency, undefined=(NO_SAMPLES,), references=("zhao2004", "beddar2025"), headline=True)


@_matched(
    name="purity",
    formula=r"\frac{1}{n}\sum_j\max_i n_{ij}",
    sentence="Share of the samples that belong to the most frequent class of their cluster; many small clusters are "
    "enough for 1.",
    sums=("largest_in_clusters",),
)
def purity(c: Contingency) -> Array:
    return c.largest_in_clusters / c.n


@_matched(
    name="inverse purity",
    formula=r"\frac{1}{n}\sum_i\max_j n_{ij}",
    sentence="Share of the samples that are in the cluster which holds most of their class; one cluster for all is "
    "enough for 1.",
    sums=("largest_in_classes",),
)
def inverse_purity(c: Contingency) -> Array:
    return c.largest_in_classes / c.n


@_contingency(
    name="accuracy of the best matching",
    formula=r"\frac{1}{n}\max_\sigma\sum_i n_{i\sigma(i)}",
    sentence="Share of the samples whose cluster is the one matched to their class, where each class has at most one "
    "cluster and each cluster at most one class, matched so that this share is largest.",
    aliases=("clustering_accuracy",),
    elsewhere={"torchmetrics": "ClusterAccuracy"},
    differs={"torchmetrics": "takes as many clusters as classes, which its argument num_classes names"},
    undefined=(NO_SAMPLES, _too_large(lambda c: c.matched)),
    symmetric=True,
    references=("kuhn1955",),
    on_request=True,
    sums=("matched",),
)
def cluster_accuracy(c: Contingency) -> Array:
    return c.matched / c.n


_UNEQUAL = _OfTable(
    "as_many_clusters_needed",
    "there are not as many clusters as classes",
    lambda c: np.not_equal(c.filled_classes, c.filled_clusters),
)
_ONE_CLASS = _OfTable("one_class", "all samples are of one class", lambda c: np.equal(c.filled_classes, 1))


@_contingency(
    name="normalised clustering accuracy",
    symbol="NCA",
    range=(None, 1.0),
    formula=r"\frac{\max_\sigma\frac1k\sum_i n_{i\sigma(i)}/P_i-1/k}{1-1/k}",
    sentence="Mean recall of the classes under the matching with clusters that makes it largest, 0 where it is what one "
    "cluster for all gives: every class counts the same. It needs as many clusters as classes.",
    prevalence=Prevalence.INSENSITIVE,
    elsewhere={"genieclust": "normalized_clustering_accuracy"},
    undefined=(NO_SAMPLES, _ONE_CLASS, _UNEQUAL, _too_large(lambda c: c.matched_recalls)),
    chance_corrected=True,
    references=("gagolewski2025",),
    on_request=True,
    sums=("matched_recalls",),
    scale=Scale.LINEAR,
)
def normalized_clustering_accuracy(c: Contingency) -> Array:
    k = c.filled_classes
    defined = (k == c.filled_clusters) & (k > 1)
    return np.where(defined, ratio(c.matched_recalls - 1.0, k - 1.0), np.nan)


@_contingency(
    name="pair sets index",
    symbol="PSI",
    formula=r"\max\left(0,\frac{S-E}{\max(k,l)-E}\right),\ S=\max_\sigma\sum_i\frac{n_{i\sigma(i)}}{\max(P_i,T_{\sigma(i)})}",
    sentence="Overlap of each class with the cluster matched to it over the larger of the two, summed and corrected for "
    "what sizes alone give: small classes count as much as large ones. 0 where chance gives as much or more.",
    elsewhere={"genieclust": "pair_sets_index"},
    undefined=(NO_SAMPLES, _ALL_TOGETHER, _too_large(lambda c: c.matched_overlaps)),
    chance_corrected=True,
    symmetric=True,
    references=("rezaei2016",),
    on_request=True,
    sums=("matched_overlaps", "expected_overlaps"),
)
def pair_sets_index(c: Contingency) -> Array:
    expected = c.expected_overlaps
    most = np.maximum(c.filled_classes, c.filled_clusters)
    return np.where(c.all_together, np.nan, np.maximum(ratio(c.matched_overlaps - expected, most - expected), 0.0))


_bcubed = partial(_contingency, undefined=(NO_SAMPLES,), on_request=True, references=("bagga1998", "amigo2009"))


@_bcubed(
    name="B-cubed precision",
    formula=r"\frac1n\sum_{ij}\frac{n_{ij}^2}{T_j}",
    sentence="Share of the samples in a sample's cluster that are of its class, itself included, averaged over the "
    "samples.",
    sums=("squares_by_cluster",),
)
def bcubed_precision(c: Contingency) -> Array:
    return c.squares_by_cluster / c.n


@_bcubed(
    name="B-cubed recall",
    formula=r"\frac1n\sum_{ij}\frac{n_{ij}^2}{P_i}",
    sentence="Share of the samples of a sample's class that are in its cluster, itself included, averaged over the "
    "samples.",
    sums=("squares_by_class",),
)
def bcubed_recall(c: Contingency) -> Array:
    return c.squares_by_class / c.n


@_bcubed(
    name="B-cubed F1",
    formula=r"\frac{2\,\text{precision}\cdot\text{recall}}{\text{precision}+\text{recall}}\ \text{(B-cubed)}",
    sentence="Harmonic mean of B-cubed precision and B-cubed recall.",
    symmetric=True,
    sums=("squares_by_cluster", "squares_by_class"),
)
def bcubed_f1(c: Contingency) -> Array:
    precision, recall = bcubed_precision(c), bcubed_recall(c)
    return 2.0 * precision * recall / (precision + recall)


@_contingency(
    name="Rand index",
    symbol="R",
    formula=r"\frac{a+b}{\binom n2}",
    sentence="Share of the pairs of samples that both groupings put together, or both apart; near 1 by chance alone "
    "where there are many groups.",
    elsewhere={"sklearn": "rand_score", "torchmetrics": "RandScore"},
    differs={"sklearn": "1 for one sample, of which there is no pair; here there is no value then"},
    undefined=(NO_PAIR,),
    symmetric=True,
    degree=None,
    references=("rand1971", "beddar2025"),
    sums=SQUARES,
)
def rand_index(c: Contingency) -> Array:
    apart = c.pairs + c.squares - c.actual_squares - c.predicted_squares
    # Of weights a rounding may lie beyond.
    return np.minimum((c.together + apart) / (c.pairs - c.n), 1.0)


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
    sums=SQUARES,
)
def pair_fowlkes_mallows(c: Contingency) -> Array:
    return np.sqrt(c.together / (c.actual_squares - c.n)) * np.sqrt(c.together / (c.predicted_squares - c.n))


_ALL_ALONE = _OfTable(
    "trivial_grouping", "every sample is a class of its own and a cluster of its own", lambda c: c.all_alone
)
_of_pairs = partial(_contingency, degree=None, on_request=True, references=("manning2008",))


@_of_pairs(
    name="precision of pairs",
    formula=r"\frac{TP}{TP+FP}\ \text{of pairs}",
    sentence="Share of the pairs of samples in one cluster that are of one class.",
    undefined=(NO_PAIR, _ALONE_IN_CLUSTER),
    sums=("squares", "predicted_squares"),
)
def pair_precision(c: Contingency) -> Array:
    return c.together / (c.predicted_squares - c.n)


@_of_pairs(
    name="recall of pairs",
    formula=r"\frac{TP}{TP+FN}\ \text{of pairs}",
    sentence="Share of the pairs of samples of one class that are in one cluster.",
    undefined=(NO_PAIR, _ALONE_IN_CLASS),
    sums=("squares", "actual_squares"),
)
def pair_recall(c: Contingency) -> Array:
    return c.together / (c.actual_squares - c.n)


@_of_pairs(
    name="F1 of pairs",
    formula=r"\frac{2TP}{2TP+FP+FN}\ \text{of pairs}",
    sentence="Harmonic mean of the precision and the recall of pairs of samples.",
    undefined=(NO_PAIR, _ALL_ALONE),
    symmetric=True,
    sums=SQUARES,
)
def pair_f1(c: Contingency) -> Array:
    return 2.0 * c.together / (c.actual_squares + c.predicted_squares - 2.0 * c.n)


@_of_pairs(
    name="Jaccard index of pairs",
    formula=r"\frac{TP}{TP+FP+FN}\ \text{of pairs}",
    sentence="Pairs of samples of one class and in one cluster, over the pairs for which at least one of the two holds.",
    undefined=(NO_PAIR, _ALL_ALONE),
    symmetric=True,
    sums=SQUARES,
)
def pair_jaccard(c: Contingency) -> Array:
    return c.together / (c.actual_squares + c.predicted_squares - c.n - c.squares)


@_contingency(
    name="adjusted Fowlkes-Mallows index of pairs",
    range=(None, 1.0),
    formula=r"\frac{FM-E}{1-E},\ E=\frac{\sqrt{(\sum P_i^2-n)(\sum T_j^2-n)}}{n(n-1)}",
    sentence="Fowlkes-Mallows index beyond what clusters of these sizes have by chance, over the most that there can be: 0 "
    "on average for clusters drawn at random.",
    elsewhere={"genieclust": "adjusted_fm_score"},
    undefined=(
        NO_PAIR,
        _ALONE_IN_CLASS,
        _ALONE_IN_CLUSTER,
        _ALL_TOGETHER,
    ),
    chance_corrected=True,
    symmetric=True,
    degree=None,
    references=("fowlkes1983", "hubert1985"),
    on_request=True,
    sums=SQUARES,
    scale=Scale.LINEAR,
)
def adjusted_fowlkes_mallows(c: Contingency) -> Array:
    geometric = np.sqrt(c.actual_squares - c.n) * np.sqrt(c.predicted_squares - c.n)
    expected = geometric / (c.pairs - c.n)
    # Where the bound is the expectation, rounding would replace 0.
    return np.where(c.all_together, np.nan, ratio(ratio(c.together, geometric) - expected, 1.0 - expected))


_AVERAGE = Choice(
    "average",
    "arithmetic",
    "how the two entropies become one bound: their arithmetic or geometric mean, the smaller or the larger one",
    ("arithmetic", "geometric", "min", "max"),
)
_information = partial(_contingency, undefined=(NO_SAMPLES,), biased=True)
_removed = partial(_information, references=("rosenberg2007",))


def _share(information: Array, entropy: Array) -> Array:
    """Part of an entropy (...) that is explained, 1 by definition where the entropy is 0."""
    return np.where(entropy == 0, 1.0, np.minimum(ratio(information, entropy), 1.0))


@_removed(
    name="homogeneity",
    symbol="h",
    formula=r"1-\frac{H(C|K)}{H(C)}=\frac{I}{H(C)}",
    sentence="Share of the uncertainty about the class that knowing the cluster removes: 1 if every cluster has samples "
    "of one class only, and by definition if there is but one class.",
    elsewhere={"sklearn": "homogeneity_score", "torchmetrics": "HomogeneityScore"},
    headline=True,
    sums=("information", "class_entropy"),
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
    sums=("information", "cluster_entropy"),
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
    sums=_INFORMATION,
)
def v_measure(c: Contingency, beta: float = 1.0) -> Array:
    # Without quotients, which do not exist where an entropy is 0.
    bound = beta * c.cluster_entropy + c.class_entropy
    return _defined(_share((1.0 + beta) * c.information, bound), c)


def _defined(values: Array, c: Contingency) -> Array:
    """Return values, NaN where there are no samples, even if the definition gives a number."""
    return np.where(c.n > 0, values, np.nan)


@_information(
    name="mutual information of classes and clusters",
    symbol="I",
    range=(0.0, None),
    formula=r"\sum_{ij}\frac{n_{ij}}{n}\ln\frac{n_{ij}\,n}{P_iT_j}",
    sentence="Nats that the cluster tells about the class; it grows with the number of groups.",
    elsewhere={"sklearn": "mutual_info_score", "torchmetrics": "MutualInfoScore"},
    symmetric=True,
    references=("vinh2010",),
    sums=("information",),
    scale=Scale.LINEAR,
)
def mutual_information(c: Contingency) -> Array:
    return c.information


@_information(
    name="variation of information",
    symbol="VI",
    range=(0.0, None),
    orientation=Orientation.LOWER,
    formula=r"H(C|K)+H(K|C)=\sum_{ij}\frac{n_{ij}}{n}\ln\frac{P_iT_j}{n_{ij}^2}",
    sentence="Nats about the class that the cluster leaves open, and about the cluster that the class leaves open: a "
    "distance of the two groupings, 0 where they are the same.",
    aliases=("vi",),
    elsewhere={"skimage": "variation_of_information"},
    differs={"skimage": "in bits, and the two parts apart"},
    symmetric=True,
    references=("meila2007",),
    on_request=True,
    sums=("open_information",),
    scale=Scale.LINEAR,
)
def variation_of_information(c: Contingency) -> Array:
    return c.open_information


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
    sums=_INFORMATION,
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
    undefined=(
        NO_SAMPLES,
        _ALL_TOGETHER,
        _ALL_ALONE,
        _OfTable("weights", "what chance leaves is known of whole numbers of samples only", _is_weighted),
    ),
    chance_corrected=True,
    symmetric=True,
    degree=None,
    references=("vinh2010",),
    sums=(*_INFORMATION, "expected_information"),
    scale=Scale.LINEAR,
)
def adjusted_mutual_information(c: Contingency, average: str = "arithmetic") -> Array:
    expected = c.expected_information
    bound = _bound(c, average) - expected
    # Where the bound is the expectation, rounding would replace 0.
    free = ~(c.all_together | c.all_alone | _is_expected(c, average))
    return np.where(free, ratio(c.information - expected, bound), np.nan)


def _is_expected(c: Contingency, average: str) -> Mask:
    """Mask (...) of the tables whose margins make all clusterings reach the bound."""
    together = (c.filled_classes == 1) | (c.filled_clusters == 1)
    alone = (c.actual_squares == c.n) | (c.predicted_squares == c.n)
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


_OfPoints = Condition[ClusteredPoints]
_ONE_CLUSTER = _OfPoints("one_cluster", "all points are in one cluster", lambda p: p.one_cluster)
_EVERY_POINT_ALONE = _OfPoints("every_sample_alone", "every point is a cluster of its own", lambda p: p.all_alone)
_NO_DIRECTION = _OfPoints(
    "no_direction", "a point is at 0, from where no direction leads to it", lambda p: p.no_direction
)
_NO_PLACES = _OfPoints(
    "no_features",
    "distances of the points are known, and not where they lie",
    lambda p: np.full(p.n.shape, p.distances),
)
_DISTANCE = Choice(
    "distance",
    "euclidean",
    "how far two points are from each other; cosine is that of the directions from 0; of distances that were sent the "
    "default is these",
    ("euclidean", "cosine", "manhattan"),
)
_shape = partial(metric, scope=Scope.OVERALL, inputs=Inputs.FEATURES, prevalence=Prevalence.SENSITIVE)


@_shape(
    name="silhouette",
    symbol="s",
    range=(-1.0, 1.0),
    formula=r"\frac{1}{n}\sum_x\frac{b(x)-a(x)}{\max(a(x),b(x))}",
    sentence="How much nearer points are to the others of their cluster than to those of the nearest other cluster, "
    "averaged over the points; a point alone in its cluster counts 0.",
    elsewhere={"sklearn": "silhouette_score"},
    parameters=(_DISTANCE,),
    undefined=(_ONE_CLUSTER, _EVERY_POINT_ALONE, _NO_DIRECTION, _NO_PLACES),
    degree=None,
    references=("rousseeuw1987", "beddar2025"),
)
def silhouette(p: ClusteredPoints, distance: str = "euclidean") -> Array:
    apart = p.neighbours(distance)
    nearest = apart.nearest_mean
    others = np.take(p.sizes, p.clusters, axis=-1) - 1.0
    mean = ratio(apart.own, others)
    # 0 by definition where a point is alone or both distances are equal.
    values = np.where((others > 0) & (mean != nearest), ratio(nearest - mean, np.maximum(nearest, mean)), 0.0)
    found = ratio(total(np.where(p.mass > 0, values, 0.0) * p.mass), p.n)
    return np.where(p.one_cluster | p.all_alone, np.nan, found)


def _likeness(p: ClusteredPoints) -> Array:
    """Largest (S_i + S_j) / d_ij of each cluster (..., S); clusters without points are left out."""
    worst = np.full(p.sizes.shape, -np.inf)
    for code in range(p.n_clusters):
        away = p.centroids - p.centroids[..., code : code + 1, :]
        likeness = ratio(p.scatter + p.scatter[..., code : code + 1], p.length(away))
        likeness[..., code] = -np.inf
        worst[..., code] = np.maximum.reduce(np.where(p.sizes > 0, likeness, -np.inf), axis=-1)
    return worst


def _mean_likeness(p: ClusteredPoints) -> Array:
    worst = np.where(p.sizes > 0, _likeness(p), 0.0)
    return np.where(p.one_cluster, np.nan, ratio(total(worst), p.filled))


@_shape(
    name="Davies-Bouldin index",
    symbol="DB",
    range=(0.0, None),
    orientation=Orientation.LOWER,
    formula=r"\frac{1}{k}\sum_i\max_{j\ne i}\frac{S_i+S_j}{d(c_i,c_j)}",
    sentence="Extent of a cluster and of the one it is most mixed up with over the distance of their centroids, averaged "
    "over the clusters.",
    elsewhere={"sklearn": "davies_bouldin_score", "torchmetrics": "DaviesBouldinScore"},
    differs={"sklearn": "centroids in one place are left out; here the index is infinite then, and there is no value"},
    undefined=(
        _ONE_CLUSTER,
        _NO_PLACES,
        _OfPoints(
            "infinite",
            "two clusters have one centroid, so the index is infinite",
            lambda p: np.isinf(_mean_likeness(p)),
        ),
        _OfPoints(
            "no_extent",
            "two clusters are one place and nothing more",
            lambda p: np.isnan(_mean_likeness(p)) & ~p.one_cluster,
        ),
    ),
    references=("davies1979",),
)
def davies_bouldin(p: ClusteredPoints) -> Array:
    return _mean_likeness(p)


@_shape(
    name="Calinski-Harabasz index",
    symbol="CH",
    range=(0.0, None),
    formula=r"\frac{\sum_i n_i\,d(c_i,c)^2/(k-1)}{\sum_i\sum_{x\in i}d(x,c_i)^2/(n-k)}",
    sentence="Spread of the centroids over the spread within the clusters, as a variance ratio; it grows with the sample.",
    elsewhere={"sklearn": "calinski_harabasz_score", "torchmetrics": "CalinskiHarabaszScore"},
    differs={"sklearn": "1 where no cluster has any extent; here the index is infinite then, and there is no value"},
    undefined=(
        _ONE_CLUSTER,
        _EVERY_POINT_ALONE,
        _NO_PLACES,
        _OfPoints(
            "infinite",
            "no cluster has any extent, so the ratio is infinite",
            lambda p: (p.within == 0) & (p.between > 0),
        ),
        _OfPoints("no_extent", "all points are in one place", lambda p: (p.within == 0) & (p.between == 0)),
    ),
    degree=None,
    references=("calinski1974",),
)
def calinski_harabasz(p: ClusteredPoints) -> Array:
    between, within = ratio(p.between, p.filled - 1.0), ratio(p.within, p.n - p.filled)
    return np.where(p.one_cluster | p.all_alone, np.nan, ratio(between, within))


def _has_no_extent(p: ClusteredPoints) -> Mask:
    return ~p.one_cluster & (p.extremes("euclidean").diameter == 0)


@_shape(
    name="Dunn index",
    prevalence=Prevalence.INSENSITIVE,
    range=(0.0, None),
    formula=r"\frac{\min_{i\ne j}\min_{x\in i,y\in j}d(x,y)}{\max_i\max_{x,y\in i}d(x,y)}",
    sentence="Smallest distance between points of two clusters over the largest one within a cluster; it falls as points "
    "are added, and copies of points do not move it.",
    elsewhere={"torchmetrics": "DunnIndex"},
    differs={
        "torchmetrics": "distances of centroids over the largest distance from one; here those of points, as Dunn has it"
    },
    undefined=(
        _ONE_CLUSTER,
        _OfPoints(
            "infinite",
            "no cluster has any extent, so the ratio is infinite",
            lambda p: _has_no_extent(p) & (p.extremes("euclidean").separation > 0),
        ),
        _OfPoints(
            "no_extent",
            "no cluster has any extent, and two are in one place",
            lambda p: _has_no_extent(p) & (p.extremes("euclidean").separation == 0),
        ),
        _NO_DIRECTION,
        _NO_PLACES,
    ),
    parameters=(_DISTANCE,),
    references=("dunn1974",),
    about_sample=True,
)
def dunn(p: ClusteredPoints, distance: str = "euclidean") -> Array:
    found = p.extremes(distance)
    value = ratio(np.asarray(found.separation), np.asarray(found.diameter))
    return np.where(p.one_cluster, np.nan, value)
