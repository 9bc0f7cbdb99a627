"""Reliability of the probabilities, with limits: how often they come true."""

from typing import Final

from app.api.documents.reading import shown
from app.api.plots.look import Figure, Spec
from app.api.plots.marks import NUMBERS, SQUARE, Row, by_run, data, in_order, reference, sentences
from app.api.plots.registry import Given, Json, Needs, Run, figure
from app.domain.wording import name, number, percent, share
from app.services.decide.curves import BandForm, CurveName, CurveQuestion, has_band

_UNIT: Final = [0, 0.5, 1]


@figure(CurveName.CALIBRATION, needs=Needs.SAMPLES, several=True, by_class=True)
def calibration(given: Given) -> Figure:
    """Reliability: how often the stated probabilities come true, with limits, and how many samples state them."""
    answers = [_reliability(run, given.label) for run in given.runs]
    rows = [row for answer, caption in zip(answers, given.names, strict=True) for row in _bins(answer, caption)]
    look, several = given.look, len(given.runs) > 1
    band = answers[0].get("band")
    first = answers[0]
    of = f"class {name(shown(first['class']))}" if first["class"] is not None else "the predicted class"
    colour = by_run(given.names, look)
    x = {"axis": {"title": first["axes"]["x"], "values": _UNIT, "format": NUMBERS}, "scale": {"domain": [0, 1]}}
    y = {"axis": {"title": first["axes"]["y"], "values": _UNIT, "format": NUMBERS}, "scale": {"domain": [0, 1]}}
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
    band = BandForm.POINTWISE if has_band(run.samples) else None
    return run.curve(CurveQuestion(name=CurveName.CALIBRATION, label=label, band=band))


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
    said = f"{before}where most samples are ({share(weights[place])}), {number(answer['x'][place])} is stated "
    said += f"and {number(answer['y'][place])} comes true."
    if answer["area"] is not None:
        said += f" Stated and true probabilities differ by {number(answer['area'])} on average."
    return said[0].upper() + said[1:] if not caption else said
