"""Long lists as JSON, written item by item and sent in pieces: nowhere are they held in one piece.

Items that another process writes come in files without a name, which lie in memory: through a pipe each would be copied
five times, into memory that is new each time.
"""

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

# Of an answer that is sent in pieces; shorter ones are sent as they are.
_PIECE_BYTES: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class Written:
    """An item in a file, from a place to another."""

    file: BinaryIO
    start: int
    end: int


Item = bytes | Written


def item_file() -> BinaryIO:
    """A file for items, which another process can be sent."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("prevail-items"), "r+b", buffering=0)
    return tempfile.TemporaryFile(buffering=0)


def write_items(file: BinaryIO, items: Iterable[bytes]) -> list[tuple[int, int]]:
    """Write items into a file of their own; where each begins and ends. Between two is one byte, a comma."""
    places: list[tuple[int, int]] = []
    place = 0
    for item in items:
        if places:
            place += _write(file, b",", place)
        places.append((place, place + len(item)))
        place += _write(file, item, place)
    return places


def _write(file: BinaryIO, data: bytes, place: int) -> int:
    done = 0
    while done < len(data):
        done += os.pwrite(file.fileno(), data[done:] if done else data, place + done)
    return done


def list_response(name: str, items: Iterable[Item], status: int, headers: Mapping[str, str]) -> Response:
    """A response with an object of one member, a list of such items."""
    pieces = [b"{%b:[" % orjson.dumps(name), *_joined(items), b"]}"]
    if sum(map(_size, pieces)) > _PIECE_BYTES:
        return _LongResponse(pieces, status, headers)
    whole = b"".join(map(_content, pieces))
    _close(pieces)
    return Response(whole, status, headers, media_type="application/json")


def _joined(items: Iterable[Item]) -> list[Item]:
    """Items with commas between them; of a file as many in one as there is room for."""
    found: list[Item] = []
    for item in items:
        last = found[-1] if found else None
        if (
            isinstance(last, Written)
            and isinstance(item, Written)
            and item.file is last.file
            and item.start == last.end + 1
            and item.end - last.start <= _PIECE_BYTES
        ):
            found[-1] = Written(last.file, last.start, item.end)
        else:
            if last is not None:
                found.append(b",")
            found.append(item)
    return found


def _size(piece: Item) -> int:
    return len(piece) if isinstance(piece, bytes) else piece.end - piece.start


def _content(piece: Item) -> bytes:
    return piece if isinstance(piece, bytes) else os.pread(piece.file.fileno(), _size(piece), piece.start)


def _close(pieces: Iterable[Item]) -> None:
    for piece in pieces:
        if isinstance(piece, Written):
            piece.file.close()


class _LongResponse(Response):
    """An answer in pieces."""

    def __init__(self, pieces: Sequence[Item], status: int, headers: Mapping[str, str]) -> None:
        self._pieces = pieces
        length = {"Content-Length": str(sum(map(_size, pieces)))}
        super().__init__(None, status, {**headers, **length}, media_type="application/json")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - of ASGI
        """Send it."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        held: list[bytes] = []
        try:
            for piece in self._pieces:
                held.append(_content(piece))
                if sum(map(len, held)) >= _PIECE_BYTES // 2:
                    await send({"type": "http.response.body", "body": b"".join(held), "more_body": True})
                    held = []
            await send({"type": "http.response.body", "body": b"".join(held)})
        finally:
            _close(self._pieces)
