"""What examples for metrics can do, whatever these are computed from."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.kernel.metrics.card import AnyMetric
from app.kernel.numerics.arrays import Array, silently

# By kind and place in memory, with the example, which keeps the place.
_MADE: "dict[tuple[Kind, int], tuple[Any, Any]]" = {}
_KEPT = 256


class Kind(ABC):
    """Examples for metrics, and what may be done to them. ``size`` of a difference is rounding."""

    rounding: float

    @abstractmethod
    def cases(self, classes: int) -> Sequence[Any]:
        """The same examples for every metric, in which every class occurs."""

    @abstractmethod
    def degenerate(self) -> Mapping[str, Any]:
        """Examples in which something is missing."""

    @abstractmethod
    def data(self, example: Any) -> Any:
        """What the function of a metric takes."""

    @abstractmethod
    def replicated(self, example: Any, times: Sequence[int]) -> Any:
        """Every sample of class k so many times."""

    @abstractmethod
    def relabelled(self, example: Any, order: Sequence[int]) -> Any:
        """The classes listed in another order."""

    @abstractmethod
    def perfect(self, example: Any) -> Any:
        """The same truth, always recognised."""

    @abstractmethod
    def batches(self, classes: int) -> Sequence[tuple[Any, Sequence[Any]]]:
        """Batches with one or two axes in front, and their members one by one."""

    @abstractmethod
    def depends_on_order(self, metric: AnyMetric, example: Any) -> bool:
        """Does the order of the classes decide something in this example, ties for instance?"""

    def values(self, metric: AnyMetric, example: Any, **parameters: Any) -> Array:
        """The metric of an example, warnings as errors."""
        with silently(), warnings.catch_warnings():
            warnings.simplefilter("error")
            return np.asarray(metric.compute(self._shared(example), **parameters))

    def _shared(self, example: Any) -> Any:
        """The data of an example, made once for all metrics: that, and what they share of it, is most of the work."""
        if (self, id(example)) not in _MADE:
            if len(_MADE) == _KEPT:
                _MADE.clear()
            _MADE[self, id(example)] = example, self.data(example)
        return _MADE[self, id(example)][1]
