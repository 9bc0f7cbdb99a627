"""Common parts of searches for decision rules: constraints, batches of matrices, and correction for optimism.

The value of a rule found by a search is too high on the same data. The optimism is estimated by repeating the search in
resamples (Efron & Gong 1983; Harrell, Lee & Mark 1996). The same holds for constraints that a rule just meets: the
posterior of its matrix is shifted by the optimism.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.metrics.expression import Combination, Expression, OverSlices, compute, is_list, value_over_slices
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.samples.rankings import Positions
from app.kernel.uncertainty.draws import Shares
from app.kernel.uncertainty.simulation import RowPosterior

# Matrices evaluated at once.
_BATCH = 1 << 16
# Relative difference up to which values are equal.
EQUAL = 1e-12


class Correction(StrEnum):
    """Method of correcting the value of a rule for having been found by a search."""

    NONE = "none"
    OPTIMISM = "optimism"
    B632 = "632"


class NoFeasibleRule(Exception):
    """No rule meets the constraints, or the objective has no value at any that does."""


# Matrices (m, K, K) of m rules, made of some samples (n) or of all.
CountsOf = Callable[[Mask | None], Array]


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """An expression with the samples that it is of.

    Attributes:
        expression: One value for each matrix, or a function of others.
        inside: Which samples (n); None is all.
        parts: What a function of slices is of in each, and a function of values of slices altogether.
    """

    expression: Expression
    inside: Mask | None = None
    parts: "Sequence[Placed]" = ()

    @property
    def size(self) -> int:
        """Number of matrices that one value takes."""
        return sum(one.size for one in self.parts) or 1

    def values(self, counts_of: CountsOf) -> Array:
        """Values (m) of matrices (m, K, K), which are made of some samples or of all."""
        if not self.parts or not isinstance(self.expression, Combination | OverSlices):
            return evaluate(self.expression, counts_of(self.inside))
        each = np.stack([one.values(counts_of) for one in self.parts], axis=-1)
        if isinstance(self.expression, OverSlices):
            return value_over_slices(self.expression, each)
        return self.expression.card.compute(each, **self.expression.parameters)


@dataclass(frozen=True, slots=True)
class Constraint:
    """Lower and upper limit of an expression; both are allowed values. ``placed``: where it is of slices."""

    expression: Expression
    minimum: float | None = None
    maximum: float | None = None
    placed: Placed | None = None

    def values(self, counts_of: CountsOf) -> Array:
        """Values (m) of m rules."""
        return (self.placed or Placed(self.expression)).values(counts_of)

    def keeps(self, values: Array) -> Mask:
        """Mask (...) of the allowed values; a matrix without a value has none."""
        kept = ~np.isnan(values)
        with np.errstate(invalid="ignore"):
            if self.minimum is not None:
                kept &= values >= self.minimum - EQUAL * abs(self.minimum)
            if self.maximum is not None:
                kept &= values <= self.maximum + EQUAL * abs(self.maximum)
        return kept

    def slack(self, values: Array) -> Array:
        """Distance of values (...) to the nearer limit, negative outside."""
        below = np.inf if self.minimum is None else values - self.minimum
        above = np.inf if self.maximum is None else self.maximum - values
        found: Array = np.minimum(below, above) + np.zeros(values.shape)
        return found


@dataclass(frozen=True, slots=True)
class Corrected:
    """Value of the best rule less the optimism of the search, over ``resamples`` of the data."""

    value: float
    optimism: float
    method: Correction
    resamples: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The objective and the constraints of a search for a rule.

    Attributes:
        objective: One value for each matrix, of all samples or of slices.
        constraints: All must be met.
        maximize: False when smaller is better.
        correction: Method of correcting the value for the search; NONE needs no resamples.
        resamples: Number of resamples.
        seed: Seed of the resamples, and of random starts.
    """

    objective: Placed
    constraints: Sequence[Constraint] = ()
    maximize: bool = True
    correction: Correction = Correction.NONE
    resamples: int = 20
    seed: int = 0

    def held(self, counts_of: CountsOf) -> list[Array]:
        """Values (m) of each constraint."""
        return [constraint.values(counts_of) for constraint in self.constraints]

    def feasible(self, held: Sequence[Array], objectives: Array) -> Mask:
        """Mask (...) of the rules whose values of the constraints (each ...) meet all, beside objectives (...)."""
        kept = np.ones(objectives.shape, dtype=bool)
        for constraint, values in zip(self.constraints, held, strict=True):
            kept &= constraint.keeps(values)
        return kept

    def rated(self, objectives: Array, allowed: Mask) -> Array:
        """Objectives (m) of which the highest is the best; -inf of rules that are not allowed or have no value."""
        signed = objectives if self.maximize else -objectives
        return np.where(allowed & ~np.isnan(objectives), signed, -np.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRule:
    """The best rule that was found.

    Attributes:
        objective: Its value.
        counts: Its matrix.
        corrected: The value less the optimism of the search; None without resamples.
        optimism: (m) that of the constraints; None without resamples.
        held: (m) values of the constraints.
    """

    objective: float
    counts: Array
    corrected: Corrected | None
    optimism: Array | None
    held: Array


def scalar(expression: Expression, table: Table) -> Array:
    """Values (...) of an expression.

    Raises:
        ValueError: it has one value per class.
    """
    if is_list(expression):
        raise ValueError("the expression gives one value per class: name a class, or take the mean or the minimum")
    return compute(expression, table)


def evaluate(expression: Expression, counts: Array) -> Array:
    """Values (m,) of an expression on matrices (m, K, K), in pieces."""
    pieces = [scalar(expression, Table(counts[i : i + _BATCH])) for i in range(0, counts.shape[0], _BATCH)]
    return np.concatenate(pieces)


def bootstrap_counts(sides: Sequence[Positions], size: int, rng: np.random.Generator) -> Array:
    """Multiplicity of each sample in a bootstrap sample, drawn within the classes, so that none is lost."""
    times = np.zeros(size)
    for side in sides:
        if side.size:
            times[side] = np.bincount(rng.integers(0, side.size, side.size), minlength=side.size)
    return times


@dataclass(slots=True)
class Attempts:
    """Performance of the rules found in resamples, one entry per resample with a rule.

    Attributes:
        gaps: Objective in the resample less that on the data, for the same rule.
        outside: Objective on the samples that were not drawn.
        kept: The same difference for every constraint.
    """

    gaps: list[float] = field(default_factory=list)
    outside: list[float] = field(default_factory=list)
    kept: list[list[float]] = field(default_factory=list)

    def corrected(self, apparent: float, method: Correction, seed: int) -> Corrected:
        """Apparent value less the optimism: the mean gap or, for B632, the mixture with the samples outside.

        Raises:
            NoFeasibleRule: no resample had a rule.
        """
        if not self.gaps:
            raise NoFeasibleRule("no resample has a rule that meets the constraints")
        mean = _mean(self.outside if method is Correction.B632 else self.gaps)
        value = 0.368 * apparent + 0.632 * mean if method is Correction.B632 else apparent - mean
        return Corrected(value, apparent - value, method, len(self.gaps), seed)

    def optimism(self) -> Array:
        """Mean excess (m) of the constraints in resamples over the data, due to the search."""
        return np.array([_mean(gaps) for gaps in zip(*self.kept, strict=True)])


def _mean(values: Sequence[float]) -> float:
    known = np.asarray(values)[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


_DRAWS = 4000


def constraint_probabilities(
    counts: Array, constraints: Sequence[Constraint], optimism: Array, seed: int
) -> tuple[tuple[float, ...], float]:
    """Probabilities that a rule with a matrix (K, K) of counts meets each constraint in the population, and all.

    Args:
        counts: Counts of the independent samples on which the rule was chosen.
        constraints: At least one.
        optimism: (m) excess of each constraint due to the search.
        seed: Seed of the draws.
    """
    random = np.random.default_rng(seed)
    table = Table(RowPosterior(counts, shares=Shares.SAMPLED).matrices(_DRAWS, random))
    met = np.empty((len(constraints), _DRAWS), dtype=bool)
    for row, constraint, luck in zip(met, constraints, optimism.tolist(), strict=True):
        drawn = scalar(constraint.expression, table)
        present = drawn[~np.isnan(drawn)]
        found = float(scalar(constraint.expression, Table(counts)))
        # The draws keep their spread; their mean is shifted by the optimism.
        row[:] = constraint.keeps(drawn + (found - luck - float(present.mean()) if present.size else 0.0))
    return tuple(met.mean(axis=1).tolist()), float(met.all(axis=0).mean())
