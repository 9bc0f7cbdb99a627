"""`fields=values`: one flat table of values with limits, the same everywhere an evaluation is answered."""

from typing import Any

import httpx
import pytest

from tests.api.answers import FOUR_CLASSES, Json, check_problem, create, evaluation, matrix_input

TRUTH = [index % 3 for index in range(60)]
CALLED = [(index * 7 % 5) % 3 for index in range(60)]
PROBABILITIES = [
    [0.2 + 0.5 * (index % 3 == k) - 0.05 * (k == 2) * (index % 2) for k in range(3)] for index in range(60)
]
SCORED: Json = {
    "kind": "probabilities",
    "labels": ["0", "1", "2"],
    "y_true": TRUTH,
    "probabilities": [[value / sum(row) for value in row] for row in PROBABILITIES],
}
KINDS: dict[str, Json] = {
    "matrix": matrix_input(FOUR_CLASSES, labels=list("ABCD")),
    "two classes": matrix_input([[40, 9], [7, 30]]),
    "rates": matrix_input([[0.9, 0.1], [0.2, 0.8]], normalized=True),
    "undefined": matrix_input([[5, 0, 1], [0, 0, 0], [2, 0, 4]]),
    "groups": {"kind": "predictions", "y_true": TRUTH, "y_pred": CALLED, "group_ids": [i // 3 for i in range(60)]},
    "weighted": {"kind": "predictions", "y_true": TRUTH, "y_pred": CALLED, "sample_weight": [1.5, 1, 2] * 20},
    "probabilities": SCORED,
    "ranking": {
        "kind": "ranking",
        "query_ids": [index // 5 for index in range(60)],
        "relevance": [int(index % 4 == 0) for index in range(60)],
        "scores": [index * 7 % 11 for index in range(60)],
    },
    "labels": {"kind": "multilabel", "y_true": [["a"], ["b"], ["a", "b"]], "y_pred": [["a"], ["a", "b"], ["b"]]},
}


def values_of(client: httpx.Client, body: Json, *metrics: str, path: str = "/v1/metrics/compute") -> Json:
    reply = client.post(path, params={"fields": "values", "metrics": metrics}, json=body)
    assert reply.is_success, reply.text
    answer: Json = reply.json()
    assert set(answer) == {"values"}
    found: Json = answer["values"]
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_every_value_has_limits_or_a_reason_and_is_that_of_the_report(client: httpx.Client, kind: str) -> None:
    body = evaluation(input=KINDS[kind])
    found = values_of(client, body)
    report = client.post("/v1/metrics/compute", json=body).json()
    assert list(found) == list(report["headline"]["metrics"])
    for name, one in found.items():
        shown = report["headline"]["metrics"][name]
        assert {end: one[end] for end in shown if end != "reason"} == {k: v for k, v in shown.items() if k != "reason"}
        assert (one["reason"] is None) == (one["low"] is not None or one["high"] is not None)
        assert one["group"] in ("insensitive", "sensitive")
        assert (one["level"] is None) == (one["method"] is None)
        balanced = report["metrics"]["at_balanced_prevalence"]
        assert (one["balanced"] is not None) == (name in balanced)
        if one["balanced"] is not None:
            ends = report["intervals_at_balanced_prevalence"].get(name, {})
            expected = {"value": balanced[name], "low": ends.get("low"), "high": ends.get("high")}
            assert one["balanced"] == expected


def test_what_is_chosen_stands_under_its_canonical_name(client: httpx.Client) -> None:
    body = evaluation(input=KINDS["matrix"])
    found = values_of(client, body, "accuracy_score", "f1_score(average=macro)", "PPV@D", "min(recall@*)", "recall@*")
    assert list(found)[:4] == ["accuracy", "macro_f1", "precision@D", "min(recall@*)"]
    assert found["accuracy"]["as_asked"] == "accuracy_score"
    assert found["macro_f1"]["as_asked"] == "f1_score(average=macro)"
    assert "as_asked" not in found["recall@D"]
    assert [name for name in found if name.startswith("recall@")] == [f"recall@{label}" for label in "ABCD"]
    assert found["recall@D"]["value"] == pytest.approx(16 / 100)
    assert found["recall@D"]["group"] == "insensitive"
    assert found["precision@D"]["group"] == "sensitive"
    # Of each class a hundredth of all: 16 of 16 calls are right at any shares.
    assert found["precision@D"]["balanced"]["value"] == pytest.approx(1.0)
    assert all(one["low"] is not None for one in found.values())
    for name, one in found.items():
        alone = values_of(client, body, name)
        assert {**alone[name], "as_asked": None} == {**one, "as_asked": None}


def test_what_is_chosen_for_one_answer_is_not_kept(client: httpx.Client) -> None:
    body = evaluation(input=SCORED, options={"metrics": ["recall@1"], "retain": "none"})
    made = client.post("/v1/evaluations", params={"fields": "id,values", "metrics": ["log_loss", "mcc"]}, json=body)
    assert made.status_code == 201
    assert list(made.json()["values"]) == ["log_loss", "mcc"]
    whole = client.get(f"/v1/evaluations/{made.json()['id']}").json()
    assert list(whole["requested"]) == ["recall@1"]
    assert list(whole["headline"]["requested"]) == ["recall@1"]


def test_a_stored_evaluation_answers_what_is_chosen_later(client: httpx.Client) -> None:
    for given in (KINDS["matrix"], SCORED, KINDS["ranking"]):
        body = evaluation(input=given)
        names = (
            ["mean_reciprocal_rank", "ndcg_at_k(k=3)"]
            if given["kind"] == "ranking"
            else ["f_beta(beta=2)@0", "kappa_z"]
        )
        if given is KINDS["matrix"]:
            names = ["f_beta(beta=2)@A", "kappa_z"]
        made = create(client, body)
        path = f"/v1/evaluations/{made['id']}"
        later = client.get(path, params={"fields": "values", "metrics": names}).json()["values"]
        assert later == values_of(client, body, *names)
        tagged = client.patch(path, params={"fields": "values", "metrics": names}, json={"tags": {"a": "b"}})
        assert tagged.json()["values"] == later


def test_of_samples_that_were_not_kept_the_rest_says_why(client: httpx.Client) -> None:
    made = create(client, evaluation(input=SCORED, options={"retain": "none"}))
    path = f"/v1/evaluations/{made['id']}"
    names = ["log_loss", "roc_auc_between(low=0.1, high=0.5)@0", "recall@1", "kappa_z"]
    found = client.get(path, params={"fields": "values", "metrics": names}).json()["values"]
    assert found["log_loss"]["value"] == made["metrics"]["prevalence_sensitive"]["log_loss"]
    assert found["log_loss"]["low"] is not None
    missing = found["roc_auc_between(low=0.1, high=0.5)@0"]
    assert (missing["value"], missing["reason"]) == (
        None, "the samples were not saved: the evaluation was made with retain=none",
    )  # fmt: skip
    assert found["recall@1"]["value"] is not None
    assert found["kappa_z"]["value"] is not None


def test_batches_and_lists_have_them(client: httpx.Client) -> None:
    bodies = [evaluation(input=given, dataset="values of lists") for given in KINDS.values()]
    asked = {"fields": "id,values", "metrics": ["accuracy", "recall@*"]}
    sent = client.post("/v1/evaluations/batch", params={"fields": "id,values"}, json={"evaluations": bodies}).json()
    by_id = {item["evaluation"]["id"]: item["evaluation"]["values"] for item in sent["items"]}
    listed = client.get("/v1/evaluations", params={"fields": "id,values", "dataset": "values of lists"}).json()
    kinds = dict(zip(by_id, KINDS, strict=True))
    for item in listed["items"]:
        own, kind = by_id[item["id"]], kinds[item["id"]]
        assert {name: own[name]["value"] for name in own} == {
            name: one["value"] for name, one in item["values"].items()
        }, kind
        if kind in ("matrix", "two classes", "rates", "undefined"):
            assert item["values"] == own
        else:
            limited = [one for one in item["values"].values() if one["low"] is None]
            assert all(one["reason"] for one in limited)
    # What needs the samples has its value from what is stored, and says why it has no limits.
    chosen = {"fields": "id,values", "metrics": ["log_loss"], "dataset": "values of lists"}
    scored = [
        one
        for one in client.get("/v1/evaluations", params=chosen).json()["items"]
        if kinds[one["id"]] == "probabilities"
    ]
    alone = client.get(f"/v1/evaluations/{scored[0]['id']}", params={"fields": "values", "metrics": "log_loss"}).json()
    assert scored[0]["values"]["log_loss"]["value"] == alone["values"]["log_loss"]["value"]
    assert "samples are not read" in scored[0]["values"]["log_loss"]["reason"]
    found = client.get("/v1/evaluations", params={**asked, "dataset": "values of lists"}).json()["items"]
    one = next(item for item in found if kinds[item["id"]] == "matrix")
    assert list(one["values"]) == ["accuracy", "recall@A", "recall@B", "recall@C", "recall@D"]


def test_what_does_not_apply_takes_nothing_else_out_of_a_list(client: httpx.Client) -> None:
    """Neither a metric of other inputs, nor a class that one evaluation lacks; what is none at all is refused."""
    ids = {create(client, evaluation(input=KINDS[kind], dataset="mixed"))["id"]: kind for kind in KINDS}
    asked = {
        "fields": "id,values",
        "dataset": "mixed",
        "metrics": ["log_loss", "recall@2", "ndcg_at_k(k=10)", "accuracy", "nope@2"],
    }
    (fault,) = check_problem(client.get("/v1/evaluations", params=asked), 422, "invalid_query")["errors"]
    assert (fault["code"], fault["parameter"]) == ("unknown_metric", "metrics")
    asked["metrics"] = asked["metrics"][:-1]
    found = {ids[one["id"]]: one["values"] for one in client.get("/v1/evaluations", params=asked).json()["items"]}
    for kind in ("undefined", "groups", "weighted", "probabilities"):
        assert found[kind]["accuracy"]["value"] is not None, kind
        assert found[kind]["recall@2"]["value"] is not None, kind
        assert "ndcg_at_k needs rankings of items" in found[kind]["ndcg_at_k(k=10)"]["reason"], kind
    assert "log_loss needs probabilities" in found["groups"]["log_loss"]["reason"]
    assert "no class '2'" in found["two classes"]["recall@2"]["reason"]
    assert found["two classes"]["accuracy"]["low"] is not None
    assert "samples are not read" in found["weighted"]["recall@2"]["reason"]
    assert found["ranking"]["ndcg_at_k(k=10)"]["value"] is not None


FAULTS: list[tuple[dict[str, Any], str, str]] = [
    ({"fields": "values", "metrics": "recal@A"}, "unknown_metric", "metrics"),
    ({"fields": "values", "metrics": "recall@Z"}, "unknown_label", "metrics"),
    ({"fields": "values", "metrics": "min("}, "invalid_expression", "metrics"),
    ({"metrics": "recall@A"}, "no_values", "metrics"),
    ({"fields": "headline", "metrics": "recall@A"}, "no_values", "metrics"),
    ({"fields": "value"}, "unknown_member", "fields"),
]


@pytest.mark.parametrize(("params", "code", "parameter"), FAULTS, ids=str)
def test_faults_name_the_parameter(client: httpx.Client, params: Json, code: str, parameter: str) -> None:
    body = evaluation(input=KINDS["matrix"])
    made = create(client, body)
    for reply in (
        client.post("/v1/metrics/compute", params=params, json=body),
        client.post("/v1/evaluations", params=params, json=body),
        client.get(f"/v1/evaluations/{made['id']}", params=params),
    ):
        (fault,) = check_problem(reply, 422, "invalid_query")["errors"]
        assert (fault["code"], fault["parameter"]) == (code, parameter)
        assert "pointer" not in fault
    if code == "unknown_metric":
        assert fault["suggestions"][0] == "recall"


def test_a_small_answer(client: httpx.Client) -> None:
    body = evaluation(input=KINDS["two classes"])
    reply = client.post("/v1/metrics/compute", params={"fields": "values,findings"}, json=body)
    assert len(reply.content) < 3_000


def test_a_change_of_tags_is_answered_briefly(client: httpx.Client) -> None:
    made = create(client, evaluation(input=KINDS["matrix"]))
    path = f"/v1/evaluations/{made['id']}"
    reply = client.patch(path, json={"tags": {"stage": "b"}}, headers={"Prefer": "return=minimal"})
    assert reply.json() == {"id": made["id"], "headline": made["headline"]}
    assert reply.headers["preference-applied"] == "return=minimal"
    assert len(reply.content) < 2_000
    assert client.get(path).json()["tags"] == {"stage": "b"}
