"""What is drawn when a run is resampled: its samples, or whatever else is independent in it, such as queries."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.matrix.table import Table
from app.kernel.metrics.expression import Subject
from app.kernel.numerics.arrays import Array
from app.kernel.samples.losses import Codes, sums_by_code
from app.kernel.samples.scores import Scores


class Units(ABC):
    """The n units of one run, and what is known of each. Metrics are computed of units in weights.

    A kind of input can be resampled, compared and permuted as soon as it has this.
    """

    @property
    @abstractmethod
    def n_units(self) -> int:
        """How many there are."""

    @property
    @abstractmethod
    def width(self) -> int:
        """What one unit costs in a pass: numbers that are looked at for it, sorted ones."""

    @property
    def strata(self) -> Codes:
        """Stratum (n) of each, within which units are drawn where their numbers are taken as fixed."""
        return np.zeros(self.n_units, dtype=np.intp)

    @property
    def n_strata(self) -> int:
        """How many strata there are."""
        return 1

    @property
    def multiplicities(self) -> Array | None:
        """Samples (n) that each unit stands for, such as those of a cell; None is one each."""
        return None

    @property
    def exchangeable(self) -> bool:
        """May what two runs say of a unit be exchanged, as permutations do?"""
        return self.multiplicities is None

    @property
    def at_hand(self) -> bool:
        """Can they be drawn one by one?"""
        return True

    @abstractmethod
    def subject(self, weights: Array | None = None) -> Subject:
        """The units in weights (..., n) as metrics take them; None is 1 each, or as many as each stands for."""

    @abstractmethod
    def part(self, chosen: Codes) -> Self:
        """Some of them."""

    def beside(self, other: Self) -> Self:
        """These and others behind them as units of one run, where they are exchangeable.

        Raises:
            TypeError: they are not.
        """
        raise TypeError(f"what {type(self).__name__} and {type(other).__name__} say of a unit cannot be exchanged")

    @property
    def truth(self) -> NDArray[Any] | None:
        """What is true of each unit (n) or (n, m), whatever a model says: the same in all runs on the same units. None
        where that cannot be held side by side.
        """
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Run(Units):
    """Samples of classes: their scores, and what was decided for each. Drawn within the classes."""

    scores: Scores
    predicted: Codes

    @property
    def n_units(self) -> int:
        """How many samples."""
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
        return self._with(
            self.scores.y.take(chosen), self.scores.probabilities.take(chosen, axis=0), self.predicted.take(chosen)
        )

    def beside(self, other: "Run") -> "Run":
        """The samples of both."""
        return self._with(
            np.concatenate([self.scores.y, other.scores.y]),
            np.concatenate([self.scores.probabilities, other.scores.probabilities]),
            np.concatenate([self.predicted, other.predicted]),
        )

    def _with(self, y: Codes, probabilities: Array, predicted: Codes) -> "Run":
        scores = Scores(y, probabilities)
        scores.are_probabilities = self.scores.are_probabilities
        return Run(scores, predicted)
