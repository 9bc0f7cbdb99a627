"""Rates of weighted samples, and their effective numbers of samples."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.matrix.weighted import WeightedCounts
from app.kernel.metrics.proportion import Rate
from app.kernel.numerics.arrays import Array, silently
from app.kernel.numerics.special import student_quantile


def worth_of(rate: Array, variance: Array, samples: Array, effective: Array, *, level: float) -> Array:
    """The effective numbers of samples of rates (...) of weighted samples.

    n over the design effect, which is the linearised variance over r(1-r)/n and counts as 1 at least (Korn & Graubard
    1998, Kott & Carr 1997). What that comes to, m, is multiplied with (t(m-1) / t(n_eff-1))^2 where it exceeds Kish's
    n_eff, since the variance is uncertain itself. A rate of 0 or 1 shows no design effect and is worth n_eff. Samples
    of one weight are worth their number.

    Args:
        rate: (...).
        variance: sum w^2 (y - r)^2 / (sum w)^2, (...).
        samples: n, (...).
        effective: n_eff, (...).
        level: of the interval to be.
    """
    tail = (1.0 + level) / 2.0
    with silently():
        binomial = rate * (1.0 - rate) / samples
        worth = samples / np.maximum(variance / binomial, 1.0)
        own, known = (student_quantile(tail, np.maximum(size - 1.0, 1.0)) for size in (worth, effective))
        return np.where(binomial > 0, worth * np.minimum(own / known, 1.0) ** 2, effective)


def surer(level: float, samples: float, effective: float) -> float:
    """By how much an interval is wider since the variance comes from n_eff samples and not from n, t / t; 1 for equal
    weights.
    """
    tail = (1.0 + level) / 2.0
    ends = [float(student_quantile(tail, max(size - 1.0, 1.0))) for size in (effective, samples)]
    return max(ends[0] / ends[1], 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class WeightedRate:
    """Rates of weighted samples.

    Attributes:
        rate: (...), NaN where there are no samples.
        variance: sum w^2 (y - r)^2 / (sum w)^2, (...): linearised, with replacement. R's `svyratio` has n/(n-1) times
            this.
        samples: n, (...).
        effective: Kish's n_eff, (...).
    """

    rate: Array
    variance: Array
    samples: Array
    effective: Array

    @classmethod
    def of_sums(cls, hits: Array, among: Array, samples: Array) -> Self:
        """From sums of weights and of squared weights (2, ...) of what counts and of all, and how many all are."""
        with silently():
            rate = hits[0] / among[0]
            misses = np.maximum(among[1] - hits[1], 0.0)
            variance = ((1.0 - rate) ** 2 * hits[1] + rate**2 * misses) / among[0] ** 2
            return cls(rate, variance, samples, among[0] ** 2 / among[1])

    @classmethod
    def of(cls, rate: Rate, weighted: WeightedCounts) -> Self:
        """Of one rate of a matrix."""
        sums, squares, samples = (
            rate.counts(Table(part)) for part in (weighted.counts, weighted.squares, weighted.samples)
        )
        hits, among = (np.array(pair) for pair in zip(sums, squares, strict=True))
        return cls.of_sums(hits, among, np.asarray(samples[1]))

    def worth(self, level: float) -> Array:
        """The effective numbers of samples (...)."""
        return worth_of(self.rate, self.variance, self.samples, self.effective, level=level)

    def as_counts(self, level: float) -> tuple[Array, Array]:
        """Hits and samples (...) for intervals of proportions."""
        worth = self.worth(level)
        return self.rate * worth, worth
