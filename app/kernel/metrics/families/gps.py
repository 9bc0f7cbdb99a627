"""General Performance Scores: harmonic means of per-class rates other than recall (Martín De Diego et al.

2022, eqs. 7, 9, 20, 23).
"""

from functools import partial

import numpy as np

from app.kernel.matrix.table import Table, unified_performance_reciprocals
from app.kernel.metrics.card import OVER_LABELS, Orientation, Prevalence, Scope, metric
from app.kernel.metrics.conditions import (
    A_PRECISION_IS_ZERO,
    A_UPM_IS_ZERO,
    ABSENT,
    ALWAYS_PREDICTED,
    AN_NPV_IS_ZERO,
    NEVER_PREDICTED,
    NO_REST,
    UNIVERSAL,
    overall,
)
from app.kernel.metrics.exact import Exact, harmonic
from app.kernel.numerics.arrays import Array, Mask, dispersion_of_reciprocals, total

_gps = partial(metric, scope=Scope.OVERALL, prevalence=Prevalence.SENSITIVE, references=("martin2022",))
_sd = partial(
    metric,
    scope=Scope.OVERALL,
    prevalence=Prevalence.SENSITIVE,
    range=(0.0, None),
    ideal=0.0,
    orientation=Orientation.LOWER,
    sentence="Spread of the per-class parts around their harmonic mean (eq. 9): agreement between classes, not a "
    "sampling error.",
    references=("martin2022",),
)


@_gps(
    name="GPS of the precisions",
    symbol="GPS_{Precision}",
    formula=r"\frac{K}{\sum_k 1/PPV_k}",
    sentence="Harmonic mean of the per-class precision.",
    undefined=(NEVER_PREDICTED,),
    exact=Exact(lambda m: harmonic(c.tp / c.predicted for c in m.classes)),
    also=OVER_LABELS,
)
def gps_precision(t: Table) -> Array:
    return t.harmonic_rates.precision


@_sd(
    name="dispersion of the precisions around their GPS",
    formula=r"\frac{GPS^2}{K-1}\sqrt{\sum_k\left(\frac{1}{PPV_k}-\frac{1}{GPS}\right)^2}",
    undefined=(NEVER_PREDICTED, A_PRECISION_IS_ZERO),
    also=OVER_LABELS,
)
def gps_precision_sd(t: Table) -> Array:
    return t.rate_dispersions.precision


@_gps(
    name="GPS of the NPVs",
    symbol="GPS_{NPV}",
    formula=r"\frac{K}{\sum_k 1/NPV_k}",
    sentence="Harmonic mean of the per-class negative predictive value.",
    undefined=(ALWAYS_PREDICTED,),
    exact=Exact(lambda m: harmonic(c.tn / c.predicted_rest for c in m.classes)),
    also=OVER_LABELS,
)
def gps_npv(t: Table) -> Array:
    return t.harmonic_rates.npv


@_sd(
    name="dispersion of the NPVs around their GPS",
    formula=r"\frac{GPS^2}{K-1}\sqrt{\sum_k\left(\frac{1}{NPV_k}-\frac{1}{GPS}\right)^2}",
    undefined=(ALWAYS_PREDICTED, AN_NPV_IS_ZERO),
    also=OVER_LABELS,
)
def gps_npv_sd(t: Table) -> Array:
    return t.rate_dispersions.npv


@_gps(
    name="GPS of the UPMs",
    symbol="GPS_{UPM}",
    formula=r"\frac{K}{\sum_k 1/UPM_k}",
    sentence="Harmonic mean of the per-class unified performance measure: all four rates of every class have to be "
    "good.",
    undefined=(ABSENT, UNIVERSAL),
    symmetric=True,
    also=OVER_LABELS,
)
def gps_upm(t: Table) -> Array:
    return t.n_classes / total(t.upm_reciprocals)


@_sd(
    name="dispersion of the UPMs around their GPS",
    formula=r"\frac{GPS^2}{K-1}\sqrt{\sum_k\left(\frac{1}{UPM_k}-\frac{1}{GPS}\right)^2}",
    undefined=(ABSENT, UNIVERSAL, A_UPM_IS_ZERO),
    symmetric=True,
    also=OVER_LABELS,
)
def gps_upm_sd(t: Table) -> Array:
    return dispersion_of_reciprocals(t.upm_reciprocals)


@_gps(
    name="GPS of the specificities",
    symbol="GPS_{Specificity}",
    prevalence=Prevalence.INSENSITIVE_BINARY,
    formula=r"\frac{K}{\sum_k 1/TNR_k}",
    sentence="Harmonic mean of the per-class specificity.",
    undefined=(NO_REST,),
    exact=Exact(lambda m: harmonic(c.tn / c.rest for c in m.classes)),
    also=OVER_LABELS,
)
def gps_specificity(t: Table) -> Array:
    return t.harmonic_rates.specificity


def _has_empty_split(t: Table) -> Mask:
    empty: Mask = np.logical_or.reduce((t.cut_errors == 0) & ((t.lower_correct == 0) | (t.upper_correct == 0)), axis=-1)
    return empty


EMPTY_SPLIT = overall(
    "empty_split",
    "the first or the last classes of the order occur neither in the data nor in the predictions",
    _has_empty_split,
)


@_gps(
    name="GPS of the UPMs of ordered classes",
    formula=r"GPS\left(UPM_{\{1..k\}|\{k+1..K\}}\right)_{k=1}^{K-1}",
    sentence="Harmonic mean of the UPM over the K-1 ways to cut ordered classes in two; equals eq. 23 for K = 3.",
    undefined=(EMPTY_SPLIT,),
    symmetric=True,
    ordered=True,
)
def gps_upm_ordered(t: Table) -> Array:
    parts = unified_performance_reciprocals(t.lower_correct, t.upper_correct, t.cut_errors)
    return (t.n_classes - 1) / total(parts)
