"""Every operation of the document, asked as its examples ask it: of one's own things it succeeds, and of another
project's it answers byte for byte what it answers of things that there are not.

Nothing stands here by operation but what no document says: a request that cannot be made of it fails as the project's
own.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import httpx
import pytest
from pydantic import SecretStr

from app.api.access import needed_scope
from app.settings import Authentication, Settings
from tests.api.answers import Json, evaluation
from tests.api.generated.kept import PROBABILITIES
from tests.api.jobs import ended, put_aside
from tests.api.keys import bearer, execute, make_key
from tests.openapi import DOCUMENT
from tests.serving import Served

OPERATIONS: Final = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
EXAMPLES: Final = {
    f"{name}: {title}" if title else name: (name, example)
    for name, (_, _, operation) in OPERATIONS.items()
    for title, example in {
        title: example["value"]
        for title, example in operation.get("requestBody", {})
        .get("content", {})
        .get("application/json", {})
        .get("examples", {"": {"value": None}})
        .items()
    }.items()
}
# By the first part of an address and the name of a parameter in it: what it is the id or the name of.
MEANT: Final = {
    ("evaluations", "identifier"): "run",
    ("comparisons", "identifier"): "comparison",
    ("gates", "identifier"): "check",
    ("gates", "name"): "gate",
    ("gates", "gate"): "gate",
    ("jobs", "identifier"): "job",
    ("keys", "identifier"): "key",
    ("webhooks", "name"): "hook",
    ("webhooks", "identifier"): "delivery",
    ("models", "name"): "model",
    ("models", "model"): "model",
    ("datasets", "name"): "dataset",
}
# What belongs to nobody.
COMMON: Final = {"curve": "roc", "form": "json", "key": "h_mean", "code": "not_found"}
FIGURES: Final = {"evaluations": "confusion", "comparisons": "differences", "gates": "verdict", "models": "history"}
QUERIES: Final = {
    "getLeaderboard": {"dataset": "dataset"},
    "getHistory": {"dataset": "dataset"},
    "getHistoryPlot": {"dataset": "dataset"},
    "deleteEvaluations": {"model": "filtered"},
}
BY: Final = {"getSlicesPlot": {"by": ["site", "shift"]}}
# As the examples name them.
EXAMPLE_RUNS: Final = {"01900000-0000-7000-8000-000000000001": "run", "01900000-0000-7000-8000-000000000002": "other"}
TOURNAMENT: Final = (("forest", "boosted", "majority"), ("iris", "wine", "digits", "breast_cancer", "clinic"))

Things = Mapping[str, str]


@dataclass(frozen=True)
class Asked:
    """A request."""

    method: str
    path: str
    params: Mapping[str, Any]
    body: str | None


@dataclass(frozen=True)
class World:
    """A service with two projects, `mark-one` and `mark-two`, which have the same; things to be removed come apart."""

    client: httpx.Client
    keys: Mapping[str, Mapping[str, str]]
    kept: Mapping[str, Things]
    gone: Mapping[str, Things]
    database_url: str

    def send(self, asked: Asked, scope: str) -> httpx.Response:
        headers = {**self.keys[scope], "X-Request-ID": "same", "Content-Type": "application/json"}
        return self.client.request(asked.method, asked.path, params=asked.params, content=asked.body, headers=headers)


def request_of(name: str, example: Any, things: Things) -> Asked:
    """The request of an operation about these things."""
    method, path, operation = OPERATIONS[name]
    parts: list[str] = path.split("/")
    values = {}
    for parameter in operation.get("parameters", []):
        if parameter["in"] == "path":
            key = parameter["name"]
            if "plots" in parts and key == "name":
                values[key] = "slices" if "slices" in parts else FIGURES[parts[2]]
            else:
                values[key] = COMMON[key] if key in COMMON else things[MEANT[parts[2], key]]
    body = None if example is None else json.dumps(example)
    for identifier, thing in EXAMPLE_RUNS.items():
        body = body and body.replace(identifier, things[thing])
    if name == "compareAcrossDatasets":
        for one in (*TOURNAMENT[0], *TOURNAMENT[1]):
            body = body and body.replace(f'"{one}"', f'"{things["mark"]}-{one}"')
    params: dict[str, Any] = {parameter: things[thing] for parameter, thing in QUERIES.get(name, {}).items()}
    return Asked(method, path.format(**values), params | BY.get(name, {}), body)


def made(client: httpx.Client, mark: str) -> Things:
    """Everything that ids and names are of, in one project."""

    def post(path: str, body: Json, method: str = "POST") -> Json:
        reply = client.request(method, path, json=body)
        assert reply.status_code == 201, reply.text
        answer: Json = reply.json()
        return answer

    def run(model: str, dataset: str = "common") -> str:
        body = evaluation(model=f"{mark}-{model}", dataset=f"{mark}-{dataset}", input=PROBABILITIES)
        return str(post("/v1/evaluations", body)["id"])

    named = {key: f"{mark}-{key}" for key in ("gate", "hook", "model", "dataset", "filtered")}
    bodies = [
        evaluation(model=f"{mark}-{model}", dataset=f"{mark}-{dataset}")
        | {"model": {"name": f"{mark}-{model}"} | ({"version": "2"} if model == "boosted" else {})}
        | {"dataset": {"name": f"{mark}-{dataset}"} | ({"split": "2026"} if dataset == "clinic" else {})}
        for model in TOURNAMENT[0]
        for dataset in TOURNAMENT[1]
    ]
    client.post("/v1/evaluations/batch", json={"evaluations": bodies}).raise_for_status()
    run("model"), run("model", "dataset"), run("any", "dataset"), run("filtered")
    post(f"/v1/gates/{named['gate']}", {"rules": [{"metric": "h_mean", "min": 0.5}]}, "PUT")
    # It has nothing sent to it: the name leads nowhere.
    post(f"/v1/webhooks/{named['hook']}", {"url": "https://hooks.example:9/", "events": ["gate.checked"]}, "PUT")
    ids = {"run": run("m"), "other": run("other")}
    ids["comparison"] = post("/v1/comparisons", {"evaluations": [ids["run"], ids["other"]]})["id"]
    ids["check"] = post(f"/v1/gates/{named['gate']}/checks", {"evaluation": ids["run"]})["id"]
    ids["key"] = post("/v1/keys", {"name": f"{mark}-key", "scopes": ["read"]})["id"]
    ids["job"] = ended(client, put_aside(client, "/v1/metrics/compute", {"input": PROBABILITIES}))["id"]
    (delivery,) = client.get(f"/v1/webhooks/{named['hook']}/deliveries").json()["items"]
    return {**named, **ids, "delivery": delivery["id"], "mark": mark}


def unlike(value: str) -> str:
    """A name or an id of nothing, as long as one of the second project."""
    if "mark-two" in value:
        return value.replace("mark-two", "mark-non")
    return str(UUID(int=UUID(value).int ^ 0xFFFF))


@pytest.fixture(scope="module")
def world(database_url: str) -> Iterator[World]:
    settings = Settings(database_url=SecretStr(database_url), authentication=Authentication.keys)
    with Served(settings) as url, httpx.Client(base_url=url, timeout=60) as client:
        sets: dict[str, list[Things]] = {}
        for project in ("mark-one", "mark-two"):
            headers = bearer(make_key(database_url, project, "admin"))
            with httpx.Client(base_url=url, timeout=60, headers=headers) as own:
                sets[project] = [made(own, project), made(own, f"{project}-gone")]
        nothing = [{key: unlike(value) for key, value in things.items()} for things in sets["mark-two"]]
        keys = {scope: bearer(make_key(database_url, "mark-one", scope)) for scope in ("read", "write", "admin")}
        kept, gone = (
            {**{name: pair[place] for name, pair in sets.items()}, "mark-non": nothing[place]} for place in (0, 1)
        )
        yield World(client, keys, kept, gone, database_url)


@pytest.mark.parametrize("example", EXAMPLES)
def test_ones_own_is_found_and_what_is_anothers_is_not_there(world: World, example: str) -> None:
    name, body = EXAMPLES[example]
    method, _, _ = OPERATIONS[name]
    scope = needed_scope(name, method).value
    sets = world.gone if method == "DELETE" else world.kept
    own, foreign, nothing = (request_of(name, body, sets[whose]) for whose in ("mark-one", "mark-two", "mark-non"))
    if name == "cancelJob":
        waits = "UPDATE jobs SET status = 'queued', finished_at = NULL WHERE id = :id"
        execute(world.database_url, waits, id=UUID(sets["mark-one"]["job"]))
    reply = world.send(own, scope)
    assert reply.status_code < 300, reply.text
    assert not [
        value for things in (world.kept, world.gone) for value in things["mark-two"].values() if value in reply.text
    ]
    # What is put under a name is one's own, whoever else has one of that name.
    if foreign == own or method == "PUT":
        return
    refused, unknown = world.send(foreign, scope), world.send(nothing, scope)
    assert refused.status_code == unknown.status_code
    assert masked(refused.text, sets["mark-two"]) == masked(unknown.text, sets["mark-non"])
    # The digest of an answer is that of its bytes, names among them.
    alike = {"date": "", "etag": ""}
    assert {**refused.headers, **alike} == {**unknown.headers, **alike}
    if (foreign.path, foreign.body) == (own.path, own.body):
        # A filter that nothing of one's own meets.
        assert refused.status_code == 200
    elif name == "compareAcrossDatasets":
        assert refused.json()["code"] == "incomparable_runs"
    else:
        assert (refused.status_code, refused.json()["code"]) == (404, "not_found")


def masked(text: str, things: Things) -> str:
    """A text in which things are called by what they are."""
    for key, value in sorted(things.items(), key=lambda one: -len(one[1])):
        text = text.replace(value, f"<{key}>")
    return text


def test_every_operation_is_asked() -> None:
    """And of what belongs to a project, each by its id or name."""
    assert {name for name, _ in EXAMPLES.values()} == OPERATIONS.keys()
    assert len(OPERATIONS) >= 69
    for _, path, operation in OPERATIONS.values():
        for parameter in operation.get("parameters", []):
            if parameter["in"] == "path" and "plots" not in path:
                assert parameter["name"] in COMMON or (path.split("/")[2], parameter["name"]) in MEANT
