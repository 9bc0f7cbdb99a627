"""Arithmetic that the metrics share: divisions, means and logarithms with their limits.

Undefined is NaN and infinite is inf here; the conditions of a card say what they mean. Every function works on arrays
with any leading batch axes and is meant to run inside ``silently()``.
Roots are found element by element, and by bisection for the limits of an interval that inverts a test.
"""

import math
from collections.abc import Callable
from functools import cache, lru_cache, wraps
from typing import Any, Generic, TypeVar, TypeVarTuple, Unpack, overload

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

TINY = float(np.finfo(np.float64).tiny)
ABOVE_MINUS_ONE = float(np.nextafter(-1.0, 0.0))

_Owner = TypeVar("_Owner")
_Value = TypeVar("_Value")
_Arguments = TypeVarTuple("_Arguments")


class lazy(Generic[_Owner, _Value]):  # noqa: N801 - used as a decorator, like property
    """An attribute computed at first use.

    ``functools.cached_property`` takes a lock on Python 3.11, which doubles its price.
    """

    def __init__(self, compute: Callable[[_Owner], _Value], meaning: str | None = None) -> None:
        self.compute = compute
        self.__doc__ = meaning or compute.__doc__

    def __set_name__(self, _: Any, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, owner: None, kind: Any) -> "lazy[_Owner, _Value]": ...
    @overload
    def __get__(self, owner: _Owner, kind: Any) -> _Value: ...
    def __get__(self, owner: _Owner | None, kind: Any) -> "_Value | lazy[_Owner, _Value]":
        if owner is None:
            return self
        value = self.compute(owner)
        owner.__dict__[self.name] = value
        return value


def kept(compute: Callable[[_Owner, Unpack[_Arguments]], _Value]) -> Callable[[_Owner, Unpack[_Arguments]], _Value]:
    """A method that computes once for each of its arguments; what it found goes with the object."""
    name = f"_{compute.__name__}_kept"

    @wraps(compute)
    def once(owner: _Owner, *arguments: *_Arguments) -> _Value:
        known = owner.__dict__.setdefault(name, {})
        if arguments not in known:
            known[arguments] = compute(owner, *arguments)
        found: _Value = known[arguments]
        return found

    return once


def silently() -> np.errstate:
    """Context in which 0/0 gives NaN and x/0 gives inf without warnings. Both are answers; cards tell them apart."""
    return np.errstate(divide="ignore", invalid="ignore", over="ignore")


def ratio(numerator: Array, denominator: Array) -> Array:
    """Elementwise quotient: NaN for 0/0, signed infinity for x/0."""
    return np.divide(numerator, denominator)


@cache
def ones(size: int) -> Array:
    """Vector of ones, made once per size and read-only."""
    vector = np.ones(size)
    vector.flags.writeable = False
    return vector


@lru_cache(maxsize=8)
def hollow(size: int) -> Array:
    """Ones with a diagonal of zeros, shape (size, size), made once per size and read-only."""
    matrix = 1.0 - np.eye(size)
    matrix.flags.writeable = False
    return matrix


@lru_cache(maxsize=8)
def triangle(size: int, diagonal: int = 0) -> Array:
    """Ones up to a diagonal and zeros above it, shape (size, size), made once per size and read-only."""
    matrix = np.tri(size, k=diagonal)
    matrix.flags.writeable = False
    return matrix


def each(values: Array) -> Array:
    """One value per matrix (...) made to meet one per class (..., K).

    A single matrix has a plain number, which meets anything.
    """
    shaped: Array = values[..., None] if values.ndim else values
    return shaped


def cells(values: Array) -> Array:
    """One value per matrix (...) made to meet one per cell (..., K, K)."""
    shaped: Array = values[..., None, None] if values.ndim else values
    return shaped


def every(mask: Mask) -> bool:
    """All entries of a mask are true.

    Counted, which takes a quarter of the time of the method. For a single numpy boolean, that costs more than a
    comparison of two vectors.
    """
    return bool(np.count_nonzero(mask) == mask.size if mask.ndim else mask)


def some(mask: Mask) -> bool:
    """At least one entry of a mask is true."""
    return bool(np.count_nonzero(mask) if mask.ndim else mask)


def total(values: Array) -> Array:
    """Sum over the last axis.

    A product with ones: on the short axes here it takes a third of the time of ``sum``. Arrays of three and more axes
    are summed row by row, so that a row has the same sum, bit for bit, in any batch; those of two go through one
    product of a matrix and a vector, in which the order of additions depends on all rows.
    """
    summed: Array = values.dot(ones(values.shape[-1]))
    return summed


def sums_by_code(
    codes: NDArray[np.intp | np.bool_], values: NDArray[np.floating | np.integer], n_classes: int
) -> Array:
    """Sum of values (..., n) over the samples of each class, shape (..., K)."""
    rows = values.reshape(math.prod(values.shape[:-1]), codes.size)
    counted = np.stack([np.bincount(codes, row, n_classes) for row in rows]).astype(np.float64, copy=False)
    return counted.reshape(*values.shape[:-1], n_classes)


def sums_at(places: NDArray[np.intp], size: int) -> Callable[[Array], Array]:
    """Return a function that sums values (d, C) by the places (C) that they belong to: (d, size)."""
    order = np.argsort(places, kind="stable")
    filled, starts = np.unique(places[order], return_index=True)
    in_order, alone = bool((places[1:] >= places[:-1]).all()), filled.size == places.size

    def summed(values: Array) -> Array:
        found, rising = np.zeros((len(values), size)), values if in_order else values[:, order]
        found[:, filled] = rising if alone else np.add.reduceat(rising, starts, axis=1)
        return found

    return summed


def inner(first: Array, second: Array) -> Array:
    """Sum of products over the last axis."""
    summed: Array = first.dot(second) if first.ndim == 1 else np.vecdot(first, second)
    return summed


def largest(values: Array) -> Array:
    """Maximum over the last axis, NaN as soon as one is.

    Looking up the position is the faster way for a single vector.
    """
    extreme: Array = values[values.argmax()] if values.ndim == 1 else np.maximum.reduce(values, axis=-1)
    return extreme


def smallest(values: Array) -> Array:
    """Minimum over the last axis, NaN as soon as one is."""
    extreme: Array = values[values.argmin()] if values.ndim == 1 else np.minimum.reduce(values, axis=-1)
    return extreme


def mean(values: Array) -> Array:
    """Arithmetic mean over the last axis; NaN as soon as one value is."""
    average: Array = total(values) / values.shape[-1]
    return average


def harmonic_mean(values: Array) -> Array:
    """Harmonic mean over the last axis: 0 when a value is 0, NaN as soon as one is NaN.

    Written as n / sum(1/x): the product form of Martín De Diego et al. (2022, eq. 8) is 0/0 once two values are 0.
    """
    value: Array = values.shape[-1] / total(np.reciprocal(values))
    return value


def geometric_mean(values: Array) -> Array:
    """Geometric mean over the last axis through logarithms, so that hundreds of small factors do not underflow."""
    return np.exp(mean(np.log(values)))


def kish_effective_n(weights: Array) -> float:
    """(sum w)^2 / sum w^2: the number of equally weighted samples with the same variance of a mean, 0 of none. Kish
    (1965).
    """
    squares = math.fsum(np.square(weights))
    return float(math.fsum(weights) ** 2 / squares) if squares else 0.0


def dispersion(values: Array) -> Array:
    """Spread of a harmonic mean's parts, GPS^2/(n-1) sqrt(sum (1/p - 1/GPS)^2) over the last axis.

    Martín De Diego et al. (2022), eq. 9. NaN when the mean is 0 or there are fewer than two parts.
    """
    reciprocals = np.reciprocal(values)
    parts = reciprocals.shape[-1]
    center = mean(reciprocals)
    if parts == 1:
        return np.full_like(center, np.nan)
    away = reciprocals - each(center)
    spread: Array = np.sqrt(total(away * away)) / (center * center * (parts - 1))
    return spread


def x_log_x(values: Array) -> Array:
    """X ln x with the limit 0 at 0."""
    logarithms: Array = np.maximum(values, TINY)
    if logarithms.ndim:
        # One temporary array in place of three: allocating large ones costs more than filling them.
        np.log(logarithms, out=logarithms)
        logarithms *= values
        return logarithms
    return values * np.log(logarithms)


_HALVINGS = 80
_NEWTON_STEPS = 12
# The error after a Newton step is of the order of its square.
_LAST_STEP = 1e-8


def rising_root(function: Callable[[Array], tuple[Array, Array]], *, low: Array, high: Array) -> Array:
    """Root of a function (value, derivative) that is negative at ``low`` and positive at ``high``, elementwise, by
    bisection; the ends themselves are never evaluated.
    """
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        rising = function(middle)[0] < 0.0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return high


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
