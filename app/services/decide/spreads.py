"""How far two rates are spread around their harmonic mean: the standard deviation of GPS."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np

from app.kernel.metrics.families.combinations import GPS_SD
from app.kernel.numerics.arrays import Array, silently

# Of two rates, at 1 and 1/3 (Property 4).
LARGEST: Final = 0.5 / sqrt(2.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spreads:
    """The standard deviation of GPS over the reciprocal of one rate, for some reciprocals of the other.

    Attributes:
        grid: Reciprocals of the one rate, 1 or more.
        of: The deviations, by the reciprocal of the other.
    """

    grid: Array
    of: Mapping[float, Array]


def spreads(others: Sequence[float], farthest: float, points: int) -> Spreads:
    """Martín De Diego et al. (2022), eq. 9 for two metrics, that is eq. 11, and fig. 1.

    Args:
        others: Reciprocals of the other rate.
        farthest: The largest reciprocal of the grid, which begins at 1; its points are apart by equal factors, and 3,
            where the spread is largest, is one of them.
        points: How many.
    """
    grid = np.union1d(np.geomspace(1.0, farthest, points), [3.0])
    return Spreads(grid=grid, of={other: _spread(1.0 / grid, 1.0 / other) for other in others})


def region_from(level: float, points: int) -> tuple[Array, Array, Array]:
    """Where the standard deviation is at least a level: reciprocals y of the higher rate, and from which to which
    reciprocal x of the lower one. The region of the rates exchanged is its mirror image.

    Martín De Diego et al. (2022), eq. 11 set equal to the level c: with t = x/y and k = c y / (2 sqrt 2) it reads
    k (t + 1)^2 = t - 1, which has two solutions up to k = 1/8, where t is 3.

    Args:
        level: Above 0 and below 1 / (2 sqrt 2), the largest deviation that there is.
        points: How many y, apart by equal factors, from 1 to the last one that reaches the level.
    """
    y = np.geomspace(1.0, LARGEST / level, points)
    k = level * y * LARGEST
    # At the tip rounding may bring it below 0.
    root = np.sqrt(np.maximum(1.0 - 8.0 * k, 0.0))
    return y, y * (1.0 - 2.0 * k - root) / (2.0 * k), y * (1.0 - 2.0 * k + root) / (2.0 * k)


def spread_of_two(first: float, second: float) -> float:
    """The same of two rates above 0."""
    return float(_spread(np.array([first]), second)[0])


def _spread(first: Array, second: float) -> Array:
    with silently():
        return GPS_SD.compute(np.stack([first, np.full_like(first, second)], axis=-1))
