"""The delta method for paired differences: an oracle, since the service has a score method."""

import numpy as np

from app.kernel.compare.paired.joint import JointCounts
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.closed_forms import NUMERIC_NOISE, cell_slopes
from app.kernel.uncertainty.draws import Functional, Shares


def paired_variance(joint: JointCounts, functional: Functional, *, shares: Shares = Shares.SAMPLED) -> Array:
    """Delta-method variances (V) of the difference between two runs on the same items.

    The derivative with respect to the count of a combination (t, a, b) is dM/dC at (t, a) of the first matrix less
    that at (t, b) of the second.

    Raises:
        ValueError: there are not two runs.
    """
    if joint.n_runs != 2:
        raise ValueError(f"a paired difference needs two runs, not {joint.n_runs}")
    slopes = []
    for matrix, cells in zip(joint.matrices(), joint.truth * joint.n_classes + joint.predictions, strict=True):
        slopes.append(cell_slopes(matrix, functional).reshape(-1, matrix.size).T[cells])
    gradient = slopes[0] - slopes[1]
    weighted = joint.counts[:, None] * gradient
    if shares is Shares.SAMPLED:
        explained = weighted.sum(axis=0) ** 2 / joint.n
    else:
        rows = np.zeros((joint.n_classes, gradient.shape[1]))
        np.add.at(rows, joint.truth, weighted)
        explained = (rows**2 / np.maximum(joint.actual(), 1.0)[:, None]).sum(axis=0)
    gross = (weighted * gradient).sum(axis=0)
    scale = (joint.counts[:, None] * (slopes[0] ** 2 + slopes[1] ** 2)).sum(axis=0)
    return np.where(gross - explained <= NUMERIC_NOISE * scale, 0.0, gross - explained)
