"""Models and datasets as a whole: listed, removed, and evaluations that are older than a project retains them."""

import logging
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from app.domain.evaluation import EvaluationQuery
from app.domain.identifiers import time_of
from app.domain.inventory import Removal
from app.domain.operations import Actor
from app.services.beside import again_and_again
from app.services.ports import Inventory, Trail
from app.services.present import act_as

# Removed in one transaction: it takes tens of milliseconds, for which those wait who change the same evaluations.
_AT_ONCE: Final = 200
# Of the time that an id holds.
_NEXT: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class InventoryService:
    """Use cases of names and of many evaluations. Everything happens within one project.

    Removing goes in small transactions: what is done when it breaks off is done, and asked again it goes on.
    Comparisons and checks of gates that were made of what is removed are kept: they are answers, which stay what was
    said.
    """

    store: Inventory

    async def remove_model(self, project: str, name: str, *, dry_run: bool) -> Removal:
        """Remove all evaluations of a model, or count them. Raises NotFound if it has none."""
        await self.store.model(project, name)
        return await self.remove(project, EvaluationQuery(model=name), dry_run=dry_run)

    async def remove_dataset(self, project: str, name: str, *, dry_run: bool) -> Removal:
        """Remove all evaluations on a dataset, or count them. Raises NotFound if it has none."""
        await self.store.dataset(project, name)
        return await self.remove(project, EvaluationQuery(dataset=name), dry_run=dry_run)

    async def remove(self, project: str, query: EvaluationQuery, *, dry_run: bool) -> Removal:
        """Remove all evaluations that pass, up to the newest that there is now, or count them."""
        if dry_run:
            return Removal(dry_run=True, n_evaluations=await self.store.count(project, query))
        newest = await self.store.newest(project, query)
        if newest is None:
            return Removal(dry_run=False, n_evaluations=0)
        # What comes meanwhile stays, or there might be no end.
        query = replace(query, created_before=time_of(newest) + _NEXT, limit=_AT_ONCE)
        removed = 0
        while found := await self.store.remove_some(project, query):
            removed += found
        return Removal(dry_run=False, n_evaluations=removed)


_EVERY_SECONDS: Final = 3600.0
# In one transaction.
_EXPIRED_AT_ONCE: Final = 1000
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

    async def sweep(self) -> int:
        """Remove what is too old; returns how many evaluations that was."""
        act_as(ACTOR)
        removed = 0
        for project, days in self._days.items():
            query = EvaluationQuery(created_before=datetime.now(UTC) - timedelta(days=days))
            found = (await self._inventory.remove(project, query, dry_run=False)).n_evaluations
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
            found = _EXPIRED_AT_ONCE
            while found == _EXPIRED_AT_ONCE:
                found = await self._trail.remove_some(project, before, _EXPIRED_AT_ONCE)
                removed += found
        if removed:
            _log.info("removed %d entries of trails that were older than %d days", removed, self._trail_days)
        return removed

    async def run(self) -> None:
        """Look every hour, the first time some minutes from now, if there is anything to be removed."""
        # Not all workers at once.
        first = random.uniform(0.02, 0.2) * _EVERY_SECONDS  # noqa: S311 - no secret
        failed = "what is too old was not removed, tried again in an hour"
        if self._days or self._trail_days is not None:
            await again_and_again(self._look, _EVERY_SECONDS, failed, first=first)

    async def _look(self) -> None:
        await self.sweep()
        await self.cut_trails()
