"""Intervals of the headline metrics at equal class shares: closed forms too, of the rows as they were sampled."""

from math import isnan

import numpy as np

from app.kernel.matrix.gradient import AdditiveGradient, stack
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Mean, Metric
from app.kernel.numerics.arrays import Array, inner, silently, total
from app.kernel.uncertainty.intervals import Limits, two_sided_z
from app.kernel.uncertainty.of_matrices.closed_forms import Given, Method, Refusal, headline_metrics
from app.kernel.uncertainty.of_matrices.headline import Headlines, OverallInterval


def equal_share_headlines(table: Table, found: Headlines) -> tuple[tuple[OverallInterval, ...], ...]:
    """For each pair of matrices (B, 2, K, K), the second with its rows scaled to equal totals, the intervals of the
    headline metrics that prevalence moves, of the second.

    Accuracy is there the mean of the recalls and has its limits. The others have MOVER too (Zou & Donner 2008): what
    the value moves by when a recall goes to its Jeffreys limit, and what it spreads by as errors fall among the other
    classes, added by squares, both by the gradient. Symmetric limits do not do here, since a rare class weighs as much
    as a frequent one: with 950 and 50 samples those by the delta method held the truth 88 times in 100.

    Args:
        table: The pairs.
        found: Headline intervals of the first of each pair.
    """
    metrics = headline_metrics()
    mean = next(metric.key for metric, kind in metrics.means if kind is Mean.ARITHMETIC)
    of_mean = [next(one for one in own if one.key == mean) for own in found.overall]
    parts = [[one._replace(key=metric.key) for one in of_mean] for metric, _ in metrics.shares]
    with silently():
        low, high = (ends[:, 0] for ends in found.recalls)
        gradients = stack([gradient(table) for _, gradient in metrics.smooth])
        below, above = _reach(table, gradients, (low, high), two_sided_z(found.level))
        for (metric, _), down, up in zip(metrics.smooth, below.tolist(), above.tolist(), strict=True):
            both = metric(table)
            # What has no value as it is has none in its twin: what rounding leaves of 0/0 there is none.
            values = np.where(np.isfinite(both[:, 0]), both[:, 1], np.nan).tolist()
            parts.append([_interval(metric, *ends) for ends in zip(values, down, up, strict=True)])
    return tuple(zip(*parts, strict=True))


def _reach(table: Table, gradients: AdditiveGradient, recalls: Limits, z: float) -> tuple[Array, Array]:
    """How far limits (M, B) of metrics lie below and above the values at equal shares.

    A row with recall r whose errors fall on the others with shares e moves a value by dr (g_ii - sum_j e_j g_ij) / K.
    """
    size = table.n_classes
    slopes, right = _slopes(gradients, size)
    recall, actual = table.recall[:, 0], table.actual[:, 0]
    errors = table.counts[:, 0] / actual[..., None]
    errors[..., range(size), range(size)] = 0.0
    # Of a class without errors it is not known where they would fall.
    flawless = (recall == 1.0)[..., None]
    spread = (1.0 - np.eye(size)) / max(size - 1, 1)
    errors = np.where(flawless, spread, errors / (1.0 - recall)[..., None])
    astray = inner(slopes, errors)
    steps = (right - astray) / size
    scatter = inner((slopes - astray[..., None]) ** 2, errors) * (1.0 - recall) / actual
    known = z * z / size**2 * total(scatter)
    down, up = recall - recalls[0], recalls[1] - recall
    rising = steps > 0
    below = total((steps * np.where(rising, down, up)) ** 2)
    above = total((steps * np.where(rising, up, down)) ** 2)
    return np.sqrt(below + known), np.sqrt(above + known)


def _slopes(gradients: AdditiveGradient, size: int) -> tuple[Array, Array]:
    """Derivatives at the twins in every cell (M, B, K, K), 0 on the diagonal, and those of the diagonal (M, B, K)."""
    diagonal, rows, columns = (part[:, :, 1] for part in (gradients.diagonal, gradients.rows, gradients.columns))
    slopes = rows[..., None] + columns[..., None, :]
    slopes[..., range(size), range(size)] = 0.0
    return slopes, diagonal + rows + columns


def _interval(metric: Metric[Table], value: float, below: float, above: float) -> OverallInterval:
    lowest, highest = metric.card.range
    low = value - below if lowest is None else max(value - below, lowest)
    high = value + above if highest is None else min(value + above, highest)
    refusal = None
    if isnan(value):
        refusal = Refusal.UNDEFINED_ESTIMATE
    elif not low < high:
        low = high = float("nan")
        refusal = Refusal.ZERO_STANDARD_ERROR
    return OverallInterval(metric.key, low, high, Method.MOVER, Given.ACTUAL, refusal)
