"""What metrics say of single samples, added up: means over samples that went by."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

import numpy as np

from app.kernel.folds.labels.groups import ValuesInGroups
from app.kernel.metrics.card import Metric
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.exact_sums import spread, weighted_spread
from app.kernel.numerics.weighted_units import Terms, WeightedUnits, mean_terms

Units = TypeVar("Units", bound=WeightedUnits)


class SumOfSamples(NamedTuple):
    """Values of n samples, added up, and their squares, each rounded once."""

    total: Fraction
    squares: Fraction
    n_samples: int

    @property
    def mean(self) -> float:
        """Of the values."""
        return float(self.total / self.n_samples)

    @property
    def variance(self) -> float:
        """Of their mean."""
        if self.n_samples < 2:
            return float("nan")
        return spread(self.total, self.squares, self.n_samples) / self.n_samples


class Weighed(NamedTuple):
    """What samples weigh.

    Attributes:
        total: Sum of the weights.
        squares: Sum of their squares.
        n_samples: With a weight above 0.
    """

    total: Fraction
    squares: Fraction
    n_samples: int

    @property
    def worth(self) -> tuple[int, float]:
        """How many count, and their effective number (Kish 1965)."""
        return self.n_samples, float(self.total * self.total / self.squares)


class SumOfWeighted(NamedTuple):
    """Values of weighted samples, added up: sums of w v, w v^2, w^2 v and w^2 v^2, in exact products."""

    sums: Sequence[Fraction]
    weighed: Weighed

    @property
    def mean(self) -> float:
        """Of the values."""
        return float(self.sums[0] / self.weighed.total)

    @property
    def variance(self) -> float:
        """Of their mean, linearised."""
        if self.n_samples < 2:
            return float("nan")
        return float(self._spread / self.weighed.total**2)

    @property
    def n_samples(self) -> int:
        """That count."""
        return self.weighed.n_samples

    @property
    def design_effect(self) -> float:
        """How many times larger the variance is than that of as many samples of one weight; NaN where values are all
        the same.
        """
        mean, (first, second, *_), weighed = self._mean, self.sums, self.weighed
        plain = (second - 2 * mean * first + mean * mean * weighed.total) * weighed.total
        # Both spreads have the factor n / (n - 1).
        return float(self._spread * (weighed.n_samples - 1) / plain) if self._spread else float("nan")

    @property
    def _mean(self) -> Fraction:
        return self.sums[0] / self.weighed.total

    @property
    def _spread(self) -> Fraction:
        plain = self.weighed.squares, *self.sums[2:]
        return weighted_spread(self._mean, plain, self.weighed.n_samples, exact=True)


Summed = SumOfSamples | SumOfWeighted


class FoldedMeans(WeightedUnits):
    """Means over samples that went by, as if all samples were one.

    Attributes:
        sums: Of what metrics say of a sample, by their keys.
        in_groups: The same within groups, where samples are in some.
    """

    def __init__(self, sums: Mapping[str, Summed], in_groups: ValuesInGroups | None = None) -> None:
        super().__init__(1)
        self.sums, self.in_groups = sums, in_groups

    def remembered(self, name: Hashable, make: Callable[[], Terms]) -> Terms:  # noqa: ARG002 - nothing can be made
        """The mean of what a metric says.

        Raises:
            KeyError: that was not added up.
        """
        # The first part of a name is the key of the metric; none has parameters.
        key, *_ = name if isinstance(name, tuple) else (name,)
        return mean_terms(np.array([self.sums[key].mean]))


def said_of_samples(metrics: Sequence[Metric[Units]], samples: Units) -> Array:
    """What metrics say of each sample (m, n): means over samples, of values that all of them have."""
    found = []
    for metric in metrics:
        terms: Any = metric.card.inference.terms
        found.append(terms(samples).above)
    return np.stack(found)
