"""Queries with their ranked items, as they are resampled."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kernel.metrics.card import Inputs
from app.kernel.metrics.expression import Subject
from app.kernel.numerics.arrays import Array
from app.kernel.samples.losses import Codes
from app.kernel.uncertainty.of_samples.units import Units
from app.kernel.units.queries import Queries

# Items of a query that are looked at in the time in which one probability is sorted: what is said of a query is said
# once, and weights only add it up.
_LOOKED_AT = 1000


def width_of(n_items: int, n_queries: int) -> int:
    """The width of queries with so many items in all."""
    return 1 + n_items // (_LOOKED_AT * n_queries)


class QueryUnits(Units):
    """Queries with their items.

    Args:
        query: codes 0..Q-1, each at least once, shape (n,).
        relevance: 0 and above, shape (n,).
        scores: higher comes first, shape (n,).
    """

    def __init__(self, query: Codes, relevance: Array, scores: Array) -> None:
        self.query, self.relevance, self.scores = query, relevance, scores

    @cached_property
    def queries(self) -> Queries:
        """As metrics take them, each once."""
        return Queries(self.query, self.relevance, self.scores)

    @property
    def n_units(self) -> int:
        """How many queries."""
        return self.queries.n_units

    @property
    def width(self) -> int:
        """Little, however many items there are."""
        return width_of(self.query.size, self.n_units)

    @property
    def truth(self) -> NDArray[Any]:
        """Of each query how many items are relevant, and the sum of their relevances (Q, 2). Which others come beside
        them may differ from run to run.
        """
        return np.stack([self.queries.relevant_items, self.queries.sums(self.queries.ideal)], axis=1)

    def subject(self, weights: Array | None = None) -> Subject:
        """The queries in weights (..., Q)."""
        return Subject({Inputs.QUERIES: self.queries if weights is None else self.queries.with_weights(weights)})

    def part(self, chosen: Codes) -> "QueryUnits":
        """Some of the queries."""
        place = np.full(self.n_units, -1, dtype=np.intp)
        place[chosen] = np.arange(chosen.size)
        codes = place.take(self.query)
        inside = codes >= 0
        return QueryUnits(codes[inside], self.relevance[inside], self.scores[inside])

    def beside(self, other: "QueryUnits") -> "QueryUnits":
        """The queries of both."""
        return QueryUnits(
            np.concatenate([self.query, other.query + self.n_units]),
            np.concatenate([self.relevance, other.relevance]),
            np.concatenate([self.scores, other.scores]),
        )
