"""Closeness of probabilities to the truth: phi, and the (imbalanced) multiclass classification performance curves."""

from functools import partial

import numpy as np

from app.kernel.metrics.card import Inputs, Number, Orientation, Prevalence, Scope, metric
from app.kernel.metrics.conditions import NO_ACTUAL, NO_WEIGHT, NOT_PROBABILITIES, ONE_SAMPLE, WEIGHTED
from app.kernel.numerics.arrays import Array, mean, ratio, silently, total
from app.kernel.samples.influence import mean_of, mean_of_class_means, mean_of_members, share_of
from app.kernel.samples.losses import TOLERANCE, phi_of
from app.kernel.samples.scores import Parameters, Scores

_closeness = partial(metric, inputs=Inputs.PROBABILITIES, proper=False, references=("aguilar2024",))
_overall = partial(
    _closeness, scope=Scope.OVERALL, prevalence=Prevalence.SENSITIVE, undefined=(NOT_PROBABILITIES, NO_WEIGHT)
)
_per_class = partial(_closeness, scope=Scope.CLASS, prevalence=Prevalence.INSENSITIVE)


def _phi(s: Scores, _: Parameters) -> Array:
    """1 - Hellinger distance between row and truth = 1 - sqrt(1 - sqrt(p_true)) (Aguilar-Ruiz & Michalak 2024)."""
    return phi_of(s.p_true)


def _sure(s: Scores, _: Parameters) -> Array:
    return (s.p_true > 0.5 + TOLERANCE).astype(np.float64)


def _ruled_out(s: Scores, _: Parameters) -> Array:
    return (s.p_true < 1.0 / s.n_classes - TOLERANCE).astype(np.float64)


def _neither(s: Scores, _: Parameters) -> Array:
    return ((s.p_true <= 0.5 + TOLERANCE) & (s.p_true >= 1.0 / s.n_classes - TOLERANCE)).astype(np.float64)


@_overall(
    name="area under the IMCP curve",
    symbol="AU(IMCP)",
    prevalence=Prevalence.INSENSITIVE,
    formula=r"\sum_i \delta_i \varphi_i = \frac{1}{K} \sum_k \frac{1}{n_k} \sum_{i: y_i = k} \varphi_i",
    sentence="Mean closeness of the probabilities to the truth, every class counting the same.",
    undefined=(NOT_PROBABILITIES, NO_ACTUAL),
    headline=True,
    influence=mean_of_class_means(_phi),
)
def au_imcp(s: Scores) -> Array:
    return mean(mean_phi.compute(s))


@_overall(
    name="area under the IMCP curve, trapezoids",
    formula=r"\sum_i \delta_i \varphi_i - \frac{1}{4} \sum_i (\delta_{i+1} - \delta_i)(\varphi_{i+1} - \varphi_i)",
    sentence="The area under straight lines between the samples, as the authors draw them: it moves slightly with the "
    "shares of the classes and the number of samples. Samples of equal p_true stand in the order of their classes, which shows in the value.",
    elsewhere={"imcp": "imcp_score"},
    differs={
        "imcp": "the same area as long as no samples of different classes have equal p_true; among those its order follows "
        "rounding errors and the names of the classes, and the third or fourth digit with it"
    },
    degree=None,
    undefined=(NOT_PROBABILITIES, WEIGHTED, NO_ACTUAL),
    # The trapezoids move the area by less than 1/n.
    influence=mean_of_class_means(_phi, is_mean=False),
)
def au_imcp_trapezoid(s: Scores) -> Array:
    if not s.are_probabilities or s.weights is not None or (s.actual == 0).any():
        return np.full(s.n.shape, np.nan)
    widths = ratio(np.ones(()), s.n_classes * s.actual)
    values, codes, _ = s.by_p_true
    heights, along = phi_of(values), widths.take(codes)
    return np.asarray(along @ heights - 0.25 * (np.diff(along) @ np.diff(heights)))


@_overall(
    name="area under the MCP curve",
    symbol="AU(MCP)",
    formula=r"\frac{1}{n} \sum_i \varphi_i",
    sentence="Mean closeness of the probabilities to the truth, every sample counting the same.",
    references=("aguilar2022", "aguilar2024", "aguilar2025"),
    influence=mean_of(_phi),
)
def au_mcp(s: Scores) -> Array:
    return ratio(total(s.class_sums(_phi)), s.n)


@_overall(
    name="area under the MCP curve, trapezoids",
    formula=r"\bar\varphi + \frac{\bar\varphi - (\varphi_{\min} + \varphi_{\max})/2}{n - 1}",
    sentence="The area as the package of the authors computes it, over n - 1 steps.",
    elsewhere={"imcp": "mcp_score"},
    degree=None,
    undefined=(NOT_PROBABILITIES, WEIGHTED, ONE_SAMPLE),
    references=("aguilar2022", "aguilar2024", "aguilar2025"),
    influence=mean_of(_phi, is_mean=False),
)
def au_mcp_trapezoid(s: Scores) -> Array:
    if not s.are_probabilities or s.weights is not None or s.n_samples < 2:
        return np.full(s.n.shape, np.nan)
    average, ends = au_mcp.compute(s), phi_of(s.ends_of_p_true)
    area: Array = average + (average - 0.5 * (ends[0] + ends[1])) / (s.n_samples - 1)
    return area


@_per_class(
    name="mean phi",
    symbol=r"\bar\varphi_k",
    formula=r"\frac{1}{n_k} \sum_{i: y_i = k} \left(1 - \sqrt{1 - \sqrt{p_{ik}}}\right)",
    sentence="Conditional classification performance: how close the probabilities come to the truth for members of the class.",
    undefined=(NOT_PROBABILITIES, NO_ACTUAL),
    influence=mean_of_members(_phi),
)
def mean_phi(s: Scores) -> Array:
    return ratio(s.class_sums(_phi), s.actual)


@_per_class(
    name="median phi",
    formula=r"\mathrm{med}_{i: y_i = k}\, \varphi_i",
    sentence="Half of the members of the class come at least this close to the truth. A quantile of 0.25 or 0.75 gives the box.",
    aliases=("phi_median",),
    parameters=(Number("quantile", 0.5, "which quantile, 0.5 for the median", above=0.0, below=1.0),),
    undefined=(NOT_PROBABILITIES, NO_ACTUAL),
)
def median_phi(s: Scores, quantile: float = 0.5) -> Array:
    if not s.are_probabilities:
        return np.full(s.actual.shape, np.nan)
    ends = [ranking.member_quantile(quantile) for ranking in s.rankings]
    lower, upper = (np.stack(side, axis=-1) for side in zip(*ends, strict=True))
    return 0.5 * (phi_of(lower) + phi_of(upper))


def phi_quartiles(s: Scores) -> Array:
    """First quartile, median and third quartile of phi of each class, shape (3, ..., K): the box plots of the paper.

    The averaged inverse of the distribution function: unlike interpolation it stays when all samples are replicated.
    """
    return np.stack([median_phi.compute(s, quantile) for quantile in (0.25, 0.5, 0.75)])


@_overall(
    name="share certainly right",
    formula=r"\frac{1}{n} |\{i: p_{i y_i} > 1/2\}|",
    sentence="Share of samples whose class was given more than one half, so that nothing else could be predicted.",
    influence=share_of(_sure),
)
def fraction_correct_certain(s: Scores) -> Array:
    return ratio(total(s.class_sums(_sure)), s.n)


@_overall(
    name="share uncertain",
    formula=r"\frac{1}{n} |\{i: 1/K \le p_{i y_i} \le 1/2\}|",
    sentence="Share of samples whose class was given neither less than chance nor more than one half.",
    orientation=Orientation.LOWER,
    influence=share_of(_neither),
)
def fraction_uncertain(s: Scores) -> Array:
    return ratio(total(s.class_sums(_neither)), s.n)


@_overall(
    name="share certainly wrong",
    formula=r"\frac{1}{n} |\{i: p_{i y_i} < 1/K\}|",
    sentence="Share of samples whose class was given less than chance, so that it could not be predicted.",
    orientation=Orientation.LOWER,
    influence=share_of(_ruled_out),
)
def fraction_incorrect_certain(s: Scores) -> Array:
    return ratio(total(s.class_sums(_ruled_out)), s.n)


def regions(s: Scores) -> Array:
    """Shares of each class that are certainly right, uncertain and certainly wrong, shape (3, ..., K)."""
    with silently():
        return np.stack([ratio(s.class_sums(each), s.actual) for each in (_sure, _neither, _ruled_out)])
