"""Which of two vectors of rates every mean prefers that is never better for more inequality."""

import numpy as np

from app.kernel.numerics.arrays import Array

# Sums of rates that are equal may differ by rounding.
_ROUNDING = 1e-12


def lorenz_order(first: Array, second: Array) -> int | None:
    """Generalised Lorenz order of two vectors (K) (Shorrocks 1983): weak majorisation.

    1 when the k smallest of ``first`` add up to at least as much as those of ``second`` for every k, and to more for
    some; then no mean that rises with every rate and is Schur-concave prefers ``second`` (Marshall, Olkin & Arnold
    2011, 3.A.8). -1 the other way round, 0 when all sums are equal, None when neither holds.
    """
    gap = np.cumsum(np.sort(first)) - np.cumsum(np.sort(second))
    above, below = bool((gap > _ROUNDING).any()), bool((gap < -_ROUNDING).any())
    return None if above and below else int(above) - int(below)
