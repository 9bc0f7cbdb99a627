"""Causes of losses: parts that add up, against the recalibrations of scikit-learn and the jackknife."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from app.kernel.loss_causes import LossSplit, split_loss
from app.kernel.metrics.card import Recalibration
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.samples.recalibration import expit
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
    found = split_loss(kind, stated, hit)
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
    found = split_loss(kind, *runs)
    assert isinstance(found, LossSplit)
    return np.array(found.values)


def test_errors_are_those_of_the_jackknife() -> None:
    runs = drawn(np.random.default_rng(2), 120)
    found = split_loss(Recalibration.LINE, *runs)
    assert found is not None
    for run in range(2):
        left_out = np.array([values_of(Recalibration.LINE, without(runs, run, place)) for place in range(120)])
        jackknife = -119 / 120 * 120 * (left_out - left_out.mean(axis=0)).T / 120
        errors = np.sqrt((found.influences[run] ** 2).sum(axis=1))
        assert errors == pytest.approx(np.sqrt((jackknife**2).sum(axis=1)), rel=0.1)


def test_of_the_same_samples_prevalence_has_no_part() -> None:
    found = split_loss(Recalibration.LINE, *drawn(np.random.default_rng(3), 200, paired=True))
    assert found is not None
    assert found.values[0] == 0.0
    assert np.abs(found.influences[0][0] + found.influences[1][0]).max() < 1e-15


def test_what_cannot_be_recalibrated_is_none_and_what_is_calibrated_says_so() -> None:
    hit = np.arange(40) < 20
    apart = np.where(hit, 0.9, 0.1)
    assert split_loss(Recalibration.LINE, (apart, apart), (hit, hit)) is None
    rng = np.random.default_rng(4)
    chance = rng.uniform(0.05, 0.95, 500)
    true = rng.random(500) < chance
    found = split_loss(Recalibration.RISING, (chance, chance), (true, true))
    assert found is not None
    assert found.near


@pytest.mark.slow
@each("kind", [*Recalibration])
def test_how_often_limits_hold_the_truth(kind: Recalibration) -> None:
    """400 draws of 500 samples; the truth is that of 400,000."""
    truth = values_of(kind, drawn(np.random.default_rng(5), 400_000))
    inside, rng = np.zeros(3), np.random.default_rng(6)
    for _ in range(400):
        found = split_loss(kind, *drawn(rng, 500))
        assert found is not None
        errors = np.sqrt(sum((one**2).sum(axis=1) for one in found.influences))
        inside += np.abs(np.array(found.values) - truth) < 1.96 * errors
    assert (inside / 400 > 0.91).all()
