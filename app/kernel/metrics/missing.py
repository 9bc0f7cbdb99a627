"""What a class without a value does to an average over the classes."""

import numpy as np

from app.kernel.metrics.parameters import Choice
from app.kernel.numerics.arrays import Array

UNDEFINED = Choice(
    "undefined",
    "strict",
    "what a class without a value does: 'strict' leaves the average undefined, 'zero' counts it as 0 as "
    "scikit-learn does",
    ("strict", "zero"),
)


def filled(values: Array, undefined: str) -> Array:
    """Values of the classes (..., K), those that do not exist as 0 where that is asked for."""
    return values if undefined == "strict" else np.where(np.isnan(values), 0.0, values)
