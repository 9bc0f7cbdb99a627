"""Routes of evaluations, and of the models and datasets they were made for."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, BinaryIO
from uuid import UUID

import orjson
from fastapi import Query, Request
from starlette.responses import Response

from app.api.answers import answers, json_response, write_json
from app.api.bodies.columns import byte_size
from app.api.bodies.parsing import parse_body, parse_value, read_body
from app.api.bodies.received import HEAVY_BYTES, LargeBody, receive
from app.api.cursors import Cursor, Items, Limit, Listing, Pages
from app.api.deps import Context, UseContext, routes
from app.api.documentation import body_schema, made
from app.api.presentation import AS_USUAL, EVALUATION, AskedOfEvaluation, View, view_of, written_as
from app.api.problems import InvalidQuery, Problem, ProblemValue, internal_error, problem_of, request_id
from app.api.v1.requests import evaluations as requests
from app.api.v1.requests.fields import SOUGHT, Moment, SoughtTag
from app.domain.catalogue import overall_key
from app.domain.errors import Fault, InvalidInput
from app.domain.evaluation import DatasetRef, EvaluationQuery, EvaluationRecord, EvaluationSummary, ModelRef, Position
from app.domain.expressions.names import suggest
from app.domain.members import LEFT_OUT, typed
from app.services.evaluate.evaluations import (
    Evaluation,
    MatrixShown,
    NewEvaluation,
    Normalized,
    PendingWrite,
    evaluate_alone,
)

router = routes()
# As many as one pass over the metrics takes: `services.evaluate.batching`.
_BATCH_AT_ONCE = 32
_USES = (
    *("getEvaluation", "replaceTags", "deleteEvaluation", "getCurve", "findThreshold"),
    *("projectEvaluation", "estimatePrevalence"),
)


@dataclass(frozen=True, slots=True)
class BatchItem:
    """What became of one evaluation of a batch."""

    status: int
    evaluation: orjson.Fragment | None = field(default=None, metadata=LEFT_OUT | typed(Evaluation))
    problem: ProblemValue | None = field(default=None, metadata=LEFT_OUT)


Store = Annotated[bool, Query(description="false: compute, answer 200 and keep nothing.")]
Filter = Annotated[str | None, Query(max_length=256, description="Only those of exactly this name."), SOUGHT]


@router.post(
    "/evaluations",
    status_code=HTTPStatus.CREATED,
    responses=written_as(
        EVALUATION,
        made(Evaluation, _USES, {"identifier": "$response.body#/id"}) | answers(Evaluation, description="Not kept."),
    ),
    openapi_extra=body_schema(requests.EvaluationRequest, requests.EVALUATIONS, with_file=True),
    operation_id="createEvaluation",
    tags=["evaluations"],
)
async def create_evaluation(
    request: Request,
    context: UseContext,
    *,
    store: Store = True,
    asked: AskedOfEvaluation = AS_USUAL,
) -> Response:
    """Evaluate an input with every metric that applies to it, and keep the evaluation."""
    view = view_of(request, EVALUATION, asked)
    async with receive(request, forms=True) as body:
        if isinstance(body, LargeBody):
            return await _evaluate_large(context, body, view, keep=store)
        new = parse_body(body, requests.EvaluationRequest).to_domain()
    if not store:
        return await _answer(view, await context.services.evaluations.compute(new))
    keeping = await _keep(context, new)
    headers = {"Location": f"/v1/evaluations/{keeping.evaluation.id}"}
    # Written while the database commits, and sent when it has.
    answer = await _answer(view, keeping.evaluation, HTTPStatus.CREATED, headers)
    await keeping.done()
    return answer


@router.post(
    "/metrics/compute",
    responses=written_as(EVALUATION),
    openapi_extra=body_schema(requests.EvaluationRequest, requests.COMPUTATIONS, with_file=True),
    operation_id="computeMetrics",
    tags=["metrics"],
)
async def compute_metrics(
    request: Request,
    context: UseContext,
    asked: AskedOfEvaluation = AS_USUAL,
) -> Response:
    """Evaluate an input and keep nothing."""
    view = view_of(request, EVALUATION, asked)
    async with receive(request, forms=True) as body:
        if isinstance(body, LargeBody):
            return await _evaluate_large(context, body, view, keep=False)
        new = parse_body(body, requests.EvaluationRequest).to_domain()
    return await _answer(view, await context.services.evaluations.compute(new))


@router.post(
    "/evaluations/batch",
    status_code=HTTPStatus.MULTI_STATUS,
    responses=answers(Items[BatchItem], status=207, name="BatchResponse"),
    openapi_extra=body_schema(requests.BatchRequest, requests.BATCHES),
    operation_id="createEvaluations",
    tags=["evaluations"],
)
async def create_batch(
    request: Request,
    context: UseContext,
    *,
    store: Store = True,
) -> Response:
    """Evaluate and keep many inputs; each succeeds or fails on its own, in order."""
    async with receive(request) as body:
        if isinstance(body, LargeBody):
            values = await context.services.compute.run(partial(_read_batch, body.read), body.file)
        else:
            values = [(value, False) for value in parse_body(body, requests.BatchRequest).evaluations]
    places = asyncio.Semaphore(_BATCH_AT_ONCE)

    async def one(index: int, value: Any, *, heavy: bool) -> BatchItem:
        async with places:
            return await _batch_item(request, context, index, value, store=store, heavy=heavy)

    items = await asyncio.gather(*(one(index, value, heavy=heavy) for index, (value, heavy) in enumerate(values)))
    return json_response(Items(items), HTTPStatus.MULTI_STATUS)


def _read_batch(read: Callable[..., requests.BatchRequest], file: BinaryIO) -> list[tuple[Any, bool]]:
    """The items of a batch, none of them checked yet, and whether each is so large that it takes a process."""
    return [(value, byte_size(value) > HEAVY_BYTES) for value in read(file, requests.BatchRequest).evaluations]


async def _batch_item(
    request: Request, context: Context, index: int, value: Any, *, store: bool, heavy: bool
) -> BatchItem:
    try:
        # Others get their turn between two items.
        await asyncio.sleep(0)
        if heavy:
            written, record = await context.services.compute.run_in_turn(
                partial(_evaluate_value, value, _identifier(context, keep=store))
            )
            if record is not None:
                await context.services.evaluations.keep(context.project, record)
        else:
            written = await _evaluate_light(context, value, keep=store)
    except Exception as error:  # noqa: BLE001 - it belongs to this item, and those before it are kept already
        return _failed(
            problem_of(error, prefix=f"/evaluations/{index}") or internal_error(error, request_id(request)), request
        )
    # As JSON, which takes a tenth of the memory that the values take as objects.
    return BatchItem(HTTPStatus.CREATED if store else HTTPStatus.OK, evaluation=orjson.Fragment(written))


async def _evaluate_light(context: Context, value: Any, *, keep: bool) -> bytes:
    new = parse_value(value, requests.EvaluationRequest).to_domain()
    if not keep:
        return write_json(await context.services.evaluations.compute(new))
    keeping = await _keep(context, new)
    await keeping.done()
    return write_json(keeping.evaluation)


def _evaluate_value(value: Any, identifier: UUID | None) -> tuple[bytes, EvaluationRecord | None]:
    return _evaluated(parse_value(value, requests.EvaluationRequest).to_domain(), identifier, View(EVALUATION))


def _failed(problem: Problem, request: Request) -> BatchItem:
    return BatchItem(problem.status, problem=problem.of_request(request_id(request)))


async def _evaluate_large(context: Context, body: LargeBody, view: View, *, keep: bool) -> Response:
    """Read, compute and write in a process of its own. What it keeps is stored here, once all of that has gone well."""
    written, record = await context.services.compute.run(
        partial(_evaluate_file, body.read, view, _identifier(context, keep=keep)), body.file
    )
    if record is None:
        return view.response(written)
    await context.services.evaluations.keep(context.project, record)
    headers = {"Location": f"/v1/evaluations/{record.id}"}
    return view.response(written, HTTPStatus.CREATED, headers)


def _evaluate_file(
    read: Callable[..., requests.EvaluationRequest], view: View, identifier: UUID | None, file: BinaryIO
) -> tuple[bytes, EvaluationRecord | None]:
    return _evaluated(read(file, requests.EvaluationRequest).to_domain(), identifier, view)


def _identifier(context: Context, *, keep: bool) -> UUID | None:
    return context.services.evaluations.new_identifier() if keep else None


def _evaluated(new: NewEvaluation, identifier: UUID | None, view: View) -> tuple[bytes, EvaluationRecord | None]:
    """The answer, and the record if there is an id to keep it under."""
    if identifier is not None:
        _require_names(new)
    evaluation, record = evaluate_alone(new, identifier)
    return view.write(evaluation), record


async def _keep(context: Context, new: NewEvaluation) -> PendingWrite:
    model, dataset = _require_names(new)
    return await context.services.evaluations.create(context.project, new, model=model, dataset=dataset)


def _require_names(new: NewEvaluation) -> tuple[ModelRef, DatasetRef]:
    if new.model is None or new.dataset is None:
        absent = [name for name, value in (("model", new.model), ("dataset", new.dataset)) if value is None]
        raise InvalidInput(
            [
                Fault(
                    f"/{name}",
                    "missing",
                    f"expected a {name} with a name, which a kept evaluation needs; store=false goes without",
                )
                for name in absent
            ]
        )
    return new.model, new.dataset


async def _answer(
    view: View, evaluation: Evaluation, status: int = HTTPStatus.OK, headers: dict[str, str] | None = None
) -> Response:
    if _is_long(evaluation):
        return await asyncio.to_thread(view.answer, evaluation, status, headers)
    return view.answer(evaluation, status, headers)


def _is_long(evaluation: Evaluation) -> bool:
    """Has its answer so many classes that writing it takes a thread?"""
    return len(evaluation.report.input.labels) ** 2 > HEAVY_BYTES // 64


@router.get(
    "/evaluations",
    responses=answers(Listing[EvaluationSummary], name="EvaluationPage"),
    operation_id="listEvaluations",
    tags=["evaluations"],
)
async def list_evaluations(
    context: UseContext,
    model: Filter = None,
    model_version: Filter = None,
    dataset: Filter = None,
    dataset_version: Filter = None,
    split: Filter = None,
    tag: Annotated[
        list[SoughtTag] | None, Query(description="key:value; all of them must match.", max_length=20)
    ] = None,
    created_after: Annotated[Moment | None, Query(description="From this moment on.")] = None,
    created_before: Annotated[Moment | None, Query(description="Before this moment.")] = None,
    sort: Annotated[
        str, Query(description="created_at or an overall metric; a leading - sorts from high to low.", max_length=128)
    ] = "-created_at",
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """List evaluations, newest first unless sorted otherwise. Undefined values come last."""
    metric, descending = _sort(sort)
    filters = {
        "model": model,
        "model_version": model_version,
        "dataset": dataset,
        "dataset_version": dataset_version,
        "split": split,
        "tags": tag,
        "after": created_after,
        "before": created_before,
        "sort": sort,
    }
    pages = Pages(filters, (UUID, float | int | None), _position)
    query = EvaluationQuery(
        model=model,
        model_version=model_version,
        dataset=dataset,
        dataset_version=dataset_version,
        split=split,
        tags=tuple(_tag(text) for text in tag or ()),
        created_after=_utc(created_after),
        created_before=_utc(created_before),
        sort_metric=metric,
        descending=descending,
        limit=limit,
        after=pages.after(cursor),
    )
    return json_response(pages.listed(await context.services.evaluations.page(context.project, query)))


def _sort(text: str) -> tuple[str | None, bool]:
    name = text.removeprefix("-")
    if name == "created_at":
        return None, text.startswith("-")
    key = overall_key(name)
    if key is None:
        near = [other for other in suggest(name) if overall_key(other)]
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        detail = f"expected created_at or an overall metric of GET /v1/metrics?scope=overall, got {name!r}{hint}"
        raise InvalidQuery.at("sort", "unknown_metric", detail)
    return key, text.startswith("-")


def _tag(text: str) -> tuple[str, str]:
    key, colon, value = text.partition(":")
    if not colon or not key:
        raise InvalidQuery.at("tag", "invalid_tag", f"expected key:value, got {text!r}")
    return key, value


def _utc(moment: datetime | None) -> datetime | None:
    """Times without an offset are taken as UTC."""
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


def _position(identifier: UUID, value: float | None) -> Position:
    return Position(identifier, None if value is None else float(value))


@router.get(
    "/evaluations/{identifier}",
    responses=written_as(EVALUATION),
    operation_id="getEvaluation",
    tags=["evaluations"],
)
async def get_evaluation(
    identifier: UUID,
    request: Request,
    context: UseContext,
    asked: AskedOfEvaluation = AS_USUAL,
) -> Response:
    """Read an evaluation with its full report."""
    view = view_of(request, EVALUATION, asked)
    return await _answer(view, await context.services.evaluations.read(context.project, identifier))


@router.get(
    "/evaluations/{identifier}/confusion-matrix",
    responses=answers(MatrixShown),
    operation_id="getConfusionMatrix",
    tags=["evaluations"],
)
async def get_confusion_matrix(
    identifier: UUID,
    context: UseContext,
    normalized: Annotated[
        Normalized, Query(description="Shares of each actual class, of each predicted one, of all samples, or none.")
    ] = Normalized.FALSE,
) -> Response:
    """Read the confusion matrix of an evaluation alone, as it came or as shares."""
    return json_response(await context.services.evaluations.matrix(context.project, identifier, normalized))


@router.patch(
    "/evaluations/{identifier}",
    responses=written_as(EVALUATION),
    openapi_extra=body_schema(requests.TagsRequest, requests.TAGS),
    operation_id="replaceTags",
    tags=["evaluations"],
)
async def patch_evaluation(
    identifier: UUID,
    request: Request,
    context: UseContext,
    asked: AskedOfEvaluation = AS_USUAL,
) -> Response:
    """Put tags in the place of all tags; nothing else of an evaluation ever changes."""
    view = view_of(request, EVALUATION, asked)
    tags = parse_body(await read_body(request), requests.TagsRequest).tags
    return await _answer(view, await context.services.evaluations.replace_tags(context.project, identifier, tags))


@router.delete(
    "/evaluations/{identifier}",
    status_code=HTTPStatus.NO_CONTENT,
    operation_id="deleteEvaluation",
    tags=["evaluations"],
)
async def delete_evaluation(identifier: UUID, context: UseContext) -> Response:
    """Remove an evaluation for good."""
    await context.services.evaluations.delete(context.project, identifier)
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.get(
    "/models",
    responses=answers(Listing[ModelRef], name="ModelPage"),
    operation_id="listModels",
    tags=["evaluations"],
)
async def list_models(context: UseContext, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """List the model versions that have an evaluation, by name."""
    pages = Pages({"list": "models"}, (str, str | None), ModelRef)
    return json_response(
        pages.listed(await context.services.evaluations.models(context.project, limit, pages.after(cursor)))
    )


@router.get(
    "/datasets",
    responses=answers(Listing[DatasetRef], name="DatasetPage"),
    operation_id="listDatasets",
    tags=["evaluations"],
)
async def list_datasets(context: UseContext, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """List the datasets that have an evaluation, by name."""
    pages = Pages({"list": "datasets"}, (str, str | None, str | None), DatasetRef)
    return json_response(
        pages.listed(await context.services.evaluations.datasets(context.project, limit, pages.after(cursor)))
    )
