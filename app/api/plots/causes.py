"""Causes of differences as waterfalls: each part begins where the one before it ends, and the last bar is all of it."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from app.api.documents.comparison import cause_words, names_by_id
from app.api.documents.document import Json
from app.api.documents.history import LEVEL, causes_of
from app.api.documents.slices import held_against
from app.api.plots import marks
from app.api.plots.look import Figure, Look, Spec
from app.api.plots.marks import ROW_HEIGHT, Row, apart, sentences
from app.api.plots.registry import FigureData, Needs, figure
from app.domain.catalogue import titled
from app.domain.division import slice_text
from app.domain.errors import NoFigure
from app.domain.wording import PLAIN, dataset_name, percent, printable, run_names

_MOST: Final = 8
_ALL: Final = "all together"


class Fall(NamedTuple):
    """A difference by its name, what fell or rose and between what, with its causes as they are answered."""

    name: str
    causes: Json


def _room(falls: Sequence[Fall]) -> int:
    return 130 + sum(75 + (1 + len(one.causes["items"])) * (ROW_HEIGHT + 4) for one in falls[:_MOST])


@figure("causes", needs=Needs.COMPARISON, room=lambda answer: _room(falls_of_comparison(answer)), broad=True)
def causes_of_differences(given: FigureData) -> Figure:
    """A waterfall of each difference that was explained: its parts with limits, which add up to it."""
    answer = given.answer
    between = " less ".join(apart(run_names(answer["evaluations"]))) if len(answer["evaluations"]) == 2 else ""
    return _figure(given.look, falls_of_comparison(answer), between, answer["design"]["level"])


@figure("causes", needs=Needs.HISTORY, room=lambda answer: _room(falls_of_history(answer)), broad=True)
def causes_of_changes(given: FigureData) -> Figure:
    """A waterfall of each change of a history that has causes: its parts with limits, which add up to it."""
    answer = given.answer
    of = f"{printable(answer['model'])} on {dataset_name(answer['dataset'], version=True)}"
    return _figure(given.look, falls_of_history(answer), of, LEVEL)


@figure("causes", needs=Needs.SLICES, room=lambda _: 0, broad=True)
def causes_of_gaps(given: FigureData) -> Figure:
    """A waterfall of each settled difference of a slice: its parts with limits, which add up to it."""
    answer = given.answer
    return _figure(given.look, falls_of_slices(answer), f"each slice less {held_against(answer)}", answer["level"])


def falls_of_comparison(answer: Json) -> list[Fall]:
    """Return the differences that were explained."""
    runs = answer["evaluations"]
    names = names_by_id(answer, apart(run_names(runs)))
    return [
        Fall(
            printable(titled(key)) + (f", {names[pair['a']]} less {names[pair['b']]}" if len(runs) > 2 else ""),
            pair["causes"],
        )
        for key, metric in answer["metrics"].items()
        for pair in metric["differences"]
        if (pair.get("causes") or {}).get("items")
    ]


def falls_of_history(answer: Json) -> list[Fall]:
    """Return the changes that have several causes: of a class prevalence there is but one."""
    return [
        Fall(
            f"{printable(titled(one['metric']))}, {PLAIN.value(one['before'])} to {PLAIN.value(one['after'])}",
            one["causes"],
        )
        for one in answer["changes"]
        if causes_of(one)
    ]


def falls_of_slices(answer: Json) -> list[Fall]:
    """Return the differences that are settled and have causes, the largest first."""
    found = [
        Fall(f"{printable(titled(name))}, {slice_text(one['where'])}", value["causes"])
        for one in answer["slices"]
        for name, value in one["metrics"].items()
        if (value.get("causes") or {}).get("items")
        and (value["difference"] or {}).get("verdict") in ("worse", "better")
    ]
    return sorted(found, key=lambda fall: -abs(fall.causes["difference"]))


def _figure(look: Look, falls: Sequence[Fall], of: str, level: float) -> Figure:
    if not falls:
        raise NoFigure(
            "expected a difference with causes: a comparison with `explain`, a change that has some, or a settled "
            "difference of a slice"
        )
    shown = falls[:_MOST]
    left = f"the first {len(shown)} of {len(falls):,}" if shown != falls else ""
    return Figure(
        title="Causes of the differences",
        subtitle=(
            *([of] if of else []),
            f"each part begins where the one before it ends; lines: {percent(level, None)} limits of a part",
            *([left] if left else []),
        ),
        text=sentences(*(f"{one.name}: {'; '.join(_said(part) for part in _parts(one))}." for one in shown)),
        body=marks.side_by_side([_panel(look, one) for one in shown], below=True, spacing=18),
    )


def _said(part: Json) -> str:
    return f"{_name(part)} {PLAIN.said(part['value'], part['low'], part['high'], sign=True)}"


def _parts(fall: Fall) -> list[Json]:
    """Return the parts, the largest first."""
    return sorted(fall.causes["items"], key=lambda one: -abs(one["value"]))


def _name(cause: Json) -> str:
    return printable("".join(cause_words(cause)))


def _panel(look: Look, fall: Fall) -> Spec:
    rows = list(_rows(fall))
    for row, name in zip(rows, apart([row["cause"] for row in rows]), strict=True):
        row["cause"] = name
    ends = [0.0, *(row[end] for row in rows for end in ("from", "to", "low", "high") if row[end] is not None)]
    room = 0.08 * (max(ends) - min(ends)) or 0.01
    x = marks.quantity("from", None, domain=(min(ends) - room, max(ends) + room), tickCount=5, grid=True)
    names = [row["cause"] for row in rows]
    y, zero = {"y": marks.listed("cause", names)}, {"x": {**x, "field": "zero"}, **marks.FULL_HEIGHT}
    limits = [row for row in rows if row["low"] is not None and row["high"] is not None]
    colours = ["the value rises", "the value falls", _ALL]
    kinds = [one for one in colours if any(row["kind"] == one for row in rows)]
    shown_as = dict(zip(colours, [look.series[0], look.series[2], look.quiet], strict=True))
    colour = {"color": marks.named("kind", kinds, [shown_as[one] for one in kinds], orient="bottom")}
    return marks.panel(
        look,
        (330, {"step": ROW_HEIGHT + 4}),
        [
            marks.layer("rule", [{"zero": 0}], zero, name="zero", color=look.ink),
            marks.layer("bar", rows, {**marks.span(x, "x", "from", "to"), **y, **colour}, name="parts", height=12),
            marks.layer("rule", limits, {**marks.span(x, "x", "low", "high"), **y}, name="limits", color=look.ink),
            marks.texts("said", rows, {"x": {"value": "width"}, **y}, name="said", align="left", dx=8),
        ],
        title=fall.name,
    )


def _rows(fall: Fall) -> Iterator[Row]:
    """Yield the bars: parts from where the one before ended, with their limits there, then all of them."""
    at = 0.0
    for one in _parts(fall):
        low, high = (None if end is None else at + end for end in (one["low"], one["high"]))
        kind = "the value rises" if one["value"] > 0 else "the value falls"
        said = PLAIN.said(one["value"], one["low"], one["high"], sign=True)
        yield _row(_name(one), kind, (at, at + one["value"]), (low, high), said)
        at += one["value"]
    yield _row(_ALL, _ALL, (0.0, at), (None, None), PLAIN.value(at, sign=True))


def _row(cause: str, kind: str, ends: tuple[float, float], limits: tuple[float | None, float | None], said: str) -> Row:
    (start, end), (low, high) = ends, limits
    # With the minus that the axis has.
    said = said.replace("-", "\u2212")
    return {"cause": cause, "kind": kind, "from": start, "to": end, "low": low, "high": high, "said": said}
