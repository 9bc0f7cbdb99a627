"""Tests of counts of two runs on samples in groups: by definition in fractions, by statsmodels, with groups of one."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from app.kernel.compare.cost_ratios import Cheaper, RateGaps, certain_cost_ranges
from app.kernel.compare.paired.joint import JointCounts
from app.kernel.compare.paired.tests import ChiSquared, RunPair, paired_gap
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.designs import worth_of_few
from app.kernel.uncertainty.groups import Grouping
from app.kernel.uncertainty.intervals import two_sided_z
from tests.witnesses import sm

RANDOM = np.random.default_rng(4)
N_GROUPS, CLASSES = 25, 3
GROUP = np.repeat(np.arange(N_GROUPS), RANDOM.integers(2, 9, N_GROUPS))
SIZE = GROUP.size
TRUTH = RANDOM.integers(0, CLASSES, SIZE)
EASY = RANDOM.beta(2, 1, N_GROUPS)[GROUP]
FIRST, SECOND = (np.where(RANDOM.random(SIZE) < EASY, TRUTH, RANDOM.integers(0, CLASSES, SIZE)) for _ in range(2))
# Quarters, which floats hold exactly.
WEIGHTS = RANDOM.integers(1, 13, SIZE) / 4.0


def pair_of(group: Any = GROUP, weights: Array | None = None, times: int = 1) -> RunPair:
    codes = (np.repeat(one, times) for one in (TRUTH, FIRST, SECOND))
    truth, *predicted = (one.astype(np.int64) for one in codes)
    each = None if weights is None else np.repeat(weights, times)
    grouping = None if group is None else Grouping(np.repeat(group, times), int(group.max()) + 1)
    return RunPair(JointCounts(CLASSES, truth, np.stack(predicted), np.ones(truth.size), each, grouping))


def found_of(pair: RunPair) -> list[ChiSquared]:
    return [pair.equal_recalls(), pair.stuart_maxwell(), pair.bhapkar(), pair.bowker()]


def added(columns: Any, weights: Any) -> Array:
    """What each group adds (G, k)."""
    return np.stack([(weights[:, None] * columns)[group == GROUP].sum(axis=0) for group in range(N_GROUPS)])


def columns_of(test: str) -> Any:
    codes = np.arange(CLASSES)
    if test == "recalls":
        return ((FIRST == TRUTH).astype(int) - (SECOND == TRUTH))[:, None] * (TRUTH[:, None] == codes)
    if test == "margins":
        return (FIRST[:, None] == codes).astype(int) - (SECOND[:, None] == codes)
    pairs = [(i, j) for i in codes for j in codes if i < j]
    return np.stack([((i == FIRST) & (j == SECOND)).astype(int) - ((j == FIRST) & (i == SECOND)) for i, j in pairs], 1)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_by_their_definition_group_by_group(weights: Array | None) -> None:
    each, found = np.ones(SIZE) if weights is None else weights, found_of(pair_of(weights=weights))
    for place, name in ((0, "recalls"), (1, "margins"), (3, "exchanges")):
        moves = added(columns_of(name), each)
        sums, spread = moves.sum(axis=0), moves.T @ moves
        expected = float(sums @ np.linalg.pinv(spread, hermitian=True) @ sums)
        rank = int(np.linalg.matrix_rank(spread, hermitian=True))
        assert found[place].statistic == pytest.approx(expected, rel=1e-9)
        assert found[place].freedom == rank
        assert found[place].p == pytest.approx(float(stats.chi2.sf(expected, rank)), rel=1e-9)
    mean = each @ columns_of("margins") / each.sum()
    moves = added(columns_of("margins") - mean, each)
    spread = N_GROUPS / (N_GROUPS - 1) * moves.T @ moves
    sums = each.sum() * mean
    wald = float(sums @ np.linalg.pinv(spread, hermitian=True) @ sums)
    assert found[2].statistic == pytest.approx(wald, rel=1e-9)
    assert found[2].freedom == 2
    left = N_GROUPS - 2
    assert found[2].p == pytest.approx(float(stats.f.sf(wald * left / ((N_GROUPS - 1) * 2), 2, left)), rel=1e-9)


def test_groups_of_one_are_no_groups() -> None:
    alone = found_of(pair_of(np.arange(SIZE)))
    for place, (found, plain) in enumerate(zip(alone, found_of(pair_of(None)), strict=True)):
        # Wald's test says by how much samples are fewer than infinitely many.
        close = 1e-10 if place != 2 else 2.0 / SIZE
        assert (found.statistic, found.p) == pytest.approx((plain.statistic, plain.p), rel=close, abs=0.1 * close)
        assert found.freedom == plain.freedom


def test_copies_in_a_group_are_no_evidence() -> None:
    copied = found_of(pair_of(np.arange(SIZE), times=4))
    for found, plain in zip(copied, found_of(pair_of(np.arange(SIZE))), strict=True):
        assert (found.statistic, found.p, found.freedom) == pytest.approx(
            (plain.statistic, plain.p, plain.freedom), rel=1e-9
        )


def test_margins_of_two_classes_as_statsmodels_has_them() -> None:
    first, second, truth = (np.minimum(codes, 1).astype(np.int64) for codes in (FIRST, SECOND, TRUTH))
    joint = JointCounts(2, truth, np.stack([first, second]), np.ones(SIZE), WEIGHTS, Grouping(GROUP, N_GROUPS))
    found = RunPair(joint).bhapkar()
    fit = sm.WLS((first - second).astype(float), np.ones(SIZE), weights=WEIGHTS).fit(
        cov_type="cluster", cov_kwds={"groups": GROUP}, use_t=True
    )
    # statsmodels multiplies with (n - 1) / (n - 1) beside G / (G - 1).
    assert found.statistic == pytest.approx(float(fit.tvalues[0]) ** 2, rel=1e-10)
    assert found.p == pytest.approx(float(fit.pvalues[0]), rel=1e-8)


@pytest.mark.parametrize("absent", [False, True])
def test_predictive_values_in_fractions(absent: bool) -> None:
    w = [Fraction(one) for one in WEIGHTS]
    for k in range(CLASSES):
        values = pair_of(weights=WEIGHTS).predictive_value(k, absent=absent)
        said = [[(one[i] == k) != absent for one in (FIRST, SECOND)] for i in range(SIZE)]
        true = [(TRUTH[i] == k) != absent for i in range(SIZE)]
        n = [sum((w[i] for i in range(SIZE) if said[i][r]), Fraction(0)) for r in (0, 1)]
        v = [sum((w[i] for i in range(SIZE) if said[i][r] and true[i]), Fraction(0)) / n[r] for r in (0, 1)]
        share, p = n[1] / (n[0] + n[1]), (n[0] * v[0] + n[1] * v[1]) / (n[0] + n[1])
        moves, logs = [Fraction(0)] * N_GROUPS, [Fraction(0)] * N_GROUPS
        for i, g in enumerate(GROUP):
            one, other = said[i]
            moves[g] += w[i] * (one * share - other * (1 - share)) * (true[i] - p)
            logs[g] += w[i] * (one * (true[i] - v[0]) / (n[0] * v[0]) - other * (true[i] - v[1]) / (n[1] * v[1]))
        score = sum(moves) ** 2 / sum(one * one for one in moves)
        present = len({int(g) for g, both in zip(GROUP, said, strict=True) if any(both)})
        variance = Fraction(present, present - 1) * sum(one * one for one in logs)
        assert values.score == pytest.approx(float(score), rel=1e-11)
        assert values.log_ratio_variance == pytest.approx(float(variance), rel=1e-11)
        assert np.isnan(values.weighted_score)
        t = values.log_ratio / float(variance) ** 0.5
        assert values.relative_p == pytest.approx(2 * float(stats.t.sf(abs(t), present - 1)), rel=1e-9)


def test_predictive_values_as_generalised_estimating_equations_have_them() -> None:
    """One row for each prediction of a class, whether it is right on the run: statsmodels, clusters independent."""
    for k in range(CLASSES):
        present = pair_of().predictive_value(k)
        rows = [(TRUTH[i] == k, r, GROUP[i]) for r, one in enumerate((SECOND, FIRST)) for i in np.flatnonzero(one == k)]
        right, run, group = np.array(rows, dtype=float).T
        design, order = np.column_stack([np.ones(run.size), run]), np.argsort(group, kind="stable")
        model = sm.GEE(right[order], design[order], group[order], family=sm.families.Poisson())
        fit = model.fit()
        assert present.log_ratio == pytest.approx(float(fit.params[1]), rel=1e-6)
        few = np.unique(group).size / (np.unique(group).size - 1)
        assert present.log_ratio_variance == pytest.approx(few * float(fit.bse[1]) ** 2, rel=1e-5)
        whole = sm.GEE(right[order], design[order], group[order], family=sm.families.Binomial())
        part = sm.GEE(right[order], design[order, :1], group[order], family=sm.families.Binomial()).fit()
        score = whole.compare_score_test(part)
        assert present.score == pytest.approx(float(np.squeeze(score["statistic"])), rel=1e-5)


@pytest.mark.parametrize("absent", [False, True])
def test_predictive_values_of_groups_of_one_are_those_of_samples(absent: bool) -> None:
    for k in range(CLASSES):
        found, expected = (pair_of(group).predictive_value(k, absent=absent) for group in (np.arange(SIZE), None))
        assert (found.score, found.alone) == pytest.approx((expected.score, expected.alone), rel=1e-12)
        # Groups without a prediction of the kind say nothing of how groups differ.
        present = np.count_nonzero(((k == FIRST) != absent) | ((k == SECOND) != absent))
        few = present / (present - 1.0)
        assert found.log_ratio_variance == pytest.approx(few * expected.log_ratio_variance, rel=1e-12)


def test_many_groups_are_looked_at_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = found_of(pair_of())
    monkeypatch.setattr("app.kernel.compare.paired.tests._AT_ONCE", 2 * CLASSES)
    for found, expected in zip(found_of(pair_of()), whole, strict=True):
        assert found.statistic == pytest.approx(expected.statistic, rel=1e-12)
        assert found.freedom == expected.freedom


def test_without_enough_groups_or_time_there_is_no_statistic(monkeypatch: pytest.MonkeyPatch) -> None:
    # As many groups as sums that vary: every statistic would be that number.
    few = found_of(pair_of(GROUP % 3))
    assert [np.isnan(one.p) for one in few] == [True, False, False, True]
    monkeypatch.setattr("app.kernel.compare.paired.tests._MOST_WORK", 0)
    for one in found_of(pair_of()):
        assert np.isnan(one.p)
        assert one.freedom > 0
    grouping = Grouping(GROUP, N_GROUPS)
    alike = JointCounts(CLASSES, TRUTH.astype(np.int64), np.stack([FIRST, FIRST]), np.ones(SIZE), grouping=grouping)
    assert {(one.statistic, one.freedom, one.p) for one in found_of(RunPair(alike))} == {(0.0, 0, 1.0)}


def test_what_a_gap_is_worth_follows_from_the_variance_of_statsmodels() -> None:
    own = TRUTH == 1
    found = pair_of(weights=WEIGHTS).error_gap(1, 0.95)
    assert found is not None
    gap, found_variance, moves = found
    gained = ((SECOND == TRUTH).astype(float) - (FIRST == TRUTH))[own]
    fit = sm.WLS(gained, np.ones(gained.size), weights=WEIGHTS[own]).fit(
        cov_type="cluster", cov_kwds={"groups": GROUP[own], "use_correction": False}
    )
    assert float(moves @ moves) == pytest.approx(float(fit.bse[0]) ** 2, rel=1e-10)
    present = np.unique(GROUP[own]).size
    variance = float(fit.bse[0]) ** 2 * present / (present - 1)
    better, worse = (float(WEIGHTS[own] @ (gained == sign) / WEIGHTS[own].sum()) for sign in (-1, 1))
    spread = better + worse - float(fit.params[0]) ** 2
    sizes = np.bincount(GROUP[own], WEIGHTS[own])
    kish = float(sizes.sum() ** 2 / (sizes**2).sum())
    worth = float(worth_of_few(min(spread / variance, gained.size), kish, 0.95))
    assert worth < gained.size
    assert (gap, found_variance) == pytest.approx(paired_gap(better * worth, worse * worth, worth), rel=1e-10)
    # Nothing that differs shows no variance: as many samples as groups. One group says nothing.
    codes, grouping = np.ones(6, np.int64), Grouping(np.array([0, 0, 0, 0, 1, 1]), 3)
    alike = RunPair(JointCounts(2, codes, np.stack([codes, codes]), np.ones(6), grouping=grouping)).error_gap(1, 0.95)
    assert alike is not None
    assert alike[1] == pytest.approx(paired_gap(0.0, 0.0, 2.0)[1])
    one = JointCounts(2, codes, np.stack([codes, 0 * codes]), np.ones(6), grouping=Grouping(0 * codes, 2))
    assert RunPair(one).error_gap(1, 0.95) is None


@pytest.mark.parametrize("covariance", [-0.004, 0.0, 0.004])
def test_ranges_of_costs_with_errors_that_go_together(covariance: float) -> None:
    gaps, z = RateGaps(0.2, -0.15, 0.004, 0.005, covariance), two_sided_z(0.95)
    found = certain_cost_ranges(gaps, 0.3, 0.95)
    assert sum(one.cheaper is Cheaper.UNDECIDED for one in found) == 1
    for ratio in np.geomspace(0.01, 200, 400):
        gap = 0.3 * ratio * gaps.misses + 0.7 * gaps.false_alarms
        deviation = np.sqrt((0.3 * ratio) ** 2 * 0.004 + 0.7**2 * 0.005 + 2 * 0.3 * 0.7 * ratio * covariance)
        (said,) = [one.cheaper for one in found if one.low < ratio <= (np.inf if one.high is None else one.high)]
        assert said is (Cheaper.UNDECIDED if abs(gap) <= z * deviation else Cheaper.A if gap < 0 else Cheaper.B)
