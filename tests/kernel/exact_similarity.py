"""Exact definitions of the similarity coefficients: PyCM's own functions, run on fractions and decimals of 60 digits.

Their code stays as it is; only the numbers that go in are exact, and ``math`` is a module that keeps them so.
"""

import math
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from types import FunctionType, SimpleNamespace
from typing import Any

from app.kernel.metrics.card import Scope
from app.kernel.metrics.catalogue import catalogue
from tests.kernel.exact import CLASS, PI, Number, OneVsRest, add, decimal, ln, over, power, root
from tests.kernel.exact_overall import log_factorial

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from pycm import distance

E = Decimal(1).exp()
# What division by zero came to last; the functions answer "None" to any exception.
_raised: list[ArithmeticError] = []


class Exact:
    """A number that is added, multiplied and divided without rounding to a double."""

    def __init__(self, value: Number) -> None:
        self.value = Fraction(value) if isinstance(value, int | float) else value

    def __add__(self, other: Any) -> "Exact":
        return Exact(add([self.value, plain(other)]))

    def __sub__(self, other: Any) -> "Exact":
        return self + Exact(plain(other)) * -1

    def __rsub__(self, other: Any) -> "Exact":
        return Exact(plain(other)) - self

    def __mul__(self, other: Any) -> "Exact":
        one, two = self.value, plain(other)
        mixed = isinstance(one, Decimal) or isinstance(two, Decimal)
        return Exact(decimal(one) * decimal(two) if mixed else one * two)

    def __truediv__(self, other: Any) -> "Exact":
        try:
            return Exact(over(self.value, plain(other)))
        except ArithmeticError as error:
            _raised.append(error)
            raise

    def __rtruediv__(self, other: Any) -> "Exact":
        return Exact(plain(other)) / self

    def __pow__(self, exponent: Any) -> "Exact":
        return Exact(power(self.value, Fraction(exponent)))

    def __abs__(self) -> "Exact":
        return Exact(abs(self.value))

    def __gt__(self, other: "Exact") -> bool:
        return bool(decimal(self.value) > decimal(other.value))

    def __lt__(self, other: "Exact") -> bool:
        return other > self

    __radd__, __rmul__ = __add__, __mul__


def plain(value: Any) -> Number:
    if isinstance(value, Exact):
        return value.value
    return Fraction(value) if isinstance(value, int | float) else value


def _arcsine(value: Exact) -> Exact:
    """By Newton's method on the sine, from the double."""
    x = decimal(value.value)
    angle = Decimal(math.asin(float(x)))
    if x == 1:
        return Exact(PI / 2)
    for _ in range(6):
        sine, cosine = _sine_and_cosine(angle)
        angle -= (sine - x) / cosine
    return Exact(angle)


def _sine_and_cosine(angle: Decimal) -> tuple[Decimal, Decimal]:
    terms = [Decimal(1)]
    for number in range(1, 60):
        terms.append(terms[-1] * angle / number)
    sine = sum((-1) ** (k // 2) * terms[k] for k in range(1, 60, 2))
    cosine = sum((-1) ** (k // 2) * terms[k] for k in range(0, 60, 2))
    return Decimal(sine), Decimal(cosine)


EXACT_MATH = SimpleNamespace(
    sqrt=lambda value: Exact(root(plain(value))),
    log=lambda value: Exact(ln(plain(value))),
    asin=_arcsine,
    pi=PI,
    e=E,
)


def of_pycm(name: str) -> Callable[[OneVsRest], Number]:
    """PyCM's function of that name as an exact definition."""
    source = getattr(distance, f"{name}_calc")
    exact = FunctionType(source.__code__, {**source.__globals__, "math": EXACT_MATH})

    def formula(c: OneVsRest) -> Number:
        _raised.clear()
        found = exact(*(Exact(cell) for cell in (c.tp, c.fp, c.fn, c.tn)))
        if found == "None":
            raise _raised[-1]
        return found.value

    return formula


def anderberg(c: OneVsRest) -> Number:
    """The definition of Warrens (2008) and of others; PyCM's has another tau."""
    modes = max(c.tp, c.fp) + max(c.fn, c.tn) + max(c.tp, c.fn) + max(c.fp, c.tn)
    return over(modes - max(c.T, c.M) - max(c.P, c.N), 2 * c.n)


def gilbert_wells(c: OneVsRest) -> Number:
    """Its factorials have hundreds of thousands of digits: here they are logarithms, by Stirling's series."""
    share = over(c.n**3, c.P * c.T * c.N * c.M)
    inside = add(map(log_factorial, (c.n, c.tp, c.fp, c.fn, c.tn)))
    outside = add(map(log_factorial, (c.P, c.T, c.N, c.M)))
    return ln(share) - ln(2 * PI) + 2 * (inside - outside)


_ON_REQUEST = (metric for metric in catalogue().of_matrices.of_scope(Scope.CLASS) if metric.card.on_request)
COEFFICIENTS = tuple(metric for metric in _ON_REQUEST if "pycm" in metric.card.elsewhere)
for _metric in COEFFICIENTS:
    CLASS[_metric.key] = of_pycm(_metric.card.elsewhere["pycm"])
CLASS["anderberg_d"] = anderberg
CLASS["gilbert_wells"] = gilbert_wells
