"""Where some rows stand in the orders of all classes, of which a stretch after another goes by."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from app.kernel.folds.entries import Counts
from app.kernel.folds.joint.rows import Rows
from app.kernel.numerics.arrays import Array, Mask


class Sought(NamedTuple):
    """Probabilities (q) of one class, rising, and which of them are of its members."""

    scores: Array
    members: Mask


class Found(NamedTuple):
    """Where they stand (q): twice the samples of the other side above them, ties once.

    Attributes:
        own: In the order of the class.
        among_all: Where the probabilities of all classes are one order.
    """

    own: Counts
    among_all: Counts


class RowsInOrder:
    """Some rows in the order of each class, which are taken from the highest score down.

    Args:
        rows: Of K classes.
    """

    def __init__(self, rows: Rows) -> None:
        columns = rows.probabilities.T
        self._orders = [np.argsort(column, kind="stable") for column in columns]
        self._rising = [
            Sought(column.take(order), rows.codes.take(order) == code)
            for code, (column, order) in enumerate(zip(columns, self._orders, strict=True))
        ]

    def above(self, floors: Iterator[float]) -> Iterator[Sequence[Sought]]:
        """Of each class those from one score up to the next higher one, for each of some falling ones."""
        ends = [sought.scores.size for sought in self._rising]
        for floor in floors:
            starts = [int(np.searchsorted(sought.scores, floor)) for sought in self._rising]
            yield [
                Sought(own.scores[start:end], own.members[start:end])
                for own, start, end in zip(self._rising, starts, ends, strict=True)
            ]
            ends = starts

    def placed(self, parts: Sequence[Sequence[Found]]) -> tuple[Counts, Counts]:
        """What was found (K, m) of each row in each class, from what was found of each part in turn."""
        own, among_all = np.zeros((2, len(self._orders), self._orders[0].size), dtype=np.int64)
        for code, order in enumerate(self._orders):
            found = [part[code] for part in reversed(parts)]
            for whole, sides in zip((own, among_all), zip(*found, strict=True), strict=True):
                whole[code, order] = np.concatenate(sides)
        return own, among_all
