"""Runs that are compared: their values at one prevalence, joint draws of them, and the difference of any two."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.kernel.numerics.arrays import Array
from app.services.estimands import Estimand
from app.services.json_values import Json
from app.services.runs.differences import Difference, Test, simulated
from app.services.runs.pairing import Bond, Pairing

# Runs whose class shares differ by less have the same mix.
_SAME_SHARES = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What comparisons are made with: the level of limits, the region of equivalence, the seed, the draws at most."""

    level: float = 0.95
    rope: float = 0.01
    seed: int = 0
    draws: int = 4000


def common_shares(counts: Array) -> Array | None:
    """Class shares (K) to which runs (R, K, K) are brought; None when they have them in common already."""
    shares = counts.sum(axis=2) / counts.sum(axis=(1, 2))[:, None]
    if np.abs(shares - shares[0]).max() <= _SAME_SHARES:
        return None
    mean: Array = shares.mean(axis=0)
    return mean


class Contest(ABC):
    """Runs with the same classes and the metrics that they are compared on.

    Attributes:
        counts: (R, K, K), of paired runs only what all of them have seen.
        shares: The class shares (K) that the runs are brought to; None when they have the same.
        projectable: Can they be brought there?
        independent: Are the samples, so that tests may count them?
    """

    independent = True

    def __init__(self, counts: Array, estimands: Sequence[Estimand], pairing: Pairing, terms: Terms) -> None:
        self.counts: Array = counts if pairing.joint is None else pairing.joint.matrices()
        self.estimands = tuple(estimands)
        self.pairing = pairing
        self.terms = terms
        self.shares = common_shares(self.counts)
        actual = self.counts.sum(axis=2)
        self.projectable = self.shares is None or bool((actual > 0).all(axis=0)[actual.sum(axis=0) > 0].all())

    @property
    @abstractmethod
    def values(self) -> list[Array]:
        """Values (R, V) of each estimand, at the common shares where prevalence moves it."""

    @property
    @abstractmethod
    def observed(self) -> list[Array]:
        """Values (R, V) of each estimand as the runs are."""

    @property
    @abstractmethod
    def drawn(self) -> list[Array | None]:
        """Draws (D, R, V) of each estimand, joint where the runs are paired; None where they are too dear."""

    @property
    @abstractmethod
    def design(self) -> Json:
        """What is to be told of how it was simulated."""

    @property
    @abstractmethod
    def notes(self) -> list[str]:
        """What is to be told of what could not be done."""

    @abstractmethod
    def on_folds(self, counts: Array) -> list[Array]:
        """Values (R, F, V) of each estimand on the folds of runs, given their matrices (R, F, K, K)."""

    @abstractmethod
    def simulation(self, index: int) -> str:
        """What the draws of a estimand are called."""

    @abstractmethod
    def tests(self, pairs: Sequence[tuple[int, int]]) -> list[list[list[Test]]]:
        """Tests by estimand, pair and value."""

    def omnibus(self, index: int, place: int) -> Json | None:  # noqa: ARG002 - for those who can tell
        """A test that all runs have the same value, where there is one."""
        return None

    def is_reprojected(self, estimand: Estimand) -> bool:
        """Is the metric compared at the common class shares?"""
        return self.shares is not None and not estimand.insensitive

    def is_comparable(self, estimand: Estimand) -> bool:
        """Can the runs be brought to one prevalence, where the metric needs that?"""
        return estimand.insensitive or self.projectable

    def comparable(self, values: Sequence[Array]) -> list[Array]:
        """The values, NaN for metrics that the runs cannot be compared on."""
        return [
            found if self.is_comparable(estimand) else np.full(found.shape, np.nan)
            for estimand, found in zip(self.estimands, values, strict=True)
        ]

    def scores(self, index: int) -> Array:
        """Values (R, V) of a estimand as something that is better the higher it is."""
        better = self.estimands[index].preference
        return self.values[index] if better is None else better.score(self.values[index])

    def differences(self, pairs: Sequence[tuple[int, int]]) -> list[list[list[Difference]]]:
        """For each estimand and each of its values, the differences of the pairs in order."""
        tested = self.tests(pairs)
        return [
            [
                [self._difference(index, place, pair, tests[place]) for pair, tests in zip(pairs, by_pair, strict=True)]
                for place in range(len(estimand.names))
            ]
            for index, (estimand, by_pair) in enumerate(zip(self.estimands, tested, strict=True))
        ]

    def _difference(self, index: int, place: int, pair: tuple[int, int], test: Test) -> Difference:
        first, second = pair
        estimand, values = self.estimands[index], self.values[index][:, [place]]
        gap = float(values[first, 0] - values[second, 0])
        if not np.isfinite(gap):
            return Difference(first=first, second=second, value=np.nan, test=Test(), limits="none")
        drawn = self.drawn[index]
        certain = drawn is not None and np.ptp(drawn[:, first, place] - drawn[:, second, place]) == 0
        if certain and test.reason is not None:
            # What does not vary in the data does not in resamples either, which is no certainty.
            drawn = None
        if drawn is None:
            return Difference(first=first, second=second, value=gap, test=test, limits=test.limits or "none")
        ends, better, equal, error = simulated(
            values,
            drawn[:, :, [place]],
            first,
            second,
            better=estimand.preference,
            level=self.terms.level,
            rope=self.terms.rope,
        )[0]
        limits = test.limits
        if limits is None:
            name = self.simulation(index)
            limits = name if self.pairing.bond is not Bond.TEST_SET else f"{name}_as_if_independent"
            test = replace(test, low=float(ends[0]), high=float(ends[1]))
        return Difference(
            first=first,
            second=second,
            value=gap,
            test=test,
            limits=limits,
            first_better=better,
            equivalent=equal,
            probability_error=error,
        )

    def gaps(self, index: int, pair: tuple[int, int]) -> Array:
        """Differences (V) of two runs."""
        found: Array = self.values[index][pair[0]] - self.values[index][pair[1]]
        return found
