"""Runs resampled as matrices, each from its own posterior or jointly where samples are shared."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from app.domain.findings import Finding
from app.domain.members import LEFT_OUT, SPREAD
from app.kernel.compare.differences import (
    DrawnDifferences,
    HybridDifferences,
    Reach,
    matrix_reach,
    off_scale,
    on_scale,
    to_scale,
)
from app.kernel.compare.paired import joint
from app.kernel.compare.paired.effects import Effects, PairedScore, PairSlopes, coupled, paired_effects
from app.kernel.compare.paired.joint import JointCounts
from app.kernel.compare.paired.tests import ChiSquared
from app.kernel.compare.rankings import equal_kappas
from app.kernel.matrix.table import WeightedCounts
from app.kernel.metrics.card import Scale, Task
from app.kernel.metrics.expression import Measure, needs_counts
from app.kernel.metrics.families.agreement import cohen_kappa
from app.kernel.numerics.arrays import Array, kept, silently
from app.kernel.uncertainty import simulation
from app.kernel.uncertainty.draws import (
    Alternative,
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
from app.services.runs.differences import NO_LIMITS, NO_LOGARITHM, Test, proportion_tests, read_off
from app.services.runs.pairing import PairingDesign


def draw_independent(
    counts: Array,
    estimands: Sequence[Estimand],
    *,
    draws: int,
    seed: int,
    shares: Array | None = None,
    weighted: Sequence[WeightedCounts | None] = (),
) -> list[Array]:
    """Return posterior values (D, R, V) for runs (R, K, K) on different samples, some of which may have weights.

    Rows by the edge prior, class counts fixed. Draws of a run follow from its matrix, wherever it stands.
    """
    in_one = all(estimand.reads_recalls for estimand in estimands)
    squares = [None if one is None else one.squares for one in weighted] or [None] * len(counts)
    functionals = [estimand.functional for estimand in estimands]
    runs: list[list[Array]] = []
    seeds: list[int] = []
    for one, own in zip(counts, squares, strict=True):
        content = seed_of(seed, one)
        seeds.append(content)
        batches = simulation.draw_tables(
            errors_in_one(one) if in_one and own is None else one,
            draws=draws,
            # Runs with equal matrices are as independent as others.
            random=generator(seed_of(content, seeds.count(content))),
            shares=Shares.OBSERVED if shares is None else Shares.GIVEN,
            given=shares,
            squares=own,
        )
        found = evaluate_draws(batches, functionals)
        runs.append([estimand.values(values) for estimand, values in zip(estimands, found, strict=True)])
    return [np.stack([run[index] for run in runs], axis=1) for index in range(len(estimands))]


def errors_in_one(counts: Array) -> Array:
    """Return a matrix (K, K) with the same recalls, and all errors of a class in one cell.

    What reads recalls alone is distributed as before, since shares of a Dirichlet that are added are one, and it costs
    two cells of a row in place of K.
    """
    lumped = np.diag(np.diagonal(counts))
    lumped += np.roll(np.diag(counts.sum(axis=1) - np.diagonal(counts)), 1, axis=1)
    return lumped


def draw_paired(counts: JointCounts, estimands: Sequence[Estimand], *, draws: int, seed: int) -> list[Array]:
    """Posterior values (D, R, V) for runs on the same samples: what they have in common stays in common."""
    batches = joint.draw_matrices(counts, draws=draws, random=generator(seed))
    values = evaluate_draws(batches, [estimand.functional for estimand in estimands])
    return [estimand.values(found) for estimand, found in zip(estimands, values, strict=True)]


# Indices of two runs each.
Pairs = Sequence[tuple[int, int]]
# Runs whose class shares differ by less have the same prevalence.
_SAME_SHARES = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceSettings:
    """Settings of a comparison's inference.

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
    """Design of the simulation.

    Attributes:
        class_counts: `fixed`: the numbers of samples per class are taken as chosen; `random`: they came with
            groups.
        prior: Prior of the simulated matrices.
        draws: Simulated matrices of each run; 0 where they would be too many.
        n_groups: How many groups there are.
    """

    class_counts: str = "fixed"
    prior: str | None = field(default=None, metadata=LEFT_OUT)
    draws: int = 0
    n_groups: int | None = field(default=None, metadata=LEFT_OUT)


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
        """Make it from the result of the kernel."""
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
    """The class prevalence that runs are compared at where their own differ.

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
        """Find the common prevalence of runs of classes, whatever was decided about them; all others are compared as
        they are.
        """
        if runs.task is Task.DECISIONS:
            return cls.of(np.stack([one.counts for one in runs.data]))
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
    """The part that all ways of resampling share: the runs, the class shares, the settings, and the pairs."""

    runs: Runs
    prevalence: CommonPrevalence
    settings: InferenceSettings
    pairs: Pairs


class Resampling(ABC):
    """Draws of some estimands for all runs together, and the tests that go with them.

    Attributes:
        name: What limits that are read off the draws are called.
        values: Values (R, V) of each estimand, at the common prevalence where that moves it.
    """

    name: ClassVar[str]

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
        """Design of the simulation, as it is answered."""

    @property
    def notes(self) -> list[str]:
        """Notes on parts that could not be computed."""
        return []

    @property
    def findings(self) -> list[Finding]:
        """Why limits are rough."""
        return []

    def omnibus(self, index: int, place: int) -> OmnibusTest | None:  # noqa: ARG002 - for those who can tell
        """A test that all runs have the same value, where there is one."""
        return None

    def without(self, index: int) -> str | None:  # noqa: ARG002 - for what is not always there
        """Why the values of an estimand are not known, where they are not."""
        return None

    def gaps(self, index: int, pair: tuple[int, int]) -> Array:
        """Differences (V) of two runs; NaN where a value does not exist or both are infinite."""
        first, second = pair
        with silently():
            found: Array = self.values[index][first] - self.values[index][second]
        return found


# Cells of the matrices that numeric derivatives look at.
MOST_DERIVED_CELLS = 50_000_000


class MatrixDraws(Resampling):
    """Draws of matrices, joint where runs are on the same samples: what they have in common stays in common. Rates and
    what has derivatives have tests of their own.
    """

    name = "posterior"

    @cached_property
    def draws(self) -> int:
        """Number of simulated matrices of each run; 0 when even a few are too many."""
        return affordable_draws(self._cells, self.settings.draws)

    @property
    def _joint(self) -> JointCounts | None:
        return self.runs.pairing.joint

    @property
    def _cells(self) -> int:
        return max(self.runs.counts.size, 0 if self._joint is None else self._joint.counts.size)

    @cached_property
    def drawn(self) -> list[Array | None]:
        """Draws (D, R, V) of each estimand."""
        if not self.draws:
            return [None] * len(self.estimands)
        prevalence, wanted = self.setup.prevalence, {"draws": self.draws, "seed": self.settings.seed}
        with silently():
            if self._joint is not None:
                return [*draw_paired(self._joint, self.estimands, **wanted)]
            shares = prevalence.shares if prevalence.reachable else None
            weighted = self.runs.weighted
            return [*draw_independent(self.runs.counts, self.estimands, **wanted, shares=shares, weighted=weighted)]

    @property
    def design(self) -> ResamplingDesign:
        """The prior, and how many draws."""
        return ResamplingDesign(prior=Prior.EDGE.value, draws=self.draws)

    @property
    def notes(self) -> list[str]:
        """Notes on draws that were saved."""
        if not self.draws:
            return ["Too many classes for a simulation: probabilities and most intervals are left out."]
        if self.draws < self.settings.draws:
            return [f"So many classes and runs allow {self.draws} draws."]
        return []

    def tests(self, index: int, level: float) -> list[list[Test]]:
        """Return tests of each value: of rates by their own methods, of what has derivatives by these, and of all else
        by the draws.
        """
        estimand, pairs = self.estimands[index], self.setup.pairs
        found: dict[tuple[int, int], list[Test]] = {}
        for pair, tests in zip(pairs, self._by_rate(level)[index], strict=True):
            known = [test for test in tests if test is not None]
            if tests and len(known) == len(tests):
                found[pair] = known
        rest = [pair for pair in pairs if pair not in found]
        reached = self.setup.prevalence.reaches(estimand)
        others = self._derived_tests(index, rest, level) if reached else {}
        for pair in rest:
            known_tests = others.get(pair, [None] * len(estimand.names))
            missing = [place for place, test in enumerate(known_tests) if test is None]
            drawn = self._drawn_tests(index, pair, level) if missing else []
            found[pair] = [drawn[place] if test is None else test for place, test in enumerate(known_tests)]
        return [found[pair] for pair in pairs]

    @kept
    def _by_rate(self, level: float) -> list[Sequence[Sequence[Test | None]]]:
        """Return by estimand and pair the tests of the rates that it is made of, none where it is not."""
        moves, pairs = self.setup.prevalence.moves, self.setup.pairs
        rates = [() if one.rates is None or moves(one) else one.rates for one in self.estimands]
        tests = proportion_tests(
            [rate for of_one in rates for rate in of_one],
            pairs,
            self.runs.counts,
            self.runs.pairing,
            level=level,
            rope=self.settings.rope,
            weighted=self.runs.weighted,
        )
        left = iter(tests)
        by_rate = ([next(left) for _ in of_one] for of_one in rates)
        return [[*zip(*of_one, strict=True)] or [()] * len(pairs) for of_one in by_rate]

    def _derived_tests(self, index: int, pairs: Pairs, level: float) -> dict[tuple[int, int], list[Test | None]]:
        """Return tests by derivatives for some of the pairs; None for a value that bends too much for them.

        The score method of paired runs, for all pairs together. Of others MOVER on the limits of the rows of each run,
        and of one test set the least favourable pairing.
        """
        if self._joint is not None:
            of_each = self._paired(level)
            return {pair: of_each[index, pair] for pair in pairs if (index, pair) in of_each}
        if not self._derivable(self.runs.counts):
            return {}
        one_test_set = self.runs.pairing.design is PairingDesign.TEST_SET
        tests = self._of_any_pairing if one_test_set else self._independent
        return {pair: tests(index, pair, level) for pair in pairs}

    def _drawn_tests(self, index: int, pair: tuple[int, int], level: float) -> list[Test]:
        """Return tests of the values by their draws, which are joint where the runs are paired."""
        drawn, gaps = self.drawn[index], self.gaps(index, pair)
        infinite = [Test(reason=NO_LOGARITHM) if np.isinf(gap) else Test() for gap in gaps.tolist()]
        if drawn is None:
            return infinite
        first, second = drawn[:, pair[0]], drawn[:, pair[1]]
        name, smallest = self.name, None
        with silently():
            differences = DrawnDifferences(gaps, first - second)
            if self.runs.pairing.design is PairingDesign.TEST_SET:
                # No pairing lets the difference spread more than draws that are sorted against each other.
                first, second, name = np.sort(first, axis=0), np.sort(second, axis=0), f"{name}_of_any_pairing"
                differences = DrawnDifferences(gaps, first - second[::-1])
                smallest = DrawnDifferences(gaps, first - second).p
            found = read_off(differences, level=level, rope=self.settings.rope, method=name)
        errors = [
            float(np.sqrt(max(share * (1.0 - share) for share in (test.larger, test.equivalent)) / len(drawn)))
            for test in found
        ]
        return [
            none
            if not np.isfinite(gap)
            else Test(reason=NO_LIMITS)
            if np.isnan(test.p)
            else replace(test, error=error, smallest=None if smallest is None else float(smallest[place]))
            for place, (test, none, gap, error) in enumerate(zip(found, infinite, gaps.tolist(), errors, strict=True))
        ]

    def _derivable(self, counts: Array) -> bool:
        """Can the numeric derivatives be afforded?"""
        return bool(np.count_nonzero(counts) * counts[0].size * 2 <= MOST_DERIVED_CELLS)

    def _on_scale(self, index: int, pair: tuple[int, int]) -> tuple[Array, Array]:
        """Return the values (2, V) of two runs, and the region of equivalence (V) on the scale of the metric."""
        both, scale = self.values[index][[*pair]], self.estimands[index].scale
        return both, to_scale(self.settings.rope, both, scale)

    def omnibus(self, index: int, place: int) -> OmnibusTest | None:  # noqa: ARG002 - kappa has one value
        """Runs on different samples: the chi-squared test that all have the same kappa."""
        estimand = self.estimands[index]
        is_kappa = isinstance(estimand.expression, Measure) and estimand.expression.metric is cohen_kappa
        apart = self.runs.pairing.design is PairingDesign.INDEPENDENT and len(self.runs) > 1
        weighted = any(one is not None for one in self.runs.weighted)
        if not (is_kappa and apart) or weighted or self.setup.prevalence.moves(estimand):
            return None
        found = equal_kappas(self.runs.counts)
        return None if found is None else OmnibusTest(test="fleiss", of="equal kappas", found=ChiSquaredTest.of(found))

    def _functional_of(self, indices: Sequence[int]) -> Functional:
        """Return all values of several estimands of one table for all of them."""
        chosen = [self.estimands[index] for index in indices]
        return lambda table: np.concatenate(
            [one.values(on_scale(one.functional(table), one.scale)) for one in chosen], axis=-1
        )

    def _independent(self, index: int, pair: tuple[int, int], level: float) -> list[Test | None]:
        both, rope = self._on_scale(index, pair)
        scale = self.estimands[index].scale
        weighted = any(self.runs.weighted[run] is not None for run in pair)
        with silently():
            gaps = np.subtract(*on_scale(both, scale))
            found = HybridDifferences(gaps, *(self._reach(index, run, level) for run in pair))
            name = "weighted_mover" if weighted else "mover"
            return _off_scale(read_off(found, level=level, rope=rope, method=name), both, scale)

    @kept
    def _reach(self, index: int, run: int, level: float) -> Reach:
        """Limits of one run, the same for all pairs."""
        together = self._together if index in self._together else (index,)
        start = sum(len(self.estimands[place].names) for place in together[: together.index(index)])
        places = range(start, start + len(self.estimands[index].names))
        return self._reach_of(together, run, level).take(places)

    @kept
    def _reach_of(self, together: tuple[int, ...], run: int, level: float) -> Reach:
        """Limits of one run, made once for several estimands; what prevalence does not move is the same at any."""
        counts, own = self.runs.counts[run], self.runs.weighted[run]
        if own is None and all(self.estimands[place].reads_recalls for place in together):
            counts = errors_in_one(counts)
        prevalence = self.setup.prevalence
        shares = prevalence.shares if prevalence.reachable else None
        return matrix_reach(counts, self._functional_of(together), level, own, shares)

    @cached_property
    def _together(self) -> tuple[int, ...]:
        """Estimands that are no rates where the runs are compared; rates that have no tests as such come one by one."""
        prevalence = self.setup.prevalence
        return tuple(
            place
            for place, one in enumerate(self.estimands)
            if prevalence.reaches(one) and (one.rates is None or prevalence.moves(one))
        )

    def _of_any_pairing(self, index: int, pair: tuple[int, int], level: float) -> list[Test | None]:
        """Return the tests of the pairing at which a difference varies most, and p at that where it varies least."""
        both, rope = self._on_scale(index, pair)
        scale, slopes = self.estimands[index].scale, self._slopes(index, pair)
        first, second = self.runs.counts[[*pair]]
        ends = []
        for opposed in (True, False):
            joints = [
                coupled(first, second, slopes.slopes[:, :, place], opposed=opposed) for place in range(both.shape[1])
            ]
            ends.append(
                Effects.stacked([slopes.effects(joint, slice(place, place + 1)) for place, joint in enumerate(joints)])
            )
        widest, smallest = (PairedScore(effects) for effects in ends)
        names = {"method": "permutation_mid_p_of_any_pairing", "limits": "score_of_widest_pairing"}
        found = _off_scale(read_off(widest, level=level, rope=rope, **names), both, scale)
        return [
            None if test is None or not suits else replace(test, smallest=min(float(least), test.p))
            for test, suits, least in zip(found, ends[0].faithful.tolist(), smallest.p.tolist(), strict=True)
        ]

    @kept
    def _slopes(self, index: int, pair: tuple[int, int]) -> PairSlopes:
        """Slopes of two runs, made once for all levels."""
        matrices = self.runs.counts[[*pair]]
        return PairSlopes(matrices, [self._functional_of([index])], np.ones(matrices.shape[-1]))

    @kept
    def _paired(self, level: float) -> dict[tuple[int, tuple[int, int]], list[Test | None]]:
        """Return the tests of runs on the same samples by estimand and pair, made at once for all of them."""
        if not (self._scored and self._effects):
            return {}
        effects, score = self._score
        places = [(index, pair) for pair in self._effects for index in self._scored]
        on_scale = [self._on_scale(*place) for place in places]
        ropes = np.concatenate([rope for _, rope in on_scale])
        tests = read_off(score, level=level, rope=ropes, method="permutation_mid_p", limits="score")
        suited, found, start = effects.faithful.tolist(), {}, 0
        for (index, pair), (both, _) in zip(places, on_scale, strict=True):
            own = slice(start, start + both.shape[1])
            ends = _off_scale(tests[own], both, self.estimands[index].scale)
            found[index, pair] = [test if suits else None for test, suits in zip(ends, suited[own], strict=True)]
            start = own.stop
        return found

    @cached_property
    def _scored(self) -> list[int]:
        """Estimands of runs on the same samples that are no rates among samples that the truth decides."""
        moves = self.setup.prevalence.moves
        return [
            index
            for index, one in enumerate(self.estimands)
            if one.rates is None or moves(one) or not all(rate.by_truth for rate in one.rates)
        ]

    @cached_property
    def _effects(self) -> dict[tuple[int, int], Effects]:
        """Effects of the samples on the differences of these, for pairs of few enough cells."""
        if self._joint is None:
            return {}
        functionals = [self._functional_of([index]) for index in self._scored]
        both = {pair: self._joint.pair(*pair) for pair in self.setup.pairs}
        return {
            pair: paired_effects(joint, functionals)
            for pair, joint in both.items()
            if self._derivable(joint.matrices().sum(axis=0))
        }

    @cached_property
    def _score(self) -> tuple[Effects, PairedScore]:
        """The effects on all values, one pair after the other, and what follows from them."""
        all_of_them = Effects.stacked([*self._effects.values()])
        return all_of_them, PairedScore(all_of_them)


def _off_scale(tests: Sequence[Test], both: Array, scale: Scale) -> list[Test | None]:
    """Tests on a scale as those of values (2, V) of two runs; None where there are no limits."""
    limits = np.array([[test.low, test.high] for test in tests]).T
    ends = off_scale(limits, both, scale).T.tolist()
    return [
        replace(test, low=low, high=high) if np.isfinite(low) and np.isfinite(high) else None
        for test, (low, high) in zip(tests, ends, strict=True)
    ]
