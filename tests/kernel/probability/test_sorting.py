"""The sorts put everything in order, whatever the values look like."""

import numpy as np
import pytest

from app.kernel.numerics.sorting import ascending_order
from tests.bank import each

RNG = np.random.default_rng(0)
SIZES = (1, 2, 63, 2048, 5000, 70_000)


def shapes(n: int) -> dict[str, np.ndarray]:
    u = RNG.random(n)
    return {
        "even": u,
        "grid": np.round(u, 2),
        "decimals": np.round(u, 6),
        "skewed": u**30,
        "tiny": u * 1e-300,
        "two ends": np.where(u < 0.5, u * 1e-9, 1.0 - u * 1e-9),
        "last bits": 0.5 + RNG.integers(0, 50, n) * 2.0**-53,
        "ordered": np.sort(u),
        "falling": np.sort(u)[::-1].copy(),
        "constant": np.full(n, 0.25),
        "ends": np.where(u < 0.5, 0.0, 1.0),
    }


@pytest.mark.parametrize("n", SIZES)
def test_probabilities(n: int) -> None:
    for name, values in shapes(n).items():
        order, ordered = ascending_order(values)
        np.testing.assert_array_equal(ordered, np.sort(values), err_msg=name)
        np.testing.assert_array_equal(values[order], ordered, err_msg=name)
        assert np.array_equal(np.sort(order), np.arange(n)), name


@each("scale", [1e-300, 1.0, 1e18, 1e300])
@each("shift", [0.0, 1.0, -1e6])
def test_any_scores(scale: float, shift: float) -> None:
    values = (RNG.normal(size=30_000) + shift) * scale
    order, ordered = ascending_order(values)
    np.testing.assert_array_equal(ordered, np.sort(values))
    np.testing.assert_array_equal(values[order], ordered)


def test_an_outlier_that_leaves_no_levels_for_the_rest() -> None:
    values = RNG.normal(size=10_000)
    values[17] = 1e200
    order, ordered = ascending_order(values)
    np.testing.assert_array_equal(ordered, np.sort(values))
    np.testing.assert_array_equal(values[order], ordered)
