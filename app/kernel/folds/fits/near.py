"""Cells of log odds, from which a line is found that is near to the most likely one of all samples."""

from typing import NamedTuple, Self

import numpy as np

from app.kernel.folds.orders.stretches import Cuts
from app.kernel.numerics.arrays import Array
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
