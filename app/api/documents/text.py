"""Writes documents for a terminal: plain characters, a fixed width, at most 60 lines for any number of classes."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from string import ascii_uppercase

from app.api.documents.document import (
    Cell,
    Column,
    Document,
    Estimate,
    Group,
    Kind,
    Link,
    Matrix,
    Medium,
    Rules,
    Said,
    Table,
    Tag,
    Term,
)
from app.domain.wording import PLAIN, printable, whole

NARROWEST, USUAL, WIDEST = 60, 80, 200
_COMBINING = frozenset({"Mn", "Me"})
_ELLIPSIS = ".."
_MOST_SAID, _MOST_LINES = 4, 16
# A number stays with its unit.
_BREAKS = re.compile(r" (?!%)")


@dataclass(frozen=True, slots=True)
class Style:
    """The width of a text, and which characters its pictures are made of."""

    width: int = USUAL
    unicode: bool = False


def write_text(document: Document, style: Style) -> str:
    """Return a document as a text."""
    opening = document.said(Medium.TEXT)
    lines = _heading(document, style.width)
    said = [_said(one, style.width) for one in opening]
    # Long names make long sentences: the gravest comes always, others as far as there is room.
    ends = [*accumulate(map(len, said))]
    kept = sum(place == 0 or end <= _MOST_LINES for place, end in enumerate(ends[:_MOST_SAID]))
    lines += chain.from_iterable(said[:kept])
    if said[kept:]:
        lines += wrapped("", f"{len(said) - kept} more: in the JSON", style.width)
    for block in document.blocks(Medium.TEXT):
        match block:
            case Said():
                lines += _said(block, style.width)
            case Table():
                lines += _table(block, style)
            case Matrix():
                lines += _table(_counts(block, style.width), style)
            case Rules():
                lines += _table(block.table, style)
    if document.path:
        lines += wrapped("MORE", f"/v1/{document.path} (json, csv)", style.width)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _heading(document: Document, width: int) -> list[str]:
    """Return the title and the facts at both ends of a line; on several lines where they do not fit into one."""
    verdict = document.banner
    word = "" if verdict is None else verdict.word.replace(verdict.kind, verdict.kind.upper(), 1)
    title = "  ".join(filter(None, [word, " ".join(filter(None, [plain(document.title), plain(document.on)]))]))
    facts = ", ".join(plain(cell) for name, cell in document.facts if not name)
    gap = width - columns_of(title) - columns_of(facts)
    return (
        [title + " " * gap + facts]
        if gap >= 2
        else [*wrapped("", title, width, 0), *(right(one, width) for one in wrapped("", facts, width, 0))]
    )


def _said(one: Said, width: int) -> list[str]:
    return wrapped(one.kind.upper(), plain(one.text), width)


def plain(cell: Cell) -> str:
    """Return a cell without an interval as a text has it; what a terminal would obey is written out."""
    match cell:
        case None:
            return PLAIN.absent
        case Estimate():
            return estimated(cell)[0]
        case Tag():
            return cell.word
        case Link():
            return printable(cell.name)
        case Term():
            return printable(cell.key)
        case tuple():
            return printable("".join(cell))
    return printable(cell)


def estimated(cell: Cell) -> tuple[str, str]:
    """Return the value and the interval of a cell."""
    return cell.written(PLAIN) if isinstance(cell, Estimate) else (plain(cell), PLAIN.absent)


# --- lines -----------------------------------------------------------------------------------------------------------


def columns_of(text: str) -> int:
    """Return how many columns of a terminal a text takes: two for wide characters, none for those that combine."""
    if text.isascii():
        return len(text)
    return sum(_columns(one) for one in text)


def _columns(character: str) -> int:
    if unicodedata.category(character) in _COMBINING:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def left(text: str, width: int) -> str:
    """Return the text with spaces behind it."""
    return text + " " * (width - columns_of(text))


def right(text: str, width: int) -> str:
    """Return the text with spaces before it."""
    return " " * (width - columns_of(text)) + text


def wrapped(head: str, text: str, width: int, indent: int = 9) -> list[str]:
    """Return a heading and sentences beside it, in lines of ``width`` that begin ``indent`` columns in. No word is cut,
    so a name without spaces may stand out.
    """
    lines, line = [], left(head, indent)
    empty = True
    for word in _BREAKS.split(text):
        if not empty and columns_of(line) + 1 + columns_of(word) > width:
            lines.append(line)
            line, empty = " " * indent, True
        line += word if empty else f" {word}"
        empty = False
    return [*lines, line.rstrip()]


def shortened(labels: Sequence[str], width: int) -> list[str]:
    """Return names in at most ``width`` columns: cut in the middle, there where most of them still differ."""
    if all(columns_of(label) <= width for label in labels):
        return list(labels)
    kept, best = width - len(_ELLIPSIS), list[str]()
    for head in sorted(range(kept + 1), key=lambda head: abs(head - (kept + 1) // 2)):
        cut = [
            label
            if columns_of(label) <= width
            else _fitting(label, head) + _ELLIPSIS + _fitting(label[::-1], kept - head)[::-1]
            for label in labels
        ]
        best = max(best, cut, key=lambda names: len(set(names)))
        if len(set(best)) == len(set(labels)):
            break
    return best


def _fitting(text: str, width: int) -> str:
    """Return as much of the beginning of a text as fits."""
    if text.isascii():
        return text[:width]
    return text[: sum(used <= width for used in accumulate(map(_columns, text)))]


# --- tables ----------------------------------------------------------------------------------------------------------

_GAP = "  "
# Beside a picture names are shorter; the last column of words has at least so much room.
_LONGEST_NAME, _LONGEST_HEAD, _LEAST_WORDS = 26, 20, 20
_LONGEST_LABEL, _SHORTEST_LABEL = 8, 4
_ACTUAL = "actual, predicted as"


@dataclass(slots=True)
class _Printed:
    """One column as it is printed: an estimate takes two, and a third one for its picture.

    Attributes:
        width: That of the longest cell. A cell that is wider goes on in further lines.
        drawn: The estimates of a picture.
    """

    head: str
    cells: list[str]
    kind: Kind
    width: int = 0
    drawn: Sequence[Cell] = ()

    @classmethod
    def of(cls, head: str, cells: list[str], kind: Kind) -> "_Printed":
        return cls(head, cells, kind, max(map(columns_of, [head, *cells])))

    def placed(self, text: str) -> str:
        """Return a text in this column: counts end below each other, all else begins there."""
        return _GAP + (right(text, self.width) if self.kind is Kind.NUMBER else left(text, self.width))


def _table(table: Table, style: Style) -> Iterator[str]:
    """Yield headings and rows below an empty line; nothing of a table without rows."""
    kept, others = table.within(Medium.TEXT, table.short)
    rows = kept.rows
    if not rows:
        return
    yield ""
    columns = _lettered(kept.columns)
    for letter, column in zip(columns, kept.columns, strict=True):
        if letter is not column:
            yield from wrapped("", f"{plain(letter.head)}: {plain(column.head)}", style.width, len(_GAP))
    printed = [
        one
        for place, column in enumerate(columns)
        for one in _printed(column, [row[place] for row in rows], kept.interval)
    ]
    printed = _fitted(printed, style)
    yield "".join(one.placed(one.head) for one in printed)
    number = 0
    for group in kept.groups:
        if group.title:
            yield from wrapped("", plain(group.title), style.width, 0)
        for _ in group.rows:
            yield from _row([(one, one.cells[number]) for one in printed], style.width)
            number += 1
    if others.rows:
        yield f"{_GAP}{len(others.rows)} more {table.rest}: in the JSON"


def _lettered(columns: Sequence[Column]) -> list[Column]:
    """Return columns of which those named by runs or metrics have letters as headings, where one of the names is too
    long.
    """
    named = [one for one in columns if not isinstance(one.head, str)]
    if all(columns_of(plain(one.head)) <= (one.cut or _LONGEST_HEAD) for one in named):
        return list(columns)
    letters = iter(ascii_uppercase)
    return [one if isinstance(one.head, str) else replace(one, head=next(letters)) for one in columns]


def _printed(column: Column, cells: Sequence[Cell], interval: str) -> Iterator[_Printed]:
    both = [estimated(cell) for cell in cells]
    values = [value for value, _ in both]
    if column.cut and column.kind is Kind.NAME:
        values = shortened(values, column.cut)
    yield _Printed.of(plain(column.head), values, column.kind)
    if column.kind not in (Kind.ESTIMATE, Kind.DRAWN):
        return
    between = _Printed.of(interval, [one for _, one in both], column.kind)
    between.cells = [_noted(cell, one) for cell, one in zip(cells, between.cells, strict=True)]
    if set(between.cells) != {PLAIN.absent}:
        yield between
    if column.kind is Kind.DRAWN:
        yield _Printed("", [], Kind.DRAWN, drawn=cells)


def _noted(cell: Cell, interval: str) -> str:
    """Return the interval of a cell, or what stands in its place."""
    return printable(cell.note) if isinstance(cell, Estimate) and cell.note and cell.low is None else interval


def _fitted(printed: list[_Printed], style: Style) -> list[_Printed]:
    """Return the columns in the width of a text: names and the last words give way, a picture takes what is left."""
    last, name = printed[-1], next((one for one in printed if one.kind is Kind.NAME), None)
    picture = next((one for one in printed if one.drawn), None)
    room = style.width - sum(len(_GAP) + one.width for one in printed)
    if room < 0 and last.kind is Kind.WORDS:
        given = min(-room, max(0, last.width - _LEAST_WORDS))
        last.width, room = last.width - given, room + given
    if name is not None:
        longest = min(name.width + min(room, 0), _LONGEST_NAME if picture is not None else name.width)
        given = max(0, name.width - max(longest, columns_of(name.head)))
        name.width, room = name.width - given, room + given
    if picture is None:
        return printed
    track = Track.within(room, style)
    if not track.steps:
        return [one for one in printed if one is not picture]
    cells = [track.drawn(one) if isinstance(one, Estimate) else "" for one in picture.drawn]
    drawn = _Printed.of(track.scale, cells, Kind.DRAWN)
    return [drawn if one is picture else one for one in printed]


def _row(cells: Sequence[tuple[_Printed, str]], width: int) -> Iterator[str]:
    """Yield one row. A longer name has a line of its own; another longer text ends the row, or stands below it."""
    line, below = "", list[str]()
    for place, (column, cell) in enumerate(cells, start=1):
        start = columns_of(line) + len(_GAP)
        if columns_of(cell) <= column.width:
            line += column.placed(cell)
        elif column.kind is Kind.NAME:
            yield line + _GAP + cell
            line = " " * (start + column.width)
        elif any(other for _, other in cells[place:]):
            below += wrapped("", cell, width, start)
            line += column.placed("")
        else:
            yield from [*wrapped(line + _GAP, cell, width, start), *below]
            return
    yield from [line, *below]


def _counts(matrix: Matrix, width: int) -> Table:
    """Return a matrix of few classes as a table, its labels cut as far as its width asks for; its largest mistakes
    where even so it does not fit.
    """
    names = [printable(label) for label in matrix.labels]
    predicted = [sum(column) for column in zip(*matrix.counts, strict=True)]
    counts = [[whole(count) if count else "." for count in row] for row in matrix.counts]
    sizes, totals = [*map(whole, map(sum, matrix.counts)), whole(sum(predicted))], [*map(whole, predicted)]
    widest = [max(map(len, column)) for column in zip(totals, *counts, strict=True)]
    room = width - len(_ACTUAL) - max(map(len, sizes)) - len(_GAP) * (2 + len(names))
    lengths = range(_LONGEST_LABEL, _SHORTEST_LABEL - 1, -1)
    longest = next((one for one in lengths if sum(max(one, each) for each in widest) <= room), None)
    if longest is None:
        return matrix.mistakes
    labels = shortened(names, longest)
    columns = [
        Column(_ACTUAL, Kind.NAME),
        *(Column(label, Kind.NUMBER) for label in labels),
        Column("n", Kind.NUMBER),
    ]
    rows: list[list[Cell]] = [
        [label, *row, size] for label, row, size in zip([*labels, "total"], [*counts, totals], sizes, strict=True)
    ]
    return Table("Confusion matrix", columns, [Group(rows)])


# --- pictures --------------------------------------------------------------------------------------------------------

_SHORTEST, _LONGEST = 13, 41


@dataclass(frozen=True, slots=True)
class Track:
    """A picture of a line from 0 to 1, with a value and its limits on it.

    Attributes:
        steps: How many columns there are from 0 to 1, both of them; 0 where there is no room for a picture.
    """

    steps: int
    unicode: bool = False

    @classmethod
    def within(cls, columns: int, style: Style) -> "Track":
        """Return the longest one with whole columns at the quarters that fits, its two ends included."""
        room = min(columns - 2, _LONGEST)
        return cls(room - (room - 1) % 4 if room >= _SHORTEST else 0, style.unicode)

    @property
    def scale(self) -> str:
        """Return the numbers above it."""
        line = [" "] * (self.steps + 2)
        quarters = ((0.25, ".25"), (0.75, ".75")) if self.steps > _SHORTEST else ()
        for place, text in (*quarters, (0.0, "0"), (0.5, ".5"), (1.0, "1")):
            at = 1 + self._column(place) - (1 if len(text) > 2 else 0) - (1 if text == ".5" else 0)
            line[at : at + len(text)] = text
        return "".join(line).rstrip()

    def drawn(self, one: Estimate) -> str:
        """Return one line, empty for what does not lie between 0 and 1."""
        value, low, high = one.value, one.low, one.high
        if value is None or not one.is_drawn:
            return ""
        opened, between, point, closed, edge = "├─●┤│" if self.unicode else "[-o]|"
        line = [" "] * self.steps
        if low is not None and high is not None:
            first, last = self._column(low), self._column(high)
            line[first : last + 1] = between * (last + 1 - first)
            line[first], line[last] = opened, closed
        line[self._column(value)] = point
        return edge + "".join(line) + edge

    def _column(self, value: float) -> int:
        return int(value * (self.steps - 1) + 0.5)
