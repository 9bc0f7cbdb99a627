"""Tests of counts of two runs on weighted samples: by definition in fractions, by statsmodels, with one weight."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from app.kernel.compare.cost_ratios import paired_gap, worth_of_pairs
from app.kernel.compare.paired.joint import JointCounts, combine
from app.kernel.compare.paired.tests import (
    ChiSquared,
    PredictiveCounts,
    bhapkar,
    bowker,
    discordant,
    equal_recalls,
    prediction_table,
    predictive_values,
    stuart_maxwell,
)
from app.kernel.numerics.arrays import Array
from tests.witnesses import sm

RANDOM = np.random.default_rng(8)
SIZE, CLASSES = 90, 3
TRUTH = RANDOM.integers(0, CLASSES, SIZE)
FIRST, SECOND = (np.where(RANDOM.random(SIZE) < 0.6, TRUTH, RANDOM.integers(0, CLASSES, SIZE)) for _ in range(2))
# Quarters, which floats hold exactly.
WEIGHTS = RANDOM.integers(1, 13, SIZE) / 4.0


def joint_of(weights: Array | None) -> JointCounts:
    return combine(TRUTH, np.stack([FIRST, SECOND]), CLASSES, weights=weights)


def counted(weights: Array | None) -> list[ChiSquared]:
    joint = joint_of(weights)
    table, (better, worse) = prediction_table(joint), discordant(joint)
    squares, spread = None, None
    if weights is not None:
        squares, spread = prediction_table(joint, squares=True), np.add(*discordant(joint, squares=True))
    return [
        equal_recalls(better, worse, spread),
        stuart_maxwell(table, squares),
        bhapkar(table, squares),
        bowker(table, squares),
    ]


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
    found = bhapkar(prediction_table(joint), prediction_table(joint, squares=True))
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
    joint = joint_of(WEIGHTS)
    counts, squares = (PredictiveCounts.of(joint, squares=which) for which in (False, True))
    if absent:
        counts, squares = counts.of_absence(joint.actual()), squares.of_absence(joint.squares())
    found = predictive_values(counts, squares)
    for k in range(CLASSES):
        statistic, variance = exact_values(k, absent=absent)
        assert float(found.score[k]) == pytest.approx(float(statistic), rel=1e-11)
        assert float(found.log_ratio_variance[k]) == pytest.approx(float(variance), rel=1e-11)
        assert np.isnan(found.weighted_score[k])


@pytest.mark.parametrize("weight", [1.0, 5.0])
def test_gaps_of_error_rates_with_one_weight_are_those_without(weight: float) -> None:
    sums, members = np.array([12.0, 5.0, 80.0]), 80.0
    worth = worth_of_pairs(weight * sums, weight**2 * sums, members)
    assert worth == pytest.approx(members, rel=1e-12)
    assert paired_gap(*(weight * sums * worth / (weight * sums[2])).tolist()) == pytest.approx(
        paired_gap(12.0, 5.0, 80.0)
    )


def test_what_a_gap_is_worth_follows_from_whites_variance() -> None:
    own = TRUTH == 1
    gained = ((SECOND == TRUTH).astype(float) - (FIRST == TRUTH))[own]
    weights = WEIGHTS[own]
    joint = joint_of(WEIGHTS)
    sums, squares = (
        np.array([one[1] for one in (*discordant(joint, squares=which), joint.squares() if which else joint.actual())])
        for which in (False, True)
    )
    fit = sm.WLS(gained, np.ones(gained.size), weights=weights).fit(cov_type="HC0")
    mean = float(fit.params[0])
    spread = float(weights @ gained**2 / weights.sum()) - mean**2
    expected = min(spread / float(fit.bse[0]) ** 2, gained.size)
    assert worth_of_pairs(sums, squares, float(joint.members()[1])) == pytest.approx(expected, rel=1e-10)
    assert expected < gained.size
    # Nothing that differs shows no variance: Kish's number of samples.
    assert worth_of_pairs(np.array([0.0, 0.0, 6.0]), np.array([0.0, 0.0, 14.0]), 3.0) == pytest.approx(36 / 14)
