"""Confidence distributions of the difference of two runs.

Limits, p and probabilities of a difference are all read off one distribution (Schweder & Hjort 2002): limits exclude 0
at just the levels at which p rejects it, and the difference of swapped runs is the mirror image.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from app.kernel.compare.paired.effects import PairedDifferences
from app.kernel.matrix.prevalence import project
from app.kernel.matrix.table import Table, WeightedCounts
from app.kernel.metrics.card import Scale
from app.kernel.numerics.arrays import Array, Mask, silently
from app.kernel.numerics.scipy_bridge import normal_cdf, student_cdf, student_quantile
from app.kernel.uncertainty.closed_forms import at_recalls, moves_in_cells
from app.kernel.uncertainty.designs import Weighted, spread_of_slopes
from app.kernel.uncertainty.draws import MOST_UNDEFINED, Functional, summarise
from app.kernel.uncertainty.intervals import jeffreys, two_sided_z

# The level at whose limits the worth of weighted rates is read.
_USUAL_LEVEL = 0.95
# Of matrices at limits of their recalls: 16 MB.
_CELLS_PER_PIECE = 1 << 21


@dataclass(frozen=True, slots=True, eq=False)
class StudentDifferences:
    """Differences with a standard error.

    Attributes:
        gaps: (V) first less second.
        errors: (V) their standard errors; nothing is known of a difference whose error is 0.
        freedom: (V) degrees of freedom of the errors, infinite where these are taken as known.
    """

    gaps: Array
    errors: Array
    freedom: Array

    @property
    def p(self) -> Array:
        """Two-sided p (V) of Student's t; 1 of equal values without error."""
        found: Array = 2.0 * student_cdf(-np.abs(self.distance()), self.freedom)
        return np.where((self.errors == 0) & (self.gaps == 0), 1.0, found)

    def limits(self, level: float) -> tuple[Array, Array]:
        """Lower and upper limits (V)."""
        reach = student_quantile((1.0 + level) / 2.0, self.freedom) * np.where(self.errors > 0, self.errors, np.nan)
        return self.gaps - reach, self.gaps + reach

    def chance_above(self, threshold: Array | float) -> Array:
        """Confidence (V) that the differences are larger than a threshold."""
        return student_cdf(self.distance(threshold), self.freedom)

    def distance(self, threshold: Array | float = 0.0) -> Array:
        """Differences (V) less a threshold in errors: Student's t."""
        with silently():
            return (self.gaps - threshold) / np.where(self.errors > 0, self.errors, np.nan)


# Normal deviates at which limits of single runs are made; at another level they are interpolated.
_DEVIATES = np.array([0.02, *np.arange(0.125, 4.0, 0.125), 4.0, 4.5, 5.0, 6.0, 7.0, 8.0])


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """Distances from V values of one run to their limits at several levels.

    Attributes:
        deviates: (Z) two-sided normal deviates of the levels, rising.
        below: (Z, V) from the value to its lower limit.
        above: (Z, V) to its upper limit.
    """

    deviates: Array
    below: Array
    above: Array

    @classmethod
    def of(cls, limits: Callable[[Array], tuple[Array, Array]], values: Array, level: float) -> "Reach":
        """Distances by a function from deviates (Z, 1) to limits (Z, V) of values (V); exact at one level."""
        deviates = np.union1d(_DEVIATES, two_sided_z(level))
        low, high = limits(deviates[:, None])
        return cls(deviates, values - low, high - values)


class HybridDifferences:
    """Differences of runs from the limits of each run: MOVER. Zou & Donner (2008); of independent rates with Wilson's
    limits Newcombe (1998b), method 10.

    The lower limit is the difference less the root of a² + b² - 2 rho a b, with a the distance from the first value to
    its lower, b from the second to its upper limit.

    Args:
        gaps: (V) first less second.
        first: Distances of the first run.
        second: Distances of the second run, at the same levels.
        correlation: Of the values of both runs, rho.
        within: Distances of the differences, known in another way, that are nowhere exceeded; NaN where they are not.
    """

    def __init__(
        self, gaps: Array, first: Reach, second: Reach, *, correlation: float = 0.0, within: Reach | None = None
    ) -> None:
        self._gaps, self._deviates = gaps, first.deviates
        self._below, self._above = (
            # What a higher level adds is never less than nothing.
            np.maximum.accumulate(np.hypot(a - correlation * b, np.sqrt(1.0 - correlation**2) * b))
            for a, b in ((first.below, second.above), (first.above, second.below))
        )
        if within is not None:
            self._below, self._above = np.fmin(self._below, within.below), np.fmin(self._above, within.above)

    @property
    def p(self) -> Array:
        """Two-sided p (V): that of the level at which the limits reach 0."""
        return np.minimum(2.0 * normal_cdf(-np.abs(self._deviate(0.0))), 1.0)

    def limits(self, level: float) -> tuple[Array, Array]:
        """Lower and upper limits (V)."""
        z = two_sided_z(level)
        below, above = (
            np.array([np.interp(z, self._deviates, one) for one in side.T]) for side in (self._below, self._above)
        )
        missing = ~((below > 0) | (above > 0)) | ~np.isfinite(below + above)
        return np.where(missing, np.nan, self._gaps - below), np.where(missing, np.nan, self._gaps + above)

    def chance_above(self, threshold: Array | float) -> Array:
        """Confidence (V) that the differences are larger than a threshold."""
        return normal_cdf(self._deviate(threshold))

    def _deviate(self, threshold: Array | float) -> Array:
        """Normal deviate (V) of the level whose limit is the threshold, negative where that lies above the difference.

        Distances are interpolated from one level to the next in proportion to the deviate.
        """
        away, found = self._gaps - threshold, []
        steps = np.concatenate([[0.0], self._deviates])
        for gap, below, above in zip(away.tolist(), self._below.T, self._above.T, strict=True):
            sides, distance = np.concatenate([[0.0], below if gap >= 0 else above]), abs(gap)
            reach, deviate = sides[-1], np.nan
            # Where limits are missing nothing is known; where only one side has none nothing lies on it.
            if np.isfinite(distance + reach) and (below[-1] > 0 or above[-1] > 0):
                beyond = min(distance / reach, 4.0) if reach > 0 else 4.0 * (distance > 0)
                deviate = np.interp(distance, sides, steps) if distance < reach else steps[-1] * beyond
            found.append(deviate if gap >= 0 else -deviate)
        return np.array(found)


@dataclass(frozen=True, slots=True, eq=False)
class DrawnDifferences:
    """Differences in draws of both runs.

    Attributes:
        gaps: (V) first less second.
        draws: (D, V) of the same in draws, joint where the runs are paired; NaN where a value does not exist.
    """

    gaps: Array
    draws: Array

    @property
    def p(self) -> Array:
        """Twice the share (V) of draws on the other side of 0, the data counted as one of them."""
        defined = np.isfinite(self.draws)
        with silently():
            beyond = np.minimum((self.draws <= 0).sum(axis=0), (self.draws >= 0).sum(axis=0))
        p = np.minimum(2.0 * (1.0 + beyond) / (1.0 + defined.sum(axis=0)), 1.0)
        known = (defined.mean(axis=0) >= 1.0 - MOST_UNDEFINED) & np.isfinite(self.gaps)
        return np.where(known & (np.ptp(np.where(defined, self.draws, 0.0), axis=0) > 0), p, np.nan)

    def limits(self, level: float) -> tuple[Array, Array]:
        """Equal-tailed limits (V), held at 0 where p does not reject it."""
        found, p = summarise(self.draws, self.gaps, level), self.p
        held = ~(p < 1.0 - level)
        low = np.where(held, np.minimum(found.low, 0.0), found.low)
        high = np.where(held, np.maximum(found.high, 0.0), found.high)
        return np.where(np.isnan(p), np.nan, low), np.where(np.isnan(p), np.nan, high)

    def chance_above(self, threshold: Array | float) -> Array:
        """Share (V) of the draws above a threshold; neither sign is surer than 1 - p/2."""
        p = self.p
        with silently():
            share = (self.draws > threshold).sum(axis=0) / np.isfinite(self.draws).sum(axis=0)
        share = np.where(np.asarray(threshold) >= 0.0, np.minimum(share, 1.0 - p / 2.0), share)
        found: Array = np.where(np.asarray(threshold) <= 0.0, np.maximum(share, p / 2.0), share)
        return found


# Confidence distributions of V differences: their p (V), limits (V) at a level, and chances (V) above a threshold.
Differences = StudentDifferences | HybridDifferences | DrawnDifferences | PairedDifferences


def on_scale(values: Array, scale: Scale) -> Array:
    """Values as they are tested and compared: ratios by their logarithms, of which equal steps are equal factors.

    So a ratio and a monotone function of it on the same scale, such as the odds ratio and discriminant power, have
    one p.
    """
    with silently():
        return np.log(values) if scale is Scale.LOG else values


def off_scale(gaps: Array, values: Array, logs: Mask) -> Array:
    """Differences (..., V) on the scales of metrics as differences of values around those (2, V) of two runs.

    Of a ratio, on its logarithm, the geometric mean of both is held: a - b = 2 sqrt(a b) sinh((log a - log b) / 2).
    """
    with silently():
        return np.where(logs, 2.0 * np.sqrt(values[0] * values[1]) * np.sinh(gaps / 2.0), gaps)


def to_scale(gap: float, values: Array, logs: Mask) -> Array:
    """The inverse (V) of ``off_scale`` for one difference."""
    with silently():
        return np.where(logs, 2.0 * np.arcsinh(gap / (2.0 * np.sqrt(values[0] * values[1]))), gap)


def matrix_reach(
    counts: Array,
    functional: Functional,
    level: float,
    weighted: WeightedCounts | None = None,
    shares: Array | None = None,
) -> Reach:
    """Distances from the values of one matrix (K, K) to limits with fixed class counts, exact at one level.

    MOVER over the rows: what a value moves by as the recall of a class goes to its Jeffreys limit, its errors staying
    spread as they are, added by squares (Zou & Donner 2008), and what the spread of the errors varies by.

    Args:
        counts: Samples, or what they weigh.
        functional: V values that are smooth on the way to the limits.
        level: Of the limits that are asked for.
        weighted: What weights add to the matrix; None where samples have none.
        shares: Class shares (K) that the values are of; None for those of the matrix.
    """
    actual, right = counts.sum(axis=1), np.diagonal(counts)
    hits, worth = (right, actual) if weighted is None else Weighted(weighted).recalls(_USUAL_LEVEL)
    rows = np.flatnonzero(actual > 0)
    hits, worth = hits[rows], worth[rows]
    there = counts if shares is None else project(counts, shares)
    deviates = np.union1d(_DEVIATES, two_sided_z(level))
    with silently():
        value = np.atleast_1d(functional(Table(there)))
        moved = at_recalls(there, rows)
        ends = np.stack(jeffreys(hits, worth, 1.0 - 2.0 * normal_cdf(-deviates)[:, None]), axis=1)
        pieces = np.array_split(ends, min(len(ends), 1 + ends.size * counts.size // _CELLS_PER_PIECE))
        moves = np.concatenate([functional(moved(piece)) for piece in pieces])
        moves = moves.reshape(*ends.shape, -1) - value
        below = np.square(np.minimum(moves.min(axis=1), 0.0)).sum(axis=1)
        above = np.square(np.maximum(moves.max(axis=1), 0.0)).sum(axis=1)
        scatter = np.square(deviates)[:, None] * _error_variance(counts, functional, weighted, shares)
        return Reach(deviates, np.sqrt(below + scatter), np.sqrt(above + scatter))


def _error_variance(
    counts: Array, functional: Functional, weighted: WeightedCounts | None, shares: Array | None
) -> Array | float:
    """Variance (V) that the errors of a class leave by falling on one or another of several classes."""
    if len(counts) == 2:
        return 0.0
    moves = moves_in_cells(
        counts,
        functional if shares is None else lambda table: functional(Table(project(table.counts, shares))),
    )
    away = (counts > 0) & ~np.eye(len(counts), dtype=np.bool_)
    masses = counts[away]
    squares = masses if weighted is None else weighted.squares[away]
    return spread_of_slopes(moves[:, away].T / masses[:, None], masses, squares, away.nonzero()[0])[0]
