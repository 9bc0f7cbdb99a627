"""Rankings of more items than memory holds: the values of their queries."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from app.domain.errors import TooLarge
from app.domain.inputs.labels import shown
from app.domain.inputs.ranking import QueryCounts
from app.domain.inputs.samples import Samples
from app.kernel.metrics.card import Inputs
from app.kernel.metrics.expression import Measure
from app.kernel.streamed.queries import (
    GRADE,
    QUERY,
    RELEVANT,
    RETRIEVED,
    SCORE,
    SIZES,
    UNJUDGED,
    QueryValues,
    query_values,
)
from app.kernel.streamed.spool import Spool
from app.kernel.uncertainty.units import ItemUnits
from app.services.ports import OpenEngine
from app.services.runs.pairing import NamedUnits

_NAME: Final = "name"
_ITEMS: Final = pa.schema([(_NAME, pa.string()), (GRADE, pa.float64()), (SCORE, pa.float64())])
# Bytes that the items of one query take, and that values of all queries take of each.
_ITEM_BYTES: Final = 256
_QUERY_BYTES: Final = 64
# What is allowed at least, however small the budget is.
_ALWAYS: Final = 1 << 16
_DATA: Final = "/input/data"


def kept_queries(
    parts: Iterable[Samples],
    measures: Iterable[Measure],
    engine: OpenEngine,
    budget: int,
    folder: Path,
    runs: int = 1,
    relevant_from: float | None = None,
) -> tuple[NamedUnits, QueryCounts]:
    """Values of the queries of a run in the order of their ids, and how many items they have.

    Args:
        parts: Items, in any order.
        measures: The metrics that may be asked for, means over queries.
        engine: What holds the items.
        budget: Bytes of memory, about, that one query or the values of all queries may take.
        folder: Where the file of the values is made.
        runs: Of how many runs values are kept at the same time.
        relevant_from: The relevance from which an item is relevant; None is any above 0.

    Raises:
        TooLarge: there are too many queries, or one has too many items.
    """
    kinds: set[str] = set()

    def batches() -> Iterator[pa.RecordBatch]:
        for samples in parts:
            if samples.outputs is None or samples.ids is None:
                raise ValueError("expected items of queries")
            kinds.add(samples.ids.dtype.kind)
            names = pa.array(samples.ids).cast(pa.string()).take(pa.array(samples.predicted))
            yield pa.record_batch([names, pa.array(samples.truth), pa.array(samples.outputs)], schema=_ITEMS)

    items = engine.take(_ITEMS, batches())
    if kinds == {"i"}:
        items = items.having(**{_NAME: f"{_NAME}::BIGINT"})
    queries = items.sums(_NAME, n="1")
    ids, sizes = queries[_NAME], queries["n"]
    check_queries(ids.size, budget, runs)
    most = max(budget // _ITEM_BYTES, _ALWAYS)
    if sizes.max() > most:
        raise TooLarge(
            f"expected at most {most} items of a query in this memory (PREVAIL_DATA_MEMORY_BYTES), got "
            f"{sizes.max():.0f} of {shown(str(ids[np.argmax(sizes)]))}",
            pointer=_DATA,
        )
    coded, _ = items.coded(_NAME, QUERY)
    values = QueryValues(Spool(query_values(coded, measures, relevant_from), folder))
    counts = QueryCounts(*(values.columns[name] for name in (SIZES, RELEVANT, RETRIEVED, UNJUDGED)))
    return NamedUnits(ItemUnits(values, Inputs.QUERIES), ids if kinds == {"i"} else ids.astype(np.str_)), counts


def check_queries(n_queries: float, budget: int, runs: int = 1) -> None:
    """Raises TooLarge where so many queries of each run are too many to keep values of in a budget."""
    most = max(budget // (_QUERY_BYTES * runs), _ALWAYS)
    if n_queries > most:
        raise TooLarge(
            f"expected at most {most} queries{f' of each of {runs} runs' * (runs > 1)} in this memory "
            "(PREVAIL_DATA_MEMORY_BYTES), got more",
            pointer=_DATA,
        )
