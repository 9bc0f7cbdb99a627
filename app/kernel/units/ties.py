"""What first happens among tied items in random order, in closed form."""

from collections.abc import Callable

import numpy as np

from app.kernel.numerics.arrays import Array
from app.kernel.units.queries import FirstRelevant, Positions

# So many numbers are worked on at a time.
_MANY = 1 << 20


def chance_of_a_hit(first: FirstRelevant, k: int) -> Array:
    """Chance that a relevant item is among the first k, shape (Q).

    In the block that the cut goes through, j of t items are above it, and none of the r relevant ones is with chance
    C(t - r, j) / C(t, j).
    """
    above = np.clip(k - first.before, 0, first.size)
    found: Array = ((first.size > 0) & (above == first.size)).astype(np.float64)
    cut = np.flatnonzero((above > 0) & (above < first.size))
    if cut.size:
        found[cut] = 1.0 - _each(_missed, first.size.take(cut), first.relevant.take(cut), above.take(cut))
    return found


def expected_reciprocal(first: FirstRelevant) -> Array:
    """Expectation of 1 / rank of the first relevant item, shape (Q); NaN for a query without one."""
    found = np.full(first.size.size, np.nan)
    alone = first.size == first.relevant
    np.divide(1.0, first.before + 1.0, out=found, where=alone & (first.size > 0))
    tied = np.flatnonzero(~alone)
    if tied.size:
        found[tied] = _each(_reciprocal, first.size.take(tied), first.relevant.take(tied), first.before.take(tied))
    return found


def expected_rank(first: FirstRelevant) -> Array:
    """Expectation of the rank of the first relevant item, before + (t + 1) / (r + 1), shape (Q); NaN without one."""
    ranks = first.before + (first.size + 1.0) / (first.relevant + 1.0)
    known: Array = np.where(first.size > 0, ranks, np.nan)
    return known


def _each(function: Callable[..., Array], width: Positions, *others: Positions) -> Array:
    """A function of tied blocks (b), whose work grows with a width: each distinct block once, those of like width
    together.
    """
    distinct, inverse = np.unique(np.stack([width, *others]), axis=1, return_inverse=True)
    found = np.empty(distinct.shape[1])
    start = 0
    while start < found.size:
        # The widths rise, so a few steps find how many rows fit.
        stop = max(start + 1, int(np.searchsorted(distinct[0] * np.arange(1 - start, found.size + 1 - start), _MANY)))
        found[start:stop] = function(*distinct[:, start:stop])
        start = stop
    return found.take(inverse.ravel())


def _missed(sizes: Positions, relevant: Positions, above: Positions) -> Array:
    """C(t - r, j) / C(t, j), by the smaller of r and j as a product; both are chosen from t without meeting."""
    fewer, more = np.minimum(relevant, above)[:, None], np.maximum(relevant, above)[:, None]
    step = np.arange(fewer.max())
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = np.maximum(sizes[:, None] - more - step, 0.0) / (sizes[:, None] - step)
    missed: Array = np.multiply.reduce(np.where(step < fewer, factors, 1.0), axis=1)
    return missed


def _reciprocal(sizes: Positions, relevant: Positions, before: Positions) -> Array:
    """Sum of P(first at m) / (before + m) over the places m of a block; P follows from place to place."""
    t, r = sizes[:, None].astype(np.float64), relevant[:, None].astype(np.float64)
    place = np.arange(1.0, float((sizes - relevant).max()) + 2.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.maximum(t - place + 1.0 - r + 1.0, 0.0) / (t - place + 1.0)
    steps[:, :1] = r / t
    steps[:, 1:] = np.where(place[1:] <= t - r + 1.0, steps[:, 1:], 0.0)
    chances = np.multiply.accumulate(steps, axis=1)
    # One place after another: how many places other blocks have says nothing about the rounding of this one.
    expected: Array = np.add.accumulate(chances / (before[:, None] + place), axis=1)[:, -1]
    return expected
