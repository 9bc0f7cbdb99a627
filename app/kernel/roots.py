"""Root finding on arrays: every element of a batch has its own equation and its own bracket."""

from collections.abc import Callable

import numpy as np

from app.kernel.numerics import Array

_NEWTON_STEPS = 12
_BRACKET_STEPS = 200
# A last step this small, relative, leaves an error near rounding: convergence is faster than linear.
_LAST_STEP = 1e-13


def newton_root(function: Callable[[Array], tuple[Array, Array]], start: Array, *, low: Array, high: Array) -> Array:
    """Root of a smooth function (value, derivative) between low and high, elementwise.

    Newton steps from ``start``; where they leave the bracket or do not settle, a bracketing search takes over. NaN where that
    finds no change of sign.
    """
    root = start
    for _ in range(_NEWTON_STEPS):
        value, slope = function(root)
        step = value / slope
        root = root - step
        if (np.abs(step) <= _LAST_STEP * np.abs(root)).all():
            break
    settled = (np.abs(step) <= _LAST_STEP * np.abs(root)) & (root >= low) & (root <= high)
    if settled.all():
        return root
    return np.where(settled, root, bracketed_root(lambda x: function(x)[0], low, high))


def bracketed_root(function: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Root of a continuous function between low and high, elementwise, by the Illinois variant of regula falsi.

    An end at which the function is 0 is the root. NaN where the ends do not bracket a root. A settled element no longer moves, so
    its value does not depend on what else is in the batch.
    """
    f_low, f_high = function(low), function(high)
    valid = f_low * f_high <= 0
    root = np.where(f_low == 0, low, high)
    settled = ~valid | (f_low == 0) | (f_high == 0)
    side = np.zeros(np.shape(low), dtype=np.int8)
    for _ in range(_BRACKET_STEPS):
        if settled.all():
            break
        guess = high - f_high * (high - low) / (f_high - f_low)
        inside = (guess > np.minimum(low, high)) & (guess < np.maximum(low, high))
        guess = np.where(inside, guess, (low + high) / 2.0)
        value = function(guess)
        stands = np.abs(guess - root) <= _LAST_STEP * np.abs(guess)
        root = np.where(settled, root, guess)
        settled = settled | (value == 0) | stands
        replaces_high = value * f_high > 0
        # The end that stays twice has its value halved, or it would stay for ever.
        f_low, f_high = (
            np.where(replaces_high, np.where(side == 1, f_low / 2.0, f_low), value),
            np.where(replaces_high, value, np.where(side == -1, f_high / 2.0, f_high)),
        )
        low, high = np.where(replaces_high, low, guess), np.where(replaces_high, guess, high)
        side = np.where(replaces_high, 1, -1).astype(np.int8)
    return np.where(valid, root, np.nan)
