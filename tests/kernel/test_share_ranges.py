"""Where in ranges of class shares a metric is lowest and highest, against other optimisers and dense grids."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from app.kernel.matrix.prevalence import ShareExtremes, ShareRanges, extremes, project
from app.kernel.matrix.table import Table
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import Array, silently
from tests.bank import each

THREE = np.array([[70.0, 20, 10], [5, 80, 15], [12, 8, 30]])
FOUR = np.array([[40.0, 5, 3, 2], [6, 30, 10, 4], [1, 9, 50, 20], [8, 2, 7, 13]])


def metric_of(counts: Array, *keys: str) -> Callable[[Array], Array]:
    """From shares of all classes but the last to the values of metrics."""

    def values(points: Array) -> Array:
        shares = np.column_stack([points, np.maximum(1.0 - points.sum(axis=1), 0.0)])
        table = Table(np.stack([project(counts, one) for one in shares]))
        with silently():
            return np.stack([catalogue().of_matrices.by_name[key].compute(table) for key in keys], axis=1)

    return values


def found_in(
    low: list[float], high: list[float], function: Callable[[Array], Array], per_axis: int = 21
) -> ShareExtremes:
    ranges = ShareRanges(np.array(low), np.array(high))
    points = ranges.points(per_axis)
    return extremes(ranges, function, points, function(points), most=10**6)


@each("key", ["cohen_kappa", "mcc", "macro_f1", "accuracy"])
@each("recalls", [(0.9, 0.95), (0.99, 0.6), (0.7, 0.7)])
def test_one_range_has_the_extremes_of_another_optimiser(key: str, recalls: tuple[float, float]) -> None:
    """Kappa and MCC of two classes are highest somewhere between the ends, where no grid point lies."""
    counts = np.array([[recalls[0], 1 - recalls[0]], [1 - recalls[1], recalls[1]]]) * 1000
    function = metric_of(counts, key)
    found = found_in([0.03, 0.0], [0.97, 1.0], function)
    for sign, value, point in zip((1, -1), found.values[:, 0], found.points[:, 0], strict=True):
        known = [sign * float(function(np.array([[end]]))[0, 0]) for end in (0.03, 0.97)]
        inner = minimize_scalar(
            lambda share, sign=sign: sign * float(function(np.array([[share]]))[0, 0]),
            bounds=(0.03, 0.97),
            method="bounded",
            options={"xatol": 1e-12},
        )
        assert sign * value == pytest.approx(min(*known, inner.fun), abs=1e-9)
        assert function(point[None])[0, 0] == value
    assert found.settled


def test_two_ranges_are_no_worse_than_a_dense_grid() -> None:
    keys = ("cohen_kappa", "mcc", "macro_f1", "balanced_accuracy", "accuracy")
    function = metric_of(THREE, *keys)
    low, high = [0.05, 0.1, 0.02], [0.6, 0.5, 0.9]
    found = found_in(low, high, function)
    dense = ShareRanges(np.array(low), np.array(high)).points(161)
    everywhere = function(dense)
    assert (found.values[0] <= everywhere.min(axis=0) + 1e-12).all()
    assert (found.values[1] >= everywhere.max(axis=0) - 1e-12).all()
    # Nor is there anything beyond what a dense grid leaves open.
    np.testing.assert_allclose(found.values[1], everywhere.max(axis=0), atol=2e-4)
    # What prevalence does not move is the same everywhere.
    np.testing.assert_allclose(found.values[:, 3], everywhere[0, 3])


def test_three_ranges_with_a_slanted_side() -> None:
    """The lower ends leave little room, so that the rest at its end is a side on which shares are exchanged."""
    low, high = np.array([0.1, 0.2, 0.1, 0.3]), np.array([0.5, 0.6, 0.4, 0.35])
    function = metric_of(FOUR, "cohen_kappa", "mcc")
    found = found_in(low.tolist(), high.tolist(), function, per_axis=9)
    shares = np.concatenate([found.points, 1 - found.points.sum(axis=-1, keepdims=True)], axis=-1)
    assert (shares >= low - 1e-9).all()
    assert (shares <= high + 1e-9).all()
    random = np.random.default_rng(0)
    tried = random.dirichlet(np.ones(4), 400_000)
    tried = tried[((tried >= low) & (tried <= high)).all(axis=1)][:4000]
    everywhere = function(tried[:, :3])
    assert (found.values[0] <= everywhere.min(axis=0) + 1e-12).all()
    assert (found.values[1] >= everywhere.max(axis=0) - 1e-12).all()


def test_the_search_stops_where_it_is_told_to_and_knows_of_missing_values() -> None:
    ranges = ShareRanges(np.array([0.0, 0.0]), np.array([1.0, 1.0]))
    points = ranges.points(5)

    def hill(points: Array) -> Array:
        return np.column_stack([-((points[:, 0] - 0.3) ** 2), np.full(len(points), np.nan)])

    short = extremes(ranges, hill, points, hill(points), most=10)
    assert not short.settled
    full = extremes(ranges, hill, points, hill(points), most=10_000)
    assert full.settled
    assert full.points[1, 0, 0] == pytest.approx(0.3, abs=1e-7)
    assert full.points[0, 0, 0] == 1.0
    assert np.isnan(full.values[:, 1]).all()
