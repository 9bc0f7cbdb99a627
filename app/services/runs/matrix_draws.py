"""Runs resampled as matrices: from the posterior of each, or of all together where they are paired."""

from abc import abstractmethod
from functools import cached_property

import numpy as np

from app.kernel.compare import joint as joints
from app.kernel.compare.couplings import difference_variance_bounds
from app.kernel.compare.differences import on_scale, paired_variance, permutation_p
from app.kernel.compare.joint import JointCounts
from app.kernel.matrix.prevalence import project
from app.kernel.matrix.table import Table
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.delta import variance
from app.kernel.uncertainty.design import ClassCounts, Prior, generator, seed_of
from app.kernel.uncertainty.draws import Functional
from app.services.estimands import Estimand
from app.services.runs.differences import Test, normal_tests, proportion_test, range_tests
from app.services.runs.pairing import PairingDesign
from app.services.runs.resampling import FEWEST_PERMUTATIONS, PERMUTATIONS, Resampling, ResamplingDesign
from app.services.runs.simulation import affordable_draws, draw_independent, draw_paired

# Cells of the permuted matrices of all pairs.
MOST_PERMUTED_CELLS = 40_000_000
# Cells of the matrices that numeric derivatives look at.
MOST_DERIVED_CELLS = 50_000_000


class MatrixDraws(Resampling):
    """Draws of matrices; rates have tests of their own."""

    name = "posterior"

    @cached_property
    def draws(self) -> int:
        """How many simulated matrices of each run; 0 when even a few are too many."""
        return affordable_draws(self._cells, self.settings.draws)

    @property
    def _cells(self) -> int:
        return int(self.runs.counts.size)

    @cached_property
    def drawn(self) -> list[Array | None]:
        """Draws (D, R, V) of each estimand."""
        if not self.draws:
            return [None] * len(self.estimands)
        with silently():
            return [*self._draw()]

    @abstractmethod
    def _draw(self) -> list[Array]:
        """Draws (D, R, V) of each estimand."""

    @property
    def design(self) -> ResamplingDesign:
        """The prior, and how many draws."""
        return ResamplingDesign(prior=Prior.EDGE.value, draws=self.draws)

    @property
    def notes(self) -> list[str]:
        """Where draws had to be saved."""
        if not self.draws:
            return ["Too many classes for a simulation: probabilities and most intervals are left out."]
        if self.draws < self.settings.draws:
            return [f"So many classes and runs allow {self.draws} draws."]
        return []

    def tests(self, index: int, pair: tuple[int, int], level: float) -> list[Test]:
        """Limits and p of each value: of rates by their own methods, of all else by what the draws come with."""
        estimand = self.estimands[index]
        if estimand.rates is not None and not self.setup.prevalence.moves(estimand):
            counts, pairing = self.runs.counts, self.runs.pairing
            known = [proportion_test(rate, *pair, counts, pairing, level) for rate in estimand.rates]
            found = [test for test in known if test is not None]
            if len(found) == len(known):
                return found
        return self._other_tests(index, pair)

    @abstractmethod
    def _other_tests(self, index: int, pair: tuple[int, int]) -> list[Test]:
        """Tests of what is no rate."""

    def _derivable(self, counts: Array) -> bool:
        """Can the numeric derivatives be afforded?"""
        return bool(np.count_nonzero(counts) * counts[0].size * 2 <= MOST_DERIVED_CELLS)


class IndependentMatrices(MatrixDraws):
    """The posterior of each run for itself, at the common prevalence where there is one."""

    def _draw(self) -> list[Array]:
        prevalence = self.setup.prevalence
        return draw_independent(
            self.runs.counts,
            self.estimands,
            draws=self.draws,
            seed=self.settings.seed,
            shares=prevalence.shares if prevalence.reachable else None,
        )

    def _functional(self, estimand: Estimand) -> Functional:
        """The metric at the prevalence that it is compared at, on the scale that it is tested on."""
        shares = self.setup.prevalence.shares
        if shares is None or not self.setup.prevalence.moves(estimand):
            return lambda table: on_scale(estimand.functional(table), estimand.scale)
        return lambda table: on_scale(estimand.functional(Table(project(table.counts, shares))), estimand.scale)

    def _other_tests(self, index: int, pair: tuple[int, int]) -> list[Test]:
        """Normal tests with derivatives; a range of them where the runs are of one test set."""
        estimand, counts = self.estimands[index], self.runs.counts
        if not self._derivable(counts) or not self.setup.prevalence.reaches(estimand):
            return [Test()] * len(estimand.names)
        with silently():
            gaps = np.subtract(*on_scale(self.values[index][[*pair]], estimand.scale))
            if self.runs.pairing.design is PairingDesign.TEST_SET:
                bounds = difference_variance_bounds(counts[pair[0]], counts[pair[1]], self._functional(estimand))
                return range_tests(gaps, *bounds)
            first, second = (self._variance(index, run) for run in pair)
        return normal_tests(gaps, first + second)

    def _variance(self, index: int, run: int) -> Array:
        """Variances (V) of one run, computed once for all pairs."""
        if (index, run) not in self._variances:
            functional = self._functional(self.estimands[index])
            found = variance(self.runs.counts[run], functional, class_counts=ClassCounts.FIXED)
            self._variances[index, run] = found
        return self._variances[index, run]

    @cached_property
    def _variances(self) -> dict[tuple[int, int], Array]:
        return {}


class PairedMatrices(MatrixDraws):
    """The joint posterior of runs on the same samples: what they have in common stays in common."""

    @property
    def _joint(self) -> JointCounts:
        assert self.runs.pairing.joint is not None  # noqa: S101 - what this is chosen by
        return self.runs.pairing.joint

    @property
    def _cells(self) -> int:
        return max(super()._cells, self._joint.counts.size)

    def _draw(self) -> list[Array]:
        return draw_paired(self._joint, self.estimands, draws=self.draws, seed=self.settings.seed)

    def _other_tests(self, index: int, pair: tuple[int, int]) -> list[Test]:
        """Permutation tests where they can be afforded, else normal ones."""
        estimand = self.estimands[index]
        permuted = self._permuted(pair)
        if permuted is not None:
            return [Test(p=float(p), method="permutation") for p in permuted[index]]
        both = self._joint.pair(*pair)
        if not self._derivable(both.matrices()):
            return [Test()] * len(estimand.names)
        with silently():
            spread = paired_variance(both, estimand.functional, class_counts=ClassCounts.FIXED)
        return normal_tests(self.gaps(index, pair), spread)

    def _permuted(self, pair: tuple[int, int]) -> list[Array] | None:
        """By estimand, p of each value (V) from the same permutations; None where these are too dear."""
        each = max(1, 2 * self.runs.counts[0].size, self._joint.counts.size)
        draws = min(PERMUTATIONS, MOST_PERMUTED_CELLS // (each * max(self.setup.n_pairs, 1)))
        if draws < FEWEST_PERMUTATIONS:
            return None
        if pair not in self._permutations:
            random = generator(seed_of(self.settings.seed, "permutation", *pair))
            both = self._joint.pair(*pair)
            batches = joints.permute(both, draws=draws, random=random)
            found = permutation_p(both, [estimand.functional for estimand in self.estimands], batches)
            self._permutations[pair] = [np.atleast_1d(values) for values in found]
        return self._permutations[pair]

    @cached_property
    def _permutations(self) -> dict[tuple[int, int], list[Array]]:
        return {}
