"""Averages over the classes that other libraries have and no report: they are there on request."""

from functools import partial

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import OVER_LABELS, Prevalence, Scope, metric
from app.kernel.metrics.conditions import NO_SAMPLES, where
from app.kernel.metrics.families.overall.averages import ONE_CLASS
from app.kernel.metrics.missing import UNDEFINED, filled
from app.kernel.numerics.arrays import Array

_overall = partial(
    metric,
    scope=Scope.OVERALL,
    prevalence=Prevalence.SENSITIVE,
    references=("pedregosa2011",),
    on_request=True,
)


@_overall(
    name="micro Jaccard",
    formula=r"\frac{\sum_k TP_k}{\sum_k(TP_k+FP_k+FN_k)}",
    sentence="Jaccard index of the counts of all classes together: accuracy over 2 less accuracy.",
    elsewhere={"sklearn": "jaccard_score(average=micro)", "torchmetrics": "MulticlassJaccardIndex(average=micro)"},
    undefined=(NO_SAMPLES,),
    symmetric=True,
    also=OVER_LABELS,
)
def micro_jaccard(t: Table) -> Array:
    return t.correct / (t.n + t.false_alarms)


@_overall(
    name="prevalence-weighted specificity",
    formula=r"\sum_k\frac{P_k}{n}TNR_k",
    sentence="Per-class specificity averaged by class frequency.",
    elsewhere={
        "imblearn": "specificity_score(average=weighted)",
        "torchmetrics": "MulticlassSpecificity(average=weighted)",
    },
    parameters=(UNDEFINED,),
    undefined=(NO_SAMPLES, ONE_CLASS),
)
def weighted_specificity(t: Table, undefined: str = "strict") -> Array:
    return t.weighted_sum(filled(t.specificity, undefined)) / t.n


@_overall(
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
