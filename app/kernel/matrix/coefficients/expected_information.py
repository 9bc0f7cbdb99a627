"""Mutual information of two groupings in nats, and its exact expectation when one of them is shuffled.

Both are sums of e/n g(x/e - 1) over cells with e expected and x found samples, g(d) = (1 + d) ln(1 + d) - d. No term is
negative, so nothing cancels near independence: what d adds over all cells, or over all shufflings, is 0.
"""

import math

import numpy as np

from app.kernel.numerics.arrays import Array, cells, silently, total

# Beyond it the formula of g keeps its digits, below it the series does.
_NEAR = 0.03
_TERMS = 9
# Shufflings that are left out have together less than exp(-60), 1e-26, of the probability.
_TAIL = 60.0
# Numbers in memory at once.
_AT_ONCE = 1 << 18


def relative_information(distance: Array) -> Array:
    """g(d) = (1 + d) ln(1 + d) - d for d >= -1: 0 at 0, 1 at -1, d^2/2 - d^3/6 + d^4/12 - ... near 0."""
    direct = (1.0 + distance) * np.log1p(np.maximum(distance, np.nextafter(-1.0, 0.0))) - distance
    near = np.abs(distance) < _NEAR
    if not np.any(near):
        return np.asarray(direct)
    small = np.where(near, distance, 0.0)
    series = np.zeros_like(small)
    for power in range(_TERMS + 1, 1, -1):
        series = 1.0 / (power * (power - 1)) - small * series
    return np.where(near, small * small * series, direct)


def table_information(counts: Array, actual: Array, predicted: Array, n: Array) -> Array:
    """Mutual information (...) of tables (..., R, S) with these margins. NaN without samples.

    Vinh, Epps & Bailey (2010), eq. 4.
    """
    product = actual[..., :, None] * predicted[..., None, :]
    distance = (counts * cells(n) - product) / product
    # Where a margin is empty nothing is expected and nothing found.
    parts = np.where(product > 0, relative_information(np.where(product > 0, distance, 0.0)) * product, 0.0)
    information: Array = total(total(parts)) / (n * n)
    return information


def expected_information(actual: Array, predicted: Array) -> Array:
    """Mean mutual information (...) of all tables with these margins (..., R) and (..., S), whole numbers.

    The number in a cell is hypergeometric; its probabilities are those of the most likely number times ratios of
    neighbours, so no factorial is needed. Sizes that occur more than once are worked off once. Vinh, Epps & Bailey
    (2010), eq. 24. NaN without samples.
    """
    batch = actual.shape[:-1]
    rows, columns = actual.reshape(-1, actual.shape[-1]), predicted.reshape(-1, predicted.shape[-1])
    found = np.array([_of_margins(row, column) for row, column in zip(rows, columns, strict=True)])
    return found.reshape(batch)


def _of_margins(actual: Array, predicted: Array) -> float:
    n = float(actual.sum())
    if n == 0:
        return math.nan
    sizes, times = np.unique(actual[actual > 0], return_counts=True)
    others, other_times = np.unique(predicted[predicted > 0], return_counts=True)
    a, b = (grid.ravel() for grid in np.meshgrid(sizes, others, indexing="ij"))
    weights = np.multiply.outer(times, other_times).ravel() * (a * b / (n * n))
    below, above = _reach(a, b, n)
    # Cells of one width side by side, so that little is computed in vain.
    order = np.argsort(below + above)
    mean = 0.0
    start = 0
    with silently():
        while start < order.size:
            # The widest of a piece is its last; pieces grow until they are full.
            stop = _piece(below[order] + above[order], start)
            chosen = order[start:stop]
            mean += float(weights[chosen] @ _of_cells(a[chosen], b[chosen], n, below[chosen], above[chosen]))
            start = stop
    return mean


def _piece(widths: Array, start: int) -> int:
    """Where a piece that starts there has to stop: its cells times the widest of them fit, and one always does."""
    fitting = np.arange(1, widths.size - start + 1) * (widths[start:] + 2.0) <= _AT_ONCE
    return start + max(1, int(np.count_nonzero(np.logical_and.accumulate(fitting))))


def _mode(a: Array, b: Array, n: float) -> Array:
    return np.floor((a + 1.0) * (b + 1.0) / (n + 2.0))


def _reach(a: Array, b: Array, n: float) -> tuple[Array, Array]:
    """How far below and above the most likely number of a cell there is any probability worth counting.

    Bernstein's inequality for draws with replacement bounds those without too (Hoeffding 1963, theorem 4); a cell can
    be seen as drawn from either side, so the smaller variance holds.
    """
    mean = a * b / n
    variance = mean * np.minimum(1.0 - a / n, 1.0 - b / n)
    away = _TAIL / 3.0 + np.sqrt(_TAIL * _TAIL / 9.0 + 2.0 * _TAIL * variance)
    mode = _mode(a, b, n)
    low = np.maximum(np.floor(mean - away), np.maximum(0.0, a + b - n))
    high = np.minimum(np.ceil(mean + away), np.minimum(a, b))
    return mode - np.minimum(low, mode), np.maximum(high, mode) - mode


def _of_cells(a: Array, b: Array, n: float, below: Array, above: Array) -> Array:
    """Mean of g over the numbers x that a cell can hold, for cells (c)."""
    mode = _mode(a, b, n)
    mass, sum_of_g = np.zeros(a.size), np.zeros(a.size)
    for steps, sign in ((above, 1.0), (below, -1.0)):
        # Upwards from the most likely number itself, downwards from the one below it.
        width = int(steps.max()) + 1
        offsets = np.arange(width, dtype=np.float64)
        x = mode[:, None] + sign * offsets
        if sign > 0:
            before = x[:, 1:] - 1.0
            ratios = (a[:, None] - before) * (b[:, None] - before) / (x[:, 1:] * (x[:, 1:] + (n - a - b)[:, None]))
        else:
            after = x[:, 1:] + 1.0
            ratios = after * (after + (n - a - b)[:, None]) / ((a[:, None] - x[:, 1:]) * (b[:, None] - x[:, 1:]))
        chances = np.ones_like(x)
        np.multiply.accumulate(ratios, axis=1, out=chances[:, 1:])
        chances[offsets > steps[:, None]] = 0.0
        if sign < 0:
            chances[:, 0] = 0.0
        product = (a * b)[:, None]
        values = relative_information((np.where(chances > 0, x, 0.0) * n - product) / product)
        mass += chances.sum(axis=1)
        sum_of_g += np.vecdot(chances, values)
    return sum_of_g / mass
