"""Seeds of what is simulated."""

import numpy as np

from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.draws import seed_of

# Seeds up to here survive JSON readers that know doubles only.
_SEED_BITS = 53
# Digits of sums of weights that count: the last ones depend on the order in which an engine adds.
_DIGITS = 9


def chosen_seed(seed: int | None, *content: object) -> int:
    """The seed asked for, or one that the same content always gives.

    Of floats that are no whole numbers nine digits count, so that sums of weights give one seed in whatever order they
    were added up.
    """
    if seed is not None:
        return seed
    known = [_rounded(one) if isinstance(one, np.ndarray) and one.dtype.kind == "f" else one for one in content]
    return seed_of(*known) >> (63 - _SEED_BITS)


def _rounded(values: Array) -> Array:
    exponent = np.floor(np.log10(np.abs(values), where=values != 0, out=np.zeros_like(values)))
    scale = 10.0 ** (_DIGITS - 1 - exponent)
    return np.where(values == np.rint(values), values, np.rint(values * scale) / scale)
