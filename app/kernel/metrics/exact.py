"""Metrics as arithmetic on counts of any kind of number: written once, read in several ways.

With fractions a form is exact, with arrays it is quick, and with the linear forms of ``app.kernel.consistency`` it
becomes a row of an integer programme, or shows that it is none. So a form uses + - * / and ``abs`` only, and the
helpers below.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from app.kernel.matrix.table import OneVsRest

# A fraction, an array or a linear form; they share arithmetic only.
Quantity = Any


@dataclass(frozen=True, slots=True)
class Confusion:
    """One-vs-rest counts of every class."""

    classes: Sequence[OneVsRest]

    @classmethod
    def of_two(cls, tp: Quantity, tn: Quantity, positives: Quantity, negatives: Quantity) -> "Confusion":
        """Counts of a negative and a positive class, in this order."""
        return cls(
            (
                OneVsRest(tn, positives - tp, negatives, positives),
                OneVsRest(tp, negatives - tn, positives, negatives),
            )
        )

    @property
    def n(self) -> Quantity:
        """All samples."""
        return self.classes[0].n_each

    @property
    def correct(self) -> Quantity:
        """Samples classified correctly."""
        return sum(c.tp for c in self.classes)

    def mean(self, part: Callable[[OneVsRest], Quantity]) -> Quantity:
        """Mean of a quantity over the classes."""
        return sum(map(part, self.classes)) / len(self.classes)

    def weighted(self, part: Callable[[OneVsRest], Quantity]) -> Quantity:
        """Mean of a quantity over the classes, weighted by their numbers of samples."""
        return sum(c.actual * part(c) for c in self.classes) / self.n

    def transposed(self) -> "Confusion":
        """Counts with actual and predicted exchanged."""
        return Confusion([c.transposed() for c in self.classes])


@dataclass(frozen=True, slots=True)
class Exact:
    """A metric as exact arithmetic: ``form(one_vs_rest, **numbers)`` for one class, ``form(confusion, **numbers)``
    overall.

    For fixed numbers of actual samples of two classes the value is monotone in the true positives while the true
    negatives stay, and the reverse. The search for matrices relies on it.

    Attributes:
        form: The arithmetic; 0/0 and infinite values raise ZeroDivisionError.
        squared: For two classes the form is the square of the value with its sign, because the value has a root.
        transposable: The value is monotone with rows and columns exchanged as well.
    """

    form: Callable[..., Quantity]
    squared: bool = False
    transposable: bool = True


def over(numerator: Quantity, denominator: Quantity) -> Quantity:
    """Quotient, 0 where its denominator is."""
    if isinstance(denominator, np.ndarray):
        return np.where(denominator == 0, 0, numerator / denominator)
    return 0 if denominator == 0 else numerator / denominator


def harmonic(parts: Iterable[Quantity]) -> Quantity:
    """Harmonic mean of non-negative parts; 0 where a part is 0."""
    listed = list(parts)
    every = prod(listed)
    without_one = [prod(listed[:place] + listed[place + 1 :]) for place in range(len(listed))]
    return over(len(listed) * every, sum(without_one))


def signed_square(value: Quantity) -> Quantity:
    """Square with the sign of the value."""
    return value * abs(value)


def correlation_squared(m: Confusion) -> Quantity:
    """Square of Gorodkin's R_K, with its sign."""
    covariance = m.n * m.correct - sum(c.actual * c.predicted for c in m.classes)
    spread, predicted = (
        m.n * m.n - sum(margin * margin for margin in margins)
        for margins in ([c.actual for c in m.classes], [c.predicted for c in m.classes])
    )
    return signed_square(covariance) / (spread * predicted)


def beyond_chance(observed: Quantity, m: Confusion, part: Callable[[OneVsRest], Quantity]) -> Quantity:
    """(p_o - p_e) / (1 - p_e), with n^2 p_e the sum of ``part`` over the classes."""
    chance = sum(part(c) for c in m.classes) / (m.n * m.n)
    return (observed - chance) / (1 - chance)


def gwet_agreement(m: Confusion) -> Quantity:
    """Gwet's AC1."""
    shares = [(c.actual + c.predicted) / (2 * m.n) for c in m.classes]
    chance = sum(share * (1 - share) for share in shares) / (len(m.classes) - 1)
    return (m.correct / m.n - chance) / (1 - chance)


def krippendorff_agreement(m: Confusion) -> Quantity:
    """Krippendorff's alpha of nominal classes."""
    observed = (1 - 1 / (2 * m.n)) * (m.correct / m.n) + 1 / (2 * m.n)
    return beyond_chance(observed, m, lambda c: signed_square(c.actual + c.predicted) / 4)
