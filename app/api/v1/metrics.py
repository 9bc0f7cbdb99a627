"""Routes of the catalogue: what the metrics are, which to use, and what weak classes do to one of them."""

from dataclasses import asdict
from functools import cache
from typing import Annotated, Final
from uuid import UUID

import orjson
from fastapi import Request
from starlette.responses import Response

from app.api.answers import answers, json_response, member_names, write_json
from app.api.bodies.parsing import parse_body, read_body
from app.api.deps import UseContext, routes
from app.api.documentation import body_schema
from app.api.presentation import chosen_members, fields_of, kept_members
from app.api.v1.listing import Task, UseMetricFilters
from app.api.v1.requests import metrics as requests
from app.domain.advice import Recommendation, recommend
from app.domain.catalogue import MetricCard, MetricPage, combinations, describe_metric, find_metrics, metric_by_name
from app.services.decide.h_mean_bounds import (
    BoundsOfRecalls,
    BoundsOfWeakClasses,
    Isocurves,
    bounds_of_recalls,
    bounds_of_stored,
    bounds_of_weak_classes,
    isocurves,
)
from app.services.evaluate.evaluations import Normalized

router = routes("metrics")
_MEMBERS: Final = member_names(MetricCard)
# Of a card, what tells which metric it is: all cards whole are 400 KB.
_SHORT: Final = ("key", "name", "scope", "tasks", "prevalence", "orientation", "on_request", "sentence")


@cache
def _written(name: str, task: str | None, members: tuple[str, ...] | None = None) -> orjson.Fragment:
    """A card as JSON, or some members of it. None ever changes, and writing all of them takes four milliseconds."""
    card = describe_metric(metric_by_name(name, task))
    return orjson.Fragment(write_json(card if members is None else kept_members(card, members)))


@router.get("/metrics", responses=answers(MetricPage))
async def list_metrics(
    filters: UseMetricFilters, fields: Annotated[str | None, fields_of(_MEMBERS)] = None
) -> Response:
    """List the metrics, filtered: what each is and what prevalence does to it. `fields` has more of their cards."""
    members = chosen_members(fields, _MEMBERS) or _SHORT
    items = [_written(metric.key, metric.card.tasks[0], members) for metric in find_metrics(**asdict(filters))]
    return json_response({"items": items, "combinations": combinations()})


@router.get("/metrics/{key}", responses=answers(MetricCard))
async def get_metric(key: str, task: Task = None) -> Response:
    """Describe one metric, by its key or an alias; the task tells which where a name has several meanings."""
    return json_response(_written(metric_by_name(key, task).key, task))


@router.post(
    "/metrics/recommendations",
    responses=answers(Recommendation),
    openapi_extra=body_schema(requests.RecommendationRequest),
)
async def recommend_metrics(request: Request) -> Response:
    """Recommend metrics by the survey's decision tree and the advice of the other papers."""
    asked = parse_body(await read_body(request), requests.RecommendationRequest)
    return json_response(recommend(asked.to_domain()))


@router.post(
    "/bounds/h-mean",
    responses=answers(BoundsOfRecalls | BoundsOfWeakClasses),
    openapi_extra=body_schema(requests.BoundsRequest),
)
async def bound_h_mean(request: Request) -> Response:
    """Bound the harmonic mean of the recalls by its weak classes (Aguilar-Ruiz 2025, Proposition 1)."""
    asked = parse_body(await read_body(request), requests.BoundsRequest)
    sweep = None if asked.recall_sweep is None else asked.recall_sweep.to_domain()
    if asked.recalls is not None:
        return json_response(bounds_of_recalls(asked.recalls, asked.target, sweep))
    assert asked.classes is not None  # noqa: S101 - checked by the model
    assert asked.weak is not None  # noqa: S101 - likewise
    return json_response(
        bounds_of_weak_classes(
            classes=asked.classes,
            weak=asked.weak,
            max_recall=asked.max_recall,
            weak_recall=asked.weak_recall,
            target=asked.target,
            sweep=sweep,
        )
    )


@router.post(
    "/evaluations/{identifier}/bounds/h-mean",
    responses=answers(BoundsOfRecalls),
    openapi_extra=body_schema(requests.StoredBoundsRequest),
)
async def bound_h_mean_of_evaluation(identifier: UUID, request: Request, context: UseContext) -> Response:
    """Bound the harmonic mean of the recalls of an evaluation; classes are counted from 0, in the order of labels."""
    asked = parse_body(await read_body(request), requests.StoredBoundsRequest)
    shown = await context.services.evaluations.matrix(context.project, identifier, Normalized.TRUE)
    sweep = requests.fitting_sweep(asked.recall_sweep, len(shown.labels))
    return json_response(bounds_of_stored(shown.labels, shown.confusion_matrix, asked.target, sweep))


@router.post("/isocurves", responses=answers(Isocurves), openapi_extra=body_schema(requests.IsocurvesRequest))
async def compute_isocurves(request: Request) -> Response:
    """Compute the curves through a point along which a mean of sensitivity and specificity stays the same."""
    asked = parse_body(await read_body(request), requests.IsocurvesRequest)
    return json_response(isocurves(asked.tpr, asked.tnr, asked.steps))
