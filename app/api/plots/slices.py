"""Figure of slices: two attributes crossed, with how many are lost in each slice."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, Final

from app.api.documents.document import Json
from app.api.plots import marks
from app.api.plots.look import Figure, Look, Spec
from app.api.plots.marks import Row, apart, sentences
from app.api.plots.matrices import WITH_SHARES, coloured_by_share, grid, in_percent, ink_on_share
from app.api.plots.registry import FigureData, Needs, figure
from app.domain.catalogue import spoken
from app.domain.division import slice_text
from app.domain.errors import NoFigure
from app.domain.inputs.attributes import value_rank
from app.domain.wording import printable, share, whole

# Up to this many rows and columns a cell has its counts in it.
_WITH_COUNTS: Final = 8
_LARGE_CELL: Final = 76
# Of fewer cases a share has no colour.
_FEWEST: Final = 10


@figure("slices", needs=Needs.SLICES, room=lambda _: 0)
def slices(given: FigureData) -> Figure:
    """Slices of two attributes: how many cases are lost of so many, colours by the share; too small ones are empty."""
    answer = given.answer
    metric = next((name for one in answer["slices"] for name in one["metrics"] if _loses(answer, name)), None)
    pairs = list(dict.fromkeys(tuple(one["where"]) for one in answer["slices"] if len(one["where"]) == 2))
    if metric is None or not pairs:
        raise NoFigure("expected slices of two attributes, and a rate that differs between them")
    rows = {pair: [_row(one, answer, metric) for one in _of_pair(answer["slices"], pair)] for pair in pairs}
    coloured = [row for each in rows.values() for row in each if row["share"] is not None]
    worst = max(coloured, key=lambda row: row["share"], default=None)
    small = sum(len(_of_pair(answer["left_out"], pair)) for pair in pairs)
    return Figure(
        title=f"What is lost to {printable(spoken(metric))}, by two attributes at once",
        subtitle=(
            f"lost of all cases; colours: their share, of {_FEWEST} cases and more",
            _empty(small),
        ),
        text=sentences(
            "" if worst is None else f"The largest share is lost in {worst['said']}: {worst['counted']}.",
            _empty(small) and f"{_empty(small)}.",
        ),
        body=marks.side_by_side([_panel(given.look, rows[pair], answer, pair) for pair in pairs], below=True),
    )


def _empty(small: int) -> str:
    return f"{small} slice{'s' * (small > 1)} of too few samples {'are' if small > 1 else 'is'} empty" if small else ""


def _loses(answer: Json, metric: str) -> int:
    """Return 1 where hits of a rate are good, -1 where they are lost, as false alarms are, and 0 of what is no rate."""
    for one in answer["slices"]:
        counts = one["metrics"][metric].get("counts") or {"beyond": None}
        if counts["beyond"]:
            fewer = counts["among"] * counts["reference_hits"] - counts["hits"] * counts["reference_among"]
            return 1 if fewer * counts["beyond"] > 0 else -1
    return 0


def _of_pair(slices: Sequence[Json], pair: Sequence[str]) -> list[Json]:
    return [one for one in slices if tuple(one["where"]) == tuple(pair)]


def _row(one: Json, answer: Json, metric: str) -> Row:
    """A cell: the values of both attributes, and what is lost of the cases."""
    counts = one["metrics"][metric]["counts"]
    lost = counts["hits"] if _loses(answer, metric) < 0 else counts["among"] - counts["hits"]
    part = lost / counts["among"] if counts["among"] >= _FEWEST else None
    return {
        "where": one["where"],
        "count": counts["among"],
        "share": part,
        "counted": f"{whole(lost)} of {whole(counts['among'])}",
        "percent": "" if part is None else in_percent(part),
        "part": "" if part is None else share(part),
        "said": slice_text(one["where"]),
    }


def _panel(look: Look, rows: Sequence[Row], answer: Json, pair: Sequence[str]) -> Spec:
    every = [one["where"] for one in _of_pair([*answer["slices"], *answer["left_out"]], pair)]
    sides = [_names([where[name] for where in every], name) for name in pair]
    count = max(map(len, sides))
    if count > WITH_SHARES:
        raise NoFigure(f"expected at most {WITH_SHARES} values of an attribute, got {count}")
    cells = [
        {field: value for field, value in row.items() if field != "where"}
        | {field: side[repr(row["where"][name])] for field, side, name in zip(_FIELDS, sides, pair, strict=True)}
        for row in rows
    ]
    stroke: Spec = {"stroke": look.paper, "strokeWidth": 1}
    colour, ink = {"color": coloured_by_share(look, "share that is lost", right=False)}, {"color": ink_on_share(look)}
    told = (("percent", 0),) if count > _WITH_COUNTS else (("counted", -8), ("part", 9))
    return grid(
        look,
        cells,
        [
            marks.layer("rect", where="datum.share === null", color=f"{look.line}55", **stroke),
            marks.layer("rect", encoding=colour, where="datum.share !== null", **stroke),
            *(marks.texts(field, encoding=ink, fontSize=11, dy=dy) for field, dy in told),
        ],
        *((field, printable(name), [*side.values()]) for field, name, side in zip(_FIELDS, pair, sides, strict=True)),
        large=(_WITH_COUNTS, _LARGE_CELL),
    )


_FIELDS: Final = ("first", "second")


def _names(values: Sequence[Any], attribute: str) -> dict[str, str]:
    """Names of the values of an attribute, in their order."""
    ordered = dict(sorted({repr(value): value for value in values}.items(), key=lambda one: _place(one[1])))
    texts = [slice_text({attribute: one}).removeprefix(f"{attribute} ") for one in ordered.values()]
    return dict(zip(ordered, apart(texts), strict=True))


def _place(value: Any) -> tuple[int, float, str]:
    if isinstance(value, Mapping):
        return 1, -inf if value["from"] is None else value["from"], ""
    return value_rank(value)
