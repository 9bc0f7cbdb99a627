"""The best decision rule of stored evaluations."""

from typing import Any

import httpx
import numpy as np
import pytest

from app.api.answers import answer_model
from app.services.decide.thresholds import DecisionRule
from tests.api.answers import check_json, check_problem, create, evaluation
from tests.api.test_probabilities import make, make_scores
from tests.witnesses import sk

Json = dict[str, Any]


def skewed(n: int = 300, seed: int = 0) -> Json:
    """A rare class that argmax hardly ever finds."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.15).astype(int)
    p = np.clip(0.15 + 0.3 * truth + rng.normal(0, 0.1, n), 0.01, 0.99)
    return {
        "kind": "probabilities",
        "y_true": truth.tolist(),
        "probabilities": np.column_stack([1 - p, p]).tolist(),
        "labels": [0, 1],
    }


def find(client: httpx.Client, made: Json, **body: Any) -> Json:
    reply = client.post(f"/v1/evaluations/{made['id']}/thresholds", json=body)
    assert reply.status_code == 200, reply.text
    check_json(reply, named=["weights"])
    answer_model(DecisionRule).model_validate_json(reply.content)
    answer: Json = reply.json()
    return answer


def test_a_threshold_is_the_best_of_all(client: httpx.Client) -> None:
    source = skewed()
    made = create(client, evaluation(input=source))
    answer = find(client, made, objective="balanced_accuracy")
    truth, p = np.array(source["y_true"]), np.array(source["probabilities"])[:, 1]
    best = max(sk.balanced_accuracy_score(truth, p >= cut) for cut in np.unique(p))
    assert answer["objective"]["value"] == pytest.approx(best, rel=1e-12)
    assert sk.confusion_matrix(truth, p >= answer["threshold"]).tolist() == answer["confusion_matrix"]
    assert answer["objective"]["default"] == pytest.approx(sk.balanced_accuracy_score(truth, p > 0.5))
    assert answer["objective"]["gain"] > 0.1
    assert answer["default_confusion_matrix"] == made["input"]["confusion_matrix"]
    corrected = answer["objective"]["corrected"]
    assert corrected["value"] == pytest.approx(answer["objective"]["value"] - corrected["optimism"])
    assert answer["low"] <= answer["high"]
    assert max(answer["curve"]["y"]) == pytest.approx(best)
    assert str(corrected["resamples"]) in answer["note"]
    assert find(client, made, objective="balanced_accuracy") == answer


@pytest.mark.parametrize("ratio", [1, 5, 20])
def test_costs_are_an_objective(client: httpx.Client, ratio: int) -> None:
    """The lowest cost of all thresholds, in whole numbers; the dearer a miss, the lower the threshold."""
    source = skewed()
    made = create(client, evaluation(input=source))
    objective = f'expected_cost(costs="0,1;{ratio},0")'
    answer = find(client, made, objective=objective, correction="none")
    truth, p = np.array(source["y_true"]), np.array(source["probabilities"])[:, 1]
    costs = [int(((p < cut) & (truth == 1)).sum()) * ratio + int(((p >= cut) & (truth == 0)).sum()) for cut in (*p, 2)]
    assert answer["objective"]["value"] == pytest.approx(min(costs) / truth.size, rel=1e-12)
    (tn, fp), (fn, tp) = answer["confusion_matrix"]
    assert (fn * ratio + fp, tn + fp + fn + tp) == (min(costs), truth.size)
    assert answer["objective"]["value"] <= answer["objective"]["default"]
    savings = find(client, made, objective=f'cost_savings(costs="0,1;{ratio},0")', correction="none")
    assert savings["confusion_matrix"] == answer["confusion_matrix"]
    dearer = find(client, made, objective=f'expected_cost(costs="0,1;{10 * ratio},0")', correction="none")
    assert dearer["confusion_matrix"][1][1] >= tp


def test_costs_are_a_limit_and_an_objective_of_class_weights(client: httpx.Client) -> None:
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 3, 240)
    mass = np.exp(1.2 * np.eye(3)[truth] + rng.normal(size=(240, 3)))
    source = {
        "kind": "probabilities",
        "y_true": truth.tolist(),
        "probabilities": (mass / mass.sum(axis=1, keepdims=True)).tolist(),
        "labels": [0, 1, 2],
    }
    made = create(client, evaluation(input=source))
    costs = np.array([[0, 1, 2], [1, 0, 1], [12, 6, 0]])
    objective = 'expected_cost(costs="0,1,2;1,0,1;12,6,0")'
    answer = find(client, made, objective=objective, correction="none")
    found = np.array(answer["confusion_matrix"])
    assert answer["objective"]["value"] == pytest.approx(float((found * costs).sum() / 240), rel=1e-12)
    p = np.array(source["probabilities"])
    grid = np.exp(np.linspace(-3, 3, 25))
    tried = [float(costs[truth, (p * [1.0, a, b]).argmax(axis=1)].mean()) for a in grid for b in grid]
    # The search does not try everything: a twentieth of what is saved may be left.
    assert answer["objective"]["value"] <= min(tried) + 0.05 * (answer["objective"]["default"] - min(tried))
    limited = {"metric": objective, "max": 1.1 * answer["objective"]["value"]}
    bound = find(client, made, objective="accuracy", constraints=[limited], correction="none")
    assert bound["constraints"][0]["value"] <= limited["max"]


def test_constraints_are_met(client: httpx.Client) -> None:
    made = create(client, evaluation(input=skewed()))
    free = find(client, made, objective="precision@1", correction="none")
    constraints = [{"metric": "recall@1", "min": 0.9}, {"metric": "predicted_positive_rate", "max": 0.6}]
    bound = find(client, made, objective="precision@1", constraints=constraints[:1], correction="632")
    assert bound["constraints"][0]["value"] >= 0.9
    assert bound["objective"]["value"] <= free["objective"]["value"]
    assert free["objective"]["corrected"] is None
    assert not all(bound["curve"]["feasible"])
    path, body = f"/v1/evaluations/{made['id']}/thresholds", {"objective": "precision@1"}
    never = {**body, "constraints": [{"metric": "recall@1", "min": 1.1}]}
    check_problem(client.post(path, json=never), 422, "no_feasible_rule")
    empty = {"kind": "probabilities", "y_true": ["1"] * 4, "probabilities": [[0.4, 0.6]] * 4, "labels": ["0", "1"]}
    reply = client.post("/v1/thresholds", json={"input": empty, "objective": "specificity@1"})
    detail = check_problem(reply, 422, "no_feasible_rule")["detail"]
    assert detail == "specificity@1 has no value at any rule"
    nothing = client.post(path, json={**body, "constraints": [{"metric": "recall@1"}]})
    (fault,) = check_problem(nothing, 422, "invalid_request")["errors"]
    assert (fault["pointer"], fault["detail"]) == ("/constraints/0", "expected min, max or both")


@pytest.mark.parametrize(
    "objective", ["mean(f1@1, f1_negative@1, h_mean)", "gps(recall@*, precision@*)", "h_mean", "hamming_loss"]
)
def test_objectives_of_the_papers(client: httpx.Client, objective: str) -> None:
    made = create(client, evaluation(input=skewed()))
    answer = find(client, made, objective=objective)
    assert answer["objective"]["gain"] >= -1e-12


def test_scores_and_a_first_positive_class(client: httpx.Client) -> None:
    source = make_scores(n=200)
    made = create(client, evaluation(input=source))
    answer = find(client, made, objective="accuracy", correction="none")
    truth, scores = np.array(source["y_true"]), np.array(source["scores"])
    best = max(float(np.mean((scores >= cut) == truth)) for cut in np.unique(scores))
    assert answer["objective"]["value"] == pytest.approx(best)
    turned = create(client, evaluation(input={**source, "scores": (-scores).tolist(), "threshold": 0, "positive": 0}))
    found = find(client, turned, objective="accuracy", correction="none")
    assert found["objective"]["value"] == pytest.approx(
        max(float(np.mean((-scores >= cut) == (truth == 0))) for cut in np.unique(-scores))
    )
    assert sk.confusion_matrix(truth, ~(-scores >= found["threshold"])).tolist() == found["confusion_matrix"]


def test_weights_for_many_classes(client: httpx.Client) -> None:
    source = make(n=150)
    made = create(client, evaluation(input=source))
    answer = find(client, made, objective="min(recall@*)", resamples=10)
    assert answer["rule"] == "argmax"
    assert answer["threshold"] is None
    weights = np.array([answer["weights"][label] for label in ("0", "1", "2")])
    assert np.prod(weights) == pytest.approx(1)
    predicted = (np.array(source["probabilities"]) * weights).argmax(axis=1)
    assert sk.confusion_matrix(source["y_true"], predicted).tolist() == answer["confusion_matrix"]
    assert answer["objective"]["gain"] >= 0
    assert answer["objective"]["corrected"]["value"] <= answer["objective"]["value"] + 0.05


@pytest.mark.parametrize(
    ("objective", "code"),
    [
        ("recall@*", "invalid_expression"),
        ("log_loss", "invalid_expression"),
        ("nonsense", "unknown_metric"),
        ("prevalence@1", "not_comparable"),
    ],
)
def test_objectives_that_cannot_be(client: httpx.Client, objective: str, code: str) -> None:
    made = create(client, evaluation(input=skewed()))
    reply = client.post(f"/v1/evaluations/{made['id']}/thresholds", json={"objective": objective})
    assert check_problem(reply, 422, code)["errors"][0]["pointer"] == "/objective"


def test_what_has_no_samples_has_no_thresholds(client: httpx.Client) -> None:
    for body, status, code in (
        (evaluation(), 422, "needs_scores"),
        (evaluation(input=make(), options={"retain": "none"}), 409, "no_samples_kept"),
    ):
        made = create(client, body)
        reply = client.post(f"/v1/evaluations/{made['id']}/thresholds", json={"objective": "h_mean"})
        check_problem(reply, status, code)


def test_a_rule_without_keeping_is_the_same(client: httpx.Client) -> None:
    for source, body in (
        (skewed(), {"objective": "h_mean", "constraints": [{"metric": "recall@1", "min": 0.5}]}),
        (make(n=80), {"objective": "mcc"}),
    ):
        kept = find(client, create(client, evaluation(input=source)), **body)
        reply = client.post("/v1/thresholds", json={"input": source, **body})
        assert reply.status_code == 200, reply.text
        assert reply.json() == {**kept, "evaluation_id": None}
    matrix = {"kind": "confusion_matrix", "matrix": [[1, 2], [3, 4]]}
    problem = check_problem(
        client.post("/v1/thresholds", json={"input": matrix, "objective": "mcc"}), 422, "needs_scores"
    )
    assert problem["errors"][0]["pointer"] == "/input/kind"


def test_a_surface_has_every_rule_of_its_grid(client: httpx.Client) -> None:
    source = make(n=120)
    made = create(client, evaluation(input=source))
    answer = find(client, made, objective="h_mean", surface={"steps": 9}, correction="none")
    surface, truth, rows = answer["surface"], np.array(source["y_true"]), np.array(source["probabilities"])
    assert (surface["steps"], len(surface["weights"]), surface["labels"]) == (9, 28, made["input"]["labels"])
    for weights, recalls, value in zip(surface["weights"], surface["recalls"], surface["objective"], strict=True):
        decided = (rows * np.array(weights)).argmax(axis=1)
        expected = sk.recall_score(truth, decided, average=None)
        np.testing.assert_allclose(recalls, expected, rtol=1e-12)
        assert value == pytest.approx(3.0 / (1.0 / expected).sum() if expected.all() else 0.0)
    assert surface["objective"][surface["best_index"]] == max(surface["objective"])
    front = {tuple(surface["recalls"][place]) for place in surface["front"]}
    assert not any(all(a >= b for a, b in zip(one, other, strict=True)) for one in front for other in front - {one})
    # Left out where it was not asked for, and the same without keeping.
    assert "surface" not in find(client, made, objective="h_mean")
    body = {"input": source, "objective": "h_mean", "surface": {"steps": 9}, "correction": "none"}
    assert client.post("/v1/thresholds", json=body).json()["surface"] == surface


@pytest.mark.parametrize(
    ("classes", "steps", "pointer", "code"),
    [
        (2, 9, "/surface", "three_or_four_classes"),
        (5, 9, "/surface", "three_or_four_classes"),
        (4, 3, "/surface/steps", "too_few_steps"),
        (3, 200, "/surface/steps", "surface_too_large"),
        (4, 40, "/surface/steps", "surface_too_large"),
    ],
)
def test_surfaces_that_cannot_be(client: httpx.Client, classes: int, steps: int, pointer: str, code: str) -> None:
    body = {"input": make(n=80, classes=classes), "objective": "h_mean", "surface": {"steps": steps}}
    problem = check_problem(client.post("/v1/thresholds", json=body), 422, "invalid_input")
    assert (problem["errors"][0]["pointer"], problem["errors"][0]["code"]) == (pointer, code)
