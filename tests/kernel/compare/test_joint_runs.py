"""Runs on the same items as counts, and differences of any metric drawn from them."""

from collections.abc import Iterator

import numpy as np
import pytest

from app.kernel.compare.paired.joint import JointCounts, combine, draw_matrices, guarded_classes
from app.kernel.matrix.table import Table
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.draws import Shares, evaluate_draws, generator
from app.kernel.uncertainty.simulation import RowPosterior
from tests.kernel.compare.paired_variance import paired_variance

MACRO_F1 = catalogue().of_matrices.by_name["macro_f1"].compute
ACCURACY = catalogue().of_matrices.by_name["accuracy"].compute


def sample(n: int = 300, runs: int = 2, n_classes: int = 3, seed: int = 0) -> JointCounts:
    random = np.random.default_rng(seed)
    truth = random.integers(0, n_classes, n)
    shared = np.where(random.random(n) < 0.7, truth, random.integers(0, n_classes, n))
    predictions = [np.where(random.random(n) < 0.7, shared, random.integers(0, n_classes, n)) for _ in range(runs)]
    return combine(truth, np.array(predictions), n_classes)


def discordant(joint: JointCounts) -> tuple[float, float]:
    """Items that only the first of two runs gets right, and those that only the second does."""
    first, second = joint.correct()
    return float(joint.counts @ (first & ~second)), float(joint.counts @ (second & ~first))


def resampled_matrices(joint: JointCounts, draws: int) -> Iterator[Array]:
    """One batch (draws, 2, K, K) of what two runs would have on items drawn again, within the classes."""
    random, size = generator(0), joint.n_classes
    times = np.zeros((draws, joint.truth.size))
    for items in (joint.truth == k for k in range(size)):
        counts = joint.counts[items]
        times[:, items] = random.multinomial(int(counts.sum()), counts / counts.sum(), size=draws)
    cells = np.eye(size * size)[joint.truth * size + joint.predictions]
    yield np.einsum("di,ric->drc", times, cells).reshape(draws, 2, size, size)


@pytest.mark.parametrize(("runs", "n_classes"), [(1, 4), (2, 3), (5, 7), (3, 400)])
def test_counting_equals_counting_one_by_one(runs: int, n_classes: int) -> None:
    random = np.random.default_rng(1)
    truth = random.integers(0, n_classes, 500)
    predictions = random.integers(0, n_classes, (runs, 500))
    joint = combine(truth, predictions, n_classes)
    expected: dict[tuple[int, ...], int] = {}
    for item in zip(truth, *predictions, strict=True):
        key = tuple(int(code) for code in item)
        expected[key] = expected.get(key, 0) + 1
    found = {
        (int(t), *(int(code) for code in combination)): int(count)
        for t, combination, count in zip(joint.truth, joint.predictions.T, joint.counts, strict=True)
    }
    assert found == expected
    for run, matrix in enumerate(joint.matrices()):
        direct = np.zeros((n_classes, n_classes))
        np.add.at(direct, (truth, predictions[run]), 1)
        np.testing.assert_array_equal(matrix, direct)
    assert joint.n == 500


def test_a_pair_of_many_is_the_pair_alone() -> None:
    random = np.random.default_rng(2)
    truth, predictions = random.integers(0, 3, 200), random.integers(0, 3, (4, 200))
    pair = combine(truth, predictions, 3).pair(3, 1)
    alone = combine(truth, predictions[[3, 1]], 3)
    np.testing.assert_array_equal(pair.predictions, alone.predictions)
    np.testing.assert_array_equal(pair.counts, alone.counts)


def test_each_run_alone_has_the_posterior_of_its_matrix() -> None:
    joint = sample(90, seed=3)
    together = np.concatenate(list(draw_matrices(joint, draws=20_000, random=generator(0))))
    for run, matrix in enumerate(joint.matrices()):
        alone = RowPosterior(matrix).matrices(20_000, generator(1))
        np.testing.assert_allclose(together[:, run].mean(0), alone.mean(0), atol=0.25)
        np.testing.assert_allclose(together[:, run].std(0), alone.std(0), rtol=0.06, atol=0.05)
    np.testing.assert_allclose(together.sum(-1), np.broadcast_to(joint.actual(), (20_000, 2, 3)))


def test_guarded_classes_are_those_without_discordance_or_at_the_edge() -> None:
    truth = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2])
    first = np.array([0, 1, 0, 1, 1, 0, 1, 1, 2, 2])
    second = np.array([0, 1, 1, 0, 1, 0, 1, 1, 2, 1])
    assert guarded_classes(combine(truth, np.array([first, second]), 4)).tolist() == [False, True, True, False]


def test_a_perfect_class_keeps_some_doubt() -> None:
    truth = np.repeat([0, 1], 50)
    joint = combine(truth, np.array([truth, truth]), 2)
    drawn = np.concatenate(list(draw_matrices(joint, draws=4000, random=generator(0))))
    alone = RowPosterior(joint.matrices()[0]).matrices(4000, generator(0))
    np.testing.assert_allclose(drawn[:, 0, 0, 1].mean(), alone[:, 0, 1].mean(), rtol=0.1)
    gaps = ACCURACY(Table(drawn[:, 0])) - ACCURACY(Table(drawn[:, 1]))
    assert gaps.std() > 0.001
    assert abs(gaps.mean()) < 0.001


def test_delta_posterior_and_bootstrap_agree() -> None:
    joint = sample(600, seed=4)
    errors = np.sqrt([paired_variance(joint, f, shares=Shares.OBSERVED)[0] for f in (MACRO_F1, ACCURACY)])
    resampled = evaluate_draws(resampled_matrices(joint, 10_000), [MACRO_F1, ACCURACY])
    drawn = evaluate_draws(draw_matrices(joint, draws=10_000, random=generator(0)), [MACRO_F1, ACCURACY])
    for error, bootstrap, bayes in zip(errors, resampled, drawn, strict=True):
        assert (bootstrap[:, 0] - bootstrap[:, 1]).std() == pytest.approx(error, rel=0.04)
        assert (bayes[:, 0] - bayes[:, 1]).std() == pytest.approx(error, rel=0.04)


def test_variance_of_the_accuracy_difference_is_that_of_discordant_items() -> None:
    joint = sample(200, seed=5)
    only_first, only_second = discordant(joint)
    d = (only_first - only_second) / 200
    expected = ((only_first + only_second) / 200 - d**2) / 200
    assert paired_variance(joint, ACCURACY)[0] == pytest.approx(float(expected), rel=1e-6)


def test_a_run_does_not_differ_from_itself() -> None:
    random = np.random.default_rng(0)
    truth, prediction = random.integers(0, 3, 100), random.integers(0, 3, 100)
    joint = combine(truth, np.array([prediction, prediction]), 3)
    assert paired_variance(joint, MACRO_F1)[0] == 0.0


def test_paired_runs_are_compared_more_sharply_than_unpaired_ones() -> None:
    joint = sample(400, seed=8)
    paired = evaluate_draws(draw_matrices(joint, draws=5000, random=generator(0)), [MACRO_F1])[0]
    one, two = (
        evaluate_draws(RowPosterior(matrix).batches(5000, generator(seed)), [MACRO_F1])[0]
        for seed, matrix in enumerate(joint.matrices())
    )
    assert (paired[:, 0] - paired[:, 1]).std() < 0.9 * (one - two).std()
