"""Confidence distributions of differences: limits, p and chances that say the same."""

from functools import partial

import numpy as np
import pytest
from scipy import stats

from app.kernel.compare.differences import (
    Differences,
    DrawnDifferences,
    HybridDifferences,
    Reach,
    StudentDifferences,
    matrix_reach,
)
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.draws import generator
from app.kernel.uncertainty.intervals import two_sided_z, wilson_at


def of_rates(x1: float, n1: float, x2: float, n2: float, level: float = 0.95) -> HybridDifferences:
    """Difference of two independent rates."""
    reaches = []
    for x, n in ((x1, n1), (x2, n2)):
        hits, size = np.array([float(x)]), np.array([float(n)])
        reaches.append(Reach.of(partial(wilson_at, hits, size), hits / size, level))
    return HybridDifferences(np.array([x1 / n1 - x2 / n2]), *reaches)


def of_matrices(key: str, first: Array, second: Array) -> HybridDifferences:
    functional = catalogue().of_matrices.by_name[key].compute
    reaches = [matrix_reach(one, functional, 0.95) for one in (first, second)]
    values = [np.atleast_1d(functional_of(key, one)) for one in (first, second)]
    return HybridDifferences(values[0] - values[1], *reaches)


def functional_of(key: str, counts: Array) -> Array:
    from app.kernel.matrix.table import Table

    return catalogue().of_matrices.by_name[key].compute(Table(counts))


def test_published_newcombe_interval() -> None:
    from statsmodels.stats.proportion import confint_proportions_2indep

    low, high = (float(end[0]) for end in of_rates(56, 70, 48, 80).limits(0.95))
    assert (low, high) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    assert (low, high) == pytest.approx(confint_proportions_2indep(56, 70, 48, 80, method="newcomb"), abs=1e-9)


def test_balanced_accuracy_of_independent_runs_is_near_its_published_posterior() -> None:
    found = of_matrices("balanced_accuracy", np.array([[40.0, 10], [5, 45]]), np.array([[45.0, 5], [6, 44]]))
    low, high = (float(end[0]) for end in found.limits(0.95))
    assert (low, high) == pytest.approx((-0.132, 0.051), abs=0.004)
    assert float(found.chance_above(0.0)[0]) == pytest.approx(0.194, abs=0.01)


def test_errors_among_several_classes_add_to_the_variance() -> None:
    """Kappa knows where errors fall: its limits are near those of the bootstrap."""
    first = np.array([[40.0, 5, 5], [4, 30, 16], [2, 8, 40]])
    second = np.array([[44.0, 3, 3], [4, 36, 10], [2, 8, 40]])
    low, high = (float(end[0]) for end in of_matrices("cohen_kappa", first, second).limits(0.95))
    random, gaps = generator(1), np.zeros(20_000)
    for counts, sign in ((first, 1.0), (second, -1.0)):
        drawn = np.stack([random.multinomial(50, row / 50, gaps.size) for row in counts], axis=1).astype(float)
        gaps += sign * functional_of("cohen_kappa", drawn)
    assert (low, high) == pytest.approx(np.quantile(gaps, [0.025, 0.975]), abs=0.012)


_RANDOM = generator(3)
_MATRICES = [_RANDOM.integers(1, 40, (2, 3, 3)).astype(float) for _ in range(6)]
DISTRIBUTIONS: list[Differences] = [
    StudentDifferences(np.array([0.1, -0.2, 0.0]), np.array([0.05, 0.09, 0.1]), np.array([5.0, np.inf, 30.0])),
    of_rates(56, 70, 48, 80),
    of_rates(7, 34, 1, 34),
    of_rates(0, 10, 4, 12),
    *(of_matrices("macro_f1", *pair) for pair in _MATRICES),
    DrawnDifferences(np.array([0.1, 0.3]), _RANDOM.normal([0.1, 0.3], 0.1, (4000, 2))),
]


@pytest.mark.parametrize("found", DISTRIBUTIONS)
def test_limits_exclude_0_exactly_where_p_rejects_it(found: Differences) -> None:
    for level in (0.8, 0.95, 0.99):
        low, high = found.limits(level)
        np.testing.assert_array_equal((low > 0) | (high < 0), found.p < 1.0 - level)


@pytest.mark.parametrize("found", DISTRIBUTIONS)
def test_chances_are_those_of_limits(found: Differences) -> None:
    """The confidence above the lower limit of a level, and above its upper limit."""
    low, high = found.limits(0.95)
    if isinstance(found, DrawnDifferences):
        assert found.chance_above(low) == pytest.approx(0.975, abs=0.001)
        return
    np.testing.assert_allclose(found.chance_above(low), 0.975, atol=1e-9)
    np.testing.assert_allclose(found.chance_above(high), 0.025, atol=1e-9)


def test_swapped_runs_are_the_mirror_image() -> None:
    forward, backward = of_rates(56, 70, 48, 80), of_rates(48, 80, 56, 70)
    np.testing.assert_array_equal(forward.limits(0.95)[0], -backward.limits(0.95)[1])
    np.testing.assert_array_equal(forward.p, backward.p)
    np.testing.assert_allclose(forward.chance_above(0.01), 1.0 - backward.chance_above(-0.01))


def test_p_of_rates_is_near_the_score_test() -> None:
    theirs = stats.chi2_contingency([[56, 14], [48, 32]], correction=False).pvalue
    assert float(of_rates(56, 70, 48, 80).p[0]) == pytest.approx(theirs, rel=0.15)


def test_what_does_not_vary_has_no_limits() -> None:
    found = StudentDifferences(np.array([0.0, 0.1]), np.zeros(2), np.array([9.0, 9.0]))
    assert np.isnan(found.limits(0.95)).all()
    assert found.p[0] == 1.0
    assert np.isnan(found.p[1])
    constant = DrawnDifferences(np.array([0.1]), np.full((100, 1), 0.1))
    assert np.isnan(constant.p).all()
    assert np.isnan(constant.limits(0.95)).all()


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_nothing_lies_on_the_side_of_equal_values_that_has_no_reach(sign: float) -> None:
    deviates, nothing = np.array([1.0, two_sided_z(0.95), 5.0]), np.zeros((3, 1))
    one, other = Reach(deviates, nothing, 0.1 * deviates[:, None]), Reach(deviates, nothing, nothing)
    found = HybridDifferences(np.zeros(1), *((one, other) if sign > 0 else (other, one)))
    assert found.p.tolist() == [1.0]
    chances = [float(found.chance_above(threshold)[0]) for threshold in (-0.1, 0.1)]
    rarely = float(stats.norm.sf(1.0))
    assert chances == pytest.approx([1.0, rarely] if sign > 0 else [1.0 - rarely, 0.0])
    assert np.isnan(HybridDifferences(np.zeros(1), other, other).p).all()
