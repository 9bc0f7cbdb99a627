"""Evaluation of many metrics at once, and the reasons for undefined values."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Condition, Data, Metric
from app.kernel.numerics.arrays import Array, Mask, silently
from app.kernel.samples.scores import Scores

# Reasons when no condition of the card explains a missing value, as can happen with unusual parameters.
DIVISION_BY_ZERO: Condition[Table | Scores] = Condition(
    "division_by_zero", "the formula divides zero by zero for these counts", lambda t: np.isnan(t.n) | True
)
INFINITE: Condition[Table | Scores] = Condition(
    "infinite", "the value is infinite for these counts", lambda t: np.isnan(t.n) | True
)


@dataclass(frozen=True, slots=True)
class Gap:
    """Undefined value: its metric, its class (None for overall), the condition that explains it, and the classes at
    fault.
    """

    metric: Metric[Any]
    class_index: int | None
    condition: Condition[Any]
    culprits: tuple[int, ...]


def evaluate_table(data: Data, metrics: Sequence[Metric[Data]]) -> Array:
    """Values of metrics of one scope with their default parameters; calls with the same table share its intermediate
    results.

    Returns:
        Array (M, ..., K) for scope class, (M, ...) for scope overall. NaN is undefined, inf is infinite.
    """
    with silently():
        return np.array([metric.compute(data) for metric in metrics])


class Explainer(Generic[Data]):
    """Finds the first condition of the card that explains a missing value of one matrix (K, K); masks are computed
    once.
    """

    def __init__(self, data: Data) -> None:
        self.data = data
        self._masks: dict[int, Mask] = {}

    def _mask(self, condition: Condition[Data]) -> Mask:
        mask = self._masks.get(id(condition))
        if mask is None:
            with silently():
                mask = np.asarray(condition.holds(self.data))
            self._masks[id(condition)] = mask
        return mask

    def explain(self, metric: Metric[Data], class_index: int | None, value: float) -> Gap:
        """Reason why ``value`` (NaN or infinite) of the metric is missing, for a class or, with None,
        for the matrix.
        """
        for condition in metric.card.undefined:
            if (condition.code == "infinite") != bool(np.isinf(value)):
                continue
            mask = self._mask(condition)
            if condition.overall:
                if mask:
                    return Gap(metric, class_index, condition, ())
            elif class_index is not None:
                if mask[class_index]:
                    return Gap(metric, class_index, condition, (class_index,))
            elif mask.any():
                return Gap(metric, None, condition, tuple(int(k) for k in np.flatnonzero(mask)))
        return Gap(metric, class_index, INFINITE if np.isinf(value) else DIVISION_BY_ZERO, ())

    def gaps(self, metrics: Sequence[Metric[Data]], values: Array) -> Iterator[Gap]:
        """One gap for every missing entry of values (M,) or (M, K), in order."""
        for where in np.argwhere(~np.isfinite(values)):
            position = tuple(int(index) for index in where)
            class_index = position[1] if len(position) == 2 else None
            yield self.explain(metrics[position[0]], class_index, float(values[position]))
