"""What is older than a project keeps it is removed in the background, of that project alone."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from app.domain.errors import StoreUnavailableError
from app.domain.evaluation import EvaluationQuery
from app.domain.identifiers import first_id_from, id_at, new_id, time_of
from app.domain.inventory import DatasetFacts, ModelFacts
from app.services import inventory
from app.services.beside import beside
from app.services.inventory import InventoryService, Retention
from app.services.present import actor

NOW = datetime.now(UTC)


class Kept:
    """Ids by project; the port as far as removal asks for it."""

    def __init__(self, ages: Sequence[float]) -> None:
        self.ids = {name: [id_at(NOW - timedelta(days=age), new_id()) for age in ages] for name in ("a", "b", "c")}
        self.failures = 0
        self.actors: set[str] = set()

    def _passing(self, project: str, query: EvaluationQuery) -> list[UUID]:
        assert query.created_before is not None
        return sorted(one for one in self.ids[project] if one < first_id_from(query.created_before))

    async def model(self, project: str, name: str) -> ModelFacts:
        raise AssertionError(f"nobody asks for the model {name} of {project}")

    async def dataset(self, project: str, name: str) -> DatasetFacts:
        raise AssertionError(f"nobody asks for the dataset {name} of {project}")

    async def count(self, project: str, query: EvaluationQuery) -> int:
        return len(self._passing(project, query))

    async def newest(self, project: str, query: EvaluationQuery) -> UUID | None:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailableError("away")
        return max(self._passing(project, query), default=None)

    async def remove_some(self, project: str, query: EvaluationQuery) -> int:
        self.actors.add(actor().name)
        gone = self._passing(project, query)[: query.limit]
        self.ids[project] = [one for one in self.ids[project] if one not in gone]
        return len(gone)


class Trails:
    """When entries were made, by project; the port of trails."""

    def __init__(self, entries: Mapping[str, Sequence[datetime]] | None = None) -> None:
        self.entries = {name: sorted(own) for name, own in (entries or {}).items()}

    async def projects(self) -> Sequence[str]:
        return list(self.entries)

    async def remove_some(self, project: str, before: datetime, most: int) -> int:
        own = self.entries[project]
        gone = [one for one in own if one < before][:most]
        self.entries[project] = own[len(gone) :]
        return len(gone)


def test_what_is_too_old_goes() -> None:
    kept = Kept([0.1, 5, 29, 31, 40, 400])
    service = Retention(InventoryService(kept), Trails(), {"a": 30, "b": 399})
    assert asyncio.run(service.sweep()) == 4
    ages = {name: sorted((NOW - time_of(one)).days for one in ids) for name, ids in kept.ids.items()}
    assert ages == {"a": [0, 5, 29], "b": [0, 5, 29, 31, 40], "c": [0, 5, 29, 31, 40, 400]}
    assert kept.actors == {"retention"}
    assert asyncio.run(service.sweep()) == 0


def test_what_comes_while_others_are_removed_stays() -> None:
    class Growing(Kept):
        async def remove_some(self, project: str, query: EvaluationQuery) -> int:
            if len(self.ids["b"]) < 5:
                self.ids[project].append(new_id())
                self.ids["b"].append(new_id())
            return await super().remove_some(project, query)

    kept = Growing([1, 2])
    asked = EvaluationQuery(created_before=NOW + timedelta(days=1))
    assert asyncio.run(InventoryService(kept).remove("a", asked, dry_run=False)).n_evaluations == 2
    assert all(time_of(one) > NOW - timedelta(days=1) for one in kept.ids["a"])
    assert len(kept.ids["a"]) == len(kept.ids["b"]) - 2 > 0


def test_it_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "_EVERY_SECONDS", 0.001)
    kept = Kept([31])
    kept.failures = 3

    async def run() -> None:
        async with beside(Retention(InventoryService(kept), Trails(), {"a": 30}).run(), "retention"):
            while kept.ids["a"]:
                await asyncio.sleep(0.001)

    asyncio.run(asyncio.wait_for(run(), 60))
    assert kept.failures == 0


def test_without_days_nothing_is_started() -> None:
    asyncio.run(asyncio.wait_for(Retention(InventoryService(Kept([1])), Trails(), {}).run(), 1))


def test_trails_are_cut_where_it_is_said() -> None:
    ages = [1, 9, *(11 + age / 1000 for age in range(2_500))]
    trails = Trails({name: [NOW - timedelta(days=age) for age in ages] for name in ("a", "b")})
    assert asyncio.run(Retention(InventoryService(Kept([])), trails, {"a": 1}).cut_trails()) == 0
    service = Retention(InventoryService(Kept([])), trails, {}, trail_days=10)
    assert asyncio.run(service.cut_trails()) == 5_000
    left = [NOW - timedelta(days=age) for age in (9, 1)]
    assert trails.entries == {"a": left, "b": left}


def test_trails_alone_are_a_reason_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "_EVERY_SECONDS", 0.001)
    trails = Trails({"a": [NOW - timedelta(days=2)]})

    async def run() -> None:
        async with beside(Retention(InventoryService(Kept([])), trails, {}, trail_days=1).run(), "retention"):
            while trails.entries["a"]:
                await asyncio.sleep(0.001)

    asyncio.run(asyncio.wait_for(run(), 60))
    assert trails.entries == {"a": []}
