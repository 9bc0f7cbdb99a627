"""A score for every class that is no probability, such as a logit: only the order of each column means something."""

import json
from itertools import combinations
from typing import Any

import httpx
import numpy as np
import pytest

from tests.api.answers import check_problem, compute, create, evaluation, refused
from tests.api.test_multipart import as_csv, as_npz, as_parquet, send
from tests.api.test_probabilities import all_values, make
from tests.witnesses import sk

Json = dict[str, Any]


def make_class_scores(n: int = 60, classes: int = 3, seed: int = 0, **members: Any) -> Json:
    random = np.random.default_rng(seed)
    truth = random.integers(0, classes, n)
    rows = np.round(random.normal(0, 2, (n, classes)) + 3 * np.eye(classes)[truth] - 1, 1)
    return {"kind": "scores", "y_true": truth.tolist(), "scores": rows.tolist(), **members}


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_values_are_those_of_scikit_learn(client: httpx.Client, classes: int) -> None:
    source = make_class_scores(classes=classes, n=120)
    answer = compute(client, source, metrics=["recall_at(specificity=0.8)@*"])
    truth, rows = np.array(source["y_true"]), np.array(source["scores"])
    values = all_values(answer)
    areas = [sk.roc_auc_score(truth == code, rows[:, code]) for code in range(classes)]
    assert values["roc_auc_ovr_macro"] == pytest.approx(np.mean(areas), rel=1e-12)
    shares = np.bincount(truth) / truth.size
    assert values["roc_auc_ovr_weighted"] == pytest.approx(areas @ shares, rel=1e-12)
    pairs = []
    for one, other in combinations(range(classes), 2):
        here = np.isin(truth, [one, other])
        pairs += [sk.roc_auc_score(truth[here] == code, rows[here, code]) for code in (one, other)]
    assert values["roc_auc_ovo_macro"] == pytest.approx(np.mean(pairs), rel=1e-12)
    precisions = [sk.average_precision_score(truth == code, rows[:, code]) for code in range(classes)]
    assert values["macro_average_precision"] == pytest.approx(np.mean(precisions), rel=1e-12)
    for code, groups in enumerate(answer["per_class"].values()):
        own = {**groups["prevalence_insensitive"], **groups["prevalence_sensitive"]}
        assert own["roc_auc"] == pytest.approx(areas[code], rel=1e-12)
        assert own["average_precision"] == pytest.approx(precisions[code], rel=1e-12)
    assert answer["input"]["confusion_matrix"] == sk.confusion_matrix(truth, rows.argmax(axis=1)).tolist()
    assert answer["input"]["rule"] == "argmax"
    assert answer["input"]["ties"] == int(((rows == rows.max(axis=1)[:, None]).sum(axis=1) > 1).sum())


def test_only_the_order_of_a_column_counts(client: httpx.Client) -> None:
    source = make_class_scores()
    found = all_values(compute(client, source))
    plain = np.array(source["scores"])
    for rows in (plain * 7 - 100, np.arctan(plain / 10), np.exp(plain)):
        moved = all_values(compute(client, source | {"scores": rows.tolist()}))
        assert {key for key, value in moved.items() if value is None} == {key for key in found if found[key] is None}
        there = {key: value for key, value in found.items() if value is not None}
        # Of one shift and scale, or one increasing function, the highest stays the highest.
        assert {key: moved[key] for key in there} == pytest.approx(there, rel=1e-12)


def test_what_needs_probabilities_is_missing_with_the_reason(client: httpx.Client) -> None:
    # Rows that could be probabilities are none here.
    probabilities = make()
    source = {"kind": "scores", "y_true": probabilities["y_true"], "scores": probabilities["probabilities"]}
    answer, with_them = compute(client, source), compute(client, probabilities)
    values, others = all_values(answer), all_values(with_them)
    missing = {key for key, value in values.items() if value is None}
    assert {
        "log_loss",
        "brier_score",
        "au_imcp",
        "expected_calibration_error",
        "classwise_calibration_error",
    } <= missing
    assert {key: others[key] for key in values.keys() - missing} == pytest.approx(
        {key: values[key] for key in values.keys() - missing}, rel=1e-9
    )
    why = {entry["metric"] for entry in answer["undefined"] if entry["code"] == "not_probabilities"}
    assert missing - why == set()
    asked = [
        "log_loss",
        "calibration_slope@1",
        "ranked_probability_score",
        "d2_log_loss",
        "minimum_cost",
        "net_benefit_at@1",
    ]
    requested = compute(client, source, metrics=asked)
    assert requested["requested"] == dict.fromkeys(asked)
    assert {one["code"] for one in requested["undefined"] if one["metric"] in asked} == {"not_probabilities"}
    assert "calibration" not in answer["probabilities"]


def test_kept_compared_drawn_and_projected(client: httpx.Client) -> None:
    ids = [*range(60)]
    asked = ["roc_auc_ovo_macro", "roc_auc@1", "macro_average_precision", "h_mean"]
    bodies = [
        evaluation(model=name, input=make_class_scores(seed=4, sample_ids=ids), options={"metrics": asked, "seed": 0})
        for name in ("one", "two")
    ]
    rows = np.array(bodies[1]["input"]["scores"])
    bodies[1]["input"]["scores"] = (rows + np.random.default_rng(1).normal(0, 1, rows.shape)).tolist()
    made = [create(client, body) for body in bodies]
    try:
        for one in made:
            assert client.get(f"/v1/evaluations/{one['id']}").json() == one
        first, second = (one["id"] for one in made)
        reply = client.post("/v1/comparisons", json={"evaluations": [first, second], "metrics": asked, "seed": 0})
        assert reply.status_code == 201, reply.text
        compared = reply.json()
        for name in asked:
            assert compared["metrics"][name]["values"] == pytest.approx([one["requested"][name] for one in made])
            difference = compared["metrics"][name]["differences"][0]
            assert difference["low"] < difference["difference"] < difference["high"]
        curve = client.get(f"/v1/evaluations/{first}/curves/roc", params={"class": "1"}).json()
        assert curve["area"] == pytest.approx(made[0]["requested"]["roc_auc@1"])
        micro = client.get(f"/v1/evaluations/{first}/curves/roc", params={"class": "macro"}).json()
        assert micro["area"] == pytest.approx(all_values(made[0])["roc_auc_ovr_macro"])
        reply = client.get(f"/v1/evaluations/{first}/curves/calibration", params={"class": "1"})
        assert "no probabilities" in check_problem(reply, 422, reply.json()["code"])["detail"]
        reply = client.post(f"/v1/evaluations/{first}/thresholds", json={"objective": "h_mean"})
        assert "no probabilities" in check_problem(reply, 422, "no_feasible_rule")["detail"]
        body = {"prevalence": {"0": 0.8, "1": 0.1, "2": 0.1}, "metrics": ["macro_average_precision", "accuracy"]}
        projected = client.post(f"/v1/evaluations/{first}/projections", json=body)
        assert projected.status_code == 200, projected.text
        assert projected.json()["metrics"]["macro_average_precision"]["value"] > 0
    finally:
        for one in made:
            client.delete(f"/v1/evaluations/{one['id']}")


def test_folds_and_files(client: httpx.Client) -> None:
    source = make_class_scores(labels=["0", "1", "2"])
    folds = [index % 3 for index in range(60)]
    columns = {"y_true": source["y_true"], **{str(k): [row[k] for row in source["scores"]] for k in range(3)}}
    expected = compute(client, source, seed=0)
    for data in (as_csv(columns), as_parquet(columns)):
        assert send(client, {"kind": "scores"}, data, options={"seed": 0}).json() == expected
    arrays = as_npz({"y_true": source["y_true"], "scores": source["scores"]})
    assert send(client, {"kind": "scores"}, arrays, options={"seed": 0}).json() == expected
    shared = {"kind": "folds", "fold": {"kind": "scores"}}
    reply = send(client, shared, as_csv({**columns, "fold": folds}), options={"seed": 0})
    assert reply.status_code == 200, reply.text
    answer = reply.json()
    assert answer["input"]["confusion_matrix"] == expected["input"]["confusion_matrix"]
    assert len(answer["folds"]["roc_auc_ovo_macro"]["values"]) == 3
    assert all_values(answer)["roc_auc_ovo_macro"] == pytest.approx(all_values(expected)["roc_auc_ovo_macro"])
    one = {"kind": "scores", "y_true": [0, 1], "scores": [0.2, 0.3], "threshold": 0}
    each = {"kind": "scores", "y_true": [0, 1], "scores": [[1, 2], [2, 1]]}
    fault = refused(client, {"kind": "folds", "folds": [one, each]})
    assert (fault["pointer"], fault["code"]) == ("/input/folds/1/scores", "mixed_folds")


def test_large_bodies(client: httpx.Client) -> None:
    source = make_class_scores(n=20_000, classes=3)
    text = json.dumps({"input": source, "options": {"seed": 0, "intervals": "none"}})
    assert len(text) > 300_000
    reply = client.post("/v1/metrics/compute", content=text.encode(), headers={"Content-Type": "application/json"})
    assert reply.status_code == 200, reply.text
    rows, truth = np.array(source["scores"]), np.array(source["y_true"])
    assert all_values(reply.json())["accuracy"] == pytest.approx((rows.argmax(axis=1) == truth).mean())
    area = sk.roc_auc_score(truth == 1, rows[:, 1])
    assert reply.json()["per_class"]["1"]["prevalence_sensitive"]["roc_auc"] == pytest.approx(area, rel=1e-12)


@pytest.mark.parametrize(
    ("members", "pointer", "code"),
    [
        ({"threshold": 0.5}, "/threshold", "threshold_needs_one_score"),
        ({"scores": [[1, 2, 3]] * 59}, "/scores", "wrong_length"),
        ({"scores": [[1, 2, 3]] * 59 + [[1, 2]]}, "/scores/59", "ragged_row"),
        ({"scores": [[1, 2, 3]] * 59 + [4]}, "/scores/59", "not_a_row"),
        ({"scores": [4, *[[1, 2, 3]] * 59]}, "/scores/1", "not_a_number"),
        ({"scores": [[1, 2, None]] * 60}, "/scores/0/2", "not_a_number"),
        ({"scores": [[1]] * 60}, "/scores", "too_few_classes"),
        ({"scores": [[1, 2]] * 60}, "/labels", "labels_needed"),
        ({"labels": [0, 1]}, "/labels", "wrong_label_count"),
        ({"positive": 1}, "/positive", "positive_needs_two_classes"),
    ],
)
def test_what_are_no_class_scores(client: httpx.Client, members: Json, pointer: str, code: str) -> None:
    fault = refused(client, make_class_scores() | members)
    assert (fault["pointer"], fault["code"]) == (f"/input{pointer}", code)


def test_costs_of_scores_are_those_of_what_was_decided(client: httpx.Client) -> None:
    """With and without their samples: what costs least by the probabilities is not asked where there are none."""
    costs = {"matrix": [[0, 1], [5, 0]]}
    source = {"kind": "scores", "y_true": [0, 1, 1, 0], "scores": [1, 2, 3, 4], "threshold": 2}
    body = evaluation(input=source, options={"costs": costs, "retain": "none"})
    made = create(client, body)
    try:
        assert "minimum_cost" not in made["requested"]
        assert client.get(f"/v1/evaluations/{made['id']}").json() == made
    finally:
        client.delete(f"/v1/evaluations/{made['id']}")
