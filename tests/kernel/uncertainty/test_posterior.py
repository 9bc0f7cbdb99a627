"""The posterior of a matrix, the intervals read from its draws, and the published numbers."""

import numpy as np
import pytest
from scipy.stats import beta

from app.kernel.matrix.table import Table
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Combination, Every, Measure, compute
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.closed_forms import at_recalls
from app.kernel.uncertainty.draws import (
    Prior,
    Shares,
    bonferroni_level,
    evaluate_draws,
    generator,
    pseudo_counts,
    quantile_error,
    seed_of,
    summarise,
    tail_ranks,
)
from app.kernel.uncertainty.simulation import RowPosterior

TWO = np.array([[40.0, 10.0], [5.0, 45.0]])
FOUR = np.array([[800.0, 0, 0, 0], [0, 600, 0, 0], [0, 0, 500, 0], [40, 24, 20, 16]])
DRAWS = 40_000


def metric(key: str) -> Measure:
    return Measure(catalogue().of_matrices.by_name[key], {}, None)


def interval(
    counts: Array, key: str, *, prior: Prior = Prior.EDGE, shares: Shares = Shares.OBSERVED, of: int | None = None
) -> tuple[float, float, float]:
    """Low, high and mean over the draws."""
    batches = RowPosterior(counts, prior=prior, shares=shares).batches(DRAWS, generator(7))
    values = evaluate_draws(batches, [catalogue().of_matrices.by_name[key].compute])[0]
    values = values if of is None else values[:, of]
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high), float(values.mean())


def balanced_accuracy_moments(counts: Array, prior: Prior = Prior.EDGE) -> tuple[float, float]:
    """Exact posterior mean and standard deviation of balanced accuracy: recalls are independent Betas."""
    parameters = counts + pseudo_counts(counts, prior)
    a, both = np.diagonal(parameters), parameters.sum(axis=-1)
    recalls = beta(a, both - a)
    return float(recalls.mean().mean()), float(np.sqrt(recalls.var().sum()) / a.size)


@pytest.mark.parametrize(
    ("key", "prior", "expected"),
    [
        ("balanced_accuracy", Prior.EDGE, (0.7755, 0.9120)),
        ("h_mean", Prior.EDGE, (0.7656, 0.9107)),
        ("balanced_accuracy", Prior.UNIFORM, (0.7613, 0.9002)),
    ],
)
def test_published_intervals_of_two_classes(key: str, prior: Prior, expected: tuple[float, float]) -> None:
    assert interval(TWO, key, prior=prior)[:2] == pytest.approx(expected, abs=0.002)


def test_published_values_of_the_weak_class() -> None:
    low, high, _ = interval(FOUR, "h_mean")
    assert (low, high) == pytest.approx((0.297, 0.555), abs=0.004)
    mean, deviation = balanced_accuracy_moments(FOUR)
    assert mean == pytest.approx(0.7894, abs=5e-5)
    assert deviation == pytest.approx(0.0091, abs=1e-4)


def test_published_intervals_with_five_positives() -> None:
    rare = np.array([[90.0, 5.0], [4.0, 1.0]])
    low, high, _ = interval(rare, "h_mean")
    assert (low, high) == pytest.approx((0.013, 0.736), abs=0.006)
    low, high, _ = interval(rare, "precision", shares=Shares.SAMPLED, of=1)
    assert (low, high) == pytest.approx((0.006, 0.54), abs=0.01)
    assert float(Table(rare).precision[1]) == pytest.approx(0.17, abs=5e-3)


def test_exact_moments_agree_with_the_draws() -> None:
    for prior in (Prior.EDGE, Prior.JEFFREYS_RECALL, Prior.UNIFORM):
        mean, deviation = balanced_accuracy_moments(FOUR, prior)
        batches = RowPosterior(FOUR, prior=prior).batches(DRAWS, generator(1))
        values = evaluate_draws(batches, [catalogue().of_matrices.by_name["balanced_accuracy"].compute])[0]
        assert values.mean() == pytest.approx(mean, abs=4 * deviation / DRAWS**0.5)
        assert values.std() == pytest.approx(deviation, rel=0.02)


def test_edge_prior_touches_only_rows_at_the_edge() -> None:
    counts = np.array([[5.0, 0, 0], [2, 3, 0], [4, 1, 0]])
    added = pseudo_counts(counts)
    np.testing.assert_array_equal(added, [[0.5, 0.25, 0.25], [0, 0, 0], [0.25, 0.25, 0.5]])
    assert pseudo_counts(counts, Prior.UNIFORM).sum() == 9
    assert pseudo_counts(counts, Prior.JEFFREYS_RECALL).sum(axis=1).tolist() == [1, 1, 1]
    batch = pseudo_counts(np.array([counts, counts + 1]))
    np.testing.assert_array_equal(batch[0], added)
    assert not batch[1].any()


def test_custom_prior_needs_a_count_for_every_cell() -> None:
    with pytest.raises(ValueError, match="pseudo-count"):
        pseudo_counts(TWO, Prior.CUSTOM)
    with pytest.raises(ValueError, match="pseudo-count"):
        pseudo_counts(TWO, Prior.CUSTOM, -np.ones((2, 2)))
    np.testing.assert_array_equal(pseudo_counts(TWO, Prior.CUSTOM, 2 * np.ones((2, 2))), [[2, 2], [2, 2]])


@pytest.mark.parametrize("shares", [Shares.OBSERVED, Shares.SAMPLED])
def test_mean_matrix_is_the_mean_of_the_draws(shares: Shares) -> None:
    counts = np.array([[5.0, 0, 0, 0], [2, 3, 1, 0], [4, 1, 9, 2], [0, 0, 0, 0]])
    for prior in (Prior.EDGE, Prior.JEFFREYS_RECALL):
        drawn = RowPosterior(counts, prior=prior, shares=shares).matrices(DRAWS, generator(1))
        expected = RowPosterior(counts, prior=prior, shares=shares).mean()
        assert np.all(np.abs(drawn.mean(axis=0) - expected) <= 5 * drawn.std(axis=0) / DRAWS**0.5 + 1e-12)
        assert expected.sum() == pytest.approx(counts.sum())


def test_recalls_of_the_draws_are_betas() -> None:
    batches = RowPosterior(FOUR, prior=Prior.JEFFREYS_RECALL).batches(DRAWS, generator(3))
    recall = evaluate_draws(batches, [lambda t: t.recall])[0]
    for level in (0.05, 0.5, 0.95):
        expected = beta.ppf(level, np.diag(FOUR) + 0.5, FOUR.sum(1) - np.diag(FOUR) + 0.5)
        np.testing.assert_allclose(np.quantile(recall, level, axis=0), expected, atol=0.004)


def test_shares() -> None:
    counts = np.array([[40.0, 10.0], [2.0, 8.0]])
    observed = RowPosterior(counts).matrices(3000, generator(0))
    np.testing.assert_allclose(observed.sum(-1), np.broadcast_to([50.0, 10.0], (3000, 2)))
    sampled = RowPosterior(counts, shares=Shares.SAMPLED).matrices(30000, generator(0))
    np.testing.assert_allclose(sampled.sum((-1, -2)), 60.0)
    assert sampled.sum(-1)[:, 1].mean() == pytest.approx(60 * 10.5 / 61, rel=0.02)
    wanted = np.array([0.99, 0.01])
    given = RowPosterior(counts, given=wanted).matrices(10, generator(0))
    np.testing.assert_allclose(given.sum(-1), np.broadcast_to(60 * wanted, (10, 2)))


def test_shares_of_unknown_classes_are_refused() -> None:
    empty = np.array([[5.0, 1.0], [0.0, 0.0]])
    with pytest.raises(ValueError, match="without samples"):
        next(RowPosterior(empty, given=np.array([0.5, 0.5])).batches(5, generator(0)))


def test_empty_classes_stay_empty_and_have_no_interval() -> None:
    counts = np.array([[5.0, 1, 0], [0, 0, 0], [2, 0, 9]])
    for prior in (Prior.EDGE, Prior.UNIFORM):
        batches = RowPosterior(counts, prior=prior, shares=Shares.SAMPLED).batches(200, generator(0))
        recall, accuracy = evaluate_draws(batches, [lambda t: t.recall, lambda t: t.accuracy])
        assert np.isnan(recall[:, 1]).all()
        assert np.isfinite(accuracy).all()
        with silently():
            estimate = Table(counts).recall
        summary = summarise(recall, estimate)
        assert np.isnan(summary.low[1])
        assert summary.undefined.tolist() == [0, 200, 0]
        assert summary.low[0] < 5 / 6 < summary.high[0]


def test_several_matrices_at_once_are_each_their_own() -> None:
    batch = np.array([TWO, TWO[::-1, ::-1], [[30, 0], [1, 9]]])
    drawn = RowPosterior(batch).matrices(20_000, generator(0))
    assert drawn.shape == (20_000, 3, 2, 2)
    np.testing.assert_allclose(drawn[:, 0].mean(0), TWO, rtol=0.02)
    assert drawn[:, 2, 0, 1].mean() == pytest.approx(30 * 0.5 / 31, rel=0.05)


def test_the_same_seed_gives_the_same_draws_and_batches_do_not_matter() -> None:
    first = RowPosterior(FOUR).matrices(20_000, generator(5))
    again = RowPosterior(FOUR).matrices(20_000, generator(5))
    np.testing.assert_array_equal(first, again)
    assert first.shape == (20_000, 4, 4)


def test_an_expression_is_a_functional() -> None:
    tree = Combination("gps", (Measure(catalogue().of_matrices.by_name["recall"], {}, Every.CLASS), metric("macro_f1")))
    values = evaluate_draws(RowPosterior(FOUR).batches(500, generator(0)), [lambda t: compute(tree, t)])[0]
    assert values.shape == (500,)
    assert 0.2 < values.mean() < 0.8


def test_summary_counts_and_drops_undefined_draws() -> None:
    random = generator(0)
    draws = random.normal(size=(4000, 3))
    draws[:100, 1] = np.nan
    draws[:300, 2] = np.nan
    summary = summarise(draws, np.zeros(3))
    assert summary.undefined.tolist() == [0, 100, 300]
    assert np.isfinite(summary.low[:2]).all()
    assert np.isnan(summary.low[2])
    assert summary.low[1] == pytest.approx(-1.96, abs=0.12)
    assert summary.high[0] == pytest.approx(1.96, abs=0.12)
    assert summary.monte_carlo_error[0] == pytest.approx(2.7 / 4000**0.5, rel=0.05)


def test_an_interval_is_stretched_to_its_estimate() -> None:
    draws = generator(0).uniform(0.2, 0.4, (1000, 2))
    summary = summarise(draws, np.array([0.5, 0.3]))
    assert summary.extended.tolist() == [True, False]
    assert summary.high[0] == 0.5


def test_infinite_draws_make_an_infinite_limit() -> None:
    draws = np.ones((1000, 1))
    draws[:100] = np.inf
    summary = summarise(draws, np.array([1.0]))
    assert summary.high[0] == np.inf
    assert summary.low[0] == 1.0


def test_tails_are_symmetric_ranks() -> None:
    assert tail_ranks(999, 0.95) == (24, 974)
    assert tail_ranks(1, 0.95) == (0, 0)
    # Normal, skewed, constant, infinite and incomplete draws: the limits are order statistics of all of them.
    random = generator(4)
    draws = np.array(
        [random.normal(size=999), random.exponential(size=999) ** 4, np.ones(999), random.normal(size=999)]
    )
    draws[3, ::3] = np.inf
    draws = np.vstack([draws, np.where(random.random(999) < 0.03, np.nan, draws[0])])
    summary = summarise(draws.T, np.median(np.nan_to_num(draws, nan=0.0), axis=1))
    for row, values in enumerate(draws):
        present = np.sort(values[~np.isnan(values)])
        first, last = tail_ranks(present.size, 0.95)
        assert summary.low[row] == present[first]
        assert summary.high[row] == present[last]
    np.testing.assert_allclose(summary.deviation[[0, 1, 2]], draws[:3].std(axis=1, ddof=1))
    assert summary.deviation[4] == pytest.approx(np.nanstd(draws[4], ddof=1))
    assert quantile_error(20_000, 0.95) == pytest.approx(0.0189, abs=1e-4)


def test_level_of_each_of_several_intervals() -> None:
    assert bonferroni_level(0.95, 5) == pytest.approx(0.99)


def test_seeds_come_from_the_content() -> None:
    assert seed_of(TWO, "h_mean", 0.95) == seed_of(TWO.copy(), "h_mean", 0.95)
    assert seed_of(TWO) != seed_of(TWO.T)
    assert seed_of(TWO) != seed_of(TWO.astype(np.int64))
    assert 0 <= seed_of("x") < 2**63


@pytest.mark.parametrize("counts", [FOUR, np.stack([FOUR, FOUR.T + 1.0] * 2)], ids=["one", "several"])
def test_tables_that_know_their_sums_say_what_their_matrices_say(counts: Array) -> None:
    recalls = np.linspace(0.1, 0.9, 20)[:, None] * np.ones(4)
    table = at_recalls(counts, np.arange(4))(recalls)
    whole = Table(table.counts)
    with silently():
        for metric in catalogue().of_matrices.metrics:
            found = metric.compute(table)
            np.testing.assert_allclose(found, metric.compute(whole), rtol=1e-6, atol=1e-9, err_msg=metric.key)
