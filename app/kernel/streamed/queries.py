"""Queries beyond memory: the values of metrics are kept for each query, and its items are not.

A value of a metric is a mean over queries, so its limits and its resamples follow from the values of single queries.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kernel.metrics.card import Inputs
from app.kernel.metrics.expression import Measure, Subject
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.weighted_units import Terms, WeightedUnits, mean_terms
from app.kernel.samples.losses import Codes
from app.kernel.streamed.rows import Rows, Table
from app.kernel.uncertainty.units import Units, width_of
from app.kernel.units.queries import Queries

# Columns of items.
QUERY, GRADE, SCORE = "query", "relevance", "score"
# Columns of queries that are no metrics.
SIZES, RELEVANT, RELEVANCE, TIED = "items", "relevant_items", "relevance", "tied_items"
RETRIEVED, FOUND, UNJUDGED = "retrieved_items", "retrieved_relevant", "unjudged_items"
# Items whose metrics are computed together, so that what is made of them stays small.
_TOGETHER: Final = 1 << 17
# Values of metrics that stay in memory; more are read again each time.
_HELD: Final = 1 << 19


def query_values(
    items: Rows, measures: Iterable[Measure], relevant_from: float | None = None
) -> Iterator[tuple[Hashable, int, Array]]:
    """Values of queries, computed as in memory.

    Args:
        items: Columns ``query`` (0..Q-1), ``relevance`` and ``score``, in any order.
        measures: Metrics that are means over queries.
        relevant_from: The relevance from which an item is relevant; None is any above 0.

    Returns:
        Of some queries at a time the name of a column, the first of these queries, and the values (q).

    Raises:
        TypeError: a metric is no mean over queries.
    """
    measured = [*measures]
    for some in _whole_queries(items):
        first = int(some[QUERY][0])
        queries = Queries(some[QUERY] - first, some[GRADE], some[SCORE], relevant_from=relevant_from)
        for one in measured:
            terms = one.metric.card.inference.terms
            if terms is None:
                raise TypeError(f"expected means over queries, got {one.metric.key}")
            terms(queries, **one.parameters)
        yield SIZES, first, queries.sizes.astype(np.float64)
        yield RELEVANT, first, queries.relevant_items
        yield RELEVANCE, first, queries.sums(queries.ideal)
        yield TIED, first, queries.tied_items
        yield RETRIEVED, first, queries.retrieved_items
        yield FOUND, first, queries.retrieved_relevant
        yield UNJUDGED, first, queries.unjudged_items
        for name, found in queries.known_terms.items():
            yield name, first, found.of_units


def _whole_queries(items: Rows) -> Iterator[Table]:
    """Items by query, some at a time, each query with all of its items."""
    left: Table = {}
    for batch in items.ordered(QUERY, columns=(QUERY, GRADE, SCORE)):
        table = {name: np.concatenate([left[name], batch[name]]) for name in batch} if left else batch
        codes = table[QUERY]
        # The last query may go on in the next batch.
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        cuts = starts.take(np.searchsorted(starts, np.arange(0, codes.size, _TOGETHER)), mode="clip")
        cuts = np.union1d(cuts, starts[-1:])
        for start, stop in pairwise(cuts):
            yield {name: column[start:stop] for name, column in table.items()}
        left = {name: column[starts[-1] :] for name, column in table.items()}
    if left:
        yield left


class ColumnFile(Mapping[Hashable, Array]):
    """Columns of float64 in a file without a name, of which one at a time is in memory. The file goes with this.

    Args:
        folder: Where the file is made.
        rows: Of each column.
        values: Name of a column, first row and values, until all rows of all columns are there.

    Attributes:
        rows: See above.
    """

    def __init__(self, folder: Path, rows: int, values: Iterable[tuple[Hashable, int, Array]]) -> None:
        self.rows, self._folder = rows, folder
        self._file: Any = TemporaryFile(dir=folder)  # noqa: SIM115 - it is closed with this
        self._places: dict[Hashable, int] = {}
        for name, start, column in values:
            self._seek(self._places.setdefault(name, len(self._places)), start)
            self._file.write(column.tobytes())

    def taken(self, chosen: Codes) -> "ColumnFile":
        """The columns of some rows (m), in this order."""
        return ColumnFile(self._folder, chosen.size, ((name, 0, self[name].take(chosen)) for name in self))

    def _seek(self, place: int, start: int) -> None:
        self._file.seek(8 * (place * self.rows + start))

    def __getitem__(self, name: Hashable) -> Array:
        self._seek(self._places[name], 0)
        found = np.empty(self.rows)
        self._file.readinto(found.data)
        return found

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class QueryValues(WeightedUnits):
    """Values of Q queries, as metrics take `Queries`: those that there is a column of.

    Args:
        columns: Values (Q) by the names that `query_values` gives them.
        n_queries: Q.
        weights: Of the queries (..., Q); None is 1 each.
    """

    def __init__(self, columns: Mapping[Hashable, Array], n_queries: int, weights: ArrayLike | None = None) -> None:
        super().__init__(n_queries, weights)
        self._columns = columns

    def with_weights(self, weights: ArrayLike | None) -> "QueryValues":
        """Return the queries with other weights."""
        other = QueryValues(self._columns, self.n_units, weights)
        other.__dict__.update({name: one for name, one in self.__dict__.items() if name != "weights"})
        return other

    @cached_property
    def sizes(self) -> Array:
        """Number of items of each query (Q)."""
        return self._columns[SIZES]

    @cached_property
    def relevant_items(self) -> Array:
        """Number of relevant items (Q)."""
        return self._columns[RELEVANT]

    @property
    def irrelevant_items(self) -> Array:
        """Number of irrelevant items (Q)."""
        return self.sizes - self.relevant_items

    @property
    def tied_items(self) -> Array:
        """Number of items (Q) that have the score of another item of the query."""
        return self._columns[TIED]

    @property
    def retrieved_items(self) -> Array:
        """Number of items (Q) that were retrieved."""
        return self._columns[RETRIEVED]

    @property
    def retrieved_relevant(self) -> Array:
        """Number of relevant items (Q) that were retrieved."""
        return self._columns[FOUND]

    @property
    def unjudged_items(self) -> Array:
        """Number of items (Q) that were retrieved and not judged."""
        return self._columns[UNJUDGED]

    def remembered(self, name: Hashable, make: Callable[[], Terms]) -> Terms:  # noqa: ARG002 - read, never made
        """Terms of a metric by its column.

        Raises:
            KeyError: there is none.
        """
        if name not in self.known_terms and 2 * self.n_units * (len(self.known_terms) + 1) > _HELD:
            return mean_terms(self._columns[name])
        return super().remembered(name, lambda: mean_terms(self._columns[name]))


class QueryValueUnits(Units):
    """Queries as they are resampled, by their values.

    Args:
        columns: Values of `query_values`.
        n_items: Of all of them together.
    """

    def __init__(self, columns: ColumnFile, n_items: int) -> None:
        self.columns, self._n_items = columns, n_items
        self._values = QueryValues(columns, columns.rows)

    @property
    def n_units(self) -> int:
        """Number of queries."""
        return self.columns.rows

    @property
    def width(self) -> int:
        """Cost of one query in a pass, equal to that of queries with their items, so that resamples are the same."""
        return width_of(self._n_items, self.n_units)

    def subject(self, weights: Array | None = None) -> Subject:
        """The queries in weights (..., Q)."""
        return Subject({Inputs.QUERIES: self._values if weights is None else self._values.with_weights(weights)})

    def part(self, chosen: Codes) -> "QueryValueUnits":
        """Some of the queries."""
        columns = self.columns.taken(chosen)
        return QueryValueUnits(columns, int(columns[SIZES].sum()))

    @property
    def truth(self) -> NDArray[Any]:
        """Number of relevant items of each query, and the sum of their relevances (Q, 2)."""
        return np.stack([self.columns[RELEVANT], self.columns[RELEVANCE]], axis=1)
