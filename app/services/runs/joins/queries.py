"""Items of queries, of any number and in any order: divided into files by their queries, and looked at file by file."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from app.domain.errors import TooLarge
from app.domain.inputs.labels import shown
from app.domain.inputs.samples import Samples
from app.kernel.folds.queries import RELEVANT, ColumnFile, Columns, QueryValueUnits, columns_of
from app.kernel.metrics.expression import Measure
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.sorting import Hashes
from app.kernel.units.queries import Queries
from app.services.ports.cluster import Workers
from app.services.processes.progress import progressed
from app.services.runs.joins.frequent import Frequent
from app.services.runs.joins.keys import as_ids, numbers_of, together
from app.services.runs.joins.spilled import Part, SpilledRun

_PARTS: Final = 1024
# Queries of which it is counted at the same time how many items they have.
_COUNTED: Final = 1024
# Of a part that is divided again.
_MOST_PARTS: Final = 1 << 14
_COLUMNS: Final = {"relevance": pa.float64(), "score": pa.float64()}
# Bytes that looking at queries takes of each item, and that values of all queries take of each.
_ITEM_BYTES: Final = 256
_QUERY_BYTES: Final = 64
# What is allowed at least, however small the budget is.
_ALWAYS: Final = 1 << 16
# Beyond it hashes have no bits left.
_MOST_DIVIDED: Final = 1 << 54
_DATA: Final = "/input/data"


@dataclass(frozen=True, slots=True, eq=False)
class LookedAt:
    """What is kept of the queries of one part.

    Attributes:
        ids: (Q) integers or texts.
        columns: As the kernel makes them.
    """

    ids: pa.Array
    columns: Columns


# The query (n) of each item, and by name what is known of it (n).
Items = tuple[NDArray[Any], Mapping[str, Array]]


class KeptQueries(NamedTuple):
    """What is kept of all queries.

    Attributes:
        ids: (Q) in order.
        columns: As the kernel makes them.
        n_items: Of all queries together.
    """

    ids: NDArray[Any]
    columns: ColumnFile
    n_items: int

    @property
    def units(self) -> QueryValueUnits:
        """As metrics take them."""
        return QueryValueUnits(self.columns, self.n_items)

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Queries, items, relevant items and queries with a relevant item."""
        relevant = self.columns[RELEVANT]
        return self.columns.rows, self.n_items, int(relevant.sum()), int(np.count_nonzero(relevant))


class DividedQueries:
    """Items by their queries, of which no more than a budget is in memory. Who makes it closes it.

    What is kept of each query does not depend on the parts, bit for bit.

    Args:
        budget: Bytes of memory, about, that items may take; more goes into files.
        folder: Where files are made.
        runs: Of how many runs values are kept at the same time.

    Attributes:
        folder: What is deleted by closing.
    """

    def __init__(self, budget: int, folder: Path, runs: int = 1) -> None:
        self.folder = Path(mkdtemp(prefix="queries-", dir=folder))
        self._budget, self._runs, self._has_texts, self._ending = budget, runs, False, ExitStack()
        self._ending.callback(rmtree, self.folder)
        self._divided, self._frequent = self._made("items", _PARTS), Frequent(_COUNTED)

    def add(self, items: Items) -> None:
        """Take in items.

        Raises:
            TooLarge: it is known already that one query has too many.
        """
        ids, columns = items
        self._has_texts |= ids.dtype.kind == "U"
        self._divided.add(ids, **columns)
        self._look_for_many(ids)

    def looked_at(self, measures: Iterable[Measure], folder: Path, workers: Workers | None) -> KeptQueries:
        """What metrics say of the queries, once all items are there.

        Args:
            measures: The metrics that may be asked for.
            folder: Where files are made for the values, which go with these.
            workers: Who look at queries, where there are some.

        Raises:
            TooLarge: there are too many queries, or one has too many items.
        """
        self._divided.finish()
        kept, ids = ColumnFile(folder), []
        look, parts = partial(_looked_at, measures=tuple(measures)), self._parts(self._divided)
        for done, found in enumerate(map(look, parts) if workers is None else workers.in_order(look, parts)):
            progressed(done, max(done + 1, _PARTS))
            kept.append(found.columns)
            ids.append(found.ids)
            check_queries(kept.rows, self._budget, self._runs)
        named, order = _in_order(ids, texts=self._has_texts)
        return KeptQueries(named, kept.taken(order), self._divided.rows)

    def close(self) -> None:
        """Delete the files."""
        self._ending.close()

    def _look_for_many(self, ids: NDArray[Any]) -> None:
        """Only in parts that are too large is a query that is."""
        large = [number for number in range(_PARTS) if self._divided.most_rows(number) > self._most]
        if large:
            numbers = numbers_of(ids)
            inside = np.isin(numbers % np.uint64(_PARTS), large)
            self._count(self._frequent, ids[inside], numbers[inside])

    def _count(self, counted: Frequent, ids: NDArray[Any], numbers: Hashes) -> None:
        """Raises TooLarge as soon as it is known that one of the queries (n) has too many items."""
        counted.add(numbers)
        beyond = np.isin(numbers, counted.beyond(self._most))
        if beyond.any():
            raise self._too_many(ids[np.argmax(beyond)])

    @property
    def _most(self) -> int:
        return max(self._budget // _ITEM_BYTES, _ALWAYS)

    def _made(self, name: str, parts: int, divided: int = 1) -> SpilledRun:
        made = SpilledRun(self.folder, name, parts, self._budget // 4, _COLUMNS, divided)
        self._ending.callback(made.close)
        return made

    def _parts(self, run: SpilledRun) -> Iterator[Part]:
        """Parts that are small enough. Those that are not are divided first, so that a query that is too large is told
        before any is looked at.
        """
        for small, number in self._small(run):
            yield from (part for part in small.part(number) if part is not None)

    def _small(self, run: SpilledRun) -> list[tuple[SpilledRun, int]]:
        """Where those parts are."""
        found = []
        for number in range(run.n_parts):
            large = run.most_rows(number) > self._most
            found.extend(self._small(self._again(run, number)) if large else [(run, number)])
        return found

    def _again(self, run: SpilledRun, number: int) -> SpilledRun:
        """The items of a part that is too large, divided by what is left of the hashes.

        Few queries are counted, so one that is too large may be seen only when its part is divided once more.
        """
        parts = min(ceil(2 * run.most_rows(number) / self._most), _MOST_PARTS)
        made = self._made(f"{run.name}-{number}", parts, run.divided * run.n_parts)
        counted = Frequent(_COUNTED)
        for block in run.blocks(number):
            ids = as_ids(block.ids)
            self._count(counted, ids, numbers_of(ids))
            if made.divided > _MOST_DIVIDED:
                raise self._too_many(ids[0])
            made.add(ids, **block.columns)
        made.finish()
        return made

    def _too_many(self, query: Any) -> TooLarge:
        return TooLarge(
            f"expected at most {self._most} items of a query in this memory (PREVAIL_DATA_MEMORY_BYTES), got more of "
            f"{shown(str(query))}",
            pointer=_DATA,
        )


def check_queries(n_queries: float, budget: int, runs: int = 1) -> None:
    """Raises TooLarge where so many queries of each run are too many to keep values of in a budget."""
    most = max(budget // (_QUERY_BYTES * runs), _ALWAYS)
    if n_queries > most:
        raise TooLarge(
            f"expected at most {most} queries{f' of each of {runs} runs' * (runs > 1)} in this memory "
            "(PREVAIL_DATA_MEMORY_BYTES), got more",
            pointer=_DATA,
        )


def items_of(samples: Samples) -> Items:
    """The items of samples of queries.

    Raises:
        ValueError: they are none.
    """
    if samples.outputs is None or samples.ids is None:
        raise ValueError("expected items of queries")
    return samples.ids.take(samples.predicted), {"relevance": samples.truth, "score": samples.outputs}


def _looked_at(part: Part, measures: Iterable[Measure]) -> LookedAt:
    """The queries of a part: a pure function of its items, in whatever order they are."""
    coded = part.ids.dictionary_encode()
    queries = Queries(coded.indices.to_numpy(), part.columns["relevance"], part.columns["score"])
    return LookedAt(coded.dictionary, columns_of(queries, measures))


def _in_order(ids: Sequence[pa.Array], *, texts: bool) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The ids (Q) of all parts as they are sorted, and where each was."""
    named = together(ids, texts=texts)
    order = pc.sort_indices(named)
    return named.take(order).to_numpy(zero_copy_only=not texts), order.to_numpy().astype(np.intp)
