"""Special functions, integer programmes and distances by scipy.

This is the only module that imports scipy, and it does so at first use: the import takes 0.2 s.
"""

from functools import cache
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import TINY, Array, every, some


@cache
def _scipy() -> ModuleType:
    import scipy.special

    module: ModuleType = scipy.special
    return module


def normal_quantile(probability: Array | float) -> Array:
    """Standard normal quantile, any shape; -inf at 0 and inf at 1."""
    values: Array = _scipy().ndtri(probability)
    return values


def beta_quantile(a: Array, b: Array, probability: Array | float) -> Array:
    """Quantile of Beta(a, b), broadcast over its arguments."""
    values: Array = _scipy().betaincinv(a, b, probability)
    return values


def binomial_upper_tail(successes: Array, trials: Array, success: Array, failure: Array) -> Array:
    """P(Bin(trials, success) >= successes) through the incomplete beta function, for any size and real counts.

    Both probabilities are given: the smaller one has all its digits, and scipy is ten times as fast with a small
    success probability.
    """
    hits, misses = successes + TINY, trials - successes + 1.0
    rare = success <= 0.5
    if every(rare):
        tail: Array = _scipy().betainc(hits, misses, success)
    else:
        tail = _scipy().betaincc(misses, hits, failure)
        if some(rare):
            tail = np.where(rare, _scipy().betainc(hits, misses, success), tail)
    return tail


def normal_cdf(value: Array | float) -> Array:
    """Standard normal distribution function, any shape."""
    values: Array = _scipy().ndtr(value)
    return values


def chi_squared_upper_tail(value: Array | float, freedom: Array | float) -> Array:
    """P(X >= value) of a chi-squared variable."""
    tail: Array = _scipy().chdtrc(freedom, value)
    return tail


def f_upper_tail(value: Array | float, numerator: Array | float, denominator: Array | float) -> Array:
    """P(X >= value) of an F variable with these degrees of freedom."""
    tail: Array = _scipy().fdtrc(numerator, denominator, value)
    return tail


def student_cdf(value: Array | float, freedom: Array | float) -> Array:
    """P(X <= value) of Student's t."""
    values: Array = _scipy().stdtr(freedom, value)
    return values


def student_quantile(probability: Array | float, freedom: Array | float) -> Array:
    """Quantile of Student's t."""
    values: Array = _scipy().stdtrit(freedom, probability)
    return values


def fair_binomial_cdf(successes: Array | float, trials: Array | float) -> Array:
    """P(Bin(trials, 1/2) <= successes), 0 below 0 successes."""
    x, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    tail: Array = _scipy().betainc(np.maximum(n - x, TINY), np.maximum(x, 0.0) + 1.0, 0.5)
    return np.where(x < 0, 0.0, np.where(x >= n, 1.0, tail))


def fair_binomial_mass(successes: Array | float, trials: Array | float) -> Array:
    """P(Bin(trials, 1/2) = successes)."""
    log_factorial = _scipy().gammaln
    x, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    logarithm = log_factorial(n + 1.0) - log_factorial(x + 1.0) - log_factorial(n - x + 1.0) - n * np.log(2.0)
    mass: Array = np.exp(logarithm)
    return mass


def log_factorial(values: Array) -> Array:
    """ln(x!) by the gamma function, also between whole numbers."""
    found: Array = _scipy().gammaln(values + 1.0)
    return found


def incomplete_beta(a: float, b: float, x: Array) -> Array:
    """Regularised incomplete beta function I_x(a, b): the distribution function of Beta(a, b), elementwise in x."""
    values: Array = _scipy().betainc(a, b, x)
    return values


def matching(worth: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of the entries of a table (R, S) with the largest sum of which no two share one (Kuhn 1955)."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(worth, maximize=True)
    return rows, columns


def best_matching(worth: Array) -> Array:
    """Largest sum (...) of entries of each table (..., R, S) of which no two share a row or a column."""
    tables = worth.reshape(-1, *worth.shape[-2:])
    return np.array([one[matching(one)].sum() for one in tables]).reshape(worth.shape[:-2])


def find_integers(
    rows: Array, low: Array, high: Array, upper: Array, *, least: Array | None = None, seconds: float = 20.0
) -> Array | None:
    """Integers x (V) with 0 <= x <= upper (V) and low (S) <= rows (S, V) x <= high (S); None when there are none.

    With ``least`` (V), the x with the smallest product ``least`` x.

    The solver allows a small violation, so verify a solution. An answer of None is exact.

    Raises:
        TimeoutError: no answer within ``seconds``.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    count = upper.size
    answer = milp(
        np.zeros(count) if least is None else least,
        constraints=LinearConstraint(rows, low, high),
        integrality=np.ones(count),
        bounds=Bounds(np.zeros(count), upper),
        options={"time_limit": seconds},
    )
    if answer.status == 2:  # infeasible
        return None
    if answer.status == 1 and (answer.x is None or least is not None):
        raise TimeoutError(f"no answer within {seconds:g} seconds")
    if answer.x is None:
        raise RuntimeError(f"the integer search did not finish: {answer.message}")
    found: Array = np.round(answer.x)
    return found


def euclidean_distances(rows: Array, others: Array) -> Array:
    """Euclidean distances (m, n) of points (m, d) from points (n, d), from differences: equal points are 0 apart."""
    from scipy.spatial.distance import cdist

    distances: Array = cdist(rows, others)
    return distances
