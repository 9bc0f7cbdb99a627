"""Root finding: element by element on arrays, and by bisection for the limits of an interval that inverts a test."""

from collections.abc import Callable

import numpy as np

from app.kernel.numerics.arrays import Array, Mask, every, some

# Bisection alone would need about fifty steps.
_STEPS = 80
_NEWTON_STEPS = 12
# The error after a Newton step is of the order of its square.
_LAST_STEP = 1e-8
# Relative to the root: steps below this may stop shrinking because of rounding.
_SHORT_STEP = 1e-5


def rising_root(function: Callable[[Array], tuple[Array, Array]], start: Array, *, low: Array, high: Array) -> Array:
    """Root of a smooth function (value, derivative) that is negative at ``low`` and positive at ``high``, elementwise.

    Newton steps from ``start``. A step that leaves the bracket, or is more than half the previous one, is replaced by a
    bisection: where the slope jumps, Newton's method can cycle. The ends themselves are never evaluated. An element
    that has converged no longer moves. NaN where one has not.
    """
    root, settled, last = start, np.isnan(start), np.full(np.shape(start), np.inf)
    for _ in range(_STEPS):
        value, slope = function(root)
        rising = value < 0
        low, high = np.where(rising, root, low), np.where(rising, high, root)
        step = value / slope
        guess = root - step
        length = np.abs(step)
        close = length <= _LAST_STEP * np.abs(guess)
        inside = (guess >= low) & (guess <= high) & (length <= np.maximum(last / 2.0, _SHORT_STEP * np.abs(guess)))
        if not every(inside):
            guess = np.where(inside, guess, (low + high) / 2.0)
        last = np.abs(guess - root)
        root = np.where(settled, root, guess) if some(settled) else guess
        settled = settled | (inside & close)
        if every(settled):
            return root
    return np.where(settled, root, np.nan)


def newton_root(function: Callable[[Array], tuple[Array, Array]], start: Array, *, low: Array, high: Array) -> Array:
    """Root of a smooth function (value, derivative) near a good start, elementwise.

    An element that has settled no longer moves. NaN where none settles in the bracket.
    """
    root, settled = start, np.zeros(np.shape(start), dtype=np.bool_)
    for _ in range(_NEWTON_STEPS):
        value, slope = function(root)
        step = value / slope
        root = np.where(settled, root, root - step) if some(settled) else root - step
        settled = settled | (step * step <= _LAST_STEP * _LAST_STEP * (root * root))
        if every(settled):
            break
    sound = settled & (low <= root) & (root <= high)
    return root if every(sound) else np.where(sound, root, np.nan)


def solve_where(mask: Mask, solver: Callable[..., Array], *arrays: Array) -> Array:
    """``solver(*arrays)`` for the matrices in the mask (...), NaN for the others, which cost nothing."""
    if every(mask):
        return solver(*arrays)
    result: Array = np.full(mask.shape, np.nan)
    if some(mask):
        # With one more axis in front rows are summed one by one, alike in every batch (see `arrays.total`).
        result[mask] = solver(*(array[mask][None] for array in arrays))[0]
    return result


def last_inside(inside: Callable[[float], bool], start: float, end: float) -> float:
    """Farthest point from ``start`` towards ``end`` at which a condition still holds, by bisection; it holds at
    ``start``.
    """
    if inside(end):
        return end
    # As many halves as a float64 has digits, and some more.
    for _ in range(60):
        middle = (start + end) / 2.0
        start, end = (middle, end) if inside(middle) else (start, middle)
    return start
