"""The closed-form intervals of a report."""

import warnings

import numpy as np
import pytest

from app.kernel.matrix.gradient import additive_variance, stack
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Scope
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.headline import (
    Given,
    Method,
    OverallInterval,
    Refusal,
    fisher_z_limits,
    headline,
    headline_metrics,
    logit_limits,
)
from app.kernel.uncertainty.intervals import wilson
from app.kernel.uncertainty.mover import mean_limits, undercovers

FOUR = np.array([[800, 0, 0, 0], [0, 600, 0, 0], [0, 0, 500, 0], [40, 24, 20, 16]])
GRADIENTS = {metric.key: gradient for metric, gradient in headline_metrics().gradients}


def overall(counts: Array, level: float = 0.95) -> dict[str, OverallInterval]:
    return {interval.key: interval for interval in headline(Table(counts), level).overall}


def test_the_matrix_with_one_weak_class() -> None:
    found = overall(FOUR)
    assert (found["h_mean"].low, found["h_mean"].high) == pytest.approx((0.3036, 0.5596), abs=5e-5)
    assert found["h_mean"].method is Method.MOVER
    assert found["h_mean"].given is Given.ACTUAL
    assert set(found) == {"accuracy", "balanced_accuracy", "g_mean", "h_mean", "macro_f1", "mcc", "cohen_kappa"}
    for key, interval in found.items():
        value = float(catalogue().of_matrices.by_name[key](Table(FOUR)))
        assert interval.low < value < interval.high, key


def test_accuracy_is_wilson() -> None:
    low, high = wilson(np.array(1916.0), np.array(2000.0))
    assert (overall(FOUR)["accuracy"].low, overall(FOUR)["accuracy"].high) == (float(low), float(high))


def test_every_rate_of_the_catalogue_has_limits_around_its_value() -> None:
    rng = np.random.default_rng(5)
    table = Table(rng.integers(0, 30, (6, 6)))
    rates = headline(table).rates
    declared = [
        metric.key
        for metric in catalogue().of_matrices.of_scope(Scope.CLASS)
        if metric.card.inference.proportion is not None and metric.card.inference.proportion.is_plain
    ]
    assert list(rates.keys) == declared
    for row, key in enumerate(rates.keys):
        values = catalogue().of_matrices.by_name[key](table)
        assert np.all((rates.low[row] <= values) & (values <= rates.high[row])), key
    given = dict(zip(rates.keys, rates.given, strict=True))
    assert given["precision"] is Given.PREDICTED
    assert given["npv"] is Given.PREDICTED
    assert given["recall"] is Given.ACTUAL
    assert given["prevalence"] is Given.SAMPLES


def test_rates_without_denominator_are_nan() -> None:
    counts = np.array([[5, 0, 1], [0, 0, 0], [2, 0, 3]])
    rates = headline(Table(counts)).rates
    position = {key: row for row, key in enumerate(rates.keys)}
    assert np.isnan(rates.low[position["recall"], 1])
    assert np.isnan(rates.high[position["precision"], 1])
    assert np.isfinite(rates.low[position["recall"], [0, 2]]).all()


def test_an_empty_class_leaves_no_mean_of_recalls() -> None:
    found = overall(np.array([[5, 0, 1], [0, 0, 0], [2, 0, 3]]))
    for key in ("balanced_accuracy", "g_mean", "h_mean", "macro_f1"):
        assert found[key].refusal is Refusal.UNDEFINED_ESTIMATE
        assert np.isnan(found[key].low)
    assert found["mcc"].refusal is None


def test_a_recall_of_zero_stands_at_its_upper_limit() -> None:
    found = overall(np.array([[0, 20], [5, 35]]))
    assert found["h_mean"].low == 0.0
    assert found["g_mean"].low == 0.0
    assert found["balanced_accuracy"].low > 0.0
    rates, low, high = np.array([0.0, 0.875]), np.array([0.0, 0.75]), np.array([0.1166, 0.95])
    ends = mean_limits(rates, low, high)
    assert ends[2, 1] == pytest.approx(2 / (1 / 0.1166 + 1 / 0.95))
    assert ends[1, 1] == pytest.approx(np.sqrt(0.1166 * 0.95))
    assert ends[0, 0] == pytest.approx(0.875 / 2 - 0.125 / 2)
    just_above = mean_limits(np.array([1e-7, 0.875]), np.array([0.0, 0.75]), high)
    assert just_above[2, 1] < ends[2, 1] < 1.01 * just_above[2, 1]


def test_several_recalls_of_zero_stand_at_their_upper_limits() -> None:
    ends = mean_limits(np.array([0.0, 0.0, 0.5]), np.array([0.0, 0.0, 0.4]), np.array([0.2, 0.1, 0.5]))
    assert ends[2].tolist() == pytest.approx([0.0, 3 / (5 + 10 + 2)])
    assert ends[1].tolist() == pytest.approx([0.0, (0.2 * 0.1 * 0.5) ** (1 / 3)])


def test_mover_knows_where_it_undercovers() -> None:
    for classes, size in ((10, 25), (20, 100), (5, 25), (3, 10)):
        assert undercovers(np.full(classes, float(size))), classes
    for classes, size in ((10, 100), (20, 200), (5, 50), (3, 25), (2, 10)):
        assert not undercovers(np.full(classes, float(size))), classes
    assert not undercovers(np.array([0.0, 0.0, 5.0, 5.0]))


def test_mover_works_on_batches() -> None:
    rng = np.random.default_rng(0)
    rates = rng.uniform(0.2, 0.9, (4, 5, 3))
    rates[1, 2, 0] = 0.0
    rates[3, 4, 1] = np.nan
    ends = mean_limits(rates, np.maximum(rates - 0.1, 0), rates + 0.05)
    assert ends.shape == (3, 2, 4, 5)
    for where in np.ndindex(4, 5):
        single = mean_limits(rates[where], np.maximum(rates[where] - 0.1, 0), rates[where] + 0.05)
        np.testing.assert_allclose(ends[(..., *where)], single, rtol=1e-12)


@pytest.mark.parametrize("counts", [np.diag([10, 20, 30]), np.array([[0, 10], [10, 0]])])
def test_a_standard_error_of_zero_gives_a_reason(counts: Array) -> None:
    found = overall(counts)
    assert found["mcc"].refusal is Refusal.ZERO_STANDARD_ERROR
    if counts.shape == (3, 3):
        assert found["macro_f1"].refusal is Refusal.ZERO_STANDARD_ERROR
        assert found["cohen_kappa"].refusal is Refusal.ZERO_STANDARD_ERROR
        assert found["accuracy"].high == 1.0
        assert found["h_mean"].high == 1.0
        assert found["h_mean"].low < 1.0


@pytest.mark.parametrize("counts", [np.zeros((3, 3)), np.array([[5, 0], [0, 0]]), np.array([[5, 5], [0, 0]])])
def test_degenerate_matrices_neither_warn_nor_fail(counts: Array) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for interval in headline(Table(counts)).overall:
            assert (interval.refusal is None) == (not np.isnan(interval.low))


@pytest.mark.parametrize("key", GRADIENTS)
def test_closed_gradients_equal_central_differences(key: str) -> None:
    rng = np.random.default_rng(3)
    counts = rng.integers(1, 40, (4, 4)).astype(float)
    n = counts.sum()
    closed = GRADIENTS[key](Table(counts)).full()
    metric = catalogue().of_matrices.by_name[key]
    numeric = np.empty((4, 4))
    for cell in np.ndindex(4, 4):
        step = np.zeros((4, 4))
        step[cell] = n * 1e-6
        numeric[cell] = float(metric(Table(counts + step)) - metric(Table(counts - step))) / 2e-6
    # A gradient along shares that sum to 1 is fixed up to a constant: compare what is left of it.
    shares = counts / n
    np.testing.assert_allclose(closed - (shares * closed).sum(), numeric - (shares * numeric).sum(), atol=1e-7)
    if key == "macro_f1":
        assert (shares * closed).sum() == pytest.approx(0.0, abs=1e-14)


def test_published_standard_error_of_mcc() -> None:
    table = Table(np.array([[40, 10], [5, 45]]))
    variance = additive_variance(table, stack([GRADIENTS["mcc"](table)]))
    assert np.sqrt(variance[0]) == pytest.approx(0.0700, abs=5e-5)


def test_additive_variance_equals_the_sum_over_cells() -> None:
    rng = np.random.default_rng(8)
    counts = rng.integers(0, 40, (5, 5)).astype(float)
    table = Table(counts)
    shares = counts / counts.sum()
    for gradient in GRADIENTS.values():
        full = gradient(table).full()
        expected = ((shares * full**2).sum() - (shares * full).sum() ** 2) / counts.sum()
        assert additive_variance(table, stack([gradient(table)]))[0] == pytest.approx(expected, rel=1e-10)


def test_scales_keep_limits_inside_the_range() -> None:
    assert logit_limits(0.99, 0.2) == pytest.approx((1 / (1 + np.exp(0.2 / 0.0099) / 99), 1.0), rel=1e-6)
    assert logit_limits(0.5, 1e6) == (0.0, 1.0)
    low, high = fisher_z_limits(0.98, 0.1) or (0.0, 0.0)
    assert -1 < low < 0.98 < high <= 1
    assert logit_limits(1.0, 0.1) is None
    assert fisher_z_limits(0.3, 0.0) is None


def test_published_values_of_the_two_definitions_of_macro_f1() -> None:
    assert float(catalogue().of_matrices.by_name["macro_f1"](Table(FOUR))) == pytest.approx(0.8031, abs=5e-5)
    assert float(catalogue().of_matrices.by_name["macro_f1_of_means"](Table(FOUR))) == pytest.approx(0.8703, abs=5e-5)
