"""A run known by its matrix at other class shares: rows stay, their weights change."""

from collections.abc import Sequence

import numpy as np

from app.domain.evaluation import EvaluationRecord
from app.kernel.matrix.prevalence import draw_shares
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.design import generator, seed_of
from app.kernel.uncertainty.draws import summarise
from app.kernel.uncertainty.of_matrices.estimation import CURVED_CLASSES
from app.kernel.uncertainty.of_matrices.posterior import draw_matrices, mean_matrix
from app.services.estimands import Estimand
from app.services.estimates.warnings_of_matrix import caution_findings
from app.services.project.answers import ProjectionDesign
from app.services.project.scenarios import NOT_FOR_GROUPS, ProjectedLimits, Simulation
from app.services.runs.aligned import Runs
from app.services.runs.simulation import affordable_draws, values_at

# Cells of the matrices that are measured together.
_AT_ONCE = 1 << 20


class MatrixRun:
    """Metrics of matrices; intervals from its posterior, class counts fixed.

    Args:
        runs: One run.
        simulation: Level, seed and draws.
        points: At how many shares limits will be asked for.
    """

    most_points = 1_000_000

    def __init__(self, runs: Runs, simulation: Simulation, *, points: int) -> None:
        (record,) = runs.records
        self._counts: Array = runs.counts[0]
        self._simulation = simulation
        self._countable = record.counts_independent
        draws = affordable_draws(self._counts.size * points, simulation.draws) if self._countable else 0
        self._matrices: Array | None = None
        self._center: Array | None = None
        if draws:
            random = generator(simulation.seed)
            self._matrices = np.concatenate(list(draw_matrices(self._counts, draws=draws, random=random)))
            if record.n_classes >= CURVED_CLASSES:
                self._center = mean_matrix(self._counts)
        self.design = ProjectionDesign(level=simulation.level, draws=draws)
        if self._countable:
            self.design = ProjectionDesign(
                level=simulation.level,
                draws=draws,
                method="posterior",
                class_counts="fixed",
                prior="edge",
                seed=simulation.seed,
            )
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
        size = max(1, _AT_ONCE // self._counts.size)
        parts = [self._values(estimands, shares[start : start + size]) for start in range(0, len(shares), size)]
        return [np.concatenate(of_estimand) for of_estimand in zip(*parts, strict=True)]

    def _values(self, estimands: Sequence[Estimand], shares: Array) -> list[Array]:
        return values_at(np.broadcast_to(self._counts, (len(shares), *self._counts.shape)), estimands, shares)

    def limits(
        self, estimands: Sequence[Estimand], shares: Array, worth: float | None = None
    ) -> list[ProjectedLimits] | None:
        """Limits (G, V) of every estimand at shares (G, K), which are worth so many samples; exact when None."""
        if self._matrices is None:
            return None
        estimates = self.values(estimands, shares)
        found = [ProjectedLimits.empty(values.shape) for values in estimates]
        still = [index for index, estimand in enumerate(estimands) if estimand.insensitive]
        for point, one in enumerate(shares):
            # What prevalence does not move is the same everywhere.
            chosen = [index for index in range(len(estimands)) if point == 0 or index not in still]
            at = one if worth is None else spread_shares(one, worth, len(self._matrices), self._simulation.seed)
            drawn = values_at(self._matrices, [estimands[index] for index in chosen], at)
            centers: Sequence[Array | None] = [None] * len(chosen)
            if self._center is not None:
                centers = values_at(self._center, [estimands[index] for index in chosen], one)
            for index, values, center in zip(chosen, drawn, centers, strict=True):
                summary = summarise(values, estimates[index][point], self._simulation.level, center=center)
                found[index].low[point], found[index].high[point] = summary.low, summary.high
        for index in still:
            found[index].low[:], found[index].high[:] = found[index].low[0], found[index].high[0]
        return found


def spread_shares(shares: Array, worth: float, draws: int, seed: int) -> Array:
    """Uncertain shares (draws, K) around given ones (K) that are worth so many samples; a share of 0 stays 0."""
    present = np.flatnonzero(shares)
    spread = np.zeros((draws, shares.size))
    spread[:, present] = draw_shares(shares[present] * worth, draws, generator(seed_of(seed, "shares")))
    return spread
