"""Runs resampled as matrices, each from its own posterior or jointly where samples are shared."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from app.domain.findings import Finding
from app.domain.members import LEFT_OUT, SPREAD
from app.domain.options import FEWEST_DRAWS
from app.kernel.compare.differences import (
    Differences,
    DrawnDifferences,
    HybridDifferences,
    Reach,
    matrix_reach,
    off_scale,
    on_scale,
    to_scale,
)
from app.kernel.compare.paired import joint
from app.kernel.compare.paired.effects import (
    Effects,
    PairedDifferences,
    PairSlopes,
    coupled,
)
from app.kernel.compare.paired.joint import JointCounts
from app.kernel.compare.paired.tests import ChiSquared
from app.kernel.compare.rankings import equal_kappas
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Scale, Task
from app.kernel.metrics.expression import Measure, grows, needs_counts
from app.kernel.metrics.families.agreement import cohen_kappa
from app.kernel.metrics.proportion import Rate
from app.kernel.numerics.arrays import Array, Mask, kept, silently
from app.kernel.uncertainty.draws import (
    Alternative,
    Prior,
    evaluate_draws,
    generator,
    rounded,
    seed_of,
)
from app.kernel.uncertainty.intervals import Limits, two_sided_z, wilson_at
from app.kernel.uncertainty.simulation import RowPosterior
from app.services.estimands import Estimand
from app.services.estimates.estimate import Estimate
from app.services.estimates.methods.simulation import affordable_draws
from app.services.runs.aligned import Runs
from app.services.runs.differences import NO_LIMITS, NOT_REACHED, OF_SIZES, Test, read_off
from app.services.runs.pairing import PairingDesign


def draw_independent(
    counts: Array,
    estimands: Sequence[Estimand],
    *,
    draws: int,
    seed: int,
    shares: Array | None = None,
    squares: Sequence[Array | None] | None = None,
) -> list[Array]:
    """Return posterior values (D, R, V) for runs (R, K, K) on different samples, some of which may have weights, whose
    squares (K, K) are summed.

    Rows by the edge prior, class counts fixed. Draws of a run follow from its matrix, wherever it stands.
    """
    in_one = all(estimand.reads_recalls for estimand in estimands)
    functionals = [estimand.functional for estimand in estimands]
    runs: list[list[Array]] = []
    seeds: list[int] = []
    for one, own in zip(counts, squares or [None] * len(counts), strict=True):
        # Weights in another unit are the same weights.
        content = seed_of(seed, one if own is None else rounded(one / one.sum()))
        seeds.append(content)
        rows = RowPosterior(errors_in_one(one) if in_one and own is None else one, given=shares, squares=own)
        # Runs with equal matrices are as independent as others.
        random = generator(seed_of(content, seeds.count(content)))
        found = evaluate_draws(rows.batches(draws, random), functionals)
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


# Indices of two runs each.
Pairs = Sequence[tuple[int, int]]
# The level at whose limits the worth of weighted rates is read.
_USUAL_LEVEL = 0.95
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
        of_one_size: Have all runs as many samples?
    """

    shares: Array | None = None
    reachable: bool = True
    of_one_size: bool = True

    @classmethod
    def of_runs(cls, runs: Runs) -> "CommonPrevalence":
        """The mean shares of runs of classes, whatever was decided about them; all others are compared as they are."""
        if runs.task not in (None, Task.DECISIONS):
            return cls(of_one_size=runs.of_one_size)
        actual = runs.counts.sum(axis=2)
        shares = actual / actual.sum(axis=1)[:, None]
        if np.abs(shares - shares[0]).max() <= _SAME_SHARES:
            return cls(of_one_size=runs.of_one_size)
        reachable = bool((actual > 0).all(axis=0)[actual.sum(axis=0) > 0].all())
        return cls(shares.mean(axis=0), reachable, runs.of_one_size)

    @property
    def reached(self) -> Array | None:
        """The common shares; None where the runs are compared as they are, or cannot be brought there."""
        return self.shares if self.reachable else None

    def moves(self, estimand: Estimand) -> bool:
        """Is the metric another one at the common shares than as the runs are?"""
        return self.shares is not None and not estimand.insensitive

    def without(self, estimand: Estimand) -> str | None:
        """Return why the runs cannot be compared on the metric; None where they can."""
        if not self.of_one_size and grows(estimand.expression):
            return OF_SIZES
        # Matrices at other shares hold weights and no numbers of samples.
        if self.moves(estimand) and (not self.reachable or needs_counts(estimand.expression)):
            return NOT_REACHED
        return None


class Block(NamedTuple):
    """Estimands whose values are tested at once: those that are rates, or all others."""

    places: tuple[int, ...]
    rates: tuple[Rate, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Setup:
    """The part that all ways of resampling share: the runs, the class shares, the settings, and the pairs."""

    runs: Runs
    prevalence: CommonPrevalence
    settings: InferenceSettings
    pairs: Pairs


# The deviate up to which limits are extended that are known at one level.
_FURTHEST = 40.0


class Resampling(ABC):
    """Draws of some estimands for all runs together, and the tests that go with them.

    Attributes:
        values: Values (R, V) of each estimand, at the common prevalence where that moves it.
    """

    def __init__(self, setup: Setup, estimands: Sequence[Estimand], values: Sequence[Array]) -> None:
        self.setup, self.runs, self.settings = setup, setup.runs, setup.settings
        self.estimands, self.values = tuple(estimands), tuple(values)

    @property
    def drawn(self) -> list[Array | None]:
        """Draws (D, R, V) of each estimand, joint where the runs are paired; None where there are none, or they would
        take too long.
        """
        return [None] * len(self.estimands)

    @abstractmethod
    def tests(self, index: int, level: float) -> list[list[Test]]:
        """For each pair and each of the values of an estimand, limits and p of the difference of the two runs."""

    @property
    def design(self) -> ResamplingDesign:
        """Design of the simulation, as it is answered."""
        return ResamplingDesign()

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

    def by_own_limits(
        self, own: Sequence[Estimate], gaps: Sequence[Array], level: float, paired: Sequence[tuple[float, Limits]] = ()
    ) -> list[Test]:
        """For each pair the test of one value by MOVER over the limits of each run (Zou & Donner 2008).

        Args:
            own: The value of each run (R) with its limits at the level.
            gaps: For each pair the difference (1).
            level: Of the limits.
            paired: For each pair the correlation of its values, and limits of the difference that need not be exceeded;
                without, paired runs are taken as independent, which makes limits wider than they need be.
        """
        # Known at one level; at others in proportion to the deviate.
        deviates = np.array([two_sided_z(level), _FURTHEST])
        scale = (deviates / deviates[0])[:, None]
        reaches = [Reach(deviates, scale * (one.value - one.low), scale * (one.high - one.value)) for one in own]
        pairs, found, none = self.setup.pairs, list[Test](), np.full(1, np.nan)
        for pair, gap, (rho, (low, high)) in zip(
            pairs, gaps, paired or [(0.0, (none, none))] * len(pairs), strict=True
        ):
            reason = next((own[run].reason for run in pair if own[run].reason is not None), None)
            if reason is not None:
                found.append(Test(reason=reason))
                continue
            # Runs that say the same in all of these slices have none.
            within = Reach(deviates, scale * (gap - low), scale * (high - gap)) if (high > low).all() else None
            difference = HybridDifferences(gap, *(reaches[run] for run in pair), correlation=rho, within=within)
            found += read_off(difference, level=level, rope=self.settings.rope, method="mover")
        return found


# Cells of all simulated matrices together, which a page can wait for: a tenth of a second.
_USUAL_CELLS = 10_000_000
# Cells of the matrices that numeric derivatives look at.
MOST_DERIVED_CELLS = 50_000_000


class MatrixDraws(Resampling):
    """Draws of matrices, joint where runs are on the same samples: what they have in common stays in common. Rates and
    what has derivatives have tests of their own.
    """

    @cached_property
    def draws(self) -> int:
        """Number of simulated matrices of each run; 0 when even a few are too many."""
        usual = max(_USUAL_CELLS // self._cells, FEWEST_DRAWS)
        return affordable_draws(self._cells, min(self.settings.draws, usual))

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
        draws, seed = self.draws, self.settings.seed
        with silently():
            if self._joint is not None:
                # What the runs have in common stays in common.
                batches = joint.draw_matrices(self._joint, draws=draws, random=generator(seed))
                found = evaluate_draws(batches, [estimand.functional for estimand in self.estimands])
                return [estimand.values(values) for estimand, values in zip(self.estimands, found, strict=True)]
            squares, shares = [one.squares for one in self.runs.data], self.setup.prevalence.reached
            found = draw_independent(
                self.runs.counts, self.estimands, draws=draws, seed=seed, shares=shares, squares=squares
            )
            return [*found]

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
        """Return tests of each value. Of runs on the same samples the score method, for all pairs together; of one test
        set that of the least favourable pairing; of others MOVER on the limits of each run. What bends too much for
        these, or has no limits, is read off the draws.
        """
        found: list[list[Test]] = []
        for pair, tests in zip(self.setup.pairs, self._known(level)[index], strict=True):
            drawn = self._drawn_tests(index, pair, level) if None in tests else []
            found.append([drawn[place] if test is None else test for place, test in enumerate(tests)])
        return found

    @kept
    def _known(self, level: float) -> list[list[list[Test | None]]]:
        """By estimand, for each pair the tests of its values without draws; None where the runs are not compared, or
        derivatives would take long.
        """
        sizes = [len(one.names) for one in self.estimands]
        found: list[list[list[Test | None]]] = [[[None] * size] * len(self.setup.pairs) for size in sizes]
        for block in self._blocks:
            tests = iter(self._independent(block, level) if self._apart else self._same_samples(block, level))
            by_pair = [[[*islice(tests, sizes[index])] for index in block.places] for _ in self.setup.pairs]
            for index, of_pairs in zip(block.places, zip(*by_pair, strict=True), strict=True):
                found[index] = [*of_pairs]
        return found

    @cached_property
    def _blocks(self) -> list[Block]:
        """Estimands that are rates, and all others whose numeric derivatives can be afforded."""
        counts = self.runs.counts if self._joint is None else self.runs.counts.sum(axis=0)
        derivable = np.count_nonzero(counts) * counts[0].size * 2 <= MOST_DERIVED_CELLS
        rates = {
            place: self._rates(estimand)
            for place, estimand in enumerate(self.estimands)
            if self.setup.prevalence.without(estimand) is None
        }
        of_rates = Block(tuple(place for place, own in rates.items() if own), tuple(chain(*rates.values())))
        others = Block(tuple(place for place, own in rates.items() if derivable and not own))
        return [block for block in (of_rates, others) if block.places]

    @property
    def _apart(self) -> bool:
        return self.runs.pairing.design is PairingDesign.INDEPENDENT

    def _rates(self, estimand: Estimand) -> Sequence[Rate]:
        """Return the rates that an estimand is of, where it is tested as such: runs on the same samples need a rate
        among samples that the truth decides.
        """
        rates = () if estimand.rates is None or self.setup.prevalence.moves(estimand) else estimand.rates
        return rates if self._apart or all(rate.by_truth for rate in rates) else ()

    def _drawn_tests(self, index: int, pair: tuple[int, int], level: float) -> list[Test]:
        """Return tests of the values by their draws, which are joint where the runs are paired."""
        drawn, gaps = self.drawn[index], self.gaps(index, pair)
        if drawn is None:
            return [Test()] * gaps.size
        first, second = drawn[:, pair[0]], drawn[:, pair[1]]
        name, smallest = "posterior", None
        with silently():
            differences = DrawnDifferences(gaps, first - second)
            if self.runs.pairing.design is PairingDesign.TEST_SET:
                # No pairing lets the difference spread more than draws that are sorted against each other.
                first, second, name = np.sort(first, axis=0), np.sort(second, axis=0), f"{name}_of_any_pairing"
                differences = DrawnDifferences(gaps, first - second[::-1])
                smallest = DrawnDifferences(gaps, first - second).p
            found = read_off(differences, level=level, rope=self.settings.rope, method=name)
        tests = []
        for place, test in enumerate(found):
            spread = max(share * (1.0 - share) for share in (test.larger, test.probability_equivalent))
            least = None if smallest is None else float(smallest[place])
            known = replace(test, probability_error=float(np.sqrt(spread / len(drawn))), smallest=least)
            tests.append(Test(reason=NO_LIMITS) if np.isnan(test.p_value) else known)
        return tests

    def omnibus(self, index: int, place: int) -> OmnibusTest | None:  # noqa: ARG002 - kappa has one value
        """Runs on different samples: the chi-squared test that all have the same kappa."""
        estimand = self.estimands[index]
        is_kappa = isinstance(estimand.expression, Measure) and estimand.expression.metric is cohen_kappa
        apart = self._apart and len(self.runs) > 1
        if not (is_kappa and apart) or self._weighted(range(len(self.runs))) or self.setup.prevalence.moves(estimand):
            return None
        found = equal_kappas(self.runs.counts)
        return None if found is None else OmnibusTest(test="fleiss", of="equal kappas", found=ChiSquaredTest.of(found))

    def _weighted(self, runs: Iterable[int]) -> bool:
        return any(self.runs.data[run].weighted is not None for run in runs)

    def _functional(self, table: Table) -> Array:
        """Values of all that is no rate, each on its scale."""
        chosen = [self.estimands[index] for block in self._blocks if not block.rates for index in block.places]
        return np.concatenate([one.values(on_scale(one.functional(table), one.scale)) for one in chosen], axis=-1)

    def _read_off(
        self, block: Block, pairs: Pairs, found: Differences, level: float, method: str, limits: str | None = None
    ) -> list[Test | None]:
        """Tests of the values of a block by the distributions of their differences on the scales of the metrics, pair
        by pair; None where there are no limits.
        """
        values = np.concatenate([self.values[index][[*pair]] for pair in pairs for index in block.places], axis=1)
        logs = np.tile(np.concatenate([self._logs(index) for index in block.places]), len(pairs))
        rope = to_scale(self.settings.rope, values, logs)
        with silently():
            tests = read_off(found, level=level, rope=rope, method=method, limits=limits)
        ends = off_scale(np.array([[test.low, test.high] for test in tests]).T, values, logs)
        return [
            replace(test, low=low, high=high) if np.isfinite(low) and np.isfinite(high) else None
            for test, (low, high) in zip(tests, ends.T.tolist(), strict=True)
        ]

    def _logs(self, index: int) -> Mask:
        """Mask of the values (V) of an estimand that are compared on their logarithms."""
        estimand = self.estimands[index]
        return np.full(len(estimand.names), estimand.scale is Scale.LOG)

    def _independent(self, block: Block, level: float) -> list[Test | None]:
        """Return the tests of all pairs of runs on different samples."""
        values = [on_scale(self.values[index], self.estimands[index].scale) for index in block.places]
        of_runs, tests = np.concatenate(values, axis=1), list[Test | None]()
        for pair in self.setup.pairs:
            name = "newcombe" if block.rates else "mover"
            with silently():
                gaps = np.subtract(*of_runs[[*pair]])
                found = HybridDifferences(gaps, *(self._reach(block, run, level) for run in pair))
            tests += self._read_off(block, [pair], found, level, f"weighted_{name}" if self._weighted(pair) else name)
        return tests

    @kept
    def _reach(self, block: Block, run: int, level: float) -> Reach:
        """Limits of one run, the same for all pairs: of rates Wilson's, by the hits and samples that the run is worth,
        as those of the lines of the rates. What prevalence does not move is the same at any.
        """
        counts, own = self.runs.counts[run], self.runs.data[run]
        if not block.rates:
            if own.weighted is None and all(self.estimands[index].reads_recalls for index in block.places):
                counts = errors_in_one(counts)
            return matrix_reach(counts, self._functional, level, own.weighted, self.setup.prevalence.reached)
        hits, worth = own.counted(block.rates, _USUAL_LEVEL)
        slopes = np.array([_slope(rate, float(rate.counts(Table(counts))[1])) for rate in block.rates])

        def limits(z: Array) -> tuple[Array, Array]:
            low, high = (slopes * end for end in wilson_at(hits, worth, z))
            return np.minimum(low, high), np.maximum(low, high)

        with silently():
            return Reach.of(limits, slopes * hits / worth, level)

    def _same_samples(self, block: Block, level: float) -> list[Test | None]:
        """Return the tests of all pairs of runs on the same samples: of one test set those of the pairing at which a
        difference varies most, with p at that where it varies least.
        """
        (effects, score, least), paired, of_rates = self._score(block), self._joint is not None, bool(block.rates)
        tests = self._read_off(block, self.setup.pairs, score, level, *_NAMES[paired, of_rates])
        differ = np.round(effects.better + effects.worse).sum(axis=1).tolist()
        found: list[Test | None] = []
        for test, suits, count, smallest in zip(tests, effects.faithful.tolist(), differ, least.tolist(), strict=True):
            if test is None or not suits:
                found.append(None)
            elif paired:
                found.append(replace(test, discordant=int(count) if of_rates else None))
            else:
                found.append(replace(test, smallest=min(smallest, test.p_value)))
        return found

    @kept
    def _score(self, block: Block) -> tuple[Effects, PairedDifferences, Array]:
        """Effects of the samples on the differences of all pairs, of one test set at the pairing at which the runs
        differ most, what follows from them, and p where they differ least.
        """
        effects = self._effects(block, opposed=True)
        score = PairedDifferences(effects)
        least = score if self._joint is not None else PairedDifferences(self._effects(block, opposed=False))
        return effects, score, least.p

    def _effects(self, block: Block, *, opposed: bool) -> Effects:
        parts = list[Effects]()
        for pair in self.setup.pairs:
            parts += [self._of_rate(rate, pair, opposed=opposed) for rate in block.rates]
            parts += [] if block.rates else self._of_derived(pair, opposed=opposed)
        return Effects.stacked(parts)

    def _of_derived(self, pair: tuple[int, int], *, opposed: bool) -> list[Effects]:
        """Effects on all that is no rate."""
        if self._joint is not None:
            joint = self._joint.pair(*pair)
            return [PairSlopes.numeric(joint.matrices(), self._functional, joint.scales()).effects(joint)]
        slopes, (first, second) = self._slopes(pair), self.runs.counts[[*pair]]
        each = [slopes.of(slice(place, place + 1)) for place in range(len(slopes.slopes))]
        return [one.effects(coupled(first, second, one.slopes[0], opposed=opposed)) for one in each]

    @kept
    def _slopes(self, pair: tuple[int, int]) -> PairSlopes:
        """Slopes of two runs of one test set, made once for both ends."""
        matrices = self.runs.counts[[*pair]]
        return PairSlopes.numeric(matrices, self._functional, np.ones(matrices.shape[-1]))

    def _of_rate(self, rate: Rate, pair: tuple[int, int], *, opposed: bool) -> Effects:
        """Effects on a rate: samples are of one class, and taken for 0 where they count."""
        joint = self._joint
        if joint is None:
            # The truth decides what it is among, so that of a recall among many classes one row counts.
            classes = np.arange(self.runs.counts.shape[-1])
            rows = classes[rate.among.hold(classes, classes, rate.of)]
            members = self.runs.counts[np.ix_(np.array(pair), rows)]
            hits = np.where(rate.hits.hold(rows[:, None], classes, rate.of), members, 0.0).sum(axis=2)
            first, second = np.stack([hits, members.sum(axis=2) - hits], axis=2)
            joint = coupled(first, second, np.tile([1.0, 0.0], (rows.size, 1)), opposed=opposed)
            truth, predictions, counts, weights = joint.truth, joint.predictions, joint.counts, None
        else:
            among = rate.among.hold(joint.truth, joint.truth, rate.of)
            truth, counts = joint.truth[among], joint.counts[among]
            taken = [~rate.hits.hold(truth, codes[among], rate.of) for codes in joint.predictions[[*pair]]]
            predictions = np.array(taken, dtype=np.int64)
            weights = None if joint.weights is None else joint.weights[among]
        alike = JointCounts(1, np.zeros_like(truth), predictions, counts, weights)
        size = alike.n or np.nan
        slope = _slope(rate, size) / size
        difference = np.array([slope * float(alike.masses @ (predictions[1] - predictions[0]))])
        unseen = np.abs([[slope * alike.scales()[0]]])
        return PairSlopes(difference, np.array([[[slope, 0.0]]]), lambda: unseen).effects(alike)


# How p and limits of runs on the same samples are called, of pairs that are known or not; of rates by the names that
# these have for one class.
_NAMES = {
    (True, True): ("mcnemar_mid_p", "tango"),
    (True, False): ("permutation_mid_p", "score"),
    (False, True): ("mcnemar_mid_p_of_any_pairing", "tango_of_widest_pairing"),
    (False, False): ("permutation_mid_p_of_any_pairing", "score_of_widest_pairing"),
}


def _slope(rate: Rate, size: float) -> float:
    """Slope of a metric by the rate among so many samples that it follows from."""
    return rate.line.slope * (size if rate.counted else 1.0)
