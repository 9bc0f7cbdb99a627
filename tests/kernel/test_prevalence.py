"""Projection to other class shares, and estimating those shares."""

import numpy as np
import pytest
from numpy.typing import NDArray

from app.kernel.matrix.prevalence import (
    ShareRanges,
    crossings,
    estimate_by_confusion,
    estimate_by_likelihood,
    project,
    recalibrate,
    sweep_shares,
)
from app.kernel.matrix.table import Table
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import Array, silently

TWO = np.array([[40.0, 10.0], [5.0, 45.0]])
FOUR = np.array([[800.0, 0, 0, 0], [0, 600, 0, 0], [0, 0, 500, 0], [40, 24, 20, 16]])


def value(key: str, counts: Array) -> float:
    return float(catalogue().of_matrices.by_name[key](Table(counts)))


def test_published_predictive_values() -> None:
    """Sensitivity 0.9, specificity 0.95."""
    rows = np.array([[95.0, 5.0], [10.0, 90.0]])
    for share, expected in ((0.5, 0.947), (0.01, 0.154)):
        precision = (
            catalogue().of_matrices.by_name["precision"].compute(Table(project(rows, np.array([1 - share, share]))))
        )
        assert precision[1] == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize(
    ("key", "expected"), [("accuracy", 0.801), ("macro_f1", 0.486), ("mcc", 0.172), ("cohen_kappa", 0.065)]
)
def test_published_values_at_one_percent(key: str, expected: float) -> None:
    rare = project(TWO, np.array([0.99, 0.01]))
    assert value(key, rare) == pytest.approx(expected, abs=5e-4)
    assert Table(rare).precision[1] == pytest.approx(0.043, abs=5e-4)
    assert rare.sum() == pytest.approx(100.0)
    for same in ("balanced_accuracy", "g_mean", "h_mean"):
        assert value(same, rare) == pytest.approx(value(same, TWO))


def test_published_values_at_uniform_shares() -> None:
    uniform = project(FOUR, np.ones(4))
    assert value("accuracy", uniform) == pytest.approx(0.79)
    assert value("mcc", uniform) == pytest.approx(0.751, abs=5e-4)
    assert value("mcc", FOUR) == pytest.approx(0.939, abs=5e-4)


def test_projection_of_batches() -> None:
    draws = np.stack([FOUR, FOUR * 2])
    swept = sweep_shares(FOUR.sum(1), 3, np.array([0.01, 0.5, 1.0]))
    np.testing.assert_allclose(swept.sum(1), 1.0)
    np.testing.assert_allclose(swept[1, :3], 0.5 * np.array([8, 6, 5]) / 19)
    projected = project(draws[:, None], swept)
    assert projected.shape == (2, 3, 4, 4)
    np.testing.assert_allclose(projected.sum(-1)[0, 1], 2000 * swept[1])
    np.testing.assert_allclose(projected[1], 2 * projected[0])


def test_unknown_rows_are_refused_and_absent_classes_are_not() -> None:
    counts = np.array([[5.0, 1], [0, 0]])
    with pytest.raises(ValueError, match="without samples"):
        project(counts, np.array([0.5, 0.5]))
    np.testing.assert_allclose(project(counts, np.array([1.0, 0.0])), counts)
    with pytest.raises(ValueError, match="non-negative"):
        project(TWO, np.array([1.5, -0.5]))


def test_corners_hold_the_extremes_of_accuracy() -> None:
    low, high = np.array([0.1, 0.2, 0.05, 0.0]), np.array([0.5, 0.6, 0.3, 0.4])
    corners = ShareRanges(low, high).corners()
    np.testing.assert_allclose(corners.sum(1), 1.0)
    at_corners = [value("accuracy", project(FOUR, corner)) for corner in corners]
    random = np.random.default_rng(0)
    inside = random.dirichlet(np.ones(4), 20_000)
    inside = inside[((inside >= low) & (inside <= high)).all(1)]
    values = catalogue().of_matrices.by_name["accuracy"](Table(project(FOUR, inside)))
    assert min(at_corners) <= values.min()
    assert values.max() <= max(at_corners)
    np.testing.assert_allclose(
        ShareRanges(np.array([0.1, 0.0]), np.array([0.4, 1.0])).corners(), [[0.1, 0.9], [0.4, 0.6]]
    )


def change_places(first: Array, second: Array, key: str, low: float = 0.0) -> list[float]:
    """Where two runs do on a metric, swept over the second of two classes."""
    compute = catalogue().of_matrices.by_name[key].compute

    def gap(grid: Array) -> Array:
        swept = sweep_shares(np.ones(2), 1, grid)
        with silently():
            difference: Array = compute(Table(project(first, swept))) - compute(Table(project(second, swept)))
        return difference

    return crossings(gap, low=low)


def test_two_runs_cross_where_their_accuracies_are_equal() -> None:
    first, second = np.array([[90.0, 10], [40, 60]]), np.array([[70.0, 30], [10, 90]])
    # .9 - .3 x = .7 + .2 x
    assert change_places(first, second, "accuracy") == [pytest.approx(0.4, abs=1e-9)]
    assert change_places(first, second, "accuracy", low=0.5) == []
    assert change_places(first, first, "accuracy") == []
    assert change_places(first, second, "balanced_accuracy") == []
    assert len(change_places(first, second, "mcc")) == 1


def test_crossings_are_the_roots_of_the_gap() -> None:
    found = crossings(lambda grid: (grid - 0.21) * (grid - 0.5) * (grid - 0.87), points=51)
    assert found == pytest.approx([0.21, 0.5, 0.87], abs=1e-10)
    assert crossings(lambda grid: np.where(grid < 0.3, np.nan, grid - 0.4)) == [pytest.approx(0.4, abs=1e-10)]


def test_a_row_without_a_possible_class_becomes_the_new_shares() -> None:
    rows = np.array([[1.0, 0.0, 0.0], [0.5, 0.25, 0.25]])
    new = np.array([0.0, 0.4, 0.6])
    np.testing.assert_allclose(recalibrate(rows, np.full(3, 1 / 3), new), [new, new])


def test_recalibration_to_the_same_shares_changes_nothing_and_follows_bayes() -> None:
    p = np.array([[0.2, 0.8], [0.5, 0.5]])
    old = np.array([0.3, 0.7])
    np.testing.assert_allclose(recalibrate(p, old, old), p)
    new = np.array([0.6, 0.4])
    np.testing.assert_allclose(recalibrate(p, old, new)[0], [0.4 / (0.4 + 0.8 * 4 / 7), 1 - 0.4 / (0.4 + 0.8 * 4 / 7)])
    np.testing.assert_allclose(recalibrate(recalibrate(p, old, new), new, old), p)


def shifted(shares: Array, n: int = 20_000) -> tuple[Array, NDArray[np.int64]]:
    """Exact posteriors under equal shares for items that come with other shares, and their classes."""
    random = np.random.default_rng(0)
    truth = random.choice(len(shares), n, p=shares)
    x = truth * 1.5 + random.normal(size=n)
    likelihood = np.exp(-((x[:, None] - 1.5 * np.arange(len(shares))) ** 2) / 2)
    posterior: Array = likelihood / likelihood.sum(1, keepdims=True)
    return posterior, truth


def test_likelihood_finds_the_shares_and_stops_at_a_vertex() -> None:
    shares = np.array([0.7, 0.1, 0.2])
    found = estimate_by_likelihood(shifted(shares)[0], np.ones(3) / 3)
    np.testing.assert_allclose(found.shares, shares, atol=0.02)
    assert found.converged
    assert not found.at_vertex
    confident = np.tile([0.9, 0.1], (50, 1))
    edge = estimate_by_likelihood(confident, np.array([0.5, 0.5]))
    assert edge.at_vertex
    np.testing.assert_allclose(edge.shares, [1.0, 0.0], atol=1e-6)


def test_the_likelihood_is_highest_at_the_estimate() -> None:
    probabilities = shifted(np.array([0.6, 0.4]), 500)[0]
    old = np.array([0.5, 0.5])
    found = estimate_by_likelihood(probabilities, old).shares

    def log_likelihood(share: float) -> float:
        return float(np.log(probabilities / old @ [share, 1 - share]).sum())

    grid = np.linspace(0.01, 0.99, 981)
    best = grid[np.argmax([log_likelihood(share) for share in grid])]
    assert found[0] == pytest.approx(best, abs=1e-3)


def test_confusion_rows_give_the_shares_back() -> None:
    shares = np.array([0.2, 0.5, 0.3])
    rows = np.array([[80.0, 15, 5], [10, 30, 10], [5, 15, 40]])
    predicted = project(rows, shares).sum(0)
    found = estimate_by_confusion(rows, predicted)
    np.testing.assert_allclose(found.shares, shares)
    assert found.converged
    assert found.condition > 1
    outside = estimate_by_confusion(rows, np.array([1.0, 0, 0]))
    assert outside.at_vertex
    assert not outside.converged
    assert outside.shares.sum() == pytest.approx(1.0)
    with pytest.raises(ValueError, match="told apart"):
        estimate_by_confusion(np.ones((2, 2)), np.ones(2))
    with pytest.raises(ValueError, match="labelled"):
        estimate_by_confusion(np.array([[1.0, 1], [0, 0]]), np.ones(2))
