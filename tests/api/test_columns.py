"""Reading columns piece by piece: the same values, and nothing that a careful reader would refuse."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.bodies import columns
from app.api.bodies.columns import COLUMNS, MOST_BESIDE, parse_large_body, split_columns
from app.api.problems import MalformedRequest
from app.api.v1.requests.evaluations import EvaluationRequest
from tests.bank import each

ROWS = np.random.default_rng(0).dirichlet(np.ones(3), 500)
TEXTS = ["a", "", " ", ",", "]", "[", '"', "\\", '\\"', '", "', '"],', "é", "\n", '{"y_true": [1]}', "x" * 50]
entries = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1)),
    st.lists(st.floats(allow_nan=False, allow_infinity=False)),
    st.lists(st.sampled_from(TEXTS)),
    st.lists(st.one_of(st.sampled_from(TEXTS), st.integers(-5, 5), st.floats(0, 1), st.booleans(), st.none())),
)


def whole(body: bytes) -> dict[str, Any]:
    """What a body holds, put together again."""
    split = split_columns(body)
    found: dict[str, Any] = json.loads(split.rest, object_pairs_hook=split.joined)
    return found


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" ,\n ", " : ")])
@pytest.mark.parametrize("piece", [100, 1000, 1 << 20])
def test_the_same_numbers(monkeypatch: pytest.MonkeyPatch, separators: tuple[str, str], piece: int) -> None:
    monkeypatch.setattr(columns, "_PIECE", piece)
    text = json.dumps({"a": 1, "probabilities": ROWS.tolist(), "b": [1]}, separators=separators)
    split = split_columns(text.encode())
    ((name, matrix),) = split.columns.items()
    assert isinstance(matrix, np.ndarray)
    np.testing.assert_array_equal(matrix, ROWS)
    assert json.loads(split.rest) == {"a": 1, "probabilities": name, "b": [1]}


@given(
    columns_=st.dictionaries(st.sampled_from(COLUMNS), entries, min_size=1),
    separators=st.sampled_from([(",", ":"), (" , ", " : "), (",\n", ":\t")]),
    ascii_=st.booleans(),
    piece=st.integers(150, 400),
)
def test_columns_are_what_another_reader_finds(
    columns_: dict[str, list[Any]], separators: tuple[str, str], ascii_: bool, piece: int
) -> None:
    body = json.dumps({"kind": "x", **columns_, "last": [1]}, separators=separators, ensure_ascii=ascii_).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_PIECE", piece)
        found = whole(body)
    for name, values in columns_.items():
        column = found[name]
        if isinstance(column, np.ndarray):
            # Numbers only; with a fraction among them all are floats.
            assert column.tolist() == values
        else:
            assert column == values
            # Pieces of numbers only are arrays: beside a fraction a whole number is a float there.
            fractions = any(isinstance(value, float) for value in values)
            for own, value in zip(column, values, strict=True):
                assert type(own) is (float if fractions and type(own) is float and type(value) is int else type(value))
    assert found["last"] == [1]
    assert found["kind"] == "x"


@pytest.mark.parametrize(
    "text",
    [
        "[1,,2]",
        "[1,2,]",
        "[,1]",
        "[1 2]",
        "[01]",
        "[NaN]",
        "[1",
        '["a]',
        '["a" "b"]',
        "[[1],[2]]",
        "[1,[2]]",
    ],
)
def test_what_is_no_column_stays_where_it_is(text: str) -> None:
    body = ('{"y_true": ' + text + "}").encode()
    assert split_columns(body).rest == body


def test_labels_that_come_again_are_one_text() -> None:
    found = whole(json.dumps({"y_true": ["cat", "dog"] * 1000}).encode())["y_true"]
    assert len({id(text) for text in found}) == 2


def test_a_member_that_comes_twice_is_refused() -> None:
    with pytest.raises(MalformedRequest, match="'y_true' more than once"):
        whole(b'{"y_true": [1], "y_true": [2]}')


@pytest.mark.parametrize(
    ("member", "code", "pointer"),
    [
        ('"foo": [' + "1," * (MOST_BESIDE // 2) + "1]", "too_large", ""),
        ('"y_true": [' + '["x","y"],' * (MOST_BESIDE // 8) + "1]", "too_large", ""),
        ('"matrix": [[' + "1," * 1000 + "1]]", "too_many_classes", "/input/matrix"),
        ('"folds": [{"matrix": [[' + "1," * 1000 + "1]]}]", "too_many_classes", ""),
    ],
)
def test_sizes_are_known_before_objects_are_made(member: str, code: str, pointer: str) -> None:
    with pytest.raises(MalformedRequest) as caught:
        split_columns(('{"input": {' + member + "}}").encode())
    assert [(fault.code, fault.pointer) for fault in caught.value.faults] == [(code, pointer)]


def test_more_samples_than_any_input_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MOST_SAMPLES", 3)
    for text in ('"y_true": [1,2,3,4]', '"probabilities": [[1,0],[1,0],[1,0],[1,0]]'):
        with pytest.raises(MalformedRequest, match="at most 3 samples"):
            split_columns(("{" + text + "}").encode())


def test_folds_have_a_matrix_each() -> None:
    parts = np.split(ROWS, 5)
    folds = [
        {"kind": "probabilities", "y_true": [0] * len(part), "probabilities": part.tolist(), "labels": [0, 1, 2]}
        for part in parts
    ]
    body = json.dumps({"input": {"kind": "folds", "folds": folds}}).encode()
    # Of each fold the classes and the probabilities.
    assert len(split_columns(body).columns) == 10
    source = parse_large_body(body, EvaluationRequest).input
    assert source.kind == "folds"
    for fold, part in zip(source.folds, parts, strict=True):
        assert fold.kind == "probabilities"
        np.testing.assert_array_equal(fold.probabilities, part)


@each(
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
@each("piece", [20, 1 << 20])
def test_anything_else_stays_where_it_is(monkeypatch: pytest.MonkeyPatch, rows: str, piece: int) -> None:
    monkeypatch.setattr(columns, "_PIECE", piece)
    body = ('{"probabilities": ' + rows + "}").encode()
    split = split_columns(body)
    assert split.rest == body
    assert not split.columns


def test_names_in_texts_are_no_members() -> None:
    body = json.dumps({"tags": {"a": '"probabilities": [[1,2]]'}, "kind": "probabilities"}).encode()
    assert split_columns(body).rest == body


def test_a_wide_first_row_reserves_nothing() -> None:
    body = ('{"probabilities": [[' + ",".join(["1"] * 100_000) + "]" + ",[]" * 100_000 + "]}").encode()
    assert not split_columns(body).columns
