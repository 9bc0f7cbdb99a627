"""Limits that have to do without: rates at rates with few members, and means over classes of which one is empty."""

from math import isnan

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from app.kernel.metrics.card import INPUTS_OF_CLASSES
from app.kernel.uncertainty.intervals import limits_at_rate
from app.services.estimands import parse_estimands
from app.services.estimates.estimate import Estimate, LimitSettings
from app.services.estimates.estimates import estimate
from app.services.estimates.run_data import run_data
from tests.services.records import record_of, scored


def normal_quantiles(size: int) -> NDArray[np.float64]:
    found: NDArray[np.float64] = stats.norm.ppf((np.arange(size) + 0.5) / size)
    return found


# At a recall of .9 the specificity of normal scores so far apart is .8.
SHIFT = float(stats.norm.ppf(0.9) + stats.norm.ppf(0.8))


def two_classes(members: int, others: int, shift: float = SHIFT) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Classes and probabilities whose scores are normal quantiles."""
    scores = np.concatenate([normal_quantiles(others), shift + normal_quantiles(members)])
    p = 1.0 / (1.0 + np.exp(-scores))
    return np.repeat([0, 1], [others, members]), np.column_stack([1.0 - p, p])


def estimated(
    metric: str, y: NDArray[np.intp], p: NDArray[np.float64], settings: LimitSettings | None = None
) -> Estimate:
    record, samples = scored(y, p)
    run = run_data(record, samples)
    estimands = parse_estimands([metric], run.source.labels, 1, inputs=INPUTS_OF_CLASSES)
    return estimate(estimands, run, settings or LimitSettings())[0][0]


WORKED = [
    (10, None, 0.961194),
    (20, None, 0.938474),
    (36, 0.467935, 0.907722),
    (50, 0.418181, 0.896495),
    (100, 0.663674, 0.879161),
    (300, 0.724556, 0.855878),
]


@pytest.mark.parametrize(("members", "low", "high"), WORKED)
def test_limits_at_a_rate_are_those_worked_out_by_hand(members: int, low: float | None, high: float) -> None:
    fixed, other = SHIFT + normal_quantiles(members), normal_quantiles(1000)
    cut = fixed[members - int(np.ceil(0.9 * members - 1e-9))]
    found = limits_at_rate(float(np.mean(other < cut)), 0.9, fixed, other)
    assert found == pytest.approx((np.nan if low is None else low, high), abs=1e-6, nan_ok=True)


@pytest.mark.parametrize(("members", "low", "high"), [(m, low, high) for m, low, high in WORKED if low is not None])
def test_a_specificity_at_a_recall_has_limits_by_order_statistics(members: int, low: float, high: float) -> None:
    found = estimated("specificity_at(recall=0.9)@B", *two_classes(members, 1000))
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-6)
    assert found.method == "order_statistics"


@pytest.mark.parametrize("members", [4, 10, 35])
def test_too_few_members_leave_no_limit(members: int) -> None:
    found = estimated("specificity_at(recall=0.9)@B", *two_classes(members, 1000))
    assert isnan(found.low)
    assert found.reason is not None
    assert "36" in found.reason


def test_a_recall_at_a_specificity_is_the_same_turned_around() -> None:
    y, p = two_classes(60, 200)
    found = estimated("recall_at(specificity=0.9)@B", y, p)
    turned = estimated("specificity_at(recall=0.9)@B", 1 - y, p[:, ::-1])
    assert (found.value, found.low, found.high) == pytest.approx((turned.value, turned.low, turned.high), abs=1e-12)
    assert isnan(estimated("recall_at(specificity=0.9)@B", *two_classes(4, 30)).low)


@pytest.mark.slow
def test_the_truth_lies_below_the_low_limit_as_rarely_as_said() -> None:
    random, truth = np.random.default_rng(4), float(stats.norm.cdf(1.5 + stats.norm.ppf(0.1)))
    missed = {36: 0, 60: 0}
    for size in missed:
        for _ in range(400):
            fixed, other = np.sort(random.normal(1.5, 1.0, size)), np.sort(random.normal(size=200))
            cut = fixed[size - int(np.ceil(0.9 * size - 1e-9))]
            ends = limits_at_rate(float(np.mean(other < cut)), 0.9, fixed, other)
            missed[size] += truth < ends[0]
    assert max(missed.values()) <= 20


@pytest.mark.parametrize("metric", ["macro_f1", "mean(f1@*)", "macro_jaccard", "class_balance_accuracy"])
def test_a_mean_over_classes_has_no_limits_without_samples_of_one(metric: str) -> None:
    run = run_data(record_of([[95, 5], [0, 0]]))
    found = estimate(parse_estimands([metric], run.source.labels, None), run)[0][0]
    assert found.value > 0.4
    assert isnan(found.low)
    assert found.reason is not None
    assert "a class has no samples" in found.reason
    assert (found.as_interval()["low"], found.as_interval()["high"]) == (None, None)
    present = run_data(record_of([[95, 5], [1, 3]]))
    assert estimate(parse_estimands([metric], run.source.labels, None), present)[0][0].reason is None
