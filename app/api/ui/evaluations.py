"""One evaluation: the page, its figures, and its values at other class shares."""

from functools import partial
from typing import Annotated, Any, Final
from uuid import UUID

import orjson
from fastapi import Query, Request
from starlette.responses import Response

from app.api.deps import Context, UseContext
from app.api.documents.evaluation import evaluation_document
from app.api.documents.reading import dataset_name, run_name, shown
from app.api.plots.registry import Given, Json, Run, Subject, as_answered, class_of, matrix_of
from app.api.report import Picture, view
from app.api.ui.routing import page_routes
from app.api.ui.writing import Web, attached, render, respond, write
from app.api.v1.figures.pages import evaluation_page as report_page
from app.api.v1.figures.pages import pictures_of, pictures_of_evaluation
from app.api.v1.requests.fields import SOUGHT
from app.domain.catalogue import describe_metric, metric_by_name
from app.domain.errors import OutOfReach
from app.domain.named_metrics import SWEPT
from app.domain.wording import PAGE, percent
from app.services.project.projection import Marked, Scenario, Sweep

# Every share in per cent, so that what the slider stops at was computed and not guessed between two shares.
_LOWEST, _HIGHEST, _STEPS = 0.01, 0.99, 99
_DRAWS: Final = 500
# What stands in the table: those in per cent, beside this data and equal shares.
_IN_TABLE: Final = (1, 5, 10, 25, 50, 75, 90)
# Of the figure among those of the page that it becomes a part of.
_PLACE: Final = 90


async def what_if_page(context: Context, identifier: UUID, label: str | None) -> tuple[dict[str, Any], list[Picture]]:
    """Return the values of the template, and the figure.

    Raises:
        NotFound: there is no such evaluation.
        NoFigure: it is none of classes.
        UnknownClass: it has no such class.
    """
    report = as_answered(await context.services.evaluations.read(context.project, identifier))
    run = Run(of=report, report=report)
    given = Given(label=label, runs=[run])
    matrix_of(run)
    labels: list[str] = report["input"]["labels"]
    chosen = labels[class_of(given, run)]
    page = {
        "id": str(identifier),
        "title": run_name(report["model"]),
        "on": dataset_name(report["dataset"]),
        "class": shown(chosen),
        "labels": [(one, shown(one), one == chosen) for one in labels],
        "reason": "",
        "rows": [],
    }
    try:
        sweep = await _swept(context, identifier, chosen)
    except OutOfReach as error:
        return {**page, "reason": f"{error.detail[0].upper()}{error.detail[1:]}."}, []
    drawn = Given(label=label, runs=[Run(of=report, report=report, sweep=sweep)])
    pictures = await pictures_of(context, Subject.EVALUATION, ["prevalence"], drawn, _PLACE)
    return {**page, **_values(sweep)}, pictures


async def _swept(context: Context, identifier: UUID, label: str) -> Json:
    sweep = Sweep(label=label, start=_LOWEST, end=_HIGHEST, steps=_STEPS, at=tuple(Marked))
    scenario = Scenario(sweep=sweep, draws=_DRAWS)
    return as_answered(await context.services.what_if.project(context.project, identifier, SWEPT, scenario, None))


def _values(sweep: Json) -> dict[str, Any]:
    metrics = sweep["metrics"]
    names = {key: describe_metric(metric_by_name(key)).name for key in metrics}
    found = {share: _at(metrics, place) for place, share in enumerate(sweep["grid"])}
    each = {one: found[min(found, key=lambda share: abs(share - one / 100))] for one in range(1, _STEPS + 1)}
    own, equal = sweep["sweep"]["observed"], sweep["sweep"]["equal"]
    rows = [
        {"share": percent(own), "said": "this data", "cells": found[own]},
        {"share": percent(equal), "said": "equal shares", "cells": found[equal]},
        *({"share": f"{share}\u00a0%", "said": "", "cells": each[share]} for share in _IN_TABLE),
    ]
    return {
        "rows": rows,
        "metrics": list(names.values()),
        # As the script reads it: the values by share in per cent, in the order of the metrics.
        "values": orjson.dumps({"names": list(names.values()), "at": {str(one): each[one] for one in each}}).decode(),
        "start": min(99, max(1, round(100 * own))),
        "notes": [shown(note[:1].upper() + note[1:]) for note in sweep["notes"]],
        "level": percent(sweep["design"]["level"], None),
    }


def _at(metrics: Json, place: int) -> list[str]:
    """All metrics at one share, each with its interval."""
    return [_in_words(*(None if one[name] is None else one[name][place] for name in ("value", "low", "high")))
            for one in metrics.values()]  # fmt: skip


def _in_words(value: float | None, low: float | None, high: float | None) -> str:
    return PAGE.said(value, low, high)


router = page_routes()


@router.get("/evaluations/{identifier}")
async def show_evaluation(identifier: UUID, request: Request, context: UseContext) -> Response:
    """Show an evaluation: what was found, metrics with limits, the matrix, classes."""
    answer = as_answered(await context.services.evaluations.read(context.project, identifier))
    # A page of many classes takes longer to write than a loop should wait.
    web = Web.of(request, "runs")
    return respond(await context.services.compute.run(partial(_written, answer, web)))


def _written(answer: Json, web: Web) -> bytes:
    return write("document.html", web, **view(evaluation_document(answer)))


@router.get("/evaluations/{identifier}/figures")
async def show_figures(identifier: UUID, request: Request, context: UseContext) -> Response:
    """Show the figures of an evaluation. Its page loads them behind everything else."""
    answer = as_answered(await context.services.evaluations.read(context.project, identifier))
    pictures = await pictures_of_evaluation(context, identifier, answer)
    page = {"id": str(identifier), "title": run_name(answer["model"]), "on": dataset_name(answer["dataset"])}
    drawn = any(one.svg is not None for one in pictures)
    return render(request, "figures.html", "runs", page=page, pictures=pictures, drawn=drawn)


@router.get("/evaluations/{identifier}/what-if")
async def show_what_if(
    identifier: UUID,
    request: Request,
    context: UseContext,
    label: Annotated[str | None, Query(alias="class", max_length=256), SOUGHT] = None,
) -> Response:
    """Show metrics at other shares of one class: a table of some, and a slider for all."""
    page, pictures = await what_if_page(context, identifier, label)
    return render(request, "what_if.html", "runs", page=page, pictures=pictures)


@router.get("/evaluations/{identifier}/report")
async def download_report(identifier: UUID, context: UseContext) -> Response:
    """Give the report as one file, which can be attached to a ticket."""
    return attached(await report_page(context, identifier), identifier)
