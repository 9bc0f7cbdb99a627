"""Probabilities and scores over HTTP: what comes in, what is answered, what is saved."""

import json
from typing import Any

import httpx
import numpy as np
import pytest

from app.kernel.metrics.card import INPUTS_OF_CLASSES, Scope, Task
from app.kernel.metrics.catalogue import catalogue
from tests.api.answers import check_problem, compute, create, evaluation, refused
from tests.bank import each
from tests.witnesses import sk

Json = dict[str, Any]


def make(n: int = 60, classes: int = 3, seed: int = 0, **members: Any) -> Json:
    """An input whose model knows something."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, n)
    probabilities = rng.dirichlet(np.ones(classes), n) + 0.7 * np.eye(classes)[truth]
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return {"kind": "probabilities", "y_true": truth.tolist(), "probabilities": probabilities.tolist(), **members}


def make_scores(n: int = 60, seed: int = 0, **members: Any) -> Json:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    return {
        "kind": "scores",
        "y_true": truth.tolist(),
        "scores": (rng.normal(0, 1, n) + truth).tolist(),
        "threshold": 0.5,
        **members,
    }


def all_values(answer: Json) -> Json:
    return {**answer["metrics"]["prevalence_insensitive"], **answer["metrics"]["prevalence_sensitive"]}


def test_values_are_those_of_scikit_learn(client: httpx.Client) -> None:
    source = make()
    answer = compute(client, source)
    values = all_values(answer)
    truth, probabilities = np.array(source["y_true"]), np.array(source["probabilities"])
    assert values["log_loss"] == pytest.approx(sk.log_loss(truth, probabilities), rel=1e-12)
    assert values["roc_auc_ovr_macro"] == pytest.approx(sk.roc_auc_score(truth, probabilities, multi_class="ovr"))
    assert values["roc_auc_ovo_macro"] == pytest.approx(sk.roc_auc_score(truth, probabilities, multi_class="ovo"))
    for code in range(3):
        found = answer["per_class"][str(code)]["prevalence_sensitive"]["average_precision"]
        assert found == pytest.approx(sk.average_precision_score(truth == code, probabilities[:, code]), rel=1e-12)
    predicted = probabilities.argmax(axis=1)
    assert answer["input"]["confusion_matrix"] == sk.confusion_matrix(truth, predicted).tolist()
    assert values["accuracy"] == pytest.approx(sk.accuracy_score(truth, predicted))


@pytest.mark.parametrize("classes", [2, 3])
def test_every_metric_has_its_place(client: httpx.Client, classes: int) -> None:
    answer = compute(client, make(classes=classes))
    by_group: dict[str, set[str]] = {"prevalence_insensitive": set(), "prevalence_sensitive": set()}
    per_class: dict[str, set[str]] = {"prevalence_insensitive": set(), "prevalence_sensitive": set()}
    for metric in catalogue().reported.for_task(Task.MULTICLASS, INPUTS_OF_CLASSES).metrics:
        insensitive = metric.card.prevalence.is_insensitive(classes)
        group = "prevalence_insensitive" if insensitive else "prevalence_sensitive"
        if metric.card.scope is Scope.CLASS:
            per_class[group].add(metric.key)
        if metric.card.scope is Scope.OVERALL or classes == 2:
            by_group[group].add(metric.key)
    for group, keys in by_group.items():
        assert set(answer["metrics"][group]) == keys
    for groups in answer["per_class"].values():
        for group, keys in per_class.items():
            assert set(groups[group]) == keys
    if classes == 2:
        positive = answer["per_class"]["1"]["prevalence_insensitive"]["roc_auc"]
        assert answer["metrics"]["prevalence_insensitive"]["roc_auc"] == positive


def test_positive_class_may_be_the_first(client: httpx.Client) -> None:
    answer = compute(client, make(classes=2, positive=0))
    assert answer["input"]["positive"] == "0"
    own = answer["per_class"]["0"]["prevalence_sensitive"]["average_precision"]
    assert answer["metrics"]["prevalence_sensitive"]["average_precision"] == own


def test_scores(client: httpx.Client) -> None:
    source = make_scores()
    answer = compute(client, source)
    truth, scores = np.array(source["y_true"]), np.array(source["scores"])
    assert all_values(answer)["roc_auc"] == pytest.approx(sk.roc_auc_score(truth, scores), rel=1e-12)
    assert answer["input"]["confusion_matrix"] == sk.confusion_matrix(truth, scores >= 0.5).tolist()
    # What needs probabilities has no value, and says why.
    assert all_values(answer)["log_loss"] is None
    assert {"metric": "log_loss", "code": "not_probabilities"}.items() <= next(
        entry for entry in answer["undefined"] if entry["metric"] == "log_loss"
    ).items()
    flipped = compute(client, {**source, "scores": (-scores).tolist(), "threshold": -0.5, "positive": 0})
    assert all_values(flipped)["roc_auc"] == pytest.approx(sk.roc_auc_score(truth, scores), rel=1e-12)


def test_the_threshold_of_scores_may_be_left_out(client: httpx.Client) -> None:
    for scores, threshold in (([-1.0, 0.2, 2.0], 0.0), ([0.1, 0.4, 0.9], 0.5)):
        answer = compute(client, {"kind": "scores", "y_true": [0, 1, 1], "scores": scores})
        assert answer["input"]["threshold"] == threshold
        assert "threshold_assumed" in [finding["code"] for finding in answer["findings"]]


def test_decisions_by_threshold(client: httpx.Client) -> None:
    source = {
        "kind": "probabilities",
        "y_true": ["no", "yes", "yes", "no"],
        "labels": ["no", "yes"],
        "probabilities": [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.75, 0.25]],
        "threshold": 0.25,
    }
    answer = compute(client, source)
    # At the threshold the positive class is decided for.
    assert answer["input"]["confusion_matrix"] == [[1, 1], [0, 2]]
    assert answer["input"]["rule"] == "threshold"
    assert compute(client, {**source, "positive": "no"})["input"]["confusion_matrix"] == [[2, 0], [1, 1]]


def test_ties_go_to_the_first_class_and_are_counted(client: httpx.Client) -> None:
    rows = [[0.5, 0.5, 0], [0, 0.5, 0.5], [0.2, 0.3, 0.5]]
    answer = compute(client, {"kind": "probabilities", "y_true": [1, 1, 2], "probabilities": rows, "labels": [0, 1, 2]})
    assert answer["input"]["confusion_matrix"] == [[0, 0, 0], [1, 1, 0], [0, 0, 1]]
    assert answer["input"]["ties"] == 2
    assert "ties_broken_by_order" in [finding["code"] for finding in answer["findings"]]


def test_what_stands_beside_the_values(client: httpx.Client) -> None:
    source = make(n=400)
    source["probabilities"][0] = [0.0, 0.0, 0.0]
    source["probabilities"][0][(source["y_true"][0] + 1) % 3] = 1.0
    details = compute(client, source, seed=3)["probabilities"]
    assert details["log_loss"] == {"clipped": 1, "below": float(np.finfo(float).eps)}
    assert details["imcp"]["certainly_wrong"]["p_true_below"] == pytest.approx(1 / 3)
    for name in ("expected_calibration_error", "adaptive_calibration_error", "classwise_calibration_error"):
        error = details["calibration"][name]
        assert 0 < error["expected_if_calibrated"] < error["upper_if_calibrated"] < 1
        assert error["seed"] == 3
    for label, entry in details["per_class"].items():
        share = source["y_true"].count(int(label)) / 400
        assert entry["h_measure"] == pytest.approx({"a": 1 + share, "b": 2 - share})
        assert entry["phi_quartiles"] == sorted(entry["phi_quartiles"])
        assert sum(entry["shares"].values()) == pytest.approx(1)
        parts = entry["brier_decomposition"]
        assert parts["brier"] == pytest.approx(
            parts["miscalibration"] - parts["discrimination"] + parts["uncertainty"], rel=1e-12
        )
        assert parts["brier"] == pytest.approx(
            parts["reliability"] - parts["resolution"] + parts["uncertainty"], rel=1e-12
        )


def test_expressions_of_probabilities(client: httpx.Client) -> None:
    texts = ["log_loss(clip=0.01)", "roc_auc@*", "mean(roc_auc@0, recall@0)", "h_measure(a=2, b=2)@1", "recall@*"]
    answer = compute(client, make(), metrics=texts)
    assert list(answer["requested"]) == texts
    areas = {label: groups["prevalence_sensitive"]["roc_auc"] for label, groups in answer["per_class"].items()}
    assert answer["requested"]["roc_auc@*"] == areas
    recall = answer["per_class"]["0"]["prevalence_insensitive"]["recall"]
    assert answer["requested"]["mean(roc_auc@0, recall@0)"] == pytest.approx((areas["0"] + recall) / 2)
    everything = compute(client, make(), metrics=texts, intervals="all", draws=200)
    assert everything["requested"] == answer["requested"]
    assert {"log_loss(clip=0.01)", "roc_auc@1", "mean(roc_auc@0, recall@0)"} <= set(everything["intervals"])


def test_expressions_of_probabilities_need_them(client: httpx.Client) -> None:
    body = {"input": {"kind": "confusion_matrix", "matrix": [[5, 1], [2, 4]]}, "options": {"metrics": ["log_loss"]}}
    problem = check_problem(client.post("/v1/metrics/compute", json=body), 422, "invalid_expression")
    assert problem["errors"][0]["pointer"] == "/options/metrics/0"
    assert "probabilities" in problem["detail"]


def test_weights_are_like_repetition(client: httpx.Client) -> None:
    source = make(n=40)
    weights = [1 + index % 3 for index in range(40)]
    repeated = {
        **source,
        "y_true": np.repeat(source["y_true"], weights).tolist(),
        "probabilities": np.repeat(source["probabilities"], weights, axis=0).tolist(),
    }
    weighted = all_values(compute(client, {**source, "sample_weight": weights}))
    plain = all_values(compute(client, repeated))
    for key in ("log_loss", "brier_score", "roc_auc_ovo_macro", "macro_average_precision", "au_imcp", "accuracy"):
        assert weighted[key] == pytest.approx(plain[key], rel=1e-10), key
    assert weighted["au_mcp_trapezoid"] is None


def test_one_class_and_constant_scores_are_answered_with_reasons(client: httpx.Client) -> None:
    one = compute(client, make(n=10, classes=2, y_true=[1] * 10, labels=[0, 1]))
    assert all_values(one)["roc_auc"] is None
    assert all_values(one)["log_loss"] > 0
    codes = {(e["metric"], e["code"]) for e in one["undefined"]}
    assert ("roc_auc", "no_other_samples") in codes
    nulls = {key for key, value in all_values(one).items() if value is None}
    assert nulls <= {entry["metric"] for entry in one["undefined"]}
    constant = compute(client, {"kind": "scores", "y_true": [0, 1, 0, 1], "scores": [3, 3, 3, 3], "threshold": 1})
    assert all_values(constant)["roc_auc"] == 0.5


FAULTS: dict[str, tuple[Json, str, str]] = {
    "no samples": ({"y_true": [], "probabilities": []}, "/y_true", "no_samples"),
    "too few rows": ({"probabilities": [[0.5, 0.5]]}, "/probabilities", "wrong_length"),
    "ragged": ({"probabilities": [[0.5, 0.5], [1], [0.5, 0.5]]}, "/probabilities/1", "ragged_row"),
    "ragged to the right size": (
        {"probabilities": [[0.5, 0.5], [1], [0.2, 0.3, 0.5]]},
        "/probabilities/1",
        "ragged_row",
    ),
    "not a row": ({"probabilities": [[0.5, 0.5], 1, [0.5, 0.5]]}, "/probabilities/1", "not_a_row"),
    "flat": ({"probabilities": [1, 0, 1]}, "/probabilities/0", "not_a_row"),
    "nested": ({"probabilities": [[0.5, 0.5], [[1], 0], [0.5, 0.5]]}, "/probabilities/1/0", "not_a_number"),
    "text": ({"probabilities": [[0.5, 0.5], ["1", 0], [0.5, 0.5]]}, "/probabilities/1/0", "not_a_number"),
    "null": ({"probabilities": [[0.5, 0.5], [None, 0], [0.5, 0.5]]}, "/probabilities/1/0", "not_a_number"),
    "boolean": ({"probabilities": [[0.5, 0.5], [True, 0], [0.5, 0.5]]}, "/probabilities/1/0", "not_a_number"),
    "one column": ({"probabilities": [[1], [1], [1]]}, "/probabilities", "too_few_classes"),
    "negative": ({"probabilities": [[0.5, 0.5], [1.5, -0.5], [1, 0]]}, "/probabilities/1/0", "out_of_range"),
    "sum": ({"probabilities": [[0.5, 0.5], [0.5, 0.4], [1, 0]]}, "/probabilities/1", "row_sum"),
    "zeros": ({"probabilities": [[0.5, 0.5], [0, 0], [1, 0]]}, "/probabilities/1", "all_zero_row"),
    "zeros to renormalise": (
        {"probabilities": [[0.5, 0.5], [0, 0], [1, 0]], "renormalize": True},
        "/probabilities/1",
        "all_zero_row",
    ),
    "labels too many": ({"labels": ["0", "1", "2"]}, "/labels", "wrong_label_count"),
    "labels needed": ({"y_true": [1, 1, 1]}, "/labels", "labels_needed"),
    "unknown label": ({"labels": ["0", "2"]}, "/y_true/1", "unknown_label"),
    "duplicate label": ({"labels": ["0", "0"]}, "/labels/1", "duplicate_label"),
    "ids twice": ({"sample_ids": ["a", "b", "a"]}, "/sample_ids/2", "duplicate_sample_id"),
    "ids short": ({"sample_ids": ["a"]}, "/sample_ids", "wrong_length"),
    "weight": ({"sample_weight": [1, -1, 1]}, "/sample_weight/1", "bad_weight"),
    "no weight at all": ({"sample_weight": [0, 0, 0]}, "/sample_weight", "no_samples"),
    "threshold": ({"threshold": 2}, "/threshold", "out_of_range"),
    "positive": ({"positive": "x"}, "/positive", "unknown_label"),
    "scores inside": ({"scores": [1, 2, 3]}, "/scores", "unknown_field"),
}


@each(("members", "pointer", "code"), FAULTS.values(), ids=FAULTS.keys())
@each("padding", ["", " " * 300_000], ids=["small", "large"])
def test_faults_have_their_place(client: httpx.Client, members: Json, pointer: str, code: str, padding: str) -> None:
    """However large the body: the fast reader must see what the careful one sees."""
    rows = [[0.5, 0.5], [0.25, 0.75], [1, 0]]
    source = {"kind": "probabilities", "y_true": [0, 1, 0], "probabilities": rows, **members}
    body = json.dumps(evaluation(input=source)) + padding
    reply = client.post("/v1/evaluations", content=body, headers={"Content-Type": "application/json"})
    problem = check_problem(reply, 422, reply.json()["code"])
    assert [(fault["pointer"], fault["code"]) for fault in problem["errors"]] == [(f"/input{pointer}", code)]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e400"])
@pytest.mark.parametrize("padding", ["", " " * 300_000], ids=["small", "large"])
def test_numbers_that_are_none(client: httpx.Client, number: str, padding: str) -> None:
    body = (
        '{"input": {"kind": "probabilities", "y_true": [0, 1], "probabilities": [[0.5, 0.5], [' + number + ", 0]]}}"
    ) + padding
    reply = client.post("/v1/metrics/compute", content=body, headers={"Content-Type": "application/json"})
    problem = check_problem(reply, 422, "invalid_input")
    assert problem["errors"][0]["pointer"] == "/input/probabilities/1/0"
    body = '{"input": {"kind": "scores", "y_true": [0, 1], "scores": [1, ' + number + "]}}" + padding
    reply = client.post("/v1/metrics/compute", content=body, headers={"Content-Type": "application/json"})
    problem = check_problem(reply, 422, "invalid_input")
    assert problem["errors"][0]["pointer"] == "/input/scores/1"


def test_a_threshold_is_for_two_classes(client: httpx.Client) -> None:
    assert refused(client, make(threshold=0.3)) == {
        "pointer": "/input/threshold",
        "code": "threshold_needs_two_classes",
        "detail": "expected no threshold with 3 classes: it is a choice for two classes only",
    }
    assert refused(client, make_scores(labels=[0, 1, 2]))["code"] == "wrong_label_count"


def test_renormalize_and_tolerance(client: httpx.Client) -> None:
    rows = [[1, 3], [0.5, 0.5], [3, 1]]
    source = {"kind": "probabilities", "y_true": [1, 1, 0], "probabilities": rows}
    assert refused(client, source)["code"] == "out_of_range"
    answer = compute(client, {**source, "renormalize": True})
    assert answer["input"]["renormalized"] == 2
    assert all_values(answer)["brier_score"] == pytest.approx((0.25**2 + 0.5**2 + 0.25**2) / 3)
    near = {**source, "probabilities": [[0.5, 0.502], [0.5, 0.5], [0.5, 0.5]]}
    assert refused(client, near)["code"] == "row_sum"
    assert compute(client, {**near, "sum_tolerance": 0.01})["input"]["n_samples"] == 3


def test_rounded_probabilities_are_taken_and_it_is_said(client: httpx.Client) -> None:
    """Within half a unit of the last decimal of each number, or of 16-bit numbers: as `renormalize` would take them."""
    exact = np.random.default_rng(5).dirichlet(np.ones(4), 50)
    truth = exact.argmax(axis=1).tolist()
    for rounded in (np.round(exact, 4), exact.astype(np.float16).astype(float)):
        source = {"kind": "probabilities", "y_true": truth, "probabilities": rounded.tolist()}
        found = compute(client, source)
        count = int((abs(rounded.sum(axis=1) - 1) > 1e-6).sum())
        assert found["input"]["renormalized"] == count > 0
        assert f"{count} of 50 rows of probabilities did not sum to 1" in str(found["findings"])
        assert all_values(found) == all_values(compute(client, {**source, "renormalize": True}))
        # Who says how far a sum may lie from 1 is taken at the word.
        assert refused(client, {**source, "sum_tolerance": 1e-7})["code"] == "row_sum"
    shifted = np.round(exact, 4)
    shifted[:, 3] += 0.0005
    assert refused(client, {**source, "probabilities": shifted.tolist()})["code"] == "row_sum"


@pytest.mark.parametrize("kind", ["probabilities", "scores"])
def test_large_and_small_bodies_give_the_same(client: httpx.Client, kind: str) -> None:
    source = make(n=300) if kind == "probabilities" else make_scores(n=300)
    source["sample_ids"] = list(range(300))
    body = json.dumps({"input": source, "options": {"metrics": ["log_loss"] if kind == "probabilities" else []}})
    answers = []
    for text in (body, body + " " * 300_000):
        reply = client.post("/v1/metrics/compute", content=text, headers={"Content-Type": "application/json"})
        assert reply.status_code == 200
        answers.append(reply.content)
    assert answers[0] == answers[1]


@pytest.mark.parametrize("retain", ["full", "none"])
@pytest.mark.parametrize("source", [make(), make(classes=2), make_scores()], ids=["multiclass", "binary", "scores"])
def test_what_is_read_is_what_was_answered(client: httpx.Client, source: Json, retain: str) -> None:
    options = {"retain": retain, "metrics": ["accuracy", "roc_auc@*", "mean(average_precision@0, recall@0)"]}
    made = create(client, evaluation(input=source, options=options))
    found = client.get(f"/v1/evaluations/{made['id']}")
    assert found.status_code == 200
    assert found.json() == made
    tagged = client.patch(f"/v1/evaluations/{made['id']}", json={"tags": {"a": "b"}})
    assert tagged.json() == {**made, "tags": {"a": "b"}}
    assert client.delete(f"/v1/evaluations/{made['id']}").status_code == 204
    assert client.get(f"/v1/evaluations/{made['id']}").status_code == 404


def test_folds(client: httpx.Client) -> None:
    parts = [make(n=30, seed=seed) for seed in range(3)]
    answer = create(client, evaluation(input={"kind": "folds", "folds": parts}))
    pooled = {
        "kind": "probabilities",
        "y_true": [label for part in parts for label in part["y_true"]],
        "probabilities": [row for part in parts for row in part["probabilities"]],
    }
    whole = compute(client, pooled)
    assert answer["metrics"]["prevalence_sensitive"]["log_loss"] == all_values(whole)["log_loss"]
    assert answer["input"]["fold_kind"] == "probabilities"
    alone = [all_values(compute(client, part))["log_loss"] for part in parts]
    assert answer["folds"]["log_loss"]["values"] == pytest.approx(alone)
    assert answer["folds"]["log_loss"]["mean"] == pytest.approx(np.mean(alone))
    assert answer["folds"]["log_loss"]["sd"] == pytest.approx(np.std(alone, ddof=1))
    assert "accuracy" in answer["folds"]
    assert client.get(f"/v1/evaluations/{answer['id']}").json() == answer
    mixed = {"kind": "folds", "folds": [make(classes=2), make(classes=2, threshold=0.3)]}
    assert refused(client, mixed)["code"] == "mixed_folds"
    scores = {"kind": "scores", "y_true": [0, 1, 1]}
    unlike = [{**scores, "scores": [0.1, 0.4, 0.9]}, {**scores, "scores": [-2.0, 0.4, 1.5]}]
    fault = refused(client, {"kind": "folds", "folds": unlike})
    assert (fault["pointer"], fault["code"]) == ("/input/folds", "mixed_folds")
    assert "these folds would have thresholds that differ" in fault["detail"]


def test_lists_are_sorted_by_metrics_of_probabilities(client: httpx.Client) -> None:
    made = [create(client, evaluation(dataset="sorted", input=make(seed=seed))) for seed in range(4)]
    create(client, evaluation(dataset="sorted"))
    reply = client.get("/v1/evaluations", params={"dataset": "sorted", "sort": "log_loss"})
    values = [item["metrics"].get("log_loss") for item in reply.json()["items"]]
    assert values[:4] == sorted(all_values(one)["log_loss"] for one in made)
    assert values[4] is None


def test_leaderboards_rank_by_metrics_of_probabilities(client: httpx.Client) -> None:
    made = [create(client, evaluation(model=f"m{seed}", dataset="ranked", input=make(seed=seed))) for seed in range(3)]
    create(client, evaluation(model="matrix", dataset="ranked"))
    reply = client.get("/v1/leaderboard", params={"dataset": "ranked", "metric": "log_loss"})
    assert reply.status_code == 200, reply.text
    lines = reply.json()["items"]
    assert [line["value"] for line in lines] == [*sorted(all_values(one)["log_loss"] for one in made), None]
    assert [line["rank"] for line in lines] == [1, 2, 3, None]
    assert reply.json()["better"] == "lower"


def codes(answer: Json) -> set[str]:
    return {finding["code"] for finding in answer["findings"]}


def test_findings(client: httpx.Client) -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 1000)
    honest = rng.uniform(0.05, 0.95, 1000)
    outcome = (rng.random(1000) < honest).astype(int)

    def ask(p: Any, y: Any) -> Json:
        rows = np.column_stack([1 - p, p]).tolist()
        return compute(client, {"kind": "probabilities", "y_true": y.tolist(), "probabilities": rows, "labels": [0, 1]})

    assert not codes(ask(honest, outcome)) & {"miscalibrated", "confident_mistakes", "auc_hides_class"}
    sure = np.where(truth == 1, 0.99, 0.01)
    sure[:200] = 1 - sure[:200]
    wrong = ask(sure, truth)
    assert {"miscalibrated", "confident_mistakes"} <= codes(wrong)
    finding = next(finding for finding in wrong["findings"] if finding["code"] == "miscalibrated")
    assert finding["evidence"]["direction"] == "overconfident"
    shy = ask(np.where(truth == 1, 0.55, 0.45), truth)
    finding = next(finding for finding in shy["findings"] if finding["code"] == "miscalibrated")
    assert finding["evidence"]["direction"] == "underconfident"
    # The order is perfect, and nothing is ever decided for class 1.
    hidden = ask(np.where(truth == 1, 0.4, 0.2) + 0.01 * rng.random(1000), truth)
    assert {"auc_hides_class", "unsure_class"} <= codes(hidden)


def test_probabilities_in_a_batch(client: httpx.Client) -> None:
    reply = client.post(
        "/v1/evaluations/batch",
        json={"evaluations": [evaluation(input=make()), evaluation(), evaluation(input=make(threshold=0.3))]},
    )
    assert [item["status"] for item in reply.json()["items"]] == [201, 201, 422]
