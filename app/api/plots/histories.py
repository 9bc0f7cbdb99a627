"""Figure of a history: each metric over the evaluations, with where it was expected and where it changed."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from app.api.documents.document import Json
from app.api.documents.history import LEVEL, day, unchanged
from app.api.documents.reading import moves_with_prevalence
from app.api.plots import marks
from app.api.plots.look import Figure, Look, Spec
from app.api.plots.marks import Row, sentences
from app.api.plots.registry import FigureData, Needs, figure
from app.domain.catalogue import titled
from app.domain.errors import NoFigure
from app.domain.wording import PAGE, dataset_name, percent, printable, whole, written_day

_WIDTH, _HEIGHT = 860, 130
_TICKS, _NARROW, _MARGIN = 6, 60, 0.08
# Points and limits of a metric that prevalence does not move, of one that it moves, and of one of other tasks.
_LOOKS: Final[dict[bool | None, tuple[Spec, Spec]]] = {
    False: ({"style": "stays"}, {"style": "interval"}),
    True: ({"style": "moves"}, {"style": "interval-moves"}),
    None: ({"shape": "square", "filled": True, "size": 48, "opacity": 1}, {"strokeWidth": 2}),
}


def _drawn(items: Sequence[Json]) -> list[str]:
    """Return the metrics that have a value anywhere."""
    return [name for name in items[0]["metrics"] if any(one["metrics"][name]["value"] is not None for one in items)]


@figure("history", needs=Needs.HISTORY, room=lambda answer: 165 + 187 * len(_drawn(answer["items"])), broad=True)
def history(given: FigureData) -> Figure:
    """Each metric over the evaluations of a model: values with limits, where they were expected, and changes."""
    answer = given.answer
    items = answer["items"]
    metrics = _drawn(items)
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
            "" if changes or len(items) == 1 else unchanged(answer),
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
    if len(known) == 1:
        return f"{printable(titled(metric))} of the one evaluation of {day(known[0])}: {first}."
    span = f"from {day(known[0])}, {first}, to {day(known[-1])}, {last}"
    return f"{printable(titled(metric))} of {whole(len(known))} evaluations {span}."


def _changed(change: Json, items: Sequence[Json]) -> str:
    at = next((day(one) for one in items if one["evaluation"] == change["to"]), "")
    name, levels = titled(change["metric"]), (PAGE.value(change[side]) for side in ("before", "after"))
    return f"{printable(name)} changed from {' to '.join(levels)}, {at}." if at else ""


def _panel(look: Look, items: Sequence[Json], metric: str, changes: Sequence[Json], *, last: bool) -> Spec:
    places = _places(items)
    known = [(place, one["metrics"][metric]) for place, one in zip(places, items, strict=True)]
    rows: list[Row] = [
        {"place": place, "value": one["value"], "low": one["low"], "high": one["high"]}
        for place, one in known
        if one["value"] is not None
    ]
    bands: list[Row] = [
        {"from": start, "to": end, "low": one["expected"]["low"], "high": one["expected"]["high"]}
        for (start, end), (_, one) in zip(pairwise(_edges(places)), known, strict=True)
        if one["expected"] is not None
    ]
    ends = [end for row in [*rows, *bands] for end in (row.get("value"), row["low"], row["high"]) if end is not None]
    margin = _MARGIN * (max(ends) - min(ends)) or 0.01
    x = _axis(items, titled=last)
    y = {"y": marks.quantity("value", None, domain=(min(ends) - margin, max(ends) + margin), tickCount=4, grid=True)}
    limits = [row for row in rows if row["low"] is not None and row["high"] is not None]
    # Changes are between two evaluations; both levels are said.
    edges = {one["evaluation"]: edge for one, edge in zip(items, _edges(places), strict=False)}
    breaks: list[Row] = [
        {"at": edges[one["to"]], "said": f"{PAGE.value(one['before'])} to {PAGE.value(one['after'])}"}
        for one in changes
        if one["metric"] == metric and one["to"] in edges
    ]
    point, line = _LOOKS[moves_with_prevalence(metric)]
    if len(items) > _NARROW:
        point, line = point | {"size": 16}, line | {"strokeWidth": 1}
    across, at = marks.span(x, "x", "from", "to"), {"x": {**x, "field": "place"}}
    upright, cut = marks.span(y["y"], "y", "low", "high"), {"x": {**x, "field": "at"}, **marks.FULL_HEIGHT}
    return marks.panel(
        look,
        (_WIDTH, _HEIGHT),
        [
            marks.shade(bands, {**across, **upright}, look.quiet, 0.2, name="expected"),
            marks.layer("rule", limits, {**at, **upright}, name="limits", **line),
            marks.layer("point", rows, {**at, **y}, name="values", **point),
            marks.layer("rule", breaks, cut, name="changes", color=look.ink, strokeWidth=1.5),
            *(layer for late in (False, True) for layer in _levels(look, breaks, x, late=late)),
        ],
        title=printable(titled(metric)),
    )


def _levels(look: Look, breaks: Sequence[Row], x: Spec, *, late: bool) -> list[Spec]:
    """Return the levels beside changes, of late ones at the left: at the right the figure ends."""
    start, end = x["scale"]["domain"]
    rows = [row for row in breaks if (row["at"] > end - 0.2 * (end - start)) is late]
    at: Spec = {"x": {**x, "field": "at"}, "y": {"value": 4}}
    beside: Spec = {"align": "right", "dx": -5} if late else {"align": "left", "dx": 5}
    return marks.with_halo(marks.texts("said", rows, at, baseline="top", **beside), look) if rows else []


def _places(items: Sequence[Json]) -> list[float]:
    """Return where the evaluations stand: in days since the first, or in their order where all are of one day."""
    moments = [datetime.fromisoformat(one["created_at"]) for one in items]
    if len({day(one) for one in items}) == 1:
        return [float(place) for place in range(1, len(items) + 1)]
    return [(one - moments[0]).total_seconds() / 86_400.0 for one in moments]


def _edges(places: Sequence[float]) -> list[float]:
    """Return the ends of the stretches of evaluations: halfway to the ones beside them, and as far on both sides."""
    if len(places) == 1:
        return [places[0] - 0.5, places[0] + 0.5]
    halfway = [(one + other) / 2.0 for one, other in pairwise(places)]
    return [2.0 * places[0] - halfway[0], *halfway, 2.0 * places[-1] - halfway[-1]]


def _axis(items: Sequence[Json], *, titled: bool) -> Spec:
    """Return an axis of time, with some days, or of the numbers of evaluations where all are of one day."""
    places, n = _places(items), len(items)
    ends = _edges(places)
    if one_day := len({day(one) for one in items}) == 1:
        # Every so manieth one.
        ticks = [*range(1, n + 1, -(-n // _TICKS))]
        labels = [str(tick) for tick in ticks]
    else:
        ticks = sorted({round(places[-1] * step / (_TICKS - 1)) for step in range(_TICKS)})
        first = datetime.fromisoformat(items[0]["created_at"])
        labels = [written_day(first + timedelta(days=tick)) for tick in ticks]
    said = f"{labels!r}[indexof({ticks!r}, datum.value)]"
    title = f"evaluations of {day(items[0])}, in order" if one_day and titled else None
    return marks.quantity("place", title, domain=(ends[0], ends[-1]), ticks=ticks, labelExpr=said, grid=False)
