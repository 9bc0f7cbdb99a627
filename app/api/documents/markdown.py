"""Writers of documents in Markdown (a comment on a pull request, the summary of a job) and in CSV, long form and exact.

Names stand in code spans, where neither a mention nor a link nor a tag does anything.
"""

import csv
import re
from collections.abc import Iterator
from io import StringIO
from typing import Final

from app.api.documents.document import (
    Cell,
    Column,
    Document,
    Facet,
    Link,
    Medium,
    Name,
    Said,
    Table,
    Tag,
    Words,
    Written,
)
from app.api.documents.reading import shown
from app.api.documents.text import cell_text

_SIGNS: Final = {"pass": "✅", "fail": "❌", "inconclusive": "⚠️"}
_SEVERITIES: Final = {"critical": "❌", "warning": "⚠️", "note": "ℹ️"}
# What is special in Markdown or in HTML, and what makes a mention.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~@-])")


def write_markdown(document: Document) -> str:
    """Return a document in Markdown."""
    lines = [_line(one) for one in document.markdown]
    for one in document.opening:
        if Medium.MARKDOWN in one.only:
            lines += _said(one)
    for block in document.blocks(Medium.MARKDOWN):
        match block:
            case Said():
                lines += ["", prose(block.text)]
            case Table():
                lines += ["", *_table(block)]
    if document.footer:
        lines += ["", _line(document.footer)]
    elif document.path:
        lines += ["", f"[full answer](/v1/{document.path})"]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def code(text: str) -> str:
    """Return a name as a code span: longer fences than any within, and no end of a table's cell."""
    text = shown(text)
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    room = " " if text.startswith("`") or text.endswith("`") or not text.strip() else ""
    return f"{fence}{room}{text}{room}{fence}".replace("|", "\\|")


def prose(text: Words) -> str:
    """Return a sentence in which nothing is markup, names in code spans."""
    parts = (text,) if isinstance(text, str) else text
    return "".join(code(one) if isinstance(one, Name) else _SPECIAL.sub(r"\\\1", shown(one)) for one in parts)


def _line(words: Words) -> str:
    """Return a line of which all but the names is Markdown of ours."""
    parts = (words,) if isinstance(words, str) else words
    return "".join(code(one) if isinstance(one, Name) else one for one in parts)


def _said(one: Said) -> list[str]:
    if one.kind in _SEVERITIES:
        return [f"- {_SEVERITIES[one.kind]} **{one.kind}** {prose(one.text)}"]
    return ["", f"**{prose(one.text)}**" if one.strong else prose(one.text)]


def _table(table: Table) -> Iterator[str]:
    columns = table.shown(Medium.MARKDOWN)
    groups, rest = table.first(Medium.MARKDOWN)
    yield _row([_cell(one.head) if not isinstance(one.head, str) else one.head for one in columns])
    yield _row(["---:" if one.right else "---" for one in columns])
    for group in groups:
        for row in group.rows:
            yield _row([_cell(row[one.cell], one) for one in columns])
    if rest:
        yield ""
        yield f"{len(rest)} more {table.rest}: in the JSON."


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell, column: Column | None = None) -> str:
    match cell:
        case Link():
            return code(cell.name)
        case Tag():
            return f"{_SIGNS[cell.kind]} {cell.word}"
        case Written():
            return "-" if column is not None and column.facet is Facet.INTERVAL else cell
        case str() | tuple():
            return prose(cell)
    return cell_text(cell, Facet.WHOLE if column is None else column.facet)


# With these a spreadsheet begins a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_csv(document: Document) -> str:
    """Return the values of a document, a line for each."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(document.records.heads)
    for line in document.records.rows:
        writer.writerow([_defused(cell) if isinstance(cell, str) else cell for cell in line])
    return text.getvalue()


def _defused(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula (OWASP, CSV injection)."""
    return f"'{text}" if text.startswith(_FORMULA) else text
