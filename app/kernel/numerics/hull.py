"""The upper convex hull of a ROC curve.

The slopes of the hull are those of isotonic (pool adjacent violators) calibration (Fawcett & Niculescu-Mizil 2007).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Counts as floats, or as integers where their products need all digits.
Amounts = NDArray[Any]

_ROUNDS = 40
_FEW = 256


def upper_hull(tp: Amounts, fp: Amounts) -> tuple[Amounts, Amounts]:
    """Vertices of the upper hull of points that rise in both coordinates, from the first to the last."""
    # A repeated point would count as lying below the line between its neighbours.
    moves = (tp[1:] != tp[:-1]) | (fp[1:] != fp[:-1])
    if not moves.all():
        last_there = np.append(np.flatnonzero(moves), tp.size - 1)
        tp, fp = tp.take(last_there), fp.take(last_there)
    for _ in range(_ROUNDS):
        # Points below the line between their neighbours go, all at once, until few are left or none goes.
        if tp.size <= _FEW:
            break
        up, right = np.diff(tp), np.diff(fp)
        corners = np.flatnonzero(up[:-1] * right[1:] > up[1:] * right[:-1])
        if corners.size == tp.size - 2:
            return tp, fp
        keep = np.concatenate([[0], corners + 1, [tp.size - 1]])
        tp, fp = tp.take(keep), fp.take(keep)
    return _chain(tp, fp)


def _chain(tp: Amounts, fp: Amounts) -> tuple[Amounts, Amounts]:
    """Vertices of the hull by a monotone chain, point by point."""
    hull: list[tuple[Any, Any]] = []
    for y, x in zip(tp.tolist(), fp.tolist(), strict=True):
        while len(hull) >= 2:
            (y1, x1), (y2, x2) = hull[-2], hull[-1]
            if (y2 - y1) * (x - x2) > (y - y2) * (x2 - x1):
                break
            hull.pop()
        hull.append((y, x))
    vertices = np.array(hull, dtype=tp.dtype)
    return vertices[:, 0], vertices[:, 1]
