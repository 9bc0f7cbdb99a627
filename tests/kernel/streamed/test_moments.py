"""Sums over streamed samples: moments by class."""

import numpy as np
import pytest

from app.kernel.streamed.moments import Moments

RANDOM = np.random.default_rng(77)


@pytest.mark.parametrize("away", [0.0, 1e3])
def test_moments_are_those_of_all_samples_together(away: float) -> None:
    y, values = RANDOM.integers(0, 3, 5000), RANDOM.normal(size=(4, 5000)) + away
    weights = RANDOM.choice([0.1, 1.0, 30.0], y.size)
    values[3] = np.where(y == 1, 0.3, values[3])
    moments = Moments(4, 4, [np.arange(4)])
    for rows in np.array_split(RANDOM.permutation(y.size), 7):
        for code in range(3):
            some = rows[y[rows] == code]
            moments.add(code, values[:, some], weights[some])
    found = moments.read(range(4))
    assert found is not None
    whole = values @ weights / weights.sum()
    assert found.overall == pytest.approx(whole, rel=1e-13)
    for code in range(3):
        own, each = values[:, y == code], weights[y == code]
        mean = own @ each / each.sum()
        moved = each * (own - mean[:, None])
        assert found.means[code] == pytest.approx(mean, rel=1e-13)
        assert found.away[code] == pytest.approx(mean - whole, abs=1e-9 * max(away, 1e-3))
        assert found.products[code] == pytest.approx(moved @ moved.T, rel=1e-9, abs=1e-6)
        assert found.leaning[code] == pytest.approx(moved @ each, rel=1e-9, abs=1e-5)
    assert not found.products[1, 3].any()
    assert np.isnan(found.means[3]).all()


def test_values_without_end_are_kept_to_their_class() -> None:
    moments = Moments(2, 2, [np.arange(2)])
    moments.add(0, np.array([[1.0, np.inf], [1.0, 2.0]]), np.ones(2))
    moments.add(1, np.array([[1.0, 3.0], [np.nan, 2.0]]), np.ones(2))
    found = moments.read(range(2))
    assert found is not None
    assert moments.infinite().tolist() == [[True, False], [False, False]]
    assert found.overall[0] == np.inf
    assert np.isnan(found.overall[1])
    assert found.means[1, 0] == 2.0
