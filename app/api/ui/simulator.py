"""The simulator: what one class means at any share, threshold and costs, all of which stand in the address."""

from typing import Annotated, Any, Final
from uuid import UUID

import orjson
from fastapi import Query, Request
from starlette.responses import Response

from app.api.deps import Context, UseContext
from app.api.documents.reading import in_names, moves_with_prevalence, naming, with_minus
from app.api.plots.registry import as_answered
from app.api.ui.web import page_routes, render
from app.api.v1.requests.fields import SOUGHT
from app.domain.catalogue import titled
from app.domain.errors import OutOfReach
from app.domain.named_metrics import PRECISION, RECALL, SHOWN, SWEPT
from app.domain.wording import (
    PAGE,
    called,
    dataset_name,
    percent,
    printable,
    rounded,
    run_name,
    sentence,
    significant,
    whole,
)
from app.services.project.projection import Marked, Scenario, Sweep
from app.services.project.simulator import Simulated

router = page_routes()
_LOWEST, _HIGHEST = 1e-4, 0.5
_DRAWS: Final = 500
# Of the tables, beside this data.
_SHARES: Final = (1e-4, 1e-3, 5e-3, 0.02, 0.1, 0.5)
_COST: Final = Query(gt=0, le=1e6)
# Cases that numbers of alerts are of, and the least of them that does not read as none.
_PER, _LEAST = 1000, 0.005


@router.get("/evaluations/{identifier}/simulator")
async def show_simulator(
    identifier: UUID,
    request: Request,
    context: UseContext,
    label: Annotated[str | None, Query(alias="class", max_length=256), SOUGHT] = None,
    share: Annotated[float | None, Query(ge=_LOWEST, le=_HIGHEST)] = None,
    threshold: Annotated[float | None, Query(allow_inf_nan=False)] = None,
    cost_fp: Annotated[float, _COST] = 1.0,
    cost_fn: Annotated[float, _COST] = 1.0,
) -> Response:
    """Show alerts, caught and missed cases, precision and expected cost, with limits, and other metrics at shares."""
    named = as_answered(await context.services.evaluations.names(context.project, identifier))
    labels, of, rates = await context.services.what_if.simulate(context.project, identifier, label)
    chosen, place = labels[of], rates.start
    if threshold is not None and rates.thresholds is not None:
        away = [abs(one - threshold) for one in rates.thresholds]
        place = away.index(min(away))
    at = min(_HIGHEST, max(_LOWEST, rates.observed)) if share is None else share
    # One that reads as that of this data is that.
    shares = sorted({_percent(one): one for one in (*_SHARES, rates.observed)}.values())
    page = {
        "id": str(identifier),
        "title": "Simulator",
        "on": f"of {run_name(named['model'])} on {dataset_name(named['dataset'], version=True)}",
        "class": printable(chosen),
        "called": called(chosen),
        "labels": [(one, printable(one), one == chosen) for one in labels],
        # So exactly that what follows is what the table says of this data.
        "share": significant(at, 6),
        "threshold": None if rates.thresholds is None else significant(rates.thresholds[place], 3),
        "cost_fp": significant(cost_fp, 3),
        "cost_fn": significant(cost_fn, 3),
        # Of rates nobody knows how many samples they are of; so they have no limits.
        "n": "" if rates.recall[place][1] is None else whole(rates.n),
        "others": whole(rates.others),
        "observed": percent(rates.observed),
        **_told(rates, place, chosen, at, cost_fp, cost_fn),
        "rows": [_row(rates, place, one, cost_fp, cost_fn) for one in shares],
        "data": orjson.dumps(_data(rates, called(chosen))).decode(),
        "metrics": await _metrics(context, identifier, chosen),
    }
    return render(request, "simulator.html", "runs", page=page)


def _data(rates: Simulated, label: str) -> dict[str, Any]:
    """Return the rates as the script reads them."""
    return {
        "label": label,
        "observed": rates.observed,
        "t": rates.thresholds,
        RECALL: rates.recall,
        "alarms": rates.alarms,
        "exactRecall": rates.exact_recall,
        "exactAlarms": rates.exact_alarms,
    }


def _told(rates: Simulated, place: int, label: str, share: float, cost_fp: float, cost_fn: float) -> dict[str, Any]:
    found, recall = rates.at(place, share, cost_fp, cost_fn), rates.recall[place]
    precision = found.precision[0]
    alerts = "no alert is raised" if precision is None else f"{_of_hundred(1 - precision)} alerts are false"
    cut = "" if rates.thresholds is None else f" and a threshold of {significant(rates.thresholds[place], 3)}"
    at = f"At {_percent(share)} {called(label)}{with_minus(cut)}"
    ends = [one for one in found.cost[1:] if one is not None]
    raised = _many(found.caught + found.false)
    return {
        "say": f"{at}, {alerts} and {_of_hundred(recall[0])} cases are caught.",
        "facts": [
            ("alerts", f"Alerts per {_PER:,}", raised, f"{_many(found.false)} of them false"),
            ("caught", f"Caught per {_PER:,}", _many(found.caught), f"recall {PAGE.said(*recall)}"),
            ("missed", f"Missed per {_PER:,}", _many(found.missed), f"of {_many(share)} cases"),
            (PRECISION, "○ Precision", *PAGE.estimate(*found.precision)),
            ("cost", f"Expected cost per {_PER:,}", _many(found.cost[0]), " to ".join(_many(one) for one in ends)),
        ],
    }


def _row(rates: Simulated, place: int, share: float, cost_fp: float, cost_fn: float) -> dict[str, Any]:
    found = rates.at(place, share, cost_fp, cost_fn)
    cheapest = rates.cheapest(share, cost_fp, cost_fn)
    return {
        "share": _percent(share),
        "said": "this data" if share == rates.observed else "",
        "cells": [_many(one) for one in (found.caught + found.false, found.caught, found.missed)],
        PRECISION: PAGE.estimate(*found.precision),
        "cost": _many(found.cost[0]),
        "cheapest": "" if rates.thresholds is None else with_minus(significant(rates.thresholds[cheapest], 2)),
    }


def _percent(share: float) -> str:
    return f"{significant(100 * share, 3)}\u00a0%"


def _of_hundred(part: float) -> str:
    """Write a rate as so many of a hundred; what is not none or all never reads as if it were."""
    text = rounded(100 * part, 0)
    if text in ("0", "100") and 0.0 < part < 1.0:
        text = "fewer than 1" if text == "0" else "more than 99"
    return f"{text} of 100"


def _many(part: float) -> str:
    """Write a part of all cases as a number of a thousand."""
    number = _PER * part
    if number == 0:
        return "0"
    if number < _LEAST:
        return "<0.01"
    return whole(float(rounded(number, 0))) if number >= 100 else rounded(number, 1 if number >= 1 else 2)


async def _metrics(context: Context, identifier: UUID, label: str) -> dict[str, Any]:
    """Return the usual metrics at some shares of the class, with their limits, or why there are none."""
    sweep = Sweep(label=label, start=_LOWEST, end=_HIGHEST, steps=2, at=(*_SHARES[1:-1], Marked.OBSERVED))
    scenario = Scenario(metrics=SWEPT, sweep=sweep, draws=_DRAWS)
    try:
        projected = await context.services.what_if.project(context.project, identifier, scenario, None)
    except OutOfReach as error:
        return {"reason": f"{sentence(error.detail)}."}
    found = as_answered(projected)
    named = {_percent(found["sweep"]["observed"]): "this data"}
    if found["sweep"]["equal"] == _HIGHEST:
        # Of more than two classes the others keep their proportions, whatever share one has.
        named.setdefault(_percent(_HIGHEST), "equal prevalence")
    metrics = {key: one for key, one in found["metrics"].items() if moves_with_prevalence(key)}
    places = {_percent(share): place for place, share in enumerate(found["grid"])}
    return {
        "reason": "",
        "names": [titled(key) for key in metrics],
        "level": percent(found["design"]["level"], None).replace(" ", "\u00a0"),
        "rows": [
            (
                share,
                named.get(share, ""),
                [PAGE.said(*(one[end] and one[end][place] for end in _ENDS)) for one in metrics.values()],
            )
            for share, place in places.items()
        ],
        "notes": [in_names(naming(sentence(note), {*SHOWN, *found["metrics"]})) for note in found["notes"]],
    }


_ENDS: Final = ("value", "low", "high")
