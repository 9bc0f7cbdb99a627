"""Averages over the classes of one-vs-rest metrics: micro, which come down to the plain accuracy, macro and weighted by
prevalence. A few of other libraries are computed on request only.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from app.kernel.matrix.table import AdditiveGradient, Table
from app.kernel.metrics.card import (
    OVER_LABELS,
    UNDEFINED,
    Choice,
    Metric,
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
    NEVER_PREDICTED,
    NO_ACTUAL,
    NO_LABELS,
    NO_REST,
    NO_SAMPLES,
    NOT_PREDICTED_THOUGH_ACTUAL,
    OfMatrix,
)
from app.kernel.metrics.exact import Confusion, Exact, Quantity, harmonic
from app.kernel.metrics.families import detection, rates
from app.kernel.metrics.proportion import ConfusionCells, LinearMap, Proportion
from app.kernel.numerics import scipy_bridge
from app.kernel.numerics.arrays import Array, inner, mean, ratio, total

_overall = partial(metric, scope=Scope.OVERALL, prevalence=Prevalence.SENSITIVE)
# Of the one-vs-rest counts of all classes together.
_micro = partial(_overall, undefined=(NO_SAMPLES,), symmetric=True)
_micro_error = partial(_micro, orientation=Orientation.LOWER)
# Averages of values of the classes, any of which may be undefined; labels have them too.
_average = partial(_overall, parameters=(UNDEFINED,), also=OVER_LABELS)
_macro = partial(_average, over_classes=True)

# Weighted averages leave out classes without actual samples; the others need a specificity.
ONE_CLASS = OfMatrix(
    "one_actual_class",
    "all samples belong to class {label}, so its specificity does not exist",
    lambda t: (t.rest == 0) & (t.actual > 0),
)


def _averaged_elsewhere(rate: Metric[Table], how: str, pycm: str = "") -> dict[str, str]:
    """Names of an average in other libraries: there it is an argument of the metric of one class, and in PyCM a name of
    its own, where there is one.
    """
    names = {library: f"{name.partition('(')[0]}(average={how})" for library, name in rate.card.elsewhere.items()}
    names["pycm"] = pycm
    return {library: name for library, name in names.items() if name}


def _macro_of(rate: Metric[Table], term: str = "", pycm: str = "", **facts: Any) -> Metric[Table]:
    """Mean over the classes of a metric of one class, which is ``term`` in the formula and ``pycm`` in PyCM."""
    card, exact = rate.card, rate.card.inference.exact
    assert exact is not None  # noqa: S101 - all that are averaged have one
    known = {
        "key": f"macro_{card.key}",
        "name": f"macro {card.name}",
        "formula": rf"\frac{{1}}{{K}}\sum_k {term or f'{card.symbol}_k'}",
        "sentence": f"Mean per-class {card.name}.",
        "elsewhere": _averaged_elsewhere(rate, "macro", pycm),
        "undefined": card.undefined,
        "exact": Exact(lambda m: m.mean(exact.form)),
    }

    def compute(t: Table, undefined: str = "strict") -> Array:
        return mean(filled(rate.compute(t), undefined))

    return _macro(**known | facts)(compute)


def _weighted_of(rate: Metric[Table], declare: Callable[..., Any], term: str = "", **facts: Any) -> Metric[Table]:
    """Mean of a metric of one class, weighted by the sizes of the classes."""
    card = rate.card
    known = {
        "key": f"weighted_{card.key}",
        "name": f"prevalence-weighted {card.name}",
        "formula": rf"\sum_k\frac{{P_k}}{{n}}{term or f'{card.symbol}_k'}",
        "sentence": f"Per-class {card.name} averaged by class frequency.",
        "elsewhere": _averaged_elsewhere(rate, "weighted"),
        "parameters": (UNDEFINED,),
        "undefined": (NO_LABELS, NO_SAMPLES),
    }

    def compute(t: Table, undefined: str = "strict") -> Array:
        return t.weighted_sum(filled(rate.compute(t), undefined)) / t.n

    declared: Metric[Table] = declare(**known | facts)(compute)
    return declared


_FORM = Choice(
    "form",
    "scores",
    "the mean of the F-beta scores ('scores'), or F-beta of macro precision and macro recall, the survey's eq. 20 ('means')",
    ("scores", "means"),
)


def _of_pooled(n_classes: int) -> LinearMap:
    """Line from accuracy to a rate of the pooled K one-vs-rest tables, in which only n of (K - 1) n can be wrong."""
    return LinearMap((n_classes - 2) / (n_classes - 1), 1.0 / (n_classes - 1))


@_micro(
    name="accuracy",
    symbol="ACC",
    formula=r"\frac{\sum_k n_{kk}}{n}",
    sentence="Share of the samples that are classified correctly. Equals micro F1, micro precision and micro recall.",
    aliases=("micro_f1", "micro_recall", "micro_precision", "weighted_recall"),
    elsewhere={
        "sklearn": "accuracy_score",
        "pycm": "Overall ACC",
        "torchmetrics": "MulticlassAccuracy(average=micro)",
    },
    references=("aguilar2025", "wu2025", "martin2022", "beddar2025"),
    headline=True,
    proportion=Proportion(ConfusionCells.RIGHT, ConfusionCells.ALL),
    gradient=lambda t: AdditiveGradient(np.ones_like(t.tp), np.zeros_like(t.tp), np.zeros_like(t.tp)),
    exact=Exact(lambda m: m.correct / m.n),
)
def accuracy(t: Table) -> Array:
    return t.accuracy


@_micro_error(
    name="error rate",
    formula=r"1-ACC",
    sentence="Share of the samples that are classified wrongly.",
    aliases=("hamming_loss",),
    elsewhere={
        "sklearn": "zero_one_loss",
        "pycm": "Hamming Loss",
        "torchmetrics": "MulticlassHammingDistance(average=micro)",
    },
    references=("martin2022", "beddar2025"),
    proportion=Proportion(ConfusionCells.WRONG, ConfusionCells.ALL),
    exact=Exact(lambda m: 1 - m.correct / m.n),
)
def error_rate(t: Table) -> Array:
    return t.wrong / t.n


@_micro_error(
    name="number of errors",
    degree=1,
    formula=r"n-\sum_k n_{kk}",
    sentence="How many samples are classified wrongly.",
    range=(0.0, None),
    elsewhere={"pycm": "Zero-one Loss"},
    proportion=Proportion(ConfusionCells.WRONG, ConfusionCells.ALL, counted=True),
    undefined=(),
)
def zero_one_loss_count(t: Table) -> Array:
    return t.wrong


@_micro(
    name="micro specificity",
    formula=r"\frac{\sum_k TN_k}{\sum_k N_k}",
    sentence="Specificity of the pooled one-vs-rest counts; also the pooled F1 of the rests.",
    elsewhere={"pycm": "TNR Micro"},
    proportion=Proportion(ConfusionCells.RIGHT, ConfusionCells.ALL, _of_pooled),
    exact=Exact(lambda m: m.mean(lambda c: c.tn) * len(m.classes) / ((len(m.classes) - 1) * m.n)),
    also=OVER_LABELS,
)
def micro_specificity(t: Table) -> Array:
    return total(t.tn) / total(t.rest)


@_micro_error(
    name="micro fall-out",
    formula=r"\frac{\sum_k FP_k}{\sum_k N_k}",
    sentence="False positive rate of the pooled one-vs-rest counts.",
    elsewhere={"pycm": "FPR Micro"},
    proportion=Proportion(ConfusionCells.WRONG, ConfusionCells.ALL, lambda k: LinearMap(0.0, 1.0 / (k - 1))),
    exact=Exact(lambda m: (m.n - m.correct) / ((len(m.classes) - 1) * m.n)),
)
def micro_fpr(t: Table) -> Array:
    return t.wrong / ((t.n_classes - 1) * t.n)


@_micro_error(
    name="micro miss rate",
    formula=r"\frac{\sum_k FN_k}{\sum_k P_k}",
    sentence="Miss rate of the pooled one-vs-rest counts; equals the error rate.",
    elsewhere={"pycm": "FNR Micro"},
    proportion=Proportion(ConfusionCells.WRONG, ConfusionCells.ALL),
    exact=Exact(lambda m: 1 - m.correct / m.n),
)
def micro_fnr(t: Table) -> Array:
    return t.wrong / t.n


@_micro(
    name="micro NPV",
    formula=r"\frac{\sum_k TN_k}{\sum_k(n-T_k)}",
    sentence="Negative predictive value of the pooled one-vs-rest counts.",
    elsewhere={"pycm": "NPV Micro"},
    proportion=Proportion(ConfusionCells.RIGHT, ConfusionCells.ALL, _of_pooled),
    exact=Exact(lambda m: m.mean(lambda c: c.tn) * len(m.classes) / ((len(m.classes) - 1) * m.n)),
)
def micro_npv(t: Table) -> Array:
    return total(t.tn) / ((t.n_classes - 1) * t.n)


@_micro(
    name="micro F-beta",
    formula=r"\frac{(1+\beta^2)\sum TP_k}{(1+\beta^2)\sum TP_k+\beta^2\sum FN_k+\sum FP_k}",
    sentence="F-beta of the pooled one-vs-rest counts; equals accuracy whatever beta is, since each sample has one "
    "label.",
    elsewhere={"sklearn": "fbeta_score(average=micro)", "torchmetrics": "MulticlassFBetaScore(average=micro)"},
    parameters=(Number("beta", 1.0, "weight of recall against precision", above=0.0),),
    undefined=(NO_LABELS, NO_SAMPLES),
    references=("beddar2025",),
    proportion=Proportion(ConfusionCells.RIGHT, ConfusionCells.ALL),
    exact=Exact(lambda m, **_: m.correct / m.n),
    also=OVER_LABELS,
)
def micro_f_beta(t: Table, beta: float = 1.0) -> Array:
    square = beta * beta
    found = (1.0 + square) * t.correct
    return found / (found + square * t.wrong + t.false_alarms)


@_micro_error(
    name="standard error of accuracy",
    range=(0.0, None),
    formula=r"\sqrt{\frac{ACC(1-ACC)}{n}}",
    sentence="Binomial standard error of the accuracy.",
    elsewhere={"pycm": "Standard Error"},
    degree=None,
    about_sample=True,
)
def accuracy_standard_error(t: Table) -> Array:
    return np.sqrt(t.accuracy * t.wrong) / t.n


@_micro(
    name="largest prevalence",
    symbol="NIR",
    orientation=Orientation.DESCRIPTIVE,
    formula=r"\max_k\frac{P_k}{n}",
    sentence="Accuracy of always predicting the most frequent class (no-information rate).",
    elsewhere={"pycm": "NIR"},
    symmetric=False,
)
def no_information_rate(t: Table) -> Array:
    return t.largest / t.n


@_micro_error(
    name="p-value of accuracy above the no-information rate",
    formula=r"P\left(\mathrm{Bin}(n,NIR)\ge\sum_k n_{kk}\right)",
    sentence="Probability of at least this many correct when the most frequent class is guessed; exact at any "
    "sample size.",
    elsewhere={"pycm": "P-Value"},
    degree=None,
    about_sample=True,
    symmetric=False,
)
def accuracy_p_value(t: Table) -> Array:
    return scipy_bridge.binomial_upper_tail(t.correct, t.n, t.largest / t.n, (t.n - t.largest) / t.n)


_of_labels = partial(_micro, of_labels=True, references=("tsoumakas2010",))


@_of_labels(
    name="micro precision",
    formula=r"\frac{\sum_k TP_k}{\sum_k T_k}",
    sentence="Share of all predicted labels that are right.",
    elsewhere={"sklearn": "precision_score(average=micro)"},
    undefined=(OfMatrix("no_predicted_labels", "no label is predicted", lambda t: total(t.predicted) == 0),),
    symmetric=False,
)
def micro_precision(t: Table) -> Array:
    return ratio(total(t.tp), total(t.predicted))


@_of_labels(
    name="micro recall",
    formula=r"\frac{\sum_k TP_k}{\sum_k P_k}",
    sentence="Share of all labels of samples that are predicted; also the mean of the recalls weighted by prevalence.",
    aliases=("weighted_recall",),
    elsewhere={"sklearn": "recall_score(average=micro)"},
    undefined=(NO_LABELS, NO_SAMPLES),
    symmetric=False,
)
def micro_recall(t: Table) -> Array:
    return ratio(total(t.tp), t.n)


@_of_labels(
    name="micro F1",
    formula=r"\frac{2\sum_k TP_k}{\sum_k (P_k + T_k)}",
    sentence="Harmonic mean of micro precision and micro recall: F1 of all labels together.",
    elsewhere={"sklearn": "f1_score(average=micro)"},
    undefined=(
        OfMatrix(
            "no_labels",
            "no sample has a label, and none is predicted",
            lambda t: (t.n == 0) & (total(t.predicted) == 0),
        ),
    ),
)
def micro_f1(t: Table) -> Array:
    return ratio(2.0 * total(t.tp), t.n + total(t.predicted))


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


macro_precision = _macro_of(
    rates.precision,
    pycm="PPV Macro",
    references=("martin2022", "beddar2025"),
)


def _of_macro_f1(t: Table) -> AdditiveGradient:
    """Takahashi et al. (2022) with s = row share + column share: g_ii = 2(s_i - 2p_ii)/(K s_i^2) and
    g_ij = -(2/K)(p_ii/s_i^2 + p_jj/s_j^2).
    """
    per_class = (t.n_each / t.n_classes) / t.margins
    falling = -t.f1 * per_class
    return AdditiveGradient(2.0 * per_class, falling, falling)


macro_f1 = _macro_of(
    detection.f1,
    term="F_{1,k}",
    pycm="F1 Macro",
    symmetric=True,
    references=("martin2022", "beddar2025", "opitz2019"),
    headline=True,
    scale=Scale.LOGIT,
    gradient=_of_macro_f1,
    same_as="mean(f1@*)",
)


macro_npv = _macro_of(
    rates.npv,
    name="macro NPV",
    pycm="NPV Macro",
    references=("martin2022", "beddar2025"),
)


macro_jaccard = _macro_of(
    detection.jaccard,
    name="macro Jaccard",
    symmetric=True,
    references=("martin2022", "beddar2025"),
)


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
    return _f_beta_of_means(t, 1.0, undefined)


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
    square = beta * beta
    return (1.0 + square) * mean(filled(t.tp / (square * t.actual + t.predicted), undefined))


macro_f1_negative = _macro_of(
    detection.f1_negative,
    name="macro F1 of the rests",
    term="F^{-}_{1,k}",
    elsewhere={},
    sentence="Mean over the classes of the F1 of everything else.",
    symmetric=True,
    references=("martin2022",),
)


macro_specificity = _macro_of(
    rates.specificity,
    prevalence=Prevalence.INSENSITIVE_BINARY,
    pycm="TNR Macro",
    references=("beddar2025",),
)


@_overall(
    name="macro fall-out",
    prevalence=Prevalence.INSENSITIVE_BINARY,
    orientation=Orientation.LOWER,
    formula=r"\frac{1}{K}\sum_k FPR_k",
    sentence="Mean per-class false positive rate.",
    elsewhere={"pycm": "FPR Macro"},
    undefined=(NO_REST,),
    exact=Exact(lambda m: m.mean(lambda c: c.fpr)),
    also=OVER_LABELS,
    over_classes=True,
)
def macro_fpr(t: Table) -> Array:
    return mean(t.fpr)


weighted_precision = _weighted_of(
    rates.precision,
    _average,
    undefined=(NO_LABELS, NO_SAMPLES, NOT_PREDICTED_THOUGH_ACTUAL),
    references=("aguilar2025", "beddar2025"),
    exact=Exact(lambda m: m.weighted(lambda c: c.precision), transposable=False),
)


weighted_f1 = _weighted_of(
    detection.f1,
    _average,
    term="F_{1,k}",
    references=("aguilar2025", "beddar2025"),
    exact=Exact(lambda m: m.weighted(lambda c: c.f1), transposable=False),
)


weighted_jaccard = _weighted_of(
    detection.jaccard,
    _average,
    name="prevalence-weighted Jaccard",
    references=("aguilar2025", "beddar2025"),
    exact=Exact(lambda m: m.weighted(lambda c: c.jaccard)),
)


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
    return mean(t.precision) + mean(t.recall) - 1.0


@_overall(
    name="sum of the Jaccard indices",
    range=(0.0, None),
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
    exact=Exact(lambda m: m.mean(lambda c: c.accuracy_ovr)),
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


weighted_specificity = _weighted_of(
    rates.specificity,
    _on_request,
    undefined=(NO_LABELS, NO_SAMPLES, ONE_CLASS),
    also=OVER_LABELS,
)


weighted_npv = _weighted_of(
    rates.npv,
    _on_request,
    name="prevalence-weighted NPV",
    undefined=(
        NO_SAMPLES,
        OfMatrix(
            "always_predicted",
            "every sample is predicted as class {label}, which has samples",
            lambda t: (t.predicted_rest == 0) & (t.actual > 0),
        ),
    ),
)


# The catalogue lists them after the metrics of reports.
ON_REQUEST = (micro_jaccard, weighted_f_beta, weighted_specificity, weighted_npv)
