"""Samples whose actual class is ignored: what is left is what would be there had they never been sent."""

from typing import Any

import httpx
import numpy as np
import pytest

from tests.api.answers import compute, create, evaluation, matrix_input, refused
from tests.api.sent_inputs import PADDING, post_text, with_input
from tests.api.test_multipart import as_csv, as_parquet, send
from tests.witnesses import sk

Json = dict[str, Any]
TRUTH = ["a", "void", "b", "b", "void", "c", "a", "b"]
DECIDED = ["a", "b", "b", "a", "c", "c", "b", "b"]
LEFT = [0, 2, 3, 5, 6, 7]


def chosen(source: Json, rows: list[int]) -> Json:
    return {
        name: [value[row] for row in rows] if isinstance(value, list) and len(value) == len(TRUTH) else value
        for name, value in source.items()
    }


def same_but_for_what_is_said(answer: Json, expected: Json) -> None:
    """Equal, the second having no class to ignore."""
    assert answer["input"].pop("ignored")
    answer["findings"] = [one for one in answer["findings"] if one["code"] != "ignored_classes"]
    assert answer == expected


@pytest.mark.parametrize(
    "beside",
    [
        {},
        {"sample_ids": ["h", "g", "f", "e", "d", "c", "b", "a"], "group_ids": [1, 1, 2, 2, 3, 3, 4, 4]},
        {"sample_weight": [1, 2, 3, 4, 0.5, 1, 0, 2]},
        {"labels": ["c", "b", "a"]},
    ],
)
def test_predictions(client: httpx.Client, beside: Json) -> None:
    source = {"kind": "predictions", "y_true": TRUTH, "y_pred": DECIDED, **beside}
    answer = compute(client, source | {"ignore": ["void", "blank"]}, seed=0)
    assert answer["input"]["ignored"] == {"void": 2, "blank": 0}
    note = next(one for one in answer["findings"] if one["code"] == "ignored_classes")
    assert note["evidence"] == {"classes": ["void", "blank"], "n": [2, 0]}
    assert "2 samples of void, 0 samples of blank" in note["message"]
    many = compute(client, source | {"ignore": ["void", *(f"x{place}" for place in range(10))]})["findings"]
    note = next(one for one in many if one["code"] == "ignored_classes")
    assert note["message"].endswith("0 samples of x8 and 1 more.")
    same_but_for_what_is_said(answer, compute(client, chosen(source, LEFT), seed=0))


def test_probabilities_and_scores(client: httpx.Client) -> None:
    random = np.random.default_rng(3)
    rows = np.round(random.dirichlet(np.ones(3), 8), 6)
    rows[:, 2] = 1 - rows[:, 0] - rows[:, 1]
    source = {"kind": "probabilities", "y_true": TRUTH, "probabilities": rows.tolist(), "labels": ["a", "b", "c"]}
    answer = compute(client, source | {"ignore": ["void"]}, seed=0)
    truth = [TRUTH[row] for row in LEFT]
    sensitive = answer["metrics"]["prevalence_sensitive"]
    assert sensitive["log_loss"] == pytest.approx(sk.log_loss(truth, rows[LEFT], labels=["a", "b", "c"]), rel=1e-12)
    assert sensitive["roc_auc_ovr_macro"] == pytest.approx(
        sk.roc_auc_score(truth, rows[LEFT], multi_class="ovr"), rel=1e-12
    )
    same_but_for_what_is_said(answer, compute(client, chosen(source, LEFT), seed=0))

    truth_of_two = [1, 9, 0, 0, 9, 1, 0, 1]
    scores = {"kind": "scores", "y_true": truth_of_two, "scores": random.normal(size=8).tolist()}
    answer = compute(client, scores | {"ignore": [9]}, seed=0)
    assert answer["input"]["ignored"] == {"9": 2}
    same_but_for_what_is_said(answer, compute(client, chosen(scores, LEFT), seed=0))


def test_a_matrix_loses_row_and_column(client: httpx.Client) -> None:
    matrix = [[5, 1, 0], [2, 4, 0], [7, 8, 9]]
    source = matrix_input(matrix, labels=["a", "b", "void"], ignore=["void"], positive="a")
    answer = compute(client, source)
    assert answer["input"]["ignored"] == {"void": 24}
    same_but_for_what_is_said(answer, compute(client, matrix_input([[5, 1], [2, 4]], labels=["a", "b"], positive="a")))
    turned = [list(column) for column in zip(*matrix, strict=True)]
    assert compute(client, source | {"matrix": turned, "orientation": "predicted_rows"})["metrics"] == answer["metrics"]
    weights = compute(client, source | {"matrix": [[0.5, 1, 0], [2, 4, 0], [7, 8, 9.25]]})
    assert weights["input"]["ignored"] == {"void": 24.25}


def test_errors_are_never_left_out(client: httpx.Client) -> None:
    """What is predicted as an ignored class, of another one, is wrong whatever is ignored."""
    predicted = [*DECIDED[:-1], "void"]
    source = {"kind": "predictions", "y_true": TRUTH, "y_pred": predicted, "ignore": ["void"]}
    answer = compute(client, source)
    assert answer["input"]["labels"] == ["a", "b", "c", "void"]
    truth = [TRUTH[row] for row in LEFT]
    decided = [predicted[row] for row in LEFT]
    assert answer["metrics"]["prevalence_sensitive"]["accuracy"] == pytest.approx(sk.accuracy_score(truth, decided))
    macro = sk.f1_score(truth, decided, average="macro", zero_division=0)
    assert answer["metrics"]["prevalence_sensitive"]["macro_f1"] == pytest.approx(macro)
    warning = next(one for one in answer["findings"] if one["code"] == "ignored_but_predicted")
    assert warning["evidence"] == {"classes": ["void"], "n": [1]}
    assert answer["metrics"]["prevalence_insensitive"]["balanced_accuracy"] is None
    filled = [*answer["input"]["confusion_matrix"][:3], [0, 1, 1, 5]]
    again = compute(client, matrix_input(filled, labels=["a", "b", "c", "void"], ignore=["void"]))
    assert again["input"]["confusion_matrix"] == answer["input"]["confusion_matrix"]
    assert again["input"]["ignored"] == {"void": 7}
    # Samples that are left out may be predicted as anything.
    elsewhere = compute(client, source | {"y_pred": ["a", "void", *DECIDED[2:]]})
    assert elsewhere["input"]["labels"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("source", "pointer", "code"),
    [
        ({"ignore": ["a", "b", "c", "void"]}, "/ignore", "no_samples"),
        ({"ignore": ["b", "c", "void"], "y_pred": ["a"] * 8}, "", "too_few_classes"),
        ({"ignore": "void"}, "/ignore", "wrong_type"),
        ({"ignore": [None]}, "/ignore/0", "label_type"),
        ({"ignore": ["a"], "labels": ["a", "b"]}, "/y_true/1", "unknown_label"),
        ({"ignore": ["void"], "y_pred": DECIDED[1:]}, "/y_pred", "wrong_length"),
        ({"ignore": ["void"], "sample_weight": [1, 1, 1, 1, 1, -1, 1, 1]}, "/sample_weight/5", "bad_weight"),
        ({"ignore": ["void"], "sample_ids": [1, 2, 3, 4, 5, 6, 7, 4]}, "/sample_ids/7", "duplicate_sample_id"),
        ({"ignore": ["void"], "attributes": {"site": ["A"] * 3}}, "/attributes/site", "wrong_length"),
        ({"ignore": ["void"], "attributes": {"site": ["A"] * 9}}, "/attributes/site", "wrong_length"),
        (
            {"ignore": ["void"], "attributes": {"age": [1, 2, 3, 4, 5, 1e300, 7, 8]}},
            "/attributes/age/5",
            "out_of_range",
        ),
    ],
)
def test_what_cannot_be_ignored(client: httpx.Client, source: Json, pointer: str, code: str) -> None:
    fault = refused(client, {"kind": "predictions", "y_true": TRUTH, "y_pred": DECIDED} | source)
    assert (fault["pointer"], fault["code"]) == (f"/input{pointer}", code)


@pytest.mark.parametrize(
    ("ignore", "pointer", "code"),
    [
        (["a", "x"], "/ignore/1", "unknown_label"),
        (["a", "b"], "/ignore", "too_few_classes"),
        (["a", "b", "c"], "/ignore", "no_samples"),
    ],
)
def test_what_a_matrix_cannot_ignore(client: httpx.Client, ignore: list[str], pointer: str, code: str) -> None:
    source = matrix_input([[1, 0, 0], [0, 1, 0], [0, 0, 1]], labels=["a", "b", "c"], ignore=ignore)
    fault = refused(client, source)
    assert (fault["pointer"], fault["code"]) == (f"/input{pointer}", code)


def test_places_of_faults_are_those_of_all_samples(client: httpx.Client) -> None:
    rows = [[0.5, 0.25, 0.25]] * 8
    source = {"kind": "probabilities", "y_true": TRUTH, "labels": ["a", "b", "c"], "ignore": ["void"]}
    fault = refused(client, source | {"probabilities": [*rows[:6], [0.5, 0.25, 7], rows[7]]})
    assert (fault["pointer"], fault["code"]) == ("/input/probabilities/6/2", "out_of_range")
    fault = refused(client, source | {"probabilities": [*rows[:5], [0.5, 0.25, 0.2], *rows[6:]]})
    assert (fault["pointer"], fault["code"]) == ("/input/probabilities/5", "row_sum")


@pytest.mark.parametrize("write", [as_csv, as_parquet])
def test_files_and_folds(client: httpx.Client, write: Any) -> None:
    columns = {"y_true": TRUTH, "y_pred": DECIDED}
    source = {"kind": "predictions", "ignore": ["void"]}
    expected = compute(client, source | columns)
    assert send(client, source, write(columns)).json() == expected
    folds = {"kind": "folds", "fold": {"ignore": ["void"]}}
    answer = send(client, folds, write({**columns, "fold": [0, 0, 0, 0, 1, 1, 1, 1]})).json()
    assert answer["input"]["ignored"] == {"void": 2}
    assert answer["input"]["labels"] == ["a", "b", "c"]
    assert answer["metrics"] == expected["metrics"]


@pytest.mark.parametrize("padding", PADDING.values(), ids=PADDING.keys())
def test_kept_and_read_again(client: httpx.Client, padding: str) -> None:
    text = '{"kind": "predictions", "y_true": ["a", "b", "x"], "y_pred": ["a", "a", "a"], "ignore": ["x"]}'
    made = post_text(client, with_input(text), padding).json()
    try:
        assert made["input"]["ignored"] == {"x": 1}
        assert client.get(f"/v1/evaluations/{made['id']}").json() == made
    finally:
        client.delete(f"/v1/evaluations/{made['id']}")


def test_runs_are_paired_by_what_is_left(client: httpx.Client) -> None:
    source = {"kind": "predictions", "y_true": TRUTH, "sample_ids": [*range(8)], "ignore": ["void"]}
    made = [
        create(client, evaluation(model=name, input=source | {"y_pred": predicted}))
        for name, predicted in (("one", DECIDED), ("two", DECIDED[::-1]))
    ]
    try:
        asked = {"evaluations": [one["id"] for one in made], "metrics": ["accuracy"]}
        design = client.post("/v1/comparisons", json=asked).json()["design"]
        assert design["paired"]
        assert "6" in design["reason"]
    finally:
        for one in made:
            client.delete(f"/v1/evaluations/{one['id']}")
