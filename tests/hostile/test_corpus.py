"""Whatever is sent, the answer is a plain one, memory stays within bounds and nobody else waits."""

import time

import pytest

from tests.hostile import cases_files, cases_http, cases_json, cases_large, cases_requests, cases_values
from tests.hostile.harness import MB, Case, Service, http

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


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_answer_is_plain(service: Service, case: Case) -> None:
    request = case.request() if callable(case.request) else case.request
    with service.watched() as watch:
        answer = service.send(request)
    if case.code is None:
        assert answer.status == case.status, answer.body[:500]
    else:
        assert (answer.status, case.code in answer.codes()) == (case.status, True), answer.body[:500]
    assert watch.memory < MOST_MEMORY
    assert watch.delay < LONGEST_WAIT


def test_every_case_has_a_name_of_its_own() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)


def test_nothing_is_left_running(service: Service) -> None:
    """All cases are answered: the service has nothing to do and answers at once."""
    time.sleep(0.2)
    before = sum(sum(process.cpu_times()[:2]) for process in service.processes())
    time.sleep(1)
    assert sum(sum(process.cpu_times()[:2]) for process in service.processes()) - before < 0.5
    assert service.send(http("GET", "/healthz")).status == 200
