"""Samples of folds become one set of samples; ids keep what tells them apart."""

import numpy as np
import pytest

from app.domain.inputs.columns import read_groups
from app.domain.inputs.samples import Samples, joined


def samples(
    truth: list[int],
    *,
    ids: list[int] | list[str] | None = None,
    weights: list[float] | None = None,
    outputs: list[list[float]] | None = None,
) -> Samples:
    codes = np.array(truth, dtype=np.int64)
    return Samples(
        truth=codes,
        predicted=1 - codes,
        outputs=None if outputs is None else np.array(outputs),
        ids=None if ids is None else read_groups(list(ids), ""),
        weights=None if weights is None else np.array(weights),
    )


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([3, 1, 2], np.array([3, 1, 2])),
        (["b", "a"], np.array(["b", "a"])),
        # As text it stays what it was: 007 is another id than 7.
        (["007", "7"], np.array(["007", "7"])),
        ([7, "7a"], np.array(["7", "7a"])),
        # Beyond 64 bits.
        ([2**63, 1], np.array([str(2**63), "1"])),
        ([2**63 - 1, -(2**63)], np.array([2**63 - 1, -(2**63)])),
        (np.array([5, 6], dtype=np.int32), np.array([5, 6])),
    ],
)
def test_ids_as_an_array(ids: list[object], expected: np.ndarray) -> None:
    found = read_groups(ids, "")
    assert found.dtype.kind == expected.dtype.kind
    assert found.dtype == np.int64 or found.dtype.kind == "U"
    assert found.tolist() == expected.tolist()


def test_folds_one_after_another() -> None:
    first = samples([0, 1], ids=[10, 11], outputs=[[0.5, 0.5], [0.1, 0.9]])
    second = samples([1, 1, 0], ids=[12, 13, 14], outputs=[[0.2, 0.8], [0.3, 0.7], [1.0, 0.0]])
    whole = joined([first, second])
    assert whole.size == 5
    assert whole.fold_sizes == (2, 3)
    assert whole.truth.tolist() == [0, 1, 1, 1, 0]
    assert whole.predicted.tolist() == [1, 0, 0, 0, 1]
    assert whole.ids is not None
    assert whole.ids.dtype == np.int64
    assert whole.ids.tolist() == [10, 11, 12, 13, 14]
    assert whole.outputs is not None
    assert whole.outputs.shape == (5, 2)
    assert whole.outputs[2].tolist() == [0.2, 0.8]
    assert whole.weights is None


def test_one_fold_is_itself() -> None:
    alone = samples([1, 0], ids=["x", "y"], weights=[0.5, 2.0])
    whole = joined([alone])
    assert whole.fold_sizes == (2,)
    assert whole.ids is not None
    assert whole.weights is not None
    assert whole.ids.tolist() == ["x", "y"]
    assert whole.weights.tolist() == [0.5, 2.0]


def test_folds_without_weights_count_one_each() -> None:
    whole = joined([samples([0, 1]), samples([1], weights=[0.25])])
    assert whole.weights is not None
    assert whole.weights.tolist() == [1.0, 1.0, 0.25]


def test_ids_of_both_kinds_become_text() -> None:
    whole = joined([samples([0, 1], ids=[1, 2]), samples([1], ids=["a"])])
    assert whole.ids is not None
    assert whole.ids.tolist() == ["1", "2", "a"]


@pytest.mark.parametrize(
    "folds",
    [
        # The same sample in two folds, as repeated cross-validation has it.
        [samples([0, 1], ids=[1, 2]), samples([1], ids=[2])],
        # The text and the number are one id.
        [samples([0, 1], ids=[1, 2]), samples([1], ids=["2"])],
        # Some samples have none.
        [samples([0, 1], ids=[1, 2]), samples([1])],
    ],
)
def test_ids_that_name_no_single_sample_are_left_out(folds: list[Samples]) -> None:
    whole = joined(folds)
    assert whole.ids is None
    assert whole.size == 3


def test_outputs_are_kept_only_where_every_fold_has_them() -> None:
    assert joined([samples([0], outputs=[[0.6, 0.4]]), samples([1])]).outputs is None
    scores = [Samples(np.array([0]), np.array([0]), np.array([value])) for value in (0.25, 0.75)]
    whole = joined(scores)
    assert whole.outputs is not None
    assert whole.outputs.tolist() == [0.25, 0.75]


def grouped(names: list[int] | list[str]) -> Samples:
    codes = np.zeros(len(names), dtype=np.int64)
    return Samples(codes, codes, groups=read_groups(names, ""))


def test_groups_of_one_name_are_one_group_in_all_folds() -> None:
    whole = joined([grouped([1, 1, 2]), grouped([2, 3])])
    assert whole.groups is not None
    assert whole.groups.tolist() == [1, 1, 2, 2, 3]
    # The text and the number are one name.
    mixed = joined([grouped([1, 2]), grouped(["2", "b"])])
    assert mixed.groups is not None
    assert mixed.groups.tolist() == ["1", "2", "2", "b"]
    assert joined([grouped([1]), samples([0])]).groups is None
