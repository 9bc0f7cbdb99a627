"""Scores of one class against the rest that combine what is found with what is claimed: F, Jaccard, UPM and kin."""

from functools import partial

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Number, Orientation, Prevalence, Scale, Scope, formula, metric
from app.kernel.metrics.conditions import (
    ABSENT,
    ALWAYS_PREDICTED,
    MARGINS,
    NEVER_PREDICTED,
    NO_ACTUAL,
    NO_FALSE_POSITIVES,
    NO_MISTAKES,
    NO_SAMPLES,
    NO_TRUE_POSITIVES,
    UNIVERSAL,
)
from app.kernel.metrics.exact import Exact, harmonic, over
from app.kernel.metrics.proportion import ConfusionCells, Proportion
from app.kernel.numerics.arrays import Array

_score = partial(metric, scope=Scope.CLASS, prevalence=Prevalence.SENSITIVE)
_formula = partial(formula, prevalence=Prevalence.SENSITIVE)
# Equal if actual and predicted classes change places.
_likeness = partial(_score, symmetric=True)
_even_formula = partial(_formula, symmetric=True)
_BETA = Number("beta", 1.0, "weight of recall against precision; 2 weighs recall higher", above=0.0)


f1 = _even_formula(
    "f1",
    lambda c: c.f1,
    name="F1",
    symbol="F_1",
    formula=r"\frac{2TP}{2TP+FP+FN}",
    sentence="Harmonic mean of precision and recall.",
    aliases=("f1_positive", "dice", "sorensen_dice"),
    elsewhere={"sklearn": "f1_score", "pycm": "F1", "torchmetrics": "MulticlassF1Score(average=none)"},
    undefined=(ABSENT,),
    references=("aguilar2025", "wu2025", "martin2022", "beddar2025"),
    overlap=lambda jaccard: 2.0 * jaccard / (1.0 + jaccard),
)


f_beta = _formula(
    "f_beta",
    lambda c, beta=1.0: (1 + beta * beta) * c.tp / (beta * beta * c.actual + c.predicted),
    name="F-beta",
    symbol=r"F_\beta",
    formula=r"\frac{(1+\beta^2)TP}{(1+\beta^2)TP+\beta^2FN+FP}",
    sentence="Weighted harmonic mean of precision and recall; beta above 1 weighs recall higher.",
    elsewhere={"sklearn": "fbeta_score", "pycm": "F_beta", "torchmetrics": "MulticlassFBetaScore(average=none)"},
    parameters=(_BETA,),
    undefined=(ABSENT,),
    references=("aguilar2025", "beddar2025"),
)


f1_negative = _even_formula(
    "f1_negative",
    lambda c: c.f1_negative,
    name="F1 of the rest",
    symbol="F_1^-",
    formula=r"\frac{2TN}{2TN+FP+FN}",
    sentence="F1 with the roles of the class and the rest exchanged.",
    aliases=("fleiss_levin_paik",),
    elsewhere={"pycm": "FleissLevinPaik"},
    undefined=(UNIVERSAL,),
    references=("wu2025", "martin2022"),
)


f_beta_negative = _formula(
    "f_beta_negative",
    lambda c, beta=1.0: (1 + beta * beta) * c.tn / (beta * beta * c.rest + c.predicted_rest),
    name="F-beta of the rest",
    symbol=r"F_\beta^-",
    formula=r"\frac{(1+\beta^2)TN}{(1+\beta^2)TN+\beta^2FP+FN}",
    sentence="F-beta with the roles of the class and the rest exchanged.",
    parameters=(_BETA,),
    undefined=(UNIVERSAL,),
    references=("martin2022",),
)


@_likeness(
    name="unified performance measure",
    symbol="UPM",
    formula=r"\frac{4\,TP\,TN}{4\,TP\,TN+(TP+TN)(FP+FN)}",
    sentence="Harmonic mean of precision, recall, specificity and NPV in counts; 0 when the class is never found.",
    undefined=(ABSENT, UNIVERSAL),
    references=("martin2022",),
    exact=Exact(lambda c: over(4 * c.tp * c.tn, 4 * c.tp * c.tn + (c.tp + c.tn) * c.errors)),
)
def upm(t: Table) -> Array:
    return t.upm


@_likeness(
    name="unified performance measure, strict",
    symbol=r"UPM^{\ast}",
    formula=r"\frac{4}{1/PPV+1/TPR+1/TNR+1/NPV}",
    sentence="Harmonic mean of precision, recall, specificity and NPV; undefined when any of the four is.",
    undefined=MARGINS,
    references=("martin2022",),
    exact=Exact(lambda c: harmonic((c.tp / c.predicted, c.tp / c.actual, c.tn / c.rest, c.tn / c.predicted_rest))),
)
def upm_strict(t: Table) -> Array:
    return 4.0 / (1.0 / t.precision + 1.0 / t.recall + 1.0 / t.specificity + 1.0 / t.npv)


@_likeness(
    name="Fowlkes-Mallows index of the class",
    symbol="FM",
    formula=r"\sqrt{PPV\cdot TPR}",
    sentence="Geometric mean of precision and recall.",
    aliases=("otsuka_ochiai", "g_measure"),
    elsewhere={"pycm": "G"},
    undefined=(NO_ACTUAL, NEVER_PREDICTED),
    references=("martin2022", "beddar2025"),
    exact=Exact(lambda c: c.tp * c.tp / (c.actual * c.predicted), squared=True),
)
def fowlkes_mallows(t: Table) -> Array:
    return t.tp / np.sqrt(t.joint_margins)


jaccard = _even_formula(
    "jaccard",
    lambda c: c.jaccard,
    name="Jaccard index",
    symbol="J",
    formula=r"\frac{TP}{TP+FP+FN}",
    sentence="Overlap of the actual and the predicted members, over their union.",
    aliases=("iou", "tanimoto", "threat_score", "critical_success_index"),
    elsewhere={"sklearn": "jaccard_score", "pycm": "J", "torchmetrics": "MulticlassJaccardIndex(average=none)"},
    undefined=(ABSENT,),
    references=("beddar2025",),
    overlap=lambda jaccard: jaccard,
)


tversky_index = _formula(
    "tversky_index",
    lambda c, alpha=0.5, beta=0.5: c.tp / (c.tp + alpha * c.fp + beta * c.fn),
    name="Tversky index",
    formula=r"\frac{TP}{TP+\alpha FP+\beta FN}",
    sentence="Overlap of the actual and the predicted members with separate weights for the two kinds of error.",
    elsewhere={"pycm": "TI"},
    differs={"pycm": "its alpha weighs the false negatives and its beta the false positives, the other way round"},
    parameters=(
        Number("alpha", 0.5, "weight of the false positives", above=0.0),
        Number("beta", 0.5, "weight of the false negatives", above=0.0),
    ),
    undefined=(ABSENT,),
    references=("tversky1977",),
)


@_likeness(
    name="overlap coefficient",
    formula=r"\frac{TP}{\min(T,P)}",
    sentence="Overlap of the actual and the predicted members, over the smaller of the two.",
    aliases=("szymkiewicz_simpson",),
    elsewhere={"pycm": "OC"},
    undefined=(NO_ACTUAL, NEVER_PREDICTED),
)
def overlap_coefficient(t: Table) -> Array:
    return t.tp / np.minimum(t.actual, t.predicted)


@_likeness(
    name="Braun-Blanquet similarity",
    formula=r"\frac{TP}{\max(T,P)}",
    sentence="Overlap of the actual and the predicted members, over the larger of the two.",
    elsewhere={"pycm": "BB"},
    undefined=(ABSENT,),
)
def braun_blanquet(t: Table) -> Array:
    return t.tp / np.maximum(t.actual, t.predicted)


class_success_index = _even_formula(
    "class_success_index",
    lambda c: c.precision + c.recall - 1,
    name="individual classification success index",
    symbol="ICSI",
    range=(-1.0, 1.0),
    formula=r"PPV+TPR-1",
    sentence="Precision plus recall less one: how far both together are above an even trade.",
    aliases=("icsi",),
    elsewhere={"pycm": "ICSI"},
    undefined=(NO_ACTUAL, NEVER_PREDICTED),
    references=("labatut2012",),
)


single_point_aupr = _even_formula(
    "single_point_aupr",
    lambda c: (c.precision + c.recall) / 2,
    name="mean of precision and recall",
    formula=r"\frac{PPV+TPR}{2}",
    sentence="Area under the precision-recall curve that has this single point.",
    elsewhere={"pycm": "AUPR"},
    undefined=(NO_ACTUAL, NEVER_PREDICTED),
)


@_score(
    name="adjusted F score",
    symbol="AGF",
    formula=r"\sqrt{F_2\cdot F_{0.5}^{-}}",
    sentence="Geometric mean of F2 and of F0.5 after the classes are exchanged: favours the class while watching "
    "the rest.",
    elsewhere={"pycm": "AGF"},
    aliases=("agf",),
    undefined=(ABSENT, UNIVERSAL),
    references=("maratea2014",),
)
def adjusted_f(t: Table) -> Array:
    # F2 = 5 TP/(4 P + T), and F0.5 of the rest = 5 TN/(N + 4 (n - T)).
    return 5.0 * np.sqrt(t.right / ((4.0 * t.actual + t.predicted) * (t.rest + 4.0 * t.predicted_rest)))


@_likeness(
    name="information score",
    symbol="IS",
    range=(None, None),
    formula=r"\log_2\frac{PPV}{\pi}",
    sentence="Bits by which a prediction of the class raises its probability above the prevalence.",
    elsewhere={"pycm": "IS"},
    undefined=(NO_ACTUAL, NEVER_PREDICTED, NO_TRUE_POSITIVES),
    chance_corrected=True,
    references=("kononenko1991",),
)
def information_score(t: Table) -> Array:
    return np.log2(t.lift)


lift = _even_formula(
    "lift",
    lambda c: c.lift,
    name="lift",
    range=(0.0, None),
    formula=r"\frac{PPV}{\pi}",
    sentence="How many times more frequent the class is among its predictions than in the data.",
    aliases=("lift_score", "forbes_i"),
    elsewhere={"pycm": "LS"},
    undefined=(NO_ACTUAL, NEVER_PREDICTED),
    chance_corrected=True,
    scale=Scale.LOG,
)


net_benefit = _formula(
    "net_benefit",
    lambda c, threshold=0.5: (c.tp - c.fp * (threshold / (1 - threshold))) / c.n_each,
    name="net benefit",
    symbol="NB",
    range=(None, 1.0),
    ideal=None,
    formula=r"\frac{TP}{n}-\frac{FP}{n}\frac{t}{1-t}",
    sentence="True positives per sample less false positives at the exchange rate of the threshold probability.",
    elsewhere={"pycm": "NB"},
    differs={"pycm": "it is given the exchange rate w = t/(1-t) and not the threshold probability t"},
    parameters=(
        Number("threshold", 0.5, "probability at which acting and not acting weigh the same", minimum=0.0, below=1.0),
    ),
    undefined=(NO_SAMPLES,),
    references=("vickers2006",),
)


@_score(
    name="predicted minus actual count",
    symbol="AM",
    range=(None, None),
    orientation=Orientation.NEAREST,
    degree=1,
    formula=r"T-P",
    sentence="How many samples too many are predicted as the class; negative when too few.",
    elsewhere={"pycm": "AM"},
)
def automatic_manual_difference(t: Table) -> Array:
    return t.surplus


@_likeness(
    name="Bray-Curtis dissimilarity",
    range=(0.0, 0.5),
    orientation=Orientation.LOWER,
    formula=r"\frac{|T-P|}{2n}",
    sentence="Difference of the predicted and the actual count, over twice the samples.",
    elsewhere={"pycm": "BCD"},
    undefined=(NO_SAMPLES,),
)
def bray_curtis(t: Table) -> Array:
    return np.abs(t.surplus) / (t.n_each + t.n_each)


@_likeness(
    name="one-vs-rest errors",
    symbol="HD",
    range=(0.0, None),
    orientation=Orientation.LOWER,
    degree=1,
    formula=r"FP+FN",
    sentence="Samples on the wrong side of the question 'this class or not'.",
    elsewhere={"pycm": "HD"},
    proportion=Proportion(ConfusionCells.WRONG, ConfusionCells.ALL, counted=True),
)
def hamming_distance(t: Table) -> Array:
    return t.errors


@_likeness(
    name="chance agreement of the class",
    orientation=Orientation.DESCRIPTIVE,
    formula=r"\frac{PT}{n^2}",
    sentence="Share of samples that would fall on this diagonal cell if predictions were drawn at random.",
    elsewhere={"pycm": "RACC"},
    undefined=(NO_SAMPLES,),
    references=("cohen1960",),
)
def random_accuracy(t: Table) -> Array:
    return t.joint_margins / (t.n_each * t.n_each)


@_likeness(
    name="unbiased chance agreement of the class",
    orientation=Orientation.DESCRIPTIVE,
    formula=r"\left(\frac{P+T}{2n}\right)^2",
    sentence="Chance agreement of the class when actual and predicted shares are pooled.",
    elsewhere={"pycm": "RACCU"},
    undefined=(NO_SAMPLES,),
    references=("scott1955",),
)
def random_accuracy_unbiased(t: Table) -> Array:
    share = t.margins / (t.n_each + t.n_each)
    return share * share


markedness = _formula(
    "markedness",
    lambda c: c.precision + c.npv - 1,
    name="markedness",
    symbol="MK",
    range=(-1.0, 1.0),
    formula=r"PPV+NPV-1",
    sentence="How much more often than chance a prediction, for or against the class, is right.",
    aliases=("delta_p",),
    elsewhere={"pycm": "MK"},
    undefined=(NEVER_PREDICTED, ALWAYS_PREDICTED),
    chance_corrected=True,
    references=("martin2022",),
)


fn_per_fp = _formula(
    "fn_per_fp",
    lambda c: c.fn / c.fp,
    name="false negatives per false positive",
    range=(0.0, None),
    formula=r"\frac{FN}{FP}",
    sentence="How many members are missed for each false alarm: what treatment equality compares.",
    on_request=True,
    undefined=(NO_MISTAKES, NO_FALSE_POSITIVES),
    references=("berk2021",),
    scale=Scale.LOG,
)
