"""Logistic recalibration of samples that went by: steps of Newton's, each of exact sums along the order of a class.

They begin where the cells between the kept cuts end, which is so near that two or three readings are enough.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple, Self

import numpy as np

from app.kernel.folds.entries import Counts
from app.kernel.folds.not_folded import NotFolded
from app.kernel.folds.orders.points import Points
from app.kernel.folds.orders.stretches import Cuts, Stretch
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.exact_sums import BLOCK, ExactSums
from app.kernel.samples.recalibration import expit, intercept, line, log_odds

# Steps become quadratically smaller: after one of this size, relative to the coefficients, what is left is rounding.
_CLOSE_ENOUGH = 1e-10
_MOST_READINGS = 100
_LARGEST = 2.0
# Relative to a likelihood, differences below this are rounding.
_ROUNDING = 1e-11
# Sums over the samples: of deviations, curvature and squared deviations, each with powers of the log odds; likelihood.
_SLOPE, _CURVATURE, _SQUARES = slice(0, 2), slice(2, 5), slice(5, 8)


class Fit(NamedTuple):
    """The line a + b log odds.

    Attributes:
        a: NaN where there is none.
        b: Infinite where a threshold separates members and others.
        variance: Of b where it was fitted, of a otherwise, by White (HC1); NaN without a line.
        ends: Lowest and highest probability (2, 2) of others and of members; infinite where there are none.
    """

    a: float
    b: float
    variance: float
    ends: Array


class LineSums:
    """What a step of Newton's needs at one line a + b z, z being log odds less a middle.

    Args:
        clip: How near to 0 and 1 probabilities are believed.
        middle: Of the log odds, about.
        found: The a and b.
    """

    def __init__(self, clip: float, middle: float, found: Array) -> None:
        self._clip, self._middle, self._found = clip, middle, found
        self._sums = ExactSums((9,))
        self.ends = np.array([[np.inf, -np.inf]] * 2)
        self.finite = True

    def add(self, cuts: Cuts) -> Self:
        """Add distinct scores."""
        for ends, held in zip(self.ends, (cuts.others, cuts.members), strict=True):
            there = cuts.scores[held > 0]
            if there.size:
                ends[:] = min(ends[0], there[-1]), max(ends[1], there[0])
        for start in range(0, cuts.scores.size, BLOCK):
            part = slice(start, start + BLOCK)
            self._add(log_odds(cuts.scores[part], self._clip), cuts.members[part], cuts.others[part])
        return self

    @property
    def likelihood(self) -> float:
        """Logarithm of the likelihood."""
        return float(self._sums.rounded()[-1])

    def _add(self, odds: Array, members: Counts, others: Counts) -> None:
        self.finite = self.finite and bool(np.isfinite(odds).all())
        if not self.finite:
            return
        away = odds - self._middle
        line = self._found[0] + self._found[1] * away
        chance = expit(line)
        rest = 1.0 - chance
        rows = np.empty((9, odds.size))
        rows[8] = members * line - (members + others) * np.logaddexp(0.0, line)
        rows[0] = members * rest - others * chance
        rows[2] = (members + others) * (chance * rest)
        rows[5] = members * (rest * rest) + others * (chance * chance)
        for row in (1, 3, 4, 6, 7):
            np.multiply(rows[row - 1], away, out=rows[row])
        self._sums.add(rows, lambda values: values.sum(axis=-1))

    def merge(self, other: Self) -> None:
        """Take in what another has looked at."""
        self._sums.merge(other._sums)
        self.finite = self.finite and other.finite
        for own, more in zip(self.ends, other.ends, strict=True):
            own[:] = min(own[0], more[0]), max(own[1], more[1])

    def step(self, *, sloped: bool) -> tuple[Array, float]:
        """What takes a and b nearer, and the variance that is to be had there: of b, or of a where b is known."""
        sums = self._sums.rounded()
        slope, (all_of, first, second), (squares, leaning, twice) = sums[_SLOPE], sums[_CURVATURE], sums[_SQUARES]
        if not sloped:
            return np.array([slope[0] / all_of, 0.0]), float(squares / all_of**2)
        centre = first / all_of
        variance = (twice - 2.0 * centre * leaning + centre * centre * squares) / (second - first * centre) ** 2
        return np.linalg.solve([[all_of, first], [first, second]], slope), float(variance)


# From what adds up along a stretch to what comes of each, in turn.
Look = Callable[[Callable[[Stretch], LineSums]], Iterable[LineSums]]


def fitted(look: Look, points: Points, sizes: tuple[int, int], clip: float, *, sloped: bool) -> Fit:
    """The most likely line, or the one with b = 1.

    Args:
        look: Has the order of a class go by once.
        points: Cuts of it.
        sizes: Members and others.
        clip: How near to 0 and 1 probabilities are believed.
        sloped: Is b fitted?

    Raises:
        NotFolded: the steps do not come to an end.
    """
    middle, found = _begun(points, sizes, clip, sloped=sloped)
    reached, highest = found, -np.inf
    for _ in range(_MOST_READINGS):
        sums = LineSums(clip, middle, found)
        for more in look(partial(_of_stretch, clip, middle, found)):
            sums.merge(more)
        none = _without_line(sums, sizes, clip, sloped=sloped)
        if none is not None:
            return none
        if sums.likelihood < highest - _ROUNDING * abs(highest):
            found = 0.5 * (reached + found)
            continue
        reached, highest = found, sums.likelihood
        step, variance = sums.step(sloped=sloped)
        # Far away the curve is flat and a step of Newton's would overshoot.
        found = reached + step * min(1.0, _LARGEST / float(np.abs(step).max() or 1.0))
        if np.abs(step).max() <= _CLOSE_ENOUGH * max(1.0, float(np.abs(found).max())):
            size, lost = sum(sizes), 2 if sloped else 1
            a, b = found.tolist()
            return Fit(a - b * middle, b, variance * size / max(size - lost, 1), sums.ends)
    raise NotFolded("the line of recalibration needs more readings of the samples than it may have, which were folded")


def _begun(points: Points, sizes: tuple[int, int], clip: float, *, sloped: bool) -> tuple[float, Array]:
    """The middle of the log odds, about, and a line by the cells between cuts; where these are all, by the cuts."""
    scores = np.array(points.thresholds)
    if points.n_cuts > scores.size:
        scores = (scores + np.concatenate([scores[:1], scores[:-1]])) / 2.0
    odds = log_odds(scores, max(clip, np.finfo(float).tiny))
    held = np.concatenate([np.diff(side, prepend=0.0) for side in (points.tp, points.fp)])
    middle = float(held @ np.tile(odds, 2)) / float(held.sum())
    hit, away = np.repeat([True, False], odds.size), np.tile(odds - middle, 2)
    found = line(away, hit, held) if sloped else (intercept(away + middle, hit, held) + middle, 1.0)
    if np.isfinite(found).all():
        return middle, np.array(found)
    return middle, np.array([np.log(max(sizes[0], 1) / max(sizes[1], 1)), 0.0] if sloped else [middle, 1.0])


def _without_line(sums: LineSums, sizes: tuple[int, int], clip: float, *, sloped: bool) -> Fit | None:
    """As `line` and `intercept` of samples at hand say it; None where there is a line."""
    nan, infinite = float("nan"), float("inf")
    if not all(sizes) or not sums.finite:
        return Fit(nan, nan, nan, sums.ends)
    if not sloped:
        return None
    (low, high), (lowest, highest) = log_odds(sums.ends, clip).tolist()
    if min(low, lowest) == max(high, highest):
        return Fit(nan, nan, nan, sums.ends)
    if lowest >= high:
        return Fit(nan, infinite, nan, sums.ends)
    return Fit(nan, -infinite, nan, sums.ends) if highest <= low else None


def _of_stretch(clip: float, middle: float, found: Array, stretch: Stretch) -> LineSums:
    return LineSums(clip, middle, found).add(stretch.cuts())
