"""From simulated matrices to values, and from values to intervals with their Monte-Carlo error."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from app.kernel.numerics import Array, Mask, silently
from app.kernel.table import Table
from app.kernel.uncertainty.intervals import two_sided_z

# Anything computed on a batch of tables: a metric's function or a whole expression. Gives (...) or (..., K).
Functional = Callable[[Table], Array]

# With a larger share of draws in which a value does not exist, no interval is given.
MOST_UNDEFINED = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """Intervals of V values from D draws. Arrays (V); NaN limits where there is no interval.

    Attributes:
        estimate: The values themselves, from the data and not from the draws.
        low: Lower limits.
        high: Upper limits.
        deviation: Standard deviations over the draws.
        monte_carlo_error: Standard error of a limit that comes from the finite number of draws.
        undefined: Draws in which the value did not exist; they are left out.
        extended: Where the estimate lay outside the interval, which was then stretched to hold it.
    """

    estimate: Array
    low: Array
    high: Array
    deviation: Array
    monte_carlo_error: Array
    undefined: Array
    extended: Mask


def evaluate_draws(batches: Iterable[Array], functionals: Sequence[Functional]) -> list[Array]:
    """Values of every functional on all matrices: one array (D) or (D, K) each, however the draws are batched."""
    parts: list[list[Array]] = [[] for _ in functionals]
    with silently():
        for batch in batches:
            table = Table(batch)
            for values, functional in zip(parts, functionals, strict=True):
                values.append(functional(table))
    return [np.concatenate(values) for values in parts]


def summarise(draws: Array, estimate: Array, level: float = 0.95) -> Summary:
    """Equal-tailed intervals of V values.

    Args:
        draws: (D, V).
        estimate: (V), NaN where undefined: no interval then.
        level: share of draws inside.
    """
    values = np.ascontiguousarray(draws.T)
    undefined = np.isnan(values).sum(axis=-1)
    low, high = equal_tails(values, undefined, level)
    with silently():
        deviation = standard_deviation(values, undefined)
        error = deviation * quantile_error(draws.shape[0], level)
        absent = np.isnan(estimate) | (undefined > MOST_UNDEFINED * draws.shape[0])
        extended = ~absent & ((estimate < low) | (estimate > high))
        low, high = np.minimum(low, estimate), np.maximum(high, estimate)
    low, high = np.where(absent, np.nan, low), np.where(absent, np.nan, high)
    return Summary(estimate, low, high, deviation, error, undefined, extended)


def equal_tails(values: Array, undefined: Array, level: float) -> tuple[Array, Array]:
    """Order statistics (V) with (1 - level)/2 of the draws of values (V, D) beyond each. NaN draws are left out."""
    size = values.shape[-1]
    first, last = tail_ranks(size, level)
    ordered = np.partition(values, (first, last), axis=-1)
    low, high = ordered[:, first], ordered[:, last]
    for row in np.flatnonzero((undefined > 0) & (undefined < size)):
        present = np.sort(values[row])[: size - int(undefined[row])]
        first, last = tail_ranks(present.size, level)
        low[row], high[row] = present[first], present[last]
    return low, high


def standard_deviation(values: Array, undefined: Array) -> Array:
    """Standard deviations (V) of values (V, D) over the draws that are not NaN; NaN for fewer than two."""
    if not undefined.any():
        plain: Array = values.std(axis=-1, ddof=1)
        return plain
    present = values.shape[-1] - undefined
    centered = values - (np.nansum(values, axis=-1) / present)[:, None]
    present_only: Array = np.sqrt(np.nansum(centered * centered, axis=-1) / (present - 1))
    return present_only


def tail_ranks(size: int, level: float) -> tuple[int, int]:
    """Positions, from 0, of the limits among that many sorted draws; the same number of draws lies beyond either."""
    beyond = min(max(round((1.0 - level) / 2.0 * (size + 1)) - 1, 0), (size - 1) // 2)
    return beyond, size - 1 - beyond


def quantile_error(draws: int, level: float) -> float:
    """Standard error of a limit in standard deviations of a normal posterior: sqrt(q(1-q)/D) / density at the quantile.

    About 2.7/sqrt(D) at level 0.95.
    """
    tail = (1.0 - level) / 2.0
    density = math.exp(-0.5 * two_sided_z(level) ** 2) / math.sqrt(2.0 * math.pi)
    return math.sqrt(tail * (1.0 - tail) / draws) / density


def simultaneous(draws: Array, level: float = 0.95) -> tuple[Array, Array]:
    """Limits (K) that hold for all K values together, from draws (D, K). Besag et al. (1995), section 6.3.

    The tails are cut by rank, equally far in every value, just so far that ``level`` of the draws stay inside
    everywhere. For a class picked because it is the worst, only such limits keep their level.
    """
    size = draws.shape[0]
    order = np.argsort(draws, axis=0, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(size)[:, None], axis=0)
    depth = np.sort(np.minimum(ranks, size - 1 - ranks).min(axis=1))
    cut = int(depth[math.floor((1.0 - level) * size)])
    ordered = np.take_along_axis(draws, order, axis=0)
    return ordered[cut], ordered[size - 1 - cut]


def bonferroni_level(level: float, count: int) -> float:
    """Level of each of ``count`` intervals that together hold with at least ``level``."""
    return 1.0 - (1.0 - level) / count
