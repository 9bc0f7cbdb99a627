"""Numbers as messages and findings write them: one rounding for all of them.

What is rounded is the shortest decimal that stands for the number, 0.9525 for the double nearest to it, and halves go
away from zero. Formatting the double would decide halves by its binary digits: up here and down there.
"""

import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from math import isnan
from typing import Final

# Digits enough for every double without an exponent.
_EXACTLY = Context(prec=800, rounding=ROUND_HALF_UP)


def rounded(value: float, digits: int = 3) -> str:
    """The number with so many decimals: ``rounded(0.9525)`` is 0.953."""
    return _written(value, 1, digits)


def percent(value: float, digits: int | None = 1) -> str:
    """A share in percent: ``percent(0.9525)`` is 95.3 %. With ``digits=None`` it has as many decimals as it needs."""
    return f"{_written(value, 100, digits)} %"


def share(part: float) -> str:
    """A share of cases: ``share(0.158)`` is 16 %. What is not all or none never reads as if it were."""
    if 0.0 < part < _RARE:
        return f"{significant(100.0 * part, 2)} %"
    if 1.0 - _RARE < part < 1.0:
        return "more than 99 %"
    return percent(part, 0)


# Shares below this have two digits.
_RARE = 0.01


def name(label: str) -> str:
    """A class in a sentence: as it is where it reads as a name, else in quotes."""
    return label if _PLAIN.fullmatch(label) else f'"{label}"'


def names(labels: Sequence[str]) -> str:
    """Classes or metrics in a sentence, the first ten of many: A, B and C."""
    said = [name(label) for label in labels[:MOST_NAMED]]
    if len(labels) > MOST_NAMED:
        said.append(f"{len(labels) - MOST_NAMED} more")
    *most, last = said
    return f"{', '.join(most)} and {last}" if most else last


def classes(labels: Sequence[str]) -> str:
    """Class A, or classes A and B."""
    return f"{'classes' if len(labels) > 1 else 'class'} {names(labels)}"


# Messages and evidence name this many classes; the rest is counted.
MOST_NAMED: Final = 10
_PLAIN: Final = re.compile(r"\w+([ :/&+.-]*\w+)*")


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
