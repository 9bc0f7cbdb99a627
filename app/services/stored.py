"""Stored evaluations as the source of reports, by id or by model, dataset and version."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain
from operator import attrgetter
from typing import Any, Final, Self
from uuid import UUID

from app.domain.errors import InvalidInput, NoSamples, NotForKind, NotFound
from app.domain.evaluation import DatasetRef, EvaluationQuery, EvaluationRecord, ModelRef, Named, Reference
from app.domain.inputs.content import MERGED_FACT
from app.domain.inputs.folds import Folds
from app.domain.inputs.kinds import inputs_of
from app.domain.inputs.matrices import MatrixInput
from app.domain.members import as_json
from app.domain.options import Costs, IntervalMethod, Options
from app.kernel.metrics.card import INPUTS_OF_CLASSES, Inputs
from app.kernel.samples.scores import Scores
from app.services.ports import EvaluationStore

_DEFAULTS = Options()


def stored_request(record: EvaluationRecord) -> tuple[MatrixInput, Options]:
    """Return the input and the options that the report of a stored evaluation is computed from."""
    return record, options_from_json(record.options)


@dataclass(frozen=True, slots=True, eq=False)
class StreamedInput(MatrixInput):
    """The input of an evaluation whose samples were streamed, with their stored curves as JSON."""

    curves: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, record: EvaluationRecord, curves: Mapping[str, Any]) -> Self:
        """Make it from a record and its stored curves."""
        return cls(**record.as_input, curves=curves)


def inputs_of_all(records: Sequence[EvaluationRecord]) -> frozenset[Inputs]:
    """Return the inputs that metrics of all these runs, of one kind, can use. Runs of classes are assumed to have every
    input: a run that lacks one is reported when its samples are read.
    """
    if records[0].task is None:
        return INPUTS_OF_CLASSES
    return frozenset.intersection(*(inputs_of(record) for record in records))


def refuse_kind(record: EvaluationRecord, what: str) -> None:
    """Refuse what is made of a matrix of classes for what is more than one.

    Raises:
        NotForKind: the evaluation is of another kind.
    """
    if record.task is not None:
        raise NotForKind(f"there is no such thing as {what} of {record.task}")


def unkept_record(source: MatrixInput) -> EvaluationRecord:
    """An input that is not saved, in the form of one that is: it has no id, no names and no values."""
    return EvaluationRecord(
        **source.as_input, id=UUID(int=0), model=ModelRef(""), dataset=DatasetRef(""), revision="", values={}
    )


def of_part(record: EvaluationRecord, source: MatrixInput) -> EvaluationRecord:
    """The record of a part of the samples of an evaluation, from the input that they are."""
    return replace(record, **source.as_input | {"fold_counts": None})


async def records_of(
    store: EvaluationStore, project: str, identifiers: Sequence[UUID], pointers: Sequence[str]
) -> list[EvaluationRecord]:
    """Evaluations in the order asked for. Raises NotFound, whose pointer is that of the missing id."""
    found = await store.get_many(project, identifiers)
    for identifier, pointer in zip(identifiers, pointers, strict=True):
        if identifier not in found:
            raise NotFound(f"there is no evaluation {identifier}", pointer=pointer)
    return [found[identifier] for identifier in identifiers]


def scores_of(source: MatrixInput) -> Scores:
    """The samples of an input as the kernel takes them; one score per sample is higher for the positive class, which
    is the second unless said.

    Raises:
        ValueError: there are no probabilities or scores.
        NoSamples: they were streamed when they were evaluated.
    """
    if isinstance(source, StreamedInput):
        raise NoSamples("the samples were streamed when they were evaluated, and only some curves of them are saved")
    samples, outputs = source.known_samples, source.known_samples.known_outputs
    if outputs.ndim == 2:
        made = Scores.of_class_scores if source.has_scores else Scores
        return made(samples.truth, outputs, samples.weights)
    # The kernel's scores are higher for class 1.
    values = -outputs if source.positive == 0 else outputs
    return Scores.of_scores(samples.truth, values, samples.weights)


# Options by their names in JSON, those of requests, each with where it stands.
_OPTIONS: Final = {
    **{name: name for name in ("metrics", "level", "seed", "intervals", "interpretation", "retain", "costs")},
    **{name: name for name in ("proportion_interval", "area_interval", "alternative")},
    "interval_method": "sampling.method",
    "prior": "sampling.prior",
    "pseudo_counts": "sampling.pseudo_counts",
    "prevalence_design": "sampling.shares",
    "draws": "sampling.draws",
}


def options_as_json(options: Options) -> dict[str, Any]:
    """Options as they are stored; defaults are left out so that they cost nothing."""
    if options == _DEFAULTS:
        return {}
    chosen = {name: (attrgetter(place)(options), attrgetter(place)(_DEFAULTS)) for name, place in _OPTIONS.items()}
    return {name: as_json(value) for name, (value, usual) in chosen.items() if value != usual}


def options_from_json(stored: Mapping[str, Any]) -> Options:
    """The reverse of ``options_as_json``."""
    chosen: dict[str, Any] = {}
    for name, place in _OPTIONS.items():
        if name in stored:
            usual = attrgetter(place)(_DEFAULTS)
            chosen[place] = type(usual)(stored[name]) if isinstance(usual, StrEnum) else _as_tuples(stored[name])
    if chosen.get("costs") is not None:
        chosen["costs"] = Costs(**{name: _as_tuples(value) for name, value in chosen["costs"].items()})
    sampling = {name.removeprefix("sampling."): chosen.pop(name) for name in [*chosen] if "." in name}
    if "method" in sampling:
        sampling["method"] = IntervalMethod(sampling["method"])
    return replace(_DEFAULTS, **chosen, sampling=replace(_DEFAULTS.sampling, **sampling))


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list | tuple) else value


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
    return [] if record.kind == Folds.kind else [UUID(one) for one in record.facts.get(MERGED_FACT, ())]


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
