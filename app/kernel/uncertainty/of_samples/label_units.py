"""Samples with any number of labels, as they are resampled."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kernel.matrix.label_table import LabelTable
from app.kernel.metrics.card import Inputs
from app.kernel.metrics.expression import Subject
from app.kernel.metrics.proportion import Rate
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.samples.labels.pairs import LabelPairs
from app.kernel.samples.labels.scores import LabelScores
from app.kernel.samples.labels.sets import LabelSets
from app.kernel.samples.losses import Codes
from app.kernel.uncertainty.of_samples.units import Units
from app.kernel.uncertainty.of_weights.rates import WeightedRate

# Labels of a sample that are counted in the time in which one probability is sorted.
_COUNTED = 16


@dataclass(frozen=True, slots=True, eq=False)
class WeightedLabels:
    """What samples in weights of their own make of the tables of the labels.

    Attributes:
        sums: Of weights.
        squares: Of squared weights.
        samples: Numbers of samples with a weight above 0.
    """

    sums: LabelTable
    squares: LabelTable
    samples: LabelTable

    def rates(self, rate: Rate) -> WeightedRate:
        """One rate of every label (L), whatever label ``rate`` is of."""
        (hits, among), (hit_squares, all_squares), (_, samples) = (
            (getattr(table, rate.hits.column), getattr(table, rate.among.column))
            for table in (self.sums, self.squares, self.samples)
        )
        return WeightedRate.of_sums(np.array([hits, hit_squares]), np.array([among, all_squares]), samples)


@dataclass(frozen=True, slots=True, eq=False)
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
    _known: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def n_units(self) -> int:
        """How many samples."""
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
        if "columns" not in self._known:
            columns = [self.members & self.predicted, self.members, self.predicted]
            self._known["columns"] = np.concatenate(columns, axis=1).astype(np.float64)
        hits, actual, predicted = np.split(weights @ self._known["columns"], 3, axis=-1)
        return LabelTable(hits, actual, predicted, weights.sum(axis=-1, keepdims=True))

    def weighted(self, weights: Array) -> "WeightedLabels":
        """The tables of the labels of samples in weights (n) of their own."""
        used = (weights > 0).astype(np.float64)
        return WeightedLabels(self._table(weights), self._table(weights * weights), self._table(used))

    @property
    def pairs(self) -> LabelPairs:
        """What is there and what was predicted, packed."""
        return self._sets.pairs

    @property
    def _sets(self) -> LabelSets:
        if "sets" not in self._known:
            sets = LabelSets(self.members, self.predicted)
            # Counted here, so that all weights share it.
            _ = sets.right
            self._known["sets"] = sets
        found: LabelSets = self._known["sets"]
        return found

    @property
    def _scores(self) -> LabelScores | None:
        if self.scores is None:
            return None
        if "scores" not in self._known:
            scores = LabelScores(self.members, self.scores)
            _ = scores.in_order
            self._known["scores"] = scores
        found: LabelScores = self._known["scores"]
        return found

    def part(self, chosen: Codes) -> "LabelUnits":
        """Some of the samples."""
        scores = None if self.scores is None else self.scores.take(chosen, axis=0)
        return LabelUnits(self.members.take(chosen, axis=0), self.predicted.take(chosen, axis=0), scores)

    def beside(self, other: "LabelUnits") -> "LabelUnits":
        """The samples of both; without scores unless both have some."""
        scores = None
        if self.scores is not None and other.scores is not None:
            scores = np.concatenate([self.scores, other.scores])
        return LabelUnits(
            np.concatenate([self.members, other.members]), np.concatenate([self.predicted, other.predicted]), scores
        )
