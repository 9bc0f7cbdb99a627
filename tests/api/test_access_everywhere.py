"""Every operation of the document, tried with every wrong key there is, and with the right one of another project.

Whoever adds an operation adds a line to `OPERATIONS`: how it is asked so that it succeeds, and what another project is
answered.
"""

import json
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import httpx
import pytest
from pydantic import SecretStr

from app.api.access import keeps, needed_scope
from app.domain.operations import KeyMade
from app.settings import Authentication, Settings
from tests.api.answers import check_problem, evaluation
from tests.api.generated.kept import DATASETS, PROBABILITIES
from tests.api.jobs import LATER
from tests.api.keys import bearer, execute, expire, make_key
from tests.api.shown import BODIES, SLICED
from tests.bank import each
from tests.openapi import DOCUMENT
from tests.serving import Served

DOCUMENTED = {
    operation["operationId"]: (method.upper(), path)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
# Whoever asks what they do is not asked back.
OPEN = {"isAlive", "isReady", "getIndex", "getProblemType", "getRoot", "getVersion"}
# Words that stand in what the first project keeps and must never be seen in the second.
SECRET = "sealed"


@dataclass(frozen=True)
class Ask:
    """How an operation is asked so that it succeeds.

    Attributes:
        across: What the other project is answered: `missing` (404), `unknown` (422, it names what is not there),
            `empty` (a list without items), `own` (it acts in its own project, and nothing of the first is in the
            answer), `same` (there is nothing of a project in it).
    """

    across: str
    body: Any = None
    params: dict[str, Any] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)


RUN = evaluation(model=f"{SECRET}-m", dataset="common", tags={SECRET: "yes"})
SCORED = {**RUN, "input": PROBABILITIES}
MATRIX = {"kind": "confusion_matrix", "matrix": [[5, 1], [2, 4]]}
# Enough samples for slices of two attributes.
TWICE_SLICED = SLICED | {name: 8 * SLICED[name] for name in ("y_true", "y_pred")}
TWICE_SLICED["attributes"] = {"site": 8 * SLICED["attributes"]["site"], "shift": 40 * ["day", "day", "night", "night"]}
# It leads nowhere that anything is sent to.
HOOK = {"url": "https://hooks.example:9/", "events": ["gate.checked"]}
RULES = {"rules": [{"metric": "h_mean", "min": 0.5}]}
# `$run`, `$other`, `$scored`, `$comparison`, `$check`, `$job`, `$waiting` and `$key` are the ids of what the first
# project has.
OPERATIONS: dict[str, Ask] = {
    "createEvaluation": Ask("own", evaluation()),
    "createEvaluations": Ask("own", {"evaluations": [evaluation()]}),
    "listEvaluations": Ask("empty"),
    "getLatestEvaluation": Ask("missing", params={"model": f"{SECRET}-m"}),
    "getEvaluation": Ask("missing", named={"identifier": "$run"}),
    "mergeEvaluations": Ask("missing", {"evaluations": ["$run", "$other"], "model": {"name": f"{SECRET}-both"}}),
    "changeTags": Ask("missing", {"tags": {SECRET: "no"}}, named={"identifier": "$run"}),
    "deleteEvaluation": Ask("missing", named={"identifier": "$gone"}),
    "getConfusionMatrix": Ask("missing", named={"identifier": "$run"}),
    "deleteEvaluations": Ask("own", params={"model": f"{SECRET}-filtered"}),
    "listModels": Ask("empty"),
    "getModel": Ask("missing", named={"name": f"{SECRET}-m"}),
    "deleteModel": Ask("missing", named={"name": f"{SECRET}-gone"}),
    "listDatasets": Ask("empty"),
    "getDataset": Ask("missing", named={"name": f"{SECRET}-d"}),
    "deleteDataset": Ask("missing", named={"name": f"{SECRET}-gone"}),
    "getCurve": Ask("missing", named={"identifier": "$scored", "curve": "roc"}),
    "listPlots": Ask("same"),
    "getEvaluationPlot": Ask("missing", named={"identifier": "$run", "name": "confusion", "form": "json"}),
    "getComparisonPlot": Ask("missing", named={"identifier": "$comparison", "name": "differences", "form": "json"}),
    "getCheckPlot": Ask("missing", named={"gate": SECRET, "identifier": "$check", "name": "verdict", "form": "json"}),
    "getSlicesPlot": Ask(
        "missing", named={"identifier": "$sliced", "name": "slices", "form": "json"}, params={"by": ["site", "shift"]}
    ),
    "getEvaluationReport": Ask("missing", named={"identifier": "$run"}),
    "getComparisonReport": Ask("missing", named={"identifier": "$comparison"}),
    "findThreshold": Ask("missing", {"objective": "h_mean"}, named={"identifier": "$scored"}),
    "sliceEvaluation": Ask("missing", {"by": ["site"], "minimum_samples": 5}, named={"identifier": "$sliced"}),
    "createComparison": Ask("missing", {"evaluations": ["$run", "$other"]}),
    "listComparisons": Ask("empty"),
    "getComparison": Ask("missing", named={"identifier": "$comparison"}),
    "deleteComparison": Ask("missing", named={"identifier": "$gone_comparison"}),
    "compareAcrossDatasets": Ask(
        "unknown", {"metric": "h_mean", "models": [f"{SECRET}-a", f"{SECRET}-b"], "datasets": [*DATASETS]}
    ),
    "putGate": Ask("own", RULES, named={"name": "other"}),
    "getGate": Ask("missing", named={"name": SECRET}),
    "deleteGate": Ask("missing", named={"name": f"{SECRET}-gone"}),
    "listGates": Ask("empty"),
    "listGateVersions": Ask("missing", named={"name": SECRET}),
    "createCheck": Ask("missing", {"evaluation": "$run"}, named={"name": SECRET}),
    "tryGate": Ask("empty", {**RULES, "evaluations": {"latest": 5}}),
    "listChecks": Ask("missing", named={"name": SECRET}),
    "listAllChecks": Ask("empty"),
    "getCheck": Ask("missing", named={"name": SECRET, "identifier": "$check"}),
    "getHistoryPlot": Ask(
        "missing", named={"model": f"{SECRET}-m", "name": "history", "form": "json"}, params={"dataset": "common"}
    ),
    "getHistory": Ask("missing", named={"name": f"{SECRET}-m"}, params={"dataset": "common"}),
    "getLeaderboard": Ask("empty", params={"dataset": "common", "metric": "h_mean"}),
    "projectEvaluation": Ask("missing", {"prevalence": {"1": 0.5}}, named={"identifier": "$run"}),
    "estimatePrevalence": Ask("missing", {"predicted": {"0": 5, "1": 5}}, named={"identifier": "$run"}),
    "boundHMeanOfEvaluation": Ask("missing", {}, named={"identifier": "$run"}),
    "computeMetrics": Ask("same", {"input": MATRIX}),
    "computeCurve": Ask("same", {"input": PROBABILITIES}, named={"curve": "roc"}),
    "findThresholdOfInput": Ask("same", {"input": PROBABILITIES, "objective": "h_mean"}),
    "sliceInput": Ask("same", {"input": SLICED, "by": ["site"], "minimum_samples": 5}),
    "projectInput": Ask("same", {"input": MATRIX, "prevalence": {"1": 0.5}}),
    "checkConsistency": Ask("same", {"p": 100, "n": 200, "scores": {"accuracy": "0.95"}}),
    "listMetrics": Ask("same"),
    "getMetric": Ask("same", named={"key": "h_mean"}),
    "recommendMetrics": Ask("same", BODIES["recommendMetrics"]["rare class"]),
    "boundHMean": Ask("same", {"recalls": [0.5, 0.9]}),
    "computeIsocurves": Ask("same", {"tpr": 0.5, "tnr": 0.9}),
    "listJobs": Ask("empty"),
    "getJob": Ask("missing", named={"identifier": "$job"}),
    "getJobResult": Ask("missing", named={"identifier": "$job"}),
    "cancelJob": Ask("missing", named={"identifier": "$waiting"}),
    "putWebhook": Ask("own", HOOK, named={"name": "other"}),
    "listWebhooks": Ask("empty"),
    "getWebhook": Ask("missing", named={"name": SECRET}),
    "deleteWebhook": Ask("missing", named={"name": f"{SECRET}-gone"}),
    "listDeliveries": Ask("missing", named={"name": SECRET}),
    "testWebhook": Ask("missing", named={"name": SECRET}),
    "retryDelivery": Ask("missing", named={"name": SECRET, "identifier": "$check"}),
    "createKey": Ask("own", {"name": "new", "scopes": ["read"]}),
    "listKeys": Ask("own"),
    "getKey": Ask("missing", named={"identifier": "$key"}),
    "rotateKey": Ask("missing", {}, named={"identifier": "$key"}),
    "revokeKey": Ask("missing", named={"identifier": "$gone_key"}),
    "listAuditEntries": Ask("own"),
    "getUsage": Ask("own"),
    "getServiceMetrics": Ask("same"),
}


@dataclass(frozen=True)
class World:
    """Two projects on a service that wants keys, and what the first of them has."""

    client: httpx.Client
    mine: dict[str, KeyMade]
    others: dict[str, KeyMade]
    wrong: dict[str, str]
    ids: dict[str, str]
    database_url: str

    def ask(self, operation: str, headers: dict[str, str]) -> httpx.Response:
        method, path = DOCUMENTED[operation]
        ask = OPERATIONS[operation]
        body = None if ask.body is None else json.loads(self.put_in(json.dumps(ask.body)))
        path = path.format(**{name: self.put_in(value) for name, value in ask.named.items()})
        return self.client.request(method, path, json=body, params=ask.params, headers=headers)

    def put_in(self, text: str) -> str:
        for name, identifier in sorted(self.ids.items(), reverse=True):
            text = text.replace(f"${name}", identifier)
        return text


@pytest.fixture(scope="module")
def world(database_url: str) -> Iterator[World]:
    scopes = ("read", "write", "admin")
    mine = {scope: make_key(database_url, "first", scope, name=f"{SECRET}-{scope}") for scope in scopes}
    others = {scope: make_key(database_url, "second", scope) for scope in scopes}
    expired = make_key(database_url, "first", "admin", name=f"{SECRET}-expired")
    expire(database_url, expired)
    settings = Settings(database_url=SecretStr(database_url), authentication=Authentication.auto)
    with Served(settings) as url, httpx.Client(base_url=url, timeout=60) as client:
        revoked = make_key(database_url, "first", "admin", name=f"{SECRET}-revoked")
        client.delete(f"/v1/keys/{revoked.facts.id}", headers=bearer(mine["admin"])).raise_for_status()
        good = mine["admin"].key
        wrong = {
            "malformed": "Bearer pv_123",
            "no bearer": f"Basic {good}",
            "no kind": good,
            "empty": "Bearer",
            "unknown": f"Bearer pv_{secrets.token_hex(16)}_{secrets.token_urlsafe(32)}",
            "wrong secret": f"Bearer {good[:-43]}{secrets.token_urlsafe(32)}",
            "secret of another key": f"Bearer {good[:-43]}{others['admin'].key[-43:]}",
            "revoked": f"Bearer {revoked.key}",
            "expired": f"Bearer {expired.key}",
        }
        ids = _keep(client, mine)
        # It has ended; to be cancelled, it has to wait.
        waits = "UPDATE jobs SET status = 'queued', finished_at = NULL WHERE id = :id"
        execute(database_url, waits, id=UUID(ids["waiting"]))
        yield World(client, mine, others, wrong, ids, database_url)


def _keep(client: httpx.Client, mine: dict[str, KeyMade]) -> dict[str, str]:
    def made(path: str, body: Any, key: str = "write") -> str:
        reply = client.post(path, json=body, headers=bearer(mine[key]))
        assert reply.status_code == 201, reply.text
        return str(reply.json()["id"])

    for name in (SECRET, f"{SECRET}-gone"):
        client.put(f"/v1/gates/{name}", json=RULES, headers=bearer(mine["write"])).raise_for_status()
        client.put(f"/v1/webhooks/{name}", json=HOOK, headers=bearer(mine["admin"])).raise_for_status()
    for model in ("a", "b"):
        for dataset in DATASETS:
            made("/v1/evaluations", evaluation(model=f"{SECRET}-{model}", dataset=dataset))
    named = (("gone", "kept"), ("m", "d"), ("m", "gone"), ("filtered", "kept"))
    for model, dataset in ((f"{SECRET}-{one}", f"{SECRET}-{other}") for one, other in named):
        made("/v1/evaluations", evaluation(model=model, dataset=dataset))

    def done(body: Any) -> str:
        headers = bearer(mine["write"])
        job = client.post("/v1/metrics/compute", json=body, headers=LATER | headers).raise_for_status().json()
        deadline = time.monotonic() + 60
        while client.get(f"/v1/jobs/{job['id']}", headers=headers).json()["status"] != "succeeded":
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return str(job["id"])

    run, other = made("/v1/evaluations", RUN), made("/v1/evaluations", RUN)
    return {
        "job": done({"input": MATRIX}),
        "waiting": done({"input": MATRIX}),
        "run": run,
        "other": other,
        "gone": made("/v1/evaluations", RUN),
        "scored": made("/v1/evaluations", SCORED),
        "sliced": made("/v1/evaluations", SCORED | {"input": TWICE_SLICED}),
        "comparison": made("/v1/comparisons", {"evaluations": [run, other]}),
        "gone_comparison": made("/v1/comparisons", {"evaluations": [run, other]}),
        "check": made(f"/v1/gates/{SECRET}/checks", {"evaluation": run}),
        "key": made("/v1/keys", {"name": SECRET, "scopes": ["read"]}, "admin"),
        "gone_key": made("/v1/keys", {"name": SECRET, "scopes": ["read"]}, "admin"),
    }


def test_every_operation_is_tried() -> None:
    assert OPERATIONS.keys() | OPEN == DOCUMENTED.keys()
    assert not OPERATIONS.keys() & OPEN
    for name in OPERATIONS:
        method, path = DOCUMENTED[name]
        scope = needed_scope(name, method).value
        assert DOCUMENT["paths"][path][method.lower()]["security"] == [{"key": [scope]}, {}]


@each("operation", OPERATIONS)
def test_without_a_good_key_nothing_is_done(world: World, operation: str) -> None:
    details = set()
    for authorization in (None, *world.wrong.values()):
        reply = world.ask(operation, {} if authorization is None else {"Authorization": authorization})
        problem = check_problem(reply, 401, "unauthenticated")
        assert reply.headers["www-authenticate"].startswith('Bearer realm="prevail"')
        assert SECRET not in reply.text
        if authorization is not None:
            details.add(problem["detail"])
    # Whatever is wrong with a key, the answer is the same.
    assert len(details) == 1


@each("operation", OPERATIONS)
def test_a_lower_scope_is_not_enough(world: World, operation: str) -> None:
    needed = needed_scope(operation, DOCUMENTED[operation][0]).value
    for scope in ("read", "write", "admin"):
        if scope == needed:
            break
        reply = world.ask(operation, bearer(world.mine[scope]))
        problem = check_problem(reply, 403, "forbidden")
        assert problem["detail"] == f"expected a key of the scope {needed}"
        assert SECRET not in reply.text


@each("operation", OPERATIONS)
def test_another_project_sees_nothing(world: World, operation: str) -> None:
    ask = OPERATIONS[operation]
    headers = bearer(world.others["admin"])
    if ask.across == "empty":
        # Where nothing was ever made.
        headers |= {"X-Prevail-Project": "third"}
    reply = world.ask(operation, headers)
    if ask.across == "unknown":
        detail = check_problem(reply, 422, "incomparable_runs")["detail"]
        assert detail.startswith("there is no evaluation of ")
    elif ask.across == "missing":
        problem = check_problem(reply, 404, "not_found")
        nowhere = {name: f"01900000-0000-7000-8000-{place:012}" for place, name in enumerate(world.ids)}
        world_of_none = World(world.client, world.mine, world.others, {}, nowhere, world.database_url)
        unknown = world_of_none.ask(operation, headers)
        # What lies in another project and what there never was are told apart by nothing.
        told = [problem["detail"], unknown.json()["detail"]]
        for identifier in (*world.ids.values(), *nowhere.values()):
            told = [text.replace(identifier, "id") for text in told]
        assert told[0] == told[1]
    else:
        assert reply.status_code < 300, reply.text
        assert SECRET not in reply.text
        if ask.across == "empty":
            assert reply.json()["items"] == []
    named = [world.put_in(value) for value in ask.named.values()]
    sent = json.dumps(ask.body) + "".join(named)
    for identifier in world.ids.values():
        assert identifier in world.put_in(sent) or identifier not in reply.text


@each("operation", OPERATIONS)
def test_the_project_itself_succeeds(world: World, operation: str) -> None:
    """The requests above are right ones: with the least scope that is enough all of them succeed."""
    scope = needed_scope(operation, DOCUMENTED[operation][0]).value
    reply = world.ask(operation, bearer(world.mine[scope]))
    assert reply.status_code < 300, reply.text
    check_headers(operation, reply)


# Of every message of HTTP.
TRANSPORT = {"content-length", "content-type", "date", "server", "connection", "transfer-encoding"}


def check_headers(operation: str, reply: httpx.Response) -> None:
    """Whatever headers an answer has, the document names; whatever it promises, the answer has."""
    method, path = DOCUMENTED[operation]
    named = DOCUMENT["paths"][path][method.lower()]["responses"][str(reply.status_code)]["headers"]
    shown = {name.lower() for name in named}
    assert set(reply.headers) - TRANSPORT <= shown
    shared = DOCUMENT["components"]["headers"]
    required = {name.lower() for name, one in named.items() if (shared[name] if "$ref" in one else one).get("required")}
    assert required <= set(reply.headers)


@each("operation", OPERATIONS)
def test_answers_have_the_headers_that_are_documented(world: World, operation: str) -> None:
    """Refusals too, and of a key with a rate."""
    scope = needed_scope(operation, DOCUMENTED[operation][0]).value
    limited = make_key(world.database_url, "second", scope, rate="9/day")
    for headers in (bearer(limited), {}, {**bearer(limited), "Accept": "image/png"}):
        check_headers(operation, world.ask(operation, headers))


KEEPING = [name for name in OPERATIONS if keeps(name, DOCUMENTED[name][0])]


@pytest.mark.parametrize("operation", KEEPING)
def test_with_an_idempotency_key_it_is_done_once(world: World, operation: str) -> None:
    """What makes or puts something remembers the key; a key of that name of another project is another one."""
    scope = needed_scope(operation, DOCUMENTED[operation][0]).value
    key = {"Idempotency-Key": f"once-{operation}"}
    elsewhere = world.ask(operation, bearer(world.others["admin"]) | key)
    first, second = (world.ask(operation, bearer(world.mine[scope]) | key) for _ in range(2))
    assert first.status_code < 300, first.text
    assert "idempotent-replayed" not in elsewhere.headers
    assert "idempotent-replayed" not in first.headers
    if first.headers.get("cache-control") == "no-store":
        check_problem(second, 409, "shown_once")
        return
    assert second.headers["idempotent-replayed"] == "true"
    assert (second.status_code, second.content) == (first.status_code, first.content)
    assert second.headers.get("location") == first.headers.get("location")


def test_an_admin_key_names_another_project(world: World) -> None:
    headers = {**bearer(world.others["admin"]), "X-Prevail-Project": "first"}
    assert world.client.get("/v1/evaluations", headers=headers).json()["items"]
    assert world.client.get("/v1/evaluations", headers={**headers, "X-Prevail-Project": "third"}).json()["items"] == []
    for scope in ("read", "write"):
        reply = world.client.get("/v1/models", headers={**headers, **bearer(world.others[scope])})
        check_problem(reply, 403, "forbidden")
    # Its own is no other.
    own = {**bearer(world.others["read"]), "X-Prevail-Project": "second"}
    assert world.client.get("/v1/models", headers=own).status_code == 200
    for name in ("First", "a b", "-", "x" * 65):
        reply = world.client.get("/v1/models", headers={**bearer(world.mine["admin"]), "X-Prevail-Project": name})
        check_problem(reply, 422, "invalid_query")


@pytest.mark.parametrize(
    "path", ["/healthz", "/readyz", "/version", "/docs", "/openapi.json", "/problems/unauthenticated"]
)
def test_what_needs_no_key(world: World, path: str) -> None:
    reply = world.client.get(path, headers={"Authorization": "Bearer nonsense"})
    assert reply.status_code == 200
    assert SECRET not in reply.text
