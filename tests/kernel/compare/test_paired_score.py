"""Limits, p and probabilities of paired differences agree; one class has Tango's, several those of the likelihood."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import xlogy
from scipy.stats import norm

from app.kernel.compare.paired.effects import Effects, PairedDifferences, PairSlopes
from app.kernel.compare.paired.joint import JointCounts, combine
from app.kernel.compare.paired.tests import mcnemar_mid_p
from app.kernel.matrix.table import Table
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import Array
from tests.bank import each
from tests.kernel.compare.tango import tango_interval

KEYS = ("balanced_accuracy", "g_mean", "h_mean", "mcc", "cohen_kappa", "macro_f1", "macro_precision", "weighted_f1")
METRICS = [catalogue().of_matrices.by_name[key].compute for key in KEYS]
BALANCED = METRICS[:1]


def two_classes(positive: tuple[int, int, int, int], negative: tuple[int, int, int, int]) -> JointCounts:
    """Samples of both classes that both runs, the first only, the second only and neither have right."""
    rows = [
        (actual, actual if first else 1 - actual, actual if second else 1 - actual, count)
        for actual, counts in ((1, positive), (0, negative))
        for (first, second), count in zip(product((1, 0), repeat=2), counts, strict=True)
        if count
    ]
    truth, first, second, counts = np.array(rows).T
    return JointCounts(2, truth, np.stack([first, second]), counts.astype(np.float64))


def some_runs(seed: int, classes: int = 3, sizes: Any = (12, 40, 90), shift: float = 0.0) -> JointCounts:
    random = np.random.default_rng(seed)
    truth = np.repeat(np.arange(classes), sizes)
    wrong = (truth + random.integers(1, classes, (2, truth.size))) % classes
    right = random.random((2, truth.size)) < np.where(random.random(truth.size) < 0.2, [[0.5 + shift], [0.5]], 0.95)
    return combine(truth, np.where(right, truth, wrong), classes)


def paired_effects(joint: JointCounts, functionals: list[Any]) -> Effects:
    """Effects on all values of some metrics, in their order."""

    def together(table: Table) -> Array:
        shape = table.counts.shape[:-2]
        return np.concatenate([np.reshape(one(table), (*shape, -1)) for one in functionals], axis=-1)

    return PairSlopes.numeric(joint.matrices(), together, joint.scales()).effects(joint)


def both(effects: Effects) -> tuple[Array, PairedDifferences]:
    score = PairedDifferences(effects)
    return score.p, score


# One class is Tango's interval.


@each(("b", "c", "n"), [(40, 20, 160), (9, 7, 150), (30, 34, 3000), (0, 0, 20), (0, 5, 40)])
@each("level", [0.8, 0.95, 0.99])
def test_one_rate_has_tangos_limits_where_mcnemar_agrees(b: int, c: int, n: int, level: float) -> None:
    predictions, counts = np.array([[0, 1, 0], [1, 0, 0]]), np.array([b, c, n - b - c], dtype=np.float64)
    joint = JointCounts(1, np.zeros(3, dtype=np.int64), predictions, counts)
    slopes = PairSlopes(np.array([(b - c) / n]), np.array([[[1.0 / n, 0.0]]]), lambda: np.array([[1.0 / n]]))
    found = PairedDifferences(slopes.effects(joint)).limits(level)
    np.testing.assert_allclose(np.ravel(found), tango_interval(b, c, n, level), atol=1e-9)


def test_a_recall_among_other_metrics_is_that_rate() -> None:
    effects = paired_effects(
        two_classes((30, 9, 3, 8), (200, 5, 9, 50)), [catalogue().of_matrices.by_name["recall"].compute]
    )
    p, score = both(effects)
    np.testing.assert_allclose(p, [mcnemar_mid_p(5, 9), mcnemar_mid_p(9, 3)])
    low, high = score.limits(0.95)
    np.testing.assert_allclose([low[1], high[1]], tango_interval(9, 3, 50), atol=1e-7)


def test_four_samples_are_not_enough() -> None:
    """20 positives of 300, 4 right in the first run only: no exact test rejects at 5 %, and no limit does."""
    effects = paired_effects(two_classes((12, 4, 0, 4), (270, 0, 0, 10)), METRICS)
    p, score = both(effects)
    np.testing.assert_allclose(effects.tail, float(mcnemar_mid_p(4, 0)) / 2)
    np.testing.assert_allclose(p, 0.0625, rtol=0.02)
    assert (p >= 0.0625 - 1e-12).all()
    low, high = score.limits(0.95)
    assert (low <= 0).all()
    assert (high > 0).all()
    np.testing.assert_allclose(score.chance_above(0.0), 1 - p / 2)
    assert (score.limits(0.9)[0] > 0).all()


def test_what_a_class_of_few_may_hide_counts() -> None:
    """The first run gains in a class of 900; in the other no sample of ten has changed, which shows little."""
    effects = paired_effects(two_classes((8, 0, 0, 2), (800, 40, 10, 50)), BALANCED)
    p, score = both(effects)
    assert 2 * float(effects.tail[0]) < 1e-3
    assert p[0] > 0.5
    # A recall of ten samples that never changed is known to 1 - 10 / (10 + 1.96^2), a quarter: Tango with b = c = 0.
    assert score.limits(0.95)[0][0] < effects.difference[0] - 0.2 / 2


# One story.


@each("shift", [0.0, 0.3])
@each("seed", range(5))
def test_limits_p_and_probability_agree(seed: int, shift: float) -> None:
    effects = paired_effects(some_runs(seed, shift=shift), METRICS)
    p, score = both(effects)
    surest = score.chance_above(0.0)
    np.testing.assert_allclose(2 * np.minimum(surest, 1 - surest), p, rtol=1e-6, atol=1e-12)
    last = np.full(len(KEYS), effects.difference), np.full(len(KEYS), effects.difference)
    for level in (0.05, 0.5, 0.9, 0.95, 0.999):
        low, high = score.limits(level)
        np.testing.assert_array_equal((low > 0) | (high < 0), p < 1 - level)
        assert (low <= last[0] + 1e-12).all()
        assert (high >= last[1] - 1e-12).all()
        assert ((low <= effects.difference) & (effects.difference <= high)).all()
        last = low, high
    steps = np.array([score.chance_above(at) for at in np.linspace(-0.4, 0.4, 17)])
    assert (np.diff(steps, axis=0) <= 1e-12).all()


def test_probabilities_are_those_of_the_limits() -> None:
    _, score = both(paired_effects(some_runs(3, shift=0.4), BALANCED))
    for level in (0.5, 0.9, 0.99):
        low, high = (float(end[0]) for end in score.limits(level))
        assert float(score.chance_above(high)[0]) == pytest.approx((1 - level) / 2, abs=1e-7)
        assert float(score.chance_above(low)[0]) == pytest.approx((1 + level) / 2, abs=1e-7)
    assert float(score.chance_above(2.0)[0]) == 0.0
    assert float(score.chance_above(-2.0)[0]) == 1.0


def test_runs_that_exchange_places_exchange_signs() -> None:
    joint = some_runs(5, shift=0.2)
    swapped = JointCounts(joint.n_classes, joint.truth, joint.predictions[::-1], joint.counts)
    (p, score), (other_p, other) = (both(paired_effects(one, METRICS)) for one in (joint, swapped))
    np.testing.assert_allclose(p, other_p)
    np.testing.assert_allclose(score.limits(0.9)[0], -other.limits(0.9)[1], atol=1e-12)
    np.testing.assert_allclose(score.chance_above(0.01), 1 - other.chance_above(-0.01), atol=1e-9)


def test_identical_runs() -> None:
    truth = np.repeat([0, 1, 2], [5, 20, 60])
    joint = combine(truth, np.stack([truth, truth]), 3)
    effects = paired_effects(joint, METRICS)
    p, score = both(effects)
    assert (p == 1).all()
    low, high = score.limits(0.95)
    np.testing.assert_allclose(low, -high)
    assert (high > 0).all()
    # Three samples of five may well have changed without any of five having done so.
    assert high[0] >= 0.4 / 3


def test_what_does_not_exist_has_no_limits() -> None:
    truth = np.repeat([0, 1], [30, 5])
    never = combine(truth, np.stack([np.zeros_like(truth), truth]), 2)
    effects = paired_effects(never, [catalogue().of_matrices.by_name["macro_precision"].compute, *BALANCED])
    p, score = both(effects)
    assert np.isnan([p[0], *(end[0] for end in score.limits(0.9)), score.chance_above(0.0)[0]]).all()
    assert p[1] == pytest.approx(float(mcnemar_mid_p(0, 5)))


# Against first principles.


def test_p_is_that_of_all_swaps() -> None:
    """Eleven samples on which the runs differ: all 2048 swaps of them, by the metric itself."""
    truth = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2] + [0] * 6 + [1] * 9 + [2] * 4)
    first = np.array([0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2] + [0] * 6 + [1] * 9 + [2] * 4)
    second = np.array([1, 1, 2, 0, 0, 0, 2, 0, 1, 0, 1] + [0] * 6 + [1] * 9 + [0] * 4)
    second[-4:] = 2
    joint = combine(truth, np.stack([first, second]), 3)
    swaps = np.array(list(product((False, True), repeat=11)))
    values = []
    for swap in swaps:
        mine, theirs = first.copy(), second.copy()
        mine[:11], theirs[:11] = np.where(swap, second[:11], first[:11]), np.where(swap, first[:11], second[:11])
        table = Table(combine(truth, np.stack([mine, theirs]), 3).matrices())
        values.append(np.subtract(*BALANCED[0](table)))
    gaps = np.array(values) - values[0]
    expected = (gaps > 1e-12).mean() + 0.5 * (np.abs(gaps) <= 1e-12).mean()
    assert float(paired_effects(joint, BALANCED).tail[0]) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("positive", "negative"),
    [((12, 4, 1, 3), (120, 9, 6, 15)), ((10, 3, 0, 7), (60, 5, 4, 1)), ((9, 0, 0, 3), (80, 6, 2, 9))],
)
def test_limits_are_where_the_restricted_likelihood_puts_the_score(
    positive: tuple[int, int, int, int], negative: tuple[int, int, int, int]
) -> None:
    """Two classes: the most likely difference of the recalls of one, given that of balanced accuracy, by search."""
    effects = paired_effects(two_classes(positive, negative), BALANCED)
    classes = [
        np.array([counts[1], counts[2], counts[0] + counts[3]], dtype=np.float64) for counts in (positive, negative)
    ]
    estimate = sum((counts[0] - counts[1]) / counts.sum() for counts in classes) / 2
    for level in (0.5, 0.99):
        for limit, sign in zip(PairedDifferences(effects).limits(level), (1, -1), strict=True):
            total = 2 * float(limit[0])

            def shares(gap: float, total: float = total) -> list[Array]:
                return [most_likely(counts, one) for counts, one in zip(classes, (gap, total - gap), strict=True)]

            def loss(gap: float) -> float:
                return -sum(float(xlogy(n, p).sum()) for n, p in zip(classes, shares(gap), strict=True))

            ends = max(-1.0, total - 1.0) + 1e-9, min(1.0, total + 1.0) - 1e-9
            best = min(np.linspace(*ends, 4001), key=loss)
            found = minimize_scalar(loss, bounds=(best - 2e-3, best + 2e-3), options={"xatol": 1e-12})
            variance = sum(
                (p[0] + p[1] - (p[0] - p[1]) ** 2) / n.sum() / 4
                for n, p in zip(classes, shares(float(found.x)), strict=True)
            )
            assert (estimate - total / 2) / np.sqrt(variance) == pytest.approx(
                sign * norm.isf((1 - level) / 2), abs=1e-4
            )


def most_likely(counts: Array, gap: float) -> Array:
    """Shares of better, worse and other samples that differ by a gap. Tango (1998)."""
    better, worse, n = counts[0], counts[1], counts.sum()
    linear = (2 * n - better + worse) * gap - better - worse
    share = (np.sqrt(max(linear**2 + 8 * n * worse * gap * (1 - gap), 0.0)) - linear) / (4 * n)
    share = max(share, 0.0, -gap)
    return np.array([share + gap, share, max(1 - 2 * share - gap, 0.0)])


def test_what_is_far_from_a_sum_is_said_to_be() -> None:
    smallest = catalogue().of_matrices.by_name["recall"].compute
    joint = two_classes((60, 40, 0, 0), (50, 0, 30, 20))
    effects = paired_effects(joint, [lambda table: smallest(table).min(axis=-1), *BALANCED])
    assert effects.faithful.tolist() == [False, True]
