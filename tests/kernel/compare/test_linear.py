"""Differences of runs from the influence of every sample, beside scipy, DeLong's test and every possible pairing."""

import itertools

import numpy as np
import pytest
from scipy import stats

from app.domain.expressions.expressions import parse
from app.kernel.compare.linear import LinearRuns, hits_of, join_runs, linearised
from app.kernel.compare.paired.tests import ChiSquared
from app.kernel.metrics.card import Inputs
from app.kernel.numerics.arrays import Array
from app.kernel.samples.influence import LinearMethod
from app.kernel.samples.losses import Codes
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.draws import generator
from app.kernel.uncertainty.influence import Influences, Linearisation
from tests.kernel.delong import area_difference, delong, equal_areas

LEVEL = 0.95


def problem(size: int, classes: int, seed: int, runs: int = 2) -> tuple[Codes, list[Array]]:
    """Classes, and the probabilities of runs that have much in common."""
    random = np.random.default_rng(seed)
    y = np.arange(size) % classes
    shared = np.eye(classes)[y] + random.normal(size=(size, classes))
    masses = [np.exp(shared + 0.6 * random.normal(size=shared.shape)) for _ in range(runs)]
    return y, [mass / mass.sum(axis=1, keepdims=True) for mass in masses]


def linear(text: str, y: Codes, probabilities: Array) -> list[Linearisation] | None:
    labels = [str(code) for code in range(probabilities.shape[1])]
    expression = parse(text, labels, None, inputs=frozenset(Inputs))
    return linearised(expression, Influences(Scores(y, probabilities)))


def joined(text: str, y: Codes, runs: list[Array], *, paired: bool = True, same_items: bool = False) -> LinearRuns:
    parts = []
    for run in runs:
        found = linear(text, y, run)
        assert found is not None
        parts.append(found[0])
    return join_runs(parts, [y] * len(runs), paired=paired, same_items=same_items)


def read(runs: LinearRuns, first: int = 0, second: int = 1) -> tuple[float, float, float]:
    """Limits and p."""
    found = runs.difference(first, second)
    low, high = found.limits(LEVEL)
    return float(low[0]), float(high[0]), float(found.p[0])


def test_an_area_has_delongs_test() -> None:
    y, runs = problem(120, 2, 0, runs=3)
    expected = delong(y == 1, np.stack([run[:, 1] for run in runs]))
    found = joined("roc_auc@1", y, runs)
    np.testing.assert_allclose(found.values, expected.areas, rtol=1e-12)
    np.testing.assert_allclose(found.covariance, expected.covariance, rtol=1e-9)
    for first, second in itertools.combinations(range(3), 2):
        theirs, mine = area_difference(expected, first, second), read(found, first, second)
        assert mine == pytest.approx((theirs.low, theirs.high, theirs.p))
    mine_of_all = found.equality()
    assert (mine_of_all.statistic, mine_of_all.freedom, mine_of_all.p) == pytest.approx(equal_areas(expected))
    assert joined("roc_auc@1", y, [runs[0], runs[0]]).equality() == ChiSquared(0.0, 0, 1.0)


def test_a_mean_loss_has_the_paired_t_test() -> None:
    y, (first, second) = problem(60, 3, 1)
    losses = [-np.log(run[np.arange(60), y]) for run in (first, second)]
    theirs = stats.ttest_rel(*losses)
    mine = read(joined("log_loss", y, [first, second]))
    ends = theirs.confidence_interval(LEVEL)
    assert mine == pytest.approx((ends.low, ends.high, theirs.pvalue))


def test_independent_mean_losses_have_welchs_test() -> None:
    y, (first, second) = problem(60, 3, 2)
    losses = [-np.log(run[np.arange(60), y]) for run in (first, second)]
    theirs = stats.ttest_ind(*losses, equal_var=False)
    mine = read(joined("log_loss", y, [first, second], paired=False))
    ends = theirs.confidence_interval(LEVEL)
    assert mine == pytest.approx((ends.low, ends.high, theirs.pvalue))


def test_means_follow_their_parts() -> None:
    """The influence of a sample is what the value loses without it, to first order."""
    y, (first, _) = problem(300, 3, 3)
    less = [Influences(Scores(y[rest], first[rest])) for rest in ~np.eye(300, dtype=bool)]
    for text in ("mean(roc_auc@*)", "gps(roc_auc@*, au_imcp)", "gmean(roc_auc@0, mean_phi@1)"):
        found = linear(text, y, first)
        assert found is not None
        expression = parse(text, ["0", "1", "2"], None, inputs=frozenset(Inputs))
        without = [one[0].value for rest in less if (one := linearised(expression, rest))]
        assert len(without) == 300
        jackknife = 299 / 300 * np.square(np.array(without) - np.mean(without)).sum()
        assert np.square(found[0].influence).sum() == pytest.approx(jackknife, rel=0.05), text


def test_what_has_no_closed_form() -> None:
    y, (first, _) = problem(30, 3, 4)
    for text in ("pr_auc_trapezoid@1", "h_mean", "mean(h_mean, roc_auc@1)", "max(roc_auc@*)", "mean(ks_statistic@*)"):
        assert linear(text, y, first) is None


def test_every_pairing_of_a_few_samples() -> None:
    """The bounds of the covariance are those of all pairings within the classes."""
    y, runs = problem(8, 2, 5)
    found = joined("brier_score", y, runs, paired=False, same_items=True)
    parts = [linear("brier_score", y, run) for run in runs]
    assert parts[0] is not None
    assert parts[1] is not None
    mine, theirs = parts[0][0].influence, parts[1][0].influence
    places = [np.flatnonzero(y == code) for code in (0, 1)]
    products = []
    for orders in itertools.product(*(itertools.permutations(place) for place in places)):
        order = np.empty(8, dtype=int)
        for place, chosen in zip(places, orders, strict=True):
            order[place] = chosen
        products.append(mine @ theirs[order])
    assert found.alike is not None
    assert found.against is not None
    assert found.alike[0, 1] == pytest.approx(max(products))
    assert found.against[0, 1] == pytest.approx(min(products))


def test_draws_have_the_covariance() -> None:
    y, runs = problem(200, 2, 6, runs=3)
    found = joined("roc_auc@1", y, [*runs, runs[0]])
    drawn = found.draw(40_000, generator(0))
    np.testing.assert_allclose(drawn.mean(axis=0), found.values, atol=1e-3)
    np.testing.assert_allclose(np.cov(drawn.T), found.covariance, rtol=0.05, atol=1e-6)
    # Equal runs stay equal.
    np.testing.assert_allclose(drawn[:, 0], drawn[:, 3], atol=1e-9)


def test_draws_of_means_have_the_tails_of_t() -> None:
    y, runs = problem(6, 2, 7)
    found = joined("log_loss", y, runs)
    assert set(found.freedom) == {5}
    gaps = np.subtract(*found.draw(100_000, generator(0)).T)
    low, high = np.quantile(gaps, [0.025, 0.975])
    assert (low, high) == pytest.approx(read(found)[:2], rel=0.05)


def test_identical_runs_and_perfect_ones() -> None:
    y, (first, _) = problem(40, 2, 8)
    same = read(joined("roc_auc@1", y, [first, first]))
    assert np.isnan(same[:2]).all()
    assert same[2] == 1.0
    perfect = [np.where(np.eye(2)[y] == 1, high, 1 - high) for high in (0.9, 0.8)]
    both = joined("roc_auc@1", y, perfect)
    found = read(both)
    assert found[2] == 1.0
    assert np.isnan(found[0])
    # Drawn with the width of Newcombe's interval, and never above 1.
    drawn = both.draw(1000, generator(0))
    assert drawn.max() <= 1.0
    assert drawn.std(axis=0).min() > 0.01
    constant = np.full((40, 2), 0.5)
    assert np.isnan(read(joined("roc_auc@1", y, [perfect[0], constant]))).all()
    assert np.isnan(read(joined("log_loss", y, perfect))).all()


def test_values_that_are_not_finite_have_no_test_and_no_warning() -> None:
    """Such as losses of two runs that are infinite."""
    infinite = LinearRuns(
        np.array([np.inf, np.inf, 1.0]),
        np.full((3, 3), np.inf),
        np.full(3, 9.0),
        (LinearMethod.HALL_T,) * 3,
        np.zeros(3),
        np.zeros(3),
    )
    with np.errstate(all="raise"):
        for first, second in itertools.permutations(range(3), 2):
            assert np.isnan(read(infinite, first, second)).all()


def test_hits_of_a_share() -> None:
    y, (first, _) = problem(50, 4, 9)
    found = linear("top_k_accuracy(k=1)", y, first)
    assert found is not None
    assert found[0].method is LinearMethod.WILSON
    np.testing.assert_array_equal(hits_of(found[0]), first.argmax(axis=1) == y)


def test_areas_without_variance_are_drawn_inside_their_range() -> None:
    y = np.arange(30) % 2
    perfect, flat = np.where(np.eye(2)[y] == 1, 0.9, 0.1), np.full((30, 2), 0.5)
    for text, low, high in (("roc_auc@1", 0.0, 1.0), ("roc_gini@1", -1.0, 1.0)):
        drawn = joined(text, y, [perfect, flat, 1.0 - perfect]).draw(2000, generator(1))
        assert high - 0.01 < drawn[:, 0].max() <= high
        assert low <= drawn[:, 2].min() < low + 0.01
        middle = (low + high) / 2
        assert np.mean(drawn[:, 1] > middle) == pytest.approx(0.5, abs=0.05)
        assert drawn[:, 1].std() > 0.05
