"""The parts of a document: sentences, tables of numbers, a matrix, rules. Nothing in it is rounded or escaped yet.

A document holds the values of an answer and the words around them. The writers decide how numbers, names and marks look
in their format, so a new noun is one function that makes a document, and a new format is one writer.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final


class Medium(StrEnum):
    """The formats that documents are written in, besides CSV."""

    TEXT = "text"
    MARKDOWN = "markdown"
    PAGE = "page"


ALL: Final = frozenset(Medium)
TEXT, MARKDOWN, PAGE = (frozenset({one}) for one in Medium)
SHORT: Final = TEXT | MARKDOWN


class Name(str):
    """A name that came with a request, or the key of a metric: data, and never markup."""

    __slots__ = ()


class Written(str):
    """A number that is written already: counts, chances and p values, which look the same everywhere."""

    __slots__ = ()


# A sentence with names in it.
Words = str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its limits.

    Attributes:
        value: None for one that is not defined.
        sign: It is a difference.
        reason: Why it has no value.
        note: Stands in place of an interval that there is not.
        twin: The same at equal class shares; it has as many decimals.
        moves: Prevalence moves it; None where that is not known.
        near: Limits of a rule, which it must not read as.
        digits: Decimals, where they do not follow from the interval.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    sign: bool = False
    reason: str = ""
    note: str = ""
    twin: "Estimate | None" = None
    moves: bool | None = None
    near: tuple[float, ...] = ()
    digits: int | None = None


@dataclass(frozen=True, slots=True)
class Tag:
    """A verdict: its word, and the kind that gives it a colour and a sign."""

    kind: str
    word: str
    icon: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """A name with the address under ``/ui`` that a page of the service leads to."""

    name: str
    path: str
    said: str = ""


@dataclass(frozen=True, slots=True)
class Term:
    """The name of a metric, which a page explains at its end."""

    key: str
    name: str


Cell = Words | Term | Estimate | Tag | Link | None


class Facet(StrEnum):
    """One of the columns that an estimate fills."""

    WHOLE = "whole"
    VALUE = "value"
    INTERVAL = "interval"
    TRACK = "track"
    TWIN = "twin"
    TWINS = "twins"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        head: Its heading.
        cell: The cell of each row that it shows; several columns can show parts of one.
        right: Its cells end below each other.
        width: Columns of a text that it takes at least.
        gap: Columns of a text before it.
        named: It names the row. A name that is too long for its column has a line of its own, and is never cut.
        cut: Names in it are cut to so many columns of a text.
        only: The formats that have it.
        style: Of its cells on a page.
        sort: How a page sorts by it: ``t`` as text, ``n`` as numbers, ``asc`` as numbers, which it is sorted by.
    """

    head: Words | Link
    cell: int
    facet: Facet = Facet.WHOLE
    right: bool = False
    width: int = 0
    gap: int = 2
    named: bool = False
    cut: int = 0
    only: frozenset[Medium] = ALL
    style: str = ""
    sort: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of a table under a heading.

    Attributes:
        title: Above the rows in a text.
        page_title: Above them on a page.
        said: Behind that heading.
        last: The last column of a text in this group, where it is another one than that of the table.
    """

    rows: Sequence[Sequence[Cell]]
    title: str = ""
    page_title: str = ""
    said: str = ""
    last: Column | None = None
    only: frozenset[Medium] = ALL


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of names and numbers.

    Attributes:
        caption: What is in it, for those who hear a page.
        most: Rows that a format has at most; the others are counted, and folded on a page.
        rest: The word for the others.
        style: Of the table on a page.
        after: The line of a text that tells of the other rows.
    """

    caption: str
    columns: Sequence[Column]
    groups: Sequence[Group]
    most: Mapping[Medium, int] = field(default_factory=dict)
    rest: str = "rows"
    style: str = "stick"
    after: str = ""
    only: frozenset[Medium] = ALL

    def first(self, medium: Medium) -> tuple[list[Group], list[Sequence[Cell]]]:
        """Return the groups with as many rows as a format has, and the other rows."""
        most, found, rest = self.most.get(medium, _EVERY), list[Group](), list[Sequence[Cell]]()
        for group in self.groups:
            if medium in group.only:
                found.append(replace(group, rows=group.rows[:most]))
                rest += group.rows[most:]
                most = max(0, most - len(group.rows))
        return [group for group in found if group.rows], rest

    def shown(self, medium: Medium) -> list[Column]:
        """Return the columns that a format has."""
        return [column for column in self.columns if medium in column.only]


_EVERY: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Matrix:
    """A confusion matrix, rows actual, with what each class was found by.

    Attributes:
        recalls: Of each class.
        precisions: Of each class.
    """

    labels: Sequence[str]
    counts: Sequence[Sequence[float]]
    recalls: Sequence[Estimate]
    precisions: Sequence[float | None]
    only: frozenset[Medium] = ALL

    @property
    def sizes(self) -> list[float]:
        """Return the number of samples of each class."""
        return [sum(row) for row in self.counts]

    @property
    def weakest(self) -> list[int]:
        """Return the classes that have a recall, that of the lowest first."""
        known = [(one.value, k) for k, one in enumerate(self.recalls) if one.value is not None]
        return [k for _, k in sorted(known)]

    def mistakes(self, most: int) -> list[tuple[float, int, int]]:
        """Return the largest entries beside the diagonal: count, actual and predicted class."""
        found = [
            (-count, actual, predicted)
            for actual, row in enumerate(self.counts)
            for predicted, count in enumerate(row)
            if actual != predicted and count > 0
        ]
        return [(-count, actual, predicted) for count, actual, predicted in sorted(found)[:most]]

    def taken_for(self, actual: int, most: int) -> list[tuple[float, int]]:
        """Return the classes that one is most often taken for, with the counts."""
        row = self.counts[actual]
        wrong = sorted((-count, other) for other, count in enumerate(row) if other != actual and count > 0)
        return [(-count, other) for count, other in wrong[:most]]


@dataclass(frozen=True, slots=True)
class Said:
    """A finding or a note.

    Attributes:
        kind: Its severity; any other word is the heading of a text.
        word: On a page, where it is not the severity.
        strong: The most important sentence of the document.
    """

    kind: str
    text: Words
    word: str = ""
    strong: bool = False
    only: frozenset[Medium] = ALL


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a gate on an axis of its own.

    Attributes:
        limits: Each with whether what lies below it is wrong; None where that cannot be told.
        message: Why the verdict is as it is.
    """

    verdict: str
    title: str
    key: str
    demand: str
    estimate: Estimate | Written
    limits: Sequence[tuple[float, bool | None]]
    decided: str
    message: str


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules of a check, for pages."""

    counted: str
    rules: Sequence[Rule]
    only: frozenset[Medium] = PAGE


@dataclass(frozen=True, slots=True)
class Figures:
    """The place of figures, which a page has in it or loads behind everything else.

    Attributes:
        said: The link to them where they are loaded.
    """

    said: str = ""
    only: frozenset[Medium] = PAGE


@dataclass(frozen=True, slots=True)
class Space:
    """An empty line of a text."""

    only: frozenset[Medium] = TEXT


Block = Said | Table | Matrix | Rules | Figures | Space


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks under a heading, which only pages show."""

    id: str
    title: str
    blocks: Sequence[Block]
    lede: str = ""


@dataclass(frozen=True, slots=True)
class Records:
    """The values of an answer in long form, exact."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str | float | int | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """An answer for people.

    Attributes:
        title: Whom it is about.
        on: The data.
        facts: What else stands in the heading of a text and below that of a page.
        heading: The whole first line of a text, and the rest of it that stands at its end.
        markdown: The lines that Markdown begins with.
        verdict: The largest sentence of a page.
        banner: The verdict of a gate, on a page.
        opening: Sentences before the sections.
        path: The address under ``/v1`` that answers the same.
        footer: The last line of Markdown.
    """

    title: str
    of: str = ""
    on: str = ""
    heading: tuple[str, str]
    markdown: Sequence[Words]
    meta: Sequence[tuple[str, Cell]] = ()
    created_at: str | None = None
    identifier: str | None = None
    verdict: str = ""
    banner: Tag | None = None
    opening: Sequence[Said] = ()
    most: Mapping[Medium, int] = field(default_factory=dict)
    sections: Sequence[Section] = ()
    path: str = ""
    footer: Words = ""
    method: Sequence[str] = ()
    terms: Sequence[tuple[str, str, str]] = ()
    records: Records

    def blocks(self, medium: Medium) -> Iterator[Block]:
        """Yield the blocks of all sections that a format has."""
        for section in self.sections:
            yield from (block for block in section.blocks if medium in block.only)


Json = Mapping[str, Any]
