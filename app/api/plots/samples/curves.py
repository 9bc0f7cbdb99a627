"""Curves of probabilities and scores, of several runs side by side or of all classes of one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Final

from app.api.documents.reading import shown
from app.api.plots.look import Figure, Look, Spec
from app.api.plots.marks import (
    HIGH,
    NUMBERS,
    SQUARE,
    WIDE,
    Row,
    apart,
    by_run,
    data,
    in_order,
    lines_by_run,
    reference,
    sentences,
    with_halo,
)
from app.api.plots.registry import Given, Json, Needs, Run, figure, place_in, weakest_first
from app.domain.inputs.matrices import MatrixInput
from app.domain.named_metrics import PRECISION, RECALL
from app.domain.wording import name, number
from app.services.decide.curves import CurveName, CurveQuestion

# With so many classes each has a line of its own; of more, those of the lowest recall.
_MOST_CLASSES, _POINTS_EACH = 12, 250


@dataclass(frozen=True, slots=True, kw_only=True)
class _Style:
    """How one kind of curve is drawn.

    Attributes:
        x: The domain of that axis; what the data have when None.
        references: Which companions are drawn, and what they are called.
        area: What its area is called; None where it says nothing.
    """

    curve: CurveName
    title: str
    x: tuple[float, float] | None = (0.0, 1.0)
    y: tuple[float, float] | None = (0.0, 1.0)
    references: Mapping[str, str]
    area: str | None = "area"
    size: tuple[int, int] = (SQUARE, SQUARE)


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """One line of a figure.

    Attributes:
        title: What tells it from the others.
        answer: The curve as it is answered.
        decided: The point of the decisions that were made, where the curve has one.
    """

    title: str
    answer: Json
    decided: tuple[float, float] | None

    @property
    def rows(self) -> Iterator[Row]:
        points = zip(self.answer["x"], self.answer["y"], self.answer["thresholds"], strict=True)
        for place, (x, y, threshold) in enumerate(points):
            yield {"run": self.title, "x": x, "y": y, "threshold": threshold, "point": place}


@figure(CurveName.ROC, needs=Needs.SAMPLES, several=True, by_class=True)
def roc(given: Given) -> Figure:
    """The ROC curve: how many of a class are found at each share of false alarms."""
    return _drawn(given, _Style(curve=CurveName.ROC, title="ROC curve", references={"diagonal": "by chance"}))


@figure(CurveName.PR, needs=Needs.SAMPLES, several=True, by_class=True)
def pr(given: Given) -> Figure:
    """The precision-recall curve, which moves with the share of the class."""
    references = {"prevalence": "share of the class"}
    return _drawn(given, _Style(curve=CurveName.PR, title="Precision-recall curve", references=references))


@figure(CurveName.GAIN, needs=Needs.SAMPLES, several=True, by_class=True)
def gain(given: Given) -> Figure:
    """The gain curve: how many of a class are among those with the highest scores."""
    references = {"perfect": "perfect order", "random": "by chance"}
    return _drawn(given, _Style(curve=CurveName.GAIN, title="Gain curve", references=references))


@figure(CurveName.LIFT, needs=Needs.SAMPLES, several=True, by_class=True)
def lift(given: Given) -> Figure:
    """The lift curve: how many times more of a class are found than by chance."""
    style = _Style(
        curve=CurveName.LIFT, title="Lift curve", y=None, references={"random": "by chance"}, area=None, size=_BROAD
    )
    return _drawn(given, style)


@figure(CurveName.DECISION, needs=Needs.SAMPLES, several=True, by_class=True)
def decision(given: Given) -> Figure:
    """The decision curve: the net benefit of acting on the model, beside acting always and never."""
    references = {"treat_all": "act always", "treat_none": "act never"}
    style = _Style(
        curve=CurveName.DECISION, title="Decision curve", x=None, y=None, references=references, area=None, size=_BROAD
    )
    return _drawn(given, style)


@figure(CurveName.COST, needs=Needs.SAMPLES, several=True, by_class=True)
def cost(given: Given) -> Figure:
    """The cost curve: the expected cost of the best threshold at each mix of costs and class shares."""
    references = {"always_positive": "always positive", "always_negative": "always negative"}
    style = _Style(curve=CurveName.COST, title="Cost curve", y=(0.0, 0.5), references=references, size=_BROAD)
    return _drawn(given, style)


_BROAD: Final = (WIDE, HIGH)
# From this lift on its axis is logarithmic, and has these ticks.
_STEEP: Final = 10.0
_LIFTS: Final = (0, 1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 100_000)


@figure(CurveName.DET, needs=Needs.SAMPLES, several=True, by_class=True)
def det(given: Given) -> Figure:
    """The DET curve: misses against false alarms, on axes of normal deviates, where normal scores make a line."""
    style = _Style(curve=CurveName.DET, title="DET curve", references={}, x=None, y=None)
    lines, hint = _lines(given, style)
    scaled = [replace(line, answer=_deviates(line.answer), decided=_deviate(line.decided)) for line in lines]
    drawn = _figure(given, replace(style, x=_DET_RANGE, y=_DET_RANGE), scaled, hint)
    for channel in drawn.body["encoding"].values():
        channel["axis"] |= {"values": [_probit(one) for one in _DET_TICKS], "labelExpr": _DET_LABELS}
    return replace(drawn, subtitle=(*drawn.subtitle, "axes of normal deviates"))


_DET_TICKS: Final = (0.01, 0.05, 0.2, 0.5, 0.8, 0.95)
_probit = NormalDist().inv_cdf
_DET_RANGE: Final = (_probit(0.002), _probit(0.99))
_DET_LABELS: Final = (
    "{" + ", ".join(f"'{_probit(one) * 100:.0f}': '{one:g}'" for one in _DET_TICKS) + "}[round(datum.value * 100)]"
)


def _deviates(answer: Json) -> Json:
    """The curve on normal deviates; rates of 0 and 1, which have none, are left out and stand in `rates` no more."""
    points = zip(answer["x"], answer["y"], answer["thresholds"], strict=True)
    kept = [(_probit(x), _probit(y), threshold) for x, y, threshold in points if 0 < x < 1 and 0 < y < 1]
    x, y, thresholds = zip(*kept, strict=True) if kept else ((), (), ())
    return {**answer, "x": x, "y": y, "thresholds": thresholds, "references": {}}


def _deviate(point: tuple[float, float] | None) -> tuple[float, float] | None:
    if point is None or not all(0 < one < 1 for one in point):
        return None
    return _probit(point[0]), _probit(point[1])


def _drawn(given: Given, style: _Style) -> Figure:
    lines, hint = _lines(given, style)
    return _figure(given, style, lines, hint)


def _lines(given: Given, style: _Style) -> tuple[list[_Line], str]:
    """The lines of a figure, and what to say of them: one for each run, or one for each class of a run."""
    run = given.run
    labels, positive = run.samples.labels, run.samples.positive
    if len(given.runs) > 1:
        # One class for all of them, since a line each would be runs times classes.
        label = given.label
        if label is None and positive is None:
            label = labels[weakest_first(run.samples)[0]]
        found = [_line(one, caption, style.curve, label) for one, caption in zip(given.runs, given.names, strict=True)]
        return found, _class_hint(found[0].answer)
    if given.label is not None or positive is not None:
        line = _line(run, run.title, style.curve, given.label)
        return [line], _class_hint(line.answer)
    order = weakest_first(run.samples)[:_MOST_CLASSES]
    caption = apart([labels[place] for place in order])
    found = [
        _line(run, one, style.curve, labels[place], points=_POINTS_EACH)
        for place, one in zip(order, caption, strict=True)
    ]
    hint = f"each class against the rest; {caption[0]}, of the lowest recall, in colour"
    if len(labels) > len(order):
        hint += f"; {len(order)} of {len(labels)} classes, those of the lowest recall"
    return found, hint


def _class_hint(answer: Json) -> str:
    return "" if answer["class"] is None else f"class {name(shown(answer['class']))}"


def _line(run: Run, caption: str, curve: CurveName, label: str | None, points: int = 1000) -> _Line:
    answer = run.curve(CurveQuestion(name=curve, label=label, max_points=points))
    return _Line(caption, answer, _decided(run.samples, curve, answer["class"]))


def _decided(source: MatrixInput, curve: CurveName, label: str | None) -> tuple[float, float] | None:
    """Where the decisions that were made lie on a curve of rates."""
    if label is None or label not in source.labels:
        return None
    place = place_in(source.labels, label)
    counts = source.counts
    tp, actual, predicted = (float(one) for one in (counts[place, place], counts[place].sum(), counts[:, place].sum()))
    others = float(counts.sum()) - actual
    if not actual or not others or not predicted:
        return None
    recall, fpr = tp / actual, (predicted - tp) / others
    points = {
        CurveName.ROC: (fpr, recall),
        CurveName.PR: (recall, tp / predicted),
        CurveName.DET: (fpr, 1.0 - recall),
    }
    return points.get(curve)


def _figure(given: Given, style: _Style, lines: Sequence[_Line], hint: str) -> Figure:
    look, of_classes = given.look, len(given.runs) == 1 and len(lines) > 1
    layers = [*_references(style, lines[0].answer), *_curve_layers(look, lines, of_classes=of_classes)]
    layers += _decided_layer(look, lines[: 1 if of_classes else None], style)
    axes = {axis: _axis(axis, title, style, lines) for axis, title in lines[0].answer["axes"].items()}
    area = "" if style.area is None or len(lines) > 1 else _area(style, lines[0])
    dashed = f"dashed: {', '.join(style.references.values())}" if style.references else ""
    logarithmic = "upright: log(1 + lift)" if "type" in axes["y"]["scale"] else ""
    return Figure(
        title=style.title,
        subtitle=(given.heading, "; ".join(one for one in (hint, area, dashed, logarithmic) if one)),
        text=_told(style, lines, of_classes=of_classes),
        body={
            "width": look.width or style.size[0],
            "height": look.height or style.size[1],
            "encoding": axes,
            "layer": layers,
        },
    )


def _axis(axis: str, title: str, style: _Style, lines: Sequence[_Line]) -> Spec:
    domain = style.x if axis == "x" else style.y
    if domain is None:
        domain = _span(lines, axis)
        # Thresholds end at 1.
        domain = (domain[0], min(domain[1], 1.0)) if axis == "x" else domain
    shown_axis: Spec = {"title": title, "format": NUMBERS}
    if domain == (0.0, 1.0):
        shown_axis["values"] = [0, 0.5, 1]
    if style.curve is CurveName.LIFT and axis == "y" and domain[1] > _STEEP:
        # Of rare classes nearly all of the curve lies at the foot of an even axis.
        shown_axis["values"] = [one for one in _LIFTS if one <= domain[1]]
        scale: Spec = {"type": "symlog", "constant": 1, "domain": list(domain), "nice": False}
        return {"field": axis, "type": "quantitative", "scale": scale, "axis": shown_axis}
    return {"field": axis, "type": "quantitative", "scale": {"domain": list(domain), "nice": False}, "axis": shown_axis}


def _span(lines: Sequence[_Line], axis: str) -> tuple[float, float]:
    """From 0, or a little below, to the highest value: what falls without end is cut off there."""
    values = [value for line in lines for value in line.answer[axis] if value is not None]
    highest = max(values, default=1.0)
    return (0.0 if min(values, default=0.0) >= 0.0 else -0.2 * highest or -1.0), (1.05 * highest or 1.0)


def _references(style: _Style, answer: Json) -> Iterator[Spec]:
    """Companions of the curve, named at their right end, or nothing where it has none."""
    known: Mapping[str, Sequence[float | None]] = dict(answer["references"])
    if style.curve is CurveName.ROC:
        yield reference([{"x": 0, "y": 0}, {"x": 1, "y": 1}])
    for key in style.references:
        if key in known:
            rows = [
                {"x": x, "y": y, "reference": key}
                for x, y in zip(answer["x"], known[key], strict=True)
                if x is not None and y is not None
            ]
            yield reference(_corners(rows), clip=True)


def _corners(rows: Sequence[Row]) -> list[Row]:
    """The points of a line without those that lie between two of the same height."""
    return [
        row
        for place, row in enumerate(rows)
        if place in (0, len(rows) - 1) or not rows[place - 1]["y"] == row["y"] == rows[place + 1]["y"]
    ]


def _curve_layers(look: Look, lines: Sequence[_Line], *, of_classes: bool) -> Iterator[Spec]:
    caption = [line.title for line in lines]
    rows = [row for line in lines for row in line.rows]
    mark: Spec = {"type": "line", "clip": True}
    if not of_classes:
        named = [_legend(line) for line in lines] if len(lines) > 1 else caption
        told = dict(zip(caption, named, strict=True))
        coloured = [{**row, "run": told[row["run"]]} for row in rows]
        encoding = {"order": in_order(), **lines_by_run(named, look)}
        yield {"name": "curves", "data": data(coloured), "mark": mark, "encoding": encoding}
        return
    yield {
        "name": "curves",
        "data": data(row for row in rows if row["run"] != caption[0]),
        "mark": {**mark, "style": "context"},
        "encoding": {"order": in_order(), "detail": {"field": "run", "type": "nominal"}},
    }
    yield {
        "name": "weakest",
        "data": data(row for row in rows if row["run"] == caption[0]),
        "mark": mark,
        "encoding": {"order": in_order()},
    }


def _legend(line: _Line) -> str:
    area = line.answer["area"]
    return line.title if area is None else f"{line.title}: {number(area)}"


def _decided_layer(look: Look, lines: Sequence[_Line], style: _Style) -> list[Spec]:
    several = len(lines) > 1
    points: list[Row] = [
        {
            "x": line.decided[0],
            "y": line.decided[1],
            "run": _legend(line) if several else line.title,
            "said": "as decided",
        }
        for line in lines
        if line.decided is not None
    ]
    if not points:
        return []
    low, high = style.y or (0.0, 1.0)
    # At the foot of the figure the name would lie on those of the axis.
    above = points[0]["y"] < low + _FOOT * (high - low)
    text: Spec = {"type": "text", "align": "left", "dx": 8, "dy": -10 if above else 10, "style": "note"}
    named: Spec = {"data": data(points[:1]), "mark": text, "encoding": {"text": {"field": "said", "type": "nominal"}}}
    square: Spec = {"type": "point", "shape": "square", "filled": True, "size": 50, "stroke": look.ink}
    colour = by_run([_legend(line) for line in lines], look) if several else {"value": look.ink}
    return [
        {"name": "decided", "data": data(points), "mark": square, "encoding": {"color": colour}},
        *with_halo(named, look),
    ]


# Part of the height that a name below a point takes.
_FOOT: Final = 0.1


def _area(style: _Style, line: _Line) -> str:
    """The area of a curve, or where one without an area is highest."""
    answer = line.answer
    if answer["area"] is not None:
        return f"{style.area} {number(answer['area'])}"
    y, x = max((y, -x) for x, y in zip(answer["x"], answer["y"], strict=True) if y is not None)
    return f"at most {number(y)}, at a {answer['axes']['x']} of {number(-x)}"


def _told(style: _Style, lines: Sequence[_Line], *, of_classes: bool) -> str:
    """What is seen, in words."""
    label = lines[0].answer["class"]
    of = "" if label is None or of_classes else f" of class {name(shown(label))}"
    parts = [f"{style.title}{of}."]
    for line in lines[:6]:
        what = f"Class {name(line.title)}" if of_classes else line.title
        said = _area(style, line)
        where = _where(style, line.decided)
        if said or where:
            parts.append(f"{what}: {', '.join(one for one in (said, where) if one)}.")
    return sentences(*parts)


def _where(style: _Style, point: tuple[float, float] | None) -> str:
    names: dict[Any, tuple[str, str]] = {
        CurveName.ROC: ("a false positive rate", RECALL),
        CurveName.PR: (f"a {RECALL}", PRECISION),
    }
    if point is None or style.curve not in names:
        return ""
    x, y = names[style.curve]
    return f"as decided {y} is {number(point[1])} at {x} of {number(point[0])}"
