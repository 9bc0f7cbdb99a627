"""Units of resampling: samples, queries, label sets, overlaps and clusterings."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from app.kernel.matrix.prevalence import class_factors
from app.kernel.matrix.table import LabelTable, Table
from app.kernel.metrics.card import Inputs
from app.kernel.metrics.expression import Subject
from app.kernel.numerics.arrays import Array, Mask, kish_effective_n, sums_by_code
from app.kernel.numerics.weighted_units import WeightedUnits
from app.kernel.samples.areas import ROUNDING
from app.kernel.samples.contingency import CellPlaces, Contingency, DecisionTable
from app.kernel.samples.label_units import LabelPairs, LabelScores, LabelSets
from app.kernel.samples.losses import Codes
from app.kernel.samples.points import ClusteredPoints
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.designs import DesignedSums, LeftOut, labels_without_each
from app.kernel.uncertainty.groups import MOST_LEFT_OUT, Grouping

# They spread bits over a word, so that rows that differ have different keys, and those of opposite signs too.
_SPREAD, _DOWN = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)


class Units(ABC):
    """The n units of one run, and what is known of each. Metrics are computed of units in weights.

    A kind of input can be resampled, compared and permuted as soon as it has this.

    Attributes:
        n_units: Number of units.
        width: Cost of one unit in a pass: the numbers that are read for it, counting sorted ones.
        strata: Stratum (n) of each, within which units are drawn where their numbers are taken as fixed.
        n_strata: Number of strata.
        multiplicities: Samples (n) that each unit stands for, such as those of a cell; None is one each.
        at_hand: Can they be drawn one by one?
    """

    at_hand = True

    def __init__(
        self,
        n_units: int,
        width: int = 1,
        strata: Codes | None = None,
        n_strata: int = 1,
        multiplicities: Array | None = None,
    ) -> None:
        self.n_units, self.width, self.n_strata = n_units, width, n_strata
        self.multiplicities = multiplicities
        self._strata = strata

    @cached_property
    def strata(self) -> Codes:
        """Stratum (n) of each; made at first use, since units that are streamed may be too many for one array."""
        return np.zeros(self.n_units, dtype=np.intp) if self._strata is None else self._strata

    @property
    def kinds(self) -> tuple["Units", Codes]:
        """Units that differ, and which of them each unit (n) is: units that are alike are summed by their weights."""
        return self, np.arange(self.n_units)

    @abstractmethod
    def subject(self, weights: Array | None = None) -> Subject:
        """The units in weights (..., n) as metrics take them; None is 1 each, or as many as each stands for."""

    @overload
    def at_shares(self, weights: Array | None, shares: Array, chosen: Codes | None = None) -> Array: ...

    @overload
    def at_shares(self, weights: Array | None, shares: Array | None, chosen: Codes | None = None) -> Array | None: ...

    def at_shares(self, weights: Array | None, shares: Array | None, chosen: Codes | None = None) -> Array | None:
        """Weights (..., n) of units, of which classes have these shares (..., K); NaN where a class with a share has
        none.

        Args:
            weights: (..., n); None is 1 each, or as many as each stands for.
            shares: (..., K) of the classes, which are the strata; they broadcast against the weights. None leaves these
                as they are.
            chosen: The units that the weights are of; None is all.
        """
        if shares is None:
            return weights
        times = np.ones(self.n_units) if self.multiplicities is None else self.multiplicities
        masses = times if weights is None else weights
        strata = self.strata if chosen is None else self.strata.take(chosen)
        actual = sums_by_code(strata, masses, self.n_strata)
        factors = np.where((shares > 0) & (actual == 0), np.nan, class_factors(actual, shares))
        found: Array = masses * factors.take(strata, axis=-1)
        return found

    @property
    def content(self) -> Sequence[NDArray[Any]]:
        """Columns (n) of numbers that tell units apart; none where units have an order of their own."""
        return ()

    def order(self, weights: Array | None) -> Codes:
        """The units (n) in an order that follows from their content and weights (n), whatever that of the rows: units
        are drawn in it.
        """
        columns, keys = self.content, np.zeros(self.n_units, dtype=np.uint64)
        if columns and weights is not None:
            columns = (*columns, weights)
        for column in columns:
            bits = np.ascontiguousarray(column, dtype=np.float64).view(np.uint64)
            keys = (keys ^ (keys >> _DOWN)) * _SPREAD + bits
        return np.argsort(keys, kind="stable")

    def part(self, chosen: Codes) -> "Units":
        """Some of them. Raises TypeError where they are drawn all at once, or not at all."""
        raise TypeError(f"{chosen.size} of these units cannot be chosen by themselves")

    @property
    def truth(self) -> NDArray[Any] | None:
        """Truth of each unit, (n) or (n, m), which is the same in all runs on the same units; None where it cannot be
        compared.
        """
        return None


class Run(Units):
    """Samples of classes: their scores, and what was decided for each. Drawn within the classes."""

    def __init__(self, scores: Scores, predicted: Codes) -> None:
        super().__init__(scores.n_samples, scores.n_classes, scores.y, scores.n_classes)
        self.scores, self.predicted = scores, predicted

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

    @property
    def content(self) -> Sequence[NDArray[Any]]:
        """Scores, decision and class."""
        return *self.scores.probabilities.T, self.predicted, self.scores.y

    def part(self, chosen: Codes) -> "Run":
        """Some of the samples."""
        scores = Scores(self.scores.y.take(chosen), self.scores.probabilities.take(chosen, axis=0))
        scores.are_probabilities = self.scores.are_probabilities
        return Run(scores, self.predicted.take(chosen))


class ItemUnits(Units):
    """Queries, or regions, answers and other sets: units that are items of one object.

    Args:
        items: All of them.
        inputs: The inputs of metrics that this object serves as.
    """

    def __init__(self, items: WeightedUnits, *inputs: Inputs) -> None:
        super().__init__(items.n_units, items.width)
        self.items, self.inputs = items, inputs

    def subject(self, weights: Array | None = None) -> Subject:
        """The items in weights (..., n)."""
        items = self.items if weights is None else self.items.with_weights(weights)
        return Subject(dict.fromkeys(self.inputs, items))

    @property
    def truth(self) -> NDArray[Any] | None:
        """Truth of each item."""
        return self.items.true_values

    def part(self, chosen: Codes) -> "ItemUnits":
        """Some of the items."""
        return ItemUnits(self.items.part(chosen), *self.inputs)


# Labels of a sample that are counted in the time in which one probability is sorted.
_COUNTED = 16


class LabelUnits(Units):
    """Samples with their labels.

    Args:
        members: (n, L), does the sample have the label?
        predicted: (n, L), was it predicted?
        scores: (n, L), or None.
    """

    def __init__(self, members: Mask, predicted: Mask, scores: Array | None = None) -> None:
        n_samples, n_labels = members.shape
        # Where scores are sorted it is L; labels alone are counted, many at once.
        super().__init__(n_samples, n_labels if scores is not None else 1 + n_labels // _COUNTED)
        self.members, self.predicted, self.scores = members, predicted, scores

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
            others, false, missed, hits = self.pairs.counts().T.astype(np.float64)
            return LabelTable(hits, false, missed, others)
        hits, false, missed = np.split(weights @ self._columns, 3, axis=-1)
        return LabelTable.among(hits, false, missed, weights.sum(axis=-1, keepdims=True))

    @cached_property
    def _columns(self) -> Array:
        columns = [self.members & self.predicted, self.predicted & ~self.members, self.members & ~self.predicted]
        return np.concatenate(columns, axis=1).astype(np.float64)

    def designed(self, weights: Array | None, grouping: Grouping | None) -> DesignedSums:
        """Rates of the labels of samples in weights (n) of their own, perhaps in groups."""
        if grouping is None:
            if weights is None:
                return DesignedSums.of_tables(*[self._table(None)] * 3)
            used = (weights > 0).astype(np.float64)
            return DesignedSums.of_tables(*map(self._table, (weights, weights * weights, used)))
        mass = np.ones(self.n_units) if weights is None else weights
        labels = zip(self.members.T, self.predicted.T, strict=True)
        return DesignedSums.of_groups(labels, grouping.codes, mass, np.count_nonzero(mass) / float(mass.sum()))

    def left_out(self, weights: Array | None, grouping: Grouping) -> LeftOut | None:
        """Tables without each of the groups; None of too many."""
        if 3 * self.members.shape[1] * grouping.n_groups > MOST_LEFT_OUT:
            return None
        mass = np.ones(self.n_units) if weights is None else weights
        cells = [
            sums_by_code(
                grouping.codes, np.stack([there & said, said & ~there, there & ~said]) * mass, grouping.n_groups
            )
            for there, said in zip(self.members.T, self.predicted.T, strict=True)
        ]
        sizes = sums_by_code(grouping.codes, mass, grouping.n_groups)
        return labels_without_each(np.stack(cells, axis=1), sizes)

    @property
    def content(self) -> Sequence[NDArray[Any]]:
        """Scores and labels."""
        return *(() if self.scores is None else self.scores.T), *self.predicted.T, *self.members.T

    @property
    def kinds(self) -> tuple[Units, Codes]:
        """Pairs of true and predicted labels that differ, where there are no scores."""
        if self.scores is not None:
            return super().kinds
        _, first, codes = np.unique(self.pairs.cells, axis=1, return_index=True, return_inverse=True)
        return self.part(first), codes

    @property
    def pairs(self) -> LabelPairs:
        """True and predicted labels."""
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


class CellUnits(Units):
    """The cells (C) of a table of classes by clusters.

    Args:
        counts: Samples (C) in each.
        places: The C cells.
    """

    def __init__(self, counts: Array, places: CellPlaces) -> None:
        # A cell is one number, and what it could hold by chance are many.
        reach = 40.0 + 2.0 * np.sqrt(400.0 + 120.0 * counts.sum() / counts.size)
        width = 1 + int(counts.size * reach * _PER_CHANCE / (_PER_TABLE + counts.size))
        super().__init__(counts.size, width, multiplicities=counts)
        self.counts, self.places = counts, places

    def subject(self, weights: Array | None = None) -> Subject:
        """The table, or tables of resamples (..., C)."""
        return subject_of(Contingency(self.places, self.counts if weights is None else weights), None)


class TableUnits(Units):
    """The cells of a table of classes and what was predicted, or decided, about them; drawn within the classes.

    Args:
        counts: Samples (K, M) in each.
        made: Makes of tables (..., K, M) what metrics take.
    """

    def __init__(self, counts: Array, made: Callable[[Array], Table | DecisionTable] = DecisionTable) -> None:
        strata = np.repeat(np.arange(len(counts)), counts.shape[1])
        super().__init__(counts.size, 1, strata, len(counts), counts.ravel())
        self.counts, self.made = counts, made

    def subject(self, weights: Array | None = None) -> Subject:
        """The table, or tables (..., K, M) of resamples."""
        counts = self.counts if weights is None else weights.reshape(*weights.shape[:-1], *self.counts.shape)
        table = self.made(counts)
        return Subject({Inputs.MATRIX: table, Inputs.DECISIONS: table})


class ClusterUnits(Units):
    """Samples with their classes and clusters, perhaps with features.

    Args:
        classes: (n) codes below ``shape[0]``; None where no truth is known.
        clusters: (n) codes below ``shape[1]``.
        shape: Classes and clusters.
        features: (n, d), or None.
        distances: Are the features distances? See `ClusteredPoints`.
        worth: What each sample (n) weighs: samples count as so many as they are worth. None: all weigh the same.
    """

    def __init__(
        self,
        classes: Codes | None,
        clusters: Codes,
        shape: tuple[int, int],
        features: Array | None = None,
        distances: bool = False,  # noqa: FBT001, FBT002 - as all of them are handed on
        worth: Array | None = None,
    ) -> None:
        n_units, width = len(clusters), 1
        if features is not None:
            # Distances make a sample costly: it has one from every other.
            others, n_features = min(n_units, _PART), len(features[0])
            width += (others * shape[1] + n_features * shape[1] * 8) // _DISTANCES
        super().__init__(n_units, width)
        self.classes, self.clusters, self.shape = classes, clusters, shape
        self.features, self.distances, self.worth = features, distances, worth

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

    def left_out(self, weights: Array | None, grouping: Grouping) -> LeftOut | None:
        """Tables without each of the groups; None of too many, or where no truth is known."""
        if self._cells is None or self._cells[0].classes.size * grouping.n_groups > MOST_LEFT_OUT:
            return None
        places, cell = self._cells
        mass, shape = np.ones(self.n_units) if weights is None else weights, (grouping.n_groups, places.classes.size)
        held = np.bincount(grouping.codes * shape[1] + cell, mass, shape[0] * shape[1]).reshape(shape)
        whole = held.sum(axis=0)
        left = np.where(whole - held > ROUNDING * whole, whole - held, 0.0) * self._per_weight
        table = Contingency(places, left, is_weighted=self.worth is not None)
        return LeftOut(subject_of(table, None), held.sum(axis=1))

    @cached_property
    def _points(self) -> ClusteredPoints | None:
        if self.features is None:
            return None
        return ClusteredPoints(self.clusters, self.features, distances=self.distances)

    @property
    def content(self) -> Sequence[NDArray[Any]]:
        """Features, or distances by size, cluster and class."""
        features = np.empty((self.n_units, 0)) if self.features is None else self.features
        if self.distances:
            # The first is the place.
            features = np.sort(features[:, 1:], axis=1)
        return *features.T, self.clusters, *(() if self.classes is None else (self.classes,))

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
