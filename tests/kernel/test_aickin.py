"""Aickin's alpha is a share of cases: between 0 and the observed agreement, and only where agreement beats chance."""

import time
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Explainer
from app.kernel.metrics.catalogue import catalogue
from tests.bank import each
from tests.kernel.closeness import value_of

ALPHA = catalogue().of_matrices.by_name["aickin_alpha"]
KAPPA = catalogue().of_matrices.by_name["cohen_kappa"]
COUNT = st.integers(0, 60)


@given(a=COUNT, b=COUNT, c=COUNT, d=COUNT)
def test_alpha_lies_between_nothing_and_the_observed_agreement(a: int, b: int, c: int, d: int) -> None:
    counts = np.array([[a, b], [c, d]])
    alpha, kappa = (float(value_of(metric, counts)) for metric in (ALPHA, KAPPA))
    if np.isnan(kappa) or kappa < 0:
        assert np.isnan(alpha)
    else:
        assert 0.0 <= alpha <= (a + d) / counts.sum() * (1 + 1e-15)
        assert (alpha == 0) is (kappa == 0)


def test_random_matrices_of_two_classes() -> None:
    counts = np.random.default_rng(16).integers(0, 80, (40_000, 2, 2)).astype(np.float64)
    alpha, kappa = value_of(ALPHA, counts), value_of(KAPPA, counts)
    observed = (counts[:, 0, 0] + counts[:, 1, 1]) / counts.sum(axis=(1, 2))
    above = kappa >= 0
    assert 15_000 < above.sum() < 25_000
    assert (alpha[above] >= 0).all()
    assert (alpha[above] <= observed[above] * (1 + 1e-15)).all()
    assert np.isnan(alpha[~above]).all()


@pytest.mark.parametrize("counts", [[[6, 7], [35, 0]], [[5, 30], [29, 6]], [[0, 3], [4, 0]]])
def test_below_chance_it_has_no_value_and_says_so(counts: list[list[int]]) -> None:
    """No share of cases can be agreed on for a reason when fewer agree than by chance."""
    alpha = value_of(ALPHA, np.array(counts))
    assert np.isnan(alpha)
    gap = Explainer(Table(counts)).explain(ALPHA, None, float(alpha))
    assert gap.condition.code == "below_chance"


@each("classes", [2, 3, 7])
@each("counts", [(20, 14), (23, 21), (21, 16), (21, 4), (10**6, 1)])
def test_with_even_margins_it_is_kappa(classes: int, counts: tuple[int, int]) -> None:
    """Then a_k = b_k = 1/K solves the equations: the root is the end of the bracket, which rounding must not lose."""
    right, wrong = counts
    matrix = np.full((classes, classes), wrong) + np.eye(classes, dtype=int) * (right - wrong)
    assert float(value_of(ALPHA, matrix)) == pytest.approx(float(value_of(KAPPA, matrix)), rel=1e-11)


def test_where_all_confusions_go_one_way_rounding_does_not_matter() -> None:
    counts = np.array([[1, 3, 0], [0, 400, 0], [0, 0, 2]])
    assert float(value_of(ALPHA, counts)) == pytest.approx(403 / 406, rel=1e-14)


def by_decimals(counts: list[list[int]]) -> float:
    """Alpha of two classes by bisection of the published equations, in 60 digits."""
    with localcontext(prec=60):
        n = Decimal(sum(map(sum, counts)))
        actual = [Decimal(sum(row)) / n for row in counts]
        predicted = [Decimal(sum(column)) / n for column in zip(*counts, strict=True)]
        observed = Decimal(counts[0][0] + counts[1][1]) / n

        def lacking(alpha: Decimal) -> Decimal:
            tau = alpha / ((observed - alpha) * (1 - alpha))
            chance = Decimal(0)
            for b, a in zip(actual, predicted, strict=True):
                linear = 1 + tau * (a - b)
                u = ((linear * linear + 4 * tau * b).sqrt() - linear) / (2 * tau)
                chance += u * (u + a - b)
            return tau * chance - alpha

        by_chance = sum((a * b for a, b in zip(actual, predicted, strict=True)), Decimal(0))
        low, high = (observed - by_chance) / (1 - by_chance), observed
        for _ in range(190):
            middle = (low + high) / 2
            low, high = (low, middle) if lacking(middle) > 0 else (middle, high)
        return float(low)


@pytest.mark.parametrize("rare", [7, 0.5, 1e3])
@pytest.mark.parametrize("other", [123_456_789, 5e4, 3e10])
def test_where_nearly_all_confusions_go_one_way_there_is_a_value(rare: float, other: float) -> None:
    """Whatever the processor rounds. It lies next to the observed agreement, whose rounding moves it by up to 1e-8."""
    counts = np.array([[4e11, rare], [other, 9e11]])
    for matrix in (counts, counts / counts.sum(axis=1, keepdims=True) * 2.0**40):
        whole = [[Fraction(value) for value in row] for row in matrix.tolist()]
        scaled = [[int(value * 2**60) for value in row] for row in whole]
        assert float(value_of(ALPHA, matrix)) == pytest.approx(by_decimals(scaled), rel=1e-8)


def test_no_kind_of_matrix_takes_long() -> None:
    """It is computed on the event loop: below chance it took 4 to 20 ms, a hundred times what it takes above."""
    for counts in ([[6, 7], [35, 0]], [[5, 30], [29, 6]], [[50, 3], [4, 60]]):
        matrix = np.array(counts, dtype=np.float64)
        times = []
        for _ in range(20):
            start = time.perf_counter()
            value_of(ALPHA, matrix)
            times.append(time.perf_counter() - start)
        assert min(times) < 1e-3
