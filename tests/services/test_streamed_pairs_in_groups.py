"""Runs of more samples than memory holds, compared where these come in groups or have weights."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.domain.errors import IncomparableRuns, TooLarge
from app.domain.identifiers import new_id
from app.services.compare.comparisons import (
    compare,
)
from tests.services.paired_models import (
    AREAS,
    LOSSES,
    OF_MATRICES,
    RANDOM,
    ROWS,
    asked_of,
    check_close,
    models,
    streamed,
)

# Large data; what answers small data the same way is held against it by tests/services/test_either_way.py in every run.
pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("classes", "count", "named"), [(2, 3, np.str_), (2, 2, np.int64), (3, 2, np.int64)])
def test_groups_are_compared_as_those_of_the_samples_in_memory(
    tmp_path: Path, classes: int, count: int, named: type[Any]
) -> None:
    groups = RANDOM.integers(-20, 60, ROWS)
    runs = [one._replace(groups=groups.astype(named)) for one in models(classes, count)]
    # What groups are called in other runs says nothing.
    runs[1] = runs[1]._replace(groups=np.array([f"group {one}" for one in groups]))
    asked, kept = asked_of(runs, OF_MATRICES, paired_tests=True)
    expected = compare(asked, kept, identifier=asked.runs.records[0].id)
    assert expected.design.resampling.n_groups in (79, 80)
    check_close(asdict(streamed(asked, runs, tmp_path, 1 << 18)), asdict(expected))


def test_groups_that_cannot_be_compared_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = RANDOM.integers(0, 60, ROWS)
    first, second = models(2)

    def refused(one: NDArray[Any], other: NDArray[Any] | None, metric: str = "accuracy", memory: int = 1 << 18) -> str:
        runs = [first._replace(groups=one), second._replace(groups=other)]
        asked, _ = asked_of(runs, [metric])
        with pytest.raises((IncomparableRuns, TooLarge)) as caught:
            streamed(asked, runs, tmp_path, memory)
        return str(caught.value.detail)

    merged = np.where(groups == 7, 8, groups)
    for one, other in ((groups, merged), (merged, groups)):
        assert "do not group the samples" in refused(one, other)
    assert "are one group" in refused(np.zeros(ROWS, dtype=np.int64), None)
    assert "log_loss needs the probabilities" in refused(groups, groups, "log_loss")
    assert "of PREVAIL_DATA_MEMORY_BYTES" in refused(groups, groups, memory=4000)
    monkeypatch.setattr("app.services.compare.elsewhere.MOST_GROUPS", 50)
    assert "at most 50 groups" in refused(groups, groups)


@pytest.mark.parametrize(("classes", "count"), [(3, 2), (2, 3)])
def test_weights_are_compared_as_those_of_the_samples_in_memory(tmp_path: Path, classes: int, count: int) -> None:
    weights = RANDOM.choice([0.0, 0.3, 1.7, 2.0], ROWS)
    runs = [one._replace(weights=weights * 3.0**place) for place, one in enumerate(models(classes, count))]
    asked, kept = asked_of(runs, OF_MATRICES, paired_tests=True)
    expected = compare(asked, kept, identifier=asked.runs.records[0].id)
    check_close(asdict(streamed(asked, runs, tmp_path, 1 << 18)), asdict(expected))


@pytest.mark.parametrize(("classes", "count"), [(2, 3), (3, 2), (10, 2)])
def test_weighted_means_are_those_of_the_samples_in_memory(tmp_path: Path, classes: int, count: int) -> None:
    weights = RANDOM.choice([0.0, 0.3, 1.7, 2.0, 40.0], ROWS)
    runs = [one._replace(weights=weights * 3.0**place) for place, one in enumerate(models(classes, count))]
    asked, kept = asked_of(runs, [*LOSSES, "accuracy"])
    expected = compare(asked, kept, identifier=asked.runs.records[0].id)
    check_close(asdict(streamed(asked, runs, tmp_path, 1 << 19)), asdict(expected))


@pytest.mark.parametrize(
    ("classes", "count", "scores"), [(2, 3, False), (3, 2, False), (10, 2, False), (2, 2, True), (3, 2, True)]
)
def test_weighted_areas_are_compared_as_those_of_the_samples_in_memory(
    tmp_path: Path, classes: int, count: int, *, scores: bool
) -> None:
    weights = RANDOM.choice([0.0, 0.3, 1.7, 2.0, 40.0], ROWS)
    runs = [
        one._replace(weights=weights * 2.0**place) for place, one in enumerate(models(classes, count, scores=scores))
    ]
    names = [*AREAS, "roc_auc_ovo_macro", "roc_auc_ovo_weighted"] if classes == 2 else AREAS
    asked, kept = asked_of(runs, names if scores else [*names, "mean(roc_auc@c0, au_imcp)"])
    expected = compare(asked, kept, identifier=asked.runs.records[0].id)
    check_close(asdict(streamed(asked, runs, tmp_path, 1 << 19)), asdict(expected), rel=1e-4)


@pytest.mark.parametrize(("classes", "count"), [(2, 2), (3, 3)])
def test_weights_in_groups_are_compared_as_those_of_the_samples_in_memory(
    tmp_path: Path, classes: int, count: int
) -> None:
    groups = RANDOM.integers(-20, 60, ROWS)
    # Some groups weigh nothing. Sums are exact in any order, so that draws that are equal stay so.
    weights = np.where(groups % 10 == 0, 0.0, RANDOM.choice([0.0, 0.25, 1.75, 2.0], ROWS))
    runs = [
        one._replace(groups=groups, weights=weights * 2.0**place) for place, one in enumerate(models(classes, count))
    ]
    asked, kept = asked_of(runs, OF_MATRICES, paired_tests=True)
    expected = compare(asked, kept, identifier=asked.runs.records[0].id)
    assert expected.design.resampling.n_groups in (79, 80)
    check_close(asdict(streamed(asked, runs, tmp_path, 1 << 19)), asdict(expected))


def test_what_weighs_nothing_says_nothing(tmp_path: Path) -> None:
    first, second = models(3)
    weights = RANDOM.choice([0.0, 0.3, 1.7], ROWS)
    # Without these rows no class 2 is left, and no value is infinite.
    weights[first.truth == 2] = 0.0
    outputs = np.where(weights[:, None] == 0.0, np.eye(3)[(first.truth + 1) % 3], second.outputs)
    runs = [first._replace(weights=weights), second._replace(weights=weights, outputs=outputs)]
    rest = [one._replace(rows=one.rows[weights[one.rows] > 0.0]) for one in runs]
    metrics = ["log_loss(clip=0)", "brier_score", "mean_phi@*", "d2_log_loss"]
    (asked, kept), (left, _) = (asked_of(some, metrics) for some in (runs, rest))
    found, expected = streamed(asked, runs, tmp_path, 1 << 18), streamed(left, rest, tmp_path, 1 << 18)
    assert np.isfinite(found.metrics["log_loss(clip=0)"].differences[0].difference or np.nan)
    check_close(asdict(found), asdict(compare(asked, kept, identifier=asked.runs.records[0].id)))
    for name, one in expected.metrics.items():
        check_close(found.metrics[name].values, one.values)
        check_close(found.metrics[name].differences[0].p_value, one.differences[0].p_value)


def test_weights_that_cannot_be_compared_are_refused(tmp_path: Path) -> None:
    weights = RANDOM.choice([0.0, 0.3, 1.7, 2.0], ROWS)
    other = weights.copy()
    other[:60] += 0.1
    first, second = models(2)

    def refused(one: NDArray[Any] | None, other: NDArray[Any] | None, memory: int = 1 << 18) -> str:
        runs = [run._replace(weights=own) for run, own in ((first, one), (second, other))]
        asked, kept = asked_of(runs, ["accuracy"])
        with pytest.raises((IncomparableRuns, TooLarge)) as caught:
            streamed(asked, runs, tmp_path, memory)
        if memory == 1 << 18:
            with pytest.raises(IncomparableRuns) as at_once:
                compare(asked, kept, identifier=new_id())
            assert str(caught.value.detail) == str(at_once.value.detail)
        return str(caught.value.detail)

    for one, two in ((weights, other), (other, weights), (weights, None), (None, weights)):
        assert "run 2 weighs the samples" in refused(one, two)


def test_weights_that_all_differ_take_no_more_memory_than_others(tmp_path: Path) -> None:
    weights = RANDOM.choice([0.35, 1.7, 2.1], ROWS) * (1.0 + 1e-5 * RANDOM.random(ROWS))
    runs = [one._replace(weights=weights) for one in models(2)]
    asked, kept = asked_of(runs, ["accuracy", "recall@*", "mcc"], paired_tests=True)
    expected = compare(asked, kept, identifier=asked.runs.records[0].id)
    answer = streamed(asked, runs, tmp_path, 4 * 40 * 50)
    for name, one in answer.metrics.items():
        check_close(one.values, expected.metrics[name].values)
        for found, known in zip(one.differences, expected.metrics[name].differences, strict=True):
            assert found.low is not None
            assert known.low is not None
            assert known.high is not None
            assert found.low == pytest.approx(known.low, abs=1e-4 * (known.high - known.low))
