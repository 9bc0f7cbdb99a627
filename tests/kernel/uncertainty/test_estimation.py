"""One call for the intervals of many metrics, by each method."""

import numpy as np
import pytest

from app.kernel.metrics.catalogue import catalogue
from app.kernel.uncertainty import simulation
from app.kernel.uncertainty.closed_forms import delta_interval
from app.kernel.uncertainty.draws import (
    Prior,
    Shares,
    curvature_shift,
    evaluate_draws,
    generator,
    summarise,
)
from app.kernel.uncertainty.simulation import (
    RowPosterior,
)
from tests.kernel.uncertainty.resampled import bootstrap_intervals, posterior_intervals

THREE = np.array([[30.0, 5, 2], [4, 25, 6], [3, 0, 19]])
METRICS = catalogue().of_matrices.metrics
KEYS = ("macro_f1", "mcc", "recall")
SOME = [catalogue().of_matrices.by_name[key].compute for key in KEYS]


def test_every_metric_of_the_catalogue_has_an_interval_that_holds_it() -> None:
    functionals = [metric.compute for metric in METRICS]
    found = posterior_intervals(RowPosterior(THREE, shares=Shares.SAMPLED), functionals, seed=1, draws=500)
    for metric, summary in zip(METRICS, found, strict=True):
        there = ~np.isnan(summary.estimate) & (summary.undefined <= 25)
        assert np.all(summary.low[there] <= summary.estimate[there]), metric.key
        assert np.all(summary.estimate[there] <= summary.high[there]), metric.key
        assert np.isnan(summary.low[~there]).all(), metric.key


def test_batches_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = posterior_intervals(RowPosterior(THREE), SOME, seed=3, draws=1000)
    monkeypatch.setattr(simulation, "CELLS_PER_BATCH", 9 * 70)
    parts = posterior_intervals(RowPosterior(THREE), SOME, seed=3, draws=1000)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one.low, other.low)
        np.testing.assert_array_equal(one.high, other.high)


def test_methods_agree_on_a_large_sample() -> None:
    counts = THREE * 20
    bayes = posterior_intervals(RowPosterior(counts, shares=Shares.SAMPLED), SOME, seed=1)
    plain = bootstrap_intervals(counts, SOME, seed=1)
    corrected = bootstrap_intervals(counts, SOME, seed=1, corrected=True)
    for position, functional in enumerate(SOME):
        smooth = delta_interval(counts, functional, bounds=(0.0, 1.0))
        for found in (bayes, plain, corrected):
            np.testing.assert_allclose(found[position].low, smooth.low, atol=0.006)
            np.testing.assert_allclose(found[position].high, smooth.high, atol=0.006)


def test_fixed_class_counts_narrow_the_interval() -> None:
    accuracy = [catalogue().of_matrices.by_name["accuracy"].compute]
    free = bootstrap_intervals(THREE, accuracy, seed=1, draws=20_000)[0]
    fixed = bootstrap_intervals(THREE, accuracy, seed=1, draws=20_000, shares=Shares.OBSERVED)[0]
    assert fixed.deviation[0] < free.deviation[0]
    assert fixed.estimate[0] == pytest.approx(74 / 94)


def test_priors_and_shares_reach_the_draws() -> None:
    balanced = [
        catalogue().of_matrices.by_name["balanced_accuracy"].compute,
        catalogue().of_matrices.by_name["accuracy"].compute,
    ]
    uniform = posterior_intervals(RowPosterior(THREE, prior=Prior.UNIFORM), balanced, seed=1)
    edge = posterior_intervals(RowPosterior(THREE), balanced, seed=1)
    assert uniform[0].high[0] < edge[0].high[0]
    fixed, random = (
        posterior_intervals(RowPosterior(THREE, shares=one), balanced, seed=1)
        for one in (Shares.OBSERVED, Shares.SAMPLED)
    )
    assert fixed[1].deviation[0] < random[1].deviation[0]


def ten_classes(size: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    recalls = np.linspace(0.3, 0.9, 10)
    counts = np.repeat((size * (1 - recalls) / 9)[:, None], 10, axis=1)
    np.fill_diagonal(counts, size * recalls)
    return counts


def test_curvature_is_taken_out_of_the_limits() -> None:
    counts = ten_classes(25)
    keys = ("h_mean", "balanced_accuracy", "cramer_v", "max_recall")
    chosen = [catalogue().of_matrices.by_name[key].compute for key in keys]
    found = posterior_intervals(RowPosterior(counts), chosen, seed=1, draws=20_000)
    drawn = evaluate_draws(RowPosterior(counts).batches(20_000, generator(1)), chosen)
    plain = [summarise(values[:, None], one.estimate) for values, one in zip(drawn, found, strict=True)]
    # H of noisy recalls is too low, association too high; a mean of recalls is straight.
    harmonic, association = found[0], found[2]
    shift = float(drawn[0].mean() - harmonic.estimate[0])
    assert shift < -0.2 * float(harmonic.deviation[0])
    assert harmonic.low[0] == pytest.approx(plain[0].low[0] - shift)
    assert harmonic.high[0] == pytest.approx(plain[0].high[0] - shift)
    assert association.high[0] < plain[2].high[0]
    assert (found[1].low[0], found[1].high[0]) == (plain[1].low[0], plain[1].high[0])
    assert found[3].low[0] >= plain[3].low[0] - 2 * float(found[3].deviation[0])


def test_curvature_is_left_alone_where_it_does_not_show() -> None:
    chosen = [catalogue().of_matrices.by_name["h_mean"].compute]
    for counts in (ten_classes(1000), THREE):
        found = posterior_intervals(RowPosterior(counts), chosen, seed=1, draws=4000)[0]
        drawn = evaluate_draws(RowPosterior(counts).batches(4000, generator(1)), chosen)[0]
        plain = summarise(drawn[:, None], found.estimate)
        assert (found.low[0], found.high[0]) == (plain.low[0], plain.high[0])


def test_the_shift_goes_to_the_estimate_and_not_beyond() -> None:
    one = np.ones(6)
    mean = np.array([0.5, 0.5, 0.5, 0.5, np.nan, np.inf])
    center = np.array([0.6, 0.6, 0.4, 0.505, 0.6, 0.6])
    estimate = np.array([0.55, 0.7, 0.7, 0.7, 0.7, 0.7])
    found = curvature_shift(mean, center, estimate, 0.1 * one)
    np.testing.assert_allclose(found, [-0.05, -0.1, 0.0, 0.0, 0.0, 0.0], atol=1e-15)


def test_limits_stay_among_the_draws() -> None:
    counts = 12.0 * np.eye(6) + np.eye(6, k=1)
    for metric in METRICS:
        low, high = metric.card.range
        for summary in [*posterior_intervals(RowPosterior(counts), [metric.compute], seed=2, draws=300)]:
            there = ~np.isnan(summary.low)
            assert low is None or np.all(summary.low[there] >= low - 1e-9), metric.key
            assert high is None or np.all(summary.high[there] <= high + 1e-9), metric.key


def test_delta_scales_follow_the_range() -> None:
    mcc = catalogue().of_matrices.by_name["mcc"].compute
    found = delta_interval(THREE, mcc, bounds=(-1.0, 1.0))
    value, error = found.estimate[0], found.deviation[0]
    ends = np.tanh(np.arctanh(value) + 1.959964 * np.array([-1.0, 1.0]) * error / (1.0 - value**2))
    assert (found.low[0], found.high[0]) == pytest.approx(tuple(ends), rel=1e-6)
    wald = delta_interval(THREE, mcc)
    assert wald.low[0] + wald.high[0] == pytest.approx(2 * wald.estimate[0])
    perfect = delta_interval(np.diag([5.0, 6.0]), mcc, bounds=(-1.0, 1.0))
    assert np.isnan(perfect.low[0])


def test_bca_leaves_undefined_values_without_interval() -> None:
    counts = np.array([[5.0, 1, 0], [0, 0, 0], [2, 0, 9]])
    found = bootstrap_intervals(counts, [SOME[2]], seed=1, draws=200, corrected=True)[0]
    assert np.isnan(found.low[1])
    assert found.low[0] < found.estimate[0]
