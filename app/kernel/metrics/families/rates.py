"""Counts and plain rates of each class against the rest: what cells of the table are counted, and among what."""

from typing import Any

from app.kernel.matrix.table import OneVsRest, Table
from app.kernel.metrics.card import Metric, Orientation, Prevalence, Scope, formula, metric
from app.kernel.metrics.conditions import ALWAYS_PREDICTED, NEVER_PREDICTED, NO_ACTUAL, NO_REST, NO_SAMPLES
from app.kernel.metrics.proportion import ConfusionCells, Proportion
from app.kernel.numerics.arrays import Array

# Why a share of these does not exist, and what it does where whole classes are replicated.
_AMONG = {
    ConfusionCells.ALL: (NO_SAMPLES, Prevalence.SENSITIVE),
    ConfusionCells.ACTUAL: (NO_ACTUAL, Prevalence.INSENSITIVE),
    ConfusionCells.REST: (NO_REST, Prevalence.INSENSITIVE_BINARY),
    ConfusionCells.PREDICTED: (NEVER_PREDICTED, Prevalence.SENSITIVE),
    ConfusionCells.PREDICTED_REST: (ALWAYS_PREDICTED, Prevalence.SENSITIVE),
}


def _orientation(cells: ConfusionCells) -> Orientation:
    """Orientation of a count or a share of some cells: right answers are good, wrong ones bad, and margins neither."""
    if cells in ConfusionCells.RIGHT:
        return Orientation.HIGHER
    return Orientation.LOWER if cells in ConfusionCells.WRONG else Orientation.DESCRIPTIVE


def _count(key: str, cells: ConfusionCells, **facts: Any) -> Metric[Table]:
    """Number of samples in some cells."""
    known: dict[str, Any] = {
        "scope": Scope.CLASS,
        "prevalence": Prevalence.SENSITIVE,
        "orientation": _orientation(cells),
        "range": (0.0, None),
        "degree": 1,
    }

    def count(t: Table) -> Array:
        counted: Array = getattr(t, cells.column)
        return counted

    return metric(key=key, **known | facts)(count)


def _rate(key: str, hits: ConfusionCells, among: ConfusionCells, **facts: Any) -> Metric[Table]:
    """Share of the samples in some cells that are in others."""
    above, below = hits.column, among.column

    def share(c: Any) -> Any:
        return getattr(c, above) / getattr(c, below)

    # Many are shared with other metrics.
    of = (lambda c: getattr(c, key)) if hasattr(OneVsRest, key) else share
    why, prevalence = _AMONG[among]
    known: dict[str, Any] = {
        "prevalence": prevalence,
        "undefined": (why,),
        "proportion": Proportion(hits, among),
        "orientation": _orientation(hits),
    }
    return formula(key, of, **known | facts)


tp = _count(
    "tp",
    ConfusionCells.TP,
    name="true positives",
    symbol="TP",
    formula=r"n_{kk}",
    sentence="Members of the class that were recognised.",
    elsewhere={"pycm": "TP"},
    symmetric=True,
)
fn = _count(
    "fn",
    ConfusionCells.FN,
    name="false negatives",
    symbol="FN",
    formula=r"P_k - n_{kk}",
    sentence="Members of the class that were missed.",
    elsewhere={"pycm": "FN"},
)
fp = _count(
    "fp",
    ConfusionCells.FP,
    name="false positives",
    symbol="FP",
    formula=r"T_k - n_{kk}",
    sentence="Samples of other classes that were taken for this one.",
    elsewhere={"pycm": "FP"},
)
tn = _count(
    "tn",
    ConfusionCells.TN,
    name="true negatives",
    symbol="TN",
    formula=r"n - P_k - T_k + n_{kk}",
    sentence="Samples of other classes that were not taken for this one.",
    elsewhere={"pycm": "TN"},
    symmetric=True,
)
support = _count(
    "support",
    ConfusionCells.ACTUAL,
    name="support",
    symbol="P",
    formula=r"P_k = \sum_j n_{kj}",
    sentence="Samples that really belong to the class.",
    elsewhere={"pycm": "P", "sklearn": "precision_recall_fscore_support"},
)
n_negative = _count(
    "n_negative",
    ConfusionCells.REST,
    name="actual non-members",
    symbol="N",
    formula=r"N_k = n - P_k",
    sentence="Samples that really belong to another class.",
    elsewhere={"pycm": "N"},
)
predicted_positive = _count(
    "predicted_positive",
    ConfusionCells.PREDICTED,
    name="predicted members",
    symbol="T",
    formula=r"T_k = \sum_i n_{ik}",
    sentence="Samples that were predicted as the class.",
    elsewhere={"pycm": "TOP"},
)
predicted_negative = _count(
    "predicted_negative",
    ConfusionCells.PREDICTED_REST,
    name="predicted non-members",
    formula=r"n - T_k",
    sentence="Samples that were predicted as another class.",
    elsewhere={"pycm": "TON"},
)
prevalence = _rate(
    "prevalence",
    ConfusionCells.ACTUAL,
    ConfusionCells.ALL,
    name="prevalence",
    symbol=r"\pi",
    formula=r"\frac{P_k}{n}",
    sentence="Share of the samples that belong to the class.",
    elsewhere={"pycm": "PRE"},
    exact=None,
)
predicted_prevalence = _rate(
    "predicted_prevalence",
    ConfusionCells.PREDICTED,
    ConfusionCells.ALL,
    name="predicted prevalence",
    formula=r"\frac{T_k}{n}",
    sentence="Share of the samples that were predicted as the class.",
    elsewhere={"pycm": "TOPR"},
)
recall = _rate(
    "recall",
    ConfusionCells.TP,
    ConfusionCells.ACTUAL,
    name="recall",
    symbol="TPR",
    formula=r"\frac{TP}{TP+FN}",
    sentence="Share of the class that was recognised.",
    aliases=("sensitivity", "tpr", "true_positive_rate", "hit_rate"),
    elsewhere={
        "sklearn": "recall_score",
        "pycm": "TPR",
        "imblearn": "sensitivity_score",
        "torchmetrics": "MulticlassRecall(average=none)",
    },
    references=("aguilar2025", "wu2025", "martin2022", "beddar2025"),
)
fnr = _rate(
    "fnr",
    ConfusionCells.FN,
    ConfusionCells.ACTUAL,
    name="false negative rate",
    symbol="FNR",
    formula=r"\frac{FN}{TP+FN}",
    sentence="Share of the class that was missed.",
    aliases=("miss_rate", "false_negative_rate"),
    elsewhere={"pycm": "FNR"},
    references=("beddar2025",),
)
specificity = _rate(
    "specificity",
    ConfusionCells.TN,
    ConfusionCells.REST,
    name="specificity",
    symbol="TNR",
    formula=r"\frac{TN}{TN+FP}",
    sentence="Share of the other classes that was kept out. With more than two classes it depends on the mix of "
    "the others.",
    aliases=("tnr", "true_negative_rate", "selectivity"),
    elsewhere={
        "pycm": "TNR",
        "imblearn": "specificity_score",
        "torchmetrics": "MulticlassSpecificity(average=none)",
    },
    references=("aguilar2025", "wu2025", "martin2022", "beddar2025"),
)
fpr = _rate(
    "fpr",
    ConfusionCells.FP,
    ConfusionCells.REST,
    name="false positive rate",
    symbol="FPR",
    formula=r"\frac{FP}{TN+FP}",
    sentence="Share of the other classes that was taken for this one.",
    aliases=("fall_out", "false_positive_rate"),
    elsewhere={"pycm": "FPR"},
    references=("aguilar2025", "beddar2025"),
)
precision = _rate(
    "precision",
    ConfusionCells.TP,
    ConfusionCells.PREDICTED,
    name="precision",
    symbol="PPV",
    formula=r"\frac{TP}{TP+FP}",
    sentence="Share of the predictions of the class that are right.",
    aliases=("ppv", "positive_predictive_value"),
    elsewhere={
        "sklearn": "precision_score",
        "pycm": "PPV",
        "torchmetrics": "MulticlassPrecision(average=none)",
    },
    references=("aguilar2025", "wu2025", "martin2022", "beddar2025"),
)
npv = _rate(
    "npv",
    ConfusionCells.TN,
    ConfusionCells.PREDICTED_REST,
    name="negative predictive value",
    symbol="NPV",
    formula=r"\frac{TN}{TN+FN}",
    sentence="Share of the predictions of other classes that are right about not being this class.",
    aliases=("negative_predictive_value", "precision_negative"),
    elsewhere={"pycm": "NPV", "torchmetrics": "MulticlassNegativePredictiveValue(average=none)"},
    references=("wu2025", "martin2022", "beddar2025"),
)
fdr = _rate(
    "fdr",
    ConfusionCells.FP,
    ConfusionCells.PREDICTED,
    name="false discovery rate",
    symbol="FDR",
    formula=r"\frac{FP}{TP+FP}",
    sentence="Share of the predictions of the class that are wrong.",
    aliases=("false_discovery_rate",),
    elsewhere={"pycm": "FDR"},
    references=("beddar2025",),
)
false_omission_rate = _rate(
    "false_omission_rate",
    ConfusionCells.FN,
    ConfusionCells.PREDICTED_REST,
    name="false omission rate",
    symbol="FOR",
    formula=r"\frac{FN}{TN+FN}",
    sentence="Share of the predictions of other classes that hide a member of this one.",
    aliases=("for",),
    elsewhere={"pycm": "FOR"},
)
accuracy_ovr = _rate(
    "accuracy_ovr",
    ConfusionCells.RIGHT,
    ConfusionCells.ALL,
    name="one-vs-rest accuracy",
    formula=r"\frac{TP+TN}{n}",
    sentence="Share of the samples on the right side of the question 'this class or not'.",
    elsewhere={"pycm": "ACC"},
    symmetric=True,
)
error_rate_ovr = _rate(
    "error_rate_ovr",
    ConfusionCells.WRONG,
    ConfusionCells.ALL,
    name="one-vs-rest error rate",
    formula=r"\frac{FP+FN}{n}",
    sentence="Share of the samples on the wrong side of the question 'this class or not'.",
    elsewhere={"pycm": "ERR"},
    symmetric=True,
)
