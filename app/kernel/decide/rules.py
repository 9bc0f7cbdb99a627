"""Common parts of searches for decision rules: constraints, batches of matrices, and correction for optimism.

The value of a rule found by a search is too high on the same data. The optimism is estimated by repeating the search in
resamples (Efron & Gong 1983; Harrell, Lee & Mark 1996). The same holds for constraints that a rule just meets: the
posterior of its matrix is shifted by the optimism.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Scale
from app.kernel.metrics.expression import (
    Combination,
    Expression,
    Measure,
    OverSlices,
    bounds,
    compute,
    value_over_slices,
)
from app.kernel.numerics.arrays import Array, Mask, silently
from app.kernel.samples.rankings import Positions
from app.kernel.uncertainty.draws import Shares, within
from app.kernel.uncertainty.simulation import RowPosterior

# Matrices evaluated at once.
_BATCH = 1 << 16
# Relative difference up to which values are equal.
EQUAL = 1e-12
# A threshold, or the weights of classes.
Rule = TypeVar("Rule")


class Correction(StrEnum):
    """Method of correcting the value of a rule for having been found by a search."""

    NONE = "none"
    OPTIMISM = "optimism"
    B632 = "632"


class NoFeasibleRule(Exception):
    """No rule meets the constraints, if there are any, or the objective has no value at any that does."""


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
    """Lower and upper limit of an expression; both are allowed values."""

    of: Placed
    minimum: float | None = None
    maximum: float | None = None

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

    @property
    def of_ratio(self) -> bool:
        """Are equal steps of the values equal factors?"""
        of = self.of.expression
        return isinstance(of, Measure) and of.metric.card.inference.scale is Scale.LOG

    def on_scale(self, values: Array) -> Array:
        """Values (...) as they are moved: ratios by their logarithms."""
        with silently():
            return np.log(values) if self.of_ratio else values

    def off_scale(self, moved: Array) -> Array:
        """The inverse of ``on_scale``."""
        return np.exp(moved) if self.of_ratio else moved


@dataclass(frozen=True, slots=True)
class Corrected:
    """Value of the best rule less the optimism of the search, over ``resamples`` of the data, within its range."""

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

    @property
    def placed(self) -> Sequence[Placed]:
        """The objective, then each of c constraints."""
        return self.objective, *(one.of for one in self.constraints)

    def values(self, counts_of: CountsOf) -> Array:
        """Values (1 + c, m) of m rules: those of the objective, then those of the constraints."""
        return np.array([one.values(counts_of) for one in self.placed])

    def feasible(self, values: Array) -> Mask:
        """Mask (m) of the rules with these values (1 + c, m) that meet all constraints."""
        kept = np.ones(values.shape[1:], dtype=bool)
        for constraint, own in zip(self.constraints, values[1:], strict=True):
            kept &= constraint.keeps(own)
        return kept

    def rated(self, values: Array, allowed: Mask | None = None) -> Array:
        """Objectives (m) of which the highest is the best; -inf of rules that are not allowed, which are those that
        meet all constraints if nothing else is said, or have no value.
        """
        allowed, objectives = self.feasible(values) if allowed is None else allowed, values[0]
        signed = objectives if self.maximize else -objectives
        return np.where(allowed & ~np.isnan(objectives), signed, -np.inf)

    def best(self, values: Array) -> int | None:
        """Place of the best rule with these values (1 + c, m), the first of equal ones; None where there is none."""
        rated = self.rated(values)
        place = int(rated.argmax())
        return None if rated[place] == -np.inf else place


@dataclass(frozen=True, slots=True, eq=False)
class SearchedAgain(Generic[Rule]):
    """The rules that the same search found in resamples.

    Attributes:
        rules: Those of the resamples in which there is one.
        corrected: Value on the data less the optimism of the search.
        optimism: (c) mean excess of the constraints in resamples over the data, due to the search, on their scales; NaN
            of one that is finite in none.
    """

    rules: Sequence[Rule]
    corrected: Corrected
    optimism: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRule(Generic[Rule]):
    """The best rule that was found.

    Attributes:
        values: (1 + c) of the objective, and of the constraints.
        counts: Its matrix.
        again: The search in resamples; None without any.
    """

    values: Array
    counts: Array
    again: SearchedAgain[Rule] | None

    @property
    def objective(self) -> float:
        """Its value."""
        return float(self.values[0])

    @property
    def corrected(self) -> Corrected | None:
        """The value less the optimism of the search; None without resamples."""
        return None if self.again is None else self.again.corrected


def evaluate(expression: Expression, counts: Array) -> Array:
    """Values (m,) of an expression with one value for each of matrices (m, K, K), in pieces."""
    pieces = [compute(expression, Table(counts[i : i + _BATCH])) for i in range(0, counts.shape[0], _BATCH)]
    return np.concatenate(pieces)


def search_again(
    wanted: Wanted,
    apparent: float,
    sides: Sequence[Positions],
    random: np.random.Generator,
    found_in: Callable[[Array], tuple[Rule, Array]],
    values_of: Callable[[Rule, Array | None], Array],
) -> SearchedAgain[Rule] | None:
    """Repeat a search in bootstrap samples, drawn within the classes, so that none is lost; None where it is not to be
    corrected.

    Args:
        wanted: What is searched for.
        apparent: Value of the rule that was found on the data.
        sides: Places of the samples of each class.
        random: Random numbers.
        found_in: Maps times (n) that each sample comes to the best rule and its values (1 + c) there. Raises
            NoFeasibleRule if there is none.
        values_of: Values (1 + c) of a rule where samples come so many times, and without these on the data.

    Raises:
        NoFeasibleRule: no resample had a rule.
    """
    method = wanted.correction
    if method is Correction.NONE:
        return None
    rules, gaps, outside = list[Rule](), list[list[Array]](), list[float]()

    def on_scales(values: Array) -> list[Array]:
        return [values[0], *(one.on_scale(own) for one, own in zip(wanted.constraints, values[1:], strict=True))]

    for _ in range(wanted.resamples):
        times = np.zeros(sum(side.size for side in sides))
        for side in sides:
            if side.size:
                times[side] = np.bincount(random.integers(0, side.size, side.size), minlength=side.size)
        try:
            rule, values = found_in(times)
        except NoFeasibleRule:
            continue
        rules.append(rule)
        with silently():
            gaps.append([*map(np.subtract, on_scales(values), on_scales(values_of(rule, None)))])
        if method is Correction.B632:
            outside.append(float(values_of(rule, (times == 0).astype(np.float64))[0]))
    if not rules:
        raise NoFeasibleRule("no resample has such a rule")
    excess, *of_constraints = np.transpose(gaps)
    optimism = _mean(excess)
    value = 0.368 * apparent + 0.632 * _mean(np.array(outside)) if outside else apparent - optimism
    # Of a few samples less is left than the objective can be.
    value = float(np.clip(value, *within(-np.inf, np.inf, bounds(wanted.objective.expression))))
    corrected = Corrected(value, apparent - value, method, len(rules), wanted.seed)
    return SearchedAgain(rules, corrected, np.array([_mean(one[np.isfinite(one)]) for one in of_constraints]))


def _mean(values: Array) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


_DRAWS = 4000


def constraint_probabilities(
    counts: Array, constraints: Sequence[Constraint], optimism: Array, seed: int
) -> tuple[list[float | None], float | None]:
    """Probabilities that a rule with a matrix (K, K) of counts meets each constraint in the population, and all; None
    of one whose optimism is not known, and then of all.

    Args:
        counts: Counts of the independent samples on which the rule was chosen.
        constraints: At least one.
        optimism: (m) excess of each constraint due to the search, on its scale.
        seed: Seed of the draws.
    """
    random = np.random.default_rng(seed)
    table = Table(RowPosterior(counts, shares=Shares.SAMPLED).matrices(_DRAWS, random))
    met = np.empty((len(constraints), _DRAWS), dtype=bool)
    for row, constraint, luck in zip(met, constraints, optimism.tolist(), strict=True):
        drawn, found = (constraint.on_scale(compute(constraint.of.expression, one)) for one in (table, Table(counts)))
        # The draws keep their spread; their mean is shifted by the optimism. What is infinite has no place to shift to.
        shift = (0.0 if np.isinf(found) else float(found) - _mean(drawn[np.isfinite(drawn)])) - luck
        row[:] = constraint.keeps(constraint.off_scale(drawn + shift))
    known = ~np.isnan(optimism)
    each = [chance if one else None for chance, one in zip(met.mean(axis=1).tolist(), known.tolist(), strict=True)]
    return each, float(met.all(axis=0).mean()) if known.all() else None
