"""Answers as HTML for notebooks: tables without scripts, which look right on light and on dark."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from html import escape
from itertools import islice
from typing import Any, Final

_MOST_ROWS: Final = 60
_LARGEST_MATRIX: Final = 30
# Of the values of an evaluation, of which there are a hundred, a notebook shows the first.
_MOST_COLUMNS: Final = 20
# Whole numbers below it may be values.
_LEAST_COUNT: Final = 2
_MOST_EXACT: Final = 1e15
# What arithmetic leaves over.
_NOISE: Final = 1e-12
_CELL = "padding:2px 8px;text-align:{};border:none;white-space:nowrap"


def shown(value: Any) -> str:
    """A value in a cell, rounded as the service rounds it: three decimals, fewer from 10 on, none of a count, and never
    0 or 1 for what is not.
    """
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    size = abs(value)
    if isinstance(value, int) or (value.is_integer() and _LEAST_COUNT <= size < _MOST_EXACT):
        return f"{int(value):,}"
    least = 3 if size < 10 else 2 if size < 100 else 1 if size < 10_000 else 0
    # Halves of the shortest decimal go away from zero; those of the double are decided by its binary digits.
    exact = Decimal(repr(value))
    near = [exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP) for digits in range(least, 6)]
    if not near[0]:
        return f"{value:.2g}" if value else "0.000"
    if abs(near[0]) != 1 or abs(size - 1.0) <= _NOISE:
        return f"{near[0]:,}"
    bound = ">0.99999" if value > 0.0 else "<-0.99999"
    return next((f"{one}" for one in near if abs(one) != 1), bound if size < 1.0 else f"{near[0]}")


def counted(number: float) -> str:
    """A number of samples, or their weight."""
    text = f"{number:,.3f}"
    return f"{number:.2g}" if number and not float(text.replace(",", "")) else text.rstrip("0").rstrip(".")


def table_html(columns: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> str:
    """A table without its empty columns; of a long or a wide one its beginning."""
    kept = [*islice(rows, _MOST_ROWS + 1)]
    filled = [at for at in range(len(columns)) if not kept or any(row[at] not in (None, "") for row in kept)]
    places = filled[:_MOST_COLUMNS]
    head = "".join(f'<th style="{_CELL.format("left")}">{escape(columns[at])}</th>' for at in places)
    body = "".join(f"<tr>{''.join(_cell(row[at]) for at in places)}</tr>" for row in kept[:_MOST_ROWS])
    cut = len(kept) > _MOST_ROWS or len(filled) > _MOST_COLUMNS
    more = "<p>and more: to_pandas() has all</p>" if cut else ""
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: Any) -> str:
    side = "right" if isinstance(value, int | float) and not isinstance(value, bool) else "left"
    return f'<td style="{_CELL.format(side)}">{escape(shown(value))}</td>'


def evaluation_html(
    title: str, findings: Sequence[Mapping[str, Any]], data: Mapping[str, Any], values: Mapping[str, Any]
) -> str:
    """Findings, the headline with a bar for each value, the matrix as a heat map."""
    said = "".join(
        f"<li><b>{escape(str(one.get('severity', '')))}</b> {escape(str(one.get('message', '')))}</li>"
        for one in findings
    )
    lines = "".join(_line(name, one.value, one.low, one.high, one.reason) for name, one in values.items())
    parts = [f"<h4>{escape(title)}</h4>", f"<ul>{said}</ul>" if said else "", f"<table>{lines}</table>"]
    matrix = (data.get("input") or {}).get("confusion_matrix")
    if matrix and len(matrix) <= _LARGEST_MATRIX:
        parts.append(_heat_map([*map(str, data["input"]["labels"])], matrix))
    return "".join(parts)


def limits_text(low: float | None, high: float | None) -> str:
    """The limits of a value in words; nothing where there are none."""
    if low is None or high is None:
        return f"at least {shown(low)}" if low is not None else f"at most {shown(high)}" if high is not None else ""
    return f"{shown(low)} to {shown(high)}"


def _line(name: str, point: float | None, low: float | None, high: float | None, reason: str | None) -> str:
    said = [escape(one) for one in (shown(point), limits_text(low, high) or reason or "-")]
    cells = (f"<code>{escape(name)}</code>", *said, _bar(point, low, high))
    return "<tr>" + "".join(f'<td style="{_CELL.format("left")}">{one}</td>' for one in cells) + "</tr>"


def _bar(point: float | None, low: float | None, high: float | None) -> str:
    start, end = (point, point) if low is None or high is None else (low, high)
    if point is None or start is None or end is None or not 0 <= min(start, point) <= max(end, point) <= 1:
        return ""
    return (
        '<svg width="200" height="12" aria-hidden="true"><rect x="0" y="5" width="200" height="2" fill="currentColor" '
        f'opacity="0.2"/><rect x="{200 * start:.1f}" y="3" width="{200 * (end - start):.1f}" height="6" '
        f'fill="#4a90d9" opacity="0.6"/><circle cx="{200 * point:.1f}" cy="6" r="4" fill="#4a90d9"/></svg>'
    )


def _heat_map(labels: Sequence[str], matrix: Sequence[Sequence[float]]) -> str:
    head = "".join(f'<th style="{_CELL.format("right")}">{escape(label)}</th>' for label in labels)
    lines = ""
    for label, row in zip(labels, matrix, strict=True):
        total = sum(row) or 1
        cells = "".join(
            f'<td style="{_CELL.format("right")};background:rgba(74,144,217,{count / total:.2f})">{counted(count)}</td>'
            for count in row
        )
        lines += f'<tr><th style="{_CELL.format("left")}">{escape(label)}</th>{cells}</tr>'
    return f"<table><caption>rows actual, columns predicted</caption><tr><th></th>{head}</tr>{lines}</table>"
