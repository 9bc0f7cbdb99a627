"""Writers of documents in Markdown (a comment on a pull request, the summary of a job) and in CSV, long form and exact.

Names stand in code spans, where neither a mention nor a link nor a tag does anything.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from io import StringIO
from typing import Final

from app.api.documents.document import (
    Cell,
    Column,
    Document,
    Estimate,
    Kind,
    Link,
    Medium,
    Name,
    Rules,
    Said,
    Table,
    Tag,
    Term,
    Words,
)
from app.api.documents.reading import SEVERITIES
from app.api.documents.text import estimated, plain
from app.domain.wording import printable

_MOST_ROWS: Final = 60
_SIGNS: Final = {
    "pass": "✅",
    "fail": "❌",
    "inconclusive": "⚠️",
    "critical": "❌",
    "warning": "⚠️",
    "note": "ℹ️",
}
# What is special in Markdown or in HTML, and what makes a mention.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~@-])")


def write_markdown(document: Document) -> str:
    """Return a document in Markdown."""
    verdict = "" if document.banner is None else f"{_cell(document.banner)}: "
    on = f" {prose(document.on)}" if document.on else ""
    facts = ", ".join(_cell(cell) for name, cell in document.facts if not name)
    lines = [document.marker] if document.marker else []
    lines += [f"### {verdict}{prose(document.title)}{on}", f"{facts}." if facts else "", ""]
    for one in document.said(Medium.MARKDOWN):
        lines += _said(one)
    for block in document.blocks(Medium.MARKDOWN):
        match block:
            case Said():
                lines += _said(block)
            case Table():
                lines += ["", *_table(block), ""]
            case Rules():
                lines += ["", *_table(block.table), ""]
    if document.path:
        lines += ["", f"[full answer](/v1/{document.path})"]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip("\n") + "\n"


def code(text: str) -> str:
    """Return a name as a code span: longer fences than any within, and no end of a table's cell."""
    text = printable(text)
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    room = " " if text.startswith("`") or text.endswith("`") or not text.strip() else ""
    return f"{fence}{room}{text}{room}{fence}".replace("|", "\\|")


def prose(text: Words) -> str:
    """Return a sentence in which nothing is markup, names in code spans."""
    parts = (text,) if isinstance(text, str) else text
    return "".join(code(one) if isinstance(one, Name) else _SPECIAL.sub(r"\\\1", printable(one)) for one in parts)


def _said(one: Said) -> list[str]:
    if one.kind in SEVERITIES:
        return [f"- {_SIGNS[one.kind]} **{one.kind}** {prose(one.text)}"]
    said = f"**{prose(one.text)}**" if one.kind == "result" else f"**{one.kind.capitalize()}:** {prose(one.text)}"
    return ["", said, ""]


def _table(table: Table) -> Iterator[str]:
    """Yield headings and rows; an estimate takes two columns."""
    kept, others = table.within(Medium.MARKDOWN, _MOST_ROWS)
    if not kept.groups:
        return
    heads: list[str] = []
    ends: list[str] = []
    for column in kept.columns:
        limited = column.kind in (Kind.ESTIMATE, Kind.DRAWN)
        heads += [_cell(column.head), *([kept.interval] if limited else [])]
        ends += [_ENDS.get(column.kind, "---"), *(["---"] if limited else [])]
    yield _row(heads)
    yield _row(ends)
    for group in kept.groups:
        if group.title:
            yield _row([f"**{prose(group.title)}**", *("" for _ in heads[1:])])
        for row in group.rows:
            yield _row([text for one, cell in zip(kept.columns, row, strict=True) for text in _cells(one, cell)])
    if others.rows:
        yield ""
        yield f"{len(others.rows)} more {table.rest}: in the JSON."


_ENDS: Final = {Kind.NUMBER: "---:", Kind.VALUE: "---:", Kind.ESTIMATE: "---:", Kind.DRAWN: "---:"}


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(column: Column, cell: Cell) -> list[str]:
    """Return what stands in a column: a number as it is written, a name as code, an estimate beside its interval."""
    if column.kind in (Kind.NAME, Kind.WORDS):
        return [_cell(cell)]
    if column.kind in (Kind.NUMBER, Kind.VALUE):
        return [plain(cell)]
    value, interval = estimated(cell)
    return [value, prose(cell.note) if isinstance(cell, Estimate) and cell.note and cell.low is None else interval]


def _cell(cell: Cell) -> str:
    match cell:
        case Link() | Term():
            return code(plain(cell))
        case Tag():
            return f"{_SIGNS[cell.kind]} {cell.word}"
        case str() | tuple():
            return prose(cell)
    return plain(cell)


# With these a spreadsheet begins a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_csv(document: Document) -> str:
    """Return the values of a document, a line for each."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    heads, rows = document.records
    writer.writerow(heads)
    for line in rows:
        # No text is taken for a formula (OWASP, CSV injection).
        writer.writerow([f"'{one}" if isinstance(one, str) and one.startswith(_FORMULA) else one for one in line])
    return text.getvalue()
