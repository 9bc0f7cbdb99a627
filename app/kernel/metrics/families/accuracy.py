"""The plain accuracy, what micro averages come down to, and whether it beats guessing."""

from functools import partial

import numpy as np

from app.kernel.matrix.table import AdditiveGradient, Table
from app.kernel.metrics.card import OVER_LABELS, Number, Orientation, Prevalence, Scope, metric
from app.kernel.metrics.conditions import NO_LABELS, NO_SAMPLES, overall
from app.kernel.metrics.exact import Exact
from app.kernel.metrics.proportion import ConfusionCells, LinearMap, Proportion
from app.kernel.numerics import scipy_bridge
from app.kernel.numerics.arrays import Array, ratio, total

_overall = partial(
    metric,
    scope=Scope.OVERALL,
    prevalence=Prevalence.SENSITIVE,
    undefined=(NO_SAMPLES,),
    symmetric=True,
    references=("haghighi2018",),
)
_error = partial(_overall, orientation=Orientation.LOWER, ideal=0.0)


def _of_pooled(n_classes: int) -> LinearMap:
    """Line from accuracy to a rate of the pooled K one-vs-rest tables, in which only n of (K - 1) n can be wrong."""
    return LinearMap((n_classes - 2) / (n_classes - 1), 1.0 / (n_classes - 1))


@_overall(
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


@_error(
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


@_error(
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


@_overall(
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


@_error(
    name="micro fall-out",
    formula=r"\frac{\sum_k FP_k}{\sum_k N_k}",
    sentence="False positive rate of the pooled one-vs-rest counts.",
    elsewhere={"pycm": "FPR Micro"},
    proportion=Proportion(ConfusionCells.WRONG, ConfusionCells.ALL, lambda k: LinearMap(0.0, 1.0 / (k - 1))),
    exact=Exact(lambda m: (m.n - m.correct) / ((len(m.classes) - 1) * m.n)),
)
def micro_fpr(t: Table) -> Array:
    return t.wrong / ((t.n_classes - 1) * t.n)


@_error(
    name="micro miss rate",
    formula=r"\frac{\sum_k FN_k}{\sum_k P_k}",
    sentence="Miss rate of the pooled one-vs-rest counts; equals the error rate.",
    elsewhere={"pycm": "FNR Micro"},
    proportion=Proportion(ConfusionCells.WRONG, ConfusionCells.ALL),
    exact=Exact(lambda m: 1 - m.correct / m.n),
)
def micro_fnr(t: Table) -> Array:
    return t.wrong / t.n


@_overall(
    name="micro NPV",
    formula=r"\frac{\sum_k TN_k}{\sum_k(n-T_k)}",
    sentence="Negative predictive value of the pooled one-vs-rest counts.",
    elsewhere={"pycm": "NPV Micro"},
    proportion=Proportion(ConfusionCells.RIGHT, ConfusionCells.ALL, _of_pooled),
    exact=Exact(lambda m: m.mean(lambda c: c.tn) * len(m.classes) / ((len(m.classes) - 1) * m.n)),
)
def micro_npv(t: Table) -> Array:
    return total(t.tn) / ((t.n_classes - 1) * t.n)


@_overall(
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


@_error(
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


@_overall(
    name="largest prevalence",
    symbol="NIR",
    ideal=None,
    orientation=Orientation.DESCRIPTIVE,
    formula=r"\max_k\frac{P_k}{n}",
    sentence="Accuracy of always predicting the most frequent class (no-information rate).",
    elsewhere={"pycm": "NIR"},
    symmetric=False,
)
def no_information_rate(t: Table) -> Array:
    return t.largest / t.n


@_error(
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


_of_labels = partial(_overall, of_labels=True, references=("tsoumakas2010",))


@_of_labels(
    name="micro precision",
    formula=r"\frac{\sum_k TP_k}{\sum_k T_k}",
    sentence="Share of all predicted labels that are right.",
    elsewhere={"sklearn": "precision_score(average=micro)"},
    undefined=(overall("no_predicted_labels", "no label is predicted", lambda t: total(t.predicted) == 0),),
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
        overall(
            "no_labels",
            "no sample has a label, and none is predicted",
            lambda t: (t.n == 0) & (total(t.predicted) == 0),
        ),
    ),
)
def micro_f1(t: Table) -> Array:
    return ratio(2.0 * total(t.tp), t.n + total(t.predicted))
