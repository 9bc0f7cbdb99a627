"""Routes of what is read off the samples of an evaluation: curves, and the best decision rule."""

from functools import partial
from typing import Annotated
from uuid import UUID

from fastapi import Query, Request
from starlette.responses import Response

from app.api.answers import answers, written
from app.api.bodies.parsing import parse_body, read_body
from app.api.bodies.received import answered_apart
from app.api.deps import UseContext, UseSlice, routes
from app.api.documentation import NO_SAMPLES
from app.api.jobs import deferrable
from app.api.problems import InvalidQuery
from app.api.v1.requests import questions as requests
from app.api.v1.requests.fields import SOUGHT
from app.domain.errors import UnknownClass
from app.services.decide.curves import CurveName, CurvePoints, RunCurves, curve_of, curves_of
from app.services.decide.thresholds import DecisionRule, LabelRules, rules_of

router = routes("evaluations")


@router.get("/evaluations/{identifier}/curves/{curve}", responses=answers(RunCurves) | NO_SAMPLES)
async def get_curve(
    identifier: UUID,
    curve: CurveName,
    context: UseSlice,
    asked: requests.AskedCurve,
    label: Annotated[
        str | None,
        Query(alias="class", max_length=256, description=requests.CURVE_OF),
        SOUGHT,
    ] = None,
    others: requests.AskedOthers = None,
) -> Response:
    """Read a curve of an evaluation of probabilities or scores. The area is that of the full curve."""
    question = asked.to_domain(name=curve, label=label)
    if faults := question.faults():
        raise InvalidQuery(faults)
    evaluations = context.services.evaluations
    source = await evaluations.with_curves(context.project, identifier)
    named = requests.identifiers_in(others)
    along = [(other, await evaluations.with_curves(context.project, other)) for other in named]
    return Response(
        await context.services.compute.run(partial(written, curves_of, source, along, question)),
        media_type="application/json",
    )


@router.post("/evaluations/{identifier}/thresholds", responses=answers(DecisionRule | LabelRules) | NO_SAMPLES)
@deferrable(requests.ThresholdRequest)
async def find_threshold(identifier: UUID, request: Request, context: UseSlice) -> Response:
    """Find the decision rule that is best for a metric, and how much of its gain is due to chance."""
    question = parse_body(await read_body(request), requests.ThresholdRequest).to_domain()
    source = await context.services.evaluations.samples(context.project, identifier)
    return Response(
        await context.services.compute.run(partial(written, rules_of, identifier, source, question)),
        media_type="application/json",
    )


@router.post("/curves/{curve}", responses=answers(CurvePoints, description="Not saved."))
@deferrable(requests.CurveRequest, large=True)
async def compute_curve(curve: CurveName, request: Request, context: UseContext) -> Response:
    """Read a curve of an input; nothing is saved."""
    return await answered_apart(request, context.services.compute, requests.CurveRequest, partial(_curve, curve))


def _curve(name: CurveName, asked: requests.CurveRequest) -> bytes:
    try:
        return written(curve_of, *asked.question(name))
    except UnknownClass as error:
        # Here it is a field of the body.
        error.pointer = "/class"
        raise


@router.post("/thresholds", responses=answers(DecisionRule | LabelRules, description="Not saved."))
@deferrable(requests.InputThresholdRequest, large=True)
async def find_threshold_of_input(request: Request, context: UseContext) -> Response:
    """Find the decision rule that is best for a metric, for an input that is not saved."""
    return await answered_apart(request, context.services.compute, requests.InputThresholdRequest, _rule)


def _rule(asked: requests.InputThresholdRequest) -> bytes:
    return written(rules_of, None, requests.scored_input(asked.input), asked.to_domain())
