"""Weighted means, the Stolarsky mean, kappa with any weights, and F-beta of macro averages against others' numbers."""

import math
import warnings
from decimal import Decimal, getcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import gmean, hmean, pmean

from app.kernel.matrix.table import Table
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Combination, Every, Measure, bounds, compute
from app.kernel.metrics.families.combinations import COMBINATIONS, stolarsky_mean
from tests.bank import each
from tests.kernel.matrices import matrices
from tests.witnesses import sk

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import pycm

RECALLS = (Measure(catalogue().of_matrices.by_name["recall"], {}, Every.CLASS),)
NAMED = catalogue().of_matrices.by_name
NAMES = [name for name in matrices() if name.startswith(("dense", "accurate")) and int(name.split("-")[1]) <= 10]


def weights_for(size: int) -> NDArray[np.float64]:
    return np.random.default_rng(size).uniform(0.1, 9.0, size)


def weighted(function: str, counts: NDArray[Any], weights: NDArray[np.float64]) -> float:
    return float(compute(Combination(function, RECALLS, {"weights": tuple(weights.tolist())}), Table(counts)))


@each("name", NAMES)
def test_weighted_means_are_those_of_scipy(name: str) -> None:
    counts = matrices()[name]
    recalls, weights = np.diag(counts) / counts.sum(axis=1), weights_for(len(counts))
    assert weighted("wmean", counts, weights) == pytest.approx(np.average(recalls, weights=weights), rel=1e-13)
    assert weighted("wmean", counts, weights) == pytest.approx(pmean(recalls, 1, weights=weights), rel=1e-13)
    assert weighted("wgmean", counts, weights) == pytest.approx(gmean(recalls, weights=weights), rel=1e-13)
    assert weighted("wgps", counts, weights) == pytest.approx(hmean(recalls, weights=weights), rel=1e-13)


@each("function", ["wmean", "wgps", "wgmean"])
def test_weights_whose_sum_is_no_number_count_as_their_ratios_do(function: str) -> None:
    counts = matrices()["dense-2-0"]
    assert weighted(function, counts, np.array([1e308, 1e308])) == weighted(function, counts, np.array([1.0, 1.0]))


@pytest.mark.parametrize("w", [0.1, 0.5, 0.8])
def test_of_two_classes_they_are_the_weighted_means_of_the_paper(w: float) -> None:
    """A_w = w TPR + (1 - w) TNR, G_w = TPR^w TNR^(1-w), and H_beta with beta^2 = (1 - w)/w on TNR (4.1-4.3)."""
    counts = matrices()["dense-2-0"]
    weights = np.array([1.0 - w, w])
    for function, key, parameters in (
        ("wmean", "weighted_balanced_accuracy", {"weight": w}),
        ("wgmean", "weighted_g_mean", {"weight": w}),
        ("wgps", "weighted_h_mean", {"beta": math.sqrt((1.0 - w) / w)}),
    ):
        want = NAMED[key].compute(Table(counts), **parameters)[1]
        assert weighted(function, counts, weights) == pytest.approx(want, rel=1e-14)


def test_a_recall_of_zero_and_one_that_is_missing() -> None:
    weights = np.array([1.0, 2.0])
    with_zero, empty = np.array([[0, 5], [1, 9]]), np.array([[0, 0], [1, 9]])
    assert weighted("wgps", with_zero, weights) == 0.0
    assert weighted("wgmean", with_zero, weights) == 0.0
    assert weighted("wmean", with_zero, weights) == pytest.approx(0.6, rel=1e-15)
    assert all(math.isnan(weighted(key, empty, weights)) for key in ("wgps", "wgmean", "wmean"))


def stolarsky(x: float, y: float, p: float, q: float) -> float:
    with np.errstate(all="ignore"):
        return float(stolarsky_mean(np.array([x, y]), p, q))


X, Y = 0.3, 0.85


@pytest.mark.parametrize(
    ("p", "q", "known"),
    [
        (2.0, 1.0, (X + Y) / 2),
        (1.0, -1.0, math.sqrt(X * Y)),
        (3.0, -3.0, math.sqrt(X * Y)),
        (0.0, 0.0, math.sqrt(X * Y)),
        (-1.0, -2.0, 2 * X * Y / (X + Y)),
        (1.0, 0.0, (Y - X) / (math.log(Y) - math.log(X))),
        (1.0, 1.0, math.exp(-1.0) * (Y**Y / X**X) ** (1.0 / (Y - X))),
        (1.5, 0.5, (X + math.sqrt(X * Y) + Y) / 3),
        (4.0, 2.0, math.sqrt((X**2 + Y**2) / 2)),
    ],
)
def test_the_named_means_are_stolarsky_means(p: float, q: float, known: float) -> None:
    """Arithmetic, geometric, harmonic, logarithmic, identric, Heronian, and the power mean of order 2."""
    assert stolarsky(X, Y, p, q) == pytest.approx(known, rel=1e-14)
    assert stolarsky(X, Y, q, p) == pytest.approx(known, rel=1e-14)
    assert stolarsky(Y, X, p, q) == pytest.approx(known, rel=1e-14)


@each("p", [-40.0, -2.5, -0.01, 0.25, 3.0, 17.0])
@each("q", [-39.0, -1.5, 0.02, 0.75, 5.0])
@each(("x", "y"), [(0.3, 0.85), (0.5, 0.501), (1e-6, 1.0), (0.999999, 1.0)])
def test_the_formula_in_sixty_digits(x: float, y: float, p: float, q: float) -> None:
    getcontext().prec = 60
    a, b, first, second = (Decimal(value) for value in (x, y, p, q))
    inside = second * (a**first - b**first) / (first * (a**second - b**second))
    want = float(inside ** (1 / (first - second)))
    assert stolarsky(x, y, p, q) == pytest.approx(want, rel=2e-13)


@each("distance", [1e-3, 1e-4, 1e-6, 1e-9])
@each("at", [0.0, 1.0, -2.0])
def test_its_limits_are_passed_smoothly(at: float, distance: float) -> None:
    limit = stolarsky(X, Y, at, at)
    assert stolarsky(X, Y, at + distance, at - distance) == pytest.approx(limit, rel=1e-10 + distance**2)
    assert stolarsky(X, X + distance * X, 2.0, at) == pytest.approx(X, rel=distance)
    assert stolarsky(X, X, at, 3.0) == X


@pytest.mark.parametrize(("p", "q"), [(2.0, 1.0), (1.0, 1.0), (1.0, 0.0), (1.0, -2.0), (-1.0, -2.0), (3.0, 0.5)])
def test_zero_is_a_limit_from_above(p: float, q: float) -> None:
    near, at = stolarsky(1e-300, 0.8, p, q), stolarsky(0.0, 0.8, p, q)
    assert at == pytest.approx(near, rel=1e-12, abs=2e-3)
    assert at == 0.0 or min(p, q) > 0
    assert stolarsky(0.0, 0.0, p, q) == 0.0
    assert math.isnan(stolarsky(math.nan, 0.5, p, q))
    assert math.isnan(stolarsky(0.5, math.nan, p, q))


def test_it_lies_between_its_parts_and_rises_with_its_powers() -> None:
    powers = [-30.0, -2.0, -0.5, 0.0, 0.5, 1.0, 7.0]
    for q in powers:
        values = [stolarsky(X, Y, p, q) for p in powers]
        assert values == sorted(values)
        assert values[0] >= X
        assert values[-1] <= Y
    assert COMBINATIONS["stolarsky"].arity == 2


# Kappa


def agreement(size: int, seed: int = 5) -> NDArray[np.float64]:
    found = np.random.default_rng(seed + size).integers(-4, 8, (size, size)) / 8.0
    np.fill_diagonal(found, 1.0)
    return found


def kappa(counts: NDArray[Any], weights: NDArray[np.float64] | str) -> float:
    given = weights if isinstance(weights, str) else tuple(map(tuple, weights.tolist()))
    return float(NAMED["weighted_kappa"].compute(Table(counts), weights=given))


@each("name", NAMES)
def test_kappa_takes_any_weights(name: str) -> None:
    """Equation 23 of the survey in fractions, and PyCM with the disagreements, whole numbers there."""
    counts = matrices()[name]
    w, size, n = agreement(len(counts)), len(counts), int(counts.sum())
    actual, predicted = counts.sum(axis=1), counts.sum(axis=0)
    pairs = [(i, j, Fraction(w[i, j])) for i in range(size) for j in range(size)]
    observed = sum(weight * Fraction(int(counts[i, j]), n) for i, j, weight in pairs)
    chance = sum(weight * Fraction(int(actual[i]) * int(predicted[j]), n * n) for i, j, weight in pairs)
    want = float((observed - chance) / (1 - chance))
    assert kappa(counts, w) == pytest.approx(want, rel=1e-12)
    assert kappa(counts, 1.0 - w) == pytest.approx(want, rel=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cm = pycm.ConfusionMatrix(matrix=counts.tolist())
    theirs = cm.weighted_kappa({i: {j: round(8 * (1.0 - w[i, j])) for j in range(size)} for i in range(size)})
    assert kappa(counts, w) == pytest.approx(theirs, rel=1e-11)


@each("name", NAMES)
def test_named_weights_are_matrices(name: str) -> None:
    counts = matrices()[name]
    size = len(counts)
    truth, decided = (np.repeat(codes.ravel(), counts.ravel()) for codes in np.indices(counts.shape))
    distance = np.abs(np.subtract.outer(np.arange(size), np.arange(size))).astype(float)
    for weights, matrix in (("linear", distance), ("quadratic", distance**2)):
        assert kappa(counts, matrix) == pytest.approx(kappa(counts, weights), rel=1e-13)
        assert kappa(counts, matrix) == pytest.approx(
            sk.cohen_kappa_score(truth, decided, labels=list(range(size)), weights=weights), rel=1e-11
        )
    plain = 1.0 - np.eye(size)
    assert kappa(counts, plain) == pytest.approx(float(NAMED["cohen_kappa"].compute(Table(counts))), rel=1e-12)


def test_kappa_with_weights_of_its_own_has_no_lower_end() -> None:
    """Only one confusion counts, and it alone happens: far more often than by chance."""
    counts, matrix = np.array([[0, 2, 0], [0, 0, 0], [0, 0, 98]]), np.array([[0.0, 1, 0], [0, 0, 0], [0, 0, 0]])
    assert kappa(counts, matrix) == pytest.approx(1 - 100 * 2 / 4)
    metric = NAMED["weighted_kappa"]
    assert bounds(Measure(metric, {"weights": tuple(map(tuple, matrix.tolist()))}, None)) == (None, 1.0)
    assert bounds(Measure(metric, {"weights": "linear"}, None)) == (-1.0, 1.0)


# F-beta of macro averages


@each("name", NAMES)
@each("beta", [0.5, 1.0, 2.0])
def test_both_forms_of_macro_f_beta(name: str, beta: float) -> None:
    """Equation 20 of the survey from scikit-learn's macro precision and recall; and its own mean of scores."""
    counts = matrices()[name]
    truth, decided = (np.repeat(codes.ravel(), counts.ravel()) for codes in np.indices(counts.shape))
    precision = sk.precision_score(truth, decided, average="macro")
    recall = sk.recall_score(truth, decided, average="macro")
    want = (1 + beta**2) * precision * recall / (beta**2 * precision + recall)
    metric, table = NAMED["macro_f_beta"], Table(counts)
    assert float(metric.compute(table, beta=beta, form="means")) == pytest.approx(want, rel=1e-13)
    scores = sk.fbeta_score(truth, decided, beta=beta, average="macro")
    assert float(metric.compute(table, beta=beta, form="scores")) == pytest.approx(scores, rel=1e-13)
    if beta == 1.0:
        assert float(NAMED["macro_f1_of_means"].compute(table)) == pytest.approx(want, rel=1e-13)


def test_the_form_of_means_where_a_class_has_no_value() -> None:
    table = Table(np.array([[5, 0, 0], [1, 0, 2], [0, 0, 4]]))
    metric = NAMED["macro_f_beta"]
    with np.errstate(all="ignore"):
        assert math.isnan(float(metric.compute(table, form="means")))
        assert float(metric.compute(table, form="scores")) == pytest.approx((10 / 11 + 0 + 8 / 10) / 3)
        precision, recall = (5 / 6 + 4 / 6) / 3, (1 + 0 + 1) / 3
        got = float(metric.compute(table, form="means", undefined="zero"))
    assert got == pytest.approx(2 * precision * recall / (precision + recall))
