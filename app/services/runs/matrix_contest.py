"""Runs compared on metrics of matrices: posterior draws, and tests of shares, by permutation or with derivatives."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from app.kernel.compare import joint as joints
from app.kernel.compare.couplings import difference_variance_bounds
from app.kernel.compare.differences import paired_variance, permutation_p
from app.kernel.matrix.prevalence import project
from app.kernel.matrix.table import Table
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.delta import variance
from app.kernel.uncertainty.design import ClassCounts, generator, seed_of
from app.kernel.uncertainty.draws import Functional
from app.services.estimands import Estimand
from app.services.json_values import Json
from app.services.runs.contest import Contest
from app.services.runs.differences import Test, normal_tests, range_tests, share_test
from app.services.runs.pairing import Bond
from app.services.runs.simulation import affordable_draws, draw_independent, draw_paired, values_at

# Permutations of a pair of runs; fewer than the second number resolve no p worth having.
PERMUTATIONS = 4999
FEWEST_PERMUTATIONS = 999
MOST_PERMUTED_CELLS = 40_000_000
# Cells of the matrices that numeric derivatives look at.
MOST_DERIVED_CELLS = 50_000_000


class MatrixContest(Contest):
    """Runs of which only the matrices count, or which sample was predicted as what."""

    @cached_property
    def values(self) -> list[Array]:
        """Values (R, V) of each estimand, at the common shares where prevalence moves it."""
        found = values_at(self.counts, self.estimands, self.shares if self.projectable else None)
        return self.comparable(found)

    @cached_property
    def observed(self) -> list[Array]:
        """Values (R, V) of each estimand as the runs are."""
        return values_at(self.counts, self.estimands)

    @cached_property
    def draws(self) -> int:
        """How many simulated matrices of each run; 0 when even a few are too many."""
        cells = self.counts.size
        if self.pairing.joint is not None:
            cells = max(cells, self.pairing.joint.counts.size)
        return affordable_draws(cells, self.terms.draws)

    @cached_property
    def drawn(self) -> list[Array | None]:
        """Draws (D, R, V) of each estimand, joint where the runs are paired."""
        if not self.draws:
            return [None] * len(self.estimands)
        arguments: dict[str, Any] = {"draws": self.draws, "seed": self.terms.seed}
        with silently():
            if self.pairing.joint is not None:
                return [*draw_paired(self.pairing.joint, self.estimands, **arguments)]
            shares = self.shares if self.projectable else None
            return [*draw_independent(self.counts, self.estimands, **arguments, shares=shares)]

    def functional(self, estimand: Estimand) -> Functional:
        """The metric at the prevalence that it is compared at."""
        shares = self.shares if self.is_reprojected(estimand) else None
        if shares is None:
            return estimand.functional
        return lambda table: estimand.functional(Table(project(table.counts, shares)))

    @property
    def design(self) -> Json:
        """The prior, and how many draws."""
        return {"prior": "edge", "draws": self.draws}

    @property
    def notes(self) -> list[str]:
        """Where draws had to be saved."""
        if not self.draws:
            return ["Too many classes for a simulation: probabilities and most intervals are left out."]
        if self.draws < self.terms.draws:
            return [f"So many classes and runs allow {self.draws} draws."]
        return []

    def simulation(self, index: int) -> str:  # noqa: ARG002 - the same for all
        """What the draws are called."""
        return "posterior"

    def on_folds(self, counts: Array) -> list[Array]:
        """Values (R, F, V) of each estimand on matrices (R, F, K, K)."""
        return values_at(counts, self.estimands)

    def tests(self, pairs: Sequence[tuple[int, int]]) -> list[list[list[Test]]]:
        """Tests by estimand, pair and value."""
        shares = {index for index, estimand in enumerate(self.estimands) if self._is_share(estimand)}
        rest = [index for index in range(len(self.estimands)) if index not in shares]
        found: list[list[list[Test]]] = [[] for _ in self.estimands]
        for index in shares:
            found[index] = [self._share_tests(self.estimands[index], pair) for pair in pairs]
        for index, by_pair in zip(rest, self._other_tests(rest, pairs), strict=True):
            found[index] = by_pair
        return found

    def _is_share(self, estimand: Estimand) -> bool:
        """Accuracy at another prevalence is no share of the samples at hand."""
        return estimand.shares is not None and (self.shares is None or estimand.insensitive)

    def _share_tests(self, estimand: Estimand, pair: tuple[int, int]) -> list[Test]:
        assert estimand.shares is not None  # noqa: S101 - chosen by `_is_share`
        return [share_test(share.of, *pair, self.counts, self.pairing, self.terms.level) for share in estimand.shares]

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
        functionals = [self.estimands[index].functional for index in chosen]
        if draws >= FEWEST_PERMUTATIONS:
            random = generator(seed_of(self.terms.seed, "permutation", *pair))
            found = permutation_p(both, functionals, joints.permute(both, draws=draws, random=random))
            return [[Test(p=float(p), method="permutation") for p in np.atleast_1d(values)] for values in found]
        tests = []
        for index, functional in zip(chosen, functionals, strict=True):
            if not self._derivable(both.matrices()):
                tests.append([Test()] * len(self.estimands[index].names))
                continue
            with silently():
                spread = paired_variance(both, functional, class_counts=ClassCounts.FIXED)
            tests.append(normal_tests(self.gaps(index, pair), spread))
        return tests

    def _unpaired(self, index: int, pairs: Sequence[tuple[int, int]]) -> list[list[Test]]:
        estimand = self.estimands[index]
        if not self._derivable(self.counts) or not self.is_comparable(estimand):
            return [[Test()] * len(estimand.names) for _ in pairs]
        functional = self.functional(estimand)
        with silently():
            if self.pairing.bond is Bond.TEST_SET:
                bounds = [difference_variance_bounds(self.counts[a], self.counts[b], functional) for a, b in pairs]
                return [range_tests(self.gaps(index, pair), *ends) for pair, ends in zip(pairs, bounds, strict=True)]
            spread = [variance(one, functional, class_counts=ClassCounts.FIXED) for one in self.counts]
        return [normal_tests(self.gaps(index, (a, b)), spread[a] + spread[b]) for a, b in pairs]

    @staticmethod
    def _derivable(counts: Array) -> bool:
        """Can the numeric derivatives be afforded?"""
        return bool(np.count_nonzero(counts) * counts[0].size * 2 <= MOST_DERIVED_CELLS)
