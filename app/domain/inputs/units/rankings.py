"""Ranked items of queries, brought to one form.

Raises InvalidInput with pointers relative to the ``input`` object it was given a pointer for.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import InvalidInput
from app.domain.inputs.beside import read_groups
from app.domain.inputs.content import Content
from app.domain.inputs.kinds import RANKING
from app.domain.inputs.labels import Column, Numbers
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.probabilities import read_numbers
from app.domain.inputs.samples import Samples

CUTOFFS: Final = (1, 3, 5, 10, 20, 100)
# Beyond it 2^relevance is infinite.
_LARGEST_RELEVANCE = 1000.0


def from_ranking(
    query_ids: Column,
    relevance: Numbers,
    scores: Numbers | None,
    ranks: Numbers | None,
    cutoffs: Sequence[int] | None,
    *,
    pointer: str,
) -> MatrixInput:
    """Items in any order, each with its query, its relevance, and its score or its rank.

    The counts are those of queries, items, relevant items and queries with a relevant item. Of the columns of samples
    ``truth`` has the relevance of each item, ``predicted`` the code of its query, ``outputs`` its score (of ranks the
    negative rank) and ``ids`` the ids of the queries by their codes.
    """
    if scores is not None and ranks is not None:
        raise InvalidInput.at(f"{pointer}/ranks", "one_of", "expected either scores or ranks, got both")
    order, name = (ranks, "ranks") if scores is None else (scores, "scores")
    if order is None:
        raise InvalidInput.at(f"{pointer}/scores", "missing", "expected scores or ranks, got neither")
    _check_lengths({"query_ids": query_ids, "relevance": relevance, name: order}, pointer)
    ids, codes = np.unique(read_groups(query_ids, f"{pointer}/query_ids"), return_inverse=True)
    grades = _bounded(relevance, f"{pointer}/relevance", 0.0, _LARGEST_RELEVANCE)
    if name == "scores":
        values = read_numbers(order, f"{pointer}/scores")
    else:
        values = -_bounded(order, f"{pointer}/ranks", 0.0, np.inf)
    relevant = np.bincount(codes, grades > 0, len(ids))
    n_queries, with_relevant = len(ids), int(np.count_nonzero(relevant))
    chosen = CUTOFFS if cutoffs is None else tuple(dict.fromkeys(cutoffs))
    counts = n_queries, codes.size, int(relevant.sum()), with_relevant
    samples = Samples(truth=grades, predicted=codes.astype(np.int64), outputs=values, ids=ids)
    return counted_ranking(counts, chosen, samples)


def counted_ranking(counts: tuple[int, int, int, int], cutoffs: Sequence[int], samples: Samples | None) -> MatrixInput:
    """The one form, of numbers of queries, items, relevant items and queries with a relevant item."""
    n_queries, n_items, relevant, with_relevant = counts
    return MatrixInput(
        kind=RANKING,
        labels=(),
        positive=None,
        content=Content.counts,
        counts=np.array(counts, dtype=np.int64),
        facts={
            "rows": n_items,
            "cutoffs": list(cutoffs),
            "relevant_items": relevant,
            "queries_without_relevant_items": n_queries - with_relevant,
        },
        samples=samples,
    )


def _check_lengths(columns: dict[str, Any], pointer: str) -> None:
    size = len(columns["query_ids"])
    if size == 0:
        raise InvalidInput.at(f"{pointer}/query_ids", "no_samples", "expected at least one item, got none")
    for name, column in columns.items():
        if len(column) != size:
            raise InvalidInput.at(
                f"{pointer}/{name}", "wrong_length", f"expected {size} entries as in query_ids, got {len(column)}"
            )


def _bounded(column: Numbers, pointer: str, lowest: float, highest: float) -> NDArray[np.float64]:
    values = read_numbers(column, pointer)
    bad = (values < lowest) | (values > highest)
    if bad.any():
        index = int(np.argmax(bad))
        range_ = f"of {lowest:g} or more" if np.isinf(highest) else f"between {lowest:g} and {highest:g}"
        raise InvalidInput.at(
            f"{pointer}/{index}", "out_of_range", f"expected a number {range_}, got {values[index]:g}"
        )
    return values
