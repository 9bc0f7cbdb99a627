"""Routes of what is read off the samples of an evaluation: curves, and the best decision rule."""

from functools import partial
from typing import Annotated
from uuid import UUID

from fastapi import Query, Request
from starlette.responses import Response

from app.api.answers import answers, written
from app.api.bodies.parsing import parse_body, read_body
from app.api.deps import UseContext, routes
from app.api.documentation import NO_SAMPLES, body_schema
from app.api.v1.requests import curves as requests
from app.api.v1.requests.fields import SOUGHT
from app.services.decide.answers import DecisionRule
from app.services.decide.curves import CalibrationForm, CurveName, CurvePoints, curve_of
from app.services.decide.thresholds import best_rule

router = routes("evaluations")


@router.get(
    "/evaluations/{identifier}/curves/{curve}",
    responses=answers(CurvePoints) | NO_SAMPLES,
    operation_id="getCurve",
)
async def get_curve(
    identifier: UUID,
    curve: CurveName,
    context: UseContext,
    label: Annotated[
        str | None,
        Query(
            alias="class",
            max_length=256,
            description="The class; when left out all together where that makes sense, else the positive class.",
        ),
        SOUGHT,
    ] = None,
    max_points: Annotated[int, Query(ge=2, le=requests.MOST_POINTS, description="Points at most.")] = 1000,
    prevalence: Annotated[
        float | None,
        Query(
            gt=0, lt=1, description="Decision curves: share of the class where it is decided; as observed by default."
        ),
    ] = None,
    form: Annotated[
        CalibrationForm | None,
        Query(description="Calibration curves: in `bins` of equal width, or `isotonic`, without bins."),
    ] = None,
    bins: Annotated[
        int | None, Query(ge=1, le=1000, description="Calibration curves: how many bins, 15 by default.")
    ] = None,
) -> Response:
    """Read a curve of an evaluation of probabilities or scores. The area is that of the full curve."""
    given = {"prevalence": prevalence, "form": form, "bins": bins}
    question = requests.curve_question(
        curve, label, max_points, {name: one for name, one in given.items() if one is not None}
    )
    source = await context.services.evaluations.samples(context.project, identifier)
    return Response(
        await context.services.compute.run(partial(written, curve_of, source, question)),
        media_type="application/json",
    )


@router.post(
    "/evaluations/{identifier}/thresholds",
    responses=answers(DecisionRule) | NO_SAMPLES,
    openapi_extra=body_schema(requests.ThresholdRequest, requests.THRESHOLDS),
    operation_id="findThreshold",
)
async def find_threshold(identifier: UUID, request: Request, context: UseContext) -> Response:
    """Find the decision rule that is best for a metric, and what of its gain is luck."""
    question = parse_body(await read_body(request), requests.ThresholdRequest).to_domain()
    source = await context.services.evaluations.samples(context.project, identifier)
    return Response(
        await context.services.compute.run(partial(written, best_rule, identifier, source, question)),
        media_type="application/json",
    )
