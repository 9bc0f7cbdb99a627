"""What a what-if question asks for: at which class shares, and with which intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from app.domain.report import DRAWS
from app.kernel.numerics.arrays import Array
from app.services.estimands import Estimand
from app.services.project.answers import ProjectionDesign

NOT_FOR_GROUPS = (
    "No intervals that count the samples of the run: they come in groups, and taken as independent they would tell "
    "more than they do."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """One class from a rare to a frequent one, the others keeping their proportions."""

    label: str
    start: float
    end: float
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """At which class shares; exactly one of prevalence, sweep and ranges.

    Attributes:
        prevalence: Shares by label; classes not named share the rest in the proportions that they have.
        samples: How many samples the shares are worth: their uncertainty. None takes them as exact.
        ranges: Lowest and highest share by label.
        recalibrate: Fit the probabilities to the shares, and decide anew by them.
        old_prevalence: The shares that the probabilities are calibrated to; those of the run when None.
    """

    prevalence: Mapping[str, float] | None = None
    samples: float | None = None
    sweep: Sweep | None = None
    ranges: Mapping[str, tuple[float, float]] | None = None
    recalibrate: bool = False
    old_prevalence: Mapping[str, float] | None = None
    level: float = 0.95
    seed: int | None = None
    draws: int = DRAWS


@dataclass(frozen=True, slots=True)
class Simulation:
    """Of intervals: their level, the seed of what is simulated, and how often at most."""

    level: float
    seed: int
    draws: int


@dataclass(frozen=True, slots=True, eq=False)
class ProjectedLimits:
    """Limits (G, V) of one estimand at every point, NaN where there are none."""

    low: Array
    high: Array

    @classmethod
    def empty(cls, shape: tuple[int, ...]) -> Self:
        """None yet."""
        return cls(np.full(shape, np.nan), np.full(shape, np.nan))


class Projectable(Protocol):
    """A run whose metrics can be had at other class shares.

    Attributes:
        design: How intervals come about, but for the shares.
        notes: What to be careful about.
        most_points: At how many shares values can be had.
    """

    design: ProjectionDesign
    notes: tuple[str, ...]
    most_points: int

    def observed(self, estimands: Sequence[Estimand]) -> list[Array]:
        """Values (V) of every estimand as the run is."""
        ...

    def values(self, estimands: Sequence[Estimand], shares: Array) -> list[Array]:
        """Values (G, V) of every estimand at shares (G, K)."""
        ...

    def limits(
        self, estimands: Sequence[Estimand], shares: Array, worth: float | None = None
    ) -> list[ProjectedLimits] | None:
        """Limits of every estimand at shares (G, K) worth so many samples; None where there are no intervals."""
        ...
