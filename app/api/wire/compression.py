"""Bodies of requests that come compressed: unpacked as they stream, so that a small one cannot become a large one."""

import asyncio
import zlib
from http import HTTPStatus
from typing import Any, Final, Protocol

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope

from app.api.problems import MalformedRequest, Problem
from app.api.wire.zstd import DecompressionParameter, ZstdDecompressor, ZstdError
from app.domain.errors import Fault

# What is unpacked at once: a millisecond's work, after which others get their turn.
_PIECE: Final = 256 * 1024
_GZIP: Final = 16 + zlib.MAX_WBITS
# The largest window that HTTP allows (RFC 9659): what a frame may have its reader keep.
_ZSTD_WINDOW: Final[dict[int, int]] = {DecompressionParameter.window_log_max: 23}
# Tools that pack pieces one by one make them of 64 KiB; empty ones take twenty bytes and as much time.
_MOST_MEMBERS: Final = 10_000


class Decoder(Protocol):
    """Unpacks one member: a file of gzip, a frame of zstd.

    Attributes:
        rest: What it was given and has not looked at: behind its end, when it has ended.
        more: There is more to be had without giving it anything.
        ended: It is complete.
    """

    rest: bytes
    more: bool
    ended: bool

    def unpack(self, packed: bytes) -> bytes:
        """At most `_PIECE` bytes. Raises ValueError for what is not of its kind."""
        ...


class GzipDecoder:
    """One file of gzip."""

    def __init__(self) -> None:
        self._decoder = zlib.decompressobj(_GZIP)
        self.rest, self.more, self.ended = b"", False, False

    def unpack(self, packed: bytes) -> bytes:
        """As `Decoder` says."""
        try:
            piece = self._decoder.decompress(packed, _PIECE)
        except zlib.error as error:
            raise ValueError(str(error)) from None
        self.ended = self._decoder.eof
        self.rest = self._decoder.unused_data if self.ended else self._decoder.unconsumed_tail
        self.more = len(piece) == _PIECE and not self.ended
        return piece


class ZstdDecoder:
    """One frame of zstd."""

    def __init__(self) -> None:
        self._decoder = ZstdDecompressor(options=_ZSTD_WINDOW)
        self.rest, self.more, self.ended = b"", False, False

    def unpack(self, packed: bytes) -> bytes:
        """As `Decoder` says. What it has not looked at it keeps, as long as the frame goes on."""
        try:
            piece = self._decoder.decompress(packed, _PIECE)
        except ZstdError as error:
            raise ValueError(str(error)) from None
        self.ended = self._decoder.eof
        self.rest = self._decoder.unused_data if self.ended else b""
        self.more = not self.ended and not self._decoder.needs_input
        return piece


_DECODERS: Final[dict[str, tuple[str, type[GzipDecoder] | type[ZstdDecoder]]]] = {
    "gzip": ("gzip", GzipDecoder),
    "x-gzip": ("gzip", GzipDecoder),
    "zstd": ("zstd", ZstdDecoder),
}


def unpacked(scope: Scope, receive: Receive) -> tuple[Scope, Receive] | Problem:
    """The request as if it had come plain; a problem when it is compressed in an unknown way."""
    encoding = Headers(scope=scope).get("content-encoding", "").strip().lower()
    if encoding in ("", "identity"):
        return scope, receive
    if encoding not in _DECODERS:
        return Problem(
            status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            code="unsupported_encoding",
            detail=f"expected a body that is plain or has the Content-Encoding gzip or zstd, got {encoding[:60]!r}",
            headers={"Accept-Encoding": "gzip, zstd", "Connection": "close"},
        )
    # Its length is that of what came.
    dropped = (b"content-encoding", b"content-length")
    headers = [(name, value) for name, value in scope["headers"] if name not in dropped]
    return {**scope, "headers": headers}, _Unpacking(receive, *_DECODERS[encoding])


class _Unpacking:
    """The messages of a request with its body unpacked."""

    def __init__(self, receive: Receive, name: str, kind: Any) -> None:
        self._receive, self._name, self._kind = receive, name, kind
        self._decoder: Decoder = kind()
        self._packed = b""
        self._begun = self._last = False
        self._members = 1

    async def __call__(self) -> Message:
        """The next message.

        Raises:
            MalformedRequest: what came is not packed in that way, or not all of it.
        """
        while True:
            if self._packed or self._decoder.more:
                # Nothing is waited for here, and others would wait for all of a body.
                await asyncio.sleep(0)
                piece = self._unpack()
                if piece:
                    return {"type": "http.request", "body": piece, "more_body": True}
                continue
            if self._last:
                if self._begun and not self._decoder.ended:
                    raise self._malformed("the body ends early")
                self._begun = self._last = False
                return {"type": "http.request", "body": b"", "more_body": False}
            message = await self._receive()
            if message["type"] != "http.request":
                return message
            self._packed = message.get("body", b"")
            self._last = not message.get("more_body", False)

    def _unpack(self) -> bytes:
        if self._decoder.ended:
            # Members may be one after another.
            self._members += 1
            if self._members > _MOST_MEMBERS:
                parts = "files of gzip" if self._name == "gzip" else "frames of zstd"
                raise self._malformed(f"there are more than {_MOST_MEMBERS} {parts} one after another")
            self._decoder = self._kind()
        self._begun = True
        try:
            piece = self._decoder.unpack(self._packed)
        except ValueError as error:
            raise self._malformed(str(error)) from None
        self._packed = self._decoder.rest
        return piece

    def _malformed(self, reason: str) -> MalformedRequest:
        name = self._name
        fault = Fault("", f"invalid_{name}", f"expected a body in {name}, as Content-Encoding says: {reason}")
        return MalformedRequest([fault], status=HTTPStatus.BAD_REQUEST)
