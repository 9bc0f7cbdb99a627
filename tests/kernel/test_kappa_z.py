"""The z test of kappa against 0: statsmodels."""

import numpy as np
import pytest
from scipy.stats import norm

from app.kernel.matrix.table import Table
from app.kernel.metrics.families.agreement import kappa_z
from app.kernel.numerics.arrays import silently

MATRICES = [
    [[44, 5, 1], [7, 20, 3], [9, 5, 6]],
    [[20, 5], [10, 15]],
    [[3, 40], [38, 2]],
    [[1, 1, 0], [0, 2, 0], [1, 0, 5]],
    [[900_000, 30_000], [20_000, 50_000]],
]


@pytest.mark.parametrize("matrix", MATRICES)
def test_statsmodels(matrix: list[list[int]]) -> None:
    from statsmodels.stats.inter_rater import cohens_kappa

    found = cohens_kappa(np.array(matrix))
    z = float(kappa_z.compute(Table(np.array(matrix, dtype=float))))
    assert z == pytest.approx(found.z_value, rel=1e-12)
    assert 2 * norm.sf(abs(z)) == pytest.approx(found.pvalue_two_sided, rel=1e-9)
    assert norm.sf(z) == pytest.approx(norm.sf(found.z_value), rel=1e-9)


def test_a_class_without_errors_or_without_samples() -> None:
    """No variance is left where all samples are of one class, or predicted as one."""
    with silently():
        assert np.isnan(kappa_z.compute(Table(np.array([[5.0, 3.0], [0.0, 0.0]]))))
        assert np.isnan(kappa_z.compute(Table(np.array([[5.0, 0.0], [3.0, 0.0]]))))
    assert float(kappa_z.compute(Table(np.diag([5.0, 4.0])))) == pytest.approx(3.0)


def test_classes_that_occur_and_classes_that_are_predicted_are_others() -> None:
    """Agreement by chance cannot happen then, so it does not vary."""
    counts = np.zeros((4, 4))
    counts[0, 2], counts[1, 3] = 5.0, 3.0
    table = Table(counts)
    with silently():
        assert np.isnan(kappa_z.compute(table))
    (reason,) = (one for one in kappa_z.card.undefined if one.holds(table).any())
    assert reason.code == "no_class_in_common"
