"""What may be sent and what may not: every refusal points at the place and says what was expected there."""

from typing import Any

import httpx
import numpy as np
import pytest

from tests.api.answers import check_problem, compute, matrix_input, refused
from tests.api.sent_inputs import HEADERS, PREDICTIONS, either_size, nothing_stored_when_refused, post_text, with_input
from tests.bank import each

__all__ = ["nothing_stored_when_refused"]


# Numbers.

BAD_NUMBERS = {
    "NaN": "not_finite",
    "Infinity": "not_finite",
    "-Infinity": "not_finite",
    "1e400": "not_finite",
    "-1e400": "not_finite",
    "1" + "0" * 400: "not_finite",
    "null": "wrong_type",
    "true": "wrong_type",
    '"1"': "wrong_type",
    "[1]": "wrong_type",
    "{}": "wrong_type",
}


@each(("number", "code"), BAD_NUMBERS.items(), ids=[name[:12] for name in BAD_NUMBERS])
@either_size
def test_what_is_no_finite_number(client: httpx.Client, number: str, code: str, padding: str) -> None:
    reply = post_text(client, with_input(f'{{"kind": "confusion_matrix", "matrix": [[1, 2], [3, {number}]]}}'), padding)
    fault = check_problem(reply, 422, "invalid_request")["errors"][0]
    assert fault["pointer"] == "/input/matrix/1/1"
    assert fault["code"] == code
    binary = '{"kind": "binary_counts", "tp": %s, "fn": 1, "fp": 1, "tn": 1}'
    counts = post_text(client, with_input(binary % number), padding)
    assert check_problem(counts, 422, "invalid_request")["errors"][0]["pointer"] == "/input/tp"
    option = post_text(client, f'{{"input": {binary % 1}, "options": {{"level": {number}}}}}', padding)
    assert check_problem(option, 422, "invalid_request")["errors"][0]["pointer"] == "/options/level"


@pytest.mark.parametrize("number", list(BAD_NUMBERS), ids=[name[:12] for name in BAD_NUMBERS])
def test_what_is_no_finite_number_in_a_batch(client: httpx.Client, number: str) -> None:
    item = with_input(f'{{"kind": "confusion_matrix", "matrix": [[1, 2], [3, {number}]]}}')
    reply = client.post("/v1/evaluations/batch", content=f'{{"evaluations": [{item}]}}'.encode(), headers=HEADERS)
    assert reply.status_code == 207
    (answer,) = reply.json()["items"]
    assert answer["status"] == 422
    assert answer["problem"]["errors"][0]["pointer"] == "/evaluations/0/input/matrix/1/1"


BAD_LABELS = ("NaN", "1e400", "null", "true", "1.5", "[1]", "{}", "10000000000000000000000")


@each("name", ["y_true", "y_pred"])
@each("label", BAD_LABELS)
@either_size
def test_what_is_no_label(client: httpx.Client, name: str, label: str, padding: str) -> None:
    columns = {"y_true": "[0, 1, 1]", "y_pred": "[0, 1, 0]"} | {name: f"[0, {label}, 1]"}
    text = ", ".join(f'"{key}": {value}' for key, value in columns.items())
    reply = post_text(client, with_input(f'{{"kind": "predictions", {text}}}'), padding)
    fault = check_problem(reply, 422, "invalid_input")["errors"][0]
    assert fault["pointer"] == f"/input/{name}/1"
    assert fault["code"] == ("label_too_large" if label.startswith("1000") else "not_a_label")


@each("weight", ["NaN", "-1", "1e400", "null", "true", '"1"', "[]", "1" + "0" * 400])
@either_size
def test_what_is_no_weight(client: httpx.Client, weight: str, padding: str) -> None:
    columns = f'"y_true": [0, 1, 1], "y_pred": [0, 1, 0], "sample_weight": [1, 0.5, {weight}]'
    reply = post_text(client, with_input(f'{{"kind": "predictions", {columns}}}'), padding)
    assert check_problem(reply, 422, "invalid_input")["errors"][0]["pointer"] == "/input/sample_weight/2"


@pytest.mark.parametrize("identifier", ["NaN", "null", "true", "1.5", "[]", "{}"])
@either_size
def test_what_is_no_sample_id(client: httpx.Client, identifier: str, padding: str) -> None:
    columns = f'"y_true": [0, 1, 1], "y_pred": [0, 1, 0], "sample_ids": ["a", 2, {identifier}]'
    reply = post_text(client, with_input(f'{{"kind": "predictions", {columns}}}'), padding)
    assert check_problem(reply, 422, "invalid_input")["errors"][0]["pointer"] == "/input/sample_ids/2"


def test_huge_whole_numbers(client: httpx.Client) -> None:
    largest = 2**53 - 6
    answer = compute(client, matrix_input([[largest, 1], [2, 3]]))
    assert answer["input"]["confusion_matrix"][0][0] == largest
    assert answer["input"]["n_samples"] == 2**53
    fault = refused(client, matrix_input([[2**53, 1], [2, 3]]))
    assert (fault["pointer"], fault["code"]) == ("/input/matrix", "total_too_large")
    assert refused(client, matrix_input([[1e308, 1e308], [1e308, 1e308]]))["code"] == "total_too_large"
    assert refused(client, matrix_input([[1e-300, 1], [2, 3]]))["pointer"] == "/input/matrix/0/0"


# Matrices.


@pytest.mark.parametrize(
    ("matrix", "pointer", "code"),
    [
        ([], "/matrix", "too_few_classes"),
        ([[]], "/matrix", "too_few_classes"),
        ([[5]], "/matrix", "too_few_classes"),
        ([[1, 2]], "/matrix", "too_few_classes"),
        ([[1, 2], [3]], "/matrix/1", "not_square"),
        ([[1, 2], []], "/matrix/1", "not_square"),
        ([[1, 2, 3], [4, 5, 6]], "/matrix/0", "not_square"),
        ([[1, 2], [3, -4]], "/matrix/1/1", "negative_entry"),
        ([[1, 2], [-0.5, 4]], "/matrix/1/0", "negative_entry"),
        ([[0, 0], [0, 0]], "/matrix", "no_samples"),
        ([[0] * 1001] * 1001, "/matrix", "too_many_classes"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_what_is_no_matrix(client: httpx.Client, matrix: list[list[Any]], pointer: str, code: str) -> None:
    fault = refused(client, matrix_input(matrix))
    assert (fault["pointer"], fault["code"]) == (f"/input{pointer}", code)


@each(
    ("members", "pointer", "code"),
    [
        ({"labels": ["a"]}, "/labels", "wrong_label_count"),
        ({"labels": ["a", "b", "c"]}, "/labels", "wrong_label_count"),
        ({"labels": ["a", "a"]}, "/labels/1", "duplicate_label"),
        ({"labels": [1, "1"]}, "/labels/1", "duplicate_label"),
        ({"labels": ["a", ""]}, "/labels/1", "label_length"),
        ({"labels": ["a", "x" * 257]}, "/labels/1", "label_length"),
        ({"labels": ["a", "b\x00"]}, "/labels/1", "nul_character"),
        ({"labels": ["a", None]}, "/labels/1", "label_type"),
        ({"labels": ["a", 1.5]}, "/labels/1", "label_type"),
        ({"labels": ["a", " "]}, "/labels/1", "blank"),
        ({"labels": ["a", "b\u200b"]}, "/labels/1", "unseen_character"),
        ({"labels": ["\u00e9", "e\u0301"]}, "/labels/1", "duplicate_label"),
        ({"labels": "ab"}, "/labels", "wrong_type"),
        ({"positive": "2"}, "/positive", "unknown_label"),
        ({"positive": True}, "/positive", "unknown_label"),
        ({"positive": [1]}, "/positive", "label_type"),
        ({"orientation": "rows"}, "/orientation", "wrong_value"),
        ({"normalized": "yes"}, "/normalized", "wrong_type"),
        ({"weights": [1]}, "/weights", "unknown_field"),
    ],
)
def test_members_of_a_matrix(client: httpx.Client, members: dict[str, Any], pointer: str, code: str) -> None:
    fault = refused(client, matrix_input([[5, 1], [2, 4]], **members))
    assert (fault["pointer"], fault["code"]) == (f"/input{pointer}", code)


def test_a_positive_class_is_for_two_classes(client: httpx.Client) -> None:
    fault = refused(client, matrix_input([[1, 0, 0], [0, 1, 0], [0, 0, 1]], positive="1"))
    assert (fault["pointer"], fault["code"]) == ("/input/positive", "positive_needs_two_classes")


def test_orientation(client: httpx.Client) -> None:
    rows = [[5, 1, 0], [2, 4, 3], [0, 0, 9]]
    columns = np.array(rows).T.tolist()
    by_rows = compute(client, matrix_input(rows, orientation="actual_rows"))
    assert by_rows == compute(client, matrix_input(rows))
    assert by_rows == compute(client, matrix_input(columns, orientation="predicted_rows"))
    assert by_rows["input"]["confusion_matrix"] == rows
    assert by_rows["input"]["orientation"] == "actual_rows"
    assert by_rows["per_class"]["0"]["prevalence_insensitive"]["recall"] == 5 / 6


def test_the_positive_class_first_or_second(client: httpx.Client) -> None:
    matrix = [[40, 10], [20, 30]]
    second = compute(client, matrix_input(matrix, labels=["ill", "healthy"]))
    assert second["input"]["positive"] == "healthy"
    assert second["metrics"]["prevalence_insensitive"]["recall"] == 0.6
    first = compute(client, matrix_input(matrix, labels=["ill", "healthy"], positive="ill"))
    assert first["input"]["positive"] == "ill"
    assert first["input"]["labels"] == ["ill", "healthy"]
    assert first["metrics"]["prevalence_insensitive"]["recall"] == 0.8
    assert first["metrics"]["prevalence_insensitive"]["specificity"] == 0.6
    assert first["per_class"] == second["per_class"]
    overall = ("accuracy", "mcc", "macro_f1")
    for name in overall:
        assert first["metrics"]["prevalence_sensitive"][name] == second["metrics"]["prevalence_sensitive"][name]


def test_binary_counts(client: httpx.Client) -> None:
    counts = {"kind": "binary_counts", "tp": 30, "fn": 10, "fp": 5, "tn": 55}
    answer = compute(client, counts)
    assert answer["input"]["confusion_matrix"] == [[55, 5], [10, 30]]
    assert answer["input"]["labels"] == ["0", "1"]
    assert answer["input"]["positive"] == "1"
    assert answer["metrics"]["prevalence_insensitive"]["recall"] == 0.75
    named = compute(client, {**counts, "negative": "benign", "positive": "malign"})
    assert named["input"]["labels"] == ["benign", "malign"]
    assert list(named["per_class"]) == ["benign", "malign"]
    same = compute(client, matrix_input([[55, 5], [10, 30]], labels=["benign", "malign"]))
    assert same["metrics"] == named["metrics"]
    faults: list[tuple[dict[str, Any], str, str]] = [
        ({"tp": -1}, "/input/tp", "negative_entry"),
        ({"fp": -0.5}, "/input/fp", "negative_entry"),
        ({"tn": 1e-20}, "/input/tn", "entry_too_small"),
        ({"tp": 0, "fn": 0, "fp": 0, "tn": 0}, "/input", "no_samples"),
        ({"positive": "0"}, "/input/positive", "duplicate_label"),
        ({"positive": ""}, "/input/positive", "label_length"),
        ({"matrix": [[1]]}, "/input/matrix", "unknown_field"),
    ]
    for members, pointer, code in faults:
        fault = refused(client, counts | members)
        assert (fault["pointer"], fault["code"]) == (pointer, code)
    assert fault["detail"] == "there is no such field of this kind: confusion_matrix has it"
    told = "of this kind: predictions, probabilities, scores, multilabel and ranking have it"
    assert told in refused(client, counts | {"attributes": {}})["detail"]
    missing = refused(client, {"kind": "binary_counts", "tp": 1, "fn": 1, "fp": 1})
    assert (missing["pointer"], missing["code"]) == ("/input/tn", "missing_field")


def test_weights_and_rates(client: httpx.Client) -> None:
    weights = compute(client, matrix_input([[1.5, 0.5], [0.25, 0.75]]))
    assert weights["input"]["content"] == "weights"
    assert weights["input"]["n_samples"] == 3
    rates = compute(client, matrix_input([[0.9, 0.1], [0.2, 0.8]], normalized=True))
    assert rates["input"]["content"] == "rates"
    assert rates["input"]["n_samples"] is None
    for answer in (weights, rates):
        assert answer["intervals"] == {}
        (note,) = [finding for finding in answer["findings"] if finding["code"] == "no_intervals"]
        assert answer["input"]["content"] in note["message"]
        # What needs numbers of samples is not there, and says so.
        assert answer["metrics"]["prevalence_sensitive"]["accuracy_p_value"] is None
        codes = {entry["metric"]: entry["code"] for entry in answer["undefined"]}
        assert codes["accuracy_p_value"] == "needs_counts"
    # Rates may be whole numbers too.
    assert compute(client, matrix_input([[1, 0], [0, 1]], normalized=True))["input"]["content"] == "rates"
    scaled = compute(client, matrix_input([[6.0, 2.0], [1.0, 3.0]]))
    assert scaled["input"]["content"] == "counts"


# Folds.


def fold(matrix: list[list[Any]], **members: Any) -> dict[str, Any]:
    return matrix_input(matrix, **members)


def test_folds(client: httpx.Client) -> None:
    matrices = [[[8, 2], [1, 9]], [[6, 4], [3, 7]], [[10, 0], [5, 5]]]
    answer = compute(client, {"kind": "folds", "folds": [fold(matrix) for matrix in matrices]})
    pooled = compute(client, matrix_input(np.sum(matrices, axis=0).tolist()))
    assert answer["metrics"] == pooled["metrics"]
    assert answer["intervals"] == pooled["intervals"]
    accuracies = [17 / 20, 13 / 20, 15 / 20]
    found = answer["folds"]["accuracy"]
    assert found["values"] == pytest.approx(accuracies)
    assert found["mean"] == pytest.approx(np.mean(accuracies))
    assert found["sd"] == pytest.approx(np.std(accuracies, ddof=1))
    assert found["cv"] == pytest.approx(np.std(accuracies, ddof=1) / np.mean(accuracies))
    assert set(answer["folds"]) >= {"h_mean", "mcc", "balanced_accuracy"}
    assert answer["input"]["fold_kind"] == "confusion_matrix"


def test_one_fold_has_no_deviation(client: httpx.Client) -> None:
    answer = compute(client, {"kind": "folds", "folds": [fold([[8, 2], [1, 9]])]})
    assert answer["folds"]["accuracy"] == {"mean": 0.85, "sd": None, "cv": None, "values": [0.85]}


def test_equal_folds_have_no_deviation(client: httpx.Client) -> None:
    """The mean of three times 0.8 in doubles is another number."""
    answer = compute(client, {"kind": "folds", "folds": [fold([[8, 2], [2, 8]])] * 3})
    assert answer["folds"]["accuracy"] == {"mean": 0.8, "sd": 0.0, "cv": 0.0, "values": [0.8] * 3}


def test_a_fold_without_a_value_leaves_no_mean(client: httpx.Client) -> None:
    """A mean over the other folds would be a mean of something else."""
    answer = compute(client, {"kind": "folds", "folds": [fold([[8, 2], [1, 9]]), fold([[8, 2], [0, 0]])]})
    assert answer["folds"]["h_mean"]["values"][1] is None
    assert answer["folds"]["h_mean"]["mean"] is None
    assert answer["folds"]["h_mean"]["sd"] is None
    assert answer["folds"]["h_mean"]["cv"] is None
    assert answer["metrics"]["prevalence_insensitive"]["h_mean"] is not None


@pytest.mark.parametrize(
    ("folds", "pointer", "code"),
    [
        ([], "/folds", "wrong_length"),
        ([fold([[1, 2], [3, 4]]), fold([[1, 2], [3, -4]])], "/folds/1/matrix/1/1", "negative_entry"),
        ([fold([[1, 2], [3, 4]]), fold([[1, 2], [3]])], "/folds/1/matrix/1", "not_square"),
        ([fold([[1, 2], [3, 4]]), fold([[1, 2], [3, "x"]])], "/folds/1/matrix/1/1", "wrong_type"),
        ([fold([[1, 2], [3, 4]]), fold(np.eye(3).tolist())], "/folds/1", "mixed_labels"),
        ([fold([[1, 2], [3, 4]]), fold([[1, 2], [3, 4]], labels=["a", "b"])], "/folds/1", "mixed_labels"),
        ([fold([[1, 2], [3, 4]]), fold([[1, 2], [3, 4]], positive="0")], "/folds/1/positive", "mixed_labels"),
        ([fold([[1, 2], [3, 4]]), PREDICTIONS], "/folds/1/kind", "mixed_folds"),
        ([fold([[0.5, 0.5], [0, 1]], normalized=True)], "/folds/0", "rates_cannot_be_pooled"),
        ([fold([[1, 2], [3, 4]], decisions=["wait", "treat"])] * 2, "/folds/0", "not_for_decisions"),
        ([{"kind": "folds", "folds": []}], "/folds/0/kind", "wrong_value"),
        ([fold([[2**52, 1], [1, 1]])] * 3, "/folds", "total_too_large"),
        ([{**PREDICTIONS, "labels": [f"c{k}" for k in range(998)] + ["a", "b"]}] * 11, "/folds/10", "too_many_folds"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_are_no_folds(client: httpx.Client, folds: list[Any], pointer: str, code: str) -> None:
    fault = refused(client, {"kind": "folds", "folds": folds})
    assert (fault["pointer"], fault["code"]) == (f"/input{pointer}", code)


def test_folds_of_predictions(client: httpx.Client) -> None:
    folds = [
        {**PREDICTIONS, "labels": ["a", "b", "c"]},
        {**PREDICTIONS, "y_pred": ["c", "b", "b"], "labels": ["a", "b", "c"]},
    ]
    answer = compute(client, {"kind": "folds", "folds": folds})
    assert answer["input"]["confusion_matrix"] == [[1, 0, 1], [1, 3, 0], [0, 0, 0]]
    # Without `labels`, a class that a fold lacks makes it another set of classes; the message tells what to do.
    fault = refused(client, {"kind": "folds", "folds": [PREDICTIONS, {**PREDICTIONS, "y_pred": ["c", "b", "b"]}]})
    assert "`labels`" in fault["detail"]
