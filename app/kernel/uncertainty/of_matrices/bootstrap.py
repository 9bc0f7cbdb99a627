"""The nonparametric bootstrap, from counts alone: resampling n items is one multinomial draw of the matrix.

Cells that are 0 stay 0. Unstratified resamples can lose a class; values that do not exist there are left out and
counted.
"""

from collections.abc import Iterator
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from app.kernel.matrix.table import Table
from app.kernel.numerics.arrays import Array, silently
from app.kernel.numerics.special import normal_cdf, normal_quantile
from app.kernel.uncertainty.draws import Functional
from app.kernel.uncertainty.of_matrices.posterior import CELLS_PER_BATCH

# Replicates this near to the estimate, relative and absolute, differ from it by rounding.
_ROUNDING, _LEAST = 1e-12, 1e-15


class BootstrapInterval(StrEnum):
    """How limits are read off the replicates."""

    PERCENTILE = "percentile"
    BCA = "bca"


def resample(counts: Array, *, draws: int, random: np.random.Generator, stratified: bool = False) -> Iterator[Array]:
    """Batches of resampled matrices (d, K, K), ``draws`` in total; ``stratified`` keeps the row sums.

    Raises:
        ValueError: the counts are not whole numbers or there are none.
    """
    counts = np.asarray(counts, dtype=np.float64)
    if not (counts == np.round(counts)).all() or counts.sum() == 0:
        raise ValueError("only whole counts of at least one sample can be resampled")
    size = counts.shape[-1]
    batch = max(1, CELLS_PER_BATCH // counts.size)
    for start in range(0, draws, batch):
        count = min(batch, draws - start)
        yield (_rows(counts, count, random) if stratified else _cells(counts, count, random)).reshape(count, size, size)


def _cells(counts: Array, count: int, random: np.random.Generator) -> Array:
    filled = np.flatnonzero(counts)
    weights = counts.ravel()[filled]
    resampled = np.zeros((count, counts.size))
    resampled[:, filled] = random.multinomial(int(weights.sum()), weights / weights.sum(), size=count)
    return resampled


def _rows(counts: Array, count: int, random: np.random.Generator) -> Array:
    actual = counts.sum(axis=-1)
    shares = counts / np.maximum(actual, 1.0)[:, None]
    shares[actual == 0, 0] = 1.0
    return random.multinomial(actual.astype(np.int64), shares, size=(count, actual.size)).astype(np.float64)


def item_weights(
    strata: NDArray[np.int64], *, draws: int, random: np.random.Generator, batch: int = 256
) -> Iterator[Array]:
    """Batches (d, N) of how often each item is drawn when every stratum is resampled by itself, ``draws`` in total.

    For what needs the items themselves, such as areas and calibration: sorted once, every replicate is a weighted pass.

    Args:
        strata: (N) stratum of each item, usually its actual class; all the same for an unstratified bootstrap.
        draws: how many.
        random: source of the random numbers.
        batch: replicates at a time.
    """
    members = [np.flatnonzero(strata == stratum) for stratum in np.unique(strata)]
    for start in range(0, draws, batch):
        size = min(batch, draws - start)
        weights = np.empty((size, strata.size))
        for items in members:
            drawn = random.integers(0, items.size, (size, items.size)) + items.size * np.arange(size)[:, None]
            counts = np.bincount(drawn.ravel(), minlength=size * items.size)
            weights[:, items] = counts.reshape(size, items.size)
        yield weights


def acceleration(counts: Array, functional: Functional, *, stratified: bool = False) -> Array:
    """BCa's acceleration of every value, (V): a sixth of the skewness of the jackknife, which needs one value per cell.

    a = sum n_c (m - t_c)^3 / (6 (sum n_c (m - t_c)^2)^1.5) with t_c the value without one item of cell c. With strata
    the sums run over l_c = (n_i - 1)(m_i - t_c)/n_i (Davison & Hinkley 1997, eq. 5.28).
    """
    rows, columns = np.nonzero(counts)
    items = counts[rows, columns]
    without = np.repeat(counts[None], items.size, axis=0)
    without[range(items.size), rows, columns] -= 1.0
    with silently():
        values = functional(Table(without)).reshape(items.size, -1)
    if stratified:
        actual = counts.sum(axis=-1)
        center = np.zeros((actual.size, values.shape[1]))
        np.add.at(center, rows, items[:, None] * values)
        influence = (1.0 - 1.0 / actual[rows])[:, None] * (center[rows] / actual[rows][:, None] - values)
    else:
        influence = (items @ values) / items.sum() - values
    with silently():
        skew: Array = (items @ influence**3) / (6.0 * (items @ influence**2) ** 1.5)
    return np.where(np.isnan(skew), 0.0, skew)


def bca_limits(draws: Array, estimate: Array, skew: Array, level: float = 0.95) -> tuple[Array, Array]:
    """Bias-corrected and accelerated limits (V) from replicates (B, V). Efron (1987).

    NaN where no replicate exists, or all lie on one side of the estimate.
    """
    tails = np.array([(1.0 - level) / 2.0, (1.0 + level) / 2.0])[:, None]
    ordered = np.sort(draws, axis=0)
    present = (~np.isnan(ordered)).sum(axis=0)
    with silently():
        equal = np.abs(ordered - estimate) <= _ROUNDING * np.abs(estimate) + _LEAST
        below = ((~equal & (ordered < estimate)).sum(axis=0) + 0.5 * equal.sum(axis=0)) / present
        bias = normal_quantile(below)
        shifted = bias + normal_quantile(tails)
        levels = normal_cdf(bias + shifted / (1.0 - skew * shifted))
    positions = np.clip(
        np.round(np.where(np.isnan(levels), 0.0, levels) * (present + 1)) - 1, 0, np.maximum(present - 1, 0)
    )
    limits = np.take_along_axis(ordered, positions.astype(np.int64), axis=0)
    limits = np.where(np.isfinite(bias), limits, np.nan)
    return limits[0], limits[1]
