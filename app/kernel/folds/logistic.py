"""Logistic recalibration of streamed samples by Newton's method."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple, Protocol, Self, TypeVar

import numpy as np

from app.kernel.folds.along import Points
from app.kernel.folds.entries import Counts
from app.kernel.folds.runs import Cuts, Stretch
from app.kernel.numerics.arrays import Array, silently
from app.kernel.numerics.exact_sums import BLOCK, ExactSums, row_sums
from app.kernel.samples.recalibration import expit, intercept, line, log_odds

# Cells are so many to a doubling of the distance from a place, and end where float64 ends.
_EACH, _DOUBLINGS = 16, 52


class Line(NamedTuple):
    """The line a + b z, z being log odds less a middle, by a spread.

    Attributes:
        middle: Of log odds.
        spread: Above 0.
        found: The a and b.
    """

    middle: float
    spread: float
    found: Array

    def at(self, odds: Array) -> tuple[Array, Array]:
        """The z of log odds (n), and the line there."""
        away = (odds - self.middle) / self.spread
        return away, self.found[0] + self.found[1] * away

    @property
    def coefficients(self) -> tuple[float, float]:
        """The a and b of a + b log odds."""
        a, b = self.found.tolist()
        b /= self.spread
        return a - b * self.middle, b


class Near:
    """Members and others in cells.

    Args:
        clip: How near to 0 and 1 probabilities are believed.
        edges: (e) of log odds, rising.

    Attributes:
        held: Others and members (2, e + 1) of each cell.
    """

    def __init__(self, clip: float, edges: Array) -> None:
        self._clip, self._edges = clip, edges
        self.held = np.zeros((2, edges.size + 1))

    @property
    def odds(self) -> Array:
        """Middle log odds (e + 1) of the cells."""
        first, last = self._edges[:1], self._edges[-1:]
        return np.asarray((np.concatenate([first, self._edges]) + np.concatenate([self._edges, last])) / 2.0)

    def add(self, cuts: Cuts) -> Self:
        """Add distinct scores."""
        cells = np.searchsorted(self._edges, log_odds(cuts.scores, self._clip), side="right")
        for own, more in zip(self.held, (cuts.others, cuts.members), strict=True):
            own += np.bincount(cells, more, own.size)
        return self

    def merge(self, other: Self) -> None:
        """Take in what another has counted."""
        self.held += other.held


def edges_near(begun: Line, ends: Array) -> Array:
    """Edges (e) of cells that are the smaller the nearer they are to where log odds are about, where a line is 0 and
    where classes overlap; each end is a cell, so that cells do not separate what samples do not.

    Args:
        begun: The line.
        ends: Lowest and highest log odds (2, 2) of others and of members.
    """
    low, high = float(ends.min()), float(ends.max())
    a, b = begun.coefficients
    overlap = (float(ends[:, 0].max()) + float(ends[:, 1].min())) / 2.0
    places = np.clip([begun.middle, overlap, -a / b if b else overlap], low, high)
    away = (high - low) * 2.0 ** (-np.arange(_EACH * _DOUBLINGS) / _EACH)
    around = (places[:, None] + np.concatenate([-away, [0.0], away])).ravel()
    return np.unique(np.concatenate([around, ends.ravel(), np.nextafter(ends.ravel(), np.inf)]))


def line_of_cells(odds: Array, held: Array, *, sloped: bool) -> Line | None:
    """The most likely line of samples that stand where their cells do, or the one with b = 1; None where there is none.

    Args:
        odds: (c).
        held: Others and members (2, c) of each cell.
        sloped: Is b fitted?
    """
    weight, away = held.ravel(), np.tile(odds, 2)
    there = weight > 0
    weight, away, hit = weight[there], away[there], np.repeat([False, True], odds.size)[there]
    a, b = line(away, hit, weight) if sloped else (intercept(away, hit, weight), 1.0)
    if not np.isfinite([a, b]).all():
        return None
    middle, spread = _steep(away, weight, a + b * away)
    return Line(middle, spread, np.array([a + b * middle, b * spread]))


def _steep(odds: Array, weight: Array, found: Array) -> tuple[float, float]:
    """Middle and spread of log odds (c) where the curve of a line is steep; of a single place the spread is 1."""
    curvature = weight * expit(found) * expit(-found)
    shares = curvature / curvature.sum() if curvature.any() else weight / weight.sum()
    middle = float(shares @ odds)
    spread = float(np.sqrt(shares @ (odds - middle) ** 2))
    return middle, spread or 1.0


# Steps become quadratically smaller: after one of this size, relative to the coefficients, what is left is rounding.
_CLOSE_ENOUGH = 1e-10
# Readings for steps, and for cells nearer by.
_MOST_STEPS, _MOST_CELLS = 9, 3
# Changes of the line, in log odds where the curve is steep, beyond which a step of Newton's may go anywhere.
_FAR = 0.5
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
        ended: Did the steps come to an end? There is no line where they did not.
    """

    a: float
    b: float
    variance: float
    ends: Array
    ended: bool = True


class Step(NamedTuple):
    """What takes a line nearer to the most likely one.

    Attributes:
        found: What is added to a and b.
        variance: Of b, or of a where b is known.
        change: Of the line in log odds, the root of its mean square with the weights of the curvature; NaN where there
            is no curvature.
    """

    found: Array
    variance: float
    change: float


class LineSums:
    """What a step of Newton's needs at one line.

    Args:
        clip: How near to 0 and 1 probabilities are believed.
        line: The line.
    """

    def __init__(self, clip: float, line: Line) -> None:
        self._clip, self._line = clip, line
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
        away, line = self._line.at(odds)
        chance = expit(line)
        rest = 1.0 - chance
        rows = np.empty((9, odds.size))
        rows[8] = members * line - (members + others) * np.logaddexp(0.0, line)
        rows[0] = members * rest - others * chance
        rows[2] = (members + others) * (chance * rest)
        rows[5] = members * (rest * rest) + others * (chance * chance)
        for row in (1, 3, 4, 6, 7):
            np.multiply(rows[row - 1], away, out=rows[row])
        self._sums.add(rows, row_sums)

    def merge(self, other: Self) -> None:
        """Take in what another has looked at."""
        self._sums.merge(other._sums)
        self.finite = self.finite and other.finite
        for own, more in zip(self.ends, other.ends, strict=True):
            own[:] = min(own[0], more[0]), max(own[1], more[1])

    def step(self, *, sloped: bool) -> Step:
        """What takes a and b nearer, or a where b is known."""
        with silently():
            return self._step(self._sums.rounded(), sloped=sloped)

    @staticmethod
    def _step(sums: Array, *, sloped: bool) -> Step:
        slope, (all_of, first, second), (squares, leaning, twice) = sums[_SLOPE], sums[_CURVATURE], sums[_SQUARES]
        up = slope[0] / all_of
        if not sloped:
            return Step(np.array([up, 0.0]), float(squares / all_of**2), float(abs(up)))
        centre = first / all_of
        spread = second - first * centre
        turn = (slope[1] - centre * slope[0]) / spread
        variance = (twice - 2.0 * centre * leaning + centre * centre * squares) / spread**2
        change = np.sqrt(up * up + turn * turn * (spread / all_of))
        return Step(np.array([up - centre * turn, turn]), float(variance), float(change))


Of = TypeVar("Of", LineSums, Near)


class Look(Protocol):
    """Has the order of a class go by once."""

    def __call__(self, of: Callable[[Stretch], Of], /) -> Iterable[Of]:
        """From what adds up along a stretch to what comes of each, in turn."""
        ...


def fitted(look: Look, points: Points, sizes: tuple[int, int], clip: float, *, sloped: bool) -> Fit:
    """The most likely line, or the one with b = 1; none, and so it says, where the steps do not come to an end.

    Args:
        look: Has the order of a class go by once.
        points: Cuts of it.
        sizes: Members and others.
        clip: How near to 0 and 1 probabilities are believed.
        sloped: Is b fitted?
    """
    line = _begun(points, sizes, clip, sloped=sloped)
    reached, highest, cells = line, -np.inf, 0
    for _ in range(_MOST_STEPS):
        sums = _merged(LineSums(clip, line), look(partial(_of_stretch, clip, line)))
        none = _without_line(sums, sizes, clip, sloped=sloped)
        if none is not None:
            return none
        if sums.likelihood < highest - _ROUNDING * abs(highest):
            line = line._replace(found=0.5 * (reached.found + line.found))
            continue
        reached, highest = line, sums.likelihood
        step = sums.step(sloped=sloped)
        if not step.change <= _FAR and cells < _MOST_CELLS:
            line = _nearer(look, line, log_odds(sums.ends, clip), clip, sloped=sloped)
            highest, cells = -np.inf, cells + 1
            continue
        line = line._replace(found=line.found + step.found)
        if step.change <= _CLOSE_ENOUGH * max(1.0, float(np.abs(line.found).max())):
            size, lost = sum(sizes), 2 if sloped else 1
            a, b = line.coefficients
            scale = line.spread**2 if sloped else 1.0
            return Fit(a, b, step.variance * size / max(size - lost, 1) / scale, sums.ends)
    return Fit(np.nan, np.nan, np.nan, sums.ends, ended=False)


def _begun(points: Points, sizes: tuple[int, int], clip: float, *, sloped: bool) -> Line:
    """A line by the cells between cuts; where these are all, by the cuts."""
    scores = np.array(points.thresholds)
    if points.n_cuts > scores.size:
        scores = (scores + np.concatenate([scores[:1], scores[:-1]])) / 2.0
    odds = log_odds(scores, max(clip, np.finfo(float).tiny))
    held = np.stack([np.diff(side, prepend=0.0) for side in (points.fp, points.tp)])
    found = line_of_cells(odds, held, sloped=sloped)
    if found is not None:
        return found
    middle = float(held.sum(axis=0) @ odds) / float(held.sum())
    level = np.log(max(sizes[0], 1) / max(sizes[1], 1))
    return Line(middle, 1.0, np.array([level, 0.0] if sloped else [middle, 1.0]))


def _nearer(look: Look, line: Line, ends: Array, clip: float, *, sloped: bool) -> Line:
    """A line by finer cells where a line that is not good enough is steep, and where classes overlap.

    Args:
        look: Has the order of a class go by once.
        line: The line.
        ends: Lowest and highest log odds (2, 2) of others and of members.
        clip: How near to 0 and 1 probabilities are believed.
        sloped: Is b fitted?
    """
    edges = edges_near(line, ends)
    near = _merged(Near(clip, edges), look(partial(_near_stretch, clip, edges)))
    return line_of_cells(near.odds, near.held, sloped=sloped) or line


def _merged(whole: Of, parts: Iterable[Of]) -> Of:
    for more in parts:
        whole.merge(more)
    return whole


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


def _of_stretch(clip: float, line: Line, stretch: Stretch) -> LineSums:
    return LineSums(clip, line).add(stretch.cuts())


def _near_stretch(clip: float, edges: Array, stretch: Stretch) -> Near:
    return Near(clip, edges).add(stretch.cuts())
