"""Probabilities with their class as whole numbers that sort as the probabilities do.

The bits of floats that are not negative rise with them. Those of a probability leave the highest bit free, so that a
key is the bits moved up by one, with the lowest bit for membership: a sample is one number, and sorting has no index.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array, Mask

# Of 32 bits for probabilities that are float32, of 64 for float64.
Keys = NDArray[np.unsignedinteger[Any]]
Probabilities = NDArray[np.floating[Any]]

_MEMBER = np.uint64(1)
_WIDE = 8
_KEY_OF: dict[int, type[np.unsignedinteger[Any]]] = {4: np.uint32, 8: np.uint64}
_FLOAT_OF: dict[int, type[np.floating[Any]]] = {4: np.float32, 8: np.float64}


def keys_of(probabilities: Probabilities, members: Mask) -> Keys:
    """Keys (n) of probabilities in [0, 1], of 32 bits for float32 and of 64 for float64."""
    # Adding 0 makes 0 of -0, the bits of which do not rise with the others.
    keys: Keys = (probabilities + probabilities.dtype.type(0.0)).view(_KEY_OF[probabilities.itemsize])
    keys <<= keys.dtype.type(1)
    keys |= members
    return keys


def scores_of(keys: Keys) -> Probabilities:
    """The probabilities of keys, as they came."""
    scores: Probabilities = (keys >> keys.dtype.type(1)).view(_FLOAT_OF[keys.itemsize])
    return scores


def members_of(keys: Keys) -> NDArray[np.int64]:
    """1 for the keys of members, 0 for the others."""
    return (keys & keys.dtype.type(1)).astype(np.int64)


def widened(keys: Keys) -> NDArray[np.uint64]:
    """The keys of the same probabilities as float64."""
    if keys.itemsize == _WIDE:
        return keys.view(np.uint64)
    return _joined(scores_of(keys).astype(np.float64), keys & np.uint32(1))


def mirrored(keys: Keys) -> NDArray[np.uint64]:
    """Wide keys of 1 - p and of the other class, rising where the given ones rise.

    1 - p is rounded, so that small probabilities that differ may have one complement.
    """
    scores = scores_of(keys).astype(np.float64)
    complements = np.subtract(1.0, scores, out=scores)
    return _joined(complements, (keys & keys.dtype.type(1)) ^ keys.dtype.type(1))[::-1]


def floor_key(score: float) -> np.uint64:
    """The lowest wide key of a score."""
    return np.float64(score).view(np.uint64) << _MEMBER


def score_of(floor: np.uint64) -> float:
    """The score of a wide key."""
    return float((floor >> _MEMBER).view(np.float64))


def _joined(scores: Array, members: Keys) -> NDArray[np.uint64]:
    keys: NDArray[np.uint64] = scores.view(np.uint64)
    keys <<= _MEMBER
    keys |= members
    return keys
