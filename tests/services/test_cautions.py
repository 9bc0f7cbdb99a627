"""Which matrices come with a caution, and the two numbers that decide it against exact sums."""

import numpy as np
import pytest
from scipy import stats

from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.closed_forms import curvature, edge_pull
from app.kernel.uncertainty.draws import Prior
from app.services.estimates.report_intervals import caution_findings

TWO = np.array([[40.0, 10.0], [5.0, 45.0]])


def matrix(right: list[float], size: float) -> Array:
    """Classes of one size with so many right answers each, errors to the next class."""
    counts = np.diag(np.array(right, dtype=np.float64))
    for row, hits in enumerate(right):
        counts[row, (row + 1) % len(right)] += size - hits
    return counts


def cautions(counts: Array, prior: Prior = Prior.EDGE) -> list[str]:
    """Codes of the warnings."""
    return [one.code for one in caution_findings(counts, [*map(str, range(len(counts)))], prior)]


def test_what_is_warned_of() -> None:
    assert cautions(TWO) == []
    assert cautions(np.array([[5.0, 0, 0], [0, 0, 0], [1, 1, 2]])) == [
        "intervals_without_a_class",
        "intervals_of_few_samples",
    ]
    assert cautions(200.0 * np.eye(3), Prior.UNIFORM) == ["informative_prior"]


def test_classes_that_are_small_and_weak() -> None:
    assert cautions(matrix([15] * 35, 25)) == ["intervals_of_many_small_classes"]
    assert cautions(matrix([22, 23] * 5, 25)) == []
    assert cautions(matrix([15] * 3, 25)) == []
    assert cautions(matrix([600] * 35, 1000)) == []


def test_many_perfect_classes_are_pulled_by_the_edge_prior() -> None:
    assert cautions(25.0 * np.eye(35)) == ["intervals_of_perfect_small_classes"]
    assert cautions(25.0 * np.eye(3)) == []
    assert cautions(25.0 * np.eye(35), Prior.CUSTOM) == []
    assert edge_pull(TWO) == 0.0
    # Every class of 25: mean 25.5/26, variance a b / ((a + b)^2 (a + b + 1)).
    posterior = stats.beta(25.5, 0.5)
    assert edge_pull(25.0 * np.eye(35)) == pytest.approx(35 * (1 - posterior.mean()) / (35**0.5 * posterior.std()))


def test_an_empty_class_is_left_out() -> None:
    counts = np.zeros((10, 10))
    counts[:9, :9] = matrix([6] * 9, 10)
    assert curvature(counts) == pytest.approx(curvature(counts[:9, :9]))
    assert edge_pull(np.diag([25.0] * 9 + [0.0])) == pytest.approx(edge_pull(25.0 * np.eye(9)))
    assert "intervals_of_many_small_classes" in cautions(counts)


@pytest.mark.parametrize("recall", [0.5, 0.8, 0.95])
def test_curvature_is_bias_over_error_of_the_mean_reciprocal(recall: float) -> None:
    size, classes = 2000, 9
    right = np.arange(1, size + 1)
    weights = stats.binom(size, recall).pmf(right)
    reciprocal = size / right
    bias = float(weights @ reciprocal) - 1 / recall
    error = float(weights @ (reciprocal - weights @ reciprocal) ** 2) ** 0.5
    expected = bias * classes / (error * classes**0.5)
    assert curvature(matrix([recall * size] * classes, size)) == pytest.approx(expected, rel=0.01)
