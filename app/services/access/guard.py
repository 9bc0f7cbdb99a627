"""At the door: whether a request may pass, in which project it acts, and how often its key may be used.

A key is read from the database once in `KNOWN_SECONDS`; meanwhile it is known here, so that a revocation is late by no
more than that. Uses are counted here and written down every `NOTE_SECONDS`.
"""

import asyncio
import hmac
import logging
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from uuid import UUID

from limits import RateLimitItem, parse_many
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter

from app.domain.errors import Forbidden, QuotaUsedUp, TooManyRequests, Unauthenticated
from app.domain.operations import DEFAULT_PROJECT, Actor, ApiKey, Scope
from app.services.access.tokens import read_token
from app.services.ports import KeyLookup, StoreFullError, StoreUnavailableError

KNOWN_SECONDS: Final = 2.0
NOTE_SECONDS: Final = 5.0
_DAY_SECONDS: Final = 86_400
_MOST_KNOWN: Final = 10_000
# Stands for the digest of a key that there is not, so that as much is done for it as for one that there is.
_NOBODY: Final = bytes(32)

_log = logging.getLogger("prevail.access")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What a request says of who sends it.

    Attributes:
        authorization: The header, as it came.
        project: That it names, in a header of its own.
        local: It came from this machine.
        request_id: Under which the trail of changes has it.
    """

    authorization: str | None
    project: str | None
    local: bool
    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """A request that may pass.

    Attributes:
        project: In which it acts.
        administers: It may do what takes the scope `admin`.
        limit: What is left of the rate of its key, None without one.
    """

    actor: Actor
    project: str
    administers: bool = True
    limit: "RateState | None" = None


@dataclass(frozen=True, slots=True)
class RateState:
    """What is left of a rate: `left` of `requests` in `window` seconds, which begins anew in `reset` seconds."""

    requests: int
    window: int
    left: int
    reset: int


@dataclass(frozen=True, slots=True)
class _Known:
    key: ApiKey | None
    until: float


class Guard:
    """One per process, on the loop that uses it."""

    def __init__(self, store: KeyLookup, *, required: bool | None, rate: str | None) -> None:
        """Take whether keys are required, None for as soon as there is one, and the rate of keys that have none."""
        self._store = store
        self._never = required is False
        self._rate = rate
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._known: dict[UUID, _Known] = {}
        self._asked: dict[UUID, asyncio.Task[ApiKey | None]] = {}
        self._needs_keys = required is True
        self._open_until = 0.0
        self._used: Counter[UUID] = Counter()
        self._noting: asyncio.Task[None] | None = None

    async def admit(self, asking: Asking, scope: Scope) -> Admitted:
        """Let a request pass.

        Raises:
            Unauthenticated: it needs a key and has none, or none that is good.
            Forbidden: its key has not the scope, or acts in another project.
            TooManyRequests: its key was used too often.
            StoreUnavailableError: nobody knows whether its key is good.
        """
        if self._never or (asking.authorization is None and asking.local and not await self.needs_key()):
            return Admitted(actor=Actor("local", None, asking.request_id), project=asking.project or DEFAULT_PROJECT)
        key = await self._authenticate(asking.authorization)
        if not key.allows(scope):
            raise Forbidden(f"expected a key of the scope {scope.value}")
        project = asking.project or key.project
        if project != key.project and not key.allows(Scope.ADMIN):
            raise Forbidden("expected a key of the scope admin, which alone may name another project")
        limit = await self._count(key)
        return Admitted(
            actor=Actor(key.name, key.id, asking.request_id),
            project=project,
            administers=key.allows(Scope.ADMIN),
            limit=limit,
        )

    def forget(self, identifier: UUID) -> None:
        """A key was changed here: read it again at its next use."""
        self._known.pop(identifier, None)

    async def close(self) -> None:
        """Write down what was counted."""
        if self._noting is not None:
            self._noting.cancel()
            await asyncio.wait([self._noting])
        await self._note()

    # Who it is.

    async def needs_key(self) -> bool:
        """Tell whether requests need a key: from the first one that was made on, though all be revoked."""
        if self._never:
            return False
        if not self._needs_keys and time.monotonic() >= self._open_until:
            self._needs_keys = await self._store.any()
            self._open_until = time.monotonic() + KNOWN_SECONDS
        return self._needs_keys

    async def _authenticate(self, authorization: str | None) -> ApiKey:
        if authorization is None:
            raise Unauthenticated("expected an API key in the header Authorization: Bearer", presented=False)
        kind, _, text = authorization.partition(" ")
        token = read_token(text.strip()) if kind.lower() == "bearer" else None
        if token is None:
            raise _refused()
        key = await self._find(token.id)
        now = datetime.now(UTC)
        good = hmac.compare_digest(token.digest, _NOBODY if key is None else key.digest)
        if key is None:
            raise _refused()
        if not good and key.previous_digest is not None and key.previous_until is not None:
            good = hmac.compare_digest(token.digest, key.previous_digest) and now < key.previous_until
        if not good or not key.is_good_at(now):
            raise _refused()
        return key

    async def _find(self, identifier: UUID) -> ApiKey | None:
        known = self._known.get(identifier)
        if known is not None and time.monotonic() < known.until:
            return known.key
        task = self._asked.get(identifier)
        if task is None:
            task = self._asked[identifier] = asyncio.create_task(self._read(identifier))
        # Others wait for the same answer: who goes away does not take it from them.
        return await asyncio.shield(task)

    async def _read(self, identifier: UUID) -> ApiKey | None:
        # From before it was read: what is changed meanwhile counts as not known.
        until = time.monotonic() + KNOWN_SECONDS
        try:
            key = await self._store.find(identifier)
        finally:
            del self._asked[identifier]
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[identifier] = _Known(key, until)
        return key

    # How often.

    async def _count(self, key: ApiKey) -> RateState | None:
        if key.daily_quota is not None and key.used_today + self._used[key.id] >= key.daily_quota:
            raise QuotaUsedUp(
                f"the key has used up its {key.daily_quota} requests of this day (UTC); nothing was kept",
                times=key.daily_quota,
                window=_DAY_SECONDS,
                retry_after=_seconds_of_this_day(),
            )
        tightest: RateState | None = None
        for item in _items(key.rate or self._rate):
            passed = await self._limiter.hit(item, key.id.hex)
            stats = await self._limiter.get_window_stats(item, key.id.hex)
            reset = max(round(stats.reset_time - time.time()), 1)
            state = RateState(item.amount, item.get_expiry(), stats.remaining, reset)
            if not passed:
                raise TooManyRequests(
                    f"the key may be used {item.amount} times in {item.get_expiry()} s; nothing was kept",
                    times=item.amount,
                    window=item.get_expiry(),
                    retry_after=reset,
                )
            if tightest is None or state.left < tightest.left:
                tightest = state
        self._used[key.id] += 1
        if self._noting is None or self._noting.done():
            self._noting = asyncio.create_task(self._keep_noting(), name="key-usage")
        return tightest

    async def _keep_noting(self) -> None:
        while self._used:
            await asyncio.sleep(NOTE_SECONDS)
            await self._note()

    async def _note(self) -> None:
        """Write down how often keys were used since the last time."""
        used, self._used = self._used, Counter()
        if not used:
            return
        try:
            await self._store.note_usage(used, datetime.now(UTC))
        except (StoreUnavailableError, StoreFullError) as error:
            _log.warning("the uses of %d keys were not written down yet: %s", len(used), error)
            self._used.update(used)
        else:
            for identifier in used:
                # What is known of it has the number of before.
                self.forget(identifier)


def _refused() -> Unauthenticated:
    """One sentence for all that can be wrong, so that it says nothing of which keys there are."""
    return Unauthenticated("expected a valid API key: this one is unknown, expired or revoked", presented=True)


@lru_cache(maxsize=1024)
def _items(rate: str | None) -> tuple[RateLimitItem, ...]:
    return () if rate is None else tuple(parse_many(rate))


def _seconds_of_this_day() -> int:
    now = datetime.now(UTC)
    tomorrow = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return int((tomorrow - now).total_seconds()) + 1
