"""Runs that were cross-validated on the same folds: tests that know that the folds share training data."""

from dataclasses import dataclass

import numpy as np

from app.kernel.compare.folds import bayesian_correlated_t, corrected_t
from app.kernel.numerics.arrays import Array
from app.services.estimands import Better, Preference


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldTest:
    """a less b over the folds.

    Attributes:
        df: Degrees of freedom of the statistic.
        probability_a_better: By more than the region of equivalence.
    """

    mean_difference: float
    low: float | None
    high: float | None
    statistic: float | None
    df: int
    p_value: float | None
    probability_a_better: float
    probability_equivalent: float
    probability_b_better: float
    method: str = "corrected_resampled_t, bayesian_correlated_t"


def fold_test(first: Array, second: Array, better: Preference | None, *, level: float, rope: float) -> FoldTest | None:
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
    return FoldTest(
        mean_difference=found.mean,
        low=found.low,
        high=found.high,
        statistic=found.statistic,
        df=found.freedom,
        p_value=found.p,
        probability_a_better=first_better,
        probability_equivalent=equivalent,
        probability_b_better=second_better,
    )
