"""Figures of single classes: recall and precision with limits, and closeness of probabilities to the truth (phi)."""

from collections.abc import Sequence

from app.api.documents.document import Json
from app.api.documents.reading import class_word, ends_of, level_of, precision_of, recalls_of, weakest_classes
from app.api.plots import marks
from app.api.plots.look import Figure, Look, Spec
from app.api.plots.marks import ROW_HEIGHT, Row, apart, called, sentences
from app.api.plots.registry import FigureData, Needs, figure, needs_classes
from app.domain.errors import NoFigure
from app.domain.expressions.syntax import write_label
from app.domain.named_metrics import PRECISION, RECALL
from app.domain.wording import PLAIN, numbered, share

# More rows than this are not read.
_MOST = 40


@figure(
    "per_class",
    needs=Needs.REPORT,
    room=lambda report: 180 + ROW_HEIGHT * min(_MOST, len(report["per_class"])),
    broad=True,
)
def per_class(given: FigureData) -> Figure:
    """Recall and precision of each class or label with their limits, the lowest recall first."""
    report = given.run.report
    needs_classes(report)
    order = weakest_classes(report)
    if not order:
        raise NoFigure("expected a class with a recall, and none has one")
    kept = order[:_MOST]
    names, word = apart(kept), class_word(report, len(order))
    recalls, rows = recalls_of(report), list[Row]()
    for label, said in zip(kept, names, strict=True):
        for metric, value in ((RECALL, recalls[label]), (PRECISION, precision_of(report, label))):
            low, high = ends_of(report, f"{metric}@{write_label(label)}")
            rows.append({"class": said, "metric": metric, "value": value, "low": low, "high": high})
    layers = [
        *_rate_layers(RECALL, names, "stays", "interval"),
        *_rate_layers(PRECISION, names, "moves", "interval-moves"),
    ]
    header = {"title": None, "labelExpr": _HEADER}
    return Figure(
        title=f"Recall and precision by {class_word(report)}",
        subtitle=(
            given.heading,
            f"lowest recall first, {level_of(report)} intervals{_part(order, word)}",
            "● does not move with prevalence, ○ moves with it",
        ),
        text=sentences(_weakest(report, order[0]), f"{len(order)} {word}." if len(order) > 1 else ""),
        body={
            "data": marks.data(rows),
            "facet": {"column": {"field": "metric", "type": "nominal", "sort": [RECALL, PRECISION], "header": header}},
            "spec": marks.panel(given.look, (220, {"step": ROW_HEIGHT}), layers),
            "spacing": 28,
        },
    )


def _part(order: Sequence[str], word: str) -> str:
    """Say how many are drawn, where it is not all of them."""
    return f"; {_MOST} of {len(order)} {word}" if len(order) > _MOST else ""


_HEADER = f"datum.value === '{RECALL}' ? '● {RECALL}' : '○ {PRECISION}'"


def _rate_layers(metric: str, names: Sequence[str], point: str, interval: str) -> list[Spec]:
    of, y = f"datum.metric === '{metric}'", {"y": marks.listed("class", names)}
    x = marks.rate("value", None, grid=True)
    limits = marks.layer("rule", encoding={**marks.span(x, "x", "low", "high"), **y}, where=of, style=interval)
    limits["transform"].append({"filter": "isValid(datum.low)"})
    return [limits, marks.layer("point", encoding={"x": x, **y}, where=of, style=point)]


def _weakest(report: Json, label: str) -> str:
    value = recalls_of(report)[label]
    limits = PLAIN.said(value, *ends_of(report, f"{RECALL}@{write_label(label)}"))
    n = next((one["n"] for one in [report["headline"]["weakest_class"]] if one and one["label"] == label), None)
    of = "" if n is None else f", of {numbered(n)}"
    precision = precision_of(report, label)
    behind = "" if precision is None else f" Its precision is {PLAIN.said(precision, None, None)}."
    word = class_word(report).capitalize()
    return f"{word} {called(label)} has the lowest recall: {limits}{of}.{behind}"


@figure("phi", needs=Needs.REPORT)
def phi(given: FigureData) -> Figure:
    """Closeness of the probabilities of each class to the truth (phi): quartiles, and the regions of theta and eta."""
    report = given.run.report
    known = report.get("probabilities") or {}
    boxes = {label: one for label, one in known.get("per_class", {}).items() if one.get("phi_quartiles")}
    # Classes without samples have none.
    medians = {label: one["phi_quartiles"][1] for label, one in boxes.items() if one["phi_quartiles"][1] is not None}
    if not medians or "imcp" not in known:
        raise NoFigure("expected an evaluation of probabilities, whose report has the quartiles of phi")
    order = sorted(medians, key=medians.__getitem__)
    kept = order[:_MOST]
    names = apart(kept)
    quartiles = [boxes[label]["phi_quartiles"] for label in kept]
    rows = [
        {"class": said, **dict(zip(_QUARTILES, own, strict=True))} for said, own in zip(names, quartiles, strict=True)
    ]
    right, wrong = known["imcp"]["certainly_right"]["phi_above"], known["imcp"]["certainly_wrong"]["phi_below"]
    lowest = boxes[order[0]]
    return Figure(
        title="Closeness of the probabilities to the truth (phi) by class",
        subtitle=(
            given.heading,
            f"quartiles, lowest median first{_part(order, 'classes')}",
            zones_said(right, wrong, "the left"),
        ),
        text=sentences(
            f"Class {called(order[0])} has the lowest median phi, {PLAIN.said(medians[order[0]], None, None)}.",
            f"Of its samples {share(lowest['shares']['certainly_wrong'])} lie where its class could not win, and "
            f"{share(lowest['shares']['certainly_right'])} where nothing else could."
            if lowest.get("shares")
            else "",
        ),
        body=marks.panel(
            given.look,
            (360, {"step": ROW_HEIGHT + 4}),
            [*zones(given.look, right, wrong), *_box_layers(given.look, rows, names, [0.0, wrong, right, 1.0])],
        ),
    )


_QUARTILES = ("q1", "median", "q3")
# With two classes nothing lies between, and the two bounds differ by a rounding.
_NOTHING = 1e-9


def zones(look: Look, right: float, wrong: float, *, upright: bool = False) -> list[Spec]:
    """Shade phi below 1 - theta (the class could not win), above 1 - eta (no other could), and between."""
    low, high = ("y", "y2") if upright else ("x", "x2")
    regions = [(0.0, wrong, "fail"), (wrong, right, "inconclusive"), (right, 1.0, "pass")]
    # Over the whole width of the other axis.
    across = marks.FULL_WIDTH if upright else {}
    axis = {**marks.field(low), "scale": {"domain": [0, 1]}}
    return [
        marks.shade([{low: start, high: end}], {low: axis, high: {"field": high}, **across}, look.verdict(verdict), 0.1)
        for start, end, verdict in regions
        if end - start > _NOTHING
    ]


def zones_said(right: float, wrong: float, side: str) -> str:
    """Name the shaded zones in words, from this side on."""
    between = " uncertain," if right - wrong > _NOTHING else ""
    return f"shaded, from {side}: certainly wrong,{between} certainly right"


def _box_layers(look: Look, rows: Sequence[Row], names: Sequence[str], bounds: Sequence[float]) -> list[Spec]:
    y = {"y": marks.listed("class", names)}
    ticks = [round(one, 3) for one in bounds]
    x = marks.rate("median", "phi; 1 is a probability of 1 for the true class", ticks=ticks, format=".3~r")
    box: Spec = {"size": 12, "stroke": look.ink, "strokeWidth": 1, "color": look.paper}
    return [
        marks.layer("bar", rows, {**marks.span(x, "x", "q1", "q3"), **y}, **box),
        marks.layer("tick", rows, {"x": x, **y}, color=look.accent, thickness=3, size=16),
    ]
