"""Requests that are answered later: the same answer, once, whatever happens meanwhile."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet
import pytest
from pydantic import SecretStr

from app.settings import Authentication, Settings
from tests.api.answers import FOUR_CLASSES, Json, check_json, check_problem, create, evaluation, matrix_input
from tests.api.generated.kept import DATASETS, PROBABILITIES
from tests.api.jobs import LATER, ended, put_aside, read, result, running
from tests.api.shown import BODIES
from tests.conftest import Template
from tests.openapi import DOCUMENT
from tests.serving import Served

ROOT = Path(__file__).parents[2]
ROWS = 20_000
LARGE: Json = {"kind": "predictions", "y_true": [0, 1] * ROWS, "y_pred": [0, 1, 1, 1] * (ROWS // 2)}
WITH_SITES: Json = {
    "kind": "predictions",
    "y_true": [0, 1] * 20,
    "y_pred": [0, 1, 1, 1] * 10,
    "attributes": {"site": ["A"] * 20 + ["B"] * 20},
}
# A second or two of work, and more than a test waits for.
SOME: Json = {"input": matrix_input(FOUR_CLASSES), "options": {"intervals": "all", "draws": 20_000}}
SLOW: Json = {"input": matrix_input(FOUR_CLASSES), "options": {"intervals": "all", "draws": 100_000}}
RULES = {"rules": [{"metric": "h_mean", "min": 0.5}]}


def stable(answer: Any) -> Any:
    """An answer without what is another each time."""
    if isinstance(answer, dict):
        return {name: stable(value) for name, value in answer.items() if name not in ("id", "created_at", "instance")}
    return [stable(one) for one in answer] if isinstance(answer, list) else answer


@pytest.fixture(scope="module")
def runs(client: httpx.Client) -> list[str]:
    """Two evaluations of matrices, and one of probabilities; on two datasets with two models each."""
    for model in ("a", "b"):
        for place, dataset in enumerate(DATASETS):
            create(client, evaluation(model=model, dataset=dataset, input=matrix_input([[9 + place, 2], [3, 7]])))
    client.put("/v1/gates/later", json=RULES).raise_for_status()
    matrices = [create(client, evaluation(model=model))["id"] for model in ("one", "two")]
    others = [create(client, evaluation(input=source))["id"] for source in (PROBABILITIES, WITH_SITES)]
    return [*matrices, *others]


TWO = {"evaluations": ["$0", "$1"], "seed": 1}
ACROSS = {"metric": "h_mean", "models": ["a", "b"], "datasets": [*DATASETS]}
BY_SITE = {"by": ["site"], "minimum_samples": 5, "metrics": ["accuracy"]}
SHARES = {"prevalence": {"1": 0.5}}
REQUESTS: dict[str, tuple[str, Any]] = {
    "evaluation": ("/v1/evaluations", evaluation(tags={"a": "b"})),
    "evaluation of probabilities": ("/v1/evaluations", evaluation(input=PROBABILITIES)),
    "evaluation that is not saved": ("/v1/evaluations?store=false", evaluation()),
    "large body": ("/v1/evaluations", evaluation(input=LARGE)),
    "computation": ("/v1/metrics/compute", {"input": PROBABILITIES}),
    "large computation": ("/v1/metrics/compute?fields=headline", {"input": LARGE}),
    "batch": ("/v1/evaluations/batch", {"evaluations": [evaluation(), {"input": 1}, evaluation(input=PROBABILITIES)]}),
    "comparison": ("/v1/comparisons", TWO),
    "merge": ("/v1/evaluations/merge", {"evaluations": ["$0", "$1"], "model": {"name": "both"}}),
    "across datasets": ("/v1/comparisons/across-datasets", ACROSS),
    "check": ("/v1/gates/later/checks", {"evaluation": "$0"}),
    "projection": ("/v1/evaluations/$0/projections", SHARES),
    "projection of an input": ("/v1/projections", {"input": matrix_input([[5, 1], [2, 4]]), **SHARES}),
    "prevalence": ("/v1/evaluations/$0/prevalence-estimates", {"predicted": {"0": 5, "1": 5}}),
    "threshold": ("/v1/evaluations/$2/thresholds", {"objective": "h_mean"}),
    "threshold of an input": ("/v1/thresholds", {"input": PROBABILITIES, "objective": "h_mean"}),
    "curve": ("/v1/curves/roc", {"input": PROBABILITIES}),
    "slices": ("/v1/evaluations/$3/slices", BY_SITE),
    "slices of an input": ("/v1/slices", {"input": WITH_SITES, **BY_SITE}),
    "consistency": ("/v1/consistency-checks", BODIES["checkConsistency"]["impossible"]),
}  # fmt: skip


def put_in(value: Any, runs: list[str]) -> Any:
    text = json.dumps(value)
    for place, identifier in enumerate(runs):
        text = text.replace(f"${place}", identifier)
    return json.loads(text)


@pytest.mark.parametrize("name", REQUESTS)
def test_the_answer_is_that_of_the_request_itself(client: httpx.Client, runs: list[str], name: str) -> None:
    path, body = put_in(REQUESTS[name], runs)
    now = client.post(path, json=body)
    assert now.status_code < 300, now.text
    job = put_aside(client, path, body)
    later = result(client, job)
    check_json(later, named={"metrics"})
    assert stable(later.json()) == stable(now.json())
    found = read(client, job)
    if now.status_code == 201:
        # What was made is where it always is, made once.
        assert found["result"] == now.headers["location"].replace(now.json()["id"], later.json()["id"])
        assert later.json()["id"] != job["id"]
        check_problem(client.get(f"/v1/jobs/{job['id']}/result"), 404, "not_found")
    else:
        assert found["result"] == f"/v1/jobs/{job['id']}/result"


def test_a_page_that_a_job_has_written_runs_and_loads_nothing_either(client: httpx.Client) -> None:
    body, page = {"input": evaluation()["input"]}, {"Accept": "text/html"}
    now = client.post("/v1/metrics/compute", json=body, headers=page)
    later = result(client, put_aside(client, "/v1/metrics/compute", body, headers=page))
    for name in ("content-type", "content-security-policy", "x-content-type-options", "referrer-policy"):
        assert later.headers[name] == now.headers[name]


def test_every_operation_that_can_be_put_aside_is_tried() -> None:
    posts = {path: methods["post"] for path, methods in DOCUMENT["paths"].items() if "post" in methods}
    # What webhooks send is accepted too, and is no job.
    deferrable = [
        path for path, operation in posts.items() if "202" in operation["responses"] and "/webhooks/" not in path
    ]
    tried = {path.partition("?")[0] for path, _ in REQUESTS.values()}
    for pattern in ("later/checks", "$0/projections", "$0/prevalence-estimates", "$2/thresholds", "curves/roc"):
        assert any(path.endswith(pattern) for path in tried)
    assert len(deferrable) == len(tried) == 16


def test_a_file_is_put_aside(client: httpx.Client) -> None:
    sink = io.BytesIO()
    pa.parquet.write_table(pa.table({"y_true": ["a", "b"] * 50, "y_pred": ["a", "b", "b", "b"] * 25}), sink)
    parts: Any = {
        "data": {"evaluation": json.dumps(evaluation(input={"kind": "predictions"}))},
        "files": {"data": ("rows.parquet", sink.getvalue())},
    }
    now = client.post("/v1/evaluations", **parts)
    assert now.status_code == 201, now.text
    assert stable(result(client, put_aside(client, "/v1/evaluations", **parts)).json()) == stable(now.json())


def test_evaluations_of_a_batch_are_kept_in_order(client: httpx.Client) -> None:
    several = [evaluation(dataset="batched", model=f"m{place}") for place in range(40)]
    job = put_aside(client, "/v1/evaluations/batch", {"evaluations": several})
    made = [item["evaluation"]["id"] for item in result(client, job).json()["items"]]
    assert made == sorted(made)
    listed = client.get("/v1/evaluations", params={"dataset": "batched", "sort": "created_at"}).json()["items"]
    assert [one["id"] for one in listed] == made


def test_how_the_answer_is_written(client: httpx.Client) -> None:
    body = {"input": matrix_input(FOUR_CLASSES)}
    text = {"Accept": "text/markdown"}
    now = client.post("/v1/metrics/compute", json=body, headers=text)
    later = result(client, put_aside(client, "/v1/metrics/compute", body, headers=text))
    assert (later.headers["content-type"], later.text) == (now.headers["content-type"], now.text)
    refused = client.get(later.request.url, headers={"Accept": "application/json"})
    assert "text/markdown" in check_problem(refused, 406, "not_acceptable")["detail"]
    least = put_aside(client, "/v1/metrics/compute", body, headers={"Prefer": "return=minimal, respond-async"})
    assert set(result(client, least).json()) == {"id", "headline"}


def refused(client: httpx.Client, status: int, code: str, path: str, **arguments: Any) -> None:
    headers = LATER | {"Content-Type": "application/json"} | arguments.pop("headers", {})
    check_problem(client.post(path, headers=headers, **arguments), status, code)


def test_what_can_be_seen_at_once_is_refused_at_once(client: httpx.Client) -> None:
    before = client.get("/v1/jobs").json()
    path, unknown = "/v1/evaluations", "01900000-0000-7000-8000-00000000ffff"
    refused(client, 400, "bad_request", path, content=b"{")
    refused(client, 422, "invalid_request", path, content=b'{"input": 5}')
    refused(client, 415, "unsupported_media_type", path, content=b"{}", headers={"Content-Type": "text/plain"})
    refused(client, 406, "not_acceptable", path, json=evaluation(), headers={"Accept": "image/png"})
    refused(client, 422, "invalid_query", f"{path}?store=maybe", json=evaluation())
    refused(client, 422, "invalid_query", f"{path}?stor=true", json=evaluation())
    refused(client, 422, "invalid_path", f"{path}/no-id/projections", json=SHARES)
    refused(client, 413, "body_too_large", "/v1/comparisons", content=b" " * 1_200_000)
    refused(client, 413, "body_too_large", path, content=b" " * 17_000_000)
    half = b'--x\r\nContent-Disposition: form-data; name="evaluation"\r\n\r\n{}\r\n--x--\r\n'
    form = {"Content-Type": "multipart/form-data; boundary=x"}
    refused(client, 422, "invalid_request", path, content=half, headers=form)
    refused(client, 422, "invalid_request", f"{path}/{unknown}/projections", json={"prevalence": 5})
    assert client.get("/v1/jobs").json() == before


DEEPER: dict[str, tuple[str, Any, int]] = {
    "no names": ("/v1/evaluations", {"input": matrix_input([[5, 1], [2, 4]])}, 422),
    "not square": ("/v1/evaluations", evaluation(input=matrix_input([[5, 1], [2]])), 422),
    "in a large body": ("/v1/evaluations", evaluation(input=LARGE | {"y_pred": LARGE["y_pred"][1:]}), 422),
    "large and no JSON": ("/v1/metrics/compute", b"[" * 300_000, 400),
    "unknown": ("/v1/comparisons", {"evaluations": ["01900000-0000-7000-8000-00000000fff1", "$0"]}, 404),
    "metric": ("/v1/comparisons", TWO | {"metrics": ["h_men"]}, 422),
}


@pytest.mark.parametrize("name", DEEPER)
def test_other_faults_are_the_problem_of_the_job(client: httpx.Client, runs: list[str], name: str) -> None:
    path, body, status = DEEPER[name]
    sent: Any = {"content": body} if isinstance(body, bytes) else {"content": json.dumps(put_in(body, runs)).encode()}
    headers = {"Content-Type": "application/json", "X-Request-ID": f"deeper-{len(name)}"}
    now = client.post(path, headers=headers, **sent)
    job = client.post(path, headers=headers | LATER, **sent)
    assert job.status_code == 202, job.text
    found = ended(client, job.json())
    assert (found["status"], found["result"]) == ("failed", None)
    assert found["problem"]["status"] == status
    # The same as at once, and found in the log by the same id.
    assert found["problem"] == now.json()
    check_problem(client.get(f"/v1/jobs/{found['id']}/result"), 404, "not_found")


def test_jobs_are_listed(client: httpx.Client) -> None:
    made = [put_aside(client, "/v1/evaluations", evaluation())["id"] for _ in range(3)]
    page = client.get("/v1/jobs", params={"limit": 2}).json()
    assert [one["id"] for one in page["items"]] == [made[2], made[1]]
    after = client.get("/v1/jobs", params={"limit": 1, "cursor": page["next_cursor"]}).json()
    assert [one["id"] for one in after["items"]] == [made[0]]


def test_what_a_job_made_is_traced_to_who_sent_it(client: httpx.Client) -> None:
    job = put_aside(client, "/v1/evaluations", evaluation(), headers={"X-Request-ID": "traced-job"})
    made = result(client, job).json()["id"]
    entries = client.get("/v1/audit").json()["items"]
    told = {(one["action"], one["kind"], one["object"]) for one in entries if one.get("request_id") == "traced-job"}
    assert told == {("created", "job", job["id"]), ("created", "evaluation", made)}


def test_work_on_a_job_is_ended(client: httpx.Client) -> None:
    job = put_aside(client, "/v1/metrics/compute", SLOW)
    running(client, job)
    reply = client.delete(f"/v1/jobs/{job['id']}")
    assert (reply.status_code, reply.json()["status"]) == (202, "running")
    found = ended(client, job)
    assert (found["status"], found["result"], found["problem"]) == ("cancelled", None, None)
    problem = check_problem(client.delete(f"/v1/jobs/{job['id']}"), 409, "job_ended")
    assert problem["detail"].endswith("is cancelled")
    # And whoever worked on it is free again.
    result(client, put_aside(client, "/v1/evaluations", evaluation()))


# --- services that leave jobs to others ------------------------------------------------------------------------------

Serve = Callable[..., Served]


@pytest.fixture(scope="module")
def own_database(template_database: Template) -> Iterator[str]:
    name = f"jobs_{token_hex(8)}"
    template_database.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template_database.name}"')
    yield template_database.url(name)
    template_database.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def serve(own_database: str) -> Serve:
    """Makes services on one database, which nobody else works on."""

    def make(**settings: Any) -> Served:
        usual: dict[str, Any] = {"authentication": Authentication.off, "job_concurrency": 0, "job_lost_seconds": 1.0}
        return Served(Settings(database_url=SecretStr(own_database), **(usual | settings)))

    return make


@pytest.fixture
def waiting(serve: Serve) -> Iterator[httpx.Client]:
    with serve(job_limit_per_project=2, job_limit=3) as url, httpx.Client(base_url=url, timeout=60) as client:
        yield client
        for job in client.get("/v1/jobs").json()["items"]:
            client.delete(f"/v1/jobs/{job['id']}")


def test_a_job_that_waits_is_cancelled(waiting: httpx.Client) -> None:
    job = put_aside(waiting, "/v1/evaluations", evaluation(dataset="cancelled"))
    reply = waiting.delete(f"/v1/jobs/{job['id']}")
    assert (reply.status_code, reply.json()["status"]) == (200, "cancelled")
    assert read(waiting, job) == reply.json()
    assert waiting.get("/v1/evaluations", params={"dataset": "cancelled"}).json()["items"] == []


def test_more_jobs_than_may_wait_are_refused(waiting: httpx.Client) -> None:
    key = {"Idempotency-Key": "once"}
    taken = [put_aside(waiting, "/v1/evaluations", evaluation(), headers=some) for some in (key, {})]
    # That one waits already.
    again = waiting.post("/v1/evaluations", json=evaluation(), headers=LATER | key)
    assert (again.status_code, again.json()["id"]) == (202, taken[0]["id"])
    reply = waiting.post("/v1/evaluations", json=evaluation(), headers=LATER)
    check_problem(reply, 429, "too_many_jobs")
    assert reply.headers["retry-after"] == "10"
    # Before anybody looks at its body, which may be large.
    check_problem(waiting.post("/v1/evaluations", json={}, headers=LATER), 429, "too_many_jobs")
    # At once it is answered as ever.
    assert waiting.post("/v1/evaluations", json=evaluation()).status_code == 201
    other = {"X-Prevail-Project": "other"}
    assert waiting.post("/v1/evaluations", json=evaluation(), headers=LATER | other).status_code == 202
    check_problem(waiting.post("/v1/evaluations", json=evaluation(), headers=LATER | other), 503, "overloaded")
    (job,) = waiting.get("/v1/jobs", headers=other).json()["items"]
    check_problem(waiting.get(f"/v1/jobs/{job['id']}"), 404, "not_found")
    waiting.delete(f"/v1/jobs/{job['id']}", headers=other).raise_for_status()


@pytest.mark.slow
def test_jobs_outlive_the_service(serve: Serve) -> None:
    with serve() as url, httpx.Client(base_url=url) as client:
        jobs = [put_aside(client, "/v1/evaluations", evaluation(dataset="restarted")) for _ in range(3)]
    with serve(job_concurrency=2) as url, httpx.Client(base_url=url) as client:
        made = {result(client, job).json()["id"] for job in jobs}
        listed = client.get("/v1/evaluations", params={"dataset": "restarted"}).json()["items"]
        assert {one["id"] for one in listed} == made
        assert len(made) == 3


@pytest.mark.slow
def test_a_stop_gives_back_what_is_worked_on(serve: Serve) -> None:
    with serve(job_concurrency=1) as url, httpx.Client(base_url=url) as client:
        job = put_aside(client, "/v1/metrics/compute", SLOW)
        running(client, job)
    with serve() as url, httpx.Client(base_url=url) as client:
        assert read(client, job)["status"] == "queued"
        client.delete(f"/v1/jobs/{job['id']}").raise_for_status()


def test_jobs_that_ended_are_forgotten(serve: Serve) -> None:
    with serve(job_concurrency=1, job_keep_hours=1e-6) as url, httpx.Client(base_url=url) as client:
        job = client.post("/v1/evaluations", json=evaluation(dataset="forgotten"), headers=LATER).json()
        deadline = time.monotonic() + 30
        while client.get(f"/v1/jobs/{job['id']}").status_code != 404:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        # What it made stays.
        assert len(client.get("/v1/evaluations", params={"dataset": "forgotten"}).json()["items"]) == 1


# --- `prevail worker` ------------------------------------------------------------------------------------------------


@contextmanager
def worker(url: str) -> Iterator["subprocess.Popen[bytes]"]:
    settings = {"PREVAIL_DATABASE_URL": url, "PREVAIL_JOB_LOST_SECONDS": "1", "PREVAIL_JOB_CONCURRENCY": "1"}
    settings |= {"PREVAIL_SHUTDOWN_SECONDS": "1"}
    command = [sys.executable, "-m", "app", "worker"]
    process = subprocess.Popen(command, env=os.environ | settings, cwd=ROOT)
    try:
        yield process
    finally:
        process.kill()
        process.wait(timeout=30)


@pytest.mark.slow
def test_a_killed_worker_s_job_is_done_by_another_one(serve: Serve, own_database: str) -> None:
    with serve() as url, httpx.Client(base_url=url) as client:
        job = put_aside(client, "/v1/evaluations", evaluation(dataset="killed", **SOME))
        with worker(own_database) as first:
            running(client, job)
            first.kill()
            first.wait(timeout=30)
        assert read(client, job)["status"] == "running"
        with worker(own_database), worker(own_database):
            made = result(client, job).json()["id"]
            more = [put_aside(client, "/v1/evaluations", evaluation(dataset="shared")) for _ in range(10)]
            shared = {result(client, one).json()["id"] for one in more}
        assert [one["id"] for one in client.get("/v1/evaluations", params={"dataset": "killed"}).json()["items"]] == [
            made
        ]
        listed = client.get("/v1/evaluations", params={"dataset": "shared"}).json()["items"]
        assert {one["id"] for one in listed} == shared
        assert len(listed) == len(shared) == 10


@pytest.mark.slow
def test_a_worker_that_is_told_to_stop_leaves_its_job_to_others(serve: Serve, own_database: str) -> None:
    with serve() as url, httpx.Client(base_url=url) as client:
        job = put_aside(client, "/v1/metrics/compute", SLOW)
        with worker(own_database) as first:
            running(client, job)
            first.send_signal(signal.SIGTERM)
            assert first.wait(timeout=30) == 0
        assert read(client, job)["status"] == "queued"
        client.delete(f"/v1/jobs/{job['id']}").raise_for_status()


def test_a_worker_needs_a_database(tmp_path: Path) -> None:
    settings = {"PREVAIL_DATA_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "app", "worker"]
    said = subprocess.run(command, env=os.environ | settings, cwd=ROOT, capture_output=True, text=True, check=False)
    assert said.returncode == 1
    assert said.stderr.startswith("prevail: expected PREVAIL_DATABASE_URL, or a service that runs on the embedded")


def test_a_request_with_a_key_is_put_aside_once(client: httpx.Client) -> None:
    key = {"Idempotency-Key": "later-1"}
    first = put_aside(client, "/v1/evaluations", evaluation(dataset="keyed"), headers=key)
    made = result(client, first).json()["id"]
    again = client.post("/v1/evaluations", json=evaluation(dataset="keyed"), headers=LATER | key)
    assert (again.status_code, again.headers["idempotent-replayed"]) == (202, "true")
    assert again.json() == read(client, first)
    assert [one["id"] for one in client.get("/v1/evaluations", params={"dataset": "keyed"}).json()["items"]] == [made]
    reply = client.post("/v1/evaluations", json=evaluation(dataset="another"), headers=LATER | key)
    check_problem(reply, 422, "idempotency_key_reused")
