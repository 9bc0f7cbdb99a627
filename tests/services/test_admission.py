"""Who finds a place is let in, who does not is refused in time, and no place is ever lost."""

import asyncio

import pytest

from app.domain.errors import Overloaded
from app.services.admission import Admission


async def hold(admission: Admission, until: asyncio.Event, inside: list[int], name: int) -> None:
    async with admission:
        inside.append(name)
        await until.wait()


def test_places_are_given_in_order_and_come_back() -> None:
    async def work() -> list[int]:
        admission, go = Admission(limit=2, wait_seconds=60), asyncio.Event()
        inside: list[int] = []
        tasks = [asyncio.create_task(hold(admission, go, inside, name)) for name in range(5)]
        for _ in range(5):
            await asyncio.sleep(0)
        assert inside == [0, 1]
        go.set()
        await asyncio.gather(*tasks)
        async with admission, admission:
            return inside

    assert asyncio.run(work()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("seconds", [0.0, 0.02])
def test_who_finds_no_place_in_time_is_refused(seconds: float) -> None:
    async def work() -> None:
        admission = Admission(limit=1, wait_seconds=seconds)
        async with admission:
            with pytest.raises(Overloaded, match="nothing was saved"):
                async with admission:
                    pytest.fail("there was no place")
        # The place that came free while nobody waited any more is there for the next.
        async with admission:
            pass

    asyncio.run(work())


def test_a_failure_inside_gives_the_place_back() -> None:
    async def work() -> None:
        admission = Admission(limit=1, wait_seconds=0)
        with pytest.raises(ZeroDivisionError):
            async with admission:
                raise ZeroDivisionError
        async with admission:
            pass

    asyncio.run(work())


def test_who_is_cancelled_while_waiting_takes_no_place_along() -> None:
    async def work() -> list[int]:
        admission, go = Admission(limit=1, wait_seconds=60), asyncio.Event()
        inside: list[int] = []
        tasks = [asyncio.create_task(hold(admission, go, inside, name)) for name in range(3)]
        for _ in range(3):
            await asyncio.sleep(0)
        tasks[1].cancel()
        go.set()
        # The place is handed to the second waiter; then the first holder's place to nobody who has left.
        await asyncio.gather(*tasks, return_exceptions=True)
        async with admission:
            return inside

    assert asyncio.run(work()) == [0, 2]


def test_who_is_cancelled_just_as_a_place_is_handed_over_passes_it_on() -> None:
    async def work() -> None:
        admission, go = Admission(limit=1, wait_seconds=60), asyncio.Event()
        inside: list[int] = []
        first = asyncio.create_task(hold(admission, go, inside, 0))
        second = asyncio.create_task(hold(admission, go, inside, 1))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        go.set()
        await first
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        async with asyncio.timeout(5), admission:
            pass

    asyncio.run(work())
