"""Costs of decisions as a parameter of metrics."""

import numpy as np

from app.kernel.metrics.card import Choice, MatrixOf
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
