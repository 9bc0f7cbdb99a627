"""Ranking metrics against brute force in fractions, with and without ties."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad

from app.kernel.metrics.families.score_ranking import severity
from app.kernel.samples.scores import Scores
from tests.bank import each
from tests.kernel.probability import exact
from tests.kernel.probability.problems import exact_tied_problem, softmax_problem, tied_problem, value

SEEDS = range(3)
KINDS = ("tied", "distinct")
Problem = tuple[list[int], Scores, list[list[Fraction]]]


def problem(kind: str, n: int, classes: int, seed: int) -> Problem:
    if kind == "tied":
        y, p, rows = exact_tied_problem(n, classes, seed)
    else:
        y, p = softmax_problem(n, classes, seed)
        rows = [[Fraction(float(entry)) for entry in row] for row in p]
    return y.tolist(), Scores(y, p), rows


def assert_close(ours: object, theirs: object) -> None:
    np.testing.assert_allclose(np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float), rtol=1e-12, atol=1e-15)


@each("kind", KINDS)
@each("classes", [2, 3, 5])
@each("seed", SEEDS)
def test_areas_per_class(kind: str, classes: int, seed: int) -> None:
    y, scores, rows = problem(kind, 25, classes, seed)
    sides = [exact.of_class(y, rows, code) for code in range(classes)]
    areas = [exact.auc(*side) for side in sides]
    assert_close(value("roc_auc", scores), areas)
    assert_close(value("roc_gini", scores), [2 * area - 1 for area in areas])
    assert_close(value("roc_auc_ovr_macro", scores), sum(areas) / classes)
    shares = [Fraction(len(side[0]), 25) for side in sides]
    assert_close(value("roc_auc_ovr_weighted", scores), sum(s * a for s, a in zip(shares, areas, strict=True)))
    precisions = [exact.average_precision(*side) for side in sides]
    assert_close(value("average_precision", scores), precisions)
    assert_close(value("macro_average_precision", scores), sum(precisions) / classes)
    assert_close(value("pr_auc_trapezoid", scores), [exact.pr_trapezoid(*side) for side in sides])
    assert_close(value("ks_statistic", scores), [exact.ks(*side) for side in sides])
    assert_close(value("equal_error_rate", scores), [exact.equal_error_rate(*side) for side in sides])
    for limit in (0.125, 0.5, 1.0):
        expected = [exact.partial_auc(*side, Fraction(limit)) for side in sides]
        assert_close(value("partial_roc_auc", scores, max_fpr=limit), expected)


@each("kind", KINDS)
@each("classes", [2, 3, 5])
@each("seed", SEEDS)
def test_areas_of_all_classes(kind: str, classes: int, seed: int) -> None:
    y, scores, rows = problem(kind, 25, classes, seed)
    assert_close(value("roc_auc_ovo_macro", scores), exact.hand_till(y, rows))
    assert_close(value("roc_auc_ovo_weighted", scores), exact.hand_till_weighted(y, rows))
    assert_close(value("roc_auc_ovr_micro", scores), exact.micro_auc(y, rows))
    assert_close(value("macro_pr_auc", scores), exact.macro_pr(y, rows))


@each("kind", KINDS)
@each("severity_parameters", [(1, 1), (2, 2), (2, 5), (4, 1)])
@each("seed", range(2))
def test_h_measure_with_whole_parameters(kind: str, severity_parameters: tuple[int, int], seed: int) -> None:
    a, b = severity_parameters
    y, scores, rows = problem(kind, 24, 2 + seed % 2, seed)
    expected = [exact.h_measure(*exact.of_class(y, rows, code), a, b) for code in range(scores.n_classes)]
    assert_close(value("h_measure", scores, a=a, b=b), expected)


@pytest.mark.parametrize("seed", range(2))
def test_h_measure_by_default_weighs_costs_by_the_shares(seed: int) -> None:
    y, scores, rows = problem("tied", 24, 2, seed)
    first, second = severity(scores)
    np.testing.assert_allclose(first, 1.0 + np.bincount(y) / 24)
    np.testing.assert_allclose(first + second, 3.0)
    ours = value("h_measure", scores)
    for code in (0, 1):
        members, others = exact.of_class(y, rows, code)
        cuts = np.array(exact.cuts(members, others), dtype=float)
        a, b = float(first[code]), float(second[code])

        # The constant of the Beta density is in both losses.
        def cost(c: float, cuts: np.ndarray = cuts, a: float = a, b: float = b) -> float:
            tp, fp = cuts.T
            return float((c * fp + (1 - c) * (tp[-1] - tp)).min() * c ** (a - 1) * (1 - c) ** (b - 1))

        def worst(c: float, cuts: np.ndarray = cuts, a: float = a, b: float = b) -> float:
            return float(min(c * cuts[-1, 1], (1 - c) * cuts[-1, 0]) * c ** (a - 1) * (1 - c) ** (b - 1))

        steps = np.diff(cuts, axis=0)
        corners = sorted({float(up / (up + right)) for up, right in steps} - {0.0, 1.0})
        level = len(members) / 24
        loss = integral(cost, corners) / integral(worst, [level])
        np.testing.assert_allclose(ours[code], 1.0 - loss, rtol=2e-8)


def integral(function: object, breaks: list[float]) -> float:
    return float(quad(function, 0.0, 1.0, points=breaks, limit=400, epsabs=1e-13, epsrel=1e-12)[0])


def test_h_measure_parameters_are_told() -> None:
    y, p = softmax_problem(40, 3, 0)
    first, second = severity(Scores(y, p), 2.0, 0.0)
    assert first.tolist() == [2.0, 2.0, 2.0]
    np.testing.assert_allclose(second, 2.0 - np.bincount(y) / 40)


def test_h_measure_of_the_documented_port_example_is_one_half() -> None:
    """Scores 0..., where the loss is half of the largest for every Beta: the two curves of costs are proportional."""
    y = np.array([0, 1, 0, 1])
    # One half of each class is told apart perfectly, the other half not at all.
    scores = Scores.of_scores(y, np.array([-1.0, 0.0, 0.0, 1.0]))
    for a, b in ((0, 0), (2, 2), (1, 3)):
        np.testing.assert_allclose(value("h_measure", scores, a=a, b=b), [0.5, 0.5], rtol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_large_problems_agree_with_small_ones(classes: int) -> None:
    """Every sample three times in another order: the counts are large, the values those of the small problem."""
    y, p = tied_problem(3000, classes, 1, steps=50)
    small, large = Scores(y, p), Scores(np.tile(y, 3), np.tile(p, (3, 1)))
    for key in ("roc_auc", "average_precision", "roc_auc_ovr_micro", "macro_pr_auc", "h_measure", "equal_error_rate"):
        np.testing.assert_allclose(value(key, large), value(key, small), rtol=1e-12)
