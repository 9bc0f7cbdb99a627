"""Evaluations: computed, made, read, listed, tagged, deleted, and the answers that callers get."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any, Final, Self, TypeVar
from uuid import UUID

import numpy as np

from app.domain.errors import DomainError, InvalidInput, NeedsScores, NoSamples, NotForKind, NotFound, Overloaded
from app.domain.evaluation import (
    DatasetRef,
    EvaluationQuery,
    EvaluationRecord,
    EvaluationSummary,
    ModelRef,
    Page,
    Position,
    ShownValue,
)
from app.domain.expressions.conditions import Slice
from app.domain.findings import Finding, Severity
from app.domain.identifiers import id_at
from app.domain.inputs.content import DATA_FACT, MERGED_FACT, DataFacts, why_not_saved
from app.domain.inputs.kinds import units_of
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.merging import check_streamed, merged, needs_samples
from app.domain.members import LEFT_OUT, SPREAD, typed
from app.domain.options import IntervalChoice, Options, Retain
from app.domain.report import Headline, Report, Section, SectionName, Value
from app.kernel.metrics.card import Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import Array, ratio, silently
from app.services.admission import Admission
from app.services.evaluate.questions import Question, ask
from app.services.evaluate.reports import (
    Brief,
    Kept,
    Reports,
    briefs,
    is_light,
    is_quick,
    matrix_reports,
    passes,
    report_alone,
    sections_as_json,
    sections_from_json,
)
from app.services.evaluate.reports import evaluate as report_of
from app.services.evaluate.sections.matrix import batch_values, findings_of
from app.services.evaluate.values import listed_values, shown_values, with_chosen
from app.services.idempotency import Mark, keep_under
from app.services.ports import EvaluationStore
from app.services.present import made_id, tally
from app.services.processes.compute import ComputePool, Result
from app.services.sliced import sliced_store
from app.services.stored import (
    Named,
    StreamedInput,
    identified_once,
    options_as_json,
    records_of,
    refuse_kind,
    stored_request,
    with_parts,
)

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluation:
    """An evaluation with its report.

    Attributes:
        id: `null` when the evaluation was not saved.
        values: Where they are asked for: by canonical name.
    """

    id: UUID | None = None
    created_at: datetime | None = None
    model: ModelRef | None = None
    dataset: DatasetRef | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    report: Report = field(metadata=SPREAD)
    values: Mapping[str, ShownValue] | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EvaluationHeadline:
    """An evaluation without its report: what everybody looks at first."""

    id: UUID | None = None
    created_at: datetime | None = None
    model: ModelRef | None = None
    dataset: DatasetRef | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    headline: Headline


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNames:
    """The id, model and dataset of an evaluation."""

    id: UUID
    model: ModelRef
    dataset: DatasetRef


class Normalized(StrEnum):
    """The sums that a confusion matrix is divided by, as scikit-learn names them."""

    FALSE = "false"
    TRUE = "true"
    PRED = "pred"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatrixShown:
    """The confusion matrix of an evaluation.

    Attributes:
        normalized: `false`: as it came. `true`: shares of each actual class, the recalls on the diagonal. `pred`:
            shares of each predicted class, the precisions on the diagonal. `all`: shares of all samples.
        confusion_matrix: Rows are the actual classes; `null` where nothing is to be divided by.
    """

    evaluation_id: UUID
    labels: tuple[str, ...]
    normalized: Normalized
    confusion_matrix: Array = field(metadata=typed(list[list[float | None]]))


def _read_by(read: Callable[[Evaluation], Result], record: EvaluationRecord, question: Question, kept: Kept) -> Result:
    return read(Evaluation(**_names(record), report=report_alone(question, kept)))


def _names(of: "EvaluationRecord | NewEvaluation") -> dict[str, Any]:
    identifier = of.id if isinstance(of, EvaluationRecord) else None
    names = {"model": of.model, "dataset": of.dataset, "tags": by_name(of.tags)}
    return {"id": identifier, "created_at": of.created_at, **names}


def by_name(tags: Mapping[str, str]) -> dict[str, str]:
    """Tags in the order of their names: the order in which they were sent is not saved."""
    return dict(sorted(tags.items()))


def normalized_counts(counts: Array, by: Normalized) -> Array:
    """A matrix (K, K) as it is, or as shares; NaN where nothing is to be divided by."""
    if by is Normalized.FALSE:
        return counts
    axes = {Normalized.TRUE: 1, Normalized.PRED: 0, Normalized.ALL: None}
    whole = counts.sum(axis=axes[by], keepdims=True)
    with silently():
        return ratio(counts, whole)


def findings_by_id(records: Sequence[EvaluationRecord]) -> dict[UUID, tuple[Finding, ...]]:
    """Return findings on the matrix of each evaluation of classes; findings on samples, which would have to be read,
    are left out.
    """
    return {
        record.id: findings_of(ask(*stored_request(record)), record.values, None)
        for record in records
        if record.task is None
    }


def tables_of(records: Sequence[EvaluationRecord], chosen: tuple[str, ...]) -> dict[UUID, Any]:
    """Return the values of each evaluation of a list."""
    return {record.id: listed_values(record, chosen) for record in records}


# Cells and samples that are merged in a moment, without a process for it.
_MERGED_AT_ONCE: Final = 2000
# Matrices of a list that are in memory together: one alone can have a million cells.
_READ_AT_ONCE: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvaluation:
    """A request for an evaluation: its input, options and names.

    Attributes:
        created_at: When it was made, where that was not now.
        report: Where it was made already, of samples that are not in memory any more.
        chosen: Expressions whose values are answered in a table; none of them are the headline. None: no table.
        brief: Is no more than the headline answered?
    """

    source: MatrixInput
    options: Options
    report: Report | None = None
    model: ModelRef | None = None
    dataset: DatasetRef | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    created_at: datetime | None = None
    chosen: tuple[str, ...] | None = None
    brief: bool = False

    @property
    def asked(self) -> Options:
        """The options with what is chosen for this answer alone, which is not saved."""
        return self.options if self.chosen is None else with_chosen(self.source, self.options, self.chosen)

    def identifier(self, fresh: UUID | None = None) -> UUID:
        """The id it is kept under, of which the moment is part: a fresh one unless another moment is given."""
        fresh = fresh or made_id()
        return fresh if self.created_at is None else id_at(self.created_at, fresh)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMerge:
    """A request for one evaluation of the data of several.

    Attributes:
        as_folds: Is each a fold, beside the sum of all?
        options: Those of the new evaluation, for samples that come in groups or do not.
        model: That of all of them when left out, as is the data set.
    """

    evaluations: Sequence[Named]
    as_folds: bool
    options: Callable[[bool], Options]
    model: ModelRef | None = None
    dataset: DatasetRef | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Merge:
    """A request for one evaluation of the data of several, with these."""

    asked: NewMerge
    records: Sequence[EvaluationRecord]

    @property
    def is_elsewhere(self) -> bool:
        """Is it made of samples that lie where the data of all evaluations was named?"""
        elsewhere = all(record.elsewhere for record in self.records) and not self.asked.as_folds
        return elsewhere and any(needs_samples(record) for record in self.records)

    def check_different(self) -> None:
        """Raises InvalidInput where an evaluation, or data that was named, is in two of them; in folds it may be."""
        seen: dict[Any, int] = {}
        for place, record in enumerate(() if self.asked.as_folds else self.records):
            for one in record.parts or (record,):
                read = one.id if one.data is None else (one.data["digest"], one.data.get("filter"))
                earlier = seen.setdefault(read, place)
                if earlier != place:
                    detail = f"expected other data than that of /evaluations/{earlier}: each sample would count twice"
                    raise InvalidInput.at(f"/evaluations/{place}", "duplicate_data", detail)

    def check_streamed(self) -> None:
        """Check that samples which are not held in memory can be one; raises as `merging.check_streamed`."""
        check_streamed(self.records)

    @property
    def facts(self) -> dict[str, Any]:
        """Facts of the input of the new evaluation."""
        return {MERGED_FACT: [str(record.id) for record in self.records]}

    @property
    def names(self) -> dict[str, Any]:
        """Model, dataset and tags of the new evaluation; raises InvalidInput if a name is not given, and the
        evaluations are of several.
        """
        model = self.asked.model or _only({record.model for record in self.records}, "model")
        dataset = self.asked.dataset or _only({record.dataset for record in self.records}, "dataset")
        return {"model": model, "dataset": dataset, "tags": self.asked.tags}

    def evaluation(self, source: MatrixInput) -> NewEvaluation:
        """Return the request for the evaluation of their data.

        Raises:
            InvalidInput: no model or dataset is given, and they are of several.
        """
        return NewEvaluation(
            source=replace(source, facts={**source.facts, **self.facts}),
            options=self.asked.options(source.is_grouped),
            **self.names,
        )


def with_data(new: NewEvaluation, facts: DataFacts) -> NewEvaluation:
    """Return the request with the facts of data that was named by a reference, whose samples are not stored."""
    return replace(
        new,
        source=replace(new.source, facts={**new.source.facts, DATA_FACT: facts}),
        options=replace(new.options, retain=Retain.NONE),
    )


@dataclass(frozen=True, slots=True, eq=False)
class PendingWrite:
    """An evaluation that is being kept."""

    evaluation: Evaluation | EvaluationHeadline
    kept: "asyncio.Task[None]"

    async def done(self) -> None:
        """Wait until the evaluation is durable.

        Raises:
            Overloaded: too many writes are under way; nothing was saved.
            StoreUnavailableError: the store did not answer.
            StoreFullError: it has no space left; nothing was saved.
        """
        await self.kept


class EvaluationService:
    """Use cases of evaluations. Everything happens within one project."""

    def __init__(self, store: EvaluationStore, *, compute: ComputePool, admission: Admission) -> None:
        self._store = store
        self._compute = compute
        self._reports = Reports(compute)
        self._admission = admission

    def of_slice(self, where: Slice) -> Self:
        """Return the use cases that read one evaluation, for a slice of each."""
        store = sliced_store(self._store, where)
        return type(self)(store, compute=self._compute, admission=self._admission)

    async def compute(self, new: NewEvaluation) -> Evaluation | EvaluationHeadline:
        """Compute and save nothing."""
        first = await self._reports.values_first(new.source, new.asked, brief=new.brief)
        return _answer(new, new, await first.report())

    async def to_merge(self, project: str, new: NewMerge) -> Merge:
        """Return a request for one evaluation of the data of several, with these.

        Raises:
            NotFound: one does not exist.
            InvalidInput: one is named twice, or their data is.
        """
        identifiers = await identified_once(self._store, project, new.evaluations)
        pointers = [f"/evaluations/{place}" for place in range(len(identifiers))]
        records = await records_of(self._store, project, identifiers, pointers)
        merge = Merge(new, await with_parts(self._store, project, records))
        merge.check_different()
        return merge

    async def merged(self, project: str, merge: Merge) -> NewEvaluation:
        """Return the request for one evaluation of the saved data of several, which stay as they are.

        Raises what `app.domain.inputs.merging.merged` and `Merge.evaluation` do.
        """
        parts = []
        for record in merge.records:
            source, options = stored_request(record)
            if options.retain is Retain.FULL:
                source = replace(source, samples=await self._store.read_samples(project, record.id))
            parts.append(source)
        work = partial(merged, parts, as_folds=merge.asked.as_folds)
        few = sum(part.counts.size + part.n_samples for part in parts) <= _MERGED_AT_ONCE
        return merge.evaluation(work() if few else await self._compute.run(work))

    async def create(self, project: str, new: NewEvaluation, *, model: ModelRef, dataset: DatasetRef) -> PendingWrite:
        """Compute and begin to keep: the evaluation is durable once `PendingWrite.done` has passed, not before."""
        brief = new.brief and not _needs_samples(new.source, new.options)
        first = await self._reports.values_first(new.source, new.asked, brief=brief)
        sections = (await first.report()).of_samples if keeps_sections(new) else None
        record = record_of(new.identifier(), new, model, dataset, first.values, sections)
        kept = asyncio.create_task(self.keep(project, record))
        try:
            # While the database commits, the rest of the report is made.
            return PendingWrite(_answer(record, new, await first.report()), kept)
        except BaseException:
            kept.cancel()
            raise

    async def keep(self, project: str, record: EvaluationRecord) -> None:
        """Make a record durable. Raises as `PendingWrite.done` does."""
        async with self._admission:
            await self._store.add(project, record)
        _count_kept()

    async def keep_all(self, project: str, records: Sequence[EvaluationRecord]) -> None:
        """Make several records durable, all of them or none. Raises as `PendingWrite.done` does."""
        if records:
            async with self._admission:
                await self._store.add_all(project, records)
        for _ in records:
            _count_kept()

    async def keep_together(
        self, project: str, records: Sequence[tuple[EvaluationRecord, Mark | None]]
    ) -> list[BaseException | None]:
        """Make several records durable, each under its part of a key. What `keep` would raise is answered for each."""

        async def one(record: EvaluationRecord, mark: Mark | None) -> None:
            # In a task of its own.
            keep_under(mark)
            await self._store.add(project, record)
            _count_kept()

        # They share their commits, so that they are no more work than one.
        try:
            async with self._admission:
                return await asyncio.gather(*(one(*each) for each in records), return_exceptions=True)
        except Overloaded as error:
            return [error] * len(records)

    async def read(self, project: str, identifier: UUID, chosen: tuple[str, ...] | None = None) -> Evaluation:
        """One evaluation, its report computed again from what is stored; ``chosen`` as in `NewEvaluation`."""
        record = _found(await self._store.get(project, identifier), identifier)
        source, options = stored_request(record)
        if chosen:
            options = with_chosen(source, options, chosen, samples=options.retain is Retain.FULL)
        report = await self._report_again(project, record, options)
        return Evaluation(**_names(record), report=report, values=_values(report, source, options, chosen))

    async def read_shown(
        self, project: str, identifier: UUID, read: Callable[[Evaluation], Result], first: Collection[str] | None = None
    ) -> Result:
        """Result of a function of one evaluation as pages show it, without limits and details of the probabilities of
        each class; ``first`` as in `Options`. It is called in the process that computes the report.
        """
        record = _found(await self._store.get(project, identifier), identifier)
        options = replace(stored_request(record)[1], details=False, first=first)
        source, options, kept = await self._asked_again(project, record, options)
        return await self._compute.run(partial(_read_by, read, record, ask(source, options), kept))

    async def read_matrices(
        self, project: str, identifiers: Sequence[UUID], *, limits: bool = True
    ) -> Sequence[Evaluation]:
        """Evaluations with what follows from their matrices; what probabilities say besides is not computed."""
        found = await self._store.get_many(project, identifiers)
        records = [_found(found.get(identifier), identifier) for identifier in identifiers]
        return await asyncio.gather(*(self._with_matrix(project, record, limits=limits) for record in records))

    async def _with_matrix(self, project: str, record: EvaluationRecord, *, limits: bool) -> Evaluation:
        source, options = stored_request(record)
        intervals = IntervalChoice.HEADLINE if limits else IntervalChoice.NONE
        if source.task is not None or source.is_grouped or source.is_weighted:
            # Limits of these need the samples.
            options = options if limits else replace(options, intervals=intervals)
            return Evaluation(**_names(record), report=await self._report_again(project, record, options))
        options = Options(level=options.level, intervals=intervals)
        return Evaluation(**_names(record), report=await self._reports.make(source, options, kept={}))

    async def read_headline(self, project: str, identifier: UUID) -> EvaluationHeadline:
        """The headline of one evaluation, computed again without the rest where that can be."""
        record = _found(await self._store.get(project, identifier), identifier)
        source, options = stored_request(record)
        kept: Kept = None
        if not is_quick(ask(source, options)):
            source, options, kept = await self._asked_again(project, record, options)
        first = await self._reports.values_first(source, options, kept, brief=True)
        return EvaluationHeadline(**_names(record), headline=(await first.report()).headline)

    async def names(self, project: str, identifier: UUID) -> RunNames:
        """Return the model and the dataset of an evaluation."""
        record = _found(await self._store.get(project, identifier), identifier)
        return RunNames(id=record.id, model=record.model, dataset=record.dataset)

    async def matrix(self, project: str, identifier: UUID, normalized: Normalized) -> MatrixShown:
        """The confusion matrix alone, perhaps as shares."""
        record = _found(await self._store.get(project, identifier), identifier)
        refuse_kind(record, "a confusion matrix")
        return MatrixShown(
            evaluation_id=identifier,
            labels=record.labels,
            normalized=normalized,
            confusion_matrix=normalized_counts(record.counts.astype(np.float64), normalized),
        )

    async def samples(self, project: str, identifier: UUID) -> MatrixInput:
        """The input of an evaluation with the probabilities or scores of its samples, of classes or of labels.

        Raises:
            NotFound: there is no such evaluation.
            NeedsScores: it came without probabilities and scores.
            NoSamples: they were not saved.
        """
        record = _found(await self._store.get(project, identifier), identifier)
        source, options = stored_request(record)
        if record.task is not Task.MULTILABEL:
            refuse_kind(record, "a curve or decision rule of this form")
        if not source.is_ordered:
            raise NeedsScores(
                f"expected an evaluation of probabilities or scores, {identifier} came as {source.kind}: curves and "
                "thresholds need the scores of the samples"
            )
        return await self._kept(project, source, options, identifier)

    async def with_curves(self, project: str, identifier: UUID) -> MatrixInput:
        """Return the samples of an evaluation for curves; of streamed samples, their stored curves.

        Raises: as `samples`.
        """
        record = _found(await self._store.get(project, identifier), identifier)
        if record.facts.keys() & {DATA_FACT, MERGED_FACT} and record.task is None:
            stored = await self._store.read_part(project, identifier)
            if stored is not None and "curves" in stored:
                return StreamedInput.of(record, stored["curves"])
        return await self.samples(project, identifier)

    async def units(self, project: str, identifier: UUID) -> MatrixInput:
        """The input of an evaluation of more than classes, with its samples or queries.

        Raises:
            NotFound: there is no such evaluation.
            NotForKind: it is of classes.
            NoSamples: they were not saved.
        """
        record = _found(await self._store.get(project, identifier), identifier)
        if record.task is None:
            raise NotForKind(f"expected an evaluation of more than classes, {identifier} came as {record.kind}")
        source, options = stored_request(record)
        return await self._kept(project, source, options, identifier)

    async def sliced_elsewhere(self, project: str, identifier: UUID) -> EvaluationRecord | None:
        """The evaluation if its samples and attributes lie where its data, or that of all parts, was named; else None.

        Raises:
            NotFound: there is no such evaluation.
        """
        record = _found(await self._store.get(project, identifier), identifier)
        (record,) = await with_parts(self._store, project, [record])
        columns = [part.data.get("columns", {}) for part in record.elsewhere if part.data is not None]
        named = [{*own.get("attributes", ())} for own in columns]
        return record if named and named[0] and all(one == named[0] for one in named) else None

    async def kept(self, project: str, identifier: UUID) -> tuple[bool, bool]:
        """Return whether samples are kept of an evaluation, and whether attributes are, which slices are made of."""
        return await self._store.kept(project, identifier)

    async def sliceable(self, project: str, identifier: UUID) -> MatrixInput:
        """The input of an evaluation with its samples and their attributes.

        Raises:
            NotFound: there is no such evaluation.
            NoSamples: they were not saved.
        """
        source, _ = stored_request(_found(await self._store.get(project, identifier), identifier))
        samples = await self._store.read_samples(project, identifier)
        if samples is None or samples.attributes is None:
            parts = ", or named alike by all its parts" if MERGED_FACT in source.facts else ""
            raise NoSamples(f"no samples of {identifier} with attributes were saved{parts}, which slices are made of")
        return replace(source, samples=samples)

    async def _kept(self, project: str, source: MatrixInput, options: Options, identifier: UUID) -> MatrixInput:
        if options.retain is Retain.NONE:
            raise NoSamples(f"the samples of {identifier} were not saved: {why_not_saved(source.facts)}")
        samples = await self._store.read_samples(project, identifier)
        if samples is None:
            raise _missing(identifier)
        return replace(source, samples=samples)

    async def _report_again(self, project: str, record: EvaluationRecord, options: Options) -> Report:
        return await self._reports.make(*await self._asked_again(project, record, options))

    async def _asked_again(
        self, project: str, record: EvaluationRecord, options: Options
    ) -> tuple[MatrixInput, Options, Kept]:
        source, _ = stored_request(record)
        if not _needs_samples(source, options):
            return source, options, None
        if options.retain is Retain.FULL:
            unpack = await self._store.read_packed(project, record.id)
            if unpack is None:
                # Deleted since the evaluation was read.
                raise _missing(record.id)
            return source, options, unpack
        stored = await self._store.read_part(project, record.id)
        if stored is None:
            raise _missing(record.id)
        return source, options, sections_from_json(stored)

    async def change_tags(self, project: str, identifier: UUID, tags: Mapping[str, str | None]) -> None:
        """Set tags, and remove those that are None; others stay.

        Raises:
            InvalidInput: there would be more tags than an evaluation may have.
        """
        async with self._admission:
            _found(await self._store.change_tags(project, identifier, tags), identifier)

    async def delete(self, project: str, identifier: UUID) -> None:
        """Remove an evaluation for good."""
        async with self._admission:
            if not await self._store.delete(project, identifier):
                raise _missing(identifier)

    async def latest(self, project: str, query: EvaluationQuery) -> UUID:
        """The id of the newest evaluation that matches.

        Raises:
            NotFound: none does.
        """
        found = await self._store.page(project, query)
        if not found.items:
            raise NotFound("there is no evaluation that matches")
        return found.items[0].id

    async def page(self, project: str, query: EvaluationQuery) -> Page[EvaluationSummary, Position]:
        """Some evaluations in the order asked for."""
        return await self._store.page(project, query)

    async def with_findings(self, project: str, items: Sequence[EvaluationSummary]) -> list[EvaluationSummary]:
        """Evaluations of a list with what there is to say of each matrix."""
        found = await self._of_each(project, items, findings_by_id)
        marks = {identifier: [one.mark for one in some] for identifier, some in found.items()}
        return [replace(item, findings=marks.get(item.id)) for item in items]

    async def gravest_findings(self, project: str, items: Sequence[EvaluationSummary]) -> Mapping[UUID, Finding]:
        """The gravest finding on the matrix of each evaluation of a list, where there is one."""
        found, order = await self._of_each(project, items, findings_by_id), [*Severity]
        return {key: min(some, key=lambda one: order.index(one.severity)) for key, some in found.items() if some}

    async def with_values(
        self, project: str, items: Sequence[EvaluationSummary], chosen: tuple[str, ...]
    ) -> list[EvaluationSummary]:
        """Evaluations of a list with the values of each, with limits as far as these follow from its matrix."""
        values = await self._of_each(project, items, partial(tables_of, chosen=chosen))
        return [replace(item, values=values.get(item.id)) for item in items]

    async def _of_each(
        self, project: str, items: Sequence[EvaluationSummary], made: Callable[[Sequence[EvaluationRecord]], Any]
    ) -> dict[UUID, Any]:
        """Return the results of a function of the records of a list, by id."""
        found: dict[UUID, Any] = {}
        for start in range(0, len(items), _READ_AT_ONCE):
            some = [item.id for item in items[start : start + _READ_AT_ONCE]]
            records = await self._store.get_many(project, some)
            found |= await self._compute.run(partial(made, list(records.values())))
        return found

    async def models(self, project: str, limit: int, after: ModelRef | None) -> Page[ModelRef, ModelRef]:
        """Model versions that have an evaluation."""
        return await self._store.models(project, limit, after)

    async def datasets(self, project: str, limit: int, after: DatasetRef | None) -> Page[DatasetRef, DatasetRef]:
        """Datasets that have an evaluation."""
        return await self._store.datasets(project, limit, after)


def record_of(
    identifier: UUID,
    new: NewEvaluation,
    model: ModelRef,
    dataset: DatasetRef,
    values: Mapping[str, Value],
    sections: Mapping[SectionName, Section] | None,
) -> EvaluationRecord:
    """The record of an evaluation with these values; ``sections`` are kept in the place of its samples."""
    source = new.source if new.options.retain is Retain.FULL else replace(new.source, samples=None)
    return EvaluationRecord(
        **source.as_input,
        id=identifier,
        model=model,
        dataset=dataset,
        tags=new.tags,
        options=options_as_json(new.options),
        revision=(catalogue() if source.is_scored or source.task is not None else catalogue().of_matrices).revision,
        values=values,
        part=None if sections is None else sections_as_json(sections),
    )


def keeps_sections(new: NewEvaluation) -> bool:
    """Is what was said of the samples kept in their place?"""
    return new.options.retain is not Retain.FULL and _needs_samples(new.source, new.options)


def _needs_samples(source: MatrixInput, options: Options) -> bool:
    """Does the report say more than what follows from the matrix?"""
    if options.metrics and ask(source, options).of_slices:
        return True
    if source.task is not None:
        form = units_of(source.kind, source.facts)
        return form is not None and form.needs_samples(source.facts)
    return source.is_scored or source.is_grouped or source.is_weighted


def _only(names: set[Item], what: str) -> Item:
    """Return the name that all parts of a merge have.

    Raises:
        InvalidInput: they differ.
    """
    if len(names) > 1:
        detail = f"expected a {what} with a name: the evaluations are of {len(names)} that differ, in name or version"
        raise InvalidInput.at(f"/{what}", "missing_field", detail)
    return next(iter(names))


def _found(record: EvaluationRecord | None, identifier: UUID) -> EvaluationRecord:
    if record is None:
        raise _missing(identifier)
    return record


def _missing(identifier: UUID) -> NotFound:
    return NotFound(f"there is no evaluation {identifier}")


def _count_kept() -> None:
    """One more was saved for the present request."""
    own = tally()
    if own is not None:
        own.evaluations += 1


def _answer(
    of: EvaluationRecord | NewEvaluation, new: NewEvaluation, report: Report | Brief
) -> Evaluation | EvaluationHeadline:
    """The answer to a request, about its record where it is kept."""
    if isinstance(report, Report) and not new.brief:
        return _whole(of, new, report)
    return EvaluationHeadline(**_names(of), headline=report.headline)


def _whole(of: EvaluationRecord | NewEvaluation, new: NewEvaluation, report: Report) -> Evaluation:
    return Evaluation(**_names(of), report=report, values=_values(report, new.source, new.asked, new.chosen))


def _values(
    report: Report, source: MatrixInput, options: Options, chosen: tuple[str, ...] | None
) -> dict[str, ShownValue] | None:
    """The table of values of a report, where one is wanted."""
    return None if chosen is None else shown_values(report, ask(source, options), chosen)


def _record(new: NewEvaluation, identifier: UUID | None, report: Report | Brief) -> EvaluationRecord | None:
    """The record under an id, where there is one."""
    if identifier is None or new.model is None or new.dataset is None:
        return None
    sections = report.of_samples if keeps_sections(new) else None
    return record_of(new.identifier(identifier), new, new.model, new.dataset, report.values, sections)


def evaluate_alone(new: NewEvaluation, identifier: UUID | None) -> tuple[Evaluation, EvaluationRecord | None]:
    """An evaluation and the record that keeps it under an id, in one piece: for what a process computes by itself."""
    report = new.report or report_of(new.source, new.asked)
    record = _record(new, identifier, report)
    return _whole(record or new, new, report), record


def evaluate_together(
    asked: Sequence[tuple[NewEvaluation, UUID | None]], *, briefly: bool
) -> list[tuple[Evaluation | EvaluationHeadline, EvaluationRecord | None] | None]:
    """Evaluate several requests at once. None stands for one that is no quick matrix, or is invalid.

    Args:
        asked: Each with its id.
        briefly: Headlines are enough.
    """
    answers: list[tuple[Evaluation | EvaluationHeadline, EvaluationRecord | None] | None] = [None] * len(asked)
    questions = {
        place: question
        for place, (new, _) in enumerate(asked)
        if (question := _light_question(new)) is not None and (is_quick(question) or not briefly)
    }
    waiting = list(questions)
    for those in passes(list(questions.values())):
        places = [waiting[index] for index in those]
        found = batch_values([questions[place] for place in places])
        reports: Sequence[Report | Brief] = briefs(found) if briefly else matrix_reports(found)
        for place, report in zip(places, reports, strict=True):
            new, identifier = asked[place]
            record = _record(new, identifier, report)
            answers[place] = _answer(record or new, new, report), record
    return answers


def _light_question(new: NewEvaluation) -> Question | None:
    try:
        question = ask(new.source, new.asked)
    except DomainError:
        # Whoever evaluates it alone is told what is wrong.
        return None
    return question if is_light(question) else None
