"""What is known of each class: recall and precision with limits, and where the samples lie in phi."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.api.documents.reading import class_word, ends_of, precision_of, recalls_of, shown, weakest_classes
from app.api.plots.look import Figure, Look, Spec
from app.api.plots.marks import NUMBERS, ROW_HEIGHT, Row, apart, data, level_of, listed, sentences
from app.api.plots.registry import Given, Json, Needs, figure, needs_classes
from app.domain.errors import NoFigure
from app.domain.expressions.syntax import write_label
from app.domain.named_metrics import PRECISION, RECALL
from app.domain.wording import PLAIN, name, share, whole

# More rows than this are not read.
_MOST = 40


@figure("per_class", needs=Needs.REPORT)
def per_class(given: Given) -> Figure:
    """Recall and precision of each class or label with their limits, the lowest recall first."""
    report = given.run.report
    needs_classes(report)
    order = weakest_classes(report)
    if not order:
        raise NoFigure("expected a class with a recall, and none has one")
    kept = order[:_MOST]
    rows = [row for label, said in zip(kept, apart(kept), strict=True) for row in _rates(report, label, said)]
    named = apart(kept)
    panel = {
        "width": given.look.width or 220,
        "height": given.look.height or {"step": ROW_HEIGHT},
        "layer": [*_rate_layers(RECALL, named, "stays"), *_rate_layers(PRECISION, named, "moves")],
    }
    header = {"title": None, "labelExpr": _HEADER}
    return Figure(
        title=f"Recall and precision by {class_word(report)}",
        subtitle=(
            given.heading,
            f"lowest recall first, {level_of(report['intervals'])}s"
            + (f"; {_MOST} of {len(order)} {class_word(report, len(order))}" if len(order) > _MOST else ""),
        ),
        text=sentences(
            _weakest(report, order[0]), f"{len(order)} {class_word(report, len(order))}." if len(order) > 1 else ""
        ),
        body={
            "data": data(rows),
            "facet": {"column": {"field": "metric", "type": "nominal", "sort": [RECALL, PRECISION], "header": header}},
            "spec": panel,
            "spacing": 28,
        },
    )


_HEADER = (
    f"datum.value === '{RECALL}' ? '● recall, the same at any class shares' : '○ precision, moves with class shares'"
)


def _rates(report: Json, label: str, said: str) -> list[Row]:
    values = {RECALL: recalls_of(report)[label], PRECISION: precision_of(report, label)}
    rows = []
    for metric, value in values.items():
        low, high = ends_of(report, f"{metric}@{write_label(label)}")
        rows.append({"class": said, "metric": metric, "value": value, "low": low, "high": high})
    return rows


def _rate_layers(metric: str, named: Sequence[str], style: str) -> list[Spec]:
    chosen = [{"filter": f"datum.metric === '{metric}'"}]
    y = listed("class", named)
    x: Spec = {
        "field": "value",
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "axis": {"title": None, "values": [0, 0.5, 1], "format": NUMBERS, "grid": True},
    }
    interval = "interval" if style == "stays" else "interval-moves"
    return [
        {
            "transform": [*chosen, {"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "style": interval},
            "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y},
        },
        {"transform": chosen, "mark": {"type": "point", "style": style}, "encoding": {"x": x, "y": y}},
    ]


def _weakest(report: Json, label: str) -> str:
    value = recalls_of(report)[label]
    limits = PLAIN.said(value, *ends_of(report, f"{RECALL}@{write_label(label)}"))
    n = next((one["n"] for one in [report["headline"]["weakest_class"]] if one and one["label"] == label), None)
    of = "" if n is None else f", of {whole(n)} samples"
    precision = precision_of(report, label)
    behind = "" if precision is None else f" Its precision is {PLAIN.said(precision, None, None)}."
    word = class_word(report).capitalize()
    return f"{word} {name(shown(label))} has the lowest recall: {limits}{of}.{behind}"


@figure("phi", needs=Needs.REPORT)
def phi(given: Given) -> Figure:
    """How close the probabilities of each class are to the truth (phi): quartiles, and the regions of theta and eta."""
    report = given.run.report
    known = report.get("probabilities") or {}
    boxes = {label: one for label, one in known.get("per_class", {}).items() if one.get("phi_quartiles")}
    if not boxes or "imcp" not in known:
        raise NoFigure("expected an evaluation of probabilities, whose report has the quartiles of phi")
    medians = {label: one["phi_quartiles"][1] for label, one in boxes.items()}
    order = sorted(boxes, key=medians.__getitem__)
    kept = order[:_MOST]
    named = apart(kept)
    rows = [_box(said, boxes[label]) for label, said in zip(kept, named, strict=True)]
    right, wrong = known["imcp"]["certainly_right"]["phi_above"], known["imcp"]["certainly_wrong"]["phi_below"]
    lowest = boxes[order[0]]
    return Figure(
        title="Closeness of the probabilities to the truth (phi) by class",
        subtitle=(
            given.heading,
            "quartiles, lowest median first" + (f"; {_MOST} of {len(order)} classes" if len(order) > _MOST else ""),
            zones_said(right, wrong, "the left"),
        ),
        text=sentences(
            f"Class {name(shown(order[0]))} has the lowest median phi, {PLAIN.said(medians[order[0]], None, None)}.",
            f"Of its samples {_per_cent(lowest, 'certainly_wrong')} lie where its class could not win, and "
            f"{_per_cent(lowest, 'certainly_right')} where nothing else could."
            if lowest.get("shares")
            else "",
        ),
        body={
            "width": given.look.width or 360,
            "height": given.look.height or {"step": ROW_HEIGHT + 4},
            "layer": [
                *zones(given.look, right, wrong),
                *_box_layers(given.look, rows, named, [0.0, wrong, right, 1.0]),
            ],
        },
    )


def _per_cent(one: Mapping[str, Any], region: str) -> str:
    return share(one["shares"][region])


def _box(said: str, one: Mapping[str, Any]) -> Row:
    lower, median, upper = one["phi_quartiles"]
    return {"class": said, "q1": lower, "median": median, "q3": upper}


# With two classes nothing lies between, and the two bounds differ by a rounding.
_NOTHING = 1e-9


def zones(look: Look, right: float, wrong: float, *, upright: bool = False) -> list[Spec]:
    """Where the true class could not win (below 1 - theta), where nothing else could (above 1 - eta), and between."""
    low, high = ("y", "y2") if upright else ("x", "x2")
    regions = [(0.0, wrong, "fail"), (wrong, right, "inconclusive"), (right, 1.0, "pass")]
    return [
        {
            "data": data([{low: start, high: end}]),
            "mark": {"type": "rect", "color": look.verdict(verdict), "opacity": 0.1, "stroke": None},
            "encoding": {
                low: {"field": low, "type": "quantitative", "scale": {"domain": [0, 1]}},
                high: {"field": high},
                # Over the whole width of the other axis.
                **({"x": {"value": 0}, "x2": {"value": "width"}} if upright else {}),
            },
        }
        for start, end, verdict in regions
        if end - start > _NOTHING
    ]


def zones_said(right: float, wrong: float, side: str) -> str:
    """What the zones are, from this side on."""
    between = " uncertain," if right - wrong > _NOTHING else ""
    return f"shaded, from {side}: certainly wrong,{between} certainly right"


def _box_layers(look: Look, rows: Sequence[Row], named: Sequence[str], bounds: Sequence[float]) -> list[Spec]:
    y = listed("class", named)

    def x(field: str) -> Spec:
        axis = {
            "title": "phi; 1 is a probability of 1 for the true class",
            "values": [round(one, 3) for one in bounds],
            "format": ".3~r",
        }
        return {"field": field, "type": "quantitative", "scale": {"domain": [0, 1]}, "axis": axis}

    return [
        {
            "data": data(rows),
            "mark": {"type": "bar", "size": 12, "stroke": look.ink, "strokeWidth": 1, "color": look.paper},
            "encoding": {"x": x("q1"), "x2": {"field": "q3"}, "y": y},
        },
        {
            "data": data(rows),
            "mark": {"type": "tick", "color": look.accent, "thickness": 3, "size": 16},
            "encoding": {"x": x("median"), "y": y},
        },
    ]
