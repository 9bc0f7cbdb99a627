"""Routes of what-if questions: other prevalences, what the prevalence is where a model is used, and whether reported
scores can be.
"""

from functools import partial
from uuid import UUID

from fastapi import Request
from starlette.responses import Response

from app.api.answers import answers, json_response, written
from app.api.bodies.parsing import parse_body, read_body
from app.api.bodies.received import LargeBody, answered_apart, receive
from app.api.deps import UseContext, UseSlice, routes
from app.api.documentation import NO_SAMPLES
from app.api.jobs import deferrable
from app.api.v1.requests import questions as requests
from app.services.consistency import ConsistencyAnswer, check_report
from app.services.project import what_if
from app.services.project.prevalence_estimate import PrevalenceEstimate
from app.services.project.projection import Projection

router = routes("what-if")


@router.post("/evaluations/{identifier}/projections", responses=answers(Projection) | NO_SAMPLES)
@deferrable(requests.ProjectionRequest)
async def project_evaluation(identifier: UUID, request: Request, context: UseSlice) -> Response:
    """Compute metrics at another class prevalence: a given one, an uncertain one, a range, or a sweep of one class."""
    asked = parse_body(await read_body(request), requests.ProjectionRequest)
    answer = await context.services.what_if.project(context.project, identifier, asked.to_domain(), asked.against)
    return json_response(answer)


@router.post("/projections", responses=answers(Projection, description="Not saved."))
@deferrable(requests.InputProjectionRequest, large=True)
async def project_input(request: Request, context: UseContext) -> Response:
    """Compute metrics of an input at another class prevalence; nothing is saved."""
    return await answered_apart(request, context.services.compute, requests.InputProjectionRequest, _projection)


def _projection(asked: requests.InputProjectionRequest) -> bytes:
    return written(what_if.project_input, asked.input.to_domain("/input"), asked.to_domain())


@router.post("/evaluations/{identifier}/prevalence-estimates", responses=answers(PrevalenceEstimate))
@deferrable(requests.EstimateRequest, large=True)
async def estimate_prevalence(identifier: UUID, request: Request, context: UseContext) -> Response:
    """Estimate class prevalence where a model is used, from its predictions on samples without labels."""
    async with receive(request, parse=parse_body) as body:
        if isinstance(body, LargeBody):
            seen = await body.apart(
                context.services.compute, requests.EstimateRequest, requests.EstimateRequest.to_domain
            )
        else:
            seen = parse_body(body, requests.EstimateRequest).to_domain()
    return json_response(await context.services.what_if.estimate(context.project, identifier, seen))


@router.post("/consistency-checks", responses=answers(ConsistencyAnswer, name="ConsistencyResponse"))
@deferrable(requests.ConsistencyRequest)
async def check_consistency(request: Request, context: UseContext) -> Response:
    """Check whether any confusion matrix could have produced reported scores; nothing is saved."""
    report = parse_body(await read_body(request), requests.ConsistencyRequest).to_domain()
    return json_response(await context.services.compute.run(partial(check_report, report)))
