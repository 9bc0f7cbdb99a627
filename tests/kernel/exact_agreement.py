"""Exact definitions of the agreement of the whole matrix beyond chance."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

from tests.kernel.exact import (
    Number,
    Undefined,
    Whole,
    add,
    decimal,
    over,
    overall,
    root,
)


def _beyond(observed: Number, chance: Number) -> Any:
    return over(observed - chance, 1 - chance)


@overall
def mcc(w: Whole) -> Number:
    """Gorodkin's R_K as the covariance of indicator variables."""
    covariance = w.n * w.trace - add(p * t for p, t in zip(w.P, w.T, strict=True))
    actual = w.n * w.n - add(p * p for p in w.P)
    predicted = w.n * w.n - add(t * t for t in w.T)
    return over(decimal(covariance), root(actual) * root(predicted))


@overall
def cohen_kappa(w: Whole) -> Number:
    return _beyond(w.observed, w.chance)


@overall
def scott_pi(w: Whole) -> Number:
    return _beyond(w.observed, w.pooled_chance)


@overall
def bennett_s(w: Whole) -> Number:
    return _beyond(w.observed, Fraction(1, w.K))


@overall
def kappa_no_prevalence(w: Whole) -> Number:
    return 2 * w.observed - 1


@overall
def gwet_ac1(w: Whole) -> Number:
    shares = [over(p + t, 2 * w.n) for p, t in zip(w.P, w.T, strict=True)]
    return _beyond(w.observed, add(s * (1 - s) for s in shares) / (w.K - 1))


@overall
def krippendorff_alpha(w: Whole) -> Number:
    small = Fraction(1) / (2 * w.n)
    return _beyond((1 - small) * w.observed + small, w.pooled_chance)


def _disagreement(weights: str, i: int, j: int) -> int:
    return abs(i - j) if weights == "linear" else (i - j) ** 2


@overall
def weighted_kappa(w: Whole, weights: str = "linear") -> Number:
    pairs = [(i, j) for i in range(w.K) for j in range(w.K)]
    observed = add(_disagreement(weights, i, j) * w.cells[i][j] for i, j in pairs)
    expected = add(_disagreement(weights, i, j) * w.P[i] * w.T[j] for i, j in pairs)
    return 1 - over(observed * w.n, expected)


@overall
def weighted_alpha(w: Whole, weights: str = "linear") -> Number:
    """PyCM's definition; with all samples in one cell it is 0/0 like the other chance-corrected ones."""
    largest = _disagreement(weights, 0, w.K - 1)
    small = Fraction(1) / (2 * w.n)
    observed, chance = Fraction(0), Fraction(0)
    for i in range(w.K):
        for j in range(w.K):
            credit = 1 - Fraction(_disagreement(weights, i, j), largest)
            observed += credit * w.cells[i][j] / w.n
            chance += credit * ((w.P[i] + w.T[j]) / (2 * w.n)) ** 2
    return _beyond((1 - small) * observed + small, chance)


@overall
def bangdiwala_b(w: Whole) -> Number:
    return over(add(c.tp * c.tp for c in w.classes), add(c.P * c.T for c in w.classes))


@overall
def expected_accuracy(w: Whole) -> Number:
    return w.chance


@overall
def expected_accuracy_unbiased(w: Whole) -> Number:
    return w.pooled_chance


@overall
def kappa_standard_error(w: Whole) -> Number:
    if w.chance == 1:
        raise Undefined
    return root(w.observed * (1 - w.observed) / (w.n * (1 - w.chance) ** 2))


@overall
def kappa_z(w: Whole) -> Number:
    """By the variance that Fleiss, Cohen and Everitt give without agreement beyond chance."""
    shares = [(w.P[i] / w.n, w.T[i] / w.n) for i in range(len(w.P))]
    spread = w.chance + w.chance**2 - add(p * q * (p + q) for p, q in shares)
    if w.n == 0 or spread == 0:
        raise Undefined
    beyond = w.observed - w.chance
    size = root(beyond**2 * w.n / spread)
    return size if beyond >= 0 else -size


@overall
def adjusted_rand(w: Whole) -> Number:
    def pairs(count: Fraction) -> Fraction:
        return count * (count - 1) / 2

    together = add(pairs(cell) for row in w.cells for cell in row)
    rows, columns = add(pairs(p) for p in w.P), add(pairs(t) for t in w.T)
    expected = over(rows * columns, pairs(w.n))
    return over(together - expected, (rows + columns) / 2 - expected)


@overall
def aickin_alpha(w: Whole, steps: int = 20_000) -> Number:
    """Aickin's iteration as published, its limit taken by Aitken's extrapolation; a share, so none below chance.

    Where all confusions go one way p_e tends to 0 and alpha to p_o, so slowly that the limit is written down
    (``test_aickin_alpha_tends_to_accuracy`` watches it).
    """
    if w.trace == w.n or cohen_kappa(w) == 0:
        return cohen_kappa(w)
    if cohen_kappa(w) < 0:
        raise Undefined
    if add(max(c.fn - c.fp, Fraction(0)) for c in w.classes) == w.n - w.trace:
        return w.observed
    p, t = ([decimal(over(count, w.n)) for count in counts] for counts in (w.P, w.T))
    observed = decimal(w.observed)
    a, b = list(t), list(p)
    history: list[Decimal] = []
    last = Decimal(9)
    for _ in range(steps):
        chance = sum((x * y for x, y in zip(a, b, strict=True)), Decimal(0))
        alpha = over(observed - chance, 1 - chance)
        history.append(alpha)
        if len(history) > 2 and (limit := _aitken(*history[-3:])) is not None:
            if abs(limit - last) <= abs(limit) * Decimal("1e-17"):
                return limit
            last = limit
        a = [x / ((1 - alpha) + alpha * y / chance) for x, y in zip(t, b, strict=True)]
        b = [y / ((1 - alpha) + alpha * x / chance) for x, y in zip(a, p, strict=True)]
    raise Undefined


def _aitken(first: Decimal, second: Decimal, third: Decimal) -> Decimal | None:
    bend = third - 2 * second + first
    return third if bend == 0 else third - (third - second) ** 2 / bend
