"""Queries whose items went by: what metrics say of each is kept, and not its items.

A value of a metric is a mean over queries, so its limits and its resamples need the values of single queries alone:
what follows from them is, bit for bit, what follows from queries with their items.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from os import SEEK_END
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kernel.metrics.card import Inputs
from app.kernel.metrics.expression import Measure, Subject
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.weighted_units import Terms, WeightedUnits, mean_terms
from app.kernel.samples.losses import Codes
from app.kernel.uncertainty.units import Units, width_of
from app.kernel.units.queries import Queries

SIZES, RELEVANT, RELEVANCE, TIED = "items", "relevant_items", "relevance", "tied_items"
# Values (Q) of queries by what they are of: the above, or a metric with its parameters.
Columns = Mapping[Hashable, Array]

# Numbers of what metrics add up that are at hand: what is more is read again each time.
_HELD = 1 << 19


def columns_of(queries: Queries, measures: Iterable[Measure]) -> dict[Hashable, Array]:
    """What is kept of queries with their items.

    Args:
        queries: Each with all of its items, without weights.
        measures: The metrics that may be asked for, means over queries.

    Raises:
        TypeError: one is no mean over queries.
    """
    for one in measures:
        terms = one.metric.card.inference.terms
        if terms is None:
            raise TypeError(f"expected means over queries, got {one.metric.key}")
        terms(queries, **one.parameters)
    found: dict[Hashable, Array] = {SIZES: queries.sizes.astype(np.float64), RELEVANT: queries.relevant_items}
    found[RELEVANCE], found[TIED] = queries.sums(queries.ideal), queries.tied_items
    return found | {name: one.of_units for name, one in queries.known_terms.items()}


class ColumnFile(Columns):
    """Columns of float64 in a file without a name, of which one at a time is in memory. The file goes with this.

    Args:
        folder: Where the file is made.

    Attributes:
        rows: Of each column.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: Any = TemporaryFile(dir=folder)  # noqa: SIM115 - it is closed with this
        self._places: dict[Hashable, int] = {}
        self._blocks: list[tuple[int, int]] = []
        self.rows = 0

    def append(self, columns: Columns) -> None:
        """Add rows, of the same columns each time."""
        self._write(columns, columns.__getitem__)

    def taken(self, rows: Codes) -> "ColumnFile":
        """The same columns of some rows (m), or of all in another order."""
        made = ColumnFile(self._folder)
        made._write(self, lambda name: self[name].take(rows))
        return made

    def beside(self, other: "ColumnFile") -> "ColumnFile":
        """The rows of both."""
        made = ColumnFile(self._folder)
        made._write(self, lambda name: np.concatenate([self[name], other[name]]))
        return made

    def _write(self, names: Iterable[Hashable], column: Callable[[Hashable], Array]) -> None:
        self._places = self._places or {name: place for place, name in enumerate(names)}
        start, size = self._file.seek(0, SEEK_END), 0
        for name in self._places:
            values = column(name)
            self._file.write(values.tobytes())
            size = values.size
        self._blocks.append((start, size))
        self.rows += size

    def __getitem__(self, name: Hashable) -> Array:
        place, done = self._places[name], 0
        found = np.empty(self.rows)
        for start, size in self._blocks:
            self._file.seek(start + place * size * found.itemsize)
            self._file.readinto(found[done : done + size].data)
            done += size
        return found

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class QueryValues(WeightedUnits):
    """What is left of Q queries, as metrics take `Queries`: those that it has a column of.

    Args:
        columns: As `columns_of` makes them.
        n_queries: Q.
        weights: Of the queries (..., Q); None is 1 each.
    """

    def __init__(self, columns: Columns, n_queries: int, weights: ArrayLike | None = None) -> None:
        super().__init__(n_queries, weights)
        self._columns = columns

    def with_weights(self, weights: ArrayLike | None) -> "QueryValues":
        """The same queries weighted otherwise."""
        other = QueryValues(self._columns, self.n_units, weights)
        other.__dict__.update({name: one for name, one in self.__dict__.items() if name != "weights"})
        return other

    @cached_property
    def sizes(self) -> Array:
        """How many items a query has (Q)."""
        return self._columns[SIZES]

    @cached_property
    def relevant_items(self) -> Array:
        """How many of them are relevant (Q)."""
        return self._columns[RELEVANT]

    @property
    def irrelevant_items(self) -> Array:
        """How many are not (Q)."""
        return self.sizes - self.relevant_items

    @property
    def tied_items(self) -> Array:
        """How many have the score of another item of the query (Q)."""
        return self._columns[TIED]

    def remembered(self, name: Hashable, make: Callable[[], Terms]) -> Terms:  # noqa: ARG002 - see below
        """Those of a metric by its column; nothing can be made any more.

        Raises:
            KeyError: there is none.
        """
        if name not in self.known_terms and 2 * self.n_units * (len(self.known_terms) + 1) > _HELD:
            return mean_terms(self._columns[name])
        return super().remembered(name, lambda: mean_terms(self._columns[name]))


class QueryValueUnits(Units):
    """Queries whose items went by, as they are resampled.

    Args:
        columns: As `columns_of` makes them.
        n_items: Of all of them together.
    """

    def __init__(self, columns: ColumnFile, n_items: int) -> None:
        self.columns, self._n_items = columns, n_items
        self._values = QueryValues(columns, columns.rows)

    @property
    def n_units(self) -> int:
        """How many queries."""
        return self.columns.rows

    @property
    def width(self) -> int:
        """That of queries with their items: resamples are the same."""
        return width_of(self._n_items, self.n_units)

    def subject(self, weights: Array | None = None) -> Subject:
        """The queries in weights (..., Q)."""
        return Subject({Inputs.QUERIES: self._values if weights is None else self._values.with_weights(weights)})

    def part(self, chosen: Codes) -> "QueryValueUnits":
        """Some of the queries."""
        columns = self.columns.taken(chosen)
        return QueryValueUnits(columns, int(columns[SIZES].sum()))

    def beside(self, other: "QueryValueUnits") -> "QueryValueUnits":
        """The queries of both, of which the same is known."""
        return QueryValueUnits(self.columns.beside(other.columns), self._n_items + other._n_items)

    @property
    def truth(self) -> NDArray[Any]:
        """As of queries with their items (Q, 2)."""
        return np.stack([self.columns[RELEVANT], self.columns[RELEVANCE]], axis=1)
