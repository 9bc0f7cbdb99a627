"""Coefficients that are 0 where prediction and truth are independent, and those of the odds."""

from math import pi

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Orientation, Prevalence
from app.kernel.metrics.conditions import (
    ABSENT,
    ALWAYS_PREDICTED,
    MARGINS,
    NEVER_PREDICTED,
    NO_ACTUAL,
    NO_SAMPLES,
    where,
)
from app.kernel.metrics.families.similarity.build import CONSTANT, coefficient, distance
from app.kernel.numerics import scipy_bridge
from app.kernel.numerics.arrays import Array

_NOTHING_COMMON = where(
    "infinite", "class {label} has no true positive or no true negative, so the ratio is infinite",
    lambda t: t.right == 0,
)  # fmt: skip
_NOTHING_RIGHT = where(
    "infinite", "no answer about class {label} is right, so the value is infinite", lambda t: t.correct_ovr == 0
)
_A_MARGIN_IS_EMPTY = where(
    "infinite", "class {label} has all samples or none, in the data or in the predictions",
    lambda t: t.actual * t.rest * t.predicted * t.predicted_rest == 0,
)  # fmt: skip


def _spread(t: Table) -> Array:
    """P N."""
    return t.actual * t.rest


def _predicted_spread(t: Table) -> Array:
    """T (n - T)."""
    return t.predicted * t.predicted_rest


def _odds_power(t: Table) -> tuple[Array, Array]:
    return t.right**0.75, t.mixed_up**0.75


def _digby(t: Table) -> Array:
    right, wrong = _odds_power(t)
    return (right - wrong) / (right + wrong)


def _gilbert_wells(t: Table) -> Array:
    """The logarithms of factorials are added up, which would overflow by themselves."""
    factorial = scipy_bridge.log_factorial
    inside = factorial(t.n_each) + (factorial(t.tp) + factorial(t.tn)) + (factorial(t.fp) + factorial(t.fn))
    outside = (factorial(t.actual) + factorial(t.predicted)) + (factorial(t.rest) + factorial(t.predicted_rest))
    product = (t.actual * t.predicted) * (t.rest * t.predicted_rest)
    return np.log(t.n_each**3 / (2.0 * pi * product)) + 2.0 * (inside - outside)


COEFFICIENTS = (
    coefficient(
        "ample", "AMPLE", "AMPLE", r"\left|\frac{TP}{T}-\frac{FN}{n-T}\right|",
        lambda t: np.abs(t.determinant) / _predicted_spread(t),
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
        range=(-1.0, 1.0), ideal=None, degree=None, chance_corrected=True, undefined=(NO_SAMPLES,),
        sources=("consonni2012",),
    ),
    coefficient(
        "dennis_similarity", "Dennis", "Dennis's similarity", r"\frac{TP-P\,T/n}{\sqrt{P\,T/n}}",
        lambda t: t.determinant / np.sqrt(t.n_each * t.actual * t.predicted),
        "True positives beyond chance in standard deviations of a Poisson number; grows with the number of samples.",
        range=(None, None), ideal=None, degree=None, chance_corrected=True, undefined=(NO_ACTUAL, NEVER_PREDICTED),
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
        lambda t: t.determinant * t.determinant / (_spread(t) * _predicted_spread(t)),
        "Square of the one-vs-rest Matthews correlation: it does not tell agreement from its opposite.",
        chance_corrected=True, undefined=MARGINS, sources=("warrens2008",),
    ),
    coefficient(
        "gilbert_wells", "GilbertWells", "Gilbert and Wells's similarity",
        r"\ln\frac{n^3}{2\pi\,P\,T\,N\,(n-T)}+2\ln\frac{n!\,TP!\,FP!\,FN!\,TN!}{P!\,T!\,N!\,(n-T)!}", _gilbert_wells,
        "How improbable the table is under independence, in logarithms; high for agreement and for its opposite.",
        range=(None, None), ideal=None, degree=None, orientation=Orientation.DESCRIPTIVE,
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
            ("V", r"\max(P\,N,\ T(n-T))/n", lambda t: t.determinant / np.maximum(_spread(t), _predicted_spread(t)),
             "the larger of the two variances", (-1.0, 1.0), 1.0, (CONSTANT,)),
            ("VI", r"\min(P\,N,\ T(n-T))/n", lambda t: t.determinant / np.minimum(_spread(t), _predicted_spread(t)),
             "the smaller of the two variances", (-1.0, 1.0), 1.0, MARGINS),
            ("VII", r"\sqrt{P\,T}", lambda t: t.determinant / (t.n_each * np.sqrt(t.actual * t.predicted)),
             "the geometric mean of the actual and the predicted members", (-1.0, 1.0), None,
             (NO_ACTUAL, NEVER_PREDICTED)),
        )
    ),
)  # fmt: skip
