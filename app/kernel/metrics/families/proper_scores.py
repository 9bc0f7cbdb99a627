"""Proper scores: losses that are smallest, on average, for the true probabilities."""

from functools import partial

import numpy as np

from app.kernel.metrics.card import Inputs, Number, Orientation, Prevalence, Recalibration, Scope, metric
from app.kernel.metrics.conditions import NO_ACTUAL, NO_WEIGHT, NOT_PROBABILITIES, ONE_ACTUAL_CLASS, RULED_OUT
from app.kernel.numerics.arrays import Array, mean, ratio, total, x_log_x
from app.kernel.samples.influence import mean_of, mean_of_class_means, share_saved
from app.kernel.samples.losses import CLIP
from app.kernel.samples.scores import Parameters, Scores

_CLIPPED = (Number("clip", CLIP, "smallest probability that is believed; 0 for none", minimum=0.0, below=1.0),)
_loss = partial(
    metric,
    scope=Scope.OVERALL,
    inputs=Inputs.PROBABILITIES,
    prevalence=Prevalence.SENSITIVE,
    proper=True,
    undefined=(NOT_PROBABILITIES, NO_WEIGHT),
    orientation=Orientation.LOWER,
    range=(0.0, None),
)


def _log_losses(s: Scores, parameters: Parameters) -> Array:
    losses: Array = np.maximum(s.p_true, parameters["clip"])
    np.log(losses, out=losses)
    return np.negative(losses, out=losses)


def _squared_error(s: Scores, _: Parameters) -> Array:
    squared = np.full(s.n_samples, 0.0 if s.are_probabilities else np.nan)
    # Of two classes one says all.
    for code in range(1 if s.n_classes == 2 else 0, s.n_classes):
        error = s.columns[code] - s.members(code)
        error *= error
        squared += error
    return squared


def _cosine(s: Scores, _: Parameters) -> Array:
    values: Array = s.p_true / np.sqrt(np.einsum("kn,kn->n", s.columns, s.columns))
    return values


def _spread_of_shares(shares: Array) -> tuple[float, Array]:
    """R = sum pi (1 - pi), half of it for two classes: its derivative by the share of a class is 1 - 2 pi."""
    half = 0.5 if shares.size == 2 else 1.0
    return half * float(np.sum(shares * (1.0 - shares))), half * (1.0 - 2.0 * shares)


@_loss(
    name="log loss",
    formula=r"-\frac{1}{n} \sum_i \ln p_{i y_i}",
    sentence="Mean surprise at the actual class, in nats; confident mistakes cost most.",
    aliases=("cross_entropy",),
    elsewhere={"sklearn": "log_loss"},
    parameters=_CLIPPED,
    undefined=(NOT_PROBABILITIES, NO_WEIGHT, RULED_OUT),
    references=("good1952", "gneiting2007"),
    headline=True,
    influence=mean_of(_log_losses),
    recalibrated=Recalibration.LINE,
    details=lambda s: {"clipped": s.outcomes.clipped, "below": CLIP},
)
def log_loss(s: Scores, clip: float = CLIP) -> Array:
    return ratio(total(s.class_sums(_log_losses, ("clip", clip))), s.n)


def _entropy_of_shares(shares: Array) -> tuple[float, Array]:
    """H = -sum pi ln pi and its derivative -ln pi - 1, of which the constant cancels in the centring."""
    return -float(np.sum(x_log_x(shares))), -np.log(shares)


def _ranked_errors(s: Scores, _: Parameters) -> Array:
    """Squared distances of the cumulative probabilities from what happened, over K - 1 splits of the classes."""
    errors = np.zeros(s.n_samples)
    cumulative = np.zeros(s.n_samples)
    for code in range(s.n_classes - 1):
        cumulative = cumulative + s.columns[code]
        errors += (cumulative - (s.y <= code)) ** 2
    return errors / (s.n_classes - 1)


@_loss(
    name="Brier score",
    formula=r"\frac{1}{n} \sum_i \sum_k (p_{ik} - [k = y_i])^2, \quad \text{half of it for } K = 2",
    sentence="Mean squared distance between the probabilities and what happened.",
    aliases=("brier",),
    elsewhere={"sklearn": "brier_score_loss"},
    range=(0.0, 2.0),
    references=("brier1950", "gneiting2007", "beddar2025"),
    headline=True,
    influence=mean_of(_squared_error),
    recalibrated=Recalibration.RISING,
)
def brier_score(s: Scores) -> Array:
    return ratio(total(s.class_sums(_squared_error)), s.n)


@_loss(
    name="class-averaged log loss",
    prevalence=Prevalence.INSENSITIVE,
    formula=r"-\frac{1}{K} \sum_k \frac{1}{n_k} \sum_{i: y_i = k} \ln p_{ik}",
    sentence="Log loss of each class, averaged so that every class counts the same.",
    parameters=_CLIPPED,
    undefined=(NOT_PROBABILITIES, NO_ACTUAL, RULED_OUT),
    references=("good1952",),
    proper=False,
    influence=mean_of_class_means(_log_losses),
)
def balanced_log_loss(s: Scores, clip: float = CLIP) -> Array:
    return mean(ratio(s.class_sums(_log_losses, ("clip", clip)), s.actual))


@_loss(
    name="class-averaged Brier score",
    prevalence=Prevalence.INSENSITIVE,
    formula=r"\frac{1}{K} \sum_k \frac{1}{n_k} \sum_{i: y_i = k} \sum_j (p_{ij} - [j = k])^2, \quad \text{half of it for } K = 2",
    sentence="Brier score of each class, averaged so that every class counts the same.",
    range=(0.0, 2.0),
    undefined=(NOT_PROBABILITIES, NO_ACTUAL),
    references=("brier1950",),
    proper=False,
    influence=mean_of_class_means(_squared_error),
)
def balanced_brier_score(s: Scores) -> Array:
    return mean(ratio(s.class_sums(_squared_error), s.actual))


@_loss(
    name="Brier skill score",
    formula=r"1 - \mathrm{Brier} / \mathrm{Brier}(\pi)",
    sentence="Share of the Brier score that is saved against always saying the shares of the classes; 0 or less is no skill.",
    elsewhere={"sklearn": "d2_brier_score"},
    orientation=Orientation.HIGHER,
    range=(None, 1.0),
    chance_corrected=True,
    undefined=(NOT_PROBABILITIES, NO_WEIGHT, ONE_ACTUAL_CLASS),
    references=("brier1950", "murphy1973"),
    influence=share_saved(_squared_error, _spread_of_shares),
)
def brier_skill_score(s: Scores) -> Array:
    # sum pi (1 - pi) without the cancellation of 1 - sum pi^2; it is twice the binary form.
    spread = total(s.actual * s.rest) / (2.0 if s.n_classes == 2 else 1.0)
    # With one class the reference is perfect, so there is no skill, however large the score.
    return 1.0 - ratio(total(s.class_sums(_squared_error)) * s.n, np.where(spread > 0, spread, np.nan))


@_loss(
    name="spherical score",
    formula=r"\frac{1}{n} \sum_i p_{i y_i} / \lVert p_i \rVert_2",
    sentence="Mean cosine of the angle between the probabilities and what happened.",
    orientation=Orientation.HIGHER,
    range=(0.0, 1.0),
    references=("gneiting2007",),
    influence=mean_of(_cosine),
)
def spherical_score(s: Scores) -> Array:
    return ratio(total(s.class_sums(_cosine)), s.n)


@_loss(
    name="D2 of the log loss",
    formula=r"1 - \frac{-\sum_i \ln p_{i y_i}}{-n \sum_k \pi_k \ln \pi_k}",
    sentence="Share of the log loss that is saved against always saying the shares of the classes; 0 or less is no skill.",
    elsewhere={"sklearn": "d2_log_loss_score"},
    orientation=Orientation.HIGHER,
    range=(None, 1.0),
    chance_corrected=True,
    parameters=_CLIPPED,
    undefined=(NOT_PROBABILITIES, NO_WEIGHT, ONE_ACTUAL_CLASS, RULED_OUT),
    references=("mcfadden1974",),
    influence=share_saved(_log_losses, _entropy_of_shares),
    on_request=True,
)
def d2_log_loss(s: Scores, clip: float = CLIP) -> Array:
    entropy = -total(x_log_x(s.prevalence))
    # With one class the reference is perfect, so there is no skill, however large the loss.
    return 1.0 - ratio(
        ratio(total(s.class_sums(_log_losses, ("clip", clip))), s.n), np.where(entropy > 0, entropy, np.nan)
    )


@_loss(
    name="ranked probability score",
    symbol="RPS",
    formula=r"\frac{1}{n (K-1)} \sum_i \sum_{k<K} \left(\sum_{j \le k} p_{ij} - [y_i \le k]\right)^2",
    sentence="Mean squared distance of the cumulative probabilities from what happened, for classes in order; for two classes the Brier score.",
    aliases=("rps",),
    range=(0.0, 1.0),
    ordered=True,
    references=("epstein1969", "murphy1973"),
    influence=mean_of(_ranked_errors),
    on_request=True,
)
def ranked_probability_score(s: Scores) -> Array:
    return ratio(total(s.class_sums(_ranked_errors)), s.n)
