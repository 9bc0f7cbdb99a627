"""Evaluations made, read, tagged, deleted; one by one and many at once."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID, uuid4

import httpx
import numpy as np
import pytest

from app.api.cursors import Items
from app.api.v1.evaluations.batches import BatchItem
from app.services.evaluate.evaluations import Evaluation, EvaluationService, MatrixShown
from tests.api.answers import (
    check_json,
    check_problem,
    check_shape,
    compute,
    count_stored,
    create,
    evaluation,
    matrix_input,
)
from tests.api.shown import BODIES
from tests.bank import each
from tests.witnesses import sk

KINDS: dict[str, Any] = {
    **BODIES["createEvaluation"],
    "weights": evaluation(input=matrix_input([[1.5, 0.25], [0.1, 3]])),
    "rates": evaluation(input=matrix_input([[0.9, 0.1], [0.2, 0.8]], normalized=True)),
    "an empty row and column": evaluation(input=matrix_input([[3, 1, 0], [0, 0, 0], [2, 4, 0]])),
    "predicted rows": evaluation(input=matrix_input([[5, 2], [1, 4]], orientation="predicted_rows")),
    "weighted predictions": evaluation(
        input={"kind": "predictions", "y_true": [0, 1, 2], "y_pred": [0, 1, 1], "sample_weight": [1, 0.5, 2]}
    ),
    "weighted folds": evaluation(
        input={
            "kind": "folds",
            "folds": [matrix_input([[1.5, 0], [0, 1]]), matrix_input([[2, 1], [0, 1]])],
        },
        options={"interpretation": True, "level": 0.9},
    ),
    "every option": evaluation(
        tags={"zeta": "1", "a": "2", "mm": "x"},
        options={
            "metrics": ["f_beta(beta=2)", "recall@*", "gps(recall@*, mean(f1@*))"],
            "level": 0.8,
            "seed": 7,
            "intervals": "none",
            "interpretation": True,
        },
    ),
}


@pytest.mark.parametrize("body", KINDS.values(), ids=KINDS.keys())
def test_what_is_read_is_what_was_answered(client: httpx.Client, body: dict[str, Any]) -> None:
    made = client.post("/v1/evaluations", json=body)
    assert made.status_code == 201, made.text
    check_json(made)
    identifier = made.json()["id"]
    assert made.headers["location"] == f"/v1/evaluations/{identifier}"
    read = client.get(made.headers["location"])
    assert read.status_code == 200
    assert read.content == made.content
    check_shape(made, Evaluation)


@pytest.mark.parametrize("body", KINDS.values(), ids=KINDS.keys())
def test_what_is_not_kept_is_computed_alike(client: httpx.Client, body: dict[str, Any]) -> None:
    before = count_stored(client)
    kept = create(client, body)
    client.delete(f"/v1/evaluations/{kept['id']}")
    reply = client.post("/v1/evaluations?store=false", json=body)
    assert reply.status_code == 200
    assert "location" not in reply.headers
    computed = reply.json()
    assert computed["id"] is None
    assert computed["created_at"] is None
    own = ("id", "created_at")
    assert {k: v for k, v in computed.items() if k not in own} == {k: v for k, v in kept.items() if k not in own}
    assert client.post("/v1/metrics/compute", json=body).content == reply.content
    check_shape(reply, Evaluation)
    assert count_stored(client)[0] == before[0]


def test_nothing_of_what_is_computed_is_kept(client: httpx.Client) -> None:
    before = count_stored(client)
    body = evaluation(model=uuid4().hex, dataset=uuid4().hex)
    assert client.post("/v1/evaluations?store=false", json=body).status_code == 200
    assert client.post("/v1/metrics/compute", json=body).status_code == 200
    assert client.post("/v1/evaluations/batch?store=false", json={"evaluations": [body]}).status_code == 207
    assert count_stored(client) == before


def test_model_and_dataset_are_needed_only_to_keep(client: httpx.Client) -> None:
    body = {"input": matrix_input([[5, 1], [2, 4]])}
    answer = compute(client, body["input"])
    assert answer["model"] is None
    assert answer["dataset"] is None
    problem = check_problem(client.post("/v1/evaluations", json=body), 422, "invalid_input")
    assert [fault["pointer"] for fault in problem["errors"]] == ["/model", "/dataset"]
    assert "store=false" in problem["errors"][0]["detail"]
    only_model = client.post("/v1/evaluations", json={**body, "model": {"name": "m"}})
    assert [fault["pointer"] for fault in only_model.json()["errors"]] == ["/dataset"]


def test_identifiers_follow_time(client: httpx.Client) -> None:
    made = [create(client, evaluation()) for _ in range(5)]
    assert [item["id"] for item in made] == sorted(item["id"] for item in made)
    assert [item["created_at"] for item in made] == sorted(item["created_at"] for item in made)
    assert made[0]["created_at"].endswith("Z")


# Tags and deletion.


def test_tags_are_merged_and_nothing_else_changes(client: httpx.Client) -> None:
    made = create(client, evaluation(tags={"stage": "candidate", "git": "a1"}))
    path = f"/v1/evaluations/{made['id']}"
    reply = client.patch(path, json={"tags": {"stage": "production"}})
    assert reply.status_code == 200
    assert reply.json() == {**made, "tags": {"stage": "production", "git": "a1"}}
    assert client.get(path).content == reply.content
    assert client.patch(path, json={"tags": {}}).json()["tags"] == {"stage": "production", "git": "a1"}
    removed = client.patch(path, json={"tags": {"git": None, "never": None}})
    assert removed.json()["tags"] == {"stage": "production"}
    many = client.patch(path, json={"tags": {f"k{place}": "v" for place in range(64)}})
    assert check_problem(many, 422, "invalid_input")["errors"][0]["code"] == "wrong_length"


def test_changes_are_held_against_what_is_there(client: httpx.Client) -> None:
    path = f"/v1/evaluations/{create(client, evaluation())['id']}"
    first = client.get(path).headers["etag"]
    changed = client.patch(path, json={"tags": {"a": "1"}}, headers={"If-Match": first})
    assert changed.status_code == 200
    assert changed.headers["etag"] == client.get(path).headers["etag"] != first
    check_problem(
        client.patch(path, json={"tags": {"a": "2"}}, headers={"If-Match": first}), 412, "precondition_failed"
    )
    check_problem(client.patch(path, json={"tags": {}}, headers={"If-Match": "nope"}), 412, "precondition_failed")
    check_problem(client.delete(path, headers={"If-Match": first}), 412, "precondition_failed")
    assert client.get(path).json()["tags"] == {"a": "1"}
    assert client.delete(path, headers={"If-Match": "*"}).status_code == 204
    check_problem(client.delete(path, headers={"If-Match": "*"}), 412, "precondition_failed")


def test_a_change_computes_its_report_once(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tag is that of its answer, where that is what a GET would answer."""
    path = f"/v1/evaluations/{create(client, evaluation())['id']}"
    read, reads = EvaluationService.read, list[UUID]()

    async def counted(self: EvaluationService, project: str, identifier: UUID, *args: Any, **more: Any) -> Evaluation:
        reads.append(identifier)
        return await read(self, project, identifier, *args, **more)

    monkeypatch.setattr(EvaluationService, "read", counted)
    changed = client.patch(path, params={"width": 80}, json={"tags": {"a": "1"}})
    assert len(reads) == 1
    assert changed.headers["etag"] == client.get(path).headers["etag"]


def test_a_list_may_stand_on_several_lines(client: httpx.Client) -> None:
    path = f"/v1/evaluations/{create(client, evaluation())['id']}"
    tag = client.get(path).headers["etag"]
    lines = [("If-None-Match", '"other"'), ("If-None-Match", tag)]
    assert client.get(path, headers=lines).status_code == 304
    check_problem(client.patch(path, json={"tags": {"a": "1"}}, headers=lines), 412, "precondition_failed")
    lines = [("If-Match", '"other"'), ("If-Match", tag)]
    assert client.patch(path, json={"tags": {"a": "1"}}, headers=lines).status_code == 200
    # The client has a line of its own of each of these.
    refused = {"Accept": "image/png", "Accept-Encoding": "br"}
    with httpx.Client(base_url=client.base_url, headers={**client.headers, **refused}) as other:
        lines = [*refused.items(), ("Accept", "text/csv"), ("Accept-Encoding", "gzip")]
        reply = other.get(path, headers=lines)
    assert (reply.headers["content-type"], reply.headers["content-encoding"]) == ("text/csv; charset=utf-8", "gzip")
    lines = [("Prefer", 'handling="lenient"; strict'), ("Prefer", 'return="minimal"; why')]
    assert list(client.post("/v1/evaluations", json=evaluation(), headers=lines).json()) == ["id", "headline"]


# In what they put, {by} says which of several requests it was.
_GATE = {"rules": [{"metric": "h_mean", "min": 0.5}], "description": "{by}"}
_HOOK = {"url": "https://hooks.example/{by}", "events": ["gate.checked"]}


@each(
    "method, kind, body, new",
    [
        ("PATCH", "evaluations", {"tags": {"by": "{by}"}}, False),
        *(("PUT", kind, body, new) for kind, body in (("gates", _GATE), ("webhooks", _HOOK)) for new in (False, True)),
        *(("DELETE", kind, body, False) for kind, body in (("gates", _GATE), ("webhooks", _HOOK))),
        *(("DELETE", kind, None, False) for kind in ("evaluations", "models", "datasets")),
    ],
)
def test_of_several_changes_of_one_state_one_takes_place(
    client: httpx.Client, method: str, kind: str, body: Any, new: bool
) -> None:
    name = f"n{uuid4().hex}"
    if kind not in ("gates", "webhooks"):
        made = create(client, evaluation(model=name, dataset=name))["id"]
        name = made if kind == "evaluations" else name
    address = f"/v1/{kind}/{name}"
    if kind in ("gates", "webhooks") and not new:
        assert client.put(address, json=body).status_code == 201
    there = client.get(address)

    def change(by: int, **held: str) -> httpx.Response:
        return client.request(method, address, json=json.loads(json.dumps(body).replace("{by}", str(by))), headers=held)

    check_problem(change(0, **{"If-Match": '"other"'}), 412, "precondition_failed")
    held = {"If-Match": there.headers["etag"]} if there.status_code == 200 else {"If-None-Match": "*"}
    with ThreadPoolExecutor(4) as pool:
        answers = [*pool.map(lambda by: change(by, **held), range(4))]
    assert sorted(one.status_code for one in answers)[1:] == [412] * 3, [one.text for one in answers]
    (done,) = [one for one in answers if one.is_success]
    if method != "DELETE":
        assert done.headers["etag"] == client.get(address).headers["etag"]


@pytest.mark.parametrize(
    "written",
    [{"headers": {"Accept": "text/csv"}}, {"headers": {"Prefer": "return=minimal"}}, {"params": "fields=tags"}],
)
def test_the_tag_of_a_change_is_good_for_the_next_however_the_answer_is_written(
    client: httpx.Client, written: dict[str, Any]
) -> None:
    path = f"/v1/evaluations/{create(client, evaluation())['id']}"
    changed = client.patch(path, json={"tags": {"a": "1"}}, **written)
    assert changed.headers["etag"] == client.get(path).headers["etag"]
    again = client.patch(path, json={"tags": {"a": "2"}}, headers={"If-Match": changed.headers["etag"]})
    assert again.status_code == 200


def test_a_gate_is_made_only_where_there_is_none(client: httpx.Client) -> None:
    rules, new = {"rules": [{"metric": "h_mean", "min": 0.5}]}, {"If-None-Match": "*"}
    assert client.put("/v1/gates/once", json=rules, headers=new).status_code == 201
    other = {"rules": [{"metric": "h_mean", "min": 0.6}]}
    check_problem(client.put("/v1/gates/once", json=other, headers=new), 412, "precondition_failed")
    tag = client.get("/v1/gates/once").headers["etag"]
    assert client.put("/v1/gates/once", json=other, headers={"If-Match": tag}).headers["etag"] != tag
    check_problem(client.put("/v1/gates/once", json=rules, headers={"If-Match": tag}), 412, "precondition_failed")


def test_what_a_request_made_is_no_reason_to_refuse_it_again(client: httpx.Client) -> None:
    rules = {"rules": [{"metric": "h_mean", "min": 0.5}]}
    new = {"If-None-Match": "*", "Idempotency-Key": "once-again"}
    made = client.put("/v1/gates/again", json=rules, headers=new)
    again = client.put("/v1/gates/again", json=rules, headers=new)
    assert (made.status_code, again.status_code) == (201, 201)
    assert again.headers["idempotent-replayed"] == "true"
    assert again.content == made.content
    other = client.put("/v1/gates/again", json=rules, headers=new | {"Idempotency-Key": "another"})
    check_problem(other, 412, "precondition_failed")
    # Nothing is kept of what was refused.
    put = client.put("/v1/gates/again", json=rules, headers={"Idempotency-Key": "another"})
    assert (put.status_code, "idempotent-replayed" in put.headers) == (200, False)


def test_the_answer_of_a_change_has_the_tag_of_what_is_there(client: httpx.Client) -> None:
    """Also where the answer shows more (the secret of a new webhook), has a key, or is a replay."""
    hook, gate = (
        {"url": "https://hooks.example/", "events": ["gate.checked"]},
        {"rules": [{"metric": "h_mean", "min": 0.5}]},
    )
    for path, body in (("/v1/webhooks/tagged", hook), ("/v1/gates/tagged", gate)):
        made = client.put(path, json=body, headers={"Idempotency-Key": path})
        assert made.status_code == 201
        tag = client.get(path).headers["etag"]
        assert made.headers["etag"] == tag
        assert (
            client.put(path, json=body, headers={"If-Match": tag}).headers["etag"] == client.get(path).headers["etag"]
        )
    replayed = client.put(path, json=gate, headers={"Idempotency-Key": path})
    assert replayed.headers["idempotent-replayed"] == "true"
    assert replayed.headers["etag"] == client.get(path).headers["etag"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/tags"),
        ({"tags": None}, "/tags"),
        ({"tags": {"a": 1}}, "/tags/a"),
        ({"tags": {"a/b~c": 1}}, "/tags/a~1b~0c"),
        ({"tags": {"a": "1"}, "model": {"name": "other"}}, "/model"),
        ({"tags": {"with:colon": "1"}}, "/tags/with:colon"),
        ({"tags": {"": "1"}}, "/tags/"),
        ({"tags": {"a": "b\x00"}}, "/tags/a"),
        ({"tags": {f"k{i}": "v" for i in range(65)}}, "/tags"),
    ],
)
def test_other_changes_are_refused(client: httpx.Client, body: dict[str, Any], pointer: str) -> None:
    made = create(client, evaluation(tags={"stage": "x"}))
    path = f"/v1/evaluations/{made['id']}"
    problem = check_problem(client.patch(path, json=body), 422, "invalid_request")
    assert problem["errors"][0]["pointer"] == pointer
    assert client.get(path).json() == made


def test_a_deleted_evaluation_is_gone(client: httpx.Client) -> None:
    made = create(client, evaluation(model="to be deleted"))
    path = f"/v1/evaluations/{made['id']}"
    reply = client.delete(path)
    assert reply.status_code == 204
    assert reply.content == b""
    check_problem(client.get(path), 404, "not_found")
    check_problem(client.delete(path), 404, "not_found")
    check_problem(client.patch(path, json={"tags": {}}), 404, "not_found")
    assert client.get("/v1/evaluations", params={"model": "to be deleted"}).json()["items"] == []
    assert "to be deleted" not in [item["name"] for item in client.get("/v1/models?limit=200").json()["items"]]


# Many at once.


def test_a_batch_answers_each_in_order(client: httpx.Client) -> None:
    before = count_stored(client)[0]
    good = evaluation(model="batch")
    bad = evaluation(input=matrix_input([[1, 2], [-3, 4]]))
    unknown = evaluation(options={"metrics": ["h_mean", "h_men"]})
    malformed = evaluation(extra=1)
    items = [good, bad, 7, unknown, malformed, {"input": good["input"]}, good]
    reply = client.post("/v1/evaluations/batch", json={"evaluations": items})
    assert reply.status_code == 207
    check_json(reply)
    check_shape(reply, Items[BatchItem])
    answers = reply.json()["items"]
    assert [item["status"] for item in answers] == [201, 422, 422, 422, 422, 422, 201]
    pointers = [item["problem"]["errors"][0]["pointer"] for item in answers if "problem" in item]
    assert pointers == [
        "/evaluations/1/input/matrix/1/0",
        "/evaluations/2",
        "/evaluations/3/options/metrics/1",
        "/evaluations/4/extra",
        "/evaluations/5/model",
    ]
    assert [item["problem"]["code"] for item in answers if "problem" in item][2] == "unknown_metric"
    kept = [item["evaluation"] for item in answers if "evaluation" in item]
    for item in kept:
        assert client.get(f"/v1/evaluations/{item['id']}").json() == item
    assert count_stored(client)[0] == before + 2


def test_an_item_of_a_batch_is_answered_as_if_alone(client: httpx.Client) -> None:
    bodies = list(KINDS.values())
    reply = client.post("/v1/evaluations/batch?store=false", json={"evaluations": bodies})
    for body, item in zip(bodies, reply.json()["items"], strict=True):
        alone = client.post("/v1/evaluations?store=false", json=body)
        assert item == {"status": 200, "evaluation": alone.json()}


@pytest.mark.parametrize("body", [{}, {"evaluations": []}, {"evaluations": {}}, {"evaluations": [{}] * 1001}, []])
def test_a_batch_of_another_form_is_refused_as_a_whole(client: httpx.Client, body: Any) -> None:
    check_problem(client.post("/v1/evaluations/batch", json=body), 422, "invalid_request")


# Names.


@pytest.mark.parametrize(
    "name", ["x", "Größe µ 模型 🐘", 'with "quotes" and \\ and /', "%27; DROP TABLE evaluations --", "x" * 256]
)
def test_names_of_any_text(client: httpx.Client, name: str) -> None:
    body = evaluation(model=name, dataset=name, tags={name.replace(":", "")[:128]: name})
    body["model"]["version"] = body["dataset"]["version"] = body["dataset"]["split"] = name
    made = create(client, body)
    found = client.get("/v1/evaluations", params={"model": name, "dataset": name, "split": name})
    assert [item["id"] for item in found.json()["items"]] == [made["id"]]
    assert made["model"] == {"name": name, "version": name}


@each(
    ("members", "pointer"),
    [
        ({"model": {"name": ""}}, "/model/name"),
        ({"model": {"name": "x" * 257}}, "/model/name"),
        ({"model": {"name": "a\x00b"}}, "/model/name"),
        ({"model": {"name": 7}}, "/model/name"),
        ({"model": {}}, "/model/name"),
        ({"model": "m"}, "/model"),
        ({"model": {"name": "m", "release": "1"}}, "/model/release"),
        ({"dataset": {"name": "d", "split": ""}}, "/dataset/split"),
        ({"tags": {"k": "v\x00"}}, "/tags/k"),
        ({"tags": ["a"]}, "/tags"),
        ({"options": {"level": 1}}, "/options/level"),
        ({"options": {"level": 0}}, "/options/level"),
        ({"options": {"level": "0.95"}}, "/options/level"),
        ({"options": {"seed": -1}}, "/options/seed"),
        ({"options": {"seed": 1.5}}, "/options/seed"),
        ({"options": {"seed": True}}, "/options/seed"),
        ({"options": {"intervals": "many"}}, "/options/intervals"),
        ({"options": {"metrics": "h_mean"}}, "/options/metrics"),
        ({"options": {"metrics": [7]}}, "/options/metrics/0"),
        ({"options": {"metrics": [""]}}, "/options/metrics/0"),
        ({"options": {"metrics": ["h_mean\x00"]}}, "/options/metrics/0"),
        ({"options": {"metrics": ["h_mean"] * 201}}, "/options/metrics"),
        ({"options": {"interpretation": 1}}, "/options/interpretation"),
        ({"option": {}}, "/option"),
        ({"input": {"kind": "matrix"}}, "/input/kind"),
        ({"input": {"matrix": [[1, 2], [3, 4]]}}, "/input/kind"),
        ({"input": []}, "/input"),
    ],
)
def test_members_of_another_form(client: httpx.Client, members: dict[str, Any], pointer: str) -> None:
    problem = check_problem(client.post("/v1/evaluations", json=evaluation() | members), 422, "invalid_request")
    assert [fault["pointer"] for fault in problem["errors"]] == [pointer]


def test_every_fault_is_listed(client: httpx.Client) -> None:
    body = {"model": {"name": ""}, "input": matrix_input([[1, "x"], [None, 2]]), "tags": {"a": 1}, "more": 1}
    problem = check_problem(client.post("/v1/evaluations", json=body), 422, "invalid_request")
    pointers = {fault["pointer"] for fault in problem["errors"]}
    assert pointers == {"/model/name", "/input/matrix/0/1", "/input/matrix/1/0", "/tags/a", "/more"}


SPELLINGS = ("caf\u00e9", "cafe\u0301")


def test_one_name_in_two_spellings_is_one(client: httpx.Client) -> None:
    for spelling in SPELLINGS:
        reply = client.post(
            "/v1/evaluations",
            json=evaluation(input=matrix_input([[5, 1], [2, 4]], labels=["a", spelling]))
            | {"model": {"name": spelling}, "dataset": {"name": spelling}, "tags": {spelling: spelling}},
        )
        assert reply.status_code == 201, reply.text
        made = reply.json()
        assert (made["model"]["name"], made["input"]["labels"][1]) == (SPELLINGS[0], SPELLINGS[0])
        assert made["tags"] == {SPELLINGS[0]: SPELLINGS[0]}
    for spelling in SPELLINGS:
        for query in ({"model": spelling}, {"dataset": spelling}, {"tag": f"{spelling}:{spelling}"}):
            assert len(client.get("/v1/evaluations", params=query).json()["items"]) == 2
        board = client.get("/v1/leaderboard", params={"dataset": spelling}).json()
        assert [line["model"]["name"] for line in board["items"]] == [SPELLINGS[0]]
        answer = client.post(
            f"/v1/evaluations/{made['id']}/projections",
            json={"prevalence": {spelling: 0.5}, "metrics": [f"recall@{spelling}"]},
        )
        assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    "name", [" ", "\u00a0 ", "a\u200bb", "\u202eabc", "a\u0007", "a\nb", "\ufeffa", "a\u2028", "\u00ad"]
)
def test_names_that_nobody_can_see(client: httpx.Client, name: str) -> None:
    for members, pointer in (
        ({"model": {"name": name}}, "/model/name"),
        ({"dataset": {"name": "d", "split": name}}, "/dataset/split"),
        ({"tags": {name: "a"}}, f"/tags/{name}"),
        ({"input": matrix_input([[5, 1], [2, 4]], labels=["a", name])}, "/input/labels/1"),
    ):
        reply = client.post("/v1/evaluations", json=evaluation() | members)
        problem = check_problem(reply, 422, "invalid_request")
        assert [fault["pointer"] for fault in problem["errors"]] == [pointer]
    reply = client.post("/v1/evaluations", json=evaluation() | {"tags": {SPELLINGS[0]: "a", SPELLINGS[1]: "b"}})
    assert check_problem(reply, 422, "invalid_request")["errors"][0]["code"] == "repeated_name"


@pytest.mark.parametrize("by", ["true", "pred", "all"])
def test_the_matrix_alone_and_as_shares(client: httpx.Client, by: str) -> None:
    truth, predicted = ["a"] * 5 + ["b"] * 3 + ["c"] * 2, ["a", "a", "b", "a", "b", "b", "a", "b", "a", "b"]
    source = {"kind": "predictions", "y_true": truth, "y_pred": predicted, "labels": ["a", "b", "c", "d"]}
    made = client.post("/v1/evaluations", json=BODIES["createEvaluation"]["predictions"] | {"input": source}).json()
    address = f"/v1/evaluations/{made['id']}/confusion-matrix"
    plain = client.get(address)
    check_json(plain)
    check_shape(plain, MatrixShown)
    assert plain.json()["confusion_matrix"] == made["input"]["confusion_matrix"]
    answer = client.get(address, params={"normalized": by}).json()
    assert (answer["evaluation_id"], answer["labels"], answer["normalized"]) == (made["id"], ["a", "b", "c", "d"], by)
    expected = sk.confusion_matrix(truth, predicted, labels=["a", "b", "c", "d"], normalize=by)
    found = np.array(answer["confusion_matrix"], dtype=float)
    np.testing.assert_allclose(np.nan_to_num(found), expected, rtol=1e-15)
    # What scikit-learn calls 0 and nothing is known of: the class that never occurs, and those never predicted.
    undefined = {"true": [3], "pred": [2, 3], "all": []}[by]
    assert np.isnan(found).any(axis=0 if by == "pred" else 1).nonzero()[0].tolist() == undefined
    check_problem(client.get(address, params={"normalized": "rows"}), 422, "invalid_query")
    check_problem(client.get(f"/v1/evaluations/{uuid4()}/confusion-matrix"), 404, "not_found")
