"""Figures of rates: isocurves, surfaces and spreads over the plane of two, and metrics at other recalls and shares."""

from collections.abc import Mapping, Sequence
from typing import Final

from app.api.documents.document import Json
from app.api.documents.reading import here, precision_of, recalls_of
from app.api.plots import marks
from app.api.plots.look import Figure, Look, Spec
from app.api.plots.marks import BROAD, DASHES, SQUARE, STROKES, Row, called, sentences
from app.api.plots.registry import FigureData, Needs, Run, as_answered, class_of, figure, matrix_of, needs_classes
from app.domain.catalogue import titled
from app.domain.errors import NoFigure
from app.domain.named_metrics import ACCURACY, PRECISION, RANKED, RECALL, SPECIFICITY, SWEPT
from app.domain.wording import number, printable
from app.domain.wording import share as said_share
from app.services.decide.h_mean_bounds import (
    LARGEST,
    RecallGrid,
    RecallSweep,
    recalls_swept,
    region_from,
    spread_of_two,
    spreads,
)
from app.services.decide.h_mean_bounds import isocurves as isocurves_through

_PLANE_STEPS: Final = 201
# The means as the answer names them, what they are called, and the dashes of their lines.
MEANS: Final = {
    "balanced_accuracy": ("A, arithmetic mean", DASHES[0]),
    "g_mean": ("G, geometric mean", DASHES[1]),
    "h_mean": ("H, harmonic mean", DASHES[2]),
}


@figure("isocurves", needs=Needs.REPORT, several=True, by_class=True, room=lambda _: 580)
def isocurves(given: FigureData) -> Figure:
    """Curves of equal arithmetic, geometric and harmonic mean of both rates, through the point of the run."""
    points = [point_of(given, run) for run in given.runs]
    names = given.names
    rows: list[Row] = []
    levels: list[Json] = []
    for (tpr, tnr), caption in zip(points, names, strict=True):
        answer = as_answered(isocurves_through(tpr, tnr, _PLANE_STEPS))
        levels.append({key: answer[key]["level"] for key in MEANS})
        rows += [
            row
            for key, (told, _) in MEANS.items()
            for row in marks.points(answer["fpr"], answer[key]["tpr"], run=caption, mean=told)
        ]
    look, several = given.look, len(names) > 1
    label = given.run.report["input"]["labels"][class_of(given, given.run)]
    colour = {"color": marks.by_run(names, look)}
    legend: Spec = {"labelLimit": 400, **STROKES, "columns": 1 if several else 2}
    dash = {"strokeDash": marks.named("mean", *zip(*MEANS.values(), strict=True), **legend)}
    marked = [{"run": caption, "x": 1.0 - tnr, "y": tpr} for (tpr, tnr), caption in zip(points, names, strict=True)]
    # The curves lie between the corner of two right rates and the line of equal arithmetic means.
    reach = max(2.0 - tpr - tnr for tpr, tnr in points)
    side = next((one for one in (0.1, 0.25, 0.5) if one >= reach), 1.0)
    x, y = (
        marks.quantity(
            axis,
            title,
            domain=(start, start + side),
            ticks=[start + part * side for part in marks.RATES],
            format=".3~f",
        )
        for axis, title, start in (("x", "false positive rate", 0.0), ("y", "true positive rate", 1.0 - side))
    )
    return Figure(
        title=f"Curves of equal means through the {'runs' if several else 'run'}",
        subtitle=(
            given.heading,
            f"class {called(label)} against the rest{'' if side == 1 else '; axes: the corner of both rates near 1'}",
        ),
        text=_told_each(given, called(label), points, levels),
        body=marks.panel(
            look,
            SQUARE,
            [
                marks.curves(rows, {**colour, **dash}, strokeWidth=1.75, strokeCap="butt"),
                marks.dots(marked, colour, name="runs", size=90),
            ],
            encoding={"x": x, "y": y},
        ),
    )


def point_of(given: FigureData, run: Run) -> tuple[float, float]:
    """True positive and true negative rate of the class."""
    report = run.report
    labels = report["input"]["labels"]
    label = labels[class_of(given, run)]
    values = here(report["per_class"][label])
    tpr, tnr = values.get(RECALL), values.get(SPECIFICITY)
    if tpr is None or tnr is None:
        raise NoFigure(f"class {called(label)} has no recall, or no specificity, and so no point in this plane")
    return tpr, tnr


def _told_each(given: FigureData, label: str, points: Sequence[tuple[float, float]], levels: Sequence[Json]) -> str:
    """Each run in words, by its name where there are several."""
    said = [f"Class {label} against the rest."]
    for caption, (tpr, tnr), level in zip(given.names, points, levels, strict=True):
        before = f"{caption}: true" if len(points) > 1 else "True"
        values = ", ".join(f"{told[0]} {number(level[key])}" for key, (told, _) in MEANS.items())
        said.append(f"{before} positive rate {number(tpr)}, true negative rate {number(tnr)}: {values}.")
    return sentences(*said)


_SURFACE_STEPS, _SURFACE_SIDE = 81, 180
# The steps of the colour begin here.
_BANDS: Final = (0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_SHAPES: Final = (
    *("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left"),
    *("M-1,0L1,0", "M0,-1L0,1", "M-1,-1L1,1M-1,1L1,-1"),
)


@figure("surfaces", needs=Needs.REPORT, several=True, by_class=True)
def surfaces(given: FigureData) -> Figure:
    """The arithmetic, geometric and harmonic mean of both rates over their plane, with the point of the run."""
    points = [point_of(given, run) for run in given.runs]
    label = called(given.run.report["input"]["labels"][class_of(given, given.run)])
    marked: list[Row] = [
        {"run": caption, "x": tnr, "y": tpr} for (tpr, tnr), caption in zip(points, given.names, strict=True)
    ]
    bands = [as_answered(isocurves_through(level, level, _SURFACE_STEPS)) for level in _BANDS]
    panels = [
        _surface_panel(given, told, [_above(band, key) for band in bands], marked) for key, (told, _) in MEANS.items()
    ]
    values = [as_answered(isocurves_through(*point, 2)) for point in points]
    levels = [{key: value[key]["level"] for key in MEANS} for value in values]
    steps = ", ".join(f"{one:g}" for one in _BANDS)
    return Figure(
        title="Means of both rates, seen from above",
        subtitle=(given.heading, f"class {label} against the rest; a step of colour at {steps}"),
        text=_told_each(given, label, points, levels),
        # One legend for the runs of all panels.
        body={**marks.side_by_side(panels), "resolve": {"scale": {"shape": "shared"}}},
    )


def _above(answer: Json, key: str) -> list[Row]:
    """Return the region above a level: from the upper edge along the curve, and down where it leaves the plane."""
    curve = zip(answer["fpr"], answer[key]["tpr"], strict=True)
    band: list[Row] = [{"x": 1.0 - fpr, "y": tpr, "top": 1.0} for fpr, tpr in curve if tpr is not None]
    first, last = (find(float(row["x"]) for row in band) for find in (min, max))
    corner = [{"x": 1.0, "y": 0.0, "top": 1.0}] if last < 1.0 else []
    return [{"x": first, "y": 1.0, "top": 1.0}, *band, *corner]


def _surface_panel(given: FigureData, title: str, bands: list[list[Row]], marked: list[Row]) -> Spec:
    look, names = given.look, given.names
    x, y = marks.rate("x", "true negative rate"), marks.rate("y", "true positive rate")
    layers: list[Spec] = [
        marks.layer(
            "area",
            band,
            {"x": x, "y": y, "y2": {"field": "top"}},
            name=f"from_{level:g}",
            color=colour,
            opacity=1,
            line=False,
        )
        for level, band, colour in zip(_BANDS, bands, look.steps(right=True), strict=True)
    ]
    # A shape for each run, since the colours are those of the surface.
    shapes = [_SHAPES[place % len(_SHAPES)] for place in range(len(names))]
    at = {"x": x, "y": y, "shape": marks.named("run", names, shapes, labelLimit=400, columns=2)}
    point = marks.dots(marked, at, name="runs", size=80, color=look.paper, stroke=look.ink, opacity=1)
    return marks.panel(look, (_SURFACE_SIDE, _SURFACE_SIDE), [*layers, point], title=title)


_STEPS, _SIDE = 101, 230


@figure("recall_sweep", needs=Needs.REPORT, several=True, by_class=True)
def recall_sweep(given: FigureData) -> Figure:
    """Means of the recalls, and accuracy, if the recall of one class had any value and the others stayed."""
    run, look = given.run, given.look
    needs_classes(run.report)
    matrix_of(run)
    place = class_of(given, run)
    label = printable(run.report["input"]["labels"][place])
    swept = [_swept(one, class_of(given, one)) for one in given.runs]
    first, recall = as_answered(swept[0]), _recalls(run)[place]
    means = {told: first[key] for key, (told, _) in MEANS.items()}
    # Accuracy of every run at its own class shares; of one alone also at equal shares.
    found = [as_answered(one)[ACCURACY] for one in swept]
    mixes = {caption: one[0] for caption, one in zip(given.names, found, strict=True)}
    if len(found) == 1:
        mixes = {"accuracy, prevalence of this data": found[0][0], "accuracy, equal prevalence": found[0][1]}
    mixes |= {MEANS[RANKED][0]: first[RANKED]}
    legend = list(dict.fromkeys([*means, *mixes]))
    whose = "this run" if given.heading else given.names[0]
    drawn = (("means of the recalls", means), (ACCURACY, mixes))
    panels = [_recall_panel(look, title, lines, legend, first["grid"], (label, recall)) for title, lines in drawn]
    return Figure(
        title=f"If the recall of class {called(label)} were different",
        subtitle=(
            given.heading or f"means: of {given.names[0]}",
            f"all other recalls as they are; dashed: the recall of {whose}, {number(recall)}",
        ),
        text=sentences(
            f"At a recall of 0 of class {called(label)}, and at 1, with the other recalls as they are:",
            "; ".join(
                f"{told} {number(values[0])} and {number(values[-1])}" for told, values in (means | mixes).items()
            )
            + ".",
        ),
        body=marks.side_by_side(panels, spacing=24),
    )


def _recalls(run: Run) -> list[float]:
    """The recall of every class; raises NoFigure where one has none."""
    known, found = recalls_of(run.report), []
    for label in run.report["input"]["labels"]:
        if (value := known.get(label)) is None:
            raise NoFigure(f"class {called(label)} has no recall, and so there are no means of the recalls")
        found.append(value)
    return found


def _swept(run: Run, place: int) -> RecallSweep:
    shares = [run.report["input"]["prevalence"][label] for label in run.report["input"]["labels"]]
    mixes = [shares, [1.0] * len(shares)]
    return recalls_swept(_recalls(run), [place], RecallGrid(start=0.0, end=1.0, steps=_STEPS, shares=mixes))


Lines = Mapping[str, Sequence[float | None]]


def _recall_panel(
    look: Look, title: str, lines: Lines, legend: Sequence[str], grid: Sequence[float], of: tuple[str, float]
) -> Spec:
    (label, recall), names = of, [one for one in legend if one in lines]
    rows = [row for told, values in lines.items() for row in marks.points(grid, values, line=told)]
    colours = {told: look.series[place] for place, (told, _) in enumerate(MEANS.values())}
    spare = [one for one in look.series if one not in colours.values()]
    others = [told for told in names if told not in colours]
    colours |= {told: spare[place % len(spare)] for place, told in enumerate(others)}
    dashes = dict(MEANS.values()) | {
        told: DASHES[place // len(spare) % len(DASHES)] for place, told in enumerate(others)
    }
    x, y = marks.rate("x", f"recall of class {label}"), marks.rate("y", None)
    line: Spec = {"x": x, "y": y}
    for channel, shown_as in (("color", colours), ("strokeDash", dashes)):
        line[channel] = marks.named("line", names, [shown_as[told] for told in names])
        line[channel]["legend"] = {"title": None, "labelLimit": 400, "columns": 1, **STROKES}
    layers = [
        marks.layer("rule", [{"x": recall}], {"x": x}, style="reference"),
        marks.curves(rows, line, strokeWidth=1.75, strokeCap="butt"),
    ]
    return marks.panel(look, (_SIDE, _SIDE), layers, title=title)


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
def gps_spread(given: FigureData) -> Figure:
    """Standard deviation of the harmonic mean of two rates (GPS), with the recall and precision of a class."""
    label, recall, precision = _rates(given)
    grid, each = spreads(_OTHERS, _FARTHEST, _POINTS)
    look, names = given.look, [f"1/p = {other:g}" for other in _OTHERS]
    rows: list[Row] = [
        row
        for told, values in zip(names, each, strict=True)
        for row in marks.points(grid.tolist(), values.tolist(), line=told)
    ]
    spread, lower = spread_of_two(recall, precision), min(recall, precision)
    marked: list[Row] = [{"x": 1.0 / lower, "y": spread}] if 1.0 / lower <= _FARTHEST else []
    colour = marks.named("line", names, look.series[: len(names)], **STROKES)
    axes = {
        "x": _reciprocal("x", "one rate", _FARTHEST, _TICKS),
        "y": marks.quantity("y", None, domain=(0.0, 0.4), tickCount=5),
    }
    layers = [
        marks.curves(rows, {"color": colour}, strokeWidth=1.75),
        marks.dots(marked, name="run", size=90, color=look.ink, opacity=1),
    ]
    return Figure(
        title="Standard deviation of the GPS of two rates",
        subtitle=(given.heading, f"a line for each 1/p of the other; {_dot(label, drawn=bool(marked))}"),
        text=sentences(
            _spread_told(label, recall, precision, spread),
            f"The largest that is drawn is {number(max(row['y'] for row in rows))}, at rates of "
            f"{number(1.0 / 3.0)} and 1.",
        ),
        body=marks.panel(look, BROAD, layers, encoding=axes),
    )


@figure("gps_spread_surface", needs=Needs.REPORT, by_class=True)
def gps_spread_surface(given: FigureData) -> Figure:
    """Standard deviation of the harmonic mean of two rates (GPS) over both, seen from above, with the recall and
    precision of a class.
    """
    label, recall, precision = _rates(given)
    look = given.look
    spread, lower, higher = spread_of_two(recall, precision), min(recall, precision), max(recall, precision)
    on_it = 1.0 / lower <= _FARTHEST and 1.0 / higher <= _HIGHEST
    axes = {
        "x": _reciprocal("x", "one rate", _FARTHEST, _TICKS),
        "y": _reciprocal("y", "the other", _HIGHEST, _OTHERS),
    }
    run = [{"x": 1.0 / lower, "y": 1.0 / higher}] if on_it else []
    cross: Spec = {"shape": "cross", "size": 80, "color": look.paper, "stroke": look.ink}
    layers = [
        _bands(look, "x", "y", "horizontal"),
        _bands(look, "y", "x", "vertical"),
        marks.dots([{"x": 3.0, "y": 1.0}], name="largest", **cross),
        marks.dots(run, name="run", size=90, color=look.ink, stroke=look.paper),
    ]
    return Figure(
        title="Standard deviation of GPS over two rates",
        subtitle=(given.heading, f"cross: the largest, {number(LARGEST)}; {_dot(label, drawn=on_it)}"),
        text=sentences(
            _spread_told(label, recall, precision, spread),
            f"The largest is {number(LARGEST)}, at rates of {number(1.0 / 3.0)} and 1.",
        ),
        body=marks.panel(look, BROAD, layers, encoding=axes),
    )


def _spread_told(label: str, recall: float, precision: float, spread: float) -> str:
    rates = f"{RECALL} {number(recall)} and {PRECISION} {number(precision)}"
    return f"Class {label}: {rates}, standard deviation of their GPS {number(spread)}."


def _dot(label: str, *, drawn: bool) -> str:
    rates = f"{RECALL} and {PRECISION} of class {label}"
    return f"dot: {rates}" if drawn else f"{rates} lie outside"


def _bands(look: Look, along: str, across: str, orient: str) -> Spec:
    """Return the regions from each level on, for the lower rate on one axis."""
    names = [f"{level:g}" for level in _LEVELS]
    rows: list[Row] = [
        {"from": name, across: one, along: start, "end": end}
        for name, level in zip(names, _LEVELS, strict=True)
        for one, start, end in zip(*(side.tolist() for side in region_from(level, _POINTS)), strict=True)
    ]
    colour = marks.named("from", names, look.steps(right=True), symbolType="square")
    colour["legend"]["title"] = "standard deviation, from"
    encoding = {f"{along}2": {"field": "end"}, "color": colour}
    return marks.layer("area", rows, encoding, name=f"bands_{along}", orient=orient, opacity=1, line=False, clip=True)


def _reciprocal(field: str, rate: str, farthest: float, ticks: Sequence[float]) -> Spec:
    """The axis of 1/p of a rate, from 1 on, in equal factors."""
    found = marks.quantity(
        field, f"1/p of {rate}", domain=(1.0, farthest), ticks=ticks, labelExpr=_LABELS, labelOverlap=False
    )
    found["scale"] |= {"type": "log"}
    return found


def _rates(given: FigureData) -> tuple[str, float, float]:
    report = given.run.report
    label = report["input"]["labels"][class_of(given, given.run)]
    recall, precision = recalls_of(report).get(label), precision_of(report, label)
    if not recall or not precision:
        raise NoFigure(f"class {called(label)} has no {RECALL} or {PRECISION} above 0, and so no spread of both")
    return called(label), recall, precision


STEPS: Final = 25
LOWEST_SHARE, HIGHEST_SHARE = 0.01, 0.99
# Of the axis that the name of a line takes.
_NAME_WIDTH: Final = 0.2
# The share of either of two classes that are equally frequent.
_HALF: Final = 0.5
_SHARES: Final = [0, 0.25, 0.5, 0.75, 1]


def swept_metrics(runs: int) -> tuple[str, ...]:
    """Return the metrics of a sweep: the usual ones for one run, accuracy alone for several."""
    return SWEPT if runs == 1 else (ACCURACY,)


@figure("prevalence", needs=Needs.SWEEP, several=True, by_class=True)
def prevalence(given: FigureData) -> Figure:
    """Metrics at every share of one class, with limits; of several runs, their accuracy."""
    single, label = len(given.runs) == 1, given.run.sweep["sweep"]["class"]
    what = "metrics of one run" if single else ACCURACY
    lines = [titled(key) for key in given.run.sweep["metrics"]] if single else given.names
    rows: list[Row] = [
        {**row, **{end: None if values[end] is None else values[end][row["point"]] for end in ("low", "high")}}
        for line, run in zip(given.names, given.runs, strict=True)
        for key, values in run.sweep["metrics"].items()
        for row in marks.points(run.sweep["grid"], values["value"], run=titled(key) if single else line)
    ]
    if not rows:
        raise NoFigure("there is nothing to be shown: no metric has a value at these shares of the class")
    sweep = given.run.sweep["sweep"]
    marked: list[Row] = [{"x": sweep["observed"], "said": "this data"}]
    if sweep["equal"] == _HALF:
        # Of more classes the others are not made equal.
        marked.append({"x": _HALF, "said": "equal prevalence"})
    limited = [row for row in rows if row["low"] is not None and row["high"] is not None]
    ends = {**marks.span(marks.field("low"), "y", "low", "high"), "color": marks.by_run(lines, given.look)}
    low = min([0.0, *(row["low"] for row in limited), *(row["y"] for row in rows)])
    return Figure(
        title=f"If class {called(label)} were rarer, or more frequent",
        subtitle=(given.heading, f"{what}; shaded: limits; level lines do not move with class prevalence"),
        text=sentences(
            f"{'Metrics' if single else 'Accuracy'} at shares of class {called(label)} from "
            f"{said_share(rows[0]['x'])} to {said_share(rows[-1]['x'])}.",
            *(_share_told(line, rows) for line in lines),
        ),
        body=marks.panel(
            given.look,
            (BROAD[0] + 60, BROAD[1]),
            [
                *_marks(marked),
                marks.layer("area", limited, ends, name="limits", opacity=0.13),
                marks.curves(rows, marks.lines_by_run(lines, given.look)),
            ],
            encoding={
                "x": marks.rate("x", f"share of class {printable(label)}", ticks=_SHARES, format="~%"),
                "y": marks.quantity("y", None, domain=(low, 1), tickCount=3),
            },
        ),
    )


def _marks(marked: list[Row]) -> list[Spec]:
    """Mark shares; the names stand at the foot, since most lines are near the top."""
    named: list[Row] = [{**one, "align": "left"} for one in sorted(marked, key=lambda one: float(one["x"]))]
    if named[-1]["x"] - named[0]["x"] < _NAME_WIDTH and len(named) > 1:
        # The name at the left would be crossed by the other line.
        named[0]["align"] = "right"
    text = {"style": "note", "baseline": "bottom", "dy": -3}
    foot = {"y": {"value": "height"}}
    return [
        marks.layer("rule", marked, marks.FULL_HEIGHT, style="reference"),
        *(
            marks.texts("said", [one], foot, align=one["align"], dx=3 if one["align"] == "left" else -3, **text)
            for one in named
        ),
    ]


def _share_told(line: str, rows: list[Row]) -> str:
    ends = [(number(row["y"]), said_share(row["x"])) for row in rows if row["run"] == line]
    return "" if not ends else f"{line}: {ends[0][0]} at {ends[0][1]}, {ends[-1][0]} at {ends[-1][1]}."
