"""Samples of folds become one set of samples; ids keep what tells them apart."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.domain.errors import IncomparableRuns, NoSamples
from app.domain.inputs.classified import Predictions, Probabilities, Scores
from app.domain.inputs.clustering import Clustering
from app.domain.inputs.columns import read_groups
from app.domain.inputs.content import Content
from app.domain.inputs.folds import Folds, pooled
from app.domain.inputs.kinds import restricted
from app.domain.inputs.merging import merged
from app.domain.inputs.multilabel import Multilabel
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


# Which of their columns are replaced is up to each.
INPUTS: dict[str, Any] = {
    "predictions": Predictions(y_true=[*"abba"], y_pred=[*"abab"], labels=["a", "b"]),
    "probabilities": Probabilities(y_true=[0, 1, 1, 0], probabilities=[[0.9, 0.1], [0.2, 0.8]] * 2),
    "scores": Scores(y_true=[0, 1, 1, 0], scores=[0.1, 0.7, 0.3, 0.2]),
    "multilabel": Multilabel(y_true=[[1, 0], [0, 1], [1, 1], [0, 0]], y_pred=[[1, 0], [1, 1], [0, 1], [0, 0]]),
    "clustering": Clustering(y_true=[*"abba"], y_pred=[0, 1, 1, 1]),
    "folds": Folds(folds=[Predictions(y_true=[*"abba"], y_pred=[*"abab"], labels=["a", "b"])] * 2),
}


def weighing(source: Any, weight: float | None, groups: list[int] | None) -> Any:
    """The samples of an input, which all weigh so much."""
    if isinstance(source, Folds):
        return replace(source, folds=[weighing(fold, weight, groups) for fold in source.folds])
    return replace(source, sample_weight=None if weight is None else [weight] * 4, group_ids=groups)


@pytest.mark.parametrize("groups", [None, [0, 0, 1, 1]])
@pytest.mark.parametrize("weight", [1.0, 0.1, 3.0])
@pytest.mark.parametrize("kind", INPUTS)
def test_samples_that_all_weigh_the_same_have_no_weights(kind: str, weight: float, groups: list[int] | None) -> None:
    found, plain = (weighing(INPUTS[kind], one, groups).read("") for one in (weight, None))
    np.testing.assert_array_equal(found.counts, plain.counts)
    assert (found.counts.dtype, found.content) == (plain.counts.dtype, plain.content)
    assert {**plain.facts, "rows": plain.n_samples, "sample_weight": weight} == {"rows": plain.n_samples, **found.facts}
    assert not found.is_weighted
    assert found.known_samples.weights is None
    # They are known where such samples come together with others.
    assert found.weighed_samples.weights.tolist() == [weight] * found.known_samples.size


def test_folds_and_parts_of_other_weights_keep_them() -> None:
    one, other, same = (weighing(INPUTS["predictions"], weight, None).read("") for weight in (2.0, 3.0, 2.0))
    for made in (pooled([one, other], ""), merged([one, other])):
        assert made.counts.tolist() == (2 * one.counts + 3 * other.counts).tolist()
        assert made.known_samples.weights is not None
        assert made.known_samples.weights.tolist() == [2.0] * 4 + [3.0] * 4
        assert made.is_weighted
        assert "sample_weight" not in made.facts
    for made in (pooled([one, same], ""), merged([one, same])):
        assert made.counts.tolist() == (2 * one.counts).tolist()
        assert made.facts["sample_weight"] == 2.0
        assert not made.is_weighted
    mixed = weighing(INPUTS["predictions"], None, None).read("")
    assert pooled([one, mixed], "").counts.tolist() == (3 * one.counts).tolist()
    with pytest.raises(IncomparableRuns, match="sample_weight in all or in none"):
        merged([one, mixed])


def test_parts_whose_equal_weights_were_not_saved_are_not_one() -> None:
    one, other = (weighing(INPUTS["predictions"], weight, None).read("") for weight in (2.0, 3.0))
    with pytest.raises(NoSamples):
        merged([one, replace(other, samples=None)])


def test_some_of_the_samples_weigh_what_they_do_among_all() -> None:
    whole = replace(INPUTS["predictions"], sample_weight=[2.0, 2.0, 2.0, 5.0]).read("")
    # Those of a slice are held against others.
    assert restricted(whole, np.arange(3)).counts.sum() == 6.0
    tiny = Predictions(y_true=[*"aabb"], y_pred=[*"aabb"], sample_weight=[1e-200, 1.0, 3e-200, 1.0]).read("")
    assert restricted(tiny, np.array([0, 2])).facts["effective_samples"] == pytest.approx(1.6)
    even = restricted(weighing(INPUTS["predictions"], 2.0, None).read(""), np.arange(3))
    assert (even.content, even.counts.sum(), even.facts["sample_weight"]) == (Content.counts, 3, 2.0)
    part = replace(INPUTS["predictions"], sample_weight=[2.0] * 4, part=True).read("")
    # What all parts weigh is not known of one.
    assert (part.content, part.counts.sum()) == (Content.weights, 8.0)


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
