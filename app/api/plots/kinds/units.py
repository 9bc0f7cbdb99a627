"""How the queries of a ranking, or the items of sets, differ: a mean over them hides those that fail."""

from typing import Final

from app.api.plots.look import Figure, Look, Spec
from app.api.plots.marks import WIDE, Row, data, quantity, rate, sentences, side_by_side
from app.api.plots.registry import Given, Needs, figure
from app.domain.errors import NoFigure
from app.domain.inputs.ranking import Ranking
from app.domain.inputs.sets import Sets
from app.domain.wording import number, whole
from app.services.decide.distributions import UnitSpread, unit_spreads

_BINS: Final = 20
_HEIGHT: Final = 140


@figure("per_query", needs=Needs.UNITS)
def per_query(given: Given) -> Figure:
    """How nDCG is spread over the queries of a ranking, with its quartiles."""
    return _spread(given, Ranking.kind, "query", "queries")


@figure("per_item", needs=Needs.UNITS)
def per_item(given: Given) -> Figure:
    """How intersection over union and F1 are spread over the items of sets, with their quartiles."""
    return _spread(given, Sets.kind, "item", "items")


def _spread(given: Given, kind: str, one: str, many: str) -> Figure:
    source = given.run.samples
    if source.kind != kind:
        raise NoFigure(f"expected an evaluation of {kind}, whose {many} are looked at one by one, got {source.kind}")
    spreads = [spread for spread in unit_spreads(source, _BINS) if spread.known]
    if not spreads:
        raise NoFigure(f"expected {many} with a value, and none has one")
    return Figure(
        title=f"{' and '.join(spread.metric for spread in spreads)} of each {one}",
        subtitle=(given.heading, "line: median; shaded: the middle half"),
        text=sentences(*(_in_words(spread, many) for spread in spreads)),
        body=side_by_side([_panel(given.look, spread, many) for spread in spreads], below=True, spacing=16),
    )


def _in_words(spread: UnitSpread, many: str) -> str:
    lower, median, upper = spread.quartiles
    without = f" {whole(spread.without)} {many} have no value." if spread.without else ""
    return (
        f"{spread.metric} of {whole(spread.known)} {many}: the median is {number(median)}, the middle half lies "
        f"between {number(lower)} and {number(upper)}; it is 0 for {whole(spread.lowest)} and 1 for "
        f"{whole(spread.highest)} of them.{without}"
    )


def _panel(look: Look, spread: UnitSpread, many: str) -> Spec:
    rows: list[Row] = [
        {"from": start, "to": end, "count": count, "zero": 0}
        for start, end, count in zip(spread.edges, spread.edges[1:], spread.counts, strict=False)
        if count
    ]
    lower, median, upper = spread.quartiles
    x = rate("from", spread.metric)
    y = quantity("count", many, domain=(0.0, 1.05 * max(spread.counts)), tickCount=3, tickMinStep=1)
    return {
        "width": look.width or WIDE,
        "height": look.height or _HEIGHT,
        "layer": [
            {
                "name": "middle_half",
                "data": data([{"from": lower, "to": upper}]),
                "mark": {"type": "rect", "color": look.accent, "opacity": 0.12, "stroke": None},
                "encoding": {"x": x, "x2": {"field": "to"}, "y": {"value": 0}, "y2": {"value": "height"}},
            },
            {
                "name": "counts",
                "data": data(rows),
                "mark": {"type": "rect", "color": look.quiet, "stroke": look.paper, "strokeWidth": 0.5},
                "encoding": {"x": x, "x2": {"field": "to"}, "y": y, "y2": {"field": "zero"}},
            },
            {
                "name": "median",
                "data": data([{"from": median}]),
                "mark": {"type": "rule", "color": look.accent, "strokeWidth": 2},
                "encoding": {"x": x},
            },
        ],
    }
