"""Runs that are compared: their values at one prevalence, joint draws of them, and the difference of any two."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from app.kernel.comparison import joint as joints
from app.kernel.comparison.couplings import difference_variance_bounds
from app.kernel.comparison.differences import paired_variance, permutation_p
from app.kernel.numerics import Array, silently
from app.kernel.prevalence import project
from app.kernel.table import Table
from app.kernel.uncertainty.delta import variance
from app.kernel.uncertainty.design import ClassCounts, generator, seed_of
from app.kernel.uncertainty.draws import Functional
from app.services.differences import (
    SHARE_LIMITS,
    Difference,
    Test,
    delta_tests,
    range_tests,
    share_test,
    simulated,
)
from app.services.pairing import Bond, Pairing
from app.services.simulation import affordable_draws, draw_independent, draw_paired, values_at
from app.services.targets import Share, Target

# Permutations of a pair of runs; fewer than the second number resolve no p worth having.
PERMUTATIONS = 4999
FEWEST_PERMUTATIONS = 999
MOST_PERMUTED_CELLS = 40_000_000
# Cells of the matrices that numeric derivatives look at.
MOST_DERIVED_CELLS = 50_000_000
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


class Contest:
    """Runs with the same classes and the metrics that they are compared on."""

    def __init__(self, counts: Array, targets: Sequence[Target], pairing: Pairing, terms: Terms) -> None:
        # Of paired runs only what all of them have seen is compared.
        self.counts: Array = counts if pairing.joint is None else pairing.joint.matrices()
        self.targets = tuple(targets)
        self.pairing = pairing
        self.terms = terms
        self.shares = common_shares(self.counts)
        actual = self.counts.sum(axis=2)
        self.projectable = self.shares is None or bool((actual > 0).all(axis=0)[actual.sum(axis=0) > 0].all())

    def is_reprojected(self, target: Target) -> bool:
        """Is the metric compared at the common class shares?"""
        return self.shares is not None and not target.insensitive

    def is_comparable(self, target: Target) -> bool:
        """Can the runs be brought to one prevalence, where the metric needs that?"""
        return target.insensitive or self.projectable

    @cached_property
    def values(self) -> list[Array]:
        """Values (R, V) of each target, at the common shares where prevalence moves it."""
        found = values_at(self.counts, self.targets, self.shares if self.projectable else None)
        return [
            values if self.is_comparable(target) else np.full(values.shape, np.nan)
            for target, values in zip(self.targets, found, strict=True)
        ]

    @cached_property
    def observed(self) -> list[Array]:
        """Values (R, V) of each target as the runs are."""
        return values_at(self.counts, self.targets)

    @cached_property
    def draws(self) -> int:
        """How many simulated matrices of each run; 0 when even a few are too many."""
        cells = self.counts.size
        if self.pairing.joint is not None:
            cells = max(cells, self.pairing.joint.counts.size)
        return affordable_draws(cells, self.terms.draws)

    @cached_property
    def drawn(self) -> list[Array] | None:
        """Draws (D, R, V) of each target, joint where the runs are paired."""
        if not self.draws:
            return None
        arguments: dict[str, Any] = {"draws": self.draws, "seed": self.terms.seed}
        with silently():
            if self.pairing.joint is not None:
                return draw_paired(self.pairing.joint, self.targets, **arguments)
            shares = self.shares if self.projectable else None
            return draw_independent(self.counts, self.targets, **arguments, shares=shares)

    def functional(self, target: Target) -> Functional:
        """The metric at the prevalence that it is compared at."""
        shares = self.shares if self.is_reprojected(target) else None
        if shares is None:
            return target.functional
        return lambda table: target.functional(Table(project(table.counts, shares)))

    def scores(self, index: int) -> Array:
        """Values (R, V) of a target as something that is better the higher it is."""
        better = self.targets[index].preference
        return self.values[index] if better is None else better.score(self.values[index])

    def differences(self, pairs: Sequence[tuple[int, int]]) -> list[list[list[Difference]]]:
        """For each target and each of its values, the differences of the pairs in order."""
        tested = self._tests(pairs)
        return [
            [
                [self._difference(index, place, pair, tests[place]) for pair, tests in zip(pairs, by_pair, strict=True)]
                for place in range(len(target.names))
            ]
            for index, (target, by_pair) in enumerate(zip(self.targets, tested, strict=True))
        ]

    def _difference(self, index: int, place: int, pair: tuple[int, int], test: Test) -> Difference:
        first, second = pair
        target, values = self.targets[index], self.values[index][:, [place]]
        gap = float(values[first, 0] - values[second, 0])
        if not np.isfinite(gap):
            return Difference(first=first, second=second, value=np.nan, test=Test(method="none"), limits="none")
        limits = SHARE_LIMITS.get(test.method)
        if self.drawn is None:
            return Difference(first=first, second=second, value=gap, test=test, limits=limits or "none")
        ends, better, equal, error = simulated(
            values,
            self.drawn[index][:, :, [place]],
            first,
            second,
            better=target.preference,
            level=self.terms.level,
            rope=self.terms.rope,
        )[0]
        if limits is None:
            limits = "posterior" if self.pairing.bond is not Bond.TEST_SET else "posterior_as_if_independent"
            test = Test(low=float(ends[0]), high=float(ends[1]), p=test.p, smallest=test.smallest, method=test.method)
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

    def _tests(self, pairs: Sequence[tuple[int, int]]) -> list[list[list[Test]]]:
        """Tests by target, pair and value."""
        shares = {index for index, target in enumerate(self.targets) if self._is_share(target)}
        rest = [index for index in range(len(self.targets)) if index not in shares]
        found: list[list[list[Test]]] = [[] for _ in self.targets]
        for index in shares:
            found[index] = [self._share_tests(self.targets[index], pair) for pair in pairs]
        for index, by_pair in zip(rest, self._other_tests(rest, pairs), strict=True):
            found[index] = by_pair
        return found

    def _is_share(self, target: Target) -> bool:
        """Accuracy at another prevalence is no share of the samples at hand."""
        return target.share is Share.RECALL or (target.share is Share.ACCURACY and self.shares is None)

    def _share_tests(self, target: Target, pair: tuple[int, int]) -> list[Test]:
        assert target.share is not None  # noqa: S101 - chosen by `_is_share`
        return [
            share_test(target.share, target.class_of(place), *pair, self.counts, self.pairing, self.terms.level)
            for place in range(len(target.names))
        ]

    def _other_tests(self, chosen: Sequence[int], pairs: Sequence[tuple[int, int]]) -> list[list[list[Test]]]:
        if not chosen:
            return []
        if self.pairing.joint is None:
            return [self._unpaired(index, pairs) for index in chosen]
        each = max(1, 2 * self.counts[0].size, self.pairing.joint.counts.size)
        draws = min(PERMUTATIONS, MOST_PERMUTED_CELLS // (each * len(pairs)))
        by_pair = [self._paired(chosen, pair, draws) for pair in pairs]
        return [[tests[place] for tests in by_pair] for place in range(len(chosen))]

    def _paired(self, chosen: Sequence[int], pair: tuple[int, int], draws: int) -> list[list[Test]]:
        """Permutation tests where they can be afforded, else normal ones."""
        assert self.pairing.joint is not None  # noqa: S101 - asked of paired runs
        both = self.pairing.joint.pair(*pair)
        functionals = [self.targets[index].functional for index in chosen]
        if draws >= FEWEST_PERMUTATIONS:
            random = generator(seed_of(self.terms.seed, "permutation", *pair))
            found = permutation_p(both, functionals, joints.permute(both, draws=draws, random=random))
            return [[Test(p=float(p), method="permutation") for p in np.atleast_1d(values)] for values in found]
        tests = []
        for index, functional in zip(chosen, functionals, strict=True):
            if not self._derivable(both.matrices()):
                tests.append([Test(method="none")] * len(self.targets[index].names))
                continue
            with silently():
                spread = paired_variance(both, functional, class_counts=ClassCounts.FIXED)
            tests.append(delta_tests(self._gaps(index, pair), spread))
        return tests

    def _gaps(self, index: int, pair: tuple[int, int]) -> Array:
        """Differences (V) of two runs."""
        gaps: Array = self.values[index][pair[0]] - self.values[index][pair[1]]
        return gaps

    def _unpaired(self, index: int, pairs: Sequence[tuple[int, int]]) -> list[list[Test]]:
        target = self.targets[index]
        if not self._derivable(self.counts) or not self.is_comparable(target):
            return [[Test(method="none")] * len(target.names) for _ in pairs]
        functional = self.functional(target)
        with silently():
            if self.pairing.bond is Bond.TEST_SET:
                bounds = [difference_variance_bounds(self.counts[a], self.counts[b], functional) for a, b in pairs]
                return [range_tests(self._gaps(index, pair), *ends) for pair, ends in zip(pairs, bounds, strict=True)]
            spread = [variance(one, functional, class_counts=ClassCounts.FIXED) for one in self.counts]
        return [delta_tests(self._gaps(index, (a, b)), spread[a] + spread[b]) for a, b in pairs]

    @staticmethod
    def _derivable(counts: Array) -> bool:
        """Can the numeric derivatives be afforded?"""
        return bool(np.count_nonzero(counts) * counts[0].size * 2 <= MOST_DERIVED_CELLS)
