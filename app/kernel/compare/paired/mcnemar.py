"""Two runs on the same items: is the difference in accuracy, or in one class's recall, more than chance?

b counts the items that only the first run gets right, c those that only the second does, n all items. Everything is
elementwise.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from app.kernel.numerics.arrays import Array
from app.kernel.numerics.special import fair_binomial_cdf, fair_binomial_mass


def mcnemar_mid_p(b: ArrayLike, c: ArrayLike) -> Array:
    """Two-sided mid-p of McNemar's test of b = c; 1 where b = c. Fagerland, Lydersen & Laake (2013).

    The exact p, 2 P(Bin(b+c, 1/2) <= min), less P(min).
    """
    b, c = np.asarray(b, dtype=np.float64), np.asarray(c, dtype=np.float64)
    total, smaller = b + c, np.minimum(b, c)
    p = 2.0 * fair_binomial_cdf(smaller, total) - fair_binomial_mass(smaller, total)
    return np.where(b == c, 1.0, p)


@dataclass(frozen=True, slots=True)
class PairingBounds:
    """What the unknown pairing of two runs on one test set leaves open about McNemar's test.

    Attributes:
        difference: b - c, known without the pairing.
        fewest: smallest possible number of discordant items.
        most: largest possible number.
        smallest_p: mid-p at ``fewest``; it grows with the discordant items.
    """

    difference: float
    fewest: float
    most: float
    smallest_p: float


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
    smallest_p = mcnemar_mid_p((fewest + difference) / 2.0, (fewest - difference) / 2.0)
    return PairingBounds(difference, fewest, most, float(smallest_p))
