"""Label codes to confusion matrices."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import DTypeLike

from app.kernel.matrix.table import confusion_counts
from tests.bank import each
from tests.witnesses import sk


@each("dtype", [np.int64, np.int32, np.uint8])
@each(("classes", "n"), [(2, 1), (3, 1000), (10, 200_001), (200, 70_000)])
def test_counts_are_those_of_scikit_learn(dtype: DTypeLike, classes: int, n: int) -> None:
    rng = np.random.default_rng(classes)
    actual, predicted = (rng.integers(0, classes, n).astype(dtype) for _ in range(2))
    counts = confusion_counts(actual, predicted, classes)
    assert counts.dtype == np.int64
    assert (counts == sk.confusion_matrix(actual, predicted, labels=range(classes))).all()


def test_weights_are_summed() -> None:
    rng = np.random.default_rng(1)
    actual, predicted = (rng.integers(0, 4, 100_000) for _ in range(2))
    weights = rng.integers(0, 64, 100_000) / 16.0
    counts = confusion_counts(actual, predicted, 4, weights)
    assert (counts == sk.confusion_matrix(actual, predicted, sample_weight=weights)).all()


def test_no_labels_give_an_empty_matrix() -> None:
    empty = np.array([], dtype=np.int64)
    assert (confusion_counts(empty, empty, 3) == np.zeros((3, 3))).all()


@pytest.mark.parametrize(
    ("actual", "predicted", "weights"),
    [([0, 1], [0], None), ([0, 2], [0, 1], None), ([0, 1], [0, -1], None), ([0, 1], [0, 1], [1.0])],
)
def test_codes_that_make_no_sense_are_refused(actual: list[int], predicted: list[int], weights: Any) -> None:
    with pytest.raises(ValueError, match=r"labels|codes"):
        confusion_counts(
            np.array(actual), np.array(predicted), 2, None if weights is None else np.array(weights, dtype=np.float64)
        )
