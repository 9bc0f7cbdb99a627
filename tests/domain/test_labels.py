import tracemalloc
from collections.abc import Callable
from typing import Any
from unicodedata import normalize

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import InvalidInput
from app.domain.inputs.labels import Coded, encode, first_fraction, listed, shown
from tests.bank import each

integers = st.integers(-(2**63), 2**63 - 1)
columns = st.one_of(
    st.lists(st.integers(-5, 300), min_size=1),
    st.lists(integers, min_size=1),
    st.lists(st.text(max_size=3), min_size=1),
)


def code(y_true: Any, y_pred: Any, declared: list[str] | None = None) -> Coded:
    return encode({"y_true": y_true, "y_pred": y_pred}, declared, "/input")


@given(columns)
def test_codes_name_the_labels_again(column: list[Any]) -> None:
    coded = code(column, column[::-1])
    texts = [normalize("NFC", str(label)) for label in column]
    assert [coded.labels[index] for index in coded.codes["y_true"]] == texts
    assert [coded.labels[index] for index in coded.codes["y_pred"]] == texts[::-1]
    in_order = sorted(set(column)) if isinstance(column[0], int) else sorted(set(texts))
    assert coded.labels == tuple(str(label) for label in in_order)


@given(st.lists(integers, min_size=1))
def test_a_list_and_an_array_are_coded_alike(column: list[int]) -> None:
    from_list, from_array = code(column, column), code(np.array(column), np.array(column))
    assert from_list.labels == from_array.labels
    for name in ("y_true", "y_pred"):
        np.testing.assert_array_equal(from_list.codes[name], from_array.codes[name])


@given(st.lists(st.integers(-3, 3), min_size=1), st.permutations([str(k) for k in range(-3, 5)]))
def test_declared_classes_keep_their_order(column: list[int], declared: list[str]) -> None:
    for given_column in (column, [str(label) for label in column]):
        coded = code(given_column, given_column, declared)
        assert coded.labels == tuple(declared)
        assert [declared[index] for index in coded.codes["y_true"]] == [str(label) for label in column]


@each(
    ("y_true", "y_pred", "declared", "pointer", "fault"),
    [
        ([0, 1.5], [0, 1], None, "/input/y_true/1", "not_a_label"),
        ([0, 1], [None, 1], None, "/input/y_pred/0", "not_a_label"),
        ([True, 1], [0, 1], None, "/input/y_true/0", "not_a_label"),
        (["a", ["b"]], ["a", "b"], None, "/input/y_true/1", "not_a_label"),
        (["a", 1], ["a", "b"], None, "/input/y_true/1", "mixed_labels"),
        ([0, 1], ["a", "b"], None, "/input/y_true", "mixed_labels"),
        ([0, 2**63], [0, 1], None, "/input/y_true/1", "label_too_large"),
        ([0, 5], [0, 1], ["0", "1"], "/input/y_true/1", "unknown_label"),
        ([0, 10**15], [0, 1], ["0", "1"], "/input/y_true/1", "unknown_label"),
        (["a", "b"], ["a", "c"], ["a", "b"], "/input/y_pred/1", "unknown_label"),
        (np.array([0, 2.5, 1]), np.array([0, 1, 1]), None, "/input/y_true/1", "not_a_label"),
        (np.array([0, 1]), np.array([0, 9]), ["0", "1"], "/input/y_pred/1", "unknown_label"),
    ],
)
def test_faults_are_pointed_at(y_true: Any, y_pred: Any, declared: list[str] | None, pointer: str, fault: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        code(y_true, y_pred, declared)
    assert [(found.pointer, found.code) for found in caught.value.faults] == [(pointer, fault)]


def test_the_first_fraction() -> None:
    assert first_fraction(np.array([1.0, 2.0, 2.5, 3.5])) == 2
    assert first_fraction(np.array([1.0, 2.0])) is None
    assert first_fraction(np.array([1.0, np.nan])) == 1
    assert first_fraction(np.array([1.0, 2.0**60])) == 1


def test_messages_stay_short() -> None:
    assert shown("x" * 1000) == repr("x" * 59 + "…")
    assert listed([str(k) for k in range(12)]).endswith("'9' and 2 more")
    assert listed(["a", "b"]) == "'a', 'b'"


@pytest.mark.parametrize("of", [str, int, lambda index: index << 40])
def test_no_column_is_read_beyond_the_first_class_too_many(of: Callable[[int], Any]) -> None:
    column = [of(index % 1000) for index in range(5000)] + [of(index) for index in range(500_000)]
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput) as caught:
            code(column if of is str else np.array(column), [of(0)] * len(column))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    (fault,) = caught.value.faults
    assert (fault.pointer, fault.code) == ("/input/y_true/6000", "too_many_classes")
    # The column as an array, and its codes, take 4 MB each.
    assert peak < 13e6


def test_of_coded_texts_the_first_class_too_many_has_its_place() -> None:
    column = pa.DictionaryArray.from_arrays(np.arange(1500)[::-1].repeat(2), [f"c{index}" for index in range(2000)])
    with pytest.raises(InvalidInput) as caught:
        code(column, column)
    assert caught.value.faults[0].pointer == "/input/y_true/2000"
    assert encode({"y_true": column}, None, "/input", 1500).labels[:2] == ("c0", "c1")
