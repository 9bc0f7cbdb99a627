"""Metrics over the folds of a cross-validation."""

from collections.abc import Sequence

import numpy as np

from app.domain.report import FoldValues
from app.kernel.numerics.arrays import Array, silently
from app.services.json_values import numbers


def over_folds(keys: Sequence[str], values: Array) -> dict[str, FoldValues]:
    """Values (M, F) of metrics by key, with mean and standard deviation where every fold has a value."""
    count = values.shape[1]
    defined = np.isfinite(values).all(axis=1)
    with silently():
        means = np.where(defined, values.mean(axis=1), np.nan)
        deviations = np.where(defined & (count > 1), values.std(axis=1, ddof=1) if count > 1 else np.nan, np.nan)
    rows = zip(keys, numbers(values), numbers(means), numbers(deviations), strict=True)
    return {key: FoldValues.of(row, mean, sd) for key, row, mean, sd in rows}
