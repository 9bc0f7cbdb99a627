"""Points in clusters, with everything that more than one measure of cluster shape needs, each computed once."""

from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kernel.numerics import scipy_bridge
from app.kernel.numerics.arrays import Array, Mask, each, kept, lazy, total

Codes = NDArray[np.intp]

# Distances per block: 8 MB.
_AT_ONCE = 1 << 20
# Relative to the largest coordinate: nearer places are one, since the mean of equal numbers is not always that number.
_ROUNDING = 1e-13


class Neighbours(NamedTuple):
    """Distances summed up for each point, each (..., n).

    Attributes:
        own: Sum of the distances to the other points of its cluster.
        nearest_mean: Mean distance to the points of the nearest other cluster.
    """

    own: Array
    nearest_mean: Array


class DistanceExtremes(NamedTuple):
    """Smallest distance between points of different clusters, and largest distance within a cluster."""

    separation: float
    diameter: float


class ClusteredPoints:
    """Points with d features in S clusters.

    Leading axes are a batch of weight vectors over the same points, as a bootstrap needs: a point of weight 2 is two
    points in one place. Entries are finite and already checked. At most one block of the distances is in memory.

    Args:
        clusters: Codes 0..S-1, shape (n,).
        features: Shape (n, d). With ``distances`` (n, N + 1): the place of each point among N of which these are some,
            and its distance from each of the N; they lie nowhere then.
        weights: Whole numbers, shape (..., n); None is 1 each.

    Raises:
        ValueError: the shapes do not fit, a code is out of range, or there is no point.
    """

    def __init__(
        self, clusters: ArrayLike, features: ArrayLike, weights: ArrayLike | None = None, *, distances: bool = False
    ) -> None:
        self.distances = distances
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
        """Return the points with other weights, shape (..., n); None is 1 each."""
        return type(self)(self.clusters, self.features, weights, distances=self.distances)

    @lazy
    def mass(self) -> Array:
        """Weight of each point (..., n)."""
        return np.ones(self.n_samples) if self.weights is None else self.weights

    @lazy
    def membership(self) -> Array:
        """1 where a point is in a cluster (n, S)."""
        return np.equal(self.clusters[:, None], np.arange(self.n_clusters)).astype(np.float64)

    @lazy
    def n(self) -> Array:
        """Number of points by weight (...)."""
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
        """Mask (...): all points are in one cluster."""
        return np.asarray(self.filled < 2)

    @lazy
    def all_alone(self) -> Mask:
        """Mask (...): every point is a cluster of its own."""
        return np.asarray(self.filled == self.n)

    # Centres: (..., S, d), NaN for a cluster without points.

    @lazy
    def centred(self) -> Array:
        """Features less their mean (n, d): sums of squares keep their digits. NaN where distances are all there is."""
        if self.distances:
            return np.full((self.n_samples, 1), np.nan)
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
        """Distance up to which two places count as one."""
        return _ROUNDING * float(np.abs(self.centred).max())

    @lazy
    def from_centroid(self) -> Array:
        """Distance of each point from the centroid of its cluster (..., n)."""
        return self.length(self.centred - np.take(self.centroids, self.clusters, axis=-2))

    def length(self, away: Array) -> Array:
        """Lengths (...) of differences (..., d), 0 within rounding."""
        found: Array = np.sqrt(np.vecdot(away, away))
        return np.where(found <= self.one_place, 0.0, found)

    @lazy
    def within(self) -> Array:
        """Sum of squared distances from the own centroid (...)."""
        return _sum_of(self.mass, self.from_centroid**2)

    @lazy
    def between(self) -> Array:
        """Sum of squared distances of the centroids from the mean of all points, weighted by cluster sizes (...)."""
        centre = (self.mass @ self.centred) / each(self.n)
        away = self.centroids - centre[..., None, :]
        return _sum_of(self.sizes, self.length(away) ** 2)

    @lazy
    def scatter(self) -> Array:
        """Mean distance of a cluster's points from its centroid (..., S)."""
        away = np.where(self.mass > 0, self.from_centroid, 0.0) * self.mass
        return (away @ self.membership) / self.sizes

    # All pairs of points, block by block.

    def neighbours(self, distance: str = "euclidean") -> Neighbours:
        """Sums and means of the distances of each point; NaN where one has no direction, or there are no such
        distances.
        """
        batch = self.mass.reshape(-1, self.n_samples)
        # Columns are the clusters under each weighting: one product gives all sums.
        weighted = (self.membership[:, None, :] * batch.T[:, :, None]).reshape(self.n_samples, -1)
        sizes = self.sizes.reshape(len(batch), self.n_clusters)
        own, nearest = np.empty(batch.shape), np.empty(batch.shape)
        for start, distances in self._blocks(distance):
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

    @kept
    def extremes(self, distance: str) -> DistanceExtremes:
        """Extreme distances of the points, each kind found once; weights have no effect."""
        codes = self.clusters
        separation, diameter = np.inf, 0.0
        for start, distances in self._blocks(distance):
            same = codes[start : start + len(distances), None] == codes
            diameter = float(np.maximum(diameter, distances.max(where=same, initial=0.0)))
            separation = float(np.minimum(separation, distances.min(where=~same, initial=np.inf)))
        return DistanceExtremes(separation, diameter)

    @lazy
    def no_direction(self) -> Mask:
        """Mask (...): a point is at 0, which is in no direction from there."""
        return np.full(self.n.shape, not self.distances and (self.features == 0.0).all(axis=1).any())

    def _blocks(self, distance: str) -> Iterator[tuple[int, Array]]:
        """First row and distances (b, n) from all points, for each block of rows."""
        size = max(1, _AT_ONCE // self.n_samples)
        for start in range(0, self.n_samples, size):
            rows = self.features[start : start + size]
            if not self.distances:
                yield start, scipy_bridge.distances(rows, self.features, distance)
            elif distance == "euclidean":
                yield start, rows.take(self.features[:, 0].astype(np.intp) + 1, axis=1)
            else:
                yield start, np.full((len(rows), self.n_samples), np.nan)


def _sum_of(weights: Array, values: Array) -> Array:
    """Weighted sum over the last axis; entries of weight 0 add 0, even where their value is NaN."""
    return total(np.where(weights > 0, values, 0.0) * weights)
