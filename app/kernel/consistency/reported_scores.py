"""Reported scores: the range of values that a printed number stands for, the metric it is of, and alternative readings.

When no matrix fits a report, other readings may. None of them is an accusation; each is a question to the authors.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from app.kernel.metrics.card import Choice, Number, Scope
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.exact import Confusion, Exact
from app.kernel.metrics.families.detection import jaccard
from app.kernel.numerics.arrays import Array, silently


class Printed(StrEnum):
    """Rounding of a printed score.

    NEAREST is within half a unit of the last digit, TRUNCATED from the printed value up to one unit further from 0, ANY
    within one unit to either side.
    """

    NEAREST = "nearest"
    TRUNCATED = "truncated"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class ScoreRange:
    """Range of the values that a printed score stands for, ends included, as exact fractions."""

    low: Fraction
    high: Fraction

    def holds(self, value: Fraction, *, squared: bool = False) -> bool:
        """True if the value lies inside. With ``squared`` it is a signed square, compared with the signed squares of
        the ends.
        """
        low, high = (self.low * abs(self.low), self.high * abs(self.high)) if squared else (self.low, self.high)
        return low <= value <= high


def printed_range(text: str, printed: Printed = Printed.NEAREST) -> ScoreRange:
    """Range of the values behind a printed number such as ``0.9567``. All digits after the point count, trailing zeros
    too.
    """
    number = Decimal(text)
    value, unit = Fraction(number), Fraction(10) ** min(int(number.as_tuple().exponent), 0)
    if printed is Printed.NEAREST:
        return ScoreRange(value - unit / 2, value + unit / 2)
    if printed is Printed.ANY:
        return ScoreRange(value - unit, value + unit)
    # What is cut off to 0 may have been below it.
    return ScoreRange(value - unit if value <= 0 else value, value + unit if value >= 0 else value)


@dataclass(frozen=True, slots=True)
class Score:
    """Metric with an exact form, as it may have been reported.

    Attributes:
        key: Key of the metric.
        parameters: Numbers as they were written.
        of: Index of the class, for a metric of one class.
        transposed: Computed with rows and columns exchanged.
    """

    key: str
    parameters: tuple[tuple[str, Fraction], ...] = ()
    of: int | None = None
    transposed: bool = False

    @property
    def exact(self) -> Exact:
        """Exact form of the metric."""
        found = catalogue().by_name[self.key].card.inference.exact
        assert found is not None  # noqa: S101 - see `score_of`
        return found

    def in_terms_of(self, confusion: Confusion, kind: type = Fraction) -> Any:
        """Exact form with counts of any kind; parameters are numbers of that kind."""
        seen = confusion.transposed() if self.transposed else confusion
        numbers = {name: kind(number) for name, number in self.parameters}
        return self.exact.form(seen if self.of is None else seen.classes[self.of], **numbers)

    def value(self, tp: int, tn: int, positives: int, negatives: int) -> Fraction | None:
        """Value for a matrix of two classes, squared where the form is; None where undefined or infinite."""
        try:
            found = self.in_terms_of(Confusion.of_two(*map(Fraction, (tp, tn, positives, negatives))))
        except ZeroDivisionError:
            return None
        return Fraction(found)

    def is_infinite(self, tp: int, tn: int, positives: int, negatives: int) -> bool:
        """True if the value is a nonzero number over 0."""
        return bool(np.isinf(self.floating(*(np.array(float(count)) for count in (tp, tn, positives, negatives)))))

    def floating(self, tp: Array, tn: Array, positives: Array, negatives: Array) -> Array:
        """Values for many matrices, up to rounding; NaN where undefined."""
        with silently():
            found = np.asarray(self.in_terms_of(Confusion.of_two(tp, tn, positives, negatives), float))
            return np.sign(found) * np.sqrt(np.abs(found)) if self.exact.squared else found

    def of_the_other_class(self) -> "Score":
        """Score with the other of two classes as the positive one."""
        return self if self.of is None else replace(self, of=1 - self.of)

    def turned(self) -> "Score":
        """Score with rows and columns exchanged."""
        return replace(self, transposed=not self.transposed)


def score_of(key: str, parameters: Mapping[str, Any], of: int | None) -> Score:
    """Score of a metric with all its parameters, for a class if it is a metric of one class.

    Raises:
        KeyError: the metric has no exact form, or none for these parameters.
    """
    card = catalogue().by_name[key].card
    chosen = any(
        parameters.get(one.name, one.default) != one.default for one in card.parameters if isinstance(one, Choice)
    )
    if card.inference.exact is None or chosen:
        raise KeyError(key)
    numbers = {one.name: Fraction(repr(parameters[one.name])) for one in card.parameters if isinstance(one, Number)}
    return Score(key, tuple(numbers.items()), of if card.scope is Scope.CLASS else None)


@cache
def scores_of_two_classes() -> Mapping[str, Score]:
    """Every metric with an exact form by its key, class metrics for the positive class."""
    known = (metric.card for metric in catalogue().metrics if metric.card.inference.exact is not None)
    found = {card.key: score_of(card.key, card.defaults, 1) for card in known}
    # The only score of the other class with a name of its own and no metric.
    return found | {"jaccard_negative": replace(found[jaccard.key], of=0)}


PrintedScores = Sequence[tuple[Score, str]]
# Scores with the ranges that their texts stand for; a score may come twice.
Reported = Sequence[tuple[Score, ScoreRange]]


@dataclass(frozen=True, slots=True)
class Reading:
    """Interpretation of a report: the scores meant, their classes, and the value printed for 0/0."""

    code: str
    sentence: str
    reported: Reported
    sizes_exchanged: bool = False
    undefined_as_zero: bool = False


def as_printed(scores: PrintedScores, printed: Printed) -> Reported:
    """Every score with the range of its text."""
    return tuple((score, printed_range(text, printed)) for score, text in scores)


def readings(scores: PrintedScores, printed: Printed) -> Iterator[Reading]:
    """Readings of scores of two classes other than the plain one, if they differ from it."""
    plain = as_printed(scores, printed)
    turned_around = [
        ("swapped_classes", "the other class was taken as positive", Score.of_the_other_class),
        ("transposed", "rows and columns are exchanged, so recall was printed as precision", Score.turned),
    ]
    if printed is not Printed.ANY:
        cut = "scores were cut off or rounded up, not rounded to nearest"
        yield Reading("truncated", cut, as_printed(scores, Printed.ANY))
    for code, sentence, other in turned_around:
        meant = tuple((other(score), wanted) for score, wanted in plain)
        if meant != plain and all(score.exact.transposable or not score.transposed for score, _ in meant):
            yield Reading(code, sentence, meant)
    exchanged = "the numbers of positive and negative items are exchanged"
    yield Reading("swapped_counts", exchanged, plain, sizes_exchanged=True)
    yield Reading("undefined_as_zero", "a score that does not exist was printed as 0", plain, undefined_as_zero=True)
