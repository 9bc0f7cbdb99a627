"""Precision at other class shares: limits from few false positives hold the truth."""

import numpy as np
import pytest

from app.services.estimands import make_estimand
from app.services.estimates.estimate import ClassShares, LimitSettings
from app.services.estimates.estimates import estimate_at
from app.services.estimates.run_data import run_data
from tests.services.records import record_of

RARE = np.array([[0.99, 0.01]])


def limits(rows: list[list[int]], shares: np.ndarray = RARE, metric: str = "precision@B") -> tuple[float, float, float]:
    record = record_of(rows)
    estimand = make_estimand(metric, record.labels, record.positive)
    (((one,),),) = estimate_at([estimand], run_data(record), ClassShares(shares), LimitSettings())
    return one.value, one.low, one.high


def test_limits_of_precision_at_a_rare_class() -> None:
    value, low, high = limits([[998, 2], [20, 80]])
    assert value == pytest.approx(0.01 * 0.8 / (0.01 * 0.8 + 0.99 * 0.002))
    assert 0.4 < low < value < high < 1.0
    # Without false positives the precision is 1, and the upper limit of their rate is carried through.
    value, low, high = limits([[1000, 0], [20, 80]])
    assert (value, high) == (1.0, 1.0)
    assert low == pytest.approx(0.01 * 0.8 / (0.01 * 0.8 + 0.99 * 0.0037), abs=0.03)


@pytest.mark.parametrize("metric", ["precision@B", "npv@A", "false_discovery_rate@B"])
def test_other_names_of_a_rate_have_its_limits(metric: str) -> None:
    value, low, high = limits([[990, 10], [20, 80]], metric=metric)
    same = limits([[990, 10], [20, 80]])
    expected = same if metric != "false_discovery_rate@B" else (1 - same[0], 1 - same[2], 1 - same[1])
    assert (value, low, high) == pytest.approx(expected)


def test_precision_of_three_classes() -> None:
    value, low, high = limits([[90, 5, 5], [10, 85, 5], [0, 2, 98]], np.array([[0.9, 0.05, 0.05]]))
    assert 0.0 < low < value < high < 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("others", "rate"), [(500, 0.002), (500, 0.01), (2000, 0.002)])
def test_the_truth_lies_below_as_seldom_as_promised(others: int, rate: float) -> None:
    """Truth below the low limit: 10.2 % by draws where 2.5 % is right."""
    random, recall = np.random.default_rng(0), 0.8
    truth = 0.01 * recall / (0.01 * recall + 0.99 * rate)
    below = above = 0
    for _ in range(2000):
        false, hit = int(random.binomial(others, rate)), int(random.binomial(100, recall))
        _, low, high = limits([[others - false, false], [100 - hit, hit]])
        below, above = below + (truth < low), above + (truth > high)
    assert below / 2000 <= 0.035
    assert above / 2000 <= 0.035
