"""Macro and prevalence-weighted averages of one-vs-rest metrics. A few of other libraries are computed on request
only.
"""

from functools import partial

import numpy as np

from app.kernel.matrix.table import AdditiveGradient, Table
from app.kernel.metrics.card import (
    OVER_LABELS,
    UNDEFINED,
    Choice,
    Number,
    Orientation,
    Prevalence,
    Scale,
    Scope,
    filled,
    metric,
)
from app.kernel.metrics.conditions import (
    ABSENT,
    ALWAYS_PREDICTED,
    NEVER_PREDICTED,
    NO_ACTUAL,
    NO_LABELS,
    NO_REST,
    NO_SAMPLES,
    NOT_PREDICTED_THOUGH_ACTUAL,
    UNIVERSAL,
    where,
)
from app.kernel.metrics.exact import Confusion, Exact, Quantity, harmonic
from app.kernel.metrics.proportion import ConfusionCells, LinearMap, Proportion
from app.kernel.numerics.arrays import Array, harmonic_mean_of_two, inner, mean, total

_overall = partial(metric, scope=Scope.OVERALL, prevalence=Prevalence.SENSITIVE, references=("haghighi2018",))
_error = partial(_overall, orientation=Orientation.LOWER, ideal=0.0)
# Averages of values of the classes, any of which may be undefined; labels have them too.
_average = partial(_overall, parameters=(UNDEFINED,), also=OVER_LABELS)
_macro = partial(_average, over_classes=True)

# Weighted averages leave out classes without actual samples; the others need a specificity.
ONE_CLASS = where(
    "one_actual_class",
    "all samples belong to class {label}, so its specificity does not exist",
    lambda t: (t.rest == 0) & (t.actual > 0),
)


_FORM = Choice(
    "form",
    "scores",
    "the mean of the F-beta scores ('scores'), or F-beta of macro precision and macro recall, the survey's eq. 20 ('means')",
    ("scores", "means"),
)


def _exact_macro_f_beta(m: Confusion, beta: Quantity) -> Quantity:
    square = beta * beta
    return m.mean(lambda c: (1 + square) * c.tp / (square * c.actual + c.predicted))


@_average(
    name="mean of macro recall and macro specificity",
    prevalence=Prevalence.INSENSITIVE_BINARY,
    formula=r"\frac{1}{2}\left(TPR_{macro}+TNR_{macro}\right)",
    sentence="The survey's multiclass balanced accuracy. For K > 2 it depends on class prevalence, unlike the mean of "
    "the recalls.",
    aliases=("aunu",),
    elsewhere={"pycm": "AUNU"},
    undefined=(NO_ACTUAL, NO_REST),
    references=("beddar2025",),
    exact=Exact(lambda m: m.mean(lambda c: (c.tp / c.actual + c.tn / c.rest) / 2)),
)
def survey_balanced_accuracy(t: Table, undefined: str = "strict") -> Array:
    if undefined == "strict":
        return (t.mean_rates.recall + t.mean_rates.specificity) / 2.0
    return (mean(filled(t.recall, undefined)) + mean(filled(t.specificity, undefined))) / 2.0


@_overall(
    name="prevalence-weighted single-point AUC",
    prevalence=Prevalence.INSENSITIVE_BINARY,
    formula=r"\sum_k\frac{P_k}{n}\,\frac{TPR_k+TNR_k}{2}",
    sentence="One-vs-rest balanced accuracy averaged by class frequency.",
    aliases=("aunp",),
    elsewhere={"pycm": "AUNP"},
    parameters=(UNDEFINED,),
    undefined=(NO_SAMPLES, ONE_CLASS),
    exact=Exact(lambda m: m.weighted(lambda c: (c.tp / c.actual + c.tn / c.rest) / 2)),
)
def prevalence_weighted_auc(t: Table, undefined: str = "strict") -> Array:
    # Recalls weighted by prevalence are the accuracy.
    return (t.correct + inner(t.actual, filled(t.specificity, undefined))) / (2.0 * t.n)


@_macro(
    name="macro precision",
    formula=r"\frac{1}{K}\sum_k PPV_k",
    sentence="Mean per-class precision.",
    elsewhere={
        "sklearn": "precision_score(average=macro)",
        "pycm": "PPV Macro",
        "torchmetrics": "MulticlassPrecision(average=macro)",
    },
    undefined=(NEVER_PREDICTED,),
    references=("martin2022", "beddar2025"),
    exact=Exact(lambda m: m.mean(lambda c: c.tp / c.predicted)),
)
def macro_precision(t: Table, undefined: str = "strict") -> Array:
    return t.mean_rates.precision if undefined == "strict" else mean(filled(t.precision, undefined))


def _of_macro_f1(t: Table) -> AdditiveGradient:
    """Takahashi et al. (2022) with s = row share + column share: g_ii = 2(s_i - 2p_ii)/(K s_i^2) and
    g_ij = -(2/K)(p_ii/s_i^2 + p_jj/s_j^2).
    """
    per_class = (t.n_each / t.n_classes) / t.margins
    falling = -t.f1 * per_class
    return AdditiveGradient(2.0 * per_class, falling, falling)


@_macro(
    name="macro F1",
    formula=r"\frac{1}{K}\sum_k F_{1,k}",
    sentence="Mean per-class F1.",
    elsewhere={
        "sklearn": "f1_score(average=macro)",
        "pycm": "F1 Macro",
        "torchmetrics": "MulticlassF1Score(average=macro)",
    },
    undefined=(ABSENT,),
    symmetric=True,
    references=("martin2022", "beddar2025", "opitz2019"),
    headline=True,
    scale=Scale.LOGIT,
    gradient=_of_macro_f1,
    exact=Exact(lambda m: m.mean(lambda c: 2 * c.tp / (c.actual + c.predicted))),
    same_as="mean(f1@*)",
)
def macro_f1(t: Table, undefined: str = "strict") -> Array:
    return t.mean_f1 if undefined == "strict" else mean(filled(t.f1, undefined))


@_macro(
    name="macro NPV",
    formula=r"\frac{1}{K}\sum_k NPV_k",
    sentence="Mean per-class negative predictive value.",
    elsewhere={"pycm": "NPV Macro"},
    undefined=(ALWAYS_PREDICTED,),
    references=("martin2022", "beddar2025"),
    exact=Exact(lambda m: m.mean(lambda c: c.tn / c.predicted_rest)),
)
def macro_npv(t: Table, undefined: str = "strict") -> Array:
    return t.mean_rates.npv if undefined == "strict" else mean(filled(t.npv, undefined))


@_macro(
    name="macro Jaccard",
    formula=r"\frac{1}{K}\sum_k J_k",
    sentence="Mean per-class Jaccard index.",
    elsewhere={"sklearn": "jaccard_score(average=macro)", "torchmetrics": "MulticlassJaccardIndex(average=macro)"},
    undefined=(ABSENT,),
    symmetric=True,
    references=("martin2022", "beddar2025"),
    exact=Exact(lambda m: m.mean(lambda c: c.tp / (c.actual + c.fp))),
)
def macro_jaccard(t: Table, undefined: str = "strict") -> Array:
    return mean(filled(t.jaccard, undefined))


@_average(
    name="F1 of macro precision and macro recall",
    formula=r"\frac{2\,PPV_{macro}\,TPR_{macro}}{PPV_{macro}+TPR_{macro}}",
    sentence="The survey's macro F1. A different number from the mean of the F1 scores.",
    aliases=("survey_macro_f1",),
    undefined=(NO_ACTUAL, NEVER_PREDICTED),
    symmetric=True,
    references=("beddar2025", "opitz2019"),
    exact=Exact(lambda m: harmonic((m.mean(lambda c: c.tp / c.predicted), m.mean(lambda c: c.tp / c.actual)))),
)
def macro_f1_of_means(t: Table, undefined: str = "strict") -> Array:
    if undefined == "strict":
        return harmonic_mean_of_two(t.mean_rates.precision, t.mean_rates.recall)
    return harmonic_mean_of_two(mean(filled(t.precision, undefined)), mean(filled(t.recall, undefined)))


def _f_beta_of_means(t: Table, beta: float, undefined: str) -> Array:
    """(1 + b^2) PPV TPR / (b^2 PPV + TPR) of the macro averages, 0 where one is 0."""
    precision, recall = mean(filled(t.precision, undefined)), mean(filled(t.recall, undefined))
    square = beta * beta
    return (1.0 + square) / (1.0 / precision + square / recall)


@_macro(
    name="macro F-beta",
    formula=r"\frac{1}{K}\sum_k F_{\beta,k}",
    sentence="Mean per-class F-beta.",
    elsewhere={"sklearn": "fbeta_score(average=macro)", "torchmetrics": "MulticlassFBetaScore(average=macro)"},
    parameters=(Number("beta", 1.0, "weight of recall against precision", above=0.0), _FORM, UNDEFINED),
    undefined=(ABSENT,),
    references=("beddar2025",),
    exact=Exact(_exact_macro_f_beta),
)
def macro_f_beta(t: Table, beta: float = 1.0, form: str = "scores", undefined: str = "strict") -> Array:
    if form == "means":
        return _f_beta_of_means(t, beta, undefined)
    if beta == 1.0:
        return macro_f1.compute(t, undefined)
    square = beta * beta
    return (1.0 + square) * mean(filled(t.tp / (square * t.actual + t.predicted), undefined))


@_macro(
    name="macro F1 of the rests",
    formula=r"\frac{1}{K}\sum_k F^{-}_{1,k}",
    sentence="Mean over the classes of the F1 of everything else.",
    undefined=(UNIVERSAL,),
    symmetric=True,
    references=("martin2022",),
    exact=Exact(lambda m: m.mean(lambda c: 2 * c.tn / (c.rest + c.predicted_rest))),
)
def macro_f1_negative(t: Table, undefined: str = "strict") -> Array:
    return mean(filled(t.f1_negative, undefined))


@_macro(
    name="macro specificity",
    prevalence=Prevalence.INSENSITIVE_BINARY,
    formula=r"\frac{1}{K}\sum_k TNR_k",
    sentence="Mean per-class specificity.",
    elsewhere={
        "pycm": "TNR Macro",
        "imblearn": "specificity_score(average=macro)",
        "torchmetrics": "MulticlassSpecificity(average=macro)",
    },
    undefined=(NO_REST,),
    references=("beddar2025",),
    exact=Exact(lambda m: m.mean(lambda c: c.tn / c.rest)),
)
def macro_specificity(t: Table, undefined: str = "strict") -> Array:
    return t.mean_rates.specificity if undefined == "strict" else mean(filled(t.specificity, undefined))


@_error(
    name="macro fall-out",
    prevalence=Prevalence.INSENSITIVE_BINARY,
    formula=r"\frac{1}{K}\sum_k FPR_k",
    sentence="Mean per-class false positive rate.",
    elsewhere={"pycm": "FPR Macro"},
    undefined=(NO_REST,),
    exact=Exact(lambda m: m.mean(lambda c: c.fp / c.rest)),
    also=OVER_LABELS,
    over_classes=True,
)
def macro_fpr(t: Table) -> Array:
    return mean(t.fpr)


@_average(
    name="prevalence-weighted precision",
    formula=r"\sum_k\frac{P_k}{n}PPV_k",
    sentence="Per-class precision averaged by class frequency.",
    elsewhere={
        "sklearn": "precision_score(average=weighted)",
        "torchmetrics": "MulticlassPrecision(average=weighted)",
    },
    undefined=(NO_LABELS, NO_SAMPLES, NOT_PREDICTED_THOUGH_ACTUAL),
    references=("aguilar2025", "beddar2025"),
    exact=Exact(lambda m: m.weighted(lambda c: c.tp / c.predicted), transposable=False),
)
def weighted_precision(t: Table, undefined: str = "strict") -> Array:
    return t.weighted_sum(filled(t.precision, undefined)) / t.n


@_average(
    name="prevalence-weighted F1",
    formula=r"\sum_k\frac{P_k}{n}F_{1,k}",
    sentence="Per-class F1 averaged by class frequency.",
    elsewhere={"sklearn": "f1_score(average=weighted)", "torchmetrics": "MulticlassF1Score(average=weighted)"},
    undefined=(NO_LABELS, NO_SAMPLES),
    references=("aguilar2025", "beddar2025"),
    exact=Exact(lambda m: m.weighted(lambda c: 2 * c.tp / (c.actual + c.predicted)), transposable=False),
)
def weighted_f1(t: Table, undefined: str = "strict") -> Array:
    return t.weighted_sum(filled(t.f1, undefined)) / t.n


@_average(
    name="prevalence-weighted Jaccard",
    formula=r"\sum_k\frac{P_k}{n}J_k",
    sentence="Per-class Jaccard index averaged by class frequency.",
    elsewhere={
        "sklearn": "jaccard_score(average=weighted)",
        "torchmetrics": "MulticlassJaccardIndex(average=weighted)",
    },
    undefined=(NO_LABELS, NO_SAMPLES),
    references=("aguilar2025", "beddar2025"),
    exact=Exact(lambda m: m.weighted(lambda c: c.tp / (c.actual + c.fp))),
)
def weighted_jaccard(t: Table, undefined: str = "strict") -> Array:
    return t.weighted_sum(filled(t.jaccard, undefined)) / t.n


@_overall(
    name="class balance accuracy",
    symbol="CBA",
    formula=r"\frac{1}{K}\sum_k\frac{n_{kk}}{\max(P_k,T_k)}",
    sentence="Mean over the classes of the smaller of recall and precision.",
    elsewhere={"pycm": "CBA"},
    parameters=(UNDEFINED,),
    undefined=(ABSENT,),
    symmetric=True,
    references=("mosley2013",),
    over_classes=True,
)
def class_balance_accuracy(t: Table, undefined: str = "strict") -> Array:
    return mean(filled(t.tp / np.maximum(t.actual, t.predicted), undefined))


@_overall(
    name="classification success index",
    symbol="CSI",
    range=(-1.0, 1.0),
    formula=r"\frac{1}{K}\sum_k(PPV_k+TPR_k-1)",
    sentence="Mean individual classification success index.",
    elsewhere={"pycm": "CSI"},
    undefined=(NO_ACTUAL, NEVER_PREDICTED),
    symmetric=True,
    references=("labatut2012",),
    exact=Exact(lambda m: m.mean(lambda c: c.tp / c.predicted + c.tp / c.actual - 1)),
)
def classification_success_index(t: Table) -> Array:
    return t.mean_rates.precision + t.mean_rates.recall - 1.0


@_overall(
    name="sum of the Jaccard indices",
    range=(0.0, None),
    ideal=None,
    formula=r"\sum_k J_k",
    sentence="Sum over the classes of the Jaccard index; its ideal is the number of classes.",
    elsewhere={"pycm": "Overall J"},
    undefined=(ABSENT,),
    symmetric=True,
)
def jaccard_sum(t: Table) -> Array:
    return total(t.jaccard)


@_overall(
    name="mean predicted count per class",
    symbol="RR",
    range=(0.0, None),
    ideal=None,
    orientation=Orientation.DESCRIPTIVE,
    degree=1,
    formula=r"\frac{n}{K}",
    sentence="Samples per class (PyCM's global performance index).",
    elsewhere={"pycm": "RR"},
    symmetric=True,
    about_sample=True,
)
def global_performance_index(t: Table) -> Array:
    return t.n / t.n_classes


@_overall(
    name="average accuracy",
    formula=r"\frac{1}{K}\sum_k\frac{TP_k+TN_k}{n}",
    sentence="Mean one-vs-rest accuracy. With many classes it is high for almost any classifier.",
    aliases=("macro_accuracy",),
    elsewhere={"pycm": "ACC Macro"},
    undefined=(NO_SAMPLES,),
    symmetric=True,
    references=("martin2022", "beddar2025"),
    proportion=Proportion(ConfusionCells.RIGHT, ConfusionCells.ALL, lambda k: LinearMap(1.0 - 2.0 / k, 2.0 / k)),
    exact=Exact(lambda m: m.mean(lambda c: (c.tp + c.tn) / c.n)),
)
def average_accuracy(t: Table) -> Array:
    return mean(t.accuracy_ovr)


_on_request = partial(
    metric,
    scope=Scope.OVERALL,
    prevalence=Prevalence.SENSITIVE,
    references=("pedregosa2011",),
    on_request=True,
)


@_on_request(
    name="micro Jaccard",
    formula=r"\frac{\sum_k TP_k}{\sum_k(TP_k+FP_k+FN_k)}",
    sentence="Jaccard index of the counts of all classes together: accuracy over 2 less accuracy.",
    elsewhere={"sklearn": "jaccard_score(average=micro)", "torchmetrics": "MulticlassJaccardIndex(average=micro)"},
    undefined=(NO_LABELS, NO_SAMPLES),
    symmetric=True,
    also=OVER_LABELS,
)
def micro_jaccard(t: Table) -> Array:
    return t.correct / (t.n + t.false_alarms)


@_on_request(
    name="prevalence-weighted F-beta",
    formula=r"\sum_k\frac{P_k}{n}F_{\beta,k}",
    sentence="Per-class F-beta averaged by class frequency.",
    elsewhere={"sklearn": "fbeta_score(average=weighted)", "torchmetrics": "MulticlassFBetaScore(average=weighted)"},
    parameters=(Number("beta", 1.0, "weight of recall against precision", above=0.0), UNDEFINED),
    undefined=(NO_LABELS, NO_SAMPLES),
    also=OVER_LABELS,
)
def weighted_f_beta(t: Table, beta: float = 1.0, undefined: str = "strict") -> Array:
    square = beta * beta
    return (1.0 + square) * t.weighted_sum(filled(t.tp / (square * t.actual + t.predicted), undefined)) / t.n


@_on_request(
    name="prevalence-weighted specificity",
    formula=r"\sum_k\frac{P_k}{n}TNR_k",
    sentence="Per-class specificity averaged by class frequency.",
    elsewhere={
        "imblearn": "specificity_score(average=weighted)",
        "torchmetrics": "MulticlassSpecificity(average=weighted)",
    },
    parameters=(UNDEFINED,),
    undefined=(NO_LABELS, NO_SAMPLES, ONE_CLASS),
    also=OVER_LABELS,
)
def weighted_specificity(t: Table, undefined: str = "strict") -> Array:
    return t.weighted_sum(filled(t.specificity, undefined)) / t.n


@_on_request(
    name="prevalence-weighted NPV",
    formula=r"\sum_k\frac{P_k}{n}NPV_k",
    sentence="Per-class negative predictive value averaged by class frequency.",
    elsewhere={"torchmetrics": "MulticlassNegativePredictiveValue(average=weighted)"},
    parameters=(UNDEFINED,),
    undefined=(
        NO_SAMPLES,
        where(
            "always_predicted",
            "every sample is predicted as class {label}, which has samples",
            lambda t: (t.predicted_rest == 0) & (t.actual > 0),
        ),
    ),
)
def weighted_npv(t: Table, undefined: str = "strict") -> Array:
    return t.weighted_sum(filled(t.npv, undefined)) / t.n


# The catalogue lists them after the metrics of reports.
ON_REQUEST = (micro_jaccard, weighted_f_beta, weighted_specificity, weighted_npv)
