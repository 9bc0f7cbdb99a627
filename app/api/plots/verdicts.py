"""What a gate says of a run: each rule with its limit, the value, its interval and the verdict."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.api.documents.check import estimate_of, rule_text
from app.api.documents.document import Facet
from app.api.documents.reading import run_title, shown
from app.api.documents.text import cell_text
from app.api.plots.look import Figure, Look, Spec
from app.api.plots.marks import NUMBERS, Row, data, sentences, side_by_side
from app.api.plots.registry import Given, Json, Needs, figure
from app.domain.errors import NoFigure
from app.domain.rules import Demand

_WIDTH, _HEIGHT, _MOST = 360, 26, 20


@figure("verdict", needs=Needs.CHECK)
def verdict(given: Given) -> Figure:
    """Each rule of a gate on an axis of its own: the limit, the value with its interval, and the verdict."""
    answer = given.check
    results = [one for one in answer["results"] if one["value"] is not None]
    if not results:
        raise NoFigure("expected a rule with a value, and none has one")
    kept = results[:_MOST]
    gate = answer["gate"]
    left_out = len(answer["results"]) - len(kept)
    return Figure(
        title=f"Gate {shown(gate['name'])}: {answer['verdict']}",
        subtitle=(
            run_title(answer["evaluation"]),
            f"version {gate['version']} of the gate; shaded: on the wrong side of the limit, or within the margin of "
            "a difference",
            *([f"{left_out} of {len(answer['results'])} rules are not drawn"] if left_out else []),
        ),
        text=sentences(f"The verdict is {answer['verdict']}.", *(_in_words(one) for one in kept)),
        body=side_by_side([_panel(given.look, one) for one in kept], below=True, spacing=12),
    )


def _in_words(result: Json) -> str:
    value = estimate_of(result)
    interval = f", interval {cell_text(value, Facet.INTERVAL)}" if result["low"] is not None else ""
    return f"{rule_text(result['rule'])}: value {cell_text(value, Facet.VALUE)}{interval}, {result['verdict']}."


def _panel(look: Look, result: Json) -> Spec:
    low, high = _domain(result)
    scale = {"domain": [low, high], "nice": False, "zero": False}
    x: Spec = {
        "field": "at",
        "type": "quantitative",
        "scale": scale,
        "axis": {
            "title": None,
            "tickCount": 5,
            "format": NUMBERS,
            "grid": False,
        },
    }
    colour = look.verdict(result["verdict"])
    limits, middle = _limits(result), (look.height or _HEIGHT) / 2
    ends = [one for one in (result["low"], result["high"]) if one is not None]
    whisker: list[Row] = [{"at": min(ends), "to": max(ends)}] if len(ends) == 2 else []
    return {
        "title": {
            "text": f"{rule_text(result['rule'])}: {result['verdict']}",
            "fontSize": 12,
            "fontWeight": 600,
            "anchor": "start",
            "color": colour,
        },
        "width": look.width or _WIDTH,
        "height": look.height or _HEIGHT,
        "layer": [
            {
                "name": "wrong",
                "data": data(_wrong(result, low, high)),
                "mark": {"type": "rect", "color": look.quiet, "opacity": 0.18, "stroke": None},
                "encoding": {"x": x, "x2": {"field": "to"}, "y": {"value": 0}, "y2": {"value": "height"}},
            },
            {
                "name": "limits",
                "data": data({"at": one} for one in limits),
                "mark": {"type": "rule", "color": look.ink, "strokeWidth": 1.5},
                "encoding": {"x": x, "y": {"value": 0}, "y2": {"value": "height"}},
            },
            {
                "name": "interval",
                "data": data(whisker),
                "mark": {"type": "rule", "strokeWidth": 2.5, "color": colour},
                "encoding": {"x": x, "x2": {"field": "to"}, "y": {"value": middle}},
            },
            {
                "name": "value",
                "data": data([{"at": result["value"]}]),
                "mark": {"type": "point", "style": result["verdict"]},
                "encoding": {"x": x, "y": {"value": middle}},
            },
        ],
    }


def _limits(result: Json) -> Sequence[float]:
    """Where the limit lies; of a difference the margin on both sides, since the better side is that of the metric."""
    rule: Mapping[str, Any] = result["rule"]
    if "minimum_samples" in rule:
        return [float(rule["minimum_samples"])]
    if result["quantity"] == "difference":
        margin = float(rule.get("margin", 0.0))
        return [0.0] if margin == 0.0 else [-margin, margin]
    return [float(rule[demand]) for demand in (Demand.MIN, Demand.MAX) if demand in rule]


def _wrong(result: Json, low: float, high: float) -> list[Row]:
    """What is shaded: below a minimum, above a maximum, and the margin of a difference."""
    rule, limits = result["rule"], _limits(result)
    if len(limits) == 2:
        return [{"at": limits[0], "to": limits[1]}]
    if "minimum_samples" in rule or Demand.MIN in rule:
        return [{"at": low, "to": limits[0]}]
    return [{"at": limits[0], "to": high}] if Demand.MAX in rule else []


def _domain(result: Json) -> tuple[float, float]:
    """Of rates the whole range; of a difference as far on both sides; else from 0."""
    known = [one for one in (result["value"], result["low"], result["high"], *_limits(result)) if one is not None]
    if result.get("quantity") == "difference":
        most = 1.1 * max(map(abs, known)) or 1.0
        return -most, most
    low, high = min(0.0, *known), max(known)
    return low * 1.1, 1.0 if high <= 1.0 and "minimum_samples" not in result["rule"] else 1.1 * high
