"""Routes of evaluations, and of the models and datasets they were made for."""

from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from fastapi import Query, Request
from starlette.responses import Response

from app.api.answers import answers, json_response
from app.api.bodies.parsing import parse_body, read_body
from app.api.bodies.received import LargeBody, receive
from app.api.cursors import Cursor, Limit, Listing, Pages
from app.api.deps import UseContext, routes
from app.api.documentation import body_schema, made
from app.api.presentation import AS_USUAL, EVALUATION, AskedOfEvaluation, prefers_page, view_of, with_page, written_as
from app.api.problems import InvalidQuery
from app.api.v1.evaluating import Store, evaluate_large, evaluation_answer, keep_evaluation
from app.api.v1.figures.pages import evaluation_page
from app.api.v1.requests import evaluations as requests
from app.api.v1.requests.fields import SOUGHT, Moment, SoughtTag
from app.domain.catalogue import overall_key
from app.domain.evaluation import DatasetRef, EvaluationQuery, EvaluationSummary, ModelRef, Position
from app.domain.expressions.names import suggest
from app.services.evaluate.evaluations import (
    Evaluation,
    EvaluationHeadline,
    MatrixShown,
    Normalized,
)

router = routes()
_USES = (
    *("getEvaluation", "replaceTags", "deleteEvaluation", "getCurve", "findThreshold"),
    *("projectEvaluation", "estimatePrevalence"),
)


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
            return await evaluate_large(context, body, view, keep=store)
        new = parse_body(body, requests.EvaluationRequest).to_domain()
    if not store:
        return await evaluation_answer(view, await context.services.evaluations.compute(new))
    keeping = await keep_evaluation(context, new)
    headers = {"Location": f"/v1/evaluations/{keeping.evaluation.id}"}
    # Written while the database commits, and sent when it has.
    answer = await evaluation_answer(view, keeping.evaluation, HTTPStatus.CREATED, headers)
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
            return await evaluate_large(context, body, view, keep=False)
        new = parse_body(body, requests.EvaluationRequest).to_domain()
    if view.is_within(EvaluationHeadline):
        return view.answer(await context.services.evaluations.compute_headline(new))
    return await evaluation_answer(view, await context.services.evaluations.compute(new))


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
    responses=with_page(written_as(EVALUATION)),
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
    if prefers_page(request):
        return await evaluation_page(context, identifier)
    view = view_of(request, EVALUATION, asked)
    if view.is_within(EvaluationHeadline):
        return view.answer(await context.services.evaluations.read_headline(context.project, identifier))
    return await evaluation_answer(view, await context.services.evaluations.read(context.project, identifier))


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
    return await evaluation_answer(
        view, await context.services.evaluations.replace_tags(context.project, identifier, tags)
    )


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
