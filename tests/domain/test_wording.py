"""One rounding for the numbers of all texts."""

from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.wording import (
    PAGE,
    PLAIN,
    Notation,
    about,
    chance,
    name,
    names,
    numbered,
    p_said,
    p_value,
    percent,
    rounded,
    sentences_in,
    share,
    significant,
    whole,
)


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


VALUES: list[tuple[str, tuple[float | None, float | None, float | None], str, str]] = [
    ("three decimals, or those of the interval", (0.432, 0.304, 0.56), "0.432 (0.304 to 0.560)", "0.43 (0.30 to 0.56)"),
    ("a narrow interval", (0.9581, 0.9579, 0.9583), "0.958 (0.958 to 0.958)", "0.9581 (0.9579 to 0.9583)"),
    ("no interval", (0.9525, None, None), "0.953", "0.953"),
    ("an open end above", (0.5, -0.064, None), "0.500 (at least -0.064)", "0.500 (at least \u22120.064)"),
    ("an open end below", (0.5, None, 0.9), "0.500 (at most 0.900)", "0.500 (at most 0.900)"),
    ("nothing", (None, None, None), "-", "–"),
    ("exactly 1", (1.0, 0.995, 1.0), "1.000 (0.995 to 1.000)", "1 (0.995 to 1)"),
    ("not 1", (0.9997, None, None), "0.9997", "0.9997"),
    (
        "value and limits have one number of digits",
        (0.99997, 0.9999, 0.99999),
        "0.99997 (0.99990 to 0.99999)",
        "0.99997 (0.99990 to 0.99999)",
    ),
    ("so near to 1 that no digit shows it", (1 - 2e-11, None, None), ">0.99999", ">0.99999"),
    ("1 but for the rounding of doubles", (1 - 1e-16, None, None), "1.000", "1"),
    ("next to 0", (4.6e-48, None, None), "<0.00001", "<0.00001"),
    ("next to -1", (-1 + 1e-9, None, None), "<-0.99999", "<−0.99999"),
    ("below 0", (-6.1e-05, -0.017, 0.006), "-0.0001 (-0.0170 to 0.0060)", "−0.0001 (−0.0170 to 0.0060)"),
    (
        "ends that no digit shows",
        (0.5, 4.6e-48, 1 - 1e-10),
        "0.500 (<0.00001 to >0.99999)",
        "0.50 (<0.00001 to >0.99999)",
    ),
    ("a count", (122.0, None, None), "122", "122"),
    ("a large count", (12345678.0, None, None), "12,345,678", "12,345,678"),
    ("a count with limits", (122.0, 100.5, 140.0), "122.0 (100.5 to 140.0)", "122.0 (100.5 to 140.0)"),
    ("a ratio", (25.3, 3.2, 20000.0), "25.30 (3.20 to 20,000)", "25.30 (3.20 to 20,000)"),
    ("a huge ratio", (4.166e14, None, None), "4.166e+14", "4.166e+14"),
]


@pytest.mark.parametrize(("estimate", "plain", "page"), [row[1:] for row in VALUES], ids=[row[0] for row in VALUES])
def test_values_and_their_limits(
    estimate: tuple[float | None, float | None, float | None], plain: str, page: str
) -> None:
    assert PLAIN.said(*estimate) == plain
    assert PAGE.said(*estimate) == page


def test_differences_have_signs() -> None:
    assert PLAIN.said(0.06, -0.02, 0.14, sign=True) == "+0.060 (-0.020 to +0.140)"
    assert PAGE.said(-0.06, None, None, sign=True) == "−0.060"
    assert PLAIN.said(0.0, None, None, sign=True) == "0.000"
    # What arithmetic left over is no difference.
    assert PLAIN.value(-1.1e-16, sign=True) == "0.000"
    assert PLAIN.value(-8e-12, sign=True) == ">-0.00001"


def test_no_number_reads_as_the_limit_that_it_is_compared_with() -> None:
    assert PLAIN.estimate(0.85, 0.7996, 0.9, near=(0.8,)) == ("0.8500", "0.7996 to 0.9000")
    assert PLAIN.value(0.8, near=(0.8,)) == "0.800"


def test_shares_that_are_not_all_or_none_do_not_read_so() -> None:
    assert [percent(one) for one in (0.0, 6 / 42777, 1e-9, 0.99999, 1.0)] == [
        "0.0 %",
        "0.01 %",
        "<0.0001 %",
        "99.999 %",
        "100.0 %",
    ]
    assert [share(one) for one in (0.0, 6 / 42777, 1e-9, 0.158, 0.999, 1.0)] == [
        "0 %",
        "0.014 %",
        "less than 0.001 %",
        "16 %",
        "more than 99 %",
        "100 %",
    ]
    drawn = [chance(one) for one in (0.0, 0.004, 0.01, 0.5, 0.99, 0.991, 1.0, None)]
    assert drawn == [
        "<1 %",
        "<1 %",
        "1 %",
        "50 %",
        "99 %",
        ">99 %",
        ">99 %",
        "-",
    ]


def test_p_values_have_no_exponent() -> None:
    assert [p_value(one) for one in (6.6e-16, 0.0078, 0.02, 0.251)] == ["< 0.001", "0.008", "0.020", "0.25"]
    assert p_said(6.6e-16) == "p < 0.001"
    # An upper bound stays one.
    assert [p_said(one, bound=True) for one in (6.6e-16, 0.02, 0.0054)] == [
        "p at most 0.001",
        "p at most 0.020",
        "p at most 0.006",
    ]
    assert p_said(0.251) == "p = 0.25"


def test_numbers_of_things() -> None:
    assert [whole(one) for one in (0, 122.0, 42777, 83.5, 1234.25)] == ["0", "122", "42,777", "83.5", "1,234.25"]
    assert [whole(one) for one in (4.2e-7, 0.0004)] == ["4.2e-07", "0.0004"]
    assert [about(one) for one in (7, 100, 712, 23385)] == ["7", "100", "720", "24,000"]
    assert [numbered(one) for one in (1, 2000)] == ["1 sample", "2,000 samples"]


@given(st.floats(-2e4, 2e4), st.booleans(), st.booleans())
def test_what_is_not_0_or_1_never_reads_so(value: float, follows: bool, sign: bool) -> None:
    text = Notation(follows=follows).value(value, sign=sign)
    if min(abs(value), abs(abs(value) - 1.0)) > 1e-12 and abs(value) < 1.0:
        assert text.lstrip("+-").rstrip("0") not in ("", "0", "0.", "1", "1.")
    assert "e" not in text


def test_a_long_name_is_read_in_one_pass() -> None:
    # A name of 60 letters and a comma took all ways to cut the letters into words, and the service stood still.
    assert name("w" * 10_000 + ",") == '"' + "w" * 10_000 + ',"'
    assert name("Head and neck: type/2 & 3") == "Head and neck: type/2 & 3"
    assert name("ends with a space ") == '"ends with a space "'


def test_one_thing_is_in_the_singular() -> None:
    things = ("samples", "queries", "in weight")
    assert [numbered(1, each) for each in things] == ["1 sample", "1 query", "1 in weight"]
    assert [numbered(count, "classes") for count in (1, 2)] == ["1 class", "2 classes"]
    assert [numbered(count, "queries") for count in (0, 1.5, 2000)] == ["0 queries", "1.5 queries", "2,000 queries"]


def test_names_with_the_end_of_a_sentence_do_not_end_one() -> None:
    text = f"Class {name('E. coli')} is found in 4 of 9 cases. It is one of {names(['St. Louis', 'a.b'])}."
    assert sentences_in(text) == [
        'Class "E. coli" is found in 4 of 9 cases',
        'It is one of "St. Louis" and a.b',
    ]
