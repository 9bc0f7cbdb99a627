"""Estimates of class shares where a model is used, from its predictions on samples without labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import hypot
from typing import Annotated
from uuid import UUID

import numpy as np

from app.domain.asked import Level, Limits, Seed, SoughtText
from app.domain.errors import IncomparableRuns, InvalidInput, in_pointer
from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.classified import shares_of_one
from app.domain.inputs.labels import unknown_label
from app.domain.members import LEFT_OUT
from app.domain.wording import significant
from app.kernel.matrix.prevalence import EstimatedShares, estimate_by_confusion, estimate_by_likelihood, recalibrate
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.uncertainty.draws import chosen_seed, generator, summarise
from app.kernel.uncertainty.intervals import two_sided_z
from app.kernel.uncertainty.shares import likelihood_limits, moves_by_old, spread_by_old
from app.kernel.uncertainty.simulation import RowPosterior
from app.services.project.projection import ClassSizes, Shares, old_shares

# Resampled solutions; each is a small system of equations.
DRAWS = 1000
# Samples times squared classes: limits look at all samples some twenty times for each class. About ten seconds.
MOST_LOOKED_AT = 500_000_000
# Beyond this errors of the rows are blown up so far that little is left of the answer.
_LARGE_CONDITION = 30.0
_NOT_FOR_GROUPS = (
    "No intervals that count the samples of the run: they come in groups, and intervals that treat them as "
    "independent would be too narrow."
)
_UNKNOWN_OLD = (
    "No intervals: old_prevalence was taken from the evaluation, and how far its shares are off is not known, as its "
    "samples are weighted or come in groups."
)


@dataclass(frozen=True, slots=True)
class ShareLimits:
    """Limits of the share of a class."""

    low: float | None
    high: float | None
    level: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrevalenceEstimate:
    """Estimated class prevalence.

    Attributes:
        evaluation_id: What is known of how each class is predicted.
        method: `bbse` from predicted classes, `saerens_em` from probabilities.
        n_samples: Samples without labels.
        prevalence: Estimated share of each class.
        intervals: By class, with the uncertainty of the labelled samples; empty where there are none.
        at_vertex: Some share is 0: the best fit lies at or beyond the edge.
        converged: The shares fit exactly, or the iteration came to rest.
        warnings: What to be careful about.
        condition: Condition number of the equations; large where classes are confused so much that errors are
            amplified.
        old_prevalence: The shares that the probabilities are taken to be calibrated to.
        seed: Seed of what is simulated.
        probabilities: For the new shares, if they were asked for.
    """

    evaluation_id: UUID
    method: str
    n_samples: float
    prevalence: Mapping[str, float]
    intervals: Mapping[str, ShareLimits]
    at_vertex: bool
    converged: bool
    warnings: Sequence[str]
    condition: float | None = field(default=None, metadata=LEFT_OUT)
    old_prevalence: Mapping[str, float] | None = field(default=None, metadata=LEFT_OUT)
    seed: int
    probabilities: Array | None = field(default=None, metadata=LEFT_OUT)


_Count = Annotated[int, Limits({"ge": 0, "le": 2**53})]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Unlabelled:
    """Predictions on samples without labels: counts of predicted labels, or probabilities (N, K).

    Attributes:
        predicted: How often each class was predicted.
        probabilities: N x K, in the order of the labels.
        old_prevalence: With probabilities: the shares they were calibrated to; the evaluation's when left out.
        recalibrate: With probabilities: answer them for the new shares too.
    """

    predicted: Annotated[Mapping[SoughtText, _Count], Limits({"min_length": 1, "max_length": 1000})] | None = None
    probabilities: Array | None = None
    old_prevalence: Shares | None = None
    recalibrate: bool = False
    level: Level = 0.95
    seed: Seed | None = None


def estimate_prevalence(record: EvaluationRecord, seen: Unlabelled) -> PrevalenceEstimate:
    """Class shares of samples without labels, as an evaluation tells how each class is predicted.

    Raises:
        InvalidInput: the predictions, or the old shares, do not fit its classes.
        IncomparableRuns: of counted predictions: a class has no samples, or two are predicted alike.
    """
    if seen.predicted is not None:
        return _from_labels(record, _counts(record, seen.predicted), seen)
    assert seen.probabilities is not None  # noqa: S101 - the request has one of the two
    return _from_probabilities(record, _probabilities(record, seen.probabilities), seen)


def _from_labels(record: EvaluationRecord, predicted: Array, seen: Unlabelled) -> PrevalenceEstimate:
    """Class shares from how often each class (K) was predicted. Lipton, Wang & Smola (2018), BBSE.

    The interval counts in the uncertainty of the rows of the matrix and of the predicted counts.
    """
    counts, seed = record.counts.astype(np.float64), chosen_seed(seen.seed, record.counts, predicted)
    try:
        found = estimate_by_confusion(counts, predicted)
    except ValueError as error:
        raise IncomparableRuns(str(error)) from None
    limits = None
    if record.counts_independent:
        limits = _label_limits(counts, predicted, found, level=seen.level, seed=seed)
    warnings = _warnings(found)
    if record.is_grouped:
        warnings.append(_NOT_FOR_GROUPS)
    if found.condition > _LARGE_CONDITION:
        warnings.append(
            f"The condition number is {significant(found.condition, 3)}: classes are confused so much that small "
            "errors of the matrix become large ones of the shares."
        )
    answer = _answer(record, "bbse", float(predicted.sum()), found, limits, seen.level, warnings, seed)
    return replace(answer, condition=found.condition)


def _label_limits(
    counts: Array, predicted: Array, found: EstimatedShares, *, level: float, seed: int
) -> tuple[Array, Array]:
    random = generator(seed)
    matrices = RowPosterior(counts).matrices(DRAWS, random)
    resampled = random.multinomial(int(predicted.sum()), predicted / predicted.sum(), size=DRAWS)
    drawn = np.full((DRAWS, predicted.size), np.nan)
    for index in range(DRAWS):
        try:
            drawn[index] = estimate_by_confusion(matrices[index], resampled[index].astype(np.float64)).shares
        except ValueError:
            # This draw of the rows cannot be solved; too many of them and there is no interval.
            continue
    summary = summarise(drawn, found.shares, level)
    if not found.at_vertex:
        return summary.low, summary.high
    # Beyond the edge all draws may be cut off to the same 0; that few samples could show none is known all the same.
    rows = counts / counts.sum(axis=1, keepdims=True)
    low, high = likelihood_limits(rows.T, found.shares, level, counts=predicted)
    return np.minimum(summary.low, low), np.maximum(summary.high, high)


def _from_probabilities(record: EvaluationRecord, probabilities: Array, seen: Unlabelled) -> PrevalenceEstimate:
    """Class shares from predicted probabilities (N, K). Saerens, Latinne & Decaestecker (2002).

    The interval counts in the samples, by the likelihood ratio, and what is not known of the old shares where they are
    those of the labelled samples, by squares (Zou & Donner 2008): what the share moves by as the old share of its class
    goes to its limits, and those of others by derivatives.
    """
    given = seen.old_prevalence or {}
    old = old_shares(ClassSizes.of(record), given)
    found = estimate_by_likelihood(probabilities, old)
    warnings = _warnings(found)
    warnings.append(
        "The probabilities are taken as calibrated for the old shares; if they are not, the estimate is biased."
    )
    limits, counted = None, np.array([label not in given for label in record.labels])
    if counted.sum() > 1 and not record.counts_independent:
        warnings.append(_UNKNOWN_OLD)
    elif probabilities.size * old.size > MOST_LOOKED_AT:
        warnings.append("No intervals: there are too many samples and classes for them.")
    else:
        limits = _probability_limits(record, probabilities, found.shares, old, counted, seen.level)
    # Nothing is drawn: the seed is given back.
    n_samples, seed = float(len(probabilities)), chosen_seed(seen.seed, probabilities)
    answer = _answer(record, "saerens_em", n_samples, found, limits, seen.level, warnings, seed)
    return replace(
        answer,
        old_prevalence=dict(zip(record.labels, old.tolist(), strict=True)),
        probabilities=recalibrate(probabilities, old, found.shares) if seen.recalibrate else None,
    )


def _probability_limits(
    record: EvaluationRecord, probabilities: Array, shares: Array, old: Array, counted: Mask, level: float
) -> tuple[Array, Array]:
    """Limits (K), (K) of the shares; old shares that were counted are uncertain."""
    ratios, labelled = probabilities / old, record.counts.sum(axis=1)
    low, high = likelihood_limits(ratios, shares, level)
    below, above = shares - low, high - shares
    for code in range(old.size) if counted.sum() > 1 else ():
        others = counted & (np.arange(old.size) != code)
        deviations = spread_by_old(ratios, shares, old, _covariance(record, old, others))
        reach, moves = two_sided_z(level) * deviations[code], (0.0, 0.0)
        if counted[code]:
            of_class = float(labelled[code]), float(labelled[counted].sum())
            moves = moves_by_old(probabilities, shares, old, code, of_class, level)
        below[code], above[code] = hypot(below[code], reach, moves[0]), hypot(above[code], reach, moves[1])
    return np.maximum(shares - below, 0.0), np.minimum(shares + above, 1.0)


def _covariance(record: EvaluationRecord, old: Array, counted: Mask) -> Array:
    """Covariance (K, K) of the old shares that were counted: proportions of what the given ones leave."""
    counts = np.where(counted, record.counts.sum(axis=1), 0).astype(np.float64)
    total = counts.sum()
    if not total:
        return np.zeros((old.size, old.size))
    proportions = counts / total
    rest = float(old[counted].sum())
    covariance: Array = rest * rest * (np.diag(proportions) - np.outer(proportions, proportions)) / total
    return covariance


def _warnings(found: EstimatedShares) -> list[str]:
    warnings = []
    if found.at_vertex:
        warnings.append("A share is 0: the best fit lies at or beyond the edge, so take it as small, not as absent.")
    if not found.converged:
        warnings.append("No shares fit exactly; those given are the nearest that make sense.")
    return warnings


def _answer(
    record: EvaluationRecord,
    method: str,
    n_samples: float,
    found: EstimatedShares,
    limits: tuple[Array, Array] | None,
    level: float,
    warnings: Sequence[str],
    seed: int,
) -> PrevalenceEstimate:
    """The estimate from so many samples, without what one method says alone."""
    ends = () if limits is None else zip(record.labels, *(each.tolist() for each in limits), strict=True)
    return PrevalenceEstimate(
        evaluation_id=record.id,
        method=method,
        n_samples=n_samples,
        prevalence=dict(zip(record.labels, found.shares.tolist(), strict=True)),
        intervals={label: ShareLimits(low, high, level) for label, low, high in ends},
        at_vertex=found.at_vertex,
        converged=found.converged,
        warnings=warnings,
        seed=seed,
    )


def _counts(record: EvaluationRecord, predicted: Mapping[str, int]) -> Array:
    """Predicted counts (K) in the order of the classes; a class that is not named was never predicted."""
    unknown = [label for label in predicted if label not in record.labels]
    if unknown:
        refusals = (unknown_label(f"/predicted/{in_pointer(label)}", label, record.labels) for label in unknown[:10])
        raise InvalidInput([fault for one in refusals for fault in one.faults])
    counts = np.array([predicted.get(label, 0) for label in record.labels], dtype=np.float64)
    if counts.sum() == 0:
        raise InvalidInput.at("/predicted", "no_samples", "expected at least one prediction")
    return counts


def _probabilities(record: EvaluationRecord, probabilities: Array) -> Array:
    if probabilities.shape[1] != len(record.labels):
        raise InvalidInput.at(
            "/probabilities/0",
            "wrong_length",
            f"expected {len(record.labels)} probabilities per sample, got {probabilities.shape[1]}",
        )
    return shares_of_one(probabilities, "/probabilities")[0]
