"""Reported scores of more than two classes, or averaged over folds: does any set of whole counts fit?

As far as scores are linear in the counts, or linear ratios of them, this is an integer programme, which is solved;
what it finds is
verified in exact fractions. Scores that are neither (macro precision, F1 averaged over folds) are refused rather than
guessed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np

from app.kernel.consistency import Range
from app.kernel.numerics import Array
from app.kernel.special import find_integers

# The solver's own tolerance is 1e-6 on rows of size 1: ranges are widened by this before they are handed over.
_SLACK = 1e-7


class Answer(StrEnum):
    """Whether counts exist.

    UNDECIDED: what the solver found fits only within rounding and no other was found, or it ran out of time.
    """

    CONSISTENT = "consistent"
    INCONSISTENT = "inconsistent"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """The answer and, when there is one, an example of counts."""

    answer: Answer
    example: Array | None


@dataclass(frozen=True, slots=True)
class Statement:
    """low <= (sum a_v x_v) / (sum b_v x_v + constant) <= high for whole counts x, with exact coefficients by
    position.
    """

    numerator: Mapping[int, Fraction]
    denominator: Mapping[int, Fraction]
    constant: Fraction
    wanted: Range

    def rows(self, size: int) -> tuple[Array, Array, Array]:
        """As rows of low <= A x <= high, cleared of the denominator: two when it varies, one otherwise."""
        bounds = []
        for end, sign in ((self.wanted.low, 1), (self.wanted.high, -1)):
            row = np.zeros(size)
            for position, weight in self.numerator.items():
                row[position] += float(sign * weight)
            for position, weight in self.denominator.items():
                row[position] -= float(sign * end * weight)
            bounds.append((row, float(sign * end * self.constant) - _SLACK))
        matrix = np.array([row for row, _ in bounds])
        return matrix, np.array([low for _, low in bounds]), np.full(2, np.inf)

    def holds(self, counts: Sequence[int]) -> bool:
        """Is it true of these counts? A denominator of 0 makes it false."""
        top = sum((weight * counts[position] for position, weight in self.numerator.items()), Fraction(0))
        bottom = sum((weight * counts[position] for position, weight in self.denominator.items()), self.constant)
        return bottom > 0 and self.wanted.low * bottom <= top <= self.wanted.high * bottom


def solve(
    statements: Sequence[Statement], upper: Sequence[int], equal: Sequence[tuple[Sequence[int], int]] = ()
) -> Finding:
    """Search whole counts 0 <= x <= upper that make every statement true.

    Args:
        statements: what the scores say.
        upper: largest value of each count.
        equal: groups of positions whose counts sum to a number.
    """
    size = len(upper)
    matrices, lows, highs = [np.zeros((1, size))], [np.zeros(1)], [np.zeros(1)]
    for statement in statements:
        matrix, low, high = statement.rows(size)
        matrices.append(matrix)
        lows.append(low)
        highs.append(high)
    for positions, total in equal:
        row = np.zeros((1, size))
        row[0, list(positions)] = 1.0
        matrices.append(row)
        lows.append(np.array([float(total)]))
        highs.append(np.array([float(total)]))
    try:
        found = find_integers(
            np.vstack(matrices), np.concatenate(lows), np.concatenate(highs), np.array(upper, dtype=float)
        )
    except TimeoutError:
        return Finding(Answer.UNDECIDED, None)
    if found is None:
        return Finding(Answer.INCONSISTENT, None)
    counts = [int(count) for count in found]
    sums = all(sum(counts[position] for position in positions) == total for positions, total in equal)
    fits = sums and all(statement.holds(counts) for statement in statements)
    return Finding(Answer.CONSISTENT, found) if fits else Finding(Answer.UNDECIDED, None)


def check_classes(
    actual: Sequence[int], overall: Mapping[str, Range], by_class: Mapping[tuple[str, int], Range]
) -> Finding:
    """Could a matrix with these row sums have the scores? The example is the matrix (K, K).

    Args:
        actual: items of each class, positive.
        overall: ``accuracy``, ``balanced_accuracy``.
        by_class: (``recall`` | ``precision`` | ``f1``, class) to range.

    Raises:
        KeyError: a score that is not linear in the counts.
        ValueError: a class without items.
    """
    size, n = len(actual), sum(actual)
    if min(actual) < 1:
        raise ValueError("every class needs items")
    one = Fraction(1)
    diagonal = [k * size + k for k in range(size)]
    statements = []
    for name, wanted in overall.items():
        weights = {
            "accuracy": {position: Fraction(1, n) for position in diagonal},
            "balanced_accuracy": {position: Fraction(1, size * actual[k]) for k, position in enumerate(diagonal)},
        }[name]
        statements.append(Statement(weights, {}, one, wanted))
    for (name, k), wanted in by_class.items():
        column = {i * size + k: one for i in range(size)}
        hit = diagonal[k]
        statements.append(
            {
                "recall": Statement({hit: one}, {}, Fraction(actual[k]), wanted),
                "precision": Statement({hit: one}, column, Fraction(0), wanted),
                "f1": Statement({hit: Fraction(2)}, column, Fraction(actual[k]), wanted),
            }[name]
        )
    upper = [count for count in actual for _ in range(size)]
    found = solve(statements, upper, [(range(k * size, (k + 1) * size), actual[k]) for k in range(size)])
    return Finding(found.answer, None if found.example is None else found.example.reshape(size, size))


def check_folds(folds: Sequence[tuple[int, int]], means: Mapping[str, Range]) -> Finding:
    """Could folds of these sizes have these means of their binary scores? The example is tp and tn of each fold, (F,
    2).

    This is the mean of scores; a score of the pooled counts is a binary check of the sums.

    Args:
        folds: (positive, negative) items of each fold, positive numbers.
        means: ``accuracy``, ``recall``, ``specificity``, ``balanced_accuracy`` to range.

    Raises:
        KeyError: the mean of another score is not linear in the counts.
        ValueError: a fold lacks a class, or there is none.
    """
    if not folds or min(min(fold) for fold in folds) < 1:
        raise ValueError("every fold needs items of both classes")
    share = Fraction(1, len(folds))
    statements = []
    for name, wanted in means.items():
        weights: dict[int, Fraction] = {}
        for fold, (p, n) in enumerate(folds):
            hit, rejected = {
                "accuracy": (Fraction(1, p + n), Fraction(1, p + n)),
                "recall": (Fraction(1, p), Fraction(0)),
                "specificity": (Fraction(0), Fraction(1, n)),
                "balanced_accuracy": (Fraction(1, 2 * p), Fraction(1, 2 * n)),
            }[name]
            weights[2 * fold], weights[2 * fold + 1] = share * hit, share * rejected
        statements.append(Statement(weights, {}, Fraction(1), wanted))
    found = solve(statements, [count for fold in folds for count in fold])
    return Finding(found.answer, None if found.example is None else found.example.reshape(-1, 2))
