"""Consistency of reported scores of several classes, or of means over folds, with whole counts.

Where scores are linear in the counts, or ratios of linear forms, this is an integer programme. Solutions are verified
in exact fractions. Other scores (macro precision, F1 averaged over folds) are refused rather than guessed.

``Linear`` stands for counts that are not known yet: sums with exact weights, and quotients of two such sums. The exact
form of a metric computed with it gives such a form, or an error where no integer programme can express it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from operator import attrgetter
from typing import Union

import numpy as np

from app.kernel.consistency.reported_scores import Reported, Score, ScoreRange, scores_of_two_classes
from app.kernel.matrix.table import OneVsRest
from app.kernel.metrics.exact import Confusion
from app.kernel.metrics.families.averages import accuracy
from app.kernel.metrics.families.rate_means import balanced_accuracy
from app.kernel.metrics.families.rates import recall, specificity
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.scipy_bridge import find_integers

# Weights of counts by their position; -1 is the constant.
CONSTANT = -1
Weights = Mapping[int, Fraction]


class NotLinearError(ArithmeticError):
    """The result is neither a linear form nor a quotient of two."""


@dataclass(frozen=True, slots=True)
class LinearForm:
    """Weighted sum of counts over another one, which is 1 for a linear form."""

    top: Weights
    bottom: Weights = field(default_factory=lambda: {CONSTANT: Fraction(1)})

    @classmethod
    def count(cls, position: int) -> "LinearForm":
        """One unknown count."""
        return cls({position: Fraction(1)})

    @classmethod
    def of(cls, value: Union["LinearForm", int, Fraction]) -> "LinearForm":
        """Number as a linear form; forms unchanged."""
        return value if isinstance(value, LinearForm) else cls({CONSTANT: Fraction(value)})

    @property
    def is_quotient(self) -> bool:
        """True if the denominator holds counts."""
        return any(position != CONSTANT for position in self.bottom)

    def __add__(self, other: Union["LinearForm", int, Fraction]) -> "LinearForm":
        added = LinearForm.of(other)
        if self.bottom == added.bottom:
            return LinearForm(_sum(self.top, added.top), self.bottom)
        if added.is_quotient:
            return added + self if not self.is_quotient else _fail()
        return LinearForm(_sum(self.top, _times(self.bottom, added._number())), self.bottom)

    __radd__ = __add__

    def __neg__(self) -> "LinearForm":
        return self * -1

    def __sub__(self, other: Union["LinearForm", int, Fraction]) -> "LinearForm":
        return self + -other

    def __rsub__(self, other: int | Fraction) -> "LinearForm":
        return -self + other

    def __mul__(self, other: Union["LinearForm", int, Fraction]) -> "LinearForm":
        factor = LinearForm.of(other)
        if not self.top.keys() - {CONSTANT} and not self.is_quotient:
            self, factor = factor, self
        return LinearForm(_times(self.top, factor._number()), self.bottom)

    __rmul__ = __mul__

    def __truediv__(self, other: Union["LinearForm", int, Fraction]) -> "LinearForm":
        divisor = LinearForm.of(other)
        if self.is_quotient or not divisor.top.keys() - {CONSTANT}:
            return LinearForm(_times(self.top, 1 / divisor._number()), self.bottom)
        return LinearForm(self.top, divisor.top) if not divisor.is_quotient else _fail()

    def __rtruediv__(self, other: int | Fraction) -> "LinearForm":
        return LinearForm.of(other) / self

    def __abs__(self) -> "LinearForm":
        return _fail()

    def _number(self) -> Fraction:
        """Value of a form without counts."""
        if self.is_quotient or self.top.keys() - {CONSTANT}:
            _fail()
        return self.top.get(CONSTANT, Fraction(0))

    def whole(self) -> "LinearForm":
        """Equal form with whole weights in the denominator, so that a positive denominator is at least 1."""
        factor = Fraction(lcm(*(weight.denominator for weight in self.bottom.values())))
        return LinearForm(_times(self.top, factor), _times(self.bottom, factor))


def _fail() -> "LinearForm":
    raise NotLinearError


def _sum(one: Weights, other: Weights) -> Weights:
    total = {position: one.get(position, Fraction(0)) + other.get(position, Fraction(0)) for position in {*one, *other}}
    return {position: weight for position, weight in total.items() if weight}


def _times(weights: Weights, factor: Fraction) -> Weights:
    return {position: weight * factor for position, weight in weights.items() if factor}


def value_of(weights: Weights, counts: Sequence[int]) -> Fraction:
    """A sum of counts."""
    return sum(
        (weight * (1 if position == CONSTANT else counts[position]) for position, weight in weights.items()),
        Fraction(0),
    )


# Ranges are widened by the solver's own tolerance, as counts: the largest weight of a row is 1.
_SLACK = 1e-6
# Time limits in seconds: for the answer, and for each end of an implied range.
_SECONDS, _SECONDS_EACH = 20.0, 2.0
IMPLIED_OF_FOLDS = tuple(metric.key for metric in (accuracy, recall, specificity, balanced_accuracy))


@dataclass(frozen=True, slots=True, eq=False)
class Feasibility:
    """Result of a search and, if it succeeded, an example of counts.

    Attributes:
        consistent: Are there such counts? None: those found fit only up to rounding, or the solver ran out of time.
        example: Counts that fit.
        implied: Smallest and largest value of further scores over all counts that fit, to within 1e-6.
    """

    consistent: bool | None
    example: Array | None = None
    implied: Mapping[str, tuple[float, float]] = field(default_factory=dict)


# Weights (V) of the counts in a sum, and its ends.
Row = tuple[Array, float, float]


@dataclass(frozen=True, slots=True)
class Statement:
    """Score of counts that lies in a range."""

    score: LinearForm
    wanted: ScoreRange

    def rows(self, size: int) -> Iterator[Row]:
        """Rows of sums of the counts, cleared of the denominator, which is at least 1 where it varies."""
        score = self.score.whole()
        top, bottom = score.top, score.bottom
        for end, sign in ((self.wanted.low, 1), (self.wanted.high, -1)):
            away = {p: sign * (top.get(p, 0) - end * bottom.get(p, 0)) for p in {*top, *bottom}}
            # With weights far below 1 the solver takes for impossible what is not.
            largest = max((abs(weight) for p, weight in away.items() if p != CONSTANT), default=0) or 1
            yield _row(_times(away, 1 / Fraction(largest)), size, -_SLACK)
        if score.is_quotient:
            yield _row(bottom, size, 1.0)

    def holds(self, counts: Sequence[int]) -> bool:
        """True if the counts satisfy it; a denominator of 0 does not."""
        top, bottom = value_of(self.score.top, counts), value_of(self.score.bottom, counts)
        return bottom > 0 and self.wanted.low * bottom <= top <= self.wanted.high * bottom


def _row(weights: Mapping[int, Fraction | int], size: int, least: float) -> Row:
    """Row for a sum of counts that is at least ``least``, with its constant on the other side."""
    row = np.zeros(size)
    for position, weight in weights.items():
        if position != CONSTANT:
            row[position] = float(weight)
    return row, least - float(weights.get(CONSTANT, 0)), np.inf


@dataclass(frozen=True, slots=True)
class Programme:
    """Whole counts 0 <= x <= upper that satisfy every statement.

    Attributes:
        statements: Scores with their ranges.
        upper: Largest value of each count.
        equal: Groups of positions whose counts have a fixed sum.
    """

    statements: Sequence[Statement]
    upper: Sequence[int]
    equal: Sequence[tuple[Sequence[int], int]] = ()

    def solve(self, shape: tuple[int, int], further: Mapping[str, LinearForm]) -> Feasibility:
        """Search for such counts, in this shape, and for the ends of further linear scores by name."""
        try:
            found = self._search()
        except TimeoutError:
            return Feasibility(None)
        if found is None:
            return Feasibility(consistent=False)
        counts = [int(count) for count in found]
        sums = all(sum(counts[position] for position in positions) == total for positions, total in self.equal)
        fits = sums and all(statement.holds(counts) for statement in self.statements)
        return Feasibility(fits, found.reshape(shape), self._extremes(further)) if fits else Feasibility(None)

    def _extremes(self, scores: Mapping[str, LinearForm]) -> dict[str, tuple[float, float]]:
        """Smallest and largest value of linear scores by name; those that take too long are left out."""
        ranges = {}
        for name, score in scores.items():
            objective, *_ = _row(score.top, len(self.upper), 0.0)
            try:
                ends = [self._search(sign * objective, seconds=_SECONDS_EACH) for sign in (1.0, -1.0)]
            except TimeoutError:
                continue
            found = [float(value_of(score.top, end.astype(np.int64).tolist())) for end in ends if end is not None]
            if len(found) == 2:
                ranges[name] = (found[0], found[1])
        return ranges

    def _search(self, least: Array | None = None, *, seconds: float = _SECONDS) -> Array | None:
        size = len(self.upper)
        rows = [(np.zeros(size), 0.0, 0.0), *(row for statement in self.statements for row in statement.rows(size))]
        for positions, total in self.equal:
            row = np.zeros(size)
            row[list(positions)] = 1.0
            rows.append((row, float(total), float(total)))
        matrix, low, high = (np.array(part) for part in zip(*rows, strict=True))
        return find_integers(matrix, low, high, np.array(self.upper, dtype=np.float64), least=least, seconds=seconds)


def check_classes(actual: Sequence[int], reported: Reported) -> Feasibility:
    """Search for a matrix with these positive row sums and scores. The example is the matrix (K, K).

    Implied are ranges of ``accuracy``, ``balanced_accuracy`` and, as ``recall@<class index>``, of the recalls.

    Raises:
        NotLinearError: a score is neither linear in the counts nor a quotient of two linear forms.
    """
    size = len(actual)
    confusion = _of_classes(actual)
    programme = Programme(
        [Statement(LinearForm.of(score.in_terms_of(confusion)), wanted) for score, wanted in reported],
        [count for count in actual for _ in range(size)],
        [(range(k * size, (k + 1) * size), actual[k]) for k in range(size)],
    )
    share = attrgetter(recall.key)
    implied = {accuracy.key: confusion.correct / confusion.n, balanced_accuracy.key: confusion.mean(share)}
    implied |= {f"{recall.key}@{k}": share(one) for k, one in enumerate(confusion.classes)}
    return programme.solve((size, size), implied)


def _of_classes(actual: Sequence[int]) -> Confusion:
    """Unknown counts of a matrix, row by row, with these row sums."""
    size = len(actual)
    cells = [[LinearForm.count(row * size + column) for column in range(size)] for row in range(size)]
    return Confusion(
        [
            OneVsRest(
                cells[k][k],
                sum((cells[row][k] for row in range(size) if row != k), LinearForm.of(0)),
                LinearForm.of(actual[k]),
                LinearForm.of(sum(actual) - actual[k]),
            )
            for k in range(size)
        ]
    )


def check_folds(folds: Sequence[tuple[int, int]], reported: Reported) -> Feasibility:
    """Search for counts of cross-validation folds of these sizes (p, n) whose binary scores have these means. The
    example is tp and tn of each fold (F, 2).

    These are means of scores over folds; a score of the pooled counts is a binary check of the sums. Implied are the
    ranges of the means of accuracy, recall, specificity and balanced accuracy.

    Raises:
        NotLinearError: the mean of a score is not linear in the counts.
    """
    parts = [
        Confusion.of_two(LinearForm.count(2 * fold), LinearForm.count(2 * fold + 1), LinearForm.of(p), LinearForm.of(n))
        for fold, (p, n) in enumerate(folds)
    ]
    programme = Programme(
        [Statement(_mean(score, parts), wanted) for score, wanted in reported],
        [count for fold in folds for count in fold],
    )
    known = scores_of_two_classes()
    return programme.solve((len(folds), 2), {name: _mean(known[name], parts) for name in IMPLIED_OF_FOLDS})


def _mean(score: Score, parts: Sequence[Confusion]) -> LinearForm:
    values = [LinearForm.of(score.in_terms_of(part)) for part in parts]
    if any(value.is_quotient for value in values):
        raise NotLinearError
    return sum(values, LinearForm.of(0)) / len(values)


def linear_scores(size: int) -> list[str]:
    """Keys of the scores that ``check_classes`` supports for this number of classes."""
    confusion = _of_classes([2] * size)
    return _without_error(lambda score: score.in_terms_of(confusion))


def linear_means() -> list[str]:
    """Keys of the scores that ``check_folds`` supports."""
    part = Confusion.of_two(LinearForm.count(0), LinearForm.count(1), LinearForm.of(2), LinearForm.of(3))
    return _without_error(lambda score: _mean(score, [part]))


def _without_error(made: Callable[[Score], object]) -> list[str]:
    found = []
    for score in scores_of_two_classes().values():
        try:
            made(score)
        except NotLinearError:
            continue
        found.append(score.key)
    return [*dict.fromkeys(found)]
