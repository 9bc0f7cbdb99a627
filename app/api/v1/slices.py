"""Routes of the slices of a run."""

from functools import partial
from uuid import UUID

from fastapi import Request
from starlette.responses import Response

from app.api.bodies.parsing import parse_body, read_body
from app.api.bodies.received import answered_apart
from app.api.deps import UseContext, routes
from app.api.documentation import NO_SAMPLES, body_schema
from app.api.jobs import LATER, deferrable
from app.api.presentation import AS_USUAL, SLICES, FormatOfSlices, View, view_of, written_as
from app.api.v1.requests import slices as requests
from app.domain.inputs.matrices import MatrixInput
from app.services.slices.slices import SlicesQuestion, judge_slices

router = routes("what-if")


@router.post(
    "/evaluations/{identifier}/slices",
    responses=written_as(SLICES) | NO_SAMPLES | LATER,
    openapi_extra=body_schema(requests.SlicesRequest, requests.SLICES),
    operation_id="sliceEvaluation",
)
@deferrable(requests.SlicesRequest, SLICES)
async def slice_evaluation(
    identifier: UUID, request: Request, context: UseContext, asked: FormatOfSlices = AS_USUAL
) -> Response:
    """Judge an evaluation slice by slice: whom it is worse for, and whether that is the model or the prevalence."""
    view = view_of(request, SLICES, asked)
    question = parse_body(await read_body(request), requests.SlicesRequest).to_question()
    source = await context.services.evaluations.sliceable(context.project, identifier)
    return view.response(await context.services.compute.run(partial(_written, view, source, question, identifier)))


@router.post(
    "/slices",
    responses=written_as(SLICES) | LATER,
    openapi_extra=body_schema(requests.InputSlicesRequest, requests.INPUT_SLICES),
    operation_id="sliceInput",
)
@deferrable(requests.InputSlicesRequest, SLICES, large=True)
async def slice_an_input(request: Request, context: UseContext, asked: FormatOfSlices = AS_USUAL) -> Response:
    """Judge an input slice by slice; nothing is kept."""
    view = view_of(request, SLICES, asked)
    found = await answered_apart(
        request, context.services.compute, requests.InputSlicesRequest, partial(_of_input, view)
    )
    return view.response(bytes(found.body))


def _of_input(view: View, asked: requests.InputSlicesRequest) -> bytes:
    return _written(view, asked.input.to_domain("/input"), asked.to_question(), None)


def _written(view: View, source: MatrixInput, asked: SlicesQuestion, identifier: UUID | None) -> bytes:
    return view.write(judge_slices(source, asked, identifier))
