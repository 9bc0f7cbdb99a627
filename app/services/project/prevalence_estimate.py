"""How frequent the classes are where a model is used, from its predictions on samples without labels."""

from collections.abc import Sequence

import numpy as np

from app.domain.errors import IncomparableRuns
from app.domain.evaluation import EvaluationRecord
from app.kernel.matrix.prevalence import EstimatedShares, estimate_by_confusion, estimate_by_likelihood, recalibrate
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.design import generator
from app.kernel.uncertainty.draws import summarise
from app.kernel.uncertainty.posterior import draw_matrices
from app.services.json_values import Json, plain
from app.services.project.scenarios import NOT_FOR_GROUPS

# Resampled solutions; each is a small system of equations.
DRAWS = 1000
BOOTSTRAPS = 200
# Entries of all resampled probabilities together.
MOST_RESAMPLED = 20_000_000
# Beyond this errors of the rows are blown up so far that little is left of the answer.
_LARGE_CONDITION = 30.0


def estimate_from_labels(record: EvaluationRecord, predicted: Array, *, level: float, seed: int) -> Json:
    """Class shares from how often each class (K) was predicted. Lipton, Wang & Smola (2018), BBSE.

    The interval counts in the uncertainty of the rows of the matrix and of the predicted counts.

    Raises:
        IncomparableRuns: a class has no samples, or two are predicted alike.
    """
    counts = record.counts.astype(np.float64)
    try:
        found = estimate_by_confusion(counts, predicted)
    except ValueError as error:
        raise IncomparableRuns(str(error)) from None
    limits = None
    if record.counts_independent:
        limits = _label_limits(counts, predicted, found, level=level, seed=seed)
    warnings = _warnings(found)
    if record.is_grouped:
        warnings.append(NOT_FOR_GROUPS)
    if found.condition > _LARGE_CONDITION:
        warnings.append(
            f"The condition number is {found.condition:.3g}: classes are confused so much that small errors of the "
            "matrix become large ones of the shares."
        )
    return {
        **_answer(record, found, limits, "bbse", float(predicted.sum()), level, warnings),
        "condition": found.condition,
        "seed": seed,
    }


def _label_limits(
    counts: Array, predicted: Array, found: EstimatedShares, *, level: float, seed: int
) -> tuple[Array, Array]:
    random = generator(seed)
    matrices = np.concatenate(list(draw_matrices(counts, draws=DRAWS, random=random)))
    resampled = random.multinomial(int(predicted.sum()), predicted / predicted.sum(), size=DRAWS)
    drawn = np.full((DRAWS, predicted.size), np.nan)
    for index in range(DRAWS):
        try:
            drawn[index] = estimate_by_confusion(matrices[index], resampled[index].astype(np.float64)).shares
        except ValueError:
            # This draw of the rows cannot be solved; too many of them and there is no interval.
            continue
    summary = summarise(drawn, found.shares, level)
    return summary.low, summary.high


def estimate_from_probabilities(
    record: EvaluationRecord, probabilities: Array, old: Array, *, level: float, seed: int, recalibrated: bool
) -> Json:
    """Class shares from predicted probabilities (N, K). Saerens, Latinne & Decaestecker (2002).

    Args:
        record: the evaluation, for its classes.
        probabilities: of the samples without labels.
        old: shares (K) that the model was trained with, or calibrated to.
        level: of the bootstrap interval.
        seed: of the bootstrap.
        recalibrated: answer the probabilities for the new shares too.

    Raises:
        IncomparableRuns: a class has an old share of 0.
    """
    try:
        found = estimate_by_likelihood(probabilities, old)
    except ValueError as error:
        raise IncomparableRuns(str(error)) from None
    limits = None
    if probabilities.size * BOOTSTRAPS <= MOST_RESAMPLED:
        random = generator(seed)
        rows = random.integers(0, len(probabilities), (BOOTSTRAPS, len(probabilities)))
        drawn = np.array([estimate_by_likelihood(probabilities[row], old, tolerance=1e-6).shares for row in rows])
        summary = summarise(drawn, found.shares, level)
        limits = summary.low, summary.high
    warnings = _warnings(found)
    warnings.append("The probabilities are taken as calibrated for the old shares; if they are not, neither is this.")
    answer = _answer(record, found, limits, "saerens_em", float(len(probabilities)), level, warnings)
    answer["old_prevalence"] = dict(zip(record.labels, old.tolist(), strict=True))
    answer["seed"] = seed
    if recalibrated:
        answer["probabilities"] = recalibrate(probabilities, old, found.shares)
    return answer


def _warnings(found: EstimatedShares) -> list[str]:
    warnings = []
    if found.at_vertex:
        warnings.append("A share is 0: the best fit lies at or beyond the edge, so take it as small, not as absent.")
    if not found.converged:
        warnings.append("No shares fit exactly; those given are the nearest that make sense.")
    return warnings


def _answer(
    record: EvaluationRecord,
    found: EstimatedShares,
    limits: tuple[Array, Array] | None,
    method: str,
    samples: float,
    level: float,
    warnings: Sequence[str],
) -> Json:
    def by_label(values: Array) -> Json:
        return {label: plain(value) for label, value in zip(record.labels, values.tolist(), strict=True)}

    intervals: Json = {}
    if limits is not None:
        lows, highs = by_label(limits[0]), by_label(limits[1])
        intervals = {label: {"low": lows[label], "high": highs[label], "level": level} for label in record.labels}
    return {
        "evaluation": str(record.id),
        "method": method,
        "n_samples": samples,
        "prevalence": by_label(found.shares),
        "intervals": intervals,
        "at_vertex": found.at_vertex,
        "converged": found.converged,
        "warnings": list(warnings),
    }
