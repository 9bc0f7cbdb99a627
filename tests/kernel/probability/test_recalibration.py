"""Recalibration, ICI, net benefit, ranked scores and D2 against statsmodels, scikit-learn and exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

from app.kernel.metrics.card import Explainer
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import Array
from app.kernel.samples import recalibration
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.influence import Influences, limits
from tests.kernel.probability.problems import Codes, exact_tied_problem, softmax_problem, tied_problem, value
from tests.witnesses import sk, sm

PROBLEMS = {"two": (2, 300), "three": (3, 400), "large": (2, 3000)}
PROBLEM = pytest.mark.parametrize("problem", PROBLEMS)


def made(problem: str) -> tuple[Codes, Array, Scores]:
    classes, n = PROBLEMS[problem]
    y, p = softmax_problem(n, classes, n, lift=0.7)
    return y, p, Scores(y, p)


def deviation(scores: Scores, key: str, code: int | None, **parameters: float) -> float:
    linear = Influences(scores).of(catalogue().of_probabilities.by_name[key], code, parameters=parameters)
    assert linear is not None
    return float(np.sqrt(linear.variance))


@PROBLEM
@pytest.mark.parametrize("weighted", [False, True])
def test_logistic_recalibration_is_that_of_statsmodels(problem: str, weighted: bool) -> None:
    y, p, scores = made(problem)
    weights = np.random.default_rng(0).integers(1, 4, y.size).astype(float)
    if weighted:
        scores = Scores(y, p, weights)
    for code in range(p.shape[1]):
        odds, hit = np.log(p[:, code] / (1 - p[:, code])), (y == code).astype(float)
        given = {"freq_weights": weights if weighted else np.ones(y.size), "family": sm.families.Binomial()}
        sloped = sm.GLM(hit, sm.add_constant(odds), **given).fit(tol=1e-13)
        shifted = sm.GLM(hit, np.ones((y.size, 1)), offset=odds, **given).fit(tol=1e-13)
        assert value("calibration_slope", scores)[code] == pytest.approx(sloped.params[1], rel=1e-8)
        assert value("calibration_intercept", scores)[code] == pytest.approx(shifted.params[0], rel=1e-8, abs=1e-10)


@PROBLEM
def test_its_errors_are_whites(problem: str) -> None:
    """HC0 of statsmodels, over n - 1 and n - 2 samples."""
    y, p, scores = made(problem)
    code = p.shape[1] - 1
    odds, hit = np.log(p[:, code] / (1 - p[:, code])), (y == code).astype(float)
    sloped = sm.Logit(hit, sm.add_constant(odds)).fit(disp=0, tol=1e-13, cov_type="HC0")
    shifted = sm.GLM(hit, np.ones((y.size, 1)), offset=odds, family=sm.families.Binomial()).fit(cov_type="HC0")
    n = y.size
    assert deviation(scores, "calibration_slope", code) == pytest.approx(sloped.bse[1] * np.sqrt(n / (n - 2)), rel=1e-6)
    assert deviation(scores, "calibration_intercept", code) == pytest.approx(
        shifted.bse[0] * np.sqrt(n / (n - 1)), rel=1e-6
    )


def test_true_probabilities_have_slope_1_and_intercept_0() -> None:
    random = np.random.default_rng(3)
    p = random.uniform(0.02, 0.98, 20_000)
    y = (random.random(p.size) < p).astype(int)
    scores = Scores(y, np.column_stack([1 - p, p]))
    for key, ideal in (("calibration_slope", 1.0), ("calibration_intercept", 0.0)):
        linear = Influences(scores).of(catalogue().of_probabilities.by_name[key], 1)
        assert linear is not None
        found = limits(linear, 0.999)
        assert found is not None
        assert found.low < ideal < found.high
    assert value("integrated_calibration_index", scores)[1] < 0.01
    # Stated twice as sure as they are.
    odds = 2 * np.log(p / (1 - p))
    sure = 1 / (1 + np.exp(-odds))
    assert value("calibration_slope", Scores(y, np.column_stack([1 - sure, sure])))[1] == pytest.approx(
        value("calibration_slope", scores)[1] / 2, rel=1e-9
    )


def test_no_finite_slope() -> None:
    p = np.array([0.1, 0.2, 0.3, 0.6, 0.8])
    rows = np.column_stack([1 - p, p])
    assert value("calibration_slope", Scores([0, 0, 0, 1, 1], rows)).tolist() == [np.inf, np.inf]
    assert value("calibration_slope", Scores([1, 1, 1, 0, 0], rows)).tolist() == [-np.inf, -np.inf]
    assert np.isnan(value("calibration_slope", Scores([1, 1, 0, 0], np.full((4, 2), 0.5)))).all()
    assert np.isfinite(value("calibration_intercept", Scores([0, 0, 0, 1, 1], rows))).all()
    certain = np.column_stack([[1.0, 0.4, 0.6, 0.2], [0.0, 0.6, 0.4, 0.8]])
    assert np.isfinite(value("calibration_slope", Scores([0, 0, 1, 1], certain))).all()
    assert np.isnan(value("calibration_slope", Scores([0, 0, 1, 1], certain), clip=0.0)).all()


@pytest.mark.parametrize(
    "code", ["certain_probabilities", "constant_probabilities", "infinite"], ids=["certain", "constant", "separated"]
)
def test_a_sample_of_no_weight_is_no_reason(code: str) -> None:
    """The values pass it over, and so do the reasons for which there is none."""
    y, p = {
        "certain_probabilities": ([0, 1, 1, 0, 1], [0.3, 0.6, 0.2, 0.8, 0.0]),
        "constant_probabilities": ([0, 1, 0], [0.3, 0.3, 0.6]),
        "infinite": ([0, 1, 1], [0.2, 0.8, 0.1]),
    }[code]
    rows, weights = np.column_stack([np.subtract(1.0, p), p]), [1.0] * (len(p) - 1) + [0.0]
    scores, without = Scores(y, rows, weights), Scores(y[:-1], rows[:-1])
    found = value("calibration_slope", scores, clip=0.0)
    assert found.tolist() == pytest.approx(value("calibration_slope", without, clip=0.0).tolist(), nan_ok=True)
    metric = catalogue().of_probabilities.by_name["calibration_slope"]
    reasons = [Explainer(one).explain(metric, 1, found[1]).condition.code for one in (scores, without)]
    holding = [one.code for one in metric.card.undefined if one.holds(scores).any()]
    assert holding[:1] == ([] if code == "certain_probabilities" else [code])
    assert reasons[0] == reasons[1]


@pytest.mark.parametrize("make", [softmax_problem, tied_problem])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_smooth_curve_is_lowess_of_statsmodels(make: object, classes: int) -> None:
    y, p = make(400, classes, 2)  # type: ignore[operator]
    scores = Scores(y, p)
    for code in range(classes):
        stated, hit = p[:, code], (y == code).astype(float)
        grid = np.linspace(stated.min(), stated.max(), recalibration.GRID)
        fits = sm.nonparametric.lowess(hit, stated, frac=recalibration.SPAN, it=0, xvals=grid)
        gaps = np.abs(np.clip(np.interp(stated, grid, fits), 0, 1) - stated)
        expected = {
            "mean": gaps.mean(),
            "median": np.quantile(gaps, 0.5, method="inverted_cdf"),
            "e90": np.quantile(gaps, 0.9, method="inverted_cdf"),
            "maximum": gaps.max(),
        }
        for statistic, wanted in expected.items():
            found = value("integrated_calibration_index", scores, statistic=statistic)
            assert found[code] == pytest.approx(wanted, rel=1e-9), statistic


def test_straight_lines_between_the_points_cost_little() -> None:
    """Against fits at every sample, and with neighbours put together."""
    y, p = softmax_problem(2000, 2, 5)
    scores, hit = Scores(y, p), (y == 1).astype(float)
    full = sm.nonparametric.lowess(hit, p[:, 1], frac=0.75, it=0, return_sorted=False)
    assert value("integrated_calibration_index", scores)[1] == pytest.approx(np.abs(full - p[:, 1]).mean(), abs=3e-4)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("threshold", [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)])
def test_net_benefit_is_the_formula_of_dcurves(seed: int, threshold: Fraction) -> None:
    """TP/n - FP/n t/(1-t), its variance the one of a mean."""
    y, p, rows = exact_tied_problem(40, 3, seed)
    scores = Scores(y, p)
    for code in range(3):
        treated = [(label == code, row[code] >= threshold) for label, row in zip(y.tolist(), rows, strict=True)]
        tp, fp = sum(hit and acts for hit, acts in treated), sum(acts and not hit for hit, acts in treated)
        odds = threshold / (1 - threshold)
        expected = Fraction(tp, 40) - Fraction(fp, 40) * odds
        assert value("net_benefit_at", scores, threshold=float(threshold))[code] == pytest.approx(
            float(expected), rel=1e-12, abs=1e-15
        )
        square = (tp + fp * odds**2) / Fraction(40) - expected**2
        assert deviation(scores, "net_benefit_at", code, threshold=float(threshold)) == pytest.approx(
            float(square / 39) ** 0.5, rel=1e-9, abs=1e-15
        )


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_ranked_probability_score_is_the_mean_brier_score_of_the_splits(classes: int) -> None:
    y, p, rows = exact_tied_problem(50, classes, 1)
    scores = Scores(y, p)
    splits = [sk.brier_score_loss(y <= k, p[:, : k + 1].sum(axis=1).clip(0, 1)) for k in range(classes - 1)]
    assert float(value("ranked_probability_score", scores)) == pytest.approx(np.mean(splits), rel=1e-12)
    total = sum(
        ((sum(row[: k + 1], Fraction(0)) - (label <= k)) ** 2 for label, row in zip(y.tolist(), rows, strict=True)
         for k in range(classes - 1)),
        Fraction(0),
    )  # fmt: skip
    assert float(value("ranked_probability_score", scores)) == pytest.approx(
        float(total / (50 * (classes - 1))), rel=1e-12
    )


@pytest.mark.parametrize("key", ["d2_log_loss", "ranked_probability_score"])
def test_their_errors_are_those_of_the_jackknife(key: str) -> None:
    y, p = softmax_problem(400, 3, 7)
    left = [float(value(key, Scores(np.delete(y, i), np.delete(p, i, axis=0)))) for i in range(400)]
    jackknife = np.sqrt(399 / 400 * ((np.array(left) - np.mean(left)) ** 2).sum())
    assert deviation(Scores(y, p), key, None) == pytest.approx(jackknife, rel=0.02)
