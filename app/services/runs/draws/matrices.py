"""Runs resampled as matrices, each from its own posterior or jointly where samples are shared."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from math import nan
from typing import ClassVar

import numpy as np

from app.domain.findings import Finding
from app.domain.members import LEFT_OUT, SPREAD
from app.kernel.compare.differences import agreed, off_scale, on_scale, permutation_p, to_scale
from app.kernel.compare.paired import joint
from app.kernel.compare.paired import joint as joints
from app.kernel.compare.paired.effects import (
    Effects,
    PairedScore,
    SortedSlopes,
    difference_variance_bounds,
    paired_effects,
)
from app.kernel.compare.paired.joint import JointCounts
from app.kernel.compare.paired.tests import ChiSquared
from app.kernel.compare.rankings import equal_kappas
from app.kernel.matrix.prevalence import project
from app.kernel.matrix.table import Table, WeightedCounts
from app.kernel.metrics.card import Task
from app.kernel.metrics.expression import Measure, is_smooth, needs_counts
from app.kernel.metrics.families.agreement import cohen_kappa
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty import simulation
from app.kernel.uncertainty.closed_forms import variance
from app.kernel.uncertainty.draws import (
    Alternative,
    ClassCounts,
    Functional,
    Prior,
    Shares,
    evaluate_draws,
    generator,
    seed_of,
)
from app.services.estimands import Estimand
from app.services.estimates.methods.of_matrix import affordable_draws
from app.services.runs.aligned import Runs
from app.services.runs.differences import NOT_FOLDED, Test, normal_tests, proportion_tests, range_tests, score_tests
from app.services.runs.pairing import PairingDesign


def draw_run(
    counts: Array,
    estimands: Sequence[Estimand],
    *,
    draws: int,
    seed: int,
    shares: Array | None = None,
    squares: Array | None = None,
) -> list[Array]:
    """Posterior values (D, V) of every estimand for one run (K, K): rows by the edge prior, class counts fixed."""
    batches = simulation.draw_matrices(
        counts,
        draws=draws,
        random=generator(seed),
        shares=Shares.OBSERVED if shares is None else Shares.GIVEN,
        given=shares,
        squares=squares,
    )
    values = evaluate_draws(batches, [estimand.functional for estimand in estimands])
    return [estimand.values(found) for estimand, found in zip(estimands, values, strict=True)]


def draw_independent(
    counts: Array,
    estimands: Sequence[Estimand],
    *,
    draws: int,
    seed: int,
    shares: Array | None = None,
    weighted: Sequence[WeightedCounts | None] = (),
) -> list[Array]:
    """Posterior values (D, R, V) for runs (R, K, K) on different samples, some of which may have weights."""
    squares = [None if one is None else one.squares for one in weighted] or [None] * len(counts)
    runs = [
        draw_run(one, estimands, draws=draws, seed=seed_of(seed, index), shares=shares, squares=own)
        for index, (one, own) in enumerate(zip(counts, squares, strict=True))
    ]
    return [np.stack([run[index] for run in runs], axis=1) for index in range(len(estimands))]


def draw_paired(counts: JointCounts, estimands: Sequence[Estimand], *, draws: int, seed: int) -> list[Array]:
    """Posterior values (D, R, V) for runs on the same samples: what they have in common stays in common."""
    batches = joint.draw_matrices(counts, draws=draws, random=generator(seed))
    values = evaluate_draws(batches, [estimand.functional for estimand in estimands])
    return [estimand.values(found) for estimand, found in zip(estimands, values, strict=True)]


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

    @property
    def findings(self) -> list[Finding]:
        """Why limits are rough."""
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
    """Metrics that need the samples of streamed runs: no value, and no test."""

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


# Cells of the permuted matrices of all pairs.
MOST_PERMUTED_CELLS = 40_000_000


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

    def _other_tests(self, index: int, pairs: Pairs, level: float) -> list[list[Test]]:
        """The score method for what is smooth; for the rest draws and permutations, brought together."""
        scored = self._scored(index, level) if pairs else {}
        return [
            [
                self._resampled(index, place, pair, level) if test is None and np.isfinite(gap) else test or Test()
                for place, (test, gap) in enumerate(zip(scored[pair], self.gaps(index, pair).tolist(), strict=True))
            ]
            for pair in pairs
        ]

    def _scored(self, index: int, level: float) -> dict[tuple[int, int], list[Test | None]]:
        """Tests by the score method of values that it suits, in units of the metric, for all pairs."""
        estimand = self.estimands[index]
        found: dict[tuple[int, int], list[Test | None]] = {
            pair: [None] * len(estimand.names) for pair in self.setup.pairs
        }
        if index not in self._scores:
            return found
        effects, score = self._scores[index]
        values, scale = [self.values[index][[*pair]] for pair in self._effects], estimand.scale
        tests = score_tests(
            score,
            level=level,
            rope=np.concatenate([to_scale(self.settings.rope, both, scale) for both in values]),
            method="permutation_mid_p",
            limits="score",
        )
        limits, suited, start = np.array([[test.low, test.high] for test in tests]).T, effects.faithful.tolist(), 0
        for pair, both in zip(self._effects, values, strict=True):
            own = slice(start, start + len(estimand.names))
            ends = off_scale(limits[:, own], both, scale).T.tolist()
            found[pair] = [
                replace(test, low=low, high=high) if suits and np.isfinite(low) else None
                for test, (low, high), suits in zip(tests[own], ends, suited[own], strict=True)
            ]
            start = own.stop
        return found

    @cached_property
    def _smooth(self) -> list[int]:
        return [index for index, estimand in enumerate(self.estimands) if is_smooth(estimand.expression)]

    @cached_property
    def _effects(self) -> dict[tuple[int, int], Effects]:
        """What the samples contribute to the differences of all smooth estimands, for pairs of few enough cells."""
        functionals = [_on_its_scale(self.estimands[index]) for index in self._smooth]
        both = {pair: self._joint.pair(*pair) for pair in self.setup.pairs} if functionals else {}
        return {
            pair: paired_effects(joint, functionals)
            for pair, joint in both.items()
            if self._derivable(joint.matrices().sum(axis=0))
        }

    @cached_property
    def _scores(self) -> dict[int, tuple[Effects, PairedScore]]:
        """By smooth estimand the effects on its values, one pair after the other, and what follows from them."""
        if not self._effects:
            return {}
        ends = np.cumsum([0] + [len(self.estimands[index].names) for index in self._smooth]).tolist()
        found = {}
        for index, start, end in zip(self._smooth, ends, ends[1:], strict=False):
            own = Effects.stacked([effects.of(slice(start, end)) for effects in self._effects.values()])
            found[index] = own, PairedScore(own)
        return found

    def _resampled(self, index: int, place: int, pair: tuple[int, int], level: float) -> Test:
        permuted, drawn = self._permuted(pair), self.drawn[index]
        p = nan if permuted is None else float(permuted[index][place])
        if drawn is None or permuted is None:
            return Test(p=p, method="none" if permuted is None else "permutation")
        gaps = drawn[:, pair[0], place] - drawn[:, pair[1], place]
        gap = float(self.gaps(index, pair)[place])
        found = agreed(gaps, gap, p, level=level, rope=self.settings.rope)
        return Test(method="permutation", limits=self.name, **asdict(found))

    def _permuted(self, pair: tuple[int, int]) -> list[Array] | None:
        """By estimand, p of each value (V) from the same permutations; None where these would take too long."""
        each = max(1, 2 * self.runs.counts[0].size, self._joint.counts.size)
        draws = min(PERMUTATIONS, MOST_PERMUTED_CELLS // (each * max(len(self.setup.pairs), 1)))
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


def _on_its_scale(estimand: Estimand) -> Functional:
    return lambda table: on_scale(estimand.functional(table), estimand.scale)
