"""What is told of work, and for which request it is counted. What a job makes has one id, however often it is tried."""

import asyncio
from contextvars import copy_context
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

import numpy as np

from app.domain.identifiers import new_id, time_of
from app.domain.inputs.content import Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.options import Options
from app.services.admission import Admission
from app.services.evaluate.evaluations import NewEvaluation
from app.services.evaluate.reports import report_alone
from app.services.gate import check_gate
from app.services.present import (
    APART,
    Observer,
    Observers,
    begin_tally,
    kind_of,
    made_id,
    make_as,
    make_part,
    share,
    tally,
)


class Told(Observer):
    def __init__(self) -> None:
        self.said: list[tuple[object, ...]] = []

    def observed(self, what: str, amount: float, **labels: str) -> None:
        self.said.append((what, amount, labels))


def test_all_observers_are_told() -> None:
    first, second = Told(), Told()
    both = Observers([first, second])
    both.observed("compute_seconds", 1.0, kind="gate", where=APART)
    both.observed("commit_rows", 3)
    told = [("compute_seconds", 1.0, {"kind": "gate", "where": APART}), ("commit_rows", 3, {})]
    assert first.said == second.said == told


def test_each_request_has_a_tally_of_its_own() -> None:
    observers = Observers()

    async def request(seconds: float) -> tuple[float, float]:
        own = begin_tally()
        await asyncio.sleep(0)
        observers.observed("compute_seconds", seconds, kind="gate", where=APART)
        # What it starts counts for it.
        await asyncio.create_task(asked(seconds))
        return own.compute, own.database

    async def asked(seconds: float) -> None:
        observers.observed("database_seconds", 2 * seconds, work="read")

    async def both() -> list[tuple[float, float]]:
        return list(await asyncio.gather(request(1.0), request(10.0)))

    assert asyncio.run(both()) == [(1.0, 2.0), (10.0, 20.0)]


def test_what_is_computed_for_several_is_shared() -> None:
    first, second = begin_tally(), begin_tally()
    share([first, None, second], 3.0)
    assert (first.compute, second.compute) == (1.0, 1.0)
    assert tally() is second


def test_the_kind_of_work_is_its_use_case() -> None:
    assert kind_of(partial(report_alone, kept=None)) == "evaluate"
    assert kind_of(check_gate) == "gate"
    # What is handed to something shared counts, not what hands it on.
    assert kind_of(partial(map, partial(check_gate))) == "gate"
    assert kind_of(partial(print, 3, int)) == "other"


def test_an_admission_says_who_is_in_and_who_waits() -> None:
    async def fill() -> tuple[tuple[int, int], tuple[int, int]]:
        places = Admission(limit=1, wait_seconds=5)

        async def work() -> None:
            async with places:
                await asyncio.sleep(0.01)

        tasks = [asyncio.create_task(work()) for _ in range(3)]
        await asyncio.sleep(0)
        full = places.held, places.waiting
        await asyncio.gather(*tasks)
        return full, (places.held, places.waiting)

    assert asyncio.run(fill()) == ((1, 2), (0, 0))


MOMENT = datetime(2024, 1, 1, tzinfo=UTC)
SOURCE = MatrixInput("confusion_matrix", ("0", "1"), 1, Content.counts, np.array([[5, 1], [2, 4]]))
NEW = NewEvaluation(source=SOURCE, options=Options(), created_at=MOMENT)


def made(chosen: UUID, place: int) -> UUID:
    """The id of what a job makes at a place of a batch, in a turn of its own."""

    def turn() -> UUID:
        make_as(chosen)
        make_part(place)
        return NEW.identifier(made_id())

    return copy_context().run(turn)


def test_a_moment_of_its_own_leaves_the_id_of_a_job_the_same_in_every_turn() -> None:
    chosen = new_id()
    first = [made(chosen, place) for place in range(5)]
    assert [made(chosen, place) for place in range(5)] == first
    assert len(set(first)) == 5
    assert {time_of(one) for one in first} == {MOMENT}
