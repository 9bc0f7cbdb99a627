"""Adjusting p-values for how many there are.

Every function takes and gives (m) in the order given; NaN is left out and stays.
"""

from collections.abc import Callable
from enum import StrEnum

import numpy as np

from app.kernel.numerics.arrays import Array
from app.kernel.numerics.special import normal_quantile

# Smaller ones have no quantile.
_SMALLEST = 1e-300


class Adjustment(StrEnum):
    """Holm is the default; Hochberg needs positive dependence; BH and BY bound the share of false discoveries
    instead. Max-T uses how the differences vary together, which takes draws of them: see ``adjust_jointly``.
    """

    NONE = "none"
    BONFERRONI = "bonferroni"
    HOLM = "holm"
    HOCHBERG = "hochberg"
    BENJAMINI_HOCHBERG = "benjamini_hochberg"
    BENJAMINI_YEKUTIELI = "benjamini_yekutieli"
    MAX_T = "max_t"


def _step_down(ordered: Array) -> Array:
    return np.maximum.accumulate(ordered * np.arange(ordered.size, 0, -1))


def _step_up(scaled: Array) -> Array:
    return np.minimum.accumulate(scaled[::-1])[::-1]


def _false_discovery(ordered: Array) -> Array:
    return _step_up(ordered * ordered.size / np.arange(1, ordered.size + 1))


_ADJUSTERS: dict[Adjustment, Callable[[Array], Array]] = {
    Adjustment.NONE: lambda p: p,
    Adjustment.BONFERRONI: lambda p: p * p.size,
    Adjustment.HOLM: _step_down,
    Adjustment.HOCHBERG: lambda p: _step_up(p * np.arange(p.size, 0, -1)),
    Adjustment.BENJAMINI_HOCHBERG: _false_discovery,
    Adjustment.BENJAMINI_YEKUTIELI: lambda p: _false_discovery(p) * (1.0 / np.arange(1, p.size + 1)).sum(),
}


def adjust(p_values: Array, method: Adjustment = Adjustment.HOLM) -> Array:
    """Adjusted p-values, at most 1, to be compared with the level of the whole family; not for MAX_T."""
    p = np.asarray(p_values, dtype=np.float64)
    present = np.flatnonzero(~np.isnan(p))
    adjusted = np.full(p.shape, np.nan)
    if present.size:
        order = present[np.argsort(p[present], kind="stable")]
        adjusted[order] = np.minimum(_ADJUSTERS[method](p[order]), 1.0)
    return adjusted


def adjust_jointly(p_values: Array, deviations: Array) -> Array:
    """Max-T adjusted p-values (m): never above Holm's, whose bound needs no draws, and never below p itself.

    Args:
        p_values: (m), two-sided.
        deviations: (B, m) joint draws of what was tested, about their means in standard deviations.
    """
    present = np.flatnonzero(~np.isnan(p_values))
    adjusted = np.full(p_values.shape, np.nan)
    if present.size:
        p = p_values[present]
        statistics = -normal_quantile(np.maximum(p, _SMALLEST) / 2.0)
        found = max_t_adjust(statistics, np.abs(deviations[:, present]))
        adjusted[present] = np.clip(found, p, adjust(p))
    return adjusted


def max_t_adjust(statistics: Array, null_draws: Array) -> Array:
    """Step-down max-T adjusted p-values (m) from joint draws under the null. Westfall & Young (1993), algorithm 2.8.

    Sharper than Holm where the statistics are correlated, as those of runs on one test set are.

    Args:
        statistics: (m), larger is more extreme, no NaN.
        null_draws: (B, m) draws of the same statistics when no hypothesis is false: permutations, or bootstrap
            deviations.
    """
    order = np.argsort(-statistics, kind="stable")
    # Largest draw among this hypothesis and all that come after it.
    rivals = np.maximum.accumulate(null_draws[:, order[::-1]], axis=1)[:, ::-1]
    extreme = (rivals >= statistics[order] * (1.0 - 1e-12)).sum(axis=0)
    adjusted = np.empty(statistics.shape)
    adjusted[order] = np.maximum.accumulate((1.0 + extreme) / (1.0 + null_draws.shape[0]))
    return adjusted
