"""Intervals of metrics of one matrix by simulation: Dirichlet posterior and multinomial bootstrap."""

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from app.kernel.matrix.table import Table, weight_scales
from app.kernel.numerics.arrays import Array, silently, sums_at
from app.kernel.numerics.scipy_bridge import normal_cdf, normal_quantile
from app.kernel.uncertainty.draws import (
    WORTH_DIGITS,
    Functional,
    Prior,
    Shares,
    Summary,
    pseudo_counts,
    rounded,
    summarise,
)

# Cells per batch: 4 MB of matrices, and some times that in what metrics make of them.
CELLS_PER_BATCH = 1 << 19
DRAWS = 4000

# From so many classes on the curvature of means over classes shows in coverage: 95 % intervals of H held the truth 92
# times in 100 for 10 classes of 25, now 95 (benchmarks/coverage.py). For fewer, the posterior stays as it is.
_CURVED_CLASSES = 5


@dataclass(frozen=True, slots=True, eq=False)
class RowPosterior:
    """Posterior of confusion matrices (..., K, K), row by row; the entries of what is drawn sum to n.

    Rows without samples stay 0. Shares: ``observed`` keeps the row sums, ``sampled`` draws them from
    Dirichlet(n_i + 1/2). Of weighted samples a cell is drawn with the mean and the variance that it has when every
    sample gets a standard exponential times its weight (Rubin 1981): a gamma variate with the samples that the cell is
    worth as its shape, which for equal weights are its samples.

    Attributes:
        counts: One matrix (K, K) or several (..., K, K), whole or real counts.
        prior: See ``Prior``.
        custom: Pseudo-counts (..., K, K) of a custom prior.
        shares: See ``Shares``.
        given: Class shares (K) of what is drawn, in place of these.
        squares: Sums of squared weights (..., K, K) of weighted samples.
    """

    counts: Array
    _: KW_ONLY
    prior: Prior = Prior.EDGE
    custom: Array | None = None
    shares: Shares = Shares.OBSERVED
    given: Array | None = None
    squares: Array | None = None

    def matrices(self, draws: int, random: np.random.Generator) -> Array:
        """All that `batches` draws, as matrices (D, ..., K, K)."""
        return np.concatenate([table.counts for table in self.batches(draws, random)])

    def batches(self, draws: int, random: np.random.Generator) -> Iterator[Table]:
        """Batches of matrices (d, ..., K, K), ``draws`` in total.

        Raises:
            ValueError: a class without samples is given a share.
        """
        actual, parameters, scales = self._rows()
        totals = actual.sum(axis=-1, keepdims=True)
        wanted = actual
        if self.given is not None:
            if ((self.given > 0) & (actual == 0)).any():
                raise ValueError("a class without samples is given a share: nothing is known of how it is predicted")
            wanted = totals * self.given / self.given.sum()
        cells = np.flatnonzero(parameters)
        rows, columns = np.divmod(cells, parameters.shape[-1])
        first = rows - rows % parameters.shape[-1]
        right = np.flatnonzero(rows == first + columns)
        by_row, by_column = sums_at(rows, actual.size), sums_at(first + columns, actual.size)
        of_hits = sums_at(rows[right], actual.size)
        batch = max(1, CELLS_PER_BATCH // parameters.size)
        for start in range(0, draws, batch):
            shape = (min(batch, draws - start), *actual.shape)
            drawn = random.standard_gamma(parameters.ravel()[cells], (shape[0], cells.size))
            if scales is not None:
                drawn *= scales.ravel()[cells]
            if self.given is None and self.shares is Shares.SAMPLED:
                of_classes, scale = self._classes(actual)
                weights = random.standard_gamma(of_classes, shape) * scale
                wanted = weights * (totals / weights.sum(axis=-1, keepdims=True))
            sums = by_row(drawn).reshape(shape)
            drawn *= np.divide(wanted, sums, out=np.zeros(shape), where=sums > 0).reshape(shape[0], -1)[:, rows]
            whole = partial(_scattered, drawn, cells, (*shape, shape[-1]))
            # Rows are summed anew: what follows from a row of one cell then does so to the last digit.
            margins = of_hits(drawn[:, right]), by_row(drawn), by_column(drawn)
            hits, members, predicted = (one.reshape(shape) for one in margins)
            yield Table.of_sums(hits, members, predicted, whole)

    def mean(self) -> Array:
        """Expectation (..., K, K) of what is drawn."""
        actual, parameters, scales = self._rows()
        parameters = parameters if scales is None else parameters * scales
        sums, wanted = parameters.sum(axis=-1), actual
        if self.shares is Shares.SAMPLED:
            of_classes, scale = self._classes(actual)
            weights = of_classes * scale
            wanted = actual.sum(axis=-1, keepdims=True) * weights / weights.sum(axis=-1, keepdims=True)
        means: Array = parameters * np.divide(wanted, sums, out=np.zeros_like(sums), where=sums > 0)[..., None]
        return means

    def _rows(self) -> tuple[Array, Array, Array | None]:
        """Samples (..., K) of each class; shapes (..., K, K): effective numbers of samples, and what the prior adds, 0
        in rows without samples; and what weighted samples scale these by.
        """
        counts = np.asarray(self.counts, dtype=np.float64)
        actual = counts.sum(axis=-1)
        scales = None if self.squares is None else weight_scales(counts, self.squares)
        # A cell of one sample is worth 1, whatever that weighs.
        worth = counts if scales is None else rounded(counts / scales, WORTH_DIGITS)
        shapes = worth + pseudo_counts(counts, self.prior, self.custom)
        return actual, np.where(actual[..., None] > 0, shapes, 0.0), scales

    def _classes(self, actual: Array) -> tuple[Array, Array | float]:
        """Shapes (..., K) of gamma variates for the weights of classes of which their shares are random too, and what
        weighted samples scale these by.
        """
        scales = 1.0 if self.squares is None else weight_scales(actual, self.squares.sum(axis=-1))
        return np.where(actual > 0, actual / scales + 0.5, 0.0), scales

    @property
    def middle(self) -> Array | None:
        """The mean with so many classes that limits are moved by what the curvature of a metric shifts its draws, see
        ``draws.curvature_shift``; else None.
        """
        return self.mean() if self.counts.shape[-1] >= _CURVED_CLASSES else None


def _scattered(values: Array, cells: NDArray[np.intp], shape: tuple[int, ...]) -> Array:
    """Matrices with values (d, C) in some of their cells (C) and 0 in the others."""
    found = np.zeros((len(values), math.prod(shape[1:])))
    found[:, cells] = values
    return found.reshape(shape)


# Replicates this near to the estimate, relative and absolute, differ from it by rounding.
_ROUNDING, _LEAST = 1e-12, 1e-15


def unit_weights(
    times: Array, strata: NDArray[np.intp], *, draws: int, random: np.random.Generator, batch: int
) -> Iterator[Array]:
    """Batches (d, n) of how many samples each unit has in a resample, of as many in each stratum as its units stand
    for; ``draws`` in total.

    Args:
        times: (n) samples that each unit stands for.
        strata: (n) stratum of each; all the same for an unstratified bootstrap.
        draws: how many.
        random: source of the random numbers.
        batch: replicates at a time.
    """
    members = [np.flatnonzero((strata == stratum) & (times > 0)) for stratum in np.unique(strata)]
    for start in range(0, draws, batch):
        drawn = np.zeros((min(batch, draws - start), times.size))
        for units in members:
            total = times[units].sum()
            if total > 0:
                drawn[:, units] = random.multinomial(round(total), times[units] / total, len(drawn))
        yield drawn


def item_weights(
    strata: NDArray[np.int64],
    *,
    draws: int,
    random: np.random.Generator,
    batch: int = 256,
    order: NDArray[np.intp] | None = None,
) -> Iterator[Array]:
    """Batches (d, N) of how often each item is drawn when every stratum is resampled by itself, ``draws`` in total.

    For what needs the items themselves, such as areas and calibration: sorted once, every replicate is a weighted pass.

    Args:
        strata: (N) stratum of each item, usually its actual class; all the same for an unstratified bootstrap.
        draws: how many.
        random: source of the random numbers.
        batch: replicates at a time.
        order: (N) the items in the order in which they are drawn; None is as they come.
    """
    places = np.arange(strata.size) if order is None else order
    members = [places[strata[places] == stratum] for stratum in np.unique(strata)]
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


def accelerated(skew: Array, draws: Array, estimate: Array, level: float = 0.95) -> Summary:
    """Bias-corrected and accelerated intervals of V values from replicates (B, V). Efron (1987).

    No limits where a value has none by percentiles, or all replicates lie on one side of it.
    """
    found = summarise(draws, estimate, level)
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
    low, high = np.where(np.isfinite(bias) & ~np.isnan(found.low), limits, np.nan)
    return replace(found, low=low, high=high, extended=np.zeros_like(found.extended))
