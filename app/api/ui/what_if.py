"""What an evaluation would be at other shares of one class, of the projections that the API answers."""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import orjson

from app.api.deps import Context
from app.api.plots.registry import Given, Run, Subject, as_answered, class_of, matrix_of
from app.api.report.numbers import decimals, shown_interval, shown_value
from app.api.report.pictures import Picture
from app.api.texts.lines import shown
from app.api.texts.names import dataset_name, run_name
from app.api.v1.figures.pages import pictures_of
from app.domain.catalogue import describe_metric, metric_by_name
from app.domain.errors import OutOfReach
from app.domain.named_metrics import SWEPT
from app.domain.wording import percent
from app.services.project.scenarios import Marked, Scenario, Sweep

# Every share in per cent, so that what the slider stops at was computed and not guessed between two shares.
_LOWEST, _HIGHEST, _STEPS = 0.01, 0.99, 99
_DRAWS: Final = 500
# What stands in the table: those in per cent, beside this data and equal shares.
_IN_TABLE: Final = (1, 5, 10, 25, 50, 75, 90)
# Of the figure among those of the page that it becomes a part of.
_PLACE: Final = 90
Json = Mapping[str, Any]


async def what_if_page(context: Context, identifier: UUID, label: str | None) -> tuple[dict[str, Any], list[Picture]]:
    """What the template writes, and the figure.

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
    return [_written(*(None if one[name] is None else one[name][place] for name in ("value", "low", "high")))
            for one in metrics.values()]  # fmt: skip


def _written(value: float | None, low: float | None, high: float | None) -> str:
    interval = shown_interval(low, high)
    return shown_value(value, decimals(low, high)) + (f" ({interval})" if interval else "")
