"""Two runs on the same items: is the difference in accuracy, or in one class's recall, more than chance?

b counts the items that only the first run gets right, c those that only the second does, n all items. Everything is
elementwise.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from app.kernel.numerics.arrays import Array
from app.kernel.numerics.special import chi_squared_upper_tail, fair_binomial_cdf, fair_binomial_mass


@dataclass(frozen=True, slots=True, eq=False)
class McNemar:
    """The p-values of McNemar's test, two-sided; ``mid_p`` is the one to use (Fagerland, Lydersen & Laake 2013)."""

    exact: Array
    mid_p: Array
    chi_squared: Array
    corrected: Array


def mcnemar(b: ArrayLike, c: ArrayLike) -> McNemar:
    """McNemar's test of b = c, in four variants. Without discordant items every p is 1.

    exact = 2 P(Bin(b+c, 1/2) <= min), at most 1; mid_p = exact - P(min), and 1 where b = c.
    """
    b, c = np.asarray(b, dtype=np.float64), np.asarray(c, dtype=np.float64)
    total, smaller, gap = b + c, np.minimum(b, c), np.abs(b - c)
    exact = np.minimum(2.0 * fair_binomial_cdf(smaller, total), 1.0)
    mid = np.where(gap == 0, 1.0, exact - fair_binomial_mass(smaller, total))
    size = np.maximum(total, 1.0)
    return McNemar(
        exact,
        mid,
        chi_squared_upper_tail(gap * gap / size, 1.0),
        chi_squared_upper_tail(np.maximum(gap - 1.0, 0.0) ** 2 / size, 1.0),
    )


@dataclass(frozen=True, slots=True)
class PairingBounds:
    """What the unknown pairing of two runs on one test set leaves open about McNemar's test.

    Attributes:
        difference: b - c, known without the pairing.
        fewest: smallest possible number of discordant items.
        most: largest possible number.
        smallest: p-values at ``fewest``.
        largest: p-values at ``most``.
    """

    difference: float
    fewest: float
    most: float
    smallest: McNemar
    largest: McNemar


def pairing_bounds(first: Array, second: Array, sizes: Array) -> PairingBounds:
    """Range of McNemar's p over every pairing of two runs on the same items.

    The discordant items number at least sum |a_i - b_i| and at most sum min(a_i + b_i, 2 n_i - a_i - b_i); p grows with
    them.

    Args:
        first: Items (K) of each class that the first run has right, a.
        second: The same of the second run, b.
        sizes: Items (K) of each class, n.
    """
    difference = float(first.sum() - second.sum())
    fewest = float(np.abs(first - second).sum())
    most = float(np.minimum(first + second, 2 * sizes - first - second).sum())
    return PairingBounds(
        difference,
        fewest,
        most,
        mcnemar((fewest + difference) / 2.0, (fewest - difference) / 2.0),
        mcnemar((most + difference) / 2.0, (most - difference) / 2.0),
    )
