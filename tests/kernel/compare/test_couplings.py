"""What every pairing of two matrices allows, against the enumeration of all pairings."""

import itertools

import numpy as np
import pytest

from app.kernel.compare.paired.effects import SortedSlopes, difference_variance_bounds
from app.kernel.compare.paired.joint import combine
from app.kernel.compare.paired.tests import pairing_bounds
from app.kernel.metrics.catalogue import catalogue
from app.kernel.uncertainty.draws import ClassCounts
from tests.kernel.compare.paired_variance import paired_variance

METRICS = ("accuracy", "balanced_accuracy", "h_mean", "macro_f1", "mcc", "recall", "precision")


@pytest.mark.parametrize("key", METRICS)
def test_bounds_are_those_of_all_pairings(key: str) -> None:
    """Six items of two classes: every order of the second run's predictions within the classes."""
    truth = np.array([0, 0, 0, 0, 1, 1, 1])
    first = np.array([0, 0, 1, 1, 1, 1, 0])
    second = np.array([0, 0, 0, 1, 1, 0, 0])
    functional = catalogue().of_matrices.by_name[key].compute
    variances = []
    for zeros in set(itertools.permutations(second[:4].tolist())):
        for ones in set(itertools.permutations(second[4:].tolist())):
            joint = combine(truth, np.stack([first, np.array([*zeros, *ones])]), 2)
            variances.append(paired_variance(joint, functional, class_counts=ClassCounts.FIXED))
    matrices = joint.matrices()
    low, high = difference_variance_bounds(*(SortedSlopes.of(matrix, functional) for matrix in matrices))
    np.testing.assert_allclose(low, np.min(variances, axis=0), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(high, np.max(variances, axis=0), rtol=1e-6, atol=1e-9)


def test_accuracy_has_the_bounds_of_its_discordant_items() -> None:
    first, second = np.array([[40.0, 10.0], [5.0, 45.0]]), np.array([[45.0, 5.0], [6.0, 44.0]])
    bounds = pairing_bounds(np.diag(first), np.diag(second), first.sum(axis=1))
    accuracy = catalogue().of_matrices.by_name["accuracy"].compute
    low, high = difference_variance_bounds(SortedSlopes.of(first, accuracy), SortedSlopes.of(second, accuracy))
    by_class = np.diagonal(first - second) ** 2 / 50.0
    for found, discordant in ((low, bounds.fewest), (high, bounds.most)):
        np.testing.assert_allclose(found, (discordant - by_class.sum()) / 100.0**2, rtol=1e-6)


def test_other_items_are_refused() -> None:
    accuracy = catalogue().of_matrices.by_name["accuracy"].compute
    three, four = (SortedSlopes.of(np.eye(2) * count, accuracy) for count in (3, 4))
    with pytest.raises(ValueError, match="not of the same items"):
        difference_variance_bounds(three, four)


def test_weights_that_are_no_whole_numbers_have_bounds_too() -> None:
    """Sums of the same weights in another order end a rounding apart."""
    first = np.array([[0.1, 0.2, 0.3], [0.3, 0.7, 0.1], [0.2, 0.2, 0.4]])
    second = np.array([[0.3, 0.2, 0.1], [0.1, 0.7, 0.3], [0.2, 0.4, 0.2]])
    h_mean = catalogue().of_matrices.by_name["h_mean"].compute
    second *= first.sum(axis=1, keepdims=True) / second.sum(axis=1, keepdims=True)
    sides = SortedSlopes.of(first, h_mean), SortedSlopes.of(second, h_mean)
    low, high = difference_variance_bounds(*sides)
    assert 0.0 <= low[0] < high[0]
