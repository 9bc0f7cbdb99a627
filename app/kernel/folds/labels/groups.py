"""What metrics say of single samples, added up within groups of these."""

from collections.abc import Sequence
from typing import Any, Final, Self

import numpy as np

from app.kernel.folds.entries import Groups
from app.kernel.folds.groups.influence import GroupedLosses, GroupInfluence
from app.kernel.folds.groups.sums import GroupSums, GroupTotals
from app.kernel.metrics.card import Metric
from app.kernel.numerics.arrays import Array

# Values are whole multiples of this power of 2: none is above 1,000, the number of labels.
_EXPONENT: Final = -52


class ValuesInGroups:
    """Sums within groups of what metrics say of each sample. States merge in any order and can be pickled.

    Args:
        metrics: Means over samples, of values between 0 and the number of labels, shares among them.
    """

    def __init__(self, metrics: Sequence[Metric[Any]]) -> None:
        # What counts for a share or not is a whole number.
        self._shares = {metric.key for metric in metrics if metric.card.inference.is_share}
        self._exponents = np.array([0 if metric.key in self._shares else _EXPONENT for metric in metrics])
        self._places = {metric.key: place for place, metric in enumerate(metrics)}
        self._sums = GroupSums(len(metrics))

    def add(self, groups: Groups, values: Array) -> None:
        """Add samples: groups (n) and what metrics say (m, n), which is rounded down to multiples of 2^-52."""
        whole = np.ldexp(values, -self._exponents[:, None]).astype(np.int64)
        self._sums.add(groups, np.zeros(groups.size, dtype=np.int64), whole)

    def merge(self, other: Self) -> None:
        """Take in the sums of others."""
        self._sums.merge(other._sums)

    @property
    def n_groups(self) -> int:
        """How many groups there were when they were looked at last."""
        return self._sums.n_groups

    @property
    def nbytes(self) -> int:
        """Bytes in memory then."""
        return self._sums.nbytes

    def totals(self) -> GroupTotals:
        """What there is so far, by rising groups."""
        return self._sums.read()

    def knows(self, key: str) -> bool:
        """Is it one of these metrics?"""
        return key in self._places

    def influence(self, key: str) -> GroupInfluence:
        """What groups add to the sampling error of a metric."""
        found, place = GroupedLosses(self._sums, 1, np.ldexp(1.0, self._exponents)), self._places[key]
        return found.share([place]) if key in self._shares else found.mean(place)
