"""Reports made in groups: who is together, who is not, and what a failure spoils."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import numpy as np
import pytest

from app.domain.errors import UnknownMetric
from app.domain.inputs.content import Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.options import IntervalChoice, Options
from app.domain.report import Report
from app.services.evaluate import reports
from app.services.evaluate.questions import Question, ask
from app.services.evaluate.reports import Reports, evaluate, report_alone
from app.services.evaluate.sections.matrix import BatchValues, batch_values
from app.services.present import Observer, Observers
from app.services.processes.compute import ComputePool
from app.services.processes.worker import Limits
from tests.services.memory import Here, probable

PLAIN = Options()


def source(n_classes: int, seed: int = 0) -> MatrixInput:
    counts = np.random.default_rng(seed).integers(1, 50, (n_classes, n_classes))
    labels = tuple(f"class {k}" for k in range(n_classes))
    return MatrixInput("confusion_matrix", labels, 1 if n_classes == 2 else None, Content.counts, counts)


@pytest.fixture
def compute() -> Iterator[ComputePool]:
    made = Here()
    yield made
    made.close()


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many questions each pass was about."""
    passes: list[int] = []

    def counting(questions: list[Question]) -> BatchValues:
        passes.append(len(questions))
        return batch_values(questions)

    monkeypatch.setattr(reports, "batch_values", counting)
    return passes


def run(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(work())


def test_what_arrives_together_is_computed_in_one_pass(compute: ComputePool, sizes: list[int]) -> None:
    sources = [source(4, seed) for seed in range(5)]

    async def work() -> list[Report]:
        maker = Reports(compute)
        return list(await asyncio.gather(*(maker.make(one, PLAIN) for one in sources)))

    made: list[Report] = run(work)
    assert sizes == [5]
    for one, report in zip(sources, made, strict=True):
        assert report.input.confusion_matrix is one.counts
        assert report.values == evaluate(one, PLAIN).values


def test_different_numbers_of_classes_and_levels_are_apart(compute: ComputePool, sizes: list[int]) -> None:
    asked = [
        (source(3), PLAIN),
        (source(4), PLAIN),
        (source(3), Options(level=0.9)),
        (source(3), Options(intervals=IntervalChoice.NONE)),
        (source(3, seed=1), PLAIN),
    ]

    async def work() -> list[Report]:
        maker = Reports(compute)
        return list(await asyncio.gather(*(maker.make(*one) for one in asked)))

    made: list[Report] = run(work)
    assert sorted(sizes) == [1, 1, 1, 2]
    assert [report.intervals["accuracy"]["level"] for report in made if report.intervals] == [0.95, 0.95, 0.9, 0.95]
    assert made[3].intervals == {}


def test_a_group_is_no_larger_than_its_limits(compute: ComputePool, sizes: list[int]) -> None:
    async def work(n_classes: int, count: int) -> None:
        maker = Reports(compute)
        await asyncio.gather(*(maker.make(source(n_classes, seed), PLAIN) for seed in range(count)))

    asyncio.run(work(2, 70))
    assert sizes == [32, 32, 6]
    sizes.clear()
    asyncio.run(work(40, 5))
    assert sizes == [2, 2, 1]


def test_large_inputs_keep_no_one_waiting(
    compute: ComputePool, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent, send = [], compute.run

    async def counted(function: Callable[..., Any]) -> Any:
        sent.append(function)
        return await send(function)

    monkeypatch.setattr(compute, "run", counted)

    async def work() -> tuple[Report, Report]:
        maker = Reports(compute)
        large, small = await asyncio.gather(maker.make(source(80), PLAIN), maker.make(source(3), PLAIN))
        return large, small

    large, small = run(work)
    assert (sizes, len(sent)) == ([1, 1], 1)
    assert (len(large.per_class), len(small.per_class)) == (80, 3)


def test_what_cannot_be_computed_spoils_no_other(compute: ComputePool, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = source(3, seed=2)

    def breaking(questions: list[Question]) -> BatchValues:
        if any(question.source is bad for question in questions):
            raise ZeroDivisionError("this one")
        return batch_values(questions)

    monkeypatch.setattr(reports, "batch_values", breaking)

    async def work() -> list[Any]:
        maker = Reports(compute)
        asked = [maker.make(one, PLAIN) for one in (source(3), bad, source(3, seed=1))]
        return await asyncio.gather(*asked, return_exceptions=True)

    first, broken, last = run(work)
    assert isinstance(broken, ZeroDivisionError)
    assert first.values == evaluate(source(3), PLAIN).values
    assert last.values == evaluate(source(3, seed=1), PLAIN).values


def test_an_expression_that_is_none_is_refused_before_it_joins(compute: ComputePool, sizes: list[int]) -> None:
    async def work() -> list[Any]:
        maker = Reports(compute)
        asked = [maker.make(source(3), PLAIN), maker.make(source(3), Options(metrics=("acuracy",)))]
        return await asyncio.gather(*asked, return_exceptions=True)

    made, refused = run(work)
    assert isinstance(made, Report)
    assert isinstance(refused, UnknownMetric)
    assert sizes == [1]


def test_a_caller_that_leaves_is_not_computed_for(compute: ComputePool, sizes: list[int]) -> None:
    async def work() -> Report:
        maker = Reports(compute)
        leaving = asyncio.create_task(maker.make(source(3), PLAIN))
        staying = asyncio.create_task(maker.make(source(3, seed=1), PLAIN))
        await asyncio.sleep(0)
        leaving.cancel()
        return await staying

    made = run(work)
    assert sizes == [1]
    assert made.values == evaluate(source(3, seed=1), PLAIN).values


def test_a_group_that_fails_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """First together, then one by one: no second is told twice."""
    told: list[float] = []

    class Heard(Observer):
        def observed(self, what: str, amount: float, **_: str) -> None:
            if what == "compute_seconds":
                told.append(amount)

    def failing(_: object) -> BatchValues:
        time.sleep(0.02)
        raise ValueError("nothing")

    async def work() -> list[Any]:
        maker = Reports(ComputePool(1, Limits(1.0, 1 << 30), wait_seconds=1.0, observers=Observers([Heard()])))
        asked = [maker.make(source(3, seed=one), PLAIN) for one in range(2)]
        return await asyncio.gather(*asked, return_exceptions=True)

    monkeypatch.setattr(reports, "batch_values", failing)
    begin = time.perf_counter()
    assert [str(one) for one in run(work)] == ["nothing", "nothing"]
    assert len(told) == 3
    assert sum(told) < time.perf_counter() - begin


def test_a_brief_report_has_the_headline_and_the_values_of_the_whole_one(compute: ComputePool) -> None:
    brief: Report = run(lambda: Reports(compute).make(source(3), PLAIN, brief=True))
    whole = evaluate(source(3), PLAIN)
    assert (brief.headline, brief.values) == (whole.headline, whole.values)
    assert not brief.findings
    assert whole.findings


def test_matrices_of_runs_of_probabilities_share_a_pass(compute: ComputePool, sizes: list[int]) -> None:
    """Where no more is asked of the samples."""
    rows = np.random.default_rng(0).dirichlet(np.ones(3), 40)
    sources = [probable(rows.argmax(axis=1), np.roll(rows, shift, axis=0)) for shift in (1, 2)]

    async def work() -> list[Report]:
        maker = Reports(compute)
        return list(await asyncio.gather(*(maker.make(one, PLAIN, {}) for one in sources)))

    made: list[Report] = run(work)
    assert sizes == [2]
    for one, report in zip(sources, made, strict=True):
        alone = report_alone(ask(one, PLAIN), {})
        assert (report.values, report.intervals, report.findings) == (alone.values, alone.intervals, alone.findings)
