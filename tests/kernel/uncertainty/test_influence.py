"""Influences against derivatives taken numerically, DeLong, scipy, statsmodels and bootstraps with scikit-learn."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from app.kernel.metrics.card import Scale, Scope
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import Array
from app.kernel.samples.areas import area_variance
from app.kernel.samples.influence import LinearMethod, Strata, WeightedSamples
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.influence import (
    Influences,
    Linearisation,
    LinearLimits,
    effective_samples,
    limits,
    newcombe_area_limits,
    newcombe_variance,
    steadied,
)
from tests.bank import each
from tests.kernel.delong import delong, macro_area
from tests.kernel.probability.problems import Codes, hall, softmax_problem, tied_problem, value
from tests.witnesses import sk

CLOSED = [
    "roc_auc", "roc_gini", "roc_auc_ovr_macro", "roc_auc_ovr_weighted", "roc_auc_ovr_micro", "roc_auc_ovo_macro",
    "roc_auc_ovo_weighted", "top_k_accuracy", "au_imcp", "au_imcp_trapezoid", "au_mcp", "au_mcp_trapezoid", "mean_phi",
    "fraction_correct_certain", "fraction_uncertain", "fraction_incorrect_certain", "log_loss", "brier_score",
    "balanced_log_loss", "balanced_brier_score", "brier_skill_score", "spherical_score",
    "d2_log_loss", "ranked_probability_score", "calibration_intercept", "calibration_slope", "net_benefit_at",
    "minimum_cost", "average_precision", "macro_average_precision", "weighted_average_precision",
    "micro_average_precision", "class_reciprocal_rank", "class_rank_auc",
]  # fmt: skip
Problem = Callable[..., tuple[Codes, Array]]
TRAPEZOIDS = {"au_imcp_trapezoid": "au_imcp", "au_mcp_trapezoid": "au_mcp"}


def class_of(key: str) -> int | None:
    return 1 if catalogue().of_probabilities.by_name[key].card.scope is Scope.CLASS else None


def linearise(
    scores: Scores, key: str, code: int | None = None, *, parameters: dict[str, float] | None = None
) -> Linearisation | None:
    return Influences(scores).of(catalogue().of_probabilities.by_name[key], code, parameters=parameters)


def found(scores: Scores, key: str, code: int | None = None) -> Linearisation:
    linear = linearise(scores, key, class_of(key) if code is None else code)
    assert linear is not None
    return linear


def numbers(limit: LinearLimits | None) -> tuple[float, float]:
    assert limit is not None
    return limit.low, limit.high


def test_which_metrics_have_a_closed_form() -> None:
    scores = Scores(*softmax_problem(40, 3, 0))
    known = [
        m.key for m in catalogue().of_probabilities.metrics if linearise(scores, m.key, class_of(m.key)) is not None
    ]
    assert sorted(known) == sorted(CLOSED)


@each("key", [key for key in CLOSED if key not in TRAPEZOIDS])
@each("problem", [softmax_problem, tied_problem])
@each("classes", [2, 4])
def test_an_influence_is_the_derivative_by_the_weight_of_a_sample(key: str, problem: Problem, classes: int) -> None:
    """The metric with one sample weighing a little more, of every sample, against what is summed for the variance.

    Sums of squares are over n - 1 where derivatives have n, class by class or as a whole.
    """
    size = 120
    scores = Scores(*problem(size, classes, 3))
    linear = found(scores, key)
    step = 1e-4
    weights = np.ones((size, size))
    weights[np.diag_indices(size)] += step
    moved = value(key, scores.with_weights(weights))
    moved = moved if class_of(key) is None else moved[:, 1]
    derivative = (moved - linear.value) / step
    largest = np.abs(derivative).max()
    smallest_class = np.bincount(scores.y).min()
    np.testing.assert_allclose(linear.influence, derivative, atol=1.5 * largest / smallest_class + 1e-9)
    assert abs(linear.influence.sum()) < 1e-10 * max(largest, 1.0)


@pytest.mark.parametrize(("trapezoid", "step"), TRAPEZOIDS.items())
def test_areas_by_trapezoids_have_the_influence_of_the_steps(trapezoid: str, step: str) -> None:
    scores = Scores(*softmax_problem(300, 3, 4))
    first, second = found(scores, trapezoid), found(scores, step)
    np.testing.assert_array_equal(first.influence, second.influence)
    assert first.value == float(value(trapezoid, scores))


@pytest.mark.parametrize("problem", [softmax_problem, tied_problem])
@pytest.mark.parametrize("classes", [2, 4])
def test_areas_of_classes_are_delongs(problem: Problem, classes: int) -> None:
    y, p = problem(300, classes, 5)
    scores = Scores(y, p)
    areas, influence = WeightedSamples(scores).areas
    for code in range(classes):
        theirs = delong(y == code, p[:, code])
        assert areas[code] == pytest.approx(theirs.areas[0], rel=1e-13)
        assert influence[code] @ influence[code] == pytest.approx(theirs.covariance[0, 0], rel=1e-11)
        assert found(scores, "roc_auc", code).variance == pytest.approx(theirs.covariance[0, 0], rel=1e-11)
        assert area_variance(scores.ranking(code)) == pytest.approx(theirs.covariance[0, 0], rel=1e-11)
    theirs_of_all = macro_area(y.astype(np.int64), p[None])[1][0]
    np.testing.assert_allclose(found(scores, "roc_auc_ovr_macro").influence, theirs_of_all, atol=1e-14)


@pytest.mark.parametrize("problem", [softmax_problem, tied_problem])
def test_areas_along_the_cuts_of_a_large_problem(problem: Problem) -> None:
    y, p = problem(5000, 2, 6)
    scores = Scores(y, p)
    for code in (0, 1):
        theirs = delong(y == code, p[:, code])
        assert area_variance(scores.ranking(code)) == pytest.approx(theirs.covariance[0, 0], rel=1e-9)


def test_two_runs_on_the_same_samples_have_delongs_covariance() -> None:
    y, first = softmax_problem(200, 2, 7)
    second = np.clip(first + np.random.default_rng(1).normal(0, 0.1, (200, 1)) * [-1.0, 1.0], 0.0, 1.0)
    both = delong(y == 1, np.stack([first[:, 1], second[:, 1]]))
    ours = [found(Scores(y, p), "roc_auc") for p in (first, second)]
    assert ours[0].influence @ ours[1].influence == pytest.approx(both.covariance[0, 1], rel=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "theirs"),
    [
        ("roc_auc_ovr_macro", lambda y, p: sk.roc_auc_score(y, p, multi_class="ovr")),
        ("roc_auc_ovr_weighted", lambda y, p: sk.roc_auc_score(y, p, multi_class="ovr", average="weighted")),
        ("roc_auc_ovr_micro", lambda y, p: sk.roc_auc_score(y, p, multi_class="ovr", average="micro")),
        ("roc_auc_ovo_macro", lambda y, p: sk.roc_auc_score(y, p, multi_class="ovo")),
        ("roc_auc_ovo_weighted", lambda y, p: sk.roc_auc_score(y, p, multi_class="ovo", average="weighted")),
        ("log_loss", sk.log_loss),
    ],
)
def test_standard_errors_are_those_of_a_bootstrap_with_scikit_learn(
    key: str, theirs: Callable[[Codes, Array], float]
) -> None:
    y, p = softmax_problem(400, 3, 8)
    rng = np.random.default_rng(0)
    replicates = []
    for _ in range(200):
        drawn = rng.integers(0, 400, 400)
        replicates.append(theirs(y[drawn], p[drawn]))
    # 200 replicates know a standard deviation to 5 %.
    assert np.sqrt(found(Scores(y, p), key).variance) == pytest.approx(np.std(replicates, ddof=1), rel=0.16)


def test_mean_losses_have_halls_limits_where_students_are_nearer() -> None:
    y, p = softmax_problem(80, 3, 9)
    squared = ((p - np.eye(3)[y]) ** 2).sum(axis=1)
    for key, losses, level in (("log_loss", -np.log(p[np.arange(80), y]), 0.9), ("brier_score", squared, 0.95)):
        linear = found(Scores(y, p), key)
        assert (linear.method, linear.strata, linear.scale) == (LinearMethod.HALL_T, Strata.WHOLE, Scale.LINEAR)
        parts = (losses - losses.mean()) * stats.sem(losses) / np.sqrt(((losses - losses.mean()) ** 2).sum())
        theirs = hall(losses.mean(), parts, stats.t.ppf((1.0 + level) / 2.0, 79))
        assert numbers(limits(linear, level)) == pytest.approx(theirs, rel=1e-10)


def test_means_that_do_not_lean_have_scipys_t_interval() -> None:
    losses = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    parts = (losses - 0.5) * stats.sem(losses) / np.sqrt(((losses - 0.5) ** 2).sum())
    linear = Linearisation(0.5, parts, method=LinearMethod.HALL_T, freedom=4.0)
    theirs = stats.t.interval(0.95, 4, 0.5, stats.sem(losses))
    assert numbers(limits(linear)) == pytest.approx(theirs, rel=1e-12)


def test_limits_of_a_mean_turn_round_with_it_and_widen_with_the_level() -> None:
    parts = np.random.default_rng(4).exponential(size=12)
    parts -= parts.mean()
    plain, turned = (Linearisation(0.0, one, method=LinearMethod.HALL_T, freedom=11.0) for one in (parts, -parts))
    known = [numbers(limits(plain, level)) for level in (0.05, 0.5, 0.9, 0.99, 0.9999)]
    for (low, high), level in zip(known, (0.05, 0.5, 0.9, 0.99, 0.9999), strict=True):
        assert numbers(limits(turned, level)) == pytest.approx((-high, -low), rel=1e-12)
        assert -low < high
    assert [low for low, _ in known] == sorted((low for low, _ in known), reverse=True)
    assert [high for _, high in known] == sorted(high for _, high in known)


@pytest.mark.parametrize("draw", [np.random.Generator.exponential, lambda random, size: random.beta(0.8, 0.3, size)])
def test_limits_of_a_skewed_mean_hold_on_both_sides(draw: Callable[..., Array]) -> None:
    """Those of Student's t lie wholly on one side of the truth in 7 % and 4 % of these samples."""
    random = np.random.default_rng(8)
    samples = draw(random, size=(2000, 40))
    truth, errors = float(draw(random, size=1_000_000).mean()), np.zeros(2)
    for sample in samples:
        parts = (sample - sample.mean()) / np.sqrt(sample.size * (sample.size - 1))
        low, high = numbers(limits(Linearisation(sample.mean(), parts, method=LinearMethod.HALL_T, freedom=39.0)))
        errors += high < truth, low > truth
    assert (errors / 2000 < 0.037).all()


def test_means_over_the_classes_have_the_freedom_of_welch() -> None:
    """Half the sum of two independent means is as uncertain as half their difference."""
    y, p = softmax_problem(60, 2, 10)
    of_classes = [-np.log(p[y == code, code]) for code in (1, 0)]
    theirs = stats.ttest_ind(*of_classes, equal_var=False)
    away = [(one - one.mean()) / np.sqrt(one.size * (one.size - 1)) / 2.0 for one in of_classes]
    linear = found(Scores(y, p), "balanced_log_loss")
    assert linear.strata is Strata.BY_CLASS
    mean = np.mean([one.mean() for one in of_classes])
    expected = hall(mean, np.concatenate(away), stats.t.ppf(0.975, theirs.df))
    assert numbers(limits(linear)) == pytest.approx(expected, rel=1e-10)


def test_the_mean_of_one_class_knows_only_its_members() -> None:
    y, p = softmax_problem(90, 3, 11)
    phi = 1.0 - np.sqrt(1.0 - np.sqrt(p[y == 2, 2]))
    parts = (phi - phi.mean()) / np.sqrt(phi.size * (phi.size - 1))
    expected = hall(phi.mean(), parts, stats.t.ppf(0.975, phi.size - 1))
    assert numbers(limits(found(Scores(y, p), "mean_phi", 2))) == pytest.approx(expected, rel=1e-10)


def test_shares_have_wilsons_interval() -> None:
    from statsmodels.stats.proportion import proportion_confint

    y, p = softmax_problem(90, 4, 12)
    right = int(sum(y[i] in np.argsort(-p[i])[:2] for i in range(90)))
    linear = found(Scores(y, p), "top_k_accuracy")
    assert linear.method is LinearMethod.WILSON
    assert numbers(limits(linear)) == pytest.approx(proportion_confint(right, 90, method="wilson"), rel=1e-12)
    assert linear.variance == pytest.approx(right * (90 - right) / 90**2 / 89, rel=1e-12)


def test_naming_as_many_classes_as_there_are_is_no_achievement() -> None:
    """With k = K the share is 1 by definition, and Wilson's interval of it would mean nothing."""
    scores = Scores(*softmax_problem(90, 4, 12))
    linear = linearise(scores, "top_k_accuracy", parameters={"k": 4.0})
    assert linear is not None
    assert linear.value == 1.0
    assert limits(linear) is None


def test_limits_of_areas_keep_to_their_range() -> None:
    y, p = softmax_problem(240, 2, 13, lift=1.5)
    linear = found(Scores(y, p), "roc_auc")
    low, high = numbers(limits(linear, 0.999))
    assert 0.0 < low < linear.value < high < 1.0
    error = np.sqrt(linear.variance) / (linear.value * (1.0 - linear.value))
    center, z = np.log(linear.value / (1.0 - linear.value)), stats.norm.ppf(0.9995)
    assert (low, high) == pytest.approx(tuple(1 / (1 + np.exp(-(center + s * z * error))) for s in (-1, 1)), rel=1e-12)
    gini = numbers(limits(found(Scores(y, p), "roc_gini"), 0.999))
    assert gini == pytest.approx((2 * low - 1, 2 * high - 1), rel=1e-12)


def test_limits_of_areas_of_few_members_are_seldom_above_the_truth() -> None:
    """Those of DeLong's variance alone are in 9 % of these samples."""
    random, above = np.random.default_rng(6), 0
    for _ in range(800):
        scores = random.normal(size=200)
        scores[:10] += 1.7
        limit = limits(found(Scores.of_scores((np.arange(200) < 10).astype(np.intp), scores), "roc_auc"))
        above += numbers(limit)[0] > stats.norm.cdf(1.7 / np.sqrt(2.0))
    assert above / 800 < 0.035


def test_few_members_make_the_variance_of_an_area_no_smaller() -> None:
    of_few, known = steadied(0.9, 1e-4, 10.0, 200.0), newcombe_variance(0.9, 10.0, 200.0)
    assert of_few == pytest.approx(1e-4 ** (1 / 3) * known ** (2 / 3), rel=1e-12)
    assert steadied(0.9, 2.0 * known, 10.0, 200.0) == 2.0 * known
    assert steadied(0.9, 1e-4, 30.0, 200.0) == steadied(0.9, 1e-4, 200.0, 30.0) == 1e-4
    assert steadied(0.9, 0.0, 10.0, 200.0) == 0.0


def test_a_perfect_order_has_newcombes_limits() -> None:
    y = np.repeat([0, 1], [15, 10])
    scores = Scores.of_scores(y, np.arange(25.0))
    limit = limits(found(scores, "roc_auc"))
    assert limit is not None
    assert limit.method is LinearMethod.NEWCOMBE
    assert (limit.low, limit.high) == pytest.approx(newcombe_area_limits(1.0, 10, 15))
    assert limit.low == pytest.approx(0.832, abs=5e-4)
    assert numbers(limits(found(scores, "roc_auc_ovr_macro"))) == (limit.low, limit.high)


def test_limits_of_losses_stop_at_the_best() -> None:
    """One confident mistake among ten: the t interval would reach below 0."""
    p = np.full(10, 0.999)
    p[0] = 1e-6
    scores = Scores(np.ones(10, dtype=np.intp), np.column_stack([1 - p, p]))
    linear = found(scores, "log_loss")
    assert numbers(limits(linear))[0] == 0.0
    assert effective_samples(linear) < 1.3
    assert effective_samples(found(Scores(*softmax_problem(400, 3, 1)), "au_mcp")) > 100


def test_what_is_undefined_has_no_limits() -> None:
    scores = Scores(np.zeros(5, dtype=np.intp), np.full((5, 2), 0.5))
    linear = found(scores, "roc_auc")
    assert np.isnan(linear.value)
    assert np.isnan(linear.influence).all()
    assert linear.method is LinearMethod.DELONG_LOGIT
    assert limits(linear) is None
    ruled_out = Scores(np.array([0, 1]), np.array([[0.0, 1.0], [0.5, 0.5]]))
    infinite = linearise(ruled_out, "log_loss", parameters={"clip": 0.0})
    assert infinite is not None
    assert infinite.value == np.inf
    assert limits(infinite) is None


def test_a_value_that_does_not_vary_has_no_limits() -> None:
    scores = Scores(np.array([0, 1, 0, 1]), np.full((4, 2), 0.5))
    assert found(scores, "log_loss").value == pytest.approx(np.log(2.0))
    assert limits(found(scores, "log_loss")) is None


def test_a_class_that_is_missing_leaves_the_others_their_areas() -> None:
    y, p = softmax_problem(60, 3, 2)
    kept = y != 2
    scores = Scores(y[kept], p[kept])
    assert np.isnan(found(scores, "roc_auc", 2).value)
    assert np.isnan(found(scores, "roc_auc_ovr_macro").value)
    assert np.isfinite(found(scores, "roc_auc", 0).variance)


def test_refusals() -> None:
    y, p = softmax_problem(30, 3, 0)
    with pytest.raises(ValueError, match="one weight for every sample"):
        Influences(Scores(y, p, np.ones((2, 30))))
    with pytest.raises(ValueError, match="one class"):
        linearise(Scores(y, p), "roc_auc")
