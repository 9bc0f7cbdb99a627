"""Entropies, confusion entropies and the contingency-table statistics of the whole matrix. Entropies are in bits."""

from functools import partial
from math import log

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import CLASSES_ONLY, Orientation, Prevalence, Scope, metric
from app.kernel.metrics.conditions import (
    ABSENT,
    AN_EMPTY_CLASS_IS_INFINITE,
    INFINITE_MARGIN_RATIO,
    NEVER_PREDICTED,
    NO_ACTUAL,
    NO_SAMPLES,
    ONE_ACTUAL_CLASS,
    ONE_PREDICTED_CLASS,
)
from app.kernel.metrics.references import CRAMER, LAMBDA, PEARSON_C
from app.kernel.numerics.arrays import Array, smallest, total

_LN2 = log(2.0)
_statistic = partial(
    metric,
    scope=Scope.OVERALL,
    prevalence=Prevalence.SENSITIVE,
    undefined=(NO_SAMPLES,),
)
_entropy = partial(_statistic, range=(0.0, None), orientation=Orientation.DESCRIPTIVE)
_confusion = partial(
    metric,
    prevalence=Prevalence.SENSITIVE,
    range=(0.0, None),
    orientation=Orientation.LOWER,
    symmetric=True,
)


@_confusion(
    scope=Scope.CLASS,
    name="confusion entropy of the class",
    symbol="CEN",
    formula=r"-\sum_{j\ne k}\left[p_{kj}\log_b p_{kj}+p_{jk}\log_b p_{jk}\right],\ p=\frac{n}{P_k+T_k},\ b=2(K-1)",
    sentence="How evenly the confusions of the class are spread over the other classes; 0 without confusion.",
    aliases=("cen",),
    elsewhere={"pycm": "CEN"},
    undefined=(ABSENT,),
    references=("wei2010", "aguilar2025"),
    also=CLASSES_ONLY,
)
def confusion_entropy(t: Table) -> Array:
    return t.margin_entropy / (t.margin_shares * log(2.0 * (t.n_classes - 1)))


@_confusion(
    scope=Scope.CLASS,
    name="modified confusion entropy of the class",
    symbol="MCEN",
    formula=r"-\sum_{j\ne k}\left[p_{kj}\log_b p_{kj}+p_{jk}\log_b p_{jk}\right],\ p=\frac{n}{P_k+T_k-n_{kk}}",
    sentence="Confusion entropy with the correct samples counted once, which keeps it monotone for two classes.",
    aliases=("mcen",),
    elsewhere={"pycm": "MCEN"},
    undefined=(ABSENT,),
    references=("delgado2019",),
    also=CLASSES_ONLY,
)
def modified_confusion_entropy(t: Table) -> Array:
    return t.union_entropy / (t.union_shares * log(2.0 * (t.n_classes - 1)))


@_confusion(
    scope=Scope.OVERALL,
    name="overall confusion entropy",
    formula=r"\sum_k\frac{P_k+T_k}{2n}CEN_k",
    sentence="Confusion entropy averaged over the classes by their share.",
    elsewhere={"pycm": "Overall CEN"},
    undefined=(NO_SAMPLES,),
    references=("wei2010",),
)
def overall_confusion_entropy(t: Table) -> Array:
    return total(t.margin_entropy) / (2.0 * log(2.0 * (t.n_classes - 1)))


@_confusion(
    scope=Scope.OVERALL,
    name="overall modified confusion entropy",
    formula=r"\sum_k\frac{P_k+T_k-n_{kk}}{2n-a\sum n_{kk}}MCEN_k,\ a=1\ (0\ \text{for}\ K=2)",
    sentence="Modified confusion entropy averaged over the classes by their share.",
    elsewhere={"pycm": "Overall MCEN"},
    undefined=(NO_SAMPLES,),
    references=("delgado2019",),
)
def overall_modified_confusion_entropy(t: Table) -> Array:
    mass = 2.0 - t.accuracy if t.n_classes > 2 else 2.0
    return total(t.union_entropy) / (mass * log(2.0 * (t.n_classes - 1)))


@_entropy(
    name="entropy of the predictions",
    formula=r"-\sum_k\frac{T_k}{n}\log_2\frac{T_k}{n}",
    sentence="Bits needed to name a predicted class.",
    elsewhere={"pycm": "Response Entropy"},
)
def response_entropy(t: Table) -> Array:
    return abs(total(t.predicted_logs)) / _LN2


@_entropy(
    name="entropy of the actual classes",
    formula=r"-\sum_k\frac{P_k}{n}\log_2\frac{P_k}{n}",
    sentence="Bits needed to name an actual class.",
    elsewhere={"pycm": "Reference Entropy"},
)
def reference_entropy(t: Table) -> Array:
    return abs(total(t.actual_logs)) / _LN2


@_entropy(
    name="cross entropy of the margins",
    formula=r"-\sum_k\frac{P_k}{n}\log_2\frac{T_k}{n}",
    sentence="Bits needed to name an actual class with a code made for the predicted shares.",
    elsewhere={"pycm": "Cross Entropy"},
    undefined=(NO_SAMPLES, INFINITE_MARGIN_RATIO),
)
def cross_entropy_margins(t: Table) -> Array:
    return abs(t.weighted_sum(np.log(t.predicted_prevalence))) / (t.n * _LN2)


@_entropy(
    name="joint entropy",
    formula=r"-\sum_{ij}\frac{n_{ij}}{n}\log_2\frac{n_{ij}}{n}",
    sentence="Bits needed to name a cell of the matrix.",
    elsewhere={"pycm": "Joint Entropy"},
    symmetric=True,
)
def joint_entropy(t: Table) -> Array:
    return abs(total(t.row_logs)) / _LN2


@_entropy(
    name="entropy of prediction given actual",
    formula=r"-\sum_{ij}\frac{n_{ij}}{n}\log_2\frac{n_{ij}}{P_i}",
    sentence="Bits still needed to name the predicted class once the actual one is known.",
    elsewhere={"pycm": "Conditional Entropy"},
)
def conditional_entropy(t: Table) -> Array:
    return total(t.actual_logs - t.row_logs) / _LN2


@_statistic(
    name="mutual information",
    range=(0.0, None),
    formula=r"\sum_{ij}\frac{n_{ij}}{n}\log_2\frac{n_{ij}\,n}{P_iT_j}",
    sentence="Bits that a prediction tells about the actual class.",
    elsewhere={"pycm": "Mutual Information"},
    chance_corrected=True,
    symmetric=True,
)
def mutual_information(t: Table) -> Array:
    return t.mutual_information / _LN2


@_statistic(
    name="Kullback-Leibler divergence of the margins",
    range=(0.0, None),
    orientation=Orientation.LOWER,
    formula=r"\sum_k\frac{P_k}{n}\log_2\frac{P_k}{T_k}",
    sentence="Bits lost by taking the predicted class prevalence for the actual one.",
    elsewhere={"pycm": "KL Divergence"},
    undefined=(NO_SAMPLES, INFINITE_MARGIN_RATIO),
)
def kl_divergence_margins(t: Table) -> Array:
    return 0.0 - t.weighted_sum(np.log1p(t.surplus / t.actual)) / (t.n * _LN2)


@_statistic(
    name="relative classifier information",
    symbol="RCI",
    formula=r"\frac{MI}{H_{actual}}",
    sentence="Share of the uncertainty about the actual class that a prediction removes.",
    elsewhere={"pycm": "RCI"},
    undefined=(NO_SAMPLES, ONE_ACTUAL_CLASS),
    chance_corrected=True,
    references=("sindhwani2001",),
)
def relative_classifier_information(t: Table) -> Array:
    return t.mutual_information / abs(total(t.actual_logs))


@_statistic(
    name="Goodman-Kruskal lambda, actual from predicted",
    symbol=r"\lambda_A",
    formula=r"\frac{\sum_j\max_i n_{ij}-\max_i P_i}{n-\max_i P_i}",
    sentence="Share of the errors of guessing the actual class that knowing the prediction removes.",
    elsewhere={"pycm": "Lambda A"},
    undefined=(ONE_ACTUAL_CLASS,),
    chance_corrected=True,
    scales=(LAMBDA,),
    references=("goodman1954",),
)
def lambda_a(t: Table) -> Array:
    return 1.0 - total(t.predicted - np.maximum.reduce(t.counts, axis=-2)) / (t.n - t.largest)


@_statistic(
    name="Goodman-Kruskal lambda, predicted from actual",
    symbol=r"\lambda_B",
    formula=r"\frac{\sum_i\max_j n_{ij}-\max_j T_j}{n-\max_j T_j}",
    sentence="Share of the errors of guessing the prediction that knowing the actual class removes.",
    elsewhere={"pycm": "Lambda B"},
    undefined=(ONE_PREDICTED_CLASS,),
    chance_corrected=True,
    scales=(LAMBDA,),
    references=("goodman1954",),
)
def lambda_b(t: Table) -> Array:
    return 1.0 - total(t.actual - np.maximum.reduce(t.counts, axis=-1)) / t.others_predicted


_contingency = partial(
    _statistic,
    undefined=(NO_ACTUAL, NEVER_PREDICTED),
    chance_corrected=True,
    symmetric=True,
    references=("pearson1900",),
)


@_contingency(
    name="Pearson chi-squared",
    symbol=r"\chi^2",
    range=(0.0, None),
    formula=r"\sum_{ij}\frac{(n_{ij}-P_iT_j/n)^2}{P_iT_j/n}",
    sentence="Departure of the matrix from independence of prediction and truth; grows with the sample.",
    elsewhere={"pycm": "Chi-Squared"},
    degree=None,
    about_sample=True,
)
def chi_squared(t: Table) -> Array:
    return t.n * t.phi_squared


@_statistic(
    name="degrees of freedom of chi-squared",
    prevalence=Prevalence.INSENSITIVE,
    range=(1.0, None),
    orientation=Orientation.DESCRIPTIVE,
    formula=r"(K-1)^2",
    sentence="Degrees of freedom of the chi-squared statistic.",
    elsewhere={"pycm": "Chi-Squared DF"},
    undefined=(),
    symmetric=True,
    about_sample=True,
)
def chi_squared_df(t: Table) -> Array:
    # One value for every matrix of a batch.
    return t.n * 0.0 + (t.n_classes - 1) ** 2


@_contingency(
    name="phi squared",
    symbol=r"\varphi^2",
    range=(0.0, None),
    formula=r"\frac{\chi^2}{n}",
    sentence="Chi-squared per sample.",
    elsewhere={"pycm": "Phi-Squared"},
)
def phi_squared(t: Table) -> Array:
    return t.phi_squared


@_contingency(
    name="Cramer's V",
    symbol="V",
    formula=r"\sqrt{\frac{\varphi^2}{K-1}}",
    sentence="Strength of association between prediction and truth, right or wrong.",
    elsewhere={"pycm": "Cramer V", "torchmetrics": "CramersV"},
    scales=(CRAMER,),
    references=("cramer1946",),
)
def cramer_v(t: Table) -> Array:
    return np.sqrt(t.phi_squared / (t.n_classes - 1))


@_contingency(
    name="Pearson contingency coefficient",
    symbol="C",
    ideal=None,
    formula=r"\sqrt{\frac{\chi^2}{n+\chi^2}}",
    sentence="Association between prediction and truth; its largest value is the square root of (K-1)/K.",
    elsewhere={"pycm": "Pearson C", "torchmetrics": "PearsonsContingencyCoefficient"},
    scales=(PEARSON_C,),
)
def pearson_c(t: Table) -> Array:
    return np.sqrt(t.phi_squared / (1.0 + t.phi_squared))


@_entropy(
    name="imbalance ratio",
    symbol="IR",
    range=(1.0, None),
    formula=r"\frac{\max_k P_k}{\min_k P_k}",
    sentence="Size of the largest class over that of the smallest.",
    undefined=(NO_SAMPLES, AN_EMPTY_CLASS_IS_INFINITE),
    references=("aguilar2025", "aguilar2024"),
)
def imbalance_ratio(t: Table) -> Array:
    return t.largest / smallest(t.actual)


@_entropy(
    name="normalised entropy of the actual classes",
    range=(0.0, 1.0),
    formula=r"\frac{H(P/n)}{\log_2 K}",
    sentence="Evenness of the class sizes: 1 when balanced, near 0 when one class is nearly all there is.",
    aliases=("class_balance",),
    references=("aguilar2024",),
)
def normalized_reference_entropy(t: Table) -> Array:
    return abs(total(t.actual_logs)) / log(t.n_classes)
