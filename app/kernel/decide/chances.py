"""How likely it is that a rule meets its constraints beyond the samples that it was chosen on.

A rule that just meets a constraint on the data was often taken because of luck. The posterior of its matrix is moved by
what such a search was seen to owe to chance in resamples.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.kernel.decide.rules import Constraint, scalar
from app.kernel.matrix.table import Table
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.draws import Shares
from app.kernel.uncertainty.simulation import draw_matrices

_DRAWS = 4000


@dataclass(frozen=True, slots=True)
class Chances:
    """Probabilities that the population meets each of some constraints, and all of them."""

    each: tuple[float, ...]
    all: float


def chances_of(counts: Array, constraints: Sequence[Constraint], optimism: Array, seed: int) -> Chances:
    """Chances that a rule with a matrix (K, K) of counts meets constraints.

    Args:
        counts: Of the samples that the rule was chosen on, which are independent.
        constraints: At least one.
        optimism: (m) by how much the value of each constraint is too high for having been searched.
        seed: Of the draws.
    """
    random = np.random.default_rng(seed)
    table = Table(np.concatenate(list(draw_matrices(counts, draws=_DRAWS, random=random, shares=Shares.SAMPLED))))
    met = np.empty((len(constraints), _DRAWS), dtype=bool)
    for row, constraint, luck in zip(met, constraints, optimism.tolist(), strict=True):
        drawn = scalar(constraint.expression, table)
        present = drawn[~np.isnan(drawn)]
        found = float(scalar(constraint.expression, Table(counts)))
        # The draws keep their spread; their mean is the value found less what of it is luck.
        row[:] = constraint.keeps(drawn + (found - luck - float(present.mean()) if present.size else 0.0))
    return Chances(tuple(met.mean(axis=1).tolist()), float(met.all(axis=0).mean()))
