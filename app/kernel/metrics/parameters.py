"""Parameters of metrics: their kinds, and the two that several families share, undefined classes and costs."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from app.kernel.numerics.arrays import Array


@dataclass(frozen=True, slots=True)
class Number:
    """Numeric parameter with its bounds; ``None`` is unbounded.

    ``integral`` requires a whole number. If ``written``, the canonical text of an expression shows it even at its
    default.
    """

    name: str
    default: float
    description: str
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    below: float | None = None
    infinite: bool = False
    integral: bool = False
    written: bool = False


class MatrixOf(StrEnum):
    """Meaning of the entries of a parameter that is a matrix with actual classes as rows."""

    WEIGHTS = "weights"
    COSTS = "costs"
    COSTS_OF_ANYTHING = "costs_of_anything"


@dataclass(frozen=True, slots=True)
class Choice:
    """Parameter with named values.

    ``matrix`` also allows a matrix as a tuple of its K rows: with K columns, or with any number of them where decisions
    need not be classes.
    """

    name: str
    default: str
    description: str
    options: tuple[str, ...]
    matrix: MatrixOf | None = None


class Decision(NamedTuple):
    """Possible decision by name, with its column; column 0 while the columns are unknown."""

    name: str
    place: int


NO_DECISION = Decision("", 0)


@dataclass(frozen=True, slots=True)
class DecisionName:
    """Required parameter that names a decision."""

    name: str
    description: str
    default: Decision = NO_DECISION


Parameter = Number | Choice | DecisionName


UNDEFINED = Choice(
    "undefined",
    "strict",
    "what a class without a value does: 'strict' leaves the average undefined, 'zero' counts it as 0 as "
    "scikit-learn does",
    ("strict", "zero"),
)


def filled(values: Array, undefined: str) -> Array:
    """Values of the classes (..., K), with 0 for undefined ones if ``undefined`` asks for it."""
    return values if undefined == "strict" else np.where(np.isnan(values), 0.0, values)


# 'zero_one' for 1 per mistake, or rows of costs.
Costs = str | tuple[tuple[float, ...], ...]
COSTS = Choice(
    "costs",
    "zero_one",
    "1 for every mistake ('zero_one'), or a matrix as '0,1; 5,0' of costs with actual classes as rows, in label order",
    ("zero_one",),
    matrix=MatrixOf.COSTS,
)


def matrix_of_costs(costs: Costs, n_classes: int) -> Array:
    """Costs (K, M) of actual classes and decisions."""
    return 1.0 - np.eye(n_classes) if isinstance(costs, str) else np.array(costs)


def total_cost(counts: Array, costs: Array) -> Array:
    """Total cost (...) of decisions: ``counts`` (..., K, M) of actual classes and decisions times their costs."""
    return np.asarray(np.sum(counts * costs, axis=(-2, -1)))


def constant_costs(actual: Array, costs: Array) -> Array:
    """Total cost (..., M) of always taking one decision, for each decision, with class sizes (..., K)."""
    return np.asarray(actual @ costs)


def relative_cost(counts: Array, actual: Array, costs: Array) -> Array:
    """Cost (...) of decisions relative to that of the cheapest constant decision, with class sizes (..., K).

    NaN where a constant decision costs nothing: then nothing can be saved.
    """
    constant = np.min(constant_costs(actual, costs), axis=-1)
    return total_cost(counts, costs) / np.where(constant > 0.0, constant, np.nan)
