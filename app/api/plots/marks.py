"""Parts that many figures share: axes, rows of data, references, names that can be told apart."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from app.api.documents.reading import shown
from app.api.plots.look import Look, Spec
from app.domain.wording import percent

Row = dict[str, Any]
# Drawing area of a figure with two axes from 0 to 1, and of one that lists.
SQUARE: Final = 320
WIDE, HIGH, ROW_HEIGHT = 352, 252, 22
RATES: Final = [0, 0.5, 1]
# As many digits as the ticks need, and never an exponent, which "g" has from 10 on.
NUMBERS: Final = ",~r"
# Dashes of lines that have one colour, and strokes of legends that are long enough to show them.
DASHES: Final = ([1, 0], [6, 3], [2, 3], [10, 3, 2, 3])
STROKES: Final[Spec] = {"symbolType": "stroke", "symbolOpacity": 1, "symbolSize": 400}


def data(rows: Iterable[Row]) -> Spec:
    """Rows inside the specification."""
    return {"values": list(rows)}


def rate(field: str, title: str | None, *, ticks: Sequence[float] = RATES, **axis: Any) -> Spec:
    """A quantity between 0 and 1."""
    return quantity(field, title, domain=(0.0, 1.0), ticks=ticks, **axis)


def quantity(
    field: str,
    title: str | None,
    *,
    domain: tuple[float, float] | None = None,
    ticks: Sequence[float] | None = None,
    **axis: Any,
) -> Spec:
    """A quantity on an axis of its own."""
    shown_axis: Spec = {"title": title, "format": NUMBERS, **axis}
    if ticks is not None:
        shown_axis["values"] = list(ticks)
    scale: Spec = {"nice": False} if domain is None else {"domain": list(domain), "nice": False}
    return {"field": field, "type": "quantitative", "axis": shown_axis, "scale": {"zero": False, **scale}}


def listed(field: str, order: Sequence[str], **axis: Any) -> Spec:
    """Names, one row or column each, in this order."""
    return {
        "field": field,
        "type": "nominal",
        "sort": list(order),
        "axis": {"title": None, "labelLimit": 220, "labelOverlap": False, **axis},
        "scale": {"domain": list(order)},
    }


def in_order() -> Spec:
    """Points of a line in the order of the rows, where x may stand still."""
    return {"field": "point", "type": "quantitative"}


def with_halo(layer: Spec, look: Look) -> list[Spec]:
    """A layer of texts that is read on top of lines."""
    behind: Spec = {"color": look.paper, "stroke": look.paper, "strokeWidth": 5, "strokeJoin": "round"}
    return [{**layer, "mark": {**layer["mark"], **behind}}, layer]


def reference(rows: Sequence[Row], **mark: Any) -> Spec:
    """A dashed line through points x, y, on the axes of the figure."""
    return {
        "data": data({**row, "point": place} for place, row in enumerate(rows)),
        "mark": {"type": "line", "style": "reference", "strokeCap": "butt", **mark},
        "encoding": {"order": in_order()},
    }


def by_run(names: Sequence[str], look: Look) -> Spec:
    """The colour of each run; a legend as soon as there are several."""
    colours = look.series
    return _by_run(names, [colours[place % len(colours)] for place in range(len(names))])


def lines_by_run(names: Sequence[str], look: Look) -> Spec:
    """The colour of the line of each run, and its dashes where there are more runs than colours."""
    found = {"color": by_run(names, look)}
    colours = len(look.series)
    if len(names) > colours:
        found["strokeDash"] = _by_run(names, [DASHES[place // colours % len(DASHES)] for place in range(len(names))])
    return found


def _by_run(names: Sequence[str], shown_as: Sequence[Any]) -> Spec:
    legend: Spec = {"title": None, "labelLimit": 300, "columns": 2, **STROKES}
    return {
        "field": "run",
        "type": "nominal",
        "sort": list(names),
        "scale": {"domain": list(names), "range": list(shown_as)},
        "legend": legend if len(names) > 1 else None,
    }


def apart(names: Sequence[str]) -> list[str]:
    """Names as they can be shown, those that would look the same with a number behind them."""
    seen: dict[str, int] = {}
    found = []
    for name in map(shown, names):
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found


def level_of(intervals: Mapping[str, Mapping[str, Any]]) -> str:
    """How sure the intervals of a report are: 95 % interval."""
    level = next((float(one["level"]) for one in intervals.values()), 0.95)
    return f"{percent(level, None)} interval"


def side_by_side(panels: Sequence[Spec], *, below: bool = False, spacing: int = 14) -> Spec:
    """Panels of one figure. Layers of the same name would share their data, so each has the number of its panel."""
    for place, panel in enumerate(panels):
        for layer in panel["layer"]:
            if "name" in layer:
                layer["name"] = f"{layer['name']}_{place}"
    own = {"scale": {"color": "independent", "strokeDash": "independent"}}
    return {"vconcat" if below else "hconcat": list(panels), "spacing": spacing, "resolve": own}


def sentences(*parts: str) -> str:
    """Those that say something, one after the other."""
    return " ".join(part for part in parts if part)
