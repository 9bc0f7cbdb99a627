"""The OpenAPI document: what it promises is what is done."""

import re
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema_rs import Draft202012Validator

from tests.api.answers import check_json, create, evaluation
from tests.api.decisions import with_ids
from tests.api.shown import BODIES, SLICED
from tests.openapi import COMMITTED, DOCUMENT

OPERATIONS = [
    (method, path, operation) for path, methods in DOCUMENT["paths"].items() for method, operation in methods.items()
]
# Their requests name evaluations by id, so their own tests send the examples.
OF_COMPARISONS = "/v1/comparisons"
# These want an evaluation of probabilities, and have tests of their own too.
OF_SAMPLES = ("/curves/{curve}", "/thresholds", "/slices/plots/{name}.{form}")
EXAMPLES = [
    pytest.param(method, path, name, example["value"], id=f"{operation['operationId']}-{name}")
    for method, path, operation in OPERATIONS
    if not path.startswith(OF_COMPARISONS)
    for name, example in operation.get("requestBody", {})
    .get("content", {})
    .get("application/json", {})
    .get("examples", {})
    .items()
]


def test_the_committed_document_is_fresh() -> None:
    from scripts.openapi import render

    assert (Path(__file__).parents[2] / "docs" / "openapi.json").read_text() == render()


def test_every_operation_is_described() -> None:
    identifiers = [operation["operationId"] for *_, operation in OPERATIONS]
    assert len(identifiers) == len(set(identifiers))
    for method, path, operation in OPERATIONS:
        assert operation.get("description"), (method, path)
        assert operation.get("tags"), (method, path)
        # What is asked for again has been said before.
        if method in ("post", "patch") and operation["operationId"] not in ("retryDelivery", "testWebhook"):
            assert operation["requestBody"]["content"]["application/json"]["examples"], (method, path)
        for parameter in operation.get("parameters", []):
            if parameter["in"] == "query":
                assert parameter.get("description"), (path, parameter["name"])
        for status, answer in operation["responses"].items():
            if status in ("204", "304"):
                continue
            assert answer["content"], (method, path, status)
            assert int(status) < 400 or list(answer["content"]) == ["application/problem+json"]


def answer_schema(method: str, path: str, status: int) -> Draft202012Validator:
    content = DOCUMENT["paths"][path][method]["responses"][str(status)]["content"]["application/json"]
    return Draft202012Validator({**content["schema"], "components": DOCUMENT["components"]})


def samples_for(body: Any) -> dict[str, Any]:
    """An input whose thresholds can be chosen as asked: a guarantee is given for two classes, and takes samples."""
    if "guarantee" not in body:
        return BODIES["createEvaluation"]["probabilities"]["input"]  # type: ignore[no-any-return]
    scores = BODIES["createEvaluation"]["scores"]["input"]
    return scores | {name: scores[name] * 20 for name in ("y_true", "scores")}  # type: ignore[no-any-return]


@pytest.mark.parametrize(("method", "path", "name", "body"), EXAMPLES)
def test_examples_do_what_they_show(client: httpx.Client, method: str, path: str, name: str, body: Any) -> None:
    source: dict[str, Any] = {"input": samples_for(body)} if path.endswith(OF_SAMPLES) else {}
    source |= {"input": SLICED} if path.endswith("/slices") else {}
    first, second = (create(client, evaluation(**source))["id"] for _ in range(2))
    client.put("/v1/gates/promotion", json=BODIES["putGate"]["promotion"])
    if path.startswith("/v1/keys/"):
        first = client.post("/v1/keys", json={"name": "example", "scopes": ["read"]}).json()["id"]
    reply = client.request(
        method, path.format(identifier=first, name="promotion", curve="roc"), json=with_ids(body, first, second)
    )
    assert reply.status_code in (200, 201, 207), reply.text
    check_json(
        reply, named=("weights", "metrics", "each", "old_prevalence", "prevalence_range", "crossings", "implied")
    )
    answer_schema(method, path, reply.status_code).validate(reply.json())
    for item in reply.json().get("items", []):
        assert item.get("status", 201) == 201


def _computed_later(client: httpx.Client) -> str:
    """A job that has a result of its own."""
    body = {"input": evaluation()["input"]}
    taken = client.post("/v1/metrics/compute", json=body, headers={"Prefer": "respond-async"})
    assert taken.status_code == 202
    until = time.monotonic() + 30.0
    while client.get(taken.headers["location"]).json()["status"] != "succeeded":
        assert time.monotonic() < until
        time.sleep(0.02)
    return str(taken.json()["id"])


@pytest.mark.parametrize(
    "path",
    [
        path
        for method, path, _ in OPERATIONS
        if method == "get" and not path.startswith(OF_COMPARISONS) and not path.endswith(OF_SAMPLES)
    ],
)
def test_answers_are_as_documented(client: httpx.Client, path: str) -> None:
    names = {"identifier": create(client, evaluation())["id"], "key": "h_mean", "code": "overloaded", "name": "kept"}
    create(client, evaluation(model=names["name"], dataset=names["name"]))
    client.put("/v1/gates/kept", json={"rules": [{"metric": "h_mean", "min": 0.5}]})
    if "/checks/" in path:
        check = client.post("/v1/gates/kept/checks", json={"evaluation": names["identifier"]})
        names["identifier"] = check.json()["id"]
    if path.startswith("/v1/keys/"):
        names["identifier"] = client.post("/v1/keys", json={"name": "read", "scopes": ["read"]}).json()["id"]
    if path.startswith("/v1/jobs/"):
        names["identifier"] = _computed_later(client)
    # What a route cannot do without.
    needed = {"/v1/leaderboard": {"dataset": "d", "metric": "h_mean"}}
    if "/history" in path:
        needed[path] = {"dataset": "kept"}
    if path.startswith("/v1/webhooks/"):
        hook = {"url": "https://hooks.example:9/", "events": ["job.finished"]}
        assert client.put("/v1/webhooks/kept", json=hook).status_code in (200, 201)
    if "{form}" in path:
        figures = {"checks": "verdict", "history": "history"}
        name = next((name for part, name in figures.items() if f"/{part}/" in path), "confusion")
        names |= {"gate": "kept", "model": "kept", "name": name, "form": "json"}
    reply = client.get(path.format(**names), params=needed.get(path))
    assert reply.status_code == 200
    if path.endswith("/report"):
        assert reply.text.startswith("<!doctype html>")
        return
    if path == "/metrics":
        assert reply.headers["content-type"].startswith("text/plain")
        assert reply.text.startswith("# HELP")
        return
    answer_schema("get", path, 200).validate(reply.json())


def test_problems_are_as_documented(client: httpx.Client) -> None:
    schema = {"$ref": "#/components/schemas/ProblemValue", "components": DOCUMENT["components"]}
    validator = Draft202012Validator(schema)
    faulty = evaluation(options={"metrics": ["h_men", "recall@9"]})
    for reply in (
        client.post("/v1/evaluations", json={}),
        client.post("/v1/evaluations", json=faulty),
        client.post("/v1/evaluations", content=b"{"),
        client.get("/v1/evaluations?limit=0"),
        client.get("/nothing"),
    ):
        assert reply.status_code >= 400
        validator.validate(reply.json())


def test_the_pages(client: httpx.Client) -> None:
    assert client.get("/openapi.json").json() == COMMITTED
    page = client.get("/docs")
    assert "text/html" in page.headers["content-type"]
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(loaded) == 5
    for address in loaded:
        # Nothing from elsewhere, nothing inline, and everything is there.
        assert ":" not in address or address == "data:,"
        if address != "data:,":
            reply = client.get(f"/{address}")
            assert reply.status_code == 200
            assert address == "openapi.json" or reply.headers["content-security-policy"] == policy
    assert "<script>" not in page.text
    assert "http" not in client.get("/docs/start.js").text
    assert b"SwaggerUIBundle" in client.get("/docs/swagger-ui-bundle.js").content
