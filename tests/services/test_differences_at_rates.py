"""Differences of rates at rates: as uncertain as the rates themselves, whose thresholds samples choose."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.domain.inputs.classified import Scores
from app.services.compare.answers import ComparedPair
from app.services.compare.comparisons import compare
from tests.services.referenced import asked_of_sources

METRIC = "specificity_at(recall=0.9)"


def compared(y: NDArray[np.int64], runs: list[NDArray[np.float64]], **columns: Any) -> ComparedPair:
    columns |= {"y_true": y, "sample_ids": np.arange(y.size)}
    sources = [Scores(scores=one, threshold=0.0, **columns).read("/input") for one in runs]
    new, kept = asked_of_sources(sources, [f"{METRIC}@1"])
    (found,) = compare(new, kept, identifier=new.runs.records[0].id).metrics[f"{METRIC}@1"].differences
    return found


def drawn(
    random: np.random.Generator, members: int, others: int
) -> tuple[NDArray[np.int64], list[NDArray[np.float64]]]:
    y = np.repeat([1, 0], [members, others])
    return y, [random.normal(1.5 * y, 1.0) for _ in range(2)]


@pytest.mark.parametrize(
    "columns",
    [{}, {"sample_weight": np.arange(260) % 3 + 1}, {"group_ids": np.arange(260) % 90}],
    ids=("plain", "weights", "groups"),
)
def test_limits_are_those_of_both_runs_together(columns: dict[str, Any]) -> None:
    """Those of weights and groups are resampled: a run has the same, whatever it is compared with."""
    y, runs = drawn(np.random.default_rng(3), 60, 200)
    pair = compared(y, runs, **columns)
    assert pair.method == "mover, mover"
    assert pair.low is not None
    assert pair.high is not None
    assert pair.p_value is not None
    assert (pair.low > 0 or pair.high < 0) == (pair.p_value < 0.05)
    mirrored = compared(y, runs[::-1], **columns)
    assert (mirrored.low, mirrored.high) == pytest.approx((-pair.high, -pair.low), abs=1e-12)
    assert mirrored.p_value == pytest.approx(pair.p_value, abs=1e-12)


def test_too_few_members_leave_none() -> None:
    pair = compared(*drawn(np.random.default_rng(4), 20, 200))
    assert np.isnan(float(pair.low or np.nan))
    assert "too few samples hold the given rate" in str(pair.reason)


@pytest.mark.slow
def test_equal_runs_are_rarely_told_apart() -> None:
    random = np.random.default_rng(5)
    apart = [compared(*drawn(random, 40, 100)).p_value or 1.0 for _ in range(100)]
    assert sum(p < 0.05 for p in apart) <= 5


def test_runs_that_say_the_same_are_the_same() -> None:
    y, (run, _) = drawn(np.random.default_rng(6), 60, 200)
    assert compared(y, [run, run]).p_value == 1.0
