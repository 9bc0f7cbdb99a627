"""Matrices of probabilities in a JSON body, read piece by piece: parsed whole they take five times their room.

What is read here is cut out of the body before the rest is parsed. Nothing is decided here: whatever is not plainly
rows of numbers of one length stays where it is, for a reader that finds the fault.
"""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import simdjson
from numpy.typing import NDArray

from app.api.bodies.parsing import Body

_NAME = b'"probabilities"'
# No text of a JSON document is followed by a colon unless it is the name of a member.
_START = re.compile(rb'"probabilities"\s*:\s*(?=\[\s*\[)')
_FIRST_ROW = re.compile(rb"\[\s*")
_END = re.compile(rb"\]\s*\]")
_BETWEEN = re.compile(rb"\s*,\s*")
_CLOSING = re.compile(rb"\s*\]")
# Small enough that other threads are not kept waiting.
_CHUNK = 1 << 18


@dataclass(frozen=True, slots=True)
class SplitBody:
    """A body with names of matrices in the place of the matrices."""

    rest: Body
    matrices: Mapping[str, NDArray[np.float64]]


def split_matrices(body: Body) -> SplitBody:
    """Take the matrices out of a body; their names are texts that nobody can have foreseen."""
    pieces: list[Body] = []
    matrices: dict[str, NDArray[np.float64]] = {}
    done, place = 0, body.find(_NAME)
    while place >= 0:
        found = _START.match(body, place)
        first = None if found is None else _FIRST_ROW.match(body, found.end())
        if found is None or first is None:
            place = body.find(_NAME, place + len(_NAME))
            continue
        matrix = _read(body, first.end())
        if matrix is None:
            # One fault is enough: looking on would read the rest again and again.
            break
        name = secrets.token_hex(16)
        matrices[name] = matrix.entries
        pieces += [body[done : found.end()], b'"', name.encode(), b'"']
        done = matrix.end
        place = body.find(_NAME, done)
    return SplitBody(b"".join([*pieces, body[done:]]) if matrices else body, matrices)


@dataclass(frozen=True, slots=True)
class _Matrix:
    entries: NDArray[np.float64]
    end: int


def _read(body: Body, start: int) -> _Matrix | None:
    """Rows [n, K] from a place of a body on, and the place behind them; None when it is anything else."""
    parts: list[NDArray[np.float64]] = []
    place = start
    while True:
        ending = _END.search(body, place, place + _CHUNK)
        cut = ending.start() + 1 if ending is not None else body.find(b"]", place + _CHUNK) + 1
        rows = _rows(b"[" + body[place:cut] + b"]") if cut else None
        if rows is None or (parts and rows.shape[1] != parts[0].shape[1]):
            return None
        parts.append(rows)
        closing = _CLOSING.match(body, cut)
        if closing is not None:
            return _Matrix(np.concatenate(parts), closing.end())
        between = _BETWEEN.match(body, cut)
        if between is None:
            return None
        place = between.end()


def _rows(text: bytes) -> NDArray[np.float64] | None:
    try:
        # A parser of its own each time: one that is used again must have nothing left of its last document.
        array = simdjson.Parser().parse(text)
        if not isinstance(array, simdjson.Array):
            return None
        # A buffer flattens whatever it is given: every row has to be asked for its length.
        widths = np.fromiter((len(row) for row in array), dtype=np.int64)  # type: ignore[arg-type]  # or a TypeError
        flat = np.frombuffer(array.as_buffer(of_type="d"), dtype=np.float64)
    except (TypeError, ValueError, RuntimeError):
        return None
    if widths.size != text.count(b"[") - 1:
        # A row has rows inside.
        return None
    if not widths.size or not widths[0] or (widths != widths[0]).any() or flat.size != widths.size * int(widths[0]):
        return None
    return flat.reshape(widths.size, int(widths[0]))
