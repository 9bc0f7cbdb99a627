"""Figure of a history: each metric over the evaluations, with where it was expected and where it changed."""

from collections.abc import Sequence

from app.api.documents.document import Json
from app.api.documents.history import LEVEL, day
from app.api.plots import marks
from app.api.plots.look import Figure, Look, Spec
from app.api.plots.marks import Row, sentences
from app.api.plots.registry import FigureData, Needs, figure
from app.domain.errors import NoFigure
from app.domain.wording import PAGE, dataset_name, percent, printable, whole

_WIDTH, _HEIGHT = 860, 130
_TICKS, _NARROW, _MARGIN = 6, 60, 0.08


@figure("history", needs=Needs.HISTORY)
def history(given: FigureData) -> Figure:
    """Each metric over the evaluations of a model: values with limits, where they were expected, and changes."""
    answer = given.history
    items = answer["items"]
    metrics = [name for name in items[0]["metrics"] if any(one["metrics"][name]["value"] is not None for one in items)]
    if not metrics:
        raise NoFigure("expected an evaluation with a value, and none has one")
    changes = answer["changes"]
    return Figure(
        title="Values, limits and where they were expected",
        subtitle=(
            f"{printable(answer['model'])} on {dataset_name(answer['dataset'], version=True)}",
            f"lines: {percent(LEVEL, None)} limits; grey: where a value would lie had nothing changed since the last "
            "change, held over the whole series",
        ),
        text=sentences(
            *(_in_words(items, metric) for metric in metrics),
            *(_changed(one, items) for one in changes),
            "" if changes else "Nothing changed beyond chance.",
        ),
        body=marks.side_by_side(
            [_panel(given.look, items, metric, changes, last=metric == metrics[-1]) for metric in metrics],
            below=True,
            spacing=18,
        ),
    )


def _in_words(items: Sequence[Json], metric: str) -> str:
    known = [one for one in items if one["metrics"][metric]["value"] is not None]
    first, last = (PAGE.value(known[place]["metrics"][metric]["value"]) for place in (0, -1))
    span = f"from {day(known[0])}, {first}, to {day(known[-1])}, {last}"
    return f"{printable(metric)} of {whole(len(known))} evaluations {span}."


def _changed(change: Json, items: Sequence[Json]) -> str:
    at = next((day(one) for one in items if one["evaluation"] == change["to"]), "")
    levels = (
        f"{printable(change['metric'])} changed from {PAGE.value(change['before'])} to {PAGE.value(change['after'])}"
    )
    return f"{levels}, {at}." if at else ""


def _panel(look: Look, items: Sequence[Json], metric: str, changes: Sequence[Json], *, last: bool) -> Spec:
    known = [(place, one["metrics"][metric]) for place, one in enumerate(items, start=1)]
    rows: list[Row] = [
        {"place": place, "value": one["value"], "low": one["low"], "high": one["high"]}
        for place, one in known
        if one["value"] is not None
    ]
    bands: list[Row] = [
        {"from": place - 0.5, "to": place + 0.5, "low": one["expected"]["low"], "high": one["expected"]["high"]}
        for place, one in known
        if one["expected"] is not None
    ]
    bottom, top = _range([end for row in [*rows, *bands] for end in (row.get("value"), row["low"], row["high"])])
    x = _axis(items, titled=last)
    y = {"y": marks.quantity("value", None, domain=(bottom, top), tickCount=4, grid=True)}
    limits = [row for row in rows if row["low"] is not None and row["high"] is not None]
    breaks = _breaks(items, [one for one in changes if one["metric"] == metric])
    small = len(items) > _NARROW
    across, at = marks.span(x, "x", "from", "to"), {"x": {**x, "field": "place"}}
    return marks.panel(
        look,
        (_WIDTH, _HEIGHT),
        [
            marks.shade(bands, {**across, **marks.span(y["y"], "y", "low", "high")}, look.quiet, 0.2, name="expected"),
            marks.layer(
                "rule",
                limits,
                {**at, **marks.span(y["y"], "y", "low", "high")},
                name="limits",
                strokeWidth=1 + (not small),
            ),
            marks.dots(rows, {**at, **y}, name="values", size=16 if small else 48, opacity=1),
            marks.layer(
                "rule",
                breaks,
                {"x": {**x, "field": "at"}, **marks.FULL_HEIGHT},
                name="changes",
                color=look.ink,
                strokeWidth=1.5,
            ),
            *marks.with_halo(
                marks.texts(
                    "said", breaks, {"x": {**x, "field": "at"}, "y": {"value": 4}}, align="left", dx=5, baseline="top"
                ),
                look,
            ),
        ],
        title=printable(metric),
    )


def _breaks(items: Sequence[Json], changes: Sequence[Json]) -> list[Row]:
    """Return where the changes are, between two evaluations, with both levels."""
    places = {one["evaluation"]: place for place, one in enumerate(items, start=1)}
    return [
        {"at": places[one["to"]] - 0.5, "said": f"{PAGE.value(one['before'])} to {PAGE.value(one['after'])}"}
        for one in changes
        if one["to"] in places
    ]


def _range(ends: Sequence[float | None]) -> tuple[float, float]:
    known = [one for one in ends if one is not None]
    low, high = min(known), max(known)
    margin = _MARGIN * (high - low) or 0.01
    return low - margin, high + margin


def _axis(items: Sequence[Json], *, titled: bool) -> Spec:
    """Return an axis with a step for each evaluation, and the day of some; their numbers where all are of one day."""
    n = len(items)
    places = sorted({round(1 + (n - 1) * step / (_TICKS - 1)) for step in range(_TICKS)})
    days = {day(one) for one in items}
    labels = [day(items[place - 1]) if len(days) > 1 else str(place) for place in places]
    said = f"{labels!r}[indexof({places!r}, datum.value)]"
    title = None if len(days) > 1 or not titled else f"evaluations of {days.pop()}, in order"
    return marks.quantity("place", title, domain=(0.5, n + 0.5), ticks=places, labelExpr=said, grid=False)
