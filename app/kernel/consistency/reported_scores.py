"""Scores of two classes as they are reported: what a printed number stands for, and each score in exact fractions.

Every score here grows with tn for fixed tp and with tp for fixed tn, which is what makes searching for matrices cheap.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction

import numpy as np

from app.kernel.numerics.arrays import Array, ratio, silently

# Numbers of items: one for all matrices, or one for each.
Sizes = Array | float


class Printed(StrEnum):
    """How a score may have been cut to its digits.

    NEAREST is within half a unit of the last digit, TRUNCATED lies from the printed value up to one unit above, ANY
    within one unit to either side.
    """

    NEAREST = "nearest"
    TRUNCATED = "truncated"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Range:
    """The values that a printed score stands for, ends included, as exact numbers."""

    low: Fraction
    high: Fraction

    def holds(self, value: Fraction, *, squared: bool = False) -> bool:
        """Is the value inside? With ``squared`` it is a signed square, compared with the signed squares of the ends."""
        low, high = (_signed_square(self.low), _signed_square(self.high)) if squared else (self.low, self.high)
        return low <= value <= high

    def complement(self) -> "Range":
        """The range of one minus the score."""
        return Range(1 - self.high, 1 - self.low)


def _signed_square(value: Fraction) -> Fraction:
    return value * abs(value)


def printed_range(text: str, printed: Printed = Printed.NEAREST) -> Range:
    """What a printed number such as ``0.9567`` stands for. The digits after the point count, trailing zeros too.

    Raises:
        ValueError: it is not a finite number.
    """
    try:
        number = Decimal(text)
    except ArithmeticError:
        raise ValueError(f"{text!r} is not a number") from None
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int):
        raise ValueError(f"{text!r} is not a finite number")
    value, unit = Fraction(number), Fraction(10) ** min(exponent, 0)
    if printed is Printed.NEAREST:
        return Range(value - unit / 2, value + unit / 2)
    if printed is Printed.ANY:
        return Range(value - unit, value + unit)
    return Range(value, value + unit) if value >= 0 else Range(value - unit, value)


@dataclass(frozen=True, slots=True)
class Score:
    """One score of a binary matrix.

    Attributes:
        floating: from arrays (tp, tn, p, n), with undefined values given as 0, where they keep the score monotone.
        exact: the same as a fraction, None where undefined.
        squared: ``exact`` gives the square of the score with its sign, because the score has a root in it.
        mirrored: The score of the other class, for swapped classes.
        transposed: The score that takes its place when the matrix is transposed.
    """

    floating: Callable[[Array, Array, Sizes, Sizes], Array]
    exact: Callable[[int, int, int, int], Fraction | None]
    squared: bool = False
    mirrored: str | None = None
    transposed: str | None = None


def _quotient(numerator: int, denominator: int) -> Fraction | None:
    return Fraction(numerator, denominator) if denominator else None


def _or_zero(numerator: Array, denominator: Array) -> Array:
    with silently():
        return np.nan_to_num(ratio(numerator, denominator), nan=0.0)


def _mcc(tp: Array, tn: Array, p: Sizes, n: Sizes) -> Array:
    called = tp + n - tn
    return _or_zero(tp * n - (n - tn) * p, np.sqrt(p * n * called * (p + n - called)))


def _exact_mcc(tp: int, tn: int, p: int, n: int) -> Fraction | None:
    called = tp + n - tn
    top, bottom = tp * n - (n - tn) * p, p * n * called * (p + n - called)
    return _quotient(top * abs(top), bottom)


def _kappa_parts(tp: Array, tn: Array, p: Sizes, n: Sizes) -> tuple[Array, Array]:
    called = tp + n - tn
    return 2 * (tp * n - (n - tn) * p), called * n + p * (p + n - called)


def _exact_kappa(tp: int, tn: int, p: int, n: int) -> Fraction | None:
    called = tp + n - tn
    return _quotient(2 * (tp * n - (n - tn) * p), called * n + p * (p + n - called))


SCORES: dict[str, Score] = {
    "accuracy": Score(lambda tp, tn, p, n: (tp + tn) / (p + n), lambda tp, tn, p, n: Fraction(tp + tn, p + n)),
    "recall": Score(
        lambda tp, tn, p, _n: tp / p + 0 * tn,
        lambda tp, _tn, p, _n: Fraction(tp, p),
        mirrored="specificity",
        transposed="precision",
    ),
    "specificity": Score(
        lambda tp, tn, _p, n: tn / n + 0 * tp,
        lambda _tp, tn, _p, n: Fraction(tn, n),
        mirrored="recall",
        transposed="npv",
    ),
    "precision": Score(
        lambda tp, tn, _p, n: _or_zero(tp, tp + n - tn),
        lambda tp, tn, _p, n: _quotient(tp, tp + n - tn),
        mirrored="npv",
        transposed="recall",
    ),
    "npv": Score(
        lambda tp, tn, p, _n: _or_zero(tn, tn + p - tp),
        lambda tp, tn, p, _n: _quotient(tn, tn + p - tp),
        mirrored="precision",
        transposed="specificity",
    ),
    "f1": Score(
        lambda tp, tn, p, n: 2 * tp / (tp + p + n - tn),
        lambda tp, tn, p, n: Fraction(2 * tp, tp + p + n - tn),
        mirrored="f1_negative",
    ),
    "f1_negative": Score(
        lambda tp, tn, p, n: 2 * tn / (tn + n + p - tp),
        lambda tp, tn, p, n: Fraction(2 * tn, tn + n + p - tp),
        mirrored="f1",
    ),
    "jaccard": Score(
        lambda tp, tn, p, n: tp / (p + n - tn),
        lambda tp, tn, p, n: Fraction(tp, p + n - tn),
        mirrored="jaccard_negative",
    ),
    "jaccard_negative": Score(
        lambda tp, tn, p, n: tn / (n + p - tp), lambda tp, tn, p, n: Fraction(tn, n + p - tp), mirrored="jaccard"
    ),
    "balanced_accuracy": Score(
        lambda tp, tn, p, n: (tp / p + tn / n) / 2, lambda tp, tn, p, n: (Fraction(tp, p) + Fraction(tn, n)) / 2
    ),
    "informedness": Score(
        lambda tp, tn, p, n: tp / p + tn / n - 1, lambda tp, tn, p, n: Fraction(tp, p) + Fraction(tn, n) - 1
    ),
    "g_mean": Score(
        lambda tp, tn, p, n: np.sqrt(tp / p * (tn / n)),
        lambda tp, tn, p, n: Fraction(tp, p) * Fraction(tn, n),
        squared=True,
    ),
    "fowlkes_mallows": Score(
        lambda tp, tn, p, n: np.sqrt(_or_zero(tp * tp, p * (tp + n - tn))),
        lambda tp, tn, p, n: _quotient(tp * tp, p * (tp + n - tn)),
        squared=True,
    ),
    "mcc": Score(_mcc, _exact_mcc, squared=True),
    "cohen_kappa": Score(lambda tp, tn, p, n: _or_zero(*_kappa_parts(tp, tn, p, n)), _exact_kappa),
}

# One minus a score of the table above.
COMPLEMENTS = {
    "error_rate": "accuracy",
    "fnr": "recall",
    "fpr": "specificity",
    "fdr": "precision",
    "false_omission_rate": "npv",
}


def normalise(scores: Mapping[str, Range]) -> list[tuple[str, Range]]:
    """The same statements about the scores of ``SCORES`` alone.

    Raises:
        KeyError: a score is not known here.
    """
    found = []
    for name, wanted in scores.items():
        if name in COMPLEMENTS:
            found.append((COMPLEMENTS[name], wanted.complement()))
        elif name in SCORES:
            found.append((name, wanted))
        else:
            raise KeyError(name)
    return found
