"""Whole numbers of 64 bits of which near ones come out far from each other, the same in any process."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

# Odd numbers of good bits (Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators").
GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)


def scrambled(values: Hashes) -> Hashes:
    """The last steps of SplitMix64 of each value, any shape; different values stay different."""
    found = (values ^ (values >> _SHIFTS[0])) * _FIRST
    found = (found ^ (found >> _SHIFTS[1])) * _SECOND
    mixed: Hashes = found ^ (found >> _SHIFTS[2])
    return mixed


def mixed(values: Hashes) -> Hashes:
    """SplitMix64 of each value, any shape."""
    return scrambled(values + GOLDEN)
