"""Limits of weighted samples: statsmodels' sandwich, derivatives by each weight, and equality for equal weights."""

from itertools import chain
from typing import Any

import numpy as np
import pytest

from app.kernel.matrix.table import Table, WeightedCounts
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty import closed_forms
from app.kernel.uncertainty.closed_forms import Headlines
from app.kernel.uncertainty.designs import (
    DesignedRate,
    DesignedSums,
    Independent,
    Weighted,
    design_effects,
    gradients_of,
    headline_metrics,
)
from app.kernel.uncertainty.draws import Shares, generator
from app.kernel.uncertainty.simulation import RowPosterior
from tests.witnesses import sm


def samples(n_classes: int, size: int, seed: int = 0) -> tuple[Any, Any, Array]:
    random = np.random.default_rng(seed)
    truth = random.integers(0, n_classes, size)
    predicted = np.where(random.random(size) < 0.7, truth, random.integers(0, n_classes, size))
    return truth, predicted, random.gamma(1.5, 1.0, size) + 0.05


def ends(found: Headlines, key: str) -> tuple[float, float]:
    one = next(one for one in found.overall[0] if one.key == key)
    return one.low, one.high


def sandwich(hit: Array, among: Array, weights: Array) -> tuple[float, float]:
    """A weighted mean with its standard error as R's svymean and svyratio have it: HC1 of a regression on 1."""
    fit = sm.WLS(hit[among].astype(float), np.ones(int(among.sum())), weights=weights[among]).fit(cov_type="HC1")
    return float(fit.params[0]), float(fit.bse[0])


@pytest.mark.parametrize(("n_classes", "size"), [(2, 60), (3, 200), (10, 500)])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
def test_samples_of_one_weight_have_the_limits_of_those_without(n_classes: int, size: int, level: float) -> None:
    truth, predicted, _ = samples(n_classes, size)
    if n_classes == 3:
        # A class that is always right stands at an edge.
        predicted = np.where(truth == 2, 2, predicted)
    weighted = WeightedCounts.of(truth, predicted, np.full(size, 2.5), n_classes)
    found, plain = Headlines(Weighted(weighted), level), Headlines(Independent(Table(weighted.samples)), level)
    for own, expected in zip(found.overall[0], plain.overall[0], strict=True):
        assert own.key == expected.key
        np.testing.assert_allclose([own.low, own.high], [expected.low, expected.high], rtol=1e-12, err_msg=own.key)
        assert own.method == f"weighted_{expected.method}"
    np.testing.assert_allclose(found.rates[0], plain.rates[0], rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(found.rates[1], plain.rates[1], rtol=1e-11, atol=1e-14)
    assert design_effects(Weighted(weighted))["accuracy"] == pytest.approx(1.0, rel=1e-12)


def rate_of(key: str, weighted: WeightedCounts, of: int) -> DesignedRate:
    """A rate of one class."""
    proportion = catalogue().of_matrices.by_name[key].card.inference.proportion
    assert proportion is not None
    tables = (Table(weighted.counts), Table(weighted.squares), Table(weighted.samples))
    found = DesignedSums.of_tables(*tables).rates(proportion.at(3, of))
    return DesignedRate(*(np.broadcast_to(getattr(found, name), len(weighted.counts))[of] for name in found.__slots__))


def test_variances_of_rates_are_those_of_statsmodels() -> None:
    truth, predicted, weights = samples(3, 150)
    weighted = WeightedCounts.of(truth, predicted, weights, 3)
    everyone = np.ones(truth.size, dtype=bool)
    asked = {
        "accuracy": ((truth == 1) == (predicted == 1), everyone),
        "recall": (predicted == 1, truth == 1),
        "precision": (truth == 1, predicted == 1),
        "specificity": (predicted != 1, truth != 1),
    }
    for key, (hit, among) in asked.items():
        found = rate_of(key, weighted, 1)
        value, error = sandwich(hit, among, weights)
        size = float(among.sum())
        assert float(found.rate) == pytest.approx(value, rel=1e-12)
        assert float(found.samples) == size
        assert float(found.variance) * size / (size - 1.0) == pytest.approx(error**2, rel=1e-12)
        assert float(found.effective) == pytest.approx(weights[among].sum() ** 2 / (weights[among] ** 2).sum())


def test_variances_of_smooth_metrics_add_up_what_each_sample_moves() -> None:
    truth, predicted, weights = samples(4, 80)
    weighted = WeightedCounts.of(truth, predicted, weights, 4)
    table, step = Table(weighted.counts), 1e-5
    for metric in chain(*headline_metrics()):
        moves = np.zeros(truth.size)
        for place in range(truth.size):
            both = []
            for factor in (1.0 + step, 1.0 - step):
                moved = weights.copy()
                moved[place] *= factor
                both.append(float(metric(Table(WeightedCounts.of(truth, predicted, moved, 4).counts))))
            moves[place] = (both[0] - both[1]) / (2.0 * step)
        expected = float(moves @ moves)
        found = Weighted(weighted).variances(gradients_of([metric], table))
        assert float(found[0]) == pytest.approx(expected, rel=1e-6), metric.key
        by_cells = closed_forms.variance(weighted.counts, metric, squares=weighted.squares)
        assert float(by_cells[0]) == pytest.approx(expected, rel=1e-6), metric.key


@pytest.mark.parametrize("design", list(Shares))
def test_derivatives_of_equal_weights_give_the_plain_variance(design: Shares) -> None:
    truth, predicted, _ = samples(3, 90)
    weighted = WeightedCounts.of(truth, predicted, np.full(90, 4.0), 3)
    for metric in chain(*headline_metrics()):
        plain = closed_forms.variance(weighted.samples, metric, shares=design)
        found = closed_forms.variance(weighted.counts, metric, shares=design, squares=weighted.squares)
        np.testing.assert_allclose(found, plain, rtol=1e-6, err_msg=metric.key)


def test_whole_weights_are_no_counts_and_their_unit_says_nothing() -> None:
    truth, predicted, _ = samples(2, 100)
    weights = np.random.default_rng(3).integers(1, 6, 100).astype(float)
    weighted = WeightedCounts.of(truth, predicted, weights, 2)
    found = Headlines(Weighted(weighted))
    repeated = np.repeat(np.arange(100), weights.astype(int))
    counts = WeightedCounts.of(truth[repeated], predicted[repeated], np.ones(repeated.size), 2).samples
    counted = Headlines(Independent(Table(counts)))
    for key in ("accuracy", "balanced_accuracy", "mcc"):
        assert np.ptp(ends(found, key)) > 1.3 * np.ptp(ends(counted, key))
        scaled = Headlines(Weighted(WeightedCounts.of(truth, predicted, 1e-6 * weights, 2)))
        np.testing.assert_allclose(ends(scaled, key), ends(found, key), rtol=1e-12)


def test_samples_without_weight_are_not_there() -> None:
    truth, predicted, weights = samples(3, 120)
    weights[::3] = 0.0
    used = weights > 0
    found = Headlines(Weighted(WeightedCounts.of(truth, predicted, weights, 3)))
    alone = Headlines(Weighted(WeightedCounts.of(truth[used], predicted[used], weights[used], 3)))
    assert found.overall == alone.overall
    np.testing.assert_array_equal(found.rates[0], alone.rates[0])


def test_rates_at_an_edge_are_worth_kish_effective_samples() -> None:
    weights = np.array([1.0, 1.0, 4.0, 2.0])
    truth = np.zeros(4, dtype=np.intp)
    found = Weighted(WeightedCounts.of(truth, truth, weights, 2)).accuracy(0.95)
    assert float(found[1]) == pytest.approx(64.0 / 22.0)


def test_draws_have_the_mean_and_the_variance_of_the_weighted_samples() -> None:
    truth, predicted, weights = samples(2, 400)
    weighted = WeightedCounts.of(truth, predicted, weights, 2)
    draws = RowPosterior(weighted.counts, squares=weighted.squares).matrices(40_000, generator(1))
    np.testing.assert_allclose(draws.sum(axis=-1), np.broadcast_to(weighted.counts.sum(axis=-1), (40_000, 2)))
    recalls = Table(draws).recall[:, 1]
    rate = rate_of("recall", weighted, 1)
    assert recalls.mean() == pytest.approx(float(rate.rate), abs=0.002)
    assert recalls.var() == pytest.approx(float(rate.variance), rel=0.04)


def test_draws_of_one_weight_are_those_without() -> None:
    truth, predicted, _ = samples(3, 50)
    weighted = WeightedCounts.of(truth, predicted, np.full(50, 8.0), 3)
    own, plain = (
        RowPosterior(counts, squares=squares).matrices(20, generator(5))
        for counts, squares in ((weighted.counts, weighted.squares), (weighted.samples, None))
    )
    np.testing.assert_allclose(own, 8.0 * plain, rtol=1e-12)


@pytest.mark.parametrize("unit", [1000.0, 1e-6])
def test_draws_do_not_hang_on_the_unit_of_the_weights(unit: float) -> None:
    """Some cells have one sample, which is worth 1 whatever it weighs."""
    truth, predicted, weights = samples(6, 60)
    own, moved = (WeightedCounts.of(truth, predicted, each, 6) for each in (weights, unit * weights))
    assert (own.samples == 1.0).any()
    of_own, of_moved = (RowPosterior(one.counts, squares=one.squares, shares=Shares.SAMPLED) for one in (own, moved))
    drawn, again = (one.matrices(50, generator(2)) for one in (of_own, of_moved))
    np.testing.assert_allclose(again, unit * drawn, rtol=1e-9)
    np.testing.assert_allclose(of_moved.mean(), unit * of_own.mean(), rtol=1e-9)


def test_no_limit_leaves_the_range_of_its_metric() -> None:
    codes, outside = np.array([0, 1, 1]), []
    for heavy in (1.0, 4.0, 50.0):
        found = Headlines(Weighted(WeightedCounts.of(codes, np.array([0, 1, 0]), np.array([1.0, heavy, 1.0]), 2)))
        for one in found.overall[0]:
            lowest, highest = catalogue().by_name[one.key].card.range
            assert lowest is not None
            assert highest is not None
            outside += [(heavy, one.key)] if one.low < lowest or one.high > highest else []
    assert not outside
