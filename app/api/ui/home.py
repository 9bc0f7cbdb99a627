"""Home: each dataset with its best model and what changed, the leaderboard of one, and the list of runs."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from math import floor
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import Query, Request
from starlette.responses import Response

from app.api.cursors import Cursor
from app.api.deps import Context, UseContext
from app.api.documents import headings
from app.api.documents.check import check_document
from app.api.documents.document import Json, Words
from app.api.documents.evaluation import facts_of
from app.api.documents.leaderboard import leaderboard_notes, leaderboard_table
from app.api.documents.reading import class_word, has_classes, in_names, moves_with_prevalence, naming, task_in
from app.api.documents.text import plain
from app.api.plots.registry import as_answered
from app.api.problems import InvalidQuery
from app.api.report import table_view
from app.api.ui.compare import MOST_RUNS
from app.api.ui.web import DATASET_PARTS, Web, dataset_query, page_routes, render
from app.api.v1.listing import Filters, UseFilters, listed_evaluations
from app.api.v1.requests.fields import SOUGHT
from app.domain.catalogue import listed, spoken, titled
from app.domain.decisions import CheckFilter
from app.domain.errors import InvalidExpression, OutOfReach
from app.domain.evaluation import DatasetRef
from app.domain.findings import Finding
from app.domain.inputs.content import Content
from app.domain.inputs.kinds import KINDS
from app.domain.named_metrics import ACCURACY, BALANCED, HEADLINE, RANKED
from app.domain.wording import (
    PAGE,
    class_before,
    dataset_name,
    names,
    numbered,
    printable,
    run_name,
    sentence,
    sentences_in,
    whole,
)
from app.services.rank import LeaderboardQuery

router = page_routes()
_ON_A_PAGE: Final = 25
_IN_A_LEADERBOARD: Final = 50
# Datasets and models that filters offer, and datasets that have a part of the page each.
_OFFERED, _SHOWN = 100, 6
# Checks that are looked through for the last one of a dataset.
_CHECKS: Final = 100


@router.get("")
async def show_runs(
    request: Request,
    context: UseContext,
    filters: UseFilters,
    asked: Annotated[str | None, Query(alias="metric", max_length=2000), SOUGHT] = None,
    sort: Annotated[str, Query(max_length=128)] = "-created_at",
    cursor: Cursor = None,
) -> Response:
    """Show each dataset and list the runs, or what there is of one dataset."""
    items = await listed_evaluations(context, filters, sort, _ON_A_PAGE, cursor)
    findings = await context.services.evaluations.gravest_findings(context.project, items.items)
    found = as_answered(items)
    ranked = filters.dataset and cursor is None
    choices = _choices(found["items"] if filters.dataset else [])
    metric = asked or choices[0]
    dataset = DatasetRef(filters.dataset or "", filters.dataset_version, filters.split)
    board = await _ranked(context, filters, dataset, metric) if ranked else None
    home = not _given(filters, None) and cursor is None and sort == "-created_at"
    page = {
        "title": dataset_name(asdict(dataset), version=True) if filters.dataset else "Home",
        "sets": _newest_datasets(found["items"]) if home else [],
        "block": None if board is None or not board["items"] else await _block(context, board),
        "filters": filters,
        "given": (given := _given(filters, None if metric == choices[0] else metric)),
        "address": given if sort == "-created_at" else {**given, "sort": sort},
        "metric": metric,
        "metrics": [(key, titled(key) + " ○" * bool(moves_with_prevalence(key))) for key in choices],
        "datasets": await _offered(context.services.evaluations.datasets, context),
        "columns": (columns := _columns(found["items"])),
        "models": await _offered(context.services.evaluations.models, context),
        "most": MOST_RUNS,
        "runs": [_run(one, columns, findings) for one in found["items"]],
        "next": found["next_cursor"],
        "sort": sort,
        "board": board,
        "table": None if board is None else table_view(leaderboard_table(board), Web.of(request).at),
        "notes": [] if board is None else [plain(note.text) for note in leaderboard_notes(board)],
    }
    return render(request, "runs.html", "runs", page=page)


def _choices(runs: Sequence[Json]) -> Sequence[str]:
    """Return what runs of the kind of the first one are ranked by, the usual metric first."""
    known = [key for key, _ in _ranked_by(runs[0]["input"]["kind"])] if runs else [RANKED]
    return known if known[0] != RANKED else [RANKED, *(key for key in HEADLINE if key != RANKED)]


def _columns(runs: Sequence[Json]) -> list[tuple[str, str]]:
    """Return keys and headings of the values beside runs: those of their task, where all have the same."""
    kinds = {one["input"]["kind"] for one in runs}
    of_classes = [(RANKED, "H"), (ACCURACY, "○\u00a0Accuracy"), (BALANCED, "◆\u00a0equal")]
    if runs and all(key in run["metrics"] for run in runs for key, _ in of_classes):
        return of_classes
    own = _ranked_by(kinds.pop()) if len(kinds) == 1 else []
    return [one for one in own if any(one[0] in run["metrics"] for run in runs)]


def _ranked_by(kind: str) -> list[tuple[str, str]]:
    """Return keys and headings of what runs of a kind are ranked by."""
    units = KINDS[kind].units
    if units is None or units.ranked[0].key == RANKED:
        return [(RANKED, "H")]
    return [listed(metric) for metric in units.ranked]


def _given(filters: Filters, metric: str | None) -> dict[str, Any]:
    """The filters as parameters of an address."""
    given = {**asdict(filters), "metric": metric}
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in given.items() if value}


async def _offered(read: Callable[..., Awaitable[Any]], context: Context) -> list[str]:
    page = await read(context.project, _OFFERED, None)
    return list(dict.fromkeys(one.name for one in page.items))


def _newest_datasets(runs: Sequence[Json]) -> list[dict[str, Any]]:
    """Return the newest run of each dataset, and whether it has further versions: what is said of several is longer,
    and the page has its length before it comes.
    """
    found: dict[str, dict[str, Any]] = {}
    for one in runs:
        newest = found.setdefault(repr(dataset_query(one["dataset"])), {**one, "several": False})
        newest["several"] |= run_name(one["model"]) != run_name(newest["model"])
    return list(found.values())[:_SHOWN]


def _run(item: Json, columns: Sequence[tuple[str, str]], findings: Mapping[UUID, Finding]) -> Json:
    """Return a run of the list with its gravest finding, and with its values as they are written."""
    metrics, finding = item["metrics"], findings.get(UUID(item["id"]))
    said = None
    if finding is not None:
        first = f"{sentences_in(finding.message)[0]}."
        said = finding.severity.value, in_names(naming(first, metrics))
    # Among runs of other tasks it has its own value in words.
    own = [] if any(key in metrics for key, _ in columns) else _ranked_by(item["input"]["kind"])
    return {
        **item,
        "finding": said,
        "own": next((f"{name} {PAGE.value(metrics[key])}" for key, name in own if key in metrics), ""),
        # Empty for a kind of input that has not the metric.
        "cells": [(key, PAGE.value(metrics[key]) if key in metrics else "") for key, _ in columns],
    }


async def _ranked(context: Context, filters: Filters, dataset: DatasetRef, metric: str) -> Json:
    query = LeaderboardQuery(dataset=dataset, metric=metric, where=filters.query().where, limit=_IN_A_LEADERBOARD)
    try:
        return as_answered(await context.services.leaderboards.rank(context.project, query))
    except (InvalidExpression, OutOfReach) as error:
        raise InvalidQuery.at("metric", error.code, error.detail) from None


# --- one dataset in short --------------------------------------------------------------------------------------------


async def _block(context: Context, board: Json) -> dict[str, Any]:
    """Return what is said of a dataset: the best run, its weakest class, the last check, what changed, and a trend."""
    lines = board["items"]
    # Among the best of many versions the newest is not the newest of all.
    by_date = [] if len(lines) == _IN_A_LEADERBOARD else sorted(lines, key=lambda one: str(one["created_at"]))
    newest, before = by_date[-1] if by_date else None, by_date[-2] if len(by_date) > 1 else None
    wanted = dict.fromkeys(one["evaluation"]["id"] for one in (lines[0], newest, before) if one)
    reports = await context.services.evaluations.read_matrices(context.project, [*map(UUID, wanted)], limits=False)
    read = dict(zip(wanted, map(as_answered, reports), strict=True))
    report = read[lines[0]["evaluation"]["id"]]
    card = spoken(board["metric"], task_in(report))
    moves = has_classes(report) and board["metric"] not in report["metrics"]["prevalence_insensitive"]
    mark = ("o" if moves else "d") if has_classes(report) else "shape"
    changed = None
    if newest and before and None not in (newest["value"], before["value"]):
        changed = _changed(card, newest, before, read)
    dataset = lines[0]["evaluation"]["dataset"]
    return {
        "facts": [
            *(plain(fact) for name, fact in facts_of(report) if not name),
            f"{'' if newest else 'the first '}{numbered(len(lines), 'model versions')}",
        ],
        "say": _said(board, card, newest),
        "weakest": _weakest(report),
        "check": await _last_check(context, board["dataset"]),
        "changed": changed,
        "since": None if before is None else before["created_at"],
        "trend": _trend(by_date, lines[0], sentence(card), mark),
        "best": [one["evaluation"]["id"] for one in lines[:MOST_RUNS] if one["value"] is not None],
        "newest": newest and newest["evaluation"]["id"],
        "named": dataset_query(dataset),
        "model": (newest or lines[0])["model"]["name"],
    }


def _said(board: Json, name: str, newest: Json | None) -> str:
    """Return which model is best, which may be as good, and where the newest is worse, if that is known."""
    best, *rest = board["items"]
    if best["value"] is None:
        return f"No run has a value of {name}."
    value = PAGE.said(best["value"], best["low"], best["high"])
    if not rest:
        return f"{run_name(best['model'])} is the only model here: {name} {value}."
    said = f"{run_name(best['model'])} is best by {name}, {value}"
    if best["may_be_best"] is None:
        return f"{said}; which others may be as good is not known."
    others = [run_name(one["model"]) for one in rest if one["may_be_best"]]
    if others:
        said += f"; {names(others)} may be as good."
    else:
        said += f": with 95\u00a0% confidence no other{'' if newest else ' of these'} is better."
    worse = newest and newest["separable_from_best"]
    return said + (f" The newest, {run_name(newest['model'])}, is worse." if newest and worse else "")


def _weakest(report: Json) -> tuple[str, str, str] | None:
    """Return what fails most in the best run and how, in the words of its page."""
    found: Words
    how: Words
    queries = report.get("queries")
    if queries and queries["lowest"]:
        one, word, found = queries["lowest"][0], "Weakest query", headings.of_queries(report)
        how = "" if not found else f"{whole(one['items'])} retrieved, {whole(one['relevant'])} relevant"
    elif has_classes(report):
        word, found, how = f"Weakest {class_word(report)}", headings.of_classes(report), headings.of_matrix(report)
        if how and (not found or report["input"].get("positive") is not None):
            # No class is the weakest alone, or both kinds of mistakes of two classes are said by it.
            word, found, how = "Mistakes", how, ""
    else:
        return None
    what, in_what = (f"{in_names(one)}." if one else "" for one in (found, how))
    return (word, what, in_what) if what or in_what else None


async def _last_check(context: Context, dataset: Json) -> dict[str, Any] | None:
    """Return the last check of a run on the dataset among the latest checks."""
    found = await context.services.gates.checks(context.project, CheckFilter(), _CHECKS, None)
    checks: Any = as_answered(found.items)
    for one in checks:
        of = one["evaluation"]["dataset"]
        if all(dataset.get(part) in (None, of.get(part)) for part in DATASET_PARTS.values()):
            gate, check = one["gate"]["name"], UUID(one["id"])
            answer = as_answered(await context.services.gates.read_check(context.project, gate, check))
            counted = plain(check_document(answer).opening[0].text)
            return {**one, "run": run_name(one["evaluation"]["model"]), "counted": counted}
    return None


def _changed(name: str, newest: Json, before: Json, read: Mapping[str, Json]) -> str:
    """Return what the newest run has in place of the one before: the metric, and the class whose misses moved most."""
    new, old = run_name(newest["model"]), run_name(before["model"])
    value, was_before = PAGE.value(newest["value"]), PAGE.value(before["value"])
    said = f"{sentence(name)} of {new} is {value}, that of {old} was {was_before}"
    one, other = (read[line["evaluation"]["id"]]["input"] for line in (newest, before))
    matrices = one.get("confusion_matrix"), other.get("confusion_matrix")
    if None in matrices or one["content"] != Content.counts or one["labels"] != other["labels"]:
        return f"{said}."
    counts = [[(sum(row) - row[place], sum(row)) for place, row in enumerate(matrix)] for matrix in matrices]
    moved = [now[0] - was[0] if now[1] == was[1] else 0 for now, was in zip(*counts, strict=True)]
    place = max(range(len(moved)), key=lambda each: abs(moved[each]))
    if not moved[place]:
        return f"{said}."
    (now, n), (was, _), label = counts[0][place], counts[1][place], one["labels"][place]
    cases = f"{whole(n)} {'of class ' if class_before(label) else ''}{printable(label)}"
    return f"{said}; of {cases} it misses {whole(now)} instead of {whole(was)}."


# Where the first and the last of a trend stand, in per cent of its width, and its height in pixels.
_FIRST, _LAST, _HEIGHT = 12.0, 82.0, 146


def _trend(by_date: Sequence[Json], best: Json, title: str, mark: str) -> dict[str, Any] | None:
    """Return the values of all versions over time with their intervals, as they are drawn."""
    known = [one for one in by_date if one["value"] is not None]
    ends = [end for one in known for end in (one["value"], one["low"], one["high"]) if end is not None]
    if len(known) < 2 or not all(0.0 <= end <= 1.0 for end in ends):
        return None
    start = min(0.9, floor(10 * min(ends)) / 10)
    moments = [datetime.fromisoformat(one["created_at"]).timestamp() for one in known]
    span = moments[-1] - moments[0]

    def height(value: float | None) -> str:
        return f"{8 + (_HEIGHT - 46) * (1.0 - ((value or 0.0) - start) / (1.0 - start)):.1f}"

    points = []
    for place, (one, moment) in enumerate(zip(known, moments, strict=True)):
        part = (moment - moments[0]) / span if span else place / (len(known) - 1)
        is_best, is_last = one is best, place == len(known) - 1
        named = run_name(one["model"]) if is_best or is_last or not place else ""
        limits = None if one["low"] is None or one["high"] is None else (height(one["low"]), height(one["high"]))
        points.append(
            {
                "x": f"{_FIRST + (_LAST - _FIRST) * part:.2f}%",
                "y": height(one["value"]),
                "ends": limits,
                "name": named if len(named) <= _LONGEST_NAME else f"{named[:_LONGEST_NAME]}…",
                "anchor": "start" if part < 0.25 else "end" if part > 0.75 else "middle",
                "best": is_best,
            }
        )
    band = None if best["low"] is None or best["high"] is None else (height(best["high"]), best["low"])
    said = "; ".join(
        f"{run_name(one['model'])} {PAGE.said(one['value'], one['low'], one['high'])}" for one in known[-_TOLD:]
    )
    return {
        "title": title,
        "mark": mark,
        "points": points,
        "band": None if band is None else (band[0], f"{float(height(band[1])) - float(band[0]):.1f}"),
        "ticks": [(f"{one:g}", height(one)) for one in sorted({start, round((start + 1) / 2, 2), 1.0})],
        "dates": (known[0]["created_at"], known[-1]["created_at"]),
        "height": _HEIGHT,
        "said": said,
    }


_LONGEST_NAME, _TOLD = 24, 12
