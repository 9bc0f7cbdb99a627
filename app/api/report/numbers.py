"""Numbers on pages: as many decimals as their interval bears out, and never 1 for what is not."""

from collections.abc import Mapping
from typing import Any

from app.domain.wording import PAGE


def decimals(low: float | None, high: float | None) -> int:
    """2 for an interval of 0.1 or more, 3 from 0.002 on, 4 below, and 3 without one."""
    return PAGE.decimals(None, low, high)


def shown_value(value: float | None, digits: int = 3) -> str:
    """A value."""
    return PAGE.fixed(value, max(digits, PAGE.decimals(value) if digits >= 3 else digits), count=digits == 3)


def shown_interval(low: float | None, high: float | None) -> str:
    """Both ends; empty where there are none."""
    return PAGE.interval(low, high)


def signed_value(value: float | None, digits: int = 3) -> str:
    """A difference, always with its sign."""
    return PAGE.fixed(value, max(digits, PAGE.decimals(value) if digits >= 3 else digits), sign=True)


def signed_interval(low: float | None, high: float | None) -> str:
    """Both ends of the interval of a difference."""
    return PAGE.interval(low, high, sign=True)


def strip(value: float | None, low: float | None, high: float | None) -> Mapping[str, Any] | None:
    """Where a value and its interval lie on a line from 0 to 1, in per cent; None for what does not lie there."""
    if value is None or not all(0.0 <= one <= 1.0 for one in (value, low, high) if one is not None):
        return None
    return {
        "at": f"{100 * value:.2f}%",
        "low": None if low is None else f"{100 * low:.2f}%",
        "high": None if high is None else f"{100 * high:.2f}%",
    }
