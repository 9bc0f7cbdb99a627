"""Samples in groups: against statsmodels' cluster-robust errors, loops over groups, and simulated coverage."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty import groups as grouped_limits
from app.kernel.uncertainty.draws import generator
from app.kernel.uncertainty.groups import (
    GroupedCounts,
    expanded_level,
    group_variance,
)
from app.kernel.uncertainty.intervals import wilson
from tests.kernel.groups import design_effect, grouped_wilson, influences
from tests.kernel.uncertainty.resampled import group_intervals

Codes = NDArray[np.intp]
ACCURACY, BALANCED, MACRO_F1 = (
    catalogue().of_matrices.by_name[key].compute for key in ("accuracy", "balanced_accuracy", "macro_f1")
)


def sample(
    random: np.random.Generator, n_groups: int = 40, size: int = 10, n_classes: int = 3
) -> tuple[Codes, Codes, Codes]:
    """Groups, truth and predictions (n): some groups are hard, so that their samples are alike."""
    sizes = random.integers(1, 2 * size, n_groups)
    groups = np.repeat(np.arange(n_groups), sizes)
    truth = random.integers(0, n_classes, groups.size)
    right = random.beta(2.0, 1.0, n_groups)[groups]
    wrong = (truth + random.integers(1, n_classes, groups.size)) % n_classes
    predicted = np.where(random.random(groups.size) < right, truth, wrong)
    return groups, truth, predicted.astype(np.intp)


def cluster_errors(outcome: Array, design: Array, groups: Codes) -> Array:
    """Covariance of least squares, robust to groups, without its correction for the number of coefficients."""
    from statsmodels.regression.linear_model import OLS

    fit = OLS(outcome, design).fit(cov_type="cluster", cov_kwds={"groups": groups})
    n, coefficients = design.shape
    covariance: Array = np.asarray(fit.cov_params()) * (n - coefficients) / (n - 1)
    return covariance


def test_counting_equals_counting_one_by_one() -> None:
    groups, truth, predicted = sample(np.random.default_rng(0))
    found = GroupedCounts.gather(groups, truth, predicted, 3)
    expected = np.zeros((3, 3))
    np.add.at(expected, (truth, predicted), 1)
    np.testing.assert_array_equal(found.matrix(), expected)
    np.testing.assert_array_equal(found.sizes(), np.bincount(groups))
    with pytest.raises(ValueError, match="two groups"):
        GroupedCounts.gather(np.zeros(3, dtype=np.intp), truth[:3], predicted[:3], 3)


def test_errors_of_accuracy_and_balanced_accuracy_agree_with_statsmodels() -> None:
    groups, truth, predicted = sample(np.random.default_rng(1))
    runs = GroupedCounts.gather(groups, truth, predicted, 3)
    correct = (predicted == truth).astype(np.float64)
    found = group_variance(influences(runs, ACCURACY))[0]
    assert found == pytest.approx(cluster_errors(correct, np.ones((correct.size, 1)), groups)[0, 0], rel=1e-6)
    dummies = np.eye(3)[truth]
    covariance = cluster_errors(correct, dummies, groups)
    assert group_variance(influences(runs, BALANCED))[0] == pytest.approx(covariance.mean(), rel=1e-6)
    recalls = group_variance(influences(runs, catalogue().of_matrices.by_name["recall"].compute))
    np.testing.assert_allclose(recalls, np.diagonal(covariance), rtol=1e-6)


@pytest.mark.parametrize("dense", [0, 1 << 22])
def test_resampling_takes_whole_groups(dense: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouped_limits, "_DENSE", dense)
    groups, truth, predicted = sample(np.random.default_rng(3), n_groups=6)
    runs = GroupedCounts.gather(groups, truth, predicted, 3)
    drawn = np.concatenate(list(runs.resample(draws=50, random=generator(5))))
    drawn_groups = generator(5).integers(0, 6, (50, 6))
    weights = np.array([np.bincount(row, minlength=6) for row in drawn_groups])
    for matrix, weight in zip(drawn, weights, strict=True):
        expected = np.zeros((3, 3))
        np.add.at(expected, (truth, predicted), weight[groups])
        np.testing.assert_allclose(matrix, expected)


def test_groups_of_one_are_independent_samples() -> None:
    _, truth, predicted = sample(np.random.default_rng(4), n_groups=150)
    runs = GroupedCounts.gather(np.arange(truth.size), truth, predicted, 3)
    size = truth.size
    assert design_effect(runs, MACRO_F1)[0] == pytest.approx(size / (size - 1), rel=1e-6)
    spread = group_intervals(runs, [MACRO_F1], seed=1, draws=4000)[0].deviation[0]
    assert spread == pytest.approx(group_variance(influences(runs, MACRO_F1))[0] ** 0.5, rel=0.06)
    hits = (truth == predicted).astype(np.float64)
    ends, plain = grouped_wilson(hits, np.ones(size)), wilson(hits.sum(), np.array(float(size)))
    np.testing.assert_allclose(ends, plain, rtol=2e-3)


def test_copies_of_a_sample_are_no_evidence() -> None:
    """Every sample five times, as groups of five: the interval is that of the samples once."""
    random = np.random.default_rng(5)
    truth, predicted = random.integers(0, 2, 80), random.integers(0, 2, 80)
    once = GroupedCounts.gather(np.arange(80), truth, predicted, 2)
    copied = GroupedCounts.gather(np.repeat(np.arange(80), 5), np.repeat(truth, 5), np.repeat(predicted, 5), 2)
    assert design_effect(copied, ACCURACY)[0] == pytest.approx(5 * 80 / 79, rel=1e-6)
    for one, other in zip(
        group_intervals(once, [ACCURACY, MACRO_F1], seed=3),
        group_intervals(copied, [ACCURACY, MACRO_F1], seed=3),
        strict=True,
    ):
        np.testing.assert_allclose([one.low, one.high], [other.low, other.high])
    hits = (truth == predicted).astype(np.float64)
    np.testing.assert_allclose(
        grouped_wilson(5 * hits, np.full(80, 5.0)), grouped_wilson(hits, np.ones(80)), rtol=1e-12
    )


def test_rates_at_an_end_count_their_groups() -> None:
    sizes = np.array([10.0, 20, 5, 0])
    np.testing.assert_allclose(grouped_wilson(sizes, sizes), wilson(np.array(3.0), np.array(3.0)))
    np.testing.assert_allclose(grouped_wilson(0 * sizes, sizes), wilson(np.array(0.0), np.array(3.0)))


def test_many_groups_are_drawn_less_often() -> None:
    random = np.random.default_rng(11)
    groups, truth, predicted = sample(random)
    small = GroupedCounts.gather(groups, truth, predicted, 3)
    assert small.affordable_draws(4000) == 4000
    count = 400_000
    codes = random.integers(0, 40, (2, count))
    large = GroupedCounts.gather(np.arange(count), codes[0], codes[1], 40)
    assert 200 < large.affordable_draws(4000) < 1500
    assert large.affordable_draws(300) == 300


def test_very_many_groups_are_drawn_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of groups put together at random vary as those of single groups do."""
    monkeypatch.setattr(grouped_limits, "_DRAWN", 1000)
    groups, truth, predicted = sample(np.random.default_rng(12), n_groups=3_001)
    runs = GroupedCounts.gather(groups, truth, predicted, 3)
    drawn = np.concatenate([*runs.resample(draws=3000, random=generator(1))])
    found = np.trace(drawn, axis1=1, axis2=2) / drawn.sum(axis=(1, 2))
    assert found.std() == pytest.approx(group_variance(influences(runs, ACCURACY))[0] ** 0.5, rel=0.07)
    assert drawn.mean(axis=0) == pytest.approx(runs.matrix(), rel=0.01)


def covered(ends: Sequence[Sequence[float]], truth: float) -> float:
    low, high = np.array(ends).T
    return float(np.mean((low <= truth) & (truth <= high)))


@pytest.mark.slow
def test_coverage_where_samples_of_a_group_are_alike() -> None:
    random = np.random.default_rng(6)
    rates, scores, naive = [], [], []
    for replicate in range(250):
        groups, truth, predicted = sample(random, n_groups=30, size=12)
        runs = GroupedCounts.gather(groups, truth, predicted, 3)
        hits = np.bincount(groups, predicted == truth, 30).astype(np.float64)
        rates.append([float(end) for end in grouped_wilson(hits, runs.sizes())])
        naive.append([float(end) for end in wilson(hits.sum(), runs.sizes().sum())])
        found = group_intervals(runs, [MACRO_F1], seed=replicate, draws=300)[0]
        scores.append([float(found.low[0]), float(found.high[0])])
    # A sample is right with 2/3 on average, errors even over three classes: macro F1 is 2/3 as well.
    assert covered(naive, 2 / 3) < 0.8
    assert 0.91 < covered(rates, 2 / 3) < 0.98
    assert 0.91 < covered(scores, 2 / 3) < 0.98


def test_few_groups_widen_the_interval() -> None:
    assert expanded_level(0.95, 10) > expanded_level(0.95, 40) > 0.95
    # Percentiles of resampled groups are too near by sqrt((G - 1)/G), and Student's quantile is farther out.
    out = np.sqrt(10 / 9) * stats.t.ppf(0.975, 9)
    assert expanded_level(0.95, 10) == pytest.approx(1 - 2 * stats.norm.sf(out))
    assert 0.999 < expanded_level(0.95, 2) < 1.0
    groups, truth, predicted = sample(np.random.default_rng(10), n_groups=2, size=30)
    found = group_intervals(GroupedCounts.gather(groups, truth, predicted, 3), [ACCURACY], seed=0, draws=200)[0]
    assert found.low[0] < found.estimate[0] < found.high[0]
    assert expanded_level(0.95, 1_000_000) == pytest.approx(0.95, abs=1e-5)
