"""Whatever is sent, the answer is a plain one, memory stays within bounds and nobody else waits."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.hostile import cases_files, cases_http, cases_json, cases_large, cases_requests, cases_values
from tests.hostile.harness import COMPUTE, MB, Answer, Case, Service, http

# What is large is sent alone: its memory is what the test is about.
USUAL = [
    *cases_files.CASES,
    *cases_http.CASES,
    *cases_json.CASES,
    *cases_requests.CASES,
    *cases_values.CASES,
]
CASES = [*USUAL, *cases_large.CASES]
BATCH = 64
AT_ONCE = 16
MOST_MEMORY = 1024 * MB
LONGEST_WAIT = 1.0
REST_SECONDS = 5.0
# What each of two compute processes may keep for its next piece of work, and as much for the service itself.
KEPT = 3 * 128 * MB
# Answers that take longer may have left something behind.
QUICK_SECONDS = 0.2
LABELS = b"[" + b"0,1," * 4_000_000 + b"0]"


@pytest.fixture(scope="module")
def idle(service: Service) -> int:
    """Bytes of memory at rest, after as many requests at once as are sent here: the rest is what hostile ones add."""
    return service.idle_memory(AT_ONCE)


def fault(case: Case, answer: Answer) -> str | None:
    """What is wrong with the answer to a case; None when nothing is."""
    expected = (case.status, case.code)
    found = (answer.status, None if case.code is None else case.code if case.code in answer.codes() else "another code")
    return None if found == expected else f"{case}: {found} instead of {expected}: {answer.body[:500]!r}"


def fault_alone(service: Service, idle: int, case: Case) -> str | None:
    """What is wrong with a case that nothing else is sent beside: its answer, memory, who waits, what is left behind."""
    request = case.content()
    begun = time.monotonic()
    with service.watched() as watch:
        answer = service.send(request)
    wrong = fault(case, answer)
    if wrong is not None:
        return wrong
    if watch.memory >= MOST_MEMORY:
        return f"{case}: {watch.memory / MB:.0f} MB"
    if watch.delay >= LONGEST_WAIT:
        return f"{case}: others wait {watch.delay:.1f} s"
    if time.monotonic() - begun > QUICK_SECONDS and not service.comes_to_rest(idle + KEPT, REST_SECONDS):
        return f"{case}: memory or work is left behind"
    return None


def faults(service: Service, idle: int, cases: list[Case]) -> list[str]:
    """What is wrong with cases that are sent sixteen at once; where they take too much it is looked for in halves."""
    if len(cases) == 1:
        wrong = fault_alone(service, idle, cases[0])
        return [] if wrong is None else [wrong]
    # Made before: a health check would wait for what is made in this process.
    requests = [case.content() for case in cases]
    with service.watched() as watch, ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(service.send, requests))
    found = [wrong for case, answer in zip(cases, answers, strict=True) if (wrong := fault(case, answer))]
    rests = service.comes_to_rest(idle + KEPT, REST_SECONDS)
    if found or (watch.memory < MOST_MEMORY and watch.delay < LONGEST_WAIT and rests):
        return found
    middle = len(cases) // 2
    return [*faults(service, idle, cases[:middle]), *faults(service, idle, cases[middle:])]


# Every sixth batch is sent in every run, the others are slow.
BATCHES = [
    pytest.param(first, marks=[pytest.mark.slow] if first // BATCH % 6 else []) for first in range(0, len(USUAL), BATCH)
]


@pytest.mark.parametrize("first", BATCHES)
def test_answers_are_plain(service: Service, idle: int, first: int) -> None:
    assert not faults(service, idle, USUAL[first : first + BATCH])


def large() -> list[Any]:
    """Of large bodies that get the same answer one is sent in every run, the others are slow."""
    known: set[Any] = set()
    cases = []
    for case in cases_large.CASES:
        answer = (case.name.partition(":")[0], case.status, case.code)
        cases.append(pytest.param(case, id=case.name, marks=[pytest.mark.slow] if answer in known else []))
        known.add(answer)
    return cases


@pytest.mark.parametrize("case", large())
def test_the_answer_to_a_large_body_is_plain(service: Service, idle: int, case: Case) -> None:
    assert fault_alone(service, idle, case) is None


def test_nothing_is_computed_for_a_client_who_is_gone(service: Service, idle: int) -> None:
    body = b'{"input": {"kind": "predictions", "y_true": %b, "y_pred": %b}}' % (LABELS, LABELS)
    with service.connect() as connection:
        connection.sendall(http("POST", COMPUTE, body))
        time.sleep(0.5)
    assert service.comes_to_rest(idle + KEPT, REST_SECONDS)


def test_every_case_has_a_name_of_its_own() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names) >= 300
    assert not [case.name for case in CASES if case.status >= 400 and case.code is None]
