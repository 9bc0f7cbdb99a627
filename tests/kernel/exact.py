"""The definitions once more in exact arithmetic, written from the literature and not from the kernel.

Rational metrics stay ``Fraction``; roots and logarithms are ``Decimal`` with 60 digits. 0/0 raises ``Undefined`` and
x/0 ``Infinite``.
"""

from collections.abc import Callable, Iterable
from decimal import Context, Decimal, setcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Which of them comes out depends on the formula, and mixing them fails at once: more is not said to the type checker.
Number = Any
CONTEXT = Context(prec=60, Emin=-999999, Emax=999999)
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")


class Undefined(ArithmeticError):
    """There is no value."""


class Infinite(ArithmeticError):
    """The value is infinite; the argument is its sign."""


def over(numerator: Number, denominator: Number) -> Any:
    """Quotient of two numbers of the same kind."""
    if denominator == 0:
        if numerator == 0:
            raise Undefined
        raise Infinite(1 if numerator > 0 else -1)
    if isinstance(numerator, Decimal) or isinstance(denominator, Decimal):
        return decimal(numerator) / decimal(denominator)
    return Fraction(numerator) / Fraction(denominator)


def decimal(value: Number) -> Decimal:
    setcontext(CONTEXT)
    if isinstance(value, Decimal):
        return value
    fraction = Fraction(value)
    return Decimal(fraction.numerator) / Decimal(fraction.denominator)


def root(value: Number) -> Decimal:
    return decimal(value).sqrt()


def ln(value: Number) -> Decimal:
    if value == 0:
        raise Infinite(-1)
    return decimal(value).ln()


def log2(value: Number) -> Decimal:
    return ln(value) / ln(2)


def power(base: Number, exponent: Number) -> Any:
    """base^exponent for base >= 0, exact for whole exponents."""
    if exponent == int(exponent):
        if base == 0 and exponent < 0:
            raise Infinite(1)
        return base ** int(exponent)
    if base == 0:
        if exponent < 0:
            raise Infinite(1)
        return Fraction(0)
    return decimal(base) ** decimal(exponent)


def add(values: Iterable[Number]) -> Any:
    """Sum of numbers of either kind."""
    listed = list(values)
    if any(isinstance(value, Decimal) for value in listed):
        return sum((decimal(value) for value in listed), Decimal(0))
    return sum(listed, Fraction(0))


def average(values: Iterable[Number]) -> Any:
    listed = list(values)
    return add(listed) / len(listed)


def harmonic(values: Iterable[Number]) -> Any:
    """Harmonic mean with the value 0 as soon as a part is 0."""
    listed = list(values)
    if 0 in listed:
        return Fraction(0)
    return len(listed) / add(1 / value for value in listed)


def plogp(share: Number) -> Decimal:
    """p log2 p, 0 at 0."""
    return Decimal(0) if share == 0 else decimal(share) * log2(share)


class OneVsRest:
    """The four counts of one class and what the definitions call by name."""

    def __init__(self, cells: list[list[Fraction]], k: int) -> None:
        self.cells = cells
        self.k = k
        self.K = len(cells)
        self.n: Fraction = sum((sum(row, Fraction(0)) for row in cells), Fraction(0))
        self.P: Fraction = sum(cells[k], Fraction(0))
        self.T: Fraction = sum((row[k] for row in cells), Fraction(0))
        self.tp = cells[k][k]
        self.fn = self.P - self.tp
        self.fp = self.T - self.tp
        self.tn = self.n - self.P - self.fp
        self.N = self.n - self.P
        self.M = self.n - self.T

    @property
    def tpr(self) -> Any:
        return over(self.tp, self.P)

    @property
    def tnr(self) -> Any:
        return over(self.tn, self.N)

    @property
    def fnr(self) -> Any:
        return over(self.fn, self.P)

    @property
    def fpr(self) -> Any:
        return over(self.fp, self.N)

    @property
    def ppv(self) -> Any:
        return over(self.tp, self.T)

    @property
    def npv(self) -> Any:
        return over(self.tn, self.M)


class Whole:
    """The whole matrix with its classes."""

    def __init__(self, cells: list[list[Fraction]]) -> None:
        self.cells = cells
        self.K = len(cells)
        self.classes = [OneVsRest(cells, k) for k in range(self.K)]
        self.n = self.classes[0].n
        self.P = [c.P for c in self.classes]
        self.T = [c.T for c in self.classes]
        self.trace: Fraction = sum((c.tp for c in self.classes), Fraction(0))

    @property
    def observed(self) -> Any:
        return over(self.trace, self.n)

    @property
    def chance(self) -> Any:
        return over(add(p * t for p, t in zip(self.P, self.T, strict=True)), self.n * self.n)

    @property
    def pooled_chance(self) -> Any:
        return over(add((p + t) ** 2 for p, t in zip(self.P, self.T, strict=True)), 4 * self.n * self.n)


ClassFormula = Callable[..., Number]
CLASS: dict[str, ClassFormula] = {}
OVERALL: dict[str, Callable[..., Number]] = {}


def of_class(formula: ClassFormula) -> ClassFormula:
    CLASS[formula.__name__] = formula
    return formula


def overall(formula: Callable[..., Number]) -> Callable[..., Number]:
    OVERALL[formula.__name__] = formula
    return formula


def fractions(counts: NDArray[Any]) -> list[list[Fraction]]:
    """The matrix with every float taken at its exact value."""
    return [[Fraction(cell) for cell in row] for row in counts.tolist()]


def settle(formula: Callable[[], Number]) -> float:
    """The value as a float: NaN when undefined, signed infinity when infinite."""
    try:
        return float(formula())
    except Undefined:
        return np.nan
    except Infinite as infinite:
        return float(infinite.args[0]) * np.inf
