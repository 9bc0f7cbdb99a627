"""Runs on samples that come in groups: whole groups are resampled, and permuted between the runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import IncomparableRuns, OutOfReach
from app.domain.options import FEWEST_DRAWS
from app.kernel.compare.paired.joint import JointCounts
from app.kernel.compare.paired.tests import GroupedPair
from app.kernel.metrics.proportion import ACCURACY
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.closed_forms import Method
from app.kernel.uncertainty.draws import MOST_UNDEFINED, evaluate_draws, generator, seed_of, summarise
from app.kernel.uncertainty.groups import (
    FEW_GROUPS,
    GroupedRuns,
    Grouping,
    expanded_level,
    group_permutation_p,
    grouped_mcnemar,
)
from app.services.estimands import Estimand
from app.services.estimates.methods.of_matrix import affordable_draws
from app.services.runs.aligned import Runs
from app.services.runs.differences import Test
from app.services.runs.draws.matrices import PERMUTATIONS, Resampling, ResamplingDesign, Setup
from app.services.runs.draws.samples import ResampledSamples

_MCNEMAR = "grouped_mcnemar"
_EACH, _PERMUTATION = "permutation", "group_permutation"
_OTHERWISE = "the runs do not group the samples that they have in common in the same way"
_ONE_GROUP = "the samples that the runs have in common are one group, so how groups differ is not known"
_TOO_OFTEN_UNDEFINED = f"no limits: a value is undefined in more than {MOST_UNDEFINED:.0%} of the resamples"


@dataclass(frozen=True, slots=True, eq=False)
class SharedGroups:
    """Samples that all runs have in common, with their groups.

    Attributes:
        grouping: Of the common samples.
    """

    grouping: Grouping

    @property
    def notes(self) -> list[str]:
        """What groups do, and what few of them do."""
        notes = [
            f"The samples come in {self.grouping.n_groups} groups: limits and probabilities resample groups, tests "
            "permute the runs in whole groups."
        ]
        if self.grouping.n_groups < FEW_GROUPS:
            notes.append(
                f"With fewer than {FEW_GROUPS} groups limits, though widened for it, can hold the truth less often "
                "than their level says."
            )
        return notes


@dataclass(frozen=True, slots=True, eq=False)
class SharedGroupsOfClasses(SharedGroups):
    """The same of samples of classes.

    Attributes:
        runs: What the groups hold.
        truth: (n) the classes of these.
        predictions: (R, n) what each run predicts.
        weights: (n) of them; None is 1 each.
        times: (n) how many samples each entry is, where those that say the same are one; None is 1 each.
    """

    runs: GroupedRuns
    truth: NDArray[np.int64]
    predictions: NDArray[np.int64]
    weights: Array | None = None
    times: Array | None = None

    @property
    def n_samples(self) -> int:
        """How many there are."""
        return self.truth.size if self.times is None else int(self.times.sum())

    def pair(self, first: int, second: int) -> GroupedPair:
        """Two of the runs, sample by sample."""
        kept = slice(None) if self.weights is None else np.flatnonzero(self.weights)
        truth, weights = self.truth[kept], None if self.weights is None else self.weights[kept]
        both = self.predictions[[first, second]][:, kept]
        times = np.ones(truth.size) if self.times is None else self.times[kept]
        samples = JointCounts(self.runs.n_classes, truth, both, times, weights)
        return GroupedPair(samples, self.grouping.codes[kept], self.grouping.n_groups)


def shared_groups(runs: Runs, estimands: Sequence[Estimand]) -> SharedGroups | None:
    """The groups that runs have in common; None when no run came with any.

    Raises:
        IncomparableRuns: some run came with groups, and the runs are not paired, group their samples differently, or
            are to be compared on metrics of probabilities.
    """
    if not any(record.is_grouped for record in runs.records):
        return None
    rows = runs.pairing.rows
    if rows is None:
        why = runs.pairing.reason.partition(";")[0]
        raise _refused(f"only runs on the same samples can be compared in groups, and these are not paired: {why}")
    check_grouped(runs, estimands)
    labels = [runs.kept.labels[record.id] for record in runs.records]
    groupings = [Grouping.of(one.groups[row]) for one, row in zip(labels, rows, strict=True) if one.groups is not None]
    grouping = groupings[0]
    if any(not _same(grouping, other) for other in groupings[1:]):
        raise differently_grouped()
    if grouping.n_groups < 2:
        raise _refused(_ONE_GROUP)
    if runs.task is not None:
        return SharedGroups(grouping)
    truth = runs.places[0][labels[0].truth[rows[0]]]
    predictions = np.stack(
        [place[one.predicted[row]] for one, place, row in zip(labels, runs.places, rows, strict=True)]
    )
    weights = runs.pairing.weights
    grouped = GroupedRuns.gather(grouping.codes, truth, predictions, runs.n_classes, weights)
    return SharedGroupsOfClasses(grouping, grouped, truth.astype(np.int64), predictions.astype(np.int64), weights)


def check_grouped(runs: Runs, estimands: Sequence[Estimand]) -> None:
    """Raises IncomparableRuns where runs in groups are to be compared on metrics of probabilities."""
    scored = next((estimand.text for estimand in estimands if estimand.scored), None)
    if scored is not None and runs.task is None and any(record.is_grouped for record in runs.records):
        raise _refused(f"{scored} needs probabilities, and tests of these take samples as independent")


def groups_of_counts(codes: NDArray[np.int64], n_groups: int, joint: JointCounts) -> SharedGroupsOfClasses:
    """Groups of streamed samples, those of a group that say the same as one entry.

    Args:
        codes: (P) group 0..G-1 of each entry.
        n_groups: G.
        joint: The entries.

    Raises:
        IncomparableRuns: there is one group.
    """
    if n_groups < 2:
        raise _refused(_ONE_GROUP)
    grouping = Grouping(codes, n_groups, joint.counts.astype(np.int64))
    runs = GroupedRuns.gather(codes, joint.truth, joint.predictions, joint.n_classes, joint.weights, joint.counts)
    return SharedGroupsOfClasses(grouping, runs, joint.truth, joint.predictions, joint.weights, joint.counts)


def differently_grouped() -> IncomparableRuns:
    """Why runs cannot be compared whose groups are not the same."""
    return _refused(_OTHERWISE)


def _refused(why: str) -> IncomparableRuns:
    return IncomparableRuns(
        f"the samples of the runs come in groups (group_ids): {why}; the report of each run has intervals that count "
        "groups",
        pointer="/evaluations",
    )


def _same(first: Grouping, second: Grouping) -> bool:
    """Do two columns divide the samples alike, whatever their groups are called?"""
    pairs = np.unique(np.stack([first.codes, second.codes]), axis=1).shape[1]
    return first.n_groups == second.n_groups == int(pairs)


class ResampledGroups(Resampling):
    """Groups of samples drawn with replacement, the same for all runs, which are paired."""

    name = Method.CLUSTER_BOOTSTRAP.value

    def __init__(
        self, setup: Setup, estimands: Sequence[Estimand], values: Sequence[Array], groups: SharedGroupsOfClasses
    ) -> None:
        super().__init__(setup, estimands, values)
        self._groups = groups
        self._functionals = [estimand.functional for estimand in estimands]

    @cached_property
    def draws(self) -> int:
        """How many times the groups are drawn.

        Raises:
            OutOfReach: not even the fewest times would take less than minutes.
        """
        return self._affordable(self.runs.counts.size, self.settings.draws, passes=1)

    def _affordable(self, cells: int, wanted: int, *, passes: int) -> int:
        runs = self._groups.runs
        draws = min(affordable_draws(cells, wanted), runs.affordable_draws(wanted * passes) // passes)
        if draws < FEWEST_DRAWS:
            raise OutOfReach(
                f"{runs.n_groups} groups of {runs.n_runs} runs with {runs.n_classes} classes are too many to be "
                "resampled; compare fewer runs, or name a baseline"
            )
        return draws

    @cached_property
    def drawn(self) -> list[Array | None]:
        """Draws (D, R, V) of each estimand, the same groups for all runs."""
        batches = self._groups.runs.resample(draws=self.draws, random=generator(self.settings.seed))
        with silently():
            found = evaluate_draws(batches, self._functionals)
            return [estimand.values(values) for estimand, values in zip(self.estimands, found, strict=True)]

    @property
    def design(self) -> ResamplingDesign:
        """What is resampled, and how often."""
        count = self._groups.runs.n_groups
        return ResamplingDesign(class_counts="random", resampled="groups", n_groups=count, draws=self.draws)

    @property
    def notes(self) -> list[str]:
        """What groups do, and what they leave out."""
        of_groups, *rest = self._groups.notes
        left_out = (
            "Tests of counts and ranges of costs have the variance between the groups; a test that all runs are equal "
            "is left out: it takes samples as independent."
        )
        return [f"{of_groups} {left_out}", *rest]

    def tests(self, index: int, level: float) -> list[list[Test]]:
        """Limits from resampled groups, p from permutations of the runs within groups."""
        return [self._tests_of(index, pair, level) for pair in self.setup.pairs]

    def _tests_of(self, index: int, pair: tuple[int, int], level: float) -> list[Test]:
        drawn = self.drawn[index]
        assert drawn is not None  # noqa: S101 - too few draws are refused
        read_at = expanded_level(level, self._groups.runs.effective_groups)
        summary = summarise(drawn[:, pair[0]] - drawn[:, pair[1]], self.gaps(index, pair), read_at)
        p, discordant, rates = self._exchanged(pair)[index], None, self.estimands[index].rates
        is_accuracy = rates is not None and all(rate.same_as(ACCURACY) for rate in rates)
        if is_accuracy:
            first, second = self._groups.pair(*pair).discordant()
            p, discordant = np.full(p.shape, grouped_mcnemar(first, second)), float((first + second).sum())
        return [
            Test(
                low=float(low),
                high=float(high),
                p=float(one),
                method=_MCNEMAR if is_accuracy else _PERMUTATION,
                limits=self.name,
                discordant=discordant,
                reason=_TOO_OFTEN_UNDEFINED if np.isnan(low) else None,
            )
            for low, high, one in zip(summary.low, summary.high, p, strict=True)
        ]

    def _exchanged(self, pair: tuple[int, int]) -> list[Array]:
        """For each estimand p of its values (V), all from the same exchanges."""
        if pair not in self._exchanges:
            n_pairs = max(len(self.setup.pairs), 1)
            draws = self._affordable(2 * self.runs.counts[0].size * n_pairs, PERMUTATIONS, passes=n_pairs)
            seed = seed_of(self.settings.seed, "permutation", *pair)
            both = self._groups.runs.pair(*pair)
            self._exchanges[pair] = group_permutation_p(both, self._functionals, seed=seed, draws=draws)
        return self._exchanges[pair]

    @cached_property
    def _exchanges(self) -> dict[tuple[int, int], list[Array]]:
        return {}


class ResampledUnitGroups(ResampledSamples):
    """Groups of samples of more than classes drawn with replacement, the same for all runs, which are paired."""

    name = Method.CLUSTER_BOOTSTRAP.value

    def __init__(
        self, setup: Setup, estimands: Sequence[Estimand], values: Sequence[Array], groups: SharedGroups
    ) -> None:
        super().__init__(setup, estimands, values)
        self.grouping = groups.grouping
        self._groups = groups

    @property
    def design(self) -> ResamplingDesign:
        """What is resampled, and how often."""
        count = self._groups.grouping.n_groups
        return replace(super().design, class_counts="random", resampled="groups", n_groups=count)

    @property
    def notes(self) -> list[str]:
        """What groups do, and what could not be done."""
        return self._groups.notes + super().notes

    def _tests_of(self, index: int, pair: tuple[int, int], level: float) -> list[Test]:
        """Limits from resampled groups, p from permutations of the runs within groups."""
        drawn = self.drawn[index]
        if drawn is None:
            return [Test()] * len(self.estimands[index].names)
        read_at = expanded_level(level, self._groups.grouping.effective_groups)
        summary = summarise(drawn[:, pair[0]] - drawn[:, pair[1]], self.gaps(index, pair), read_at)
        return [
            replace(
                test,
                low=float(low),
                high=float(high),
                method=test.method.replace(_EACH, _PERMUTATION),
                limits=self.name,
                reason=_TOO_OFTEN_UNDEFINED if np.isnan(low) else test.reason,
            )
            for test, low, high in zip(super()._tests_of(index, pair, level), summary.low, summary.high, strict=True)
        ]
