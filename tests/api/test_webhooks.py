"""Webhooks: put, told, signed, sent again; what they may reach."""

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID

import httpx
import pytest
import standardwebhooks
from pydantic import SecretStr

from app.domain.identifiers import time_of
from app.domain.operations import Delivery, DeliveryRetry, WebhookFacts, WebhookPut
from app.settings import Authentication, Settings
from tests.api.answers import Json, check_problem, check_shape, evaluation
from tests.api.jobs import ended, put_aside
from tests.serving import Served

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
RULES = {"rules": [{"metric": "h_mean", "min": 0.5}]}
UNKNOWN = [f"01900000-0000-7000-8000-00000000000{place}" for place in (1, 2)]
Told = tuple[dict[str, str], bytes]


class Receiver:
    """Somebody who is told, and remembers it.

    Attributes:
        told: The headers and the body of each request.
        answers: What is answered to each in turn: a status, and headers; 204 when there is nothing left.
    """

    def __init__(self) -> None:
        self.told: list[Told] = []
        self.answers: list[tuple[int, dict[str, str]]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                status, headers = receiver.answers.pop(0) if receiver.answers else (204, {})
                receiver.told.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(status)
                for name, value in {"Content-Length": "0", **headers}.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/in?team=risk"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.server.shutdown()


@pytest.fixture(scope="module")
def impatient() -> Iterator[None]:
    """Nothing is remembered of who wants to be told, and no pause is waited for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.services.known.KNOWN_SECONDS", 0.0)
        patch.setattr("app.services.webhooks.PAUSES", (0,) * 8)
        patch.setattr("app.store.queue._POLL_SECONDS", 0.05)
        yield


@pytest.fixture(scope="module")
def settings(database_url: str, impatient: None) -> Settings:
    return Settings(
        database_url=SecretStr(database_url),
        authentication=Authentication.off,
        webhook_private_addresses=True,
        webhook_limit_per_project=2,
    )


@pytest.fixture(scope="module")
def replica(settings: Settings) -> Iterator[httpx.Client]:
    """Another service on the same database, which sends as well."""
    with Served(settings) as url, httpx.Client(base_url=url, timeout=60) as opened:
        yield opened


@pytest.fixture
def there() -> dict[str, str]:
    """A project of its own."""
    return {"X-Prevail-Project": f"project-{secrets.token_hex(4)}"}


def put(client: httpx.Client, there: dict[str, str], url: str, *events: str, **members: Any) -> Json:
    body = {"url": url, "events": list(events), **members}
    reply = client.put("/v1/webhooks/hook", json=body, headers=there)
    assert reply.status_code in (200, 201), reply.text
    check_shape(reply, WebhookPut)
    answer: Json = reply.json()
    return answer


def create(client: httpx.Client, there: dict[str, str], **members: Any) -> Json:
    reply = client.post("/v1/evaluations", json=evaluation(**members), headers=there)
    assert reply.status_code == 201, reply.text
    made: Json = reply.json()
    return made


def test_a_change_of_a_model_is_told_at_the_evaluation_where_it_is_claimed(
    client: httpx.Client, there: dict[str, str], receiver: Receiver
) -> None:
    """Once, with the words of the history; a model that stays as it is tells nothing."""
    put(client, there, receiver.url, "model.changed", "evaluation.created")
    steady, worse = [[450, 50], [50, 450]], [[450, 50], [150, 350]]
    kept = []
    for place in range(8):
        for model in ("steady", "worse"):
            matrix = worse if model == "worse" and place > 3 else steady
            given = {"kind": "confusion_matrix", "labels": ["0", "1"], "matrix": matrix}
            kept.append(create(client, there, model=model, dataset="weeks", input=given)["id"])
    (change,) = client.get("/v1/models/worse/history", params={"dataset": "weeks"}, headers=there).json()["changes"]
    wait_for(lambda: len(receiver.told) == len(kept) + 1)
    said = [(headers["webhook-id"], json.loads(body)) for headers, body in receiver.told]
    assert len({one for one, _ in said}) == len(said)
    ((identifier, told),) = [one for one in said if one[1]["type"] == "model.changed"]
    # Of the same moment: by it deliveries are listed.
    assert time_of(UUID(identifier)) == time_of(UUID(change["claimed_at"]))
    assert told["data"]["evaluation"]["id"] == change["claimed_at"]
    assert told["data"]["change"] == change
    assert told["text"].startswith("worse")
    assert "the model itself got worse: h_mean fell" in told["text"]
    assert not client.get("/v1/models/steady/history", params={"dataset": "weeks"}, headers=there).json()["changes"]


def deliveries(client: httpx.Client, there: dict[str, str], **filters: str) -> list[Json]:
    reply = client.get("/v1/webhooks/hook/deliveries", headers=there, params=filters)
    assert reply.status_code == 200, reply.text
    items: list[Json] = reply.json()["items"]
    for item in items:
        check_shape(item, Delivery)
    return items


def settled(client: httpx.Client, there: dict[str, str], number: int = 1) -> list[Json]:
    """So many deliveries, once none of them waits."""

    def done() -> bool:
        found = deliveries(client, there)
        return len(found) == number and all(one["status"] != "pending" for one in found)

    wait_for(done)
    return deliveries(client, there)


def test_a_webhook_is_put_read_and_deleted(client: httpx.Client, there: dict[str, str]) -> None:
    body = {"url": "https://hooks.example/in", "events": ["gate.checked", "gate.checked"]}
    made = client.put("/v1/webhooks/hook", json=body, headers=there)
    assert made.status_code == 201
    assert made.headers["location"] == "/v1/webhooks/hook"
    assert made.headers["cache-control"] == "no-store"
    secret = made.json()["secret"]
    assert secret.startswith("whsec_")
    read = client.get("/v1/webhooks/hook", headers=there)
    check_shape(read, WebhookFacts)
    assert read.json() == {name: value for name, value in made.json().items() if name != "secret"}
    assert read.json()["events"] == ["gate.checked"]
    assert client.get("/v1/webhooks", headers=there).json() == {"items": [read.json()], "next_cursor": None}
    changed = client.put("/v1/webhooks/hook", json=body | {"url": "https://other.example/"}, headers=there)
    assert changed.status_code == 200
    assert changed.json() == read.json() | {"url": "https://other.example/"}
    assert secret not in client.get("/v1/webhooks", headers=there).text
    assert client.delete("/v1/webhooks/hook", headers=there).status_code == 204
    for path in ("/v1/webhooks/hook", "/v1/webhooks/hook/deliveries"):
        check_problem(client.get(path, headers=there), 404, "not_found")
    check_problem(client.delete("/v1/webhooks/hook", headers=there), 404, "not_found")
    actions = [(one["action"], one["kind"]) for one in client.get("/v1/audit", headers=there).json()["items"]]
    assert actions == [(action, "webhook") for action in ("deleted", "changed", "created")]


def test_a_project_has_so_many_webhooks_and_no_more(client: httpx.Client, there: dict[str, str]) -> None:
    body = {"url": "https://hooks.example/prevail", "events": ["gate.checked"]}

    def answer(name: str, project: dict[str, str] = there) -> httpx.Response:
        return client.put(f"/v1/webhooks/{name}", json=body, headers=project)

    assert [answer(name).status_code for name in ("first", "second")] == [201, 201]
    refused = answer("third")
    check_problem(refused, 409, "too_many_webhooks")
    assert "at most 2 webhooks of the project" in refused.json()["detail"]
    assert [one["name"] for one in client.get("/v1/webhooks", headers=there).json()["items"]] == ["first", "second"]
    # What there is may change, and others have webhooks of their own.
    assert answer("second").status_code == 200
    assert answer("third", {"X-Prevail-Project": f"{there['X-Prevail-Project']}-b"}).status_code == 201
    assert client.delete("/v1/webhooks/first", headers=there).status_code == 204
    assert answer("third").status_code == 201


def test_what_cannot_be_a_webhook(client: httpx.Client, there: dict[str, str]) -> None:
    good = {"url": "https://hooks.example/in", "events": ["gate.checked"]}
    for body, pointer in (
        ({"url": "ftp://hooks.example/in"}, "/url"),
        ({"url": "https://"}, "/url"),
        ({"url": "https://user:password@hooks.example/"}, "/url"),
        ({"url": "https://hooks.example/#part"}, "/url"),
        ({"url": "https://hooks.example:99999/"}, "/url"),
        ({"url": "https://hooks.example/a b"}, "/url"),
        ({"url": "https://[::1/"}, "/url"),
        ({"events": []}, "/events"),
        ({"events": ["run.created"]}, "/events/0"),
        ({"events": ["webhook.test"]}, "/events/0"),
        ({"secret": "secret"}, "/secret"),
        ({"secret": "whsec_c2hvcnQ="}, "/secret"),
        ({"secret": "whsec_" + "?" * 40}, "/secret"),
    ):
        reply = client.put("/v1/webhooks/hook", json=good | body, headers=there)
        assert reply.status_code == 422, body
        assert [one["pointer"] for one in reply.json()["errors"]] == [pointer]
    assert client.get("/v1/webhooks", headers=there).json()["items"] == []


def test_an_evaluation_is_told(
    client: httpx.Client, replica: httpx.Client, receiver: Receiver, there: dict[str, str]
) -> None:
    """Once, though two services send; signed as any receiver of Standard Webhooks checks it."""
    secret = put(client, there, receiver.url, "evaluation.created")["secret"]
    made = [create(server, there, tags={"run": str(place)}) for place, server in enumerate([client, replica] * 3)]
    found = settled(client, there, len(made))
    assert {(one["status"], one["attempts"], one["response_status"]) for one in found} == {("delivered", 1, 204)}
    assert [one["id"] for one in found] == sorted((one["id"] for one in made), reverse=True)
    bodies = {}
    for headers, body in receiver.told:
        assert standardwebhooks.Webhook(secret).verify(body, headers) == json.loads(body)
        assert headers["content-type"] == "application/json"
        bodies[headers["webhook-id"]] = json.loads(body)
    assert len(receiver.told) == len(made)
    assert bodies.keys() == {one["id"] for one in made}
    for one in made:
        said = bodies[one["id"]]
        assert said["type"] == "evaluation.created"
        assert said["timestamp"] == one["created_at"]
        assert said["text"] == f"Evaluated {one['model']['name']} on {one['dataset']['name']}."
        data = said["data"]
        assert data["project"] == there["X-Prevail-Project"]
        assert data["evaluation"] == {
            "url": f"/v1/evaluations/{one['id']}",
            **{name: one[name] for name in ("id", "model", "dataset", "tags")},
        }
        assert data["values"]["h_mean"] == one["metrics"]["prevalence_insensitive"]["h_mean"]


def test_what_is_kept_with_its_samples_and_under_a_key_is_told(
    client: httpx.Client, receiver: Receiver, there: dict[str, str]
) -> None:
    put(client, there, receiver.url, "evaluation.created", secret=SECRET)
    source = {"kind": "predictions", "y_true": [0, 1, 1], "y_pred": [0, 1, 0], "sample_ids": [1, 2, 3]}
    ids = []
    for place, body in enumerate((evaluation(), evaluation(input=source))):
        for _ in range(2):
            reply = client.post("/v1/evaluations", json=body, headers=there | {"Idempotency-Key": str(place)})
            ids.append(reply.json()["id"])
    settled(client, there, 2)
    assert {headers["webhook-id"] for headers, _ in receiver.told} == set(ids)
    assert len(receiver.told) == len(set(ids)) == 2
    # The one given is the one that signs.
    for headers, told in receiver.told:
        standardwebhooks.Webhook(SECRET).verify(told, headers)


def test_a_check_is_told_to_those_who_want_it(client: httpx.Client, receiver: Receiver, there: dict[str, str]) -> None:
    put(client, there, receiver.url, "gate.checked")
    client.put("/v1/gates/g", json=RULES, headers=there)
    run = create(client, there)["id"]
    check = client.post("/v1/gates/g/checks", json={"evaluation": run}, headers=there).json()
    assert [one["event"] for one in settled(client, there)] == ["gate.checked"]
    ((headers, body),) = receiver.told
    said = json.loads(body)
    assert headers["webhook-id"] == check["id"]
    assert said["type"] == "gate.checked"
    named = f"{check['evaluation']['model']['name']} on {check['evaluation']['dataset']['name']}"
    open_rules = [one["message"] for one in check["results"] if one["verdict"] != "pass"]
    assert said["text"] == " ".join([f"Gate g: {check['verdict']} for {named}.", *open_rules])
    assert said["data"] == {
        "project": there["X-Prevail-Project"],
        "check": {"id": check["id"], "url": f"/v1/gates/g/checks/{check['id']}"},
        "gate": {"name": "g", "url": "/v1/gates/g", "version": "1"},
        "evaluation": {name: check["evaluation"][name] for name in ("id", "url", "model", "dataset", "tags")},
        "baseline": None,
        "verdict": check["verdict"],
        "messages": [one["message"] for one in check["results"]],
    }


def test_the_end_of_a_job_is_told(client: httpx.Client, receiver: Receiver, there: dict[str, str]) -> None:
    put(client, there, receiver.url, "job.finished", "evaluation.created")
    with httpx.Client(base_url=client.base_url, headers=there, timeout=60) as inside:
        good = ended(inside, put_aside(inside, "/v1/evaluations", evaluation()))
        bad = ended(inside, put_aside(inside, "/v1/comparisons", {"evaluations": UNKNOWN}))
    settled(client, there, 3)
    said = [json.loads(body) for _, body in receiver.told]
    jobs = {one["data"]["job"]["id"]: one for one in said if one["type"] == "job.finished"}
    assert jobs.keys() == {good["id"], bad["id"]}
    for job in (good, bad):
        told = jobs[job["id"]]
        assert told["timestamp"] == job["finished_at"]
        assert told["text"] == f"Job {job['id']} ({job['kind']}): {job['status']}."
        assert told["data"] == {
            "project": there["X-Prevail-Project"],
            "job": {"id": job["id"], "url": f"/v1/jobs/{job['id']}"},
            **{name: job[name] for name in ("kind", "status", "result", "problem")},
        }
    assert [good["status"], bad["status"]] == ["succeeded", "failed"]
    named = [one["data"]["evaluation"] for one in said if one["type"] == "evaluation.created"]
    assert [one["url"] for one in named] == [good["result"]]


def test_what_was_refused_is_told_to_nobody(client: httpx.Client, receiver: Receiver, there: dict[str, str]) -> None:
    put(client, there, receiver.url, "evaluation.created", "gate.checked")
    client.post("/v1/evaluations", json={**evaluation(), "input": {"kind": "confusion_matrix"}}, headers=there)
    client.post("/v1/evaluations", json=evaluation(), params={"store": "false"}, headers=there)
    create(client, {"X-Prevail-Project": there["X-Prevail-Project"] + "x"})
    assert deliveries(client, there) == []


def test_a_failure_is_sent_again_and_seen(client: httpx.Client, receiver: Receiver, there: dict[str, str]) -> None:
    put(client, there, receiver.url, "evaluation.created", secret=SECRET)
    receiver.answers = [(300, {}), (503, {}), (200, {})]
    made = create(client, there)
    (one,) = settled(client, there)
    assert (one["id"], one["status"], one["attempts"]) == (made["id"], "delivered", 3)
    assert (one["response_status"], one["error"], one["next_attempt_at"]) == (200, None, None)
    assert one["delivered_at"] is not None
    # The same message each time, signed each time.
    assert len(receiver.told) == 3
    assert len({body for _, body in receiver.told}) == len({head["webhook-id"] for head, _ in receiver.told}) == 1
    for headers, body in receiver.told:
        standardwebhooks.Webhook(SECRET).verify(body, headers)


def test_a_test_arrives_whatever_is_heard(client: httpx.Client, receiver: Receiver, there: dict[str, str]) -> None:
    put(client, there, receiver.url, "job.finished", secret=SECRET)
    asked = client.post("/v1/webhooks/hook/tests", headers=there | {"Idempotency-Key": "once"})
    assert asked.status_code == 202
    check_shape(asked, DeliveryRetry)
    assert client.post("/v1/webhooks/hook/tests", headers=there | {"Idempotency-Key": "once"}).json() == asked.json()
    (one,) = settled(client, there)
    assert (one["id"], one["event"], one["status"]) == (asked.json()["id"], "webhook.test", "delivered")
    ((headers, body),) = receiver.told
    told = standardwebhooks.Webhook(SECRET).verify(body, headers)
    assert (told["type"], told["data"]["webhook"]) == ("webhook.test", {"name": "hook", "url": "/v1/webhooks/hook"})
    assert "A test of the webhook hook" in told["text"]
    check_problem(client.post("/v1/webhooks/nope/tests", headers=there), 404, "not_found")


def test_there_is_an_end_and_a_new_beginning(client: httpx.Client, receiver: Receiver, there: dict[str, str]) -> None:
    put(client, there, receiver.url, "evaluation.created")
    receiver.answers = [(503, {})] * 9
    identifier = create(client, there)["id"]
    (one,) = settled(client, there)
    assert (one["status"], one["attempts"], one["next_attempt_at"], one["delivered_at"]) == ("failed", 9, None, None)
    assert (one["response_status"], one["error"]) == (503, "expected a status of 200 to 299, got 503")
    assert len(receiver.told) == 9
    assert deliveries(client, there, status="failed") == [one]
    assert deliveries(client, there, status="delivered") == []
    retries = f"/v1/webhooks/hook/deliveries/{identifier}/retries"
    again = client.post(retries, headers=there)
    assert again.status_code == 202
    check_shape(again, DeliveryRetry)
    told = {"name": "hook", "url": "/v1/webhooks/hook"}
    assert again.json() == {"id": identifier, "webhook": told, "event": "evaluation.created"}
    (one,) = settled(client, there)
    assert (one["status"], one["attempts"], one["error"]) == ("delivered", 1, None)
    # Once more, though it has arrived.
    client.post(retries, headers=there).raise_for_status()
    settled(client, there)
    assert len(receiver.told) == 11
    entries = client.get("/v1/audit", headers=there).json()["items"]
    retried = [one["object"] for one in entries if (one["action"], one["kind"]) == ("retried", "delivery")]
    assert retried == [identifier] * 2
    unknown = identifier[:-4] + "0000"
    check_problem(client.post(retries.replace(identifier, unknown), headers=there), 404, "not_found")


def test_nobody_is_led_elsewhere(client: httpx.Client, receiver: Receiver, there: dict[str, str]) -> None:
    """A redirect is an answer like any other that is not good; who says 410 is not asked again."""
    put(client, there, receiver.url, "evaluation.created")
    elsewhere = Receiver()
    receiver.answers = [(307, {"Location": elsewhere.url, "Set-Cookie": "a=b"}), (410, {})]
    create(client, there)
    (one,) = settled(client, there)
    assert (one["status"], one["attempts"], one["response_status"]) == ("failed", 2, 410)
    assert elsewhere.told == []
    assert "cookie" not in receiver.told[1][0]
    elsewhere.server.shutdown()


def test_a_deleted_webhook_is_told_nothing_more(
    client: httpx.Client, receiver: Receiver, there: dict[str, str]
) -> None:
    put(client, there, receiver.url, "evaluation.created")
    create(client, there)
    settled(client, there)
    client.delete("/v1/webhooks/hook", headers=there).raise_for_status()
    create(client, there)
    put(client, there, receiver.url, "evaluation.created")
    assert deliveries(client, there) == []
    last = create(client, there)["id"]
    assert [one["id"] for one in settled(client, there)] == [last]
    assert len(receiver.told) == 2
