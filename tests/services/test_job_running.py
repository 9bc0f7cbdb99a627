"""What becomes of a job: its end, or another turn."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from app.api import jobs
from app.domain.errors import DomainError, StoreUnavailableError
from app.domain.identifiers import new_id
from app.domain.operations import Actor, JobEnd, JobStatus, KeptRequest, Task
from app.services.jobs import JobRunner
from app.services.ports import Waits
from app.services.present import actor, made_id, make_part
from app.services.processes.worker import listener, progressed

pytestmark = pytest.mark.anyio
REQUEST = KeptRequest(kind="x", method="POST", path="/x", query="", headers={})
MADE = JobEnd(status=JobStatus.SUCCEEDED, result="/v1/x")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Memory:
    """One job, as the store has it."""

    def __init__(self, lost: int = 0) -> None:
        self.task = Task(id=new_id(), project="p", makes=new_id(), actor=Actor("ci"), request=REQUEST, run=1, lost=lost)
        self.back: list[bool] = []
        self.ends: list[JobEnd] = []
        self.progress: list[float] = []
        self.away = 0

    async def begin(self, project: str, identifier: UUID) -> Task | None:
        return self.task if (project, identifier) == ("p", self.task.id) else None

    async def body(self, project: str, identifier: UUID) -> AsyncIterator[bytes]:
        yield b"{}"

    async def note_progress(self, task: Task, share: float) -> None:
        self.progress.append(share)

    def hear(self) -> None:
        if self.away:
            self.away -= 1
            raise StoreUnavailableError("away")

    async def put_back(self, task: Task, *, lost: bool = False) -> None:
        self.hear()
        self.back.append(lost)

    async def end(self, task: Task, end: JobEnd) -> None:
        self.hear()
        self.ends.append(end)


class Answers:
    """Answers whatever a test says."""

    def __init__(self, answer: Callable[[], JobEnd]) -> None:
        self._answer = answer
        self.asked = 0

    async def answer(self, task: Task, body: AsyncIterator[bytes]) -> JobEnd:
        self.asked += 1
        assert [piece async for piece in body] == [b"{}"]
        return self._answer()

    def refuse(self, task: Task, error: DomainError) -> JobEnd:
        return JobEnd(status=JobStatus.FAILED, problem={"code": error.code, "detail": error.detail})


async def run(memory: Any, answer: Callable[[], JobEnd]) -> Answers:
    requests = Answers(answer)
    # As the queue does it: who acts is a matter of the task.
    await asyncio.create_task(JobRunner(memory, requests, attempts=3, note=lambda *_: None).run("p", memory.task.id))
    return requests


def problem(code: str) -> Callable[[], JobEnd]:
    return lambda: JobEnd(status=JobStatus.FAILED, problem={"code": code})


async def test_what_was_made_is_the_result() -> None:
    memory = Memory()
    await run(memory, lambda: MADE)
    assert memory.ends == [MADE]


def sent(headers: dict[str, str], content: bytes) -> list[Any]:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    return [{"status": 200, "headers": raw}, {"body": content}]


def test_the_end_of_what_made_something_is_its_address() -> None:
    headers = {"location": "/v1/evaluations/1", "content-type": "application/json"}
    end = jobs._answered(Memory().task, sent(headers, b"{}"))
    assert end == JobEnd(status=JobStatus.SUCCEEDED, result="/v1/evaluations/1")


def test_what_is_kept_nowhere_else_is_kept_with_the_job() -> None:
    task = Memory().task
    end = jobs._answered(task, sent({"content-type": "text/csv"}, b"a,b"))
    assert end.result == f"/v1/jobs/{task.id}/result"
    assert end.content is not None
    assert (end.content.media_type, end.content.content) == ("text/csv", b"a,b")


async def test_a_problem_is_the_end() -> None:
    memory = Memory()
    await run(memory, problem("invalid_input"))
    assert memory.ends == [JobEnd(status=JobStatus.FAILED, problem={"code": "invalid_input"})]
    assert memory.back == []


@pytest.mark.parametrize("code", ["overloaded", "database_unavailable", "no_space"])
@pytest.mark.parametrize("lost", [0, 2])
async def test_what_passes_by_itself_costs_no_attempt(code: str, lost: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.services.jobs._SAYS_AGAIN", 0.0)
    memory = Memory(lost)
    # What is not put back, since the database was away once more, counts as lost the next time.
    memory.away = 1
    with pytest.raises(Waits):
        await run(memory, problem(code))
    assert (memory.ends, memory.back) == ([], [False])


async def test_a_process_that_is_lost_costs_an_attempt() -> None:
    memory = Memory(lost=1)
    with pytest.raises(Waits):
        await run(memory, problem("process_lost"))
    assert (memory.ends, memory.back) == ([], [True])
    memory.task = replace(memory.task, lost=2)
    await run(memory, problem("process_lost"))
    assert memory.ends == [JobEnd(status=JobStatus.FAILED, problem={"code": "process_lost"})]


async def test_a_job_that_is_lost_again_and_again_is_given_up() -> None:
    memory = Memory(lost=3)
    requests = await run(memory, problem("x"))
    assert requests.asked == 0
    (end,) = memory.ends
    assert end.status is JobStatus.FAILED
    assert end.problem == {
        "code": "job_lost",
        "detail": "its worker ended before the job was done, 3 times; it is not tried again",
    }


async def test_what_was_computed_waits_for_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.services.jobs._SAYS_AGAIN", 0.0)
    memory = Memory()
    memory.away = 1
    requests = await run(memory, lambda: MADE)
    assert requests.asked == len(memory.ends) == 1


async def test_work_is_done_for_whoever_sent_it_under_ids_that_stay() -> None:
    memory = Memory()
    seen: list[Any] = []

    def answer() -> JobEnd:
        progressed(1, 2)
        seen.extend([actor(), made_id(), made_id()])
        make_part(7)
        seen.append(made_id())
        return MADE

    await run(memory, answer)
    makes = memory.task.makes
    assert seen == [memory.task.actor, makes, makes, UUID(int=makes.int + 7)]


async def test_nothing_is_all_done_before_its_result_is_kept() -> None:
    class Whole(Answers):
        async def answer(self, task: Task, body: AsyncIterator[bytes]) -> JobEnd:
            progressed(1, 1)
            await asyncio.sleep(0)
            return MADE

    memory: Any = Memory()
    await asyncio.create_task(
        JobRunner(memory, Whole(lambda: MADE), attempts=1, note=lambda *_: None).run("p", memory.task.id)
    )
    assert memory.progress == [0.99]


async def test_how_far_it_is_is_noted_until_the_end() -> None:
    memory = Memory()
    late: list[Any] = []

    def answer() -> JobEnd:
        tell = listener()
        assert tell is not None
        late.append(tell)
        return MADE

    await run(memory, answer)
    # From a process that is ended only now.
    before = asyncio.all_tasks()
    late[0](0.5)
    assert asyncio.all_tasks() == before
    assert memory.progress == []


async def test_without_a_job_every_id_is_new() -> None:
    make_part(3)
    progressed(1, 1)
    assert made_id() != made_id()
