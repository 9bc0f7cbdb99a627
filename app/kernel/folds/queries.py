"""Queries whose items went by: what metrics say of each is kept, and not its items.

A value of a metric is a mean over queries, so its limits and its resamples need the values of single queries alone:
what follows from them is, bit for bit, what follows from queries with their items.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kernel.metrics.card import Inputs
from app.kernel.metrics.expression import Measure, Subject
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.weighted_units import Terms, WeightedUnits, mean_terms
from app.kernel.samples.losses import Codes
from app.kernel.uncertainty.of_samples.query_units import width_of
from app.kernel.uncertainty.of_samples.units import Units
from app.kernel.units.queries import Queries

SIZES, RELEVANT, RELEVANCE, TIED = "items", "relevant_items", "relevance", "tied_items"
# Values (Q) of queries by what they are of: the above, or a metric with its parameters.
Columns = Mapping[Hashable, Array]

# Of more queries what metrics add up is read again each time: it is needed a few times, and takes much memory.
_MANY = 1 << 17


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
    """Columns of float64 in a file, of which one at a time is read.

    Args:
        path: Of the file; who made its folder removes it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: dict[Hashable, int] = {}
        self._blocks: list[tuple[int, int]] = []
        self._order: NDArray[np.intp] | None = None
        self.rows = self._written = 0

    def append(self, columns: Columns) -> None:
        """Add rows, of the same columns each time."""
        self._places = self._places or {name: place for place, name in enumerate(columns)}
        table = np.stack([columns[name] for name in self._places])
        with self._path.open("ab") as file:
            file.write(table.tobytes())
        self._blocks.append((self._written, table.shape[1]))
        self._written += table.nbytes
        self.rows += table.shape[1]

    def order(self, rows: NDArray[np.intp]) -> None:
        """From now on columns have their values in this order (Q) of the rows."""
        self._order = rows

    def __getitem__(self, name: Hashable) -> Array:
        place, done = self._places[name], 0
        found = np.empty(self.rows)
        with self._path.open("rb") as file:
            for start, size in self._blocks:
                file.seek(start + place * size * found.itemsize)
                file.readinto(found[done : done + size].data)
                done += size
        return found if self._order is None else found.take(self._order)

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
        if self.n_units > _MANY:
            return mean_terms(self._columns[name])
        return super().remembered(name, lambda: mean_terms(self._columns[name]))


class QueryValueUnits(Units):
    """Queries whose items went by, as they are resampled.

    Args:
        columns: As `columns_of` makes them.
        n_queries: Q.
        n_items: Of all of them together.
    """

    def __init__(self, columns: Columns, n_queries: int, n_items: int) -> None:
        self.columns, self._n_queries, self._n_items = columns, n_queries, n_items
        self._values = QueryValues(columns, n_queries)

    @property
    def n_units(self) -> int:
        """How many queries."""
        return self._n_queries

    @property
    def width(self) -> int:
        """That of queries with their items: resamples are the same."""
        return width_of(self._n_items, self._n_queries)

    def subject(self, weights: Array | None = None) -> Subject:
        """The queries in weights (..., Q)."""
        return Subject({Inputs.QUERIES: self._values if weights is None else self._values.with_weights(weights)})

    def part(self, chosen: Codes) -> "QueryValueUnits":
        """Some of the queries."""
        columns = {name: self.columns[name].take(chosen) for name in self.columns}
        return QueryValueUnits(columns, chosen.size, int(columns[SIZES].sum()))

    def beside(self, other: "QueryValueUnits") -> "QueryValueUnits":
        """The queries of both, of which the same is known."""
        columns = {name: np.concatenate([self.columns[name], other.columns[name]]) for name in self.columns}
        return QueryValueUnits(columns, self._n_queries + other._n_queries, self._n_items + other._n_items)

    @property
    def truth(self) -> NDArray[Any]:
        """As of queries with their items (Q, 2)."""
        return np.stack([self.columns[RELEVANT], self.columns[RELEVANCE]], axis=1)
