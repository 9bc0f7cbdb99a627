"""Groups of samples that went by: what was decided of the members of each, and how many there may be."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from app.domain.inputs.samples import Samples, Tally
from app.kernel.folds.entries import Groups
from app.kernel.folds.groups import GroupSums

Codes = NDArray[Any]


class DecidedInGroups:
    """How often each group has which actual and predicted class; by several rules at once while it is open which it is.

    Args:
        n_classes: K.
    """

    def __init__(self, n_classes: int) -> None:
        self._n_classes, self._n_rules = n_classes, 0
        self._cells = GroupSums(0)

    @property
    def n_groups(self) -> int:
        """How many groups there were when they were looked at last."""
        return self._cells.n_groups

    @property
    def nbytes(self) -> int:
        """Bytes in memory then."""
        return self._cells.nbytes

    def add(self, groups: Groups, truth: Codes, predicted: Sequence[Codes]) -> None:
        """Add samples.

        Args:
            groups: (n) numbers.
            truth: (n) codes of classes.
            predicted: The same by each rule.
        """
        self._n_rules = len(predicted)
        cells = truth.astype(np.int64)
        for codes in predicted:
            cells = cells * self._n_classes + codes
        self._cells.add(groups, cells)

    def merge(self, other: Self) -> None:
        """Take in others."""
        self._n_rules = max(self._n_rules, other._n_rules)
        self._cells.merge(other._cells)

    def samples(self, rule: int) -> Samples:
        """Those that say the same as one entry each, in an order that does not depend on how they came.

        Args:
            rule: That decides, counted from 0.
        """
        found, size = self._cells.read(), self._n_classes
        predicted = found.cells // size ** (self._n_rules - 1 - rule) % size
        truth = found.cells // size**self._n_rules
        return Samples(truth, predicted, groups=found.groups, tally=Tally(found.counts))
