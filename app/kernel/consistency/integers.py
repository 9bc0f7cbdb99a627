"""Reported scores of more than two classes, or averaged over folds: does any set of whole counts fit?

As far as scores are linear in the counts, or linear ratios of them, this is an integer programme, which is solved;
what it finds is verified in exact fractions. Scores that are neither (macro precision, F1 averaged over folds) are
refused rather than guessed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

import numpy as np

from app.kernel.consistency.reported_scores import Range
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.special import find_integers

# The solver's own tolerance is 1e-6 on rows of size 1: ranges are widened by this before they are handed over.
_SLACK = 1e-7
# For the answer, and for each end of an implied range.
_SECONDS, _SECONDS_EACH = 20.0, 2.0


class Answer(StrEnum):
    """Whether counts exist.

    UNDECIDED: what the solver found fits only within rounding and no other was found, or it ran out of time.
    """

    CONSISTENT = "consistent"
    INCONSISTENT = "inconsistent"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """The answer and, when there is one, an example of counts.

    Attributes:
        answer: Whether counts exist.
        example: Some that do.
        implied: Smallest and largest value of further scores over all counts that fit, to within 1e-6.
    """

    answer: Answer
    example: Array | None
    implied: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Statement:
    """low <= (sum a_v x_v) / (sum b_v x_v + constant) <= high for whole counts x, with exact coefficients by
    position; those of a denominator that varies are whole.
    """

    numerator: Mapping[int, Fraction]
    denominator: Mapping[int, Fraction]
    constant: Fraction
    wanted: Range

    def rows(self, size: int) -> tuple[Array, Array, Array]:
        """As rows of low <= A x <= high, cleared of the denominator, which is at least 1 where it varies."""
        bounds = []
        for end, sign in ((self.wanted.low, 1), (self.wanted.high, -1)):
            row = np.zeros(size)
            for position, weight in self.numerator.items():
                row[position] += float(sign * weight)
            for position, weight in self.denominator.items():
                row[position] -= float(sign * end * weight)
            bounds.append((row, float(sign * end * self.constant) - _SLACK))
        if self.denominator:
            row = np.zeros(size)
            row[list(self.denominator)] = [float(weight) for weight in self.denominator.values()]
            bounds.append((row, float(1 - self.constant)))
        matrix = np.array([row for row, _ in bounds])
        return matrix, np.array([low for _, low in bounds]), np.full(len(bounds), np.inf)

    def holds(self, counts: Sequence[int]) -> bool:
        """Is it true of these counts? A denominator of 0 makes it false."""
        top = sum((weight * counts[position] for position, weight in self.numerator.items()), Fraction(0))
        bottom = sum((weight * counts[position] for position, weight in self.denominator.items()), self.constant)
        return bottom > 0 and self.wanted.low * bottom <= top <= self.wanted.high * bottom


@dataclass(frozen=True, slots=True)
class Programme:
    """Whole counts 0 <= x <= upper that make every statement true.

    Attributes:
        statements: what the scores say.
        upper: largest value of each count.
        equal: groups of positions whose counts sum to a number.
    """

    statements: Sequence[Statement]
    upper: Sequence[int]
    equal: Sequence[tuple[Sequence[int], int]] = ()

    def solve(self) -> Finding:
        """Search such counts."""
        try:
            found = self._search()
        except TimeoutError:
            return Finding(Answer.UNDECIDED, None)
        if found is None:
            return Finding(Answer.INCONSISTENT, None)
        counts = [int(count) for count in found]
        sums = all(sum(counts[position] for position in positions) == total for positions, total in self.equal)
        fits = sums and all(statement.holds(counts) for statement in self.statements)
        return Finding(Answer.CONSISTENT, found) if fits else Finding(Answer.UNDECIDED, None)

    def extremes(self, weights: Mapping[str, Mapping[int, Fraction]]) -> dict[str, tuple[float, float]]:
        """Smallest and largest value of linear scores, each by its weights of positions; what takes too long is left
        out.
        """
        ranges = {}
        for name, row in weights.items():
            objective = np.zeros(len(self.upper))
            objective[list(row)] = [float(weight) for weight in row.values()]
            try:
                ends = [self._search(sign * objective, seconds=_SECONDS_EACH) for sign in (1.0, -1.0)]
            except TimeoutError:
                continue
            if ends[0] is not None and ends[1] is not None:
                ranges[name] = (_value(row, ends[0]), _value(row, ends[1]))
        return ranges

    def _search(self, least: Array | None = None, *, seconds: float = _SECONDS) -> Array | None:
        size = len(self.upper)
        matrices, lows, highs = [np.zeros((1, size))], [np.zeros(1)], [np.zeros(1)]
        for statement in self.statements:
            matrix, low, high = statement.rows(size)
            matrices.append(matrix)
            lows.append(low)
            highs.append(high)
        for positions, total in self.equal:
            row = np.zeros((1, size))
            row[0, list(positions)] = 1.0
            matrices.append(row)
            lows.append(np.array([float(total)]))
            highs.append(np.array([float(total)]))
        return find_integers(
            np.vstack(matrices),
            np.concatenate(lows),
            np.concatenate(highs),
            np.array(self.upper, dtype=np.float64),
            least=least,
            seconds=seconds,
        )


def _value(weights: Mapping[int, Fraction], counts: Array) -> float:
    """A linear score of counts, rounded once."""
    return float(sum((weight * int(counts[position]) for position, weight in weights.items()), Fraction(0)))


def check_classes(
    actual: Sequence[int], overall: Mapping[str, Range], by_class: Mapping[tuple[str, int], Range]
) -> Finding:
    """Could a matrix with these row sums have the scores? The example is the matrix (K, K); implied are ranges of
    ``accuracy``, ``balanced_accuracy`` and, by ``recall@<class index>``, of the recalls.

    Args:
        actual: items of each class, positive.
        overall: names of ``OVERALL`` to range.
        by_class: (name of ``BY_CLASS``, class) to range.

    Raises:
        KeyError: a score that is neither linear in the counts nor a ratio of two that are.
        ValueError: a class without items.
    """
    size = len(actual)
    if min(actual) < 1:
        raise ValueError("every class needs items")
    statements = [Statement(_overall(name, actual), {}, Fraction(1), wanted) for name, wanted in overall.items()]
    statements += [_of_class(name, k, actual, wanted) for (name, k), wanted in by_class.items()]
    programme = Programme(
        statements,
        [count for count in actual for _ in range(size)],
        [(range(k * size, (k + 1) * size), actual[k]) for k in range(size)],
    )
    found = programme.solve()
    if found.example is None:
        return found
    weights = {name: _overall(name, actual) for name in OVERALL}
    weights |= {f"recall@{k}": {k * size + k: Fraction(1, count)} for k, count in enumerate(actual)}
    return Finding(found.answer, found.example.reshape(size, size), programme.extremes(weights))


OVERALL = ("accuracy", "balanced_accuracy")
BY_CLASS = ("recall", "precision", "f1", "jaccard", "specificity", "npv")


def _overall(name: str, actual: Sequence[int]) -> dict[int, Fraction]:
    """Weights of the cells in an overall score."""
    size, n = len(actual), sum(actual)
    each = {
        "accuracy": [Fraction(1, n)] * size,
        "balanced_accuracy": [Fraction(1, size * count) for count in actual],
    }[name]
    return {k * size + k: weight for k, weight in enumerate(each)}


def _of_class(name: str, k: int, actual: Sequence[int], wanted: Range) -> Statement:
    """A score of class k against the rest, of its hits, its false alarms and what it misses."""
    size, one = len(actual), Fraction(1)
    hit, own, n = k * size + k, Fraction(actual[k]), Fraction(sum(actual))
    called = {row * size + k: one for row in range(size)}
    alarms = {position: one for position in called if position != hit}
    missed = {k * size + column: one for column in range(size) if column != k}
    return {
        "recall": Statement({hit: one}, {}, own, wanted),
        "precision": Statement({hit: one}, called, Fraction(0), wanted),
        "f1": Statement({hit: Fraction(2)}, called, own, wanted),
        "jaccard": Statement({hit: one}, alarms, own, wanted),
        # One minus the share of false alarms, and of those wrongly called another class.
        "specificity": Statement(alarms, {}, n - own, wanted.complement()),
        "npv": Statement(missed, dict.fromkeys(called, -one), n, wanted.complement()),
    }[name]


OF_FOLDS = ("accuracy", "recall", "specificity", "balanced_accuracy")


def check_folds(folds: Sequence[tuple[int, int]], means: Mapping[str, Range]) -> Finding:
    """Could folds of these sizes have these means of their binary scores? The example is tp and tn of each fold (F, 2).

    This is the mean of scores; a score of the pooled counts is a binary check of the sums. Implied are the ranges of
    all means of ``OF_FOLDS``.

    Args:
        folds: (positive, negative) items of each fold, positive numbers.
        means: names of ``OF_FOLDS`` to range.

    Raises:
        KeyError: the mean of another score is not linear in the counts.
        ValueError: a fold lacks a class, or there is none.
    """
    if not folds or min(min(fold) for fold in folds) < 1:
        raise ValueError("every fold needs items of both classes")
    statements = [Statement(_mean(name, folds), {}, Fraction(1), wanted) for name, wanted in means.items()]
    programme = Programme(statements, [count for fold in folds for count in fold])
    found = programme.solve()
    if found.example is None:
        return found
    ranges = programme.extremes({name: _mean(name, folds) for name in OF_FOLDS})
    return Finding(found.answer, found.example.reshape(-1, 2), ranges)


def _mean(name: str, folds: Sequence[tuple[int, int]]) -> dict[int, Fraction]:
    """Weights of tp and tn of every fold in the mean of a score."""
    weights: dict[int, Fraction] = {}
    for fold, (p, n) in enumerate(folds):
        hit, rejected = {
            "accuracy": (Fraction(1, p + n), Fraction(1, p + n)),
            "recall": (Fraction(1, p), Fraction(0)),
            "specificity": (Fraction(0), Fraction(1, n)),
            "balanced_accuracy": (Fraction(1, 2 * p), Fraction(1, 2 * n)),
        }[name]
        weights[2 * fold], weights[2 * fold + 1] = hit / len(folds), rejected / len(folds)
    return weights
