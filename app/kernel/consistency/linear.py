"""Counts that are not known yet: sums of them with exact weights, and quotients of two such sums.

The exact form of a metric is computed with these in the place of counts. What comes out is a linear form, a quotient of
two, or nothing that an integer programme can take.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from typing import Union

# Weights of counts by their position; that of the constant stands at -1.
CONSTANT = -1
Weights = Mapping[int, Fraction]


class NotLinearError(ArithmeticError):
    """It is no linear form and no quotient of two."""


@dataclass(frozen=True, slots=True)
class Linear:
    """A sum of counts over another one, which is 1 for what is linear itself."""

    top: Weights
    bottom: Weights = field(default_factory=lambda: {CONSTANT: Fraction(1)})

    @classmethod
    def count(cls, position: int) -> "Linear":
        """One unknown count."""
        return cls({position: Fraction(1)})

    @classmethod
    def of(cls, value: Union["Linear", int, Fraction]) -> "Linear":
        """A number as a linear form; forms as they are."""
        return value if isinstance(value, Linear) else cls({CONSTANT: Fraction(value)})

    @property
    def is_quotient(self) -> bool:
        """Is there a count below the line?"""
        return any(position != CONSTANT for position in self.bottom)

    def __add__(self, other: Union["Linear", int, Fraction]) -> "Linear":
        added = Linear.of(other)
        if self.bottom == added.bottom:
            return Linear(_sum(self.top, added.top), self.bottom)
        if added.is_quotient:
            return added + self if not self.is_quotient else _fail()
        return Linear(_sum(self.top, _times(self.bottom, added._number())), self.bottom)

    __radd__ = __add__

    def __neg__(self) -> "Linear":
        return self * -1

    def __sub__(self, other: Union["Linear", int, Fraction]) -> "Linear":
        return self + -other

    def __rsub__(self, other: int | Fraction) -> "Linear":
        return -self + other

    def __mul__(self, other: Union["Linear", int, Fraction]) -> "Linear":
        factor = Linear.of(other)
        if not self.top.keys() - {CONSTANT} and not self.is_quotient:
            self, factor = factor, self
        return Linear(_times(self.top, factor._number()), self.bottom)

    __rmul__ = __mul__

    def __truediv__(self, other: Union["Linear", int, Fraction]) -> "Linear":
        divisor = Linear.of(other)
        if self.is_quotient or not divisor.top.keys() - {CONSTANT}:
            return Linear(_times(self.top, 1 / divisor._number()), self.bottom)
        return Linear(self.top, divisor.top) if not divisor.is_quotient else _fail()

    def __rtruediv__(self, other: int | Fraction) -> "Linear":
        return Linear.of(other) / self

    def __abs__(self) -> "Linear":
        return _fail()

    def _number(self) -> Fraction:
        """What it is if it has no counts."""
        if self.is_quotient or self.top.keys() - {CONSTANT}:
            _fail()
        return self.top.get(CONSTANT, Fraction(0))

    def whole(self) -> "Linear":
        """The same with whole weights below the line, so that a value above 0 there is at least 1."""
        factor = Fraction(lcm(*(weight.denominator for weight in self.bottom.values())))
        return Linear(_times(self.top, factor), _times(self.bottom, factor))


def _fail() -> "Linear":
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
