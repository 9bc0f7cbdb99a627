"""Evaluations: computed, made, read, listed, tagged, deleted, and the answers that callers get."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
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
    Named,
    Page,
    Position,
    ShownValue,
)
from app.domain.expressions.conditions import Slice
from app.domain.findings import Finding, Severity
from app.domain.identifiers import id_at
from app.domain.inputs.content import DATA_FACT, MERGED_FACT, DataFacts, why_not_saved
from app.domain.inputs.kinds import needs_samples, refuse_without_curves
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.merging import is_made_of_samples, merged
from app.domain.members import LEFT_OUT, SPREAD, typed
from app.domain.options import Options, Retain
from app.domain.report import Report
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import Array, ratio, silently
from app.services.admission import Admission
from app.services.evaluate.questions import Question, ask
from app.services.evaluate.reports import (
    Kept,
    Reports,
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
from app.services.evaluate.values import listed_values, refuse_unknown, shown_values, with_chosen
from app.services.idempotency import Mark, keep_under
from app.services.ports import EvaluationStore
from app.services.present import made_id, tally
from app.services.processes.compute import ComputePool, Result
from app.services.sliced import sliced_store
from app.services.stored import (
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


def _findings_on_matrix(record: EvaluationRecord) -> tuple[Finding, ...] | None:
    """Return findings without those on samples, which would have to be read; None for an evaluation of more than
    classes.
    """
    return None if record.task is not None else findings_of(ask(*stored_request(record)), record.values)


def _by_id(made: Callable[[EvaluationRecord], Result], records: Sequence[EvaluationRecord]) -> dict[UUID, Result]:
    return {record.id: made(record) for record in records}


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

    def identifier(self, fresh: UUID) -> UUID:
        """The id it is kept under, of which the moment is part: the fresh one unless another moment is given."""
        return fresh if self.created_at is None else id_at(self.created_at, fresh)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """A request for one evaluation of the data of several, with these once they are read.

    Attributes:
        as_folds: Is each a fold, beside the sum of all?
        options: Those of the new evaluation.
        model: That of all of them when left out, as is the data set.
    """

    evaluations: Sequence[Named]
    as_folds: bool
    options: Options
    model: ModelRef | None = None
    dataset: DatasetRef | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    records: Sequence[EvaluationRecord] = ()

    @property
    def is_elsewhere(self) -> bool:
        """Is it made of samples that lie where the data of all evaluations was named?"""
        elsewhere = all(record.elsewhere for record in self.records) and not self.as_folds
        return elsewhere and any(map(is_made_of_samples, self.records))

    def check_different(self) -> None:
        """Raises InvalidInput where an evaluation, or data that was named, is in two of them; in folds it may be."""
        seen: dict[Any, int] = {}
        for place, record in enumerate(() if self.as_folds else self.records):
            for one in record.parts or (record,):
                read = one.id if one.data is None else (one.data["digest"], one.data.get("filter"))
                earlier = seen.setdefault(read, place)
                if earlier != place:
                    other = self.records[earlier].id
                    detail = f"expected other data than that of {other}: each sample would count twice"
                    raise InvalidInput.at(f"/evaluations/{place}", "duplicate_data", detail)

    @property
    def facts(self) -> dict[str, Any]:
        """Facts of the input of the new evaluation."""
        return {MERGED_FACT: [str(record.id) for record in self.records]}

    @property
    def names(self) -> dict[str, Any]:
        """Model, dataset and tags of the new evaluation; raises InvalidInput where one is not given and they differ."""
        model = self.model or _only({record.model for record in self.records}, "model")
        dataset = self.dataset or _only({record.dataset for record in self.records}, "dataset")
        return {"model": model, "dataset": dataset, "tags": self.tags}

    def evaluation(self, source: MatrixInput) -> NewEvaluation:
        """Return the request for the evaluation of their data; raises as `names` does."""
        return NewEvaluation(
            source=replace(source, facts={**source.facts, **self.facts}),
            options=self.options,
            **self.names,
        )


def with_data(new: NewEvaluation, facts: DataFacts) -> NewEvaluation:
    """Return the request with the facts of data that was named by a reference, whose samples are not stored."""
    return replace(
        new,
        source=replace(new.source, facts={**new.source.facts, DATA_FACT: facts}),
        options=replace(new.options, retain=Retain.NONE),
    )


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

    async def compute(self, new: NewEvaluation) -> Evaluation:
        """Compute and save nothing."""
        return _made(new, None, await self._reports.make(new.source, new.asked, brief=new.brief))[0]

    async def to_merge(self, project: str, asked: Merge) -> Merge:
        """Return a request for one evaluation of the data of several, with these. Raises NotFound where one does not
        exist, and InvalidInput where one is named twice, or their data is.
        """
        identifiers = await identified_once(self._store, project, asked.evaluations)
        pointers = [f"/evaluations/{place}" for place in range(len(identifiers))]
        records = await records_of(self._store, project, identifiers, pointers)
        merge = replace(asked, records=await with_parts(self._store, project, records))
        merge.check_different()
        return merge

    async def merged(self, project: str, merge: Merge) -> NewEvaluation:
        """Return the request for one evaluation of the saved data of several, which stay as they are; raises what
        `app.domain.inputs.merging.merged` and `Merge.evaluation` do.
        """
        parts = []
        for record in merge.records:
            full = stored_request(record)[1].retain is Retain.FULL
            samples = await self._store.read_samples(project, record.id) if full else None
            parts.append(replace(record, samples=samples))
        return merge.evaluation(await self._compute.run(partial(merged, parts, as_folds=merge.as_folds)))

    async def create(self, project: str, new: NewEvaluation) -> tuple[Evaluation, "asyncio.Task[None]"]:
        """Compute and begin to keep: the evaluation, which has names, is durable once the task is done. It raises
        Overloaded, StoreUnavailableError or StoreFullError where the evaluation is not saved.
        """
        brief = new.brief and not _needs_samples(new.source, new.options)
        report = await self._reports.make(new.source, new.asked, brief=brief)
        evaluation, record = _made(new, made_id(), report)
        if record is None:
            raise ValueError("expected names of the model and of the dataset")
        return evaluation, asyncio.create_task(self.keep(project, record))

    async def keep(self, project: str, record: EvaluationRecord) -> None:
        """Make a record durable. Raises as the task of `create` does."""
        async with self._admission:
            await self._store.add(project, record)
        _count_kept()

    async def keep_all(self, project: str, records: Sequence[EvaluationRecord]) -> None:
        """Make several records durable, all of them or none. Raises as the task of `create` does."""
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

    async def read(
        self, project: str, identifier: UUID, chosen: tuple[str, ...] | None = None, *, brief: bool = False
    ) -> Evaluation:
        """One evaluation, its report computed again from what is stored; ``chosen`` and ``brief`` as in
        `NewEvaluation`.
        """
        record = await self._get(project, identifier)
        source, options = stored_request(record)
        if chosen:
            options = with_chosen(source, options, chosen, samples=options.retain is Retain.FULL)
        at_once = brief and is_quick(ask(source, options))
        kept = None if at_once else await self._kept(project, record, options)
        report = await self._reports.make(source, options, kept, brief=brief)
        return Evaluation(**_names(record), report=report, values=_values(report, source, options, chosen))

    async def read_shown(self, project: str, identifier: UUID, read: Callable[[Evaluation], Result]) -> Result:
        """Result of a function of one evaluation as pages show it, without limits and details of the probabilities of
        each class. It is called in the process that computes the report.
        """
        record = await self._get(project, identifier)
        options = replace(stored_request(record)[1], details=False)
        kept = await self._kept(project, record, options)
        return await self._compute.run(partial(_read_by, read, record, ask(record, options), kept))

    async def read_matrices(
        self, project: str, identifiers: Sequence[UUID], *, limits: bool = True
    ) -> Sequence[Evaluation]:
        """Evaluations with what follows from their matrices; what probabilities say besides is not computed."""
        found = await self._store.get_many(project, identifiers)
        records = [_found(found.get(identifier), identifier) for identifier in identifiers]
        return await asyncio.gather(*(self._with_matrix(project, record, limits=limits) for record in records))

    async def _with_matrix(self, project: str, record: EvaluationRecord, *, limits: bool) -> Evaluation:
        source, options = stored_request(record)
        # Limits of these need the samples.
        by_samples = source.task is not None or source.is_grouped or source.is_weighted
        options = options if by_samples else Options(level=options.level)
        options = options if limits else options.without_intervals
        kept = await self._kept(project, record, options) if by_samples else {}
        return Evaluation(**_names(record), report=await self._reports.make(source, options, kept))

    async def names(self, project: str, identifier: UUID) -> dict[str, Any]:
        """Return the id, model, dataset and tags of an evaluation."""
        return _names(await self._get(project, identifier))

    async def matrix(self, project: str, identifier: UUID, normalized: Normalized) -> MatrixShown:
        """The confusion matrix alone, perhaps as shares."""
        record = await self._get(project, identifier)
        refuse_kind(record, "a confusion matrix")
        counts = record.counts.astype(np.float64)
        if normalized is not Normalized.FALSE:
            axes = {Normalized.TRUE: 1, Normalized.PRED: 0, Normalized.ALL: None}
            with silently():
                # NaN where nothing is to be divided by.
                counts = ratio(counts, counts.sum(axis=axes[normalized], keepdims=True))
        return MatrixShown(
            evaluation_id=identifier, labels=record.labels, normalized=normalized, confusion_matrix=counts
        )

    async def samples(self, project: str, identifier: UUID) -> MatrixInput:
        """The input of an evaluation with the probabilities or scores of its samples, of classes or of labels. Raises
        NotFound, NeedsScores where it came without these, and NoSamples where they were not saved.
        """
        return await self._ordered(project, await self._get(project, identifier))

    async def _ordered(self, project: str, record: EvaluationRecord) -> MatrixInput:
        refuse_without_curves(record)
        if not record.is_ordered:
            raise NeedsScores(
                f"expected an evaluation of probabilities or scores, {record.id} came as {record.kind}: curves and "
                "thresholds need the scores of the samples"
            )
        return await self._with_samples(project, record)

    async def with_curves(self, project: str, identifier: UUID) -> MatrixInput:
        """Return the samples of an evaluation for curves, of streamed ones their stored curves; raises as `samples`."""
        record = await self._get(project, identifier)
        if record.facts.keys() & {DATA_FACT, MERGED_FACT} and record.task is None:
            stored = await self._store.read_part(project, identifier)
            if stored is not None and "curves" in stored:
                return StreamedInput.of(record, stored["curves"])
        return await self._ordered(project, record)

    async def units(self, project: str, identifier: UUID) -> MatrixInput:
        """The input of an evaluation of more than classes, with its samples or queries. Raises NotFound, NotForKind for
        one of classes, and NoSamples where they were not saved.
        """
        record = await self._get(project, identifier)
        if record.task is None:
            raise NotForKind(f"expected an evaluation of more than classes, {identifier} came as {record.kind}")
        return await self._with_samples(project, record)

    async def sliced_elsewhere(self, project: str, identifier: UUID) -> EvaluationRecord | None:
        """The evaluation if its samples and attributes lie where its data, or that of all parts, was named; else None.
        Raises NotFound.
        """
        (record,) = await with_parts(self._store, project, [await self._get(project, identifier)])
        columns = [part.data.get("columns", {}) for part in record.elsewhere if part.data is not None]
        named = [{*own.get("attributes", ())} for own in columns]
        return record if named and named[0] and all(one == named[0] for one in named) else None

    async def kept(self, project: str, identifier: UUID) -> tuple[bool, bool]:
        """Return whether samples are kept of an evaluation, and whether attributes are, which slices are made of."""
        return await self._store.kept(project, identifier)

    async def sliceable(self, project: str, identifier: UUID) -> MatrixInput:
        """The input of an evaluation with its samples and their attributes. Raises NotFound, and NoSamples where they
        were not saved.
        """
        record = await self._get(project, identifier)
        samples = await self._store.read_samples(project, identifier)
        if samples is None or samples.attributes is None:
            parts = ", or named alike by all its parts" if MERGED_FACT in record.facts else ""
            raise NoSamples(f"no samples of {identifier} with attributes were saved{parts}, which slices are made of")
        return replace(record, samples=samples)

    async def _get(self, project: str, identifier: UUID) -> EvaluationRecord:
        return _found(await self._store.get(project, identifier), identifier)

    async def _with_samples(self, project: str, record: EvaluationRecord) -> MatrixInput:
        if stored_request(record)[1].retain is Retain.NONE:
            raise NoSamples(f"the samples of {record.id} were not saved: {why_not_saved(record.facts)}")
        samples = await self._store.read_samples(project, record.id)
        if samples is None:
            raise NoSamples(f"the samples of {record.id} were not saved: its counts say all of it")
        return replace(record, samples=samples)

    async def _kept(self, project: str, record: EvaluationRecord, options: Options) -> Kept:
        """Return all that a report needs of the samples; raises NotFound if the evaluation was deleted meanwhile."""
        if not _needs_samples(record, options):
            return None
        if options.retain is Retain.FULL:
            return _found(await self._store.read_samples(project, record.id), record.id)
        return sections_from_json(_found(await self._store.read_part(project, record.id), record.id))

    async def change_tags(self, project: str, identifier: UUID, tags: Mapping[str, str | None]) -> None:
        """Set tags, and remove those that are None; raises InvalidInput where there would be too many."""
        async with self._admission:
            _found(await self._store.change_tags(project, identifier, tags), identifier)

    async def delete(self, project: str, identifier: UUID) -> None:
        """Remove an evaluation for good."""
        async with self._admission:
            _found(await self._store.delete(project, identifier) or None, identifier)

    async def latest(self, project: str, query: EvaluationQuery) -> UUID:
        """The id of the newest evaluation that matches; raises NotFound where none does."""
        found = await self._store.page(project, query)
        if not found.items:
            raise NotFound("there is no evaluation that matches")
        return found.items[0].id

    async def page(self, project: str, query: EvaluationQuery) -> Page[EvaluationSummary, Position]:
        """Some evaluations in the order asked for."""
        return await self._store.page(project, query)

    async def with_findings(self, project: str, items: Sequence[EvaluationSummary]) -> list[EvaluationSummary]:
        """Evaluations of a list with what there is to say of each matrix."""
        found = await self._of_each(project, items, _findings_on_matrix)
        marks = {key: [one.mark for one in some] for key, some in found.items() if some is not None}
        return [replace(item, findings=marks.get(item.id)) for item in items]

    async def gravest_findings(self, project: str, items: Sequence[EvaluationSummary]) -> Mapping[UUID, Finding]:
        """The gravest finding on the matrix of each evaluation of a list, where there is one."""
        found, order = await self._of_each(project, items, _findings_on_matrix), [*Severity]
        return {key: min(some, key=lambda one: order.index(one.severity)) for key, some in found.items() if some}

    async def with_values(
        self, project: str, items: Sequence[EvaluationSummary], chosen: tuple[str, ...]
    ) -> list[EvaluationSummary]:
        """Evaluations of a list with the values of each, with limits as far as these follow from its matrix.

        Raises:
            InvalidExpression, InvalidExpressions: one is none of any evaluation.
        """
        refuse_unknown(chosen)
        values = await self._of_each(project, items, partial(listed_values, chosen=chosen))
        return [replace(item, values=values.get(item.id)) for item in items]

    async def _of_each(
        self, project: str, items: Sequence[EvaluationSummary], made: Callable[[EvaluationRecord], Result]
    ) -> dict[UUID, Result]:
        """Return the results of a function of the records of a list, by id."""
        found: dict[UUID, Result] = {}
        for start in range(0, len(items), _READ_AT_ONCE):
            some = [item.id for item in items[start : start + _READ_AT_ONCE]]
            records = await self._store.get_many(project, some)
            found |= await self._compute.run(partial(_by_id, made, list(records.values())))
        return found

    async def models(self, project: str, limit: int, after: ModelRef | None) -> Page[ModelRef, ModelRef]:
        """Model versions that have an evaluation."""
        return await self._store.models(project, limit, after)

    async def datasets(self, project: str, limit: int, after: DatasetRef | None) -> Page[DatasetRef, DatasetRef]:
        """Datasets that have an evaluation."""
        return await self._store.datasets(project, limit, after)


def _needs_samples(source: MatrixInput, options: Options) -> bool:
    """Does the report say more than what follows from the matrix?"""
    return needs_samples(source) or bool(options.metrics and ask(source, options).of_slices)


def _only(names: set[Item], what: str) -> Item:
    """Return the name that all parts of a merge have; raises InvalidInput where they differ."""
    if len(names) > 1:
        detail = f"expected a {what} with a name: the evaluations are of {len(names)} that differ, in name or version"
        raise InvalidInput.at(f"/{what}", "missing_field", detail)
    return next(iter(names))


def _found(what: Item | None, identifier: UUID) -> Item:
    """Return a stored part of an evaluation; raises NotFound if there is no such evaluation."""
    if what is None:
        raise NotFound(f"there is no evaluation {identifier}")
    return what


def _count_kept() -> None:
    """One more was saved for the present request."""
    own = tally()
    if own is not None:
        own.evaluations += 1


def _values(
    report: Report, source: MatrixInput, options: Options, chosen: tuple[str, ...] | None
) -> dict[str, ShownValue] | None:
    """The table of values of a report, where one is wanted."""
    return None if chosen is None else shown_values(report, ask(source, options), chosen)


def _made(new: NewEvaluation, identifier: UUID | None, report: Report) -> tuple[Evaluation, EvaluationRecord | None]:
    """The answer to a request, and the record that keeps it under an id, where it has one and names; what was said of
    samples that are not kept is.
    """
    record = None
    if identifier is not None and new.model is not None and new.dataset is not None:
        kept, needed = new.options.retain is Retain.FULL, _needs_samples(new.source, new.options)
        source = new.source if kept else replace(new.source, samples=None)
        metrics = catalogue() if source.is_scored or source.task is not None else catalogue().of_matrices
        record = EvaluationRecord(
            **source.as_input,
            id=new.identifier(identifier),
            model=new.model,
            dataset=new.dataset,
            tags=new.tags,
            options=options_as_json(new.options),
            revision=metrics.revision,
            values=report.values,
            part=sections_as_json(report.of_samples) if needed and not kept else None,
        )
    values = _values(report, new.source, new.asked, new.chosen)
    return Evaluation(**_names(record or new), report=report, values=values), record


def evaluate_alone(new: NewEvaluation, identifier: UUID | None) -> tuple[Evaluation, EvaluationRecord | None]:
    """An evaluation and the record that keeps it under an id, in one piece: for what a process computes by itself."""
    return _made(new, identifier, new.report or report_of(new.source, new.asked))


def evaluate_together(
    asked: Sequence[tuple[NewEvaluation, UUID | None]], *, briefly: bool
) -> list[tuple[Evaluation, EvaluationRecord | None] | None]:
    """Evaluate several requests, each with its id, at once; ``briefly``: headlines are enough. None stands for one that
    is no quick matrix, or is invalid.
    """
    answers: list[tuple[Evaluation, EvaluationRecord | None] | None] = [None] * len(asked)
    questions: dict[int, Question] = {}
    for place, (new, _) in enumerate(asked):
        # Whoever evaluates it alone is told what is wrong.
        with suppress(DomainError):
            question = ask(new.source, new.asked)
            if is_light(question) and (is_quick(question) or not briefly):
                questions[place] = question
    waiting = list(questions)
    for those in passes(list(questions.values())):
        places = [waiting[index] for index in those]
        found = batch_values([questions[place] for place in places])
        for place, report in zip(places, matrix_reports(found, brief=briefly), strict=True):
            answers[place] = _made(*asked[place], report)
    return answers
