"""Exact definitions of the metrics of one class against the rest."""

from decimal import Decimal
from fractions import Fraction
from statistics import NormalDist
from typing import Any

from tests.kernel.exact import (
    PI,
    Infinite,
    Number,
    OneVsRest,
    Undefined,
    add,
    decimal,
    harmonic,
    ln,
    log2,
    of_class,
    over,
    power,
    root,
)

HALF = Fraction(1, 2)


def _count(name: str) -> None:
    def formula(c: OneVsRest) -> Number:
        value: Fraction = getattr(c, source)
        return value

    source = {"support": "P", "n_negative": "N", "predicted_positive": "T", "predicted_negative": "M"}.get(name, name)
    formula.__name__ = name
    of_class(formula)


for _name in ("tp", "fn", "fp", "tn", "support", "n_negative", "predicted_positive", "predicted_negative"):
    _count(_name)


@of_class
def prevalence(c: OneVsRest) -> Number:
    return over(c.P, c.n)


@of_class
def predicted_prevalence(c: OneVsRest) -> Number:
    return over(c.T, c.n)


@of_class
def recall(c: OneVsRest) -> Number:
    return c.tpr


@of_class
def fnr(c: OneVsRest) -> Number:
    return 1 - c.tpr


@of_class
def specificity(c: OneVsRest) -> Number:
    return c.tnr


@of_class
def fpr(c: OneVsRest) -> Number:
    return 1 - c.tnr


@of_class
def precision(c: OneVsRest) -> Number:
    return c.ppv


@of_class
def npv(c: OneVsRest) -> Number:
    return c.npv


@of_class
def fdr(c: OneVsRest) -> Number:
    return 1 - c.ppv


@of_class
def false_omission_rate(c: OneVsRest) -> Number:
    return 1 - c.npv


@of_class
def accuracy_ovr(c: OneVsRest) -> Number:
    return over(c.tp + c.tn, c.n)


@of_class
def error_rate_ovr(c: OneVsRest) -> Number:
    return 1 - over(c.tp + c.tn, c.n)


def _f(tp: Fraction, fn: Fraction, fp: Fraction, beta: Number) -> Any:
    return over((1 + beta * beta) * tp, (1 + beta * beta) * tp + beta * beta * fn + fp)


@of_class
def f1(c: OneVsRest) -> Number:
    return _f(c.tp, c.fn, c.fp, 1)


@of_class
def f_beta(c: OneVsRest, beta: Number = 1) -> Number:
    return _f(c.tp, c.fn, c.fp, beta)


@of_class
def f1_negative(c: OneVsRest) -> Number:
    return _f(c.tn, c.fp, c.fn, 1)


@of_class
def f_beta_negative(c: OneVsRest, beta: Number = 1) -> Number:
    return _f(c.tn, c.fp, c.fn, beta)


@of_class
def upm(c: OneVsRest) -> Number:
    """Harmonic mean of F1+ and F1-, which is what the count form says where the four rates exist."""
    return harmonic([_f(c.tp, c.fn, c.fp, 1), _f(c.tn, c.fp, c.fn, 1)])


@of_class
def upm_strict(c: OneVsRest) -> Number:
    return harmonic([c.ppv, c.tpr, c.tnr, c.npv])


def _determinant(c: OneVsRest) -> Fraction:
    return c.tp * c.tn - c.fp * c.fn


@of_class
def mcc_ovr(c: OneVsRest) -> Number:
    return over(decimal(_determinant(c)), root(c.P * c.T * c.N * c.M))


@of_class
def cohen_kappa_ovr(c: OneVsRest) -> Number:
    chance = over(c.P * c.T + c.N * c.M, c.n * c.n)
    return over(over(c.tp + c.tn, c.n) - chance, 1 - chance)


@of_class
def informedness(c: OneVsRest) -> Number:
    return c.tpr + c.tnr - 1


@of_class
def markedness(c: OneVsRest) -> Number:
    return c.ppv + c.npv - 1


@of_class
def likelihood_ratio_positive(c: OneVsRest) -> Number:
    return over(c.tpr, c.fpr)


@of_class
def likelihood_ratio_negative(c: OneVsRest) -> Number:
    return over(c.fnr, c.tnr)


@of_class
def diagnostic_odds_ratio(c: OneVsRest) -> Number:
    return over(c.tp * c.tn, c.fp * c.fn)


@of_class
def fowlkes_mallows(c: OneVsRest) -> Number:
    return root(c.ppv * c.tpr)


@of_class
def jaccard(c: OneVsRest) -> Number:
    return over(c.tp, c.tp + c.fp + c.fn)


@of_class
def balanced_accuracy_ovr(c: OneVsRest) -> Number:
    return (c.tpr + c.tnr) / 2


@of_class
def g_mean_ovr(c: OneVsRest) -> Number:
    return root(c.tpr * c.tnr)


@of_class
def h_mean_ovr(c: OneVsRest) -> Number:
    return harmonic([c.tpr, c.tnr])


@of_class
def weighted_balanced_accuracy(c: OneVsRest, weight: Number = HALF) -> Number:
    return weight * c.tpr + (1 - weight) * c.tnr


@of_class
def weighted_g_mean(c: OneVsRest, weight: Number = HALF) -> Number:
    return decimal(power(c.tpr, weight)) * decimal(power(c.tnr, 1 - weight))


@of_class
def weighted_h_mean(c: OneVsRest, beta: Number = 1) -> Number:
    if c.tpr == 0 or c.tnr == 0:
        return 0
    return (1 + beta * beta) * c.tpr * c.tnr / (beta * beta * c.tpr + c.tnr)


@of_class
def adjusted_g_mean(c: OneVsRest) -> Number:
    tnr, share = decimal(c.tnr), decimal(over(c.N, c.n))
    return 0 if c.tpr == 0 else (root(c.tpr * c.tnr) + tnr * share) / (1 + share)


@of_class
def adjusted_f(c: OneVsRest) -> Number:
    return root(_f(c.tp, c.fn, c.fp, 2) * _f(c.tn, c.fp, c.fn, HALF))


@of_class
def index_balanced_accuracy(c: OneVsRest, alpha: Number = 1) -> Number:
    return (1 + alpha * (c.tpr - c.tnr)) * c.tpr * c.tnr


@of_class
def optimized_precision(c: OneVsRest) -> Number:
    return over(c.tp + c.tn, c.n) - over(abs(c.tnr - c.tpr), c.tnr + c.tpr)


@of_class
def random_accuracy(c: OneVsRest) -> Number:
    return over(c.P * c.T, c.n * c.n)


@of_class
def random_accuracy_unbiased(c: OneVsRest) -> Number:
    return over((c.P + c.T) ** 2, 4 * c.n * c.n)


@of_class
def information_score(c: OneVsRest) -> Number:
    return log2(over(c.ppv, over(c.P, c.n)))


@of_class
def fn_per_fp(c: OneVsRest) -> Number:
    return over(c.fn, c.fp)


@of_class
def lift(c: OneVsRest) -> Number:
    return over(c.ppv, over(c.P, c.n))


def _entropy(c: OneVsRest, mass: Fraction) -> Decimal:
    total = Decimal(0)
    for other in range(c.K):
        for cell in () if other == c.k else (c.cells[c.k][other], c.cells[other][c.k]):
            share = over(cell, mass)
            if share:
                total -= decimal(share) * ln(share)
    if mass == 0:
        raise Undefined
    return total / ln(2 * (c.K - 1))


@of_class
def confusion_entropy(c: OneVsRest) -> Number:
    return _entropy(c, c.P + c.T)


@of_class
def modified_confusion_entropy(c: OneVsRest) -> Number:
    return _entropy(c, c.P + c.T - c.tp)


@of_class
def single_point_aupr(c: OneVsRest) -> Number:
    return (c.ppv + c.tpr) / 2


@of_class
def roc_distance(c: OneVsRest) -> Number:
    return root(c.fpr**2 + c.fnr**2)


@of_class
def roc_similarity(c: OneVsRest) -> Number:
    return 1 - root(c.fpr**2 + c.fnr**2) / root(2)


@of_class
def discriminant_power(c: OneVsRest) -> Number:
    """Undefined when the two odds are infinite in opposite directions, as with a class that is never predicted."""
    if 0 in (c.P, c.N) or (c.tp == c.fp == 0) or (c.tn == c.fn == 0):
        raise Undefined
    if c.fp * c.fn == 0:
        raise Infinite(1)
    return root(3) / PI * (ln(over(c.tpr, c.fnr)) + ln(over(c.tnr, c.fpr)))


@of_class
def automatic_manual_difference(c: OneVsRest) -> Number:
    return c.T - c.P


@of_class
def bray_curtis(c: OneVsRest) -> Number:
    return over(abs(c.T - c.P), 2 * c.n)


@of_class
def yule_q(c: OneVsRest) -> Number:
    return over(_determinant(c), c.tp * c.tn + c.fp * c.fn)


@of_class
def yule_y(c: OneVsRest) -> Number:
    right, wrong = root(c.tp * c.tn), root(c.fp * c.fn)
    return over(right - wrong, right + wrong)


@of_class
def overlap_coefficient(c: OneVsRest) -> Number:
    return over(c.tp, min(c.T, c.P))


@of_class
def braun_blanquet(c: OneVsRest) -> Number:
    return over(c.tp, max(c.T, c.P))


@of_class
def class_success_index(c: OneVsRest) -> Number:
    return c.ppv + c.tpr - 1


@of_class
def hamming_distance(c: OneVsRest) -> Number:
    return c.fp + c.fn


@of_class
def tversky_index(c: OneVsRest, alpha: Number = HALF, beta: Number = HALF) -> Number:
    return over(c.tp, add([c.tp, alpha * c.fp, beta * c.fn]))


@of_class
def net_benefit(c: OneVsRest, threshold: Number = HALF) -> Number:
    return over(c.tp - c.fp * Fraction(threshold) / (1 - Fraction(threshold)), c.n)


def _quantile(share: Fraction) -> Decimal:
    """Wichura's AS 241, the algorithm of the standard library; the kernel uses Cephes' ndtri."""
    if share in (0, 1):
        raise Infinite(1 if share else -1)
    # Near 1 the complement is the number that a float still resolves.
    if share > HALF:
        return -Decimal(NormalDist().inv_cdf(float(1 - share)))
    return Decimal(NormalDist().inv_cdf(float(share)))


@of_class
def sensitivity_index(c: OneVsRest) -> Number:
    ends = {0: -1, 1: 1}
    found, claimed = ends.get(c.tpr, 0), ends.get(c.fpr, 0)
    if found and found == claimed:
        raise Undefined
    if found or claimed:
        raise Infinite(found or -claimed)
    return _quantile(c.tpr) - _quantile(c.fpr)
