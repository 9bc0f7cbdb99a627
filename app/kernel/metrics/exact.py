"""Metrics as arithmetic on counts of any kind of number: written once, read in several ways.

With fractions a form is exact, with arrays it is quick, and with the linear forms of ``app.kernel.consistency`` it
becomes a row of an integer programme, or shows that it is none. So a form uses + - * / and ``abs`` only, and the
helpers below.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# A fraction, an array, or a linear form: arithmetic is all that they have in common.
Quantity = Any


@dataclass(frozen=True, slots=True)
class OneVsRest:
    """Counts of one class against the rest.

    Attributes:
        tp: Members that are predicted as such.
        fp: Others that are predicted as members.
        actual: Members.
        rest: Others.
    """

    tp: Quantity
    fp: Quantity
    actual: Quantity
    rest: Quantity

    @property
    def fn(self) -> Quantity:
        """Members that are missed."""
        return self.actual - self.tp

    @property
    def tn(self) -> Quantity:
        """Others that are left out."""
        return self.rest - self.fp

    @property
    def predicted(self) -> Quantity:
        """All that are predicted as members."""
        return self.tp + self.fp

    @property
    def predicted_rest(self) -> Quantity:
        """All that are not."""
        return self.n - self.predicted

    @property
    def n(self) -> Quantity:
        """All."""
        return self.actual + self.rest

    @property
    def errors(self) -> Quantity:
        """FP + FN."""
        return self.fp + self.fn

    @property
    def determinant(self) -> Quantity:
        """TP TN - FP FN."""
        return self.tp * self.rest - self.fp * self.actual

    def transposed(self) -> "OneVsRest":
        """With what is predicted taken for what is actual."""
        return OneVsRest(self.tp, self.fn, self.predicted, self.predicted_rest)


@dataclass(frozen=True, slots=True)
class Confusion:
    """Counts of every class against the rest."""

    classes: Sequence[OneVsRest]

    @classmethod
    def of_two(cls, tp: Quantity, tn: Quantity, positives: Quantity, negatives: Quantity) -> "Confusion":
        """Of a negative and a positive class, in this order."""
        return cls(
            (
                OneVsRest(tn, positives - tp, negatives, positives),
                OneVsRest(tp, negatives - tn, positives, negatives),
            )
        )

    @property
    def n(self) -> Quantity:
        """All samples."""
        return self.classes[0].n

    @property
    def correct(self) -> Quantity:
        """Those that are classified correctly."""
        return sum(c.tp for c in self.classes)

    def mean(self, part: Callable[[OneVsRest], Quantity]) -> Quantity:
        """Mean over the classes of something of each."""
        return sum(map(part, self.classes)) / len(self.classes)

    def weighted(self, part: Callable[[OneVsRest], Quantity]) -> Quantity:
        """The same with the classes weighing what they have samples."""
        return sum(c.actual * part(c) for c in self.classes) / self.n

    def transposed(self) -> "Confusion":
        """With what is predicted taken for what is actual."""
        return Confusion([c.transposed() for c in self.classes])


@dataclass(frozen=True, slots=True)
class Exact:
    """A metric as arithmetic: ``form(one_vs_rest, **numbers)`` for one of a class, ``form(confusion, **numbers)`` else.

    For fixed numbers of actual samples of two classes the value rises or falls with the true positives as long as the
    true negatives stay, and the other way round: that is what searching for matrices needs.

    Attributes:
        form: 0/0 divides by zero, as does what is infinite.
        squared: The form is, for two classes, the square of the value with its sign, because the value has a root.
        transposable: With rows and columns exchanged it rises or falls as well.
    """

    form: Callable[..., Quantity]
    squared: bool = False
    transposable: bool = True


def over(numerator: Quantity, denominator: Quantity, *, empty: int) -> Quantity:
    """A quotient that has a value of its own where its denominator is 0."""
    if isinstance(denominator, np.ndarray):
        return np.where(denominator == 0, empty, numerator / denominator)
    return empty if denominator == 0 else numerator / denominator


def harmonic(parts: Iterable[Quantity]) -> Quantity:
    """Harmonic mean of what cannot be negative; 0 where a part is 0."""
    listed = list(parts)
    every = product(listed)
    without_one = [product(listed[:place] + listed[place + 1 :]) for place in range(len(listed))]
    return over(len(listed) * every, sum(without_one), empty=0)


def product(parts: Iterable[Quantity]) -> Quantity:
    """Product."""
    found: Quantity = 1
    for part in parts:
        found = found * part
    return found


def signed_square(value: Quantity) -> Quantity:
    """The square with the sign of the value."""
    return value * abs(value)


def correlation_squared(m: Confusion) -> Quantity:
    """Gorodkin's R_K, squared with its sign."""
    covariance = m.n * m.correct - sum(c.actual * c.predicted for c in m.classes)
    spread, predicted = (
        m.n * m.n - sum(margin * margin for margin in margins)
        for margins in ([c.actual for c in m.classes], [c.predicted for c in m.classes])
    )
    return signed_square(covariance) / (spread * predicted)


def beyond_chance(observed: Quantity, m: Confusion, part: Callable[[OneVsRest], Quantity]) -> Quantity:
    """(p_o - p_e) / (1 - p_e) where n^2 p_e is a sum over the classes."""
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
