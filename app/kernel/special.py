"""The special functions that numpy lacks.

The only file that knows scipy, which it loads at first use: the import takes 0.2 s.
"""

from functools import cache
from types import ModuleType

import numpy as np

from app.kernel.numerics import TINY, Array


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


def binomial_upper_tail(successes: Array, trials: Array, failure: Array) -> Array:
    """P(Bin(trials, 1 - failure) >= successes) through the incomplete beta function: any size, real counts allowed.

    It takes the probability of a failure: where that is tiny the probability of a success has lost its digits.
    """
    tail: Array = _scipy().betaincc(trials - successes + 1.0, np.maximum(successes, TINY), failure)
    return np.where(successes > 0, tail, 1.0)


def normal_cdf(value: Array | float) -> Array:
    """Standard normal distribution function, any shape."""
    values: Array = _scipy().ndtr(value)
    return values
