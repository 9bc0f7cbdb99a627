"""Pages: evaluations, comparisons, history, and the catalogue; and all pages together."""

import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cache, partial
from importlib import import_module
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from fastapi import FastAPI, Query, Request
from markupsafe import Markup
from starlette.responses import Response

from app.api.cursors import Cursor, read_page
from app.api.deps import Context, UseContext, UseSlice
from app.api.documents.comparison import comparison_document
from app.api.documents.document import Json
from app.api.documents.evaluation import evaluation_document
from app.api.documents.history import history_document, section_of_figures
from app.api.documents.slices import slices_document
from app.api.plots.registry import PLOTS, Subject, as_answered
from app.api.presentation import EVALUATION, Media, View, evaluation_answer
from app.api.problems import InvalidQuery
from app.api.report import Picture, headed, view
from app.api.ui import compare, gates, home, simulator
from app.api.ui.web import Web, attached, install_files, install_forms, page_routes, render, respond, write
from app.api.v1.figures import (
    UNKEPT_ROOM,
    evaluation_page,
    figures_shown,
    pictures_of_answer,
    pictures_of_evaluation,
    without_samples,
)
from app.api.v1.history import AskedHistory, read_history
from app.api.v1.listing import MetricFilters, Task, UseMetricFilters
from app.api.v1.requests.fields import SOUGHT
from app.domain.advice import recommended, trees, walk
from app.domain.catalogue import TASKS, combinations, describe_metric, find_metrics, metric_by_name
from app.domain.decisions import ComparisonFilter
from app.domain.errors import NotFound
from app.domain.evaluation import EvaluationQuery
from app.domain.expressions.syntax import write_label
from app.domain.inputs.content import DATA_FACT, MERGED_FACT
from app.domain.named_metrics import PRECISION, RECALL, SHARE
from app.domain.slices import attributes_of
from app.domain.wording import dataset_name, printable, run_name, run_title
from app.services.evaluate.evaluations import Evaluation
from app.services.history import HistoryQuery
from app.services.sliced import SLICE
from app.services.slices.slices import SlicesQuestion, judge_slices

router = page_routes()
_ON_A_PAGE: Final = 25
# Attributes that slices are made of where nobody says.
_SLICED_BY: Final = 3


@router.get("/evaluations/{identifier}")
async def show_evaluation(identifier: UUID, request: Request, context: UseSlice) -> Response:
    """Show an evaluation, or one slice of it: what was found, metrics with limits, the matrix, classes."""
    where = _slice_of(request)
    # A slice is one of samples that are kept.
    kept = (True, True) if where is not None else await context.services.evaluations.kept(context.project, identifier)
    # A page of many classes takes longer to write than a loop should wait.
    written = partial(_written_run, web=Web.of(request, "runs"), kept=kept, where=where)
    return respond(await context.services.evaluations.read_shown(context.project, identifier, written))


def _slice_of(request: Request) -> str | None:
    return request.query_params.get(SLICE)


def _written_run(evaluation: Evaluation, web: Web, *, kept: tuple[bool, bool], where: str | None) -> bytes:
    answer = as_answered(evaluation)
    document = evaluation_document(answer)
    if where is not None:
        # The simulator asks what the whole would do elsewhere, and no slice.
        document = replace(document, sections=[one for one in document.sections if one.id != "simulator"])
    # Curves of data by reference, and of what is merged of it, are kept without its samples.
    drawn = kept[0] or not answer["input"].keys().isdisjoint((DATA_FACT, MERGED_FACT))
    said = {"answer": answer, "sliceable": kept[1], "where": where, "query": {SLICE: where}}
    said["places"] = _places(Subject.EVALUATION, answer, drawn=drawn)
    return write("run.html", web, **view(document, web.at), **said)


@router.get("/evaluations/{identifier}/figures")
async def show_figures(identifier: UUID, request: Request, context: UseSlice) -> Response:
    """Show the figures of an evaluation. Its page loads them behind everything else."""
    # No figure shows more of the report than what follows from the matrix.
    (read,) = await context.services.evaluations.read_matrices(context.project, [identifier])
    answer = as_answered(read)
    title, on = run_name(answer["model"]), f"on {dataset_name(answer['dataset'])}"
    page = {"path": f"evaluations/{identifier}", "of": "The run", "title": title, "on": on}
    pictures = await pictures_of_evaluation(context, identifier, answer)
    return _figures(request, "runs", page, pictures, query={SLICE: _slice_of(request)})


def _figures(request: Request, current: str, page: Json, pictures: Sequence[Picture], **values: Any) -> Response:
    """Return the page of figures alone, with a link to what they are of."""
    return render(request, "figures.html", current, page=page, pictures=pictures, **values)


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
    known = [*attributes_of(source, "/by")]
    chosen = by or known[:_SLICED_BY]
    metrics = tuple(one for one in metric or () if one)
    asked = SlicesQuestion(by=tuple(chosen), depth=depth, metrics=metrics, reference=reference)
    form = {"id": identifier, "attributes": known, "asked": asked}
    answer = as_answered(await context.services.compute.run(partial(judge_slices, source, asked, identifier)))
    pictures = await pictures_of_answer(context, Subject.SLICES, answer)
    of = run_title(as_answered(await context.services.evaluations.names(context.project, identifier)))
    written = partial(_written_slices, answer, of, form, Web.of(request, "runs"), pictures)
    return respond(await context.services.compute.run(written))


def _written_slices(answer: Json, of: str, form: Json, web: Web, pictures: Sequence[Picture]) -> bytes:
    document = replace(slices_document(answer), on=f"of {of}")
    return write("slices.html", web, **view(document, web.at), form=form, pictures=pictures)


_FORMS: Final = {"json": Media.JSON, "csv": Media.CSV, "md": Media.MARKDOWN}


@router.get("/evaluations/{identifier}/report")
async def download_report(
    identifier: UUID, context: UseSlice, form: Literal["html", "json", "csv", "md"] = "html"
) -> Response:
    """Give the report as one file, which can be attached to a ticket."""
    if form == "html":
        return attached(await evaluation_page(context, identifier), identifier)
    evaluation = await context.services.evaluations.read(context.project, identifier)
    return attached(await evaluation_answer(View(EVALUATION, _FORMS[form]), evaluation), identifier, form)


_MOST_NAMED = 4


@router.get("/comparisons")
async def show_comparisons(
    request: Request, context: UseContext, cursor: Cursor = None, evaluation: UUID | None = None
) -> Response:
    """List the comparisons, those of one run where it is named, latest first."""
    read = partial(context.services.comparisons.page, context.project, ComparisonFilter(evaluation))
    filters = {"list": "comparisons", "evaluation": str(evaluation)}
    found = await read_page(read, _ON_A_PAGE, cursor, filters, UUID)
    page = {
        "title": "Comparisons",
        "of": evaluation,
        "address": {"evaluation": evaluation},
        "items": found.items,
        "most": _MOST_NAMED,
        "next": found.next_cursor,
    }
    return render(request, "comparisons.html", "comparisons", page=page)


@router.get("/comparisons/{identifier}")
async def show_comparison(identifier: UUID, request: Request, context: UseContext) -> Response:
    """Show a comparison: who is better by what, values, differences with intervals."""
    answer = as_answered(await context.services.comparisons.read(context.project, identifier))
    written = partial(_written, "document.html", Subject.COMPARISON, answer, Web.of(request, "comparisons"))
    return respond(await context.services.compute.run(written))


_DOCUMENTS: Final = {Subject.COMPARISON: comparison_document, Subject.HISTORY: history_document}


def _written(template: str, subject: Subject, answer: Json, web: Web, **values: Any) -> bytes:
    """Return the page of an answer whose figures are loaded behind everything else."""
    places = _places(subject, answer)
    return write(template, web, **view(_DOCUMENTS[subject](answer), web.at), places=places, answer=answer, **values)


def _places(subject: Subject, answer: Json, *, drawn: bool = True) -> list[tuple[int, bool]]:
    """Return the height of each figure to come, and whether it is broad; ``drawn``: also those of samples are."""
    names = figures_shown(subject, answer)
    kept = names if drawn else without_samples(names)
    plots = [PLOTS[subject, name] for name in kept]
    return [(one.room(answer), one.broad) for one in plots] + [(UNKEPT_ROOM, False)] * (kept != names)


@router.get("/comparisons/{identifier}/figures")
async def show_comparison_figures(identifier: UUID, request: Request, context: UseContext) -> Response:
    """Show the figures of a comparison. Its page loads them behind everything else."""
    answer = as_answered(await context.services.comparisons.read(context.project, identifier))
    page = {"path": f"comparisons/{identifier}", "of": "The comparison", "title": "Figures"}
    return _figures(request, "comparisons", page, await pictures_of_answer(context, Subject.COMPARISON, answer))


_Model = Annotated[str, Query(min_length=1, max_length=256), SOUGHT]


@router.get("/history")
async def show_history(request: Request, context: UseContext, model: _Model, asked: AskedHistory) -> Response:
    """Show a model over time: did it change, when, and is it the model or the world?"""
    answer = await _history_of(context, model, asked)
    written = partial(_written, "history.html", Subject.HISTORY, answer, Web.of(request, "runs"))
    again = {"path": "history", "query": _asked_again(request)}
    asked_for = list(answer["items"][0]["metrics"])
    return respond(await context.services.compute.run(partial(written, **again, asked=asked_for)))


@router.get("/history/figures")
async def show_history_figures(request: Request, context: UseContext, model: _Model, asked: AskedHistory) -> Response:
    """Show the figures of a history. Its page loads them behind everything else."""
    answer = await _history_of(context, model, asked)
    on = f"on {dataset_name(answer['dataset'], version=True)}"
    page = {"path": "history", "of": "The history", "title": printable(model), "on": on}
    pictures, above = await pictures_of_answer(context, Subject.HISTORY, answer), headed(section_of_figures(answer))
    return _figures(request, "runs", page, pictures, **above, query=_asked_again(request))


async def _history_of(context: Context, model: str, asked: HistoryQuery) -> Json:
    metrics = asked.metrics
    if not metrics:
        # Of two classes what is found, what alerts are worth, and the share.
        wanted = EvaluationQuery(model=model, dataset=asked.dataset.name, limit=1)
        found = (await context.services.evaluations.page(context.project, wanted)).items
        positive = found[0].input.positive if found else None
        metrics = () if positive is None else tuple(f"{key}@{write_label(positive)}" for key in _USUAL)
    return as_answered(await read_history(context, replace(asked, model=model, metrics=metrics)))


_USUAL: Final = (RECALL, PRECISION, SHARE)


def _asked_again(request: Request) -> dict[str, list[str]]:
    """Return the parameters of a page, for one of the same thing."""
    return {name: request.query_params.getlist(name) for name in request.query_params}


# Words are one text, not a row of letters; what the converter has no name for is an operator by its name.
_WORD: Final = re.compile(r"\\mathrm\{([^{}\\]{2,})\}")
_UNKNOWN: Final = re.compile(r"\\arg(?![a-zA-Z])")


@cache
def formula(latex: str, *, inline: bool = False) -> Markup:
    """A formula of a card; raises ValueError where it is written in a way that is not understood."""
    # Whoever never shows a formula does not load the table of all signs.
    convert = import_module("latex2mathml.converter").convert
    text = _UNKNOWN.sub(lambda _: r"\operatorname{arg}", _WORD.sub(r"\\text{\1}", latex))
    made: str = convert(text, display="inline" if inline else "block")
    if "\\" in made or "&#x0005C;" in made:
        raise ValueError(f"expected a formula of known signs, got {latex}")
    return Markup(made)  # noqa: S704 - cards are the service's own, and the converter escapes their texts


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
    found = find_metrics(**asdict(filters))
    groups = [
        (words, [metric for metric in found if metric.card.prevalence == kind]) for kind, words in _PREVALENCE.items()
    ]
    combined: Any = as_answered(combinations()) if filters == MetricFilters() else []
    page = {
        "title": "Metrics",
        "count": len(found),
        "groups": [(words, lines) for words, lines in groups if lines],
        "combinations": [{**one, "drawn": formula(one["formula"], inline=True)} for one in combined],
        "q": filters.text or "",
        "choices": [
            ("prevalence", "With prevalence", filters.prevalence, _PREVALENCE),
            ("task", "Judges", filters.task, TASKS),
            ("scope", "Of", filters.scope, _SCOPES),
        ],
    }
    return render(request, "metrics.html", "metrics", page=page)


@router.get("/metrics/choose")
async def show_questions(
    request: Request,
    task: Annotated[Literal["classification", "multilabel", "clustering", "ranking", "sets"] | None, Query()] = None,
    answers: Annotated[list[str] | None, Query(alias="answer", max_length=10)] = None,
) -> Response:
    """Ask one question after the other, and recommend metrics at the end."""
    page: dict[str, Any] = {"title": "Which metric?", "task": task, "tasks": trees().words["task"]}
    if task is not None:
        given = {}
        for about, colon, said in (one.partition(":") for one in answers or ()):
            if not colon:
                raise InvalidQuery.at("answer", "invalid_answer", _WANTED)
            given[about] = said
        path, question = walk(task, given)
        page |= {
            "path": path,
            "given": [f"{fork.about}:{branch.said}" for fork, branch in path],
            "question": question,
            "advice": None if question is not None else as_answered(recommended(task, given)),
            "names": lambda key: metric_by_name(key).card.name,
        }
    return render(request, "choose.html", "metrics", page=page)


_WANTED: Final = "expected what it is about and the answer: balanced:yes"


@router.get("/metrics/{key}")
async def show_metric(key: str, request: Request, task: Task = None) -> Response:
    """Show everything that is declared of a metric."""
    metric = metric_by_name(key, task)
    card = as_answered(describe_metric(metric))
    symbol = card["symbol"] or ""
    page = {
        "title": card["name"],
        "card": card,
        # A formula if it is more than letters.
        "symbol": formula(symbol, inline=True) if re.search(r"[\\_^]", symbol) else symbol,
        "formula": formula(card["formula"]),
        "prevalence": _PREVALENCE,
        "tasks": TASKS,
        "scopes": _SCOPES,
    }
    return render(request, "metric.html", "metrics", page=page)


@router.get("/{rest:path}")
async def show_missing(rest: str) -> Response:
    """Say that there is no such page."""
    raise NotFound(f"there is no page {rest[:100]!r}")


def install(app: FastAPI) -> None:
    """Serve the pages."""
    install_files(app)
    install_forms(app)
    for each in (home.router, compare.router, simulator.router, gates.router, router):
        app.router.routes.extend(each.routes)
