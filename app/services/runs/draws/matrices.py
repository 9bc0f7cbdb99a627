"""Runs resampled as matrices, each from its own posterior."""

from abc import abstractmethod
from functools import cached_property

import numpy as np

from app.kernel.compare.differences import on_scale
from app.kernel.compare.paired.effects import SortedSlopes, difference_variance_bounds
from app.kernel.compare.rankings import equal_kappas
from app.kernel.matrix.prevalence import project
from app.kernel.matrix.table import Table
from app.kernel.metrics.expression import Measure
from app.kernel.metrics.families.agreement import cohen_kappa
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.closed_forms import variance
from app.kernel.uncertainty.draws import ClassCounts, Functional, Prior
from app.services.estimands import Estimand
from app.services.estimates.methods.from_draws import affordable_draws
from app.services.runs.differences import Test, normal_tests, proportion_tests, range_tests
from app.services.runs.draws.resampling import ChiSquaredTest, OmnibusTest, Pairs, Resampling, ResamplingDesign
from app.services.runs.draws.simulation import draw_independent
from app.services.runs.pairing import PairingDesign

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

    def tests(self, index: int, level: float) -> list[list[Test]]:
        """Limits and p of each value: of rates by their own methods, of all else by what the draws come with."""
        estimand, pairs = self.estimands[index], self.setup.pairs
        found: dict[tuple[int, int], list[Test]] = {}
        if estimand.rates is not None and not self.setup.prevalence.moves(estimand):
            by_rate = [
                proportion_tests(
                    rate,
                    pairs,
                    self.runs.counts,
                    self.runs.pairing,
                    level=level,
                    rope=self.settings.rope,
                    weighted=self.runs.weighted,
                )
                for rate in estimand.rates
            ]
            for pair, *tests in zip(pairs, *by_rate, strict=True):
                known = [test for test in tests if test is not None]
                if len(known) == len(tests):
                    found[pair] = known
        rest = [pair for pair in pairs if pair not in found]
        found |= dict(zip(rest, self._other_tests(index, rest, level), strict=True))
        return [found[pair] for pair in pairs]

    @abstractmethod
    def _other_tests(self, index: int, pairs: Pairs, level: float) -> list[list[Test]]:
        """Tests of what is no rate, for some of the pairs."""

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
            weighted=self.runs.weighted,
        )

    def omnibus(self, index: int, place: int) -> OmnibusTest | None:  # noqa: ARG002 - kappa has one value
        """Runs on different samples: the chi-squared test that all have the same kappa."""
        estimand = self.estimands[index]
        is_kappa = isinstance(estimand.expression, Measure) and estimand.expression.metric is cohen_kappa
        apart = self.runs.pairing.design is PairingDesign.INDEPENDENT and len(self.runs) > 1
        weighted = any(record.is_weighted for record in self.runs.records)
        if not (is_kappa and apart) or weighted or self.setup.prevalence.moves(estimand):
            return None
        found = equal_kappas(self.runs.counts)
        return None if found is None else OmnibusTest(test="fleiss", of="equal kappas", found=ChiSquaredTest.of(found))

    def _functional(self, estimand: Estimand) -> Functional:
        """The metric at the prevalence that it is compared at, on the scale that it is tested on."""
        shares = self.setup.prevalence.shares
        if shares is None or not self.setup.prevalence.moves(estimand):
            return lambda table: on_scale(estimand.functional(table), estimand.scale)
        return lambda table: on_scale(estimand.functional(Table(project(table.counts, shares))), estimand.scale)

    def _other_tests(self, index: int, pairs: Pairs, level: float) -> list[list[Test]]:  # noqa: ARG002 - for others
        """Normal tests with derivatives; a range of them where the runs are of one test set."""
        return [self._normal_tests(index, pair) for pair in pairs]

    def _normal_tests(self, index: int, pair: tuple[int, int]) -> list[Test]:
        estimand, counts = self.estimands[index], self.runs.counts
        if not self._derivable(counts) or not self.setup.prevalence.reaches(estimand):
            return [Test()] * len(estimand.names)
        with silently():
            gaps = np.subtract(*on_scale(self.values[index][[*pair]], estimand.scale))
            if self.runs.pairing.design is PairingDesign.TEST_SET:
                return range_tests(gaps, *difference_variance_bounds(*(self._slopes(index, run) for run in pair)))
            first, second = (self._variance(index, run) for run in pair)
        return normal_tests(gaps, first + second)

    def _variance(self, index: int, run: int) -> Array:
        """Variances (V) of one run, computed once for all pairs."""
        if (index, run) not in self._variances:
            functional = self._functional(self.estimands[index])
            own = self.runs.weighted[run]
            squares = None if own is None else own.squares
            found = variance(self.runs.counts[run], functional, class_counts=ClassCounts.FIXED, squares=squares)
            self._variances[index, run] = found
        return self._variances[index, run]

    def _slopes(self, index: int, run: int) -> SortedSlopes:
        """What pairings ask of one run, computed once for all pairs."""
        if (index, run) not in self._known_slopes:
            found = SortedSlopes.of(self.runs.counts[run], self._functional(self.estimands[index]))
            self._known_slopes[index, run] = found
        return self._known_slopes[index, run]

    @cached_property
    def _known_slopes(self) -> dict[tuple[int, int], SortedSlopes]:
        return {}

    @cached_property
    def _variances(self) -> dict[tuple[int, int], Array]:
        return {}
