"""Runs on samples that come in groups: groups are resampled, and trade places whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import IncomparableRuns, OutOfReach
from app.domain.evaluation import EvaluationRecord
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.losses import sums_by_code
from app.kernel.uncertainty.clusters import (
    FEW_GROUPS,
    GroupedRuns,
    Grouping,
    group_differences,
    group_permutation_p,
    grouped_mcnemar,
)
from app.kernel.uncertainty.design import generator, seed_of
from app.kernel.uncertainty.draws import MOST_UNDEFINED, evaluate_draws
from app.kernel.uncertainty.headline import Method
from app.services.estimands import Estimand
from app.services.json_values import Json
from app.services.ports import SampleLabels
from app.services.runs.contest import Terms
from app.services.runs.differences import Test
from app.services.runs.matrix_contest import PERMUTATIONS, MatrixContest
from app.services.runs.pairing import Pairing, align
from app.services.runs.simulation import FEWEST_DRAWS, affordable_draws

_MCNEMAR = "grouped_mcnemar"
_PERMUTATION = "group_permutation"
_TOO_OFTEN_UNDEFINED = f"no limits: a value is undefined in more than {MOST_UNDEFINED:.0%} of the resamples"


@dataclass(frozen=True, slots=True, eq=False)
class SharedGroups:
    """Samples that all runs have in common, with their groups.

    Attributes:
        runs: What the groups hold.
        grouping: Of the common samples.
        right: (R, n) which of them each run has right.
    """

    runs: GroupedRuns
    grouping: Grouping
    right: NDArray[np.bool_]

    def discordant(self, first: int, second: int) -> tuple[Array, Array]:
        """Samples (G) of each group that only the first, and that only the second run has right."""
        codes, size = self.grouping.codes, self.grouping.n_groups
        pair = (self.right[first] & ~self.right[second], self.right[second] & ~self.right[first])
        only_first, only_second = (sums_by_code(codes, one, size) for one in pair)
        return only_first, only_second


def shared_groups(
    records: Sequence[EvaluationRecord],
    samples: Mapping[UUID, SampleLabels],
    pairing: Pairing,
    estimands: Sequence[Estimand],
) -> SharedGroups | None:
    """The groups that runs have in common; None when no run came with any.

    Raises:
        IncomparableRuns: some run came with groups, and the runs are not paired, group their samples differently, or
            are to be compared on metrics of probabilities.
    """
    if not any(record.is_grouped for record in records):
        return None
    if pairing.rows is None:
        why = pairing.reason.partition(";")[0]
        raise _refused(f"only runs on the same samples can be compared in groups, and these are not paired: {why}")
    scored = next((estimand.text for estimand in estimands if estimand.scored), None)
    if scored is not None:
        raise _refused(f"{scored} needs probabilities, and tests of these take samples as independent")
    labels = [samples[record.id] for record in records]
    known = [one.groups[rows] for one, rows in zip(labels, pairing.rows, strict=True) if one.groups is not None]
    groupings = [Grouping.of(names) for names in known]
    grouping = groupings[0]
    if any(not _same(grouping, other) for other in groupings[1:]):
        raise _refused("the runs do not group the samples that they have in common in the same way")
    if grouping.n_groups < 2:
        raise _refused("the samples that the runs have in common are one group, so how groups differ is not known")
    codes = align(records)[1]
    truth = codes[0][labels[0].truth[pairing.rows[0]]]
    predictions = np.stack(
        [code[one.predicted[rows]] for one, code, rows in zip(labels, codes, pairing.rows, strict=True)]
    )
    runs = GroupedRuns.gather(grouping.codes, truth, predictions, records[0].n_classes)
    return SharedGroups(runs, grouping, predictions == truth)


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


class GroupedContest(MatrixContest):
    """Paired runs on samples in groups.

    Args:
        counts: (R, K, K).
        estimands: Metrics of matrices.
        pairing: Which samples they have in common.
        terms: What is asked for.
        groups: The same samples with their groups.
    """

    independent = False

    def __init__(
        self, counts: Array, estimands: Sequence[Estimand], pairing: Pairing, terms: Terms, groups: SharedGroups
    ) -> None:
        super().__init__(counts, estimands, pairing, terms)
        self._groups = groups

    @cached_property
    def draws(self) -> int:
        """How many times the groups are drawn.

        Raises:
            OutOfReach: not even the fewest times would take less than minutes.
        """
        return self._affordable(self.counts.size, self.terms.draws, passes=1)

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
        batches = self._groups.runs.resample(draws=self.draws, random=generator(self.terms.seed))
        with silently():
            found = evaluate_draws(batches, [estimand.functional for estimand in self.estimands])
            return [estimand.values(values) for estimand, values in zip(self.estimands, found, strict=True)]

    @property
    def design(self) -> Json:
        """What is resampled, and how often."""
        count = self._groups.runs.n_groups
        return {"class_counts": "random", "resampled": "groups", "n_groups": count, "draws": self.draws}

    @property
    def notes(self) -> list[str]:
        """What groups do, and what few of them do."""
        count = self._groups.runs.n_groups
        notes = [
            f"The samples come in {count} groups: limits and probabilities resample groups, tests let runs trade "
            "places in whole groups. Tests of all runs together and of the predictions' drift are left out: they take "
            "samples as independent."
        ]
        if count < FEW_GROUPS:
            notes.append(
                f"With fewer than {FEW_GROUPS} groups limits, though widened for it, can hold the truth less often "
                "than their level says."
            )
        return notes

    def simulation(self, index: int) -> str:  # noqa: ARG002 - the same for all
        """What the draws are called."""
        return Method.CLUSTER_BOOTSTRAP.value

    def tests(self, pairs: Sequence[tuple[int, int]]) -> list[list[list[Test]]]:
        """Tests by estimand, pair and value."""
        by_pair = [self._pair(pair, len(pairs)) for pair in pairs]
        return [[tests[index] for tests in by_pair] for index in range(len(self.estimands))]

    def _pair(self, pair: tuple[int, int], n_pairs: int) -> list[list[Test]]:
        both = self._groups.runs.pair(*pair)
        functionals = [estimand.functional for estimand in self.estimands]
        cells = 2 * self.counts[0].size * n_pairs
        draws = self._affordable(cells, self.terms.draws, passes=n_pairs)
        limits = group_differences(both, functionals, seed=self.terms.seed, draws=draws, level=self.terms.level)
        permutations = self._affordable(cells, PERMUTATIONS, passes=n_pairs)
        seed = seed_of(self.terms.seed, "permutation", *pair)
        exchanged = group_permutation_p(both, functionals, seed=seed, draws=permutations)
        first, second = self._groups.discordant(*pair)
        found = []
        for estimand, summary, p_values in zip(self.estimands, limits, exchanged, strict=True):
            is_accuracy = estimand.shares is not None and estimand.shares[0].of is None
            p = np.full(len(estimand.names), grouped_mcnemar(first, second)) if is_accuracy else p_values
            found.append(
                [
                    Test(
                        low=float(low),
                        high=float(high),
                        p=float(one),
                        method=_MCNEMAR if is_accuracy else _PERMUTATION,
                        limits=Method.CLUSTER_BOOTSTRAP.value,
                        discordant=float((first + second).sum()) if is_accuracy else None,
                        reason=_TOO_OFTEN_UNDEFINED if np.isnan(low) else None,
                    )
                    for low, high, one in zip(summary.low, summary.high, p, strict=True)
                ]
            )
        return found
