"""Proposition 1 of Aguilar-Ruiz (2025) against a search over recalls."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import gmean, hmean

from app.kernel.matrix.h_mean_bounds import (
    critical_recall,
    h_mean_upper_bound,
    isocurve_a,
    isocurve_g,
    isocurve_h,
    needed_recall,
    rounded_down,
)
from tests.bank import each


def harmonic(recalls: list[Fraction]) -> Fraction:
    return len(recalls) / sum(1 / recall for recall in recalls)  # type: ignore[return-value]


@each(("classes", "weak"), [(2, 1), (3, 1), (3, 2), (10, 1), (10, 4), (5, 5)])
@each("weak_recall", [Fraction(1, 20), Fraction(1, 2), Fraction(9, 10)])
@each("max_recall", [Fraction(9, 10), Fraction(1)])
def test_the_bound_is_reached_and_never_passed(
    classes: int, weak: int, weak_recall: Fraction, max_recall: Fraction
) -> None:
    bound = h_mean_upper_bound(classes=classes, weak=weak, weak_recall=float(weak_recall), max_recall=float(max_recall))
    best = harmonic([weak_recall] * weak + [max_recall] * (classes - weak))
    assert bound == pytest.approx(float(best), rel=1e-14)
    rng = np.random.default_rng(classes * weak)
    for _ in range(50):
        low = rng.uniform(0.001, float(weak_recall), weak)
        high = rng.uniform(0.001, float(max_recall), classes - weak)
        assert classes / (1 / np.concatenate([low, high])).sum() <= bound * (1 + 1e-12)


@each(("classes", "weak"), [(2, 1), (4, 1), (4, 3), (7, 7)])
@each("target", [0.1, 0.5, 0.8])
def test_the_critical_recall_is_where_the_bound_meets_the_target(classes: int, weak: int, target: float) -> None:
    recall = critical_recall(classes=classes, weak=weak, max_recall=0.95, target=target)
    assert recall is not None
    assert 0 < recall <= 0.95
    bound = h_mean_upper_bound(classes=classes, weak=weak, weak_recall=recall, max_recall=0.95)
    assert bound == pytest.approx(target, rel=1e-13)


def test_no_recall_of_the_weak_reaches_a_target_above_the_best() -> None:
    assert critical_recall(classes=3, weak=1, max_recall=0.7, target=0.71) is None
    assert critical_recall(classes=3, weak=1, max_recall=0.7, target=0.7) == pytest.approx(0.7, rel=1e-15)


@each(
    ("max_recall", "target", "recall"), [(0.9, 0.2, 0.1125), (0.95, 0.38, 0.2375), (0.3, 0.2, 0.15), (0.95, 0.95, 0.95)]
)
def test_what_numbers_with_few_digits_need_is_no_rounding_beside_it(
    max_recall: float, target: float, recall: float
) -> None:
    assert critical_recall(classes=2, weak=1, max_recall=max_recall, target=target) == recall
    assert rounded_down(recall, 4) == recall


@each(("others", "target"), [((0.6,), 0.75), ((0.25, 0.6), 0.45), ((0.7, 1.0), 0.875)])
def test_a_recall_of_one_is_enough_for_what_it_leads_to(others: tuple[float, ...], target: float) -> None:
    assert needed_recall(others, target) == 1.0
    assert needed_recall(others, target + 1e-9) is None
    assert needed_recall((*others, 1e-300), target) is None


def test_a_class_never_found_leaves_nothing() -> None:
    assert h_mean_upper_bound(classes=5, weak=1, weak_recall=0.0, max_recall=1.0) == 0
    assert h_mean_upper_bound(classes=5, weak=1, weak_recall=0.0, max_recall=0.0) == 0


def test_the_papers_example_is_rounded_down() -> None:
    """K = 35, one weak class, H = 0.80: tau* = 4/39 = 0.10256. The printed 0.103 already allows H = 0.8007."""
    recall = critical_recall(classes=35, weak=1, max_recall=1.0, target=0.8)
    assert recall == pytest.approx(4 / 39, rel=1e-13)
    assert rounded_down(4 / 39, 3) == 0.102
    assert h_mean_upper_bound(classes=35, weak=1, weak_recall=0.102, max_recall=1.0) < 0.8
    assert h_mean_upper_bound(classes=35, weak=1, weak_recall=0.103, max_recall=1.0) == pytest.approx(0.8007, abs=1e-4)
    assert rounded_down(0.5, 3) == 0.5
    assert rounded_down(0.29, 2) == 0.29


def test_needed_recall_gives_the_target() -> None:
    for others in ([1.0, 1.0, 1.0], [0.9, 0.6], [0.5]):
        recall = needed_recall(others, 0.55)
        assert recall is not None
        exact = harmonic([Fraction(recall), *map(Fraction, others)])
        assert float(exact) == pytest.approx(0.55, rel=1e-14)
    assert needed_recall([1.0, 1.0, 1.0], 1.0) == 1.0
    assert needed_recall([0.5], 0.7) is None
    assert needed_recall([0.0, 1.0], 0.1) is None


@pytest.mark.parametrize("level", [0.2, 0.5, 0.8, 1.0])
def test_points_of_an_isocurve_have_its_mean(level: float) -> None:
    """Aguilar-Ruiz (2025), sec. 5, against the means of TPR and 1 - FPR by scipy."""
    fpr = np.linspace(0.0, 0.99, 40)
    for curve, average in ((isocurve_a, np.mean), (isocurve_g, gmean), (isocurve_h, hmean)):
        tpr = curve(level, fpr)
        reached = (tpr > 0) & (tpr <= 1 + 1e-12)
        assert reached.any()
        for x, y in zip(fpr[reached], tpr[reached], strict=True):
            assert average([y, 1 - x]) == pytest.approx(level, rel=1e-12)
    # Asymptotes of H: F = 1 - c/2 and T = c/2.
    assert isocurve_h(level, np.array([1 - level / 2 - 1e-9]))[0] > 1
    assert isocurve_h(level, np.array([-1e9]))[0] == pytest.approx(level / 2, rel=1e-6)
