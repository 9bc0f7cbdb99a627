"""Calibration errors by their definition, what chance gives, and the decompositions without bins."""

from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from app.kernel.numerics.arrays import Array
from app.kernel.samples import calibration
from app.kernel.samples.calibration import (
    decompose,
    expected_by_chance,
    expected_by_chance_of_classes,
    largest_by_chance,
    spiegelhalter,
)
from app.kernel.samples.scores import Scores
from tests.bank import each
from tests.kernel.probability.problems import Codes, softmax_problem, tied_problem, value

PROBLEMS = {
    f"{kind} {classes} {n}": make(n, classes, n)
    for kind, make in (("distinct", softmax_problem), ("tied", tied_problem))
    for classes in (2, 4)
    for n in (60, 5000)
}
PROBLEM = each("problem", PROBLEMS)


def gaps(p: Array, hit: Array, bins: int, weights: Array) -> list[tuple[Any, Any]]:
    """(share, |frequency - mean probability|) of the bins (lo, hi], bin by bin; the latter of each row of ``hit``."""
    found = []
    for number in range(bins):
        low, high = Fraction(number, bins), Fraction(number + 1, bins)
        inside = (p > float(low) + 1e-12) & (p <= float(high) + 1e-12)
        if number == 0:
            inside |= p <= 1e-12
        if inside.any():
            w = weights[inside]
            found.append((w.sum() / weights.sum(), abs((w * (hit[..., inside] - p[inside])).sum(axis=-1) / w.sum())))
    return found


def top_label(y: Codes, p: Array) -> tuple[Array, Array]:
    return p.max(axis=1), (p.argmax(axis=1) == y).astype(float)


@PROBLEM
@each("bins", [1, 5, 15])
@each("weighted", [False, True])
def test_errors_by_definition(problem: str, bins: int, weighted: bool) -> None:
    y, p = PROBLEMS[problem]
    weights = np.random.default_rng(0).gamma(1.0, size=y.size) if weighted else np.ones(y.size)
    scores = Scores(y, p, weights if weighted else None)
    parts = gaps(*top_label(y, p), bins, weights)
    error = sum(share * gap for share, gap in parts)
    np.testing.assert_allclose(value("expected_calibration_error", scores, bins=bins), error, rtol=1e-10)
    largest = max(gap for _, gap in parts)
    np.testing.assert_allclose(value("maximum_calibration_error", scores, bins=bins), largest, rtol=1e-10)
    of_classes = [
        sum(share * gap for share, gap in gaps(p[:, code], (y == code).astype(float), bins, weights))
        for code in range(p.shape[1])
    ]
    np.testing.assert_allclose(value("classwise_calibration_error", scores, bins=bins), np.mean(of_classes), rtol=1e-10)


def test_numbers_that_torchmetrics_prints() -> None:
    """In its documentation of BinaryCalibrationError (2 bins: l1 0.2900, max 0.3167) and of
    MulticlassCalibrationError (3 bins: l1 0.2000, max 0.2333).

    The binary one looks at the probability of class 1 whatever is predicted: the class-wise error, not the one of
    the predicted class.
    """
    positive = np.array([0.25, 0.25, 0.55, 0.75, 0.75])
    binary = Scores(np.array([0, 0, 1, 1, 1]), np.column_stack([1 - positive, positive]))
    assert float(value("classwise_calibration_error", binary, bins=2)) == pytest.approx(0.2900, abs=5e-5)
    assert float(value("maximum_calibration_error", binary, bins=2)) != pytest.approx(0.3167, abs=5e-3)
    rows = np.array([[0.25, 0.20, 0.55], [0.55, 0.05, 0.40], [0.10, 0.30, 0.60], [0.90, 0.05, 0.05]])
    several = Scores(np.array([0, 1, 2, 0]), rows)
    assert float(value("expected_calibration_error", several, bins=3)) == pytest.approx(0.2000, abs=5e-5)
    assert float(value("maximum_calibration_error", several, bins=3)) == pytest.approx(0.2333, abs=5e-5)


@pytest.mark.parametrize("seed", range(3))
def test_of_two_classes_the_class_wise_error_is_that_of_the_probability_of_one(seed: int) -> None:
    y, p = softmax_problem(200, 2, seed)
    parts = gaps(p[:, 1], (y == 1).astype(float), 15, np.ones(y.size))
    binary = sum(share * gap for share, gap in parts)
    np.testing.assert_allclose(value("classwise_calibration_error", Scores(y, p)), binary, rtol=1e-10)
    assert abs(float(value("expected_calibration_error", Scores(y, p))) - binary) > 1e-3


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("n", [60, 4800])
@pytest.mark.parametrize("bins", [4, 15])
def test_bins_of_equal_mass(classes: int, n: int, bins: int) -> None:
    """Where n divides by the bins there is no doubt what they are."""
    y, p = softmax_problem(n, classes, n)
    confidence, hit = top_label(y, p)
    order = np.argsort(confidence)
    parts = np.split(order, bins)
    error = np.mean([abs(hit[part].mean() - confidence[part].mean()) for part in parts])
    np.testing.assert_allclose(value("adaptive_calibration_error", Scores(y, p), bins=bins), error, rtol=1e-10)


def test_ties_are_never_parted_by_what_happened() -> None:
    """Half of the samples share one confidence: whichever order they come in, they are in one bin."""
    y = np.arange(40) % 2
    p = np.concatenate([np.full(20, 0.7), np.linspace(0.8, 0.99, 20)])
    rows = np.column_stack([1 - p, p])
    expected = value("adaptive_calibration_error", Scores(y, rows), bins=4)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(40)
        np.testing.assert_allclose(value("adaptive_calibration_error", Scores(y[order], rows[order]), bins=4), expected)


def test_limits_belong_to_the_bin_below() -> None:
    """0.1 + 0.2 is 0.30000000000000004 and lies in (0.2, 0.3]; a probability of 0 lies in the first bin."""
    p = np.array([0.1 + 0.2, 0.25, 0.0, 0.05])
    scores = Scores([0, 1, 0, 0], np.column_stack([1 - p, p]))
    binned = calibration.equal_width(scores.ranking(1), 10)
    assert binned.weight.tolist() == [0, 0, 0, 0, 0, 0, 0, 2, 0, 2]


@pytest.mark.parametrize("adaptive", [False, True])
def test_chance_explains_the_error_of_calibrated_probabilities(adaptive: bool) -> None:
    rng = np.random.default_rng(3)
    p = rng.beta(2.0, 2.0, 800)
    rows = np.column_stack([1 - p, p])
    honest = expected_by_chance(Scores((rng.random(800) < p).astype(int), rows), adaptive=adaptive, seed=1)
    assert honest.p_value > 0.05
    assert 0.5 * honest.observed < honest.mean < honest.upper
    bold = np.clip(p + 0.25 * np.sign(p - 0.5), 0.01, 0.99)
    liar = Scores((rng.random(800) < p).astype(int), np.column_stack([1 - bold, bold]))
    found = expected_by_chance(liar, adaptive=adaptive, draws=400, seed=1)
    assert found.p_value == pytest.approx(1 / 401)
    assert found.observed > 3 * found.mean
    key = "adaptive_calibration_error" if adaptive else "expected_calibration_error"
    assert found.observed == pytest.approx(float(value(key, liar)), rel=1e-12)
    assert found == expected_by_chance(liar, adaptive=adaptive, draws=400, seed=1)


def test_chance_of_few_outcomes_is_exact() -> None:
    """Two samples in one bin: the error is |S - 1.5| / 2 with S ~ two draws of 3/4, so its mean is known."""
    scores = Scores([1, 0], [[0.25, 0.75], [0.25, 0.75]])
    expected = (Fraction(1, 16) * 3 / 2 + Fraction(6, 16) / 2 + Fraction(9, 16) / 2) / 2
    assert expected_by_chance(scores, draws=40_000).mean == pytest.approx(float(expected), rel=0.01)


def test_largest_gap_by_chance_of_few_outcomes_is_exact() -> None:
    """Two bins, of 3 samples at 0.7 and of 2 at 0.9, and one of a sample that cannot go wrong: all 32 outcomes."""
    p = np.array([0.7, 0.7, 0.7, 0.9, 0.9, 1.0])
    scores = Scores(np.array([1, 0, 1, 1, 0, 1]), np.column_stack([1 - p, p]))
    expected, beyond = Fraction(0), Fraction(0)
    observed = abs(Fraction(1, 2) - Fraction(9, 10))
    for hits in product((0, 1), repeat=5):
        shares = [Fraction(7, 10)] * 3 + [Fraction(9, 10)] * 2
        calibration = prod(share if hit else 1 - share for share, hit in zip(shares, hits, strict=True))
        gap = max(abs(Fraction(sum(hits[:3]), 3) - Fraction(7, 10)), abs(Fraction(sum(hits[3:]), 2) - Fraction(9, 10)))
        expected += calibration * gap
        beyond += calibration * (gap >= observed)
    found = largest_by_chance(scores, bins=10, draws=40_000)
    assert found.observed == pytest.approx(float(observed), rel=1e-12)
    assert found.mean == pytest.approx(float(expected), rel=0.01)
    assert found.p_value == pytest.approx(float(beyond), abs=0.01)


def test_largest_gap_by_chance_against_a_loop() -> None:
    """Outcomes drawn sample by sample from the confidences, the metric computed anew on each."""
    y, p = softmax_problem(400, 3, 2)
    weights = np.random.default_rng(4).gamma(2.0, size=y.size)
    rng = np.random.default_rng(0)
    confidence = p.max(axis=1)
    for given in (None, weights):
        hit = (rng.random((1500, y.size)) < confidence).astype(float)
        parts = gaps(confidence, hit, 15, np.ones(y.size) if given is None else given)
        drawn = np.max([gap for _, gap in parts], axis=0)
        found = largest_by_chance(Scores(y, p, given), draws=4000)
        assert found.observed == pytest.approx(float(value("maximum_calibration_error", Scores(y, p, given))))
        assert found.mean == pytest.approx(float(np.mean(drawn)), rel=0.04)
        assert found.upper == pytest.approx(float(np.quantile(drawn, 0.95)), rel=0.06)


def test_chance_of_many_outcomes_is_normal(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    scores = Scores((rng.random(20_000) < p).astype(int), np.column_stack([1 - p, p]))
    quick = expected_by_chance(scores, bins=5, draws=2000)
    monkeypatch.setattr(calibration, "NORMAL_FROM", np.inf)
    slow = expected_by_chance(scores, bins=5, draws=400)
    assert quick.mean == pytest.approx(slow.mean, rel=0.05)
    assert quick.upper == pytest.approx(slow.upper, rel=0.08)


def test_chance_of_classes() -> None:
    y, p = softmax_problem(500, 3, 1)
    found = expected_by_chance_of_classes(Scores(y, p), draws=200)
    assert found.observed == pytest.approx(float(value("classwise_calibration_error", Scores(y, p))), rel=1e-12)
    assert 0 < found.mean < found.upper


@pytest.mark.parametrize(
    ("rows", "weights"),
    [
        ([[0.3, 0.7], [0.3, 0.7], [0.25, 0.75], [0.9, 0.1], [0.8, 0.2], [0.5, 0.5]], None),
        ([[0.3, 0.7], [0.6, 0.4], [0.9, 0.1], [0.2, 0.8]], [1.0, 3.0, 2.0, 0.5]),
        ([[0.2, 0.7, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4]], None),
        ([[0.2, 0.7, 0.1], [0.15, 0.05, 0.8], [0.25, 0.35, 0.4]], [1.0, 3.0, 2.0]),
    ],
)
def test_chance_of_classes_has_one_outcome_per_sample(rows: list[list[float]], weights: list[float] | None) -> None:
    """Every outcome that the probabilities allow, with its own chance, measured by the metric itself."""
    p = np.array(rows)
    size, classes = p.shape
    y = p.argmin(axis=1)

    def error(outcome: Codes) -> float:
        return float(value("classwise_calibration_error", Scores(outcome, p, weights), bins=5))

    outcomes = [np.array(codes) for codes in product(range(classes), repeat=size)]
    chances = np.array([p[np.arange(size), codes].prod() for codes in outcomes])
    errors = np.array([error(codes) for codes in outcomes])
    found = expected_by_chance_of_classes(Scores(y, p, weights), bins=5, draws=40_000)
    assert chances.sum() == pytest.approx(1.0)
    assert found.mean == pytest.approx(float(chances @ errors), rel=0.01)
    for level in (0.3, 0.6, 0.9):
        bound = float(np.quantile(errors, level))
        at_most = Scores(outcomes[int(np.abs(errors - bound).argmin())], p, weights)
        beyond = float(chances[errors >= float(value("classwise_calibration_error", at_most, bins=5)) - 1e-9].sum())
        drawn = expected_by_chance_of_classes(at_most, bins=5, draws=40_000).p_value
        assert drawn == pytest.approx(beyond, abs=0.01)


@pytest.mark.parametrize("weighted", [False, True])
def test_chance_of_many_classes_against_every_sum(weighted: bool) -> None:
    """Classes as the sums of probabilities say that a random number reaches, also where it is next to one."""
    n, classes, draws, bins = 60, 40, 3000, 15
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.full(classes, 0.3), n)
    p[::5] = np.eye(classes)[rng.integers(0, classes, 12)]
    p[1::5] = np.repeat([[0.0, 1 / 32]], [8, 32], axis=1)
    y, weights = rng.integers(0, classes, n), rng.uniform(0.5, 2.0, n) if weighted else np.ones(n)
    found = expected_by_chance_of_classes(Scores(y, p, weights if weighted else None), draws=draws, seed=3)
    chosen = np.random.default_rng(3).random((draws, n))
    codes = sum((chosen >= reached).astype(int) for reached in np.cumsum(p, axis=1).T[:-1])
    cells = np.arange(classes) * bins + (p * bins - bins * 1e-12).astype(int)
    expected = np.bincount(cells.ravel(), (p * weights[:, None]).ravel(), classes * bins)
    errors = []
    for row in np.asarray(codes):
        hits = np.bincount(cells[np.arange(n), row], weights, classes * bins)
        errors.append(np.abs(hits - expected).sum() / (classes * weights.sum()))
    assert found.mean == pytest.approx(np.mean(errors), rel=1e-12)
    assert found.upper == pytest.approx(np.quantile(errors, 0.95), rel=1e-12)


def test_errors_of_the_top_label_follow_from_one_simulation() -> None:
    y, p = softmax_problem(200, 3, 1)
    both = Scores(y, p)
    assert expected_by_chance(both, seed=1) == expected_by_chance(Scores(y, p), seed=1)
    assert largest_by_chance(both, seed=1) == largest_by_chance(Scores(y, p), seed=1)
    assert expected_by_chance(both, seed=2) == expected_by_chance(Scores(y, p), seed=2)


def test_two_classes_are_wrong_together() -> None:
    """What one class lacks the other has: the class-wise error of two classes is that of either, by chance too."""
    rng = np.random.default_rng(4)
    p = rng.beta(2.0, 2.0, 6000)
    for size in (200, 6000):
        scores = Scores((rng.random(size) < p[:size]).astype(int), np.column_stack([1 - p[:size], p[:size]]))
        both = expected_by_chance_of_classes(scores, bins=1, draws=4000, seed=2)
        total = float(np.sqrt((p[:size] * (1 - p[:size])).sum())) / size
        assert both.mean == pytest.approx(total * np.sqrt(2 / np.pi), rel=0.05)
        assert both.upper == pytest.approx(total * norm.ppf(0.975), rel=0.05)


def test_weights_in_the_simulation() -> None:
    """Weights of 4 each change nothing about shares, so nothing about the error of chance."""
    y, p = softmax_problem(300, 3, 1)
    plain = expected_by_chance(Scores(y, p), draws=300, seed=5)
    weighted = expected_by_chance(Scores(y, p, np.full(300, 4.0)), draws=300, seed=5)
    assert weighted.mean == pytest.approx(plain.mean, rel=1e-9)


@PROBLEM
@each("weighted", [False, True])
def test_decomposition_without_bins(problem: str, weighted: bool) -> None:
    """Against an isotonic regression that is not ours."""
    from sklearn.isotonic import IsotonicRegression

    y, p = PROBLEMS[problem]
    weights = np.random.default_rng(0).gamma(1.0, size=y.size) if weighted else np.ones(y.size)
    scores = Scores(y, p, weights if weighted else None)
    for code in range(p.shape[1]):
        hit = (y == code).astype(float)
        calibrated = IsotonicRegression().fit_transform(p[:, code], hit, sample_weight=weights)
        share = np.average(hit, weights=weights)

        def brier(forecast: Array | float, hit: Array = hit) -> float:
            return float(np.average((forecast - hit) ** 2, weights=weights))

        ours = decompose(scores, code)
        np.testing.assert_allclose(ours.brier, brier(p[:, code]), rtol=1e-10)
        np.testing.assert_allclose(ours.uncertainty, brier(share), rtol=1e-10)
        np.testing.assert_allclose(ours.miscalibration, brier(p[:, code]) - brier(calibrated), atol=1e-8)
        np.testing.assert_allclose(ours.discrimination, brier(share) - brier(calibrated), atol=1e-8)
        total = ours.miscalibration - ours.discrimination + ours.uncertainty
        np.testing.assert_allclose(total, ours.brier, rtol=1e-12)


def test_decomposition_in_a_batch() -> None:
    y, p = tied_problem(80, 3, 2)
    weights = np.random.default_rng(0).poisson(1.0, (4, 80)).astype(float)
    batch = decompose(Scores(y, p, weights), 1)
    for row in range(4):
        single = decompose(Scores(y, p, weights[row]), 1)
        np.testing.assert_allclose(batch.miscalibration[row], single.miscalibration, rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(batch.discrimination[row], single.discrimination, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weighted", [False, True])
def test_murphy_is_exact_on_distinct_forecasts(seed: int, weighted: bool) -> None:
    y, p = tied_problem(200, 3, seed)
    weights = np.random.default_rng(seed).gamma(1.0, size=200) if weighted else np.ones(200)
    for code in range(3):
        parts = decompose(Scores(y, p, weights if weighted else None), code)
        reliability = resolution = 0.0
        hit = y == code
        for forecast in np.unique(p[:, code]):
            inside = p[:, code] == forecast
            frequency = np.average(hit[inside], weights=weights[inside])
            reliability += weights[inside].sum() * (forecast - frequency) ** 2
            resolution += weights[inside].sum() * (frequency - np.average(hit, weights=weights)) ** 2
        np.testing.assert_allclose(parts.reliability, reliability / weights.sum(), rtol=1e-9, atol=1e-14)
        np.testing.assert_allclose(parts.resolution, resolution / weights.sum(), rtol=1e-9, atol=1e-14)


def test_murphy_by_hand() -> None:
    """Forecasts 0.2 (one of four happens) and 0.8 (three of four): REL 0.0025, RES 0.0625, UNC 0.25."""
    p = np.repeat([0.2, 0.8], 4)
    parts = decompose(Scores([1, 0, 0, 0, 1, 1, 1, 0], np.column_stack([1 - p, p])), 1)
    np.testing.assert_allclose([parts.reliability, parts.resolution, parts.uncertainty], [0.0025, 0.0625, 0.25])


def test_murphy_of_forecasts_that_all_differ() -> None:
    """Every sample is a bin of its own: its reliability is the score, its resolution all uncertainty."""
    y, p = softmax_problem(300, 2, 1)
    parts = decompose(Scores(y, p), 1)
    assert parts.reliability == pytest.approx(float(parts.brier), rel=1e-12)
    assert parts.resolution == pytest.approx(float(parts.uncertainty), rel=1e-12)


def test_spiegelhalter_by_hand() -> None:
    """Y - p times 1 - 2p over the root of the summed (1 - 2p)^2 p (1 - p)."""
    p = np.array([0.1, 0.3, 0.6, 0.9])
    y = np.array([0, 1, 1, 0])
    z, p_value = spiegelhalter(Scores(y, np.column_stack([1 - p, p])), 1)
    top = (-0.1 * 0.8) + (0.7 * 0.4) + (0.4 * -0.2) + (-0.9 * -0.8)
    bottom = np.sqrt(0.64 * 0.09 + 0.16 * 0.21 + 0.04 * 0.24 + 0.64 * 0.09)
    assert z == pytest.approx(top / bottom, rel=1e-12)
    assert p_value == pytest.approx(2 * norm.sf(abs(top / bottom)), rel=1e-12)


def test_spiegelhalter_at_the_verified_quantile() -> None:
    """Z = 1.024 has a two-sided p of 0.306."""
    assert 2 * norm.sf(1.024) == pytest.approx(0.306, abs=5e-4)
    rng = np.random.default_rng(1)
    p = rng.random(50_000)
    honest = Scores((rng.random(50_000) < p).astype(int), np.column_stack([1 - p, p]))
    assert abs(spiegelhalter(honest, 1)[0]) < 3


def test_spiegelhalter_without_variance() -> None:
    certain = Scores([0, 1], [[1.0, 0.0], [0.5, 0.5]])
    assert all(np.isnan(part) for part in spiegelhalter(certain, 1))
