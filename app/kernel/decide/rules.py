"""What searches for decision rules share: constraints, batches of matrices, and what a search owes to chance.

What is best on the data is too good to be true on new data: the optimism is estimated by searching again in resamples
(Efron & Gong 1983; Harrell, Lee & Mark 1996).

How likely it is that a rule meets its constraints beyond the samples that it was chosen on.

A rule that just meets a constraint on the data was often taken because of luck. The posterior of its matrix is moved by
what such a search was seen to owe to chance in resamples.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.metrics.expression import Expression, compute, is_list
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.samples.rankings import Positions
from app.kernel.uncertainty.draws import Shares
from app.kernel.uncertainty.simulation import draw_matrices

# Matrices evaluated at once.
_BATCH = 1 << 16
# Values as near as this, relative, are equal.
EQUAL = 1e-12


class Correction(StrEnum):
    """How to correct the value of a searched rule for having been searched."""

    NONE = "none"
    OPTIMISM = "optimism"
    B632 = "632"


class NoFeasibleRule(Exception):
    """No rule meets the constraints, or the objective has no value at any that does."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """Lower and upper limit, both allowed values, of an expression."""

    expression: Expression
    minimum: float | None = None
    maximum: float | None = None

    def met(self, table: Table) -> Mask:
        """Shape (...); where the expression has no value it is not met."""
        return self.keeps(scalar(self.expression, table))

    def keeps(self, values: Array) -> Mask:
        """Which values (...) are allowed."""
        kept = ~np.isnan(values)
        with np.errstate(invalid="ignore"):
            if self.minimum is not None:
                kept &= values >= self.minimum - EQUAL * abs(self.minimum)
            if self.maximum is not None:
                kept &= values <= self.maximum + EQUAL * abs(self.maximum)
        return kept

    def slack(self, values: Array) -> Array:
        """How far values (...) are inside of what is allowed, negative outside."""
        below = np.inf if self.minimum is None else values - self.minimum
        above = np.inf if self.maximum is None else self.maximum - values
        found: Array = np.minimum(below, above) + np.zeros(values.shape)
        return found


@dataclass(frozen=True, slots=True)
class Corrected:
    """The value of the best rule less what the search itself contributed, over ``resamples`` of the data."""

    value: float
    optimism: float
    method: Correction
    resamples: int
    seed: int


def scalar(expression: Expression, table: Table) -> Array:
    """Values (...) of an expression.

    Raises:
        ValueError: it gives one value per class.
    """
    if is_list(expression):
        raise ValueError("the expression gives one value per class: name a class, or take the mean or the minimum")
    return compute(expression, table)


def evaluate(expression: Expression, counts: Array) -> Array:
    """Values (m,) of an expression on matrices (m, K, K), in pieces."""
    pieces = [scalar(expression, Table(counts[i : i + _BATCH])) for i in range(0, counts.shape[0], _BATCH)]
    return np.concatenate(pieces)


def feasible(constraints: Sequence[Constraint], counts: Array) -> Mask:
    """Which of matrices (m, K, K) meet all constraints, shape (m,)."""
    kept = np.ones(counts.shape[0], dtype=bool)
    for constraint in constraints:
        for i in range(0, counts.shape[0], _BATCH):
            kept[i : i + _BATCH] &= constraint.met(Table(counts[i : i + _BATCH]))
    return kept


def drawn_again(sides: Sequence[Positions], size: int, rng: np.random.Generator) -> Array:
    """How often each of so many samples occurs in a bootstrap sample; drawn within classes, so that none is lost."""
    times = np.zeros(size)
    for side in sides:
        if side.size:
            times[side] = np.bincount(rng.integers(0, side.size, side.size), minlength=side.size)
    return times


@dataclass(slots=True)
class Attempts:
    """What the rules found in resamples are worth, one entry per resample that has a rule.

    Attributes:
        gaps: Value of the objective there less that on the data, for the same rule.
        outside: Its value on the samples that were not drawn.
        kept: The same gap of every constraint.
    """

    gaps: list[float] = field(default_factory=list)
    outside: list[float] = field(default_factory=list)
    kept: list[list[float]] = field(default_factory=list)

    def corrected(self, apparent: float, method: Correction, seed: int) -> Corrected:
        """The apparent value less the optimism: the mean gap, or for B632 what mixing in the samples outside takes off.

        Raises:
            NoFeasibleRule: no resample had a rule.
        """
        if not self.gaps:
            raise NoFeasibleRule("no resample has a rule that meets the constraints")
        mean = _mean(self.outside if method is Correction.B632 else self.gaps)
        value = 0.368 * apparent + 0.632 * mean if method is Correction.B632 else apparent - mean
        return Corrected(value, apparent - value, method, len(self.gaps), seed)

    def optimism(self) -> Array:
        """By how much each constraint (m) is met too well for having been searched."""
        return np.array([_mean(gaps) for gaps in zip(*self.kept, strict=True)])


def _mean(values: Sequence[float]) -> float:
    known = np.asarray(values)[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


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
