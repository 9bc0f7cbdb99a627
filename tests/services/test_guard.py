"""The guard by itself: what it asks of the store, how often, and what is told of a key that is not good."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from app.domain.errors import (
    Forbidden,
    ProjectQuotaUsedUp,
    QuotaUsedUp,
    StoreUnavailableError,
    TooManyRequests,
    Unauthenticated,
)
from app.domain.identifiers import new_id
from app.domain.operations import KeyFacts, Scope, Used
from app.services import access as guards
from app.services.access import Guard, Quotas, make_token


@dataclass
class Keys:
    """The port of keys, as far as the guard asks for it."""

    kept: dict[UUID, KeyFacts] = field(default_factory=dict)
    asked: int = 0
    noted: dict[tuple[UUID, date], int] = field(default_factory=dict)
    away: bool = False

    def make(self, *scopes: Scope, **members: Any) -> tuple[str, KeyFacts]:
        identifier = new_id()
        text, digest = make_token(identifier)
        key = KeyFacts(id=identifier, name="k", project="p", scopes=scopes or (Scope.READ,), digest=digest, **members)
        self.kept[identifier] = key
        return f"Bearer {text}", key

    async def any(self) -> bool:
        self._answer()
        return bool(self.kept)

    async def find(self, identifier: UUID, day: date) -> KeyFacts | None:
        self._answer()
        await asyncio.sleep(0.01)
        key = self.kept.get(identifier)
        return None if key is None else replace(key, used_today=self.noted.get((identifier, day), 0))

    async def note_usage(self, used: Mapping[tuple[UUID, date], int], moment: datetime) -> None:
        assert moment <= datetime.now(UTC)
        self._answer()
        for use, times in used.items():
            self.noted[use] = self.noted.get(use, 0) + times

    def _answer(self) -> None:
        self.asked += 1
        if self.away:
            raise StoreUnavailableError("away")


def asking(authorization: str | None, project: str | None = None, *, local: bool = True) -> dict[str, Any]:
    return {"authorization": authorization, "project": project, "local": local, "request_id": "r"}


def run(test: Callable[[Keys, Guard], Coroutine[Any, Any, None]], **settings: Any) -> None:
    async def with_a_guard() -> None:
        keys = Keys()
        guard = Guard(keys, **{"required": True, "rate": None, **settings})
        await test(keys, guard)
        keys.away = False
        await guard.used.close()

    asyncio.run(with_a_guard())


def test_a_known_key_is_not_looked_up_again() -> None:
    async def test(keys: Keys, guard: Guard) -> None:
        text, key = keys.make(Scope.WRITE)
        for _ in range(50):
            admitted = await guard.admit(Scope.READ, **asking(text))
        assert (admitted.project, admitted.actor.key, admitted.actor.name) == ("p", key.id, "k")
        assert keys.asked == 1

    run(test)


def test_those_who_come_at_once_wait_for_one_look_up() -> None:
    async def test(keys: Keys, guard: Guard) -> None:
        text, _ = keys.make()
        tasks = [asyncio.create_task(guard.admit(Scope.READ, **asking(text))) for _ in range(20)]
        await asyncio.sleep(0)
        # Who was first goes away, and the others still get their answer.
        tasks[0].cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert sum(isinstance(one, asyncio.CancelledError) for one in done) == 1
        assert keys.asked == 1

    run(test)


def test_a_key_that_there_is_not_is_remembered_too() -> None:
    async def test(keys: Keys, guard: Guard) -> None:
        text, key = keys.make()
        del keys.kept[key.id]
        for _ in range(5):
            with pytest.raises(Unauthenticated):
                await guard.admit(Scope.READ, **asking(text))
        assert keys.asked == 1

    run(test)


def test_what_is_known_is_read_again_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.services.known.KNOWN_SECONDS", 0.1)

    async def test(keys: Keys, guard: Guard) -> None:
        text, key = keys.make()
        await guard.admit(Scope.READ, **asking(text))
        keys.kept[key.id] = replace(key, revoked_at=datetime.now(UTC))
        await guard.admit(Scope.READ, **asking(text))
        await asyncio.sleep(0.11)
        with pytest.raises(Unauthenticated):
            await guard.admit(Scope.READ, **asking(text))

    run(test)


def test_a_key_ends_to_the_moment_though_it_is_known() -> None:
    async def test(keys: Keys, guard: Guard) -> None:
        text, _ = keys.make(expires_at=datetime.now(UTC) + timedelta(seconds=0.2))
        await guard.admit(Scope.READ, **asking(text))
        await asyncio.sleep(0.21)
        with pytest.raises(Unauthenticated):
            await guard.admit(Scope.READ, **asking(text))
        assert keys.asked == 1

    run(test)


def test_without_the_database_no_key_is_good() -> None:
    async def test(keys: Keys, guard: Guard) -> None:
        text, _ = keys.make()
        keys.away = True
        for _ in range(2):
            with pytest.raises(StoreUnavailableError):
                await guard.admit(Scope.READ, **asking(text))
        keys.away = False
        await guard.admit(Scope.READ, **asking(text))

    run(test)


@pytest.mark.parametrize(
    ("own", "allowed"), [(Scope.READ, {"read"}), (Scope.WRITE, {"read", "write"}), (Scope.ADMIN, {*Scope})]
)
def test_scopes_include_those_before(own: Scope, allowed: set[str]) -> None:
    async def test(keys: Keys, guard: Guard) -> None:
        text, _ = keys.make(own)
        for scope in Scope:
            if scope in allowed:
                await guard.admit(scope, **asking(text))
            else:
                with pytest.raises(Forbidden):
                    await guard.admit(scope, **asking(text))

    run(test)


def test_a_refused_request_is_not_counted() -> None:
    async def test(keys: Keys, guard: Guard) -> None:
        text, _ = keys.make(rate="2/minute", daily_quota=10)
        for _ in range(2):
            await guard.admit(Scope.READ, **asking(text))
        for _ in range(3):
            with pytest.raises(TooManyRequests):
                await guard.admit(Scope.READ, **asking(text))
        await guard.used.close()
        assert [*keys.noted.values()] == [2]

    run(test)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """The moment that it is."""
    moments = [datetime(2025, 12, 31, 23, 59, 59, tzinfo=UTC)]
    shown = type("Clock", (), {"now": lambda _: moments[-1]})
    monkeypatch.setattr(guards, "datetime", shown)
    return moments


def test_a_key_is_good_before_its_end_and_not_at_it(clock: list[datetime]) -> None:
    async def test(keys: Keys, guard: Guard) -> None:
        text, _ = keys.make(expires_at=clock[0] + timedelta(microseconds=1))
        await guard.admit(Scope.READ, **asking(text))
        clock.append(clock[0] + timedelta(microseconds=1))
        with pytest.raises(Unauthenticated):
            await guard.admit(Scope.READ, **asking(text))

    run(test)


def test_what_a_key_used_before_midnight_is_not_of_the_day_after(clock: list[datetime]) -> None:
    """Though it is known, or was not written down, when the day begins: else a client that waits as it is told would be
    sent to the next midnight, and the one after that.
    """

    async def test(keys: Keys, guard: Guard) -> None:
        text, key = keys.make(daily_quota=3)
        days = [clock[0].date(), clock[0].date() + timedelta(days=1)]
        for _ in days:
            for _ in range(3):
                await guard.admit(Scope.READ, **asking(text))
            with pytest.raises(QuotaUsedUp) as refused:
                await guard.admit(Scope.READ, **asking(text))
            clock.append(clock[-1] + timedelta(seconds=refused.value.retry_after))
        await guard.used.close()
        assert keys.noted == {(key.id, day): 3 for day in days}

    run(test)


def test_what_a_project_used_before_midnight_is_not_of_the_day_after(clock: list[datetime]) -> None:
    class Uses:
        noted: Mapping[tuple[str, date], Used] = {}

        async def read(self, project: str, day: date) -> Used:
            return self.noted.get((project, day), Used())

        async def add(self, used: Mapping[tuple[str, date], Used]) -> None:
            self.noted = used

    async def test() -> None:
        uses = Uses()
        quotas = Quotas(uses, {"evaluations": 1, "bytes": None, "compute_seconds": None})
        quotas.note("p", Used(1))
        with pytest.raises(ProjectQuotaUsedUp):
            await quotas.check("p", keeping=True)
        before = clock[0].date()
        clock.append(clock[0] + timedelta(seconds=1))
        await quotas.check("p", keeping=True)
        await quotas.used.close()
        assert uses.noted == {("p", before): Used(1)}
        assert (await quotas.usage("p")).evaluations.used == 0

    asyncio.run(test())


def test_uses_that_are_being_written_down_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "NOTE_SECONDS", 0.0)

    async def test(keys: Keys, guard: Guard) -> None:
        text, _ = keys.make(daily_quota=3)
        begun, may_end, note = asyncio.Event(), asyncio.Event(), keys.note_usage

        async def slowly(used: Mapping[tuple[UUID, date], int], moment: datetime) -> None:
            begun.set()
            await may_end.wait()
            await note(used, moment)

        monkeypatch.setattr(keys, "note_usage", slowly)
        for _ in range(2):
            await guard.admit(Scope.READ, **asking(text))
        await begun.wait()
        await guard.admit(Scope.READ, **asking(text))
        with pytest.raises(QuotaUsedUp):
            await guard.admit(Scope.READ, **asking(text))
        may_end.set()
        await guard.used.close()
        assert [*keys.noted.values()] == [3]

    run(test)


def test_who_waits_as_long_as_is_said_may_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = [1000.6]
    monkeypatch.setattr("time.time", lambda: moments[-1])

    async def test(keys: Keys, guard: Guard) -> None:
        text, _ = keys.make(rate="1/5 second")
        await guard.admit(Scope.READ, **asking(text))
        with pytest.raises(TooManyRequests) as refused:
            await guard.admit(Scope.READ, **asking(text))
        moments.append(moments[-1] + refused.value.retry_after)
        await guard.admit(Scope.READ, **asking(text))

    run(test)


def test_uses_are_counted_once_though_the_database_is_away_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "NOTE_SECONDS", 0.05)

    async def test(keys: Keys, guard: Guard) -> None:
        text, _ = keys.make(daily_quota=5)
        for _ in range(3):
            await guard.admit(Scope.READ, **asking(text))
        keys.away = True
        await asyncio.sleep(0.12)
        assert not keys.noted
        keys.away = False
        await asyncio.sleep(0.12)
        assert [*keys.noted.values()] == [3]
        for _ in range(2):
            await guard.admit(Scope.READ, **asking(text))
        with pytest.raises(QuotaUsedUp):
            await guard.admit(Scope.READ, **asking(text))

    run(test)


def test_a_key_without_a_rate_has_that_of_the_service() -> None:
    async def test(keys: Keys, guard: Guard) -> None:
        text, _ = keys.make()
        admitted = await guard.admit(Scope.READ, **asking(text))
        assert admitted.limit is not None
        assert (admitted.limit.requests, admitted.limit.window, admitted.limit.left) == (1, 3600, 0)
        with pytest.raises(TooManyRequests):
            await guard.admit(Scope.READ, **asking(text))

    run(test, rate="1/hour")
