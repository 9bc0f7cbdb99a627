"""Values of metrics on matrices that the data leave possible, for one run or for several."""

from collections.abc import Sequence

import numpy as np

from app.domain.report import DRAWS, FEWEST_DRAWS
from app.kernel.compare.paired import joint
from app.kernel.compare.paired.joint import JointCounts
from app.kernel.matrix.prevalence import project
from app.kernel.matrix.table import Table
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.design import Shares, generator, seed_of
from app.kernel.uncertainty.draws import evaluate_draws
from app.kernel.uncertainty.of_matrices import posterior
from app.services.estimands import Estimand

# Cells of all simulated matrices together: a second or two.
MOST_CELLS = 20_000_000


def affordable_draws(cells: int, wanted: int = DRAWS) -> int:
    """Draws of so many cells each that can be afforded; fewer than ``FEWEST_DRAWS`` are worth nothing: 0."""
    most = min(wanted, MOST_CELLS // max(cells, 1))
    return most if most >= FEWEST_DRAWS else 0


def values_at(counts: Array, estimands: Sequence[Estimand], shares: Array | None = None) -> list[Array]:
    """Values (..., V) of every estimand for matrices (..., K, K); what prevalence moves at the shares (K), if given."""
    table = Table(counts)
    projected = table if shares is None else Table(project(counts, shares))
    with silently():
        return [
            estimand.values(np.asarray(estimand.functional(table if estimand.insensitive else projected)))
            for estimand in estimands
        ]


def draw_run(
    counts: Array, estimands: Sequence[Estimand], *, draws: int, seed: int, shares: Array | None = None
) -> list[Array]:
    """Posterior values (D, V) of every estimand for one run (K, K): rows by the edge prior, class counts fixed."""
    batches = posterior.draw_matrices(
        counts,
        draws=draws,
        random=generator(seed),
        shares=Shares.OBSERVED if shares is None else Shares.GIVEN,
        given=shares,
    )
    values = evaluate_draws(batches, [estimand.functional for estimand in estimands])
    return [estimand.values(found) for estimand, found in zip(estimands, values, strict=True)]


def draw_independent(
    counts: Array, estimands: Sequence[Estimand], *, draws: int, seed: int, shares: Array | None = None
) -> list[Array]:
    """Posterior values (D, R, V) for runs (R, K, K) on different samples."""
    runs = [
        draw_run(one, estimands, draws=draws, seed=seed_of(seed, index), shares=shares)
        for index, one in enumerate(counts)
    ]
    return [np.stack([run[index] for run in runs], axis=1) for index in range(len(estimands))]


def draw_paired(counts: JointCounts, estimands: Sequence[Estimand], *, draws: int, seed: int) -> list[Array]:
    """Posterior values (D, R, V) for runs on the same samples: what they have in common stays in common."""
    batches = joint.draw_matrices(counts, draws=draws, random=generator(seed))
    values = evaluate_draws(batches, [estimand.functional for estimand in estimands])
    return [estimand.values(found) for estimand, found in zip(estimands, values, strict=True)]
