"""Reported scores: could any confusion matrix have produced them?"""

from typing import Any

import httpx
import pytest

from app.api.v1.consistency import ConsistencyResponse
from app.api.v1.decision_examples import CONSISTENCY
from tests.api.answers import Json, check_json, check_problem


def check(client: httpx.Client, **body: Any) -> Json:
    reply = client.post("/v1/consistency-checks", json=body)
    assert reply.status_code == 200, reply.text
    check_json(reply, named=("metrics", "examples"))
    ConsistencyResponse.model_validate_json(reply.content)
    answer: Json = reply.json()
    return answer


def test_an_impossible_report(client: httpx.Client) -> None:
    """100 and 200 samples; accuracy 0.9567, sensitivity 0.8545, specificity 0.9734."""
    answer = check(
        client, p=100, n=200, scores={"accuracy": "0.9567", "sensitivity": "0.8545", "specificity": "0.9734"}
    )
    assert (answer["consistent"], answer["feasible_count"]) == (False, 0)
    assert answer["examples"] == []
    assert answer["implied"] == {}
    assert len(answer["assumptions"]) == 2


def test_all_matrices_that_fit(client: httpx.Client) -> None:
    """F1 and accuracy of 0.80 at 50 and 50: three matrices."""
    answer = check(client, p=50, n=50, scores={"f1": "0.80", "accuracy": "0.80"}, metrics=["mcc", "h_mean", "recall@*"])
    assert (answer["consistent"], answer["feasible_count"]) == (True, 3)
    assert len(answer["examples"]) == 3
    for example in answer["examples"]:
        tp, fn, fp, tn = (example[name] for name in ("tp", "fn", "fp", "tn"))
        assert (tp + fn, fp + tn) == (50, 50)
        assert round(2 * tp / (2 * tp + fp + fn), 2) == 0.8
        assert round((tp + tn) / 100, 2) == 0.8
    recalls = [example["tp"] / 50 for example in answer["examples"]]
    assert answer["implied"]["recall"] == {"low": pytest.approx(min(recalls)), "high": pytest.approx(max(recalls))}
    assert answer["metrics"]["recall@1"]["low"] == pytest.approx(min(recalls))
    assert answer["metrics"]["mcc"]["low"] == pytest.approx(answer["implied"]["mcc"]["low"])
    assert answer["metrics"]["h_mean"]["undefined_count"] == 0


def test_rounding_and_truncation(client: httpx.Client) -> None:
    """23/30 = 0.7666… printed as 0.766."""
    body: Json = {"p": 30, "n": 10, "scores": {"recall": "0.766"}}
    rounded = check(client, **body)
    assert not rounded["consistent"]
    assert rounded["alternatives"][0]["code"] == "truncated"
    assert "cut off" in rounded["alternatives"][0]["message"]
    assert check(client, **body, rounding="truncated")["consistent"]
    assert check(client, **body, rounding="any")["consistent"]


def test_other_readings(client: httpx.Client) -> None:
    """Recall and specificity of a matrix, printed for the wrong class."""
    scores = {"recall": "0.9650", "specificity": "0.8700", "accuracy": "0.9333"}
    answer = check(client, p=100, n=200, scores=scores)
    assert not answer["consistent"]
    assert "swapped_classes" in [other["code"] for other in answer["alternatives"]]


def test_digits_matter(client: httpx.Client) -> None:
    assert check(client, p=30, n=30, scores={"recall": "0.8"})["feasible_count"] == 3 * 31
    assert check(client, p=30, n=30, scores={"recall": "0.800"})["feasible_count"] == 31


def test_several_classes(client: httpx.Client) -> None:
    classes = {"A": 100, "B": 50, "C": 20}
    answer = check(client, classes=classes, scores={"accuracy": "0.900", "recall@C": "0.50", "precision@A": "0.95"})
    assert answer["consistent"] is True
    (example,) = answer["examples"]
    matrix = example["confusion_matrix"]
    assert [sum(row) for row in matrix] == [100, 50, 20]
    assert matrix[2][2] == 10
    assert round(sum(matrix[k][k] for k in range(3)) / 170, 3) == 0.9
    impossible = check(client, classes=classes, scores={"accuracy": "0.990", "recall@A": "0.50"})
    assert (impossible["consistent"], impossible["feasible_count"]) == (False, 0)


def test_means_over_folds(client: httpx.Client) -> None:
    folds = [{"p": 10, "n": 20}, {"p": 11, "n": 19}]
    answer = check(client, folds=folds, scores={"accuracy": "0.85", "recall": "0.75"})
    assert answer["consistent"] is True
    cells = answer["examples"][0]["folds"]
    assert [(cell["tp"] + cell["fn"], cell["fp"] + cell["tn"]) for cell in cells] == [(10, 20), (11, 19)]
    assert abs(sum(cell["tp"] / (cell["tp"] + cell["fn"]) for cell in cells) / 2 - 0.75) <= 0.005
    assert check(client, folds=folds, scores={"accuracy": "0.99", "recall": "0.1"})["consistent"] is False


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({"p": 10, "n": 10, "scores": {}}, "invalid_request", "/scores"),
        ({"scores": {"recall": "0.5"}}, "invalid_request", ""),
        ({"p": 10, "scores": {"recall": "0.5"}}, "invalid_request", ""),
        ({"p": 10, "n": 0, "scores": {"recall": "0.5"}}, "invalid_request", "/n"),
        ({"p": 60_000, "n": 60_000, "scores": {"recall": "0.5"}}, "invalid_request", ""),
        ({"p": 10, "n": 10, "scores": {"recall": 0.5}}, "invalid_request", "/scores/recall"),
        ({"p": 10, "n": 10, "scores": {"recall": "high"}}, "invalid_request", "/scores/recall"),
        ({"p": 10, "n": 10, "scores": {"recal": "0.5"}}, "invalid_input", "/scores/recal"),
        ({"p": 10, "n": 10, "scores": {"h_mean": "0.5"}}, "invalid_input", "/scores/h_mean"),
        ({"p": 10, "n": 10, "scores": {"recall": "0.5"}, "metrics": ["x"]}, "unknown_metric", "/metrics/0"),
        ({"p": 9_000, "n": 9_000, "scores": {"recall": "0.5"}, "metrics": ["mcc"]}, "invalid_input", "/metrics"),
        ({"classes": {"A": 3, "B": 3}, "scores": {"mcc": "0.5"}}, "invalid_input", "/scores/mcc"),
        ({"classes": {"A": 3, "B": 3}, "scores": {"recall@C": "0.5"}}, "invalid_input", "/scores/recall@C"),
        ({"classes": {"A": 3}, "scores": {"accuracy": "0.5"}}, "invalid_request", "/classes"),
        ({"folds": [{"p": 3, "n": 3}], "scores": {"f1": "0.5"}}, "invalid_input", "/scores/f1"),
        ({"folds": [{"p": 3, "n": 0}], "scores": {"recall": "0.5"}}, "invalid_request", "/folds/0/n"),
    ],
)
def test_what_is_refused(client: httpx.Client, body: Json, code: str, pointer: str) -> None:
    problem = check_problem(client.post("/v1/consistency-checks", json=body), 422, code)
    assert problem["errors"][0]["pointer"] == pointer


def test_a_misspelt_score_is_recognised(client: httpx.Client) -> None:
    reply = client.post("/v1/consistency-checks", json={"p": 10, "n": 10, "scores": {"recal": "0.5"}})
    assert "did you mean recall" in reply.json()["detail"]


@pytest.mark.parametrize("title", CONSISTENCY)
def test_the_examples_of_the_documentation(client: httpx.Client, title: str) -> None:
    assert check(client, **CONSISTENCY[title])["consistent"] is (title != "impossible")
