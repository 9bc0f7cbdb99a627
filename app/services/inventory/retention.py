"""Evaluations that are older than a project keeps them are removed in the background."""

import asyncio
import logging
import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from app.domain.access import Actor
from app.domain.evaluation import EvaluationQuery
from app.services.acting import act_as
from app.services.inventory.inventory import InventoryService
from app.services.ports import StoreFullError, StoreUnavailableError

_EVERY_SECONDS: Final = 3600.0
ACTOR: Final = Actor("retention")

_log = logging.getLogger("prevail.retention")


class Retention:
    """One per process. Several do no harm: what one has removed the others do not find."""

    def __init__(self, inventory: InventoryService, days: Mapping[str, int]) -> None:
        """Take for how many days each project keeps evaluations; a project that is not named keeps them for good."""
        self._inventory = inventory
        self._days = dict(days)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look every hour, the first time some minutes from now."""
        if self._days:
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

    async def _run(self) -> None:
        # Not all workers at once.
        pause = random.uniform(0.02, 0.2) * _EVERY_SECONDS  # noqa: S311 - no secret
        while True:
            await asyncio.sleep(pause)
            pause = _EVERY_SECONDS
            try:
                await self.sweep()
            except (StoreFullError, StoreUnavailableError) as error:
                _log.warning("what is too old was not removed, tried again in an hour: %s", error)
