"""Runs side by side: classes in one order, samples in one order where they are shared, values of metrics."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import IncomparableLabels, IncomparableRuns, InvalidExpression
from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.content import GROUPS_FACT, MIXED_FACT, REPEATS_FACT, WEIGHTS_FACT, Content
from app.domain.inputs.kinds import UNIT_KINDS
from app.domain.inputs.labels import listed
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import Samples, in_order
from app.domain.slices import Places, refuse_unknown_slices, restricted
from app.kernel.compare.paired.joint import JointCounts, combine
from app.kernel.compare.streamed import StreamedRuns
from app.kernel.matrix.table import WeightedCounts
from app.kernel.metrics.card import Task
from app.kernel.metrics.expression import Expression
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.designs import NoLimits
from app.kernel.uncertainty.draws import chosen_seed
from app.kernel.uncertainty.groups import Grouping
from app.services.estimands import Estimand
from app.services.estimates.estimate import ClassShares
from app.services.estimates.methods.shifted import shifted_values, values_at
from app.services.estimates.run_data import RunData
from app.services.runs.pairing import (
    KeptSamples,
    Pairing,
    PairingDesign,
    PairingMode,
    one_group,
    pair,
)
from app.services.stored import of_part

_ALONE = Pairing(PairingDesign.INDEPENDENT, "not looked for")


@dataclass(frozen=True, eq=False)
class Runs:
    """R runs with the same classes.

    Made by ``align``; what they have in common is looked for by ``pair``. Both happen once, at the edge of a use case.

    Attributes:
        records: The runs; their classes may stand in another order.
        matrices: (R, K, K) of all their samples, classes in the order of the first run; None of other kinds than
            classes.
        places: For each run, where its classes (K) stand.
        pairing: What the runs have in common.
        kept: What is known of their samples.
        streamed: Metrics of probabilities of samples that were streamed.
        asked: How they were to be paired, and the share of samples that they must have in common.
    """

    records: tuple[EvaluationRecord, ...]
    matrices: Array | None
    places: tuple[NDArray[np.intp], ...]
    pairing: Pairing = _ALONE
    kept: KeptSamples = field(default_factory=KeptSamples)
    streamed: StreamedRuns | None = None
    asked: tuple[PairingMode, float] = (PairingMode.AUTO, 1.0)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The K classes in the order of the first run, which everything here has."""
        return tuple(self.records[0].labels[code] for code in np.argsort(self.places[0]))

    @property
    def positive(self) -> int | None:
        """The positive class of the first run."""
        positive = self.records[0].positive
        return None if positive is None else int(self.places[0][positive])

    @classmethod
    def align(cls, records: Sequence[EvaluationRecord], pointer: str = "/evaluations") -> Self:
        """Bring the classes of all runs to the order of the first.

        Raises:
            IncomparableLabels: two runs have different classes.
        """
        labels, task = records[0].labels, records[0].task
        order = {label: place for place, label in enumerate(labels)}
        matrices, places = [], []
        for index, record in enumerate(records):
            at = f"{pointer}/{index}" if pointer.endswith("s") else pointer
            if record.task is not task:
                raise IncomparableRuns(
                    f"expected runs of one kind of input: {record.id} came as {record.kind.replace('_', ' ')}, and "
                    f"{records[0].id} as {records[0].kind.replace('_', ' ')}",
                    pointer=at,
                )
            if set(record.labels) != set(labels):
                raise _different(record, records[0], at)
            if record.decisions != records[0].decisions:
                raise IncomparableLabels(
                    f"expected runs with the same decisions in the same order; {record.id} has "
                    f"{listed(record.decisions or ())}, and {records[0].id} {listed(records[0].decisions or ())}",
                    pointer=at,
                )
            place = np.array([order[label] for label in record.labels], dtype=np.intp)
            places.append(place)
            if task is not None:
                continue
            matrix = np.empty(record.counts.shape)
            matrix[np.ix_(place, place)] = record.counts
            matrices.append(matrix)
        return cls(tuple(records), np.stack(matrices) if matrices else None, tuple(places))

    def pair(self, kept: KeptSamples, mode: PairingMode = PairingMode.AUTO, *, minimum_matched: float = 1.0) -> Self:
        """Return the runs with their pairing; see ``pairing.pair``.

        A run whose samples all weigh the same is one without weights, and one of which each is a group is one without
        groups.
        """
        runs = self._canonical(kept)
        found = pair(self.records, runs.data, mode, minimum_matched)
        return replace(runs, pairing=found, asked=(mode, minimum_matched))

    def within(self, places: Sequence[Places]) -> "Runs":
        """The runs on some samples of each alone, paired anew in the way in which these were."""
        sources = [restricted(one.source, own) for one, own in zip(self.data, places, strict=True)]
        records = [of_part(record, source) for record, source in zip(self.records, sources, strict=True)]
        samples = {
            record.id: source.samples
            for record, source in zip(records, sources, strict=True)
            if source.samples is not None
        }
        mode, minimum = self.asked
        return Runs.align(records).pair(KeptSamples(samples), mode, minimum_matched=minimum)

    def refuse_unknown_slices(self, expression: Expression, pointer: str) -> None:
        """Refuse an expression of slices that a run does not have.

        Raises:
            InvalidExpression: one has no such attribute or value, or no sample in the slice.
        """
        for run, record in enumerate(self.records):
            try:
                refuse_unknown_slices(expression, self.data[run].source)
            except InvalidExpression as error:
                several = f"{record.id} ({record.model.name}): " if len(self.records) > 1 else ""
                detail = several + error.detail
                raise InvalidExpression(detail, pointer=pointer, suggestions=error.suggestions) from None

    def joined(self, pairing: Pairing, streamed: StreamedRuns | None) -> Self:
        """Return the runs with a known pairing, and nothing else of their samples."""
        return replace(self, pairing=pairing, kept=KeptSamples(), streamed=streamed)

    def _canonical(self, kept: KeptSamples) -> Self:
        """The runs with what is known of their samples, without weights and groups that say nothing."""
        records, samples = [*self.records], dict(kept.samples)
        matrices = None if self.matrices is None else self.matrices.copy()
        for index, record in enumerate(records):
            own = samples.get(record.id)
            if own is None:
                continue
            weights, lost = own.weights, set[str]()
            if own.groups is not None and np.unique(own.groups).size == own.groups.size:
                own, lost = replace(own, groups=None), {GROUPS_FACT}
            plain = record
            of_one = weights is not None and weights.size and weights[0] > 0 and (weights == weights[0]).all()
            if weights is not None and of_one and record.is_weighted:
                own, lost = replace(own, weights=None), {*lost, WEIGHTS_FACT, "rows"}
                counts = np.rint(record.counts / weights[0]).astype(np.int64)
                plain = replace(record, content=Content.counts, counts=counts)
                if matrices is not None:
                    matrices[index] = np.rint(matrices[index] / weights[0])
            samples[record.id] = own
            records[index] = replace(
                plain, facts={name: fact for name, fact in plain.facts.items() if name not in lost}
            )
        return replace(self, records=tuple(records), matrices=matrices, kept=replace(kept, samples=samples))

    @property
    def task(self) -> Task | None:
        """The task; None for single-label classification."""
        return self.records[0].task

    @property
    def judged(self) -> tuple[Task | None, Sequence[str] | None]:
        """The task, and the decisions if they are no classes."""
        return self.records[0].judged

    @property
    def _unit_task(self) -> Task:
        if self.task is None:
            raise ValueError("expected runs of more than a matrix of classes")
        return self.task

    def alone(self, index: int, kept: KeptSamples | None = None) -> "Runs":
        """One of the runs."""
        one = slice(index, index + 1)
        matrices = None if self.matrices is None else self.matrices[one]
        return Runs(self.records[one], matrices, self.places[one], kept=kept or self.kept)

    def __len__(self) -> int:
        return len(self.records)

    @cached_property
    def data(self) -> tuple[RunData, ...]:
        """The runs with all of their samples, as limits of each are made from them."""
        return tuple(self._data(run) for run in range(len(self)))

    def _data(self, run: int) -> RunData:
        streamed = self.kept.units.get(self.records[run].id)
        return RunData(self.source(run)) if streamed is None else RunData(self.source(run), *streamed)

    def source(self, index: int = 0, some: Samples | None = None) -> MatrixInput:
        """Return the input of one run with what is known of its samples, or ``some`` of them, its classes in the order
        that all have.
        """
        record, place = self.records[index], self.places[index]
        samples = self.kept.samples.get(record.id) if some is None else some
        if np.array_equal(place, np.arange(place.size)):
            return replace(record, samples=samples)
        if self.matrices is None:
            return UNIT_KINDS[self._unit_task].reordered(replace(record, samples=samples), self.labels)
        if samples is not None:
            samples = in_order(samples, place)
        # Scores are higher for the second class unless said.
        positive = int(place[1 if record.positive is None else record.positive])
        moved = replace(record, labels=self.labels, positive=positive, counts=self.matrices[index])
        return replace(moved, samples=samples)

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
        """Matrices (R, K, K), of paired runs of what all of them have seen.

        Raises:
            ValueError: these are no runs of classes.
        """
        if self.matrices is None:
            raise ValueError("expected runs of classes")
        return self.matrices if self.pairing.joint is None else self.pairing.joint.matrices()

    @property
    def n_common(self) -> float:
        """Samples that differences are of: of paired runs what all of them have seen, else those of the first."""
        common = self.pairing.n_common
        return self.records[0].n_rows if common is None else float(common)

    @cached_property
    def weighted(self) -> tuple[WeightedCounts | None, ...]:
        """Weighted matrix of each run of classes; None for a run without weights."""
        return tuple(None if one.uncounted is NoLimits.NO_WEIGHTS else one.weighted for one in self.data)

    @property
    def lacking_weights(self) -> EvaluationRecord | None:
        """The first run whose samples have weights that are not at hand."""
        joint = self.pairing.joint
        if joint is not None and joint.weights is not None:
            return None
        known = {identifier for identifier, one in self.kept.samples.items() if one.weights is not None}
        return next((record for record in self.records if record.is_weighted and record.id not in known), None)

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
        samples = self.kept.samples.get(record.id)
        if not record.is_grouped:
            size = int(record.n_rows) if samples is None else samples.truth.size
            return Grouping(np.arange(size), size)
        if samples is None or samples.groups is None:
            raise IncomparableRuns(
                f"the samples of {record.id} ({record.model.name}) come in groups that were not saved, or are too many "
                "to be used together",
                pointer=f"/evaluations/{self.records.index(record)}",
            )
        found = Grouping.of(samples.groups)
        if found.n_groups < 2:
            raise one_group()
        return found

    def entries(self, run: int) -> tuple[JointCounts, int]:
        """Samples of classes, those that say the same as one entry, with their groups; and the place of a run in them.

        Raises:
            IncomparableRuns: the samples of the run were not saved.
        """
        if self.pairing.joint is not None and self.groupings:
            return self.pairing.joint, run
        grouping, record, place = self.groupings[run], self.records[run], self.places[run]
        labels = self.kept.samples.get(record.id)
        if labels is None:
            # Independent samples without weights are what their matrix says.
            counts = self.counts[run].astype(np.int64)
            truth, predicted = (np.repeat(codes.ravel(), counts.ravel()) for codes in np.indices(counts.shape))
            return JointCounts(self.n_classes, truth, predicted[None], np.ones(truth.size), grouping=grouping), 0
        predictions = place[labels.predicted][None]
        return combine(place[labels.truth], predictions, self.n_classes, weights=labels.weights, grouping=grouping), 0

    @cached_property
    def scored(self) -> tuple[RunData, ...]:
        """The runs with their samples, of paired runs those that all of them have seen, in one order."""
        if self.pairing.rows is None:
            return self.data
        return tuple(run.among(rows) for run, rows in zip(self.data, self.pairing.rows, strict=True))

    def values(self, estimands: Sequence[Estimand], shares: Array | None = None) -> list[Array]:
        """Values (R, V) of each estimand; what prevalence moves at the shares (K), if given."""
        found = {} if self.task is not None else _of_matrices(self.counts, estimands, shares)
        of_samples = [estimand for estimand in estimands if estimand.scored]
        if of_samples and self.streamed is not None:
            found |= {id(one): self._streamed_values(one, self.streamed) for one in of_samples}
        elif of_samples:
            by_run = [_of_samples(run, of_samples, shares) for run in self.scored]
            found |= {
                id(one): np.stack(values) for one, values in zip(of_samples, zip(*by_run, strict=True), strict=True)
            }
        return [found[id(estimand)] for estimand in estimands]

    def _streamed_values(self, estimand: Estimand, streamed: StreamedRuns) -> Array:
        """NaN where it has no closed form."""
        known = streamed.values(estimand.expression)
        return np.full((len(self), len(estimand.names)), np.nan) if known is None else known

    @property
    def repeats(self) -> frozenset[int]:
        """Numbers of repetitions of the runs' cross-validation, as far as they are known."""
        return frozenset(record.facts[REPEATS_FACT] for record in self.records if REPEATS_FACT in record.facts)

    @property
    def repeats_mixed(self) -> bool:
        """Is it known of a run that the folds of one repetition do not follow each other?"""
        return any(MIXED_FACT in record.facts for record in self.records)

    def fold_values(self, estimands: Sequence[Estimand]) -> list[Array] | None:
        """Values (R, F, V) of each estimand on every fold; None unless all runs have the same folds.

        Folds are the same when they are as many and have the same class counts, in the same order of classes, and no
        two runs are known to repeat their cross-validation another number of times.
        """
        folds = [record.fold_counts for record in self.records if record.fold_counts is not None]
        if len(folds) < len(self) or any(record.labels != self.labels for record in self.records):
            return None
        sums = [fold.sum(axis=2) for fold in folds]
        if any(one.shape != sums[0].shape or (one != sums[0]).any() for one in sums) or len(sums[0]) < 2:
            return None
        if len(self.repeats) > 1:
            return None
        counts = np.stack(folds).astype(np.float64)
        found = _of_matrices(counts, estimands)
        of_samples = [estimand for estimand in estimands if estimand.scored or estimand.is_of_slices]
        if of_samples:
            found |= {id(one): np.full((*counts.shape[:2], len(one.names)), np.nan) for one in of_samples}
        of_samples = [estimand for estimand in of_samples if not estimand.is_of_slices]
        by_fold = [run.folds for run in self.data] if of_samples else []
        if of_samples and all(len(one) == counts.shape[1] for one in by_fold):
            by_run = [[_of_samples(fold, of_samples) for fold in one] for one in by_fold]
            for place, estimand in enumerate(of_samples):
                found[id(estimand)] = np.array([[values[place] for values in run] for run in by_run])
        return [found[id(estimand)] for estimand in estimands]


def _of_matrices(counts: Array, estimands: Sequence[Estimand], shares: Array | None = None) -> dict[int, Array]:
    """Values of the metrics of matrices among the estimands, by the identity of these."""
    chosen = [estimand for estimand in estimands if not (estimand.scored or estimand.is_of_slices)]
    return {id(one): values for one, values in zip(chosen, values_at(counts, chosen, shares), strict=True)}


def _of_samples(run: RunData, estimands: Sequence[Estimand], shares: Array | None = None) -> list[Array]:
    """Values (V) of metrics of samples."""
    if shares is None:
        return [run.values(estimand) for estimand in estimands]
    return [values[0] for values in shifted_values(estimands, run, ClassShares(shares[None]))]


def _different(record: EvaluationRecord, first: EvaluationRecord, pointer: str) -> IncomparableLabels:
    missing, extra = sorted(set(first.labels) - set(record.labels)), sorted(set(record.labels) - set(first.labels))
    parts = [f"lacks {listed(missing)}"] * bool(missing) + [f"has {listed(extra)}"] * bool(extra)
    return IncomparableLabels(
        f"expected runs with the same classes; {record.id} {' and '.join(parts)} compared with {first.id}",
        pointer=pointer,
    )
