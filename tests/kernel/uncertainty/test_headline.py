"""The closed-form intervals of a report."""

import warnings
from itertools import chain

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from app.kernel.matrix.table import AdditiveGradient, Table, additive_variance, stack
from app.kernel.metrics.card import Mean, Scale, Scope
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.closed_forms import Headlines, Method, OverallInterval
from app.kernel.uncertainty.designs import Given, Independent, NoLimits, catalogue_rates, gradients_of, headline_metrics
from app.kernel.uncertainty.intervals import (
    independent,
    jeffreys,
    limits_around,
    mean_limits,
    share_limits,
    two_sided_z,
    wilson,
)
from app.kernel.uncertainty.simulation import RowPosterior
from tests.bank import each
from tests.kernel.uncertainty.resampled import posterior_intervals

FOUR = np.array([[800, 0, 0, 0], [0, 600, 0, 0], [0, 0, 500, 0], [40, 24, 20, 16]])
GRADIENTS = {
    metric.key: gradient
    for metric in chain(*headline_metrics())
    if (gradient := metric.card.inference.gradient) is not None
}
SMOOTH = {metric.key: metric for metric in headline_metrics().smooth}


def overall(counts: Array, level: float = 0.95) -> dict[str, OverallInterval]:
    return {interval.key: interval for interval in Headlines(Independent(Table(counts)), level).overall[0]}


def test_the_matrix_with_one_weak_class() -> None:
    found = overall(FOUR)
    assert (found["h_mean"].low, found["h_mean"].high) == pytest.approx((0.3036, 0.5596), abs=5e-5)
    assert found["h_mean"].method == Method.MOVER
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
    rates = Headlines(Independent(table)).rates
    declared = [
        metric.key
        for metric in catalogue().of_matrices.of_scope(Scope.CLASS)
        if metric.card.inference.proportion is not None and metric.card.inference.proportion.is_plain
    ]
    overlaps = [one.key for one in catalogue().of_matrices.metrics if one.card.inference.overlap is not None]
    assert overlaps == ["f1", "jaccard"]
    assert list(catalogue_rates().keys) == declared + overlaps
    for row, key in enumerate(catalogue_rates().keys):
        values = catalogue().of_matrices.by_name[key](table)
        assert np.all((rates[0][row] <= values) & (values <= rates[1][row])), key
    given = dict(zip(catalogue_rates().keys, catalogue_rates().given, strict=True))
    assert given["precision"] is Given.PREDICTED
    assert given["npv"] is Given.PREDICTED
    assert given["recall"] is Given.ACTUAL
    assert given["prevalence"] is Given.SAMPLES


@pytest.mark.parametrize(("right", "missed", "false"), [(40, 10, 5), (0, 3, 4), (7, 0, 0)])
def test_f1_has_the_limits_of_the_overlap_that_it_follows_from(right: int, missed: int, false: int) -> None:
    """Wilson's, by scipy, for TP of TP + FN + FP."""
    rates = Headlines(Independent(Table(np.array([[right, missed], [false, 50]])))).rates
    ends = binomtest(right, right + missed + false).proportion_ci(0.95, method="wilson")
    jaccard, f1 = (catalogue_rates().keys.index(key) for key in ("jaccard", "f1"))
    expected = np.array([ends.low, ends.high])
    for place, limits in ((jaccard, expected), (f1, 2 * expected / (1 + expected))):
        found = [rates[0][place, 0], rates[1][place, 0]]
        np.testing.assert_allclose(found, limits, rtol=1e-12, atol=1e-12)


def test_rates_without_denominator_are_nan() -> None:
    counts = np.array([[5, 0, 1], [0, 0, 0], [2, 0, 3]])
    rates = Headlines(Independent(Table(counts))).rates
    position = {key: row for row, key in enumerate(catalogue_rates().keys)}
    assert np.isnan(rates[0][position["recall"], 1])
    assert np.isnan(rates[1][position["precision"], 1])
    assert np.isfinite(rates[0][position["recall"], [0, 2]]).all()


def test_an_empty_class_leaves_no_mean_of_recalls() -> None:
    found = overall(np.array([[5, 0, 1], [0, 0, 0], [2, 0, 3]]))
    for key in ("balanced_accuracy", "g_mean", "h_mean", "macro_f1"):
        assert found[key].refusal is NoLimits.UNDEFINED
        assert np.isnan(found[key].low)
    assert found["mcc"].refusal is None


def test_a_recall_of_zero_stands_at_its_upper_limit() -> None:
    found = overall(np.array([[0, 20], [5, 35]]))
    assert found["h_mean"].low == 0.0
    assert found["g_mean"].low == 0.0
    assert found["balanced_accuracy"].low > 0.0
    rates, low, high = np.array([0.0, 0.875]), np.array([0.0, 0.75]), np.array([0.1166, 0.95])
    sizes = np.array([1000.0, 1000.0])
    ends = mean_limits(rates, low, high, sizes)
    assert ends[2, 1] == pytest.approx(2 / (1 / 0.1166 + 1 / 0.95))
    assert ends[1, 1] == pytest.approx(np.sqrt(0.1166 * 0.95))
    assert ends[0, 0] == pytest.approx(0.875 / 2 - 0.125 / 2)
    just_above = mean_limits(np.array([1e-7, 0.875]), np.array([0.0, 0.75]), high, sizes)
    assert just_above[2, 1] < ends[2, 1] < 1.01 * just_above[2, 1]


def test_several_recalls_of_zero_stand_at_their_upper_limits() -> None:
    rates, low, high = np.array([[0.0, 0.0, 0.5], [0.0, 0.0, 0.4], [0.2, 0.1, 0.5]])
    ends = mean_limits(rates, low, high, np.full(3, 1000.0))
    assert ends[2].tolist() == pytest.approx([0.0, 3 / (5 + 10 + 2)])
    assert ends[1].tolist() == pytest.approx([0.0, (0.2 * 0.1 * 0.5) ** (1 / 3)])


def test_a_class_without_a_share_has_no_part_in_limits_of_accuracy_at_other_shares() -> None:
    rates, sizes, shares = np.array([0.9, 0.7, 0.4]), np.array([20.0, 30.0, 10.0]), np.array([0.3, 0.7, 0.0])
    low, high = jeffreys(rates * sizes, sizes)
    whole, two = (share_limits(rates[:k], low[:k], high[:k], sizes[:k], shares[:k], 0.95, independent) for k in (3, 2))
    assert whole.tolist() == pytest.approx(two.tolist(), rel=1e-12)


@pytest.mark.parametrize(
    ("classes", "size"),
    [(35, 25), *(pytest.param(*one, marks=pytest.mark.slow) for one in ((3, 25), (5, 5), (10, 25), (35, 100)))],
)
def test_means_over_many_small_classes_hold_the_truth(classes: int, size: int) -> None:
    """By MOVER alone H is held in 43 to 94 of 100 cases over 35 classes of 25 samples."""
    rng = np.random.default_rng(4)
    for recalls in (np.full(classes, 0.6), np.full(classes, 0.97), np.linspace(0.2, 0.99, classes)):
        sizes = np.full((1000, classes), float(size))
        hits = rng.binomial(size, recalls, sizes.shape).astype(float)
        ends = mean_limits(hits / sizes, *jeffreys(hits, sizes), sizes)
        truth = [recalls.mean(), np.exp(np.log(recalls).mean()), 1.0 / (1.0 / recalls).mean()]
        for mean, value in zip(Mean, truth, strict=True):
            low, high = ends[mean]
            # Where a recall is 0, so are G and H, and their limits are another question.
            drawn = hits.all(axis=-1) if mean is not Mean.ARITHMETIC else np.full(1000, fill_value=True)
            assert ((low <= value) & (value <= high))[drawn].mean() > 0.9, (mean, recalls[0])
            assert 0.0 <= low.min() <= high.max() <= 1.0


def test_mover_works_on_batches() -> None:
    rng = np.random.default_rng(0)
    rates = rng.uniform(0.2, 0.9, (4, 5, 3))
    rates[1, 2, 0] = 0.0
    rates[3, 4, 1] = np.nan
    # Some are of many small classes, and some are not.
    sizes = rng.choice([5.0, 500.0], (4, 5, 1)) * np.ones(3)
    ends = mean_limits(rates, np.maximum(rates - 0.1, 0), rates + 0.05, sizes)
    assert ends.shape == (3, 2, 4, 5)
    for where in np.ndindex(4, 5):
        single = mean_limits(rates[where], np.maximum(rates[where] - 0.1, 0), rates[where] + 0.05, sizes[where])
        np.testing.assert_allclose(ends[(..., *where)], single, rtol=1e-12)


def test_limits_of_means_hold_the_means_where_errors_cancel() -> None:
    """Three rates of a few samples each, whose sum varies a fifth as much as if they were independent."""
    rates, sizes = np.array([1 / 3, 1 / 2, 1 / 3]), np.full(3, 4.0)
    limits = wilson(rates * sizes, sizes)
    ends = mean_limits(rates, *limits, sizes, spread=lambda moved: 0.2 * independent(moved))
    for mean, value in zip(Mean, (7 / 18, 18 ** (-1 / 3), 3 / 8), strict=True):
        low, high = ends[mean]
        assert low <= value <= high, mean


@pytest.mark.parametrize(
    "counts", [np.diag([10, 20, 30]), np.array([[0, 10], [10, 0]]), np.diag([50, 50]), np.diag([20] * 10)]
)
def test_where_nothing_varies_limits_are_those_of_the_recalls(counts: Array) -> None:
    """The posterior, which draws the recalls themselves, is the witness."""
    found = overall(counts)
    asked = [metric.compute for metric in SMOOTH.values()]
    drawn = posterior_intervals(RowPosterior(counts.astype(float)), asked, seed=1, draws=20_000)
    for key, summary in zip(SMOOTH, drawn, strict=True):
        assert found[key].method == Method.MOVER
        assert found[key].given is Given.ACTUAL
        assert (found[key].low, found[key].high) == pytest.approx((summary.low[0], summary.high[0]), abs=0.035), key
        assert found[key].low <= summary.estimate[0] <= found[key].high


def test_what_the_class_counts_decide_has_no_limits() -> None:
    found = overall(np.array([[5, 5], [0, 0]]))["cohen_kappa"]
    assert (found.refusal, np.isnan(found.low)) == (NoLimits.DEGENERATE, True)


def exact_coverage(sizes: tuple[int, int], recalls: tuple[float, float]) -> dict[str, float]:
    """How often limits hold the truth with two classes of these sizes: over all outcomes, where there is a value."""
    first, second = (np.arange(size + 1) for size in sizes)
    hits = np.array([(one, other) for one in first for other in second])
    counts = np.array([[[x, sizes[0] - x], [sizes[1] - y, y]] for x, y in hits], dtype=float)
    chance = np.outer(*(binom.pmf(np.arange(n + 1), n, p) for n, p in zip(sizes, recalls, strict=True))).ravel()
    rows = np.array([[recalls[0], 1 - recalls[0]], [1 - recalls[1], recalls[1]]])
    truth = Table(rows * np.array(sizes)[:, None])
    values = {metric.key: float(metric(truth)) for metric in SMOOTH.values()}
    held, defined = dict.fromkeys(SMOOTH, 0.0), dict.fromkeys(SMOOTH, 0.0)
    for intervals, weight in zip(Headlines(Independent(Table(counts[:, None]))).overall, chance, strict=True):
        for one in intervals:
            if one.key in SMOOTH and one.refusal is not NoLimits.UNDEFINED:
                defined[one.key] += weight
                held[one.key] += weight * (one.low <= values[one.key] <= one.high)
    return {key: held[key] / defined[key] for key in SMOOTH}


@pytest.mark.slow
@each("recalls", [(0.8, 0.5), (0.95, 0.6), (0.9, 0.2), (0.99, 0.8)])
@each("sizes", [(50, 2), (50, 4), (100, 8), (20, 20)])
def test_limits_hold_the_truth_with_a_class_of_a_few_samples(
    sizes: tuple[int, int], recalls: tuple[float, float]
) -> None:
    for key, coverage in exact_coverage(sizes, recalls).items():
        assert coverage > 0.92, key


def test_a_class_that_shows_no_spread_only_widens_limits() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        counts = rng.integers(0, 12, (3, 3)).astype(float)
        counts[2] = (0, 0, rng.integers(1, 6))
        table, found = Table(counts), overall(counts)
        gradients = gradients_of([*SMOOTH.values()], table)
        errors = two_sided_z(0.95) * np.sqrt(additive_variance(table, gradients))
        for metric, error in zip(SMOOTH.values(), errors.tolist(), strict=True):
            low, high = metric.card.range
            assert low is not None
            assert high is not None
            plain = limits_around(metric(table), np.asarray(error), Scale.LOGIT, low, high)
            if not np.isnan(plain[0]):
                assert found[metric.key].low < plain[0] < plain[1] < found[metric.key].high + 1e-12


@pytest.mark.parametrize("counts", [np.zeros((3, 3)), np.array([[5, 0], [0, 0]]), np.array([[5, 5], [0, 0]])])
def test_degenerate_matrices_neither_warn_nor_fail(counts: Array) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for interval in Headlines(Independent(Table(counts))).overall[0]:
            assert (interval.refusal is None) == (not np.isnan(interval.low))


def full(gradient: AdditiveGradient) -> Array:
    """A gradient cell by cell, (K, K)."""
    return gradient.rows[:, None] + gradient.columns[None] + np.diag(gradient.diagonal)


@pytest.mark.parametrize("key", GRADIENTS)
def test_closed_gradients_equal_central_differences(key: str) -> None:
    rng = np.random.default_rng(3)
    counts = rng.integers(1, 40, (4, 4)).astype(float)
    n = counts.sum()
    closed = full(GRADIENTS[key](Table(counts)))
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
        cells = full(gradient(table))
        expected = ((shares * cells**2).sum() - (shares * cells).sum() ** 2) / counts.sum()
        assert additive_variance(table, stack([gradient(table)]))[0] == pytest.approx(expected, rel=1e-10)


def test_scales_keep_limits_inside_the_range() -> None:
    def logit(value: float, half_width: float, low: float = 0.0, high: float = 1.0) -> list[float]:
        return [float(end) for end in limits_around(np.array(value), np.array(half_width), Scale.LOGIT, low, high)]

    assert logit(0.99, 0.2) == pytest.approx((1 / (1 + np.exp(0.2 / 0.0099) / 99), 1.0), rel=1e-6)
    assert logit(0.5, 1e6) == [0.0, 1.0]
    spread = 0.1 / (1 - 0.98**2)
    fisher_z = np.tanh(np.arctanh(0.98) + np.array([-spread, spread]))
    assert logit(0.98, 0.1, -1.0, 1.0) == pytest.approx(fisher_z)
    assert -1 < fisher_z[0] < 0.98 < fisher_z[1] <= 1
    assert logit(0.0, 1e6, -1.0, 1.0) == [-1.0, 1.0]
    assert np.isnan([logit(1.0, 0.1), logit(0.3, 0.0, -1.0, 1.0)]).all()


def test_published_values_of_the_two_definitions_of_macro_f1() -> None:
    assert float(catalogue().of_matrices.by_name["macro_f1"](Table(FOUR))) == pytest.approx(0.8031, abs=5e-5)
    assert float(catalogue().of_matrices.by_name["macro_f1_of_means"](Table(FOUR))) == pytest.approx(0.8703, abs=5e-5)
