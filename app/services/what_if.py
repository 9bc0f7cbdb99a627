"""What-if questions about a stored evaluation."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from app.domain.errors import Fault, InvalidInput, NotFound
from app.domain.evaluation import EvaluationRecord
from app.kernel.numerics import Array
from app.services.compute import ComputePool
from app.services.full_intervals import chosen_seed
from app.services.numbers import Json
from app.services.pairing import align
from app.services.ports import EvaluationStore
from app.services.prevalence_estimate import estimate_from_labels, estimate_from_probabilities
from app.services.projection import Scenario, crossing_shares, named_shares, project_run
from app.services.targets import parse_targets

DEFAULT_METRICS = ("accuracy", "balanced_accuracy", "h_mean", "macro_f1", "mcc", "cohen_kappa")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Unlabelled:
    """Predictions on samples without labels: counts of predicted labels, or probabilities (N, K)."""

    predicted: Mapping[str, int] | None = None
    probabilities: Array | None = None
    old_prevalence: Mapping[str, float] | None = None
    recalibrate: bool = False
    level: float = 0.95
    seed: int | None = None


class WhatIfService:
    """Answers what would be; nothing is kept."""

    def __init__(self, store: EvaluationStore, *, compute: ComputePool) -> None:
        self._store = store
        self._compute = compute

    async def project(
        self, project: str, identifier: UUID, metrics: tuple[str, ...], scenario: Scenario, against: UUID | None
    ) -> Json:
        """Metrics at other class shares.

        Raises:
            NotFound: an evaluation does not exist.
            InvalidExpression: a metric is none.
            InvalidInput: the shares make no sense for this run.
            IncomparableLabels: the run to be compared with has other classes.
        """
        record = await self._get(project, identifier)
        other = None if against is None else await self._get(project, against, "/against")
        targets = parse_targets(metrics, record.labels, record.positive)

        def run() -> Json:
            answer = project_run(record, targets, scenario)
            sweep = scenario.sweep
            if other is not None and sweep is not None:
                matrices = align([record, other], "/against")[0]
                shares = record.counts.sum(axis=1).astype(np.float64)
                index = record.labels.index(sweep.label)
                if ((matrices[0].sum(axis=1) > 0) != (matrices[1].sum(axis=1) > 0)).any():
                    raise InvalidInput(
                        [Fault("/against", "no_samples", "expected a run that has samples of the same classes")]
                    )
                answer["against"] = str(other.id)
                answer["crossings"] = crossing_shares(matrices, targets, shares, index, sweep)
            return answer

        return await self._compute.run(run, heavy=True)

    async def estimate(self, project: str, identifier: UUID, seen: Unlabelled) -> Json:
        """Class shares where the model is used.

        Raises:
            NotFound: the evaluation does not exist.
            InvalidInput: the predictions do not fit its classes.
            IncomparableRuns: the shares cannot be told from them.
        """
        record = await self._get(project, identifier)
        if seen.predicted is not None:
            predicted = _counts(record, seen.predicted)
            seed = chosen_seed(seen.seed, record.counts, predicted)
            return await self._compute.run(
                lambda: estimate_from_labels(record, predicted, level=seen.level, seed=seed), heavy=True
            )
        assert seen.probabilities is not None  # noqa: S101 - the request has one of the two
        probabilities = _probabilities(record, seen.probabilities)
        old = named_shares(record, seen.old_prevalence or {}, "/old_prevalence")
        seed = chosen_seed(seen.seed, probabilities)
        return await self._compute.run(
            lambda: estimate_from_probabilities(
                record, probabilities, old, level=seen.level, seed=seed, recalibrated=seen.recalibrate
            ),
            heavy=True,
        )

    async def _get(self, project: str, identifier: UUID, pointer: str | None = None) -> EvaluationRecord:
        record = await self._store.get(project, identifier)
        if record is None:
            raise NotFound(f"there is no evaluation {identifier}", pointer=pointer)
        return record


def _counts(record: EvaluationRecord, predicted: Mapping[str, int]) -> Array:
    """Predicted counts (K) in the order of the classes; a class that is not named was never predicted."""
    unknown = [label for label in predicted if label not in record.labels]
    if unknown:
        raise InvalidInput(
            [
                Fault(f"/predicted/{label}", "unknown_label", f"expected a class of the evaluation, got {label[:60]!r}")
                for label in unknown[:10]
            ]
        )
    counts = np.array([predicted.get(label, 0) for label in record.labels], dtype=np.float64)
    if counts.sum() == 0:
        raise InvalidInput([Fault("/predicted", "no_samples", "expected at least one prediction")])
    return counts


def _probabilities(record: EvaluationRecord, probabilities: Array) -> Array:
    if probabilities.shape[1] != len(record.labels):
        raise InvalidInput(
            [
                Fault(
                    "/probabilities/0",
                    "wrong_length",
                    f"expected {len(record.labels)} probabilities per sample, got {probabilities.shape[1]}",
                )
            ]
        )
    off = np.abs(probabilities.sum(axis=1) - 1.0) > 1e-6
    if off.any():
        row = int(np.argmax(off))
        raise InvalidInput(
            [
                Fault(
                    f"/probabilities/{row}",
                    "row_sum",
                    f"expected probabilities that sum to 1, got {probabilities[row].sum():.6g}",
                )
            ]
        )
    return probabilities
