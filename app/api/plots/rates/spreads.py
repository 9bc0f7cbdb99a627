"""How far two rates are spread around their harmonic mean: the standard deviation of GPS."""

from typing import Final

from app.api.plots.look import Figure, Spec
from app.api.plots.marks import HIGH, WIDE, Row, data, in_order, quantity, sentences
from app.api.plots.registry import Given, Needs, class_of, figure
from app.api.texts.lines import number, shown
from app.api.texts.reading import precision_of, recalls_of
from app.domain.errors import NoFigure
from app.domain.named_metrics import PRECISION, RECALL
from app.domain.wording import name
from app.services.decide.spreads import spread_of_two, spreads

_POINTS: Final = 81
# Reciprocals of the rates: as far as the figure goes, and those with a line of their own.
_FARTHEST: Final = 100.0
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
    x: Spec = quantity(
        "x", "1/p of one rate", domain=(1.0, _FARTHEST), ticks=_TICKS, labelExpr=_LABELS, labelOverlap=False
    )
    x["scale"] |= {"type": "log"}
    return Figure(
        title="Standard deviation of the GPS of two rates",
        subtitle=(
            given.heading,
            f"a line for each 1/p of the other; dot: {RECALL} and {PRECISION} of class {label}",
        ),
        text=sentences(
            f"Class {label}: {RECALL} {number(recall)} and {PRECISION} {number(precision)}, standard deviation of "
            f"their GPS {number(spread)}.",
            f"The largest that is drawn is {number(highest)}, at rates of {number(1.0 / 3.0)} and 1.",
        ),
        body={
            "width": look.width or WIDE,
            "height": look.height or HIGH,
            "encoding": {"x": x, "y": quantity("y", None, domain=(0.0, 0.4), tickCount=5)},
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
                            "legend": {"title": None, "symbolType": "stroke"},
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


def _rates(given: Given) -> tuple[str, float, float]:
    report = given.run.report
    label = report["input"]["labels"][class_of(given, given.run)]
    recall, precision = recalls_of(report).get(label), precision_of(report, label)
    if not recall or not precision:
        raise NoFigure(f"class {name(shown(label))} has no {RECALL} or {PRECISION} above 0, and so no spread of both")
    return name(shown(label)), recall, precision
