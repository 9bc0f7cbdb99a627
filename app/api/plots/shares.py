"""Metrics at other shares of one class."""

from typing import Final

from app.api.documents.reading import shown
from app.api.plots.look import Figure, Spec
from app.api.plots.marks import HIGH, NUMBERS, WIDE, Row, data, in_order, lines_by_run, sentences
from app.api.plots.registry import Given, Json, Needs, Run, figure
from app.domain.errors import NoFigure
from app.domain.named_metrics import ACCURACY, SWEPT
from app.domain.wording import name, number
from app.domain.wording import share as said_share

STEPS: Final = 25
LOWEST_SHARE, HIGHEST_SHARE = 0.01, 0.99
# Of the axis that the name of a line takes.
_NAME_WIDTH: Final = 0.2
_SHARES: Final = [0, 0.25, 0.5, 0.75, 1]


def swept_metrics(runs: int) -> tuple[str, ...]:
    """What is swept: the usual metrics of one run, accuracy alone of several."""
    return SWEPT if runs == 1 else (ACCURACY,)


@figure("prevalence", needs=Needs.SWEEP, several=True, by_class=True)
def prevalence(given: Given) -> Figure:
    """Metrics at every share of one class, with limits; of several runs, their accuracy."""
    single = len(given.runs) == 1
    label = given.run.sweep["sweep"]["class"]
    lines = list(given.run.sweep["metrics"]) if single else given.names
    rows = [
        row for line, run in zip(given.names, given.runs, strict=True) for row in _rows(run, None if single else line)
    ]
    if not rows:
        raise NoFigure("there is nothing to be shown: no metric has a value at these shares of the class")
    look = given.look
    colour = lines_by_run(lines, look)
    sweep = given.run.sweep["sweep"]
    marked: list[Row] = [{"x": sweep["observed"], "said": "this data"}, {"x": sweep["equal"], "said": "equal shares"}]
    low = min([0.0, *(row["low"] for row in rows if row["low"] is not None), *(row["y"] for row in rows)])
    return Figure(
        title=f"If class {name(shown(label))} were rarer, or more frequent",
        subtitle=(given.heading, f"{_what(given)}; shaded: limits; level lines do not move with the class shares"),
        text=sentences(
            f"{'Metrics' if single else 'Accuracy'} at shares of class {name(shown(label))} from "
            f"{said_share(rows[0]['x'])} to {said_share(rows[-1]['x'])}.",
            *(_told(line, rows) for line in lines),
        ),
        body={
            "width": look.width or WIDE + 60,
            "height": look.height or HIGH,
            "encoding": {
                "x": {
                    "field": "x",
                    "type": "quantitative",
                    "scale": {"domain": [0, 1]},
                    "axis": {
                        "title": f"share of class {shown(label)}",
                        "format": "~%",
                        "values": _SHARES,
                    },
                },
                "y": {
                    "field": "y",
                    "type": "quantitative",
                    "scale": {"domain": [low, 1], "nice": False},
                    "axis": {"title": None, "format": NUMBERS, "tickCount": 3},
                },
            },
            "layer": [*_marks(marked), *_lines(rows, colour)],
        },
    )


def _what(given: Given) -> str:
    return "metrics of one run" if len(given.runs) == 1 else ACCURACY


def _rows(run: Run, caption: str | None) -> list[Row]:
    sweep: Json = run.sweep
    return [
        {
            "run": key if caption is None else caption,
            "x": x,
            "y": value,
            "low": _at(values["low"], place),
            "high": _at(values["high"], place),
            "point": place,
        }
        for key, values in sweep["metrics"].items()
        for place, (x, value) in enumerate(zip(sweep["grid"], values["value"], strict=True))
        if value is not None
    ]


def _at(values: list[float | None] | None, place: int) -> float | None:
    return None if values is None else values[place]


def _marks(marked: list[Row]) -> list[Spec]:
    """Where this data lies, and where all classes have equal shares; the names at the foot, since most lines are near
    the top.
    """
    text: Spec = {"type": "text", "style": "note", "baseline": "bottom"}
    left, right = sorted(marked, key=lambda one: float(one["x"]))
    named: list[Row] = [{**left, "align": "left"}, {**right, "align": "left"}]
    if right["x"] - left["x"] < _NAME_WIDTH:
        # The name at the left would be crossed by the other line.
        aside = left["x"] > _NAME_WIDTH
        named[0] |= {"align": "right"} if aside else {"x": right["x"], "said": f"{left['said']}, {right['said']}"}
        named = named if aside else named[:1]
    return [
        {
            "data": data(marked),
            "mark": {"type": "rule", "style": "reference"},
            "encoding": {"y": {"value": 0}, "y2": {"value": "height"}},
        },
        *(
            {
                "data": data([one]),
                "mark": {**text, "align": one["align"], "dx": 3 if one["align"] == "left" else -3, "dy": -3},
                "encoding": {"y": {"value": "height"}, "text": {"field": "said", "type": "nominal"}},
            }
            for one in named
        ),
    ]


def _lines(rows: list[Row], colour: Spec) -> list[Spec]:
    return [
        {
            "name": "limits",
            "data": data(row for row in rows if row["low"] is not None and row["high"] is not None),
            "mark": {"type": "area", "opacity": 0.13},
            "encoding": {
                "y": {"field": "low", "type": "quantitative"},
                "y2": {"field": "high"},
                "color": colour["color"],
            },
        },
        {
            "name": "curves",
            "data": data(rows),
            "mark": {"type": "line"},
            "encoding": {"order": in_order(), **colour},
        },
    ]


def _told(line: str, rows: list[Row]) -> str:
    mine = [row for row in rows if row["run"] == line]
    if not mine:
        return ""
    first, last = mine[0], mine[-1]
    return f"{line}: {number(first['y'])} at {said_share(first['x'])}, {number(last['y'])} at {said_share(last['x'])}."
