"""Tests of counts of two runs on weighted samples: by definition in fractions, by statsmodels, with one weight."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from app.kernel.compare.paired.joint import combine
from app.kernel.compare.paired.tests import ChiSquared, RunPair, paired_gap
from app.kernel.numerics.arrays import Array
from tests.witnesses import sm

RANDOM = np.random.default_rng(8)
SIZE, CLASSES = 90, 3
TRUTH = RANDOM.integers(0, CLASSES, SIZE)
FIRST, SECOND = (np.where(RANDOM.random(SIZE) < 0.6, TRUTH, RANDOM.integers(0, CLASSES, SIZE)) for _ in range(2))
# Quarters, which floats hold exactly.
WEIGHTS = RANDOM.integers(1, 13, SIZE) / 4.0


def pair_of(weights: Array | None) -> RunPair:
    return RunPair(combine(TRUTH, np.stack([FIRST, SECOND]), CLASSES, weights=weights))


def counted(weights: Array | None) -> list[ChiSquared]:
    pair = pair_of(weights)
    return [pair.equal_recalls(), pair.stuart_maxwell(), pair.bhapkar(), pair.bowker()]


def score(columns: Any, weights: Array, *, centred: bool = False) -> tuple[float, int]:
    """U' V^- U with U = sum w u and V = sum w^2 u u', or (u - mean)(u - mean)' in its place."""
    columns = np.asarray(columns, dtype=float)
    sums = weights @ columns
    away = columns - sums / weights.sum() if centred else columns
    spread = (weights[:, None] * away).T @ (weights[:, None] * away)
    rank = int(np.linalg.matrix_rank(spread, hermitian=True))
    return float(sums @ np.linalg.pinv(spread, hermitian=True) @ sums), rank


def test_by_their_definition_sample_by_sample() -> None:
    codes = np.arange(CLASSES)
    gained = (FIRST == TRUTH).astype(int) - (SECOND == TRUTH)
    recalls = gained[:, None] * (TRUTH[:, None] == codes)
    margins = (FIRST[:, None] == codes).astype(int) - (SECOND[:, None] == codes)
    pairs = [(i, j) for i in codes for j in codes if i < j]
    exchanged = np.stack(
        [((i == FIRST) & (j == SECOND)).astype(int) - ((j == FIRST) & (i == SECOND)) for i, j in pairs], axis=1
    )
    expected = [
        score(recalls, WEIGHTS),
        score(margins, WEIGHTS),
        score(margins, WEIGHTS, centred=True),
        score(exchanged, WEIGHTS),
    ]
    for found, (statistic, freedom) in zip(counted(WEIGHTS), expected, strict=True):
        assert found.statistic == pytest.approx(statistic, rel=1e-9)
        assert found.freedom == freedom


@pytest.mark.parametrize("weight", [1.0, 0.25, 7.0])
def test_one_weight_for_all_is_none(weight: float) -> None:
    for found, plain in zip(counted(np.full(SIZE, weight)), counted(None), strict=True):
        assert (found.statistic, found.p) == pytest.approx((plain.statistic, plain.p), rel=1e-10)
        assert found.freedom == plain.freedom


def test_recalls_and_symmetry_in_fractions() -> None:
    weights = [Fraction(one) for one in WEIGHTS]
    by_class = Fraction(0)
    for k in range(CLASSES):
        signed = [(int(FIRST[i] == k) - int(SECOND[i] == k), weights[i]) for i in range(SIZE) if TRUTH[i] == k]
        total, square = sum(s * w for s, w in signed), sum(s * s * w * w for s, w in signed)
        by_class += Fraction(total * total, square)
    symmetry = Fraction(0)
    for i in range(CLASSES):
        for j in range(i):
            signed = [
                ((a == i and b == j) - (a == j and b == i), w)
                for a, b, w in zip(FIRST.tolist(), SECOND.tolist(), weights, strict=True)
            ]
            total, square = sum(s * w for s, w in signed), sum(s * s * w * w for s, w in signed)
            symmetry += Fraction(total * total, square)
    found = counted(WEIGHTS)
    assert found[0].statistic == pytest.approx(float(by_class), rel=1e-12)
    assert found[3].statistic == pytest.approx(float(symmetry), rel=1e-12)


def test_margins_of_two_classes_as_statsmodels_has_them() -> None:
    """Bhapkar's is Wald's test that a weighted mean is 0, with White's variance."""
    first, second = (np.minimum(codes, 1) for codes in (FIRST, SECOND))
    joint = combine(np.minimum(TRUTH, 1), np.stack([first, second]), 2, weights=WEIGHTS)
    found = RunPair(joint).bhapkar()
    fit = sm.WLS((first - second).astype(float), np.ones(SIZE), weights=WEIGHTS).fit(cov_type="HC0")
    assert found.statistic == pytest.approx(float(fit.tvalues[0]) ** 2, rel=1e-10)
    assert found.p == pytest.approx(float(fit.pvalues[0]), rel=1e-8)


def exact_values(k: int, *, absent: bool) -> tuple[Fraction, Fraction]:
    """The generalised score statistic, and the variance of the log ratio, by their definition over the samples."""
    said = [[(one[i] == k) != absent for one in (FIRST, SECOND)] for i in range(SIZE)]
    true = [(TRUTH[i] == k) != absent for i in range(SIZE)]
    w = [Fraction(one) for one in WEIGHTS]
    n = [sum(w[i] for i in range(SIZE) if said[i][r]) for r in (0, 1)]
    v = [sum(w[i] for i in range(SIZE) if said[i][r] and true[i]) / n[r] for r in (0, 1)]
    share = n[1] / (n[0] + n[1])
    p = (n[0] * v[0] + n[1] * v[1]) / (n[0] + n[1])
    moves = [w[i] * (said[i][0] * share - said[i][1] * (1 - share)) * (true[i] - p) for i in range(SIZE)]
    logs = [
        w[i] * (said[i][0] * (true[i] - v[0]) / (n[0] * v[0]) - said[i][1] * (true[i] - v[1]) / (n[1] * v[1]))
        for i in range(SIZE)
    ]
    return sum(moves) ** 2 / sum(one * one for one in moves), sum(one * one for one in logs)


@pytest.mark.parametrize("absent", [False, True])
def test_predictive_values_in_fractions(absent: bool) -> None:
    for k in range(CLASSES):
        found = pair_of(WEIGHTS).predictive_value(k, absent=absent)
        statistic, variance = exact_values(k, absent=absent)
        assert found.score == pytest.approx(float(statistic), rel=1e-11)
        assert found.log_ratio_variance == pytest.approx(float(variance), rel=1e-11)
        assert np.isnan(found.weighted_score)


def error_gap(pair: RunPair) -> tuple[float, float]:
    """The gap and its variance."""
    found = pair.error_gap(1, 0.95)
    assert found is not None
    return found[:2]


@pytest.mark.parametrize("weight", [1.0, 5.0])
def test_gaps_of_error_rates_with_one_weight_are_those_without(weight: float) -> None:
    own = TRUTH == 1
    right = FIRST[own] == 1, SECOND[own] == 1
    better, worse = int((right[0] & ~right[1]).sum()), int((right[1] & ~right[0]).sum())
    for weights in (None, np.full(SIZE, weight)):
        found = error_gap(pair_of(weights))
        assert found == pytest.approx(paired_gap(better, worse, int(own.sum())), rel=1e-12)


def test_what_a_gap_is_worth_follows_from_whites_variance() -> None:
    own = TRUTH == 1
    gained = ((SECOND == TRUTH).astype(float) - (FIRST == TRUTH))[own]
    weights = WEIGHTS[own]
    fit = sm.WLS(gained, np.ones(gained.size), weights=weights).fit(cov_type="HC0")
    mean = float(fit.params[0])
    better, worse = (float(weights @ (gained == sign) / weights.sum()) for sign in (-1, 1))
    worth = min((better + worse - mean**2) / float(fit.bse[0]) ** 2, gained.size)
    assert worth < gained.size
    found = error_gap(pair_of(WEIGHTS))
    assert found == pytest.approx(paired_gap(better * worth, worse * worth, worth), rel=1e-10)
    # Nothing that differs shows no variance: Kish's number of samples.
    alike = RunPair(combine(np.ones(3, np.int64), np.ones((2, 3), np.int64), 2, weights=np.array([1.0, 2.0, 3.0])))
    assert error_gap(alike)[1] == pytest.approx(paired_gap(0.0, 0.0, 36 / 14)[1])
