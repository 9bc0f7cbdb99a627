"""Aickin's alpha: the mixture of cases that are agreed on for a reason and cases that are agreed on by chance.

Aickin (1990): p_e = sum a_k b_k, alpha = (p_o - p_e)/(1 - p_e), a_k = A_k/(1 - alpha + alpha b_k/p_e),
b_k = B_k/(1 - alpha + alpha a_k/p_e) with A and B the predicted and the actual class shares. The published iteration
takes thousands of steps when agreement is good. Here alpha alone is searched. With tau = alpha/((p_o - alpha)(1 -
alpha)) and u_k = (1 - alpha) b_k the equations become tau u_k^2 + (1 + tau g_k) u_k = B_k, g = A - B, one quadratic
per class, and (1 - alpha) a_k = u_k + g_k. Where g_k < 0 the equation of the other side has the same form with A_k and
-g_k, so with w_k the smaller of the two: tau w_k^2 + (1 + tau |g_k|) w_k = min(A_k, B_k), where nothing is
subtracted. What is left is alpha = tau sum w_k (w_k + |g_k|).

Alpha is the share of the cases that are agreed on for a reason. Below chance (kappa < 0) there is none: some numbers
solve the equations there, above 1 among them, but none is a share.
"""

from collections.abc import Callable

import numpy as np

from app.kernel.numerics.arrays import ONE, Array, Mask, each, every, inner, some, total
from app.kernel.numerics.roots import newton_root, rising_root, solve_where

# Kappas and sums of shares this near to their ends differ from them by rounding.
_ROUNDING = 1e-14
_NEAR_KAPPA = 0.1

Equation = Callable[[Array], tuple[Array, Array]]


def is_below_chance(kappa: Array) -> Mask:
    """Where Cohen's kappa (...) is negative by more than rounding."""
    return kappa < -_ROUNDING


def alpha(actual: Array, predicted: Array, observed: Array, kappa: Array) -> Array:
    """Alpha (...) from class shares (..., K), p_o (...) and Cohen's kappa (...); NaN below chance.

    Where all confusions go one way between the classes no agreement by chance is left: p_e -> 0 and the iteration tends
    to p_o.
    """
    under_predicted = total(np.abs(predicted - actual)) / 2.0
    above = kappa > _ROUNDING
    one_way = above & (under_predicted >= 1.0 - observed - _ROUNDING)
    above = above & ~one_way
    if every(above):
        return above_chance(actual, predicted, observed, kappa)
    solution = np.where(one_way, observed, np.where(np.abs(kappa) <= _ROUNDING, 0.0, np.nan))
    if some(above):
        solution = np.where(above, solve_where(above, above_chance, actual, predicted, observed, kappa), solution)
    return solution


def above_chance(actual: Array, predicted: Array, observed: Array, kappa: Array) -> Array:
    """Alpha where kappa > 0.

    sum b_k is at least 1 at kappa, and at p_o it is sum max(B_k - A_k, 0) / (1 - p_o) < 1: there is a root between
    them, mostly near kappa and with even margins kappa itself.
    """
    equation, start = _equation(actual, predicted, observed), kappa + _NEAR_KAPPA * (observed - kappa)
    low = kappa * (1.0 - 10.0 * _ROUNDING)
    root = newton_root(equation, start, low=low, high=observed)
    missed = np.isnan(root)
    return np.where(missed, rising_root(equation, start, low=low, high=observed), root) if some(missed) else root


def _equation(actual: Array, predicted: Array, observed: Array) -> Equation:
    """1 - alpha/(tau sum w_k (w_k + |g_k|)), nearly straight, and its derivative."""
    gap, smaller = np.abs(predicted - actual), np.minimum(predicted, actual)
    fourfold = 4.0 * smaller

    def lacking(alpha: Array) -> tuple[Array, Array]:
        free, missing = ONE - alpha, observed - alpha
        rest = free * missing
        # The quadratic over tau: w^2 + (|g| + 1/tau) w = min(A, B) / tau.
        spare = rest / alpha
        rarity = each(spare)
        linear, source = gap + rarity, fourfold * rarity
        root = np.sqrt(linear * linear + source)
        w = 0.5 * source / (linear + root)
        product = w * (w + gap)
        joint = total(product)
        # (u v)' = -u v (u + v) / (tau root) by tau.
        fall = inner(product / root, w + w + gap)
        # (rest)' = -(free + missing) by alpha.
        both, share = free + missing, rest / joint
        return ONE - share, (both - fall / joint * (spare + both)) / joint

    return lacking
