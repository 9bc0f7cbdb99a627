"""What all folds are: states that take samples in batches, merge in any order, and delete their files at the end."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.folds.entries import Groups
from app.kernel.folds.orders.runs import SortedRuns
from app.kernel.folds.weights.totals import WeightTotals
from app.kernel.numerics.arrays import Array
from app.kernel.samples.losses import Codes

# What a sample with a weight takes where the order is read, in so many times what a key takes, and how many digits of
# its weight and of its square take as much as that.
_WEIGHED, _DIGITS = 2, 4
# Products of squares of weights below the first with squares of their sums are added up exactly; of a class that weighs
# at least the second those that matter are no subnormal numbers.
_HEAVIEST, _LIGHTEST_CLASS = 2.0**100, 2.0**-100


class Fold(ABC):
    """Samples of K classes that go by in batches, of which the order is kept in sorted runs.

    States of parts are merged in any order and give the same answers, bit for bit. A state can be pickled; its files go
    with it by their paths, and belong to whom it is merged into. It deletes its files at the end of a ``with``.

    Attributes:
        classes: K.
        budget: Bytes of memory, about, that the order may take; more goes into files.
        grouped: Do samples have groups?
        weighted: Do they have weights?

    Raises:
        ValueError: there are fewer than two classes, or samples have groups and weights.
    """

    def __init__(self, classes: int, budget: int, *, grouped: bool = False, weighted: bool = False) -> None:
        if classes < 2:
            raise ValueError(f"expected at least two classes, got {classes}")
        if grouped and weighted:
            raise ValueError("samples in groups do not fold with weights")
        self.classes, self.budget, self.grouped = classes, budget, grouped
        self._totals = WeightTotals(classes) if weighted else None

    @property
    def weighted(self) -> bool:
        """Do samples have weights?"""
        return self._totals is not None

    @property
    @abstractmethod
    def rows(self) -> int:
        """Samples so far."""

    @property
    def bytes_of_groups(self) -> int:
        """Bytes in memory for sums within groups, as of when they were looked at last."""
        return 0

    @property
    @abstractmethod
    def _stores(self) -> Sequence[SortedRuns]:
        """All that hold runs."""

    @abstractmethod
    def merge(self, other: Self) -> Self:
        """Take in another state of the same classes, which is not to be used any more.

        Raises:
            ValueError: it has another number of classes.
        """

    def close(self) -> None:
        """Delete the files."""
        for store in self._stores:
            store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _reading_budget(self) -> int:
        """Bytes of memory for reading the order, as if keys were alone."""
        if self._totals is not None:
            digits = sum(grid.size for grid in self._totals.grids())
            return self.budget // (_WEIGHED + digits // _DIGITS)
        return self.budget // 2 if self.grouped else self.budget

    def _check_mergeable(self, other: "Fold") -> None:
        """Raises ValueError: another state has another number of classes, or one of them alone has groups."""
        if other.classes != self.classes:
            raise ValueError(f"states of {self.classes} and of {other.classes} classes cannot be merged")
        if other.grouped != self.grouped:
            raise ValueError("states with groups and without cannot be merged")
        if other.weighted != self.weighted:
            raise ValueError("states with weights and without cannot be merged")

    def _merge_weights(self, other: "Fold") -> None:
        if self._totals is not None and other._totals is not None:
            self._totals.merge(other._totals)

    def _weigh(self, codes: Codes, weights: Array | None) -> None:
        if self._totals is not None and weights is not None:
            self._totals.add(weights, codes)

    def _release(self) -> None:
        """Sort what came in last, and give back the memory of what comes in.

        Raises:
            ValueError: there is no sample, or those of a class weigh too little.
        """
        if not self.rows:
            raise ValueError("expected at least one sample")
        if self._totals is not None and any(0 < weight < _LIGHTEST_CLASS for weight in self._totals.by_class()[0]):
            raise ValueError("the weights of a class must add up to 0, or to at least 2^-100")
        for store in self._stores:
            store.release()

    def _check_groups(self, groups: Groups | None, size: int) -> None:
        """Raises ValueError: there are groups where there are to be none, or the other way round, or too few."""
        if (groups is not None) != self.grouped or (groups is not None and groups.shape != (size,)):
            expected = f"the groups of {size} samples" if self.grouped else "samples without groups"
            raise ValueError(f"expected {expected}")

    def _weights(self, weights: Array | None, size: int) -> Array | None:
        """Weights (n) of samples.

        Raises:
            ValueError: there are some where there are to be none, or the other way round, or too few, or one is no
                number of 0 or more, below 2^100.
        """
        if (weights is not None) != self.weighted or (weights is not None and weights.shape != (size,)):
            expected = f"the weights of {size} samples" if self.weighted else "samples without weights"
            raise ValueError(f"expected {expected}")
        if weights is None:
            return None
        given = np.asarray(weights, dtype=np.float64)
        if size and not (given.min() >= 0.0 and given.max() < _HEAVIEST):
            raise ValueError("weights must be numbers of 0 or more, below 2^100")
        # Adding 0 makes 0 of -0.
        return given + 0.0

    def _codes(self, actual: NDArray[Any]) -> Codes:
        """Codes (n) of classes as indices.

        Raises:
            ValueError: they are no whole numbers in 0..K-1.
        """
        if actual.dtype.kind not in "biu":
            raise ValueError(f"class codes must be whole numbers, got {actual.dtype}")
        codes = actual.astype(np.intp, copy=False)
        if codes.size and not (codes.min() >= 0 and codes.max() < self.classes):
            raise ValueError(f"class codes must lie in 0..{self.classes - 1}")
        return codes
