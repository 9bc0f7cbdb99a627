"""Runs side by side: classes in one order, samples in one order where they are shared, values of metrics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self
from uuid import UUID

import numpy as np

from app.domain.errors import IncomparableLabels, IncomparableRuns, InvalidExpression
from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.content import MIXED_FACT, REPEATS_FACT
from app.domain.inputs.kinds import in_class_order
from app.domain.inputs.labels import listed
from app.domain.slices import Places, refuse_unknown_slices, restricted
from app.kernel.compare.linear import StreamedRuns
from app.kernel.compare.paired.joint import JointCounts, combine
from app.kernel.metrics.card import Task
from app.kernel.metrics.expression import Expression, needs_counts
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.designs import NoLimits
from app.kernel.uncertainty.draws import chosen_seed
from app.kernel.uncertainty.groups import GroupedCounts, Grouping
from app.services.estimands import Estimand
from app.services.estimates.estimate import ClassShares
from app.services.estimates.methods.simulation import shifted_values, values_at
from app.services.estimates.run_data import RunData
from app.services.runs.pairing import (
    ONE_GROUP,
    KeptSamples,
    NamedUnits,
    Pairing,
    PairingDesign,
    PairingMode,
    missing_design,
    pair,
    refused_groups,
)
from app.services.stored import of_part

_ALONE = Pairing(PairingDesign.INDEPENDENT, "not looked for")


@dataclass(frozen=True, eq=False)
class Runs:
    """R runs with the same classes.

    Made by ``align``; what they have in common is looked for by ``pair``. Both happen once, at the edge of a use case.

    Attributes:
        records: The runs. As they are paired they have the classes in the order of the first, and the samples that are
            known.
        pairing: What the runs have in common.
        units: In place of samples, of runs whose samples were streamed.
        streamed: Metrics of probabilities of samples that were streamed.
        asked: How they were to be paired, and the share of samples that they must have in common.
    """

    records: tuple[EvaluationRecord, ...]
    pairing: Pairing = _ALONE
    units: Mapping[UUID, NamedUnits] = field(default_factory=dict)
    streamed: StreamedRuns | None = None
    asked: tuple[PairingMode, float] = (PairingMode.AUTO, 1.0)

    @property
    def labels(self) -> tuple[str, ...]:
        """The K classes in the order of the first run, which everything here has."""
        return self.records[0].labels

    @property
    def positive(self) -> int | None:
        """The positive class of the first run."""
        return self.records[0].positive

    @classmethod
    def align(cls, records: Sequence[EvaluationRecord], pointer: str = "/evaluations") -> Self:
        """Return the runs, which can be compared.

        Raises:
            IncomparableRuns: two are of different kinds.
            IncomparableLabels: two have different classes.
        """
        first = records[0]
        for index, record in enumerate(records):
            at = f"{pointer}/{index}" if pointer.endswith("s") else pointer
            if record.task is not first.task:
                raise IncomparableRuns(
                    f"expected runs of one kind of input: {record.id} came as {record.kind.replace('_', ' ')}, and "
                    f"{first.id} as {first.kind.replace('_', ' ')}",
                    pointer=at,
                )
            if set(record.labels) != set(first.labels):
                raise _different(record, first, at)
            if record.decisions != first.decisions:
                raise IncomparableLabels(
                    f"expected runs with the same decisions in the same order; {record.id} has "
                    f"{listed(record.decisions or ())}, and {first.id} {listed(first.decisions or ())}",
                    pointer=at,
                )
        return cls(tuple(records))

    def pair(self, kept: KeptSamples, mode: PairingMode = PairingMode.AUTO, *, minimum_matched: float = 1.0) -> Self:
        """Return the runs with their pairing; see ``pairing.pair``."""
        runs = replace(self._known(kept), asked=(mode, minimum_matched))
        return replace(runs, pairing=pair(runs.records, runs.data, mode, minimum_matched))

    def joined(self, pairing: Pairing, streamed: StreamedRuns | None) -> Self:
        """Return the runs with a known pairing, and nothing else of their samples."""
        return replace(self._known(KeptSamples()), pairing=pairing, streamed=streamed)

    def alone(self, index: int, kept: KeptSamples | None = None) -> Self:
        """One of the runs."""
        runs = self if kept is None else self._known(kept)
        return replace(runs, records=runs.records[index : index + 1], pairing=_ALONE)

    def _known(self, kept: KeptSamples) -> Self:
        """The runs with what is known of their samples, and their classes in one order."""
        known = [replace(one, samples=kept.samples.get(one.id)) for one in self.records]
        ordered = tuple(in_class_order(one, self.labels) for one in known)
        return replace(self, records=ordered, units=kept.units)

    def within(self, places: Sequence[Places]) -> "Runs":
        """The runs on some samples of each alone, paired anew in the way in which these were."""
        parts = [of_part(record, restricted(record, own)) for record, own in zip(self.records, places, strict=True)]
        mode, minimum = self.asked
        samples = {part.id: part.samples for part in parts if part.samples is not None}
        return Runs.align(parts).pair(KeptSamples(samples), mode, minimum_matched=minimum)

    def refuse_unknown_slices(self, expression: Expression, pointer: str) -> None:
        """Refuse an expression of slices that a run does not have.

        Raises:
            InvalidExpression: one has no such attribute or value, or no sample in the slice.
        """
        for record in self.records:
            try:
                refuse_unknown_slices(expression, record)
            except InvalidExpression as error:
                several = f"{record.id} ({record.model.name}): " if len(self.records) > 1 else ""
                detail = several + error.detail
                raise InvalidExpression(detail, pointer=pointer, suggestions=error.suggestions) from None

    @property
    def task(self) -> Task | None:
        """The task; None for single-label classification."""
        return self.records[0].task

    @property
    def judged(self) -> tuple[Task | None, Sequence[str] | None]:
        """The task, and the decisions if they are no classes."""
        return self.records[0].judged

    def __len__(self) -> int:
        return len(self.records)

    @cached_property
    def data(self) -> tuple[RunData, ...]:
        """The runs with all of their samples, as limits of each are made from them."""
        return tuple(RunData(record, *self.units.get(record.id, ())) for record in self.records)

    def seed(self, asked: int | None = None) -> int:
        """The seed asked for, or one that these runs always have, whatever is asked of them."""
        return chosen_seed(asked, *(record.counts for record in self.records))

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.labels)

    def name(self, index: int) -> str:
        """Name a run in texts: its model, with the version if it has one."""
        model = self.records[index].model
        return model.name if model.version is None else f"{model.name} {model.version}"

    @cached_property
    def counts(self) -> Array:
        """Matrices (R, K, K) of runs of classes, of paired ones of what all of them have seen."""
        joint = self.pairing.joint
        return np.stack([one.counts for one in self.data]) if joint is None else joint.matrices()

    @property
    def n_common(self) -> float:
        """Samples that differences are of: of paired runs what all of them have seen, else those of the first."""
        common = self.pairing.n_common
        return self.records[0].n_rows if common is None else float(common)

    @property
    def of_one_size(self) -> bool:
        """Have all runs as many samples, or such that weigh as much?"""
        sizes = [record.n_samples for record in self.records]
        return self.pairing.paired or bool(np.allclose(sizes, sizes[0], rtol=1e-9))

    @property
    def lacking_weights(self) -> EvaluationRecord | None:
        """The first run whose samples have weights that are not at hand."""
        joint = self.pairing.joint
        if joint is not None and joint.weights is not None:
            return None
        known = zip(self.records, self.data, strict=True)
        return next((record for record, one in known if one.uncounted is NoLimits.NO_WEIGHTS), None)

    @property
    def grouped(self) -> bool:
        """Do the samples of a run come in groups?"""
        return self.pairing.grouping is not None or (
            not self.pairing.paired and any(record.is_grouped for record in self.records)
        )

    @cached_property
    def groupings(self) -> tuple[Grouping, ...]:
        """Groups of the samples of each run, of paired runs those of the samples that all have seen; none where all
        samples are independent.

        Raises:
            IncomparableRuns: the groups of a run were not saved, do not fit those of another, or are one.
        """
        if not self.grouped:
            return ()
        grouping = self.pairing.grouping
        if isinstance(grouping, IncomparableRuns):
            raise grouping
        if grouping is not None:
            return (grouping,) * len(self)
        return tuple(self._grouping(record) for record in self.records)

    def _grouping(self, record: EvaluationRecord) -> Grouping:
        """Groups of one run; every sample is one where they are independent."""
        samples, groups = record.samples, record.groups
        if not record.is_grouped:
            size = int(record.n_rows) if samples is None else samples.truth.size
            return Grouping(np.arange(size), size)
        if groups is None:
            raise IncomparableRuns(
                missing_design(record, "come in groups"), pointer=f"/evaluations/{self.records.index(record)}"
            )
        found = Grouping.of(groups)
        if found.n_groups < 2:
            raise refused_groups(ONE_GROUP)
        return found

    def added(self, run: int, of_cells: Array) -> tuple[Array, Grouping | None]:
        """Return what each unit of a run of classes adds to values (..., n), from what a sample in each cell does
        (..., K, K), and the groups of the units. A unit is all that says the same, in groups what does so in one of
        them; its square is the sum of the squares of its samples.

        Raises:
            IncomparableRuns: the samples come in groups that were not saved.
        """
        grouped = bool(self.groupings)
        if self.pairing.joint is None and not grouped:
            squares = self.data[run].squares
            roots = np.sqrt(self.counts[run] if squares is None else squares)
            return (of_cells * roots).reshape(*of_cells.shape[:-2], -1), None
        joint, place = self._entries(run)
        # In groups samples go together, else they are independent.
        times = joint.counts if grouped else np.sqrt(joint.counts)
        masses = times if joint.weights is None else times * joint.weights
        return of_cells[..., joint.truth, joint.predictions[place]] * masses, joint.grouping

    def in_groups(self, run: int) -> GroupedCounts:
        """Return what each group of a run of classes holds, of paired runs of the samples that all have seen.

        Raises:
            IncomparableRuns: the groups were not saved, or do not fit those of another run.
        """
        n_groups, (joint, place) = self.groupings[run].n_groups, self._entries(run)
        assert joint.grouping is not None  # noqa: S101 - others have tests of counts
        cells, n_samples = joint.truth * self.n_classes + joint.predictions[place], int(joint.counts.sum())
        return GroupedCounts(joint.grouping.codes, n_groups, joint.masses, cells, self.n_classes, n_samples)

    def _entries(self, run: int) -> tuple[JointCounts, int]:
        """Samples of a run, those that say the same as one entry, and the place of the run among their predictions: of
        paired runs what all have seen, else those of one run in groups.
        """
        if self.pairing.joint is not None:
            return self.pairing.joint, run
        grouping, samples = self.groupings[run], self.records[run].samples
        if samples is None:
            # Independent samples without weights are what their matrix says.
            counts = self.counts[run].astype(np.int64)
            truth, predicted = (np.repeat(codes.ravel(), counts.ravel()) for codes in np.indices(counts.shape))
            return JointCounts(self.n_classes, truth, predicted[None], np.ones(truth.size), grouping=grouping), 0
        weights, predictions = samples.weights, samples.predicted[None]
        return combine(samples.truth, predictions, self.n_classes, weights=weights, grouping=grouping), 0

    @cached_property
    def scored(self) -> tuple[RunData, ...]:
        """The runs with their samples, of paired runs those that all of them have seen, in one order."""
        if self.pairing.rows is None:
            return self.data
        return tuple(run.among(rows) for run, rows in zip(self.data, self.pairing.rows, strict=True))

    def values(self, estimand: Estimand, shares: Array | None = None) -> Array:
        """Values (R, V) of an estimand; what prevalence moves at the shares (K), if given. NaN where it has no closed
        form and samples were streamed.
        """
        if not estimand.scored and self.task is None:
            found = values_at(self.counts, [estimand], shares)[0]
            counted = np.array([[one.is_counted] for one in self.data])
            return found if not needs_counts(estimand.expression) else np.where(counted, found, np.nan)
        if self.streamed is not None:
            known = self.streamed.values(estimand.expression)
            return np.full((len(self), len(estimand.names)), np.nan) if known is None else known
        if shares is None or estimand.insensitive:
            return np.stack([run.values(estimand) for run in self.scored])
        at = ClassShares(shares[None])
        return np.stack([shifted_values([estimand], run, at)[0][0] for run in self.scored])

    @property
    def repeats(self) -> frozenset[int]:
        """Numbers of repetitions of the runs' cross-validation, as far as they are known."""
        return frozenset(record.facts[REPEATS_FACT] for record in self.records if REPEATS_FACT in record.facts)

    @property
    def repeats_mixed(self) -> bool:
        """Is it known of a run that the folds of one repetition do not follow each other?"""
        return any(MIXED_FACT in record.facts for record in self.records)

    @cached_property
    def fold_counts(self) -> Array | None:
        """Matrices (R, F, K, K) of every fold; None unless all runs have the same folds.

        Folds are the same when they are as many and have the same class counts, and no two runs are known to repeat
        their cross-validation another number of times.
        """
        folds = [record.fold_counts for record in self.records if record.fold_counts is not None]
        if len(folds) < len(self) or len(self.repeats) > 1:
            return None
        sums = [fold.sum(axis=2) for fold in folds]
        if any(one.shape != sums[0].shape or (one != sums[0]).any() for one in sums) or len(sums[0]) < 2:
            return None
        return np.stack(folds).astype(np.float64)

    def fold_values(self, estimand: Estimand) -> Array | None:
        """Values (R, F, V) of an estimand on every fold, NaN where they are not known; None without the same folds."""
        if self.fold_counts is None:
            return None
        if not (estimand.scored or estimand.is_of_slices):
            return values_at(self.fold_counts, [estimand])[0]
        n_folds, runs = self.fold_counts.shape[1], [] if estimand.is_of_slices else [run.folds for run in self.data]
        if all(len(folds) == n_folds for folds in runs) and runs:
            return np.array([[fold.values(estimand) for fold in folds] for folds in runs])
        return np.full((len(self), n_folds, len(estimand.names)), np.nan)


def _different(record: EvaluationRecord, first: EvaluationRecord, pointer: str) -> IncomparableLabels:
    missing, extra = sorted(set(first.labels) - set(record.labels)), sorted(set(record.labels) - set(first.labels))
    parts = [f"lacks {listed(missing)}"] * bool(missing) + [f"has {listed(extra)}"] * bool(extra)
    return IncomparableLabels(
        f"expected runs with the same classes; {record.id} {' and '.join(parts)} compared with {first.id}",
        pointer=pointer,
    )
