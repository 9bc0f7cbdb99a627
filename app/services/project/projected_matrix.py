"""A run known by its matrix at other class shares: rows stay, their weights change."""

from collections.abc import Sequence

import numpy as np

from app.domain.evaluation import EvaluationRecord
from app.kernel.matrix.prevalence import draw_shares, project
from app.kernel.matrix.table import Table
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.design import generator, seed_of
from app.kernel.uncertainty.draws import summarise
from app.kernel.uncertainty.estimation import CURVED_CLASSES
from app.kernel.uncertainty.posterior import draw_matrices, mean_matrix
from app.services.estimands import Estimand
from app.services.estimates.interval_warnings import caution_findings
from app.services.json_values import Json
from app.services.project.scenarios import NOT_FOR_GROUPS, Limits, Terms
from app.services.runs.simulation import affordable_draws, values_at


class MatrixRun:
    """Metrics of matrices; intervals from its posterior, class counts fixed.

    Args:
        record: The run.
        terms: Level, seed and draws.
        points: At how many shares limits will be asked for.
    """

    def __init__(self, record: EvaluationRecord, terms: Terms, *, points: int) -> None:
        self._counts: Array = record.counts.astype(np.float64)
        self._terms = terms
        self._countable = record.counts_independent
        draws = affordable_draws(self._counts.size * points, terms.draws) if self._countable else 0
        self._matrices: Array | None = None
        self._center: Array | None = None
        if draws:
            random = generator(terms.seed)
            self._matrices = np.concatenate(list(draw_matrices(self._counts, draws=draws, random=random)))
            if record.n_classes >= CURVED_CLASSES:
                self._center = mean_matrix(self._counts)
        self.design: Json = {"level": terms.level, "draws": draws}
        if self._countable:
            self.design |= {"method": "posterior", "class_counts": "fixed", "prior": "edge", "seed": terms.seed}
        self.notes = self._notes(record)

    def _notes(self, record: EvaluationRecord) -> tuple[str, ...]:
        if record.is_grouped:
            return (NOT_FOR_GROUPS,)
        if not self._countable:
            return (f"No intervals: they need numbers of samples, and the matrix holds {record.content}.",)
        if self._matrices is None:
            return ("No intervals: so many points and classes are too much to be simulated; ask for fewer points.",)
        return tuple(finding.message for finding in caution_findings(record.counts, record.labels))

    def observed(self, estimands: Sequence[Estimand]) -> list[Array]:
        """Values (V) of every estimand as the run is."""
        return values_at(self._counts, estimands)

    def values(self, estimands: Sequence[Estimand], shares: Array) -> list[Array]:
        """Values (G, V) of every estimand at shares (G, K)."""
        projected = np.stack([project(self._counts, one) for one in shares])
        moved, still = Table(projected), Table(np.broadcast_to(self._counts, projected.shape))
        with silently():
            return [
                estimand.values(np.asarray(estimand.functional(still if estimand.insensitive else moved)))
                for estimand in estimands
            ]

    def limits(self, estimands: Sequence[Estimand], shares: Array, worth: float | None = None) -> list[Limits] | None:
        """Limits (G, V) of every estimand at shares (G, K), which are worth so many samples; exact when None."""
        if self._matrices is None:
            return None
        estimates = self.values(estimands, shares)
        found = [Limits.empty(values.shape) for values in estimates]
        still = Table(self._matrices)
        centers = None if self._center is None else [values_at(self._center, estimands, one) for one in shares]
        for point, one in enumerate(shares):
            moved = Table(project(self._matrices, one if worth is None else self._spread(one, worth)))
            for index, estimand in enumerate(estimands):
                with silently():
                    drawn = estimand.values(np.asarray(estimand.functional(still if estimand.insensitive else moved)))
                center = None if centers is None else centers[point][index]
                summary = summarise(drawn, estimates[index][point], self._terms.level, center=center)
                found[index].low[point], found[index].high[point] = summary.low, summary.high
        return found

    def _spread(self, shares: Array, worth: float) -> Array:
        """Shares (D, K) around these."""
        assert self._matrices is not None  # noqa: S101 - asked for only then
        return spread_shares(shares, worth, len(self._matrices), self._terms.seed)


def spread_shares(shares: Array, worth: float, draws: int, seed: int) -> Array:
    """Uncertain shares (D, K) around given ones (K) that are worth so many samples; a share of 0 stays 0."""
    present = np.flatnonzero(shares)
    spread = np.zeros((draws, shares.size))
    spread[:, present] = draw_shares(shares[present] * worth, draws, generator(seed_of(seed, "shares")))
    return spread
