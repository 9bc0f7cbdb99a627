"""One effect for a request that comes several times: the use of an `Idempotency-Key`.

Two things are kept of a key. A result says what was saved under it. It is written by the transaction that keeps the
object, and its primary key makes a second one impossible, in whatever process and after whatever crash. A claim says
that somebody is at work. It has a lease, is renewed as long as the work lasts, and only spares the work: nothing is
wrong when it is lost. Why so: docs/adr/0008-idempotency-keys.md.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final
from uuid import UUID

from app.domain.errors import IdempotencyKeyInFlight, IdempotencyKeyReused, StoreError
from app.domain.identifiers import new_id
from app.domain.operations import KeptResult
from app.services.beside import again_and_again
from app.services.ports import IdempotencyStore

PURGE_SECONDS: Final = 300.0
WHOLE: Final = 0
# A claim that is not renewed for so long has lost its process.
_LEASE: Final = timedelta(seconds=15)
_log = logging.getLogger("prevail.idempotency")


@dataclass(frozen=True, slots=True)
class Mark:
    """The record that is stored with the object of a request with an idempotency key.

    Attributes:
        project: Of the request, to which the key belongs.
        claim: Which claim of the key it is; the transaction that keeps the whole of a request ends it.
        item: As `KeptResult` has it.
    """

    project: str
    key: str
    fingerprint: bytes
    claim: UUID
    expires_at: datetime
    item: int = WHOLE

    def of_item(self, item: int) -> "Mark":
        """Return the mark of one item of the request."""
        return replace(self, item=item)


_MARK: ContextVar[Mark | None] = ContextVar("idempotency", default=None)


def keep_under(mark: Mark | None) -> None:
    """Set the idempotency key that this task and those it starts store their results under; None is none."""
    _MARK.set(mark)


def present_mark() -> Mark | None:
    """The key that what is saved now is kept under."""
    return _MARK.get()


class KeyedWork:
    """The work on a request with a key: the key stays claimed until `end`. A request like it that did not come to its
    end has left ``results``, by item.
    """

    def __init__(self, store: IdempotencyStore, mark: Mark, results: Mapping[int, KeptResult]) -> None:
        self._store = store
        self.mark, self.results = mark, results
        renew = partial(store.renew, mark.project, mark.key, mark.claim, _LEASE)
        keep = again_and_again(renew, _LEASE.total_seconds() / 3, "the lease of a key was not renewed")
        self._renewing = asyncio.create_task(keep, name="idempotency-lease")

    async def end(self, *, kept: bool) -> None:
        """Let go of the key: what was saved has done so already."""
        self._renewing.cancel()
        if kept:
            return
        # To its end, though the client may have gone and this request be cancelled.
        await asyncio.shield(asyncio.create_task(self._release()))

    async def _release(self) -> None:
        try:
            await self._store.release(self.mark.project, self.mark.key, self.mark.claim)
        except StoreError as error:
            _log.warning("a key stays claimed until its lease ends: %s", error)


class IdempotencyService:
    """Claims of keys. Every key belongs to one project."""

    def __init__(self, store: IdempotencyStore, *, keep: timedelta) -> None:
        """Take how long results are kept."""
        self._store, self._keep = store, keep

    async def begin(self, project: str, key: str, fingerprint: bytes) -> KeyedWork | KeptResult:
        """Begin the work on a request, or say what was saved for it.

        Raises:
            IdempotencyKeyReused: the key belongs to another request.
            IdempotencyKeyInFlight: a request like this one is under way.
            StoreUnavailableError: nobody knows whether there was one.
        """
        claim = new_id()
        results = await self._store.claim(project, key, fingerprint, claim, _LEASE)
        if WHOLE in results:
            return results[WHOLE]
        mark = Mark(project, key, fingerprint, claim, datetime.now(UTC) + self._keep)
        return KeyedWork(self._store, mark, results)

    async def result(self, mark: Mark) -> KeptResult:
        """Return the result of an equal request that was quicker.

        Raises:
            IdempotencyKeyReused: it was another request.
            IdempotencyKeyInFlight: it is gone already; the next attempt is the first one again.
        """
        found = {one.item: one for one in await self._store.results(mark.project, mark.key)}.get(mark.item)
        if found is None:
            raise IdempotencyKeyInFlight(f"the Idempotency-Key {mark.key!r} has just expired; ask again shortly")
        if found.fingerprint != mark.fingerprint:
            raise reused(mark.key)
        return found

    async def purge_again_and_again(self) -> None:
        """Forget what has expired, every few minutes."""
        await again_and_again(self._store.purge, PURGE_SECONDS, "expired keys are still there")


def reused(key: str) -> IdempotencyKeyReused:
    """The error of a key that belongs to another request."""
    return IdempotencyKeyReused(
        f"the Idempotency-Key {key!r} belongs to another request: the same key goes with the same method, address and "
        "body only"
    )
