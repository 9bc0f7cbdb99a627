"""Exact definitions of entropies and associations of the whole matrix."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from tests.kernel.exact import (
    CLASS,
    Infinite,
    Number,
    Undefined,
    Whole,
    add,
    decimal,
    log2,
    over,
    overall,
    plogp,
    root,
)


def _entropy(shares: Iterable[Any]) -> Decimal:
    return -sum((plogp(share) for share in shares), Decimal(0))


def _shares(counts: Iterable[Any], n: Any) -> list[Any]:
    return [over(count, n) for count in counts]


@overall
def response_entropy(w: Whole) -> Number:
    return _entropy(_shares(w.T, w.n))


@overall
def reference_entropy(w: Whole) -> Number:
    return _entropy(_shares(w.P, w.n))


@overall
def normalized_reference_entropy(w: Whole) -> Number:
    return reference_entropy(w) / log2(w.K)


@overall
def joint_entropy(w: Whole) -> Number:
    return _entropy(_shares((cell for row in w.cells for cell in row), w.n))


@overall
def conditional_entropy(w: Whole) -> Number:
    return sum(
        (decimal(over(p, w.n)) * _entropy(_shares(row, p)) for p, row in zip(w.P, w.cells, strict=True) if p),
        Decimal(0),
    )


@overall
def mutual_information(w: Whole) -> Number:
    return sum(
        (
            decimal(over(cell, w.n)) * log2(over(cell * w.n, w.P[i] * w.T[j]))
            for i, row in enumerate(w.cells)
            for j, cell in enumerate(row)
            if cell
        ),
        Decimal(0),
    )


@overall
def relative_classifier_information(w: Whole) -> Number:
    if max(w.P) == w.n:
        raise Undefined
    return over(mutual_information(w), reference_entropy(w))


@overall
def cross_entropy_margins(w: Whole) -> Number:
    if any(p and not t for p, t in zip(w.P, w.T, strict=True)):
        raise Infinite(1)
    return -sum((decimal(over(p, w.n)) * log2(over(t, w.n)) for p, t in zip(w.P, w.T, strict=True) if p), Decimal(0))


@overall
def kl_divergence_margins(w: Whole) -> Number:
    if any(p and not t for p, t in zip(w.P, w.T, strict=True)):
        raise Infinite(1)
    return sum((decimal(over(p, w.n)) * log2(over(p, t)) for p, t in zip(w.P, w.T, strict=True) if p), Decimal(0))


@overall
def lambda_a(w: Whole) -> Number:
    return over(add(max(column) for column in zip(*w.cells, strict=True)) - max(w.P), w.n - max(w.P))


@overall
def lambda_b(w: Whole) -> Number:
    return over(add(max(row) for row in w.cells) - max(w.T), w.n - max(w.T))


@overall
def chi_squared(w: Whole) -> Number:
    return add(
        over((cell - w.P[i] * w.T[j] / w.n) ** 2, w.P[i] * w.T[j] / w.n)
        for i, row in enumerate(w.cells)
        for j, cell in enumerate(row)
    )


@overall
def chi_squared_df(w: Whole) -> Number:
    return (w.K - 1) ** 2


@overall
def phi_squared(w: Whole) -> Number:
    return chi_squared(w) / w.n


@overall
def cramer_v(w: Whole) -> Number:
    return root(chi_squared(w) / w.n / (w.K - 1))


@overall
def pearson_c(w: Whole) -> Number:
    return root(chi_squared(w) / (w.n + chi_squared(w)))


@overall
def overall_confusion_entropy(w: Whole) -> Number:
    """An absent class has no entropy, and no weight either."""
    return add(
        decimal(over(c.P + c.T, 2 * w.n)) * decimal(CLASS["confusion_entropy"](c)) for c in w.classes if c.P + c.T
    )


@overall
def overall_modified_confusion_entropy(w: Whole) -> Number:
    mass = 2 * w.n - (w.trace if w.K > 2 else 0)
    present = [c for c in w.classes if c.P + c.T]
    return add(decimal(over(c.P + c.T - c.tp, mass)) * decimal(CLASS["modified_confusion_entropy"](c)) for c in present)


@overall
def imbalance_ratio(w: Whole) -> Number:
    return over(max(w.P), min(w.P))
