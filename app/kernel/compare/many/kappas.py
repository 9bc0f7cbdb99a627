"""Have runs on different samples the same kappa?"""

import numpy as np

from app.kernel.compare.paired.drift import ChiSquared
from app.kernel.matrix.gradient import additive_variance, stack
from app.kernel.matrix.table import Table
from app.kernel.metrics.families.overall.agreement import cohen_kappa
from app.kernel.numerics.arrays import Array, silently
from app.kernel.numerics.special import chi_squared_upper_tail


def equal_kappas(counts: Array) -> ChiSquared | None:
    """The chi-squared test that independent runs (R, K, K) have one kappa; of two runs the square of their z test.

    Sum of (kappa_i - mean)^2 / v_i with the mean weighted by 1 / v_i (Fleiss, Levin & Paik 2003, section 18.1); v_i is
    the variance of Fleiss, Cohen & Everitt (1969).

    Returns:
        None where a kappa does not exist, or has no variance.
    """
    gradient = cohen_kappa.card.inference.gradient
    assert gradient is not None  # noqa: S101 - it is smooth
    table = Table(counts)
    with silently():
        kappas = np.asarray(cohen_kappa(table))
        (variances,) = additive_variance(table, stack([gradient(table)]))
        weights = 1.0 / variances
        statistic = float(weights @ np.square(kappas - weights @ kappas / weights.sum()))
    if not np.isfinite(statistic):
        return None
    freedom = len(counts) - 1
    return ChiSquared(statistic, freedom, float(chi_squared_upper_tail(statistic, freedom)))
