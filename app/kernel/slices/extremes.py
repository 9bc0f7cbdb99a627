"""The range, the ratio and the mean of the values of S disjoint slices, with limits that hold though the slices were
picked for their values, and the levels at which limits of the smallest and the largest do.

All follow from the limits of the single slices, by whatever method these are made: at the level that is asked
for, and further out at a level of their own where the slice that came out first was not known beforehand.
"""

import numpy as np

from app.kernel.metrics.families.combinations import CombinationCard, Ends
from app.kernel.numerics.arrays import Array, silently
from app.kernel.numerics.scipy_bridge import normal_cdf
from app.kernel.uncertainty.intervals import Limits, ValueWithEnds, below_one, range_quantile, ratio_limits


def level_of_any(level: float, count: int) -> float:
    """Two-sided level of each of ``count`` independent values, so that one side holds for all at once: Šidák (1967)."""
    return below_one(2.0 * (0.5 + level / 2.0) ** (1.0 / count) - 1.0)


def level_of_pairs(level: float, count: int) -> float:
    """Two-sided level of the difference of each pair of ``count`` values, so that the lower limits of all hold: that of
    the deviate q / sqrt(2), with q the quantile of the range of so many normals at (1 + level)/2 (Tukey 1953, Kramer
    1956).
    """
    q = range_quantile(count, 0.5 + level / 2.0)
    return below_one(1.0 - 2.0 * float(normal_cdf(-q / np.sqrt(2.0))))


def range_of(values: Array, alone: Limits, of_pairs: Limits) -> ValueWithEnds:
    """The largest less the smallest (...) of S values with its limits.

    It is below a number only if all differences are, so the largest of the upper limits of all pairs holds, at the
    level of one. The lower limit is that of the pair for which it is highest, at the level at which those of all hold.
    Differences of two have limits by MOVER (Zou & Donner 2008).

    Args:
        values: (..., S).
        alone: Limits (..., S) of each at the level that is asked for.
        of_pairs: At ``level_of_pairs``.
    """
    gaps = values[..., :, None] - values[..., None, :]
    high = _hypot(alone[1] - values, values - alone[0])
    low = _hypot(values - of_pairs[0], of_pairs[1] - values)
    return (
        gaps.max(axis=(-2, -1)),
        np.maximum((gaps - low).max(axis=(-2, -1)), 0.0),
        _off_diagonal(gaps + high, -np.inf).max(axis=(-2, -1)),
    )


def ratio_of(values: Array, alone: Limits, of_pairs: Limits) -> ValueWithEnds:
    """The smallest over the largest (...) of S values of at least 0 with its limits; NaN where all are 0.

    The smallest of the ratios of all ordered pairs, whose limits are those of MOVER-R (Donner & Zou 2012), in the
    places that those of differences have in ``range_of``.
    """
    below, above = (ratio_limits(_pairs(values, ends), _pairs(values, ends, other=True)) for ends in (alone, of_pairs))
    with silently():
        ratios = values.min(axis=-1) / values.max(axis=-1)
    low = _off_diagonal(below[0], np.inf).min(axis=(-2, -1))
    high = np.minimum(_off_diagonal(above[1], np.inf).min(axis=(-2, -1)), 1.0)
    missing = np.isnan(ratios)
    return ratios, np.where(missing, np.nan, low), np.where(missing, np.nan, high)


def mean_of(values: Array, limits: Limits, *, independent: bool) -> Limits:
    """Limits (...) of the mean of S values, at the level of theirs.

    Where the samples have nothing in common, the mean moves by the root of the sum of the squares of their moves, as in
    MOVER (Zou & Donner 2008). A slice whose value is at its end has nowhere to go on that side, though the mean has: so
    its square is the mean of those of both sides, and the mean goes no further than if all values moved at once.
    Otherwise it goes as far as that: no standard error of a sum is above the sum of the standard errors.

    Args:
        values: (..., S).
        limits: Limits (..., S) of each; of rates those of Clopper & Pearson, whose errors do not add up.
        independent: Has no group samples in several slices?
    """
    low, high = (end.mean(axis=-1) for end in limits)
    if not independent:
        return low, high
    squares = ((values - limits[0]) ** 2 + (limits[1] - values) ** 2) / 2.0
    mean, reach = values.mean(axis=-1), np.sqrt(squares.sum(axis=-1)) / values.shape[-1]
    return np.maximum(mean - reach, low), np.minimum(mean + reach, high)


def apart_in_slices(card: CombinationCard, own: Limits, apart: ValueWithEnds) -> Limits:
    """Limits (1) of the difference of two paired runs in what is picked from S slices; NaN of ratios.

    The smallest value of the first run less that of the second is at least the difference in the slice that is smallest
    in the first, and at most that in the smallest of the second. So the limits of the differences in all slices that
    may be smallest in either run hold it: those whose limits reach below the upper limits of all. Likewise the largest
    value; and the range, in pairs of slices of which one may be the largest and one the smallest.

    Args:
        card: What is picked.
        own: Limits (2, S) of the values of each run.
        apart: Differences (S) with their limits.
    """
    low, high = own
    smallest = (low <= high.min(axis=-1, keepdims=True)).any(axis=0)
    largest = (high >= low.max(axis=-1, keepdims=True)).any(axis=0)
    if card.picks is not None:
        places = smallest if card.picks is min else largest
        return apart[1][places].min(keepdims=True), apart[2][places].max(keepdims=True)
    if card.ends is not Ends.DISTANCE:
        return np.full(1, np.nan), np.full(1, np.nan)
    gaps, below, above = apart[0], apart[0] - apart[1], apart[2] - apart[0]
    pairs = largest[:, None] & smallest & ~np.eye(gaps.size, dtype=np.bool_)
    between = gaps[:, None] - gaps
    return (
        (between - _hypot(below, above))[pairs].min(keepdims=True),
        (between + _hypot(above, below))[pairs].max(keepdims=True),
    )


def _pairs(values: Array, ends: Limits, *, other: bool = False) -> ValueWithEnds:
    """Values and limits (..., S) along the rows of a table of pairs, or along its columns."""
    value, low, high = (part[..., None, :] if other else part[..., :, None] for part in (values, *ends))
    return value, low, high


def _hypot(first: Array, second: Array) -> Array:
    """Roots (..., S, S) of the sums of the squares of moves (..., S) of one value and of another."""
    return np.hypot(first[..., :, None], second[..., None, :])


def _off_diagonal(pairs: Array, on: float) -> Array:
    """Pairs (..., S, S) of different slices; ``on`` stands where a slice meets itself."""
    return np.where(np.eye(pairs.shape[-1], dtype=np.bool_), on, pairs)
