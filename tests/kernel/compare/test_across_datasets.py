"""Models on many data sets and on folds of one, against Demsar's table, scipy and baycomp."""

import numpy as np
import pytest
from scipy.stats import f as scipy_f
from scipy.stats import friedmanchisquare, studentized_range, ttest_1samp
from scipy.stats import wilcoxon as scipy_wilcoxon

from app.kernel.compare.over_datasets import (
    ZeroRule,
    average_ranks,
    bayesian_signed_rank,
    cliques,
    critical_difference,
    five_by_two_f,
    friedman,
    over_folds,
    rank_z,
    wilcoxon,
)
from app.kernel.compare.rankings import adjust
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.intervals import range_quantile

# Demsar (2006), table 6: C4.5, C4.5+m, C4.5+cf, C4.5+m+cf on 14 data sets.
PRINTED = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.975, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
)
# The two .975 of the thirteenth row were ranked 2 and 3, so they differed before they were rounded.
SCORES = PRINTED + np.where((np.arange(14) == 12)[:, None] & (np.arange(4) == 2), 1e-4, 0.0)
GAIN = np.round(PRINTED[:, 1] - PRINTED[:, 0], 3)


def test_published_ranks_and_statistics() -> None:
    np.testing.assert_allclose(average_ranks(SCORES), [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    found = friedman(SCORES, tie_corrected=False)
    assert found.chi_squared == pytest.approx(9.28, abs=5e-3)
    assert found.iman_davenport.f == pytest.approx(3.69, abs=5e-3)
    assert friedman(SCORES).chi_squared == pytest.approx(10.23, abs=5e-3)
    assert not np.allclose(average_ranks(PRINTED), average_ranks(SCORES), atol=1e-3)


@pytest.mark.slow
def test_friedman_keeps_its_level_with_scores_that_were_rounded() -> None:
    random = np.random.default_rng(3)
    for decimals, spread in ((1, 0.1), (2, 0.03)):
        scores = np.round(0.8 + spread * random.standard_normal((2000, 20, 4)), decimals)
        found = [friedman(one).iman_davenport.p_value for one in scores]
        assert 0.04 < np.mean([p is not None and p < 0.05 for p in found]) < 0.06


def test_friedman_agrees_with_scipy() -> None:
    for scores in (SCORES, PRINTED, np.random.default_rng(0).random((9, 5))):
        theirs = friedmanchisquare(*scores.T)
        found = friedman(scores)
        assert (found.chi_squared, found.p_value) == pytest.approx((theirs.statistic, theirs.pvalue))


def test_friedman_at_its_ends() -> None:
    same_order = friedman(np.arange(4.0) + np.arange(6.0)[:, None]).iman_davenport
    assert same_order.f == np.inf
    assert same_order.p_value == 0.0
    assert friedman(np.ones((6, 3))).chi_squared == 0.0


def test_published_critical_difference_with_its_root_of_two() -> None:
    assert range_quantile(4, 0.95) / np.sqrt(2) == pytest.approx(2.569, abs=5e-4)
    assert critical_difference(4, 14) == pytest.approx(1.254, abs=5e-4)
    for models, alpha in ((2, 0.05), (5, 0.1), (10, 0.01)):
        expected = studentized_range.ppf(1 - alpha, models, np.inf)
        assert range_quantile(models, 1.0 - alpha) == pytest.approx(expected, abs=1e-5)


def test_published_comparison_with_a_control() -> None:
    _, p = rank_z(average_ranks(SCORES), 14, 0)
    np.testing.assert_allclose(adjust(p)[1:], [0.047, 0.608, 0.047], atol=6e-4)


def test_published_wilcoxon_under_both_zero_rules() -> None:
    split, drop = wilcoxon(GAIN), wilcoxon(GAIN, ZeroRule.DROP)
    assert split.statistic == 12.0
    assert split.p_value == pytest.approx(0.0078, abs=5e-5)
    assert drop.statistic == 6.5
    assert drop.p_value == pytest.approx(0.0073, abs=5e-5)
    assert split.zeros == drop.zeros == 2


def test_an_odd_difference_of_0_is_dropped() -> None:
    """Demsar (2006): zeros are split evenly between the sides, and one that is left over is ignored."""
    known = GAIN[GAIN != 0]
    for zeros in (0, 2):
        even, odd = (wilcoxon(np.append(known, np.zeros(count))) for count in (zeros, zeros + 1))
        assert (odd.statistic, odd.p_value, odd.zeros) == (even.statistic, even.p_value, zeros + 1)


def test_wilcoxon_agrees_with_scipy_where_scipy_is_exact() -> None:
    random = np.random.default_rng(0)
    for size in (5, 12, 25):
        differences = random.normal(0.3, 1, size)
        theirs = scipy_wilcoxon(differences, mode="exact")
        found = wilcoxon(differences)
        assert (found.statistic, found.p_value) == pytest.approx((theirs.statistic, theirs.pvalue))


def test_wilcoxon_with_ties_counts_all_signs() -> None:
    differences = np.array([1.0, 1, -1, 2, 2, 3, -3])
    ranks = np.array([2.0, 2, 2, 4.5, 4.5, 6.5, 6.5])
    sums = [sum(rank for bit, rank in enumerate(ranks) if code >> bit & 1) for code in range(128)]
    statistic = min(ranks[differences > 0].sum(), ranks[differences < 0].sum())
    assert wilcoxon(differences).p_value == pytest.approx(min(1.0, 2 * np.mean([s <= statistic for s in sums])))
    assert wilcoxon(np.zeros(4)).p_value == 1.0


def test_published_signed_rank_probabilities() -> None:
    # Both published pairs of numbers come out for a region of half width .008.
    mass, win = bayesian_signed_rank(GAIN, rope=0.008, draws=40_000, random=np.random.default_rng(0))
    assert win == pytest.approx((0.0, 0.24, 0.76), abs=0.01)
    assert mass == pytest.approx((0.0, 0.39, 0.61), abs=0.01)


def test_win_is_the_answer_of_baycomp() -> None:
    import baycomp

    # It draws from this generator.
    np.random.seed(0)
    for rope in (0.01, 0.015):
        left, middle, right = baycomp.SignedRankTest.probs(GAIN, np.zeros(14), rope=rope, nsamples=20_000)
        _, win = bayesian_signed_rank(GAIN, rope=rope, draws=20_000, random=np.random.default_rng(0))
        assert win == pytest.approx((right, middle, left), abs=0.02)


def test_signed_rank_is_symmetric_and_certain_where_it_should() -> None:
    mass, win = bayesian_signed_rank(np.full(20, 0.3), rope=0.01, draws=500, random=np.random.default_rng(0))
    assert win.tolist() == [0.0, 0.0, 1.0]
    assert sum(mass) == pytest.approx(1.0)
    nothing, _ = bayesian_signed_rank(np.zeros(8), rope=0.0, draws=50, random=np.random.default_rng(0))
    assert nothing == pytest.approx((0.0, 1.0, 0.0))


def differences_of(mean: float, deviation: float, size: int = 10) -> Array:
    """So many numbers with this mean and standard deviation."""
    shape = np.random.default_rng(0).normal(size=size)
    standard: Array = (shape - shape.mean()) / shape.std(ddof=1)
    return mean + deviation * standard


def chances(differences: Array, share: float, rope: float) -> tuple[float, float, float]:
    """Of a mean difference below, within and above a region around 0."""
    found = over_folds(differences, share)
    above, not_below = (float(found.chance_above(end)[0]) for end in (rope, -rope))
    return 1.0 - not_below, not_below - above, above


def test_published_tests_of_ten_folds() -> None:
    differences = differences_of(0.006694, 0.00771)
    found = over_folds(differences, 0.1)
    assert found.distance()[0] == pytest.approx(1.889, abs=2e-3)
    assert found.p[0] == pytest.approx(0.091, abs=6e-4)
    assert ttest_1samp(differences, 0.0).pvalue == pytest.approx(0.023, abs=6e-4)
    assert chances(differences, 0.1, 0.005) == pytest.approx((0.005, 0.317, 0.678), abs=1e-3)
    (low,), (high,) = found.limits(0.95)
    assert low < 0 < high


def test_correlated_t_agrees_with_baycomp() -> None:
    import baycomp

    differences = np.random.default_rng(3).normal(0.01, 0.02, 10)
    left, middle, right = baycomp.CorrelatedTTest.probs(differences, np.zeros(10), rope=0.01, runs=1)
    assert chances(differences, 0.1, 0.01) == pytest.approx((right, middle, left), abs=1e-6)


def test_repetitions_do_not_make_test_sets_smaller() -> None:
    """Ten times ten folds: a tenth of the samples is tested on each time, not a hundredth."""
    import baycomp

    differences = differences_of(-0.0849, 1.0, 100)
    right, wrong = (over_folds(differences, share) for share in (0.1, 0.01))
    assert (right.p[0], wrong.p[0]) == pytest.approx((0.807, 0.549), abs=2e-3)
    assert right.errors[0] / wrong.errors[0] == pytest.approx(2.45, abs=0.01)
    of_both = [chances(differences, share, 0.1597)[::-1] for share in (0.1, 0.01)]
    assert of_both[0] == pytest.approx((0.242, 0.343, 0.415), abs=2e-3)
    assert of_both[1] == pytest.approx((0.044, 0.656, 0.300), abs=2e-3)
    for found, repetitions in zip(of_both, (10, 1), strict=True):
        witness = baycomp.CorrelatedTTest.probs(differences, np.zeros(100), rope=0.1597, runs=repetitions)
        assert found == pytest.approx(witness, abs=1e-6)


def test_folds_without_spread() -> None:
    assert over_folds(np.zeros(10), 0.1).p[0] == 1.0
    assert np.isnan(over_folds(np.full(10, 0.25), 0.1).p[0])


def test_five_by_two_f() -> None:
    differences = np.random.default_rng(0).normal(0.02, 0.02, (5, 2))
    spread = ((differences[:, 0] - differences[:, 1]) ** 2 / 2).sum()
    statistic, p = five_by_two_f(differences)
    assert statistic == pytest.approx((differences**2).sum() / (2 * spread))
    assert p == pytest.approx(scipy_f.sf(statistic, 10, 5))
    assert five_by_two_f(differences[:, ::-1])[0] == pytest.approx(statistic)
    assert five_by_two_f(np.zeros((5, 2))) == (0.0, 1.0)


def test_five_by_two_f_by_hand() -> None:
    """Variances .02^2 / 2 of each repetition sum to .001, squares to 5 (.03^2 + .01^2) = .005: F = .005 / .002."""
    statistic, p = five_by_two_f(np.array([[0.03, 0.01]] * 5))
    assert statistic == pytest.approx(2.5)
    assert p == pytest.approx(scipy_f.sf(2.5, 10, 5))


def test_five_by_two_f_without_spread_is_no_certainty() -> None:
    """Differences that are equal but for rounding, as those of the corrected t test."""
    equal = np.array([[0.8 - 0.7, 0.9 - 0.8]] * 5)
    assert np.isnan(five_by_two_f(equal)).all()
    assert np.isnan(over_folds(equal.ravel(), 0.5).p[0])


def test_cliques_are_maximal_and_need_not_be_neighbours() -> None:
    close = np.abs(np.subtract.outer([1.0, 1.5, 2.5, 4.0], [1.0, 1.5, 2.5, 4.0])) < 1.6
    assert cliques(close) == [(0, 1, 2), (2, 3)]
    apart = np.eye(3, dtype=bool)
    apart[0, 2] = apart[2, 0] = True
    assert cliques(apart) == [(0, 2)]
    assert cliques(np.eye(3, dtype=bool)) == []
    assert cliques(np.ones((4, 4), dtype=bool)) == [(0, 1, 2, 3)]
