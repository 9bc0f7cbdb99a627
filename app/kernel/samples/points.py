"""Points in clusters with everything that more than one measure of the clusters' shape needs, each computed once."""

from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kernel.numerics import scipy_bridge
from app.kernel.numerics.arrays import Array, Mask, each, lazy, total

Codes = NDArray[np.intp]

# Distances in memory at once: 8 MB of them.
_AT_ONCE = 1 << 20
# What is nearer, of the largest coordinate, is one place: the mean of equal numbers is not always that number.
_ROUNDING = 1e-13


class Neighbours(NamedTuple):
    """What all distances come to, point by point, each (..., n).

    Attributes:
        own: Sum of the distances to the other points of its cluster.
        nearest_mean: Mean distance to the points of the cluster where it is smallest, of all that are not its own.
    """

    own: Array
    nearest_mean: Array


class Extremes(NamedTuple):
    """The smallest distance of two points of different clusters, the largest one of two points of one."""

    separation: float
    diameter: float


class Points:
    """Points with d features that are put into S clusters.

    Leading axes are a batch of weight vectors over the same points, as a bootstrap needs: a point that weighs 2 is two
    points in one place. Entries are finite and checked. There is never more than a block of the distances in memory.

    Args:
        clusters: codes 0..S-1, shape (n,).
        features: shape (n, d).
        weights: whole numbers, shape (..., n); None is 1 each.

    Raises:
        ValueError: the shapes do not fit, a code is out of range, or there is no point.
    """

    def __init__(self, clusters: ArrayLike, features: ArrayLike, weights: ArrayLike | None = None) -> None:
        self.clusters: Codes = np.asarray(clusters, dtype=np.intp)
        self.features: Array = np.ascontiguousarray(features, dtype=np.float64)
        self.weights: Array | None = None if weights is None else np.asarray(weights, dtype=np.float64)
        if self.features.ndim != 2 or 0 in self.features.shape:
            raise ValueError(f"features need shape (n, d), neither of them 0, got {self.features.shape}")
        self.n_samples: int = self.features.shape[0]
        if self.clusters.shape != (self.n_samples,):
            raise ValueError(f"{self.n_samples} points need as many codes, got shape {self.clusters.shape}")
        if self.clusters.min() < 0:
            raise ValueError("cluster codes start at 0")
        if self.weights is not None and self.weights.shape[-1:] != (self.n_samples,):
            raise ValueError(f"weights need {self.n_samples} as their last axis, got shape {self.weights.shape}")
        self.n_clusters: int = int(self.clusters.max()) + 1

    def with_weights(self, weights: ArrayLike | None) -> Self:
        """The same points weighted otherwise."""
        return type(self)(self.clusters, self.features, weights)

    @lazy
    def mass(self) -> Array:
        """What each point weighs (..., n)."""
        return np.ones(self.n_samples) if self.weights is None else self.weights

    @lazy
    def membership(self) -> Array:
        """1 where a point is in a cluster (n, S)."""
        return np.equal(self.clusters[:, None], np.arange(self.n_clusters)).astype(np.float64)

    @lazy
    def n(self) -> Array:
        """All points (...)."""
        return total(self.mass)

    @lazy
    def sizes(self) -> Array:
        """Points of each cluster (..., S)."""
        sizes: Array = self.mass @ self.membership
        return sizes

    @lazy
    def filled(self) -> Array:
        """Clusters with points (...)."""
        return np.asarray(np.count_nonzero(self.sizes, axis=-1), dtype=np.float64)

    @lazy
    def one_cluster(self) -> Mask:
        """Are all points in one cluster (...)?"""
        return np.asarray(self.filled < 2)

    @lazy
    def all_alone(self) -> Mask:
        """Is every point a cluster of its own (...)?"""
        return np.asarray(self.filled == self.n)

    # Centres: (..., S, d), NaN for a cluster without points.

    @lazy
    def centred(self) -> Array:
        """The features less their mean (n, d): sums of squares keep their digits."""
        centred: Array = self.features - self.features.mean(axis=0)
        return centred

    @lazy
    def centroids(self) -> Array:
        """Mean of the points of each cluster."""
        weighted = self.membership.T * self.mass[..., None, :]
        means: Array = (weighted @ self.centred) / self.sizes[..., None]
        return means

    @lazy
    def one_place(self) -> float:
        """The distance up to which two places are one."""
        return _ROUNDING * float(np.abs(self.centred).max())

    @lazy
    def from_centroid(self) -> Array:
        """Distance of each point from the centroid of its cluster (..., n)."""
        return self.length(self.centred - np.take(self.centroids, self.clusters, axis=-2))

    def length(self, away: Array) -> Array:
        """Lengths (...) of differences (..., d), 0 where they are rounding."""
        found: Array = np.sqrt(np.vecdot(away, away))
        return np.where(found <= self.one_place, 0.0, found)

    @lazy
    def within(self) -> Array:
        """Sum of squared distances from the own centroid (...)."""
        return _sum_of(self.mass, self.from_centroid**2)

    @lazy
    def between(self) -> Array:
        """Sum of squared distances of the centroids from the mean of all points, each as often as it has points."""
        centre = (self.mass @ self.centred) / each(self.n)
        away = self.centroids - centre[..., None, :]
        return _sum_of(self.sizes, self.length(away) ** 2)

    @lazy
    def scatter(self) -> Array:
        """Mean distance of a cluster's points from its centroid (..., S)."""
        away = np.where(self.mass > 0, self.from_centroid, 0.0) * self.mass
        return (away @ self.membership) / self.sizes

    # All pairs of points, block by block.

    @lazy
    def neighbours(self) -> Neighbours:
        """Sums and means of the distances of each point."""
        batch = self.mass.reshape(-1, self.n_samples)
        # Columns are the clusters of each weighting: one product gives the sums of all of them.
        weighted = (self.membership[:, None, :] * batch.T[:, :, None]).reshape(self.n_samples, -1)
        sizes = self.sizes.reshape(len(batch), self.n_clusters)
        own, nearest = np.empty(batch.shape), np.empty(batch.shape)
        for start, distances in self._blocks():
            stop = start + len(distances)
            sums = (distances @ weighted).reshape(len(distances), *sizes.shape)
            codes = self.clusters[start:stop]
            rows = np.arange(len(distances))
            own[:, start:stop] = sums[rows, :, codes].T
            means = np.where(sizes > 0, sums / sizes, np.inf)
            means[rows, :, codes] = np.inf
            nearest[:, start:stop] = means.min(axis=-1).T
        shape = self.mass.shape
        return Neighbours(own.reshape(shape), nearest.reshape(shape))

    @lazy
    def extremes(self) -> Extremes:
        """Of the points as they are, whatever they weigh."""
        codes = self.clusters
        separation, diameter = np.inf, 0.0
        for start, distances in self._blocks():
            same = codes[start : start + len(distances), None] == codes
            diameter = max(diameter, float(distances.max(where=same, initial=0.0)))
            separation = min(separation, float(distances.min(where=~same, initial=np.inf)))
        return Extremes(separation, diameter)

    def _blocks(self) -> Iterator[tuple[int, Array]]:
        """Where a block of rows starts, and its distances (b, n) from all points."""
        size = max(1, _AT_ONCE // self.n_samples)
        for start in range(0, self.n_samples, size):
            yield start, scipy_bridge.euclidean_distances(self.features[start : start + size], self.features)


def _sum_of(weights: Array, values: Array) -> Array:
    """Sum over the last axis of values in weights; what weighs nothing adds nothing, even where it has no value."""
    return total(np.where(weights > 0, values, 0.0) * weights)
