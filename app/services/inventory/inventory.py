"""Models and datasets as a whole, and many evaluations removed at once."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from app.domain.errors import NotFound
from app.domain.evaluation import EvaluationQuery
from app.domain.identifiers import time_of
from app.domain.inventory import DatasetFacts, ModelFacts, Removal
from app.services.ports.evaluations import Inventory

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

    async def model(self, project: str, name: str) -> ModelFacts:
        """What there is of a model.

        Raises:
            NotFound: it has no evaluation.
        """
        found = await self.store.model(project, name)
        if found is None:
            raise NotFound(f"there is no model {name!r}")
        return found

    async def dataset(self, project: str, name: str) -> DatasetFacts:
        """What there is of a dataset.

        Raises:
            NotFound: it has no evaluation.
        """
        found = await self.store.dataset(project, name)
        if found is None:
            raise NotFound(f"there is no dataset {name!r}")
        return found

    async def remove_model(self, project: str, name: str, *, dry_run: bool) -> Removal:
        """Remove all evaluations of a model, or count them. Raises as `model` does."""
        await self.model(project, name)
        return await self.remove(project, EvaluationQuery(model=name), dry_run=dry_run)

    async def remove_dataset(self, project: str, name: str, *, dry_run: bool) -> Removal:
        """Remove all evaluations on a dataset, or count them. Raises as `dataset` does."""
        await self.dataset(project, name)
        return await self.remove(project, EvaluationQuery(dataset=name), dry_run=dry_run)

    async def remove(self, project: str, query: EvaluationQuery, *, dry_run: bool) -> Removal:
        """Remove all evaluations that pass, up to the newest that there is now, or count them."""
        if dry_run:
            return Removal(dry_run=True, evaluations=await self.store.count(project, query))
        newest = await self.store.newest(project, query)
        if newest is None:
            return Removal(dry_run=False, evaluations=0)
        # What comes meanwhile stays, or there might be no end.
        query = replace(query, created_before=time_of(newest) + _NEXT, limit=_AT_ONCE)
        removed = 0
        while found := await self.store.remove_some(project, query):
            removed += found
        return Removal(dry_run=False, evaluations=removed)
