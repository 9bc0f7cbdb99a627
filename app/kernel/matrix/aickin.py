"""Aickin's alpha: the mixture of cases that are agreed on for a reason and cases that are agreed on by chance.

Aickin (1990): p_e = sum a_k b_k, alpha = (p_o - p_e)/(1 - p_e), a_k = A_k/(1 - alpha + alpha b_k/p_e),
b_k = B_k/(1 - alpha + alpha a_k/p_e) with A and B the predicted and the actual class shares. The published iteration
takes thousands of steps when agreement is good. Here alpha alone is searched. With tau = alpha/((p_o - alpha)(1 -
alpha)) and u_k = (1 - alpha) b_k the equations become tau u_k^2 + (1 + tau g_k) u_k = B_k, g = A - B, one quadratic
per class, and (1 - alpha) a_k = u_k + g_k. What is left is alpha = tau sum u_k (u_k + g_k).
"""

from collections.abc import Callable

import numpy as np

from app.kernel.numerics.arrays import ONE, Array, each, every, inner, some, total
from app.kernel.numerics.roots import newton_root, rising_root, solve_where

_ROUGH_STEPS = 400
_ROUGHLY = 1e-5
# How far the refined alpha may be from where the iteration stood: further away it is another solution.
_NEAR = 1e-2
_ROUNDING = 1e-14
_NEAR_KAPPA = 0.1

Equation = Callable[[Array], tuple[Array, Array]]


def alpha(actual: Array, predicted: Array, observed: Array, kappa: Array) -> Array:
    """Alpha (...) from class shares (..., K), p_o (...) and Cohen's kappa (...); NaN where nothing solves the
    equations.

    Where all confusions go one way between the classes no agreement by chance is left: p_e -> 0 and the iteration tends
    to p_o.
    """
    under_predicted = total(np.abs(predicted - actual)) / 2.0
    above = kappa > 0
    one_way = above & (under_predicted >= (1.0 - observed) * (1.0 - _ROUNDING))
    above = above & ~one_way
    if every(above):
        return above_chance(actual, predicted, observed, kappa)
    below = kappa < 0
    solution = np.where(one_way, observed, kappa)
    if some(above):
        solution = np.where(above, solve_where(above, above_chance, actual, predicted, observed, kappa), solution)
    if some(below):
        solution = np.where(below, solve_where(below, below_chance, actual, predicted, observed), solution)
    return solution


def above_chance(actual: Array, predicted: Array, observed: Array, kappa: Array) -> Array:
    """Alpha where kappa > 0.

    sum b_k exceeds 1 at kappa, and at p_o it is sum max(B_k - A_k, 0) / (1 - p_o) < 1: there is a root between them,
    mostly near kappa.
    """
    equation, start = _equation(actual, predicted, observed, None), kappa + _NEAR_KAPPA * (observed - kappa)
    root = newton_root(equation, start, low=kappa, high=observed)
    missed = np.isnan(root)
    return np.where(missed, rising_root(equation, start, low=kappa, high=observed), root) if some(missed) else root


def below_chance(actual: Array, predicted: Array, observed: Array) -> Array:
    """Alpha where kappa < 0: the solution that the published iteration finds, NaN where it does not settle.

    Its quadratics may have two positive roots each, so the iteration has to say which are meant before they are
    refined.
    """
    rough, b = _iterate(actual, predicted, observed)
    tau, u = _tau(rough, observed), each(1.0 - rough) * b
    branch = np.sign(2.0 * u + (predicted - actual) + 1.0 / each(tau))
    return newton_root(_equation(actual, predicted, observed, branch), rough, low=rough - _NEAR, high=rough + _NEAR)


def _iterate(actual: Array, predicted: Array, observed: Array) -> tuple[Array, Array]:
    """The published iteration until alpha roughly stands: alpha (...) and b (..., K). What stands no longer moves."""
    a, b = predicted, actual
    rough, settled = np.zeros_like(observed), np.zeros(np.shape(observed), dtype=np.bool_)
    for _ in range(_ROUGH_STEPS):
        chance = total(a * b)
        before, rough = rough, np.where(settled, rough, (observed - chance) / (1.0 - chance))
        free, pull, moving = each(1.0 - rough), each(rough / chance), np.asarray(~settled)[..., None]
        a = np.where(moving, predicted / (free + pull * b), a)
        b = np.where(moving, actual / (free + pull * a), b)
        settled = settled | ~(np.abs(rough - before) > _ROUGHLY)
        if every(settled):
            break
    return rough, b


def _tau(alpha: Array, observed: Array) -> Array:
    return alpha / ((observed - alpha) * (1.0 - alpha))


def _equation(actual: Array, predicted: Array, observed: Array, branch: Array | None) -> Equation:
    """1 - alpha/(tau sum u_k (u_k + g_k)), nearly straight, and its derivative.

    ``branch`` (..., K) holds the signs of the square roots.
    """
    gap, twice = predicted - actual, actual + actual

    def lacking(alpha: Array) -> tuple[Array, Array]:
        free, missing = ONE - alpha, observed - alpha
        rest = free * missing
        # The quadratic over tau: u^2 + (g + 1/tau) u = B / tau.
        spare = rest / alpha
        rarity = each(spare)
        linear, source = gap + rarity, twice * rarity
        root = np.sqrt(linear * linear + (source + source))
        if branch is None:
            u = source / (linear + root)
        else:
            root = root * branch
            u = np.where(linear * root > 0, source / (linear + root), (root - linear) / 2.0)
        v = u + gap
        product = u * v
        joint = total(product)
        # (u v)' = -u v (u + v) / (tau root) by tau.
        fall = inner(product / root, u + v)
        # (rest)' = -(free + missing) by alpha.
        both, share = free + missing, rest / joint
        return ONE - share, (both - fall / joint * (spare + both)) / joint

    return lacking
