"""Bootstrap and delta method: agreement with each other, with closed forms and with scipy."""

import numpy as np
import pytest
from scipy.stats import bootstrap as scipy_bootstrap

from app.kernel.matrix.table import Table, additive_variance, stack
from app.kernel.metrics.card import Metric, Scale
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty import closed_forms
from app.kernel.uncertainty.draws import Shares, evaluate_draws, generator
from app.kernel.uncertainty.intervals import limits_around, two_sided_z
from app.kernel.uncertainty.simulation import (
    accelerated,
    acceleration,
    item_weights,
)
from tests.kernel.uncertainty.resampled import bootstrap_intervals, resampled_matrices

TWO = np.array([[40.0, 10.0], [5.0, 45.0]])
THREE = np.array([[30.0, 5, 2], [4, 25, 6], [3, 0, 19]])


# Its diagonal and margins are what the published value and standard errors of macro F1, MCC and kappa leave.
PUBLISHED = np.array([[50.0, 5, 5], [6, 30, 4], [3, 4, 13]])


def value(key: str, counts: Array) -> float:
    return float(catalogue().of_matrices.by_name[key](Table(counts)))


SMOOTH = [metric for metric in catalogue().of_matrices.metrics if metric.card.inference.gradient is not None]


@pytest.mark.parametrize("metric", SMOOTH, ids=[metric.key for metric in SMOOTH])
def test_numeric_variance_equals_the_closed_one(metric: Metric[Table]) -> None:
    table, gradient = Table(THREE), metric.card.inference.gradient
    assert gradient is not None
    closed = additive_variance(table, stack([gradient(table)]))
    numeric = closed_forms.variance(THREE, metric.compute)
    np.testing.assert_allclose(numeric, closed, rtol=1e-7)


def test_published_standard_error_of_mcc() -> None:
    assert np.sqrt(closed_forms.variance(TWO, catalogue().of_matrices.by_name["mcc"].compute))[0] == pytest.approx(
        0.0700, abs=5e-5
    )


@pytest.mark.parametrize(
    ("key", "design", "error"),
    [
        ("macro_f1", Shares.SAMPLED, 0.0439),
        ("macro_f1", Shares.OBSERVED, 0.0435),
        ("balanced_accuracy", Shares.SAMPLED, 0.0452),
        ("cohen_kappa", Shares.SAMPLED, 0.0606),
        ("mcc", Shares.SAMPLED, 0.0605),
    ],
)
def test_published_standard_errors_of_three_classes(key: str, design: Shares, error: float) -> None:
    variance = closed_forms.variance(PUBLISHED, catalogue().of_matrices.by_name[key].compute, shares=design)
    assert np.sqrt(variance[0]) == pytest.approx(error, abs=5e-5)


def test_published_intervals_of_macro_f1() -> None:
    functional = catalogue().of_matrices.by_name["macro_f1"].compute
    wald = closed_forms.delta_interval(PUBLISHED, functional)
    assert wald.estimate[0] == pytest.approx(0.7396, abs=5e-5)
    assert (wald.low[0], wald.high[0]) == pytest.approx((0.6536, 0.8257), abs=1e-4)
    for corrected, expected in ((False, (0.647, 0.822)), (True, (0.649, 0.823))):
        found = bootstrap_intervals(PUBLISHED, [functional], seed=1, draws=40_000, corrected=corrected)[0]
        assert (found.low[0], found.high[0]) == pytest.approx(expected, abs=0.003)


def test_published_standard_error_of_binary_f1() -> None:
    assert np.sqrt(closed_forms.variance(TWO, lambda t: t.f1))[1] == pytest.approx(0.0365, abs=5e-5)


def test_the_elementwise_product_of_another_library_would_give_another_error() -> None:
    """diag(p) - p * p for diag(p) - p p^T: 0.0441 in the place of 0.0365."""
    shares = (TWO / TWO.sum()).ravel()
    true, false = shares[3], shares[1] + shares[2]
    gradient = np.array([0.0, -2 * true, -2 * true, 2 * false]) / (2 * true + false) ** 2
    for covariance, error in (
        (np.diag(shares) - shares * shares.T, 0.0441),
        (np.diag(shares) - np.outer(shares, shares), 0.0365),
    ):
        assert (gradient @ covariance @ gradient / TWO.sum()) ** 0.5 == pytest.approx(error, abs=5e-5)


def test_item_weights_keep_every_stratum_and_make_the_bootstrap() -> None:
    strata = np.repeat([0, 1, 1, 2], 10)
    weights = np.concatenate(list(item_weights(strata, draws=3000, random=generator(0))))
    assert weights.shape == (3000, 40)
    for stratum in range(3):
        assert set(weights[:, strata == stratum].sum(axis=1)) == {float((strata == stratum).sum())}
    assert weights.mean() == 1.0
    assert weights[:, 12].var() == pytest.approx(1 - 1 / 20, rel=0.1)


def test_accuracy_and_recall_have_binomial_variances() -> None:
    accuracy = closed_forms.variance(THREE, lambda t: t.accuracy)
    n, p = THREE.sum(), value("accuracy", THREE)
    np.testing.assert_allclose(accuracy, p * (1 - p) / n, rtol=1e-8)
    for design in Shares:
        recall, rows = np.diag(THREE) / THREE.sum(1), THREE.sum(1)
        found = closed_forms.variance(THREE, lambda t: t.recall, shares=design)
        np.testing.assert_allclose(found, recall * (1 - recall) / rows, rtol=1e-8)
    stratified = closed_forms.variance(THREE, lambda t: t.accuracy, shares=Shares.OBSERVED)
    recall, rows = np.diag(THREE) / THREE.sum(1), THREE.sum(1)
    np.testing.assert_allclose(stratified, (rows * recall * (1 - recall)).sum() / n**2, rtol=1e-8)


def test_fixed_class_counts_never_vary_more() -> None:
    for key in ("macro_f1", "mcc", "cohen_kappa", "accuracy"):
        functional = catalogue().of_matrices.by_name[key].compute
        fixed = closed_forms.variance(THREE, functional, shares=Shares.OBSERVED)
        assert fixed[0] <= closed_forms.variance(THREE, functional)[0] * (1 + 1e-9)


def test_counts_of_degree_one_vary_like_multinomial_counts() -> None:
    found = closed_forms.variance(THREE, lambda t: t.tp)
    tp, n = np.diag(THREE), THREE.sum()
    np.testing.assert_allclose(found, tp * (1 - tp / n), rtol=1e-8)


def test_a_perfect_matrix_has_no_variance() -> None:
    perfect = np.diag([10.0, 20.0, 30.0])
    assert closed_forms.variance(perfect, catalogue().of_matrices.by_name["macro_f1"].compute).tolist() == [0.0]


def test_sensitivities_of_a_ratio_sum_to_zero() -> None:
    (moves,) = closed_forms.moves_in_cells(THREE, catalogue().of_matrices.by_name["macro_f1"].compute)
    assert np.flatnonzero(moves).tolist() == np.flatnonzero(THREE).tolist()
    assert moves.sum() == pytest.approx(0.0, abs=1e-10)


def test_scales() -> None:
    estimate, error = np.array([0.95, 0.5, 1.0, 0.5]), np.array([0.05, 0.1, 0.1, 0.0])
    z = two_sided_z(0.95)
    low, high = limits_around(estimate, z * error, Scale.LOGIT, 0.0, 1.0)
    assert 0 < low[0] < 0.95 < high[0] < 1
    assert low[1] + high[1] == pytest.approx(1.0)
    assert np.isnan(low[2:]).all()
    wald = limits_around(estimate, z * error, Scale.LINEAR, 0.0, 1.0)
    assert wald[1][0] == 1.0
    assert np.isnan(wald[0][3])
    found = limits_around(np.array([0.8]), np.array([0.1 * z]), Scale.LOGIT, -1.0, 1.0)
    center, spread = np.arctanh(0.8), 1.959964 * 0.1 / (1 - 0.64)
    assert (found[0][0], found[1][0]) == pytest.approx((np.tanh(center - spread), np.tanh(center + spread)), rel=1e-5)
    log = limits_around(np.array([8.0]), np.array([2.0 * z]), Scale.LOG)
    assert log[0][0] * log[1][0] == pytest.approx(64.0)
    assert closed_forms.scale_for(0.0, 1.0) is Scale.LOGIT
    assert closed_forms.scale_for(-1.0, 1.0) is Scale.LOGIT
    assert closed_forms.scale_for(0.0, None) is Scale.LOG
    assert closed_forms.scale_for(None, None) is Scale.LINEAR


def test_bootstrap_and_delta_method_agree() -> None:
    functionals = [catalogue().of_matrices.by_name[key].compute for key in ("macro_f1", "mcc", "accuracy")]
    for design in Shares:
        drawn = resampled_matrices(THREE * 4, draws=20_000, seed=0, shares=design)
        for values, functional in zip(evaluate_draws([drawn], functionals), functionals, strict=True):
            variance = closed_forms.variance(THREE * 4, functional, shares=design)
            assert values.std() == pytest.approx(np.sqrt(variance[0]), rel=0.03)


def test_resamples_keep_what_they_should() -> None:
    counts = np.array([[7.0, 0, 1], [0, 0, 0], [3, 2, 9]])
    plain = resampled_matrices(counts, draws=300, seed=0)
    assert set(plain.sum((1, 2))) == {22.0}
    assert not plain[:, counts == 0].any()
    rows = resampled_matrices(counts, draws=300, seed=0, shares=Shares.OBSERVED)
    np.testing.assert_array_equal(rows.sum(-1), np.broadcast_to(counts.sum(-1), (300, 3)))
    assert not rows[:, counts == 0].any()


def test_bca_agrees_with_scipy() -> None:
    truth, prediction = (np.repeat(index.ravel(), THREE.ravel().astype(int)) for index in np.indices((3, 3)))

    def macro_f1(y: Array, x: Array, axis: int = -1) -> Array:
        cells = np.stack([(y * 3 + x == cell).sum(axis=axis) for cell in range(9)], axis=-1)
        return catalogue().of_matrices.by_name["macro_f1"](Table(cells.reshape(*cells.shape[:-1], 3, 3)))

    theirs = scipy_bootstrap(
        (truth, prediction), macro_f1, paired=True, n_resamples=9999, method="BCa", rng=np.random.default_rng(0)
    ).confidence_interval
    functional = catalogue().of_matrices.by_name["macro_f1"].compute
    values = evaluate_draws([resampled_matrices(THREE, draws=20_000, seed=1)], [functional])[0]
    skew = acceleration(THREE, functional)
    found = accelerated(skew, values[:, None], np.array([value("macro_f1", THREE)]))
    assert (found.low[0], found.high[0]) == pytest.approx((theirs.low, theirs.high), abs=0.006)


def test_acceleration_is_the_skewness_of_the_jackknife() -> None:
    counts = np.array([[4.0, 1.0], [2.0, 3.0]])
    items = [(i, j) for i in range(2) for j in range(2) for _ in range(int(counts[i, j]))]
    left = []
    for i, j in items:
        rest = counts.copy()
        rest[i, j] -= 1
        left.append(value("macro_f1", rest))
    centered = np.mean(left) - np.array(left)
    expected = (centered**3).sum() / (6 * (centered**2).sum() ** 1.5)
    assert acceleration(counts, catalogue().of_matrices.by_name["macro_f1"].compute)[0] == pytest.approx(
        expected, rel=1e-9
    )
    # Within the first class, a recall is a mean of 4 ones and 1 zero.
    stratified = acceleration(counts, catalogue().of_matrices.by_name["recall"].compute, stratified=True)
    assert stratified[0] == pytest.approx((4 * 0.04**3 - 0.16**3) / (6 * (4 * 0.04**2 + 0.16**2) ** 1.5))


def test_bca_takes_what_differs_by_rounding_for_equal() -> None:
    """How many replicates are below the estimate must not depend on how a processor rounds: many equal it."""
    random = np.random.default_rng(3)
    exact = np.concatenate([np.full(120, 0.02), random.uniform(0.0, 0.04, 180)])
    rounded = exact * (1.0 + random.choice([-2e-16, 0.0, 2e-16], exact.size))
    one, other = (accelerated(np.array([0.05]), draws[:, None], np.array([0.02])) for draws in (exact, rounded))
    assert (one.low[0], one.high[0]) == pytest.approx((other.low[0], other.high[0]), rel=1e-12)


def test_bca_without_two_sides_has_no_limits() -> None:
    found = accelerated(np.zeros(2), np.ones((50, 2)) * [1.0, np.nan], np.array([2.0, 1.0]))
    assert np.isnan(found.low).all()
    assert np.isnan(found.high).all()
