"""Routes of evaluations, one by one."""

from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from fastapi import Query, Request
from starlette.responses import Response

from app.api.answers import answers, json_response
from app.api.bodies.parsing import parse_body, read_body
from app.api.bodies.received import LargeBody, receive
from app.api.deps import Context, UseContext, UseSlice, routes
from app.api.documentation import body_schema, made
from app.api.jobs import deferrable
from app.api.presentation import (
    AS_USUAL,
    EVALUATION,
    FormatOfEvaluation,
    View,
    evaluation_answer,
    prefers_page,
    view_of,
    written_as,
)
from app.api.v1.evaluations.evaluating import Store, compute_evaluation, evaluate_large, keep_evaluation
from app.api.v1.evaluations.referenced import (
    admit_reference,
    estimate_reference,
    evaluate_reference,
    merge_elsewhere,
)
from app.api.v1.figures import evaluation_page
from app.api.v1.listing import UseFilters
from app.api.v1.requests import evaluations as requests
from app.api.v1.requests.referenced import ReferencedRequest
from app.domain.data import DataEstimate
from app.services.evaluate.evaluations import Evaluation, MatrixShown, NewEvaluation, Normalized

router, of_metrics = routes("evaluations"), routes("metrics")
Estimate = Annotated[
    bool,
    Query(
        description="Say how many rows and bytes the data has that the request names, and about how many seconds its "
        "evaluation takes; nothing is evaluated."
    ),
]
_takes_inputs = deferrable(
    requests.EvaluationRequest, EVALUATION, large=True, files=True, otherwise=ReferencedRequest, admit=admit_reference
)
_USES = (
    *("getEvaluation", "changeTags", "deleteEvaluation", "getCurve", "findThreshold"),
    *("projectEvaluation", "estimatePrevalence"),
)


@router.post(
    "/evaluations",
    responses=written_as(
        EVALUATION,
        made(Evaluation, _USES, {"identifier": "$response.body#/id"})
        | answers(Evaluation | DataEstimate, description="Not saved, or an estimate."),
    ),
)
@_takes_inputs
async def create_evaluation(
    request: Request,
    context: UseContext,
    *,
    store: Store = True,
    estimate: Estimate = False,
    asked: FormatOfEvaluation = AS_USUAL,
) -> Response:
    """Evaluate an input with every metric that applies to it, and keep the evaluation."""
    return await _evaluated(request, context, view_of(request, EVALUATION, asked), estimate=estimate, keep=store)


async def _evaluated(request: Request, context: Context, view: View, *, estimate: bool, keep: bool) -> Response:
    async with receive(request, forms=True) as body:
        if estimate:
            return await estimate_reference(context, body)
        if isinstance(body, LargeBody):
            return await evaluate_large(context, body, view, keep=keep)
        if (answer := await evaluate_reference(request, context, body, view, keep=keep)) is not None:
            return answer
        new = parse_body(body, requests.EvaluationRequest).to_domain()
    if not keep:
        return await evaluation_answer(view, await compute_evaluation(context, new, view))
    return await _kept_answer(context, new, view)


@router.post(
    "/evaluations/merge",
    responses=written_as(EVALUATION, made(Evaluation, _USES, {"identifier": "$response.body#/id"})),
)
@deferrable(requests.MergeRequest, EVALUATION)
async def merge_evaluations(request: Request, context: UseContext, asked: FormatOfEvaluation = AS_USUAL) -> Response:
    """Evaluate the data of several evaluations as one, and keep it: all samples together, or each as a fold."""
    view = view_of(request, EVALUATION, asked)
    body, evaluations = await read_body(request), context.services.evaluations
    merge = await evaluations.to_merge(context.project, parse_body(body, requests.MergeRequest).to_domain())
    if merge.is_elsewhere:
        return await merge_elsewhere(request, context, body, merge, view)
    return await _kept_answer(context, await evaluations.merged(context.project, merge), view)


async def _kept_answer(context: Context, new: NewEvaluation, view: View) -> Response:
    evaluation, kept = await keep_evaluation(context, new, view)
    headers = {"Location": f"/v1/evaluations/{evaluation.id}"}
    # Written while the database commits, and sent when it has.
    answer = await evaluation_answer(view, evaluation, HTTPStatus.CREATED, headers)
    await kept
    return answer


@of_metrics.post("/metrics/compute", responses=written_as(EVALUATION, answers(Evaluation | DataEstimate)))
@_takes_inputs
async def compute_metrics(
    request: Request,
    context: UseContext,
    *,
    estimate: Estimate = False,
    asked: FormatOfEvaluation = AS_USUAL,
) -> Response:
    """Evaluate an input and save nothing."""
    return await _evaluated(request, context, view_of(request, EVALUATION, asked), estimate=estimate, keep=False)


@router.get("/evaluations/latest", responses=written_as(EVALUATION))
async def get_latest_evaluation(
    request: Request, context: UseContext, filters: UseFilters, asked: FormatOfEvaluation = AS_USUAL
) -> Response:
    """Read the newest evaluation that matches all filters, with its full report."""
    identifier = await context.services.evaluations.latest(context.project, filters.query(limit=1))
    return await get_evaluation(identifier, request, context, asked)


@router.get("/evaluations/{identifier}", responses=written_as(EVALUATION))
async def get_evaluation(
    identifier: UUID,
    request: Request,
    context: UseSlice,
    asked: FormatOfEvaluation = AS_USUAL,
) -> Response:
    """Read an evaluation with its full report."""
    if prefers_page(request):
        return await evaluation_page(context, identifier)
    view = view_of(request, EVALUATION, asked)
    return await _shown(context, identifier, view)


async def _shown(context: Context, identifier: UUID, view: View) -> Response:
    read = context.services.evaluations.read(context.project, identifier, view.chosen, brief=view.is_brief)
    return await evaluation_answer(view, await read)


@router.get("/evaluations/{identifier}/confusion-matrix", responses=answers(MatrixShown))
async def get_confusion_matrix(
    identifier: UUID,
    context: UseSlice,
    normalized: Annotated[
        Normalized, Query(description="Counts (`false`), or shares of each actual class, each predicted class or all.")
    ] = Normalized.FALSE,
) -> Response:
    """Read the confusion matrix of an evaluation alone, as it came or as shares."""
    return json_response(await context.services.evaluations.matrix(context.project, identifier, normalized))


@router.patch(
    "/evaluations/{identifier}", responses=written_as(EVALUATION), openapi_extra=body_schema(requests.TagsRequest)
)
async def change_tags(
    identifier: UUID,
    request: Request,
    context: UseContext,
    asked: FormatOfEvaluation = AS_USUAL,
) -> Response:
    """Change tags of an evaluation: `null` removes one, others stay. Nothing else of an evaluation ever changes."""
    view = view_of(request, EVALUATION, asked)
    tags = parse_body(await read_body(request), requests.TagsRequest).tags
    await context.services.evaluations.change_tags(context.project, identifier, tags)
    return await _shown(context, identifier, view)


@router.delete("/evaluations/{identifier}")
async def delete_evaluation(identifier: UUID, context: UseContext) -> None:
    """Remove an evaluation for good."""
    await context.services.evaluations.delete(context.project, identifier)
