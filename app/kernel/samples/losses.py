"""The worth of a probability of the actual class, and sums by class."""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array, silently
from app.kernel.numerics.arrays import sums_by_code as sums_by_code

Codes = NDArray[np.intp]

# Probabilities below this are raised to it, as in scikit-learn.
CLIP = float(np.finfo(np.float64).eps)
# Tolerance of limits such as 1/3, which have no exact binary form.
TOLERANCE = 1e-12


def phi_of(p_true: Array) -> Array:
    """1 - sqrt(1 - sqrt(p)), any shape: 1 minus the Hellinger distance between a row and the truth."""
    # In place: allocating large arrays costs more than filling them.
    values: Array = np.sqrt(p_true)
    np.subtract(1.0, values, out=values)
    with silently():
        np.sqrt(values, out=values)
    return np.subtract(1.0, values, out=values)


def threshold_correct() -> float:
    """1 - eta = 1 - sqrt(1 - sqrt(1/2)): a phi above it means p_true > 1/2, so the prediction is right."""
    return 1.0 - sqrt(1.0 - sqrt(0.5))


def threshold_incorrect(n_classes: int) -> float:
    """1 - theta = 1 - sqrt(1 - 1/sqrt(K)): a phi below it means p_true < 1/K, so the prediction is wrong."""
    return 1.0 - sqrt(1.0 - 1.0 / sqrt(n_classes))
