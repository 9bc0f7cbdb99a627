"""How far two rates are spread around their harmonic mean: the standard deviation of GPS."""

from collections.abc import Sequence
from typing import Final

from app.api.documents.reading import precision_of, recalls_of, shown
from app.api.plots.look import Figure, Look, Spec
from app.api.plots.marks import HIGH, STROKES, WIDE, Row, data, in_order, quantity, sentences
from app.api.plots.registry import Given, Needs, class_of, figure
from app.domain.errors import NoFigure
from app.domain.named_metrics import PRECISION, RECALL
from app.domain.wording import name, number
from app.services.decide.h_mean_bounds import LARGEST, region_from, spread_of_two, spreads

_POINTS: Final = 81
# Reciprocals of the rates: as far as the figure goes, and those with a line of their own.
_FARTHEST: Final = 100.0
_HIGHEST: Final = 10.0
# The steps of the colour begin here.
_LEVELS: Final = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35)
_OTHERS: Final = (1.0, 2.0, 3.0, 5.0, 10.0)
_TICKS: Final = (1, 3, 10, 30, 100)
# On a logarithmic axis only powers of ten would have one.
_LABELS: Final = "format(datum.value, '~g')"


@figure("gps_spread", needs=Needs.REPORT, by_class=True)
def gps_spread(given: Given) -> Figure:
    """Standard deviation of the harmonic mean of two rates (GPS), with the recall and precision of a class."""
    label, recall, precision = _rates(given)
    found = spreads(_OTHERS, _FARTHEST, _POINTS)
    look, names = given.look, [f"1/p = {other:g}" for other in _OTHERS]
    rows: list[Row] = [
        {"line": told, "x": x, "y": y, "point": place}
        for told, values in zip(names, found.of.values(), strict=True)
        for place, (x, y) in enumerate(zip(found.grid.tolist(), values.tolist(), strict=True))
    ]
    spread = spread_of_two(recall, precision)
    lower = min(recall, precision)
    marked: list[Row] = [{"x": 1.0 / lower, "y": spread}] if 1.0 / lower <= _FARTHEST else []
    highest = max(row["y"] for row in rows)
    return Figure(
        title="Standard deviation of the GPS of two rates",
        subtitle=(
            given.heading,
            f"a line for each 1/p of the other; {_dot(label, drawn=bool(marked))}",
        ),
        text=sentences(
            f"Class {label}: {RECALL} {number(recall)} and {PRECISION} {number(precision)}, standard deviation of "
            f"their GPS {number(spread)}.",
            f"The largest that is drawn is {number(highest)}, at rates of {number(1.0 / 3.0)} and 1.",
        ),
        body={
            "width": look.width or WIDE,
            "height": look.height or HIGH,
            "encoding": {
                "x": _reciprocal("x", "one rate", _FARTHEST, _TICKS),
                "y": quantity("y", None, domain=(0.0, 0.4), tickCount=5),
            },
            "layer": [
                {
                    "name": "curves",
                    "data": data(rows),
                    "mark": {"type": "line", "strokeWidth": 1.75},
                    "encoding": {
                        "order": in_order(),
                        "color": {
                            "field": "line",
                            "type": "nominal",
                            "scale": {"domain": names, "range": look.series[: len(names)]},
                            "legend": {"title": None, **STROKES},
                        },
                    },
                },
                {
                    "name": "run",
                    "data": data(marked),
                    "mark": {"type": "point", "filled": True, "size": 90, "color": look.ink, "opacity": 1},
                },
            ],
        },
    )


@figure("gps_spread_surface", needs=Needs.REPORT, by_class=True)
def gps_spread_surface(given: Given) -> Figure:
    """Standard deviation of the harmonic mean of two rates (GPS) over both, seen from above, with the recall and
    precision of a class.
    """
    label, recall, precision = _rates(given)
    look = given.look
    spread, lower, higher = spread_of_two(recall, precision), min(recall, precision), max(recall, precision)
    on_it = 1.0 / lower <= _FARTHEST and 1.0 / higher <= _HIGHEST
    x, y = _reciprocal("x", "one rate", _FARTHEST, _TICKS), _reciprocal("y", "the other", _HIGHEST, _OTHERS)
    return Figure(
        title="Standard deviation of GPS over two rates",
        subtitle=(
            given.heading,
            f"cross: the largest, {number(LARGEST)}; {_dot(label, drawn=on_it)}",
        ),
        text=sentences(
            f"Class {label}: {RECALL} {number(recall)} and {PRECISION} {number(precision)}, standard deviation of "
            f"their GPS {number(spread)}.",
            f"The largest is {number(LARGEST)}, at rates of {number(1.0 / 3.0)} and 1.",
        ),
        body={
            "width": look.width or WIDE,
            "height": look.height or HIGH,
            "encoding": {"x": x, "y": y},
            "layer": [
                _bands(look, "x", "y", horizontal=True),
                _bands(look, "y", "x", horizontal=False),
                {
                    "name": "largest",
                    "data": data([{"x": 3.0, "y": 1.0}]),
                    "mark": {
                        "type": "point",
                        "shape": "cross",
                        "filled": True,
                        "size": 80,
                        "color": look.paper,
                        "stroke": look.ink,
                    },
                },
                {
                    "name": "run",
                    "data": data([{"x": 1.0 / lower, "y": 1.0 / higher}] if on_it else []),
                    "mark": {"type": "point", "filled": True, "size": 90, "color": look.ink, "stroke": look.paper},
                },
            ],
        },
    )


def _dot(label: str, *, drawn: bool) -> str:
    rates = f"{RECALL} and {PRECISION} of class {label}"
    return f"dot: {rates}" if drawn else f"{rates} lie outside"


def _bands(look: Look, along: str, across: str, *, horizontal: bool) -> Spec:
    """The regions from each level on, for the lower rate on one axis."""
    rows: list[Row] = [
        {"from": f"{level:g}", across: one, along: start, "end": end}
        for level in _LEVELS
        for one, start, end in zip(*(side.tolist() for side in region_from(level, _POINTS)), strict=True)
    ]
    names = [f"{level:g}" for level in _LEVELS]
    return {
        "name": f"bands_{along}",
        "data": data(rows),
        "mark": {
            "type": "area",
            "orient": "horizontal" if horizontal else "vertical",
            "opacity": 1,
            "line": False,
            "clip": True,
        },
        "encoding": {
            f"{along}2": {"field": "end"},
            "color": {
                "field": "from",
                "type": "nominal",
                "scale": {"domain": names, "range": look.steps(right=True)},
                "legend": {"title": "standard deviation, from", "symbolType": "square"},
            },
        },
    }


def _reciprocal(field: str, rate: str, farthest: float, ticks: Sequence[float]) -> Spec:
    """The axis of 1/p of a rate, from 1 on, in equal factors."""
    found = quantity(
        field, f"1/p of {rate}", domain=(1.0, farthest), ticks=ticks, labelExpr=_LABELS, labelOverlap=False
    )
    found["scale"] |= {"type": "log"}
    return found


def _rates(given: Given) -> tuple[str, float, float]:
    report = given.run.report
    label = report["input"]["labels"][class_of(given, given.run)]
    recall, precision = recalls_of(report).get(label), precision_of(report, label)
    if not recall or not precision:
        raise NoFigure(f"class {name(shown(label))} has no {RECALL} or {PRECISION} above 0, and so no spread of both")
    return name(shown(label)), recall, precision
