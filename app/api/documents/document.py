"""The parts of a document: sentences, tables of numbers, a matrix, rules. Nothing in it is rounded or escaped yet.

A document holds the values of an answer and the words around them. The writers decide how numbers, names and marks look
in their format, so a new noun is one function that makes a document, and a new format is one writer.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from app.domain.wording import Notation

Json = Mapping[str, Any]


class Medium(StrEnum):
    """The formats that documents are written in, besides CSV."""

    TEXT = "text"
    MARKDOWN = "markdown"
    PAGE = "page"


ALL: Final = frozenset(Medium)
TEXT: Final = frozenset({Medium.TEXT})
PAGE: Final = frozenset({Medium.PAGE})
SHORT: Final = ALL - PAGE


class Name(str):
    """A name that came with a request: data, and never markup."""

    __slots__ = ()


class MetricName(Name):
    """The key of a metric, in place of which a page has its name."""

    __slots__ = ()


# A sentence with names in it.
Words = str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its limits.

    Attributes:
        value: None for one that is not defined.
        sign: It is a difference.
        note: Stands in place of an interval that there is not: why there is no value, or what to hold it against.
        twin: The same at equal class prevalence.
        moves: Prevalence moves it, as far as is known; None where there are no classes to speak of.
        near: Limits of a rule, which it must not read as.
        against: A value that it is held against: a dashed line where it is drawn.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    sign: bool = False
    note: str = ""
    twin: "Estimate | None" = None
    moves: bool | None = True
    near: tuple[float, ...] = ()
    against: float | None = None

    def written(self, notation: Notation) -> tuple[str, str]:
        """Return the value and its interval."""
        return notation.estimate(self.value, self.low, self.high, sign=self.sign, near=self.near)

    @property
    def is_drawn(self) -> bool:
        """Does it lie on a line from 0 to 1 with its limits?"""
        ends = [end for end in (self.low, self.high) if end is not None]
        return self.value is not None and all(0.0 <= end <= 1.0 for end in (self.value, *ends))


@dataclass(frozen=True, slots=True)
class Tag:
    """A verdict: its word, and the kind that gives it a colour and a sign."""

    kind: str
    word: str
    icon: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """A name with the address that a page of the service leads to, and the parameters of that."""

    name: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Term:
    """A metric: its key, and the name by which a page calls and explains it."""

    key: str
    name: str


Cell = Words | Term | Estimate | Tag | Link | None


class Kind(StrEnum):
    """Kinds of columns, by what stands in them.

    ``NAME`` names the row. ``NUMBER`` is written already: counts, chances and p values. ``VALUE`` is an estimate of
    which the value is shown, ``ESTIMATE`` has its interval beside it, and ``DRAWN`` a picture of both on a line from 0
    to 1.
    """

    NAME = "name"
    WORDS = "words"
    NUMBER = "number"
    VALUE = "value"
    ESTIMATE = "estimate"
    DRAWN = "drawn"


def _is_empty(cell: Cell) -> bool:
    return cell in (None, "") or (isinstance(cell, Estimate) and cell.value is None and not cell.note)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        cut: Names of classes and runs are cut to so many columns of a text. Other names are never cut. A heading that
            names a run or a metric and is longer is a letter there, which is explained above the table.
        only: The formats that have it.
        style: Of its cells on a page.
    """

    head: Words | Link
    kind: Kind = Kind.WORDS
    cut: int = 0
    only: frozenset[Medium] = ALL
    style: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of a table, with a heading where there are several groups."""

    rows: Sequence[Sequence[Cell]]
    title: Words = ""


def fitting(count: int, most: int) -> int:
    """Return how many of so many rows are shown: one above the most takes no more room than the line that counts it."""
    return count if count == most + 1 else most


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of names and numbers; a column without content is not written, unless it is that of a run.

    Attributes:
        caption: The contents in words.
        interval: Heading of the column of intervals.
        short: Rows of a text. Markdown and pages have their own bounds; the other rows are counted, or folded.
        rest: The word for the other rows.
        style: Of the table on a page.
        folded: A page shows it on demand.
        sorted_by: Heading of the column that the rows rise by, where a page lets them be sorted by others.
        balanced: What balanced values are of, in the legend of a page.
    """

    caption: str
    columns: Sequence[Column]
    groups: Sequence[Group]
    interval: str = "interval"
    short: int | None = None
    rest: str = "rows"
    style: str = "stick"
    folded: bool = False
    sorted_by: str = ""
    balanced: str = ""
    only: frozenset[Medium] = ALL

    def within(self, medium: Medium, most: int | None = None) -> tuple["Table", "Table"]:
        """Return what a format has of it: the columns with content and those of runs, which are told apart by them, and
        the first rows apart from the others.
        """
        rows = [row for group in self.groups for row in group.rows]
        kept = [
            place
            for place, column in enumerate(self.columns)
            if medium in column.only
            and (isinstance(column.head, Link) or not all(_is_empty(row[place]) for row in rows))
        ]
        room = len(rows) if most is None else fitting(len(rows), most)
        first, others = list[Group](), list[Group]()
        for group in self.groups:
            cells = [[row[place] for place in kept] for row in group.rows]
            first += [replace(group, rows=cells[:room])] if cells[:room] else []
            others += [replace(group, rows=cells[room:])] if cells[room:] else []
            room = max(0, room - len(cells))
        columns = [self.columns[place] for place in kept]
        return replace(self, columns=columns, groups=first), replace(self, columns=columns, groups=others)

    @property
    def rows(self) -> list[Sequence[Cell]]:
        """Return the rows of all groups."""
        return [row for group in self.groups for row in group.rows]


@dataclass(frozen=True, slots=True)
class Matrix:
    """A confusion matrix, rows actual, and its largest mistakes for a text that it does not fit into."""

    labels: Sequence[str]
    counts: Sequence[Sequence[float]]
    mistakes: Table
    only: frozenset[Medium] = ALL


@dataclass(frozen=True, slots=True)
class Said:
    """A finding or a note.

    Attributes:
        kind: Its severity, ``result`` for the most important sentence, or the heading that it has in a text.
    """

    kind: str
    text: Words
    only: frozenset[Medium] = ALL


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules of a check: drawn on a page, a table elsewhere.

    Attributes:
        counted: How many hold.
        results: Of each rule as they are answered, in the order of a page.
    """

    counted: str
    results: Sequence[Json]
    table: Table
    only: frozenset[Medium] = ALL


@dataclass(frozen=True, slots=True)
class Figures:
    """The place of figures, which a page has in it or loads behind everything else.

    Attributes:
        said: The link to them where they are loaded.
    """

    said: str = ""
    only: frozenset[Medium] = PAGE


Block = Said | Table | Matrix | Rules | Figures


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks under a heading, which only pages show.

    Attributes:
        title: What it is about.
        lede: How to read it.
        says: What it shows, in place of the title, which then opens the lede.
    """

    id: str
    title: str
    blocks: Sequence[Block]
    lede: str = ""
    says: Words = ""


# The values of an answer in long form, exact: headings, and rows that are made as they are written, and once.
Records = tuple[Sequence[str], Iterable[Sequence[str | float | int | None]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """An answer for people.

    Attributes:
        title: Whom it is about.
        on: The data, or what else stands behind the title.
        facts: What stands below the title, with a name where a page needs one; texts and Markdown have the others.
        banner: The verdict of a gate.
        marker: What finds a comment in Markdown again.
        opening: Sentences before the sections.
        path: The address under ``/v1`` that answers the same.
        method: How the numbers were made.
        terms: Metrics that are explained: key, name and sentence.
        task: What they judge, where a name has several meanings.
    """

    title: Words
    on: Words = ""
    facts: Sequence[tuple[str, Cell]] = ()
    created_at: str | None = None
    identifier: str | None = None
    banner: Tag | None = None
    marker: str = ""
    opening: Sequence[Said] = ()
    sections: Sequence[Section] = ()
    path: str = ""
    method: Sequence[str] = ()
    terms: Sequence[tuple[str, str, str]] = ()
    task: str | None = None
    records: Records

    def said(self, medium: Medium) -> list[Said]:
        """Return the sentences before the sections that a format has."""
        return [one for one in self.opening if medium in one.only]

    def blocks(self, medium: Medium) -> Iterator[Block]:
        """Yield the blocks of all sections that a format has."""
        for section in self.sections:
            yield from (block for block in section.blocks if medium in block.only)
