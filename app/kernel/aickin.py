"""Aickin's alpha: the mixture of cases that are agreed on for a reason and cases that are agreed on by chance.

Aickin (1990): p_e = sum a_k b_k, alpha = (p_o - p_e)/(1 - p_e), a_k = A_k/(1 - alpha + alpha b_k/p_e),
b_k = B_k/(1 - alpha + alpha a_k/p_e) with A and B the predicted and the actual class shares. The published iteration takes thousands
of steps when agreement is good. Here alpha alone is searched: given alpha, p_e = (p_o - alpha)/(1 - alpha), and each b_k solves a
quadratic since (1 - alpha)(a_k - b_k) = A_k - B_k. What is left is that the b_k are shares and sum to 1.
"""

from collections.abc import Callable

import numpy as np

from app.kernel.numerics import Array, each, total
from app.kernel.roots import newton_root, rising_root, solve_where

_ROUGH_STEPS = 400
_ROUGHLY = 1e-5
# How far the refined alpha may be from where the iteration stood: further away it is another solution.
_NEAR = 1e-2
_ROUNDING = 1e-14

Equation = Callable[[Array], tuple[Array, Array]]


def alpha(actual: Array, predicted: Array, observed: Array, kappa: Array) -> Array:
    """Alpha (...) from class shares (..., K), p_o (...) and Cohen's kappa (...); NaN where kappa is, or nothing solves the equations.

    Where all confusions go one way between the classes no agreement by chance is left: p_e -> 0 and the iteration tends to p_o.
    """
    under_predicted = total(np.maximum(actual - predicted, 0.0))
    one_way = (kappa > 0) & (under_predicted >= (1.0 - observed) * (1.0 - _ROUNDING))
    above = (kappa > 0) & ~one_way
    below = kappa < 0
    solution = np.where(one_way, observed, kappa)
    if above.any():
        solution = np.where(above, solve_where(above, above_chance, actual, predicted, observed, kappa), solution)
    if below.any():
        solution = np.where(below, solve_where(below, below_chance, actual, predicted, observed), solution)
    return solution


def above_chance(actual: Array, predicted: Array, observed: Array, kappa: Array) -> Array:
    """Alpha where kappa > 0.

    sum b_k exceeds 1 at kappa, and at p_o it is sum max(B_k - A_k, 0) / (1 - p_o) < 1: there is a root between them.
    """
    middle = (kappa + observed) / 2.0
    return rising_root(_equation(actual, predicted, observed, None), middle, low=kappa, high=observed)


def below_chance(actual: Array, predicted: Array, observed: Array) -> Array:
    """Alpha where kappa < 0: the solution that the published iteration finds, NaN where it does not settle.

    Its quadratics may have two positive roots each, so the iteration has to say which ones are meant before they are refined.
    """
    rough, b = _iterate(actual, predicted, observed)
    linear = (predicted - actual) * each(rough / (1.0 - rough)) + each(observed - rough)
    branch = np.sign(2.0 * each(rough) * b + linear)
    return newton_root(_equation(actual, predicted, observed, branch), rough, near=_NEAR)


def _iterate(actual: Array, predicted: Array, observed: Array) -> tuple[Array, Array]:
    """The published iteration until alpha roughly stands: alpha (...) and b (..., K)."""
    a, b = predicted, actual
    rough = np.zeros_like(observed)
    for _ in range(_ROUGH_STEPS):
        chance = total(a * b)
        before, rough = rough, (observed - chance) / (1.0 - chance)
        free, pull = each(1.0 - rough), each(rough / chance)
        a = predicted / (free + pull * b)
        b = actual / (free + pull * a)
        if not (np.abs(rough - before) > _ROUGHLY).any():
            break
    return rough, b


def _equation(actual: Array, predicted: Array, observed: Array, branch: Array | None) -> Equation:
    """(1 - sum b_k) / alpha and its derivative; without the division alpha = 0 would be a root, which is none of the model's."""
    gap = predicted - actual

    def missing_share(alpha: Array) -> tuple[Array, Array]:
        free = 1.0 - alpha
        chance = (observed - alpha) / free
        linear = gap * each(alpha / free) + each(observed - alpha)
        root = np.sqrt(linear * linear + actual * each(4.0 * alpha * chance))
        if branch is None:
            b = actual * each(2.0 * chance) / (linear + root)
        else:
            root = root * branch
            b = np.where(linear * root > 0, actual * each(2.0 * chance) / (linear + root), (root - linear) / each(2.0 * alpha))
        # B_k - b_k = alpha b_k (a_k/p_e - 1), summed: the quotient without dividing a rounded difference by alpha.
        value = total(b * ((b + gap * each(1.0 / free)) / each(chance) - 1.0))
        square = free * free
        slope = total((b * (b - 1.0 + gap * each(1.0 / square)) + actual * each((1.0 - observed) / square)) / root)
        return value, (slope - value) / alpha

    return missing_share
