"""Reading large bodies: the same values as a small one has, and nothing that a careful reader would refuse."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import RootModel

from app.api.bodies import parsing
from app.api.bodies.parsing import parse_body, parse_large_body
from app.api.problems import MalformedRequest, refusal_of
from app.api.v1.requests.evaluations import EvaluationRequest
from app.domain.errors import InvalidInput
from app.domain.inputs.kinds import KINDS
from tests.bank import each

COLUMNS = sorted({name for kind in KINDS.values() for name in kind.columns()})
ROWS = np.random.default_rng(0).dirichlet(np.ones(3), 500)
TEXTS = ["a", "", " ", ",", "]", "[", '"', "\\", '\\"', '", "', '"],', "é", "\n", '{"y_true": [1]}', "x" * 50]
whole = st.integers(-(2**63), 2**64 - 1)
numbers = st.floats(allow_nan=False, allow_infinity=False)
entries = st.one_of(
    st.lists(whole),
    st.lists(st.integers(-200, 200)),
    st.lists(numbers),
    st.lists(st.sampled_from(TEXTS)),
    st.lists(st.one_of(st.sampled_from(TEXTS), whole, numbers, st.booleans(), st.none(), st.lists(whole, max_size=2))),
    st.integers(0, 3).flatmap(lambda width: st.lists(st.lists(st.integers(0, 1), min_size=width, max_size=width))),
    st.lists(st.lists(st.one_of(numbers, st.just(0), st.lists(numbers, max_size=1)), min_size=1, max_size=3)),
)


def read(body: bytes) -> Any:
    """What a large body holds."""
    return parse_large_body(body, RootModel[Any]).root


@given(
    columns=st.dictionaries(st.sampled_from(COLUMNS), entries, min_size=1),
    separators=st.sampled_from([(",", ":"), (" , ", " : "), (",\n", ":\t")]),
    ascii_=st.booleans(),
)
def test_columns_are_what_another_reader_finds(
    columns: dict[str, list[Any]], separators: tuple[str, str], ascii_: bool
) -> None:
    text = json.dumps({"kind": "x", **columns, "last": [1]}, separators=separators, ensure_ascii=ascii_)
    found = read(text.encode())
    for name, values in columns.items():
        column = found[name]
        if isinstance(column, np.ndarray):
            assert column.tolist() == values
            fractions = any(isinstance(one, float) for row in values for one in (row if column.ndim == 2 else [row]))
            # Whole numbers stay whole, unless a fraction stands among them.
            assert column.dtype.kind == ("f" if fractions else "i")
        else:
            assert json.dumps(column) == json.dumps(values)
    assert found["last"] == [1]
    assert found["kind"] == "x"


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" ,\n ", " : ")])
def test_numbers_are_arrays(separators: tuple[str, str]) -> None:
    source = {"probabilities": ROWS.tolist(), "y_true": [0, 1, 127] * 100, "scores": [0.5, 1] * 100, "b": [1]}
    found = read(json.dumps(source, separators=separators).encode())
    np.testing.assert_array_equal(found["probabilities"], ROWS)
    assert found["y_true"].dtype == np.int64
    assert found["scores"].dtype == np.float64
    assert found["b"] == [1]


def test_whole_numbers_beside_texts_and_fractions_stay_whole() -> None:
    ids = ["a", *range(100_000), 0.5, *range(100_000)]
    found = read(json.dumps({"sample_ids": ids}).encode())["sample_ids"]
    assert [type(one) for one in found] == [type(one) for one in ids]
    assert found == ids


def test_hashes_stay_what_they_are() -> None:
    assert read(b'{"sample_ids": [1, 18446744073709551615]}')["sample_ids"] == [1, 2**64 - 1]
    assert read(b'{"sample_ids": [1, 18446744073709551616]}')["sample_ids"] == [1, 2**64]


def test_whole_numbers_beside_fractions_stay_what_they_are() -> None:
    assert read(b'{"sample_ids": [9007199254740993, 1.0, 0]}')["sample_ids"] == [2**53 + 1, 1.0, 0]
    assert read(b'{"scores": [0.5, -1e300]}')["scores"] == [0.5, -1e300]


@each(
    ("column", "kind"),
    [
        ("sample_weight", "scores"),
        ("relevance", "ranking"),
        ("ranks", "ranking"),
        ("n_true", "sets"),
        ("exact", "sets"),
    ],
)
def test_rows_are_no_numbers(column: str, kind: str) -> None:
    others: dict[str, dict[str, Any]] = {
        "scores": {"y_true": [0, 1], "scores": [0.5, 1]},
        "ranking": {"query_ids": [1, 1], "relevance": [0, 1], **({"ranks": [1, 2]} if column == "ranks" else {})},
        "sets": {"n_true": [1, 1], "n_predicted": [1, 1], "n_common": [1, 1]},
    }
    others["ranking"] |= {} if column == "ranks" else {"scores": [1, 2]}
    for rows in ([[1], [0]], [[1, 0], [0, 1]]):
        body = json.dumps({"input": {"kind": kind, **others[kind], column: rows}}).encode()
        for parse in (parse_large_body, parse_body):
            with pytest.raises(InvalidInput) as caught:
                parse(body, EvaluationRequest).to_domain()
            assert caught.value.faults[0].pointer == f"/input/{column}/0"


def test_brackets_in_texts_are_no_arrays() -> None:
    found = read(json.dumps({"note": "[[", "y_true": [1, 2], "y_pred": ["[a]", "b"]}).encode())
    assert isinstance(found["y_true"], np.ndarray)
    assert found["y_pred"] == ["[a]", "b"]


@each("nested", ["[1,[2]]", "[[1],2]", "[[1,[2]],[3,4]]", "[[[1],2],[3,4]]", "[[1,2],[[3],[4]]]", "[[[1]],[[2]]]"])
def test_arrays_among_numbers_are_no_numbers(nested: str) -> None:
    assert read(b'{"y_true": %b}' % nested.encode())["y_true"] == json.loads(nested)


@each(
    "text",
    [
        *("[1,,2]", "[1,2,]", "[,1]", "[1 2]", "[01]", "[1", '["a]', '["a" "b"]', '["\\ud800"]'),
        *("[[1,2] [3,4]]", "[[1,2],,[3,4]]", "[[1,2],[3,4],]", "[[1,2],[3,4]", "[[1 2],[3,4]]", "[[01,2],[3,4]]"),
    ],
)
def test_what_is_no_json_is_said_as_of_a_small_body(text: str) -> None:
    body = ('{"input": {"kind": "predictions", "y_true": ' + text + "}}").encode()
    faults = []
    for parse in (parse_large_body, parse_body):
        with pytest.raises(MalformedRequest) as caught:
            parse(body, EvaluationRequest)
        faults.append((refusal_of(caught.value).status, caught.value.faults))
    assert faults[0] == faults[1]
    assert "column" in faults[0][1][0].detail


def test_not_a_number_has_its_place() -> None:
    body = b'{"input": {"kind": "scores", "y_true": [0, 1, 1], "scores": [0.5, NaN, 1]}}'
    with pytest.raises(InvalidInput) as caught:
        parse_large_body(body, EvaluationRequest).to_domain()
    assert [(fault.pointer, fault.code) for fault in caught.value.faults] == [("/input/scores/1", "not_finite")]


def test_labels_that_come_again_are_one_text() -> None:
    found = read(json.dumps({"y_true": ["cat", "dog"] * 1000}).encode())["y_true"]
    assert len({id(text) for text in found}) == 2


@each("body", [b'{"y_true": [1], "y_true": [2]}', b'{"a": [[{"b": 1, "b": 2}]]}', b'{"a": 1, "\\u0061": "x"}'])
def test_a_member_that_comes_twice_is_refused(body: bytes) -> None:
    with pytest.raises(MalformedRequest, match="more than once"):
        read(body)


def test_objects_of_very_many_members_are_refused() -> None:
    body = json.dumps({"tags": {str(index): 1 for index in range(3000)}}).encode()
    with pytest.raises(MalformedRequest, match="at most 2000 members"):
        read(body)


def test_folds_have_a_matrix_each() -> None:
    parts = np.split(ROWS, 5)
    folds = [
        {"kind": "probabilities", "y_true": [0] * len(part), "probabilities": part.tolist(), "labels": [0, 1, 2]}
        for part in parts
    ]
    source = parse_large_body(json.dumps({"input": {"kind": "folds", "folds": folds}}).encode(), EvaluationRequest)
    assert source.input.kind == "folds"
    for fold, part in zip(source.input.folds, parts, strict=True):
        assert fold.kind == "probabilities"
        assert isinstance(fold.y_true, np.ndarray)
        np.testing.assert_array_equal(fold.probabilities, part)


def test_names_in_texts_are_no_members() -> None:
    source = {"tags": {"a": '"probabilities": [[1,2]]'}, "kind": "probabilities"}
    assert read(json.dumps(source).encode()) == source


def test_a_column_of_attributes_that_is_too_long_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "MOST_SAMPLES", 3)
    with pytest.raises(MalformedRequest) as refused:
        read(b'{"input": {"attributes": {"site": [1, 2, 3, 4]}}}')
    assert refused.value.faults[0].pointer == "/input/attributes/site"
