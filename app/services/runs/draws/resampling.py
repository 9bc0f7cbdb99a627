"""What a way of resampling runs has to know and to say. There is one for matrices of independent runs, one for those of
paired runs, one for groups of samples, and two for probabilities: in closed form, and by resampling samples.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from app.domain.members import LEFT_OUT, SPREAD
from app.kernel.compare.paired.tests import ChiSquared
from app.kernel.metrics.card import Task
from app.kernel.metrics.expression import needs_counts
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.draws import Alternative
from app.services.estimands import Estimand
from app.services.runs.aligned import Runs
from app.services.runs.differences import NOT_FOLDED, Test

# Indices of two runs each.
Pairs = Sequence[tuple[int, int]]
# Runs whose class shares differ by less have the same mix.
_SAME_SHARES = 1e-12
# Permutations of a pair of runs; fewer than the second number resolve no p worth having.
PERMUTATIONS = 4999
FEWEST_PERMUTATIONS = 999


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceSettings:
    """What runs are compared with.

    Attributes:
        level: Of limits, unless another is asked for.
        rope: Half width of the region of practical equivalence, in units of the metric.
        seed: Of everything that is simulated.
        alternative: Limits and p on both sides, or of a difference above or below 0, unless another is asked for.
        draws: Simulated values of each run at most.
    """

    level: float = 0.95
    rope: float = 0.01
    seed: int = 0
    alternative: Alternative = Alternative.TWO_SIDED
    draws: int = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class ResamplingDesign:
    """What was simulated, and how often.

    Attributes:
        class_counts: `fixed`: the numbers of samples per class are taken as chosen; `random`: they came with
            groups.
        prior: Prior of the simulated matrices.
        draws: Simulated matrices of each run; 0 where they would be too many.
        resampled: `groups` where whole groups of samples were drawn.
        n_groups: How many groups there are.
        resamples: For metrics of probabilities without a closed form: how often samples were drawn.
        resampled_subsets_of: Size of the subsets that were resampled in place of all samples, where there were too many
            of these.
    """

    class_counts: str = "fixed"
    prior: str | None = field(default=None, metadata=LEFT_OUT)
    draws: int = 0
    resampled: str | None = field(default=None, metadata=LEFT_OUT)
    n_groups: int | None = field(default=None, metadata=LEFT_OUT)
    resamples: int | None = field(default=None, metadata=LEFT_OUT)
    resampled_subsets_of: int | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChiSquaredTest:
    """A chi-squared test.

    Attributes:
        reason: Why there is none, or one that says nothing.
    """

    statistic: float | None
    df: int
    p_value: float | None
    reason: str | None = field(default=None, metadata=LEFT_OUT)

    @classmethod
    def of(cls, found: ChiSquared, reason: str | None = None) -> "ChiSquaredTest":
        """What the kernel found."""
        return cls(statistic=found.statistic, df=found.freedom, p_value=found.p, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class OmnibusTest:
    """A test that all runs are equal.

    Attributes:
        of: What is equal where the null hypothesis holds.
    """

    test: str
    of: str
    found: ChiSquaredTest = field(metadata=SPREAD)


@dataclass(frozen=True, slots=True, eq=False)
class CommonPrevalence:
    """The class shares that runs of different class mixes are compared at.

    Attributes:
        shares: (K); None when the runs have the same, or are taken as they are.
        reachable: Can all runs be brought there? Not when one has no samples of a class that another has.
    """

    shares: Array | None = None
    reachable: bool = True

    @classmethod
    def of(cls, counts: Array) -> "CommonPrevalence":
        """The mean shares of runs (R, K, K)."""
        actual = counts.sum(axis=2)
        shares = actual / actual.sum(axis=1)[:, None]
        if np.abs(shares - shares[0]).max() <= _SAME_SHARES:
            return cls()
        return cls(shares.mean(axis=0), bool((actual > 0).all(axis=0)[actual.sum(axis=0) > 0].all()))

    @classmethod
    def of_runs(cls, runs: Runs) -> "CommonPrevalence":
        """That of runs of classes, whatever was decided about them; all others are compared as they are."""
        if runs.task is Task.DECISIONS:
            return cls.of(np.stack([runs.source(run).counts.astype(np.float64) for run in range(len(runs))]))
        return cls() if runs.task is not None else cls.of(runs.counts)

    def moves(self, estimand: Estimand) -> bool:
        """Is the metric another one at the common shares than as the runs are?"""
        return self.shares is not None and not estimand.insensitive

    def reaches(self, estimand: Estimand) -> bool:
        """Can the runs be compared on the metric? Matrices at other shares hold weights and no numbers of samples."""
        if not self.moves(estimand):
            return estimand.insensitive or self.reachable
        return self.reachable and not needs_counts(estimand.expression)


@dataclass(frozen=True, slots=True, eq=False)
class Setup:
    """What all ways of resampling share: the runs, where they are compared, how, and which pairs of them."""

    runs: Runs
    prevalence: CommonPrevalence
    settings: InferenceSettings
    pairs: Pairs


class Resampling(ABC):
    """Draws of some estimands for all runs together, and the tests that go with them.

    Attributes:
        name: What limits that are read off the draws are called.
        without: Why none of its values exists, where that is so.
        values: Values (R, V) of each estimand, at the common prevalence where that moves it.
    """

    name: ClassVar[str]
    without: ClassVar[str | None] = None

    def __init__(self, setup: Setup, estimands: Sequence[Estimand], values: Sequence[Array]) -> None:
        self.setup, self.runs, self.settings = setup, setup.runs, setup.settings
        self.estimands, self.values = tuple(estimands), tuple(values)

    @property
    @abstractmethod
    def drawn(self) -> list[Array | None]:
        """Draws (D, R, V) of each estimand, joint where the runs are paired; None where they would take too long."""

    @abstractmethod
    def tests(self, index: int, level: float) -> list[list[Test]]:
        """For each pair and each of the values of an estimand, limits and p of the difference of the two runs."""

    @property
    @abstractmethod
    def design(self) -> ResamplingDesign:
        """What is to be told of how it was simulated."""

    @property
    def notes(self) -> list[str]:
        """What is to be told of what could not be done."""
        return []

    def omnibus(self, index: int, place: int) -> OmnibusTest | None:  # noqa: ARG002 - for those who can tell
        """A test that all runs have the same value, where there is one."""
        return None

    def gaps(self, index: int, pair: tuple[int, int]) -> Array:
        """Differences (V) of two runs; NaN where a value does not exist or both are infinite."""
        first, second = pair
        with silently():
            found: Array = self.values[index][first] - self.values[index][second]
        return found


class LeftOut(Resampling):
    """What would need the samples, which went by: no value, and nothing else."""

    name = "none"
    without = NOT_FOLDED

    @property
    def drawn(self) -> list[Array | None]:
        """Nothing."""
        return [None] * len(self.estimands)

    @property
    def design(self) -> ResamplingDesign:
        """Nothing was drawn."""
        return ResamplingDesign()

    @property
    def notes(self) -> list[str]:
        """What is left out."""
        names = ", ".join(estimand.text for estimand in self.estimands)
        return [f"Not compared: {names}: {NOT_FOLDED}."]

    def tests(self, index: int, level: float) -> list[list[Test]]:  # noqa: ARG002 - of nothing
        """None."""
        return [[Test()] * len(self.estimands[index].names) for _ in self.setup.pairs]
