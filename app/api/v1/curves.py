"""Routes of what is read off the samples of an evaluation: curves, and the best decision rule."""

from typing import Annotated, Any, Literal
from uuid import UUID

import numpy as np
from fastapi import Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from app.api.answers import answers, json_response
from app.api.bodies.parsing import parse_body, read_body
from app.api.deps import UseContext, routes
from app.api.documentation import NO_SAMPLES, body_schema
from app.api.v1.requests import curves as requests
from app.domain.inputs.samples import Rule
from app.services.decide.curves import CurveName, CurvePoints, curve_of
from app.services.decide.thresholds import BestRule, Corrected, RuleValue, best_rule

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
    ] = None,
    max_points: Annotated[int, Query(ge=2, le=requests.MOST_POINTS, description="Points at most.")] = 1000,
) -> Response:
    """Read a curve of an evaluation of probabilities or scores. The area is that of the full curve."""
    source = await context.services.evaluations.samples(context.project, identifier)

    def make() -> Response:
        return json_response(curve_of(source, curve, label, max_points))

    return await context.services.compute.run(make, heavy=True)


class CorrectedValue(BaseModel):
    """The value less what the search itself contributed."""

    value: float | None
    optimism: float | None
    method: str
    resamples: int
    seed: int


class RuleObjective(BaseModel):
    """The objective under the rule, and under the one that the evaluation was made with."""

    expression: str
    better: str
    value: float | None
    default: float | None
    gain: float | None = Field(description="How much better the rule is; never negative without constraints.")
    corrected: CorrectedValue | None


class RuleConstraint(BaseModel):
    """A constraint under both rules."""

    metric: str
    value: float | None
    default: float | None


class RuleCurve(BaseModel):
    """The objective at every threshold."""

    x: list[float]
    y: list[float]
    feasible: list[bool] = Field(description="Are the constraints met there?")


class ThresholdResponse(BaseModel):
    """A decision rule."""

    evaluation: UUID
    rule: Literal["threshold", "argmax"] = Field(description="argmax: of weight times probability.")
    threshold: float | None = Field(description="Two classes: predict the positive one from here on.")
    low: float | None = Field(description="The middle 95 % of the thresholds found in resamples.")
    high: float | None
    default_threshold: float | None
    weights: dict[str, float] | None = Field(description="More classes: their geometric mean is 1.")
    objective: RuleObjective
    constraints: list[RuleConstraint]
    confusion_matrix: list[list[float]]
    default_confusion_matrix: list[list[float]]
    curve: RuleCurve | None
    note: str


@router.post(
    "/evaluations/{identifier}/thresholds",
    responses={200: {"model": ThresholdResponse}, **NO_SAMPLES},
    openapi_extra=body_schema(requests.ThresholdRequest, requests.THRESHOLDS),
    operation_id="findThreshold",
)
async def find_threshold(identifier: UUID, request: Request, context: UseContext) -> Response:
    """Find the decision rule that is best for a metric, and what of its gain is luck."""
    question = parse_body(await read_body(request), requests.ThresholdRequest).to_domain()
    source = await context.services.evaluations.samples(context.project, identifier)

    def make() -> Response:
        return json_response(_present_rule(identifier, best_rule(source, question)))

    return await context.services.compute.run(make, heavy=True)


def _present_rule(identifier: UUID, rule: BestRule) -> dict[str, Any]:
    return {
        "evaluation": str(identifier),
        "rule": rule.rule.value,
        "threshold": rule.threshold if rule.rule is Rule.THRESHOLD else None,
        "low": rule.low,
        "high": rule.high,
        "default_threshold": rule.default_threshold,
        "weights": rule.weights,
        "objective": {
            **_present_value(rule.objective, "expression"),
            "better": rule.better.value,
            "gain": _gain(rule),
            "corrected": _present_corrected(rule.corrected),
        },
        "constraints": [_present_value(limit, "metric") for limit in rule.limits],
        "confusion_matrix": np.ascontiguousarray(rule.counts),
        "default_confusion_matrix": np.ascontiguousarray(rule.default_counts),
        "curve": None
        if rule.curve is None
        else dict(zip(("x", "y", "feasible"), map(np.ascontiguousarray, rule.curve), strict=True)),
        "note": rule.note,
    }


def _present_value(value: RuleValue, name: str) -> dict[str, Any]:
    return {name: value.expression, "value": value.value, "default": value.default}


def _gain(rule: BestRule) -> float | None:
    value, default = rule.objective.value, rule.objective.default
    if value is None or default is None:
        return None
    return value - default if rule.better.value == "higher" else default - value


def _present_corrected(corrected: Corrected | None) -> dict[str, Any] | None:
    if corrected is None:
        return None
    return {
        # NaN is written as null.
        "value": corrected.value,
        "optimism": corrected.optimism,
        "method": corrected.method.value,
        "resamples": corrected.resamples,
        "seed": corrected.seed,
    }
