"""Comparisons, gates and checks in Postgres: what is read is what was saved, and nothing of another project."""

import asyncio

import numpy as np
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.decisions import CheckFilter, ComparisonKind, ComparisonRecord, GateCheck
from app.domain.identifiers import new_id
from app.kernel.compare.gates import Verdict
from app.store.comparisons import PostgresComparisonStore
from app.store.evaluations import PostgresEvaluationStore
from app.store.gates import PostgresGateStore
from tests.store.conftest import MakeRecord

pytestmark = pytest.mark.anyio
# What a webhook tells of a check.
EVALUATION: dict[str, object] = {
    "id": "0",
    "url": "/v1/evaluations/0",
    "model": {"name": "m", "version": None},
    "dataset": {"name": "d", "version": None, "split": None},
    "tags": {},
}
ANSWER = {
    "gate": {"name": "g"},
    "evaluation": EVALUATION,
    "baseline": None,
    "results": [{"message": "h_mean is .43", "verdict": "fail"}],
}
RULES = {"rules": [{"metric": "h_mean", "min": 0.8}]}
OTHER = {"rules": [{"metric": "h_mean", "min": 0.9}]}


async def test_a_comparison_is_read_as_it_was_kept(engine: AsyncEngine, project: str) -> None:
    store = PostgresComparisonStore(engine)
    answer = {"z": 1.0, "a": [0.1 + 0.2, None, "é"], "m": {"y": 1, "b": 2}}
    record = ComparisonRecord(new_id(), ComparisonKind.RUNS, answer)
    await store.add(project, record)
    found = await store.get(project, record.id)
    assert found == record
    assert found is not None
    assert list(found.answer) == ["z", "a", "m"]
    assert await store.get("another", record.id) is None
    assert await store.get(project, new_id()) is None


async def test_versions_of_a_gate(engine: AsyncEngine, project: str) -> None:
    store = PostgresGateStore(engine)
    assert await store.get(project, "g") is None
    first, made = await store.put(project, "g", RULES)
    assert (first.version, first.rules, made) == ("1", RULES["rules"], True)
    assert await store.put(project, "g", RULES) == (first, False)
    second, made = await store.put(project, "g", OTHER)
    assert (second.version, made) == ("2", False)
    assert await store.get(project, "g") == second
    assert await store.get(project, "g", 1) == first
    assert await store.versions(project, "g") == [second, first]
    assert await store.get("another", "g") is None
    assert await store.versions("another", "g") == []


async def test_a_deleted_gate_keeps_its_past(engine: AsyncEngine, project: str) -> None:
    store = PostgresGateStore(engine)
    first, _ = await store.put(project, "g", RULES)
    assert not await store.delete("another", "g")
    assert await store.delete(project, "g")
    assert not await store.delete(project, "g")
    assert await store.get(project, "g") is None
    assert await store.get(project, "g", 1) == first
    assert (await store.page(project, 10)).items == ()
    again, made = await store.put(project, "g", RULES)
    assert (again.version, made) == ("3", True)
    assert await store.versions(project, "g") == [again, first]


async def test_gates_in_pages(engine: AsyncEngine, project: str) -> None:
    store = PostgresGateStore(engine)
    for name in ("b", "a", "c", "d"):
        await store.put(project, name, RULES)
        await store.put(project, name, OTHER)
    await store.delete(project, "c")
    await store.put("another", "e", RULES)
    first = await store.page(project, 2)
    assert [(gate.name, gate.version) for gate in first.items] == [("a", "2"), ("b", "2")]
    assert first.next_position == "b"
    rest = await store.page(project, 2, first.next_position)
    assert [gate.name for gate in rest.items] == ["d"]
    assert rest.next_position is None


async def test_puts_at_once_leave_no_gap(engine: AsyncEngine, project: str) -> None:
    store = PostgresGateStore(engine)
    puts = [store.put(project, "g", {"rules": [{"metric": "h_mean", "min": index / 10}]}) for index in range(6)]
    versions = [gate.version for gate, _ in await asyncio.gather(*puts)]
    assert sorted(versions) == [*map(str, range(1, 7))]


async def test_checks_latest_first(engine: AsyncEngine, project: str) -> None:
    store = PostgresGateStore(engine)
    baselines = (None, new_id(), None)
    checks = [
        GateCheck(new_id(), "g", 1, new_id(), baseline, Verdict.INCONCLUSIVE, {**ANSWER, "n": number})
        for number, baseline in enumerate(baselines)
    ]
    for check in checks:
        await store.add_check(project, check)
    assert await store.get_check(project, "g", checks[1].id) == checks[1]
    assert await store.get_check(project, "other", checks[1].id) is None
    assert await store.get_check("another", "g", checks[1].id) is None
    page = await store.checks(project, CheckFilter(gate="g"), 2)
    assert page.items == (checks[2], checks[1])
    assert page.next_position == checks[1].id
    assert (await store.checks(project, CheckFilter(gate="g"), 2, page.next_position)).items == (checks[0],)
    assert (await store.checks("another", CheckFilter(gate="g"), 2)).items == ()


async def test_the_last_check_of_each_gate(engine: AsyncEngine, project: str) -> None:
    store = PostgresGateStore(engine)
    made = {}
    for name, count in (("a", 2), ("b", 1), ("c", 1)):
        for _ in range(count):
            made[name] = GateCheck(new_id(), name, 1, new_id(), None, Verdict.PASS, ANSWER)
            await store.add_check(project, made[name])
    assert await store.last_checks(project, ["a", "b", "unused"]) == {"a": made["a"], "b": made["b"]}
    assert await store.last_checks("another", ["a"]) == {}
    assert await store.last_checks(project, []) == {}


async def test_many_records_at_once(store: PostgresEvaluationStore, make_record: MakeRecord, project: str) -> None:
    records = [make_record(counts=np.array([[index, 1], [2, 3]])) for index in range(3)]
    for record in records:
        await store.add(project, record)
    foreign = make_record()
    await store.add("another", foreign)
    found = await store.get_many(project, [records[2].id, records[0].id, foreign.id, new_id()])
    assert set(found) == {records[0].id, records[2].id}
    assert found[records[2].id].counts.tolist() == [[2, 1], [2, 3]]
    assert found[records[0].id].model == records[0].model
    assert await store.get_many(project, []) == {}
