"""Baulieu's dissimilarities, some of them counter-examples of the axioms that he studies."""

from math import e

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Metric
from app.kernel.metrics.conditions import ABSENT, NEVER_PREDICTED, NO_ACTUAL, NO_SAMPLES, UNIVERSAL, where
from app.kernel.metrics.families.similarity.build import distance
from app.kernel.numerics.arrays import Array

_ONE_AND_WRONG = where(
    "infinite", "class {label} has a single actual or predicted member, and it is an error",
    lambda t: (t.union == 1) & (t.errors > 0),
)  # fmt: skip
_ONE_AND_RIGHT = where(
    "one_sample", "class {label} has a single member, and it is recognised: the formula divides 0 by 0",
    lambda t: (t.union == 1) & (t.errors == 0),
)  # fmt: skip


def _worse(t: Table) -> Array:
    """FP + FN + max(FP, FN)."""
    return t.errors + np.maximum(t.fp, t.fn)


def _cubic(t: Table) -> Array:
    """TP (TP - 4)^2."""
    return t.tp * (t.tp - 4.0) ** 2


COEFFICIENTS: tuple[Metric[Table], ...] = (
    distance(
        "baulieu_i", "BaulieuI", "Baulieu I", r"\frac{P\,T-TP^2}{P\,T}",
        lambda t: (t.actual * t.predicted - t.tp * t.tp) / (t.actual * t.predicted),
        "What is missing of the product of recall and precision to 1.",
        undefined=(NO_ACTUAL, NEVER_PREDICTED), sources=("baulieu1989",),
    ),
    distance(
        "baulieu_iv", "BaulieuIV", "Baulieu IV", r"\frac{FP+FN-(TP+\frac12)(TN+\frac12)\,TN\,e}{n}",
        lambda t: (t.errors - (t.tp + 0.5) * (t.tn + 0.5) * t.tn * e) / t.n_each,
        "Errors less a product that grows with the third power of the counts.",
        range=(None, 1.0), ideal=None, degree=None, undefined=(NO_SAMPLES,), sources=("baulieu1997",),
    ),
    distance(
        "baulieu_v", "BaulieuV", "Baulieu V", r"\frac{FP+FN+1}{TP+FP+FN+1}",
        lambda t: (t.errors + 1.0) / (t.union + 1.0), "One less the Jaccard index, with one error more.",
        ideal=None, degree=None, sources=("baulieu1997",),
    ),
    distance(
        "baulieu_vi", "BaulieuVI", "Baulieu VI", r"\frac{FP+FN}{TP+FP+FN+1}", lambda t: t.errors / (t.union + 1.0),
        "One less the Jaccard index, with one member more.", degree=None, sources=("baulieu1997",),
    ),
    distance(
        "baulieu_vii", "BaulieuVII", "Baulieu VII", r"\frac{FP+FN}{n+TP\,(TP-4)^2}",
        lambda t: t.errors / (t.n_each + _cubic(t)), "The error rate with a cubic term of the true positives.",
        degree=None, undefined=(NO_SAMPLES,), sources=("baulieu1997",),
    ),
    distance(
        "baulieu_viii", "BaulieuVIII", "Baulieu VIII", r"\frac{(FP-FN)^2}{n^2}",
        lambda t: ((t.fp - t.fn) / t.n_each) ** 2, "Square of the difference of the two kinds of error, per sample.",
        undefined=(NO_SAMPLES,), sources=("baulieu1997",),
    ),
    distance(
        "baulieu_ix", "BaulieuIX", "Baulieu IX", r"\frac{FP+2FN}{n+FN}",
        lambda t: (t.errors + t.fn) / (t.n_each + t.fn), "The error rate with every miss counted twice.",
        symmetric=False, undefined=(NO_SAMPLES,), sources=("baulieu1997",),
    ),
    distance(
        "baulieu_x", "BaulieuX", "Baulieu X", r"\frac{FP+FN+\max(FP,FN)}{n+\max(FP,FN)}",
        lambda t: _worse(t) / (t.n_each + np.maximum(t.fp, t.fn)),
        "The error rate with the more frequent error counted twice.", undefined=(NO_SAMPLES,), sources=("baulieu1997",),
    ),
    distance(
        "baulieu_xi", "BaulieuXI", "Baulieu XI", r"\frac{FP+FN}{FP+FN+TN}", lambda t: t.errors / (t.errors + t.tn),
        "One less the Jaccard index of the rest.", undefined=(NO_SAMPLES, UNIVERSAL), sources=("baulieu1997",),
    ),
    # 0 is added since 0 over -1 is a negative zero.
    distance(
        "baulieu_xii", "BaulieuXII", "Baulieu XII", r"\frac{FP+FN}{TP+FP+FN-1}", lambda t: t.errors / (t.union - 1.0) + 0.0,
        "One less the Jaccard index, with one member less.",
        range=(0.0, None), degree=None, undefined=(_ONE_AND_RIGHT, _ONE_AND_WRONG), sources=("baulieu1997",),
    ),
    distance(
        "baulieu_xiii", "BaulieuXIII", "Baulieu XIII", r"\frac{FP+FN}{TP+FP+FN+TP\,(TP-4)^2}",
        lambda t: t.errors / (t.union + _cubic(t)),
        "One less the Jaccard index, with a cubic term of the true positives.",
        degree=None, undefined=(ABSENT,), sources=("baulieu1997",),
    ),
    distance(
        "baulieu_xiv", "BaulieuXIV", "Baulieu XIV", r"\frac{FP+2FN}{TP+FP+2FN}",
        lambda t: (t.errors + t.fn) / (t.union + t.fn), "One less the Jaccard index, with every miss counted twice.",
        symmetric=False, undefined=(ABSENT,), sources=("baulieu1997",),
    ),
    distance(
        "baulieu_xv", "BaulieuXV", "Baulieu XV", r"\frac{FP+FN+\max(FP,FN)}{TP+FP+FN+\max(FP,FN)}",
        lambda t: _worse(t) / (t.tp + _worse(t)), "One less the Jaccard index, with the more frequent error twice.",
        undefined=(ABSENT,), sources=("baulieu1997",),
    ),
)  # fmt: skip
