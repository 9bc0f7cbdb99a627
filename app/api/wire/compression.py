"""Bodies in gzip: those of requests unpacked as they stream, so that a small one cannot become a large one; answers
packed for those who take it.
"""

import asyncio
import zlib
from http import HTTPStatus
from typing import Final

from starlette.datastructures import Headers
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.presentation import weighted
from app.api.problems import MalformedRequest, Problem
from app.domain.errors import Fault

# Unpacked at once: a millisecond's work, after which others get their turn.
_PIECE: Final = 256 * 1024
_GZIP: Final = 16 + zlib.MAX_WBITS
# Tools that pack pieces one by one make them of 64 KiB; empty ones take twenty bytes and as much time.
_MOST_MEMBERS: Final = 10_000
# Answers from so many bytes on are packed. Level 1 makes a quarter of a report in a fraction of a millisecond.
_LEAST_PACKED: Final = 16 * 1024
_LEVEL: Final = 1


class Packing(GZipMiddleware):
    """Packs large answers. The library takes `gzip;q=0`, which refuses gzip, for a wish."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app, _LEAST_PACKED, _LEVEL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] == "http" and _refuses_gzip(Headers(scope=scope).get("accept-encoding", "")):
            headers = [(name, value) for name, value in scope["headers"] if name != b"accept-encoding"]
            scope = {**scope, "headers": headers}
        await super().__call__(scope, receive, send)


def _refuses_gzip(accepted: str) -> bool:
    return ";" in accepted and any(weighted(part) == ("gzip", 0.0) for part in accepted.split(","))


def unpacked(scope: Scope, receive: Receive) -> tuple[Scope, Receive] | Problem:
    """The request with a plain body; a problem when it is compressed in an unknown way."""
    encoding = Headers(scope=scope).get("content-encoding", "").strip().lower()
    if encoding in ("", "identity"):
        return scope, receive
    if encoding not in ("gzip", "x-gzip"):
        return Problem(
            status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            code="unsupported_encoding",
            detail=f"expected a body that is plain or has the Content-Encoding gzip, got {encoding[:60]!r}",
            headers={"Accept-Encoding": "gzip", "Connection": "close"},
        )
    # Its length is that of the packed body.
    dropped = (b"content-encoding", b"content-length")
    headers = [(name, value) for name, value in scope["headers"] if name not in dropped]
    return {**scope, "headers": headers}, _Unpacking(receive)


class _Unpacking:
    """The messages of a request with its body unpacked. Members of gzip may come one after another."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._member = zlib.decompressobj(_GZIP)
        self._packed = b""
        self._begun = self._full = self._last = False
        self._members = 1

    async def __call__(self) -> Message:
        """The next message.

        Raises:
            MalformedRequest: the body is no gzip, or ends early.
        """
        while True:
            if self._packed or self._full:
                # Nothing is waited for here, and others would wait for all of a body.
                await asyncio.sleep(0)
                if piece := self._unpack():
                    return {"type": "http.request", "body": piece, "more_body": True}
                continue
            if self._last:
                if self._begun and not self._member.eof:
                    raise _malformed("the body ends early")
                self._begun = self._last = False
                return {"type": "http.request", "body": b"", "more_body": False}
            message = await self._receive()
            if message["type"] != "http.request":
                return message
            self._packed = message.get("body", b"")
            self._last = not message.get("more_body", False)

    def _unpack(self) -> bytes:
        """At most `_PIECE` bytes."""
        if self._member.eof:
            self._members += 1
            if self._members > _MOST_MEMBERS:
                raise _malformed(f"there are more than {_MOST_MEMBERS} files of gzip one after another")
            self._member = zlib.decompressobj(_GZIP)
        self._begun = True
        try:
            piece = self._member.decompress(self._packed, _PIECE)
        except zlib.error as error:
            raise _malformed(str(error)) from None
        self._packed = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
        # What was held back for want of room comes without more input.
        self._full = len(piece) == _PIECE and not self._member.eof
        return piece


def _malformed(reason: str) -> MalformedRequest:
    fault = Fault("", "invalid_gzip", f"expected a body in gzip, as Content-Encoding says: {reason}")
    return MalformedRequest([fault], status=HTTPStatus.BAD_REQUEST)
