"""The catalogue: metrics with a search, one metric with its formula, and the decision tree to click through."""

import re
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Final, Literal

from fastapi import Query, Request
from markupsafe import Markup
from starlette.responses import Response

from app.api.plots.registry import as_answered
from app.api.problems import InvalidQuery
from app.api.ui.routing import page_routes
from app.api.ui.writing import render
from app.api.v1.listing.metrics import MetricFilters, Task, UseMetricFilters
from app.domain.advice.questions import WORDS, recommended, walk
from app.domain.catalogue import TASKS, combinations, describe_metric, find_metrics, metric_by_name

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


router = page_routes()
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
    """As a formula where it is more than letters."""
    return formula(text, inline=True) if text and re.search(r"[\\_^]", text) else text or ""


def _end(value: float | None, without: str) -> str:
    return without if value is None else f"{value:g}".replace("-", "−")
