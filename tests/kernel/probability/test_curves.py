"""Points, areas and thinning of the curves."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from app.kernel.samples import curves
from app.kernel.samples.curves import CLASS_CURVES, OVERALL_CURVES, Curve, CurveName, UndefinedCurve, thin
from app.kernel.samples.rankings import sums_between
from app.kernel.samples.scores import Scores
from tests.bank import each
from tests.kernel.probability.problems import softmax_problem, tied_problem, value
from tests.witnesses import sk

PROBLEMS = {
    f"{kind} {classes} {n}": make(n, classes, n)
    for kind, make in (("distinct", softmax_problem), ("tied", tied_problem))
    for classes in (2, 4)
    for n in (80, 5000)
}
PROBLEM = each("problem", PROBLEMS)


def weights_of(y: np.ndarray) -> np.ndarray:
    return np.random.default_rng(0).gamma(1.0, size=y.size)


@PROBLEM
@each("weighted", [False, True])
def test_roc_and_det(problem: str, weighted: bool) -> None:
    y, p = PROBLEMS[problem]
    w = weights_of(y) if weighted else None
    curve = curves.roc(Scores(y, p, w), 1)
    fpr, tpr, thresholds = sk.roc_curve(y == 1, p[:, 1], sample_weight=w, drop_intermediate=False)
    np.testing.assert_allclose(curve.x, fpr, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(curve.y, tpr, rtol=1e-10, atol=1e-14)
    np.testing.assert_array_equal(curve.thresholds[1:], thresholds[1:])
    assert np.isnan(curve.thresholds[0])
    assert curve.area == pytest.approx(np.trapezoid(tpr, fpr), rel=1e-10)
    error = curves.detection_error(Scores(y, p, w), 1)
    np.testing.assert_allclose(error.y, 1.0 - tpr, atol=1e-12)
    assert error.area == pytest.approx(1.0 - sk.auc(fpr, tpr), rel=1e-9)


@PROBLEM
@each("weighted", [False, True])
def test_precision_recall(problem: str, weighted: bool) -> None:
    y, p = PROBLEMS[problem]
    w = weights_of(y) if weighted else None
    curve = curves.precision_recall(Scores(y, p, w), 0)
    precision, recall, thresholds = sk.precision_recall_curve(y == 0, p[:, 0], sample_weight=w)
    np.testing.assert_allclose(curve.x, recall[::-1], rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(curve.y, precision[::-1], rtol=1e-10)
    np.testing.assert_array_equal(curve.thresholds[1:], thresholds[::-1])
    assert curve.area == pytest.approx(sk.auc(recall, precision), rel=1e-10)
    np.testing.assert_allclose(curve.references[0][1], np.average(y == 0, weights=w))


@PROBLEM
def test_calibration(problem: str) -> None:
    y, p = PROBLEMS[problem]
    scores = Scores(y, p)
    curve = curves.calibration(scores, 1, bins=5)
    inside = [(p[:, 1] > low + 1e-12) & (p[:, 1] <= low + 0.2 + 1e-12) for low in np.arange(5) / 5]
    inside[0] |= p[:, 1] <= 0
    inside = [mask for mask in inside if mask.any()]
    np.testing.assert_allclose(curve.x, [p[mask, 1].mean() for mask in inside], rtol=1e-10)
    np.testing.assert_allclose(curve.y, [(y[mask] == 1).mean() for mask in inside], rtol=1e-10, atol=1e-15)
    assert curve.weights is not None
    np.testing.assert_allclose(curve.weights, [mask.mean() for mask in inside], rtol=1e-12)
    top = curves.calibration(scores)
    assert top.area == pytest.approx(float(value("expected_calibration_error", scores)), rel=1e-12)


@PROBLEM
def test_decision(problem: str) -> None:
    y, p = PROBLEMS[problem]
    scores = Scores(y, p)
    here, elsewhere = curves.decision(scores, 1), curves.decision(scores, 1, prevalence=0.1)
    for curve, share in ((here, (y == 1).mean()), (elsewhere, 0.1)):
        assert (np.diff(curve.x) > 0).all()
        for t, benefit in zip(curve.x[::7], curve.y[::7], strict=True):
            treated = p[:, 1] >= t
            expected = share * treated[y == 1].mean() - (1 - share) * treated[y != 1].mean() * t / (1 - t)
            assert benefit == pytest.approx(expected, abs=1e-12)
        names = dict(curve.references)
        assert names["treat none"].tolist() == [0.0] * curve.x.size
        np.testing.assert_allclose(names["treat all"], share - (1 - share) * curve.x / (1 - curve.x), atol=1e-12)


@PROBLEM
def test_cost_is_the_lower_envelope(problem: str) -> None:
    y, p = PROBLEMS[problem]
    curve = curves.cost(Scores(y, p), 1)
    roc = curves.roc(Scores(y, p), 1)
    assert (np.diff(curve.x) >= 0).all()
    assert (curve.x[0], curve.x[-1]) == (0.0, 1.0)
    for at in np.linspace(0.0, 1.0, 23):
        lowest = ((1.0 - roc.y) * at + roc.x * (1.0 - at)).min()
        assert np.interp(at, curve.x, curve.y) == pytest.approx(lowest, abs=1e-12)
    assert curve.area == pytest.approx(np.trapezoid(curve.y, curve.x))


def test_cost_names_the_threshold_that_is_best_there() -> None:
    y, p = softmax_problem(200, 2, 3)
    curve = curves.cost(Scores(y, p), 1)
    for index in range(1, curve.x.size - 1):
        at = 0.5 * (curve.x[index] + curve.x[index + 1])
        treated = p[:, 1] >= curve.thresholds[index]
        spent = (1.0 - treated[y == 1].mean()) * at + treated[y == 0].mean() * (1.0 - at)
        assert spent == pytest.approx(np.interp(at, curve.x, curve.y), abs=1e-12)


@PROBLEM
def test_gain_and_lift(problem: str) -> None:
    y, p = PROBLEMS[problem]
    gain, lift = curves.gain(Scores(y, p), 1), curves.lift(Scores(y, p), 1)
    thresholds = np.unique(p[:, 1])[::-1]
    picked = [p[:, 1] >= t for t in thresholds[::11]]
    np.testing.assert_allclose(gain.x[1::11], [mask.mean() for mask in picked], rtol=1e-12)
    np.testing.assert_allclose(gain.y[1::11], [mask[y == 1].mean() for mask in picked], rtol=1e-12)
    expected = [(y[mask] == 1).mean() / (y == 1).mean() for mask in picked]
    np.testing.assert_allclose(lift.y[::11], expected, rtol=1e-12)
    # Half the AUC against the rest lies above, the class itself below: area = pi/2 + (1 - pi) AUC.
    share = (y == 1).mean()
    assert gain.area == pytest.approx(share / 2 + (1 - share) * float(value("roc_auc", Scores(y, p))[1]), rel=1e-10)


@PROBLEM
@each("weighted", [False, True])
def test_performance(problem: str, weighted: bool) -> None:
    y, p = PROBLEMS[problem]
    scores = Scores(y, p, weights_of(y) if weighted else None)
    assert curves.performance(scores).area == pytest.approx(float(value("au_mcp", scores)), rel=1e-12)
    assert curves.imbalanced_performance(scores).area == pytest.approx(float(value("au_imcp", scores)), rel=1e-12)
    for code in range(p.shape[1]):
        of_class = curves.performance(scores, code)
        assert of_class.area == pytest.approx(float(value("mean_phi", scores)[code]), rel=1e-12)
        assert (np.diff(of_class.y) >= 0).all()
        assert (of_class.x[0], of_class.x[-1]) == (0.0, 1.0)


@pytest.mark.parametrize("code", [2, None])
@pytest.mark.parametrize("weighted", [False, True])
def test_isotonic_curve_is_that_of_scikit_learn(code: int | None, weighted: bool) -> None:
    from sklearn.isotonic import IsotonicRegression

    y, p = tied_problem(400, 3, 1)
    weights = np.random.default_rng(1).gamma(1.0, size=400) if weighted else np.ones(400)
    weights[:5] = 0.0 if weighted else 1.0
    curve = curves.isotonic(Scores(y, p, weights if weighted else None), code)
    stated = p.max(axis=1) if code is None else p[:, code]
    hit = (p.argmax(axis=1) == y) if code is None else (y == code)
    kept = weights > 0
    known = IsotonicRegression(out_of_bounds="clip").fit(
        stated[kept], hit[kept].astype(float), sample_weight=weights[kept]
    )
    present = np.isin(curve.x, stated[kept])
    assert (np.diff(curve.x) > 0).all()
    assert (np.diff(curve.y) >= 0).all()
    np.testing.assert_allclose(curve.y[present], known.predict(curve.x[present]), atol=1e-9)
    assert curve.weights is not None
    np.testing.assert_allclose(curve.weights, [weights[stated == x].sum() / weights.sum() for x in curve.x], atol=1e-12)
    assert curve.area == pytest.approx(np.average(np.abs(known.predict(stated) - stated), weights=weights), abs=1e-9)


def test_isotonic_values() -> None:
    """Pooling by hand: 0.1 -> 0, 0.2 -> 1, 0.3 -> 0 pool to 1/2 for the last two; 0.9 -> 1."""
    p = np.array([0.1, 0.2, 0.3, 0.9])
    curve = curves.isotonic(Scores([0, 1, 0, 1], np.column_stack([1 - p, p])), 1)
    assert curve.y.tolist() == [0.0, 0.5, 0.5, 1.0]
    assert curve.area == pytest.approx((0.1 + 0.3 + 0.2 + 0.1) / 4)


def scale(values: np.ndarray) -> np.ndarray:
    scaled: np.ndarray = (values - values.min()) / (np.ptp(values) or 1.0)
    return scaled


def distance(full: Curve, thinned: Curve) -> float:
    """Furthest that a point of the full curve lies from the thinned polygon, in units of its extent."""
    x, y = scale(full.x), scale(full.y)
    kept = np.flatnonzero(np.isin(np.arange(full.x.size), indices(full, thinned)))
    worst = 0.0
    for first, last in itertools.pairwise(kept):
        run, rise = x[last] - x[first], y[last] - y[first]
        length = np.hypot(run, rise) or 1.0
        apart = np.abs((y[first:last] - y[first]) * run - (x[first:last] - x[first]) * rise) / length
        worst = max(worst, float(apart.max()))
    return worst


def indices(full: Curve, thinned: Curve) -> list[int]:
    found, start = [], 0
    for x, y in zip(thinned.x, thinned.y, strict=True):
        while (full.x[start], full.y[start]) != (x, y):
            start += 1
        found.append(start)
        start += 1
    return found


@each("name", sorted(CLASS_CURVES))
@each("points", [2, 100, 1000])
def test_thinning_keeps_the_shape(name: CurveName, points: int) -> None:
    y, p = softmax_problem(5000, 3, 1)
    full = CLASS_CURVES[name](Scores(y, p), 2)
    thinned = thin(full, points)
    assert thinned.x.size <= points
    assert thinned.area == full.area
    assert (thinned.x[0], thinned.y[0], thinned.x[-1], thinned.y[-1]) == (full.x[0], full.y[0], full.x[-1], full.y[-1])
    for (_, reference), (_, whole) in zip(thinned.references, full.references, strict=True):
        assert reference.size == thinned.x.size
        assert whole.size == full.x.size
    if points == 1000:
        assert distance(full, thinned) < 2e-3


def test_points_on_straight_lines_go_first() -> None:
    """A perfect order is three corners, whatever the number of samples."""
    y = np.repeat([0, 1], 500)
    p = np.linspace(0.01, 0.99, 1000)
    thinned = thin(curves.roc(Scores(y, np.column_stack([1 - p, p])), 1), 100)
    assert list(zip(thinned.x, thinned.y, strict=True)) == [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)]


MISSING: list[tuple[Callable[[Scores], Curve], Scores, str]] = [
    (lambda s: curves.roc(s, 1), Scores([0, 0], [[0.5, 0.5], [0.2, 0.8]]), "no_actual_samples"),
    (lambda s: curves.roc(s, 0), Scores([0, 0], [[0.5, 0.5], [0.2, 0.8]]), "no_other_samples"),
    (lambda s: curves.precision_recall(s, 1), Scores([0, 0], [[0.5, 0.5], [0.2, 0.8]]), "no_actual_samples"),
    (curves.imbalanced_performance, Scores([0, 0], [[0.5, 0.5], [0.2, 0.8]]), "no_actual_samples"),
    (lambda s: curves.performance(s, 1), Scores([0, 0], [[0.5, 0.5], [0.2, 0.8]]), "no_actual_samples"),
    (curves.performance, Scores.of_scores([0, 1], [3.0, 4.0]), "not_probabilities"),
    (curves.calibration, Scores.of_scores([0, 1], [3.0, 4.0]), "not_probabilities"),
    (lambda s: curves.decision(s, 1), Scores.of_scores([0, 1], [3.0, 4.0]), "not_probabilities"),
]


@pytest.mark.parametrize(("draw", "scores", "code"), MISSING)
def test_curves_that_do_not_exist_say_why(draw: Callable[[Scores], Curve], scores: Scores, code: str) -> None:
    with pytest.raises(UndefinedCurve) as caught:
        draw(scores)
    assert caught.value.code == code


def test_constant_scores_have_two_points() -> None:
    scores = Scores([0, 1, 1], np.full((3, 2), 0.5))
    curve = curves.roc(scores, 1)
    assert curve.x.tolist() == [0.0, 1.0]
    assert curve.y.tolist() == [0.0, 1.0]
    assert set(CurveName) == {*CLASS_CURVES, *OVERALL_CURVES}


def test_sums_between_positions_end_at_the_last() -> None:
    np.testing.assert_array_equal(sums_between(np.arange(5.0), np.array([0, 2, 2, 3])), [1.0, 0.0, 2.0])
