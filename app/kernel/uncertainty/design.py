"""What is assumed of a sample and of what is not known before it: stated with every answer."""

import hashlib
from enum import StrEnum

import numpy as np

from app.kernel.numerics import Array


class ClassCounts(StrEnum):
    """Were the numbers of samples per class chosen, or did they come with the sample?"""

    FIXED = "fixed"
    RANDOM = "random"


class Shares(StrEnum):
    """Which class shares the metrics are computed at."""

    OBSERVED = "observed"
    SAMPLED = "sampled"
    GIVEN = "given"


class Prior(StrEnum):
    """What each row of the matrix is given before its counts.

    EDGE adds nothing, except the row of JEFFREYS_RECALL where a recall is 0 or 1: a stratified Bayesian bootstrap
    (Rubin 1981) that does not collapse. Any other prior pulls every class the same way, which adds up over many
    classes.
    """

    EDGE = "edge"
    JEFFREYS_RECALL = "jeffreys_recall"
    UNIFORM = "uniform"
    CUSTOM = "custom"


class Caution(StrEnum):
    """Circumstances in which an interval is known to miss its level."""

    EMPTY_CLASS = "empty_class"
    FEWER_THAN_FIVE = "fewer_than_five_samples"
    MANY_SMALL_CLASSES = "many_small_classes"
    INFORMATIVE_PRIOR = "informative_prior"
    BOUNDARY = "at_the_boundary"


_FEW = 5
_MANY_CLASSES = 20
_SMALL_CLASS = 100


def cautions(counts: Array, prior: Prior = Prior.EDGE) -> tuple[Caution, ...]:
    """What to be careful about with one matrix (K, K), whatever the metric."""
    actual = counts.sum(axis=-1)
    size, present = counts.shape[-1], actual[actual > 0]
    found = []
    if present.size < size:
        found.append(Caution.EMPTY_CLASS)
    if present.size and present.min() < _FEW:
        found.append(Caution.FEWER_THAN_FIVE)
    if size >= _MANY_CLASSES and present.size and present.min() < _SMALL_CLASS:
        found.append(Caution.MANY_SMALL_CLASSES)
    if prior in (Prior.UNIFORM, Prior.JEFFREYS_RECALL) and size > 2:
        found.append(Caution.INFORMATIVE_PRIOR)
    return tuple(found)


def seed_of(*content: object) -> int:
    """A seed that the same content always gives: 63 bits of its BLAKE2 digest.

    Arrays count by shape, type and values.
    """
    digest = hashlib.blake2b(digest_size=8)
    for part in content:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.shape}{part.dtype.str}".encode())
            digest.update(np.ascontiguousarray(part).tobytes())
        else:
            digest.update(repr(part).encode())
        digest.update(b"\x00")
    return int.from_bytes(digest.digest(), "big") >> 1


def generator(seed: int) -> np.random.Generator:
    """The random numbers of a seed."""
    return np.random.Generator(np.random.PCG64(seed))
