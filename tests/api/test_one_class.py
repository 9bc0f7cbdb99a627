"""Test runs whose samples are all of one class: what exists is answered, the rest has its reason."""

from typing import Any

import httpx
import pytest

from tests.api.answers import compute, create, evaluation, matrix_input

Json = dict[str, Any]
RUNS: dict[str, Json] = {
    "matrix": matrix_input([[0, 0], [3, 17]]),
    "three classes": matrix_input([[12, 5, 3], [0, 0, 0], [0, 0, 0]]),
    "counts": {"kind": "binary_counts", "tp": 17, "fn": 3, "fp": 0, "tn": 0},
    "predictions": {
        "kind": "predictions",
        "y_true": ["a"] * 20,
        "y_pred": ["a"] * 15 + ["b"] * 5,
        "sample_ids": [*range(20)],
    },
    "probabilities": {
        "kind": "probabilities",
        "y_true": ["a"] * 20,
        "probabilities": [[0.5 + 0.02 * index, 0.5 - 0.02 * index] for index in range(-5, 15)],
        "labels": ["a", "b"],
        "sample_ids": [*range(20)],
    },
    "scores": {
        "kind": "scores",
        "y_true": [1] * 20,
        "scores": [index * 0.5 - 2 for index in range(20)],
        "labels": [0, 1],
        "threshold": 0,
        "sample_ids": [*range(20)],
    },
    "class scores": {
        "kind": "scores",
        "y_true": [1] * 20,
        "scores": [[index % 7, 2 + index % 3, index % 5] for index in range(20)],
        "labels": [0, 1, 2],
        "sample_ids": [*range(20)],
    },
}


def nulls(metrics: Json) -> set[str]:
    return {key for group in metrics.values() for key, value in group.items() if value is None}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("intervals", ["headline", "all"])
def test_every_missing_value_has_its_reason(client: httpx.Client, name: str, intervals: str) -> None:
    asked = ["gps(recall@*)", "recall@*", "h_mean", "accuracy"]
    answer = compute(client, RUNS[name], metrics=asked, intervals=intervals, draws=200, seed=0)
    sensitive = answer["metrics"]["prevalence_sensitive"]
    counts = answer["input"]["confusion_matrix"]
    right = sum(row[index] for index, row in enumerate(counts)) / 20
    assert sensitive["accuracy"] == pytest.approx(right)
    assert answer["metrics"]["prevalence_insensitive"]["balanced_accuracy"] is None
    said = {entry["metric"] for entry in answer["undefined"]}
    balanced = answer["metrics"].pop("at_balanced_prevalence")
    assert nulls(answer["metrics"]) <= said
    assert set(balanced.values()) <= {None}
    assert "*" in said
    member = next(iter(label for label, share in answer["input"]["prevalence"].items() if share == 1))
    for label, groups in answer["per_class"].items():
        groups.pop("at_balanced_prevalence", None)
        of_class = {entry["metric"] for entry in answer["undefined"] if entry.get("class", label) == label}
        assert nulls(groups) <= of_class
    assert answer["requested"]["recall@*"][member] == pytest.approx(right)
    assert answer["requested"]["gps(recall@*)"] is None
    assert answer["intervals"]["accuracy"]["low"] < right < answer["intervals"]["accuracy"]["high"]
    assert any(finding["code"] == "no_samples" for finding in answer["findings"])


@pytest.mark.parametrize("name", RUNS)
def test_comparisons_and_gates_are_inconclusive_with_the_reason(client: httpx.Client, name: str) -> None:
    made = [create(client, evaluation(model=model, input=RUNS[name])) for model in ("one", "two")]
    asked = ["accuracy", "h_mean", "mcc"] + (["roc_auc_ovo_macro"] if made[0]["input"].get("rule") else [])
    try:
        first, second = (one["id"] for one in made)
        reply = client.post("/v1/comparisons", json={"evaluations": [first, second], "metrics": asked, "seed": 0})
        assert reply.status_code == 201, reply.text
        found = reply.json()["metrics"]
        assert found["accuracy"]["differences"][0]["difference"] == 0
        for metric in asked[1:]:
            assert found[metric]["values"] == [None, None], metric
            (difference,) = found[metric]["differences"]
            assert difference["difference"] is None, metric
            assert difference["p_value"] is None, metric
            assert difference["reason"], metric
        rules: list[Json] = [{"metric": "accuracy", "min": 0.01}]
        rules += [{"metric": metric, "min": 0.01} for metric in asked[1:]]
        rules += [{"metric": metric, "not_worse_than": "baseline", "margin": 0.05} for metric in asked[1:]]
        assert client.put("/v1/gates/one-class", json={"rules": rules}).status_code in (200, 201)
        reply = client.post("/v1/gates/one-class/checks", json={"evaluation": first, "baseline": second})
        assert reply.status_code in (200, 201), reply.text
        results = reply.json()["results"]
        assert results[0]["verdict"] == "pass"
        assert {one["verdict"] for one in results[1:]} == {"inconclusive"}
        for one in results[1:]:
            assert "no actual samples" in one["message"] or "all samples belong to one class" in one["message"], one
        assert reply.json()["verdict"] == "inconclusive"
    finally:
        client.delete("/v1/gates/one-class")
        for one in made:
            client.delete(f"/v1/evaluations/{one['id']}")
