"""Bounds that weak classes set to the means of the recalls: Proposition 1, figures 1 and 2 of Aguilar-Ruiz (2025)."""

from collections.abc import Sequence
from decimal import ROUND_DOWN, Decimal

import numpy as np

from app.kernel.numerics.arrays import Array, silently

# Numbers of 16 digits lead to 1 as nearly as this.
_NEARLY_ONE = 1 - Decimal("1e-15")


def _written(value: float) -> Decimal:
    """Number as it is written."""
    return Decimal(repr(float(value)))


def _read(value: Decimal) -> float:
    """Number without what is rounding in the last digit of a double: 0.1125, and nothing below it."""
    return float(f"{value:.15g}")


def h_mean_upper_bound(*, classes: int, weak: int, weak_recall: float, max_recall: float) -> float:
    """Largest H when at least ``weak`` of K classes have recall <= ``weak_recall`` and none more than ``max_recall``.

    K / (m / tau + (K - m) / r_max), Proposition 1 (2); its limit 0 at tau = 0.
    """
    if weak_recall == 0 or max_recall == 0:
        return 0.0
    return classes / (weak / weak_recall + (classes - weak) / max_recall)


def critical_recall(*, classes: int, weak: int, max_recall: float, target: float) -> float | None:
    """Recall tau* of the weak classes below which H stays under ``target`` even if all others reach ``max_recall``.

    m / (K / target - (K - m) / r_max), Proposition 1 (2) solved for tau. None when the target is above ``max_recall``,
    which bounds H.
    """
    if target > max_recall:
        return None
    return _read(weak / (classes / _written(target) - (classes - weak) / _written(max_recall)))


def needed_recall(others: Sequence[float], target: float) -> float | None:
    """Recall that one more class needs for H to reach ``target`` with the recalls of the others unchanged.

    1 / (K / target - sum 1/r). None when a recall of 1 would not suffice.
    """
    if 0.0 in others:
        return None
    left = (len(others) + 1) / _written(target) - sum(1 / _written(recall) for recall in others)
    return _read(1 / left) if left >= _NEARLY_ONE else None


def isocurve_a(level: float, fpr: Array) -> Array:
    """TPR (n,) at which the arithmetic mean of TPR and 1 - FPR has a level: F + 2c - 1 (Aguilar-Ruiz 2025, sec. 5)."""
    return fpr + 2.0 * level - 1.0


def isocurve_g(level: float, fpr: Array) -> Array:
    """TPR (n,) at which the geometric mean of TPR and 1 - FPR has a level: c^2 / (1 - F)."""
    with silently():
        tpr: Array = level**2 / (1.0 - fpr)
        return tpr


def isocurve_h(level: float, fpr: Array) -> Array:
    """TPR (n,) at which the harmonic mean of TPR and 1 - FPR has a level: c (1 - F) / (2 - c - 2F), NaN from the
    asymptote F = 1 - c/2 on.
    """
    left = 2.0 - level - 2.0 * fpr
    with silently():
        return np.where(left > 0.0, level * (1.0 - fpr) / left, np.nan)


def rounded_down(value: float, decimals: int) -> float:
    """Value cut to a number of decimals: a critical recall rounded up would claim too much (4/39 = 0.10256 is not
    0.103).
    """
    return float(_written(value).quantize(Decimal(1).scaleb(-decimals), ROUND_DOWN))
