"""What is assumed of a sample and of what is not known before it: stated with every answer."""

import hashlib
from enum import StrEnum

import numpy as np


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


class ProportionInterval(StrEnum):
    """How limits of a proportion are made; see ``intervals``."""

    WILSON = "wilson"
    CLOPPER_PEARSON = "clopper_pearson"
    JEFFREYS = "jeffreys"
    WALD = "wald"


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
