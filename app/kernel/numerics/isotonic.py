"""Isotonic regression of many series at once."""

import numpy as np
from numpy.typing import ArrayLike

from app.kernel.numerics.arrays import Array, some


def falling_means(sums: Array, weights: ArrayLike) -> Array:
    """The falling values nearest to the means of cells in order: isotonic regression by pooling adjacent violators.

    All neighbours of which the later is not below the earlier are pooled at once, in all series, until there are none
    (Ayer et al. 1955: the order of pooling does not matter).

    Args:
        sums: (D, m) of D series.
        weights: (m) or (D, m), positive.

    Returns:
        (D, m) the fitted means.
    """
    n_series, n_cells = sums.shape
    total, weight = sums.ravel(), np.broadcast_to(weights, sums.shape).ravel()
    begins = np.arange(total.size)
    while True:
        pooled = total[:-1] * weight[1:] <= total[1:] * weight[:-1]
        # Series end where others begin.
        pooled &= begins[1:] % n_cells != 0
        if not some(pooled):
            break
        kept = np.flatnonzero(np.concatenate([[True], ~pooled]))
        total, weight = np.add.reduceat(total, kept), np.add.reduceat(weight, kept)
        begins = begins[kept]
    lengths = np.diff(begins, append=sums.size)
    return np.repeat(total / weight, lengths).reshape(n_series, n_cells)
