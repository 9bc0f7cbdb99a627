"""The means of two rates as surfaces over the plane of both, seen from above."""

from typing import Final

from app.api.documents.reading import shown
from app.api.plots.look import Figure, Look, Spec
from app.api.plots.marks import RATES, Row, data, rate, sentences, side_by_side
from app.api.plots.rates.planes import MEANS, point_of, points_on
from app.api.plots.registry import Given, Needs, as_answered, class_of, figure
from app.domain.wording import name, number
from app.services.decide.h_mean_bounds import isocurves

_STEPS, _SIDE = 81, 180
# The steps of the colour begin here.
_LEVELS: Final = (0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_SHAPES: Final = (
    *("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left"),
    *("M-1,0L1,0", "M0,-1L0,1", "M-1,-1L1,1M-1,1L1,-1"),
)


@figure("surfaces", needs=Needs.REPORT, several=True, by_class=True)
def surfaces(given: Given) -> Figure:
    """The arithmetic, geometric and harmonic mean of both rates over their plane, with the point of the run."""
    points = [point_of(given, run) for run in given.runs]
    label = name(shown(given.run.report["input"]["labels"][class_of(given, given.run)]))
    marked: list[Row] = [
        {"run": caption, "x": tnr, "y": tpr} for (tpr, tnr), caption in zip(points, given.names, strict=True)
    ]
    levels = [as_answered(isocurves(level, level, _STEPS)) for level in _LEVELS]
    panels = []
    for key, (told, _) in MEANS.items():
        bands = [[{"x": 1.0 - fpr, "y": tpr, "top": 1.0} for fpr, tpr in points_on(answer, key)] for answer in levels]
        panels.append(_panel(given.look, told, [_closed(band) for band in bands], marked, given.names))
    values = [as_answered(isocurves(*point, 2)) for point in points]
    return Figure(
        title="Means of both rates, seen from above",
        subtitle=(
            given.heading,
            f"class {label} against the rest; a step of colour at {', '.join(f'{one:g}' for one in _LEVELS)}",
        ),
        text=sentences(
            f"Class {label} against the rest.",
            *(
                f"{caption + ': t' if len(points) > 1 else 'T'}rue positive rate {number(tpr)}, true negative rate "
                f"{number(tnr)}: "
                + ", ".join(f"{told[0]} {number(value[key]['level'])}" for key, (told, _) in MEANS.items())
                + "."
                for caption, (tpr, tnr), value in zip(given.names, points, values, strict=True)
            ),
        ),
        # One legend for the runs of all panels.
        body={**side_by_side(panels), "resolve": {"scale": {"shape": "shared"}}},
    )


def _closed(band: list[Row]) -> list[Row]:
    """The region above a level: it begins at the upper edge, and goes on at the lower edge where the curve leaves."""
    first, last = (find(float(row["x"]) for row in band) for find in (min, max))
    return [{"x": first, "y": 1.0, "top": 1.0}, *band, *[{"x": x, "y": 0.0, "top": 1.0} for x in (1.0,) if last < x]]


def _shapes(names: list[str]) -> Spec:
    """A shape for each run, since the colours are those of the surface."""
    legend: Spec = {"title": None, "labelLimit": 300, "columns": 2}
    return {
        "field": "run",
        "type": "nominal",
        "scale": {"domain": names, "range": [_SHAPES[place % len(_SHAPES)] for place in range(len(names))]},
        "legend": legend if len(names) > 1 else None,
    }


def _panel(look: Look, title: str, bands: list[list[Row]], marked: list[Row], names: list[str]) -> Spec:
    x, y = rate("x", "true negative rate", ticks=RATES), rate("y", "true positive rate", ticks=RATES)
    colours = look.steps(right=True)
    layers: list[Spec] = [
        {
            "name": f"from_{level:g}",
            "data": data(band),
            "mark": {"type": "area", "color": colour, "opacity": 1, "line": False},
            "encoding": {"x": x, "y": y, "y2": {"field": "top"}},
        }
        for level, band, colour in zip(_LEVELS, bands, colours, strict=True)
    ]
    point: Spec = {
        "name": "runs",
        "data": data(marked),
        "mark": {"type": "point", "filled": True, "size": 80, "color": look.paper, "stroke": look.ink, "opacity": 1},
        "encoding": {"x": x, "y": y, "shape": _shapes(names)},
    }
    return {
        "title": {"text": title, "fontSize": 12, "fontWeight": 400, "anchor": "start"},
        "width": look.width or _SIDE,
        "height": look.height or _SIDE,
        "layer": [*layers, point],
    }
