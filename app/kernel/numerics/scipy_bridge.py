"""Special functions, isotonic regression, matchings, integer programmes and distances by scipy.

This is the only module that imports scipy, and it does so at first use: the import takes 0.2 s.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kernel.numerics.arrays import TINY, Array, every, some


def _special(name: str) -> Callable[..., Array]:
    """A function of `scipy.special`: elementwise, of arrays and numbers that are broadcast."""

    def values(*arguments: Array | float) -> Array:
        import scipy.special

        found: Array = getattr(scipy.special, name)(*arguments)
        return found

    return values


def normal_quantile(probability: Array | float) -> Array:
    """Standard normal quantile, any shape; -inf at 0 and inf at 1."""
    return _special("ndtri")(probability)


def normal_cdf(value: Array | float) -> Array:
    """Standard normal distribution function, any shape."""
    return _special("ndtr")(value)


def beta_quantile(a: Array, b: Array, probability: Array | float) -> Array:
    """Quantile of Beta(a, b), broadcast over its arguments."""
    return _special("betaincinv")(a, b, probability)


def incomplete_beta(a: Array | float, b: Array | float, x: Array | float) -> Array:
    """I_x(a, b), the distribution function of Beta(a, b), broadcast over its arguments."""
    return _special("betainc")(a, b, x)


def incomplete_beta_complement(a: Array, b: Array, x: Array) -> Array:
    """1 - I_x(a, b), broadcast over its arguments, with all its digits where it is small."""
    return _special("betaincc")(a, b, x)


_log_gamma = _special("gammaln")


def binomial_upper_tail(successes: Array, trials: Array, success: Array, failure: Array) -> Array:
    """P(Bin(trials, success) >= successes) through the incomplete beta function, for any size and real counts.

    Both probabilities are given: the smaller one has all its digits, and scipy is ten times as fast with a small
    success probability.
    """
    hits, misses = successes + TINY, trials - successes + 1.0
    rare = success <= 0.5
    if every(rare):
        return incomplete_beta(hits, misses, success)
    tail = incomplete_beta_complement(misses, hits, failure)
    return np.where(rare, incomplete_beta(hits, misses, success), tail) if some(rare) else tail


def chi_squared_upper_tail(value: Array | float, freedom: Array | float) -> Array:
    """P(X >= value) of a chi-squared variable."""
    return _special("chdtrc")(freedom, value)


def f_upper_tail(value: Array | float, numerator: Array | float, denominator: Array | float) -> Array:
    """P(X >= value) of an F variable with these degrees of freedom."""
    return _special("fdtrc")(numerator, denominator, value)


def student_cdf(value: Array | float, freedom: Array | float) -> Array:
    """P(X <= value) of Student's t."""
    return _special("stdtr")(freedom, value)


def student_quantile(probability: Array | float, freedom: Array | float) -> Array:
    """Quantile of Student's t."""
    return _special("stdtrit")(freedom, probability)


def fair_binomial_cdf(successes: Array | float, trials: Array | float) -> Array:
    """P(Bin(trials, 1/2) <= successes), 0 below 0 successes."""
    x, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    tail = incomplete_beta(np.maximum(n - x, TINY), np.maximum(x, 0.0) + 1.0, 0.5)
    return np.where(x < 0, 0.0, np.where(x >= n, 1.0, tail))


def fair_binomial_mass(successes: Array | float, trials: Array | float) -> Array:
    """P(Bin(trials, 1/2) = successes)."""
    x, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    mass: Array = np.exp(log_factorial(n) - log_factorial(x) - log_factorial(n - x) - n * np.log(2.0))
    return mass


def log_factorial(values: Array) -> Array:
    """ln(x!) by the gamma function, also between whole numbers."""
    return _log_gamma(values + 1.0)


def matching(worth: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of the entries of a table (R, S) with the largest sum of which no two share one (Kuhn 1955)."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(worth, maximize=True)
    return rows, columns


def falling_means(sums: Array, weights: ArrayLike) -> Array:
    """Isotonic regression: the falling values (D, m) nearest to the means of m cells in order, in each of D series.

    Args:
        sums: (D, m).
        weights: (m) or (D, m), positive.
    """
    from scipy.optimize import isotonic_regression

    rows = zip(sums, np.broadcast_to(weights, sums.shape), strict=True)
    return np.stack([isotonic_regression(own / mass, weights=mass, increasing=False).x for own, mass in rows])


# Rows for which the search for a matching takes about a second: it grows with their square.
_MOST_ROWS = 20_000


def best_matching(rows: NDArray[np.intp], columns: NDArray[np.intp], worth: Array) -> NDArray[np.intp] | None:
    """Places of the entries (C) of a sparse table with the largest sum of which no two share a row or a column.

    An entry that is worth at least what the next best of its row and of its column are together belongs to a best
    matching. These are taken first, until none is left; what is not decided so is a problem of assignment. None where
    too many rows are left for that.

    Args:
        rows: Row (C) of each entry; no entry is there twice.
        columns: Its column.
        worth: (C), 0 or more.
    """
    left, chosen = np.flatnonzero(worth > 0), [np.empty(0, dtype=np.intp)]
    while left.size:
        own = worth[left]
        sure = own >= _next_best(rows[left], own) + _next_best(columns[left], own)
        # Of equals in a row or a column the first is taken.
        sure[sure] = _first_of(rows[left][sure]) & _first_of(columns[left][sure])
        if not sure.any():
            break
        taken = left[sure]
        chosen.append(taken)
        free_row, free_column = np.ones(rows.max() + 1, np.bool_), np.ones(columns.max() + 1, np.bool_)
        free_row[rows[taken]] = free_column[columns[taken]] = False
        left = left[free_row[rows[left]] & free_column[columns[left]]]
    if left.size:
        found = _assigned(rows[left], columns[left], worth[left])
        if found is None:
            return None
        chosen.append(left[found])
    return np.concatenate(chosen)


def _next_best(codes: NDArray[np.intp], worth: Array) -> Array:
    """Return for each entry (C) the largest other one of its code, 0 where there is none."""
    order = np.lexsort((-worth, codes))
    ordered, sizes = codes[order], worth[order]
    first = np.append(True, ordered[1:] != ordered[:-1])
    start = np.flatnonzero(first)[np.cumsum(first) - 1]
    second = np.minimum(start + 1, codes.size - 1)
    runner_up = np.where(ordered[second] == ordered, sizes[second], 0.0) * (second > start)
    found = np.empty_like(worth)
    found[order] = np.where(first, runner_up, sizes[start])
    return found


def _first_of(codes: NDArray[np.intp]) -> NDArray[np.bool_]:
    first = np.zeros(codes.size, dtype=np.bool_)
    first[np.unique(codes, return_index=True)[1]] = True
    return first


def _assigned(rows: NDArray[np.intp], columns: NDArray[np.intp], worth: Array) -> NDArray[np.intp] | None:
    """Places of the entries (C) of a best matching by shortest augmenting paths."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    (names, row), (others, column) = (np.unique(codes, return_inverse=True) for codes in (rows, columns))
    if names.size > _MOST_ROWS:
        return None
    # A column of its own for every row, worth nothing, lets it go without a match. A cost of 0 would be no entry.
    alone, highest = np.arange(names.size), 2.0 * float(worth.max())
    costs = np.concatenate([highest - worth, np.full(names.size, highest)])
    places = np.concatenate([row, alone]), np.concatenate([column, others.size + alone])
    graph = coo_array((costs, places), shape=(names.size, others.size + names.size)).tocsr()
    matched = np.stack(min_weight_full_bipartite_matching(graph))
    matched = matched[:, matched[1] < others.size]
    key = row * others.size + column
    order = np.argsort(key)
    found: NDArray[np.intp] = order[np.searchsorted(key[order], matched[0] * others.size + matched[1])]
    return found


def find_integers(
    rows: Array, low: Array, high: Array, upper: Array, *, least: Array | None = None, seconds: float = 20.0
) -> Array | None:
    """Integers x (V) with 0 <= x <= upper (V) and low (S) <= rows (S, V) x <= high (S); None when there are none.

    With ``least`` (V), an x whose product ``least`` x is the smallest, to a part in a million.

    The solver allows violations of 1e-6, so give it rows whose largest number is about 1, and verify a solution.

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
        options={"time_limit": seconds, "mip_rel_gap": 1e-6},
    )
    if answer.status == 2:  # infeasible
        return None
    if answer.status == 1 and (answer.x is None or least is not None):
        raise TimeoutError(f"no answer within {seconds:g} seconds")
    if answer.x is None:
        raise RuntimeError(f"the integer search did not finish: {answer.message}")
    found: Array = np.round(answer.x)
    return found


def root_between(function: Callable[[float], float], start: float, end: float) -> float:
    """Root of a continuous function whose values at both ends differ in sign; they may be infinite. Brent (1973)."""
    from scipy.optimize import brentq

    return float(brentq(function, start, end, xtol=1e-14))


# Cosines that differ less from 1 are those of one direction.
_ONE_DIRECTION = 1e-15


def distances(rows: Array, others: Array, kind: str = "euclidean") -> Array:
    """Distances (m, n) of points (m, d) from points (n, d): euclidean and manhattan from differences, so that equal
    points are 0 apart; cosine 1 less that of the angle, NaN of a point at 0.
    """
    from scipy.spatial.distance import cdist

    found: Array = cdist(rows, others, "cityblock" if kind == "manhattan" else kind)
    # Of one direction a rounding is left.
    return np.where(np.abs(found) <= _ONE_DIRECTION, 0.0, found) if kind == "cosine" else found
