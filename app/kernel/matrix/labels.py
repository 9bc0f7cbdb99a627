"""From label codes to a confusion matrix."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Small enough for the temporary to stay in the cache, large enough for the loop not to matter.
_CHUNK = 1 << 16


def confusion_counts(
    y_true_codes: NDArray[np.integer[Any]],
    y_pred_codes: NDArray[np.integer[Any]],
    n_classes: int,
    weights: NDArray[np.float64] | None = None,
) -> NDArray[Any]:
    """Confusion matrix (K, K), rows actual, of two vectors of codes 0..K-1: int64 counts, or float64 sums of the
    weights (n,).

    Raises:
        ValueError: the vectors differ in length or a code is out of range.
    """
    n = len(y_true_codes)
    if len(y_pred_codes) != n or (weights is not None and len(weights) != n):
        raise ValueError("labels and weights must have the same length")
    for codes in (y_true_codes, y_pred_codes):
        if n and (codes.min() < 0 or codes.max() >= n_classes):
            raise ValueError(f"label codes must lie in 0..{n_classes - 1}")
    cells = n_classes * n_classes
    counts = np.zeros(cells, dtype=np.int64 if weights is None else np.float64)
    # Every chunk adds a whole matrix: with many classes longer chunks pay.
    chunk = max(_CHUNK, 4 * cells)
    cell = np.empty(min(chunk, n), dtype=np.intp)
    for start in range(0, n, chunk):
        part = slice(start, start + chunk)
        here = cell[: min(chunk, n - start)]
        np.multiply(y_true_codes[part], n_classes, out=here, dtype=np.intp, casting="unsafe")
        here += y_pred_codes[part].astype(np.intp, copy=False)
        counts += np.bincount(here, None if weights is None else weights[part], minlength=cells)
    return counts.reshape(n_classes, n_classes)
