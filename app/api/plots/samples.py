"""Figures of probabilities and scores: curves, reliability, closeness to the truth (MCP and IMCP), and histograms."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Final

from app.api.documents.document import Json
from app.api.plots import marks
from app.api.plots.classes import zones, zones_said
from app.api.plots.look import Figure, Look, Spec
from app.api.plots.marks import BROAD, SQUARE, Row, apart, called, clauses, sentences
from app.api.plots.registry import FigureData, Needs, Run, figure, hits_of, weakest_first
from app.domain.errors import NoFigure
from app.domain.inputs.labels import place_in
from app.domain.inputs.matrices import MatrixInput
from app.domain.named_metrics import PRECISION, RECALL
from app.domain.wording import number, numbered, percent, sentence, share, whole
from app.services.decide.curves import BandForm, CurveName, CurveQuestion, has_band
from app.services.decide.distributions import Histogram, histogram_of

# With so many classes each has a line of its own; of more, those of the lowest recall.
_MOST_CLASSES, _POINTS_EACH = 12, 250
_UNIT: Final = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class _Style:
    """Axes, references and words of one kind of curve.

    Attributes:
        references: Which companions are drawn, and what they are called.
        x: The domain of that axis; what the data have when None.
        area: What its area is called; None where it says nothing.
        normal: Its rates are drawn as normal deviates.
    """

    curve: CurveName
    title: str
    references: Mapping[str, str]
    x: tuple[float, float] | None = _UNIT
    y: tuple[float, float] | None = _UNIT
    area: str | None = "area"
    size: tuple[int, int] = SQUARE
    normal: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """One line of a figure.

    Attributes:
        title: What tells it from the others.
        answer: The curve as it is answered.
        decided: The point of the decisions that were made, where the curve has one.
        says: These decisions in counts.
        legend: What a legend calls it.
    """

    title: str
    answer: Json
    decided: tuple[float, float] | None
    says: str = ""
    legend: str = ""

    @property
    def rows(self) -> Iterator[Row]:
        answer = self.answer
        found = marks.points(answer["x"], answer["y"], run=self.legend or self.title)
        for row in found:
            yield {**row, "threshold": answer["thresholds"][row["point"]]}


@figure(CurveName.ROC, needs=Needs.SAMPLES, several=True, by_class=True)
def roc(given: FigureData) -> Figure:
    """The ROC curve: how many of a class are found at each share of false alarms."""
    return _figure(given, _Style(CurveName.ROC, "ROC curve", {"diagonal": "by chance"}))


@figure(CurveName.PR, needs=Needs.SAMPLES, several=True, by_class=True)
def pr(given: FigureData) -> Figure:
    """The precision-recall curve, which moves with the share of the class."""
    return _figure(given, _Style(CurveName.PR, "Precision-recall curve", {"prevalence": "share of the class"}))


@figure(CurveName.GAIN, needs=Needs.SAMPLES, several=True, by_class=True)
def gain(given: FigureData) -> Figure:
    """The gain curve: how many of a class are among those with the highest scores."""
    return _figure(given, _Style(CurveName.GAIN, "Gain curve", {"perfect": "perfect order", "random": "by chance"}))


@figure(CurveName.LIFT, needs=Needs.SAMPLES, several=True, by_class=True)
def lift(given: FigureData) -> Figure:
    """The lift curve: how many times more of a class are found than by chance."""
    return _figure(given, _Style(CurveName.LIFT, "Lift curve", {"random": "by chance"}, y=None, area=None, size=BROAD))


@figure(CurveName.DECISION, needs=Needs.SAMPLES, several=True, by_class=True)
def decision(given: FigureData) -> Figure:
    """The decision curve: the net benefit of acting on the model, beside acting always and never."""
    always = {"treat_all": "act always", "treat_none": "act never"}
    return _figure(given, _Style(CurveName.DECISION, "Decision curve", always, None, None, area=None, size=BROAD))


@figure(CurveName.COST, needs=Needs.SAMPLES, several=True, by_class=True)
def cost(given: FigureData) -> Figure:
    """The cost curve: the expected cost of the best threshold at each mix of costs and class prevalence."""
    always = {"always_positive": "always positive", "always_negative": "always negative"}
    return _figure(given, _Style(CurveName.COST, "Cost curve", always, y=(0.0, 0.5), size=BROAD))


# From this lift on its axis is logarithmic, and has these ticks.
_STEEP: Final = 10.0
_LIFTS: Final = (0, 1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 100_000)


@figure(CurveName.DET, needs=Needs.SAMPLES, several=True, by_class=True)
def det(given: FigureData) -> Figure:
    """The DET curve: misses against false alarms, on axes of normal deviates, where normal scores make a line."""
    return _figure(given, _Style(CurveName.DET, "DET curve", {}, _DET_RANGE, _DET_RANGE, normal=True))


_DET_TICKS: Final = (0.01, 0.05, 0.2, 0.5, 0.8, 0.95)
_probit = NormalDist().inv_cdf
_DET_RANGE: Final = (_probit(0.002), _probit(0.99))
_DET_LABELS: Final = (
    "{" + ", ".join(f"'{_probit(one) * 100:.0f}': '{one:g}'" for one in _DET_TICKS) + "}[round(datum.value * 100)]"
)


def _as_deviates(line: _Line) -> _Line:
    """Return the line on normal deviates, without rates of 0 and 1, which have none."""
    answer, decided = line.answer, line.decided
    points = zip(answer["x"], answer["y"], answer["thresholds"], strict=True)
    kept = [(_probit(x), _probit(y), threshold) for x, y, threshold in points if 0 < x < 1 and 0 < y < 1]
    x, y, thresholds = zip(*kept, strict=True) if kept else ((), (), ())
    if decided is not None:
        decided = (_probit(decided[0]), _probit(decided[1])) if all(0 < one < 1 for one in decided) else None
    of = {**answer, "x": x, "y": y, "thresholds": thresholds, "references": {}}
    return replace(line, answer=of, decided=decided)


def _lines(given: FigureData, style: _Style) -> tuple[list[_Line], str]:
    """Return the lines of a figure, and what to say of them: one for each run, or one for each class of a run."""
    run = given.run
    labels, positive = run.samples.labels, run.samples.positive
    if len(given.runs) > 1:
        # One class for all of them, since a line each would be runs times classes.
        label = given.label
        if label is None and positive is None:
            label = labels[weakest_first(run.samples)[0]]
        found = [_line(one, caption, style, label) for one, caption in zip(given.runs, given.names, strict=True)]
        areas = ["" if one.answer["area"] is None else f": {number(one.answer['area'])}" for one in found]
        named = [replace(one, legend=one.title + area) for one, area in zip(found, areas, strict=True)]
        return named, _class_hint(found[0].answer)
    if given.label is not None or positive is not None:
        line = _line(run, run.title, style, given.label)
        return [line], _class_hint(line.answer)
    order = weakest_first(run.samples)[:_MOST_CLASSES]
    caption = apart([labels[place] for place in order])
    found = [
        _line(run, one, style, labels[place], points=_POINTS_EACH) for place, one in zip(order, caption, strict=True)
    ]
    one, several = ("class", "classes") if run.samples.task is None else ("label", "labels")
    hint = f"each {one} against the rest; {caption[0]}, of the lowest recall, in colour"
    if len(labels) > len(order):
        hint += f"; {len(order)} of {len(labels)} {several}, those of the lowest recall"
    return found, hint


def _class_hint(answer: Json) -> str:
    return "" if answer["class"] is None else f"class {called(answer['class'])}"


def _line(run: Run, caption: str, style: _Style, label: str | None, points: int = 1000) -> _Line:
    answer = run.curve(CurveQuestion(name=style.curve, label=label, max_points=points))
    line = _Line(caption, answer, *_decided(run.samples, style.curve, answer["class"]))
    return _as_deviates(line) if style.normal else line


def _decided(source: MatrixInput, curve: CurveName, label: str | None) -> tuple[tuple[float, float] | None, str]:
    """Return the point of the decisions that were made on a curve of rates, and what they are in counts."""
    if label is None or label not in source.labels:
        return None, ""
    place = place_in(source.labels, label)
    tp, actual, predicted = (float(each[place]) for each in hits_of(source))
    others = float(source.n_samples) - actual
    if not actual or not others or not predicted:
        return None, ""
    recall, fpr = tp / actual, (predicted - tp) / others
    points = {
        CurveName.ROC: (fpr, recall),
        CurveName.PR: (recall, tp / predicted),
        CurveName.DET: (fpr, 1.0 - recall),
    }
    found, false = f"{whole(tp)} of {whole(actual)} found", whole(predicted - tp)
    said = {
        CurveName.ROC: f"{found}, {false} of {whole(others)} others taken for it",
        CurveName.PR: f"{found}, {false} of {whole(predicted)} alarms false",
    }
    return points.get(curve), "" if source.is_weighted else said.get(curve, "")


def _figure(given: FigureData, style: _Style) -> Figure:
    lines, hint = _lines(given, style)
    look, of_classes = given.look, len(given.runs) == 1 and len(lines) > 1
    axes = {axis: _axis(axis, title, style, lines) for axis, title in lines[0].answer["axes"].items()}
    area = "" if style.area is None or len(lines) > 1 else _area(style, lines[0])
    dashed = f"dashed: {', '.join(style.references.values())}" if style.references else ""
    logarithmic = "upright: log(1 + lift)" if "type" in axes["y"]["scale"] else ""
    layers = [
        *_references(style, lines[0].answer),
        *_curve_layers(look, lines, of_classes=of_classes),
        *_decided_layer(look, lines[: 1 if of_classes else None], style),
    ]
    says = lines[0].says if len(lines) == 1 else ""
    return Figure(
        title=says or style.title,
        subtitle=(
            given.heading,
            clauses(style.title if says else "", hint, area, dashed, logarithmic),
            *(["axes of normal deviates"] if style.normal else []),
        ),
        text=_told(style, lines, of_classes=of_classes),
        body=marks.panel(look, style.size, layers, encoding=axes),
    )


def _axis(axis: str, title: str, style: _Style, lines: Sequence[_Line]) -> Spec:
    domain = style.x if axis == "x" else style.y
    if domain is None:
        # From 0, or a little below, to the highest value; curves without a lower end are cut off. Thresholds end at 1.
        values = [value for line in lines for value in line.answer[axis] if value is not None]
        highest = max(values, default=1.0)
        low, high = 0.0 if min(values, default=0.0) >= 0.0 else -0.2 * highest or -1.0, 1.05 * highest or 1.0
        domain = (low, min(high, 1.0)) if axis == "x" else (low, high)
    if style.normal:
        ticks = [_probit(one) for one in _DET_TICKS]
        return marks.quantity(axis, title, domain=domain, ticks=ticks, labelExpr=_DET_LABELS)
    if domain == _UNIT:
        return marks.rate(axis, title)
    if style.curve is CurveName.LIFT and axis == "y" and domain[1] > _STEEP:
        # Of rare classes nearly all of the curve lies at the foot of an even axis.
        found = marks.quantity(axis, title, domain=domain, ticks=[one for one in _LIFTS if one <= domain[1]])
        found["scale"] |= {"type": "symlog", "constant": 1}
        return found
    return marks.quantity(axis, title, domain=domain)


_DIAGONAL: Final[Sequence[Row]] = ({"x": 0, "y": 0}, {"x": 1, "y": 1})


def _references(style: _Style, answer: Json) -> Iterator[Spec]:
    """Yield the companions of a curve, which the subtitle names; nothing where it has none."""
    known: Mapping[str, Sequence[float | None]] = dict(answer["references"])
    if style.curve is CurveName.ROC:
        yield marks.reference(_DIAGONAL)
    for key in style.references:
        if key in known:
            rows = [
                {"x": x, "y": y, "reference": key}
                for x, y in zip(answer["x"], known[key], strict=True)
                if x is not None and y is not None
            ]
            yield marks.reference(_corners(rows), clip=True)


def _corners(rows: Sequence[Row]) -> list[Row]:
    """Return the points of a line without those that lie between two of the same height."""
    return [
        row
        for place, row in enumerate(rows)
        if place in (0, len(rows) - 1) or not rows[place - 1]["y"] == row["y"] == rows[place + 1]["y"]
    ]


def _curve_layers(look: Look, lines: Sequence[_Line], *, of_classes: bool) -> Iterator[Spec]:
    if not of_classes:
        rows = (row for line in lines for row in line.rows)
        yield marks.curves(rows, marks.lines_by_run([line.legend or line.title for line in lines], look), clip=True)
        return
    weakest, *others = lines
    behind = (row for line in others for row in line.rows)
    yield marks.curves(behind, {"detail": {"field": "run", "type": "nominal"}}, clip=True, style="context")
    yield marks.curves(weakest.rows, name="weakest", clip=True)


def _decided_layer(look: Look, lines: Sequence[_Line], style: _Style) -> list[Spec]:
    points: list[Row] = [
        {"x": line.decided[0], "y": line.decided[1], "run": line.legend or line.title, "said": "as decided"}
        for line in lines
        if line.decided is not None
    ]
    if not points:
        return []
    low, high = style.y or _UNIT
    # At the foot of the figure the name would lie on those of the axis.
    above = points[0]["y"] < low + _FOOT * (high - low)
    # The curve of precision goes on at the right; at the left its name has room from there on.
    left = style.curve is CurveName.PR and not above and points[0]["x"] > _ASIDE
    above |= style.curve is CurveName.PR and not left
    beside: Spec = {"align": "right", "dx": -8} if left else {"align": "left", "dx": 8}
    said = marks.texts("said", points[:1], **beside, dy=-10 if above else 14 if left else 10, style="note")
    colour = marks.by_run([line.legend for line in lines], look) if len(lines) > 1 else {"value": look.ink}
    square = {"shape": "square", "size": 50, "stroke": look.ink}
    return [marks.dots(points, {"color": colour}, name="decided", **square), *marks.with_halo(said, look)]


# Parts of the height and of the width that a name below a point takes, and beside it.
_FOOT: Final = 0.1
_ASIDE: Final = 0.23


def _area(style: _Style, line: _Line) -> str:
    """The area of a curve, or where one without an area is highest."""
    answer = line.answer
    if answer["area"] is not None:
        return f"{style.area} {number(answer['area'])}"
    y, x = max((y, -x) for x, y in zip(answer["x"], answer["y"], strict=True) if y is not None)
    return f"at most {number(y)}, at a {answer['axes']['x']} of {number(-x)}"


def _told(style: _Style, lines: Sequence[_Line], *, of_classes: bool) -> str:
    """Describe the curves in words."""
    label = lines[0].answer["class"]
    of = "" if label is None or of_classes else f" of class {called(label)}"
    parts = [f"{style.title}{of}."]
    for line in lines[:6]:
        what = f"Class {called(line.title)}" if of_classes else line.title
        said = ", ".join(filter(None, (_area(style, line), _where(style, line.decided))))
        parts += [f"{what}: {said}."] if said else []
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


_BINS: Final = 40
_HEIGHT: Final = 110


@figure("scores", needs=Needs.SAMPLES, by_class=True)
def scores(given: FigureData) -> Figure:
    """Histograms of the scores of a class, for its own samples and for all others, with the cut of the decision."""
    source = given.run.samples
    if source.task is not None:
        raise NoFigure(f"expected an evaluation of classes, got {source.kind}")
    if given.label is not None:
        place = place_in(source.labels, given.label)
    else:
        place = weakest_first(source)[0] if source.positive is None else source.positive
    label = called(source.labels[place])
    found = histogram_of(source, place, _BINS)
    what = f"{'probability' if found.are_probabilities else 'score'} of class {label}"
    highest = max(float(found.inside.max()), float(found.outside.max())) or 1.0
    panels = [
        _panel(given.look, found, inside=inside, title=title, what=what, highest=highest)
        for inside, title in ((True, f"samples of class {label}"), (False, "all other samples"))
    ]
    cut = f"dashed: the decision cuts at {number(found.cut)}" if found.cut is not None else ""
    return Figure(
        title=sentence(what),
        subtitle=(given.heading, clauses("bars add up to 1 in each panel", cut)),
        text=sentences(
            f"Histograms of the {what}: {numbered(found.n_inside)} of the class and "
            f"{numbered(found.n_outside, 'others')}.",
            _cut_in_words(source, place, found),
        ),
        body=marks.side_by_side(panels, below=True),
    )


def _cut_in_words(source: MatrixInput, place: int, found: Histogram) -> str:
    """Return the shares of the class and of the others that are above the threshold, as a sentence."""
    if found.cut is None:
        return ""
    counts = source.counts
    own, chosen = float(counts[place, place]), float(counts[:, place].sum())
    parts = [
        f"{share(part / total)} of {whose}"
        for part, total, whose in (
            (own, found.n_inside, "the class"),
            (chosen - own, found.n_outside, "the others"),
        )
        if total
    ]
    return f"The decision cuts at {number(found.cut)}: {' and '.join(parts)} are decided to be of the class."


def _panel(look: Look, found: Histogram, *, inside: bool, title: str, what: str, highest: float) -> Spec:
    edges, heights = found.edges.tolist(), (found.inside if inside else found.outside).tolist()
    cuts = [] if found.cut is None else [found.cut]
    ends = (min(edges[0], *cuts), max(edges[-1], *cuts)) if cuts else (edges[0], edges[-1])
    x = marks.quantity("from", None if inside else what, domain=ends, tickCount=5)
    y = marks.quantity("share", "share of these samples", domain=(0.0, 1.05 * highest), tickCount=3, format="~%")
    name, colour = ("inside", look.accent) if inside else ("outside", look.quiet)
    line: Spec = {"style": "reference", "color": look.ink, "strokeWidth": 1.5}
    layers = [
        marks.bars(name, edges, heights, x, y, colour, look),
        *(marks.layer("rule", [{"from": cut}], {"x": x}, name="cut", **line) for cut in cuts),
    ]
    return marks.panel(look, (BROAD[0] + 60, _HEIGHT), layers, title=title)


@figure(CurveName.CALIBRATION, needs=Needs.SAMPLES, several=True, by_class=True, room=lambda _: 580)
def calibration(given: FigureData) -> Figure:
    """Reliability: how often the stated probabilities come true, with limits, and how many samples state them."""
    bands = [BandForm.POINTWISE if has_band(run.samples) else None for run in given.runs]
    answers = [
        run.curve(CurveQuestion(name=CurveName.CALIBRATION, label=given.label, band=band))
        for run, band in zip(given.runs, bands, strict=True)
    ]
    rows = [row for answer, caption in zip(answers, given.names, strict=True) for row in _bins(answer, caption)]
    first, several, band = answers[0], len(given.runs) > 1, answers[0].get("band")
    of = f"class {called(first['class'])}" if first["class"] is not None else "the predicted class"
    colour = {"color": marks.by_run(given.names, given.look)}
    x, y = (marks.rate(axis, title) for axis, title in first["axes"].items())
    weight = {**marks.field("weight"), "scale": {"domain": [0, 1], "range": [16, 400]}, "legend": None}
    limits, ends = [row for row in rows if row["low"] is not None], {**marks.span(y, "y", "low", "high"), **colour}
    name = "Reliability of the probabilities"
    reading = f"{of}; dashed: as stated; the size of a dot is its share of the samples"
    gap = None if several else first["area"]
    return Figure(
        title=name if gap is None else f"Stated and true probabilities differ by {number(gap)} on average",
        subtitle=(
            given.heading,
            clauses("" if gap is None else name, reading, f"{percent(band['level'], None)} intervals" if band else ""),
        ),
        text=sentences(
            f"{name} of {of}.",
            *(
                _calibration_told(answer, caption if several else "")
                for answer, caption in zip(answers, given.names, strict=True)
            ),
        ),
        body=marks.panel(
            given.look,
            SQUARE,
            [
                marks.reference(_DIAGONAL),
                marks.layer("rule", limits, ends, name="limits", strokeWidth=2, opacity=0.55),
                marks.curves(rows, colour, strokeWidth=1.5),
                marks.dots(rows, {**colour, "size": weight}, opacity=1),
            ],
            encoding={"x": x, "y": y},
        ),
    )


def _bins(answer: Json, caption: str) -> Iterator[Row]:
    beside = {"low": answer.get("low"), "high": answer.get("high"), "weight": answer.get("weights")}
    for row in marks.points(answer["x"], answer["y"], run=caption):
        yield row | {name: values and values[row["point"]] for name, values in beside.items()}


def _calibration_told(answer: Json, caption: str) -> str:
    """The bin that most samples are in, and what is off on the whole."""
    weights = answer["weights"] or [1.0] * len(answer["x"])
    place = max(range(len(weights)), key=weights.__getitem__)
    before = f"{caption}: " if caption else ""
    said = f"{before}where most samples are ({share(weights[place])}), {number(answer['x'][place])} is stated "
    said += f"and {number(answer['y'][place])} comes true."
    if answer["area"] is not None:
        said += f" Stated and true probabilities differ by {number(answer['area'])} on average."
    return sentence(said) if not caption else said


# Bars are drawn with the widths that they have in the full data, so that few of them may be left out.
_MOST_BARS: Final = 500
# As many classes have a colour of their own; of more, the one of the lowest recall has one.
_COLOURED: Final = 5
_TITLES: Final = {CurveName.IMCP: "IMCP curve", CurveName.MCP: "MCP curve"}
_OTHERS: Final = "other classes"
# Letters of a name from which on a legend has no second column.
_LONG: Final = 16


@figure(CurveName.IMCP, needs=Needs.SAMPLES, by_class=True, room=lambda _: 500)
def imcp(given: FigureData) -> Figure:
    """The IMCP curve: closeness of the probabilities to the truth, every class taking the same room; of one class its
    samples at their places among all.
    """
    return _of_all(given, CurveName.IMCP) if given.label is None else _of_class(given, CurveName.IMCP, given.label)


@figure(CurveName.MCP, needs=Needs.SAMPLES, by_class=True)
def mcp(given: FigureData) -> Figure:
    """The MCP curve: closeness of the probabilities to the truth, every sample taking the same room; of one class the
    curve of its samples alone.
    """
    return _of_all(given, CurveName.MCP) if given.label is None else _of_class(given, CurveName.MCP, given.label)


def _of_all(given: FigureData, curve: CurveName) -> Figure:
    run, title = given.run, _TITLES[curve]
    answer = run.curve(CurveQuestion(name=curve, max_points=_MOST_BARS))
    rows = _bar_rows(answer, run.samples.labels)
    lowest = _lowest(given, curve, rows)
    names, colours = _class_colours(given, rows, lowest)
    # Long names stand one below the other.
    legend = {"labelLimit": 400, "columns": 1 if max(map(len, names)) > _LONG else 2}
    colour: Spec = {**marks.named("shown", names, colours), "legend": {"title": None, **legend}}
    bars = [_bars(rows, {"color": colour})]
    if lowest:
        # Of many classes a bar is narrower than a pixel: its edge is seen.
        edge = {"stroke": colours[0], "strokeWidth": 0.75}
        bars.append(_bars(lowest, {"color": colour}, name="lowest", opacity=0.9, **edge))
    return Figure(
        title=title,
        subtitle=(
            given.heading,
            f"area {number(answer['area'])}; below the curve, the class of each sample{_left_out(answer, rows)}",
            zones_said(*_bounds(answer), "below"),
        ),
        text=sentences(f"{title}: area {number(answer['area'])}.", _regions(answer, rows, "the room")),
        body=_body(given, answer, [*bars, _line_of(answer, "curves", color=given.look.ink)]),
    )


def _of_class(given: FigureData, curve: CurveName, label: str) -> Figure:
    run, look, said = given.run, given.look, called(label)
    own = run.curve(CurveQuestion(name=curve, label=label, max_points=_MOST_BARS))
    every = run.curve(CurveQuestion(name=curve, max_points=_MOST_BARS))
    rows = _bar_rows(own, run.samples.labels)
    # Of many classes a bar is narrower than a pixel: its edge is seen.
    bars = _bars(rows, color=look.accent, stroke=look.accent, strokeWidth=0.75)
    # Among all, each class has an equal part of the room, and its area is a part of the whole.
    if curve is CurveName.IMCP:
        mean, places = own["area"] * len(run.samples.labels), "its samples at their places among all"
        part = f", area {number(own['area'])} of {number(every['area'])} of all classes"
        at = ({"x": row["x"], "y": row["y"]} for row in rows)
        samples = marks.dots(at, name="samples", size=20, color=look.accent, opacity=1)
    else:
        mean, places, part, samples = own["area"], "its samples alone", "", _line_of(own, "curves")
    return Figure(
        title=f"{_TITLES[curve]}, class {said}",
        subtitle=(
            given.heading,
            f"{places}{_left_out(own, rows)}; mean phi {number(mean)}; line: all classes",
            zones_said(*_bounds(own), "below"),
        ),
        text=sentences(
            f"{_TITLES[curve]} of class {said}: mean phi {number(mean)}{part}.", _regions(own, rows, "its room")
        ),
        body=_body(given, own, [_line_of(every, "every", color=look.quiet), bars, samples]),
    )


def _bar_rows(answer: Json, labels: tuple[str, ...]) -> list[Row]:
    told = dict(zip(labels, apart(labels), strict=True))
    bars = zip(answer["x"], answer["y"], answer["classes"], answer["widths"], strict=True)
    return [
        {"x": x, "y": y, "class": told[label], "start": x - width / 2, "end": x + width / 2, "width": width}
        for x, y, label, width in bars
        if label is not None and width
    ]


def _left_out(answer: Json, rows: list[Row]) -> str:
    """Say the number of points drawn, if it is not all of them."""
    if answer["n_points"] == len(answer["x"]):
        return ""
    ends = len(answer["x"]) - len(rows)
    return f", {len(rows):,} of {answer['n_points'] - ends:,}"


def _regions(answer: Json, rows: list[Row], room: str) -> str:
    """Shares of the room below and above the regions' bounds."""
    if answer["n_points"] != len(answer["x"]):
        # Points were left out, and only the full data could say it.
        return ""
    right, wrong = _bounds(answer)
    whole = sum(row["width"] for row in rows) or 1.0
    below = sum(row["width"] for row in rows if row["y"] < wrong) / whole
    above = sum(row["width"] for row in rows if row["y"] > right) / whole
    return (
        f"{percent(below, 1)} of {room} lies where the true class could not win (below {number(wrong)}), "
        f"and {percent(above, 1)} where nothing else could (above {number(right)})."
    )


def _bounds(answer: Json) -> tuple[float, float]:
    """1 - eta and 1 - theta."""
    found = answer["levels"]
    return found["certainly_right_above"], found["certainly_wrong_below"]


def _body(given: FigureData, answer: Json, layers: list[Spec]) -> Spec:
    right, wrong = _bounds(answer)
    ticks = [0, round(wrong, 3), round(right, 3), 1]
    axes = {
        "x": marks.rate("x", answer["axes"]["x"], format="~%"),
        "y": marks.rate("y", answer["axes"]["y"], ticks=ticks, format=".3~r"),
    }
    behind = zones(given.look, right, wrong, upright=True)
    return marks.panel(given.look, BROAD, [*behind, *layers], encoding=axes)


def _bars(rows: list[Row], channels: Spec | None = None, **mark: Any) -> Spec:
    encoding = {**marks.span(marks.field("start"), "x", "start", "end"), "y2": {"field": "from"}, **(channels or {})}
    look = {"name": "bars", "opacity": 0.45, "stroke": None, **mark}
    return marks.layer("rect", ({**row, "from": 0} for row in rows), encoding, **look)


def _line_of(answer: Json, name: str, **mark: Any) -> Spec:
    return marks.curves(marks.points(answer["x"], answer["y"]), name=name, strokeWidth=1.75, **mark)


def _lowest(given: FigureData, curve: CurveName, rows: list[Row]) -> list[Row]:
    """The bars of the class with the lowest recall, where there are more classes than colours."""
    source = given.run.samples
    if len({row["class"] for row in rows}) <= _COLOURED:
        return []
    place = weakest_first(source)[0]
    if curve is CurveName.MCP:
        return [row for row in rows if row["class"] == apart(source.labels)[place]]
    # All of them, and not only those that are left of all samples.
    own = given.run.curve(CurveQuestion(name=curve, label=source.labels[place], max_points=_MOST_BARS))
    return _bar_rows(own, source.labels)


def _class_colours(given: FigureData, rows: list[Row], lowest: list[Row]) -> tuple[list[str], list[str]]:
    """The classes that have a colour of their own, and what is shown of each row."""
    look, found = given.look, sorted({row["class"] for row in rows})
    if len(found) <= _COLOURED:
        for row in rows:
            row["shown"] = row["class"]
        # Without the ink, which is the curve itself.
        return found, [colour for colour in look.series if colour != look.ink][: len(found)]
    named = [f"{one}, of the lowest recall" for one in {row["class"] for row in lowest}]
    for row in rows:
        row["shown"] = _OTHERS
    for row in lowest:
        row["shown"] = named[0]
    return [*named, _OTHERS], [look.accent, look.quiet] if named else [look.quiet]
