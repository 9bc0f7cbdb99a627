"""Counts and plain rates of each class against the rest."""

from functools import partial

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Orientation, Prevalence, Scope, metric
from app.kernel.metrics.conditions import ALWAYS_PREDICTED, NEVER_PREDICTED, NO_ACTUAL, NO_REST, NO_SAMPLES
from app.kernel.metrics.exact import Exact
from app.kernel.metrics.proportion import ConfusionCells, Proportion
from app.kernel.numerics.arrays import Array

_count = partial(
    metric,
    scope=Scope.CLASS,
    prevalence=Prevalence.SENSITIVE,
    range=(0.0, None),
    ideal=None,
    orientation=Orientation.DESCRIPTIVE,
    references=("haghighi2018",),
    degree=1,
)
_rate = partial(metric, scope=Scope.CLASS, orientation=Orientation.HIGHER)
_error = partial(metric, scope=Scope.CLASS, orientation=Orientation.LOWER, ideal=0.0)


@_count(
    name="true positives",
    symbol="TP",
    formula=r"n_{kk}",
    sentence="Members of the class that were recognised.",
    elsewhere={"pycm": "TP"},
    orientation=Orientation.HIGHER,
    symmetric=True,
)
def tp(t: Table) -> Array:
    return t.tp


@_count(
    name="false negatives",
    symbol="FN",
    formula=r"P_k - n_{kk}",
    sentence="Members of the class that were missed.",
    elsewhere={"pycm": "FN"},
    orientation=Orientation.LOWER,
    ideal=0.0,
)
def fn(t: Table) -> Array:
    return t.fn


@_count(
    name="false positives",
    symbol="FP",
    formula=r"T_k - n_{kk}",
    sentence="Samples of other classes that were taken for this one.",
    elsewhere={"pycm": "FP"},
    orientation=Orientation.LOWER,
    ideal=0.0,
)
def fp(t: Table) -> Array:
    return t.fp


@_count(
    name="true negatives",
    symbol="TN",
    formula=r"n - P_k - T_k + n_{kk}",
    sentence="Samples of other classes that were not taken for this one.",
    elsewhere={"pycm": "TN"},
    orientation=Orientation.HIGHER,
    symmetric=True,
)
def tn(t: Table) -> Array:
    return t.tn


@_count(
    name="support",
    symbol="P",
    formula=r"P_k = \sum_j n_{kj}",
    sentence="Samples that really belong to the class.",
    elsewhere={"pycm": "P", "sklearn": "precision_recall_fscore_support"},
)
def support(t: Table) -> Array:
    return t.actual


@_count(
    name="actual non-members",
    symbol="N",
    formula=r"N_k = n - P_k",
    sentence="Samples that really belong to another class.",
    elsewhere={"pycm": "N"},
)
def n_negative(t: Table) -> Array:
    return t.rest


@_count(
    name="predicted members",
    symbol="T",
    formula=r"T_k = \sum_i n_{ik}",
    sentence="Samples that were predicted as the class.",
    elsewhere={"pycm": "TOP"},
)
def predicted_positive(t: Table) -> Array:
    return t.predicted


@_count(
    name="predicted non-members",
    formula=r"n - T_k",
    sentence="Samples that were predicted as another class.",
    elsewhere={"pycm": "TON"},
)
def predicted_negative(t: Table) -> Array:
    return t.predicted_rest


@_count(
    name="prevalence",
    symbol=r"\pi",
    range=(0.0, 1.0),
    degree=0,
    formula=r"\frac{P_k}{n}",
    sentence="Share of the samples that belong to the class.",
    elsewhere={"pycm": "PRE"},
    undefined=(NO_SAMPLES,),
    proportion=Proportion(ConfusionCells.ACTUAL, ConfusionCells.ALL),
)
def prevalence(t: Table) -> Array:
    return t.prevalence


@_count(
    name="predicted prevalence",
    range=(0.0, 1.0),
    degree=0,
    formula=r"\frac{T_k}{n}",
    sentence="Share of the samples that were predicted as the class.",
    elsewhere={"pycm": "TOPR"},
    undefined=(NO_SAMPLES,),
    proportion=Proportion(ConfusionCells.PREDICTED, ConfusionCells.ALL),
    exact=Exact(lambda c: c.predicted / c.n),
)
def predicted_prevalence(t: Table) -> Array:
    return t.predicted / t.n_each


@_rate(
    name="recall",
    symbol="TPR",
    prevalence=Prevalence.INSENSITIVE,
    formula=r"\frac{TP}{TP+FN}",
    sentence="Share of the class that was recognised.",
    aliases=("sensitivity", "tpr", "true_positive_rate", "hit_rate"),
    elsewhere={
        "sklearn": "recall_score",
        "pycm": "TPR",
        "imblearn": "sensitivity_score",
        "torchmetrics": "MulticlassRecall(average=none)",
    },
    undefined=(NO_ACTUAL,),
    proportion=Proportion(ConfusionCells.TP, ConfusionCells.ACTUAL),
    references=("aguilar2025", "wu2025", "martin2022", "beddar2025"),
    exact=Exact(lambda c: c.tp / c.actual),
)
def recall(t: Table) -> Array:
    return t.recall


@_error(
    name="false negative rate",
    symbol="FNR",
    prevalence=Prevalence.INSENSITIVE,
    formula=r"\frac{FN}{TP+FN}",
    sentence="Share of the class that was missed.",
    aliases=("miss_rate", "false_negative_rate"),
    elsewhere={"pycm": "FNR"},
    undefined=(NO_ACTUAL,),
    proportion=Proportion(ConfusionCells.FN, ConfusionCells.ACTUAL),
    references=("beddar2025",),
    exact=Exact(lambda c: c.fn / c.actual),
)
def fnr(t: Table) -> Array:
    return t.fnr


@_rate(
    name="specificity",
    symbol="TNR",
    prevalence=Prevalence.INSENSITIVE_BINARY,
    formula=r"\frac{TN}{TN+FP}",
    sentence="Share of the other classes that was kept out. With more than two classes it depends on the mix of "
    "the others.",
    aliases=("tnr", "true_negative_rate", "selectivity"),
    elsewhere={
        "pycm": "TNR",
        "imblearn": "specificity_score",
        "torchmetrics": "MulticlassSpecificity(average=none)",
    },
    undefined=(NO_REST,),
    proportion=Proportion(ConfusionCells.TN, ConfusionCells.REST),
    references=("aguilar2025", "wu2025", "martin2022", "beddar2025"),
    exact=Exact(lambda c: c.tn / c.rest),
)
def specificity(t: Table) -> Array:
    return t.specificity


@_error(
    name="false positive rate",
    symbol="FPR",
    prevalence=Prevalence.INSENSITIVE_BINARY,
    formula=r"\frac{FP}{TN+FP}",
    sentence="Share of the other classes that was taken for this one.",
    aliases=("fall_out", "false_positive_rate"),
    elsewhere={"pycm": "FPR"},
    undefined=(NO_REST,),
    proportion=Proportion(ConfusionCells.FP, ConfusionCells.REST),
    references=("aguilar2025", "beddar2025"),
    exact=Exact(lambda c: c.fp / c.rest),
)
def fpr(t: Table) -> Array:
    return t.fpr


@_rate(
    name="precision",
    symbol="PPV",
    prevalence=Prevalence.SENSITIVE,
    formula=r"\frac{TP}{TP+FP}",
    sentence="Share of the predictions of the class that are right.",
    aliases=("ppv", "positive_predictive_value"),
    elsewhere={
        "sklearn": "precision_score",
        "pycm": "PPV",
        "torchmetrics": "MulticlassPrecision(average=none)",
    },
    undefined=(NEVER_PREDICTED,),
    proportion=Proportion(ConfusionCells.TP, ConfusionCells.PREDICTED),
    references=("aguilar2025", "wu2025", "martin2022", "beddar2025"),
    exact=Exact(lambda c: c.tp / c.predicted),
)
def precision(t: Table) -> Array:
    return t.precision


@_rate(
    name="negative predictive value",
    symbol="NPV",
    prevalence=Prevalence.SENSITIVE,
    formula=r"\frac{TN}{TN+FN}",
    sentence="Share of the predictions of other classes that are right about not being this class.",
    aliases=("negative_predictive_value", "precision_negative"),
    elsewhere={"pycm": "NPV", "torchmetrics": "MulticlassNegativePredictiveValue(average=none)"},
    undefined=(ALWAYS_PREDICTED,),
    proportion=Proportion(ConfusionCells.TN, ConfusionCells.PREDICTED_REST),
    references=("wu2025", "martin2022", "beddar2025"),
    exact=Exact(lambda c: c.tn / c.predicted_rest),
)
def npv(t: Table) -> Array:
    return t.npv


@_error(
    name="false discovery rate",
    symbol="FDR",
    prevalence=Prevalence.SENSITIVE,
    formula=r"\frac{FP}{TP+FP}",
    sentence="Share of the predictions of the class that are wrong.",
    aliases=("false_discovery_rate",),
    elsewhere={"pycm": "FDR"},
    undefined=(NEVER_PREDICTED,),
    proportion=Proportion(ConfusionCells.FP, ConfusionCells.PREDICTED),
    references=("beddar2025",),
    exact=Exact(lambda c: c.fp / c.predicted),
)
def fdr(t: Table) -> Array:
    return t.fp / t.predicted


@_error(
    name="false omission rate",
    symbol="FOR",
    prevalence=Prevalence.SENSITIVE,
    formula=r"\frac{FN}{TN+FN}",
    sentence="Share of the predictions of other classes that hide a member of this one.",
    aliases=("for",),
    elsewhere={"pycm": "FOR"},
    undefined=(ALWAYS_PREDICTED,),
    proportion=Proportion(ConfusionCells.FN, ConfusionCells.PREDICTED_REST),
    references=("haghighi2018",),
    exact=Exact(lambda c: c.fn / c.predicted_rest),
)
def false_omission_rate(t: Table) -> Array:
    return t.fn / t.predicted_rest


@_rate(
    name="one-vs-rest accuracy",
    prevalence=Prevalence.SENSITIVE,
    formula=r"\frac{TP+TN}{n}",
    sentence="Share of the samples on the right side of the question 'this class or not'.",
    elsewhere={"pycm": "ACC"},
    undefined=(NO_SAMPLES,),
    symmetric=True,
    proportion=Proportion(ConfusionCells.RIGHT, ConfusionCells.ALL),
    references=("haghighi2018",),
    exact=Exact(lambda c: (c.tp + c.tn) / c.n),
)
def accuracy_ovr(t: Table) -> Array:
    return t.accuracy_ovr


@_error(
    name="one-vs-rest error rate",
    prevalence=Prevalence.SENSITIVE,
    formula=r"\frac{FP+FN}{n}",
    sentence="Share of the samples on the wrong side of the question 'this class or not'.",
    elsewhere={"pycm": "ERR"},
    undefined=(NO_SAMPLES,),
    symmetric=True,
    proportion=Proportion(ConfusionCells.WRONG, ConfusionCells.ALL),
    references=("haghighi2018",),
    exact=Exact(lambda c: c.errors / c.n),
)
def error_rate_ovr(t: Table) -> Array:
    return t.errors / t.n_each
