"""What the probabilities are worth: reliability with bands, and the MCP and IMCP curves with the class of each bar."""

from typing import Final

from app.api.plots.classes import zones
from app.api.plots.look import Figure, Spec
from app.api.plots.marks import HIGH, SQUARE, WIDE, Row, apart, by_run, data, in_order, reference, sentences
from app.api.plots.registry import Given, Json, Needs, Run, figure
from app.api.texts.lines import number, shown
from app.domain.wording import name, percent
from app.services.decide.curves import BandForm, CurveName, CurveQuestion

# Bars are drawn with the widths that they have in the full data, so that few of them may be left out.
_MOST_BARS: Final = 500
# As many classes have a colour of their own; of more, the one of the lowest values has one.
_COLOURED: Final = 5
_UNIT: Final = [0, 0.5, 1]


@figure(CurveName.CALIBRATION, needs=Needs.SAMPLES, several=True, by_class=True)
def calibration(given: Given) -> Figure:
    """Reliability: how often the stated probabilities come true, with limits, and how many samples state them."""
    answers = [_reliability(run, given.label) for run in given.runs]
    rows = [row for answer, caption in zip(answers, given.names, strict=True) for row in _bins(answer, caption)]
    look, several = given.look, len(given.runs) > 1
    band = answers[0]["band"]
    first = answers[0]
    of = f"class {name(shown(first['class']))}" if first["class"] is not None else "the predicted class"
    colour = by_run(given.names, look)
    x = {"axis": {"title": first["axes"]["x"], "values": _UNIT, "format": "~g"}, "scale": {"domain": [0, 1]}}
    y = {"axis": {"title": first["axes"]["y"], "values": _UNIT, "format": "~g"}, "scale": {"domain": [0, 1]}}
    layers: list[Spec] = [
        reference([{"x": 0, "y": 0}, {"x": 1, "y": 1}]),
        {
            "name": "limits",
            "data": data(row for row in rows if row["low"] is not None),
            "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.55},
            "encoding": {"y": {"field": "low", "type": "quantitative", **y}, "y2": {"field": "high"}, "color": colour},
        },
        {
            "name": "curves",
            "data": data(rows),
            "mark": {"type": "line", "strokeWidth": 1.5},
            "encoding": {"order": in_order(), "color": colour},
        },
        {
            "data": data(rows),
            "mark": {"type": "point", "filled": True, "opacity": 1},
            "encoding": {
                "color": colour,
                "size": {
                    "field": "weight",
                    "type": "quantitative",
                    "scale": {"domain": [0, 1], "range": [16, 700]},
                    "legend": None,
                },
            },
        },
    ]
    limits = f"{percent(band['level'], None)} intervals" if band else ""
    reading = f"{of}; dashed: as stated; the size of a dot is its share of the samples"
    return Figure(
        title="Reliability of the probabilities",
        subtitle=(given.heading, "; ".join(one for one in (reading, limits) if one)),
        text=sentences(
            f"Reliability of the probabilities of {of}.",
            *(_told(answer, caption if several else "") for answer, caption in zip(answers, given.names, strict=True)),
        ),
        body={
            "width": look.width or SQUARE,
            "height": look.height or SQUARE,
            "encoding": {
                "x": {"field": "x", "type": "quantitative", **x},
                "y": {"field": "y", "type": "quantitative", **y},
            },
            "layer": layers,
        },
    )


def _reliability(run: Run, label: str | None) -> Json:
    return run.curve(CurveQuestion(name=CurveName.CALIBRATION, label=label, band=BandForm.POINTWISE))


def _bins(answer: Json, caption: str) -> list[Row]:
    size = len(answer["x"])
    low, high, weights = (answer.get(member) or [None] * size for member in ("low", "high", "weights"))
    return [
        {
            "run": caption,
            "x": x,
            "y": y,
            "low": low[place],
            "high": high[place],
            "weight": weights[place],
            "point": place,
        }
        for place, (x, y) in enumerate(zip(answer["x"], answer["y"], strict=True))
    ]


def _told(answer: Json, caption: str) -> str:
    """The bin that most samples are in, and what is off on the whole."""
    weights = answer["weights"] or [1.0] * len(answer["x"])
    place = max(range(len(weights)), key=weights.__getitem__)
    before = f"{caption}: " if caption else ""
    said = f"{before}where most samples are ({percent(weights[place], 0)}), {number(answer['x'][place])} is stated "
    said += f"and {number(answer['y'][place])} comes true."
    if answer["area"] is not None:
        said += f" Stated and true probabilities differ by {number(answer['area'])} on average."
    return said[0].upper() + said[1:] if not caption else said


@figure(CurveName.IMCP, needs=Needs.SAMPLES)
def imcp(given: Given) -> Figure:
    """The IMCP curve: closeness of the probabilities to the truth, every class taking the same room."""
    return _bars(given, CurveName.IMCP, "IMCP curve")


@figure(CurveName.MCP, needs=Needs.SAMPLES)
def mcp(given: Given) -> Figure:
    """The MCP curve: closeness of the probabilities to the truth, every sample taking the same room."""
    return _bars(given, CurveName.MCP, "MCP curve")


def _bars(given: Given, curve: CurveName, title: str) -> Figure:
    run, look = given.run, given.look
    answer = run.curve(CurveQuestion(name=curve, max_points=_MOST_BARS))
    rows = _bar_rows(answer, run.samples.labels)
    right = answer["references"]["certainly_right_above"][0]
    wrong = answer["references"]["certainly_wrong_below"][0]
    regions = ""
    if answer["n_points"] == len(answer["x"]):
        # Else points were left out, and only the full data could say it.
        below, above = _regions(rows, right, wrong)
        regions = f"{percent(below, 1)} of the room lies where the true class could not win (below {number(wrong)}), "
        regions += f"and {percent(above, 1)} where nothing else could (above {number(right)})."
    left_out = "" if regions else f", {len(rows):,} of {answer['n_points'] - 2:,}"
    names, colours = _class_colours(given, rows)
    axis = {"title": answer["axes"]["y"], "values": [0, round(wrong, 3), round(right, 3), 1], "format": ".3~g"}
    return Figure(
        title=title,
        subtitle=(
            given.heading,
            f"area {number(answer['area'])}; below the curve, the class of each sample" + left_out,
        ),
        text=sentences(
            f"{title}: area {number(answer['area'])}.",
            regions,
        ),
        body={
            "width": look.width or WIDE,
            "height": look.height or HIGH,
            "encoding": {
                "x": {
                    "field": "x",
                    "type": "quantitative",
                    "scale": {"domain": [0, 1]},
                    "axis": {"title": answer["axes"]["x"], "format": "~%", "values": _UNIT},
                },
                "y": {"field": "y", "type": "quantitative", "scale": {"domain": [0, 1]}, "axis": axis},
            },
            "layer": [
                *zones(look, right, wrong, upright=True),
                {
                    "name": "bars",
                    "data": data({**row, "from": 0} for row in rows),
                    "mark": {"type": "rect", "opacity": 0.45, "stroke": None},
                    "encoding": {
                        "x": {"field": "start", "type": "quantitative"},
                        "x2": {"field": "end"},
                        "y2": {"field": "from"},
                        "color": {
                            "field": "shown",
                            "type": "nominal",
                            "scale": {"domain": names, "range": colours},
                            "legend": {"title": None, "labelLimit": 200},
                        },
                    },
                },
                {
                    "name": "curves",
                    "data": data(
                        {"x": x, "y": y, "point": place}
                        for place, (x, y) in enumerate(zip(answer["x"], answer["y"], strict=True))
                    ),
                    "mark": {"type": "line", "color": look.ink, "strokeWidth": 1.75},
                    "encoding": {"order": in_order()},
                },
            ],
        },
    )


def _bar_rows(answer: Json, labels: tuple[str, ...]) -> list[Row]:
    told = dict(zip(labels, apart(labels), strict=True))
    bars = zip(answer["x"], answer["y"], answer["classes"], answer["widths"], strict=True)
    return [
        {"x": x, "y": y, "class": told[label], "start": x - width / 2, "end": x + width / 2, "width": width}
        for x, y, label, width in bars
        if label is not None and width
    ]


def _regions(rows: list[Row], right: float, wrong: float) -> tuple[float, float]:
    """Shares of the room below and above the regions' bounds."""
    whole = sum(row["width"] for row in rows) or 1.0
    below = sum(row["width"] for row in rows if row["y"] < wrong)
    return below / whole, sum(row["width"] for row in rows if row["y"] > right) / whole


def _class_colours(given: Given, rows: list[Row]) -> tuple[list[str], list[str]]:
    """The classes that have a colour of their own, and what is shown of each row."""
    found = list(dict.fromkeys(row["class"] for row in rows))
    # Without the ink, which is the curve itself.
    colours = [colour for colour in given.look.series if colour != given.look.ink]
    if len(found) <= _COLOURED:
        names = sorted(found)
        for row in rows:
            row["shown"] = row["class"]
        return names, colours[: len(names)]
    values: dict[str, list[float]] = {label: [] for label in found}
    for row in rows:
        values[row["class"]].append(row["y"])
    lowest = min(found, key=lambda label: sum(values[label]) / len(values[label]))
    for row in rows:
        row["shown"] = lowest if row["class"] == lowest else _OTHERS
    return [lowest, _OTHERS], [given.look.accent, given.look.quiet]


_OTHERS: Final = "other classes"
