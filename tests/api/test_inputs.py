"""What may be sent and what may not: every refusal points at the place and says what was expected there."""

import json
from typing import Any

import httpx
import numpy as np
import pytest

from app.domain.expressions.syntax import write_label
from tests.api.answers import check_problem, compute, count_stored, create, evaluation, matrix_input, refused

HEADERS = {"Content-Type": "application/json"}


# Bodies from 256 KiB on are read by another parser, which has to come to the same results.
PADDING = {"small": "", "large": " " * 300_000}
either_size = pytest.mark.parametrize("padding", PADDING.values(), ids=PADDING.keys())


def post_text(client: httpx.Client, text: str, padding: str = "") -> httpx.Response:
    return client.post("/v1/evaluations", content=(text + padding).encode(), headers=HEADERS)


def with_input(text: str) -> str:
    return '{"model": {"name": "m"}, "dataset": {"name": "d"}, "input": ' + text + "}"


@pytest.fixture(autouse=True)
def nothing_stored_when_refused(client: httpx.Client) -> Any:
    """The tests here only compute or are refused."""
    before = count_stored(client)
    yield
    assert count_stored(client) == before


# Numbers.

BAD_NUMBERS = {
    "NaN": "finite_number",
    "Infinity": "finite_number",
    "-Infinity": "finite_number",
    "1e400": "finite_number",
    "-1e400": "finite_number",
    "1" + "0" * 400: "finite_number",
    "null": "float_type",
    "true": "float_type",
    '"1"': "float_type",
    "[1]": "float_type",
    "{}": "float_type",
}


@pytest.mark.parametrize(("number", "code"), BAD_NUMBERS.items(), ids=[name[:12] for name in BAD_NUMBERS])
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


@pytest.mark.parametrize("name", ["y_true", "y_pred"])
@pytest.mark.parametrize("label", BAD_LABELS)
@either_size
def test_what_is_no_label(client: httpx.Client, name: str, label: str, padding: str) -> None:
    columns = {"y_true": "[0, 1, 1]", "y_pred": "[0, 1, 0]"} | {name: f"[0, {label}, 1]"}
    text = ", ".join(f'"{key}": {value}' for key, value in columns.items())
    reply = post_text(client, with_input(f'{{"kind": "predictions", {text}}}'), padding)
    fault = check_problem(reply, 422, "invalid_input")["errors"][0]
    assert fault["pointer"] == f"/input/{name}/1"
    assert fault["code"] == ("label_too_large" if label.startswith("1000") else "not_a_label")


@pytest.mark.parametrize("weight", ["NaN", "-1", "1e400", "null", "true", '"1"', "[]", "1" + "0" * 400])
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


@pytest.mark.parametrize(
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
        ({"labels": "ab"}, "/labels", "list_type"),
        ({"positive": "2"}, "/positive", "unknown_label"),
        ({"positive": True}, "/positive", "unknown_label"),
        ({"positive": [1]}, "/positive", "label_type"),
        ({"orientation": "rows"}, "/orientation", "literal_error"),
        ({"normalized": "yes"}, "/normalized", "bool_type"),
        ({"weights": [1]}, "/weights", "extra_forbidden"),
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
        ({"matrix": [[1]]}, "/input/matrix", "extra_forbidden"),
    ]
    for members, pointer, code in faults:
        fault = refused(client, counts | members)
        assert (fault["pointer"], fault["code"]) == (pointer, code)
    missing = refused(client, {"kind": "binary_counts", "tp": 1, "fn": 1, "fp": 1})
    assert (missing["pointer"], missing["code"]) == ("/input/tn", "missing")


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


# Labels.

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


PREDICTIONS: dict[str, Any] = {"kind": "predictions", "y_true": ["a", "b", "b"], "y_pred": ["a", "b", "a"]}


@pytest.mark.parametrize(
    ("members", "pointer", "code"),
    [
        ({"y_true": []}, "/y_true", "no_samples"),
        ({"y_true": [], "y_pred": []}, "/y_true", "no_samples"),
        ({"y_pred": ["a"]}, "/y_pred", "wrong_length"),
        ({"y_pred": None}, "/y_pred", "list_type"),
        ({"y_pred": "aba"}, "/y_pred", "list_type"),
        ({"y_pred": {"0": "a"}}, "/y_pred", "list_type"),
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
        ({"ids": [1, 2, 3]}, "/ids", "extra_forbidden"),
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
    assert (fault["pointer"], fault["code"]) == ("/input", "too_many_classes")
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
    assert set(answer["folds"]) >= {"h_mean", "mcc", "balanced_accuracy"}
    assert answer["input"]["fold_kind"] == "confusion_matrix"


def test_one_fold_has_no_deviation(client: httpx.Client) -> None:
    answer = compute(client, {"kind": "folds", "folds": [fold([[8, 2], [1, 9]])]})
    assert answer["folds"]["accuracy"] == {"mean": 0.85, "sd": None, "values": [0.85]}


def test_a_fold_without_a_value_leaves_no_mean(client: httpx.Client) -> None:
    """A mean over the other folds would be a mean of something else."""
    answer = compute(client, {"kind": "folds", "folds": [fold([[8, 2], [1, 9]]), fold([[8, 2], [0, 0]])]})
    assert answer["folds"]["h_mean"]["values"][1] is None
    assert answer["folds"]["h_mean"]["mean"] is None
    assert answer["folds"]["h_mean"]["sd"] is None
    assert answer["metrics"]["prevalence_insensitive"]["h_mean"] is not None


@pytest.mark.parametrize(
    ("folds", "pointer", "code"),
    [
        ([], "/folds", "too_short"),
        ([fold([[1, 2], [3, 4]]), fold([[1, 2], [3, -4]])], "/folds/1/matrix/1/1", "negative_entry"),
        ([fold([[1, 2], [3, 4]]), fold([[1, 2], [3]])], "/folds/1/matrix/1", "not_square"),
        ([fold([[1, 2], [3, 4]]), fold([[1, 2], [3, "x"]])], "/folds/1/matrix/1/1", "float_type"),
        ([fold([[1, 2], [3, 4]]), fold(np.eye(3).tolist())], "/folds/1", "mixed_labels"),
        ([fold([[1, 2], [3, 4]]), fold([[1, 2], [3, 4]], labels=["a", "b"])], "/folds/1", "mixed_labels"),
        ([fold([[1, 2], [3, 4]]), fold([[1, 2], [3, 4]], positive="0")], "/folds/1/positive", "mixed_labels"),
        ([fold([[1, 2], [3, 4]]), PREDICTIONS], "/folds/1/kind", "mixed_folds"),
        ([fold([[0.5, 0.5], [0, 1]], normalized=True)], "/folds/0", "rates_cannot_be_pooled"),
        ([{"kind": "folds", "folds": []}], "/folds/0/kind", "union_tag_invalid"),
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


# JSON.


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        "nul",
        "{'a': 1}",
        '{"a": 1,}',
        '{"a": 1} x',
        "[" * 100_000,
        '{"a":' * 5_000,
        '"\\ud800"',
    ],
    ids=lambda text: repr(text[:8]),
)
def test_what_is_no_json(client: httpx.Client, text: str) -> None:
    for path in ("/v1/evaluations", "/v1/evaluations/batch", "/v1/metrics/compute", "/v1/bounds/h-mean"):
        reply = client.post(path, content=text.encode(), headers=HEADERS)
        problem = check_problem(reply, 400, "bad_request")
        assert problem["errors"][0]["code"] == "invalid_json"


def test_bytes_that_are_no_text(client: httpx.Client) -> None:
    reply = client.post("/v1/evaluations", content=b'{"model": {"name": "\xff"}}', headers=HEADERS)
    check_problem(reply, 400, "bad_request")


@pytest.mark.parametrize("text", ["null", "[]", "7", '"x"', "true"])
@either_size
def test_json_that_is_no_object(client: httpx.Client, text: str, padding: str) -> None:
    problem = check_problem(post_text(client, text, padding), 422, "invalid_request")
    assert problem["errors"] == [{"pointer": "", "code": "model_type", "detail": "expected an object"}]


@either_size
def test_deep_json_is_refused_at_its_place(client: httpx.Client, padding: str) -> None:
    deep = "[" * 150 + "]" * 150
    reply = post_text(client, with_input(f'{{"kind": "confusion_matrix", "matrix": {deep}}}'), padding)
    assert check_problem(reply, 422, "invalid_request")["errors"][0]["pointer"].startswith("/input/matrix")


@pytest.mark.parametrize(
    "text",
    [
        '{"input": {"kind": "binary_counts", "tp": 9, "tp": 1, "fn": 1, "fp": 1, "tn": 1}}',
        '{"input": {"kind": "binary_counts", "tp": 9, "t\\u0070": 1, "fn": 1, "fp": 1, "tn": 1}}',
        '{"input": {"kind": "folds", "folds": [{"kind": "scores", "matrix": [[1, 2], [3, 4]], "kind": 1}]}}',
        '{"tags": {"a:b": "c:d"}, "tags": {}}',
        '{"unknown": [[{"a": 1, "a": 1}]]}',
    ],
)
@either_size
def test_members_of_one_name(client: httpx.Client, text: str, padding: str) -> None:
    reply = client.post("/v1/metrics/compute", content=(text + padding).encode(), headers=HEADERS)
    fault = check_problem(reply, 422, "invalid_request")["errors"][0]
    assert (fault["pointer"], fault["code"]) == ("", "repeated_member")


def test_colons_in_texts_are_no_members(client: httpx.Client) -> None:
    labels = ["a:b", '"c":', "{:}"]
    assert compute(client, matrix_input(np.eye(3).tolist(), labels=labels))["input"]["labels"] == labels


@pytest.mark.parametrize("depth", [250, 900, 2000])
@pytest.mark.parametrize("pair", ["[]", ('{"a":', "}")])
def test_a_large_body_may_be_deep(client: httpx.Client, depth: int, pair: tuple[str, str]) -> None:
    deep = pair[0] * depth + "1" + pair[1] * depth
    reply = post_text(client, '{"tags": ' + deep + "}", PADDING["large"])
    assert reply.status_code in (400, 422)
    check_problem(reply, reply.status_code, reply.json()["code"])


def test_a_large_body_is_read_as_a_small_one(client: httpx.Client) -> None:
    """Columns of every type, a bracket in a text, folds: the two parsers agree."""
    columns: list[dict[str, Any]] = [
        {"y_true": [3, 1, 2], "y_pred": [1, 1, 2]},
        {"y_true": ["[", "]", "["], "y_pred": ["[", "[", "]"]},
        {"y_true": [1, 0, 1], "y_pred": [0, 0, 1], "sample_weight": [1, 2.5, 0]},
        {"y_true": [1, 0, 1], "y_pred": [0, 0, 1], "sample_weight": [1, 2, 3], "sample_ids": [1, 2, 3]},
        {"y_true": [1, 0, 1], "y_pred": [0, 0, 1], "sample_ids": ["a", 2, "ä"], "labels": [1, 0], "positive": 1},
    ]
    sources = [{"kind": "predictions", **column} for column in columns]
    for source in [*sources, {"kind": "folds", "folds": [sources[2], sources[2]]}]:
        small = json.dumps({"input": source})
        replies = [
            client.post("/v1/metrics/compute", content=(small + padding).encode(), headers=HEADERS)
            for padding in PADDING.values()
        ]
        assert replies[0].status_code == 200, replies[0].text
        assert replies[0].content == replies[1].content
