"""Pages: runs and leaderboards, evaluations, comparisons, gates with their checks, and the catalogue."""

import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from typing import Annotated, Any, Final, Literal
from uuid import UUID

import orjson
from fastapi import FastAPI, Query, Request
from markupsafe import Markup
from starlette.responses import Response

from app.api.cursors import Cursor, Pages
from app.api.deps import Context, UseContext
from app.api.documents.check import check_document, rule_text
from app.api.documents.comparison import comparison_document
from app.api.documents.document import Document, Json
from app.api.documents.evaluation import evaluation_document
from app.api.documents.leaderboard import leaderboard_notes, leaderboard_table
from app.api.documents.reading import dataset_name, run_name, run_title, sentence, shown
from app.api.documents.slices import slices_document
from app.api.documents.text import plain
from app.api.plots.registry import FigureData, Run, Subject, as_answered, class_of, matrix_of
from app.api.problems import InvalidQuery
from app.api.report import At, Picture, table_view, view
from app.api.ui import compare
from app.api.ui.web import Web, attached, install_files, install_forms, page_routes, render, respond, write
from app.api.v1.figures import comparison_page, evaluation_page, pictures_of, pictures_of_evaluation
from app.api.v1.listing import Filters, MetricFilters, Task, UseFilters, UseMetricFilters, listed_evaluations
from app.api.v1.requests.fields import SOUGHT, GateName
from app.domain.advice.recommendations import WORDS, recommended, walk
from app.domain.catalogue import TASKS, combinations, describe_metric, find_metrics, listed, metric_by_name
from app.domain.decisions import CheckFilter, CheckSummary, ComparisonFilter, ComparisonSummary
from app.domain.errors import InvalidExpression, NotFound, OutOfReach
from app.domain.evaluation import DatasetRef
from app.domain.expressions.syntax import write_label
from app.domain.inputs.kinds import KINDS
from app.domain.inputs.matrices import MatrixInput
from app.domain.members import rfc3339
from app.domain.named_metrics import ACCURACY, BALANCED, HEADLINE, PRECISION, RANKED, RECALL, SWEPT
from app.domain.wording import PAGE, percent, whole
from app.services.project.projection import Marked, Scenario, Sweep
from app.services.rank import LeaderboardQuery
from app.services.slices.parts import attribute_names
from app.services.slices.slices import SlicesQuestion, judge_slices

router = page_routes()
_ON_A_PAGE: Final = 25
# Attributes that slices are made of where nobody says.
_SLICED_BY: Final = 3
_IN_A_LEADERBOARD: Final = 50
_DATASETS: Final = 100


@router.get("")
async def show_runs(
    request: Request,
    context: UseContext,
    filters: UseFilters,
    asked: Annotated[str | None, Query(alias="metric", max_length=2000), SOUGHT] = None,
    sort: Annotated[str, Query(max_length=128)] = "-created_at",
    cursor: Cursor = None,
) -> Response:
    """List the runs, and rank those of a dataset."""
    found = as_answered(await listed_evaluations(context, filters, sort, _ON_A_PAGE, cursor))
    ranked = filters.dataset and cursor is None
    choices = _choices(found["items"] if filters.dataset else [])
    metric = asked or choices[0]
    page = {
        "title": "Runs",
        "on": _on(filters),
        "filters": filters,
        "given": (given := _given(filters, None if metric == choices[0] else metric)),
        "address": given if sort == "-created_at" else {**given, "sort": sort},
        "metric": metric,
        "metrics": [(key, _label(key)) for key in choices],
        "known_metric": metric in choices,
        "usual": choices[0],
        "datasets": await _datasets(context),
        "columns": (columns := _columns(found["items"])),
        "runs": [_run(one, columns) for one in found["items"]],
        "next": found["next_cursor"],
        "sort": sort,
        "first": cursor is None,
        "board": await _board(context, filters, metric, Web.of(request).at) if ranked else None,
    }
    return render(request, "runs.html", "runs", page=page)


def _on(filters: Filters) -> str:
    if filters.dataset is None:
        return ""
    dataset = {"name": filters.dataset, "version": filters.dataset_version, "split": filters.split}
    return f"on {dataset_name(dataset, version=True)}"


def _choices(runs: Sequence[Json]) -> Sequence[str]:
    """Return what runs of the kind of the first one are ranked by, the usual metric first."""
    units = KINDS[runs[0]["input"]["kind"]].units if runs else None
    known = [metric.key for metric in units.ranked] if units is not None else []
    return known if known and known[0] != RANKED else [RANKED, *(key for key in HEADLINE if key != RANKED)]


def _columns(runs: Sequence[Json]) -> list[tuple[str, str]]:
    """Return keys and headings of the values beside runs: of the task of all of them, else those of classes."""
    kinds = {one["input"]["kind"] for one in runs}
    units = KINDS[kinds.pop()].units if len(kinds) == 1 else None
    own = [] if units is None or units.ranked[0].key == RANKED else [listed(metric) for metric in units.ranked]
    return [one for one in own if any(one[0] in run["metrics"] for run in runs)] or [
        (RANKED, "H"),
        (ACCURACY, "○ Accuracy"),
        (BALANCED, "◆ equal"),
    ]


def _given(filters: Filters, metric: str | None) -> dict[str, Any]:
    """The filters as parameters of an address."""
    given = {
        "model": filters.model,
        "model_version": filters.model_version,
        "dataset": filters.dataset,
        "dataset_version": filters.dataset_version,
        "split": filters.split,
        "tag": filters.tag,
        "where": filters.where,
        "created_after": None if filters.created_after is None else filters.created_after.isoformat(),
        "created_before": None if filters.created_before is None else filters.created_before.isoformat(),
        "metric": metric,
    }
    return {name: value for name, value in given.items() if value}


def _label(key: str) -> str:
    card = describe_metric(metric_by_name(key))
    moves = "" if card.prevalence == "insensitive" else " (moves with prevalence)"
    return f"{sentence(card.name)}{moves}"


async def _datasets(context: Context) -> list[str]:
    page = await context.services.evaluations.datasets(context.project, _DATASETS, None)
    return list(dict.fromkeys(one.name for one in page.items))


def _run(item: Json, columns: Sequence[tuple[str, str]]) -> dict[str, Any]:
    metrics, given = item["metrics"], item["input"]
    return {
        "id": item["id"],
        "name": run_name(item["model"]),
        "model": item["model"]["name"],
        "on": dataset_name(item["dataset"], version=True),
        "dataset": item["dataset"],
        "classes": whole(given["n_classes"]) if given["n_classes"] else "",
        "n": "" if given["n_samples"] is None else whole(given["n_samples"]),
        "values": [(key, _value(metrics, key)) for key, _ in columns],
        "kind": given["kind"].replace("_", " "),
        "tags": [(shown(name), shown(value)) for name, value in item["tags"].items()],
        "created_at": item["created_at"],
    }


def _value(metrics: Json, key: str) -> str:
    """A value without an interval; empty for a kind of input that has not the metric."""
    return PAGE.value(metrics[key]) if key in metrics else ""


async def _board(context: Context, filters: Filters, metric: str, at: At) -> dict[str, Any]:
    dataset = DatasetRef(filters.dataset or "", filters.dataset_version, filters.split)
    conditions = filters.query().where
    query = LeaderboardQuery(dataset=dataset, metric=metric, where=conditions, limit=_IN_A_LEADERBOARD)
    try:
        board = as_answered(await context.services.leaderboards.rank(context.project, query))
    except (InvalidExpression, OutOfReach) as error:
        raise InvalidQuery.at("metric", error.code, error.detail) from None
    return {
        "metric": shown(metric),
        "better": board["better"],
        "level": percent(board["level"], None).replace(" ", "\u00a0"),
        "table": table_view(leaderboard_table(board), at),
        "notes": [plain(note.text) for note in leaderboard_notes(board)],
    }


# Every share in per cent, so that what the slider stops at was computed and not guessed between two shares.
_LOWEST, _HIGHEST, _STEPS = 0.01, 0.99, 99
_DRAWS: Final = 500
# Below them some of rare classes.
_RARE: Final = (0.0001, 0.0005, 0.001, 0.005)
_STOPS: Final = (*_RARE, *(one / 100 for one in range(1, _STEPS + 1)))
# What stands in the table beside this data and equal shares.
_IN_TABLE: Final = (0.0001, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9)
# Of the figure among those of the page that it becomes a part of.
_PLACE: Final = 90


async def what_if_page(
    context: Context, identifier: UUID, label: str | None, share: float | None
) -> tuple[dict[str, Any], list[Picture]]:
    """Return the values of the template, and the figure. The slider starts at a share in per cent, or at this data's.

    Raises:
        NotFound: there is no such evaluation.
        NoFigure: it is none of classes.
        UnknownClass: it has no such class.
    """
    report = as_answered(await context.services.evaluations.read(context.project, identifier))
    run = Run(of=report, report=report)
    given = FigureData(label=label, runs=[run])
    matrix_of(run)
    labels: list[str] = report["input"]["labels"]
    chosen = labels[class_of(given, run)]
    page = {
        "id": str(identifier),
        "title": run_name(report["model"]),
        "on": f"on {dataset_name(report['dataset'])}",
        "class": shown(chosen),
        "labels": [(one, shown(one), one == chosen) for one in labels],
        "reason": "",
        "rows": [],
    }
    try:
        sweep = await _swept(context, identifier, chosen)
    except OutOfReach as error:
        return {**page, "reason": f"{sentence(error.detail)}."}, []
    of_means = {**sweep, "metrics": {key: sweep["metrics"][key] for key in SWEPT}}
    drawn = FigureData(label=label, runs=[Run(of=report, report=report, sweep=of_means)])
    pictures = await pictures_of(context, Subject.EVALUATION, ["prevalence"], drawn, _PLACE)
    return {**page, **_values(sweep, chosen, share)}, pictures


async def _swept(context: Context, identifier: UUID, label: str) -> Json:
    sweep = Sweep(label=label, start=_LOWEST, end=_HIGHEST, steps=_STEPS, at=(*_RARE, *Marked))
    scenario = Scenario(sweep=sweep, draws=_DRAWS)
    of_class = [f"{key}@{write_label(label)}" for key in (RECALL, PRECISION)]
    asked = (*of_class, *SWEPT)
    return as_answered(await context.services.what_if.project(context.project, identifier, asked, scenario, None))


def _values(sweep: Json, label: str, share: float | None) -> dict[str, Any]:
    metrics = sweep["metrics"]
    cards = [(describe_metric(metric_by_name(key.partition("@")[0])), "@" in key) for key in metrics]
    names = [f"{card.name} of {shown(label)}" if of_class else card.name for card, of_class in cards]
    found = {one: _at(metrics, place) for place, one in enumerate(sweep["grid"])}
    each = {one: found[min(found, key=lambda other: abs(other - one))] for one in _STOPS}
    own, equal = sweep["sweep"]["observed"], sweep["sweep"]["equal"]
    rows = [
        {"share": percent(own), "said": "this data", "cells": found[own]},
        {"share": percent(equal), "said": "equal shares", "cells": found[equal]},
        *({"share": percent(one, None).replace(" ", "\u00a0"), "said": "", "cells": each[one]} for one in _IN_TABLE),
    ]
    start = min(range(len(_STOPS)), key=lambda place: abs(_STOPS[place] - (own if share is None else share / 100)))
    shares = [percent(one, None) for one in _STOPS]
    return {
        "rows": rows,
        "metrics": names,
        # As the script reads it: the values at each stop of the slider, in the order of the metrics.
        "values": orjson.dumps({"names": names, "shares": shares, "at": [*each.values()]}).decode(),
        "start": start,
        "started": shares[start],
        "last": len(shares) - 1,
        "notes": [shown(sentence(note)) for note in sweep["notes"]],
        "level": percent(sweep["design"]["level"], None),
    }


def _at(metrics: Json, place: int) -> list[str]:
    """Return all metrics at one share, each with its interval."""
    ends = ("value", "low", "high")
    return [PAGE.said(*(None if one[end] is None else one[end][place] for end in ends)) for one in metrics.values()]


@router.get("/evaluations/{identifier}")
async def show_evaluation(identifier: UUID, request: Request, context: UseContext) -> Response:
    """Show an evaluation: what was found, metrics with limits, the matrix, classes."""
    answer = as_answered(await context.services.evaluations.read(context.project, identifier))
    # A page of many classes takes longer to write than a loop should wait.
    written = partial(_written, evaluation_document, answer, Web.of(request, "runs"))
    return respond(await context.services.compute.run(written))


def _written(document: Callable[[Json], Document], answer: Json, web: Web, pictures: Sequence[Picture] = ()) -> bytes:
    return write("document.html", web, **view(document(answer), web.at), pictures=pictures)


@router.get("/evaluations/{identifier}/figures")
async def show_figures(identifier: UUID, request: Request, context: UseContext) -> Response:
    """Show the figures of an evaluation. Its page loads them behind everything else."""
    answer = as_answered(await context.services.evaluations.read(context.project, identifier))
    pictures = await pictures_of_evaluation(context, identifier, answer)
    page = {"id": str(identifier), "title": run_name(answer["model"]), "on": f"on {dataset_name(answer['dataset'])}"}
    drawn = any(one.svg is not None for one in pictures)
    return render(request, "figures.html", "runs", page=page, pictures=pictures, drawn=drawn)


@router.get("/evaluations/{identifier}/what-if")
async def show_what_if(
    identifier: UUID,
    request: Request,
    context: UseContext,
    label: Annotated[str | None, Query(alias="class", max_length=256), SOUGHT] = None,
    share: Annotated[float | None, Query(ge=0.0, le=100.0, description="In per cent.")] = None,
) -> Response:
    """Show metrics at other shares of one class: a table of some, and a slider for all."""
    page, pictures = await what_if_page(context, identifier, label, share)
    return render(request, "what_if.html", "runs", page=page, pictures=pictures)


@router.get("/evaluations/{identifier}/slices")
async def show_slices(
    identifier: UUID,
    request: Request,
    context: UseContext,
    by: Annotated[list[Annotated[str, SOUGHT]] | None, Query(max_length=50)] = None,
    metric: Annotated[list[Annotated[str, SOUGHT]] | None, Query(max_length=20)] = None,
    depth: Annotated[int, Query(ge=1, le=3)] = 1,
    reference: Literal["rest", "overall"] = "rest",
) -> Response:
    """Show a run slice by slice: for whom it is worse, how many are lost there, and whether that is prevalence."""
    source = await context.services.evaluations.sliceable(context.project, identifier)
    known = attribute_names(source)
    chosen = by or known[:_SLICED_BY]
    metrics = tuple(one for one in metric or () if one)
    asked = SlicesQuestion(by=tuple(dict.fromkeys(chosen)), depth=depth, metrics=metrics, reference=reference)
    form = {
        "id": str(identifier),
        "attributes": [(name, shown(name), name in chosen) for name in known],
        "depths": [(one, words, one == depth) for one, words in enumerate(("each", "in pairs", "in threes"), 1)],
        "metric": metrics[0] if metrics else "",
        "references": [(one, words, one == reference) for one, words in (("rest", "the rest"), ("overall", "overall"))],
    }
    written = partial(_written_slices, source, asked, identifier, form, Web.of(request, "runs"))
    return respond(await context.services.compute.run(written))


def _written_slices(source: MatrixInput, asked: SlicesQuestion, identifier: UUID, form: Json, web: Web) -> bytes:
    answer = as_answered(judge_slices(source, asked, identifier))
    return write("slices.html", web, **view(slices_document(answer), web.at), form=form)


@router.get("/evaluations/{identifier}/report")
async def download_report(identifier: UUID, context: UseContext) -> Response:
    """Give the report as one file, which can be attached to a ticket."""
    return attached(await evaluation_page(context, identifier), identifier)


_MOST_NAMED = 4


@router.get("/comparisons")
async def show_comparisons(request: Request, context: UseContext, cursor: Cursor = None) -> Response:
    """List the comparisons, latest first."""
    pages: Pages[UUID] = Pages({"list": "comparisons"}, (UUID,))
    found = pages.listed(
        await context.services.comparisons.page(context.project, ComparisonFilter(), _ON_A_PAGE, pages.after(cursor))
    )
    page = {
        "title": "Comparisons",
        "items": [_item(one) for one in found.items],
        "next": found.next_cursor,
    }
    return render(request, "comparisons.html", "comparisons", page=page)


def _item(one: ComparisonSummary) -> dict[str, Any]:
    names = [run_name(model) for model in one.models]
    return {
        "id": str(one.id),
        "names": names[:_MOST_NAMED],
        "more": max(0, len(names) - _MOST_NAMED),
        "kind": one.kind.replace("_", " "),
        "metrics": [shown(metric) for metric in one.metrics],
        "created_at": rfc3339(one.created_at),
    }


@router.get("/comparisons/{identifier}")
async def show_comparison(identifier: UUID, request: Request, context: UseContext) -> Response:
    """Show a comparison: who is better by what, values, differences with intervals."""
    answer = as_answered(await context.services.comparisons.read(context.project, identifier))
    name = "critical_difference" if "average_ranks" in answer else "differences"
    pictures = await pictures_of(context, Subject.COMPARISON, [name], FigureData(comparison=answer))
    written = partial(_written, comparison_document, answer, Web.of(request, "comparisons"), pictures)
    return respond(await context.services.compute.run(written))


@router.get("/comparisons/{identifier}/report")
async def download_comparison_report(identifier: UUID, context: UseContext) -> Response:
    """Give the report as one file."""
    return attached(await comparison_page(context, identifier), identifier)


@router.get("/gates")
async def show_gates(request: Request, context: UseContext, cursor: Cursor = None) -> Response:
    """List the gates with what their last check said."""
    pages: Pages[str] = Pages({"list": "gates"}, (str,))
    found = as_answered(
        pages.listed(await context.services.gates.page(context.project, _ON_A_PAGE, pages.after(cursor)))
    )
    last = await context.services.gates.last_checks(context.project, [gate["name"] for gate in found["items"]])
    items = [{**_gate(gate), "last": last.get(gate["name"])} for gate in found["items"]]
    page = {"title": "Gates", "items": items, "next": found["next_cursor"]}
    return render(request, "gates.html", "gates", page=page)


@router.get("/gates/{name}")
async def show_gate(name: GateName, request: Request, context: UseContext, cursor: Cursor = None) -> Response:
    """Show a gate: its rules, all checks, and the rules of earlier versions."""
    versions = [_gate(as_answered(one)) for one in await context.services.gates.versions(context.project, name)]
    pages: Pages[UUID] = Pages({"list": "checks", "gate": name}, (UUID,))
    listed = await context.services.gates.checks(
        context.project, CheckFilter(gate=name), _ON_A_PAGE, pages.after(cursor)
    )
    found = pages.listed(listed)
    page = {
        "title": name,
        "gate": versions[0],
        "earlier": versions[1:],
        "checks": [_checked(one) for one in found.items],
        "next": found.next_cursor,
        "first": cursor is None,
    }
    return render(request, "gate.html", "gates", page=page)


@router.get("/gates/{name}/checks/{identifier}")
async def show_check(name: GateName, identifier: UUID, request: Request, context: UseContext) -> Response:
    """Show what a gate said of a run, rule by rule."""
    answer = as_answered(await context.services.gates.read_check(context.project, name, identifier))
    return render(request, "document.html", "gates", **view(check_document(answer), Web.of(request).at))


def _gate(gate: Json) -> dict[str, Any]:
    rules = [rule_text(rule) for rule in gate["rules"]]
    if gate.get("minimum_samples"):
        rules.append(f"at least {whole(gate['minimum_samples'])} samples")
    return {
        "name": gate["name"],
        "version": gate["version"],
        "created_at": gate["created_at"],
        "description": shown(gate.get("description") or ""),
        "rules": rules,
    }


def _checked(check: CheckSummary) -> dict[str, Any]:
    """A check in the history; runs have the names that they had when it was made."""
    return {
        **as_answered(check),
        "run": run_title(check.evaluation),
        "against": "" if check.baseline is None else run_title(check.baseline),
    }


# Words are one text, not a row of letters; what the converter has no name for is an operator by its name.
_WORD: Final = re.compile(r"\\mathrm\{([^{}\\]{2,})\}")
_UNKNOWN: Final = re.compile(r"\\arg(?![a-zA-Z])")


@cache
def formula(latex: str, *, inline: bool = False) -> Markup:
    """A formula of a card.

    Raises:
        ValueError: it is written in a way that is not understood.
    """
    # Whoever never shows a formula does not load the table of all signs.
    convert = import_module("latex2mathml.converter").convert
    text = _UNKNOWN.sub(lambda _: r"\operatorname{arg}", _WORD.sub(r"\\text{\1}", latex))
    made: str = convert(text, display="inline" if inline else "block")
    if "\\" in made or "&#x0005C;" in made:
        raise ValueError(f"expected a formula of known signs, got {latex}")
    # Cards are the service's own, and the converter escapes their texts.
    return Markup(made)  # noqa: S704


# What prevalence does to a metric, in words, in the order of the page.
_PREVALENCE: Final = {
    "insensitive": "Does not move with prevalence",
    "insensitive_binary": "Does not move with prevalence with two classes",
    "sensitive": "Moves with prevalence",
}
_SCOPES: Final = {"class": "one class", "overall": "all classes together"}


@router.get("/metrics")
async def show_metrics(request: Request, filters: UseMetricFilters) -> Response:
    """List the metrics by what prevalence does to them."""
    found = find_metrics(**filters.query)
    groups = [
        (words, [_line(metric.key, metric.card.tasks[0]) for metric in found if metric.card.prevalence == kind])
        for kind, words in _PREVALENCE.items()
    ]
    page = {
        "title": "Metrics",
        "count": len(found),
        "groups": [(words, lines) for words, lines in groups if lines],
        "combinations": _combinations() if filters == MetricFilters() else [],
        "q": filters.q or "",
        "choices": [
            ("prevalence", "With prevalence", filters.prevalence, _PREVALENCE),
            ("task", "Judges", filters.task, TASKS),
            ("scope", "Of", filters.scope, _SCOPES),
        ],
    }
    return render(request, "metrics.html", "metrics", page=page)


def _combinations() -> list[dict[str, Any]]:
    answered: Any = as_answered(combinations())
    return [{**one, "drawn": formula(one["formula"], inline=True)} for one in answered]


def _line(key: str, task: str) -> dict[str, Any]:
    card = describe_metric(metric_by_name(key, task))
    return {"key": key, "task": task, "name": card.name, "symbol": card.symbol or "", "sentence": card.sentence}


@router.get("/metrics/choose")
async def show_questions(
    request: Request,
    task: Annotated[Literal["classification", "multilabel", "clustering", "ranking", "sets"] | None, Query()] = None,
    answers: Annotated[list[str] | None, Query(alias="answer", max_length=10)] = None,
) -> Response:
    """Ask one question after the other, and recommend metrics at the end."""
    page: dict[str, Any] = {"title": "Which metric?", "task": task, "tasks": list(WORDS["task"].items())}
    if task is not None:
        given = dict(_answer(one) for one in answers or ())
        found = walk(task, given)
        page |= {
            "judged": WORDS["task"][task],
            "path": [
                (one, [f"{before.about}:{before.answer}" for before in found.path[:place]])
                for place, one in enumerate(found.path)
            ],
            "given": [f"{one.about}:{one.answer}" for one in found.path],
            "question": found.question,
            "advice": None if found.question is not None else as_answered(recommended(task, given)),
            "names": _names,
        }
    return render(request, "choose.html", "metrics", page=page)


def _answer(text: str) -> tuple[str, str]:
    about, colon, answer = text.partition(":")
    if not colon:
        raise InvalidQuery.at("answer", "invalid_answer", "expected what it is about and the answer: balanced:yes")
    return about, answer


def _names(key: str) -> str:
    return describe_metric(metric_by_name(key)).name


@router.get("/metrics/{key}")
async def show_metric(key: str, request: Request, task: Task = None) -> Response:
    """Show everything that is declared of a metric."""
    metric = metric_by_name(key, task)
    card = as_answered(describe_metric(metric))
    page = {
        "title": card["name"],
        "card": card,
        "symbol": _symbol(card["symbol"]),
        "formula": formula(card["formula"]),
        "range": f"{_end(card['range']['minimum'], '−∞')} to {_end(card['range']['maximum'], '∞')}",
        "better": card["orientation"].removesuffix("_is_better").replace("_", " "),
        "prevalence": _PREVALENCE[card["prevalence"]],
        "tasks": [TASKS.get(one, one) for one in card["tasks"]],
        "scope": _SCOPES[card["scope"]],
    }
    return render(request, "metric.html", "metrics", page=page)


def _symbol(text: str | None) -> str:
    """Write a symbol, as a formula if it is more than letters."""
    return formula(text, inline=True) if text and re.search(r"[\\_^]", text) else text or ""


def _end(value: float | None, without: str) -> str:
    return without if value is None else f"{value:g}".replace("-", "−")


@router.get("/{rest:path}")
async def show_missing(rest: str) -> Response:
    """Say that there is no such page."""
    raise NotFound(f"there is no page {rest[:100]!r}")


def install(app: FastAPI) -> None:
    """Serve the pages."""
    install_files(app)
    install_forms(app)
    for each in (compare.router, router):
        app.include_router(each)
