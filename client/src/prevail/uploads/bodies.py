"""Bodies of requests with data: JSON, or a form of two parts whose second is a stream of Arrow batches or a file."""

import importlib.util
import json
import math
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from prevail.errors import InvalidInput
from prevail.uploads.arrays import Column, Data, Rows
from prevail.uploads.progress import Watcher, watched
from prevail.wire.steps import Parts

# From so many numbers and texts on data is sent part by part.
STREAMED_CELLS: Final = 20_000
_BATCH_CELLS: Final = 1 << 18
_FILE_PART: Final = 1 << 18
# Columns of files by the names that they have in JSON: all that the client knows of what the service declares.
COLUMNS: Final = {
    "y_true": "y_true",
    "y_pred": "y_pred",
    "scores": "score",
    "probabilities": "probabilities",
    "sample_ids": "sample_id",
    "group_ids": "group_id",
    "sample_weight": "sample_weight",
}


def compact(value: Any, place: str = "", before: int = 0) -> bytes:
    """Write a value as JSON, which stands at a place behind so many others.

    Raises:
        InvalidInput: JSON has no form for it: NaN, infinity, or an object.
    """
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"), default=_number).encode()
    except ValueError as error:
        where = f"{place}{_place_of_nan(value, before) or ''}".removeprefix(".").removeprefix("input.")
        raise InvalidInput(
            f"{where}: expected finite numbers, got infinity or NaN, as what is missing", code="not_finite"
        ) from error
    except TypeError as error:
        raise InvalidInput(f"{place or 'data'}: {error}", code="array_type") from error


def _place_of_nan(value: Any, before: int = 0) -> str | None:
    """The place in a value of the first number that is none, as ``.age[7]``; None where all are numbers."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, float):
        return None if math.isfinite(value) else ""
    inside: Iterable[tuple[str, Any]] = ()
    if isinstance(value, Mapping):
        inside = ((f".{name}", one) for name, one in value.items())
    elif isinstance(value, list | tuple):
        inside = ((f"[{place}]", one) for place, one in enumerate(value, before))
    found = ((place, _place_of_nan(one)) for place, one in inside)
    return next((f"{place}{rest}" for place, rest in found if rest is not None), None)


def _number(value: Any) -> Any:
    """Numbers, lists and such of other libraries."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    raise TypeError(f"expected numbers, texts and lists of them, got {type(value).__name__} {value!s:.40}")


def json_body(request: Mapping[str, Any], columns: Sequence[Data]) -> dict[str, Any]:
    """The request with its arrays in it, for few samples."""
    arrays = {one.name: one.part(0, len(one)) for one in columns}
    for name, values in arrays.items():
        compact(values, name)
    return {**request, "input": {**request["input"], **arrays}}


def check_lengths(columns: Sequence[Data]) -> int:
    """The number of samples.

    Raises:
        InvalidInput: the columns are not equally long.
    """
    lengths = {one.name: len(one) for one in columns}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name} has {length:,}" for name, length in lengths.items())
        raise InvalidInput(f"expected as many entries in each: {said}", code="wrong_length")
    return next(iter(lengths.values()), 0)


def json_parts(request: Mapping[str, Any], columns: Sequence[Data], watch: Watcher | None) -> Parts:
    """Return the body as JSON that is made while it is sent, so that it is never in memory as a whole."""
    total = sum(one.cells for one in columns)

    def parts() -> Iterator[tuple[int, bytes]]:
        source = compact(request["input"])
        others = {name: value for name, value in request.items() if name != "input"}
        yield 0, compact(others)[:-1] + (b"," if others else b"") + b'"input":' + source[:-1]
        done = 0
        for one in columns:
            yield done, b"," + compact(one.name) + b":["
            size = max(_BATCH_CELLS // (one.width if isinstance(one, Rows) else 1), 1)
            for start in range(0, len(one), size):
                stop = min(start + size, len(one))
                text = compact(one.part(start, stop), one.name, start)[1:-1]
                done += one.cells * (stop - start) // max(len(one), 1)
                yield done, (b"," if start else b"") + text
            yield done, b"]"
        yield total, b"}}"

    return lambda: watched(parts(), "data", total, "numbers", watch)


def has_arrow() -> bool:
    """Is pyarrow installed?"""
    return importlib.util.find_spec("pyarrow") is not None


def arrow_form(
    request: Mapping[str, Any], columns: Sequence[Data], labels: Sequence[str] | None, watch: Watcher | None
) -> tuple[Parts, dict[str, str]] | None:
    """A form with a stream of Arrow batches, each made when it is sent; and the headers that say so. None where a
    column has no form in Arrow that the service reads, such as dates, or texts beside numbers.
    """
    import pyarrow as pa  # only where much is sent

    count = check_lengths(columns)
    size = max(_BATCH_CELLS // sum(one.width if isinstance(one, Rows) else 1 for one in columns), 1)

    try:
        table = _Table(columns, labels, pa)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None

    def batches() -> Iterator[tuple[int, bytes]]:
        sink = _Sink()
        with pa.ipc.new_stream(sink, table.batch(0, 0).schema) as writer:
            for start in range(0, count, size):
                stop = min(start + size, count)
                writer.write_batch(table.batch(start, stop))
                yield stop, sink.taken()
        yield count, sink.taken()

    return _form(request, "data.arrow", lambda: watched(batches(), "data", count, "rows", watch))


class _Table:
    """Columns as batches of Arrow. Of rows of numbers only what is sent is ever copied."""

    def __init__(self, columns: Sequence[Data], labels: Sequence[str] | None, arrow: Any) -> None:
        self._arrow, self._labels = arrow, labels or ()
        # Whole, so that all batches have one type.
        self._whole = {one.name: _arrow_array(arrow, one) for one in columns if isinstance(one, Column)}
        self._rows = [one for one in columns if isinstance(one, Rows)]

    def batch(self, start: int, stop: int) -> Any:
        """Return some of the samples."""
        found = {COLUMNS[name]: whole[start:stop] for name, whole in self._whole.items()}
        for one in self._rows:
            for place, label in enumerate(self._labels):
                part = one.column(place, start, stop)
                is_untyped = isinstance(part, list) or part.dtype.kind == "O"
                kind = self._arrow.float64() if is_untyped else None
                found[label] = self._arrow.array(part, type=kind)
        return self._arrow.RecordBatch.from_pydict(found)


def _arrow_array(arrow: Any, one: Column) -> Any:
    found = arrow.array(one.values)
    is_read = (getattr(arrow.types, f"is_{kind}") for kind in ("integer", "floating", "boolean", "string"))
    if not any(of_kind(found.type) for of_kind in (*is_read, arrow.types.is_large_string)):
        raise TypeError(f"{one.name}: {found.type}")
    return found


class _Sink:
    """A file that is written to by Arrow, and emptied whenever something is sent."""

    closed = False

    def __init__(self) -> None:
        self._held = bytearray()

    def write(self, data: Any) -> int:
        self._held += data
        return len(data)

    def taken(self) -> bytes:
        held, self._held = bytes(self._held), bytearray()
        return held

    def flush(self) -> None:
        """Do nothing: all bytes are here already."""

    def close(self) -> None:
        self.closed = True


def file_form(request: Mapping[str, Any], path: Path, watch: Watcher | None) -> tuple[Parts, dict[str, str]]:
    """A form with a file as it is, read while it is sent; and the headers that say so.

    Raises:
        InvalidInput: there is no such file.
    """
    if not path.is_file():
        raise InvalidInput(f"there is no file {path}", code="no_such_file")
    total = path.stat().st_size

    def parts() -> Iterator[tuple[int, bytes]]:
        done = 0
        with path.open("rb") as file:
            while part := file.read(_FILE_PART):
                done += len(part)
                yield done, part

    return _form(request, path.name, lambda: watched(parts(), path.name, total, "bytes", watch))


def _form(request: Mapping[str, Any], name: str, data: Parts) -> tuple[Parts, dict[str, str]]:
    boundary = secrets.token_hex(16)
    shown = "".join(one if one.isalnum() or one in "._-" else "_" for one in name)
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="evaluation"\r\nContent-Type: application/json\r\n\r\n'
    ).encode()
    between = (
        f'\r\n--{boundary}\r\nContent-Disposition: form-data; name="data"; filename="{shown}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    ).encode()

    def parts() -> Iterator[bytes]:
        yield head + compact(request) + between
        yield from data()
        yield f"\r\n--{boundary}--\r\n".encode()

    return parts, {"Content-Type": f"multipart/form-data; boundary={boundary}"}
