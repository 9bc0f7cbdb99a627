"""Costs of decisions as a parameter of metrics."""

import numpy as np

from app.kernel.metrics.parameters import Choice, MatrixOf
from app.kernel.numerics.arrays import Array

# One word for 1 per mistake, or costs by rows.
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


def paid_in_all(counts: Array, costs: Array) -> Array:
    """What decisions cost in all (...): ``counts`` (..., K, M) of actual classes and decisions times their costs."""
    return np.asarray(np.sum(counts * costs, axis=(-2, -1)))


def costs_of_constants(actual: Array, costs: Array) -> Array:
    """What it costs in all to decide always the same, for each decision (..., M), with so many of each class
    (..., K).
    """
    return np.asarray(actual @ costs)


def relative_cost(counts: Array, actual: Array, costs: Array) -> Array:
    """What decisions cost (...) as a share of what the cheapest of all constant ones does, with so many of each class.

    NaN where a constant decision costs nothing: nothing can be saved then, however much the decisions cost.
    """
    constant = np.min(costs_of_constants(actual, costs), axis=-1)
    return paid_in_all(counts, costs) / np.where(constant > 0.0, constant, np.nan)
