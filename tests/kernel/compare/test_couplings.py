"""What every pairing of two matrices allows, against the enumeration of all pairings."""

import itertools

import numpy as np
import pytest

from app.kernel.compare.paired.effects import PairSlopes, coupled
from app.kernel.compare.paired.joint import JointCounts, combine
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import Array

METRICS = ("accuracy", "balanced_accuracy", "h_mean", "macro_f1", "mcc")


def gross_variance(joint: JointCounts, slopes: Array) -> float:
    """Sum over the items of the squared difference of what the two predictions add."""
    first, second = (slopes[joint.truth, codes] for codes in joint.predictions)
    return float(joint.counts @ (first - second) ** 2)


@pytest.mark.parametrize("key", METRICS)
def test_bounds_are_those_of_all_pairings(key: str) -> None:
    """Seven items of two classes: every order of the second run's predictions within the classes."""
    truth = np.array([0, 0, 0, 0, 1, 1, 1])
    first = np.array([0, 0, 1, 1, 1, 1, 0])
    second = np.array([0, 0, 0, 1, 1, 0, 0])
    functional = catalogue().of_matrices.by_name[key].compute
    matrices = combine(truth, np.stack([first, second]), 2).matrices()
    slopes = PairSlopes.numeric(matrices, lambda table: functional(table)[..., None], np.ones(2)).slopes[0]
    variances = []
    for zeros in set(itertools.permutations(second[:4].tolist())):
        for ones in set(itertools.permutations(second[4:].tolist())):
            joint = combine(truth, np.stack([first, np.array([*zeros, *ones])]), 2)
            variances.append(gross_variance(joint, slopes))
    for opposed, end in ((True, max), (False, min)):
        found = coupled(matrices[0], matrices[1], slopes, opposed=opposed)
        np.testing.assert_array_equal(found.matrices(), matrices)
        assert gross_variance(found, slopes) == pytest.approx(end(variances))


def test_accuracy_has_the_bounds_of_its_discordant_items() -> None:
    """Of the items of a class that the runs have right at least the gap, and at most all but those of both, differ."""
    first, second = np.array([[40.0, 10.0], [5.0, 45.0]]), np.array([[45.0, 5.0], [6.0, 44.0]])
    for opposed, discordant in ((True, 15.0 + 11.0), (False, 5.0 + 1.0)):
        joint = coupled(first, second, np.eye(2), opposed=opposed)
        right = joint.correct()
        assert float(joint.counts @ (right[0] != right[1])) == discordant
