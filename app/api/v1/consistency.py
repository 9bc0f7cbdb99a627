"""The route that checks reported scores."""

from typing import Any

from fastapi import Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from app.api.answers import json_response
from app.api.bodies.parsing import parse_body, read_body
from app.api.deps import UseContext, routes
from app.api.documentation import body_schema
from app.api.v1.requests import consistency as requests
from app.services.consistency.consistency import check_report

router = routes("what-if")


class ConsistencyResponse(BaseModel):
    """Whether the scores are possible together. Inconsistent scores are a question to their authors, not a verdict."""

    consistent: bool | None = Field(description="null: could not be decided.")
    feasible_count: int | None = Field(description="How many matrices fit; null where they are not counted.")
    examples: list[dict[str, Any]]
    implied: dict[str, dict[str, float]] = Field(description="Ranges of other scores over the matrices that fit.")
    alternatives: list[dict[str, Any]] = Field(description="Other readings of the report that some matrix fits.")
    assumptions: list[str]
    metrics: dict[str, dict[str, float | None]] | None = None
    sizes: dict[str, Any] | None = Field(
        None, description="With unknown sizes: what was searched, how many fit, and which, as ranges or the smallest."
    )


@router.post(
    "/consistency-checks",
    responses={200: {"model": ConsistencyResponse}},
    openapi_extra=body_schema(requests.ConsistencyRequest, requests.CONSISTENCY),
    operation_id="checkConsistency",
)
async def check_consistency(request: Request, context: UseContext) -> Response:
    """Check whether any confusion matrix could have produced reported scores; nothing is kept."""
    report = parse_body(await read_body(request), requests.ConsistencyRequest).to_domain()
    return json_response(await context.services.compute.run(lambda: check_report(report), heavy=True))
