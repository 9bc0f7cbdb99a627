"""Could any confusion matrix have produced the scores that were reported? Fazekas & Kovács (2024).

No statistics: counts are whole numbers and a printed score stands for an interval, so either some matrix fits or none
does. Every score here grows with tn for fixed tp and with tp for fixed tn, so the fitting values of one are a range
for each value of the other and O(min(p, n)) steps find all. The ends of every range are settled in exact fractions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics import Array, ratio, silently

Counts = NDArray[np.int64]


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

    floating: Callable[[Array, Array, float, float], Array]
    exact: Callable[[int, int, int, int], Fraction | None]
    squared: bool = False
    mirrored: str | None = None
    transposed: str | None = None


def _quotient(numerator: int, denominator: int) -> Fraction | None:
    return Fraction(numerator, denominator) if denominator else None


def _or_zero(numerator: Array, denominator: Array) -> Array:
    with silently():
        return np.nan_to_num(ratio(numerator, denominator), nan=0.0)


def _mcc(tp: Array, tn: Array, p: float, n: float) -> Array:
    called = tp + n - tn
    return _or_zero(tp * n - (n - tn) * p, np.sqrt(p * n * called * (p + n - called)))


def _exact_mcc(tp: int, tn: int, p: int, n: int) -> Fraction | None:
    called = tp + n - tn
    top, bottom = tp * n - (n - tn) * p, p * n * called * (p + n - called)
    return _quotient(top * abs(top), bottom)


def _kappa_parts(tp: Array, tn: Array, p: float, n: float) -> tuple[Array, Array]:
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

# Added to the ranges while floating point narrows them down; what is let in is settled exactly.
_SLACK = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class Feasible:
    """All binary matrices that fit: for each of some tp, the tn from ``low`` to ``high``; with ``swapped`` the other
    way round.

    Attributes:
        positives: p.
        negatives: n.
        fixed: (S) values of tp, or of tn when swapped.
        low: (S) smallest fitting value of the other.
        high: (S) largest.
        swapped: tn is the fixed one.
    """

    positives: int
    negatives: int
    fixed: Counts
    low: Counts
    high: Counts
    swapped: bool

    @property
    def count(self) -> int:
        """How many matrices fit."""
        return int((self.high - self.low + 1).sum())

    def examples(self, most: int = 5) -> list[tuple[int, int]]:
        """Up to that many (tp, tn) that fit, spread over all of them."""
        if not self.count:
            return []
        ends = np.cumsum(self.high - self.low + 1)
        wanted = np.unique(np.linspace(0, self.count - 1, min(most, self.count)).round().astype(np.int64))
        rows = np.searchsorted(ends, wanted, side="right")
        moving = self.low[rows] + wanted - np.concatenate([[0], ends])[rows]
        pairs = zip(self.fixed[rows].tolist(), moving.tolist(), strict=True)
        return [(moved, still) if self.swapped else (still, moved) for still, moved in pairs]

    def implied(self) -> dict[str, tuple[float, float]]:
        """Range of every score over the matrices that fit, undefined values read as 0; empty when none fits."""
        if not self.count:
            return {}
        ranges = {}
        for name, score in SCORES.items():
            smallest, largest = self._values(score, self.low), self._values(score, self.high)
            ranges[name] = (float(smallest.min()), float(largest.max()))
        for name, base in COMPLEMENTS.items():
            ranges[name] = (1.0 - ranges[base][1], 1.0 - ranges[base][0])
        return ranges

    def _values(self, score: Score, moving: Counts) -> Array:
        fixed, other = self.fixed.astype(np.float64), moving.astype(np.float64)
        tp, tn = (other, fixed) if self.swapped else (fixed, other)
        return score.floating(tp, tn, float(self.positives), float(self.negatives))


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


def feasible_matrices(
    positives: int, negatives: int, scores: Sequence[tuple[str, Range]], *, undefined_as_zero: bool = False
) -> Feasible:
    """Every matrix with p positive and n negative items whose scores all lie in their ranges.

    Args:
        positives: p >= 1.
        negatives: n >= 1.
        scores: names of ``SCORES`` with their ranges; a name may come twice.
        undefined_as_zero: read a printed score that would be 0/0 as 0; otherwise it fits nothing.

    Raises:
        ValueError: a class is empty.
    """
    if positives < 1 or negatives < 1:
        raise ValueError("both classes need items")
    swapped = positives > negatives
    outer, inner = (negatives, positives) if swapped else (positives, negatives)
    outside = np.arange(outer + 1, dtype=np.float64)
    low, high = np.zeros(outer + 1, dtype=np.int64), np.full(outer + 1, inner, dtype=np.int64)
    p, n = float(positives), float(negatives)

    def values(score: Score) -> Callable[[Counts], Array]:
        if swapped:
            return lambda inside: score.floating(inside.astype(np.float64), outside, p, n)
        return lambda inside: score.floating(outside, inside.astype(np.float64), p, n)

    for name, wanted in scores:
        of = values(SCORES[name])
        low = np.maximum(low, _first(of, float(wanted.low) - _SLACK, inner, outer))
        high = np.minimum(high, _first(of, float(wanted.high) + _SLACK, inner, outer, above=True) - 1)

    def fits(fixed: int, moving: int) -> bool:
        tp, tn = (moving, fixed) if swapped else (fixed, moving)
        return _fits(tp, tn, positives, negatives, scores, undefined_as_zero=undefined_as_zero)

    rows = []
    for fixed in np.flatnonzero(low <= high):
        start, stop = int(low[fixed]), int(high[fixed])
        while start <= stop and not fits(int(fixed), start):
            start += 1
        while stop > start and not fits(int(fixed), stop):
            stop -= 1
        if start <= stop:
            rows.append((int(fixed), start, stop))
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return Feasible(positives, negatives, table[:, 0], table[:, 1], table[:, 2], swapped)


def _first(values: Callable[[Counts], Array], target: float, inner: int, outer: int, *, above: bool = False) -> Counts:
    """Smallest whole number 0..inner+1 per row at which a growing value reaches the target, or passes it with
    ``above``.
    """
    low, high = np.zeros(outer + 1, dtype=np.int64), np.full(outer + 1, inner + 1, dtype=np.int64)
    while (low < high).any():
        middle = (low + high) // 2
        found = values(np.minimum(middle, inner))
        reached = (found > target if above else found >= target) | (middle > inner)
        low, high = np.where(reached, low, np.minimum(middle + 1, high)), np.where(reached, middle, high)
    return low


def _fits(tp: int, tn: int, p: int, n: int, scores: Sequence[tuple[str, Range]], *, undefined_as_zero: bool) -> bool:
    for name, wanted in scores:
        score = SCORES[name]
        value = score.exact(tp, tn, p, n)
        if value is None:
            if not undefined_as_zero:
                return False
            value = Fraction(0)
        if not wanted.holds(value, squared=score.squared):
            return False
    return True


@dataclass(frozen=True, slots=True)
class Alternative:
    """A reading of the report under which it would be consistent."""

    code: str
    sentence: str
    count: int


def alternatives(positives: int, negatives: int, scores: Mapping[str, str], printed: Printed) -> list[Alternative]:
    """Other readings of printed scores that some matrix fits.

    None of them is an accusation; each is a question to the authors.
    """
    readings: list[tuple[str, str, int, int, list[tuple[str, Range]], bool]] = []
    plain = normalise({name: printed_range(text, printed) for name, text in scores.items()})
    loose = normalise({name: printed_range(text, Printed.ANY) for name, text in scores.items()})
    mirrored = [(SCORES[name].mirrored or name, wanted) for name, wanted in plain]
    transposed = [(SCORES[name].transposed or name, wanted) for name, wanted in plain]
    if printed is not Printed.ANY:
        readings.append(
            (
                "truncated",
                "scores were cut off or rounded up, not rounded to nearest",
                positives,
                negatives,
                loose,
                False,
            )
        )
    readings += [
        ("swapped_classes", "the other class was taken as positive", positives, negatives, mirrored, False),
        (
            "swapped_counts",
            "the numbers of positive and negative items are exchanged",
            negatives,
            positives,
            plain,
            False,
        ),
        (
            "transposed",
            "rows and columns are exchanged, so recall was printed as precision",
            positives,
            negatives,
            transposed,
            False,
        ),
        ("undefined_as_zero", "a score that does not exist was printed as 0", positives, negatives, plain, True),
    ]
    found = []
    for code, sentence, p, n, wanted, as_zero in readings:
        if code.startswith(("swapped", "transposed")) and wanted == plain and (p, n) == (positives, negatives):
            continue
        count = feasible_matrices(p, n, wanted, undefined_as_zero=as_zero).count
        if count:
            found.append(Alternative(code, sentence, count))
    return found
