"""Reading matrices piece by piece: the same numbers, and nothing that a careful reader would refuse."""

import json

import numpy as np
import pytest

from app.api.bodies import matrices
from app.api.bodies.columns import parse_large_body
from app.api.bodies.matrices import split_matrices
from app.api.v1.requests.evaluations import EvaluationRequest
from app.api.v1.requests.inputs import FoldsInput, ProbabilitiesInput

ROWS = np.random.default_rng(0).dirichlet(np.ones(3), 500)


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" ,\n ", " : ")])
@pytest.mark.parametrize("chunk", [1, 100, 1000, 1 << 20])
def test_the_same_numbers(monkeypatch: pytest.MonkeyPatch, separators: tuple[str, str], chunk: int) -> None:
    monkeypatch.setattr(matrices, "_CHUNK", chunk)
    text = json.dumps({"a": 1, "probabilities": ROWS.tolist(), "b": [1]}, separators=separators)
    split = split_matrices(text.encode())
    ((name, matrix),) = split.matrices.items()
    np.testing.assert_array_equal(matrix, ROWS)
    assert json.loads(split.rest) == {"a": 1, "probabilities": name, "b": [1]}


def test_folds_have_a_matrix_each() -> None:
    parts = np.split(ROWS, 5)
    folds = [
        {"kind": "probabilities", "y_true": [0] * len(part), "probabilities": part.tolist(), "labels": [0, 1, 2]}
        for part in parts
    ]
    body = json.dumps({"input": {"kind": "folds", "folds": folds}}).encode()
    assert len(split_matrices(body).matrices) == 5
    source = parse_large_body(body, EvaluationRequest).input
    assert isinstance(source, FoldsInput)
    for fold, part in zip(source.folds, parts, strict=True):
        assert isinstance(fold, ProbabilitiesInput)
        np.testing.assert_array_equal(fold.probabilities, part)


@pytest.mark.parametrize(
    "rows",
    [
        "[]",
        "[[]]",
        "[[1,2],[3]]",
        "[[1,2],[3],[4,5,6]]",
        "[[1,2,3],[4]]",
        "[[[1,2]],[3,4]]",
        "[[1,[2]],[3,4]]",
        "[[1,2],3]",
        "[3,[1,2]]",
        '[[1,2],"ab"]',
        '[[1,2],["3",4]]',
        '[[1,2],{"a":3,"b":4}]',
        "[[1,2],[null,4]]",
        "[[1,2],[true,4]]",
        "[[1,2],[1e400,4]]",
        "[[1,2],[NaN,4]]",
        "[[1,2] [3,4]]",
        "[[1,2],,[3,4]]",
        "[[1,2],[3,4],]",
        "[[1,2],[3,4]",
        "[[1 2],[3,4]]",
        "[[01,2],[3,4]]",
        "null",
        '"[[1,2]]"',
    ],
)
@pytest.mark.parametrize("chunk", [1, 1 << 20])
def test_anything_else_stays_where_it_is(monkeypatch: pytest.MonkeyPatch, rows: str, chunk: int) -> None:
    monkeypatch.setattr(matrices, "_CHUNK", chunk)
    body = ('{"probabilities": ' + rows + "}").encode()
    split = split_matrices(body)
    assert split.rest == body
    assert not split.matrices


def test_names_in_texts_are_no_members() -> None:
    body = json.dumps({"tags": {"a": '"probabilities": [[1,2]]'}, "kind": "probabilities"}).encode()
    assert split_matrices(body).rest == body


def test_a_wide_first_row_reserves_nothing() -> None:
    body = ('{"probabilities": [[' + ",".join(["1"] * 100_000) + "]" + ",[]" * 100_000 + "]}").encode()
    assert not split_matrices(body).matrices
