"""API keys and quotas: every request is admitted or refused here, and keys are made, listed, rotated and revoked."""

import asyncio
import hmac
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from math import ceil
from typing import Final, Generic, TypeVar
from uuid import UUID

from limits import RateLimitItem, parse_many
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter

from app.domain.errors import (
    Forbidden,
    InvalidInput,
    ProjectQuotaUsedUp,
    QuotaUsedUp,
    StorageQuotaUsedUp,
    StoreError,
    TooManyRequests,
    Unauthenticated,
)
from app.domain.identifiers import new_id
from app.domain.operations import (
    DEFAULT_PROJECT,
    Actor,
    KeyFacts,
    KeyMade,
    QuotaUse,
    Scope,
    Usage,
    Used,
    key_prefix,
)
from app.services.known import Known
from app.services.ports import KeyLookup, KeyStore, UsageStore

_TOKEN = re.compile(r"pv_([0-9a-f]{32})_([A-Za-z0-9_-]{43})")


def make_token(identifier: UUID) -> tuple[str, bytes]:
    """A new key of this id, and the digest of its secret."""
    secret = secrets.token_urlsafe(32)
    return f"{key_prefix(identifier)}_{secret}", sha256(secret.encode()).digest()


NOTE_SECONDS: Final = 5.0
_DAY_SECONDS: Final = 86_400
# Stands for the digest of a key that there is not, so that as much is done for it as for one that there is.
_NOBODY: Final = bytes(32)

_log = logging.getLogger("prevail.access")


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """A request that may pass; ``administers`` if it may do what takes the scope `admin`."""

    actor: Actor
    project: str
    administers: bool = True
    limit: "RateState | None" = None


@dataclass(frozen=True, slots=True)
class RateState:
    """State of a rate limit: `left` of `requests` in `window` seconds, which begins anew in `reset` seconds."""

    requests: int
    window: int
    left: int
    reset: int


Key = TypeVar("Key")
Amount = TypeVar("Amount", int, Used)


class Ledger(Generic[Key, Amount]):
    """Amounts that were counted; they are written down every few seconds, as long as there are any."""

    def __init__(self, write: Callable[[Mapping[Key, Amount]], Awaitable[None]], nothing: Amount, what: str) -> None:
        """Take what writes it down, an empty amount, and what is counted by, in the plural."""
        self._write: Callable[[Mapping[Key, Amount]], Awaitable[None]] = write
        self._nothing: Amount = nothing
        self._what = what
        self._pending: dict[Key, Amount] = {}
        # What is being written down, which counts until it is; or was, when the store was away or the writing ended.
        self._leaving: dict[Key, Amount] = {}
        self._noting: asyncio.Task[None] | None = None

    def of(self, key: Key) -> Amount:
        """Return the amount that is not written down yet."""
        return self._pending.get(key, self._nothing) + self._leaving.get(key, self._nothing)

    def add(self, key: Key, amount: Amount) -> None:
        """Count."""
        self._pending[key] = self._pending.get(key, self._nothing) + amount
        if self._noting is None or self._noting.done():
            self._noting = asyncio.create_task(self._keep_noting(), name="usage")

    async def close(self) -> None:
        """Write down what was counted."""
        if self._noting is not None:
            self._noting.cancel()
            await asyncio.wait([self._noting])
        await self._note()

    async def _keep_noting(self) -> None:
        while self._pending or self._leaving:
            await asyncio.sleep(NOTE_SECONDS)
            await self._note()

    async def _note(self) -> None:
        self._leaving, self._pending = {key: self.of(key) for key in self._leaving | self._pending}, {}
        try:
            if self._leaving:
                await self._write(self._leaving)
            self._leaving = {}
        except StoreError as error:
            _log.warning("what %d %s used was not written down yet: %s", len(self._leaving), self._what, error)


class Guard:
    """One per process, on the loop that uses it."""

    def __init__(self, store: KeyLookup, *, required: bool | None, rate: str | None) -> None:
        """Take whether keys are required, None for as soon as there is one, and the rate of keys that have none."""
        self._store = store
        self._never = required is False
        self._rate = rate
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._known: Known[tuple[UUID, date], KeyFacts | None] = Known(lambda asked: store.find(*asked))
        self._needs_keys = required is True
        self._are_there: Known[None, bool] = Known(lambda _: store.any())
        self.used: Ledger[tuple[UUID, date], int] = Ledger(self._write, 0, "keys")

    async def admit(
        self, scope: Scope, *, authorization: str | None, project: str | None, local: bool, request_id: str
    ) -> Admitted:
        """Let a request pass that needs a scope; ``local`` if it came from this machine.

        Raises:
            Unauthenticated: it needs a key and has none, or none that is good.
            Forbidden: its key has not the scope, or acts in another project.
            TooManyRequests: its key was used too often.
            StoreUnavailableError: nobody knows whether its key is good.
        """
        if self._never or (authorization is None and local and not await self.needs_key()):
            return Admitted(actor=Actor("local", None, request_id), project=project or DEFAULT_PROJECT)
        key = await self._authenticate(authorization)
        if not key.allows(scope):
            raise Forbidden(f"expected a key of the scope {scope.value}")
        project = project or key.project
        if project != key.project and not key.allows(Scope.ADMIN):
            raise Forbidden("expected a key of the scope admin, which alone may name another project")
        limit = await self._count(key)
        return Admitted(
            actor=Actor(key.name, key.id, request_id),
            project=project,
            administers=key.allows(Scope.ADMIN),
            limit=limit,
        )

    def forget(self, identifier: UUID) -> None:
        """A key was changed here: read it again at its next use."""
        self._known.forget((identifier, _day_of_now().date()))

    # Who it is.

    async def needs_key(self) -> bool:
        """Tell whether requests need a key: from the first one that was made on, though all be revoked."""
        if not self._never and not self._needs_keys:
            self._needs_keys = await self._are_there.of(None)
        return self._needs_keys

    async def _authenticate(self, authorization: str | None) -> KeyFacts:
        if authorization is None:
            raise Unauthenticated("expected an API key in the header Authorization: Bearer", presented=False)
        kind, _, text = authorization.partition(" ")
        token = _TOKEN.fullmatch(text.strip()) if kind.lower() == "bearer" else None
        if token is None:
            raise _refused()
        asked, digest = (UUID(hex=token[1]), _day_of_now().date()), sha256(token[2].encode()).digest()
        key, now = await self._known.of(asked), datetime.now(UTC)
        good = hmac.compare_digest(digest, _NOBODY if key is None else key.digest)
        if key is None:
            raise _refused()
        if not good and key.previous_digest is not None and key.previous_until is not None:
            good = hmac.compare_digest(digest, key.previous_digest) and now < key.previous_until
        if not good or not key.is_good_at(now):
            raise _refused()
        return key

    # How often.

    async def _count(self, key: KeyFacts) -> RateState | None:
        use = key.id, _day_of_now().date()
        if key.daily_quota is not None and key.used_today + self.used.of(use) >= key.daily_quota:
            raise QuotaUsedUp(
                f"the key has used up its {key.daily_quota} requests of this day (UTC); nothing was saved",
                times=key.daily_quota,
                window=_DAY_SECONDS,
                retry_after=_seconds_left(),
            )
        tightest: RateState | None = None
        for item in _items(key.rate or self._rate):
            passed = await self._limiter.hit(item, key.id.hex)
            stats = await self._limiter.get_window_stats(item, key.id.hex)
            reset = max(ceil(stats.reset_time - time.time()), 1)
            state = RateState(item.amount, item.get_expiry(), stats.remaining, reset)
            if not passed:
                raise TooManyRequests(
                    f"the key may be used {item.amount} times in {item.get_expiry()} s; nothing was saved",
                    times=item.amount,
                    window=item.get_expiry(),
                    retry_after=reset,
                )
            if tightest is None or state.left < tightest.left:
                tightest = state
        self.used.add(use, 1)
        return tightest

    async def _write(self, used: Mapping[tuple[UUID, date], int]) -> None:
        await self._store.note_usage(used, datetime.now(UTC))
        for noted in used:
            # What is known of it has the number of before.
            self._known.forget(noted)


def _refused() -> Unauthenticated:
    """One sentence for all that can be wrong, so that it says nothing of which keys there are."""
    return Unauthenticated("expected a valid API key: this one is unknown, expired or revoked", presented=True)


@lru_cache(maxsize=1024)
def _items(rate: str | None) -> tuple[RateLimitItem, ...]:
    return () if rate is None else tuple(parse_many(rate))


_DAY: Final = timedelta(days=1)


class Quotas:
    """One per process, on the loop that uses it."""

    def __init__(self, store: UsageStore, limits: Mapping[str, float | None]) -> None:
        """Take what a project may use in a day, by the names of `Used`; None is no limit."""
        self._store, self._limits = store, limits
        self.used: Ledger[tuple[str, date], Used] = Ledger(self._write, Used(), "projects")
        self._known: Known[tuple[str, date], Used] = Known(lambda asked: store.read(*asked))

    async def check(self, project: str, *, keeping: bool) -> None:
        """Let a request pass that computes, and perhaps keeps evaluations.

        Raises:
            ProjectQuotaUsedUp, StorageQuotaUsedUp: its project has used up a quota that it needs.
            StoreUnavailableError: nobody knows what the project has used.
        """
        limits = {name: limit for name, limit in self._limits.items() if keeping or name == "compute_seconds"}
        if not any(limits.values()):
            return
        used = asdict(await self._used(project))
        for name, limit in limits.items():
            if limit is None or used[name] < limit:
                continue
            detail = (
                f"the project has used {used[name]:g} of {limit:g} {name.replace('_', ' ')} of this day (UTC), which "
                f"ends at {(_day_of_now() + _DAY).isoformat()}; nothing was saved"
            )
            if name == "bytes":
                raise StorageQuotaUsedUp(detail, retry_after=_seconds_left())
            raise ProjectQuotaUsedUp(detail, times=int(limit), window=_DAY_SECONDS, retry_after=_seconds_left())

    def note(self, project: str, used: Used) -> None:
        """Count what a request or a job of a project has used."""
        if used != Used():
            self.used.add((project, _day_of_now().date()), used)

    async def usage(self, project: str) -> Usage:
        """Return the use of a project today. Raises StoreUnavailableError without the database."""
        begin = _day_of_now()
        used = asdict(await self._used(project))
        each = {name: QuotaUse(used[name], limit) for name, limit in self._limits.items()}
        return Usage(since=begin, until=begin + _DAY, **each)

    async def _used(self, project: str) -> Used:
        use = project, _day_of_now().date()
        return await self._known.of(use) + self.used.of(use)

    async def _write(self, used: Mapping[tuple[str, date], Used]) -> None:
        await self._store.add(used)
        for noted in used:
            self._known.forget(noted)


def _day_of_now() -> datetime:
    """Return the beginning of this day (UTC)."""
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _seconds_left() -> int:
    """Return the seconds until this day (UTC) is over."""
    return int((_day_of_now() + _DAY - datetime.now(UTC)).total_seconds()) + 1


@dataclass(frozen=True, slots=True)
class KeyService:
    """Use cases of keys. Everything happens within one project."""

    store: KeyStore

    async def create(
        self,
        *,
        name: str,
        project: str,
        scopes: Sequence[Scope],
        expires_at: datetime | None = None,
        rate: str | None = None,
        daily_quota: int | None = None,
    ) -> KeyMade:
        """Make a key; see `KeyFacts`. Raises InvalidInput if it would be expired, or has no such rate."""
        if expires_at is not None and expires_at <= datetime.now(UTC):
            raise InvalidInput.at("/expires_at", "past", "expected a moment in the future")
        if rate is not None and not is_rate(rate):
            detail = "expected a rate such as 100/second, or several such as 100/second; 10000/hour"
            raise InvalidInput.at("/rate", "invalid_rate", detail)
        identifier = new_id()
        text, digest = make_token(identifier)
        key = KeyFacts(
            id=identifier,
            name=name,
            project=project,
            scopes=tuple(dict.fromkeys(scopes)),
            digest=digest,
            expires_at=expires_at,
            rate=rate,
            daily_quota=daily_quota,
        )
        await self.store.add(key)
        return KeyMade(key=text, facts=key)

    async def rotate(self, project: str, identifier: UUID, overlap_seconds: int) -> KeyMade:
        """Give a key another secret; the one before stays good for a while.

        Raises:
            NotFound: there is no such key, or it is revoked or expired.
        """
        text, digest = make_token(identifier)
        until = datetime.now(UTC) + timedelta(seconds=overlap_seconds)
        return KeyMade(key=text, facts=await self.store.rotate(project, identifier, digest, until))


def is_rate(text: str) -> bool:
    """Does it say how often, at least once, such as `100/second; 10000/hour`?"""
    try:
        return all(item.amount > 0 for item in parse_many(text))
    except ValueError:
        return False
