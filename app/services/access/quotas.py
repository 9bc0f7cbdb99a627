"""Quotas of projects: what each uses in a day (UTC) is counted here and written down every `NOTE_SECONDS`.

No request waits for that, and what was counted since the last time goes with its process: quotas hold to some seconds.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta
from typing import Final

from app.domain.errors import ProjectQuotaUsedUp, StorageQuotaUsedUp
from app.domain.operations import QuotaUse, Usage, Used
from app.services.ports import StoreFullError, StoreUnavailableError, UsageStore

KNOWN_SECONDS: Final = 2.0
NOTE_SECONDS: Final = 5.0
_DAY: Final = timedelta(days=1)
_MOST_KNOWN: Final = 10_000

_log = logging.getLogger("prevail.access")


class Quotas:
    """One per process, on the loop that uses it."""

    def __init__(self, store: UsageStore, limits: Mapping[str, float | None]) -> None:
        """Take what a project may use in a day, by the names of `Used`; None is no limit."""
        self._store, self._limits = store, limits
        self._pending: dict[str, Used] = {}
        self._known: dict[str, tuple[float, date, Used]] = {}
        self._noting: asyncio.Task[None] | None = None

    async def check(self, project: str, *, keeping: bool) -> None:
        """Let a request pass that computes, and perhaps keeps evaluations.

        Raises:
            ProjectQuotaUsedUp, StorageQuotaUsedUp: its project has used up a quota that it needs.
            StoreUnavailableError: nobody knows what the project has used.
        """
        needed = [name for name, limit in self._limits.items() if limit is not None and (keeping or name[0] == "c")]
        if not needed:
            return
        used = asdict(await self._used(project))
        for name in needed:
            limit = self._limits[name]
            if limit is None or used[name] < limit:
                continue
            begin = _day_of_now()
            wait = int((begin + _DAY - datetime.now(UTC)).total_seconds()) + 1
            detail = (
                f"the project has used {used[name]:g} of {limit:g} {name.replace('_', ' ')} of this day (UTC), which "
                f"ends at {(begin + _DAY).isoformat()}; nothing was kept"
            )
            if name == "bytes":
                raise StorageQuotaUsedUp(detail, retry_after=wait)
            raise ProjectQuotaUsedUp(detail, times=int(limit), window=int(_DAY.total_seconds()), retry_after=wait)

    def note(self, project: str, used: Used) -> None:
        """Count what a request or a job of a project has used."""
        if used == Used():
            return
        self._pending[project] = self._pending.get(project, Used()) + used
        if self._noting is None or self._noting.done():
            self._noting = asyncio.create_task(self._keep_noting(), name="project-usage")

    async def usage(self, project: str) -> Usage:
        """What a project has used today.

        Raises:
            StoreUnavailableError: the database does not answer.
        """
        begin = _day_of_now()
        used = asdict(await self._used(project))
        each = {name: QuotaUse(used[name], limit) for name, limit in self._limits.items()}
        return Usage(since=begin, until=begin + _DAY, **each)

    async def close(self) -> None:
        """Write down what was counted."""
        if self._noting is not None:
            self._noting.cancel()
            await asyncio.wait([self._noting])
        await self._note()

    async def _used(self, project: str) -> Used:
        today = _day_of_now().date()
        until, day, used = self._known.get(project, (0.0, today, Used()))
        if time.monotonic() >= until or day != today:
            # From before it was read, as the guard has it of keys.
            until = time.monotonic() + KNOWN_SECONDS
            used = await self._store.read(project, today)
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[project] = until, today, used
        return used + self._pending.get(project, Used())

    async def _keep_noting(self) -> None:
        while self._pending:
            await asyncio.sleep(NOTE_SECONDS)
            await self._note()

    async def _note(self) -> None:
        noted, self._pending = self._pending, {}
        if not noted:
            return
        try:
            await self._store.add(noted, _day_of_now().date())
        except (StoreUnavailableError, StoreFullError) as error:
            _log.warning("what %d projects used was not written down yet: %s", len(noted), error)
            for project, used in noted.items():
                self._pending[project] = self._pending.get(project, Used()) + used
        else:
            for project in noted:
                self._known.pop(project, None)


def _day_of_now() -> datetime:
    """When this day began (UTC)."""
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
