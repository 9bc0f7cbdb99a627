"""What is assumed of a sample and of what is not known before it: stated with every answer."""

import hashlib
from enum import StrEnum
from math import inf

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


class AreaInterval(StrEnum):
    """How limits of the area under a ROC curve are made: from the samples, or from the area and the class sizes."""

    DELONG = "delong"
    HANLEY_MCNEIL = "hanley_mcneil"


class Alternative(StrEnum):
    """Which way a value is taken to lie off: limits on both sides, or on one of them alone.

    GREATER asks how large the value is at least: it has a lower limit, and the other end is that of its range. LESS
    is the mirror image.
    """

    TWO_SIDED = "two-sided"
    GREATER = "greater"
    LESS = "less"

    def two_sided_level(self, level: float) -> float:
        """Level of the two-sided limits, with as much beyond either, one of which is the one-sided limit at a level.

        Raises:
            ValueError: of a level of a half or less no two-sided limits have such an end.
        """
        if self is Alternative.TWO_SIDED:
            return level
        if level <= 0.5:
            raise ValueError(f"a one-sided level must lie above 0.5, not at {level}")
        return 2.0 * level - 1.0

    def opened(self, low: float, high: float, bounds: tuple[float | None, float | None]) -> tuple[float, float]:
        """Limits of which the end that is not asked for is that of the range, infinite where there is none."""
        lowest, highest = bounds
        if self is Alternative.GREATER:
            return low, inf if highest is None else highest
        if self is Alternative.LESS:
            return -inf if lowest is None else lowest, high
        return low, high

    def one_sided(self, p: float, gap: float) -> float:
        """P against this alternative from a two-sided p that has the same weight in both directions.

        Args:
            p: Two-sided.
            gap: What was found, less what it is tested against: its sign says in which direction.
        """
        if self is Alternative.TWO_SIDED:
            return p
        along = gap >= 0.0 if self is Alternative.GREATER else gap <= 0.0
        return p / 2.0 if along else 1.0 - p / 2.0


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
