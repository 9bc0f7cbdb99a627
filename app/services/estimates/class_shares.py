"""Other shares of the classes, where the model is used: how each class is predicted stays as it is (label shift)."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from app.kernel.matrix.prevalence import draw_shares
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.draws import generator, seed_of
from app.services.estimands import Estimand


@dataclass(frozen=True, slots=True, eq=False)
class ClassShares:
    """Shares (G, K) at which values are wanted.

    Attributes:
        points: Shares (G, K).
        worth: How many samples they are worth: their uncertainty. None takes them as exact.
        calibrated_to: Shares (K) that the probabilities are calibrated to, where they are to be fitted to every point
            and decisions made anew; None leaves both as they are.
        in_all: So many points share the time that simulation may take, where they are not asked for together.
    """

    points: Array
    worth: float | None = None
    calibrated_to: Array | None = None
    in_all: int | None = None

    def __len__(self) -> int:
        return len(self.points)

    @property
    def work(self) -> int:
        """How many points are simulated in all."""
        return max(len(self), self.in_all or 0)

    def at(self, points: Array) -> Self:
        """The same at other points (G, K)."""
        return replace(self, points=points)

    def leave(self, estimand: Estimand) -> bool:
        """Has the estimand the same value and the same limits at all of them?"""
        return estimand.insensitive and self.calibrated_to is None

    def from_samples(self, estimand: Estimand) -> bool:
        """Is the estimand computed from samples? With other probabilities the matrix is another one too."""
        return estimand.scored or self.calibrated_to is not None

    def drawn(self, draws: int, seed: int) -> list[Array]:
        """For every point the shares (1 or draws, K) of each draw; a share of 0 stays 0."""
        return [one[None] if self.worth is None else _spread(one, self.worth, draws, seed) for one in self.points]


def _spread(shares: Array, worth: float, draws: int, seed: int) -> Array:
    present = np.flatnonzero(shares)
    spread = np.zeros((draws, shares.size))
    spread[:, present] = draw_shares(shares[present] * worth, draws, generator(seed_of(seed, "shares")))
    return spread
