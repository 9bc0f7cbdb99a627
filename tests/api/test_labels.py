"""Labels and predictions that may be sent and that may not."""

from typing import Any

import httpx
import numpy as np
import pytest

from app.domain.expressions.syntax import write_label
from tests.api.answers import compute, create, evaluation, matrix_input, refused
from tests.api.sent_inputs import PREDICTIONS, nothing_stored_when_refused
from tests.bank import each

__all__ = ["nothing_stored_when_refused"]


WEIRD = [
    "two words", 'quo"ted', "it's", "back\\slash", "ünïcödé 模型", "🐘", "@", "*", "a@b", "(a, b)", "recall@x", "=",
    "#", "/", "~1", "%", "1e5", "NaN", "null", "__proto__", "<script>", "x" * 256, "-1", "0.5",
    "é",
]  # fmt: skip


def test_labels_of_any_text(client: httpx.Client) -> None:
    size = len(WEIRD)
    matrix = (np.eye(size, dtype=int) * 3 + 1).tolist()
    asked = [f"recall@{write_label(label)}" for label in WEIRD]
    body = evaluation(input=matrix_input(matrix, labels=WEIRD), options={"metrics": [*asked, "gps(recall@*)"]})
    made = create(client, body)
    try:
        assert made["input"]["labels"] == WEIRD
        assert list(made["per_class"]) == WEIRD
        assert list(made["input"]["prevalence"]) == WEIRD
        for name in asked:
            assert made["requested"][name] == pytest.approx(4 / (size + 3))
            assert name in made["intervals"]
        assert client.get(f"/v1/evaluations/{made['id']}").json() == made
    finally:
        client.delete(f"/v1/evaluations/{made['id']}")
        # Models and datasets are listed while they have an evaluation.


def test_integers_and_texts_are_the_same_classes(client: httpx.Client) -> None:
    texts = compute(client, {"kind": "predictions", "y_true": ["0", "1", "1"], "y_pred": ["0", "1", "0"]})
    numbers = compute(client, {"kind": "predictions", "y_true": [0, 1, 1], "y_pred": [0, 1, 0]})
    assert texts == numbers
    declared = {"kind": "predictions", "y_true": ["0", "1", "1"], "y_pred": [0, 1, 0], "labels": [0, "1"]}
    assert compute(client, declared) == numbers


def test_the_order_of_classes(client: httpx.Client) -> None:
    """Integers by value, strings by alphabet, declared ones as declared."""
    source: dict[str, Any] = {"kind": "predictions", "y_true": [10, 9, -1, 10], "y_pred": [9, 9, -1, 10]}
    assert compute(client, source)["input"]["labels"] == ["-1", "9", "10"]
    source["labels"] = [9, 10, 7, -1]
    answer = compute(client, source)
    assert answer["input"]["labels"] == ["9", "10", "7", "-1"]
    assert answer["input"]["confusion_matrix"] == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
    texts = {"kind": "predictions", "y_true": ["b", "B", "a"], "y_pred": ["a", "B", "ä"]}
    assert compute(client, texts)["input"]["labels"] == ["B", "a", "b", "ä"]
    far = {"kind": "predictions", "y_true": [-(2**63), 2**63 - 1], "y_pred": [0, 2**63 - 1]}
    assert compute(client, far)["input"]["labels"] == [str(-(2**63)), "0", str(2**63 - 1)]


@each(
    ("members", "pointer", "code"),
    [
        ({"y_true": []}, "/y_true", "no_samples"),
        ({"y_true": [], "y_pred": []}, "/y_true", "no_samples"),
        ({"y_pred": ["a"]}, "/y_pred", "wrong_length"),
        ({"y_pred": None}, "/y_pred", "wrong_type"),
        ({"y_pred": "aba"}, "/y_pred", "wrong_type"),
        ({"y_pred": {"0": "a"}}, "/y_pred", "wrong_type"),
        ({"y_pred": ["a", 1, "b"]}, "/y_pred/1", "mixed_labels"),
        ({"y_pred": [0, 1, 0]}, "/y_pred", "mixed_labels"),
        ({"y_true": ["a", "a", "a"], "y_pred": ["a", "a", "a"]}, "", "too_few_classes"),
        ({"y_true": ["a", "", "a"]}, "/y_true/1", "bad_label"),
        ({"y_pred": ["a", "b\x00", "a"]}, "/y_pred/1", "bad_label"),
        ({"y_pred": ["a", "b", "x" * 257]}, "/y_pred/2", "bad_label"),
        ({"labels": ["a"]}, "/labels", "too_few_classes"),
        ({"labels": []}, "/labels", "too_few_classes"),
        ({"labels": ["a", "c"]}, "/y_true/1", "unknown_label"),
        ({"labels": ["a", "b", "a"]}, "/labels/2", "duplicate_label"),
        ({"positive": "c"}, "/positive", "unknown_label"),
        ({"labels": ["a", "b", "c"], "positive": "a"}, "/positive", "positive_needs_two_classes"),
        ({"sample_weight": [1, 2]}, "/sample_weight", "wrong_length"),
        ({"sample_weight": [0, 0, 0]}, "/sample_weight", "no_samples"),
        ({"sample_weight": [1e-20, 1, 1]}, "/sample_weight", "entry_too_small"),
        ({"sample_ids": ["p", "q"]}, "/sample_ids", "wrong_length"),
        ({"sample_ids": ["p", "q", "p"]}, "/sample_ids/2", "duplicate_sample_id"),
        ({"sample_ids": [1, 2, "1"]}, "/sample_ids/2", "duplicate_sample_id"),
        ({"ids": [1, 2, 3]}, "/ids", "unknown_field"),
    ],
)
def test_what_are_no_predictions(client: httpx.Client, members: dict[str, Any], pointer: str, code: str) -> None:
    fault = refused(client, PREDICTIONS | members)
    assert (fault["pointer"], fault["code"]) == (f"/input{pointer}", code)


def test_predictions_with_everything(client: httpx.Client) -> None:
    answer = compute(
        client,
        PREDICTIONS
        | {"sample_ids": [1, "x", "y"], "sample_weight": [1, 0, 2.5], "labels": ["b", "a"], "positive": "b"},
    )
    assert answer["input"]["confusion_matrix"] == [[0, 2.5], [0, 1]]
    assert answer["input"]["content"] == "weights"
    assert answer["input"]["rows"] == 3
    assert answer["input"]["positive"] == "b"
    one_class = compute(client, {"kind": "predictions", "y_true": ["a"], "y_pred": ["a"], "labels": ["a", "b"]})
    assert one_class["input"]["confusion_matrix"] == [[1, 0], [0, 0]]


def test_ten_thousand_classes_are_too_many(client: httpx.Client) -> None:
    names = [f"class {index}" for index in range(10_000)]
    fault = refused(client, {"kind": "predictions", "y_true": names, "y_pred": names})
    assert (fault["pointer"], fault["code"]) == ("/input/y_true/1000", "too_many_classes")
    fault = refused(client, {"kind": "predictions", "y_true": list(range(10_000)), "y_pred": list(range(10_000))})
    assert fault["code"] == "too_many_classes"
    fault = refused(client, {"kind": "predictions", "y_true": ["a"], "y_pred": ["b"], "labels": names})
    assert (fault["pointer"], fault["code"]) == ("/input/labels", "too_many_classes")


def test_a_thousand_classes(client: httpx.Client) -> None:
    matrix = np.eye(1000, dtype=int) * 9
    matrix[0, 1] = 3
    answer = compute(client, matrix_input(matrix.tolist()), metrics=["h_mean", "recall@999", "gps(recall@*)"])
    assert answer["input"]["n_classes"] == 1000
    assert answer["requested"]["h_mean"] == pytest.approx(1000 / (999 + 12 / 9))
    assert answer["requested"]["gps(recall@*)"] == pytest.approx(answer["requested"]["h_mean"])
    assert answer["requested"]["recall@999"] == 1
    assert len(answer["per_class"]) == 1000


def test_a_million_labels(client: httpx.Client) -> None:
    chance = np.random.default_rng(3)
    y_true = chance.integers(0, 10, 1_000_000)
    y_pred = np.where(chance.random(1_000_000) < 0.8, y_true, chance.integers(0, 10, 1_000_000))
    counts = np.bincount(y_true * 10 + y_pred, minlength=100).reshape(10, 10)
    body = {"kind": "predictions", "y_true": y_true.tolist(), "y_pred": y_pred.tolist()}
    answer = compute(client, body, metrics=["accuracy"])
    assert answer["input"]["confusion_matrix"] == counts.tolist()
    assert answer["requested"]["accuracy"] == pytest.approx(np.trace(counts) / 1e6)
