"""Chance-corrected agreement of the whole matrix: MCC, the kappa family, alpha and Bangdiwala's B.

Denominators such as n^2 - sum P T are written as sums of products of counts: the difference loses all digits when one
class dominates.

Aickin's alpha (1990) describes a mixture of cases agreed on for a reason and cases agreed on by chance: p_e = sum a_k
b_k, alpha = (p_o - p_e)/(1 - p_e), a_k = A_k/(1 - alpha + alpha b_k/p_e), b_k = B_k/(1 - alpha + alpha a_k/p_e) with A
and B the predicted and the actual class shares. The published iteration takes thousands of steps when agreement is
good. Here alpha alone is searched. With tau = alpha/((p_o - alpha)(1 - alpha)) and u_k = (1 - alpha) b_k the equations
become tau u_k^2 + (1 + tau g_k) u_k = B_k, g = A - B, one quadratic per class, and (1 - alpha) a_k = u_k + g_k. Where
g_k < 0 the equation of the other side has the same form with A_k and -g_k. With w_k the smaller of the two, tau w_k^2 +
(1 + tau |g_k|) w_k = min(A_k, B_k), where nothing is subtracted. The remaining equation is alpha = tau sum w_k (w_k +
|g_k|).

Alpha is the share of the cases that are agreed on for a reason. Below chance (kappa < 0) there is none: some numbers
solve the equations there, above 1 among them, but none is a share.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, lru_cache, partial

import numpy as np

from app.kernel.matrix.table import AdditiveGradient, Table
from app.kernel.metrics.card import CLUSTERINGS, Choice, MatrixOf, Orientation, Prevalence, Scale, Scope, metric
from app.kernel.metrics.conditions import (
    CHANCE_IS_CERTAIN,
    NO_CLASS_IN_COMMON,
    NO_SAMPLES,
    ONE_ACTUAL_CLASS,
    ONE_PREDICTED_CLASS,
    POOLED_CHANCE_IS_CERTAIN,
    OfMatrix,
)
from app.kernel.metrics.exact import (
    Exact,
    beyond_chance,
    correlation_squared,
    gwet_agreement,
    krippendorff_agreement,
    signed_square,
)
from app.kernel.metrics.proportion import ConfusionCells, LinearMap, Proportion
from app.kernel.metrics.references import KAPPA_SCALES, KRIPPENDORFF, MATTHEWS
from app.kernel.numerics.arrays import (
    Array,
    Mask,
    each,
    every,
    inner,
    kept,
    newton_root,
    ones,
    rising_root,
    solve_where,
    some,
    total,
)

# Rounding error of kappas and of sums of shares.
_ROUNDING = 1e-14
_NEAR_KAPPA = 0.1

Equation = Callable[[Array], tuple[Array, Array]]


def is_below_chance(kappa: Array) -> Mask:
    """Mask (...) of the matrices whose Cohen's kappa (...) is negative by more than rounding."""
    return kappa < -_ROUNDING


def aickin_alpha_of(actual: Array, predicted: Array, observed: Array, kappa: Array) -> Array:
    """Aickin's alpha (...) from class shares (..., K), p_o (...) and Cohen's kappa (...); NaN below chance.

    Where all confusions between the classes go one way, no agreement by chance is left: p_e -> 0 and alpha tends to
    p_o.
    """
    under_predicted = total(np.abs(predicted - actual)) / 2.0
    above = kappa > _ROUNDING
    one_way = above & (under_predicted >= 1.0 - observed - _ROUNDING)
    above = above & ~one_way
    if every(above):
        return above_chance(actual, predicted, observed, kappa)
    solution = np.where(one_way, observed, np.where(np.abs(kappa) <= _ROUNDING, 0.0, np.nan))
    if some(above):
        solution = np.where(above, solve_where(above, above_chance, actual, predicted, observed, kappa), solution)
    return solution


def above_chance(actual: Array, predicted: Array, observed: Array, kappa: Array) -> Array:
    """Aickin's alpha (...) where kappa > 0.

    sum b_k is at least 1 at kappa, and at p_o it is sum max(B_k - A_k, 0) / (1 - p_o) < 1. So there is a root between
    them, mostly near kappa; with equal margins it is kappa itself.
    """
    equation, start = _equation(actual, predicted, observed), kappa + _NEAR_KAPPA * (observed - kappa)
    low = kappa * (1.0 - 10.0 * _ROUNDING)
    root = newton_root(equation, start, low=low, high=observed)
    missed = np.isnan(root)
    return np.where(missed, rising_root(equation, low=low, high=observed), root) if some(missed) else root


def _equation(actual: Array, predicted: Array, observed: Array) -> Equation:
    """Nearly linear function 1 - alpha/(tau sum w_k (w_k + |g_k|)) of alpha, with its derivative."""
    gap, smaller = np.abs(predicted - actual), np.minimum(predicted, actual)
    fourfold = 4.0 * smaller

    def lacking(alpha: Array) -> tuple[Array, Array]:
        free, missing = 1.0 - alpha, observed - alpha
        rest = free * missing
        # The quadratic over tau: w^2 + (|g| + 1/tau) w = min(A, B) / tau.
        spare = rest / alpha
        rarity = each(spare)
        linear, source = gap + rarity, fourfold * rarity
        root = np.sqrt(linear * linear + source)
        w = 0.5 * source / (linear + root)
        more = w + gap
        product = w * more
        joint = total(product)
        # (u v)' = -u v (u + v) / (tau root) by tau.
        fall = inner(product / root, w + more)
        # (rest)' = -(free + missing) by alpha.
        both, share = free + missing, rest / joint
        return 1.0 - share, (both - fall / joint * (spare + both)) / joint

    return lacking


# |i-j| (`linear`), (i-j)^2 (`quadratic`), or a matrix (K, K) with actual classes as rows.
Weights = str | tuple[tuple[float, ...], ...]


@lru_cache(maxsize=8)
def _disagreement(n_classes: int, weights: Weights) -> Array:
    """Disagreement weights |i-j| or (i-j)^2 or those given, of shape (K, K)."""
    if not isinstance(weights, str):
        given = np.array(weights)
        return given if given[0, 0] == 0.0 else 1.0 - given
    distance = np.abs(np.subtract.outer(np.arange(n_classes, dtype=np.float64), np.arange(n_classes, dtype=np.float64)))
    return distance if weights == "linear" else distance * distance


@kept
def disagreements(t: Table, weights: Weights) -> tuple[Array, Array]:
    """sum_ij v_ij n_ij and sum_ij v_ij P_i T_j."""
    v = _disagreement(t.n_classes, weights)
    return total(np.vecdot(t.counts, v)), inner(t.actual @ v, t.predicted)


@cache
def _credit_sums(n_classes: int, weights: str) -> Array:
    """sum_j (1 - v_ij/v_max) of shape (K,)."""
    v = _disagreement(n_classes, weights)
    sums: Array = (1.0 - v / v.max()).sum(axis=0)
    return sums


def weighted_alpha_parts(t: Table, weights: str) -> tuple[Array, Array]:
    """1 - p_o and 1 - p_e of the weighted alpha. Unlike other chance agreements this p_e can exceed 1."""
    largest = float(t.n_classes - 1) ** (1 if weights == "linear" else 2)
    observed, expected = disagreements(t, weights)
    # sum (1 - v_ij/v_max)(P_i + T_j)^2, multiplied out so that no (..., K, K) array is made.
    squares = total((t.actual * t.actual + t.predicted * t.predicted) * _credit_sums(t.n_classes, weights))
    chance = (squares + 2.0 * (t.pairs - expected / largest)) / (4.0 * t.pairs)
    return observed / (largest * t.n), 1.0 - chance


_agreement = partial(
    metric,
    scope=Scope.OVERALL,
    prevalence=Prevalence.SENSITIVE,
    range=(-1.0, 1.0),
    chance_corrected=True,
    symmetric=True,
)
_chance = partial(
    metric,
    scope=Scope.OVERALL,
    prevalence=Prevalence.SENSITIVE,
    orientation=Orientation.DESCRIPTIVE,
    undefined=(NO_SAMPLES,),
    symmetric=True,
)
_WEIGHTS = Choice(
    "weights",
    "linear",
    "disagreement |i-j| ('linear') or (i-j)^2 ('quadratic') in label order",
    ("linear", "quadratic"),
)
_ANY_WEIGHTS = replace(
    _WEIGHTS,
    description=f"{_WEIGHTS.description}, or a matrix as '0,1,4; 1,0,1; 4,1,0' with actual classes as rows in label "
    "order: disagreement with 0 on the diagonal, or agreement with 1 there (and at most 1 elsewhere)",
    matrix=MatrixOf.WEIGHTS,
)


def _of_mcc(t: Table) -> AdditiveGradient:
    """Gradient of R_K = (po - pe) / sqrt(x y) with x = 1 - sum P^2 and y = 1 - sum T^2.

    g_ij = ([i = j] - T_i - P_j) / sqrt(x y) + R_K (P_i/x + T_j/y).
    """
    n = t.n
    x, y = t.actual_pairs, t.predicted_pairs
    scale = 1.0 / np.sqrt(x * y)
    value = t.covariance * scale
    actual, predicted = t.actual * t.n_each, t.predicted * t.n_each
    falling = each(scale)
    return AdditiveGradient(
        ones(t.n_classes) * each(scale * n * n),
        each(value / x) * actual - falling * predicted,
        each(value / y) * predicted - falling * actual,
    )


def _of_kappa(t: Table) -> AdditiveGradient:
    """[i = j]/(1-pe) - (1-po)(T_i + P_j)/(1-pe)^2, which has the variance of Fleiss, Cohen & Everitt (1969)."""
    left = t.chance_disagreement / (t.n * t.n)
    slope = each(-t.wrong / (t.n * left) ** 2)
    return AdditiveGradient(ones(t.n_classes) / each(left), slope * t.predicted, slope * t.actual)


@_agreement(
    name="Matthews correlation coefficient",
    symbol="R_K",
    formula=r"\frac{n\sum_k n_{kk}-\sum_k P_kT_k}{\sqrt{(n^2-\sum_k P_k^2)(n^2-\sum_k T_k^2)}}",
    sentence="Correlation of the actual and the predicted class over all classes (Gorodkin's R_K).",
    aliases=("matthews_correlation", "r_k"),
    elsewhere={
        "sklearn": "matthews_corrcoef",
        "pycm": "Overall MCC",
        "torchmetrics": "MulticlassMatthewsCorrCoef",
    },
    undefined=(ONE_ACTUAL_CLASS, ONE_PREDICTED_CLASS),
    scales=(MATTHEWS,),
    references=("gorodkin2004", "aguilar2025", "wu2025", "martin2022", "beddar2025"),
    headline=True,
    scale=Scale.LOGIT,
    gradient=_of_mcc,
    exact=Exact(correlation_squared, squared=True),
)
def mcc(t: Table) -> Array:
    return t.covariance / np.sqrt(t.actual_pairs * t.predicted_pairs)


@_agreement(
    name="Cohen's kappa",
    symbol=r"\kappa",
    formula=r"\frac{p_o-p_e}{1-p_e},\quad p_e=\sum_k\frac{P_kT_k}{n^2}",
    sentence="Agreement beyond what class prevalence alone would give.",
    aliases=("kappa",),
    elsewhere={"sklearn": "cohen_kappa_score", "pycm": "Kappa", "torchmetrics": "MulticlassCohenKappa"},
    undefined=(CHANCE_IS_CERTAIN,),
    scales=KAPPA_SCALES,
    references=("cohen1960", "aguilar2025", "martin2022", "beddar2025"),
    headline=True,
    scale=Scale.LOGIT,
    gradient=_of_kappa,
    exact=Exact(lambda m: beyond_chance(m.correct / m.n, m, lambda c: c.actual * c.predicted)),
)
def cohen_kappa(t: Table) -> Array:
    return t.covariance / t.chance_disagreement


@_agreement(
    name="weighted kappa",
    symbol=r"\kappa_w",
    formula=r"1-\frac{\sum_{ij}v_{ij}n_{ij}}{\sum_{ij}v_{ij}P_iT_j/n}",
    sentence="Kappa for ordered classes: a confusion counts by how far apart the two classes are, or what it is given.",
    elsewhere={"sklearn": "cohen_kappa_score(weights=...)", "pycm": "weighted_kappa"},
    range_of_matrix=(None, 1.0),
    parameters=(_ANY_WEIGHTS,),
    undefined=(CHANCE_IS_CERTAIN,),
    ordered=True,
    scales=KAPPA_SCALES,
    references=("cohen1968", "beddar2025"),
)
def weighted_kappa(t: Table, weights: Weights = "linear") -> Array:
    observed, expected = disagreements(t, weights)
    return 1.0 - t.n * observed / expected


@_agreement(
    name="Scott's pi",
    symbol=r"\pi",
    formula=r"\frac{p_o-p_e}{1-p_e},\quad p_e=\sum_k\left(\frac{P_k+T_k}{2n}\right)^2",
    sentence="Kappa with one pooled class distribution for data and predictions.",
    aliases=("kappa_unbiased",),
    elsewhere={"pycm": "Scott PI"},
    undefined=(POOLED_CHANCE_IS_CERTAIN,),
    scales=KAPPA_SCALES,
    references=("scott1955", "beddar2025"),
    exact=Exact(lambda m: beyond_chance(m.correct / m.n, m, lambda c: signed_square(c.actual + c.predicted) / 4)),
)
def scott_pi(t: Table) -> Array:
    return (4.0 * t.n * t.correct - t.pooled_squares) / t.pooled_disagreement


@_agreement(
    name="Bennett's S",
    symbol=r"\kappa_n",
    formula=r"\frac{p_o-1/K}{1-1/K}",
    sentence="Agreement beyond guessing each class equally often (free-marginal kappa, Brennan-Prediger). Always naming a "
    "class with most of the samples scores high.",
    aliases=("kappa_n", "brennan_prediger"),
    elsewhere={"pycm": "Bennett S"},
    undefined=(NO_SAMPLES,),
    scales=KAPPA_SCALES,
    references=("bennett1954", "beddar2025"),
    proportion=Proportion(ConfusionCells.RIGHT, ConfusionCells.ALL, lambda k: LinearMap(-1.0 / (k - 1), k / (k - 1))),
    exact=Exact(lambda m: (m.correct / m.n * len(m.classes) - 1) / (len(m.classes) - 1)),
)
def bennett_s(t: Table) -> Array:
    chance = 1.0 / t.n_classes
    return (t.accuracy - chance) / (1.0 - chance)


@_agreement(
    name="kappa no prevalence",
    formula=r"2p_o-1",
    sentence="Twice the accuracy less one. Despite its name in other tools it moves with prevalence.",
    elsewhere={"pycm": "Kappa No Prevalence"},
    undefined=(NO_SAMPLES,),
    chance_corrected=False,
    references=("byrt1993",),
    proportion=Proportion(ConfusionCells.RIGHT, ConfusionCells.ALL, lambda _: LinearMap(-1.0, 2.0)),
    exact=Exact(lambda m: 2 * (m.correct / m.n) - 1),
)
def kappa_no_prevalence(t: Table) -> Array:
    return 2.0 * t.accuracy - 1.0


@_agreement(
    name="Gwet's AC1",
    symbol="AC_1",
    formula=r"\frac{p_o-e}{1-e},\quad e=\frac{1}{K-1}\sum_k\pi_k(1-\pi_k),\ \pi_k=\frac{P_k+T_k}{2n}",
    sentence="Chance-corrected agreement that stays high when one class dominates, also for a model that always names "
    "that class.",
    elsewhere={"pycm": "Gwet AC1"},
    undefined=(NO_SAMPLES,),
    references=("gwet2008",),
    exact=Exact(gwet_agreement),
)
def gwet_ac1(t: Table) -> Array:
    chance = t.pooled_disagreement / (4.0 * t.pairs) / (t.n_classes - 1)
    return (t.accuracy - chance) / (1.0 - chance)


@_agreement(
    name="Krippendorff's alpha",
    symbol=r"\alpha",
    formula=r"\frac{p_a-p_e}{1-p_e},\quad p_a=\left(1-\frac{1}{2n}\right)p_o+\frac{1}{2n}",
    sentence="Nominal reliability with pooled class prevalence and a small-sample correction.",
    elsewhere={"pycm": "Krippendorff Alpha"},
    undefined=(POOLED_CHANCE_IS_CERTAIN,),
    degree=None,
    scales=(KRIPPENDORFF,),
    references=("krippendorff2004",),
    exact=Exact(krippendorff_agreement),
)
def krippendorff_alpha(t: Table) -> Array:
    wrong = t.wrong / t.n
    return 1.0 - (1.0 - 0.5 / t.n) * wrong * (4.0 * t.pairs) / t.pooled_disagreement


@_agreement(
    name="weighted Krippendorff alpha",
    formula=r"\frac{p_a-p_e}{1-p_e},\quad "
    r"p_e=\sum_{ij}\left(1-\frac{v_{ij}}{v_{max}}\right)\left(\frac{P_i+T_j}{2n}\right)^2",
    sentence="Krippendorff's alpha with partial credit for confusions of neighbouring classes, in PyCM's definition.",
    elsewhere={"pycm": "weighted_alpha"},
    range=(None, None),
    ideal=1.0,
    parameters=(_WEIGHTS,),
    undefined=(
        NO_SAMPLES,
        OfMatrix(
            "chance_agreement_is_one",
            "agreement by chance is complete in this definition and nothing is wrong",
            lambda t: (weighted_alpha_parts(t, "linear")[1] == 0) & (t.wrong == 0),
        ),
        OfMatrix(
            "infinite",
            "agreement by chance is complete in this definition although there are errors",
            lambda t: (weighted_alpha_parts(t, "linear")[1] == 0) & (t.wrong > 0),
        ),
    ),
    ordered=True,
    degree=None,
    scales=(KRIPPENDORFF,),
)
def weighted_alpha(t: Table, weights: str = "linear") -> Array:
    observed, by_chance = weighted_alpha_parts(t, weights)
    return 1.0 - (1.0 - 0.5 / t.n) * observed / by_chance


@_agreement(
    name="Aickin's alpha",
    symbol=r"\alpha_A",
    formula=r"\alpha=\frac{p_o-p_e}{1-p_e},\ p_e=\sum_k a_kb_k,\ a_k=\frac{T_k/n}{1-\alpha+\alpha b_k/p_e},\ "
    r"b_k=\frac{P_k/n}{1-\alpha+\alpha a_k/p_e}",
    sentence="Share of the cases that are agreed on for a reason, when only the cases hard to classify are thought to "
    "agree by chance; the fixed point.",
    elsewhere={"pycm": "aickin_alpha"},
    range=(0.0, 1.0),
    undefined=(
        CHANCE_IS_CERTAIN,
        OfMatrix(
            "below_chance",
            "agreement is below chance, where no share of the cases can be agreed on for a reason",
            lambda t: is_below_chance(t.covariance / t.chance_disagreement),
        ),
    ),
    references=("aickin1990",),
    revision=2,
)
def aickin_alpha(t: Table) -> Array:
    return aickin_alpha_of(t.prevalence, t.predicted_prevalence, t.accuracy, t.covariance / t.chance_disagreement)


@_agreement(
    name="Bangdiwala's B",
    symbol="B",
    range=(0.0, 1.0),
    formula=r"\frac{\sum_k n_{kk}^2}{\sum_k P_kT_k}",
    sentence="Area of agreement over the area of the rectangles of the margins in the agreement chart.",
    elsewhere={"pycm": "Bangdiwala B"},
    undefined=(OfMatrix("no_common_class", "no class is both actual and predicted", lambda t: t.correct_margins == 0),),
    chance_corrected=False,
    references=("bangdiwala1985",),
)
def bangdiwala_b(t: Table) -> Array:
    return inner(t.tp, t.tp) / t.correct_margins


@_chance(
    name="chance agreement (Cohen)",
    symbol="p_e",
    formula=r"\sum_k\frac{P_kT_k}{n^2}",
    sentence="Accuracy of drawing predictions at random with the same class prevalence.",
    elsewhere={"pycm": "Overall RACC"},
    references=("cohen1960",),
)
def expected_accuracy(t: Table) -> Array:
    return t.correct_margins / t.pairs


@_chance(
    name="chance agreement (Scott)",
    formula=r"\sum_k\left(\frac{P_k+T_k}{2n}\right)^2",
    sentence="Chance agreement with actual and predicted shares pooled.",
    elsewhere={"pycm": "Overall RACCU"},
    references=("scott1955",),
)
def expected_accuracy_unbiased(t: Table) -> Array:
    return t.pooled_squares / (4.0 * t.pairs)


@_chance(
    name="standard error of kappa",
    range=(0.0, None),
    orientation=Orientation.LOWER,
    formula=r"\sqrt{\frac{p_o(1-p_o)}{n(1-p_e)^2}}",
    sentence="Simple standard error of kappa with chance agreement taken as known; intervals use the delta method "
    "instead.",
    elsewhere={"pycm": "Kappa Standard Error"},
    undefined=(CHANCE_IS_CERTAIN,),
    degree=None,
    references=("cohen1960",),
    about_sample=True,
)
def kappa_standard_error(t: Table) -> Array:
    return np.sqrt(t.accuracy * (t.wrong / t.n) / t.n) * t.pairs / t.chance_disagreement


@_agreement(
    name="adjusted Rand index",
    symbol="ARI",
    formula=r"\frac{\sum_{ij}\binom{n_{ij}}2-E}{\frac12\left[\sum_i\binom{P_i}2+\sum_j\binom{T_j}2\right]-E},\quad "
    r"E=\frac{\sum_i\binom{P_i}2\sum_j\binom{T_j}2}{\binom n2}",
    sentence="Agreement of the two groupings about which pairs belong together, whatever the groups are called.",
    elsewhere={"pycm": "ARI", "sklearn": "adjusted_rand_score"},
    differs={
        "sklearn": "1 where both groupings put all samples together or every sample alone, and for one sample; here there "
        "is no value then"
    },
    undefined=(
        OfMatrix("fewer_than_two_samples", "there is no pair of samples", lambda t: t.n < 2),
        OfMatrix(
            "trivial_grouping",
            "both groupings put all samples together or every sample alone",
            lambda t: _rand_parts(t)[1] == 0,
        ),
    ),
    degree=None,
    references=("hubert1985", "beddar2025"),
    sums=("squares", "actual_squares", "predicted_squares"),
    scale=Scale.LOGIT,
    also=CLUSTERINGS,
    headline_of=CLUSTERINGS,
)
def adjusted_rand(t: Table) -> Array:
    agreement, spread = _rand_parts(t)
    return agreement / spread


def _rand_parts(t: Table) -> tuple[Array, Array]:
    """Numerator and denominator in counts of ordered pairs of samples: together or apart in data and in prediction.

    They are sums of squares, exact while n^2 < 2^53, where the binomials less their expectation lose digits.
    """
    both, apart = t.squares - t.n, t.pairs + t.squares - t.actual_squares - t.predicted_squares
    only_actual, only_predicted = t.actual_squares - t.squares, t.predicted_squares - t.squares
    spread = (both + only_actual) * (only_actual + apart) + (both + only_predicted) * (only_predicted + apart)
    return 2.0 * (both * apart - only_actual * only_predicted), spread


_statistic = partial(
    metric,
    scope=Scope.OVERALL,
    prevalence=Prevalence.SENSITIVE,
    orientation=Orientation.DESCRIPTIVE,
    degree=None,
    on_request=True,
    about_sample=True,
)


@_statistic(
    name="z test statistic of kappa",
    symbol="z",
    formula=r"\frac{\kappa}{\sigma_0},\quad \sigma_0=\frac{\sqrt{p_e+p_e^2-\sum_i p_{i\cdot}p_{\cdot i}"
    r"(p_{i\cdot}+p_{\cdot i})}}{(1-p_e)\sqrt{n}}",
    sentence="Kappa in standard errors that it would have were there no agreement beyond chance: beyond 1.96 or below "
    "-1.96 it differs from 0 at 5 %, two-sided.",
    range=(None, None),
    symmetric=True,
    undefined=(NO_SAMPLES, ONE_ACTUAL_CLASS, ONE_PREDICTED_CLASS, NO_CLASS_IN_COMMON),
    references=("fleiss1969",),
)
def kappa_z(t: Table) -> Array:
    # In counts, as a sum of non-negative terms.
    both = t.actual * t.predicted
    chance = total(both)
    spread = inner(both, t.rest * t.predicted_rest + (chance[..., None] - both))
    return t.covariance * np.sqrt(t.n / spread)


# The catalogue lists it after the metrics of reports.
ON_REQUEST = (kappa_z,)
