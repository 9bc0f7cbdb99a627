"""How compact and how far apart clusters are, by distances between points: no classes are needed."""

from collections.abc import Callable
from functools import partial

import numpy as np

from app.kernel.metrics.card import Condition, Inputs, Orientation, Prevalence, Scope, metric
from app.kernel.numerics.arrays import Array, Mask, ratio, total
from app.kernel.samples.points import Points


def _overall(code: str, reason: str, holds: Callable[[Points], Mask]) -> Condition[Points]:
    return Condition(code, reason, holds, overall=True)


_ONE_CLUSTER = _overall("one_cluster", "all points are in one cluster", lambda p: p.one_cluster)
_ALL_ALONE = _overall("every_sample_alone", "every point is a cluster of its own", lambda p: p.all_alone)
_shape = partial(metric, scope=Scope.OVERALL, inputs=Inputs.FEATURES, prevalence=Prevalence.SENSITIVE)


@_shape(
    name="silhouette",
    symbol="s",
    range=(-1.0, 1.0),
    formula=r"\frac{1}{n}\sum_x\frac{b(x)-a(x)}{\max(a(x),b(x))}",
    sentence="How much nearer points are to the others of their cluster than to those of the nearest other cluster, "
    "averaged over the points; a point alone in its cluster counts 0.",
    elsewhere={"sklearn": "silhouette_score"},
    undefined=(_ONE_CLUSTER, _ALL_ALONE),
    degree=None,
    references=("rousseeuw1987", "beddar2025"),
)
def silhouette(p: Points) -> Array:
    nearest = p.neighbours.nearest_mean
    others = np.take(p.sizes, p.clusters, axis=-1) - 1.0
    mean = ratio(p.neighbours.own, others)
    # Where a point is alone, and where both distances are equal, it is 0 by definition.
    values = np.where((others > 0) & (mean != nearest), ratio(nearest - mean, np.maximum(nearest, mean)), 0.0)
    found = ratio(total(np.where(p.mass > 0, values, 0.0) * p.mass), p.n)
    return np.where(p.one_cluster | p.all_alone, np.nan, found)


def _likeness(p: Points) -> Array:
    """Of each cluster (..., S) the largest (S_i + S_j) / d_ij; clusters without points are none."""
    worst = np.full(p.sizes.shape, -np.inf)
    for code in range(p.n_clusters):
        away = p.centroids - p.centroids[..., code : code + 1, :]
        likeness = ratio(p.scatter + p.scatter[..., code : code + 1], p.length(away))
        likeness[..., code] = -np.inf
        worst[..., code] = np.maximum.reduce(np.where(p.sizes > 0, likeness, -np.inf), axis=-1)
    return worst


def _mean_likeness(p: Points) -> Array:
    worst = np.where(p.sizes > 0, _likeness(p), 0.0)
    return np.where(p.one_cluster, np.nan, ratio(total(worst), p.filled))


@_shape(
    name="Davies-Bouldin index",
    symbol="DB",
    range=(0.0, None),
    ideal=0.0,
    orientation=Orientation.LOWER,
    formula=r"\frac{1}{k}\sum_i\max_{j\ne i}\frac{S_i+S_j}{d(c_i,c_j)}",
    sentence="Extent of a cluster and of the one it is most mixed up with over the distance of their centroids, averaged "
    "over the clusters.",
    elsewhere={"sklearn": "davies_bouldin_score", "torchmetrics": "DaviesBouldinScore"},
    differs={"sklearn": "centroids in one place are left out; here the index is infinite then, and there is no value"},
    undefined=(
        _ONE_CLUSTER,
        _overall(
            "infinite",
            "two clusters have one centroid, so the index is infinite",
            lambda p: np.isinf(_mean_likeness(p)),
        ),
        _overall(
            "no_extent",
            "two clusters are one place and nothing more",
            lambda p: np.isnan(_mean_likeness(p)) & ~p.one_cluster,
        ),
    ),
    references=("davies1979",),
)
def davies_bouldin(p: Points) -> Array:
    return _mean_likeness(p)


@_shape(
    name="Calinski-Harabasz index",
    symbol="CH",
    range=(0.0, None),
    ideal=None,
    formula=r"\frac{\sum_i n_i\,d(c_i,c)^2/(k-1)}{\sum_i\sum_{x\in i}d(x,c_i)^2/(n-k)}",
    sentence="Spread of the centroids over the spread within the clusters, as a variance ratio; it grows with the sample.",
    elsewhere={"sklearn": "calinski_harabasz_score", "torchmetrics": "CalinskiHarabaszScore"},
    differs={"sklearn": "1 where no cluster has any extent; here the index is infinite then, and there is no value"},
    undefined=(
        _ONE_CLUSTER,
        _ALL_ALONE,
        _overall(
            "infinite",
            "no cluster has any extent, so the ratio is infinite",
            lambda p: (p.within == 0) & (p.between > 0),
        ),
        _overall("no_extent", "all points are in one place", lambda p: (p.within == 0) & (p.between == 0)),
    ),
    degree=None,
    references=("calinski1974",),
)
def calinski_harabasz(p: Points) -> Array:
    between, within = ratio(p.between, p.filled - 1.0), ratio(p.within, p.n - p.filled)
    return np.where(p.one_cluster | p.all_alone, np.nan, ratio(between, within))


@_shape(
    name="Dunn index",
    prevalence=Prevalence.INSENSITIVE,
    range=(0.0, None),
    ideal=None,
    formula=r"\frac{\min_{i\ne j}\min_{x\in i,y\in j}d(x,y)}{\max_i\max_{x,y\in i}d(x,y)}",
    sentence="Smallest distance between points of two clusters over the largest one within a cluster; it falls as points "
    "are added, and copies of points do not move it.",
    elsewhere={"torchmetrics": "DunnIndex"},
    differs={
        "torchmetrics": "distances of centroids over the largest distance from one; here those of points, as Dunn has it"
    },
    undefined=(
        _ONE_CLUSTER,
        _overall(
            "infinite",
            "no cluster has any extent, so the ratio is infinite",
            lambda p: ~p.one_cluster & (p.extremes.diameter == 0) & (p.extremes.separation > 0),
        ),
        _overall(
            "no_extent",
            "no cluster has any extent, and two are in one place",
            lambda p: ~p.one_cluster & (p.extremes.diameter == 0) & (p.extremes.separation == 0),
        ),
    ),
    references=("dunn1974",),
    about_sample=True,
)
def dunn(p: Points) -> Array:
    found = p.extremes
    value = ratio(np.asarray(found.separation), np.asarray(found.diameter))
    return np.where(p.one_cluster, np.nan, value)
