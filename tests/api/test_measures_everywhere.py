"""Measures of probabilities in reports, comparisons, gates, leaderboards and projections, and how they are refused."""

from typing import Any
from uuid import uuid4

import httpx
import numpy as np
import pytest

from app.domain.expressions.expressions import parse_for_any_classes
from app.kernel.metrics.card import Inputs
from app.kernel.metrics.expression import bounds
from tests.api.answers import Json, check_problem, create, evaluation
from tests.api.decisions import compare, keep_probabilities, probabilities
from tests.api.test_projections import project
from tests.api.test_scored_decisions import check

TRUTH = np.arange(300) % 3
TWO = np.arange(240) % 2
OF_A_CLASS = ["recall_at(specificity=0.8)@1", "specificity_at(recall=0.7)@1", "precision_at(recall=0.6)@1"]
AREAS = [
    "roc_auc_between(low=0.1, high=0.6)@1",
    "roc_auc_between(low=0.2, high=0.9, along=recall, scaled=none)@1",
    "log_auc(low=0.05, high=0.5)@1",
]
CALIBRATION = ["class_calibration_error(norm=max)@1", "l2_calibration_error"]
RECALIBRATION = [
    "calibration_intercept@1",
    "calibration_slope@1",
    "integrated_calibration_index@1",
    "integrated_calibration_index(statistic=e90)@1",
]
LOSSES = [
    "net_benefit_at(threshold=0.4)@1",
    "d2_log_loss",
    "ranked_probability_score",
    "minimum_cost",
    "weighted_average_precision",
]
COSTS = ["expected_cost", "normalized_cost", "cost_savings", "mean(expected_cost, error_rate)"]
EXPRESSIONS = [*OF_A_CLASS, *AREAS, *CALIBRATION, *RECALIBRATION, *LOSSES, *COSTS]
# A better model need not be better calibrated.
JUDGING = [*OF_A_CLASS, *AREAS, *LOSSES, *COSTS]


def source(truth: Any, outputs: Any) -> Json:
    return {"kind": "probabilities", "y_true": truth.tolist(), "probabilities": outputs.tolist()}


@pytest.mark.parametrize("truth", [TWO, TRUTH], ids=["two", "three"])
def test_reports(client: httpx.Client, truth: Any) -> None:
    options = {"metrics": EXPRESSIONS, "intervals": "all", "draws": 300}
    answer = ask(client, {"input": source(truth, probabilities(truth, 3)), "options": options})
    for expression in EXPRESSIONS:
        interval = answer["intervals"][expression]
        assert interval["low"] < answer["requested"][expression] < interval["high"], expression


def test_comparisons_gates_and_leaderboards(client: httpx.Client) -> None:
    dataset = uuid4().hex
    # Few, since a leaderboard and a check take as many draws as they always do.
    truth = TWO[:100]
    better, worse = probabilities(truth, 4, 0.8), probabilities(truth, 5, 0.1)
    rows = [source(truth, one) | {"sample_ids": list(range(truth.size))} for one in (better, worse)]
    ids = [
        str(create(client, evaluation(model=name, dataset=dataset, input=one))["id"])
        for name, one in zip(("better", "worse"), rows, strict=True)
    ]
    answer = compare(client, *ids, metrics=EXPRESSIONS, draws=500)
    assert answer["design"]["paired"]
    parsed = [parse_for_any_classes(expression, inputs=frozenset(Inputs)) for expression in EXPRESSIONS]
    lowest = [-1000.0 if (low := bounds(one)[0]) is None else low for one in parsed]
    rules = [{"metric": expression, "min": low} for expression, low in zip(EXPRESSIONS, lowest, strict=True)]
    checked = check(client, rules, ids[0])["results"]
    for expression, rule in zip(EXPRESSIONS, checked, strict=True):
        (difference,) = answer["metrics"][expression]["differences"]
        assert difference["low"] < difference["difference"] < difference["high"], expression
        assert rule["verdict"] == "pass", expression
        if expression in JUDGING:
            assert difference["p_value"] < 0.05, expression
    # One of each kind: a leaderboard estimates as a check does.
    for expression in (OF_A_CLASS[0], AREAS[0], CALIBRATION[0], RECALIBRATION[-1], LOSSES[0], COSTS[0]):
        lines = client.get("/v1/leaderboard", params={"dataset": dataset, "metric": expression}).json()["items"]
        if expression in JUDGING:
            assert [line["model"]["name"] for line in lines] == ["better", "worse"], expression
        (line,) = [line for line in lines if line["model"]["name"] == "better"]
        rule = checked[EXPRESSIONS.index(expression)]
        assert (rule["low"], rule["value"], rule["high"]) == pytest.approx((line["low"], line["value"], line["high"]))


def test_projections(client: httpx.Client) -> None:
    run = keep_probabilities(client, TWO, probabilities(TWO, 6))
    answer = project(client, run, prevalence={"0": 0.8, "1": 0.2}, metrics=EXPRESSIONS)
    for expression in EXPRESSIONS:
        found = answer["metrics"][expression]
        if expression.startswith(("integrated", "class_calibration", "l2_calibration")):
            # Chance makes it larger, and resampling does so once more.
            assert found["low"] is None, expression
        else:
            assert found["low"] < found["value"] < found["high"], expression
        insensitive = expression.startswith(("recall_at", "specificity_at", "roc_auc_between", "log_auc"))
        assert (found["value"] == found["observed"]) is insensitive, expression


@pytest.mark.parametrize(
    "expression",
    [
        "recall_at(specificity=1.5)@1",
        "recall_at(specificity=-0.1)@1",
        "recall_at(recall=0.5)@1",
        "specificity_at(recall=a)@1",
        "precision_at(recall=0)@1",
        "calibration_slope(clip=0.5)@1",
        "net_benefit_at(threshold=1)@1",
        "roc_auc_between(low=0.2)@1",
        "log_auc(low=0)@1",
        "roc_auc_between(scaled=half)@1",
        "integrated_calibration_index(statistic=e10)@1",
        'expected_cost(costs="0,1,1;1,0,1;1,1,0")',
        'expected_cost(costs="0,1;-1,0")',
        'expected_cost(costs="0,1,2;1,0,2")',
        'minimum_cost(costs="0,1,2;1,0")',
        "expected_cost(costs=double)",
    ],
)
def test_refusals_say_where(client: httpx.Client, expression: str) -> None:
    body = {"input": source(TWO, probabilities(TWO, 3)), "options": {"metrics": ["log_loss", expression]}}
    reply = client.post("/v1/evaluations", params={"store": "false"}, json=body)
    assert check_problem(reply, 422, "invalid_parameter")["errors"][0]["pointer"] == "/options/metrics/1"


def test_a_matrix_has_none(client: httpx.Client) -> None:
    body = {"input": {"kind": "confusion_matrix", "matrix": [[5, 1], [2, 8]]}, "options": {"metrics": OF_A_CLASS[:1]}}
    reply = client.post("/v1/evaluations", params={"store": "false"}, json=body)
    assert check_problem(reply, 422, "invalid_expression")["errors"][0]["pointer"] == "/options/metrics/0"


def ask(client: httpx.Client, body: Json, status: int = 200) -> Any:
    reply = client.post("/v1/evaluations", params={"store": "false"}, json=body)
    assert reply.status_code == status, reply.text
    return reply.json()


COUNTS = [[50, 7, 3], [4, 30, 6], [2, 1, 9]]
PRICES = [[0, 1, 4], [2, 0, 1], [10, 3, 0]]


def test_costs_of_a_request(client: httpx.Client) -> None:
    """For what names none; decisions in any order; 97 samples cost 7 + 12 + 8 + 6 + 20 + 3."""
    matrix = {"kind": "confusion_matrix", "matrix": COUNTS, "labels": ["a", "b", "c"]}
    answer = ask(client, {"input": matrix, "options": {"costs": {"matrix": PRICES}}})
    assert set(answer["requested"]) == {"expected_cost", "normalized_cost", "cost_savings"}
    assert answer["requested"]["expected_cost"] == pytest.approx(56 / 112)
    # Always b: 60 + 0 + 36.
    assert answer["requested"]["normalized_cost"] == pytest.approx(56 / 96)
    assert answer["requested"]["cost_savings"] == pytest.approx(1 - 56 / 96)
    turned = {"matrix": [row[::-1] for row in PRICES], "decisions": ["c", "b", "a"]}
    again = ask(
        client, {"input": matrix, "options": {"costs": turned, "metrics": ["expected_cost"], "intervals": "all"}}
    )
    assert again["requested"] == {key: pytest.approx(value) for key, value in answer["requested"].items()}
    assert again["intervals"]["expected_cost"]["low"] < 56 / 112 < again["intervals"]["expected_cost"]["high"]
    own = 'expected_cost(costs="0,1,1;1,0,1;1,1,0")'
    both = ask(client, {"input": matrix, "options": {"costs": turned, "metrics": [own]}})["requested"]
    assert both[own] == pytest.approx(23 / 112)
    assert both["expected_cost"] == pytest.approx(0.5)
    assert "expected_cost" not in ask(client, {"input": matrix})["requested"]
    named = "expected_cost(costs=zero_one)"
    asked = {"costs": turned, "metrics": [named, f"mean({named}, expected_cost)"]}
    found = ask(client, {"input": matrix, "options": asked})["requested"]
    assert found[named] == pytest.approx(23 / 112)
    assert found[f"mean({named}, expected_cost)"] == pytest.approx((23 / 112 + 0.5) / 2)


def test_costs_are_kept_with_the_question(client: httpx.Client) -> None:
    body = evaluation(input={"kind": "confusion_matrix", "matrix": COUNTS})
    kept = create(client, body | {"options": {"costs": {"matrix": PRICES}}})
    assert client.get(f"/v1/evaluations/{kept['id']}").json()["requested"] == kept["requested"]
    assert kept["requested"]["expected_cost"] == pytest.approx(0.5)


def test_decisions_that_are_no_classes(client: httpx.Client) -> None:
    """Treat, wait or send to a specialist: each sample gets what costs least by its probabilities."""
    outputs = probabilities(TWO, 3)
    prices = np.array([[0.0, 1.0, 4.0], [20.0, 6.0, 1.0]])
    costs = {"matrix": prices.tolist(), "decisions": ["wait", "specialist", "treat"]}
    answer = ask(client, {"input": source(TWO, outputs), "options": {"costs": costs}})
    decided = (outputs @ prices).argmin(axis=1)
    paid = prices[TWO, decided].mean()
    assert answer["requested"] == {"minimum_cost": pytest.approx(paid)}
    found = answer["probabilities"]["costs"]
    assert found["decisions"] == ["wait", "specialist", "treat"]
    assert found["matrix"] == [[int(((k == TWO) & (decided == j)).sum()) for j in range(3)] for k in range(2)]
    assert found["expected_cost"] == pytest.approx(paid)
    constant = prices[TWO].mean(axis=0)
    assert found["best_constant"] == {"decision": "treat", "expected_cost": pytest.approx(constant.min())}
    assert found["cost_savings"] == pytest.approx(1 - paid / constant.min())
    assert found["share_of_class"]["1"]["treat"] == pytest.approx((decided[TWO == 1] == 2).mean())
    assert found["share_of_decision"]["treat"]["1"] == pytest.approx((TWO[decided == 2] == 1).mean())


@pytest.mark.parametrize(
    ("costs", "metrics", "pointer"),
    [
        ({"matrix": [[0, 1], [1, 0]]}, [], "/options/costs/matrix"),
        ({"matrix": [[0, 1], [1, 0], [1, 1]]}, [], "/options/costs/matrix/0"),
        ({"matrix": PRICES, "decisions": ["0", "1"]}, [], "/options/costs/matrix/0"),
        ({"matrix": PRICES, "decisions": ["0", "1", "1"]}, [], "/options/costs/decisions"),
        ({"matrix": PRICES, "decisions": ["x", "y", "z"]}, [], "/options/costs/decisions"),
        ({"matrix": [[0, 1, 1], [-1, 0, 1], [1, 1, 0]]}, [], "/options/costs/matrix/1/0"),
    ],
)
def test_costs_that_make_no_sense(client: httpx.Client, costs: Json, metrics: list[str], pointer: str) -> None:
    body = {"input": {"kind": "confusion_matrix", "matrix": COUNTS}, "options": {"costs": costs, "metrics": metrics}}
    assert ask(client, body, 422)["errors"][0]["pointer"] == pointer


def test_what_needs_classes_says_so(client: httpx.Client) -> None:
    costs = {"matrix": [[0, 1, 4], [20, 6, 1]], "decisions": ["wait", "specialist", "treat"]}
    body = {
        "input": source(TWO, probabilities(TWO, 3)),
        "options": {"costs": costs, "metrics": ["log_loss", "expected_cost"]},
    }
    problem = ask(client, body, 422)
    assert problem["errors"][0]["pointer"] == "/options/metrics/1"
    assert "minimum_cost" in problem["detail"]


@pytest.mark.parametrize("objective", ['expected_cost(costs="0,1;5,0")', 'cost_savings(costs="0,1;5,0")'])
def test_thresholds_of_least_cost(client: httpx.Client, objective: str) -> None:
    outputs = probabilities(TWO, 6)
    run = keep_probabilities(client, TWO, outputs)
    reply = client.post(f"/v1/evaluations/{run}/thresholds", json={"objective": objective})
    assert reply.status_code == 200, reply.text
    costs = [
        ((outputs[:, 1] >= t) & (TWO == 0)).sum() + 5 * ((outputs[:, 1] < t) & (TWO == 1)).sum()
        for t in [*outputs[:, 1], 2.0]
    ]
    (_, fp), (fn, _) = reply.json()["confusion_matrix"]
    assert fp + 5 * fn == min(costs)
