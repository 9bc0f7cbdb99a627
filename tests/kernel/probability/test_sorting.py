"""The sorts put everything in order, whatever the values look like."""

import numpy as np
import pytest

from app.kernel.numerics.sorting import Flagged, Range, ascending_order, sort_flagged

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


def flagged(values: np.ndarray, bits: int, piece: int = 7000) -> None:
    """Sorts values with random flags and compares with the plain sort of both."""
    within = Range.of(values)
    assert within.free_bits >= bits
    flags = RNG.integers(0, 2**bits, values.size).astype(np.uint8)
    pieces = (
        Flagged(values[start : start + piece], flags[start : start + piece]) for start in range(0, values.size, piece)
    )
    ordered, carried = sort_flagged(pieces, values.size, within, bits)
    np.testing.assert_array_equal(ordered, np.sort(values))
    assert not np.signbit(ordered).any()
    # The pairs are the same: sorted fully, both lists agree.
    np.testing.assert_array_equal(carried[np.lexsort((carried, ordered))], flags[np.lexsort((flags, values + 0.0))])


@pytest.mark.parametrize("n", [*SIZES, 300_000])
def test_values_with_flags(n: int) -> None:
    for values in shapes(n).values():
        flagged(values, 2)
        # Next to nothing is free above a range that reaches from 0 to 1, much above one from 1/4 to 1.
        flagged(0.25 + 0.75 * values, 8)


@pytest.mark.parametrize("n", [300, 9000, 300_000])
def test_zeros_with_a_sign_and_without(n: int) -> None:
    u = RNG.random(n)
    for scale in (0.5, 1e-9):
        values = np.where(u < 0.4, 0.0, (u - 0.4) ** 6 * scale)
        values[::7] = -0.0
        flagged(values, 2)


def test_how_many_bits_a_range_leaves_free() -> None:
    # All 52 bits of the fraction, and 0, 1 or 10 of the exponent.
    assert Range(0.5, np.nextafter(1.0, 0.0)).free_bits == 12
    assert Range(0.25, np.nextafter(1.0, 0.0)).free_bits == 11
    assert Range(0.0, 1.0).free_bits == 2
    assert Range.of(np.array([-0.0, 1.0])) == Range(0.0, 1.0)
    assert Range(0.3, 0.3).free_bits == 64


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e18, 1e300])
@pytest.mark.parametrize("shift", [0.0, 1.0, -1e6])
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
