import math
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from app.domain.errors import InvalidInput
from app.domain.inputs.classified import Predictions, Scores
from app.domain.inputs.clustering import Clustering
from app.domain.inputs.columns import read_flags, read_ids, read_rows
from app.domain.inputs.confusion import BinaryCounts, ConfusionMatrix
from app.domain.inputs.content import LARGEST_TOTAL, Content
from app.domain.inputs.folds import pooled
from app.domain.inputs.kind import Input
from app.domain.inputs.labels import MOST_CLASSES
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.multilabel import Multilabel
from app.domain.inputs.sets import Sets
from app.domain.wording import described


def matrix(rows: Any, **members: Any) -> MatrixInput:
    return ConfusionMatrix(matrix=rows, **members).read("/input")


def predictions(y_true: Any, y_pred: Any, **members: Any) -> MatrixInput:
    return Predictions(y_true=y_true, y_pred=y_pred, **members).read("/input")


def fault_of(caught: pytest.ExceptionInfo[InvalidInput]) -> tuple[str, str]:
    (fault,) = caught.value.faults
    return fault.pointer, fault.code


counts = st.integers(2, 5).flatmap(
    lambda size: hnp.arrays(np.int64, (size, size), elements=st.integers(0, 10**9)).filter(lambda found: found.any())
)


@given(counts)
def test_both_orientations_are_one_matrix(rows: Any) -> None:
    one, other = matrix(rows.tolist()), matrix(rows.T.tolist(), orientation="predicted_rows")
    np.testing.assert_array_equal(one.counts, rows)
    np.testing.assert_array_equal(other.counts, rows)
    assert other.counts.flags.c_contiguous
    assert one.counts.dtype == np.int64
    assert one.content is Content.counts


@given(counts)
def test_predictions_count_what_their_matrix_says(rows: Any) -> None:
    small = rows % 4
    size = len(small)
    actual, predicted = (np.repeat(index.ravel(), small.ravel()) for index in np.indices(small.shape))
    if not small.any():
        return
    labels = [str(k) for k in range(size)]
    found = predictions(actual.tolist(), predicted.tolist(), labels=labels)
    np.testing.assert_array_equal(found.counts, small)
    weighted = predictions(actual.tolist(), predicted.tolist(), labels=labels, sample_weight=[0.5] * len(actual))
    np.testing.assert_array_equal(weighted.counts, small)
    assert weighted.content is Content.counts
    assert weighted.facts == {"rows": len(actual), "sample_weight": 0.5}
    uneven = [1.5, *[0.5] * len(actual)]
    columns = ([str(label) for label in [*column, 0]] for column in (actual, predicted))
    weighted = predictions(*columns, labels=labels, sample_weight=uneven[::-1])
    assert weighted.counts.sum() == sum(uneven)
    assert weighted.content is Content.weights


def test_content() -> None:
    assert matrix([[1.0, 2.0], [0.0, 3.0]]).content is Content.counts
    assert matrix([[1.5, 2], [0, 3]]).content is Content.weights
    assert matrix([[1, 0], [0, 1]], normalized=True).content is Content.rates
    assert matrix([[1, 0], [0, 1]], normalized=True).counts.dtype == np.float64


def test_the_positive_class() -> None:
    assert matrix([[1, 2], [3, 4]]).positive == 1
    assert matrix([[1, 2], [3, 4]], labels=["p", "n"], positive="p").positive == 0
    assert matrix([[1, 2], [3, 4]], positive=0).positive == 0
    assert matrix(np.eye(3).tolist()).positive is None


def test_limits_of_the_arithmetic() -> None:
    assert matrix([[LARGEST_TOTAL, 0], [0, 0]]).counts[0, 0] == 2**53
    for rows, pointer, code in (
        ([[LARGEST_TOTAL, 2], [0, 0]], "/input/matrix", "total_too_large"),
        ([[1e308, 1e308], [1e308, 1e308]], "/input/matrix", "total_too_large"),
        ([[1, 1e-16], [0, 1]], "/input/matrix/0/1", "entry_too_small"),
        ([[1, 0], [-1, 1]], "/input/matrix/1/0", "negative_entry"),
        ([[0, 0], [0, 0]], "/input/matrix", "no_samples"),
    ):
        with pytest.raises(InvalidInput) as caught:
            matrix(rows)
        assert fault_of(caught) == (pointer, code)
    size = MOST_CLASSES + 1
    with pytest.raises(InvalidInput) as caught:
        matrix([[1.0] * size] * size)
    assert fault_of(caught) == ("/input/matrix", "too_many_classes")


@pytest.mark.parametrize("name", ["tp", "fn", "fp", "tn"])
@pytest.mark.parametrize(("value", "code"), [(-1.0, "negative_entry"), (1e-20, "entry_too_small")])
def test_a_bad_count_is_named(name: str, value: float, code: str) -> None:
    values: dict[str, Any] = dict.fromkeys(("tp", "fn", "fp", "tn"), 1.0) | {name: value}
    with pytest.raises(InvalidInput) as caught:
        BinaryCounts(**values).read("/input")
    assert fault_of(caught) == (f"/input/{name}", code)


def test_binary_counts() -> None:
    found = BinaryCounts(tp=4, fn=3, fp=2, tn=1, negative=0, positive="ill").read("")
    assert found.counts.tolist() == [[1, 2], [3, 4]]
    assert found.labels == ("0", "ill")
    with pytest.raises(InvalidInput) as caught:
        BinaryCounts(tp=4, fn=3, fp=2, tn=1, negative=1, positive="1").read("")
    assert fault_of(caught) == ("/positive", "duplicate_label")


@pytest.mark.parametrize("ids", [[1, 2, 3], ["a", "b", 3], np.arange(3), ["1", 2, "3"]])
def test_ids_that_differ(ids: Any) -> None:
    assert [str(one) for one in read_ids(ids, "/ids")] == [str(one) for one in ids]


@pytest.mark.parametrize(
    ("ids", "pointer", "code"),
    [
        (["a", "b", "a"], "/ids/2", "duplicate_sample_id"),
        ([1, "1"], "/ids/1", "duplicate_sample_id"),
        (np.array([5, 6, 6]), "/ids/2", "duplicate_sample_id"),
        (np.array([5.0, 6.5]), "/ids/1", "not_an_id"),
        ([1, None], "/ids/1", "not_an_id"),
        ([1, True], "/ids/1", "not_an_id"),
        ([[1], 2], "/ids/0", "not_an_id"),
    ],
)
def test_ids_that_do_not(ids: Any, pointer: str, code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_ids(ids, "/ids")
    assert fault_of(caught) == (pointer, code)


@pytest.mark.parametrize(
    ("weights", "index", "code"),
    [
        ([1, -1.0, 1], 1, "bad_weight"),
        ([1, float("nan"), 1], 1, "bad_weight"),
        ([1, 1, 10**400], 2, "bad_weight"),
        ([-(10**400), 1, 1], 0, "bad_weight"),
        ([1, True, 1], 1, "not_a_number"),
        ([1, "2", 1], 1, "not_a_number"),
        (np.array([1, np.inf, 1]), 1, "bad_weight"),
    ],
)
def test_what_is_no_weight(weights: Any, index: int, code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        predictions([0, 1, 1], [0, 1, 0], sample_weight=weights)
    assert fault_of(caught) == (f"/input/sample_weight/{index}", code)


_SIZES: dict[str, Any] = {"n_true": [1, 1], "n_predicted": [1, 1], "n_common": [1, 1]}


@pytest.mark.parametrize(
    ("source", "pointer"),
    [
        (Clustering(y_pred=["x", "y"], y_true=["", "a"]), "/input/y_true/0"),
        (Clustering(y_pred=["x", "y\t"], y_true=["a", "a"]), "/input/y_pred/1"),
        (Sets(**_SIZES, item_classes=["a", " "]), "/input/item_classes/1"),
        (Multilabel(y_true=[["a"], ["b", "x" * 257]], y_pred=[["a"], []]), "/input/y_true/1/1"),
    ],
)
def test_labels_of_every_kind_are_names(source: Input, pointer: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        source.read("/input")
    assert fault_of(caught) == (pointer, "bad_label")


def test_no_labels_are_not_left_out() -> None:
    with pytest.raises(InvalidInput) as caught:
        Multilabel(y_true=[[0, 1]], probabilities=[[0.5, 0.5]], labels=[]).read("/input")
    assert fault_of(caught) == ("/input/labels", "wrong_label_count")


@pytest.mark.parametrize("flags", [[1, 0], [True, False], [1.0, 0.0], np.array([1.0, 0.0]), [True, 0]])
def test_flags_are_understood_however_long_the_body_is(flags: Any) -> None:
    assert read_flags(flags, "").tolist() == [True, False]
    with pytest.raises(InvalidInput) as caught:
        read_flags([1, 0.5], "/exact")
    assert fault_of(caught) == ("/exact/1", "not_a_flag")


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_scores_are_finite_each_whatever_their_sum_is() -> None:
    largest = sys.float_info.max
    found = Scores(y_true=[0, 1, 2], scores=[[largest, largest, 0.0], [-largest, largest, 1.0], [0.0, 1.0, 2.0]])
    assert found.read("/input").counts.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    with pytest.raises(InvalidInput) as caught:
        Scores(y_true=[0, 1], scores=[[largest, 0.0], [largest, -math.inf]]).read("/input")
    assert fault_of(caught) == ("/input/scores/1/1", "not_finite")


def test_folds_are_summed() -> None:
    folds = [matrix([[1, 2], [3, 4]]), matrix([[5, 6], [7, 8]])]
    found = pooled(iter(folds), "/input")
    assert found.counts.tolist() == [[6, 8], [10, 12]]
    assert found.fold_counts is not None
    assert found.fold_counts.shape == (2, 2, 2)
    assert found.content is Content.counts
    mixed = pooled([folds[0], matrix([[0.5, 0], [0, 1]])], "/input")
    assert mixed.content is Content.weights
    assert mixed.fold_counts is not None
    assert mixed.fold_counts.dtype == np.float64


def test_folds_end_at_the_first_fault() -> None:
    """A thousand large folds are not made before the second one is refused."""

    def folds() -> Any:
        yield matrix([[1, 2], [3, 4]])
        yield matrix(np.eye(3).tolist())
        raise AssertionError("one fold too many was made")

    with pytest.raises(InvalidInput) as caught:
        pooled(folds(), "/input")
    assert fault_of(caught) == ("/input/folds/1", "mixed_labels")


def test_arrays_of_large_bodies_are_refused_in_the_words_of_small_ones() -> None:
    assert described(np.array([1])) == described([1]) == "an array"
    for rows in ([1, 0], np.array([1, 0])):
        with pytest.raises(InvalidInput) as caught:
            read_rows(rows, "/rows")
        (fault,) = caught.value.faults
        assert (fault.pointer, fault.code) == ("/rows/0", "not_a_row")
        assert fault.detail == "expected an array of numbers for every sample, got the number 1"
