"""Scores of two models from resampling one data set: folds share training data, so their differences are not
independent.
"""

import math
from dataclasses import dataclass

import numpy as np

from app.kernel.numerics.arrays import Array
from app.kernel.numerics.special import f_upper_tail, student_cdf, student_quantile

# Equal differences keep a spread of this size, relative, from rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class CorrectedT:
    """The t test of a mean difference with the variance corrected for overlapping training sets."""

    mean: float
    statistic: float
    freedom: int
    p: float
    low: float
    high: float


def corrected_t(differences: Array, test_share: float, level: float = 0.95) -> CorrectedT:
    """Corrected resampled t test. Nadeau & Bengio (2003).

    t = mean / sqrt((1/J + n_test/n_train) s^2) with J - 1 degrees of freedom, for J folds of any number of
    repetitions. Differences without spread have p 1 when they are 0, else NaN.

    Args:
        differences: (J) score of the first model less that of the second.
        test_share: n_test / (n_test + n_train): 1/k for k folds in each repetition, however many of these there are.
        level: of the interval.

    Raises:
        ValueError: fewer than two differences, or a share outside (0, 1).
    """
    mean, scale, freedom = _location(differences, test_share)
    if scale == 0.0:
        nothing = float("nan")
        return CorrectedT(mean, nothing, freedom, 1.0 if mean == 0 else nothing, nothing, nothing)
    t = mean / scale
    spread = float(student_quantile((1.0 + level) / 2.0, freedom)) * scale
    return CorrectedT(mean, t, freedom, float(2.0 * student_cdf(-abs(t), freedom)), mean - spread, mean + spread)


def bayesian_correlated_t(differences: Array, test_share: float, rope: float = 0.0) -> tuple[float, float, float]:
    """Posterior probabilities that the second model is better, that both are equivalent, that the first is. Corani &
    Benavoli (2015).

    The mean difference is Student(J - 1, mean, (1/J + rho/(1 - rho)) s^2) with rho the test share.

    Raises:
        ValueError: as ``corrected_t``.
    """
    mean, scale, freedom = _location(differences, test_share)
    if scale == 0.0:
        return float(mean < -rope), float(-rope <= mean <= rope), float(mean > rope)
    left = float(student_cdf((-rope - mean) / scale, freedom))
    right = float(student_cdf((mean - rope) / scale, freedom))
    return left, max(1.0 - left - right, 0.0), right


def _location(differences: Array, test_share: float) -> tuple[float, float, int]:
    if differences.size < 2:
        raise ValueError("a resampled test needs at least two differences")
    if not 0.0 < test_share < 1.0:
        raise ValueError(f"the test share must lie between 0 and 1, not {test_share}")
    deviation = float(differences.std(ddof=1))
    if deviation <= _ROUNDING * float(np.abs(differences).max()):
        deviation = 0.0
    extra = test_share / (1.0 - test_share)
    return float(differences.mean()), math.sqrt(1.0 / differences.size + extra) * deviation, differences.size - 1


def five_by_two_f(differences: Array) -> tuple[float, float]:
    """F statistic with (10, 5) degrees of freedom and p of the combined 5x2cv test. Alpaydin (1999).

    Unlike Dietterich's t it does not depend on the order of the folds in a repetition. Where no two folds of a
    repetition differ, p is 1 when all differences are 0, else NaN.

    Args:
        differences: (5, 2), repetition by fold.

    Raises:
        ValueError: another shape.
    """
    if differences.shape != (5, 2):
        raise ValueError(f"5x2 cross-validation has differences of shape (5, 2), not {differences.shape}")
    away = differences - differences.mean(axis=1, keepdims=True)
    spread, square = float((away**2).sum()), float((differences**2).sum())
    if np.abs(away).max() <= _ROUNDING * np.abs(differences).max():
        nothing = float("nan")
        return (0.0, 1.0) if square == 0.0 else (nothing, nothing)
    statistic = square / (2.0 * spread)
    return statistic, float(f_upper_tail(statistic, 10.0, 5.0))
