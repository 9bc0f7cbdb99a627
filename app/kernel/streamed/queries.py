"""Queries beyond memory: the values of metrics are kept for each query, and its items are not.

A value of a metric is a mean over queries, so its limits and its resamples follow from the values of single queries.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import pairwise
from typing import Final

import numpy as np

from app.kernel.metrics.expression import Measure
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.weighted_units import Terms, WeightedUnits, mean_terms
from app.kernel.samples.losses import Codes
from app.kernel.streamed.rows import Rows, Table
from app.kernel.streamed.spool import Spool
from app.kernel.units.queries import Queries, width_of

# Columns of items.
QUERY, GRADE, SCORE = "query", "relevance", "score"
# Columns of queries that are no metrics.
SIZES, RELEVANT, RELEVANCE = "sizes", "relevant_items", "ideal_relevance"
RETRIEVED, UNJUDGED = "retrieved_items", "unjudged_items"
_ATTRIBUTES: Final = (SIZES, RELEVANT, RELEVANCE, "irrelevant_items", "tied_items", RETRIEVED, "retrieved_relevant")
# Items whose metrics are computed together, so that what is made of them stays small.
_TOGETHER: Final = 1 << 17
# Values of metrics that stay in memory; more are read again each time.
_HELD: Final = 1 << 19


def query_values(
    items: Rows, measures: Iterable[Measure], relevant_from: float | None = None
) -> Iterator[Iterable[tuple[Hashable, Array]]]:
    """Columns of queries, some queries at a time, computed as in memory.

    Args:
        items: Columns ``query`` (0..Q-1), ``relevance`` and ``score``, in any order.
        measures: Means over queries; raises TypeError for others.
        relevant_from: The relevance from which an item is relevant; None is any above 0.
    """
    measured = [*measures]
    for some in _whole_queries(items):
        codes = some[QUERY] - some[QUERY][0]
        queries = Queries(codes, some[GRADE], some[SCORE], relevant_from=relevant_from)
        for one in measured:
            terms = one.metric.card.inference.terms
            if terms is None:
                raise TypeError(f"expected means over queries, got {one.metric.key}")
            terms(queries, **one.parameters)
        yield _columns(queries)


def _columns(queries: Queries) -> Iterator[tuple[Hashable, Array]]:
    yield from ((name, getattr(queries, name).astype(np.float64)) for name in _ATTRIBUTES)
    yield UNJUDGED, queries.unjudged_items
    yield from ((name, found.of_units) for name, found in queries.known_terms.items())


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


class QueryValues(WeightedUnits):
    """Values of Q queries in weights (..., Q), as metrics take `Queries`: those that `query_values` made a
    column of.
    """

    def __init__(self, columns: Spool) -> None:
        super().__init__(columns.n_rows)
        self.columns, self.width = columns, width_of(int(columns[SIZES].sum()), columns.n_rows)

    def part(self, chosen: Codes) -> "QueryValues":
        """Some of the queries."""
        return QueryValues(self.columns.taken(chosen))

    @property
    def true_values(self) -> Array:
        """Number of relevant items of each query, and the sum of their relevances (Q, 2)."""
        return np.stack([self.columns[RELEVANT], self.columns[RELEVANCE]], axis=1)

    def __getattr__(self, name: str) -> Array:
        if name not in _ATTRIBUTES:
            raise AttributeError(name)
        return self.columns[name]

    def remembered(self, name: Hashable, make: Callable[[], Terms]) -> Terms:  # noqa: ARG002 - read, never made
        """Terms of a metric by its column; raises KeyError where there is none."""
        if name not in self.known_terms and 2 * self.n_units * (len(self.known_terms) + 1) > _HELD:
            return mean_terms(self.columns[name])
        return super().remembered(name, lambda: mean_terms(self.columns[name]))
