"""Reports as pages in one file."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any, Final

from jinja2 import ChoiceLoader, Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup, escape

from app.api.documents.check import as_decided, axis_of, demand_said, estimate_of, known_key, limits_of
from app.api.documents.document import (
    Block,
    Cell,
    Column,
    Document,
    Estimate,
    Figures,
    Group,
    Json,
    Kind,
    Link,
    Matrix,
    Medium,
    MetricName,
    Name,
    Rules,
    Said,
    Section,
    Table,
    Tag,
    Term,
)
from app.api.documents.reading import SEVERITIES, in_names, key_of, naming, with_minus, with_signs
from app.api.documents.text import plain, shortened
from app.api.plots.look import BREAKS, Theme, palette
from app.api.plots.matrices import WITH_COUNTS, WITH_SHARES, beside_each_other, cell
from app.domain.catalogue import spoken, titled
from app.domain.wording import PAGE, printable, sentence, sentences_in, share, whole, written_day

_ID: Final = re.compile(r'\bid="([\w-]+)"|url\(#([\w-]+)\)')
_PROLOGUE: Final = re.compile(r"^<\?xml.*?\?>|<!DOCTYPE.*?>", re.DOTALL)
_COLOUR: Final = re.compile(r'(fill|stroke)="(#[0-9a-fA-F]{6})"')
_TAG: Final = re.compile(r"<[^<>]+>")
# What every mark says to a reader of the screen: on a page the figure as a whole says it in words.
_OF_MARKS: Final = re.compile(r' (?:role="graphics-[^"]*"|aria-\w+="[^"]*")')
_FONT: Final = re.compile(r'font-size="([\d.]+)px"')
# Pixels that no text of a figure is smaller than, on a phone neither.
_READABLE: Final = 9.0
_SIZE: Final = re.compile(r'^<svg([^>]*?) width="([\d.]+)" height="([\d.]+)"')


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure of a page: drawn, or why it is not.

    Attributes:
        text: Its contents in words.
        specification: As Vega-Lite, without the title, which the page writes.
        reason: Stands in the place of a picture that there is not.
        room: Pixels of height that its page keeps for it.
        broad: No other figure has room beside it.
    """

    title: str
    subtitle: Sequence[str] = ()
    text: str = ""
    specification: bytes = b""
    svg: Markup | None = None
    reason: str = ""
    room: int = 0
    broad: bool = False


def inlined(svg: str, place: int) -> Markup:
    """Return a picture as a part of a page. Drawings are the service's own, their texts escaped by what drew them."""
    text = _PROLOGUE.sub("", svg).strip()
    text = _TAG.sub(lambda found: _OF_MARKS.sub("", found[0]), text)
    text = _ID.sub(lambda found: found[0].replace(found[1] or found[2], f"f{place}-{found[1] or found[2]}"), text)
    names = {light: name for name, (light, _) in palette().items()}
    text = _COLOUR.sub(lambda found: _themed(found, names), text)
    # It shrinks with the page as long as its texts can be read; what is beside it keeps that width.
    text = text.replace(' class="marks"', "", 1)
    width = _SIZE.match(text)
    smallest = min((float(one) for one in _FONT.findall(text)), default=_READABLE)
    least = 0.0 if width is None else float(width[2]) * min(1.0, _READABLE / smallest)
    text = _SIZE.sub(r'<svg\1 class="fig" width="\2"', text, count=1)
    return Markup(f'<svg width="{least:.0f}" height="0" aria-hidden="true"></svg>{text}')  # noqa: S704 - see above


def _themed(found: re.Match[str], names: Mapping[str, str]) -> str:
    """Return a colour of the light theme as what it is called in the styles of a page."""
    name = names.get(found[2].lower())
    return found[0] if name is None else f'{found[1]}="var(--{name})"'


class Compiled(FileSystemBytecodeCache):
    """Compiled templates in a folder; where nobody may write, each process compiles its own."""

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a template for the next process, if that can be."""
        with suppress(OSError):
            super().dump_bytecode(bucket)


@cache
def templates(*packages: str) -> Environment:
    """Return the templates of documents and of further packages, which may take those of documents as parts."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in (*packages, "app.api.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        auto_reload=False,
        # Where Python has the modules around them.
        bytecode_cache=Compiled(str(Path(cache_from_source(__file__)).parent)),
    )
    made.filters["day"], made.filters["date"] = _day, lambda moment: _day(moment).split(",")[0]
    made.filters["isolated"] = isolated
    made.filters["signs"], made.filters["spot"] = with_signs, lambda end: f"{100 * end:.2f}%"
    return made


_LEFTWARDS: Final = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
_LEFTWARD: Final = re.compile(f"[{_LEFTWARDS}](?:[{_LEFTWARDS}\\d _.-]*[{_LEFTWARDS}])?")


def isolated(text: str) -> Markup:
    """Return a sentence in which names that are written from right to left do not move the numbers beside them."""
    return Markup(_LEFTWARD.sub(r"<bdi>\g<0></bdi>", str(escape(text))))  # noqa: S704 - it is escaped


def _day(moment: str | datetime) -> str:
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    return f"{written_day(moment)}, {moment:%H:%M} UTC"


@cache
def styles() -> Markup:
    """Return the styles of all pages, which have the colours of figures."""
    own = files(__package__).joinpath("templates", "style.css").read_text()
    colours = "".join(f"--{name}:light-dark({light},{dark});" for name, (light, dark) in palette().items())
    return Markup(f":root{{{colours}}}{own}")  # noqa: S704 - its own file; nothing of a request is in it


# The page runs nothing and loads nothing; its styles and pictures are inside.
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
# Rows and findings that stand open.
_MOST_ROWS, _MOST_SAID, _LONGEST_LABEL = 40, 4, 28
# The address of a page of the service, relative to where the reader is; None in a file, which has no links.
At = Callable[[str], str] | None


def write_page(document: Document, pictures: Sequence[Picture] = (), theme: Theme | None = None) -> bytes:
    """Return a document as one file, pictures in the order of the page, in the theme of the reader's system or this."""
    values = {"layout": "base.html", "web": None, "theme": theme, "styles": styles()}
    page = templates().get_template("document.html")
    return page.render(**values, **view(document), pictures=pictures).encode()


def view(document: Document, at: At = None) -> dict[str, Any]:
    """Return the parts of a document as the template writes them."""
    said = document.said(Medium.PAGE)
    findings = [_finding(one) for one in said if one.kind != "result"]
    title, on = in_names(document.title), plain(document.on)
    return {
        "page": {
            "title": title if isinstance(document.title[0], Name) else sentence(title),
            "on": on,
            "id": document.identifier,
        },
        "document": document,
        "say": next((in_names(one.text) for one in said if one.kind == "result"), ""),
        "findings": findings[:_MOST_SAID],
        "more": findings[_MOST_SAID:],
        "sections": [
            {
                "section": one,
                **headed(one, at),
                "blocks": [_block(block, at) for block in one.blocks if Medium.PAGE in block.only],
            }
            for one in document.sections
        ],
        "facts": [(printable(name), _cell(cell, at)) for name, cell in document.facts],
    }


def headed(section: Section, at: At = None) -> dict[str, Any]:
    """Return what stands above a section: its title stays with what is said in place of it."""
    lede = f"{section.title}. {section.lede}".strip() if section.says else section.lede
    return {"heading": _cell(section.says or section.title, at), "lede": lede}


def _block(block: Block, at: At) -> dict[str, Any]:
    match block:
        case Table():
            return {"kind": "table", **table_view(block, at)}
        case Matrix():
            return {"kind": "matrix", **_matrix(block)}
        case Rules():
            return {"kind": "rules", "counted": block.counted, "rules": [_rule(one) for one in block.results]}
        case Figures():
            return {"kind": "figures", "said": block.said}
        case Said():
            return {"kind": "said", "text": in_names(block.text)}


def _finding(one: Said) -> dict[str, Any]:
    head, *rest = (f"{each}." for each in sentences_in(in_names(one.text)))
    severity = one.kind if one.kind in SEVERITIES else "note"
    return {"severity": severity, "word": one.kind.capitalize(), "head": head, "rest": " ".join(rest)}


# --- tables ----------------------------------------------------------------------------------------------------------


def table_view(table: Table, at: At = None) -> dict[str, Any]:
    """Return a table as the template writes it: the rows that stand open, and the folded ones."""
    kept, others = table.within(Medium.PAGE, None if table.folded else _MOST_ROWS)

    def written(groups: Sequence[Group]) -> list[dict[str, Any]]:
        return [{"title": _cell(group.title, at), "rows": [row_of(row) for row in group.rows]} for group in groups]

    def row_of(row: Sequence[Cell]) -> list[tuple[str, str, bool]]:
        return [one for column, cell in zip(kept.columns, row, strict=True) for one in _cells(column, cell, at)]

    return {
        "table": table,
        "heads": [head for column in kept.columns for head in _heads(column, kept, at)],
        "groups": written(kept.groups),
        "rest": written(others.groups),
        "others": len(others.rows),
        # Values that move with class prevalence are drawn beside those at equal shares.
        "marked": table.style == "hl"
        and any(
            isinstance(cell, Estimate) and cell.twin is not None and cell.moves is not None
            for row in kept.rows
            for cell in row
        ),
    }


def _heads(column: Column, table: Table, at: At) -> Iterator[dict[str, Any]]:
    """Yield the headings of a column: an estimate has that of its interval too, and the axis of its picture."""
    head, numeric = _cell(column.head, at), column.kind is not Kind.WORDS
    if isinstance(column.head, str) and column.head[1:2] not in ("", ",", " "):
        # A symbol such as n or p stays small.
        head = escape(sentence(column.head))
    yield {
        "html": Markup("◆\u00a0{}").format(head) if column.style == "bal" else head,
        "style": "r" if column.kind is Kind.NUMBER else "bal" if column.style == "bal" else "",
        "sort": ("t" if column.kind is Kind.NAME else "n") if table.sorted_by and numeric else "",
        "rises": bool(table.sorted_by) and column.head == table.sorted_by,
    }
    if column.kind in (Kind.ESTIMATE, Kind.DRAWN):
        yield {"html": table.interval, "style": "", "sort": "", "rises": False}
    if column.kind is Kind.DRAWN:
        yield {"html": "", "style": "sx", "sort": "", "rises": False}


_STYLES: Final = {Kind.NUMBER: "r", Kind.VALUE: "num", Kind.ESTIMATE: "num", Kind.DRAWN: "num"}


def _cells(column: Column, cell: Cell, at: At) -> Iterator[tuple[str, str, bool]]:
    """Yield what stands in a column, its style, and whether it names the row: an estimate fills two or three cells."""
    one = cell if isinstance(cell, Estimate) else None
    value, interval = (_cell(cell, at), "") if one is None else one.written(PAGE)
    style = f"{_STYLES.get(column.kind, '')} {column.style}".strip()
    if column.kind is Kind.VALUE and interval:
        value = escape(value) + _IN_LINE + interval + _LINE_ENDS
    if column.kind is Kind.NUMBER and isinstance(cell, str) and cell[1:]:
        # As it is in all other values.
        value = value.replace("-", PAGE.minus)
    # What says nothing more is quiet, and left out on a phone.
    same = " same mut" if cell == "same" or (column.style == "bal" and value == PAGE.absent) else ""
    yield value, style + same, column.kind is Kind.NAME
    if column.kind in (Kind.ESTIMATE, Kind.DRAWN):
        note = "" if one is None or interval else printable(one.note)
        yield interval or note, "ci no" if note else "ci", False
    if column.kind is Kind.DRAWN:
        yield "" if one is None else _macro("track", one), "sc", False


def _cell(cell: Cell, at: At) -> Markup:
    """Return a cell as a part of a page. This is where everything that came with a request is escaped."""
    match cell:
        case None | "-":
            return escape(PAGE.absent)
        case Estimate():
            return escape(cell.written(PAGE)[0])
        case Tag():
            return _macro("tag", cell.kind, cell.word, cell.icon or None)
        case Link() if at is not None:
            return Markup('<a href="{}"><bdi>{}</bdi></a>').format(at(cell.path, **cell.query), printable(cell.name))
        case Link():
            return Markup("<bdi>{}</bdi>").format(printable(cell.name))
        case Term():
            return Markup('<a class="t" href="#d-{}">{}</a>').format(key_of(cell.key), printable(cell.name))
    if isinstance(cell, str):
        return _part(cell, 0) if isinstance(cell, MetricName | Name) else escape(printable(cell))
    return Markup("".join(_part(one, place) for place, one in enumerate(cell)))  # noqa: S704 - each is escaped


def _part(one: str, place: int) -> Markup:
    """Return one of several words of a cell."""
    if isinstance(one, MetricName):
        return escape(printable(spoken(one) if place else titled(one)))
    if isinstance(one, Name):
        # A table has hundreds of them: joined texts take a fifth of what joined markup does.
        return Markup(f"<bdi>{escape(printable(one))}</bdi>")  # noqa: S704 - it is escaped
    return escape(printable(with_minus(one)))


_IN_LINE, _LINE_ENDS = Markup(' <span class="ci nw">'), Markup("</span>")


def _macro(name: str, *values: object) -> Markup:
    made: Markup = getattr(templates().get_template("parts.html").module, name)(*values)
    return made


# --- matrices --------------------------------------------------------------------------------------------------------


def _matrix(matrix: Matrix) -> dict[str, Any]:
    names, counts = [printable(one) for one in matrix.labels], matrix.counts
    small, fits = len(names) <= WITH_COUNTS, len(names) <= WITH_SHARES
    labels = shortened(names, _LONGEST_LABEL) if fits and not small else names
    order = list(range(len(labels))) if small else beside_each_other(counts) if fits else []
    return {
        "small": small,
        "fits": fits,
        "labels": [labels[place] for place in order],
        "rows": [
            {
                "label": labels[actual],
                "cells": [_matrix_cell(counts[actual], actual, predicted, small=small) for predicted in order],
                "n": whole(sum(counts[actual])),
            }
            for actual in order
        ],
        "predicted": [whole(sum(row[place] for row in counts)) for place in order],
        "n": whole(sum(map(sum, counts))),
    }


def _matrix_cell(row: Sequence[float], actual: int, predicted: int, *, small: bool) -> dict[str, str]:
    found = cell(row[predicted], sum(row))
    part = found["share"] or 0.0
    step = f"{'h' if actual == predicted else 'm'}{1 + sum(part >= one for one in BREAKS)}" if part else "z"
    written = found["counted"] if small else found["percent"]
    return {"style": step, "count": written, "share": share(part) if small and part else ""}


# --- rules -----------------------------------------------------------------------------------------------------------


def _rule(result: Json) -> dict[str, Any]:
    """Return the result of a rule as the template draws it."""
    metric, decided = result["rule"].get("metric"), result.get("decided_by")
    one = estimate_of(as_decided(result))
    text, interval = one.written(PAGE) if isinstance(one, Estimate) else (one, "")
    return {
        "verdict": result["verdict"],
        "title": "Samples" if metric is None else printable(titled(metric)),
        "key": "" if metric is None else known_key(metric),
        "demand": demand_said(result["rule"]),
        "decided": "" if decided is None else printable(spoken(decided)),
        "message": in_names(naming(result["message"], [key for key in (metric, decided) if key is not None])),
        "text": text,
        "interval": interval,
        "axis": _axis(result, one) if isinstance(one, Estimate) and one.value is not None else None,
    }


def _axis(result: Json, one: Estimate) -> dict[str, Any]:
    """Return where limit, value and interval lie, in per cent of the axis, and which side of the limit is wrong."""
    (text, interval), limits = one.written(PAGE), limits_of(result)
    value, ends = one.value or 0.0, [end for end in (one.low, one.high) if end is not None]
    known = [value, *ends, *(at for at, _ in limits)]
    start, end = axis_of(known, sign=one.sign)

    def place(at: float) -> float:
        return 100 * (at - start) / (end - start)

    def mark(at: float) -> dict[str, str]:
        anchor = "start" if place(at) < 8 else "end" if place(at) > 92 else "middle"
        return {"at": f"{place(at):.2f}%", "said": tick(at, sign=one.sign), "anchor": anchor}

    said = f"Limit {' and '.join(tick(at, sign=one.sign) for at, _ in limits)}"
    said += f", value {text}, {f'interval {interval}, ' if interval else ''}"
    return {
        "limits": [mark(at) for at, _ in limits],
        "wrong": [
            {"x": "0" if below else f"{place(at):.2f}%", "width": f"{place(at) if below else 100 - place(at):.2f}%"}
            for at, below in limits
            if below is not None
        ],
        "at": f"{place(value):.2f}%",
        "ends": [f"{place(at):.2f}%" for at in ends] if len(ends) > 1 else None,
        "ticks": [mark(at) for at in (start, (start + end) / 2, end)],
        "said": f"{said}{result['verdict']}.",
    }


def tick(value: float, *, sign: bool) -> str:
    """Write a number beside an axis."""
    text = f"{abs(value):,g}" if abs(value) >= 1e-9 else "0"
    return text if text == "0" else f"−{text}" if value < 0 else f"+{text}" if sign else text
