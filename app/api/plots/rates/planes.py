"""The plane of two rates: curves of equal means through the point of a run, and how metrics lie over it."""

from collections.abc import Iterator
from typing import Final

from app.api.documents.reading import shown
from app.api.plots.look import Figure, Spec
from app.api.plots.marks import DASHES, RATES, SQUARE, STROKES, Row, by_run, data, in_order, rate, sentences
from app.api.plots.registry import Given, Json, Needs, Run, as_answered, class_of, figure
from app.domain.errors import NoFigure
from app.domain.named_metrics import RECALL, SPECIFICITY
from app.domain.wording import name, number
from app.services.decide.h_mean_bounds import isocurves as isocurves_through

_STEPS: Final = 201
# The means as the answer names them, what they are called, and the dashes of their lines.
MEANS: Final = {
    "balanced_accuracy": ("A, arithmetic mean", DASHES[0]),
    "g_mean": ("G, geometric mean", DASHES[1]),
    "h_mean": ("H, harmonic mean", DASHES[2]),
}


@figure("isocurves", needs=Needs.REPORT, several=True, by_class=True)
def isocurves(given: Given) -> Figure:
    """Curves of equal arithmetic, geometric and harmonic mean of both rates, through the point of the run."""
    points = [point_of(given, run) for run in given.runs]
    names = given.names
    rows: list[Row] = []
    levels: list[Json] = []
    for (tpr, tnr), caption in zip(points, names, strict=True):
        answer = as_answered(isocurves_through(tpr, tnr, _STEPS))
        levels.append({key: answer[key]["level"] for key in MEANS})
        rows += _curves(answer, caption)
    look, several = given.look, len(names) > 1
    label = given.run.report["input"]["labels"][class_of(given, given.run)]
    legends = [told for told, _ in MEANS.values()]
    colour = by_run(names, look)
    dash: Spec = {
        "field": "mean",
        "type": "nominal",
        "scale": {"domain": legends, "range": [dashes for _, dashes in MEANS.values()]},
        "legend": {"title": None, "labelLimit": 200, **STROKES, **({"columns": 1} if several else {})},
    }
    marked = [{"run": caption, "x": 1.0 - tnr, "y": tpr} for (tpr, tnr), caption in zip(points, names, strict=True)]
    return Figure(
        title=f"Curves of equal means through the {'runs' if several else 'run'}",
        subtitle=(given.heading, f"class {name(shown(label))} against the rest"),
        text=sentences(
            f"Class {name(shown(label))} against the rest.",
            *(
                _told(caption if several else "", point, level)
                for caption, point, level in zip(names, points, levels, strict=True)
            ),
        ),
        body={
            "width": look.width or SQUARE,
            "height": look.height or SQUARE,
            "encoding": {
                "x": rate("x", "false positive rate", ticks=RATES),
                "y": rate("y", "true positive rate", ticks=RATES),
            },
            "layer": [
                {
                    "name": "curves",
                    "data": data(rows),
                    "mark": {"type": "line", "strokeWidth": 1.75, "strokeCap": "butt"},
                    "encoding": {"order": in_order(), "color": colour, "strokeDash": dash},
                },
                {
                    "name": "runs",
                    "data": data(marked),
                    "mark": {"type": "point", "filled": True, "size": 90},
                    "encoding": {"color": colour},
                },
            ],
        },
    )


def point_of(given: Given, run: Run) -> tuple[float, float]:
    """True positive and true negative rate of the class."""
    report = run.report
    labels = report["input"]["labels"]
    label = labels[class_of(given, run)]
    values = {key: value for group in report["per_class"][label].values() for key, value in group.items()}
    tpr, tnr = values.get(RECALL), values.get(SPECIFICITY)
    if tpr is None or tnr is None:
        raise NoFigure(f"class {name(shown(label))} has no recall, or no specificity, and so no point in this plane")
    return tpr, tnr


def points_on(answer: Json, key: str) -> Iterator[tuple[float, float]]:
    """False and true positive rate of the points of one mean, where it has any."""
    for fpr, tpr in zip(answer["fpr"], answer[key]["tpr"], strict=True):
        if tpr is not None:
            yield fpr, tpr


def _curves(answer: Json, caption: str) -> list[Row]:
    return [
        {"run": caption, "mean": told, "x": x, "y": y, "point": place}
        for key, (told, _) in MEANS.items()
        for place, (x, y) in enumerate(points_on(answer, key))
    ]


def _told(caption: str, point: tuple[float, float], level: Json) -> str:
    before = f"{caption}: true" if caption else "True"
    values = ", ".join(f"{told[0]} {number(level[key])}" for key, (told, _) in MEANS.items())
    return f"{before} positive rate {number(point[0])}, true negative rate {number(point[1])}: {values}."
