"""Units of resampling: samples, queries, label sets, overlaps and clusterings."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.matrix.table import LabelTable, Table
from app.kernel.metrics.card import Inputs
from app.kernel.metrics.expression import Subject
from app.kernel.numerics.arrays import Array, Mask, kish_effective_n
from app.kernel.samples.contingency import CellPlaces, Contingency, DecisionTable
from app.kernel.samples.label_units import LabelPairs, LabelScores, LabelSets
from app.kernel.samples.losses import Codes, sums_by_code
from app.kernel.samples.points import ClusteredPoints
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.designs import RatesInGroups, WeightedTables
from app.kernel.uncertainty.groups import Grouping
from app.kernel.units.overlaps import Overlaps
from app.kernel.units.queries import Queries


class Units(ABC):
    """The n units of one run, and what is known of each. Metrics are computed of units in weights.

    A kind of input can be resampled, compared and permuted as soon as it has this.
    """

    @property
    @abstractmethod
    def n_units(self) -> int:
        """Number of units."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Cost of one unit in a pass: the numbers that are read for it, counting sorted ones."""

    @property
    def strata(self) -> Codes:
        """Stratum (n) of each, within which units are drawn where their numbers are taken as fixed."""
        return np.zeros(self.n_units, dtype=np.intp)

    @property
    def n_strata(self) -> int:
        """Number of strata."""
        return 1

    @property
    def multiplicities(self) -> Array | None:
        """Samples (n) that each unit stands for, such as those of a cell; None is one each."""
        return None

    @property
    def kinds(self) -> tuple["Units", Codes]:
        """Units that differ, and which of them each unit (n) is: units that are alike are summed by their weights."""
        return self, np.arange(self.n_units)

    @property
    def at_hand(self) -> bool:
        """Can they be drawn one by one?"""
        return True

    @abstractmethod
    def subject(self, weights: Array | None = None) -> Subject:
        """The units in weights (..., n) as metrics take them; None is 1 each, or as many as each stands for."""

    def part(self, chosen: Codes) -> Self:
        """Some of them. Raises TypeError where they are drawn all at once, or not at all."""
        raise TypeError(f"{chosen.size} of these units cannot be chosen by themselves")

    @property
    def truth(self) -> NDArray[Any] | None:
        """Truth of each unit, (n) or (n, m), which is the same in all runs on the same units; None where it cannot be
        compared.
        """
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Run(Units):
    """Samples of classes: their scores, and what was decided for each. Drawn within the classes."""

    scores: Scores
    predicted: Codes

    @property
    def n_units(self) -> int:
        """Number of samples."""
        return self.scores.n_samples

    @property
    def width(self) -> int:
        """K."""
        return self.scores.n_classes

    @property
    def strata(self) -> Codes:
        """Class (n) of each sample."""
        return self.scores.y

    @property
    def n_strata(self) -> int:
        """K."""
        return self.scores.n_classes

    def subject(self, weights: Array | None = None) -> Subject:
        """Samples in weights (..., n) with the matrices of their decisions."""
        scores, size = self.scores, self.scores.n_classes
        cells = scores.y * size + self.predicted
        mass = np.ones(scores.n_samples) if weights is None else weights
        counts = sums_by_code(cells, mass, size * size)
        return Subject.of_classes(
            Table(counts.reshape(*counts.shape[:-1], size, size)),
            scores if weights is None else scores.with_weights(weights),
        )

    def part(self, chosen: Codes) -> "Run":
        """Some of the samples."""
        scores = Scores(self.scores.y.take(chosen), self.scores.probabilities.take(chosen, axis=0))
        scores.are_probabilities = self.scores.are_probabilities
        return Run(scores, self.predicted.take(chosen))


@dataclass(frozen=True, eq=False)
class OverlapUnits(Units):
    """Items: regions, answers.

    Attributes:
        sizes: (n, 3): how much there is, how much was predicted, how much belongs to both.
        exact: (n), is what was predicted exactly what is there?
        codes: (n) class of each; None where there are none.
        n_classes: How many there are.
    """

    sizes: Array
    exact: Mask
    codes: Codes | None = None
    n_classes: int = 0

    @property
    def n_units(self) -> int:
        """Number of items."""
        return len(self.sizes)

    @property
    def width(self) -> int:
        """Sizes are added up; nothing is sorted."""
        return 1

    @property
    def truth(self) -> NDArray[Any]:
        """True size and class of each item."""
        codes = np.zeros(self.n_units) if self.codes is None else self.codes
        return np.stack([self.sizes[:, 0], codes], axis=1)

    @cached_property
    def _items(self) -> Overlaps:
        return Overlaps(*self.sizes.T, exact=self.exact, codes=self.codes, n_classes=self.n_classes)

    def subject(self, weights: Array | None = None) -> Subject:
        """The items in weights (..., n)."""
        items = self._items if weights is None else self._items.with_weights(weights)
        parts: dict[Inputs, Any] = {Inputs.LABELS: items, Inputs.OVERLAPS: items}
        return Subject(parts if self.codes is None else {**parts, Inputs.CLASS_OVERLAPS: items})

    def part(self, chosen: Codes) -> "OverlapUnits":
        """Some of the items."""
        codes = None if self.codes is None else self.codes.take(chosen)
        return OverlapUnits(self.sizes.take(chosen, axis=0), self.exact.take(chosen), codes, self.n_classes)


# Labels of a sample that are counted in the time in which one probability is sorted.
_COUNTED = 16


@dataclass(frozen=True, eq=False)
class LabelUnits(Units):
    """Samples with their labels.

    Attributes:
        members: (n, L), does the sample have the label?
        predicted: (n, L), was it predicted?
        scores: (n, L), or None.
    """

    members: Mask
    predicted: Mask
    scores: Array | None = None

    @property
    def n_units(self) -> int:
        """Number of samples."""
        return len(self.members)

    @property
    def width(self) -> int:
        """L where scores are sorted; labels alone are counted, many at once."""
        n_labels: int = self.members.shape[1]
        return n_labels if self.scores is not None else 1 + n_labels // _COUNTED

    @property
    def truth(self) -> NDArray[Any]:
        """The labels of each sample."""
        return self.members

    def subject(self, weights: Array | None = None) -> Subject:
        """Tables of the labels, sets of labels, and scores where there are some."""
        sets, scores = self._sets, self._scores
        parts: dict[Inputs, Any] = {Inputs.MATRIX: self._table(weights), Inputs.LABELS: sets.with_weights(weights)}
        if scores is not None:
            of_weights = scores if weights is None else scores.with_weights(weights)
            parts |= {Inputs.PROBABILITIES: of_weights, Inputs.LABEL_SCORES: of_weights}
        return Subject(parts)

    def _table(self, weights: Array | None) -> LabelTable:
        if weights is None:
            _, false, missed, hits = self.pairs.counts.T.astype(np.float64)
            return LabelTable(hits, missed + hits, false + hits, np.array([float(self.n_units)]))
        hits, actual, predicted = np.split(weights @ self._columns, 3, axis=-1)
        return LabelTable(hits, actual, predicted, weights.sum(axis=-1, keepdims=True))

    @cached_property
    def _columns(self) -> Array:
        columns = [self.members & self.predicted, self.members, self.predicted]
        return np.concatenate(columns, axis=1).astype(np.float64)

    def weighted(self, weights: Array) -> WeightedTables:
        """The tables of the labels of samples in weights (n) of their own."""
        used = (weights > 0).astype(np.float64)
        return WeightedTables(self._table(weights), self._table(weights * weights), self._table(used))

    def in_groups(self, grouping: Grouping, weights: Array | None) -> RatesInGroups:
        """Rates of the labels of samples in groups, perhaps in weights (n) of their own."""
        mass = np.ones(self.n_units) if weights is None else weights
        labels = zip(self.members.T, self.predicted.T, strict=True)
        return RatesInGroups.of(labels, grouping.codes, mass, np.count_nonzero(mass) / float(mass.sum()))

    @property
    def kinds(self) -> tuple[Units, Codes]:
        """Pairs of true and predicted labels that differ, where there are no scores."""
        if self.scores is not None:
            return super().kinds
        _, first, codes = np.unique(self.pairs.columns, axis=1, return_index=True, return_inverse=True)
        return self.part(first), codes

    @property
    def pairs(self) -> LabelPairs:
        """True and predicted labels, packed."""
        return self._sets.pairs

    @cached_property
    def _sets(self) -> LabelSets:
        sets = LabelSets(self.members, self.predicted)
        # Counted here, so that all weights share it.
        _ = sets.right
        return sets

    @cached_property
    def _scores(self) -> LabelScores | None:
        if self.scores is None:
            return None
        scores = LabelScores(self.members, self.scores)
        _ = scores.in_order
        return scores

    def part(self, chosen: Codes) -> "LabelUnits":
        """Some of the samples."""
        scores = None if self.scores is None else self.scores.take(chosen, axis=0)
        return LabelUnits(self.members.take(chosen, axis=0), self.predicted.take(chosen, axis=0), scores)


# Items of a query that are looked at in the time in which one probability is sorted: what is said of a query is said
# once, and weights only add it up.
_LOOKED_AT = 1000


class QueryUnits(Units):
    """Queries with their items.

    Args:
        query: codes 0..Q-1, each at least once, shape (n,).
        relevance: 0 and above, shape (n,).
        scores: higher comes first, shape (n,).
        relevant_from: The relevance from which an item is relevant; None is any above 0.
    """

    def __init__(self, query: Codes, relevance: Array, scores: Array, relevant_from: float | None = None) -> None:
        self.query, self.relevance, self.scores, self.relevant_from = query, relevance, scores, relevant_from
        self.n_items = query.size

    @cached_property
    def queries(self) -> Any:
        """The queries in the form that metrics take, each once."""
        return Queries(self.query, self.relevance, self.scores, relevant_from=self.relevant_from)

    @property
    def n_units(self) -> int:
        """Number of queries."""
        return int(self.queries.n_units)

    @property
    def width(self) -> int:
        """Little, however many items there are."""
        return 1 + self.n_items // (_LOOKED_AT * self.n_units)

    @property
    def truth(self) -> NDArray[Any]:
        """Number of relevant items of each query, and the sum of their relevances (Q, 2). The irrelevant items may
        differ from run to run.
        """
        return np.stack([self.queries.relevant_items, self.queries.ideal_relevance], axis=1)

    def subject(self, weights: Array | None = None) -> Subject:
        """The queries in weights (..., Q)."""
        return Subject({Inputs.QUERIES: self.queries if weights is None else self.queries.with_weights(weights)})

    def part(self, chosen: Codes) -> "QueryUnits":
        """Some of the queries."""
        place = np.full(self.n_units, -1, dtype=np.intp)
        place[chosen] = np.arange(chosen.size)
        codes = place.take(self.query)
        inside = codes >= 0
        return QueryUnits(codes[inside], self.relevance[inside], self.scores[inside], self.relevant_from)


# Of larger runs a part is resampled, of about this size (`resampling.plan`).
_PART = 2000
# Products of distances and weights that are added up in the time in which one probability is sorted.
_DISTANCES = 500
# Chances of a cell that are computed in that time, and what a table takes whatever its size (`resampling.plan`).
_PER_CHANCE = 0.4
_PER_TABLE = 1500


def subject_of(table: Contingency | None, points: ClusteredPoints | None) -> Subject:
    """Return the subject of metrics of clusterings, from a table, points, or both."""
    parts: dict[Inputs, Any] = {}
    if table is not None:
        # A metric of matrices that does not mind which class is which takes any table.
        parts |= {Inputs.CONTINGENCY: table, Inputs.MATRIX: table}
    return Subject(parts if points is None else {**parts, Inputs.FEATURES: points})


@dataclass(frozen=True, slots=True, eq=False)
class TableUnits(Units):
    """The cells of a table: each stands for as many samples as it holds.

    Attributes:
        counts: Samples (...) in each.
    """

    counts: Array

    @property
    def n_units(self) -> int:
        """Number of cells."""
        return self.counts.size

    @property
    def multiplicities(self) -> Array:
        """Samples (n) of each cell."""
        return self.counts.ravel()

    def part(self, chosen: Codes) -> Self:
        """Some of the cells, the others being empty."""
        kept = np.zeros(self.counts.size)
        kept[chosen] = self.multiplicities[chosen]
        return replace(self, counts=kept.reshape(self.counts.shape))


@dataclass(frozen=True, slots=True, eq=False)
class CellUnits(TableUnits):
    """The cells (C) of a table of classes by clusters.

    Attributes:
        places: The C cells.
    """

    places: CellPlaces

    @property
    def width(self) -> int:
        """A cell is one number, and what it could hold by chance are many."""
        reach = 40.0 + 2.0 * np.sqrt(400.0 + 120.0 * self.counts.sum() / self.n_units)
        return 1 + int(self.n_units * reach * _PER_CHANCE / (_PER_TABLE + self.n_units))

    def subject(self, weights: Array | None = None) -> Subject:
        """The table, or tables of resamples (..., C)."""
        return subject_of(Contingency(self.places, self.counts if weights is None else weights), None)


@dataclass(frozen=True, slots=True, eq=False)
class DecisionUnits(TableUnits):
    """The cells of a table (K, M) of classes and what was decided about them; drawn within the classes."""

    @property
    def width(self) -> int:
        """A cell is one number."""
        return 1

    @property
    def strata(self) -> Codes:
        """Class (K M) of each cell."""
        return np.repeat(np.arange(len(self.counts)), self.counts.shape[1])

    @property
    def n_strata(self) -> int:
        """K."""
        return len(self.counts)

    def subject(self, weights: Array | None = None) -> Subject:
        """The table, or tables (..., K, M) of resamples."""
        counts = self.counts if weights is None else weights.reshape(*weights.shape[:-1], *self.counts.shape)
        table = DecisionTable(counts)
        return Subject({Inputs.MATRIX: table, Inputs.DECISIONS: table})


@dataclass(frozen=True, eq=False)
class ClusterUnits(Units):
    """Samples with their classes and clusters, perhaps with features.

    Attributes:
        classes: (n) codes below ``shape[0]``; None where no truth is known.
        clusters: (n) codes below ``shape[1]``.
        shape: Classes and clusters.
        features: (n, d), or None.
        distances: Are the features distances? See `ClusteredPoints`.
        worth: What each sample (n) weighs: samples count as so many as they are worth. None: all weigh the same.
    """

    classes: Codes | None
    clusters: Codes
    shape: tuple[int, int]
    features: Array | None = None
    distances: bool = False
    worth: Array | None = None

    @property
    def n_units(self) -> int:
        """Number of samples."""
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

    @cached_property
    def _per_weight(self) -> float:
        """Effective number of samples in each unit of weight."""
        return 1.0 if self.worth is None else kish_effective_n(self.worth) / (float(self.worth.sum()) or 1.0)

    @cached_property
    def _cells(self) -> tuple[CellPlaces, Codes] | None:
        """The cells in which samples lie, and that (n) of each."""
        return None if self.classes is None else CellPlaces.of(self.classes, self.clusters, *self.shape)

    def subject(self, weights: Array | None = None) -> Subject:
        """Table and points."""
        table = None
        if self._cells is not None:
            places, cell = self._cells
            mass = np.ones(self.n_units) if weights is None else weights
            counts = sums_by_code(cell, mass, places.classes.size)
            table = Contingency(places, counts * self._per_weight, cell, is_weighted=self.worth is not None)
        points = self._points
        return subject_of(table, points if points is None or weights is None else points.with_weights(weights))

    @cached_property
    def _points(self) -> ClusteredPoints | None:
        if self.features is None:
            return None
        return ClusteredPoints(self.clusters, self.features, distances=self.distances)

    def part(self, chosen: Codes) -> "ClusterUnits":
        """Some of the samples."""
        return ClusterUnits(
            None if self.classes is None else self.classes.take(chosen),
            self.clusters.take(chosen),
            self.shape,
            None if self.features is None else self.features.take(chosen, axis=0),
            self.distances,
            None if self.worth is None else self.worth.take(chosen),
        )
