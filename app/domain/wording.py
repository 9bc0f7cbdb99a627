"""Numbers as messages and findings write them: one rounding for all of them.

What is rounded is the shortest decimal that stands for the number, 0.9525 for the double nearest to it, and halves go
away from zero. Formatting the double would decide halves by its binary digits: up here and down there.
"""

from decimal import ROUND_HALF_UP, Context, Decimal
from math import isnan

# Digits enough for every double without an exponent.
_EXACTLY = Context(prec=800, rounding=ROUND_HALF_UP)


def rounded(value: float, digits: int = 3) -> str:
    """The number with so many decimals: ``rounded(0.9525)`` is 0.953."""
    return _written(value, 1, digits)


def percent(value: float, digits: int | None = 1) -> str:
    """A share in percent: ``percent(0.9525)`` is 95.3 %. With ``digits=None`` it has as many decimals as it needs."""
    return f"{_written(value, 100, digits)} %"


def significant(value: float, digits: int = 4) -> str:
    """The number with so many significant digits at most, small and large ones with an exponent."""
    exact = Decimal(repr(float(value)))
    if not exact.is_finite() or not exact:
        return _written(value, 1, None)
    unit = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    nearest = exact.quantize(unit, context=_EXACTLY).normalize(_EXACTLY)
    power = nearest.adjusted()
    # As the format `g` has it.
    return f"{nearest:f}" if -5 < power < digits else f"{nearest.scaleb(-power, _EXACTLY):f}e{power:+03d}"


def two_digits(value: float) -> str:
    """A number of samples to two digits, with commas: ``two_digits(23385)`` is 23,000."""
    exact = Decimal(repr(float(value)))
    return f"{exact.quantize(Decimal(1).scaleb(max(exact.adjusted() - 1, 0)), context=_EXACTLY):,f}"


def _written(value: float, scale: int, digits: int | None) -> str:
    exact = Decimal(repr(float(value)))
    if not exact.is_finite():
        return "undefined" if isnan(value) else "infinity" if value > 0 else "minus infinity"
    scaled = exact * scale
    if digits is None:
        text = f"{scaled:f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        text = f"{scaled.quantize(Decimal(1).scaleb(-digits), context=_EXACTLY):f}"
    # What rounds to zero has no sign.
    return text if Decimal(text) else text.removeprefix("-")
