"""The Stolarsky mean of two numbers, through logarithms, so that its limits are passed smoothly."""

import numpy as np

from app.kernel.numerics.arrays import Array

# Below this distance of the two powers the mean is its own limit; the difference quotient would lose half its digits.
_NEARLY_EQUAL = 1e-5
_SMALL = 0.1


def stolarsky_mean(parts: Array, p: float, q: float) -> Array:
    """(q (x^p - y^p) / (p (x^q - y^q)))^(1/(p - q)) of the two numbers on the last axis, none of them below 0.

    With x = m e^t and y = m e^-t, m their geometric mean, the logarithm of the mean is ln m + (L(pt) - L(qt))/(p - q)
    with L(z) = ln(sinh z / z): there is no division by 0 left but that by p - q. Stolarsky (1975); the limits for
    powers of 0, equal powers and equal numbers as in Czinder & Pales (2006). A number that is 0 is read as the limit
    from above.
    """
    first, second = np.log(parts[..., 0]), np.log(parts[..., 1])
    t = np.abs(first - second) / 2.0
    if abs(p - q) < _NEARLY_EQUAL:
        spread = t * _log_sinhc_slope((p + q) / 2.0 * t)
    else:
        spread = (_log_sinhc(p * t) - _log_sinhc(q * t)) / (p - q)
    inside = np.exp((first + second) / 2.0 + spread)
    at_ends = np.where(np.isinf(parts).any(axis=-1), 1.0 / _beside_zero(1.0 / parts, -p, -q), _beside_zero(parts, p, q))
    return np.where(np.isinf(t), at_ends, np.where(first == second, parts[..., 0], inside))


def _beside_zero(parts: Array, p: float, q: float) -> Array:
    """The limit when one number tends to 0: a multiple of the other for two powers above 0, else 0."""
    highest = parts.max(axis=-1)
    if min(p, q) <= 0.0:
        return np.zeros_like(highest)
    exponent = -2.0 / (p + q) if abs(p - q) < _NEARLY_EQUAL else (np.log(q) - np.log(p)) / (p - q)
    found: Array = highest * np.exp(exponent)
    return found


def _log_sinhc(z: Array) -> Array:
    """ln(sinh z / z), an even function; by its series where the quotient is near 1."""
    size = np.abs(z)
    square = size * size
    series = square / 6.0 * (1.0 - square / 30.0 * (1.0 - square * (4.0 / 63.0) * (1.0 - square * 0.075)))
    large = size + np.log(-np.expm1(-2.0 * size) / (2.0 * size))
    return np.where(size < _SMALL, series, large)


def _log_sinhc_slope(z: Array) -> Array:
    """Its derivative coth z - 1/z."""
    square = z * z
    series = z / 3.0 * (1.0 - square / 15.0 * (1.0 - square * (2.0 / 21.0) * (1.0 - square * 0.1)))
    return np.where(np.abs(z) < _SMALL, series, 1.0 / np.tanh(z) - 1.0 / z)
