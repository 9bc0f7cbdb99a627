"""Queries with graded and ranked items, with everything that more than one metric needs, each computed once.

Items of equal score are in random order. Statistics that depend on it have their expectation over all orders, in closed
form: a place among tied items holds their mean (McSherry & Najork 2008).
"""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kernel.numerics.arrays import Array, Mask
from app.kernel.numerics.scipy_bridge import log_factorial
from app.kernel.numerics.weighted_units import WeightedUnits

Positions = NDArray[np.intp]

# Score of an item that was judged and not retrieved: it has no place.
NOT_RETRIEVED = -np.inf
# Relevance of an item that was retrieved and not judged: it counts as not relevant.
UNJUDGED = -1.0


# Items of a query that are looked at in the time in which one probability is sorted: what is said of a query is said
# once, and weights only add it up.
_LOOKED_AT = 1000


def width_of(n_items: int, n_queries: int) -> int:
    """Return the cost of one query in a pass: little, however many items there are."""
    return 1 + n_items // (_LOOKED_AT * n_queries)


class Blocks(NamedTuple):
    """Blocks of tied items, best first, of all queries one after another, each (B)."""

    starts: Positions
    sizes: Positions
    query: Positions
    before: Positions
    relevant: Array
    relevant_before: Array


class FirstRelevant(NamedTuple):
    """First block of each query with a relevant item, each (Q): number of items before it, its size, its relevant
    items. The sizes are 0 for a query without one.
    """

    before: Positions
    size: Positions
    relevant: Positions


class Head(NamedTuple):
    """First k places of each query: positions (m), or None for all items, and the first index of each query (Q)."""

    positions: Positions | None
    starts: Positions


class Queries(WeightedUnits):
    """Items of Q queries, each query by falling score, and tied items by falling relevance.

    Attributes of shape (n) follow that order, queries one after another. The leading axes of the weights are a batch
    over the same queries, as a bootstrap needs.

    Items that were not retrieved have no place. They come last, and `relevance` and `relevant`, which are about places,
    are 0 for them; what is said of all items of a query, such as `ideal` and `relevant_items`, counts them.

    Args:
        query: Codes 0..Q-1, each at least once, shape (n,).
        relevance: 0 and above, or `UNJUDGED`, shape (n,).
        scores: Finite, higher comes first, or `NOT_RETRIEVED`, shape (n,). Ranks are scores with the sign reversed.
        weights: Weights of the queries, shape (..., Q); None is 1 each.
        relevant_from: The relevance from which an item is relevant; None is any above 0.

    Raises:
        ValueError: the shapes do not fit, there is no item, a code has none, or a value is none of these.
    """

    def __init__(
        self,
        query: ArrayLike,
        relevance: ArrayLike,
        scores: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        relevant_from: float | None = None,
    ) -> None:
        codes = np.asarray(query, dtype=np.intp)
        given, values = np.asarray(relevance, dtype=np.float64), np.asarray(scores, dtype=np.float64)
        if codes.ndim != 1 or not codes.shape == given.shape == values.shape or codes.size == 0:
            raise ValueError(
                f"items need one query, relevance and score each: {codes.shape, given.shape, values.shape}"
            )
        self._judged = given >= 0.0
        if codes.min() < 0 or not (self._judged | (given == UNJUDGED)).all() or not (values < np.inf).all():
            raise ValueError("codes and relevances cannot be negative, and scores are finite")
        self.sizes: Positions = np.bincount(codes)
        if not self.sizes.all():
            raise ValueError("every query needs an item")
        super().__init__(self.sizes.size, weights)
        self.n_items, self.width = codes.size, width_of(codes.size, self.n_units)
        self.starts: Positions = np.cumsum(self.sizes) - self.sizes
        given = np.where(self._judged, given, 0.0)
        self._codes, self._given, self._scores, self._relevant_from = codes, given, values, relevant_from
        order = _falling(codes, values, self.n_units)
        self._falling: Array = values.take(order)
        # (n): does the item have a place?
        self.retrieved: Mask = self._falling > NOT_RETRIEVED
        self.relevance: Array = given.take(order) * self.retrieved
        # (n): has the item a place, and was it judged? Among tied items in any order.
        self.judged: Array = (self._judged.take(order) & self.retrieved).astype(np.float64)
        self._heads: dict[int, Head] = {}
        first = np.ones(self.n_items, dtype=np.bool_)
        first[1:] = self._falling[1:] != self._falling[:-1]
        first[self.starts] = True
        self._block_starts = np.flatnonzero(first)
        # Tied items by falling relevance, so that sums over them round the same for any input order.
        inside = ~first
        inside[:-1] |= inside[1:]
        tied, block = self.relevance[inside], np.cumsum(first)[inside] - 1
        self.relevance[inside] = tied.take(_falling(block, tied, self._block_starts.size))

    def part(self, chosen: Positions) -> "Queries":
        """Some of the queries, without weights."""
        place = np.full(self.n_units, -1, dtype=np.intp)
        place[chosen] = np.arange(chosen.size)
        codes = place.take(self._codes)
        inside = codes >= 0
        relevance = np.where(self._judged, self._given, UNJUDGED)[inside]
        return Queries(codes[inside], relevance, self._scores[inside], relevant_from=self._relevant_from)

    @property
    def true_values(self) -> Array:
        """Number of relevant items of each query, and the sum of their relevances (Q, 2). The irrelevant items may
        differ from run to run.
        """
        return np.stack([self.relevant_items, self.ideal_relevance], axis=1)

    # Per item, shape (n).

    @cached_property
    def query(self) -> Positions:
        """Codes of the queries."""
        return np.repeat(np.arange(self.n_units), self.sizes)

    @cached_property
    def rank(self) -> Positions:
        """Place in the query, from 1."""
        return np.arange(1, self.n_items + 1) - np.repeat(self.starts, self.sizes)

    @cached_property
    def relevant(self) -> Array:
        """1 for a relevant item that has a place, 0 for another."""
        return self._counts(self.relevance).astype(np.float64)

    def _counts(self, relevance: Array) -> Mask:
        """Mask of the items that are relevant by their relevance."""
        return relevance > 0.0 if self._relevant_from is None else relevance >= self._relevant_from

    @cached_property
    def discount(self) -> Array:
        """1 / log2(rank + 1) (Järvelin & Kekäläinen 2002)."""
        by_rank: Array = 1.0 / np.log2(np.arange(2.0, self.sizes.max() + 2.0))
        return by_rank.take(self.rank - 1)

    @cached_property
    def ideal(self) -> Array:
        """Relevances of all items of each query, falling."""
        return self._given.take(_falling(self._codes, self._given, self.n_units))

    @cached_property
    def ideal_relevance(self) -> Array:
        """Sum of the relevances of all items of each query (Q)."""
        return self.sums(self.ideal)

    @cached_property
    def expected_relevant(self) -> Array:
        """Probability that the item at this place is relevant."""
        return self.expected(self.relevant)

    @cached_property
    def relevant_so_far(self) -> Array:
        """Expected number of relevant items down to this place."""
        blocks = self.blocks
        share = self._per_item(blocks.relevant / blocks.sizes)
        return self._per_item(blocks.relevant_before) + share * self.place_in_block

    @cached_property
    def expected_precision(self) -> Array:
        """Expected precision at this place, counted as 0 where the item is not relevant.

        If r of t tied items are relevant, a relevant one is at place m of them with probability r/t, and then (m - 1)(r
        - 1)/(t - 1) others are expected above it.
        """
        blocks = self.blocks
        others = (blocks.relevant - 1.0) / np.maximum(blocks.sizes - 1, 1)
        above = self._per_item(blocks.relevant_before + 1.0) + self._per_item(others) * (self.place_in_block - 1)
        return self.expected_relevant * above / self.rank

    @cached_property
    def irrelevant_above(self) -> Array:
        """Number of irrelevant items of the query with a higher score, tied ones half."""
        blocks = self.blocks
        irrelevant = blocks.before - blocks.relevant_before + 0.5 * (blocks.sizes - blocks.relevant)
        return self._per_item(irrelevant)

    @cached_property
    def place_in_block(self) -> Positions:
        """Place among the tied items, from 1."""
        place: Positions = np.arange(1, self.n_items + 1) - self._per_item(self.blocks.starts)
        return place

    def expected(self, values: Array) -> Array:
        """Mean of values (n) over all orders of tied items, place by place, shape (n)."""
        return self._per_item(np.add.reduceat(values, self.blocks.starts) / self.blocks.sizes)

    def _per_item(self, of_blocks: NDArray[Any]) -> NDArray[Any]:
        """Values of blocks (B) for each of their items (n)."""
        blocks = self.blocks
        # Most scores are unlike all others: each block is an item.
        return of_blocks if blocks.starts.size == self.n_items else np.repeat(of_blocks, blocks.sizes)

    # Ties.

    @cached_property
    def blocks(self) -> Blocks:
        """Blocks of items of one query and one score."""
        starts = self._block_starts
        sizes = np.diff(starts, append=self.n_items)
        query = self.query.take(starts)
        before = starts - self.starts.take(query)
        relevant, counted = np.add.reduceat(self.relevant, starts), np.cumsum(self.relevant) - self.relevant
        earlier = counted.take(starts) - counted.take(self.starts).take(query)
        return Blocks(starts, sizes, query, before, relevant, earlier)

    @cached_property
    def first_relevant(self) -> FirstRelevant:
        """First block of each query with a relevant item."""
        before, size, relevant = (np.zeros(self.n_units, dtype=np.intp) for _ in range(3))
        blocks = self.blocks
        chosen = np.flatnonzero((blocks.relevant > 0) & (blocks.relevant_before == 0))
        query = blocks.query.take(chosen)
        before[query], size[query] = blocks.before.take(chosen), blocks.sizes.take(chosen)
        relevant[query] = blocks.relevant.take(chosen).astype(np.intp)
        return FirstRelevant(before, size, relevant)

    # Per query, shape (Q).

    @cached_property
    def tied_items(self) -> Array:
        """Number of items that share their score."""
        blocks = self.blocks
        tied = np.where((blocks.sizes > 1) & self.retrieved.take(blocks.starts), blocks.sizes, 0)
        return np.bincount(blocks.query, tied, self.n_units).astype(np.float64)

    @cached_property
    def relevant_items(self) -> Array:
        """Number of relevant items, retrieved or not."""
        return np.bincount(self._codes, self._counts(self._given), self.n_units).astype(np.float64)

    @cached_property
    def retrieved_items(self) -> Array:
        """Number of items that were retrieved."""
        return self.sums(self.retrieved.astype(np.float64))

    @cached_property
    def retrieved_relevant(self) -> Array:
        """Number of relevant items that were retrieved."""
        return self.sums(self.relevant)

    @cached_property
    def unjudged_items(self) -> Array:
        """Number of items that were retrieved and not judged."""
        return np.bincount(self._codes, ~self._judged, self.n_units).astype(np.float64)

    @cached_property
    def judged_items(self) -> Array:
        """Number of items that were judged, retrieved or not."""
        return np.bincount(self._codes, self._judged, self.n_units).astype(np.float64)

    @cached_property
    def irrelevant_items(self) -> Array:
        """Number of irrelevant items."""
        return self.sizes - self.relevant_items

    def sums(self, values: Array, k: int | None = None) -> Array:
        """Sum of values (n) over the first k places of each query, or all of them, shape (Q)."""
        head = self.head(k)
        return np.add.reduceat(values if head.positions is None else values.take(head.positions), head.starts)

    def discounted(self, gains: Array, k: int | None = None) -> Array:
        """Sum of gains (n), each divided by the logarithm of its place, over the first k places, shape (Q)."""
        return self.sums(self.expected(gains) * self.discount, k)

    def head(self, k: int | None) -> Head:
        """First k places of each query."""
        if k is None or k >= self.sizes.max():
            return Head(None, self.starts)
        if k not in self._heads:
            lengths = np.minimum(self.sizes, k)
            starts = np.cumsum(lengths) - lengths
            self._heads[k] = Head(np.repeat(self.starts - starts, lengths) + np.arange(lengths.sum()), starts)
        return self._heads[k]


def _falling(codes: Positions, values: Array, n_codes: int) -> Positions:
    """The order of items by code, and within each code by falling values, -inf last; ties in any order."""
    size, rest = divmod(values.size, n_codes)
    if size and not rest and (codes.reshape(n_codes, size) == np.arange(n_codes)[:, None]).all():
        # Rows of one length, as lists of the best k are, sort twice as fast as all items at once.
        rows = np.argsort(-values.reshape(n_codes, size), axis=1)
        return (rows + np.arange(0, values.size, size)[:, None]).ravel()
    order = np.argsort(-values)
    # numpy sorts 16 bits at a time by radix.
    for shift in range(0, max((n_codes - 1).bit_length(), 1), 16):
        digit = (codes >> shift).astype(np.uint16)
        order = order.take(np.argsort(digit.take(order), kind="stable"))
    return order


def chance_of_a_hit(first: FirstRelevant, k: int) -> Array:
    """Probability that a relevant item is among the first k, shape (Q).

    In the block that the cut divides, j of t items are above it. None of the r relevant ones is among them with
    probability C(t - r, j) / C(t, j).
    """
    above = np.clip(k - first.before, 0, first.size)
    found: Array = ((first.size > 0) & (above > first.size - first.relevant)).astype(np.float64)
    cut = np.flatnonzero((above > 0) & (above <= first.size - first.relevant))
    if cut.size:
        sizes, relevant, drawn = (one.take(cut) for one in (first.size, first.relevant, above))
        # A product over the smaller of r and j.
        block, step = _counted_up(np.minimum(relevant, drawn))
        logs = np.log1p(-np.maximum(relevant, drawn).take(block) / (sizes.take(block) - step))
        found[cut] = -np.expm1(np.bincount(block, logs, cut.size))
    return found


def expected_reciprocal(first: FirstRelevant, k: float = np.inf) -> Array:
    """Expected reciprocal rank of the first relevant item, shape (Q); 0 for a query without one among the first k."""
    found = np.zeros(first.size.size)
    alone = first.size == first.relevant
    np.divide(1.0, first.before + 1.0, out=found, where=alone & (first.size > 0) & (first.before < k))
    tied = np.flatnonzero(~alone & (first.before < k))
    if tied.size:
        # The first of r relevant ones of t tied items is at place m with probability C(t - m, r - 1) / C(t, r).
        sizes, relevant, before = (
            one.take(tied).astype(np.float64) for one in (first.size, first.relevant, first.before)
        )
        block, step = _counted_up(np.minimum(k - before, sizes - relevant + 1).astype(np.intp))
        others, place = relevant.take(block) - 1.0, step + 1.0
        chances = np.exp(_log_choose(sizes.take(block) - place, others) - _log_choose(sizes, relevant).take(block))
        found[tied] = np.bincount(block, chances / (before.take(block) + place), tied.size)
    return found


def expected_rank(first: FirstRelevant) -> Array:
    """Expected rank of the first relevant item, before + (t + 1) / (r + 1), shape (Q); NaN without one."""
    ranks = first.before + (first.size + 1.0) / (first.relevant + 1.0)
    known: Array = np.where(first.size > 0, ranks, np.nan)
    return known


def _counted_up(sizes: Positions) -> tuple[Positions, Array]:
    """For blocks (b) one after another the block and the place in it, from 0, of each of their items."""
    block = np.repeat(np.arange(sizes.size), sizes)
    return block, np.arange(float(block.size)) - (np.cumsum(sizes) - sizes).take(block)


def _log_choose(items: Array, chosen: Array) -> Array:
    """Logarithm of the number of ways to choose so many of the items."""
    return log_factorial(items) - log_factorial(chosen) - log_factorial(items - chosen)


def expected_preference(q: Queries) -> Array:
    """Sum over the relevant items with a place of 1 - min(n, R) / min(R, N), shape (Q), with n judged irrelevant items
    above it, of R relevant and N other judged items of the query.

    Buckley & Voorhees (2004), as trec_eval counts it. An item among b irrelevant tied ones has each number from 0 to b
    of them above it with the same probability.
    """
    relevant, irrelevant = q.relevant_items, q.judged_items - q.relevant_items
    blocks = q.blocks
    query, found = blocks.query, blocks.relevant
    other = np.add.reduceat(q.judged, blocks.starts) - found
    above = np.cumsum(other) - other
    above -= above.take(np.searchsorted(query, np.arange(q.n_units))).take(query)
    most = relevant.take(query)
    below = np.clip(most - above, 0.0, other)
    summed = (below + 1.0) * np.minimum(above, most) + below * (below + 1.0) / 2.0 + (other - below) * most
    mean = summed / (other + 1.0)
    bound = np.minimum(relevant, irrelevant).take(query)
    lost = np.divide(mean, bound, out=np.zeros_like(mean), where=bound > 0)
    return np.bincount(query, found * (1.0 - lost), q.n_units).astype(np.float64)


def expected_stop(q: Queries, stopping: Array, k: int) -> Array:
    """Expected 1 / place at which a reader stops who goes down the first k places and stops at an item with its
    probability (n), shape (Q); 0 for who never stops. Chapelle et al. (2009).
    """
    # Chance to pass the items of a block down to each place.
    passed = 1.0 - stopping
    _pass_ties(passed, q.blocks, k)
    found, reached, before_block = np.zeros(q.n_units), np.ones(q.n_units), np.ones(q.n_units)
    for place in range(min(k, int(q.sizes.max()))):
        some = np.flatnonzero(q.sizes > place)
        at = q.starts.take(some) + place
        first = some[q.place_in_block.take(at) == 1]
        before_block[first] = reached[first]
        left = before_block[some] * passed.take(at)
        found[some] += (reached[some] - left) / (place + 1.0)
        reached[some] = left
    return found


def _pass_ties(passed: Array, blocks: Blocks, k: int) -> None:
    """Put the chance to pass m of the tied items, in the mean over their orders, at place m of each block, m up to k.

    It is that of a draw of m without replacement, which follows from item to item.
    """
    for size in np.unique(blocks.sizes[blocks.sizes > 1]).tolist():
        starts, drawn = blocks.starts[blocks.sizes == size], np.arange(1, min(size, k) + 1)
        one = passed[starts[:, None] + np.arange(size)]
        mean = np.ones((starts.size, drawn.size + 1))
        for number in range(1, size + 1):
            share = np.minimum(drawn, number) / number
            mean[:, 1:] = (1.0 - share) * mean[:, 1:] + share * one[:, number - 1 : number] * mean[:, :-1]
        passed[starts[:, None] + drawn - 1] = mean[:, 1:]
