"""Runs that were cross-validated on the same folds: tests that know that the folds share training data."""

import numpy as np

from app.kernel.compare.folds import bayesian_correlated_t, corrected_t
from app.kernel.numerics.arrays import Array
from app.services.estimands import Better, Preference
from app.services.json_values import Json, plain


def fold_test(first: Array, second: Array, better: Preference | None, *, level: float, rope: float) -> Json | None:
    """Corrected t and its Bayesian counterpart from values (F) of two runs; None where a fold has no value.

    The test share is that of F folds, 1/F.
    """
    gaps = first - second
    if not np.isfinite(gaps).all():
        return None
    share = 1.0 / gaps.size
    found = corrected_t(gaps, share, level)
    scores = -gaps if better is not None and better.better is Better.LOWER else gaps
    second_better, equivalent, first_better = bayesian_correlated_t(scores, share, rope)
    return {
        "mean_difference": plain(found.mean),
        "low": plain(found.low),
        "high": plain(found.high),
        "statistic": plain(found.statistic),
        "df": found.freedom,
        "p_value": plain(found.p),
        "probability_a_better": plain(first_better),
        "probability_equivalent": plain(equivalent),
        "probability_b_better": plain(second_better),
        "method": "corrected_resampled_t, bayesian_correlated_t",
    }
