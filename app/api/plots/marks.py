"""The words that figures are described in: panels, layers of marks, axes, legends, and names that can be told apart."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from app.api.plots.look import Look, Spec
from app.domain.wording import name, printable

Row = dict[str, Any]
# Width and height of a drawing area with two axes from 0 to 1, and of a broad one; the height of a row of a list.
SQUARE: Final = (320, 320)
BROAD: Final = (352, 252)
ROW_HEIGHT: Final = 22
RATES: Final = [0, 0.5, 1]
# As many digits as the ticks need, and never an exponent, which "g" has from 10 on.
NUMBERS: Final = ",~r"
# Dashes of lines that have one colour, and strokes of legends that are long enough to show them.
DASHES: Final = ([1, 0], [6, 3], [2, 3], [10, 3, 2, 3])
STROKES: Final[Spec] = {"symbolType": "stroke", "symbolOpacity": 1, "symbolSize": 400}
# Channels of a mark that goes over the whole of the other axis, and of one that is not on it.
FULL_HEIGHT: Final[Spec] = {"y": {"value": 0}, "y2": {"value": "height"}}
FULL_WIDTH: Final[Spec] = {"x": {"value": 0}, "x2": {"value": "width"}}


# --- panels and layers -----------------------------------------------------------------------------------------------


def panel(
    look: Look, size: tuple[int | Spec, int | Spec], layers: Iterable[Spec], *, title: str = "", **parts: Any
) -> Spec:
    """Return layers above each other on the same axes.

    Args:
        look: Its size comes before that of the figure.
        size: Width and height in pixels, or ``{"step": pixels}`` for each row or column.
        layers: The first one lies lowest.
        title: Of one panel among several.
        parts: Everything else, such as the encoding that all layers have.
    """
    heading = {"title": {"text": title, "fontSize": 12, "fontWeight": 400, "anchor": "start"}} if title else {}
    width, height = size
    return {"width": look.width or width, "height": look.height or height, "layer": [*layers], **heading, **parts}


def layer(
    kind: str,
    rows: Iterable[Row] | None = None,
    encoding: Spec | None = None,
    *,
    name: str = "",
    where: str = "",
    **mark: Any,
) -> Spec:
    """Return one layer of marks.

    Args:
        kind: The mark: ``line``, ``rule``, ``point``, ``rect``, ``area``, ``text`` and so on.
        rows: Its own data; those of the figure when None.
        encoding: Channels beside those of the panel.
        name: Finds the layer again.
        where: Condition on rows.
        mark: Properties of the mark.
    """
    found: Spec = {"name": name} if name else {}
    if rows is not None:
        found["data"] = data(rows)
    if where:
        found["transform"] = [{"filter": where}]
    return found | {"mark": {"type": kind, **mark}} | ({"encoding": encoding} if encoding else {})


def curves(rows: Iterable[Row], encoding: Spec | None = None, *, name: str = "curves", **mark: Any) -> Spec:
    """Return lines through rows in their order, where x may stand still."""
    order = {"field": "point", "type": "quantitative"}
    return layer("line", rows, {"order": order, **(encoding or {})}, name=name, **mark)


def reference(rows: Sequence[Row], **mark: Any) -> Spec:
    """Return a dashed line through points x, y, on the axes of the figure."""
    numbered = ({**row, "point": place} for place, row in enumerate(rows))
    return curves(numbered, name="", style="reference", strokeCap="butt", **mark)


def shade(rows: Iterable[Row], encoding: Spec, colour: str, opacity: float, *, name: str = "", **mark: Any) -> Spec:
    """Return areas behind everything else, without an edge."""
    return layer("rect", rows, encoding, name=name, color=colour, opacity=opacity, **{"stroke": None, **mark})


def bars(
    name: str, edges: Sequence[float], heights: Sequence[float], x: Spec, y: Spec, colour: str, look: Look
) -> Spec:
    """Return a histogram, without the bins that are empty: ``x`` is the axis of the field ``from``, ``y`` that of the
    heights. The paper of the look shows between the bars.
    """
    rows = (
        {"from": start, "to": end, y["field"]: height, "zero": 0}
        for start, end, height in zip(edges, edges[1:], heights, strict=False)
        if height
    )
    encoding = {**span(x, "x", "from", "to"), **span(y, "y", y["field"], "zero")}
    return layer("rect", rows, encoding, name=name, color=colour, stroke=look.paper, strokeWidth=0.5)


def dots(rows: Iterable[Row] | None = None, encoding: Spec | None = None, *, name: str = "", **mark: Any) -> Spec:
    """Return filled points."""
    return layer("point", rows, encoding, name=name, filled=True, **mark)


def texts(field: str, rows: Iterable[Row] | None = None, encoding: Spec | None = None, **mark: Any) -> Spec:
    """Return a layer that writes one field of its rows."""
    return layer("text", rows, {**(encoding or {}), "text": {"field": field, "type": "nominal"}}, **mark)


def with_halo(one: Spec, look: Look) -> list[Spec]:
    """Return a layer of texts that is read on top of lines."""
    behind: Spec = {"color": look.paper, "stroke": look.paper, "strokeWidth": 5, "strokeJoin": "round"}
    return [{**one, "mark": {**one["mark"], **behind}}, one]


def side_by_side(panels: Sequence[Spec], *, below: bool = False, spacing: int = 14) -> Spec:
    """Return panels of one figure. Layers of one name would share their data, so each has the number of its panel."""
    for place, one in enumerate(panels):
        for each in one["layer"]:
            if "name" in each:
                each["name"] = f"{each['name']}_{place}"
    own = {"scale": {"color": "independent", "strokeDash": "independent"}}
    return {"vconcat" if below else "hconcat": [*panels], "spacing": spacing, "resolve": own}


# --- rows ------------------------------------------------------------------------------------------------------------


def data(rows: Iterable[Row]) -> Spec:
    """Return rows inside the specification."""
    return {"values": [*rows]}


def points(x: Iterable[Any], y: Iterable[Any], **facts: Any) -> Iterator[Row]:
    """Yield the points of a curve in their order, without those that have no y; the facts are said of every point."""
    for place, (at, value) in enumerate(zip(x, y, strict=True)):
        if value is not None:
            yield {**facts, "x": at, "y": value, "point": place}


# --- axes and legends ------------------------------------------------------------------------------------------------


def rate(field: str, title: str | None, *, ticks: Sequence[float] = RATES, **axis: Any) -> Spec:
    """Return an axis from 0 to 1."""
    return quantity(field, title, domain=(0.0, 1.0), ticks=ticks, **axis)


def quantity(
    field: str,
    title: str | None,
    *,
    domain: tuple[float, float] | None = None,
    ticks: Sequence[float] | None = None,
    **axis: Any,
) -> Spec:
    """Return an axis of a quantity."""
    shown_axis: Spec = {"title": title, "format": NUMBERS, **axis}
    if ticks is not None:
        shown_axis["values"] = list(ticks)
    scale: Spec = {"nice": False} if domain is None else {"domain": list(domain), "nice": False}
    return {"field": field, "type": "quantitative", "axis": shown_axis, "scale": {"zero": False, **scale}}


def field(name: str) -> Spec:
    """Return a channel on an axis that another layer describes."""
    return {"field": name, "type": "quantitative"}


def span(axis: Spec, channel: str, start: str, end: str) -> Spec:
    """Return the two channels of a mark that goes from one field to another on an axis."""
    return {channel: {**axis, "field": start}, f"{channel}2": {"field": end}}


def listed(field: str, order: Sequence[str], **axis: Any) -> Spec:
    """Return an axis of names, one row or column each, in this order. Vega cannot sort by a list with names that every
    object of JavaScript has, such as `constructor`; a domain says the order too.
    """
    return {
        "field": field,
        "type": "nominal",
        "axis": {"title": None, "labelLimit": 400, "labelOverlap": False, **axis},
        "scale": {"domain": list(order)},
    }


def named(field: str, names: Sequence[str], shown_as: Sequence[Any], **legend: Any) -> Spec:
    """Return a channel that has a colour, dash or shape for each name, with a legend as soon as there are several."""
    return {
        "field": field,
        "type": "nominal",
        "scale": {"domain": list(names), "range": list(shown_as)},
        "legend": {"title": None, **legend} if len(names) > 1 else None,
    }


def by_run(names: Sequence[str], look: Look) -> Spec:
    """Return the colour of each run."""
    colours = look.series
    return _by_run(names, [colours[place % len(colours)] for place in range(len(names))])


def lines_by_run(names: Sequence[str], look: Look) -> Spec:
    """Return the colour of the line of each run, and its dashes where there are more runs than colours."""
    found = {"color": by_run(names, look)}
    colours = len(look.series)
    if len(names) > colours:
        found["strokeDash"] = _by_run(names, [DASHES[place // colours % len(DASHES)] for place in range(len(names))])
    return found


def _by_run(names: Sequence[str], shown_as: Sequence[Any]) -> Spec:
    return {**named("run", names, shown_as, labelLimit=400, columns=2, **STROKES), "sort": list(names)}


# --- words -----------------------------------------------------------------------------------------------------------


def apart(names: Sequence[str]) -> list[str]:
    """Return names as they can be shown, those that would look the same with a number behind them."""
    seen: dict[str, int] = {}
    found = []
    for one in map(printable, names):
        seen[one] = seen.get(one, 0) + 1
        found.append(one if seen[one] == 1 else f"{one} ({seen[one]})")
    return found


def called(label: str) -> str:
    """Return a class as a sentence names it."""
    return name(printable(label))


def sentences(*parts: str) -> str:
    """Join the sentences that are not empty."""
    return " ".join(filter(None, parts))


def clauses(*parts: str) -> str:
    """Join the parts of a line that are not empty."""
    return "; ".join(filter(None, parts))
