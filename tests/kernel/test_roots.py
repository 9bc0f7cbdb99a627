"""Root finding, every element with an equation and a bracket of its own."""

import numpy as np
import pytest

from app.kernel.numerics.arrays import Array, newton_root, rising_root, silently, solve_where

TARGETS = np.array([0.2, 2.0, 7.5, 30.0])


def cube(root: Array) -> tuple[Array, Array]:
    return root**3 - TARGETS, 3 * root**2


def saturating(root: Array) -> tuple[Array, Array]:
    """Flat almost everywhere: Newton alone is thrown far out."""
    return np.arctan(40 * (root - 0.7)), 40 / (1 + (40 * (root - 0.7)) ** 2)


def test_newton_finds_what_is_near() -> None:
    root = newton_root(cube, np.cbrt(TARGETS) * 1.1, low=np.zeros(4), high=np.full(4, 9.0))
    assert root == pytest.approx(np.cbrt(TARGETS), rel=1e-15)


def test_newton_gives_nan_outside_of_the_bracket() -> None:
    root = newton_root(cube, np.ones(4), low=np.zeros(4), high=np.array([9.0, 9.0, 9.0, 2.0]))
    assert np.isnan(root).tolist() == [False, False, False, True]


def test_newton_gives_nan_where_it_does_not_settle() -> None:
    with silently():
        root = newton_root(saturating, np.array(0.1), low=np.array(0.0), high=np.array(1.0))
    assert np.isnan(root)


def test_rising_root_needs_no_start() -> None:
    assert rising_root(saturating, low=np.array(0.0), high=np.array(1.0)) == pytest.approx(0.7, rel=1e-14)
    found = rising_root(cube, low=np.array([0.0, np.nan, 0.0, 0.0]), high=np.full(4, 9.0))
    assert np.delete(found, 1) == pytest.approx(np.delete(np.cbrt(TARGETS), 1), rel=1e-14)


def test_rising_root_never_asks_at_the_ends() -> None:
    asked = []

    def pole(root: Array) -> tuple[Array, Array]:
        asked.append(np.array(root))
        return np.log(root / (1 - root)) - 3.0, 1 / (root * (1 - root))

    root = rising_root(pole, low=np.zeros(3), high=np.ones(3))
    assert root == pytest.approx(np.full(3, 1 / (1 + np.exp(-3.0))), rel=1e-14)
    assert all(((point > 0) & (point < 1)).all() for point in asked)


def test_solving_only_where_asked() -> None:
    seen = []

    def solver(values: Array) -> Array:
        seen.append(values.ravel().tolist())
        return 2 * values

    values = np.array([1.0, 2.0, 3.0])
    got = solve_where(np.array([True, False, True]), solver, values)
    assert got.tolist()[::2] == [2.0, 6.0]
    assert np.isnan(got[1])
    assert solve_where(np.array([True] * 3), solver, values).tolist() == [2.0, 4.0, 6.0]
    assert np.isnan(solve_where(np.array([False] * 3), solver, values)).all()
    assert seen == [[1.0, 3.0], [1.0, 2.0, 3.0]]
