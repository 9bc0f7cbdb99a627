"""Curves of equal means through a point of the ROC plane, as data for figures."""

from dataclasses import dataclass, field

import numpy as np

from app.domain.members import typed
from app.kernel.matrix.h_mean_bounds import isocurve_a, isocurve_g, isocurve_h
from app.kernel.numerics.arrays import Array, geometric_mean, harmonic_mean, mean, silently


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Isocurve:
    """All points with one value of a mean.

    Attributes:
        level: The value of the mean.
        tpr: Sensitivity at each false positive rate; `null` where none reaches the value.
    """

    level: float
    tpr: Array = field(metadata=typed(list[float | None]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Isocurves:
    """Curves of equal means of sensitivity and specificity through a point.

    Attributes:
        tpr: Sensitivity of the point.
        tnr: Its specificity.
        fpr: False positive rates, from 0 to 1.
    """

    tpr: float
    tnr: float
    fpr: Array = field(metadata=typed(list[float]))
    balanced_accuracy: Isocurve
    g_mean: Isocurve
    h_mean: Isocurve


def isocurves(tpr: float, tnr: float, steps: int) -> Isocurves:
    """The arithmetic, geometric and harmonic mean: Aguilar-Ruiz (2025), sec. 5 and figure 1."""
    point, fpr = np.array([tpr, tnr]), np.linspace(0.0, 1.0, steps)
    with silently():
        a, g, h = float(mean(point)), float(geometric_mean(point)), float(harmonic_mean(point))
    return Isocurves(
        tpr=tpr,
        tnr=tnr,
        fpr=fpr,
        balanced_accuracy=_within(a, isocurve_a(a, fpr)),
        g_mean=_within(g, isocurve_g(g, fpr)),
        h_mean=_within(h, isocurve_h(h, fpr)),
    )


def _within(level: float, tpr: Array) -> Isocurve:
    # A rate of 1 may come out a rounding above it.
    return Isocurve(level=level, tpr=np.where((tpr >= 0.0) & (tpr <= 1.0 + 1e-12), tpr, np.nan))
