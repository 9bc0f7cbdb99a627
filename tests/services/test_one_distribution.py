"""Differences of runs: one quantity has one answer, and what does not matter changes nothing."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from app.kernel.compare.linear import join_runs
from app.kernel.metrics.card import Scale
from app.kernel.numerics.arrays import Array
from app.kernel.samples.influence import LinearMethod, Strata
from app.kernel.uncertainty.designs import NoLimits
from app.kernel.uncertainty.draws import Alternative
from app.kernel.uncertainty.influence import Linearisation
from app.services.compare.answers import ComparedPair
from app.services.compare.comparisons import compare
from app.services.runs.differences import Test as Difference
from app.services.runs.differences import same_runs
from tests.services.paired_models import Model, asked_of
from tests.services.test_comparisons import paired, unpaired

RANDOM = np.random.default_rng(26)
SIZE = 150
METRICS = ["average_precision@c1", "calibration_slope@c1", "ks_statistic@c1", "log_loss", "accuracy", "h_mean"]


def models(**members: Any) -> list[Model]:
    """Two runs on the same samples."""
    random = np.random.default_rng(5)
    truth = np.arange(SIZE) % 2
    shared, found = random.normal(size=SIZE), []
    for _ in range(2):
        chance = 1.0 / (1.0 + np.exp(-(1.2 * truth - 0.6 + 0.6 * shared + 0.6 * random.normal(size=SIZE))))
        found.append(Model(np.arange(SIZE), truth, np.stack([1.0 - chance, chance], axis=1), ["c0", "c1"], **members))
    return found


def differences(runs: list[Model], metrics: list[str] = METRICS) -> list[ComparedPair]:
    asked, kept = asked_of(runs, metrics)
    answer = compare(asked, kept, identifier=asked.runs.records[0].id)
    return [metric.differences[0] for metric in answer.metrics.values()]


def numbers(pair: ComparedPair) -> Array:
    members = ("difference", "low", "high", "p_value", "probability_a_better", "probability_equivalent")
    return np.array([getattr(pair, name) for name in members], dtype=np.float64)


def test_six_differences_have_the_limits_and_p_of_students_t() -> None:
    each = np.array([0.6309, 0.2192, -0.034, 0.1309, 0.0, 0.0953])
    parts = [
        Linearisation(
            float(values.mean()),
            (values - values.mean()) / np.sqrt(values.size * (values.size - 1.0)),
            Scale.LINEAR,
            Strata.WHOLE,
            LinearMethod.HALL_T,
            freedom=5.0,
        )
        for values in (each, np.zeros(6))
    ]
    found = join_runs(parts, [np.zeros(6, np.intp)] * 2, paired=True, same_items=False).difference(0, 1)
    low, high = found.limits(0.95)
    assert float(found.gaps[0]) == pytest.approx(0.173717, abs=1e-6)
    assert (float(low[0]), float(high[0])) == pytest.approx((-0.080061, 0.427494), abs=1e-6)
    assert float(found.p[0]) == pytest.approx(0.138791, abs=1e-6)
    assert float(stats.skew(each)) / np.sqrt(6) > 0.12


def test_equal_classes_have_one_accuracy_whatever_it_is_called() -> None:
    names = ("accuracy", "balanced_accuracy")
    whole, balanced = unpaired([[89, 11], [17, 83]], [[77, 23], [21, 79]], *names, dataset="d")
    for name in ("low", "high", "p_value", "smallest", "larger", "probability_equivalent"):
        assert getattr(balanced, name) == pytest.approx(getattr(whole, name), abs=1e-6), name
    assert (whole.low > 0) is (whole.p_value < 0.05)
    truth = np.repeat([0, 1], 100)
    runs = [np.where(RANDOM.random(200) < rate, truth, 1 - truth) for rate in (0.9, 0.8)]
    one, other = paired(runs[0], runs[1], truth, *names)
    assert (other.low, other.high, other.p_value) == pytest.approx((one.low, one.high, one.p_value))


@pytest.mark.parametrize("members", [{"weights": np.full(SIZE, 2.5)}, {"groups": np.arange(SIZE)}])
def test_equal_weights_and_groups_of_one_change_nothing(members: dict[str, Any]) -> None:
    for plain, other in zip(differences(models()), differences(models(**members)), strict=True):
        np.testing.assert_allclose(numbers(other), numbers(plain), rtol=1e-9)


def test_the_order_of_rows_changes_nothing_and_swapped_runs_are_mirrored() -> None:
    runs, order = models(), np.random.default_rng(1).permutation(SIZE)
    plain = differences(runs)
    for one, other in zip(plain, differences([run._replace(rows=order) for run in runs]), strict=True):
        np.testing.assert_allclose(numbers(other), numbers(one), rtol=1e-9, atol=1e-12)
    for one, other in zip(plain, differences(runs[::-1]), strict=True):
        gap, low, high, p, *_ = numbers(one)
        np.testing.assert_allclose(numbers(other)[:4], [-gap, -high, -low, p], rtol=1e-9)


def test_the_same_predictions_are_said_to_be_the_same() -> None:
    first, _ = models()
    for pair in differences([first, first]):
        assert pair.identical is True
        assert (pair.difference, pair.p_value) == (0.0, 1.0)


def test_the_same_predictions_with_other_probabilities_are_not_the_same() -> None:
    first, _ = models()
    unsure = first._replace(outputs=0.5 + 0.8 * (first.outputs - 0.5))
    loss, right = differences([first, unsure], ["log_loss", "accuracy"])
    assert (right.identical, right.verdict) == (True, "same")
    assert loss.difference != 0.0
    assert loss.identical is None


def test_a_value_that_does_not_exist_without_one_of_the_groups_has_no_limits() -> None:
    """All predictions of the class are in one group."""
    chance = np.array([0.7, 0.6, 0.2, 0.3, 0.1, 0.3, 0.2, 0.1])
    truth, groups = np.array([0, 1, 0, 1, 0, 1, 0, 1]), np.arange(8) // 3
    runs = [Model(np.arange(8), truth, np.stack([1.0 - chance, chance], axis=1), ["c0", "c1"], groups)] * 3
    asked, kept = asked_of(runs, ["precision@c1"])
    found = compare(asked, kept, identifier=asked.runs.records[0].id).metrics["precision@c1"]
    assert found.values == [0.5, 0.5, 0.5]
    assert found.ranking.probability_best is None
    for pair in found.differences:
        assert pair.difference == 0.0
        assert np.isnan([pair.low, pair.p_value]).all()
        assert pair.reason == NoLimits.ONE_GROUP


def test_no_discordant_samples_leave_tangos_limits() -> None:
    asked: dict[str, Any] = {"level": 0.95, "rope": 0.02, "method": "t"}
    square = stats.norm.isf(0.025) ** 2
    found = same_runs(100.0, 2.0, **asked)
    assert (-found.low, found.high) == pytest.approx([2 * square / (100 + square)] * 2)
    # The rope is the limit at the level that leaves as much beyond it.
    deviate = stats.norm.isf(found.larger)
    assert 2 * deviate**2 / (100 + deviate**2) == pytest.approx(0.02)
    assert found.probability_equivalent == pytest.approx(1 - 2 * found.larger)
    assert np.isnan(same_runs(100.0, np.inf, **asked).high)
    assert same_runs(100.0, 0.01, **asked).probability_equivalent == 1.0


def test_limits_of_a_difference_stay_within_the_range_of_differences() -> None:
    found = Difference(difference=-0.98, low=-1.04, high=0.59, p_value=0.5)
    assert (found.of(-0.98, None, Alternative.TWO_SIDED, (-1.0, 1.0)).low, found.high) == (-1.0, 0.59)
    assert found.of(-0.98, None, Alternative.LESS, (-1.0, 0.5)).high == 0.5
    assert found.of(-0.98, None, Alternative.TWO_SIDED, (None, None)).low == -1.04
