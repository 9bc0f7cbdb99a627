"""Stored evaluations as the source of reports, by id or by model, dataset and version."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import Any, Self
from uuid import UUID

from app.domain.errors import InvalidInput, NoSamples, NotForKind, NotFound
from app.domain.evaluation import DatasetRef, EvaluationQuery, EvaluationRecord, ModelRef, Reference
from app.domain.inputs.content import MERGED_FACT
from app.domain.inputs.folds import Folds
from app.domain.inputs.kinds import inputs_of
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import Samples
from app.domain.options import Costs, IntervalChoice, IntervalMethod, Options, Retain, Sampling
from app.kernel.metrics.card import INPUTS_OF_CLASSES, Inputs
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.draws import Alternative, AreaInterval, Prior, Shares
from app.kernel.uncertainty.intervals import ProportionInterval
from app.services.ports import EvaluationStore

_DEFAULTS = Options()


def stored_request(record: EvaluationRecord) -> tuple[MatrixInput, Options]:
    """Return the input and the options that the report of a stored evaluation is computed from."""
    return stored_input(record), options_from_json(record.options)


def stored_input(record: EvaluationRecord, samples: Samples | None = None) -> MatrixInput:
    """The input of a stored evaluation, with its samples where these are known."""
    return MatrixInput(
        kind=record.kind,
        labels=record.labels,
        positive=record.positive,
        content=record.content,
        counts=record.counts,
        fold_counts=record.fold_counts,
        facts=record.extra,
        samples=samples,
    )


@dataclass(frozen=True, slots=True, eq=False)
class StreamedInput(MatrixInput):
    """The input of an evaluation whose samples were streamed, with their stored curves as JSON."""

    curves: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, record: EvaluationRecord, curves: Mapping[str, Any]) -> Self:
        """Make it from a record and its stored curves."""
        source = stored_input(record)
        return cls(**{one.name: getattr(source, one.name) for one in fields(source)}, curves=curves)


def inputs_of_all(records: Sequence[EvaluationRecord]) -> frozenset[Inputs]:
    """Return the inputs that metrics of all these runs, of one kind, can use. Runs of classes are assumed to have every
    input: a run that lacks one is reported when its samples are read.
    """
    if records[0].task is None:
        return INPUTS_OF_CLASSES
    return frozenset.intersection(*(inputs_of(stored_input(record)) for record in records))


def refuse_kind(record: EvaluationRecord, what: str) -> None:
    """Refuse what is made of a matrix of classes for what is more than one.

    Raises:
        NotForKind: the evaluation is of another kind.
    """
    if record.task is not None:
        raise NotForKind(f"there is no such thing as {what} of {record.task}: {record.kind} was evaluated")


def unkept_record(source: MatrixInput) -> EvaluationRecord:
    """An input that is not saved, in the form of one that is: it has no id, no names and no values."""
    return EvaluationRecord(
        id=UUID(int=0),
        model=ModelRef(""),
        dataset=DatasetRef(""),
        kind=source.kind,
        labels=source.labels,
        positive=source.positive,
        content=source.content,
        counts=source.counts,
        fold_counts=source.fold_counts,
        extra=source.facts,
        revision="",
        values={},
    )


def scores_of(source: MatrixInput) -> Scores:
    """The samples of an input as the kernel takes them; one score per sample is higher for the positive class, which
    is the second unless said.

    Raises:
        ValueError: there are no probabilities or scores.
        NoSamples: they were streamed when they were evaluated.
    """
    if isinstance(source, StreamedInput):
        raise NoSamples("the samples were streamed when they were evaluated, and only some curves of them are saved")
    samples = source.samples
    if samples is None or samples.outputs is None:
        raise ValueError("expected probabilities or scores")
    if samples.outputs.ndim == 2:
        made = Scores.of_class_scores if source.has_scores else Scores
        return made(samples.truth, samples.outputs, samples.weights)
    # The kernel's scores are higher for class 1.
    values = -samples.outputs if source.positive == 0 else samples.outputs
    return Scores.of_scores(samples.truth, values, samples.weights)


def options_as_json(options: Options) -> dict[str, Any]:
    """Options as they are stored; defaults are left out so that they cost nothing."""
    if options == _DEFAULTS:
        return {}
    usual = _told(_DEFAULTS)
    return {key: value for key, value in _told(options).items() if value != usual[key]}


def _told(options: Options) -> dict[str, Any]:
    costs, sampling = options.costs, options.sampling
    return {
        "metrics": list(options.metrics),
        "level": options.level,
        "seed": options.seed,
        "intervals": options.intervals.value,
        "interpretation": options.interpretation,
        "retain": options.retain.value,
        "costs": None if costs is None else {"matrix": costs.matrix, "decisions": costs.decisions},
        "proportion_interval": options.proportion_interval.value,
        "area_interval": options.area_interval.value,
        "alternative": options.alternative.value,
        "interval_method": sampling.method.value,
        "prior": sampling.prior.value,
        "pseudo_counts": sampling.pseudo_counts,
        "prevalence_design": sampling.shares.value,
        "draws": sampling.draws,
    }


def options_from_json(stored: Mapping[str, Any]) -> Options:
    """The reverse of ``options_as_json``."""
    defaults = _DEFAULTS
    return Options(
        metrics=tuple(stored.get("metrics", ())),
        level=stored.get("level", defaults.level),
        seed=stored.get("seed"),
        intervals=IntervalChoice(stored.get("intervals", defaults.intervals)),
        interpretation=stored.get("interpretation", False),
        retain=Retain(stored.get("retain", defaults.retain)),
        sampling=_sampling_from_json(stored),
        costs=_costs_from_json(stored.get("costs")),
        alternative=Alternative(stored.get("alternative", defaults.alternative)),
        area_interval=AreaInterval(stored.get("area_interval", defaults.area_interval)),
        proportion_interval=ProportionInterval(stored.get("proportion_interval", defaults.proportion_interval)),
    )


def _costs_from_json(stored: Mapping[str, Any] | None) -> Costs | None:
    if stored is None:
        return None
    decisions = stored["decisions"]
    return Costs(tuple(map(tuple, stored["matrix"])), None if decisions is None else tuple(decisions))


def _sampling_from_json(stored: Mapping[str, Any]) -> Sampling:
    defaults = Sampling()
    rows = stored.get("pseudo_counts")
    return Sampling(
        method=IntervalMethod(stored.get("interval_method", defaults.method)),
        prior=Prior(stored.get("prior", defaults.prior)),
        pseudo_counts=None if rows is None else tuple(map(tuple, rows)),
        shares=Shares(stored.get("prevalence_design", defaults.shares)),
        draws=stored.get("draws", defaults.draws),
    )


# How a run is named where one is asked for.
Named = UUID | Reference


async def identified(
    store: EvaluationStore, project: str, named: Sequence[Named], pointers: Sequence[str]
) -> list[UUID]:
    """The ids of what is named: of a reference that of the latest evaluation that matches.

    Raises:
        NotFound: nothing matches; its pointer is that of the reference.
    """
    found = []
    for one, pointer in zip(named, pointers, strict=True):
        found.append(one if isinstance(one, UUID) else await _latest(store, project, one, pointer))
    return found


async def identified_once(store: EvaluationStore, project: str, named: Sequence[Named]) -> list[UUID]:
    """The ids of what is named in ``/evaluations``.

    Raises:
        NotFound: as ``identified``.
        InvalidInput: one is there twice.
    """
    pointers = [f"/evaluations/{place}" for place in range(len(named))]
    found = await identified(store, project, named, pointers)
    for place, identifier in enumerate(found):
        if identifier in found[:place]:
            detail = f"expected different evaluations, {identifier} is there twice"
            raise InvalidInput.at(pointers[place], "repeated_evaluation", detail)
    return found


async def with_parts(
    store: EvaluationStore, project: str, records: Sequence[EvaluationRecord]
) -> list[EvaluationRecord]:
    """Evaluations with their parts, where they were merged."""
    parts = {record.id: [record] for record in records if _merged_from(record)}
    while wanted := {one for own in parts.values() for record in own for one in _merged_from(record)}:
        found = await store.get_many(project, [*wanted])
        for own in parts.values():
            known = {**found, **{record.id: record for record in own}}
            below = [*chain.from_iterable(_merged_from(record) or [record.id] for record in own)]
            own[:] = [known[one] for one in below] if known.keys() >= {*below} else []
    return [replace(record, parts=tuple(parts.get(record.id, ()))) for record in records]


def _merged_from(record: EvaluationRecord) -> list[UUID]:
    """Ids of the evaluations whose samples are all in one; folds are not."""
    return [] if record.kind == Folds.kind else [UUID(one) for one in record.extra.get(MERGED_FACT, ())]


async def _latest(store: EvaluationStore, project: str, reference: Reference, pointer: str) -> UUID:
    page = await store.page(project, query_of(reference))
    if not page.items:
        raise NotFound(f"there is no evaluation of {reference}", pointer=pointer)
    return page.items[0].id


def query_of(reference: Reference) -> EvaluationQuery:
    """Return the query for the latest evaluation that matches a reference."""
    query = EvaluationQuery(tags=reference.tags, limit=1)
    if (model := reference.model) is not None:
        query = replace(query, model=model.name, model_version=model.version)
    if (dataset := reference.dataset) is not None:
        query = replace(query, dataset=dataset.name, dataset_version=dataset.version, split=dataset.split)
    return query
