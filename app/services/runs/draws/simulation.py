"""Values of metrics on matrices that the data leave possible, for one run or for several."""

from collections.abc import Sequence

import numpy as np

from app.kernel.compare.paired import joint
from app.kernel.compare.paired.joint import JointCounts
from app.kernel.matrix.table import WeightedCounts
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty import simulation
from app.kernel.uncertainty.draws import Shares, evaluate_draws, generator, seed_of
from app.services.estimands import Estimand


def draw_run(
    counts: Array,
    estimands: Sequence[Estimand],
    *,
    draws: int,
    seed: int,
    shares: Array | None = None,
    squares: Array | None = None,
) -> list[Array]:
    """Posterior values (D, V) of every estimand for one run (K, K): rows by the edge prior, class counts fixed."""
    batches = simulation.draw_matrices(
        counts,
        draws=draws,
        random=generator(seed),
        shares=Shares.OBSERVED if shares is None else Shares.GIVEN,
        given=shares,
        squares=squares,
    )
    values = evaluate_draws(batches, [estimand.functional for estimand in estimands])
    return [estimand.values(found) for estimand, found in zip(estimands, values, strict=True)]


def draw_independent(
    counts: Array,
    estimands: Sequence[Estimand],
    *,
    draws: int,
    seed: int,
    shares: Array | None = None,
    weighted: Sequence[WeightedCounts | None] = (),
) -> list[Array]:
    """Posterior values (D, R, V) for runs (R, K, K) on different samples, some of which may have weights."""
    squares = [None if one is None else one.squares for one in weighted] or [None] * len(counts)
    runs = [
        draw_run(one, estimands, draws=draws, seed=seed_of(seed, index), shares=shares, squares=own)
        for index, (one, own) in enumerate(zip(counts, squares, strict=True))
    ]
    return [np.stack([run[index] for run in runs], axis=1) for index in range(len(estimands))]


def draw_paired(counts: JointCounts, estimands: Sequence[Estimand], *, draws: int, seed: int) -> list[Array]:
    """Posterior values (D, R, V) for runs on the same samples: what they have in common stays in common."""
    batches = joint.draw_matrices(counts, draws=draws, random=generator(seed))
    values = evaluate_draws(batches, [estimand.functional for estimand in estimands])
    return [estimand.values(found) for estimand, found in zip(estimands, values, strict=True)]
