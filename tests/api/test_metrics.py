"""What Prometheus reads: what happened is counted, nothing of a project is told, and who may read it."""

import asyncio
import logging
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr

from app.api.problems import PROBLEM_TYPES
from app.settings import Authentication, MetricsAccess, Settings
from app.telemetry.metrics import FOLDER_VARIABLE, descendants
from tests.api.answers import check_problem, create, evaluation
from tests.api.conftest import usual_settings
from tests.api.keys import bearer, make_key
from tests.hostile.harness import Service
from tests.serving import Served

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]
TOKEN = "a token of some length"
SCORES = {"kind": "scores", "y_true": [0, 1, 0, 1, 1], "scores": [0.1, 0.9, 0.4, 0.3, 0.8], "threshold": 0.5}
SECRETS = ("hidden-model", "hidden-dataset", "hidden-project", "hidden-tag", "hidden-key")


@pytest.fixture(scope="module")
def settings(database_url: str) -> Settings:
    return usual_settings(database_url)


def read(client: httpx.Client) -> Series:
    reply = client.get("/metrics")
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return parsed(reply.text)


def parsed(text: str) -> Series:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(series: Series, name: str, **labels: str) -> float:
    return series.get((f"prevail_{name}", frozenset(labels.items())), 0.0)


def grown(before: Series, after: Series, name: str, **labels: str) -> float:
    return value(after, name, **labels) - value(before, name, **labels)


def wait_until(holds: Callable[[], bool]) -> None:
    # On a busy machine a worker takes as long to start.
    deadline = time.monotonic() + 180
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_requests_are_counted(client: httpx.Client) -> None:
    before = read(client)
    identifier = create(client, evaluation())["id"]
    for _ in range(3):
        client.get(f"/v1/evaluations/{identifier}")
    client.head(f"/v1/evaluations/{identifier}")
    client.get("/v1/evaluations/01900000-0000-7000-8000-000000000001")
    client.get("/v1/evaluations?x=1")
    client.post("/v1/evaluations", content=b"{")
    client.get("/nowhere/at/all")
    client.request("TRACE", "/v1/models")
    client.delete("/v1/metrics/compute")
    after = read(client)

    def requests(route: str, method: str, status: str) -> float:
        return grown(before, after, "http_requests_total", route=route, method=method, status=status)

    assert requests("/v1/evaluations", "POST", "201") == 1
    assert requests("/v1/evaluations/{identifier}", "GET", "200") == 3
    assert requests("/v1/evaluations/{identifier}", "HEAD", "200") == 1
    assert requests("/v1/evaluations/{identifier}", "GET", "404") == 1
    assert requests("/v1/evaluations", "GET", "422") == 1
    assert requests("/v1/evaluations", "POST", "415") == 1
    assert requests("none", "GET", "404") == 1
    assert requests("/v1/models", "other", "405") == 1
    assert requests("/v1/metrics/compute", "DELETE", "405") == 1
    assert requests("/metrics", "GET", "200") == 1
    route = {"route": "/v1/evaluations/{identifier}", "method": "GET"}
    assert grown(before, after, "http_request_seconds_count", **route) == 4
    assert 0 < grown(before, after, "http_request_seconds_sum", **route) < 60
    assert value(after, "http_requests_in_flight") >= 1
    assert grown(before, after, "http_request_bytes_total") >= len(b"{")
    assert grown(before, after, "http_response_bytes_total") > 0


def test_refusals_are_counted_by_reason(client: httpx.Client) -> None:
    before = read(client)
    client.get("/v1/evaluations?x=1")
    client.get("/nowhere")
    client.post("/v1/evaluations", content=b"{", headers={"Content-Type": "application/json"})
    after = read(client)
    for code in ("invalid_query", "not_found", "bad_request"):
        assert grown(before, after, "refusals_total", code=code) == 1
        assert code in PROBLEM_TYPES


def test_what_the_connection_refuses_is_counted(base_url: str, client: httpx.Client) -> None:
    before = read(client)
    with socket.create_connection(("127.0.0.1", int(base_url.rpartition(":")[2]))) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000 + b"\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 431")
    assert grown(before, read(client), "refusals_total", code="headers_too_large") == 1


def test_work_is_counted(client: httpx.Client) -> None:
    before = read(client)
    create(client, evaluation())
    create(client, evaluation(input=SCORES))
    assert client.post("/v1/metrics/compute", json={"input": SCORES}).status_code == 200
    after = read(client)
    assert grown(before, after, "compute_seconds_count", kind="evaluate", where="loop") == 1
    assert grown(before, after, "compute_seconds_count", kind="evaluate", where="process") == 2
    assert 0 < grown(before, after, "compute_seconds_sum", kind="evaluate", where="process") < 60
    assert grown(before, after, "compute_wait_seconds_count") == 2
    assert grown(before, after, "commit_rows_sum") == 1
    assert grown(before, after, "commit_seconds_count") == 1
    assert grown(before, after, "database_seconds_count", work="insert") == 1
    # Samples have a transaction of their own.
    assert grown(before, after, "database_seconds_count", work="write") >= 1
    assert value(after, "database_pool_size") == 16
    assert value(after, "database_connections", state="idle") >= 1
    for name, label in (("writes", "waiting"), ("compute_jobs", "running"), ("compute_jobs", "waiting")):
        assert (f"prevail_{name}", frozenset({("state", label)})) in after


def test_evaluations_that_share_a_commit_are_seen(base_url: str, client: httpx.Client) -> None:
    async def many() -> None:
        async with httpx.AsyncClient(base_url=base_url, timeout=60) as caller:
            replies = await asyncio.gather(*(caller.post("/v1/evaluations", json=evaluation()) for _ in range(32)))
        assert {reply.status_code for reply in replies} == {201}

    before = read(client)
    asyncio.run(many())
    after = read(client)
    assert grown(before, after, "commit_rows_sum") == 32
    assert grown(before, after, "commit_rows_count") == grown(before, after, "commit_seconds_count") <= 32
    assert grown(before, after, "compute_seconds_count", kind="evaluate", where="loop") < 64


@pytest.mark.slow
def test_memory_and_clients_are_looked_at(client: httpx.Client) -> None:
    client.post("/v1/metrics/compute", json={"input": SCORES})

    def looked() -> bool:
        series = read(client)
        return value(series, "clients") >= 1 and value(series, "resident_memory_bytes", process="compute") > 0

    wait_until(looked)
    series = read(client)
    assert value(series, "resident_memory_bytes", process="server") > 10_000_000
    assert value(series, "processes", process="server") == 1
    assert value(series, "busiest_client_requests_total") >= 1
    assert value(series, "event_loop_delay_seconds_count") >= 1


def test_an_embedded_postgres_is_no_process_that_computes() -> None:
    of_ours = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    other = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE)
    with of_ours, other:
        wait_until(lambda: of_ours.pid in descendants(os.getpid()))
        assert other.pid not in descendants(os.getpid())
        of_ours.terminate()
        other.terminate()


def test_nothing_of_a_project_is_told(client: httpx.Client, database_url: str) -> None:
    make_key(database_url, "hidden-project", "write", name="hidden-key")
    create(client, evaluation(model="hidden-model", dataset="hidden-dataset", tags={"hidden-tag": "hidden-tag"}))
    client.get("/v1/evaluations", params={"model": "hidden-model"})
    client.get("/v1/gates/hidden-model")
    client.get("/hidden-model")
    client.get("/v1/metrics/hidden-model")
    text = client.get("/metrics").text
    for secret in SECRETS:
        assert secret not in text


def test_what_is_asked_makes_no_series(client: httpx.Client) -> None:
    """However many addresses, methods and codes are tried, labels are those of the code."""
    for place in range(3):
        client.get(f"/v1/gates/g{place}")
        client.get(f"/nowhere/{place}")
    read(client)
    before = set(read(client))
    for place in range(3, 30):
        client.get(f"/v1/gates/g{place}")
        client.get(f"/nowhere/{place}", headers={"X-Prevail-Project": f"p{place}"})
        client.get(f"/v1/gates/g?x{place}=1")
    fresh = {name for name, _ in set(read(client)) - before}
    assert not {name for name in fresh if re.search("gate|nowhere", name)}
    assert len(set(read(client)) - before) < 25


# --- who may read it -------------------------------------------------------------------------------------------------


@pytest.fixture
def locked(database_url: str) -> Iterator[httpx.Client]:
    settings = Settings(
        database_url=SecretStr(database_url), authentication=Authentication.keys, metrics_token=SecretStr(TOKEN)
    )
    with Served(settings) as url, httpx.Client(base_url=url, timeout=60) as opened:
        yield opened


def test_who_may_administer_reads_it(locked: httpx.Client, database_url: str) -> None:
    check_problem(locked.get("/metrics"), 401, "unauthenticated")
    for scope, status in (("read", 403), ("write", 403), ("admin", 200)):
        key = make_key(database_url, "p", scope)
        assert locked.get("/metrics", headers=bearer(key)).status_code == status


def test_a_token_reads_it_and_nothing_else(locked: httpx.Client) -> None:
    token = {"Authorization": f"Bearer {TOKEN}"}
    assert locked.get("/metrics", headers=token).status_code == 200
    assert locked.head("/metrics", headers=token).status_code == 200
    for wrong in ("Bearer a token of some", f"Basic {TOKEN}", TOKEN, "Bearer", "Bearer ÿ", f"Bearer {TOKEN}x"):
        headers = {b"Authorization": wrong.encode("latin-1")}
        check_problem(locked.get("/metrics", headers=headers), 401, "unauthenticated")
    check_problem(locked.get("/v1/models", headers=token), 401, "unauthenticated")
    assert TOKEN not in locked.get("/metrics", headers=token).text


def test_without_the_database_a_token_still_reads_it(caplog: pytest.LogCaptureFixture) -> None:
    nowhere = Settings(
        database_url=SecretStr("postgresql://nobody:secret@127.0.0.1:9/none"), metrics_token=SecretStr(TOKEN)
    )
    with Served(nowhere) as url, httpx.Client(base_url=url, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        check_problem(client.get("/readyz"), 503, "database_unavailable")
        series = read(client)
    assert value(series, "database_lost_total") == 1
    assert value(series, "database_back_total") == 0
    assert "the database does not answer any more" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.slow
def test_open_and_off(database_url: str) -> None:
    url = SecretStr(database_url)
    opened = Settings(database_url=url, authentication=Authentication.keys, metrics_access=MetricsAccess.open)
    with Served(opened) as base, httpx.Client(base_url=base) as client:
        assert client.get("/metrics").status_code == 200
        check_problem(client.get("/v1/models"), 401, "unauthenticated")
    shut = Settings(database_url=url, metrics_access=MetricsAccess.off, metrics_token=SecretStr(TOKEN))
    with Served(shut) as base, httpx.Client(base_url=base, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        check_problem(client.get("/metrics"), 404, "not_found")


# --- several workers -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_any_worker_tells_of_all(database_url: str, tmp_path: Path) -> None:
    """Whichever worker is asked, and when one of them was killed: nothing is counted twice, nothing forgotten."""
    logging.getLogger("httpx").setLevel(logging.WARNING)
    service = Service(
        database_url,
        PREVAIL_WORKERS="2",
        PREVAIL_METRICS_ACCESS="open",
        PREVAIL_AUTHENTICATION="off",
        PREVAIL_COMPUTE_PROCESSES="1",
        **{FOLDER_VARIABLE: str(tmp_path)},
    )
    base = f"http://127.0.0.1:{service.port}"

    def ask(path: str) -> httpx.Response:
        # A connection of its own each time: any worker may take it.
        return httpx.get(base + path, timeout=60)

    def counted() -> float:
        return value(
            parsed(ask("/metrics").text), "http_requests_total", route="/v1/models", method="GET", status="200"
        )

    def servers() -> float:
        return value(parsed(ask("/metrics").text), "processes", process="server")

    with service:
        wait_until(lambda: servers() == 2)
        for _ in range(40):
            assert ask("/v1/models").status_code == 200
        assert {counted() for _ in range(8)} == {40.0}
        files = {path.stem.rpartition("_")[2] for path in tmp_path.glob("counter_*.db")}
        assert len(files) == 2
        os.kill(int(files.pop()), 9)
        wait_until(lambda: len(list(tmp_path.glob("counter_*.db"))) == 3)
        assert counted() == 40.0
        for _ in range(10):
            ask("/v1/models")
        wait_until(lambda: servers() == 2)
        assert counted() == 50.0
