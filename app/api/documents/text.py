"""Writes documents for a terminal: plain characters, a fixed width, at most 60 lines for any number of classes."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from app.api.documents.document import (
    Cell,
    Column,
    Document,
    Estimate,
    Facet,
    Group,
    Link,
    Matrix,
    Medium,
    Name,
    Said,
    Space,
    Table,
    Tag,
    Term,
    Words,
    Written,
)
from app.api.documents.reading import shown
from app.domain.wording import PLAIN, whole

NARROWEST, USUAL, WIDEST = 60, 80, 200
_COMBINING = frozenset({"Mn", "Me"})
_ELLIPSIS = ".."
_INDENT = 2
# A number stays with its unit.
_BREAKS = re.compile(r" (?!%)")


@dataclass(frozen=True, slots=True)
class Style:
    """The width of a text, and which characters its pictures are made of."""

    width: int = USUAL
    unicode: bool = False


def write_text(document: Document, style: Style) -> str:
    """Return a document as a text."""
    first, second = document.heading
    lines = opposite(shown(first), shown(second), style.width)
    for one in _at_most(document.opening, document.most.get(Medium.TEXT)):
        lines += _said(one, style)
    previous = ""
    for block in document.blocks(Medium.TEXT):
        match block:
            case Said():
                head = " " * 9 if block.kind == previous and block.kind in _ONCE else block.kind
                lines += _said(replace(block, kind=head), style)
                previous = block.kind
            case Table():
                lines += _Columns(block, style).lines()
            case Matrix():
                lines += _Classes(block, style).lines()
            case Space():
                lines.append("")
    return "\n".join(line.rstrip() for line in lines) + "\n"


# Headings that stand before the first of several sentences.
_ONCE = frozenset({"WHY", "READ"})


def _at_most(findings: Sequence[Said], most: int | None) -> list[Said]:
    found = [one for one in findings if Medium.TEXT in one.only]
    if most is None or len(found) <= most:
        return found
    return [*found[:most], Said(" " * 9, f'{len(found) - most} more in "findings".')]


def _said(said: Said, style: Style) -> list[str]:
    if not said.kind.strip():
        return wrapped("", _words(said.text), style.width, len(said.kind))
    return wrapped(said.kind.strip().upper(), _words(said.text), style.width)


def _words(text: Words) -> str:
    return shown(text if isinstance(text, str) else "".join(text))


def cell_text(cell: Cell, facet: Facet = Facet.WHOLE) -> str:
    """Return a cell of a table as texts and Markdown have it; names are not escaped."""
    match cell:
        case None:
            return PLAIN.absent
        case Estimate():
            return _estimate(cell, facet)
        case Tag():
            return cell.word
        case Link() | Term():
            return cell.name
        case Written() if facet is Facet.INTERVAL:
            return PLAIN.absent
    return _words(cell)


def _estimate(one: Estimate, facet: Facet) -> str:
    digits = PLAIN.decimals(one.value, one.low, one.high, near=one.near) if one.digits is None else one.digits
    limited = one.low is not None or one.high is not None
    match facet:
        case Facet.TWIN:
            return PLAIN.fixed(None if one.twin is None else one.twin.value, digits, count=not limited)
        case Facet.INTERVAL if limited:
            return " to ".join(PLAIN.fixed(end, digits, sign=one.sign) for end in (one.low, one.high))
        case Facet.INTERVAL:
            return PLAIN.absent
    count = not limited and one.digits is None
    return PLAIN.fixed(one.value, digits, sign=one.sign, count=count)


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


def opposite(first: str, second: str, width: int) -> list[str]:
    """Return two texts at both ends of a line; on two lines where they do not fit into one."""
    gap = width - columns_of(first) - columns_of(second)
    return [first + " " * gap + second] if gap >= 2 else [first, right(second, width)]


def shortened(labels: Sequence[str], width: int) -> list[str]:
    """Return names in at most ``width`` columns: cut in the middle, there where most of them still differ."""
    if all(columns_of(label) <= width for label in labels):
        return list(labels)
    kept = width - len(_ELLIPSIS)
    middle = (kept + 1) // 2
    best: list[str] = []
    for head in sorted(range(kept + 1), key=lambda head: abs(head - middle)):
        cut = [_cut(label, width, head, kept - head) for label in labels]
        if len(set(cut)) > len(set(best)):
            best = cut
        if len(set(best)) == len(set(labels)):
            break
    return best


def _cut(label: str, width: int, head: int, tail: int) -> str:
    if columns_of(label) <= width:
        return label
    return _fitting(label, head) + _ELLIPSIS + _fitting(label[::-1], tail)[::-1]


def _fitting(text: str, width: int) -> str:
    taken, used = [], 0
    for one in text:
        used += _columns(one)
        if used > width:
            break
        taken.append(one)
    return "".join(taken)


# --- tables ----------------------------------------------------------------------------------------------------------


class _Columns:
    """A table in columns that are as wide as their cells."""

    def __init__(self, table: Table, style: Style) -> None:
        self._table, self._style = table, style
        self._columns = table.shown(Medium.TEXT)
        self._groups, rest = table.first(Medium.TEXT)
        self._rest = len(rest)
        written = [[self._cell(column, row) for column in self._columns] for row in self._rows()]
        for place, column in enumerate(self._columns):
            if column.cut:
                for row, name in zip(written, shortened([row[place] for row in written], column.cut), strict=True):
                    row[place] = name
        self._written = iter(written)
        heads = self._heads()
        self._widths = [
            max([column.width, columns_of(heads[place]), *(columns_of(row[place]) for row in written)])
            for place, column in enumerate(self._columns)
        ]
        self._fit()
        self._track = Track.within(style.width - self._start(len(self._columns) - 1), style)

    def _heads(self) -> list[str]:
        heads = [_words(one.head) if not isinstance(one.head, Link) else shown(one.head.name) for one in self._columns]
        # A heading that is wider than its column says less than the word for what stands there.
        return [
            "value" if isinstance(one.head, Name) and columns_of(head) > max(one.width, 14) else head
            for one, head in zip(self._columns, heads, strict=True)
        ]

    def _rows(self) -> Iterator[Sequence[Cell]]:
        return (row for group in self._groups for row in group.rows)

    def _fit(self) -> None:
        """Leave the names the room that the other columns leave; longer ones have a line of their own."""
        named = next((place for place, one in enumerate(self._columns) if one.named), None)
        if named is None or self._columns[named].cut:
            return
        column = self._columns[named]
        others = (
            sum(width + one.gap for width, one in zip(self._widths, self._columns, strict=True)) - self._widths[named]
        )
        room = column.width if column.width and self._is_free(-1) else self._style.width - others
        self._widths[named] = max(min(self._widths[named] + (0 if column.width else _INDENT), room), column.width)

    def _is_free(self, place: int) -> bool:
        return self._columns[place].facet is Facet.TRACK

    def _start(self, place: int) -> int:
        """Return where a column begins."""
        before = zip(self._widths[:place], self._columns[:place], strict=True)
        return sum(width + one.gap for width, one in before) + self._columns[place].gap

    def lines(self) -> Iterator[str]:
        """Yield the headings and the rows."""
        if not self._groups:
            return
        heads = self._heads()
        titled = self._groups and self._groups[0].title and not self._groups[0].title.startswith(" ")
        if titled:
            heads[0] = self._groups[0].title
        if self._is_free(-1):
            heads[-1] = self._track.scale
        if any(heads):
            yield self._line(heads, titled=bool(titled))
        for place, group in enumerate(self._groups):
            if group.title and (place or not titled):
                last = "" if group.last is None else _words(group.last.head if isinstance(group.last.head, str) else "")
                begin = min(self._start(len(self._columns) - 1), self._style.width - columns_of(last))
                yield left(group.title, begin if last else 0) + last
            for row in group.rows:
                yield from self._row(row, next(self._written), group)
        if self._rest > 0:
            yield self._table.after or f'  {self._rest} more: in "{self._table.rest}"'

    def _row(self, row: Sequence[Cell], cells: list[str], group: Group) -> Iterator[str]:
        last = self._columns[-1]
        estimate = row[last.cell]
        if self._is_free(-1) and isinstance(estimate, Estimate):
            if group.last is not None:
                cells[-1] = "" if group.last.facet is Facet.TRACK else f"  {self._cell(group.last, row)}"
            else:
                cells[-1] = self._track.drawn(estimate)
            if estimate.note and estimate.low is None:
                # It takes the place of the interval and of what stands behind that.
                cells[-2:] = [estimate.note]
        unknown = next((one for one in row if isinstance(one, Estimate) and one.value is None and one.reason), None)
        named = next((place for place, one in enumerate(self._columns) if one.named), None)
        if named is not None and columns_of(cells[named]) > self._widths[named]:
            yield self._line(cells[: named + 1])
            cells = ["" for _ in cells[: named + 1]] + cells[named + 1 :]
        if unknown is not None:
            place = next(k for k, one in enumerate(self._columns) if one.facet is Facet.INTERVAL)
            begin = left(self._line(cells[:place]), self._start(place))
            yield from wrapped(begin, shown(unknown.reason), self._style.width, self._start(place))
            return
        yield self._line(cells)

    def _line(self, cells: Sequence[str], *, titled: bool = False) -> str:
        line = ""
        for place, (column, width, cell) in enumerate(zip(self._columns, self._widths, cells, strict=False)):
            gap = "" if titled and not place else " " * column.gap
            room = width + column.gap if titled and not place else width
            line += gap + (right(cell, room) if column.right else left(cell, room))
        return line

    def _cell(self, column: Column, row: Sequence[Cell]) -> str:
        return "" if column.facet is Facet.TRACK else shown(cell_text(row[column.cell], column.facet))


# --- pictures --------------------------------------------------------------------------------------------------------


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
        if not self.steps:
            return ""
        line = [" "] * (self.steps + 2)
        for place, text in ((0.0, "0"), (0.25, ".25"), (0.5, ".5"), (0.75, ".75"), (1.0, "1")):
            at = 1 + self._column(place) - (1 if len(text) > 2 else 0) - (1 if text == ".5" else 0)
            line[at : at + len(text)] = text
        return "".join(line).rstrip()

    def drawn(self, one: Estimate) -> str:
        """Return one line, empty for what does not lie between 0 and 1."""
        value, low, high = one.value, one.low, one.high
        if (
            not self.steps
            or value is None
            or not all(0.0 <= end <= 1.0 for end in (value, low, high) if end is not None)
        ):
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


_SHORTEST, _LONGEST = 13, 41


# --- confusion matrices ----------------------------------------------------------------------------------------------


class _Classes:
    """A confusion matrix: whole while it fits, then the weakest classes and the largest confusions."""

    def __init__(self, matrix: Matrix, style: Style) -> None:
        self._matrix, self._width = matrix, style.width
        self._labels = [shown(label) for label in matrix.labels]
        self._recalls = [cell_text(one, Facet.VALUE) for one in matrix.recalls]
        self._limits = [cell_text(one, Facet.INTERVAL) for one in matrix.recalls]
        self._precisions = [PLAIN.value(one) for one in matrix.precisions]
        self._n = [whole(n) for n in matrix.sizes]

    def lines(self) -> list[str]:
        """Return the matrix, or what is worst in it."""
        lines = self._whole()
        return lines if lines is not None else [*self._weakest(), *self._confusions()]

    def _whole(self) -> list[str] | None:
        """Return all of it; None where there is no room."""
        size, counts = len(self._labels), self._matrix.counts
        if size > _MOST_ROWS:
            return None
        names = shortened(self._labels, _LONGEST_NAME)
        cells = [[whole(count) if count else "." for count in row] for row in counts]
        sums = [whole(sum(column)) for column in zip(*counts, strict=True)]
        widths = [max(columns_of(names[k]), len(sums[k]), *(len(row[k]) for row in cells)) for k in range(size)]
        everything = whole(sum(self._matrix.sizes))
        most = max(len("n"), *map(len, self._n), len(everything))
        first = max(columns_of(one) for one in (*names, "total", "ACTUAL")) + 2
        limits = max(14, *map(len, self._limits))
        ends = [
            f"  {right(self._n[k], most)}  {right(self._recalls[k], 6)}"
            f"  {left(self._limits[k], limits)}  {right(self._precisions[k], 9)}"
            for k in range(size)
        ]
        if first + sum(width + 2 for width in widths) + max(map(len, ends)) + 3 > self._width:
            return None
        weakest = next(iter(self._matrix.weakest), None)

        def joined(row: Sequence[str]) -> str:
            return "".join("  " + right(cell, width) for cell, width in zip(row, widths, strict=True))

        head = f"  {right('n', most)}  recall  {left('95 % interval', limits)}  precision"
        lines = [left("ACTUAL", first) + joined(names) + head]
        lines += [
            left(f"  {names[k]}", first) + joined(cells[k]) + ends[k] + ("  <" if k == weakest else "")
            for k in range(size)
        ]
        total = left("  total", first) + joined(sums) + f"  {right(everything, most)}"
        return [*lines, total + "   columns: predicted as   <: weakest"]

    def _weakest(self) -> list[str]:
        """Return the classes of the lowest recalls, and what they were taken for."""
        order = self._matrix.weakest
        names = shortened(self._labels, 26)
        lines = [left("WEAKEST CLASSES", 29) + "      n  recall  95 % interval   mostly taken for"]
        for k in order[:_WEAKEST]:
            taken = ""
            for count, other in self._matrix.taken_for(k, 1):
                room = max(self._width - 63 - len(whole(count)) - 1, 8)
                taken = f"{whole(count)} {shortened([self._labels[other]], room)[0]}"
            size, recalled = right(self._n[k], 7), right(self._recalls[k], 6)
            lines.append(left(f"  {names[k]}", 29) + f"{size}  {recalled}  {left(self._limits[k] + ' ', 16)}{taken}")
        rest = [self._matrix.recalls[k].value for k in order[_WEAKEST:]]
        if rest:
            lines.append(f"  the other {len(rest)}: recall {PLAIN.interval(rest[0], rest[-1])}")
        unknown = len(self._labels) - len(order)
        if unknown:
            lines.append(f"  {unknown} without samples")
        return lines

    def _confusions(self) -> list[str]:
        """Return the largest entries beside the diagonal."""
        largest = self._matrix.mistakes(_CONFUSIONS)
        if not largest:
            return []
        names = shortened(self._labels, 30)
        lines = [left("LARGEST CONFUSIONS", 34) + left("taken for", 32) + "cases"]
        return lines + [
            left(f"  {names[actual]}", 34) + left(names[other], 32) + f"{whole(count)} of {self._n[actual]}"
            for count, actual, other in largest
        ]


# More rows than this would not leave room for the rest in 60 lines.
_MOST_ROWS, _LONGEST_NAME = 20, 16
_WEAKEST, _CONFUSIONS = 8, 4
