"""Large batches: read column by column, away from the event loop, and answered as their items are alone."""

import json
from typing import Any, BinaryIO

import httpx
import numpy as np
import pytest

from app.api.bodies.parsing import parse_large_body
from app.api.v1.evaluations.batches import entries_of
from app.api.v1.requests.evaluations import BatchRequest
from app.services.processes.compute import ComputePool
from tests.api.answers import check_problem, compute, evaluation
from tests.api.test_probabilities import make, make_scores

Json = dict[str, Any]
HEADERS = {"Content-Type": "application/json"}
PATH = "/v1/evaluations/batch?store=false"
PADDING = " " * 300_000


@pytest.fixture(scope="module")
def large() -> Json:
    """More than what is parsed on the event loop."""
    return make(n=12_000, sample_ids=[f"{index:05}" for index in range(12_000)])


def post(client: httpx.Client, items: list[Any], padding: str = "") -> Json:
    text = json.dumps({"evaluations": items}) + padding
    reply = client.post(PATH, content=text.encode(), headers=HEADERS)
    assert reply.status_code == 207, reply.text
    answer: Json = reply.json()
    return answer


def test_each_item_is_answered_as_if_alone(client: httpx.Client, large: Json) -> None:
    folds = {"kind": "folds", "folds": [make(n=300, seed=1), make(n=200, seed=2)]}
    inputs = [large, make_scores(), folds, {"kind": "confusion_matrix", "matrix": [[5, 1], [2, 7]]}, large]
    items = post(client, [{"input": source, "options": {"seed": 3}} for source in inputs])["items"]
    assert [item["status"] for item in items] == [200] * 5
    for source, item in zip(inputs, items, strict=True):
        assert item["evaluation"] == compute(client, source, seed=3)


def test_faults_have_their_place_as_in_a_small_batch(client: httpx.Client) -> None:
    ragged, sums, text, unknown = (make(n=5, labels=[0, 1, 2]) for _ in range(4))
    ragged["probabilities"][3] = [0.5, 0.5]
    sums["probabilities"][2] = [0.5, 0.2, 0.2]
    text["probabilities"][1][0] = "0.5"
    unknown["y_true"][4] = 7
    sources = [make(n=5), ragged, sums, text, unknown, {"kind": "probabilities"}]
    items = [*({"input": source} for source in sources), 7, {"input": make(n=5), "x": 1}]
    small, padded = post(client, items), post(client, items, PADDING)
    for answer in (small, padded):
        for item in answer["items"]:
            item.get("problem", {}).pop("instance", None)
    assert small == padded
    found = [[fault["pointer"] for fault in item.get("problem", {}).get("errors", [])] for item in small["items"]]
    assert found[0] == []
    assert [place for (place, *_) in found[1:5]] == [
        "/evaluations/1/input/probabilities/3",
        "/evaluations/2/input/probabilities/2",
        "/evaluations/3/input/probabilities/1/0",
        "/evaluations/4/input/y_true/4",
    ]
    assert {place.rsplit("/", 1)[0] for place in found[5]} == {"/evaluations/5/input"}
    assert found[6:] == [["/evaluations/6"], ["/evaluations/7/x"]]


@pytest.mark.parametrize("text", ['{"evaluations": []}', '{"evaluations": 3}', "[]", "{}", '{"evaluations": [1,}'])
def test_other_forms_are_refused_as_a_whole(client: httpx.Client, text: str) -> None:
    for padding in ("", PADDING):
        reply = client.post(PATH, content=(text + padding).encode(), headers=HEADERS)
        check_problem(reply, 400 if text.endswith(",}") else 422, reply.json()["code"])


def test_a_deep_item_is_refused_alone(client: httpx.Client) -> None:
    deep = "[" * 900 + "]" * 900
    text = f'{{"evaluations": [{{"input": {{"kind": "confusion_matrix", "matrix": {deep}}}}}]}}{PADDING}'
    reply = client.post(PATH, content=text.encode(), headers=HEADERS)
    assert reply.status_code in (207, 400), reply.text
    if reply.status_code == 207:
        assert [item["status"] for item in reply.json()["items"]] == [422]


def test_large_items_are_read_in_a_process(client: httpx.Client, large: Json, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    run = ComputePool.run

    async def noting(pool: ComputePool, function: Any, file: BinaryIO | None = None) -> Any:
        sent.append(function.func.__name__)
        return await run(pool, function, file)

    monkeypatch.setattr(ComputePool, "run", noting)
    # Most items are small: what counts is the size of each.
    items = post(client, [{"input": large}, {"input": large | {"threshold": 0.5}}])["items"]
    assert [item["status"] for item in items] == [200, 422]
    assert sent == ["_made", "_evaluate_value", "_evaluate_value"]
    sent.clear()
    items = post(client, [evaluation()] * 50, PADDING)["items"]
    assert {item["status"] for item in items} == {200}
    assert sent == ["_made"]


def test_many_matrices_are_computed_in_a_process_and_answered_as_if_alone(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among them such as are refused, have a way of their own, or are of another family."""
    sent: list[str] = []
    begin = ComputePool._begin

    async def noting(pool: ComputePool, function: Any, file: BinaryIO | None, asked: float) -> Any:
        sent.append(function.func.__name__)
        return await begin(pool, function, file, asked)

    monkeypatch.setattr(ComputePool, "_begin", noting)
    few = [
        evaluation(),
        evaluation() | {"input": {"kind": "confusion_matrix", "matrix": [[5, 0, 1], [0, 0, 0], [2, 7, 1]]}},
        evaluation() | {"options": {"metrics": ["recall@nobody"]}},
        evaluation() | {"input": make(n=30, seed=4)},
        {"input": {"kind": "confusion_matrix", "matrix": [[1, 2]]}},
    ]
    names = {"X-Prevail-Project": "batches-apart"}
    headers = HEADERS | names | {"Idempotency-Key": "seventy"}

    def batch(items: list[Any], padding: str = "", **more: str) -> httpx.Response:
        text = json.dumps({"evaluations": items}) + padding
        return client.post("/v1/evaluations/batch", content=text.encode(), headers=headers | more)

    reply = batch(few * 14, PADDING)
    items = reply.json()["items"]
    assert sent[:3] == ["_made", "_evaluate_piece", "_evaluate_piece"]
    assert [item["status"] for item in items] == [201, 201, 422, 201, 422] * 14
    for index, item in enumerate(items[:10]):
        alone = client.post(PATH, json={"evaluations": [few[index % 5]]}, headers=names).json()["items"][0]
        if item["status"] == 422:
            place = item["problem"]["errors"][0]["pointer"].removeprefix(f"/evaluations/{index}")
            assert place == alone["problem"]["errors"][0]["pointer"].removeprefix("/evaluations/0")
        else:
            stored = client.get(f"/v1/evaluations/{item['evaluation']['id']}", headers=names).json()
            assert item["evaluation"] == stored
            assert item["evaluation"]["metrics"] == alone["evaluation"]["metrics"]
            assert item["evaluation"]["intervals"] == alone["evaluation"]["intervals"]
    kept = client.get("/v1/evaluations", params={"limit": 200}, headers=names).json()["items"]
    assert {one["id"] for one in kept} == {item["evaluation"]["id"] for item in items if item["status"] == 201}
    again = batch(few * 14, PADDING)
    assert again.headers["idempotent-replayed"] == "true"
    assert [item.get("evaluation", {}).get("id") for item in again.json()["items"]] == [
        item.get("evaluation", {}).get("id") for item in items
    ]
    brief = batch([few[0]] * 65, PADDING, Prefer="return=minimal", **{"Idempotency-Key": "brief"}).json()["items"]
    assert {json.dumps(item["evaluation"]["headline"]) for item in brief} == {
        json.dumps(items[0]["evaluation"]["headline"])
    }


def test_columns_of_a_batch_are_arrays(large: Json) -> None:
    text = json.dumps({"evaluations": [{"input": large}, {"input": make_scores()}]}).encode()
    first, second = (item["input"] for item in parse_large_body(text, BatchRequest).evaluations)
    assert isinstance(first["probabilities"], np.ndarray)
    assert first["probabilities"].shape == (12_000, 3)
    assert isinstance(first["y_true"], np.ndarray)
    assert isinstance(second["scores"], np.ndarray)


def test_the_size_of_an_item() -> None:
    assert entries_of({"a": np.zeros((3, 4)), "b": [1, [2, 3], "x"], "c": "text", "d": None}) == 12 + 3 + 2


def test_a_piece_that_cannot_be_computed_is_evaluated_item_by_item(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def failing(pool: ComputePool, function: Any) -> Any:
        raise RuntimeError("a defect")

    monkeypatch.setattr(ComputePool, "run_piece", failing)
    items = post(client, [evaluation()] * 70, PADDING)["items"]
    assert [item["status"] for item in items] == [200] * 70
    assert items[0]["evaluation"] == post(client, [evaluation()])["items"][0]["evaluation"]
    assert "evaluated alone" in caplog.text
