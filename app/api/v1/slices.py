"""Routes of the slices of a run. Samples that lie elsewhere are read by a job."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Final
from uuid import UUID

import orjson
from fastapi import Query, Request
from starlette.responses import Response

from app.api.bodies.parsing import Body, parse_body, read_body
from app.api.bodies.received import LargeBody, computed_apart, receive
from app.api.bodies.referenced import Asked
from app.api.deps import CARRIED_OUT_BY, Context, UseContext, routes
from app.api.documentation import NO_SAMPLES, NOT_INSTALLED
from app.api.jobs import deferrable, put_aside
from app.api.plots.registry import FigureData, Subject, as_answered
from app.api.presentation import AS_USUAL, SLICES, FormatOfSlices, View, view_of, written_as
from app.api.v1.evaluations.referenced import new_evaluation
from app.api.v1.figures import FIGURE, Drawing, drawing_of
from app.api.v1.requests import slices as requests
from app.api.v1.requests.fields import Expression, Name
from app.api.v1.requests.referenced import asked_of, names_data
from app.api.v1.reread import DataAgain, admit, asked_again, reading_again
from app.domain.errors import BeyondMemory, TooLarge
from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.matrices import MatrixInput
from app.services.slices.slices import SlicesQuestion, judge_slices

router = routes("what-if")
_BEYOND: Final = (
    "expected predictions that were not merged, or no more rows than memory holds (PREVAIL_DATA_MEMORY_BYTES): slices "
    "of others are made of samples at hand"
)


@router.post("/evaluations/{identifier}/slices", responses=written_as(SLICES) | NO_SAMPLES)
@deferrable(requests.SlicesRequest, SLICES)
async def slice_evaluation(
    identifier: UUID, request: Request, context: UseContext, asked: FormatOfSlices = AS_USUAL
) -> Response:
    """Judge an evaluation slice by slice: whom it is worse for, and whether that is the model or the prevalence."""
    body = await read_body(request)
    view, question = view_of(request, SLICES, asked), parse_body(body, requests.SlicesRequest).to_domain()
    judged = partial(_judged, question, view, identifier)
    record = await context.services.evaluations.sliced_elsewhere(context.project, identifier)
    if record is not None:
        again = asked_again(record.elsewhere[0], context.services.data.memory_bytes, sliced=True)
        return await _elsewhere(request, context, body, again, view, judged, record if record.parts else None)
    source = await context.services.evaluations.sliceable(context.project, identifier)
    return view.response(await context.services.compute.run(partial(judged, source)))


@router.get("/evaluations/{identifier}/slices/plots/{name}.{form}", responses=FIGURE | NO_SAMPLES | NOT_INSTALLED)
async def get_slices_plot(
    identifier: UUID,
    context: UseContext,
    drawing: Annotated[Drawing, drawing_of(Subject.SLICES)],
    by: Annotated[list[Name], Query(min_length=1, max_length=50, description="Attributes.")],
    metric: Annotated[list[Expression] | None, Query(max_length=20, description="Metrics.")] = None,
) -> Response:
    """Read a figure of the slices of each attribute and of each two."""
    source = await context.services.evaluations.sliceable(context.project, identifier)
    asked = SlicesQuestion(by=tuple(by), depth=min(2, len({*by})), metrics=tuple(metric or ()))
    answer = as_answered(await context.services.compute.run(partial(judge_slices, source, asked, identifier)))
    return await drawing.answer(context, FigureData(answer=answer))


async def admit_slices(context: Context, body: Body) -> Asked | None:
    """Return the data that a request names, and refuse at once what can be; None if it names nothing.

    Raises:
        MalformedRequest, InvalidInput: it is of another form, or the data does not fit and lies on this machine.
        DataNotAllowed: the data does not lie where the operator allows it.
    """
    if not names_data(body):
        return None
    asked = _named(context, body, parse_body(body, requests.ReferencedSlicesRequest))
    await admit(context, asked)
    return asked


@router.post("/slices", responses=written_as(SLICES))
@deferrable(
    requests.InputSlicesRequest, SLICES, large=True, otherwise=requests.ReferencedSlicesRequest, admit=admit_slices
)
async def slice_input(request: Request, context: UseContext, asked: FormatOfSlices = AS_USUAL) -> Response:
    """Judge an input slice by slice; nothing is saved."""
    view = view_of(request, SLICES, asked)
    async with receive(request) as body:
        if not isinstance(body, LargeBody) and names_data(body):
            form = parse_body(body, requests.ReferencedSlicesRequest)
            judged = partial(_judged, form.to_domain(), view, None)
            return await _elsewhere(request, context, body, _named(context, body, form), view, judged)
        answer = partial(_of_input, view)
        content = await computed_apart(body, context.services.compute, requests.InputSlicesRequest, answer)
    return view.response(content)


def _of_input(view: View, asked: requests.InputSlicesRequest) -> bytes:
    return _judged(asked.to_domain(), view, None, asked.input.to_domain("/input"))


def _judged(question: SlicesQuestion, view: View, identifier: UUID | None, source: MatrixInput) -> bytes:
    return view.write(judge_slices(source, question, identifier))


# --- samples that lie elsewhere --------------------------------------------------------------------------------------


def _named(context: Context, body: Body, form: requests.ReferencedSlicesRequest) -> Asked:
    request = {"input": orjson.loads(body)["input"]}
    return asked_of(form.input, context.services.data.memory_bytes, request, sliced=True)


async def _elsewhere(
    http: Request,
    context: Context,
    body: Body,
    asked: Asked,
    view: View,
    judged: Callable[[MatrixInput], bytes],
    merged: EvaluationRecord | None = None,
) -> Response:
    """202, or the answer when a job carries the request out.

    ``merged`` is an evaluation whose parts all have such columns, and are in memory together.
    """
    if CARRIED_OUT_BY not in http.scope["state"]:
        await admit(context, asked)
        return await put_aside(http, context, body)
    data = context.services.data
    with reading_again(data) as reading:
        return view.response(await data.compute.run(partial(_judged_elsewhere, reading, asked, merged, judged)))


def _judged_elsewhere(
    reading: DataAgain, asked: Asked, merged: EvaluationRecord | None, write: Callable[[MatrixInput], bytes]
) -> bytes:
    try:
        if merged is not None:
            return write(reading.whole(merged, asked.memory_bytes, sliced=True))
        return write(new_evaluation(reading, reading.at_hand(asked)).source)
    except BeyondMemory as error:
        raise TooLarge(_BEYOND, pointer=error.pointer) from None
