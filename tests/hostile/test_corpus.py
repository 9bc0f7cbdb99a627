"""Whatever is sent, the answer is a plain one, memory stays within bounds and nobody else waits."""

import time

import pytest

from tests.hostile import cases_files, cases_http, cases_json, cases_large, cases_requests, cases_values
from tests.hostile.harness import COMPUTE, MB, Case, Service, http

CASES = [
    *cases_files.CASES,
    *cases_http.CASES,
    *cases_json.CASES,
    *cases_large.CASES,
    *cases_requests.CASES,
    *cases_values.CASES,
]
MOST_MEMORY = 1024 * MB
LONGEST_WAIT = 1.0
REST_SECONDS = 5.0
# What each of two compute processes may keep for its next piece of work, and the service itself.
KEPT = 3 * 128 * MB
# Answers that take longer may have left something behind.
QUICK_SECONDS = 0.2
LABELS = b"[" + b"0,1," * 4_000_000 + b"0]"


@pytest.fixture(scope="module")
def idle(service: Service) -> int:
    """Bytes of memory at rest."""
    return service.idle_memory()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_answer_is_plain(service: Service, idle: int, case: Case) -> None:
    request = case.request() if callable(case.request) else case.request
    begun = time.monotonic()
    with service.watched() as watch:
        answer = service.send(request)
    if case.code is None:
        assert answer.status == case.status, answer.body[:500]
    else:
        assert (answer.status, case.code in answer.codes()) == (case.status, True), answer.body[:500]
    assert watch.memory < MOST_MEMORY
    assert watch.delay < LONGEST_WAIT
    if time.monotonic() - begun > QUICK_SECONDS:
        assert service.comes_to_rest(idle + KEPT, REST_SECONDS)


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
