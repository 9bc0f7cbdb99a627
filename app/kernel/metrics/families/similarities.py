"""Similarity coefficients of one class against the rest, as tables of formulas; reports have them on request only.

They come from ecology, information retrieval and cheminformatics, where two sets are compared. Here the sets are the
members of a class and the samples predicted as such.
"""

from collections.abc import Callable
from math import e, pi
from typing import Any

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Metric, Orientation, Prevalence, Scope, metric
from app.kernel.metrics.conditions import (
    ABSENT,
    ALWAYS_PREDICTED,
    MARGINS,
    NEVER_PREDICTED,
    NO_ACTUAL,
    NO_REST,
    NO_SAMPLES,
    UNIVERSAL,
    OfMatrix,
)
from app.kernel.numerics import scipy_bridge
from app.kernel.numerics.arrays import Array

CONSTANT = OfMatrix(
    "constant_on_both_sides",
    "class {label} has all samples or none, in the data and in the predictions",
    lambda t: (t.actual_spread == 0) & (t.predicted_spread == 0),
)


def coefficient(
    key: str,
    pycm: str,
    name: str,
    formula: str,
    value: Callable[[Table], Array],
    sentence: str,
    *,
    sources: tuple[str, ...] = (),
    **facts: Any,
) -> Metric[Table]:
    """Coefficient from its formula and the facts of its card. Unless these differ, it is sensitive to prevalence,
    better the higher, and symmetric in actual and predicted.
    """
    known: dict[str, Any] = {"prevalence": Prevalence.SENSITIVE, "symmetric": True, **facts}
    return metric(
        key=key,
        name=name,
        scope=Scope.CLASS,
        formula=formula,
        sentence=sentence,
        elsewhere={"pycm": pycm},
        references=(*sources, "haghighi2018"),
        on_request=True,
        **known,
    )(value)


def distance(*row: Any, **facts: Any) -> Metric[Table]:
    """Coefficient for which lower is better, 0 where nothing is wrong."""
    return coefficient(*row, orientation=Orientation.LOWER, **facts)


_EMPTY_MARGIN = OfMatrix(
    "infinite", "class {label} has no actual or no predicted members, so the ratio is infinite",
    lambda t: (t.actual == 0) | (t.predicted == 0),
)  # fmt: skip
_ONE_SAMPLE = OfMatrix("infinite", "there is one sample, so the value is infinite", lambda t: t.n == 1)
_CONSTANT_AND_RIGHT = OfMatrix(
    "constant_on_both_sides",
    "class {label} has all samples or none, and the predictions say so",
    lambda t: (t.errors == 0) & (t.right == 0),
)
_ONE_RIGHT_ANSWER = OfMatrix(
    "one_sample", "there is one sample, and it is recognised", lambda t: (t.n_each == 1) & (t.tp == 1)
)
_FULL_MARGIN = OfMatrix(
    "infinite",
    "every sample belongs to class {label} or is predicted as it, so the value is infinite",
    lambda t: (t.rest == 0) | (t.predicted_rest == 0),
)
_CONSTANT_AND_WRONG = OfMatrix(
    "infinite",
    "class {label} has all samples in the data and none in the predictions, or the other way round",
    lambda t: (t.actual_spread == 0) & (t.predicted_spread == 0) & (t.errors > 0),
)
_NO_ERROR = OfMatrix(
    "no_error", "class {label} has no false positive and no false negative: the formula divides 0 by 0",
    lambda t: t.errors == 0,
)  # fmt: skip


def _common(t: Table) -> Array:
    found: Array = np.sqrt(t.right) + t.tp
    return found


def _wrong_guesses(t: Table) -> Array:
    """2n - sigma, which is a sum of counts: guesses of one side that are wrong though the other is known."""
    by_column = np.minimum(t.tp, t.fp) + np.minimum(t.fn, t.tn)
    return by_column + np.minimum(t.tp, t.fn) + np.minimum(t.fp, t.tn)


def _blind_guesses(t: Table) -> Array:
    """2n - tau: guesses that are wrong where nothing is known."""
    return np.minimum(t.predicted, t.predicted_rest) + np.minimum(t.actual, t.rest)


def _kent_foster(t: Table, common: Array) -> Array:
    """-FP FN / (u (FP + FN) - FP FN) with u = common + FP + FN: the formula with TP - TP + FP FN/u taken out."""
    # Subtracting from 0 avoids a negative zero.
    return 0.0 - t.mixed_up / ((common + t.errors) * t.errors - t.mixed_up)


RESEMBLANCES = (
    coefficient(
        "anderberg_d", "Anderberg", "Anderberg's D",
        r"\frac{\sigma-\tau}{2n},\quad\sigma=\max(TP,FP)+\max(FN,TN)+\max(TP,FN)+\max(FP,TN),\ "
        r"\tau=\max(T,n-T)+\max(P,N)",
        lambda t: (_blind_guesses(t) - _wrong_guesses(t)) / (2.0 * t.n_each),
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
        "Accuracy on a logarithmic scale.", degree=None, grows=True, undefined=(NO_SAMPLES,), sources=("consonni2012",),
    ),
    coefficient(
        "consonni_todeschini_ii", "ConsonniTodeschiniII", "Consonni and Todeschini II",
        r"\frac{\ln(1+n)-\ln(1+FP+FN)}{\ln(1+n)}",
        lambda t: np.log1p(t.correct_ovr / (1.0 + t.errors)) / np.log1p(t.n_each),
        "What is missing of the errors to all samples, on a logarithmic scale.",
        degree=None, grows=True, undefined=(NO_SAMPLES,), sources=("consonni2012",),
    ),
    coefficient(
        "consonni_todeschini_iii", "ConsonniTodeschiniIII", "Consonni and Todeschini III",
        r"\frac{\ln(1+TP)}{\ln(1+n)}", lambda t: np.log1p(t.tp) / np.log1p(t.n_each),
        "True positives among all samples on a logarithmic scale.",
        degree=None, grows=True, ideal=None, undefined=(NO_SAMPLES,), sources=("consonni2012",),
    ),
    coefficient(
        "consonni_todeschini_iv", "ConsonniTodeschiniIV", "Consonni and Todeschini IV",
        r"\frac{\ln(1+TP)}{\ln(1+TP+FP+FN)}", lambda t: np.log1p(t.tp) / np.log1p(t.union),
        "The Jaccard index on a logarithmic scale.", degree=None, grows=True, undefined=(ABSENT,), sources=("consonni2012",),
    ),
    coefficient(
        "eyraud_similarity", "Eyraud", "Eyraud's similarity in PyCM's form",
        r"\frac{TP-T\,P}{T\,P\,N\,(n-T)}",
        lambda t: (t.tp - t.actual * t.predicted) / (t.actual * t.predicted * t.rest * t.predicted_rest),
        "Here as PyCM computes it, which moves with the number of samples; Eyraud's own has factors of n in it.",
        range=(None, None), degree=None, grows=True, orientation=Orientation.DESCRIPTIVE,
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
        range=(0.0, None), degree=None, grows=True, undefined=(NO_SAMPLES, _EMPTY_MARGIN), sources=("choi2010",),
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
        lambda t: 1.0 - _wrong_guesses(t) / _blind_guesses(t),
        "How much knowing one side reduces the error of guessing the other, averaged over the two sides. 1 also where "
        "every answer is wrong.",
        chance_corrected=True, undefined=(CONSTANT,), sources=("warrens2008",),
    ),
    coefficient(
        "goodman_kruskal_lambda_r", "GoodmanKruskalLambdaR", "Goodman and Kruskal's lambda-r",
        r"\frac{TP+TN-\tau/2}{n-\tau/2},\quad\tau=\max(T,n-T)+\max(P,N)",
        lambda t: 1.0 - 2.0 * t.errors / _blind_guesses(t),
        "How much better the answers are than always naming the more frequent side.",
        range=(None, 1.0), undefined=(_CONSTANT_AND_RIGHT, _CONSTANT_AND_WRONG), sources=("warrens2008",),
    ),
    coefficient(
        "guttman_lambda_a_ovr", "GuttmanLambdaA", "one-vs-rest Guttman's lambda A",
        r"\frac{\max(TP,FN)+\max(FP,TN)-\max(T,n-T)}{n-\max(T,n-T)}",
        lambda t: (
            1.0 - (np.minimum(t.tp, t.fn) + np.minimum(t.fp, t.tn)) / np.minimum(t.predicted, t.predicted_rest)
        ),
        "How much knowing what is actual reduces the error of guessing the prediction.",
        chance_corrected=True, undefined=(NEVER_PREDICTED, ALWAYS_PREDICTED), symmetric=False, sources=("warrens2008",),
    ),
    coefficient(
        "guttman_lambda_b_ovr", "GuttmanLambdaB", "one-vs-rest Guttman's lambda B",
        r"\frac{\max(TP,FP)+\max(FN,TN)-\max(P,N)}{n-\max(P,N)}",
        lambda t: 1.0 - (np.minimum(t.tp, t.fp) + np.minimum(t.fn, t.tn)) / np.minimum(t.actual, t.rest),
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
        range=(None, None), degree=None, grows=True, undefined=(NO_SAMPLES, _ONE_SAMPLE),
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
        range=(None, 1.0), degree=None, grows=True, undefined=(ABSENT, UNIVERSAL),
    ),
    coefficient(
        "koppen_ii", "KoppenII", "Koppen II", r"TP+\frac{FP+FN}{2}", lambda t: 0.5 * t.margins,
        "Mean of the actual and of the predicted members.",
        range=(0.0, None), degree=1, orientation=Orientation.DESCRIPTIVE,
    ),
    coefficient(
        "baulieu_ii", "BaulieuII", "Baulieu II", r"\frac{TP^2\,TN^2}{P\,T\,N\,(n-T)}",
        lambda t: t.recall * t.precision * t.specificity * t.npv,
        "Product of recall, precision, specificity and NPV.", undefined=MARGINS, sources=("baulieu1989",),
    ),
)  # fmt: skip


_NOTHING_COMMON = OfMatrix(
    "infinite", "class {label} has no true positive or no true negative, so the ratio is infinite",
    lambda t: t.right == 0,
)  # fmt: skip
_NOTHING_RIGHT = OfMatrix(
    "infinite", "no answer about class {label} is right, so the value is infinite", lambda t: t.correct_ovr == 0
)
_A_MARGIN_IS_EMPTY = OfMatrix(
    "infinite", "class {label} has all samples or none, in the data or in the predictions",
    lambda t: t.actual_spread * t.predicted_spread == 0,
)  # fmt: skip


def _digby(t: Table) -> Array:
    right, wrong = t.right**0.75, t.mixed_up**0.75
    return (right - wrong) / (right + wrong)


def _gilbert_wells(t: Table) -> Array:
    """The logarithms of factorials are added up, which would overflow by themselves."""
    factorial = scipy_bridge.log_factorial
    inside = factorial(t.n_each) + (factorial(t.tp) + factorial(t.tn)) + (factorial(t.fp) + factorial(t.fn))
    outside = (factorial(t.actual) + factorial(t.predicted)) + (factorial(t.rest) + factorial(t.predicted_rest))
    product = (t.actual * t.predicted) * (t.rest * t.predicted_rest)
    return np.log(t.n_each**3 / (2.0 * pi * product)) + 2.0 * (inside - outside)


ASSOCIATIONS = (
    coefficient(
        "ample", "AMPLE", "AMPLE", r"\left|\frac{TP}{T}-\frac{FN}{n-T}\right|",
        lambda t: np.abs(t.determinant) / t.predicted_spread,
        "Size of the markedness: how far apart the shares of members are among what is predicted as the class and what "
        "is not, whichever is larger.",
        chance_corrected=True, symmetric=False, undefined=(NEVER_PREDICTED, ALWAYS_PREDICTED),
    ),
    distance(
        "batagelj_bren", "BatageljBren", "Batagelj and Bren's distance", r"\frac{FP\,FN}{TP\,TN}",
        lambda t: t.mixed_up / t.right, "One over the diagnostic odds ratio.",
        prevalence=Prevalence.INSENSITIVE_BINARY, range=(0.0, None), undefined=(*MARGINS, _NOTHING_COMMON),
    ),
    distance(
        "baulieu_iii", "BaulieuIII", "Baulieu III", r"\frac{n^2-4(TP\,TN-FP\,FN)}{2n^2}",
        lambda t: (t.n_each * t.n_each - 4.0 * t.determinant) / (2.0 * t.n_each * t.n_each),
        "Distance that is one half where prediction and truth are independent.",
        ideal=None, undefined=(NO_SAMPLES,), sources=("baulieu1989",),
    ),
    coefficient(
        "benini_i", "BeniniI", "Benini I", r"\frac{TP\,TN-FP\,FN}{P\,(n-T)}",
        lambda t: t.determinant / (t.actual * t.predicted_rest),
        "Covariance over the largest that it could be if all that is predicted were members.",
        range=(None, 1.0), chance_corrected=True, symmetric=False, undefined=(NO_ACTUAL, ALWAYS_PREDICTED),
    ),
    coefficient(
        "benini_ii", "BeniniII", "Benini II", r"\frac{TP\,TN-FP\,FN}{\min(P\,(n-T),\ T\,N)}",
        lambda t: t.determinant / np.minimum(t.actual * t.predicted_rest, t.predicted * t.rest),
        "Covariance over the largest that the margins allow.",
        range=(None, 1.0), chance_corrected=True, undefined=MARGINS, aliases=("forbes_ii",), sources=("warrens2008",),
    ),
    coefficient(
        "consonni_todeschini_v", "ConsonniTodeschiniV", "Consonni and Todeschini V",
        r"\frac{\ln(1+TP\,TN)-\ln(1+FP\,FN)}{\ln(1+n^2/4)}",
        lambda t: np.log1p(t.determinant / (1.0 + t.mixed_up)) / np.log1p(t.n_each * t.n_each / 4.0),
        "Odds ratio on a logarithmic scale, with 1 added to both products.",
        range=(-1.0, 1.0), ideal=None, degree=None, grows=True, chance_corrected=True, undefined=(NO_SAMPLES,),
        sources=("consonni2012",),
    ),
    coefficient(
        "dennis_similarity", "Dennis", "Dennis's similarity", r"\frac{TP-P\,T/n}{\sqrt{P\,T/n}}",
        lambda t: t.determinant / np.sqrt(t.n_each * t.actual * t.predicted),
        "True positives beyond chance in standard deviations of a Poisson number; grows with the number of samples.",
        range=(None, None), degree=None, grows=True, chance_corrected=True, undefined=(NO_ACTUAL, NEVER_PREDICTED),
        sources=("choi2010",),
    ),
    coefficient(
        "digby_h", "Digby", "Digby's H", r"\frac{(TP\,TN)^{3/4}-(FP\,FN)^{3/4}}{(TP\,TN)^{3/4}+(FP\,FN)^{3/4}}", _digby,
        "Like Yule's Q and Y with another power of the odds ratio, near to the tetrachoric correlation.",
        prevalence=Prevalence.INSENSITIVE_BINARY, range=(-1.0, 1.0), chance_corrected=True, undefined=MARGINS,
        sources=("warrens2008",),
    ),
    coefficient(
        "dispersion", "Dispersion", "dispersion", r"\frac{TP\,TN-FP\,FN}{n^2}",
        lambda t: t.determinant / (t.n_each * t.n_each), "Covariance of being the class and being predicted as it.",
        range=(-0.25, 0.25), ideal=None, chance_corrected=True, undefined=(NO_SAMPLES,), sources=("choi2010",),
    ),
    coefficient(
        "doolittle", "Doolittle", "Doolittle's coefficient", r"\frac{(n\,TP-P\,T)^2}{P\,T\,N\,(n-T)}",
        lambda t: t.determinant * t.determinant / (t.actual_spread * t.predicted_spread),
        "Square of the one-vs-rest Matthews correlation: it does not tell agreement from its opposite.",
        chance_corrected=True, undefined=MARGINS, sources=("warrens2008",),
    ),
    coefficient(
        "gilbert_wells", "GilbertWells", "Gilbert and Wells's similarity",
        r"\ln\frac{n^3}{2\pi\,P\,T\,N\,(n-T)}+2\ln\frac{n!\,TP!\,FP!\,FN!\,TN!}{P!\,T!\,N!\,(n-T)!}", _gilbert_wells,
        "How improbable the table is under independence, in logarithms; high for agreement and for its opposite.",
        range=(None, None), degree=None, grows=True, orientation=Orientation.DESCRIPTIVE,
        undefined=(NO_SAMPLES, _A_MARGIN_IS_EMPTY), sources=("choi2010",),
    ),
    coefficient(
        "kuder_richardson", "KuderRichardson", "Kuder and Richardson's coefficient",
        r"\frac{4(TP\,TN-FP\,FN)}{T(n-T)+P\,N+2(TP\,TN-FP\,FN)}",
        lambda t: 4.0 * t.determinant / (4.0 * t.right + t.correct_ovr * t.errors),
        "Reliability of the two sides taken as a test of two items (Cronbach's alpha).",
        range=(None, 1.0), chance_corrected=True, undefined=(CONSTANT, _NOTHING_RIGHT), sources=("warrens2008",),
    ),
    *(
        coefficient(
            f"kuhns_{number.lower()}", f"Kuhns{number}", f"Kuhns {number}", rf"\frac{{\delta}}{{{below}}},\quad"
            r"\delta=TP-\frac{P\,T}{n}", value, f"True positives beyond chance over {words}.",
            range=ends, ideal=ideal, chance_corrected=True, undefined=undefined, sources=("kuhns1964",),
        )
        for number, below, value, words, ends, ideal, undefined in (
            ("I", r"n/2", lambda t: 2.0 * t.determinant / (t.n_each * t.n_each), "half of the samples",
             (-0.5, 0.5), None, (NO_SAMPLES,)),
            ("II", r"\max(P,T)", lambda t: t.determinant / (t.n_each * np.maximum(t.actual, t.predicted)),
             "the larger of the actual and the predicted members", (-1.0, 1.0), None, (ABSENT,)),
            ("III", r"\left(1-\frac{TP}{P+T}\right)\left(P+T-\frac{P\,T}{n}\right)",
             lambda t: t.determinant * t.margins / (t.union * (t.n_each * t.margins - t.actual * t.predicted)),
             "the members of either side, those of both and by chance left out", (-1.0, 1.0), None, (ABSENT,)),
            ("IV", r"\min(P,T)", lambda t: t.determinant / (t.n_each * np.minimum(t.actual, t.predicted)),
             "the smaller of the actual and the predicted members", (-1.0, 1.0), None, (NO_ACTUAL, NEVER_PREDICTED)),
            ("V", r"\max(P\,N,\ T(n-T))/n", lambda t: t.determinant / np.maximum(t.actual_spread, t.predicted_spread),
             "the larger of the two variances", (-1.0, 1.0), 1.0, (CONSTANT,)),
            ("VI", r"\min(P\,N,\ T(n-T))/n", lambda t: t.determinant / np.minimum(t.actual_spread, t.predicted_spread),
             "the smaller of the two variances", (-1.0, 1.0), 1.0, MARGINS),
            ("VII", r"\sqrt{P\,T}", lambda t: t.determinant / (t.n_each * np.sqrt(t.actual * t.predicted)),
             "the geometric mean of the actual and the predicted members", (-1.0, 1.0), None,
             (NO_ACTUAL, NEVER_PREDICTED)),
        )
    ),
)  # fmt: skip


_ONE_AND_WRONG = OfMatrix(
    "infinite", "class {label} has a single actual or predicted member, and it is an error",
    lambda t: (t.union == 1) & (t.errors > 0),
)  # fmt: skip
_ONE_AND_RIGHT = OfMatrix(
    "one_sample", "class {label} has a single member, and it is recognised: the formula divides 0 by 0",
    lambda t: (t.union == 1) & (t.errors == 0),
)  # fmt: skip


def _worse(t: Table) -> Array:
    return t.errors + np.maximum(t.fp, t.fn)


def _cubic(t: Table) -> Array:
    return t.tp * (t.tp - 4.0) ** 2


BAULIEU: tuple[Metric[Table], ...] = (
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
        range=(None, 1.0), degree=None, grows=True, undefined=(NO_SAMPLES,), sources=("baulieu1997",),
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
        degree=None, grows=True, undefined=(NO_SAMPLES,), sources=("baulieu1997",),
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
    # Adding 0 turns the negative zero 0 / -1 into 0.
    distance(
        "baulieu_xii", "BaulieuXII", "Baulieu XII", r"\frac{FP+FN}{TP+FP+FN-1}", lambda t: t.errors / (t.union - 1.0) + 0.0,
        "One less the Jaccard index, with one member less.",
        range=(0.0, None), degree=None, undefined=(_ONE_AND_RIGHT, _ONE_AND_WRONG), sources=("baulieu1997",),
    ),
    distance(
        "baulieu_xiii", "BaulieuXIII", "Baulieu XIII", r"\frac{FP+FN}{TP+FP+FN+TP\,(TP-4)^2}",
        lambda t: t.errors / (t.union + _cubic(t)),
        "One less the Jaccard index, with a cubic term of the true positives.",
        degree=None, grows=True, undefined=(ABSENT,), sources=("baulieu1997",),
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
