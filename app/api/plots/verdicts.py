"""Figure of a gate check: each rule with its limit, the value, its interval and the verdict."""

from app.api.documents.check import as_decided, axis_of, estimate_of, limits_of, rule_said
from app.api.documents.document import Json
from app.api.documents.text import estimated
from app.api.plots import marks
from app.api.plots.look import Figure, Look, Spec
from app.api.plots.marks import Row, sentences
from app.api.plots.registry import FigureData, Needs, figure
from app.domain.errors import NoFigure
from app.domain.wording import printable, run_title

_WIDTH, _HEIGHT, _MOST = 360, 26, 20


@figure("verdict", needs=Needs.CHECK)
def verdict(given: FigureData) -> Figure:
    """Each rule of a gate on an axis of its own: the limit, the value with its interval, and the verdict."""
    answer = given.answer
    results = [as_decided(one) for one in answer["results"] if one["value"] is not None]
    if not results:
        raise NoFigure("expected a rule with a value, and none has one")
    kept = results[:_MOST]
    gate = answer["gate"]
    left_out = len(answer["results"]) - len(kept)
    return Figure(
        title=f"Gate {printable(gate['name'])}: {answer['verdict']}",
        subtitle=(
            run_title(answer["evaluation"]),
            f"version {gate['version']} of the gate; shaded: the wrong side",
            *([f"{left_out} of {len(answer['results'])} rules are not drawn"] if left_out else []),
        ),
        text=sentences(f"The verdict is {answer['verdict']}.", *(_in_words(one) for one in kept)),
        body=marks.side_by_side([_panel(given.look, one) for one in kept], below=True, spacing=12),
    )


def _in_words(result: Json) -> str:
    value, ends = estimated(estimate_of(result))
    is_limited = result["low"] is not None or result["high"] is not None
    interval = f", interval {ends}" if is_limited else ""
    return f"{rule_said(result['rule'])}: value {value}{interval}, {result['verdict']}."


def _panel(look: Look, result: Json) -> Spec:
    limits = limits_of(result)
    ends = [one for one in (result["low"], result["high"]) if one is not None]
    low, high = axis_of(
        [result["value"], *ends, *(at for at, _ in limits)], sign=result.get("quantity") == "difference"
    )
    wrong = [{"at": low, "to": at} if below else {"at": at, "to": high} for at, below in limits if below is not None]
    x = marks.quantity("at", None, domain=(low, high), tickCount=5, grid=False)
    colour, height = look.verdict(result["verdict"]), look.height or _HEIGHT
    across, middle = marks.span(x, "x", "at", "to"), {"y": {"value": height / 2}}
    interval: list[Row] = [{"at": min(ends), "to": max(ends)}] if len(ends) == 2 else []
    bars: list[Row] = [{"at": at} for at, _ in limits]
    found = marks.panel(
        look,
        (_WIDTH, _HEIGHT),
        [
            marks.shade(wrong, {**across, **marks.FULL_HEIGHT}, look.quiet, 0.18, name="wrong"),
            marks.layer("rule", bars, {"x": x, **marks.FULL_HEIGHT}, name="limits", color=look.ink, strokeWidth=1.5),
            marks.layer("rule", interval, {**across, **middle}, name="interval", strokeWidth=2.5, color=colour),
            marks.layer("point", [{"at": result["value"]}], {"x": x, **middle}, name="value", style=result["verdict"]),
        ],
        title=f"{rule_said(result['rule'])}: {result['verdict']}",
    )
    found["title"] |= {"fontWeight": 600, "color": colour}
    return found
