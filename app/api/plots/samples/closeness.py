"""How close the probabilities come to the truth: the MCP and IMCP curves, of all classes with their bars, or of one."""

from typing import Any, Final

from app.api.documents.reading import shown
from app.api.plots.classes import zones, zones_said
from app.api.plots.look import Figure, Spec
from app.api.plots.marks import HIGH, WIDE, Row, apart, data, in_order, sentences
from app.api.plots.registry import Given, Json, Needs, figure, weakest_first
from app.domain.wording import name, number, percent
from app.services.decide.curves import CurveName, CurveQuestion

# Bars are drawn with the widths that they have in the full data, so that few of them may be left out.
_MOST_BARS: Final = 500
# As many classes have a colour of their own; of more, the one of the lowest recall has one.
_COLOURED: Final = 5
_TITLES: Final = {CurveName.IMCP: "IMCP curve", CurveName.MCP: "MCP curve"}
_OTHERS: Final = "other classes"


@figure(CurveName.IMCP, needs=Needs.SAMPLES, by_class=True)
def imcp(given: Given) -> Figure:
    """The IMCP curve: closeness of the probabilities to the truth, every class taking the same room; of one class its
    samples at their places among all.
    """
    return _of_all(given, CurveName.IMCP) if given.label is None else _of_class(given, CurveName.IMCP, given.label)


@figure(CurveName.MCP, needs=Needs.SAMPLES, by_class=True)
def mcp(given: Given) -> Figure:
    """The MCP curve: closeness of the probabilities to the truth, every sample taking the same room; of one class the
    curve of its samples alone.
    """
    return _of_all(given, CurveName.MCP) if given.label is None else _of_class(given, CurveName.MCP, given.label)


def _of_all(given: Given, curve: CurveName) -> Figure:
    run, title = given.run, _TITLES[curve]
    answer = run.curve(CurveQuestion(name=curve, max_points=_MOST_BARS))
    rows = _bar_rows(answer, run.samples.labels)
    lowest = _lowest(given, curve, rows)
    names, colours = _class_colours(given, rows, lowest)
    colour: Spec = {
        "field": "shown",
        "type": "nominal",
        "scale": {"domain": names, "range": colours},
        # Long names stand one below the other.
        "legend": {"title": None, "labelLimit": 300, "columns": 1 if lowest else 0},
    }
    bars = [_bars(rows, color=colour)]
    if lowest:
        # Of many classes a bar is narrower than a pixel: its edge is seen.
        edge: Spec = {"stroke": colours[0], "strokeWidth": 0.75, "opacity": 0.9}
        bars.append({**_bars(lowest, mark=edge, color=colour), "name": "lowest"})
    return Figure(
        title=title,
        subtitle=(
            given.heading,
            f"area {number(answer['area'])}; below the curve, the class of each sample{_left_out(answer, rows)}",
            zones_said(*_bounds(answer), "below"),
        ),
        text=sentences(f"{title}: area {number(answer['area'])}.", _regions(answer, rows, "the room")),
        body=_body(given, answer, [*bars, _line(answer, "curves", given.look.ink)]),
    )


def _of_class(given: Given, curve: CurveName, label: str) -> Figure:
    run, look, said = given.run, given.look, name(shown(label))
    own = run.curve(CurveQuestion(name=curve, label=label, max_points=_MOST_BARS))
    every = run.curve(CurveQuestion(name=curve, max_points=_MOST_BARS))
    rows = _bar_rows(own, run.samples.labels)
    among_all = curve is CurveName.IMCP
    # Among all, each class has an equal part of the room, and its area is a part of the whole.
    mean = own["area"] * (len(run.samples.labels) if among_all else 1)
    samples: Spec = {
        "name": "samples",
        "data": data({"x": row["x"], "y": row["y"]} for row in rows),
        "mark": {"type": "point", "filled": True, "size": 20, "color": look.accent, "opacity": 1},
    }
    # Of many classes a bar is narrower than a pixel: its edge is seen.
    bars = _bars(rows, mark={"color": look.accent, "stroke": look.accent, "strokeWidth": 0.75})
    places = "its samples at their places among all" if among_all else "its samples alone"
    part = f", area {number(own['area'])} of {number(every['area'])} of all classes" if among_all else ""
    return Figure(
        title=f"{_TITLES[curve]}, class {said}",
        subtitle=(
            given.heading,
            f"{places}{_left_out(own, rows)}; mean phi {number(mean)}; line: all classes",
            zones_said(*_bounds(own), "below"),
        ),
        text=sentences(
            f"{_TITLES[curve]} of class {said}: mean phi {number(mean)}{part}.", _regions(own, rows, "its room")
        ),
        body=_body(
            given, own, [_line(every, "every", look.quiet), bars, samples if among_all else _line(own, "curves")]
        ),
    )


def _bar_rows(answer: Json, labels: tuple[str, ...]) -> list[Row]:
    told = dict(zip(labels, apart(labels), strict=True))
    bars = zip(answer["x"], answer["y"], answer["classes"], answer["widths"], strict=True)
    return [
        {"x": x, "y": y, "class": told[label], "start": x - width / 2, "end": x + width / 2, "width": width}
        for x, y, label, width in bars
        if label is not None and width
    ]


def _left_out(answer: Json, rows: list[Row]) -> str:
    """How many samples are drawn, where not all are."""
    if answer["n_points"] == len(answer["x"]):
        return ""
    ends = len(answer["x"]) - len(rows)
    return f", {len(rows):,} of {answer['n_points'] - ends:,}"


def _regions(answer: Json, rows: list[Row], room: str) -> str:
    """Shares of the room below and above the regions' bounds."""
    if answer["n_points"] != len(answer["x"]):
        # Points were left out, and only the full data could say it.
        return ""
    right, wrong = _bounds(answer)
    whole = sum(row["width"] for row in rows) or 1.0
    below = sum(row["width"] for row in rows if row["y"] < wrong) / whole
    above = sum(row["width"] for row in rows if row["y"] > right) / whole
    return (
        f"{percent(below, 1)} of {room} lies where the true class could not win (below {number(wrong)}), "
        f"and {percent(above, 1)} where nothing else could (above {number(right)})."
    )


def _bounds(answer: Json) -> tuple[float, float]:
    """1 - eta and 1 - theta."""
    found = answer["references"]
    return found["certainly_right_above"][0], found["certainly_wrong_below"][0]


def _body(given: Given, answer: Json, layers: list[Spec]) -> Spec:
    look, (right, wrong) = given.look, _bounds(answer)
    unit: Spec = {"domain": [0, 1]}
    return {
        "width": look.width or WIDE,
        "height": look.height or HIGH,
        "encoding": {
            "x": {
                "field": "x",
                "type": "quantitative",
                "scale": unit,
                "axis": {"title": answer["axes"]["x"], "format": "~%", "values": [0, 0.5, 1]},
            },
            "y": {
                "field": "y",
                "type": "quantitative",
                "scale": unit,
                "axis": {
                    "title": answer["axes"]["y"],
                    "values": [0, round(wrong, 3), round(right, 3), 1],
                    "format": ".3~r",
                },
            },
        },
        "layer": [*zones(look, right, wrong, upright=True), *layers],
    }


def _bars(rows: list[Row], *, mark: Spec | None = None, **channels: Any) -> Spec:
    return {
        "name": "bars",
        "data": data({**row, "from": 0} for row in rows),
        "mark": {"type": "rect", "opacity": 0.45, "stroke": None, **(mark or {})},
        "encoding": {
            "x": {"field": "start", "type": "quantitative"},
            "x2": {"field": "end"},
            "y2": {"field": "from"},
            **channels,
        },
    }


def _line(answer: Json, called: str, colour: str | None = None) -> Spec:
    points = enumerate(zip(answer["x"], answer["y"], strict=True))
    return {
        "name": called,
        "data": data({"x": x, "y": y, "point": place} for place, (x, y) in points),
        "mark": {"type": "line", "strokeWidth": 1.75, **({} if colour is None else {"color": colour})},
        "encoding": {"order": in_order()},
    }


def _lowest(given: Given, curve: CurveName, rows: list[Row]) -> list[Row]:
    """The bars of the class with the lowest recall, where there are more classes than colours."""
    source = given.run.samples
    if len({row["class"] for row in rows}) <= _COLOURED:
        return []
    place = weakest_first(source)[0]
    if curve is CurveName.MCP:
        return [row for row in rows if row["class"] == apart(source.labels)[place]]
    # All of them, and not only those that are left of all samples.
    own = given.run.curve(CurveQuestion(name=curve, label=source.labels[place], max_points=_MOST_BARS))
    return _bar_rows(own, source.labels)


def _class_colours(given: Given, rows: list[Row], lowest: list[Row]) -> tuple[list[str], list[str]]:
    """The classes that have a colour of their own, and what is shown of each row."""
    look, found = given.look, sorted({row["class"] for row in rows})
    if len(found) <= _COLOURED:
        for row in rows:
            row["shown"] = row["class"]
        # Without the ink, which is the curve itself.
        return found, [colour for colour in look.series if colour != look.ink][: len(found)]
    named = [f"{one}, of the lowest recall" for one in {row["class"] for row in lowest}]
    for row in rows:
        row["shown"] = _OTHERS
    for row in lowest:
        row["shown"] = named[0]
    return [*named, _OTHERS], [look.accent, look.quiet] if named else [look.quiet]
