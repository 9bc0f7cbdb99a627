"""Parts of the area under the ROC curve, and the standard error of all of it; each where an expression asks for it."""

from functools import partial

import numpy as np

from app.kernel.metrics.card import Inputs, Orientation, Prevalence, Scope, metric
from app.kernel.metrics.conditions import NO_ACTUAL, NO_REST, WEIGHTED
from app.kernel.metrics.families.probabilities import ranking
from app.kernel.metrics.parameters import Choice, Number
from app.kernel.numerics.arrays import Array, total
from app.kernel.samples.partial_areas import (
    area_between,
    area_between_recalls,
    hanley_mcneil_error,
    mean_over_log_fpr,
    standardised,
    standardised_of_recalls,
)
from app.kernel.samples.scores import Scores

_area = partial(
    metric,
    scope=Scope.CLASS,
    inputs=Inputs.PROBABILITIES,
    prevalence=Prevalence.INSENSITIVE_BINARY,
    undefined=(NO_ACTUAL, NO_REST),
    on_request=True,
)


@_area(
    name="partial AUC of an interval",
    symbol="pAUC",
    formula=r"\tfrac{1}{2}\left[1 + \frac{A - A_{\text{chance}}}{b - a - A_{\text{chance}}}\right], \quad "
    r"A = \int_a^b \mathrm{TPR}\, d\mathrm{FPR} \text{ or } \int_a^b \mathrm{TNR}\, d\mathrm{TPR}",
    sentence="Area under a part of the ROC curve, between two false positive rates or two recalls, scaled so that 0.5 is "
    "chance and 1 is perfect, or as it is.",
    range=(None, 1.0),
    parameters=(
        Number("low", 0.0, "where the interval begins, before its end", minimum=0.0, below=1.0),
        Number("high", 0.1, "where it ends", above=0.0, maximum=1.0),
        Choice("along", "fpr", "of which rate the interval is", ("fpr", "recall")),
        Choice("scaled", "mcclish", "the area as it is, or in McClish's form", ("mcclish", "none")),
    ),
    rising=("low", "high"),
    references=("mcclish1989", "robin2011"),
)
def roc_auc_between(
    s: Scores, low: float = 0.0, high: float = 0.1, along: str = "fpr", scaled: str = "mcclish"
) -> Array:
    between, form = (area_between, standardised) if along == "fpr" else (area_between_recalls, standardised_of_recalls)
    areas = np.stack([between(order, low, high) for order in s.rankings], axis=-1)
    return form(areas, low, high) if scaled == "mcclish" else areas


@_area(
    name="area under the ROC curve over the logarithm of the false positive rate",
    symbol="logAUC",
    formula=r"\frac{1}{\ln(b/a)} \int_a^b \frac{\mathrm{TPR}}{\mathrm{FPR}}\, d\mathrm{FPR}",
    sentence="Mean recall over the orders of magnitude of small false positive rates, so that early hits count most.",
    aliases=("logauc",),
    elsewhere={"torchmetrics": "BinaryLogAUC"},
    differs={
        "torchmetrics": "it draws straight lines between the points over the logarithm, here they are those of the ROC "
        "curve"
    },
    parameters=(
        Number("low", 0.001, "smallest false positive rate", above=0.0, below=1.0),
        Number("high", 0.1, "largest", above=0.0, maximum=1.0),
    ),
    rising=("low", "high"),
    references=("mysinger2010",),
)
def log_auc(s: Scores, low: float = 0.001, high: float = 0.1) -> Array:
    return np.stack([mean_over_log_fpr(order, low, high) for order in s.rankings], axis=-1)


@_area(
    name="standard error of AUC by Hanley and McNeil",
    formula=r"\sqrt{\frac{A(1-A) + (n_1-1)(Q_1-A^2) + (n_0-1)(Q_2-A^2)}{n_1 n_0}}, \quad "
    r"Q_1=\tfrac{A}{2-A},\ Q_2=\tfrac{2A^2}{1+A}",
    sentence="Standard error of AUC from itself and the class sizes alone, for comparison with what others report; "
    "intervals are DeLong's.",
    prevalence=Prevalence.SENSITIVE,
    range=(0.0, 0.5),
    orientation=Orientation.LOWER,
    ideal=0.0,
    undefined=(NO_ACTUAL, NO_REST, WEIGHTED),
    degree=None,
    references=("hanley1982",),
    about_sample=True,
)
def roc_auc_standard_error(s: Scores) -> Array:
    if s.weights is not None:
        return np.full(s.actual.shape, np.nan)
    return hanley_mcneil_error(ranking.roc_auc.compute(s), s.actual, s.rest)


@_area(
    name="weighted average precision",
    scope=Scope.OVERALL,
    prevalence=Prevalence.SENSITIVE,
    formula=r"\sum_k \frac{n_k}{n} \mathrm{AP}_k",
    sentence="Mean over the classes of the average precision, weighted by how frequent they are.",
    elsewhere={"sklearn": 'average_precision_score(average="weighted")'},
    undefined=(NO_ACTUAL,),
    references=("davis2006", "beddar2025"),
)
def weighted_average_precision(s: Scores) -> Array:
    return total(s.prevalence * ranking.average_precision.compute(s))
