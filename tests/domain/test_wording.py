"""One rounding for the numbers of all texts."""

from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.wording import percent, rounded, significant


def test_one_value_is_written_alike_as_a_share_and_in_percent() -> None:
    # 0.9525 was 95.2 % in a finding and 0.953 beside it: 100 * 0.9525 is a tie that binary formatting takes to even.
    assert percent(0.9525) == "95.3 %"
    assert rounded(0.9525) == "0.953"
    assert percent(0.0125) == "1.3 %"
    assert rounded(0.0125) == "0.013"


def test_halves_go_away_from_zero_whatever_their_binary_digits_are() -> None:
    assert [rounded(value, 2) for value in (0.005, 0.015, 1.005, 2.675, -0.125)] == [
        "0.01",
        "0.02",
        "1.01",
        "2.68",
        "-0.13",
    ]
    assert [significant(value, 2) for value in (0.125, 2.25, 1250.0, -0.00025)] == [
        "0.13",
        "2.3",
        "1.3e+03",
        "-0.00025",
    ]
    assert significant(0.00012345) == "0.0001235"


@pytest.mark.parametrize(
    ("level", "written"), [(0.95, "95 %"), (0.995, "99.5 %"), (0.999, "99.9 %"), (1.0, "100 %"), (0.9525, "95.25 %")]
)
def test_a_level_has_as_many_decimals_as_it_needs(level: float, written: str) -> None:
    assert percent(level, None) == written


def test_what_rounds_to_zero_has_no_sign() -> None:
    assert rounded(-0.0004) == "0.000"
    assert percent(-1e-9) == "0.0 %"
    assert significant(-0.0) == "0"


def test_what_is_no_number_is_a_word() -> None:
    assert rounded(nan) == significant(nan) == "undefined"
    assert rounded(inf) == significant(inf) == "infinity"
    assert rounded(-inf) == significant(-inf) == "minus infinity"


def test_the_ends_of_doubles_are_written_too() -> None:
    assert rounded(1e300, 0) == "1" + 300 * "0"
    assert significant(1.7976931348623157e308) == "1.798e+308"
    assert significant(5e-324) == "5e-324"


def test_numpy_scalars_are_written_like_floats() -> None:
    assert rounded(np.float64(0.9525)) == "0.953"
    assert percent(np.float64(0.5)) == "50.0 %"


@given(st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False), st.integers(1, 9))
def test_significant_digits_are_those_of_the_format_except_for_ties(value: float, digits: int) -> None:
    written, formatted = Decimal(significant(value, digits)), Decimal(f"{value:.{digits}g}")
    if written != formatted:
        # Then what is left over is half a unit of the last digit, as its decimals or as its binary digits have it.
        half = Decimal(5).scaleb(Decimal(repr(value)).adjusted() - digits)
        assert abs(Decimal(repr(value)) - formatted) == half
    else:
        assert significant(value, digits) == f"{value + 0.0:.{digits}g}"


@given(st.integers(-(10**9), 10**9), st.integers(0, 6))
def test_decimals_are_rounded_as_by_hand(units: int, digits: int) -> None:
    """Against exact fractions, for numbers that have six decimals."""
    exact = Fraction(units, 10**6)
    scale = 10**digits
    # floor(x + 1/2) of the absolute value is: halves away from zero.
    nearest = (abs(exact) * scale + Fraction(1, 2)).__floor__()
    expected = Decimal(nearest) / scale * (-1 if units < 0 and nearest else 1)
    assert rounded(units / 10**6, digits) == f"{expected.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):f}"
