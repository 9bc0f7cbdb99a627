"""Evaluations that are older than a project keeps them, and entries of the trail of changes that are older than any of
them is kept, are removed in the background.
"""

import asyncio
import logging
import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from app.domain.evaluation import EvaluationQuery
from app.domain.operations.access import Actor
from app.services.acting import act_as
from app.services.inventory.inventory import InventoryService
from app.services.ports.keys import Trail
from app.services.ports.state import StoreFullError, StoreUnavailableError

_EVERY_SECONDS: Final = 3600.0
# In one transaction.
_AT_ONCE: Final = 1000
ACTOR: Final = Actor("retention")

_log = logging.getLogger("prevail.retention")


class Retention:
    """One per process. Several do no harm: what one has removed the others do not find."""

    def __init__(
        self, inventory: InventoryService, trail: Trail, days: Mapping[str, int], *, trail_days: int | None = None
    ) -> None:
        """Take for how many days each project keeps evaluations, and all of them their trails of changes. What has no
        number of days is kept for good.
        """
        self._inventory, self._trail = inventory, trail
        self._days, self._trail_days = dict(days), trail_days
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look every hour, the first time some minutes from now."""
        if self._days or self._trail_days is not None:
            self._task = asyncio.create_task(self._run(), name="retention")

    async def close(self) -> None:
        """Stop; what is removed is removed."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def sweep(self) -> int:
        """Remove what is too old; returns how many evaluations that was."""
        act_as(ACTOR)
        removed = 0
        for project, days in self._days.items():
            query = EvaluationQuery(created_before=datetime.now(UTC) - timedelta(days=days))
            found = (await self._inventory.remove(project, query, dry_run=False)).evaluations
            if found:
                _log.info("removed %d evaluations of %s that were older than %d days", found, project, days)
            removed += found
        return removed

    async def cut_trails(self) -> int:
        """Remove entries of the trails of changes that are too old; returns how many that was."""
        if self._trail_days is None:
            return 0
        before = datetime.now(UTC) - timedelta(days=self._trail_days)
        removed = 0
        for project in await self._trail.projects():
            found = _AT_ONCE
            while found == _AT_ONCE:
                found = await self._trail.remove_some(project, before, _AT_ONCE)
                removed += found
        if removed:
            _log.info("removed %d entries of trails that were older than %d days", removed, self._trail_days)
        return removed

    async def _run(self) -> None:
        # Not all workers at once.
        pause = random.uniform(0.02, 0.2) * _EVERY_SECONDS  # noqa: S311 - no secret
        while True:
            await asyncio.sleep(pause)
            pause = _EVERY_SECONDS
            try:
                await self.sweep()
                await self.cut_trails()
            except (StoreFullError, StoreUnavailableError) as error:
                _log.warning("what is too old was not removed, tried again in an hour: %s", error)
