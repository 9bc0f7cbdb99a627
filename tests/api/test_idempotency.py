"""Requests with an `Idempotency-Key`, sent again and at the same time, to two replicas on one database."""

import gzip
import io
import json
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from pydantic import SecretStr

from app.services.evaluate.evaluations import EvaluationService
from app.settings import Authentication, Settings
from tests.api.answers import check_problem, evaluation
from tests.api.generated.kept import PROBABILITIES
from tests.api.jobs import LATER
from tests.api.keys import execute
from tests.serving import Served

Json = dict[str, Any]
PATH = "/v1/evaluations"


@pytest.fixture(scope="module")
def settings(database_url: str) -> Settings:
    # However busy the machine is, nobody is to be refused for having waited.
    return Settings(database_url=SecretStr(database_url), authentication=Authentication.off, admission_wait_seconds=60)


@pytest.fixture(scope="module")
def replica(settings: Settings) -> Iterator[httpx.Client]:
    """Another service on the same database."""
    with Served(settings) as url, httpx.Client(base_url=url, timeout=60) as opened:
        yield opened


@pytest.fixture
def project() -> str:
    return f"project-{secrets.token_hex(4)}"


@pytest.fixture
def headers(project: str) -> dict[str, str]:
    return {"Idempotency-Key": secrets.token_hex(8), "X-Prevail-Project": project}


def number(client: httpx.Client, project: str) -> int:
    return len(client.get(PATH, params={"limit": 200}, headers={"X-Prevail-Project": project}).json()["items"])


def check_replay(reply: httpx.Response, first: httpx.Response) -> None:
    """The first answer once more."""
    assert reply.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers
    assert (reply.status_code, reply.content) == (first.status_code, first.content)
    assert reply.headers.get("location") == first.headers.get("location")


def large() -> Json:
    """An evaluation whose body is computed by another process."""
    source = np.random.default_rng(7)
    truth, predicted = (source.integers(0, 3, 100_000).tolist() for _ in range(2))
    return evaluation(input={"kind": "predictions", "y_true": truth, "y_pred": predicted})


BODIES = {
    "matrix": evaluation(),
    "with samples": evaluation(input=PROBABILITIES),
    "without its samples": evaluation(input=PROBABILITIES, options={"retain": "none"}),
    "large": large(),
}


@pytest.mark.parametrize("name", BODIES)
def test_an_evaluation_is_made_once(
    client: httpx.Client, replica: httpx.Client, project: str, headers: dict[str, str], name: str
) -> None:
    body = BODIES[name]
    first = client.post(PATH, json=body, headers=headers)
    assert first.status_code == 201, first.text
    for server in (client, replica, client):
        check_replay(server.post(PATH, json=body, headers=headers), first)
    # How it is written is another matter.
    brief = replica.post(PATH, json=body, headers=headers, params={"fields": "id,headline"})
    assert brief.headers["idempotent-replayed"] == "true"
    assert brief.json() == {part: first.json()[part] for part in ("id", "headline")}
    narrow = {**headers, "Accept": "text/plain"}
    text = client.post(PATH, json=body, headers=narrow, params={"width": 70, "style": "unicode"})
    assert text.headers["idempotent-replayed"] == "true"
    assert number(client, project) == 1


def test_the_body_is_what_it_is_once_unpacked(client: httpx.Client, headers: dict[str, str]) -> None:
    text = json.dumps(evaluation()).encode()
    plain = {**headers, "Content-Type": "application/json"}
    first = client.post(PATH, content=text, headers=plain)
    packed = client.post(PATH, content=gzip.compress(text), headers={**plain, "Content-Encoding": "gzip"})
    check_replay(packed, first)


def test_a_form_is_told_by_its_parts(client: httpx.Client, replica: httpx.Client, headers: dict[str, str]) -> None:
    """Each form has a boundary of its own, which says nothing."""

    def send(server: httpx.Client, boundary: str, predicted: list[int], **others: str) -> httpx.Response:
        sink = io.BytesIO()
        pa.parquet.write_table(pa.table({"y_true": [0, 1, 1, 0], "y_pred": predicted}), sink)
        parts = {"evaluation": (None, json.dumps(evaluation() | {"input": {"kind": "predictions"}}))}
        files: Any = parts | {"data": ("data.parquet", sink.getvalue())}
        kind = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        return server.post(PATH, files=files, headers=headers | kind | others)

    first = send(client, "one", [0, 1, 0, 0])
    assert first.status_code == 201, first.text
    check_replay(send(replica, "two", [0, 1, 0, 0]), first)
    check_problem(send(client, "one", [0, 1, 1, 0]), 422, "idempotency_key_reused")
    # The same where it is answered later.
    later = LATER | {"Idempotency-Key": f"{headers['Idempotency-Key']}-later"}
    taken = send(client, "one", [0, 1, 0, 0], **later)
    assert taken.status_code == 202, taken.text
    again = send(replica, "two", [0, 1, 0, 0], **later)
    assert (again.status_code, again.headers["idempotent-replayed"]) == (202, "true")
    assert again.json()["id"] == taken.json()["id"]
    check_problem(send(client, "one", [0, 1, 1, 0], **later), 422, "idempotency_key_reused")


def test_another_request_is_refused(client: httpx.Client, replica: httpx.Client, headers: dict[str, str]) -> None:
    first = client.post(PATH, json=evaluation(), headers=headers)
    assert first.status_code == 201
    for path, body, params in (
        (PATH, evaluation(model="other"), {}),
        (PATH, evaluation(), {"store": "false"}),
        ("/v1/comparisons", {"evaluations": [first.json()["id"]]}, {}),
        ("/v1/evaluations/batch", {"evaluations": [evaluation()]}, {}),
    ):
        reply = replica.post(path, json=body, headers=headers, params=params)
        problem = check_problem(reply, 422, "idempotency_key_reused")
        assert headers["Idempotency-Key"] in problem["detail"]
    check_replay(client.post(PATH, json=evaluation(), headers=headers), first)


@pytest.mark.parametrize("key", ["", "a b", "é", "x" * 256])
def test_what_is_no_key(client: httpx.Client, project: str, key: str) -> None:
    asked = [(b"Idempotency-Key", key.encode("latin-1")), (b"X-Prevail-Project", project.encode())]
    problem = check_problem(client.post(PATH, json=evaluation(), headers=asked), 422, "invalid_query")
    assert [(one["parameter"], one["code"]) for one in problem["errors"]] == [
        ("Idempotency-Key", "invalid_idempotency_key")
    ]
    assert number(client, project) == 0


def test_keys_of_all_lengths(client: httpx.Client, project: str) -> None:
    for key in ("!", "~" * 255, '"8e03978e-40d5-43dd-bc93-6894a57f9324"'):
        asked = {"Idempotency-Key": key, "X-Prevail-Project": project}
        first = client.post(PATH, json=evaluation(), headers=asked)
        assert first.status_code == 201
        check_replay(client.post(PATH, json=evaluation(), headers=asked), first)
    twice = [("Idempotency-Key", "a"), ("Idempotency-Key", "b"), ("X-Prevail-Project", project)]
    problem = check_problem(client.post(PATH, json=evaluation(), headers=twice), 422, "invalid_query")
    assert problem["errors"][0]["code"] == "repeated_header"


def test_at_the_same_time_it_is_made_once(
    client: httpx.Client, replica: httpx.Client, project: str, headers: dict[str, str]
) -> None:
    """Many at once, at both replicas, each until it has an answer."""

    def send(place: int) -> httpx.Response:
        while True:
            server = (client, replica)[place % 2]
            reply = server.post(PATH, json=evaluation(), headers=headers)
            if reply.status_code != 409:
                return reply
            check_problem(reply, 409, "idempotency_key_in_flight")
            assert reply.headers["retry-after"] == "1"

    with ThreadPoolExecutor(12) as pool:
        replies = list(pool.map(send, range(24)))
    assert {reply.status_code for reply in replies} == {201}
    assert len({reply.content for reply in replies}) == 1
    assert sum("idempotent-replayed" not in reply.headers for reply in replies) == 1
    assert number(client, project) == 1


def claim(database_url: str, headers: dict[str, str], fingerprint: bytes, until: str) -> None:
    """As a process leaves it that is at work, or ended at it."""
    execute(
        database_url,
        "INSERT INTO idempotency_claims (project, key, claim, fingerprint, leased_until) "
        f"VALUES (:project, :key, gen_random_uuid(), :fingerprint, now() + interval '{until}')",
        project=headers["X-Prevail-Project"],
        key=headers["Idempotency-Key"],
        fingerprint=fingerprint,
    )


def test_a_claim_ends_with_its_lease(client: httpx.Client, database_url: str, headers: dict[str, str]) -> None:
    claim(database_url, headers, b"another request", "1 hour")
    # It is another request that is under way.
    check_problem(client.post(PATH, json=evaluation(), headers=headers), 422, "idempotency_key_reused")
    execute(
        database_url,
        "UPDATE idempotency_claims SET leased_until = now() WHERE key = :key",
        key=headers["Idempotency-Key"],
    )
    # Its process is gone, and it has kept nothing.
    assert client.post(PATH, json=evaluation(), headers=headers).status_code == 201


@pytest.mark.parametrize("name", ["matrix", "large"])
def test_a_process_that_ended_before_it_kept_anything(
    client: httpx.Client, replica: httpx.Client, database_url: str, project: str, headers: dict[str, str], name: str
) -> None:
    body = BODIES[name]
    # What a request like this one would have claimed it with.
    client.post(PATH, json=body, headers=headers)
    execute(
        database_url,
        "WITH gone AS (DELETE FROM idempotency_results WHERE key = :key RETURNING *) "
        "INSERT INTO idempotency_claims SELECT gen_random_uuid(), now() + interval '1 hour', project, key, fingerprint "
        "FROM gone",
        key=headers["Idempotency-Key"],
    )
    before = number(client, project)
    for server in (client, replica):
        check_problem(server.post(PATH, json=body, headers=headers), 409, "idempotency_key_in_flight")
    assert number(client, project) == before
    execute(
        database_url,
        "UPDATE idempotency_claims SET leased_until = now() WHERE key = :key",
        key=headers["Idempotency-Key"],
    )
    made = replica.post(PATH, json=body, headers=headers)
    assert made.status_code == 201
    check_replay(client.post(PATH, json=body, headers=headers), made)
    assert number(client, project) == before + 1


def test_who_was_quicker_is_answered(
    client: httpx.Client,
    replica: httpx.Client,
    database_url: str,
    project: str,
    headers: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A lease that is over while its work goes on: both come to their end, and one of them is saved."""
    keep = EvaluationService.keep
    replies: list[httpx.Response | None] = []

    async def overtaken(service: EvaluationService, project: str, record: Any) -> None:
        if not replies:
            replies.append(None)
            execute(database_url, "DELETE FROM idempotency_claims")
            # In a thread: this one serves the first.
            with ThreadPoolExecutor(1) as pool:
                replies[0] = pool.submit(replica.post, PATH, json=evaluation(), headers=headers).result()
        await keep(service, project, record)

    monkeypatch.setattr(EvaluationService, "keep", overtaken)
    slow = client.post(PATH, json=evaluation(), headers=headers)
    assert replies[0] is not None
    check_replay(slow, replies[0])
    assert number(client, project) == 1


def test_what_was_refused_has_used_no_key(client: httpx.Client, project: str, headers: dict[str, str]) -> None:
    for body in ({}, evaluation() | {"input": {"kind": "confusion_matrix", "matrix": [[1]]}}, {"input": None}):
        assert client.post(PATH, json=body, headers=headers).status_code == 422
    assert client.post(PATH, content=b"{", headers=headers).status_code == 415
    kept_nothing = client.post(PATH, json=evaluation(), headers=headers, params={"store": "false"})
    assert kept_nothing.status_code == 200
    assert client.post(PATH, json=evaluation(), headers=headers).status_code == 201
    assert number(client, project) == 1


def test_keys_are_the_projects_own(client: httpx.Client, headers: dict[str, str]) -> None:
    first = client.post(PATH, json=evaluation(), headers=headers)
    other = headers | {"X-Prevail-Project": headers["X-Prevail-Project"] + "x"}
    reply = client.post(PATH, json=evaluation(model="of the other"), headers=other)
    assert reply.status_code == 201
    assert reply.json()["id"] != first.json()["id"]
    check_replay(client.post(PATH, json=evaluation(), headers=headers), first)


def test_what_was_deleted_is_not_made_again(client: httpx.Client, project: str, headers: dict[str, str]) -> None:
    first = client.post(PATH, json=evaluation(), headers=headers)
    there = {"X-Prevail-Project": project}
    assert client.delete(first.headers["location"], headers=there).status_code == 204
    problem = check_problem(client.post(PATH, json=evaluation(), headers=headers), 410, "result_deleted")
    assert first.json()["id"] in problem["detail"]
    assert number(client, project) == 0


def test_a_key_that_has_expired_is_a_new_one(
    client: httpx.Client, database_url: str, project: str, headers: dict[str, str]
) -> None:
    client.post(PATH, json=evaluation(), headers=headers)
    execute(
        database_url,
        "UPDATE idempotency_results SET expires_at = now() WHERE key = :key",
        key=headers["Idempotency-Key"],
    )
    again = client.post(PATH, json=evaluation(model="other"), headers=headers)
    assert again.status_code == 201
    check_replay(client.post(PATH, json=evaluation(model="other"), headers=headers), again)
    assert number(client, project) == 2


# --- batches ---------------------------------------------------------------------------------------------------------

BATCH = "/v1/evaluations/batch"


def batch(size: int) -> Json:
    return {"evaluations": [evaluation(model=f"m{place}") for place in range(size)]}


def test_a_batch_is_kept_once(
    client: httpx.Client, replica: httpx.Client, project: str, headers: dict[str, str]
) -> None:
    first = client.post(BATCH, json=batch(5), headers=headers)
    assert first.status_code == 207
    check_replay(replica.post(BATCH, json=batch(5), headers=headers), first)
    check_problem(client.post(BATCH, json=batch(4), headers=headers), 422, "idempotency_key_reused")
    assert number(client, project) == 5


def test_a_batch_goes_on_where_it_ended(
    client: httpx.Client, replica: httpx.Client, database_url: str, project: str, headers: dict[str, str]
) -> None:
    first = client.post(BATCH, json=batch(6), headers=headers)
    kept = [item["evaluation"]["id"] for item in first.json()["items"]]
    # As if the process had ended after four of six.
    for identifier in kept[4:]:
        execute(database_url, "DELETE FROM evaluations WHERE id = :id", id=identifier)
        execute(database_url, "DELETE FROM idempotency_results WHERE object = :id", id=identifier)
    again = replica.post(BATCH, json=batch(6), headers=headers)
    assert "idempotent-replayed" not in again.headers
    items = again.json()["items"]
    assert [item["status"] for item in items] == [201] * 6
    assert [item["evaluation"]["id"] for item in items[:4]] == kept[:4]
    assert not {item["evaluation"]["id"] for item in items[4:]} & set(kept)
    assert number(client, project) == 6


def test_what_failed_in_a_batch_is_tried_again(client: httpx.Client, project: str, headers: dict[str, str]) -> None:
    body = batch(3)
    body["evaluations"][1]["input"]["matrix"] = [[1]]
    first = client.post(BATCH, json=body, headers=headers)
    assert [item["status"] for item in first.json()["items"]] == [201, 422, 201]
    again = client.post(BATCH, json=body, headers=headers)
    assert again.headers["idempotent-replayed"] == "true"
    assert [item["status"] for item in again.json()["items"]] == [201, 422, 201]
    identifier = first.json()["items"][0]["evaluation"]["id"]
    client.delete(f"{PATH}/{identifier}", headers={"X-Prevail-Project": project})
    items = client.post(BATCH, json=body, headers=headers).json()["items"]
    assert [item["status"] for item in items] == [410, 422, 201]
    assert items[0]["problem"]["code"] == "result_deleted"
    assert number(client, project) == 1


def test_batches_at_the_same_time_are_kept_once(
    client: httpx.Client, replica: httpx.Client, database_url: str, project: str, headers: dict[str, str]
) -> None:
    """Nobody holds the other off: what each of them keeps is kept once all the same."""

    def send(place: int) -> httpx.Response:
        while True:
            execute(database_url, "DELETE FROM idempotency_claims")
            reply = (client, replica)[place % 2].post(BATCH, json=batch(20), headers=headers)
            if reply.status_code != 409:
                return reply

    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(send, range(4)))
    assert {reply.status_code for reply in replies} == {207}
    for reply in replies:
        assert {item["status"] for item in reply.json()["items"]} == {201}, reply.text[-2000:]
    ids = {tuple(item["evaluation"]["id"] for item in reply.json()["items"]) for reply in replies}
    assert len(ids) == 1
    assert number(client, project) == 20


# --- what else is made -----------------------------------------------------------------------------------------------


def test_gates_checks_and_comparisons(
    client: httpx.Client, replica: httpx.Client, project: str, headers: dict[str, str]
) -> None:
    there = {"X-Prevail-Project": project}
    runs = [client.post(PATH, json=evaluation(), headers=there).json()["id"] for _ in range(2)]
    gate = {"rules": [{"metric": "h_mean", "min": 0.5}]}
    put = client.put("/v1/gates/g", json=gate, headers=headers | {"Idempotency-Key": "gate"})
    assert put.status_code == 201
    # Somebody has changed it since: a late repetition does not change it back.
    changed = {"rules": [{"metric": "h_mean", "min": 0.6}]}
    assert client.put("/v1/gates/g", json=changed, headers=there).status_code == 200
    check_replay(replica.put("/v1/gates/g", json=gate, headers=headers | {"Idempotency-Key": "gate"}), put)
    assert client.get("/v1/gates/g", headers=there).json()["version"] == "2"
    same = headers | {"Idempotency-Key": "unchanged"}
    unchanged = client.put("/v1/gates/g", json=changed, headers=same)
    assert unchanged.status_code == 200
    check_replay(client.put("/v1/gates/g", json=changed, headers=same), unchanged)
    for path, body in (("/v1/gates/g/checks", {"evaluation": runs[0]}), ("/v1/comparisons", {"evaluations": runs})):
        keyed = headers | {"Idempotency-Key": path}
        first = client.post(path, json=body, headers=keyed)
        assert first.status_code == 201, first.text
        check_replay(replica.post(path, json=body, headers=keyed), first)
        assert len(client.get(path, headers=there).json()["items"]) == 1


def test_what_was_shown_once_is_not_shown_again(client: httpx.Client, headers: dict[str, str]) -> None:
    body = {"name": "ci", "scopes": ["read"]}
    made = client.post("/v1/keys", json=body, headers=headers)
    assert made.status_code == 201
    problem = check_problem(client.post("/v1/keys", json=body, headers=headers), 409, "shown_once")
    assert made.json()["id"] in problem["detail"]
    listed = client.get("/v1/keys", headers={"X-Prevail-Project": headers["X-Prevail-Project"]}).json()["items"]
    assert [one["id"] for one in listed] == [made.json()["id"]]


def test_a_webhook_is_answered_again_but_not_a_secret_that_was_made(
    client: httpx.Client, headers: dict[str, str]
) -> None:
    there = {"X-Prevail-Project": headers["X-Prevail-Project"]}
    hook = {"url": "https://hooks.example/", "events": ["gate.checked"]}
    assert client.put("/v1/webhooks/made", json=hook, headers=headers).status_code == 201
    assert (
        "made"
        in check_problem(client.put("/v1/webhooks/made", json=hook, headers=headers), 409, "shown_once")["detail"]
    )
    own, keyed = hook | {"secret": "whsec_" + 32 * "A"}, there | {"Idempotency-Key": "own"}
    first = client.put("/v1/webhooks/own", json=own, headers=keyed)
    assert first.status_code == 201
    check_replay(client.put("/v1/webhooks/own", json=own, headers=keyed), first)
    assert client.delete("/v1/webhooks/own", headers=there).status_code == 204
    check_problem(client.put("/v1/webhooks/own", json=own, headers=keyed), 410, "result_deleted")


def test_a_gate_that_was_deleted_is_not_answered_again(client: httpx.Client, headers: dict[str, str]) -> None:
    there = {"X-Prevail-Project": headers["X-Prevail-Project"]}
    gate = {"rules": [{"metric": "h_mean", "min": 0.5}]}
    first = client.put("/v1/gates/g", json=gate, headers=headers)
    assert client.delete("/v1/gates/g", headers=there).status_code == 204
    check_problem(client.put("/v1/gates/g", json=gate, headers=headers), 410, "result_deleted")
    assert client.put("/v1/gates/g", json=gate, headers=there).json()["version"] == "3"
    assert client.put("/v1/gates/g", json=gate, headers=headers).json() == first.json()


def test_where_nothing_is_kept_a_key_says_nothing(client: httpx.Client, headers: dict[str, str]) -> None:
    for body in ({"input": evaluation()["input"]}, {"input": {"kind": "confusion_matrix", "matrix": [[7, 1], [2, 4]]}}):
        reply = client.post("/v1/metrics/compute", json=body, headers=headers)
        assert reply.status_code == 200
        assert "idempotent-replayed" not in reply.headers
