"""How often the most frequent of any number of keys comes at least, known in little memory while they go by."""

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.sorting import Hashes


class Frequent:
    """Counts of keys that come often (Misra and Gries 1982): never too high, too low by n / (M + 1) of n keys at most.

    Args:
        most: Keys that are counted at the same time, M.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._keys: Hashes = np.zeros(0, dtype=np.uint64)
        self._counts: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def add(self, keys: Hashes) -> None:
        """Take in keys (n)."""
        found, counts = np.unique(keys, return_counts=True)
        keys, places = np.unique(np.concatenate([self._keys, found]), return_inverse=True)
        sums = np.zeros(keys.size, dtype=np.int64)
        np.add.at(sums, places, np.concatenate([self._counts, counts]))
        if keys.size > self._most:
            sums -= np.partition(sums, -self._most - 1)[-self._most - 1]
        self._keys, self._counts = keys[sums > 0], sums[sums > 0]

    def beyond(self, times: int) -> Hashes:
        """Keys that surely came more than so many times."""
        return self._keys[self._counts > times]
