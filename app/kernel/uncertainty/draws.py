"""Assumptions about a sample, and the way from simulated values to intervals with their Monte-Carlo error."""

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.numerics.arrays import Array, Mask, inner, ratio, silently
from app.kernel.uncertainty.intervals import below_one, two_sided_z


class Shares(StrEnum):
    """Were the numbers of samples per class chosen, and stay as observed, or did they come with the sample?"""

    OBSERVED = "observed"
    SAMPLED = "sampled"


class Prior(StrEnum):
    """The pseudo-counts of each row of the matrix.

    EDGE adds nothing, except the row of JEFFREYS_RECALL where a recall is 0 or 1: a stratified Bayesian bootstrap
    (Rubin 1981) that does not collapse. Any other prior pulls every class the same way, which adds up over many
    classes.
    """

    EDGE = "edge"
    JEFFREYS_RECALL = "jeffreys_recall"
    UNIFORM = "uniform"
    CUSTOM = "custom"


class AreaInterval(StrEnum):
    """Method of the limits of an area under a ROC curve: from the samples, or from the area and the class sizes."""

    DELONG = "delong"
    HANLEY_MCNEIL = "hanley_mcneil"


class Alternative(StrEnum):
    """Side of the limits: both, or one of them alone.

    GREATER asks how large the value is at least: it has a lower limit, and the other end is that of its range. LESS
    is the mirror image.
    """

    TWO_SIDED = "two-sided"
    GREATER = "greater"
    LESS = "less"

    def two_sided_level(self, level: float) -> float:
        """Level of the two-sided limits one of which is the one-sided limit at a level above a half."""
        return level if self is Alternative.TWO_SIDED else 2.0 * level - 1.0

    def opened(self, low: float, high: float, bounds: tuple[float | None, float | None]) -> tuple[float, float]:
        """Limits of which the end that is not asked for is that of the range, infinite where there is none."""
        lowest, highest = bounds
        if self is Alternative.GREATER:
            return low, inf if highest is None else highest
        if self is Alternative.LESS:
            return -inf if lowest is None else lowest, high
        return low, high

    def one_sided(self, p: float, gap: float) -> float:
        """P against this alternative from a two-sided p that has the same weight in both directions.

        Args:
            p: Two-sided.
            gap: What was found, less what it is tested against: its sign says in which direction.
        """
        if self is Alternative.TWO_SIDED:
            return p
        along = gap >= 0.0 if self is Alternative.GREATER else gap <= 0.0
        return p / 2.0 if along else 1.0 - p / 2.0


def seed_of(*content: object) -> int:
    """A seed that the same content always gives: 63 bits of its BLAKE2 digest.

    Arrays count by shape, type and values.
    """
    digest = hashlib.blake2b(digest_size=8)
    for part in content:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.shape}{part.dtype.str}".encode())
            digest.update(np.ascontiguousarray(part).tobytes())
        else:
            digest.update(repr(part).encode())
        digest.update(b"\x00")
    return int.from_bytes(digest.digest(), "big") >> 1


# Seeds up to here survive JSON readers that know doubles only.
_SEED_BITS = 53
# Digits of sums of weights that count: the last ones depend on the order in which an engine adds. And of what a cell is
# worth, which hangs on the unit of the weights in the last ones.
_DIGITS, WORTH_DIGITS = 9, 12


def chosen_seed(seed: int | None, *content: object) -> int:
    """The seed asked for, or one that the same content always gives.

    Of floats that are no whole numbers nine digits count, so that sums of weights give one seed in whatever order they
    were added up.
    """
    if seed is not None:
        return seed
    known = [rounded(one) if isinstance(one, np.ndarray) and one.dtype.kind == "f" else one for one in content]
    return seed_of(*known) >> (63 - _SEED_BITS)


def rounded(values: Array, digits: int = _DIGITS) -> Array:
    """Numbers to so many digits; whole ones as they are."""
    exponent = np.floor(np.log10(np.abs(values), where=values != 0, out=np.zeros_like(values)))
    # A power that is no number any more is not asked for: of smaller values fewer digits count.
    scale = 10.0 ** np.minimum(digits - 1 - exponent, 300)
    return np.where(values == np.rint(values), values, np.rint(values * scale) / scale)


def generator(seed: int) -> np.random.Generator:
    """The random numbers of a seed."""
    return np.random.Generator(np.random.PCG64(seed))


# Anything computed on a batch of tables: a metric's function or a whole expression. Gives (...) or (..., K).
Functional = Callable[[Table], Array]

# With a larger share of draws in which a value does not exist, no interval is given.
MOST_UNDEFINED = 0.05

# Parts of a standard deviation that a shift of the draws must reach to be undone: less costs no coverage worth naming.
_NEGLIGIBLE = 0.1


def within(low: float, high: float, bounds: tuple[float | None, float | None]) -> tuple[float, float]:
    """Limits that do not leave a range, of which an end may be missing. NaN stays NaN."""
    lowest, highest = bounds
    return low if lowest is None else max(low, lowest), high if highest is None else min(high, highest)


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


def evaluate_draws(batches: Iterable[Array | Table], functionals: Sequence[Functional]) -> list[Array]:
    """Values of every functional on D matrices (..., K, K): one array (D, ...) or (D, ..., K) each.

    In memory the draws of one value stand side by side, as `summarise` wants them.

    Args:
        batches: of matrices (d, ..., K, K), D in all, however they are batched.
        functionals: the metrics; all see the same matrices.
    """
    tables = (batch if isinstance(batch, Table) else Table(batch) for batch in batches)
    with silently():
        found = [[np.moveaxis(functional(table), 0, -1) for functional in functionals] for table in tables]
    return [np.moveaxis(np.concatenate(blocks, axis=-1), -1, 0) for blocks in zip(*found, strict=True)]


def summarise(draws: Array, estimate: Array, level: float = 0.95, *, center: Array | None = None) -> Summary:
    """Equal-tailed intervals of V values.

    Args:
        draws: (D, V).
        estimate: (V), NaN where undefined: no interval then.
        level: share of draws inside.
        center: (V) values at the mean of the matrices drawn. If given, what the curvature of a metric shifts its
            draws by is taken from the limits, see ``curvature_shift``.
    """
    # Value by value; nothing is copied of what `evaluate_draws` gave.
    values = np.ascontiguousarray(draws.T)
    count = values.shape[1]
    with silently():
        mean, deviation, undefined = _moments(values)
        # What is NaN stands last, and alone where nothing else is there.
        present = count - undefined.astype(np.intp)
        ranks = np.array([tail_ranks(size, level) for size in present.tolist()]).reshape(-1, 2)
        low, high = np.take_along_axis(np.sort(values, axis=-1), ranks, axis=-1).T
        if center is not None:
            shift = curvature_shift(mean, center, estimate, deviation)
            moved = np.flatnonzero(shift)
            if moved.size:
                # Not beyond where there is any draw: the range of a metric holds for its limits too.
                drawn = values[moved]
                reach = np.fmin.reduce(drawn, axis=-1), np.fmax.reduce(drawn, axis=-1)
                low[moved], high[moved] = (np.clip(ends[moved] - shift[moved], *reach) for ends in (low, high))
        error = deviation * quantile_error(count, level)
        absent = np.isnan(estimate) | (undefined > MOST_UNDEFINED * count)
        extended = ~absent & ((estimate < low) | (estimate > high))
        low, high = np.minimum(low, estimate), np.maximum(high, estimate)
    if absent.any():
        low, high = np.where(absent, np.nan, low), np.where(absent, np.nan, high)
    return Summary(estimate, low, high, deviation, error, undefined, extended)


def curvature_shift(mean: Array, center: Array, estimate: Array, deviation: Array) -> Array:
    """Return the bias (V) of draws beside the estimates, since a metric of mean rates is no mean of metrics
    (Jensen).

    The harmonic mean of noisy recalls is lower than that of the recalls. What the draws lose against the estimate, the
    estimate has lost against the truth; over many classes the loss stays while the spread shrinks, and an interval
    from the draws alone lies too low. Efron & Tibshirani (1993), chapter 10, with the mean matrix in the place of the
    estimate. Never more than brings the draws to the estimate, and 0 where it is a small part of the deviation.
    """
    gap = mean - estimate
    shift: Array = np.clip(mean - center, np.minimum(gap, 0.0), np.maximum(gap, 0.0))
    return np.where(np.isfinite(shift) & (np.abs(shift) > _NEGLIGIBLE * deviation), shift, 0.0)


def _moments(values: Array) -> tuple[Array, Array, Array]:
    """Means, standard deviations and numbers of NaN (V) of values (V, D), NaN left out."""
    missing = np.isnan(values)
    undefined = np.count_nonzero(missing, axis=-1).astype(np.float64)
    present = values.shape[-1] - undefined
    center = np.where(missing, 0.0, values).sum(axis=-1) / present
    centered = np.where(missing, 0.0, values - center[:, None])
    return center, np.sqrt(inner(centered, centered) / (present - 1.0)), undefined


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


def bonferroni_level(level: float, count: int) -> float:
    """Level of each of ``count`` intervals that together hold with at least ``level``."""
    return below_one(1.0 - (1.0 - level) / count)


def pseudo_counts(counts: Array, prior: Prior = Prior.EDGE, custom: Array | None = None) -> Array:
    """Dirichlet parameters (..., K, K) that the prior adds to the counts (..., K, K).

    Raises:
        ValueError: ``custom`` is missing for a custom prior, has another shape or a negative entry.
    """
    size = counts.shape[-1]
    if prior is Prior.CUSTOM:
        if custom is None or custom.shape[-2:] != counts.shape[-2:] or not (custom >= 0).all():
            raise ValueError("a custom prior needs a non-negative pseudo-count for every cell")
        return np.broadcast_to(custom, counts.shape)
    if prior is Prior.UNIFORM:
        return np.ones(counts.shape)
    jeffreys = np.full((size, size), 0.5 / (size - 1))
    np.fill_diagonal(jeffreys, 0.5)
    if prior is Prior.JEFFREYS_RECALL:
        return np.broadcast_to(jeffreys, counts.shape)
    with silently():
        recall = ratio(np.diagonal(counts, axis1=-2, axis2=-1), counts.sum(axis=-1))
    at_edge = (recall == 0) | (recall == 1)
    return np.where(at_edge[..., None], jeffreys, 0.0)
