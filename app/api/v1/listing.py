"""Lists of evaluations, models and datasets: filtered, paged, and removed by their filters."""

import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Depends, Path, Query
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.responses import Response

from app.api.answers import answers, json_response
from app.api.cursors import Listing, Paging, listed, paging_of, place_in
from app.api.deps import Context, UseContext, parameters_of, routes
from app.api.presentation import ShownMetrics
from app.api.problems import InvalidQuery
from app.api.v1.requests.fields import ADDRESS_OF_HISTORY, SOUGHT, SOUGHT_IN_PATH, Moment, SoughtCondition, SoughtTag
from app.domain.catalogue import INPUTS, TASKS, overall_key, why_not_stored
from app.domain.errors import Fault
from app.domain.evaluation import (
    Bound,
    DatasetRef,
    EvaluationQuery,
    EvaluationSummary,
    ModelRef,
    Position,
    ValueCondition,
)
from app.domain.expressions.expressions import suggest
from app.domain.inventory import DatasetFacts, ModelFacts, Removal
from app.domain.wording import did_you_mean, shown

Filter = Annotated[str | None, Query(max_length=256, description="Only those of exactly this name."), SOUGHT]
Conditions = Annotated[
    list[SoughtCondition] | None,
    Query(
        description="Condition on a stored value, such as h_mean>=0.8: any overall metric of the catalogue, one of "
        "<, <=, > and >=, a number. All of them must hold; an undefined value satisfies none.",
        max_length=10,
    ),
]
_CONDITION = re.compile(r"([^<>]+)(<=|>=|<|>)([^<>=]+)")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Filters:
    """Filters of a list as they came; all of them must hold."""

    model: Filter = None
    model_version: Filter = None
    dataset: Filter = None
    dataset_version: Filter = None
    split: Filter = None
    tag: Annotated[list[SoughtTag] | None, Query(description="key:value; all of them must match.", max_length=20)] = (
        None
    )
    where: Conditions = None
    created_after: Annotated[Moment | None, Query(description="Only those made at this moment or later.")] = None
    created_before: Annotated[Moment | None, Query(description="Only those made before this moment.")] = None

    def query(self, **order: Any) -> EvaluationQuery:
        """Return the query for the services, with this order and page.

        Raises:
            InvalidQuery: a tag or a condition is none.
        """
        said = asdict(self)
        said["tags"] = tuple(_tag(text) for text in said.pop("tag") or ())
        said["where"] = value_conditions(self.where)
        for end in ("created_after", "created_before"):
            said[end] = in_utc(said[end])
        return EvaluationQuery(**said, **order)


UseFilters = Annotated[Filters, parameters_of(Filters)]


def stored_metric(name: str, parameter: str, *others: str) -> str:
    """The key of an overall metric whose values are stored, by a name that stands in this parameter; ``others`` may
    stand there in place of a metric.

    Raises:
        InvalidQuery: there is none of that name, or its values are not stored.
    """
    key = overall_key(name)
    if key is not None:
        return key
    reason = why_not_stored(name)
    if reason is not None:
        raise InvalidQuery.at(parameter, "not_stored", reason)
    near = [other for other in suggest(name) if overall_key(other)]
    expected = " or ".join((*others, "an overall metric of GET /v1/metrics?scope=overall"))
    detail = f"expected {expected}, got {shown(name)}{did_you_mean(near)}"
    raise InvalidQuery([Fault(parameter, "unknown_metric", detail, tuple(near))])


def value_conditions(texts: Sequence[str] | None) -> tuple[ValueCondition, ...]:
    """Conditions on stored values.

    Raises:
        InvalidQuery: one is none.
    """
    return tuple(_condition(text) for text in texts or ())


def _condition(text: str) -> ValueCondition:
    parts = _CONDITION.fullmatch(text)
    if parts is None:
        detail = f"expected a metric, one of <, <=, > and >=, and a number, such as h_mean>=0.8, got {text!r}"
        raise InvalidQuery.at("where", "invalid_condition", detail)
    name, sign, number = (part.strip() for part in parts.groups())
    if not _NUMBER.fullmatch(number) or not math.isfinite(float(number)):
        raise InvalidQuery.at("where", "invalid_condition", f"expected a number after {sign}, got {shown(number)}")
    return ValueCondition(stored_metric(name, "where"), Bound(sign), float(number))


def _tag(text: str) -> tuple[str, str]:
    key, colon, value = text.partition(":")
    if not colon or not key:
        raise InvalidQuery.at("tag", "invalid_tag", f"expected key:value, got {shown(text)}")
    return key, value


async def _asked_dataset(
    dataset: Annotated[str, Query(min_length=1, max_length=256, description="Name of the dataset."), SOUGHT],
    dataset_version: Annotated[
        str | None, Query(max_length=256, description="All versions when left out."), SOUGHT
    ] = None,
    split: Annotated[str | None, Query(max_length=256, description="All splits when left out."), SOUGHT] = None,
) -> DatasetRef:
    return DatasetRef(dataset, dataset_version, split)


AskedDataset = Annotated[DatasetRef, Depends(_asked_dataset)]


def in_utc(moment: datetime | None) -> datetime | None:
    """Return a moment, without an offset one of UTC."""
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


router = routes("evaluations")
DryRun = Annotated[bool, Query(description="true: count what would be removed, and remove nothing.")]


@router.get("/evaluations", responses=answers(Listing[EvaluationSummary], name="EvaluationPage"))
async def list_evaluations(
    context: UseContext,
    filters: UseFilters,
    paging: Annotated[Paging, paging_of(EvaluationSummary)],
    sort: Annotated[
        str, Query(description="created_at or an overall metric; a leading - sorts from high to low.", max_length=128)
    ] = "-created_at",
    metrics: ShownMetrics = None,
) -> Response:
    """List evaluations, newest first unless sorted otherwise. Undefined values come last. `fields=findings` has code,
    severity and class of what there is to say of each matrix; `fields=values` values with limits. `metrics` chooses
    among `values` where these are asked for, else the overall ones in `metrics`.
    """
    wanted = paging.members or ()
    chosen = tuple(metrics or ())
    stored = None if metrics is None or "values" in wanted else {stored_metric(name, "metrics") for name in chosen}
    found = await listed_evaluations(context, filters, sort, paging.limit, paging.cursor)
    evaluations, items = context.services.evaluations, found.items
    if "findings" in wanted:
        items = await evaluations.with_findings(context.project, items)
    if "values" in wanted:
        items = await evaluations.with_values(context.project, items, chosen)
    if stored is not None:
        items = [
            replace(item, metrics={key: value for key, value in item.metrics.items() if key in stored})
            for item in items
        ]
    return paging.answer(Listing(items, found.next_cursor))


async def listed_evaluations(
    context: Context, filters: Filters, sort: str, limit: int, cursor: str | None
) -> Listing[EvaluationSummary]:
    """A page of evaluations.

    Raises:
        InvalidQuery: a filter, the order or the cursor is none.
    """
    metric, descending = _sort(sort)
    given = {**asdict(filters), "sort": sort}
    after = place_in(cursor, given, (UUID, float | int | None), _position)
    query = filters.query(sort_metric=metric, descending=descending, limit=limit, after=after)
    return listed(await context.services.evaluations.page(context.project, query), given)


@router.delete("/evaluations", responses=answers(Removal))
async def delete_evaluations(context: UseContext, filters: UseFilters, *, dry_run: DryRun = False) -> Response:
    """Remove all evaluations that pass the filters; at least one filter is needed. Comparisons and checks that were
    made of them are saved.
    """
    if not any(asdict(filters).values()):
        detail = "expected a filter: without one everything would be removed"
        raise InvalidQuery.at("model", "no_filter", detail)
    query = filters.query()
    return json_response(await context.services.inventory.remove(context.project, query, dry_run=dry_run))


def _sort(text: str) -> tuple[str | None, bool]:
    name = text.removeprefix("-")
    descending = text.startswith("-")
    return (None if name == "created_at" else stored_metric(name, "sort", "created_at")), descending


def _position(identifier: UUID, value: float | None) -> Position:
    return Position(identifier, None if value is None else float(value))


_Task: Any = Literal[tuple(TASKS)]
_Input: Any = Literal[tuple(INPUTS)]
*_MOST, _LAST = TASKS.values()
Task = Annotated[_Task | None, Query(description=f"What is judged: {', '.join(_MOST)} or {_LAST}.")]


@dataclass(frozen=True, slots=True)
class MetricFilters:
    """Filters of the catalogue as they came; all of them must hold."""

    scope: Annotated[
        Literal["class", "overall"] | None, Query(description="Metrics of one class, or of the whole matrix.")
    ] = None
    prevalence: Annotated[
        Literal["insensitive", "sensitive", "insensitive_binary"] | None,
        Query(description="How prevalence affects the metric."),
    ] = None
    inputs: Annotated[_Input | None, Query(alias="input", description="What the metric is computed from.")] = None
    task: Task = None
    text: Annotated[
        str | None, Query(alias="q", max_length=128, description="Part of a key, a name, an alias or the sentence.")
    ] = None


UseMetricFilters = Annotated[MetricFilters, parameters_of(MetricFilters)]


class _ModelName(PathConvertor):
    """The name of a model within an address; what ends like an address of its history is that and nothing else."""

    regex = rf"(?!.*{ADDRESS_OF_HISTORY}).*"


register_url_convertor("model", _ModelName())
_DESCRIPTION = "Its name. What is not a letter or digit is percent-encoded; a slash may stay as it is."
NounName = Annotated[str, Path(min_length=1, max_length=256, description=_DESCRIPTION), SOUGHT_IN_PATH]


@router.get("/models", responses=answers(Listing[ModelRef], name="ModelPage"))
async def list_models(context: UseContext, paging: Annotated[Paging, paging_of(ModelRef)]) -> Response:
    """List the model versions that have an evaluation, by name."""
    read = partial(context.services.evaluations.models, context.project)
    return await paging.page(read, {"list": "models"}, str, str | None, place=ModelRef)


@router.get("/datasets", responses=answers(Listing[DatasetRef], name="DatasetPage"))
async def list_datasets(context: UseContext, paging: Annotated[Paging, paging_of(DatasetRef)]) -> Response:
    """List the datasets that have an evaluation, by name."""
    read = partial(context.services.evaluations.datasets, context.project)
    return await paging.page(read, {"list": "datasets"}, str, str | None, str | None, place=DatasetRef)


@router.get("/models/{name:model}", responses=answers(ModelFacts))
async def get_model(name: NounName, context: UseContext) -> Response:
    """Read what there is of a model: how many evaluations, which versions, the newest."""
    return json_response(await context.services.inventory.store.model(context.project, name))


@router.delete("/models/{name:model}", responses=answers(Removal))
async def delete_model(name: NounName, context: UseContext, *, dry_run: DryRun = False) -> Response:
    """Remove all evaluations of a model, and with them its name from the lists. Comparisons and checks that were made
    of them are saved.
    """
    return json_response(await context.services.inventory.remove_model(context.project, name, dry_run=dry_run))


@router.get("/datasets/{name:path}", responses=answers(DatasetFacts))
async def get_dataset(name: NounName, context: UseContext) -> Response:
    """Read what there is of a dataset: how many evaluations, which versions and splits, the newest."""
    return json_response(await context.services.inventory.store.dataset(context.project, name))


@router.delete("/datasets/{name:path}", responses=answers(Removal))
async def delete_dataset(name: NounName, context: UseContext, *, dry_run: DryRun = False) -> Response:
    """Remove all evaluations of a dataset, and with them its name from the lists. Comparisons and checks that were made
    of them are saved.
    """
    return json_response(await context.services.inventory.remove_dataset(context.project, name, dry_run=dry_run))
