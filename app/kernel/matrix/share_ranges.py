"""Class shares of which only ranges are known, and where in them a value is lowest and highest."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array

_ROUNDING = 1e-12
# Of the widest range: the first step of the refinement, and the last, where a smooth value is exact.
_FIRST_STEP, _LAST_STEP = 1 / 20, 1e-9
_ROUNDS = 400
# Points from which the refinement starts, and how far apart they lie as a share of the widest range.
_STARTS, _APART = 4, 0.25
# A value must rise by more than rounding to be better.
_NO_GAIN = 1e-15


@dataclass(frozen=True, slots=True, eq=False)
class ShareRanges:
    """Shares (d + 1) between ``low`` and ``high`` that sum to 1. A point (d) leaves out the last, which has the rest.

    Raises:
        ValueError: no shares within these ranges sum to 1.
    """

    low: Array
    high: Array

    def __post_init__(self) -> None:
        if self.low.sum() > 1.0 + _ROUNDING or self.high.sum() < 1.0 - _ROUNDING:
            raise ValueError("no class shares within these bounds sum to 1")

    def points(self, per_axis: int) -> Array:
        """A grid (G, d) of what the ranges allow, and its corners, at which ratios of linear functions are extreme."""
        axes = [np.linspace(*ends, per_axis) for ends in zip(self.low[:-1], self.high[:-1], strict=True)]
        grid = np.array([*itertools.product(*axes)]).reshape(-1, self.low.size - 1)
        last = 1.0 - grid.sum(axis=1)
        inside = (last >= self.low[-1] - _ROUNDING) & (last <= self.high[-1] + _ROUNDING)
        return np.concatenate([self.corners()[:, :-1], grid[inside]])

    def corners(self) -> Array:
        """Corners (C, d + 1): all shares but one stand at a bound, so this is meant for up to a dozen classes.

        Raises:
            ValueError: there are more than 12 classes.
        """
        size = self.low.size
        if size > 12:
            raise ValueError(f"corners are listed for at most 12 classes, not {size}")
        corners = set()
        for free in range(size):
            others = [k for k in range(size) if k != free]
            for ends in itertools.product(*((float(self.low[k]), float(self.high[k])) for k in others)):
                left = 1.0 - sum(ends)
                if self.low[free] - _ROUNDING <= left <= self.high[free] + _ROUNDING:
                    corner = np.empty(size)
                    corner[others], corner[free] = ends, left
                    corners.add(tuple(np.round(corner, 12).tolist()))
        return np.array(sorted(corners))

    def moved(self, points: Array, directions: Array, steps: Array) -> Array:
        """Points (S, D, d) by steps (S) from points (S, d) in directions (D, d), or as far as the ranges let them."""
        turned = np.column_stack([directions, -directions.sum(axis=1)])
        here = np.column_stack([points, 1.0 - points.sum(axis=1)])
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(turned > 0, (self.high - here[:, None]) / turned, (self.low - here[:, None]) / turned)
        room = np.where(turned == 0, np.inf, np.maximum(room, 0.0)).min(axis=-1)
        reach = np.minimum(room, steps[:, None])
        found: Array = np.clip(points[:, None] + reach[..., None] * directions, self.low[:-1], self.high[:-1])
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Extremes:
    """Points (2, V, d) at which V values are lowest and highest, and the values (2, V) there; NaN where there are none.

    ``settled`` says whether the search came to its end before it was to stop.
    """

    points: Array
    values: Array
    settled: bool


def extremes(
    ranges: ShareRanges, function: Callable[[Array], Array], points: Array, values: Array, *, most: int
) -> Extremes:
    """Refine the lowest and the highest of values found at some points: pattern search from several of them.

    Steps in all directions along the axes and between them, halved where none is better (Hooke & Jeeves 1961; Torczon
    1997). For a few classes and values that are smooth in the shares.

    Args:
        ranges: Of the shares.
        function: From points (G, d) to values (G, V), NaN where there is none.
        points: (G, d) looked at already.
        values: (G, V) at these.
        most: Points to look at besides.
    """
    count, width = values.shape[1], float((ranges.high - ranges.low)[:-1].max())
    signs = np.repeat([-1.0, 1.0], count)
    places = np.tile(np.arange(count), 2)
    starts = [_starts(points, sign * values[:, place], width) for sign, place in zip(signs, places, strict=True)]
    owner = np.repeat(np.arange(2 * count), [len(chosen) for chosen in starts])
    best = points[np.concatenate(starts)]
    height = signs[owner] * values[np.concatenate(starts), places[owner]]
    directions = np.array([step for step in itertools.product((-1.0, 0.0, 1.0), repeat=points.shape[1]) if any(step)])
    steps, spent = np.full(len(best), _FIRST_STEP * width), 0
    for _ in range(_ROUNDS):
        active = np.flatnonzero(steps > _LAST_STEP * width)
        if not active.size or spent + active.size * len(directions) > most:
            break
        spent += active.size * len(directions)
        tried = ranges.moved(best[active], directions, steps[active])
        found = function(tried.reshape(-1, points.shape[1])).reshape(*tried.shape[:2], count)
        own = signs[owner[active], None] * np.take_along_axis(found, places[owner[active], None, None], axis=2)[..., 0]
        own = np.where(np.isnan(own), -np.inf, own)
        chosen = own.argmax(axis=1)
        highest = own[np.arange(active.size), chosen]
        better = highest > height[active] + _NO_GAIN * np.abs(height[active])
        risen = active[better]
        best[risen], height[risen] = tried[better, chosen[better]], highest[better]
        steps[active[~better]] *= 0.5
    settled = not (steps > _LAST_STEP * width).any()
    where, what = np.full((2 * count, points.shape[1]), np.nan), np.full(2 * count, np.nan)
    for index in range(2 * count):
        own_starts = np.flatnonzero(owner == index)
        if own_starts.size:
            top = own_starts[height[own_starts].argmax()]
            where[index], what[index] = best[top], signs[index] * height[top]
    return Extremes(where.reshape(2, count, -1), what.reshape(2, count), settled)


def _starts(points: Array, heights: Array, width: float) -> NDArray[np.intp]:
    """The highest points that lie apart from each other; none where there is no value."""
    left = np.where(np.isnan(heights), -np.inf, heights)
    chosen: list[int] = []
    while len(chosen) < _STARTS and np.isfinite(left).any():
        chosen.append(int(left.argmax()))
        left = np.where(np.abs(points - points[chosen[-1]]).max(axis=1) <= _APART * width, -np.inf, left)
    return np.array(chosen, dtype=np.intp)
