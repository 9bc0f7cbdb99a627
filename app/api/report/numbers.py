"""Numbers on pages: as many decimals as their interval bears out, and never 1 for what is not."""

from collections.abc import Mapping
from typing import Any, Final

from app.domain.wording import rounded, significant

MINUS: Final = "\u2212"
NOTHING: Final = "\u2013"
_MOST: Final = 6


def decimals(low: float | None, high: float | None) -> int:
    """2 for an interval of 0.1 or more, 3 from 0.002 on, 4 below, and 3 without one."""
    if low is None or high is None:
        return 3
    wide = high - low
    return 2 if wide >= 0.1 else 3 if wide >= 0.002 else 4


def shown_value(value: float | None, digits: int = 3) -> str:
    """A value; what is exactly 0 or 1 has no decimals, and what would look as if it were has more of them."""
    if value is None:
        return NOTHING
    if value in (0.0, 1.0, -1.0):
        return f"{int(value)}".replace("-", MINUS)
    if abs(value) >= 1e6 or abs(value) < 10.0**-_MOST:
        return significant(value, 4).replace("-", MINUS)
    for places in range(digits, _MOST + 3):
        text = rounded(value, places)
        if abs(float(text)) not in (0.0, 1.0):
            return text.replace("-", MINUS)
    return text.replace("-", MINUS)


def shown_interval(low: float | None, high: float | None) -> str:
    """Both ends; empty where there are none."""
    if low is None and high is None:
        return ""
    digits = decimals(low, high)
    return f"{shown_value(low, digits)} to {shown_value(high, digits)}"


def signed_value(value: float | None, digits: int = 3) -> str:
    """A difference, always with its sign."""
    text = shown_value(value, digits)
    return text if value is None or value <= 0 else f"+{text}"


def signed_interval(low: float | None, high: float | None) -> str:
    """Both ends of the interval of a difference."""
    if low is None and high is None:
        return ""
    digits = decimals(low, high)
    return f"{signed_value(low, digits)} to {signed_value(high, digits)}"


def p_value(p: float | None) -> str:
    """Two digits below 0.1, two decimals above."""
    if p is None:
        return NOTHING
    if p < 0.001:
        return "< 0.001"
    return rounded(p, 3) if p < 0.1 else rounded(p, 2)


def strip(value: float | None, low: float | None, high: float | None) -> Mapping[str, Any] | None:
    """Where a value and its interval lie on a line from 0 to 1, in per cent; None for what does not lie there."""
    if value is None or not all(0.0 <= one <= 1.0 for one in (value, low, high) if one is not None):
        return None
    return {
        "at": f"{100 * value:.2f}%",
        "low": None if low is None else f"{100 * low:.2f}%",
        "high": None if high is None else f"{100 * high:.2f}%",
    }
