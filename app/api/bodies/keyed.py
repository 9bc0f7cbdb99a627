"""Requests with an `Idempotency-Key`: one effect, however often they come.

The key is claimed once the whole body is there, which is when one knows what is asked: `received` is called by
whatever reads bodies. What was saved for the same request before is then answered in the place of new work.
"""

import asyncio
from collections.abc import Awaitable, Callable
from hashlib import file_digest, sha256
from http import HTTPStatus
from typing import Any, BinaryIO, Final

from fastapi import Request
from starlette.responses import Response

from app.api.access import IDEMPOTENCY_KEY, LONGEST_KEY
from app.api.problems import InvalidQuery
from app.domain.operations import KeptResult
from app.services.idempotency import IdempotencyService, KeyedWork, keep_under
from app.services.ports import KeyTakenError

REPLAYED: Final = {"Idempotent-Replayed": "true"}
# They say how an answer is written, not what is done.
_OF_THE_ANSWER: Final = frozenset({"fields", "style", "width"})
_STATE: Final = "idempotency"


class Replay(Exception):
    """The request was saved before: what it made is to be answered again."""

    def __init__(self, result: KeptResult) -> None:
        super().__init__(f"{result.kind} {result.object}")
        self.result = result


class Keyed:
    """A request with a key.

    Attributes:
        work: Once the body has come and the key is claimed.
    """

    def __init__(
        self, service: IdempotencyService, project: str, key: str, target: bytes, first: Callable[[], Awaitable[None]]
    ) -> None:
        """Take a key of a project; ``first`` is awaited before work that is new."""
        self._service, self._project, self._key, self._target, self._first = service, project, key, target, first
        self.work: KeyedWork | None = None

    async def claim(self, digest: bytes) -> None:
        """The body has come, with this digest.

        Raises:
            Replay: it was answered before.
            DomainError: the key is another request's, or this one's and under way; whatever ``first`` raises.
        """
        fingerprint = sha256(self._target + digest).digest()
        begun = await self._service.begin(self._project, self._key, fingerprint)
        if isinstance(begun, KeptResult):
            raise Replay(begun)
        self.work = begun
        keep_under(begun.mark)
        if not begun.results:
            await self._first()

    async def answer(self, handle: Callable[[Request], Awaitable[Response]], request: Request) -> Response:
        """Answer of the request.

        Raises:
            Replay: it was answered before, or meanwhile by somebody who was quicker.
        """
        kept = False
        try:
            answer = await handle(request)
            # A batch ends its claim here; where nothing was kept there is nothing that would have.
            kept = answer.status_code == HTTPStatus.CREATED
            return answer
        except KeyTakenError as error:
            if self.work is None:
                raise
            raise Replay(await self._service.result(self.work.mark)) from error
        finally:
            keep_under(None)
            if self.work is not None:
                await self.work.end(kept=kept)


def keyed_by(
    request: Request, key: str, service: IdempotencyService, project: str, first: Callable[[], Awaitable[None]]
) -> Keyed:
    """A request and its key; ``first`` is awaited before work that is new. Raises InvalidQuery where it is no key."""
    if len(request.headers.getlist(IDEMPOTENCY_KEY)) > 1:
        raise InvalidQuery.at(IDEMPOTENCY_KEY, "repeated_header", "expected the header once")
    if not (0 < len(key) <= LONGEST_KEY and all("!" <= character <= "~" for character in key)):
        detail = f"expected 1 to {LONGEST_KEY} visible ASCII characters, without spaces"
        raise InvalidQuery.at(IDEMPOTENCY_KEY, "invalid_idempotency_key", detail)
    query = sorted(pair for pair in request.query_params.multi_items() if pair[0] not in _OF_THE_ANSWER)
    keyed = Keyed(service, project, key, f"{request.method} {request.scope['path']} {query} ".encode(), first)
    request.scope["state"][_STATE] = keyed
    return keyed


def keyed_work(request: Request) -> KeyedWork | None:
    """The work on a request with a key whose body has come; None when it has no key."""
    keyed: Keyed | None = request.scope["state"].get(_STATE)
    return None if keyed is None else keyed.work


async def received(request: Request, *parts: bytes | bytearray | BinaryIO) -> None:
    """The whole body of a request has come: files among its parts are read from their beginning.

    Raises:
        Replay, DomainError: as `Keyed.claim`.
    """
    keyed: Keyed | None = request.scope.get("state", {}).get(_STATE)
    if keyed is not None:
        digests = [sha256(part).digest() if isinstance(part, bytes | bytearray) else await _of(part) for part in parts]
        await keyed.claim(b"".join(digests))


async def _of(file: BinaryIO) -> bytes:
    file.seek(0)
    found: Any = file
    digest = await asyncio.to_thread(file_digest, found, sha256)
    file.seek(0)
    return digest.digest()
