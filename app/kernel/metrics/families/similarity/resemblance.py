"""Coefficients of what the two sets have in common, without a correction for chance."""

from math import pi

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Orientation
from app.kernel.metrics.conditions import (
    ABSENT,
    ALWAYS_PREDICTED,
    MARGINS,
    NEVER_PREDICTED,
    NO_ACTUAL,
    NO_REST,
    NO_SAMPLES,
    UNIVERSAL,
    overall,
    where,
)
from app.kernel.metrics.families.similarity.build import CONSTANT, coefficient, distance
from app.kernel.numerics.arrays import Array

_EMPTY_MARGIN = where(
    "infinite", "class {label} has no actual or no predicted members, so the ratio is infinite",
    lambda t: (t.actual == 0) | (t.predicted == 0),
)  # fmt: skip
_ONE_SAMPLE = overall("infinite", "there is one sample, so the value is infinite", lambda t: t.n == 1)
_CONSTANT_AND_RIGHT = where(
    "constant_on_both_sides",
    "class {label} has all samples or none, and the predictions say so",
    lambda t: (t.errors == 0) & (t.right == 0),
)
_ONE_RIGHT_ANSWER = where(
    "one_sample", "there is one sample, and it is recognised", lambda t: (t.n_each == 1) & (t.tp == 1)
)
_FULL_MARGIN = where(
    "infinite",
    "every sample belongs to class {label} or is predicted as it, so the value is infinite",
    lambda t: (t.rest == 0) | (t.predicted_rest == 0),
)
_CONSTANT_AND_WRONG = where(
    "infinite",
    "class {label} has all samples in the data and none in the predictions, or the other way round",
    lambda t: (t.actual * t.rest == 0) & (t.predicted * t.predicted_rest == 0) & (t.errors > 0),
)
_NO_ERROR = where(
    "no_error", "class {label} has no false positive and no false negative: the formula divides 0 by 0",
    lambda t: t.errors == 0,
)  # fmt: skip


def _common(t: Table) -> Array:
    """sqrt(TP TN) + TP."""
    found: Array = np.sqrt(t.right) + t.tp
    return found


def _modes(t: Table) -> Array:
    """max(TP, FP) + max(FN, TN) + max(TP, FN) + max(FP, TN)."""
    by_column = np.maximum(t.tp, t.fp) + np.maximum(t.fn, t.tn)
    return by_column + np.maximum(t.tp, t.fn) + np.maximum(t.fp, t.tn)


def _margin_modes(t: Table) -> Array:
    """max(T, n - T) + max(P, N)."""
    return np.maximum(t.predicted, t.predicted_rest) + np.maximum(t.actual, t.rest)


def _kent_foster(t: Table, common: Array) -> Array:
    """-FP FN / (u (FP + FN) - FP FN) with u = common + FP + FN: the formula with TP - TP + FP FN/u taken out."""
    # Subtracted from 0, which leaves no negative zero.
    return 0.0 - t.mixed_up / ((common + t.errors) * t.errors - t.mixed_up)


COEFFICIENTS = (
    coefficient(
        "anderberg_d", "Anderberg", "Anderberg's D",
        r"\frac{\sigma-\tau}{2n},\quad\sigma=\max(TP,FP)+\max(FN,TN)+\max(TP,FN)+\max(FP,TN),\ "
        r"\tau=\max(T,n-T)+\max(P,N)",
        lambda t: (_modes(t) - _margin_modes(t)) / (2.0 * t.n_each),
        "How much knowing one side reduces the error of guessing the other, per sample.",
        range=(0.0, 0.5), ideal=None, chance_corrected=True, undefined=(NO_SAMPLES,), sources=("warrens2008",),
        differs={"pycm": "its tau has max(T, N) in place of max(P, N)"},
    ),
    coefficient(
        "andres_marzo_delta", "AndresMarzoDelta", "Andres and Marzo's delta", r"\frac{TP+TN-2\sqrt{FP\,FN}}{n}",
        lambda t: (t.correct_ovr - 2.0 * np.sqrt(t.mixed_up)) / t.n_each,
        "Share of right answers less twice the geometric mean of the two errors.",
        range=(-1.0, 1.0), undefined=(NO_SAMPLES,),
    ),
    coefficient(
        "baroni_urbani_buser_i", "BaroniUrbaniBuserI", "Baroni-Urbani and Buser I",
        r"\frac{\sqrt{TP\,TN}+TP}{\sqrt{TP\,TN}+TP+FP+FN}",
        lambda t: _common(t) / (_common(t) + t.errors),
        "A Jaccard index in which absences count as far as presences do.",
        undefined=(ABSENT,), sources=("warrens2008",),
    ),
    coefficient(
        "baroni_urbani_buser_ii", "BaroniUrbaniBuserII", "Baroni-Urbani and Buser II",
        r"\frac{\sqrt{TP\,TN}+TP-FP-FN}{\sqrt{TP\,TN}+TP+FP+FN}",
        lambda t: (_common(t) - t.errors) / (_common(t) + t.errors),
        "The first coefficient brought to the range from -1 to 1.",
        range=(-1.0, 1.0), undefined=(ABSENT,), sources=("warrens2008",),
    ),
    distance(
        "canberra_distance", "Canberra", "Canberra distance", r"\frac{FP+FN}{P+T}", lambda t: t.errors / t.margins,
        "Errors over the members on both sides: 1 less the F1 score.", undefined=(ABSENT,),
    ),
    coefficient(
        "clement_similarity", "Clement", "Clement's similarity",
        r"\frac{TP}{T}\left(1-\frac{T}{n}\right)+\frac{TN}{n-T}\,\frac{T}{n}",
        lambda t: t.precision * t.predicted_rest / t.n_each + t.npv * t.predicted / t.n_each,
        "Precision and NPV, each weighted by how frequent the other answer is.",
        undefined=(NEVER_PREDICTED, ALWAYS_PREDICTED), symmetric=False,
    ),
    coefficient(
        "consonni_todeschini_i", "ConsonniTodeschiniI", "Consonni and Todeschini I",
        r"\frac{\ln(1+TP+TN)}{\ln(1+n)}", lambda t: np.log1p(t.correct_ovr) / np.log1p(t.n_each),
        "Accuracy on a logarithmic scale.", degree=None, undefined=(NO_SAMPLES,), sources=("consonni2012",),
    ),
    coefficient(
        "consonni_todeschini_ii", "ConsonniTodeschiniII", "Consonni and Todeschini II",
        r"\frac{\ln(1+n)-\ln(1+FP+FN)}{\ln(1+n)}",
        lambda t: np.log1p(t.correct_ovr / (1.0 + t.errors)) / np.log1p(t.n_each),
        "What is missing of the errors to all samples, on a logarithmic scale.",
        degree=None, undefined=(NO_SAMPLES,), sources=("consonni2012",),
    ),
    coefficient(
        "consonni_todeschini_iii", "ConsonniTodeschiniIII", "Consonni and Todeschini III",
        r"\frac{\ln(1+TP)}{\ln(1+n)}", lambda t: np.log1p(t.tp) / np.log1p(t.n_each),
        "True positives among all samples on a logarithmic scale.",
        degree=None, ideal=None, undefined=(NO_SAMPLES,), sources=("consonni2012",),
    ),
    coefficient(
        "consonni_todeschini_iv", "ConsonniTodeschiniIV", "Consonni and Todeschini IV",
        r"\frac{\ln(1+TP)}{\ln(1+TP+FP+FN)}", lambda t: np.log1p(t.tp) / np.log1p(t.union),
        "The Jaccard index on a logarithmic scale.", degree=None, undefined=(ABSENT,), sources=("consonni2012",),
    ),
    coefficient(
        "eyraud_similarity", "Eyraud", "Eyraud's similarity in PyCM's form",
        r"\frac{TP-T\,P}{T\,P\,N\,(n-T)}",
        lambda t: (t.tp - t.actual * t.predicted) / (t.actual * t.predicted * t.rest * t.predicted_rest),
        "Here as PyCM computes it, which moves with the number of samples; Eyraud's own has factors of n in it.",
        range=(None, None), ideal=None, degree=None, orientation=Orientation.DESCRIPTIVE,
        undefined=(NO_ACTUAL, NEVER_PREDICTED, _ONE_RIGHT_ANSWER, _FULL_MARGIN),
    ),
    coefficient(
        "fager_mcgowan", "FagerMcGowan", "Fager and McGowan's similarity",
        r"\frac{TP}{\sqrt{P\,T}}-\frac{1}{2\sqrt{\max(P,T)}}",
        lambda t: t.tp / np.sqrt(t.actual * t.predicted) - 0.5 / np.sqrt(np.maximum(t.actual, t.predicted)),
        "The Ochiai coefficient less a term for small classes.",
        range=(None, 1.0), ideal=None, degree=None, undefined=(NO_ACTUAL, NEVER_PREDICTED), sources=("warrens2008",),
    ),
    coefficient(
        "faith_similarity", "Faith", "Faith's similarity", r"\frac{TP+TN/2}{n}",
        lambda t: (t.tp + 0.5 * t.tn) / t.n_each, "Accuracy in which a true negative counts half.",
        ideal=None, undefined=(NO_SAMPLES,), sources=("warrens2008",),
    ),
    coefficient(
        "fossum_similarity", "Fossum", "Fossum's similarity", r"\frac{n\,(TP-\frac12)^2}{P\,T}",
        lambda t: t.n_each * (t.tp - 0.5) ** 2 / (t.actual * t.predicted),
        "The lift with half a true positive taken away, times the true positives.",
        range=(0.0, None), ideal=None, degree=None, undefined=(NO_SAMPLES, _EMPTY_MARGIN), sources=("choi2010",),
    ),
    coefficient(
        "goodall_similarity", "Goodall", "Goodall's similarity", r"\frac{2}{\pi}\arcsin\sqrt{\frac{TP+TN}{n}}",
        lambda t: 2.0 / pi * np.arcsin(np.sqrt(t.accuracy_ovr)),
        "Accuracy on the scale on which its sampling error does not depend on it.", undefined=(NO_SAMPLES,),
    ),
    coefficient(
        "goodman_kruskal_lambda_ovr", "GoodmanKruskalLambda", "one-vs-rest Goodman and Kruskal's lambda",
        r"\frac{\sigma-\tau}{2n-\tau},\quad\sigma=\max(TP,FP)+\max(FN,TN)+\max(TP,FN)+\max(FP,TN),\ "
        r"\tau=\max(T,n-T)+\max(P,N)",
        lambda t: (_modes(t) - _margin_modes(t)) / (2.0 * t.n_each - _margin_modes(t)),
        "How much knowing one side reduces the error of guessing the other, averaged over the two sides. 1 also where "
        "every answer is wrong.",
        chance_corrected=True, undefined=(CONSTANT,), sources=("warrens2008",),
    ),
    coefficient(
        "goodman_kruskal_lambda_r", "GoodmanKruskalLambdaR", "Goodman and Kruskal's lambda-r",
        r"\frac{TP+TN-\tau/2}{n-\tau/2},\quad\tau=\max(T,n-T)+\max(P,N)",
        lambda t: (t.correct_ovr - 0.5 * _margin_modes(t)) / (t.n_each - 0.5 * _margin_modes(t)),
        "How much better the answers are than always naming the more frequent side.",
        range=(None, 1.0), undefined=(_CONSTANT_AND_RIGHT, _CONSTANT_AND_WRONG), sources=("warrens2008",),
    ),
    coefficient(
        "guttman_lambda_a_ovr", "GuttmanLambdaA", "one-vs-rest Guttman's lambda A",
        r"\frac{\max(TP,FN)+\max(FP,TN)-\max(T,n-T)}{n-\max(T,n-T)}",
        lambda t: (
            (np.maximum(t.tp, t.fn) + np.maximum(t.fp, t.tn) - np.maximum(t.predicted, t.predicted_rest))
            / np.minimum(t.predicted, t.predicted_rest)
        ),
        "How much knowing what is actual reduces the error of guessing the prediction.",
        chance_corrected=True, undefined=(NEVER_PREDICTED, ALWAYS_PREDICTED), symmetric=False, sources=("warrens2008",),
    ),
    coefficient(
        "guttman_lambda_b_ovr", "GuttmanLambdaB", "one-vs-rest Guttman's lambda B",
        r"\frac{\max(TP,FP)+\max(FN,TN)-\max(P,N)}{n-\max(P,N)}",
        lambda t: (
            (np.maximum(t.tp, t.fp) + np.maximum(t.fn, t.tn) - np.maximum(t.actual, t.rest))
            / np.minimum(t.actual, t.rest)
        ),
        "How much knowing the prediction reduces the error of guessing what is actual.",
        chance_corrected=True, undefined=(NO_ACTUAL, NO_REST), symmetric=False, sources=("warrens2008",),
    ),
    coefficient(
        "hamann_similarity", "Hamann", "Hamann's similarity", r"\frac{TP+TN-FP-FN}{n}",
        lambda t: (t.correct_ovr - t.errors) / t.n_each, "Right answers less wrong ones, per sample.",
        range=(-1.0, 1.0), undefined=(NO_SAMPLES,), sources=("choi2010",),
    ),
    coefficient(
        "harris_lahey", "HarrisLahey", "Harris and Lahey's similarity",
        r"\frac{TP}{TP+FP+FN}\,\frac{2TN+FP+FN}{2n}+\frac{TN}{TN+FP+FN}\,\frac{2TP+FP+FN}{2n}",
        lambda t: (
            t.jaccard * (t.tn + t.tn + t.errors) + t.tn / (t.tn + t.errors) * t.margins
        ) / (t.n_each + t.n_each),
        "Jaccard indices of the class and of the rest, each weighted by how frequent the other is.",
        undefined=(ABSENT, UNIVERSAL), sources=("warrens2008",),
    ),
    coefficient(
        "hawkins_dotson", "HawkinsDotson", "Hawkins and Dotson's similarity",
        r"\frac12\left(\frac{TP}{TP+FP+FN}+\frac{TN}{TN+FP+FN}\right)",
        lambda t: 0.5 * (t.jaccard + t.tn / (t.tn + t.errors)),
        "Mean of the Jaccard indices of the class and of the rest.",
        undefined=(ABSENT, UNIVERSAL), sources=("warrens2008",),
    ),
    coefficient(
        "kendall_tau", "KendallTau", "Kendall's tau in PyCM's form", r"\frac{2(TP+TN-FP-FN)}{n(n-1)}",
        lambda t: 2.0 * (t.correct_ovr - t.errors) / (t.n_each * (t.n_each - 1.0)),
        "Right answers less wrong ones over the pairs of samples: it goes to 0 with the number of samples.",
        range=(None, None), ideal=None, degree=None, undefined=(NO_SAMPLES, _ONE_SAMPLE),
    ),
    coefficient(
        "kent_foster_i", "KentFosterI", "Kent and Foster I",
        r"\frac{TP-e}{TP-e+FP+FN},\quad e=\frac{P\,T}{TP+FP+FN}", lambda t: _kent_foster(t, t.tp),
        "Agreement on members beyond what would be expected among those that either side names; never above 0.",
        range=(-1.0 / 3.0, 0.0), ideal=None, undefined=(_NO_ERROR,), sources=("warrens2008",),
    ),
    coefficient(
        "kent_foster_ii", "KentFosterII", "Kent and Foster II",
        r"\frac{TN-e}{TN-e+FP+FN},\quad e=\frac{N\,(n-T)}{TN+FP+FN}", lambda t: _kent_foster(t, t.tn),
        "The same of the rest.",
        range=(-1.0 / 3.0, 0.0), ideal=None, undefined=(_NO_ERROR,), sources=("warrens2008",),
    ),
    coefficient(
        "koppen_i", "KoppenI", "Koppen I",
        r"\frac{ab-(FP+FN)/2}{ab},\quad a=\frac{2TP+FP+FN}{2},\ b=\frac{2TN+FP+FN}{2}",
        lambda t: 1.0 - 2.0 * t.errors / (t.margins * (t.tn + t.tn + t.errors)),
        "What is missing of the errors to the product of the mean sizes of the class and of the rest.",
        range=(None, 1.0), degree=None, undefined=(ABSENT, UNIVERSAL),
    ),
    coefficient(
        "koppen_ii", "KoppenII", "Koppen II", r"TP+\frac{FP+FN}{2}", lambda t: 0.5 * t.margins,
        "Mean of the actual and of the predicted members.",
        range=(0.0, None), ideal=None, degree=1, orientation=Orientation.DESCRIPTIVE,
    ),
    coefficient(
        "baulieu_ii", "BaulieuII", "Baulieu II", r"\frac{TP^2\,TN^2}{P\,T\,N\,(n-T)}",
        lambda t: t.recall * t.precision * t.specificity * t.npv,
        "Product of recall, precision, specificity and NPV.", undefined=MARGINS, sources=("baulieu1989",),
    ),
)  # fmt: skip
