"""What a what-if question asks for: at which class shares, and with which intervals."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from app.domain.options import DRAWS
from app.kernel.uncertainty.draws import Alternative


class Marked(StrEnum):
    """Shares of a class that have a name."""

    OBSERVED = "observed"
    EQUAL = "equal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """One class from a rare to a frequent one, the others keeping their proportions.

    Attributes:
        at: Further shares, which are points exactly, within the sweep or not.
    """

    label: str
    start: float
    end: float
    steps: int
    at: tuple[float | Marked, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """At which class shares; exactly one of prevalence, sweep and ranges.

    Attributes:
        prevalence: Shares by label; classes not named share the rest in the proportions that they have.
        samples: How many samples the shares are worth: their uncertainty. None takes them as exact.
        ranges: Lowest and highest share by label.
        recalibrate: Fit the probabilities to the shares, and decide anew by them.
        alternative: Limits on both sides, or one of them alone at that level.
        old_prevalence: The shares that the probabilities are calibrated to; those of the run when None.
    """

    prevalence: Mapping[str, float] | None = None
    samples: float | None = None
    sweep: Sweep | None = None
    ranges: Mapping[str, tuple[float, float]] | None = None
    recalibrate: bool = False
    old_prevalence: Mapping[str, float] | None = None
    level: float = 0.95
    alternative: Alternative = Alternative.TWO_SIDED
    seed: int | None = None
    draws: int = DRAWS
