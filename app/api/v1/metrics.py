"""Routes of the catalogue: what the metrics are, which to use, and what weak classes do to one of them."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from app.api.answers import json_response
from app.api.bodies.parsing import parse_body, read_body
from app.api.deps import StrictRoute
from app.api.documentation import PROBLEMS, body_schema
from app.api.v1.requests import metrics as requests
from app.domain.advice.recommendations import Request as Question
from app.domain.advice.recommendations import recommend
from app.domain.catalogue import describe_metric, find_metrics, metric_by_name
from app.kernel.matrix.h_mean_bounds import critical_recall, h_mean_upper_bound, rounded_down
from app.kernel.metrics.references import REFERENCES

router = APIRouter(prefix="/v1", responses=PROBLEMS, tags=["metrics"], route_class=StrictRoute)
Text = Annotated[str | None, Query(max_length=128)]
_CRITICAL_DECIMALS = 4


class MetricCard(BaseModel):
    """Everything that is declared of a metric."""

    key: str
    name: str
    symbol: str | None
    aliases: dict[str, str | list[str]] = Field(description="`names` here, and the name in other libraries by library.")
    scope: Literal["class", "overall"]
    inputs: Literal["matrix", "probabilities"]
    tasks: list[str]
    range: dict[str, float | None]
    ideal: float | None
    orientation: str
    comparable: bool
    prevalence: Literal["insensitive", "sensitive", "insensitive_binary"]
    chance_corrected: bool
    symmetric: bool
    ordered_classes: bool
    needs_counts: bool
    parameters: list[dict[str, Any]]
    formula: str = Field(description="LaTeX.")
    sentence: str
    undefined: list[dict[str, str]]
    interpretation: list[dict[str, Any]]
    references: list[str]
    since: str
    revision: int


class MetricPage(BaseModel):
    """Metrics of the catalogue."""

    items: list[MetricCard]


@router.get("/metrics", response_class=Response, responses={200: {"model": MetricPage}}, operation_id="listMetrics")
async def list_metrics(
    scope: Annotated[
        Literal["class", "overall"] | None, Query(description="Of one class, or of the whole matrix.")
    ] = None,
    prevalence: Annotated[
        Literal["insensitive", "sensitive", "insensitive_binary"] | None,
        Query(description="What prevalence does to it."),
    ] = None,
    input: Annotated[Literal["matrix", "probabilities"] | None, Query(description="What it is computed from.")] = None,  # noqa: A002 - the contract's name
    task: Annotated[
        Literal["binary", "multiclass"] | None, Query(description="Number of classes that it makes sense for.")
    ] = None,
    q: Annotated[
        str | None, Query(max_length=128, description="Part of a key, a name, an alias or the sentence.")
    ] = None,
) -> Response:
    """List the metrics, filtered."""
    found = find_metrics(scope=scope, prevalence=prevalence, inputs=input, task=task, text=q)
    return json_response({"items": [describe_metric(metric) for metric in found]})


@router.get("/metrics/{key}", response_class=Response, responses={200: {"model": MetricCard}}, operation_id="getMetric")
async def get_metric(key: str) -> Response:
    """Describe one metric, by its key or an alias."""
    return json_response(describe_metric(metric_by_name(key)))


class RecommendationResponse(BaseModel):
    """Metrics, the most specific to what was asked first, and the way there."""

    metrics: list[dict[str, Any]]
    path: list[dict[str, Any]] = Field(description="Questions, answers, and why they lead on as they do.")
    notes: list[str]
    references: dict[str, str] = Field(description="What the sources in `metrics` and `path` are.")


@router.post(
    "/metrics/recommendations",
    response_class=Response,
    responses={200: {"model": RecommendationResponse}},
    openapi_extra=body_schema(requests.RecommendationRequest, requests.RECOMMENDATIONS),
    operation_id="recommendMetrics",
)
async def recommend_metrics(request: Request) -> Response:
    """Recommend metrics by the survey's decision tree and the advice of the other papers."""
    asked = parse_body(await read_body(request), requests.RecommendationRequest)
    advice = recommend(Question(**asked.model_dump()))
    named = [step.source for step in advice.path] + [item.source for item in advice.metrics]
    references = {source.reference: REFERENCES[source.reference] for source in named}
    return json_response(
        {"metrics": advice.metrics, "path": advice.path, "notes": advice.notes, "references": references}
    )


class BoundsResponse(BaseModel):
    """Bounds on H, and the recall that a weak class needs for a target."""

    message: str
    h_mean: float | None = None
    lower: float | None = None
    upper: float | None = None
    weakest: int | None = Field(None, description="Index of the worst recall.")
    classes: int | None = None
    weak: int | None = None
    weak_recall: float | None = None
    max_recall: float | None = None
    target: float | None = None
    critical_recall: float | None = None
    critical_recall_rounded: float | None = Field(None, description="Rounded down, so that it never claims too much.")
    target_reachable: bool | None = None


@router.post(
    "/bounds/h-mean",
    response_class=Response,
    responses={200: {"model": BoundsResponse}},
    openapi_extra=body_schema(requests.BoundsRequest, requests.BOUNDS),
    operation_id="boundHMean",
)
async def bound_h_mean(request: Request) -> Response:
    """Bound the harmonic mean of the recalls by its weak classes (Aguilar-Ruiz 2025, Proposition 1)."""
    asked = parse_body(await read_body(request), requests.BoundsRequest)
    return json_response(_from_recalls(asked.recalls, asked.target) if asked.recalls else _from_weak(asked))


def _from_recalls(recalls: list[float], target: float | None) -> dict[str, Any]:
    """The universal bounds, and what the worst class alone allows."""
    count, worst, best = len(recalls), min(recalls), max(recalls)
    h_mean = 0.0 if worst == 0 else count / sum(1 / recall for recall in recalls)
    answer: dict[str, Any] = {
        "h_mean": h_mean,
        "lower": worst,
        "upper": h_mean_upper_bound(classes=count, weak=1, weak_recall=worst, max_recall=best),
        "weakest": recalls.index(worst),
        "message": (
            f"H lies between the worst recall, {worst:g}, and what the worst class alone allows when all others are "
            f"as good as the best, {best:g}."
        ),
    }
    if target is not None:
        answer["target"] = target
        exact = critical_recall(classes=count, weak=1, max_recall=best, target=target)
        answer["critical_recall"] = exact
        answer["critical_recall_rounded"] = _rounded(exact)
    return answer


def _from_weak(asked: requests.BoundsRequest) -> dict[str, Any]:
    assert asked.classes is not None  # noqa: S101 - checked by the model
    assert asked.weak is not None  # noqa: S101 - likewise
    shape: dict[str, Any] = {"classes": asked.classes, "weak": asked.weak, "max_recall": asked.max_recall}
    answer: dict[str, Any] = dict(shape)
    classes = "one class" if asked.weak == 1 else f"{asked.weak} classes"
    said = []
    if asked.weak_recall is not None:
        upper = h_mean_upper_bound(**shape, weak_recall=asked.weak_recall)
        answer |= {"weak_recall": asked.weak_recall, "upper": upper}
        said.append(
            f"With {classes} of {asked.classes} at a recall of at most {asked.weak_recall:g}, "
            f"H is at most {upper:.6g} however good the others are."
        )
    if asked.target is not None:
        exact = critical_recall(**shape, target=asked.target)
        answer |= {"target": asked.target, "critical_recall": exact, "critical_recall_rounded": _rounded(exact)}
        if asked.weak_recall is not None:
            answer["target_reachable"] = exact is not None and asked.weak_recall >= exact
        said.append(
            f"No H above {asked.max_recall:g} can be reached: H is never above the best recall."
            if exact is None
            else f"With {classes} of {asked.classes} below a recall of {rounded_down(exact, 6):g}, "
            f"H stays below {asked.target:g} however good the others are."
        )
    answer["message"] = " ".join(said)
    return answer


def _rounded(value: float | None) -> float | None:
    return None if value is None else rounded_down(value, _CRITICAL_DECIMALS)
