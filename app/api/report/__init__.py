"""Reports as pages in one file."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final

import orjson
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from app.api.documents.document import (
    Cell,
    Column,
    Document,
    Estimate,
    Facet,
    Figures,
    Link,
    Matrix,
    Medium,
    Name,
    Rule,
    Rules,
    Said,
    Table,
    Tag,
    Term,
    Words,
)
from app.api.documents.reading import shown
from app.api.plots.look import Theme, colours_of
from app.api.plots.matrices import beside_each_other
from app.domain.wording import PAGE, share, whole

_ID: Final = re.compile(r'\bid="([\w-]+)"|url\(#([\w-]+)\)')
_PROLOGUE: Final = re.compile(r"^<\?xml.*?\?>|<!DOCTYPE.*?>", re.DOTALL)
_COLOUR: Final = re.compile(r'(fill|stroke)="(#[0-9a-fA-F]{6})"')
_TAG: Final = re.compile(r"<[^<>]+>")
# What every mark says to a reader of the screen: on a page the figure as a whole says it in words.
_OF_MARKS: Final = re.compile(r' (?:role="graphics-[^"]*"|aria-\w+="[^"]*")')
_SIZE: Final = re.compile(r'^<svg([^>]*?) width="([\d.]+)" height="([\d.]+)"')


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure of a page: drawn, or why it is not.

    Attributes:
        text: Its contents in words.
        reason: Stands in the place of a picture that there is not.
    """

    name: str
    title: str
    subtitle: tuple[str, ...]
    text: str
    svg: Markup | None = None
    reason: str = ""


def inlined(svg: str, place: int) -> Markup:
    """Return a picture as a part of a page. Drawings are the service's own, their texts escaped by what drew them."""
    text = _PROLOGUE.sub("", svg).strip()
    text = _TAG.sub(lambda found: _OF_MARKS.sub("", found[0]), text)
    text = _ID.sub(lambda found: found[0].replace(found[1] or found[2], f"f{place}-{found[1] or found[2]}"), text)
    text = _COLOUR.sub(lambda found: f'{found[1]}="{_themed(found[2])}"', text)
    # It shrinks with the page, and its size is no longer than it has to be.
    text = text.replace(' class="marks"', "", 1)
    return Markup(_SIZE.sub(r'<svg\1 class="fig" width="\2"', text, count=1))  # noqa: S704 - see above


def _themed(colour: str) -> str:
    return f"var(--{_variables()[colour.lower()]})" if colour.lower() in _variables() else colour


@cache
def _variables() -> dict[str, str]:
    """Colours of the light theme, and what they are called in the styles of a page."""
    return {light: f"c{light[1:]}" for light, _ in _pairs()}


@cache
def _pairs() -> tuple[tuple[str, str], ...]:
    return tuple(dict(zip(colours_of(Theme.LIGHT), colours_of(Theme.DARK), strict=True)).items())


def colour_styles() -> str:
    """Return the colours of pictures as custom properties, for both themes."""
    pairs = "".join(f"--c{light[1:]}:light-dark({light},{dark});" for light, dark in _pairs())
    return f":root{{{pairs}}}"


def picture_of(name: str, specification: bytes, svg: bytes | None, place: int) -> Picture:
    """Return a figure for a page, of its specification and the drawing of it."""
    found = orjson.loads(specification)
    return Picture(
        name=name,
        title=found["title"]["text"],
        subtitle=tuple(found["title"]["subtitle"][1:]) if len(found["title"]["subtitle"]) > 1 else (),
        text=found["description"],
        svg=None if svg is None else inlined(svg.decode(), place),
    )


def without_title(specification: bytes) -> bytes:
    """Return a specification without its title, which the page writes."""
    found = orjson.loads(specification)
    del found["title"]
    return orjson.dumps(found)


@cache
def templates(*packages: str) -> Environment:
    """Return the templates of documents and of further packages, which may take those of documents as parts."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in (*packages, "app.api.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        auto_reload=False,
    )
    made.filters["day"] = _day
    return made


def _day(text: str) -> str:
    moment = datetime.fromisoformat(text)
    return f"{moment.day} {moment:%b %Y, %H:%M} UTC"


@cache
def styles() -> Markup:
    """Return the styles of all pages, with the colours of figures."""
    own = files(__package__).joinpath("templates", "style.css").read_text()
    # The service's own file; nothing of a request is in it.
    return Markup(own + colour_styles())  # noqa: S704


# The page runs nothing and loads nothing; its styles and pictures are inside.
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
# A matrix with so many classes has its counts in the cells, one with so many is a table at all.
_LARGE_CELLS, _MOST_CELLS, _MOST_MISTAKES = 7, 60, 10
_BREAKS: Final = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
_SEVERITIES: Final = ("critical", "warning", "note")
_STYLES: Final = {
    Facet.VALUE: "num",
    Facet.INTERVAL: "ci",
    Facet.TRACK: "sc",
    Facet.TWIN: "num",
    Facet.TWINS: "num",
}
_BEST: Final = "✓ "
_MARKS: Final = (_BEST, "≈ ")


def write_page(document: Document, pictures: Sequence[Picture] = (), theme: Theme | None = None) -> bytes:
    """Return a document as one file.

    Args:
        document: Its contents.
        pictures: In the order of the page.
        theme: That of the reader's system when None.
    """
    drawn = any(one.svg is not None for one in pictures)
    values = {"layout": "base.html", "web": None, "theme": theme, "styles": styles()}
    page = templates().get_template("document.html")
    return page.render(**values, **view(document), pictures=pictures, drawn=drawn).encode()


def view(document: Document) -> dict[str, Any]:
    """Return the parts of a document as the template writes them."""
    said = [one for one in document.opening if Medium.PAGE in one.only]
    findings = [_said(one) for one in said if not one.strong]
    most = document.most.get(Medium.PAGE, len(findings))
    strong = next((_text(one.text) for one in said if one.strong), document.verdict)
    return {
        "page": {"title": shown(document.title), "on": shown(document.on), "id": document.identifier},
        "document": document,
        "say": shown(strong),
        "findings": findings[:most],
        "more": findings[most:],
        "sections": [
            {"section": one, "blocks": [_block(block) for block in one.blocks if Medium.PAGE in block.only]}
            for one in document.sections
        ],
        "meta": [(shown(name), _cell(cell)) for name, cell in document.meta],
    }


def _block(block: object) -> dict[str, Any]:
    match block:
        case Table():
            return {"kind": "table", **table_view(block)}
        case Matrix():
            return {"kind": "matrix", **_matrix(block)}
        case Rules():
            return {"kind": "rules", "counted": block.counted, "rules": [_rule(one) for one in block.rules]}
        case Figures():
            return {"kind": "figures", "said": block.said}
        case Said():
            return {"kind": "said", "text": _text(block.text)}
    raise TypeError(f"a page has no {type(block).__name__}")


def _text(words: Words) -> str:
    return shown(words if isinstance(words, str) else "".join(words))


def _said(one: Said) -> dict[str, Any]:
    graded = one.kind in _SEVERITIES
    head, stop, rest = _text(one.text).partition(". ") if graded else (_text(one.text), "", "")
    kind = one.kind if graded else "note"
    return {
        "severity": kind,
        "word": one.word or kind.capitalize(),
        "head": head + stop.strip(),
        "rest": rest,
        "graded": graded,
    }


# --- tables ----------------------------------------------------------------------------------------------------------


def table_view(table: Table) -> dict[str, Any]:
    """Return a table as the template writes it: the rows that stand open, and the folded ones."""
    columns = sorted(table.shown(Medium.PAGE), key=lambda one: not one.named and table.style != "lbt")
    groups, rest = table.first(Medium.PAGE)
    folded = table.most.get(Medium.PAGE) == 0
    if folded:
        groups, rest = replace(table, most={}).first(Medium.PAGE)

    def rows(found: Sequence[Sequence[Cell]]) -> list[list[dict[str, Any]]]:
        return [[_cell(row[one.cell], one) for one in columns] for row in found]

    return {
        "table": table,
        "folded": folded,
        "heads": [_head(one) for one in columns],
        "groups": [{"title": one.page_title, "said": one.said, "rows": rows(one.rows)} for one in groups],
        "rest": rows(rest),
    }


def _head(column: Column) -> dict[str, Any]:
    found = _cell(column.head, column)
    if isinstance(column.head, str) and not isinstance(column.head, Name):
        found["text"] = _capitalised(column.head)
    found["style"] = found["style"].replace("strong", "").strip()
    return {**found, "track": column.facet is Facet.TRACK, "sort": column.sort, "head": True}


def _capitalised(head: str) -> str:
    """Return a heading as it begins on a page; a symbol such as n or p stays small."""
    return head if len(head) < 2 or head[1] in ", " else head[:1].upper() + head[1:]


def _cell(cell: Cell, column: Column | None = None) -> dict[str, Any]:
    facet = Facet.WHOLE if column is None else column.facet
    style = "" if column is None else " ".join(filter(None, (column.style, _STYLES.get(facet, ""))))
    found: dict[str, Any] = {"kind": "text", "text": "", "interval": "", "best": False, "same": False}
    found |= {"style": style, "named": column is not None and column.named}
    match cell:
        case None:
            return {**found, "text": PAGE.absent}
        case Estimate():
            return {**found, **_estimate(cell, facet)}
        case Link():
            return {**found, "kind": "link", "link": cell.path, "text": shown(cell.name), "said": shown(cell.said)}
        case Tag():
            return {**found, "kind": "tag", "tag": cell}
        case Term():
            return {**found, "kind": "term" if cell.key else "text", "term": cell.key, "text": shown(cell.name)}
        case str():
            return {**found, "text": PAGE.absent if cell == "-" else shown(cell)}
    return {**found, "kind": "words", "words": [(isinstance(one, Name), shown(one)) for one in cell]}


def _estimate(one: Estimate, facet: Facet) -> dict[str, Any]:
    digits = PAGE.decimals(one.value, one.low, one.high, near=one.near) if one.digits is None else one.digits
    limited, twin = one.low is not None or one.high is not None, one.twin
    match facet:
        case Facet.INTERVAL if one.value is None and one.reason:
            return {"text": shown(one.reason)}
        case Facet.INTERVAL if limited:
            return {"text": " to ".join(PAGE.fixed(end, digits, sign=one.sign) for end in (one.low, one.high))}
        case Facet.INTERVAL:
            return {"text": shown(one.note)}
        case Facet.TRACK:
            own, other = _strip(one), _strip(twin) if twin is not None and one.moves else None
            return {"kind": "track", "strip": own, "twin": other, "moves": one.moves}
        case Facet.TWINS if one.moves is False:
            return {"text": "same", "same": True}
        case Facet.TWINS if twin is not None:
            ends = " to ".join(PAGE.fixed(end, digits) for end in (twin.low, twin.high) if end is not None)
            return {"text": PAGE.fixed(twin.value, digits), "interval": ends}
        case Facet.TWINS:
            return {"text": ""}
    text = PAGE.fixed(one.value, digits, sign=one.sign, count=not limited and one.digits is None)
    return {"text": one.note + text if one.note in _MARKS else text, "best": one.note == _BEST}


def _strip(one: Estimate) -> Mapping[str, Any] | None:
    """Return where a value and its interval lie on a line from 0 to 1; None for one that does not lie there."""
    ends = (one.value, one.low, one.high)
    if one.value is None or not all(0.0 <= end <= 1.0 for end in ends if end is not None):
        return None
    at, low, high = (None if end is None else f"{100 * end:.2f}%" for end in ends)
    return {"at": at, "low": low, "high": high}


# --- matrices --------------------------------------------------------------------------------------------------------


def _matrix(matrix: Matrix) -> dict[str, Any]:
    labels, counts, sizes = [shown(one) for one in matrix.labels], matrix.counts, matrix.sizes
    small, fits = len(labels) <= _LARGE_CELLS, len(labels) <= _MOST_CELLS
    order = list(range(len(labels))) if small else beside_each_other(counts) if fits else []
    return {
        "small": small,
        "fits": fits,
        "labels": [labels[place] for place in order],
        "rows": [
            {
                "label": labels[actual],
                "cells": [_matrix_cell(counts[actual], actual, predicted, small=small) for predicted in order],
                "n": whole(sizes[actual]),
            }
            for actual in order
        ],
        "predicted": [whole(sum(row[place] for row in counts)) for place in order],
        "n": whole(sum(sizes)),
        "mistakes": [
            {
                "actual": labels[actual],
                "predicted": labels[predicted],
                "count": f"{whole(count)} of {whole(sizes[actual])}",
                "share": share(count / sizes[actual]),
            }
            for count, actual, predicted in matrix.mistakes(_MOST_MISTAKES)
        ],
    }


def _matrix_cell(row: Sequence[float], actual: int, predicted: int, *, small: bool) -> dict[str, str]:
    count, total = row[predicted], sum(row)
    if not count:
        return {"style": "z", "count": "0" if small else "", "share": ""}
    part = count / total
    step = 1 + sum(part >= one for one in _BREAKS)
    in_percent = "" if part < 0.01 else "99" if 0.99 < part < 1 else f"{100 * part:.0f}"
    return {
        "style": f"{'h' if actual == predicted else 'm'}{step}",
        "count": whole(count) if small else in_percent,
        "share": share(part) if small else "",
    }


# --- rules -----------------------------------------------------------------------------------------------------------


def _rule(rule: Rule) -> dict[str, Any]:
    one = rule.estimate
    found = {
        "verdict": rule.verdict,
        "title": shown(rule.title),
        "key": rule.key,
        "demand": shown(rule.demand),
        "decided": shown(rule.decided),
        "message": shown(rule.message),
        "interval": "",
        "axis": None,
    }
    if not isinstance(one, Estimate):
        return {**found, "text": "not known" if one == "-" else one}
    interval = "" if one.low is None else _estimate(one, Facet.INTERVAL)["text"]
    axis = None if one.value is None else _axis(rule, one, one.value, interval)
    return {**found, "text": _estimate(one, Facet.VALUE)["text"], "interval": interval, "axis": axis}


def _axis(rule: Rule, one: Estimate, value: float, interval: str) -> dict[str, Any]:
    """Return where limit, value and interval lie, in per cent of the axis, and which side of the limit is wrong."""
    ends = [end for end in (one.low, one.high) if end is not None]
    known = [value, *ends, *(at for at, _ in rule.limits)]
    start, end = (0.0, 1.0) if not one.sign and 0 <= min(known) <= max(known) <= 1 else _around(known)

    def place(at: float) -> float:
        return 100 * (at - start) / (end - start)

    def mark(at: float) -> dict[str, str]:
        anchor = "start" if place(at) < 8 else "end" if place(at) > 92 else "middle"
        return {"at": f"{place(at):.2f}%", "said": _tick(at, sign=one.sign), "anchor": anchor}

    said = f"Limit {' and '.join(_tick(at, sign=one.sign) for at, _ in rule.limits)}"
    said += f", value {_estimate(one, Facet.VALUE)['text']}, {f'interval {interval}, ' if interval else ''}"
    return {
        "limits": [mark(at) for at, _ in rule.limits],
        "wrong": [
            {"x": "0" if below else f"{place(at):.2f}%", "width": f"{place(at) if below else 100 - place(at):.2f}%"}
            for at, below in rule.limits
            if below is not None
        ],
        "at": f"{place(value):.2f}%",
        "ends": [f"{place(at):.2f}%" for at in ends] if len(ends) > 1 else None,
        "ticks": [mark(tick) for tick in (start, (start + end) / 2, end)],
        "said": f"{said}{rule.verdict}.",
    }


def _around(known: Sequence[float]) -> tuple[float, float]:
    """Return round ends of an axis that holds all of them, with room at both sides."""
    low, high = min([0.0, *known]), max([0.0, *known])
    reach = max(high - low, 1e-9)
    step = 10.0 ** math.floor(math.log10(reach))
    step = step / 2 if reach / step < 2 else step
    return math.floor((low - 0.05 * reach) / step) * step, math.ceil((high + 0.05 * reach) / step) * step


def _tick(value: float, *, sign: bool) -> str:
    text = f"{abs(value):g}" if abs(value) >= 1e-9 else "0"
    return text if text == "0" else f"−{text}" if value < 0 else f"+{text}" if sign else text
