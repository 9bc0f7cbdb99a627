"""Equal kappas of independent runs: z tests by the variances of statsmodels."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import chi2, norm

from app.kernel.compare.rankings import equal_kappas

RUNS = [
    [[44, 5, 1], [7, 20, 3], [9, 5, 6]],
    [[30, 12, 4], [6, 31, 2], [1, 3, 9]],
    [[80, 1, 0], [2, 55, 3], [0, 1, 40]],
]


def _kappa(matrix: list[list[int]]) -> tuple[float, float]:
    from statsmodels.stats.inter_rater import cohens_kappa

    found = cohens_kappa(np.array(matrix))
    return float(found.kappa), float(found.var_kappa)


@pytest.mark.parametrize("pair", list(pairwise(RUNS)))
def test_two_runs_have_the_z_test(pair: tuple[list[list[int]], list[list[int]]]) -> None:
    (first, of_first), (second, of_second) = map(_kappa, pair)
    z = (first - second) / (of_first + of_second) ** 0.5
    found = equal_kappas(np.array(pair, dtype=float))
    assert found is not None
    assert found.freedom == 1
    assert found.statistic == pytest.approx(z * z, rel=1e-11)
    assert found.p == pytest.approx(2 * norm.sf(abs(z)), rel=1e-10)


def test_several_runs() -> None:
    kappas, variances = map(np.array, zip(*map(_kappa, RUNS), strict=True))
    mean = (kappas / variances).sum() / (1 / variances).sum()
    statistic = ((kappas - mean) ** 2 / variances).sum()
    found = equal_kappas(np.array(RUNS, dtype=float))
    assert found is not None
    assert found.statistic == pytest.approx(statistic, rel=1e-11)
    assert found.p == pytest.approx(chi2.sf(statistic, 2), rel=1e-10)


def test_equal_runs_and_runs_without_variance() -> None:
    same = equal_kappas(np.array([RUNS[0], RUNS[0]], dtype=float))
    assert same is not None
    assert (same.statistic, same.p) == (0.0, 1.0)
    assert equal_kappas(np.array([RUNS[0], np.diag([5, 4, 3])], dtype=float)) is None
    assert equal_kappas(np.array([RUNS[0], [[5, 3, 0], [0, 0, 0], [0, 0, 0]]], dtype=float)) is None
