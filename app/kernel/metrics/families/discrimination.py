"""Scores of one class against the rest built from sensitivity and specificity alone, and the associations of the 2 x 2
table.
"""

from functools import partial
from math import pi, sqrt
from typing import Any

import numpy as np

from app.kernel.matrix.table import OneVsRest, Table
from app.kernel.metrics.card import Number, Orientation, Prevalence, Scale, Scope, formula, metric
from app.kernel.metrics.conditions import (
    A_RATE_AT_ITS_END,
    ABSENT,
    ALWAYS_PREDICTED,
    MARGINS,
    NEVER_PREDICTED,
    NO_ACTUAL,
    NO_FALSE_POSITIVES,
    NO_ONE_SIDED_ERROR,
    NO_REST,
    NO_TRUE_NEGATIVES,
    NOTHING_CORRECT,
    UNIVERSAL,
)
from app.kernel.metrics.exact import Exact, Quantity, harmonic, over, signed_square
from app.kernel.metrics.references import (
    DISCRIMINANT_POWER,
    KAPPA_SCALES,
    MATTHEWS,
    NEGATIVE_LIKELIHOOD_RATIO,
    POSITIVE_LIKELIHOOD_RATIO,
    SINGLE_POINT_AUC,
    YULE,
)
from app.kernel.numerics import scipy_bridge
from app.kernel.numerics.arrays import Array

_BOTH_SIDES = (NO_ACTUAL, NO_REST)
_score = partial(metric, scope=Scope.CLASS, prevalence=Prevalence.INSENSITIVE_BINARY, undefined=_BOTH_SIDES)
_formula = partial(formula, prevalence=Prevalence.INSENSITIVE_BINARY, undefined=_BOTH_SIDES)
_ASSOCIATES: dict[str, Any] = {"prevalence": Prevalence.SENSITIVE, "range": (-1.0, 1.0), "symmetric": True}
_association = partial(metric, scope=Scope.CLASS, **_ASSOCIATES)
_WEIGHT = Number("weight", 0.5, "weight of recall; specificity has the rest", minimum=0.0, maximum=1.0)


def _exact_weighted_h_mean(c: OneVsRest, beta: Quantity) -> Quantity:
    recall, specificity, square = c.tp / c.actual, c.tn / c.rest, beta * beta
    return over((1 + square) * recall * specificity, square * recall + specificity)


@_association(
    name="one-vs-rest Matthews correlation",
    symbol=r"\phi",
    formula=r"\frac{TP\,TN-FP\,FN}{\sqrt{T\,P\,N\,(n-T)}}",
    sentence="Correlation of being the class with being predicted as the class.",
    aliases=("phi_coefficient",),
    elsewhere={"pycm": "MCC"},
    undefined=MARGINS,
    chance_corrected=True,
    scales=(MATTHEWS,),
    references=("matthews1975", "aguilar2025", "wu2025", "martin2022", "beddar2025"),
    exact=Exact(
        lambda c: signed_square(c.determinant) / (c.actual * c.rest * c.predicted * c.predicted_rest), squared=True
    ),
)
def mcc_ovr(t: Table) -> Array:
    return t.determinant / np.sqrt(t.actual_spread * t.predicted_spread)


cohen_kappa_ovr = formula(
    "cohen_kappa_ovr",
    lambda c: 2 * c.determinant / (c.predicted * c.rest + c.actual * c.predicted_rest),
    **_ASSOCIATES,
    name="one-vs-rest Cohen kappa",
    symbol=r"\kappa",
    formula=r"\frac{2(TP\,TN-FP\,FN)}{T\,N+P\,(n-T)}",
    sentence="Agreement on the class beyond what the shares alone would give.",
    undefined=(ABSENT, UNIVERSAL),
    chance_corrected=True,
    scales=KAPPA_SCALES,
    references=("cohen1960", "martin2022"),
)


informedness = _formula(
    "informedness",
    lambda c: c.recall + c.specificity - 1,
    name="bookmaker informedness",
    symbol="J",
    range=(-1.0, 1.0),
    formula=r"TPR+TNR-1",
    sentence="How much better than chance the class is told from the rest (Youden's J).",
    aliases=("youden_j", "bookmaker_informedness", "gini_index"),
    elsewhere={"pycm": "BM"},
    chance_corrected=True,
    references=("youden1950", "aguilar2025", "wu2025", "martin2022"),
)


likelihood_ratio_positive = _formula(
    "likelihood_ratio_positive",
    lambda c: c.recall / c.fpr,
    name="positive likelihood ratio",
    symbol="LR_+",
    range=(0.0, None),
    formula=r"\frac{TPR}{FPR}",
    sentence="How many times more often members than non-members are predicted as the class.",
    aliases=("lr_positive", "plr"),
    elsewhere={"sklearn": "class_likelihood_ratios", "pycm": "PLR"},
    undefined=(NO_ACTUAL, NO_REST, NEVER_PREDICTED, NO_FALSE_POSITIVES),
    chance_corrected=True,
    scales=(POSITIVE_LIKELIHOOD_RATIO,),
    references=("beddar2025",),
    scale=Scale.LOG,
)


likelihood_ratio_negative = _formula(
    "likelihood_ratio_negative",
    lambda c: c.fnr / c.specificity,
    name="negative likelihood ratio",
    symbol="LR_-",
    range=(0.0, None),
    orientation=Orientation.LOWER,
    formula=r"\frac{FNR}{TNR}",
    sentence="How many times more often members than non-members are predicted as something else.",
    aliases=("lr_negative", "nlr"),
    elsewhere={"sklearn": "class_likelihood_ratios", "pycm": "NLR"},
    undefined=(NO_ACTUAL, NO_REST, ALWAYS_PREDICTED, NO_TRUE_NEGATIVES),
    chance_corrected=True,
    scales=(NEGATIVE_LIKELIHOOD_RATIO,),
    references=("beddar2025",),
    scale=Scale.LOG,
)


diagnostic_odds_ratio = _formula(
    "diagnostic_odds_ratio",
    lambda c: c.odds,
    name="diagnostic odds ratio",
    symbol="DOR",
    range=(0.0, None),
    formula=r"\frac{TP\,TN}{FP\,FN}",
    sentence="Odds of a positive prediction among members over those among non-members.",
    aliases=("dor",),
    elsewhere={"pycm": "DOR"},
    undefined=(*MARGINS, NO_ONE_SIDED_ERROR),
    symmetric=True,
    chance_corrected=True,
    references=("glas2003",),
    scale=Scale.LOG,
)


@_score(
    name="discriminant power",
    symbol="DP",
    range=(None, None),
    formula=r"\frac{\sqrt3}{\pi}\left(\ln\frac{TPR}{FNR}+\ln\frac{TNR}{FPR}\right)",
    sentence="Logarithm of the diagnostic odds ratio in units of a logistic standard deviation (natural logarithm).",
    elsewhere={"pycm": "DP (base 10)"},
    undefined=(*MARGINS, A_RATE_AT_ITS_END),
    symmetric=True,
    chance_corrected=True,
    scales=(DISCRIMINANT_POWER,),
    references=("sokolova2006",),
)
def discriminant_power(t: Table) -> Array:
    return sqrt(3.0) / pi * np.log(t.odds)


yule_q = _formula(
    "yule_q",
    lambda c: c.determinant / (c.right + c.mixed_up),
    name="Yule's Q",
    symbol="Q",
    range=(-1.0, 1.0),
    formula=r"\frac{TP\,TN-FP\,FN}{TP\,TN+FP\,FN}",
    sentence="The diagnostic odds ratio brought to the interval from -1 to 1.",
    elsewhere={"pycm": "Q"},
    undefined=MARGINS,
    symmetric=True,
    chance_corrected=True,
    scales=(YULE,),
    references=("yule1912",),
    scale=Scale.LOGIT,
)


@_score(
    name="Yule's Y",
    symbol="Y",
    range=(-1.0, 1.0),
    formula=r"\frac{\sqrt{TP\,TN}-\sqrt{FP\,FN}}{\sqrt{TP\,TN}+\sqrt{FP\,FN}}",
    sentence="Coefficient of colligation: Yule's Q on the square root of the odds ratio.",
    undefined=MARGINS,
    symmetric=True,
    chance_corrected=True,
    references=("yule1912",),
    scale=Scale.LOGIT,
)
def yule_y(t: Table) -> Array:
    right: Array = np.sqrt(t.right)
    wrong: Array = np.sqrt(t.mixed_up)
    return (right - wrong) / (right + wrong)


balanced_accuracy_ovr = _formula(
    "balanced_accuracy_ovr",
    lambda c: (c.recall + c.specificity) / 2,
    name="one-vs-rest balanced accuracy",
    symbol="A",
    formula=r"\frac{TPR+TNR}{2}",
    sentence="Arithmetic mean of sensitivity and specificity: the area under the ROC curve that has this single point.",
    aliases=("single_point_auc",),
    elsewhere={"pycm": "AUC"},
    scales=(SINGLE_POINT_AUC,),
    references=("wu2025", "martin2022", "beddar2025"),
)


@_score(
    name="one-vs-rest geometric mean",
    symbol="G",
    formula=r"\sqrt{TPR\cdot TNR}",
    sentence="Geometric mean of sensitivity and specificity.",
    elsewhere={"pycm": "GM", "imblearn": "geometric_mean_score(average=None)"},
    references=("aguilar2025", "wu2025", "martin2022"),
    exact=Exact(lambda c: c.tp / c.actual * (c.tn / c.rest), squared=True),
)
def g_mean_ovr(t: Table) -> Array:
    return np.sqrt(t.rate_product)


@_score(
    name="one-vs-rest harmonic mean of TPR and TNR",
    symbol="H",
    formula=r"\frac{2\,TPR\,TNR}{TPR+TNR}",
    sentence="Harmonic mean of sensitivity and specificity (the AC-score of the class): low as soon as one is low.",
    aliases=("ac_score_ovr",),
    references=("aguilar2025", "wu2025", "martin2022"),
    exact=Exact(lambda c: harmonic((c.tp / c.actual, c.tn / c.rest))),
)
def h_mean_ovr(t: Table) -> Array:
    return 2.0 / (1.0 / t.recall + 1.0 / t.specificity)


weighted_balanced_accuracy = _formula(
    "weighted_balanced_accuracy",
    lambda c, weight=0.5: weight * c.recall + (1 - weight) * c.specificity,
    name="weighted arithmetic mean of TPR and TNR",
    symbol="A_w",
    formula=r"w\,TPR+(1-w)\,TNR",
    sentence="Arithmetic mean of sensitivity and specificity with a chosen weight.",
    parameters=(_WEIGHT,),
    references=("aguilar2025",),
)


@_score(
    name="weighted geometric mean of TPR and TNR",
    symbol="G_w",
    formula=r"TPR^{w}\,TNR^{1-w}",
    sentence="Geometric mean of sensitivity and specificity with a chosen weight.",
    parameters=(_WEIGHT,),
    references=("aguilar2025",),
)
def weighted_g_mean(t: Table, weight: float = 0.5) -> Array:
    mean = t.recall**weight * t.specificity ** (1.0 - weight)
    # x^0 is 1 even where x does not exist.
    return mean if 0.0 < weight < 1.0 else mean + 0.0 * (t.recall + t.specificity)


@_score(
    name="weighted harmonic mean of TPR and TNR",
    symbol=r"H_\beta",
    formula=r"\frac{(1+\beta^2)\,TPR\,TNR}{\beta^2\,TPR+TNR}",
    sentence="Harmonic mean of sensitivity and specificity; beta above 1 weighs specificity higher.",
    parameters=(Number("beta", 1.0, "beta squared is the weight of specificity", above=0.0),),
    references=("aguilar2025",),
    exact=Exact(_exact_weighted_h_mean),
)
def weighted_h_mean(t: Table, beta: float = 1.0) -> Array:
    square = beta * beta
    return (1.0 + square) / (square / t.specificity + 1.0 / t.recall)


@_score(
    name="adjusted geometric mean",
    symbol="AGM",
    prevalence=Prevalence.SENSITIVE,
    formula=r"\frac{GM+TNR\,N/n}{1+N/n}\ \text{if}\ TPR>0,\ \text{else}\ 0",
    sentence="Geometric mean of sensitivity and specificity that rewards specificity by the share of non-members.",
    aliases=("agm",),
    elsewhere={"pycm": "AGM"},
    references=("batuwita2009",),
)
def adjusted_g_mean(t: Table) -> Array:
    # With N/n multiplied out; the factor is 0 by definition where the recall is 0.
    return (np.sqrt(t.rate_product) * t.n_each + t.tn) / (t.n_each + t.rest) * np.sign(t.tp)


@_score(
    name="index of balanced accuracy",
    symbol=r"IBA_\alpha",
    formula=r"(1+\alpha(TPR-TNR))\,TPR\,TNR",
    sentence="Squared geometric mean weighted by which side dominates; alpha sets by how much.",
    aliases=("iba",),
    elsewhere={"pycm": "IBA", "imblearn": "make_index_balanced_accuracy"},
    parameters=(Number("alpha", 1.0, "weight of the dominance TPR - TNR", minimum=0.0, maximum=1.0),),
    references=("garcia2009", "wu2025"),
)
def index_balanced_accuracy(t: Table, alpha: float = 1.0) -> Array:
    return (1.0 + alpha * (t.recall - t.specificity)) * t.rate_product


@_score(
    name="optimized precision",
    symbol="OP",
    prevalence=Prevalence.SENSITIVE,
    range=(-1.0, 1.0),
    formula=r"ACC-\frac{|TNR-TPR|}{TNR+TPR}",
    sentence="One-vs-rest accuracy less the imbalance of sensitivity and specificity.",
    elsewhere={"pycm": "OP"},
    undefined=(*_BOTH_SIDES, NOTHING_CORRECT),
    references=("ranawana2006",),
)
def optimized_precision(t: Table) -> Array:
    return t.accuracy_ovr - np.abs(t.specificity - t.recall) / (t.specificity + t.recall)


@_score(
    name="distance to the ideal ROC corner",
    symbol="dInd",
    range=(0.0, sqrt(2.0)),
    orientation=Orientation.LOWER,
    formula=r"\sqrt{FPR^2+FNR^2}",
    sentence="Distance of the operating point from perfect discrimination in the ROC plane.",
    aliases=("dind",),
    elsewhere={"pycm": "dInd"},
    exact=Exact(lambda c: signed_square(c.fp / c.rest) + signed_square(c.fn / c.actual), squared=True),
)
def roc_distance(t: Table) -> Array:
    return t.roc_distance


@_score(
    name="similarity to the ideal ROC corner",
    symbol="sInd",
    formula=r"1-\frac{dInd}{\sqrt2}",
    sentence="One less the distance to perfect discrimination, scaled to the interval from 0 to 1.",
    aliases=("sind",),
    elsewhere={"pycm": "sInd"},
)
def roc_similarity(t: Table) -> Array:
    return 1.0 - t.roc_distance * sqrt(0.5)


@_score(
    name="sensitivity index",
    symbol="d'",
    range=(None, None),
    formula=r"z(TPR)-z(FPR)",
    sentence="Distance of the two classes on the observer's scale in normal standard deviations.",
    aliases=("d_prime",),
    elsewhere={"pycm": "sensitivity_index"},
    undefined=(*MARGINS, A_RATE_AT_ITS_END),
    chance_corrected=True,
    references=("green1966",),
)
def sensitivity_index(t: Table) -> Array:
    return scipy_bridge.normal_quantile(t.recall) - scipy_bridge.normal_quantile(t.fpr)
