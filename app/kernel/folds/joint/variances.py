"""Sampling variances of averages of areas over more than two classes, of what some rows add to them.

What a row adds follows from its places among all samples, which are exact. How its places in the orders of the classes
go together is known of some rows of each class, and these stand for all of it. For how many each stands is changed as
little as it takes for what is known of all samples: how many there are of each class, and of each order the area and
what members and others add to its variance (calibration; Deville & Särndal 1992, "Calibration estimators in survey
sampling").
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from app.kernel.folds.entries import Counts
from app.kernel.folds.joint.rows import Rows
from app.kernel.numerics.arrays import Array, Mask

# Root mean square of the share by which it changes for how many samples a row stands. Where it is more a row that is
# there often was kept or left out by chance, and standard errors can be off by more than 3 %.
_MOST_CHANGED = 0.2
# By what share totals may be missed: of what hardly a sample adds to, all can have been left out.
_UNMET = 1e-3
# What is a sum of others up to rounding asks for no change of its own.
_SAME = 1e-8
# Rows that are looked at together.
_ROWS = 1 << 12


class Placed(NamedTuple):
    """Some rows (m) with their places among all samples.

    Attributes:
        rows: The rows.
        own: (K, m) twice the samples of the other side, members or others, above them in the order of each class.
        among_all: (K, m) the same where the probabilities of all classes are one order.
    """

    rows: Rows
    own: Counts
    among_all: Counts


class KnownArea(NamedTuple):
    """The area of one class, and what members and others add to its variance."""

    area: float
    of_members: float
    of_others: float


def of_mean_area(placed: Placed, worth: Array, sizes: Sequence[int], areas: Array, *, weighted: bool) -> float:
    """Of the mean of the areas (K), or of that by the shares of the classes, which are as random as all else.

    Args:
        placed: Some rows.
        worth: For how many samples each of them (m) stands.
        sizes: Samples of each class, none of them 0.
        areas: The areas.
        weighted: See above.
    """
    codes, total = placed.rows.codes, sum(sizes)
    shares = np.array(sizes) / total if weighted else np.full(areas.size, 1.0 / areas.size)
    influence = np.zeros(codes.size)
    for code, (area, share) in enumerate(zip(areas.tolist(), shares.tolist(), strict=True)):
        influence += share * _influence(placed.own[code], codes == code, sizes, code, area)
    if weighted:
        influence += (areas.take(codes) - float(shares @ areas)) / _spread(total)
    return float(worth @ (influence * influence))


def of_area_of_entries(placed: Placed, worth: Array, sizes: Sequence[int], area: float) -> float:
    """Of the area of all probabilities of all classes in one order (Obuchowski 1997).

    Args:
        placed: Some rows.
        worth: For how many samples each of them (m) stands.
        sizes: Samples of each class.
        area: The area.
    """
    codes, total, others = placed.rows.codes, sum(sizes), len(sizes) - 1
    actual = codes == np.arange(len(sizes))[:, None]
    shares = placed.among_all / (2 * total * others)
    sums = np.where(actual, 1.0 - shares, shares).sum(axis=0)
    influence = (sums - 2.0 * area) / _spread(total)
    return float(worth @ (influence * influence))


def worth_of_rows(placed: Placed, sizes: Sequence[int], known: Sequence[KnownArea | None]) -> Array | None:
    """For how many samples each row (m) stands; None where that is not known, as where many rows are equal.

    Args:
        placed: Some rows.
        sizes: Samples of each class.
        known: Of each class, None without members or others.
    """
    rows = placed.rows
    kept = np.bincount(rows.codes, rows.counts, len(sizes)).take(rows.codes)
    worth = rows.counts * (np.array(sizes, dtype=np.float64).take(rows.codes) / kept)
    if kept.size == 0 or np.array_equal(worth, rows.counts):
        return worth
    totals = _totals(sizes, known)
    products, missing = np.zeros((totals.size, totals.size)), totals
    for part, values in _values(placed, sizes, known):
        weighed = values * worth[part]
        products += weighed @ values.T
        missing = missing - weighed.sum(axis=1)
    slopes = np.linalg.lstsq(products, missing, rcond=_SAME)[0]
    changes = np.concatenate([slopes @ values for _, values in _values(placed, sizes, known)])
    met = np.abs(missing - products @ slopes).max() <= _UNMET * sum(sizes)
    within = float(worth @ (changes * changes)) <= _MOST_CHANGED**2 * sum(sizes)
    return worth * (1.0 + changes) if met and within else None


def _totals(sizes: Sequence[int], known: Sequence[KnownArea | None]) -> Array:
    """What these values come to over all samples: each class its size, influences 0, and their squares as scaled."""
    of_areas = [(0.0, 0.0, one.of_members > 0.0, one.of_others > 0.0) for one in known if one is not None]
    return np.concatenate([np.array(sizes, dtype=np.float64), sum(sizes) * np.ravel(of_areas)])


def _values(placed: Placed, sizes: Sequence[int], known: Sequence[KnownArea | None]) -> Iterator[tuple[slice, Array]]:
    """Of some rows after others what each adds to these totals, as shares of what a sample adds to them."""
    total = sum(sizes)
    for start in range(0, placed.rows.codes.size, _ROWS):
        part = slice(start, start + _ROWS)
        codes = placed.rows.codes[part]
        values = [codes == code for code in range(len(sizes))]
        for code, one in enumerate(known):
            if one is None:
                continue
            influence = _influence(placed.own[code, part], codes == code, sizes, code, one.area)
            sides = [
                np.where(inside, influence, 0.0) * np.sqrt(total / variance) if variance else np.zeros(codes.size)
                for inside, variance in ((codes == code, one.of_members), (codes != code, one.of_others))
            ]
            values += [*sides, *(side * side for side in sides)]
        yield part, np.array(values, dtype=np.float64)


def _influence(own: Counts, inside: Mask, sizes: Sequence[int], code: int, area: float) -> Array:
    """What each row (m) adds to the area of a class, in or out of it, of its places in the order of that class."""
    members, others = sizes[code], sum(sizes) - sizes[code]
    lost = np.where(inside, 1.0 - own / (2 * others), own / (2 * members)) - area
    influence: Array = lost / np.where(inside, _spread(members), _spread(others))
    return influence


def _spread(size: int) -> float:
    return float(np.sqrt(float(size) * max(size - 1, 1)))
