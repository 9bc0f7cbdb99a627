"""Samples in clusters, as they are resampled: cell by cell of their table where nothing else is known of them."""

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.matrix.contingency import Contingency
from app.kernel.metrics.card import Inputs
from app.kernel.metrics.expression import Subject
from app.kernel.numerics.arrays import Array
from app.kernel.samples.losses import Codes, sums_by_code
from app.kernel.samples.points import Points
from app.kernel.uncertainty.of_samples.units import Units

# Of larger runs a part is resampled, of about this size (`resampling.plan`).
_PART = 2000
# Products of distances and weights that are added up in the time in which one probability is sorted.
_DISTANCES = 500
# Chances of a cell that are computed in that time, and what a table takes whatever its size (`resampling.plan`).
_PER_CHANCE = 0.4
_PER_TABLE = 1500


def subject_of(table: Contingency | None, points: Points | None) -> Subject:
    """What metrics of clusterings take of a table, of points, or of both."""
    parts: dict[Inputs, Any] = {}
    if table is not None:
        # A metric of matrices that does not mind which class is which takes any table.
        parts |= {Inputs.CONTINGENCY: table, Inputs.MATRIX: table}
    return Subject(parts if points is None else {**parts, Inputs.FEATURES: points})


@dataclass(frozen=True, slots=True, eq=False)
class CellUnits(Units):
    """The cells of a table (R, S) of numbers of samples: each stands for as many as it holds."""

    counts: Array

    @property
    def n_units(self) -> int:
        """R S."""
        return self.counts.size

    @property
    def width(self) -> int:
        """A cell is one number, and what it could hold by chance are many."""
        reach = 40.0 + 2.0 * np.sqrt(400.0 + 120.0 * self.counts.sum() / self.n_units)
        return 1 + int(self.n_units * reach * _PER_CHANCE / (_PER_TABLE + self.n_units))

    @property
    def multiplicities(self) -> Array:
        """Samples (R S) of each cell."""
        return self.counts.ravel()

    def subject(self, weights: Array | None = None) -> Subject:
        """The table, or tables (..., R, S) of resamples."""
        return subject_of(self.table(weights), None)

    def table(self, weights: Array | None = None) -> Contingency:
        """The same alone."""
        counts = self.counts if weights is None else weights.reshape(*weights.shape[:-1], *self.counts.shape)
        return Contingency(counts)

    def part(self, chosen: Codes) -> Self:
        """Some of the cells, the others being empty."""
        kept = np.zeros(self.counts.size)
        kept[chosen] = self.multiplicities[chosen]
        return replace(self, counts=kept.reshape(self.counts.shape))


@dataclass(frozen=True, slots=True, eq=False)
class DecisionUnits(CellUnits):
    """The cells of a table (K, M) of classes and what was decided about them; drawn within the classes."""

    def subject(self, weights: Array | None = None) -> Subject:
        """The table, or tables (..., K, M) of resamples."""
        table = self.table(weights)
        return Subject({Inputs.MATRIX: table, Inputs.DECISIONS: table})

    @property
    def strata(self) -> Codes:
        """Class (K M) of each cell."""
        return np.repeat(np.arange(len(self.counts)), self.counts.shape[1])

    @property
    def n_strata(self) -> int:
        """K."""
        return len(self.counts)


@dataclass(frozen=True, slots=True, eq=False)
class ClusterUnits(Units):
    """Samples with their classes and clusters, perhaps with features.

    Attributes:
        classes: (n) codes below ``shape[0]``; None where no truth is known.
        clusters: (n) codes below ``shape[1]``.
        shape: Classes and clusters.
        features: (n, d), or None.
    """

    classes: Codes | None
    clusters: Codes
    shape: tuple[int, int]
    features: Array | None = None
    _known: dict[str, Points] = field(default_factory=dict, init=False, repr=False)

    @property
    def n_units(self) -> int:
        """How many samples."""
        return len(self.clusters)

    @property
    def width(self) -> int:
        """Distances make a sample costly: it has one from every other."""
        if self.features is None:
            return 1
        others, n_features = min(self.n_units, _PART), len(self.features[0])
        return 1 + (others * self.shape[1] + n_features * self.shape[1] * 8) // _DISTANCES

    @property
    def truth(self) -> NDArray[Any] | None:
        """The class of each sample."""
        return self.classes

    def subject(self, weights: Array | None = None) -> Subject:
        """Table and points."""
        table = None
        if self.classes is not None:
            size, width = self.shape
            mass = np.ones(self.n_units) if weights is None else weights
            counts = sums_by_code(self.classes * width + self.clusters, mass, size * width)
            table = Contingency(counts.reshape(*counts.shape[:-1], size, width))
        return subject_of(table, self._points(weights))

    def _points(self, weights: Array | None) -> Points | None:
        if self.features is None:
            return None
        points = self._known.setdefault("points", Points(self.clusters, self.features))
        return points if weights is None else points.with_weights(weights)

    def part(self, chosen: Codes) -> "ClusterUnits":
        """Some of the samples."""
        return ClusterUnits(
            None if self.classes is None else self.classes.take(chosen),
            self.clusters.take(chosen),
            self.shape,
            None if self.features is None else self.features.take(chosen, axis=0),
        )

    @property
    def exchangeable(self) -> bool:
        """The first cluster of one run is not the first of another."""
        return False
