"""The route that checks reported scores."""

from functools import partial

from fastapi import Request
from starlette.responses import Response

from app.api.answers import answers, json_response
from app.api.bodies.parsing import parse_body, read_body
from app.api.deps import UseContext, routes
from app.api.documentation import body_schema
from app.api.jobs import LATER, deferrable
from app.api.v1.requests import questions as requests
from app.services.consistency import ConsistencyAnswer, check_report

router = routes("what-if")


@router.post(
    "/consistency-checks",
    responses=answers(ConsistencyAnswer, name="ConsistencyResponse") | LATER,
    openapi_extra=body_schema(requests.ConsistencyRequest),
    operation_id="checkConsistency",
)
@deferrable(requests.ConsistencyRequest)
async def check_consistency(request: Request, context: UseContext) -> Response:
    """Check whether any confusion matrix could have produced reported scores; nothing is saved."""
    report = parse_body(await read_body(request), requests.ConsistencyRequest).to_domain()
    return json_response(await context.services.compute.run(partial(check_report, report)))
