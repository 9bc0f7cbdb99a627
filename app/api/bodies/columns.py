"""Large JSON bodies: columns of samples and rows of numbers go to numpy piece by piece, and only they may be large.

What is a column is known by its name. It is cut out before anything else is parsed, so that a body takes the room of
its numbers and of one piece, never an object per number. What is left has to be small and is read like a small body.
Whatever is not plainly a column stays where it is, for the reader that finds the fault and its place.
"""

import contextlib
import json
import mmap
import re
import secrets
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import orjson
import simdjson
from numpy.typing import NDArray
from pydantic import BaseModel

from app.api.bodies.parsing import once, parse_body, parse_value
from app.api.problems import MalformedRequest
from app.domain.errors import Fault
from app.domain.inputs.kinds import KINDS
from app.domain.inputs.labels import MOST_CLASSES
from app.domain.inputs.matrices import MOST_SAMPLES

Model = TypeVar("Model", bound=BaseModel)
Buffer = bytes | mmap.mmap
Column = NDArray[Any] | list[Any]

# One entry per sample, and one row of numbers per sample or class, wherever they stand. A name may be rows in one kind
# of input and one entry per sample in another.
_FORMS = [pair for kind in KINDS.values() for pair in kind.columns().items()]
_MATRIX = "matrix"
ROWS = (*dict.fromkeys(name for name, form in _FORMS if form.rows == "always"), _MATRIX)
COLUMNS = tuple(dict.fromkeys(name for name, _ in _FORMS if name not in ROWS))
_MAYBE_ROWS = frozenset(name for name, form in _FORMS if form.rows == "perhaps")
# Labels, of which a row has a 0 or 1 each: two or more.
_LABELS = frozenset(name for name, form in _FORMS if form.read == "flags")
# Those that the domain takes as arrays; others become lists of numbers again.
ARRAYS = frozenset(name for name, _ in _FORMS)
# What may be left beside them. The largest request without columns is far below.
MOST_BESIDE = 8 * 1024 * 1024
# Small enough that a piece fits into the processor's cache.
_PIECE = 1 << 18
_LET_GO = 1 << 24
_CONTAINERS = frozenset({list, dict, np.ndarray})
_BLANK = rb"[ \t\n\r]*"
# No text of a JSON document is followed by a colon unless it is the name of a member.
_START = re.compile(rb'"(' + "|".join(COLUMNS + ROWS).encode() + rb')"' + _BLANK + b":" + _BLANK + rb"\[" + _BLANK)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_LAST_ROW = re.compile(rb"\]" + _BLANK + rb"\]")
_BETWEEN_ROWS = re.compile(_BLANK + b"," + _BLANK)
_CLOSING = re.compile(_BLANK + rb"\]")
_OPEN, _CLOSE, _COMMA = b"[],"
# Types of whole numbers, each with the greatest that it holds.
_WHOLE = [(np.dtype(kind), int(np.iinfo(kind).max)) for kind in (np.int8, np.int16, np.int32, np.int64)]
# As many columns as the largest batch of folds has, and as many that begin like one and are none: each of those costs
# a look at a piece, so that a body of nothing else would take minutes.
_MOST_COLUMNS = 100_000
_MOST_UNREAD = 10_000
# Texts that are used again where they come again, so that a million labels are not a million texts.
_MOST_KNOWN_TEXTS = 10_000


def parse_large_body(body: Buffer, model: type[Model], arrays: Container[str] = ARRAYS) -> Model:
    """The body as a model. Columns that hold numbers only are arrays where ``arrays`` names them: whole ones of the
    narrowest type that holds them, others float64.

    Raises:
        MalformedRequest: 400 for what is no JSON, 422 for JSON of another form, or large outside its columns.
    """
    split = split_columns(body, arrays)
    if not split.columns:
        return parse_body(split.rest, model)
    try:
        # Decoded here: json itself would take halves of pairs, and a second mark of the order of bytes.
        text = split.rest.decode()
        if _SURROGATE.search(split.rest):
            # Pairs are fine, and of a half no bytes can be made, which is an error of values too.
            json.dumps(json.loads(text), ensure_ascii=False).encode()
        value = json.loads(text, object_pairs_hook=split.joined)
    except (ValueError, RecursionError):
        # Said in the words that a small body gets; positions are counted without the columns.
        return parse_body(split.rest, model)
    return parse_value(value, model)


@dataclass(frozen=True, slots=True)
class SplitBody:
    """A body with texts that nobody can have foreseen in the place of its columns."""

    rest: bytes
    columns: dict[str, Column]

    def joined(self, members: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        """An object of the rest with its columns in their places.

        Raises:
            MalformedRequest: it names a member twice, and readers differ in which one they take.
        """
        return {
            name: self.columns.get(value, value) if type(value) is str else value
            for name, value in once(members).items()
        }


def split_columns(body: Buffer, arrays: Container[str] = ARRAYS) -> SplitBody:
    """Take the columns out of a body.

    Raises:
        MalformedRequest: a column is longer or wider than any may be, or what is left is too large; then the first
            column that could not be read is named.
    """
    pieces: list[bytes] = []
    columns: dict[str, Column] = {}
    kept = done = place = unread = 0
    fault: str | None = None
    while len(columns) < _MOST_COLUMNS and unread < _MOST_UNREAD:
        found = _START.search(body, place, done + MOST_BESIDE)
        if found is None:
            break
        place = found.end()
        name = found[1].decode()
        try:
            has_rows = name in ROWS or (name in _MAYBE_ROWS and body[place : place + 1] == b"[")
            column, end = _read_rows(body, place, name) if has_rows else _read_column(body, place)
        except _NoColumn as error:
            fault = fault or f"; {name} from byte {place} on cannot be read: {error}"
            unread += 1
            continue
        except _TooMuch as error:
            raise MalformedRequest([Fault(_pointer(name, pieces, body[done:place]), error.code, str(error))]) from None
        token = secrets.token_hex(16)
        columns[token] = column if name in arrays or isinstance(column, list) else column.tolist()
        # The bracket that was found gives way to the text.
        opening = body.rfind(b"[", found.start(), place)
        pieces += [body[done:opening], b'"', token.encode(), b'"']
        kept += opening - done
        done = place = end
        if kept > MOST_BESIDE:
            break
    if kept + len(body) - done > MOST_BESIDE:
        detail = (
            f"expected at most {MOST_BESIDE} bytes beside the columns of samples and the rows of matrices "
            f"({', '.join(COLUMNS + ROWS)}){fault or ''}"
        )
        raise MalformedRequest([Fault("", "too_large", detail)])
    return SplitBody(b"".join([*pieces, body[done:]]), columns)


def _pointer(name: str, pieces: Sequence[bytes], last: bytes) -> str:
    """Return the JSON pointer of a column; empty if it may be one of several."""
    before = b"".join([*pieces, last])
    return "" if any(many in before for many in (b'"folds"', b'"evaluations"')) else f"/input/{name}"


class _TooMuch(Exception):
    """A column is longer or wider than any may be."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class _NoColumn(Exception):
    """The value is not plainly a column; the message says what was expected."""


# --- one entry per sample --------------------------------------------------------------------------------------------


def _read_column(body: Buffer, place: int) -> tuple[Column, int]:
    """Entries from behind the opening bracket on, and the place behind the closing one."""
    parts: list[Column] = []
    known: dict[str, str] = {}
    closed, count = False, 0
    while not closed:
        length, closed = _piece(body[place : place + _PIECE])
        part = _entries(body[place : place + length], known)
        if not len(part) and (parts or not closed):
            raise _NoColumn("expected an entry between two commas")
        count += len(part)
        _check_samples(count)
        parts.append(part)
        place += length + 1
        _let_go(body, place)
    return _joined(parts), place


def _check_samples(count: int) -> None:
    if count > MOST_SAMPLES:
        raise _TooMuch("too_many_samples", f"expected at most {MOST_SAMPLES} samples")


def _piece(piece: bytes) -> tuple[int, bool]:
    """Length of the whole entries in a piece, and whether the bracket that closes them comes next."""
    # Escaped quotes would be taken for the ends of texts.
    masked = piece.replace(b"\\\\", b"__").replace(b'\\"', b"__") if b"\\" in piece else piece
    place, quotes = -1, 0
    while (bracket := masked.find(b"]", place + 1)) >= 0:
        quotes += masked.count(b'"', place + 1, bracket)
        if quotes % 2 == 0:
            return bracket, True
        # Inside a text.
        place = bracket
    quotes += masked.count(b'"', place + 1)
    last = masked.rfind(b'"')
    comma = masked.rfind(b",", last + 1) if quotes % 2 == 0 else -1
    if comma < 0:
        # The piece ends in a text, or just behind one: the comma before that text.
        start = last if quotes % 2 else masked.rfind(b'"', 0, max(last, 0))
        comma = masked.rfind(b",", 0, max(start, 0))
    if comma < 0:
        raise _NoColumn("expected numbers or texts, none of them long, and a closing bracket")
    return comma, False


def _entries(text: bytes, known: dict[str, str]) -> Column:
    """Entries without the brackets around them."""
    listed = b"[" + text + b"]"
    if b'"' not in text and b"[" not in text and b"{" not in text:
        try:
            # A parser of its own each time: one that is used again must have nothing left of its last document.
            array = simdjson.Parser().parse(listed)
        except (ValueError, RuntimeError):
            raise _NoColumn("expected numbers, texts, true, false or null") from None
        assert isinstance(array, simdjson.Array)  # noqa: S101 - there are brackets around it
        if len(array) == 0:
            return []
        # Whole numbers would pass as floats too, and labels have to stay whole.
        with contextlib.suppress(TypeError, ValueError):
            return _narrowed(np.frombuffer(array.as_buffer(of_type="i"), dtype=np.int64))
        # As floats these would be other numbers: ids, say, that are hashes.
        with contextlib.suppress(TypeError, ValueError):
            return list(np.frombuffer(array.as_buffer(of_type="u"), dtype=np.uint64).tolist())
        with contextlib.suppress(TypeError, ValueError):
            return np.frombuffer(array.as_buffer(of_type="d"), dtype=np.float64)
    try:
        entries: list[Any] = orjson.loads(listed)
    except orjson.JSONDecodeError:
        raise _NoColumn("expected numbers, texts, true, false or null") from None
    if len(known) > _MOST_KNOWN_TEXTS or set(map(type, entries)) != {str}:
        # Ids, mostly: all different.
        return entries
    return list(map(known.setdefault, entries, entries))


def _narrowed(whole: NDArray[np.int64]) -> NDArray[Any]:
    """Numbers in the narrowest type that holds them: labels take a byte each, not eight."""
    # Of every type the smallest number is -1 less the greatest.
    greatest = max(int(whole.max()), -1 - int(whole.min()))
    return whole.astype(next(kind for kind, limit in _WHOLE if greatest <= limit), copy=False)


def _joined(parts: Sequence[Column]) -> Column:
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    if len(arrays) == len(parts):
        return np.concatenate(arrays)
    entries: list[Any] = []
    for part in parts:
        entries += part.tolist() if isinstance(part, np.ndarray) else part
    return entries


def _let_go(body: Buffer, place: int) -> None:
    """Give back the memory of what was read of a file, about once in so many bytes: the file itself stays."""
    if isinstance(body, mmap.mmap) and place % _LET_GO < _PIECE and place > _LET_GO:
        body.madvise(mmap.MADV_DONTNEED, 0, place // mmap.PAGESIZE * mmap.PAGESIZE)


# --- one row per sample or class -------------------------------------------------------------------------------------


def _read_rows(body: Buffer, place: int, name: str) -> tuple[Column, int]:
    """Rows [n, K] from behind the outer opening bracket on, and the place behind the outer closing one."""
    found: NDArray[np.float64] | None = None
    count = 0
    while True:
        ending = _LAST_ROW.search(body, place, place + _PIECE)
        length = ending.start() + 1 - place if ending else body[place : place + _PIECE].rfind(b"]") + 1
        rows = _rows(body[place : place + length])
        if found is None:
            found = np.empty_like(rows)
        if rows.shape[1] != found.shape[1]:
            raise _NoColumn("expected rows of one length")
        if name in _LABELS and rows.shape[1] < 2:
            raise _NoColumn("expected labels")
        if count + len(rows) > len(found):
            # In its place, if the system can: parts that are joined at the end would take their room twice.
            found.resize((count + max(len(rows), count // 4), found.shape[1]), refcheck=False)
        found[count : count + len(rows)] = rows
        count += len(rows)
        _let_go(body, place)
        if name == _MATRIX and count > MOST_CLASSES:
            raise _TooMuch("too_many_classes", f"expected at most {MOST_CLASSES} classes, got more rows")
        _check_samples(count)
        place += length
        if closing := _CLOSING.match(body, place):
            found.resize((count, found.shape[1]), refcheck=False)
            return found, closing.end()
        between = _BETWEEN_ROWS.match(body, place)
        if between is None:
            raise _NoColumn("expected a comma between two rows")
        place = between.end()


def _rows(text: bytes) -> NDArray[np.float64]:
    count, width = _shape(text)
    try:
        array = simdjson.Parser().parse(b"[" + text + b"]")
        assert isinstance(array, simdjson.Array)  # noqa: S101 - there are brackets around it
        flat = np.frombuffer(array.as_buffer(of_type="d"), dtype=np.float64)
    except (TypeError, ValueError, RuntimeError):
        raise _NoColumn("expected rows of numbers") from None
    if flat.size != count * width:
        raise _NoColumn("expected rows of numbers")
    return flat.reshape(count, width)


def _shape(text: bytes) -> tuple[int, int]:
    """Number of rows and of numbers in each. A buffer would flatten whatever it is given, so signs are counted."""
    if b'"' in text or b"{" in text:
        raise _NoColumn("expected rows of numbers")
    signs = np.frombuffer(text, dtype=np.uint8)
    signs = signs[(signs == _OPEN) | (signs == _CLOSE) | (signs == _COMMA)]
    opening, closing = np.flatnonzero(signs == _OPEN), np.flatnonzero(signs == _CLOSE)
    if not opening.size or opening.size != closing.size:
        raise _NoColumn(f"expected rows of at most {MOST_CLASSES} numbers")
    # In `[,,],[,,],[` a bracket opens, commas follow, one closes, and one comma parts it from the next.
    widths = closing - opening
    if (widths != widths[0]).any() or (opening[1:] - closing[:-1] != 2).any() or opening[0] or widths[0] < 1:
        raise _NoColumn("expected rows of one length")
    if widths[0] > MOST_CLASSES:
        raise _TooMuch("too_many_classes", f"expected at most {MOST_CLASSES} classes, got rows of {widths[0]} numbers")
    return len(widths), int(widths[0])


def byte_size(value: Any) -> int:
    """About how many bytes the arrays of a parsed object take, 8 per entry."""
    size, waiting = 0, [value]
    # By a list of what is to be looked at: what people send may be nested deeper than Python calls may be.
    while waiting:
        found = waiting.pop()
        if isinstance(found, np.ndarray):
            size += 8 * found.size
        elif isinstance(found, dict):
            waiting += found.values()
        elif isinstance(found, list):
            size += 8 * len(found)
            waiting += [item for item in found if type(item) in _CONTAINERS]
    return size
