"""Causes of losses: parts that add up, against the recalibrations of scikit-learn and the jackknife."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from app.kernel.loss_causes import LossSplit, split_loss
from app.kernel.metrics.card import Recalibration
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.samples.recalibration import expit
from app.kernel.samples.scores import Codes, Scores
from tests.bank import each

Runs = tuple[tuple[Array, Array], tuple[Mask, Mask]]


def drawn(rng: np.random.Generator, n: int, *, paired: bool = False) -> Runs:
    """Two runs: the second one has a rarer class, is overconfident, and separates less."""
    stated, hit = list[Array](), list[Mask]()
    for share, slope, noise in ((0.4, 1.0, 0.8), (0.2, 1.8, 1.2)):
        is_hit = hit[0] if paired and hit else rng.random(n) < share
        odds = slope * (1.5 * is_hit - 0.75 + noise * rng.normal(size=n)) - 0.3
        stated.append(np.round(expit(odds), 2).clip(0.01, 0.99))
        hit.append(is_hit)
    return (stated[0], stated[1]), (hit[0], hit[1])


def of_two(kind: Recalibration, stated: tuple[Array, Array], hit: tuple[Mask, Mask]) -> LossSplit | None:
    first, second = (
        Scores(is_hit.astype(np.intp), np.stack([1.0 - own, own], axis=1))
        for own, is_hit in zip(stated, hit, strict=True)
    )
    return split_loss(kind, (first, second))


def loss_of(kind: Recalibration, chance: Array, hit: Mask) -> Array:
    of_truth = np.where(hit, chance, 1.0 - chance)
    found: Array = -np.log(of_truth) if kind is Recalibration.LINE else (1.0 - of_truth) ** 2
    return found


def witness(kind: Recalibration, stated: Array, hit: Mask, weights: Array) -> Array:
    """Recalibrated chances by scikit-learn."""
    if kind is Recalibration.RISING:
        rising = IsotonicRegression().fit(stated, hit.astype(float), sample_weight=weights)
        return np.asarray(rising.predict(stated))
    odds = np.log(stated / (1.0 - stated))[:, None]
    scaled = weights * hit.size
    line = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(odds, hit, sample_weight=scaled)
    return np.asarray(line.predict_proba(odds)[:, 1])


@each("kind", [*Recalibration])
def test_parts_add_up_and_are_those_of_other_recalibrations(kind: Recalibration) -> None:
    stated, hit = drawn(np.random.default_rng(1), 400)
    found = of_two(kind, stated, hit)
    assert found is not None
    shares = [np.array([1.0 - one.mean(), one.mean()]) for one in hit]
    # Loss and least loss of each run at the shares of each, straight from the definition.
    plain, least = np.empty((2, 2)), np.empty((2, 2))
    for run in range(2):
        for at in range(2):
            weights = np.where(hit[run], shares[at][1] / hit[run].sum(), shares[at][0] / (~hit[run]).sum())
            plain[run, at] = weights @ loss_of(kind, stated[run], hit[run])
            least[run, at] = weights @ loss_of(kind, witness(kind, stated[run], hit[run], weights), hit[run])
    gap = plain - least
    expected = (
        (plain[0, 0] - plain[0, 1] + plain[1, 0] - plain[1, 1]) / 2,
        (gap[0] - gap[1]).sum() / 2,
        (least[0] - least[1]).sum() / 2,
    )
    assert found.values == pytest.approx(expected, abs=1e-7)
    whole = [loss_of(kind, own, is_hit).mean() for own, is_hit in zip(stated, hit, strict=True)]
    assert sum(found.values) == pytest.approx(whole[0] - whole[1], abs=1e-12)
    assert not found.near


def without(runs: Runs, run: int, place: int) -> Runs:
    stated, hit = ([*one] for one in runs)
    stated[run], hit[run] = np.delete(stated[run], place), np.delete(hit[run], place)
    return (stated[0], stated[1]), (hit[0], hit[1])


def values_of(kind: Recalibration, runs: Runs) -> Array:
    found = of_two(kind, *runs)
    assert isinstance(found, LossSplit)
    return np.array(found.values)


def test_errors_are_those_of_the_jackknife() -> None:
    runs = drawn(np.random.default_rng(2), 120)
    found = of_two(Recalibration.LINE, *runs)
    assert found is not None
    for run in range(2):
        left_out = np.array([values_of(Recalibration.LINE, without(runs, run, place)) for place in range(120)])
        jackknife = -119 / 120 * 120 * (left_out - left_out.mean(axis=0)).T / 120
        errors = np.sqrt((found.influences[run] ** 2).sum(axis=1))
        assert errors == pytest.approx(np.sqrt((jackknife**2).sum(axis=1)), rel=0.1)


def test_of_the_same_samples_prevalence_has_no_part() -> None:
    found = of_two(Recalibration.LINE, *drawn(np.random.default_rng(3), 200, paired=True))
    assert found is not None
    assert found.values[0] == 0.0
    assert np.abs(found.influences[0][0] + found.influences[1][0]).max() < 1e-15


def test_what_cannot_be_recalibrated_is_none_and_what_is_calibrated_says_so() -> None:
    hit = np.arange(40) < 20
    apart = np.where(hit, 0.9, 0.1)
    assert of_two(Recalibration.LINE, (apart, apart), (hit, hit)) is None
    rng = np.random.default_rng(4)
    chance = rng.uniform(0.05, 0.95, 500)
    true = rng.random(500) < chance
    found = of_two(Recalibration.RISING, (chance, chance), (true, true))
    assert found is not None
    assert found.near


def of_three(rng: np.random.Generator, n: int, shares: Sequence[float], slope: float) -> Scores:
    """Three classes, in weights; larger slopes are overconfident."""
    y = rng.choice(3, n, p=shares)
    odds = slope * (1.2 * np.eye(3)[y] + 0.7 * rng.normal(size=(n, 3)) + np.array([0.2, 0.0, -0.3]))
    odds = np.exp(odds - odds.max(axis=1, keepdims=True))
    return Scores(y, odds / odds.sum(axis=1, keepdims=True), rng.integers(1, 4, n).astype(float))


def losses_of_three(kind: Recalibration, run: Scores, chances: Array) -> Array:
    """Of each sample, from the definition."""
    if kind is Recalibration.LINE:
        return np.asarray(-np.log(chances[np.arange(run.y.size), run.y]))
    return np.asarray(np.square(chances - np.eye(3)[run.y]).sum(axis=1))


def recalibrated_by_others(kind: Recalibration, run: Scores, weights: Array) -> Array:
    """Chances (n, 3): of each class by scikit-learn's isotonic regression, or by scipy's minimum of the log loss."""
    if kind is Recalibration.RISING:
        columns = [
            IsotonicRegression().fit(column, run.y == code, sample_weight=weights).predict(column)
            for code, column in enumerate(run.columns)
        ]
        return np.stack(columns, axis=1)
    logs = np.log(run.probabilities)

    def chances(found: Array) -> Array:
        return np.asarray(softmax(np.array([0.0, *found[:2]]) + found[2] * logs, axis=1))

    def loss(found: Array) -> float:
        return float(weights @ losses_of_three(kind, run, chances(found)))

    return chances(minimize(loss, [0.0, 0.0, 1.0], method="BFGS", options={"gtol": 1e-9}).x)


@each("kind", [*Recalibration])
def test_parts_of_three_classes_in_weights_are_shapley_values(kind: Recalibration) -> None:
    """Over all orders of three factors, of losses by other recalibrations; a weight is as many samples."""
    rng = np.random.default_rng(7)
    runs = of_three(rng, 250, (0.5, 0.3, 0.2), 1.0), of_three(rng, 300, (0.3, 0.3, 0.4), 2.0)
    found = split_loss(kind, runs)
    assert found is not None
    weights = [run.weights for run in runs]
    shares = [np.bincount(run.y, own) / own.sum() for run, own in zip(runs, weights, strict=True) if own is not None]

    @cache
    def parts(run: int, at: int) -> tuple[float, float]:
        """What calibration costs, and the rest, at the shares of a run."""
        own = runs[run]
        assert own.weights is not None
        moved = own.weights * (shares[at] / np.bincount(own.y, own.weights))[own.y]
        whole = float(moved @ losses_of_three(kind, own, own.probabilities))
        rest = float(moved @ losses_of_three(kind, own, recalibrated_by_others(kind, own, moved)))
        return whole - rest, rest

    def value(at: int, calibration: int, refinement: int) -> float:
        return parts(calibration, at)[0] + parts(refinement, at)[1]

    expected = np.zeros(3)
    for order in permutations(range(3)):
        state = [1, 1, 1]
        for factor in order:
            before = value(*state)
            state[factor] = 0
            expected[factor] += (value(*state) - before) / 6
    assert found.values == pytest.approx(expected, abs=1e-7)
    assert sum(found.values) == pytest.approx(value(0, 0, 0) - value(1, 1, 1), abs=1e-12)
    # As many samples say the same as weights do, with other errors.
    copies = [
        Scores(*(np.repeat(one, own, axis=0) for one in (run.y, run.probabilities))) for run, own in counted(runs)
    ]
    again = split_loss(kind, (copies[0], copies[1]))
    assert again is not None
    assert again.values == pytest.approx(found.values, abs=1e-9)
    for own, (run, times) in enumerate(counted(runs)):
        sums = np.add.reduceat(again.influences[own], np.cumsum(times) - times, axis=1)
        assert sums == pytest.approx(found.influences[own], abs=1e-9), run


def counted(runs: Sequence[Scores]) -> list[tuple[Scores, Codes]]:
    return [(run, run.weights.astype(np.intp)) for run in runs if run.weights is not None]


def test_the_brier_score_of_three_classes_in_exact_fractions() -> None:
    """Pool adjacent violators by hand, and all orders of the factors."""
    rng = np.random.default_rng(8)
    known = [
        (rng.permutation(np.repeat([0, 1, 2], sizes)), rng.integers(1, 9, (12, 3))) for sizes in ((4, 5, 3), (2, 4, 6))
    ]
    runs = [Scores(y, rows / rows.sum(axis=1, keepdims=True)) for y, rows in known]
    found = split_loss(Recalibration.RISING, (runs[0], runs[1]))
    assert found is not None
    chances = [[[Fraction(int(one), int(row.sum())) for one in row] for row in rows] for _, rows in known]
    shares = [[Fraction(int((y == code).sum()), 12) for code in range(3)] for y, _ in known]

    @cache
    def parts(run: int, at: int) -> tuple[Fraction, Fraction]:
        y, whole, rest = known[run][0].tolist(), Fraction(0), Fraction(0)
        weights = [shares[at][code] / shares[run][code] / 12 for code in y]
        for code in range(3):
            hits = [Fraction(int(one == code)) for one in y]
            column = [row[code] for row in chances[run]]
            fitted = pooled_by_hand(column, hits, weights)
            whole += sum(w * (p - hit) ** 2 for w, p, hit in zip(weights, column, hits, strict=True))
            rest += sum(w * (fitted[p] - hit) ** 2 for w, p, hit in zip(weights, column, hits, strict=True))
        return whole - rest, rest

    expected = [Fraction(0)] * 3
    for order in permutations(range(3)):
        state = [1, 1, 1]
        for factor in order:
            before = parts(state[1], state[0])[0] + parts(state[2], state[0])[1]
            state[factor] = 0
            expected[factor] += (parts(state[1], state[0])[0] + parts(state[2], state[0])[1] - before) / 6
    assert found.values == pytest.approx([float(one) for one in expected], abs=1e-15)


def pooled_by_hand(
    column: Sequence[Fraction], hits: Sequence[Fraction], weights: Sequence[Fraction]
) -> dict[Fraction, Fraction]:
    """The rising means of hits, by what was stated."""
    blocks: list[tuple[Fraction, Fraction, list[Fraction]]] = []
    products = [own * hit for own, hit in zip(weights, hits, strict=True)]
    for stated in sorted(set(column)):
        here = [place for place, one in enumerate(column) if one == stated]
        total, mass = (sum((one[at] for at in here), Fraction(0)) for one in (products, weights))
        blocks.append((total, mass, [stated]))
        while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] >= blocks[-1][0] * blocks[-2][1]:
            last, before = blocks.pop(), blocks.pop()
            blocks.append((before[0] + last[0], before[1] + last[1], before[2] + last[2]))
    return {stated: total / mass for total, mass, own in blocks for stated in own}


def test_groups_that_say_the_same_leave_calibration_in_doubt() -> None:
    """What is no doubt of 300 samples is one of 60 groups of five that say the same."""
    rng = np.random.default_rng(9)
    rows = rng.dirichlet(np.ones(3), 60)
    y = np.array([rng.choice(3, p=row) for row in rows])
    alone, many = (Scores(np.repeat(y, times), np.repeat(rows, times, axis=0)) for times in (1, 5))
    groups = np.repeat(np.arange(60), 5)
    found = [
        split_loss(Recalibration.LINE, (one, one), in_groups)
        for one, in_groups in ((alone, []), (many, []), (many, [groups, groups]))
    ]
    assert [one.near for one in found if one is not None] == [True, False, True]


def some_of_three(rng: np.random.Generator, n: int) -> tuple[Scores, Scores]:
    return of_three(rng, n, (0.5, 0.3, 0.2), 1.0), of_three(rng, n, (0.3, 0.3, 0.4), 2.0)


@pytest.mark.slow
@each("kind", [*Recalibration])
def test_how_often_limits_hold_the_truth(kind: Recalibration) -> None:
    """400 draws of 500 samples, of two classes and of three in weights; the truth is that of 400,000."""

    def of_classes(classes: int, rng: np.random.Generator, n: int) -> LossSplit:
        found = of_two(kind, *drawn(rng, n)) if classes == 2 else split_loss(kind, some_of_three(rng, n))
        assert found is not None
        return found

    for classes in (2, 3):
        truth = np.array(of_classes(classes, np.random.default_rng(5), 400_000).values)
        inside, rng = np.zeros(3), np.random.default_rng(6)
        for _ in range(400):
            found = of_classes(classes, rng, 500)
            errors = np.sqrt(sum((one**2).sum(axis=1) for one in found.influences))
            inside += np.abs(np.array(found.values) - truth) < 1.96 * errors
        assert (inside / 400 > 0.91).all(), (classes, inside / 400)
