"""Means of per-class rates over the classes: means of the recalls, and General Performance Scores of the other rates.

Means of the recalls do not depend on prevalence (Aguilar-Ruiz 2025, sections 3 to 5). A recall of 0 is read as the limit
x -> 0+, so G, H and every power mean with r <= 0 are 0 there. General Performance Scores are harmonic means of per-class
rates (Martín De Diego et al. 2022, eqs. 7, 9, 20, 23).
"""

from functools import partial
from math import isinf, prod
from typing import Any

import numpy as np

from app.kernel.matrix.table import Table, recall_gradient, unified_performance_reciprocals
from app.kernel.metrics.card import (
    OVER_LABELS,
    UNDEFINED,
    Choice,
    Mean,
    Metric,
    Number,
    Orientation,
    Prevalence,
    Scope,
    filled,
    metric,
)
from app.kernel.metrics.conditions import (
    NO_ACTUAL,
    OfMatrix,
)
from app.kernel.metrics.exact import Confusion, Exact, Quantity, harmonic
from app.kernel.metrics.families import detection, rates
from app.kernel.numerics.arrays import TINY, Array, Mask, dispersion, each, geometric_mean, harmonic_mean, mean, total

_overall = partial(metric, scope=Scope.OVERALL, also=OVER_LABELS)
_mean = partial(_overall, prevalence=Prevalence.INSENSITIVE, undefined=(NO_ACTUAL,))
# Below this distance of the two powers a Gini mean is its own limit; the difference quotient would lose half its
# digits.
_NEARLY_EQUAL = 1e-5
# Powers beyond 18 would overflow on the smallest recall that counts below 2^53 can make.

CLASSES = Choice(
    "classes",
    "all",
    "which classes are averaged: 'all' is undefined when one has no actual samples, 'present' leaves those out",
    ("all", "present"),
)


def _recalls(t: Table, classes: str, neutral: float) -> Array:
    """Recalls with absent classes replaced by a value that does not change the sum that follows, if they are to be
    left out.
    """
    return t.recall if classes == "all" else np.where(t.actual > 0, t.recall, neutral)


def _count(t: Table, classes: str) -> Array | float:
    return float(t.n_classes) if classes == "all" else total((t.actual > 0).astype(np.float64))


def _exact_adjusted(m: Confusion) -> Quantity:
    size = len(m.classes)
    return (m.mean(lambda c: c.tp / c.actual) * size - 1) / (size - 1)


@_mean(
    name="balanced accuracy",
    symbol="A",
    formula=r"\frac{1}{K}\sum_k TPR_k",
    sentence="Arithmetic mean of the recalls: accuracy if every class were equally frequent.",
    aliases=("a_mean", "macro_recall", "uar"),
    elsewhere={
        "sklearn": "balanced_accuracy_score",
        "pycm": "TPR Macro",
        "imblearn": "sensitivity_score(average=macro)",
        "torchmetrics": "MulticlassAccuracy(average=macro)",
    },
    differs={"sklearn": "it leaves out classes without actual samples, as classes=present does here"},
    parameters=(CLASSES, UNDEFINED),
    references=("aguilar2025", "wu2025", "martin2022", "beddar2025"),
    headline=True,
    mean_of_recalls=Mean.ARITHMETIC,
    same_as="mean(recall@*)",
    gradient=lambda t: recall_gradient(t, np.full_like(t.recall, 1.0 / t.n_classes)),
    exact=Exact(lambda m: m.mean(lambda c: c.tp / c.actual)),
)
def balanced_accuracy(t: Table, classes: str = "all", undefined: str = "strict") -> Array:
    if classes == "present":
        return total(_recalls(t, classes, 0.0)) / _count(t, classes)
    return mean(filled(t.recall, undefined))


@_mean(
    name="chance-adjusted balanced accuracy",
    formula=r"\frac{A-1/K}{1-1/K}",
    sentence="Balanced accuracy with 0 for guessing and 1 for perfection.",
    elsewhere={"sklearn": "balanced_accuracy_score(adjusted=True)"},
    range=(-1.0, 1.0),
    chance_corrected=True,
    references=("pedregosa2011",),
    exact=Exact(_exact_adjusted),
    also=None,
)
def adjusted_balanced_accuracy(t: Table) -> Array:
    chance = 1.0 / t.n_classes
    return (mean(t.recall) - chance) / (1.0 - chance)


@_mean(
    name="geometric mean of the recalls",
    symbol="G",
    formula=r"\left(\prod_k TPR_k\right)^{1/K}",
    sentence="Geometric mean of the recalls; 0 when a class is never recognised.",
    aliases=("geometric_mean", "gm"),
    elsewhere={"imblearn": "geometric_mean_score(average=multiclass)"},
    parameters=(CLASSES,),
    references=("aguilar2025", "wu2025", "martin2022"),
    headline=True,
    mean_of_recalls=Mean.GEOMETRIC,
    same_as="gmean(recall@*)",
    gradient=lambda t: recall_gradient(t, each(geometric_mean(t.recall)) / t.recall / t.n_classes),
    exact=Exact(lambda m: prod(c.tp / c.actual for c in m.classes), squared=True),
)
def g_mean(t: Table, classes: str = "all") -> Array:
    if classes == "all":
        return geometric_mean(t.recall)
    return np.exp(total(np.log(_recalls(t, classes, 1.0))) / _count(t, classes))


@_mean(
    name="harmonic mean of the recalls",
    symbol="H",
    formula=r"\frac{K}{\sum_k 1/TPR_k}",
    sentence="Harmonic mean of the recalls: one weak class pulls it down whatever its share (AC-score, GPS of the "
    "recalls).",
    aliases=("harmonic_mean", "ac_score", "gps_recall"),
    parameters=(CLASSES,),
    references=("aguilar2025", "wu2025", "martin2022"),
    headline=True,
    mean_of_recalls=Mean.HARMONIC,
    same_as="gps(recall@*)",
    gradient=lambda t: recall_gradient(t, (each(harmonic_mean(t.recall)) / t.recall) ** 2 / t.n_classes),
    exact=Exact(lambda m: harmonic(c.tp / c.actual for c in m.classes)),
)
def h_mean(t: Table, classes: str = "all") -> Array:
    if classes == "all":
        return harmonic_mean(t.recall)
    return _count(t, classes) / total(np.where(t.actual > 0, 1.0 / t.recall, 0.0))


@_mean(
    name="worst recall",
    formula=r"\min_k TPR_k",
    sentence="Recall of the class that is recognised worst.",
    parameters=(CLASSES,),
    references=("aguilar2025",),
    same_as="min(recall@*)",
)
def min_recall(t: Table, classes: str = "all") -> Array:
    return t.worst_recall if classes == "all" else np.minimum.reduce(_recalls(t, classes, np.inf), axis=-1)


@_mean(
    name="best recall",
    formula=r"\max_k TPR_k",
    sentence="Recall of the class that is recognised best.",
    orientation=Orientation.DESCRIPTIVE,
    parameters=(CLASSES,),
    references=("aguilar2025",),
    same_as="max(recall@*)",
)
def max_recall(t: Table, classes: str = "all") -> Array:
    return t.best_recall if classes == "all" else np.maximum.reduce(_recalls(t, classes, -np.inf), axis=-1)


@_mean(
    name="spread of the recalls",
    formula=r"\max_k TPR_k-\min_k TPR_k",
    sentence="How far apart the best and the worst recognised class are.",
    orientation=Orientation.LOWER,
    references=("martin2022",),
)
def recall_range(t: Table) -> Array:
    return t.best_recall - t.worst_recall


@_mean(
    name="macro miss rate",
    formula=r"\frac{1}{K}\sum_k FNR_k",
    sentence="Mean share of a class that is missed.",
    orientation=Orientation.LOWER,
    elsewhere={"pycm": "FNR Macro"},
    exact=Exact(lambda m: m.mean(lambda c: c.fn / c.actual)),
)
def macro_fnr(t: Table) -> Array:
    return mean(t.fnr)


@_mean(
    name="power mean of the recalls",
    symbol="M_r",
    formula=r"\left(\frac{1}{K}\sum_k TPR_k^{\,r}\right)^{1/r}",
    sentence="The family that has A (r = 1), G (r = 0), H (r = -1), the worst (r = -inf) and the best recall (r = "
    "inf).",
    parameters=(Number("r", -1.0, "exponent; smaller watches the weak classes more", infinite=True),),
    references=("aguilar2025",),
)
def power_mean_recall(t: Table, r: float = -1.0) -> Array:
    x = t.recall
    if r == 0:
        return geometric_mean(x)
    if r == -1:
        return harmonic_mean(t.recall)
    extreme = t.best_recall if r > 0 else t.worst_recall
    if isinf(r):
        return extreme
    # Relative to the extreme every power is at most 1; expm1 and log1p keep the digits when r is near 0.
    spread = np.expm1(r * np.log(x / extreme[..., None]))
    return np.where(extreme == 0, 0.0, extreme * np.exp(np.log1p(mean(spread)) / r))


def _gini(t: Table, p: float, q: float) -> Array:
    if {p, q} == {0.0, -1.0}:
        return harmonic_mean(t.recall)
    x = t.recall
    if p == q == 0:
        return geometric_mean(x)
    if abs(p - q) < _NEARLY_EQUAL:
        weights = x ** ((p + q) / 2.0)
        # x^p ln x vanishes with x for p > 0; for p < 0 the value is set to its limit 0 below.
        value = np.exp(total(weights * np.log(np.maximum(x, TINY))) / total(weights))
    else:
        value = (total(x**p) / total(x**q)) ** (1.0 / (p - q))
    if p < 0 and q < 0:
        return np.where(t.worst_recall == 0, 0.0, value)
    if p >= 0 and q >= 0:
        return np.where(t.best_recall == 0, 0.0, value)
    return value


def _not_monotone(p: float, q: float) -> str | None:
    if p * q <= 0:
        return None
    return (
        f"A Gini mean with p = {p:g}, q = {q:g} is not monotone: improving a weak class can lower it. "
        "Only means with p q <= 0 (Lehmer means with -1 <= r <= 0) are safe as a figure of merit."
    )


@_mean(
    name="Gini mean of the recalls",
    symbol="I_{p,q}",
    formula=r"\left(\frac{\sum_k TPR_k^{\,p}}{\sum_k TPR_k^{\,q}}\right)^{1/(p-q)}",
    sentence="Two-parameter family of means (p = 0, q = -1 is H). Monotone in every recall only when p q <= 0.",
    parameters=(
        Number("p", 0.0, "power of the numerator", minimum=-18.0, maximum=18.0),
        Number("q", -1.0, "power of the denominator", minimum=-18.0, maximum=18.0),
    ),
    caution=_not_monotone,
    references=("aguilar2025",),
)
def gini_mean_recall(t: Table, p: float = 0.0, q: float = -1.0) -> Array:
    return _gini(t, p, q)


@_mean(
    name="Lehmer mean of the recalls",
    symbol="L_r",
    formula=r"\frac{\sum_k TPR_k^{\,r+1}}{\sum_k TPR_k^{\,r}}",
    sentence="Lehmer mean in the paper's indexing: r = 0 is A, r = -1 is H; other texts call this r + 1. Monotone "
    "only for -1 <= r <= 0.",
    parameters=(Number("r", -1.0, "power of the denominator", minimum=-18.0, maximum=17.0),),
    caution=lambda r: _not_monotone(r + 1.0, r),
    references=("aguilar2025",),
)
def lehmer_mean_recall(t: Table, r: float = -1.0) -> Array:
    return _gini(t, r + 1.0, r)


_GENERATORS: dict[str, tuple[Any, Any]] = {
    "exp": (np.exp, np.log),
    "log": (np.log, np.exp),
    "reciprocal": (np.reciprocal, np.reciprocal),
    "identity": (np.positive, np.positive),
}


@_mean(
    name="Kolmogorov-Nagumo-de Finetti mean of the recalls",
    symbol=r"M_\varphi",
    formula=r"\varphi^{-1}\left(\frac{1}{K}\sum_k\varphi(TPR_k)\right)",
    sentence="Quasi-arithmetic mean for a chosen generator: identity gives A, log gives G, reciprocal gives H.",
    parameters=(
        Choice("generator", "exp", "the function phi", (*_GENERATORS, "power")),
        Number("exponent", 2.0, "power of the generator 'power'; others ignore it"),
    ),
    references=("aguilar2025",),
)
def quasi_arithmetic_mean_recall(t: Table, generator: str = "exp", exponent: float = 2.0) -> Array:
    if generator == "power":
        return power_mean_recall(t, r=exponent)
    forward, backward = _GENERATORS[generator]
    value: Array = backward(mean(forward(t.recall)))
    return value


_gps = partial(_overall, prevalence=Prevalence.SENSITIVE, references=("martin2022",))


def _gps_of(rate: Metric[Table], called: str, **facts: Any) -> Metric[Table]:
    """General Performance Score of a metric of one class."""
    card = rate.card
    known = {
        "key": f"gps_{called.lower()}",
        "name": f"GPS of the {called}s",
        "symbol": f"GPS_{{{called[0].upper()}{called[1:]}}}",
        "formula": rf"\frac{{K}}{{\sum_k 1/{card.symbol}_k}}",
        "sentence": f"Harmonic mean of the per-class {card.name}.",
        "undefined": card.undefined,
        "exact": None if (of := card.inference.exact) is None else Exact(lambda m: harmonic(map(of.form, m.classes))),
    }

    def compute(t: Table) -> Array:
        return harmonic_mean(rate.compute(t))

    return _gps(**known | facts)(compute)


def _spread_of(rate: Metric[Table], called: str, **facts: Any) -> Metric[Table]:
    """Dispersion of a metric of one class around its General Performance Score."""
    zero = f"class {{label}} has {called} 0, so the harmonic mean is 0 and has no dispersion"
    around = rf"\frac{{1}}{{{rate.card.symbol}_k}}-\frac{{1}}{{GPS}}"
    known = {
        "key": f"gps_{called.lower()}_sd",
        "name": f"dispersion of the {called}s around their GPS",
        "formula": rf"\frac{{GPS^2}}{{K-1}}\sqrt{{\sum_k\left({around}\right)^2}}",
        "sentence": "Spread of the per-class parts around their harmonic mean (eq. 9): agreement between classes, not a "
        "sampling error.",
        "range": (0.0, None),
        "orientation": Orientation.LOWER,
        "undefined": (*rate.card.undefined, OfMatrix("zero_part", zero, lambda t: rate.compute(t) == 0)),
    }

    def compute(t: Table) -> Array:
        return dispersion(rate.compute(t))

    return _gps(**known | facts)(compute)


gps_recall_sd = _spread_of(
    rates.recall,
    "recall",
    name="dispersion of the recalls around H",
    symbol=r"sd(GPS_{Recall})",
    sentence="Standard deviation of GPS_Recall as the paper defines it: spread between the classes, not a sampling "
    "error.",
    prevalence=Prevalence.INSENSITIVE,
)
gps_precision = _gps_of(rates.precision, "precision")
gps_precision_sd = _spread_of(rates.precision, "precision")
gps_npv = _gps_of(rates.npv, "NPV")
gps_npv_sd = _spread_of(rates.npv, "NPV")
gps_upm = _gps_of(
    detection.upm,
    "UPM",
    sentence="Harmonic mean of the per-class unified performance measure: all four rates of every class have to be "
    "good.",
    symmetric=True,
    exact=None,
)
gps_upm_sd = _spread_of(detection.upm, "UPM", symmetric=True)
gps_specificity = _gps_of(
    rates.specificity, "specificity", name="GPS of the specificities", prevalence=Prevalence.INSENSITIVE_BINARY
)


def _has_empty_split(t: Table) -> Mask:
    empty: Mask = np.logical_or.reduce((t.cut_errors == 0) & ((t.lower_correct == 0) | (t.upper_correct == 0)), axis=-1)
    return empty


EMPTY_SPLIT = OfMatrix(
    "empty_split",
    "the first or the last classes of the order occur neither in the data nor in the predictions",
    _has_empty_split,
)


@_gps(
    name="GPS of the UPMs of ordered classes",
    formula=r"GPS\left(UPM_{\{1..k\}|\{k+1..K\}}\right)_{k=1}^{K-1}",
    sentence="Harmonic mean of the UPM over the K-1 ways to cut ordered classes in two; equals eq. 23 for K = 3.",
    undefined=(EMPTY_SPLIT,),
    symmetric=True,
    ordered=True,
    also=None,
)
def gps_upm_ordered(t: Table) -> Array:
    parts = unified_performance_reciprocals(t.lower_correct, t.upper_correct, t.cut_errors)
    return (t.n_classes - 1) / total(parts)
