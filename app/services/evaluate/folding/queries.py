"""Rankings of any number of items, in any order: divided into files by their queries, and looked at file by file."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from app.domain.errors import TooLarge
from app.domain.inputs.content import DataFacts
from app.domain.inputs.samples import Samples
from app.domain.inputs.units.rankings import counted_ranking
from app.kernel.folds.queries import RELEVANT, ColumnFile, Columns, QueryValueUnits, columns_of
from app.kernel.metrics.card import Task
from app.kernel.metrics.expression import Measure
from app.kernel.units.queries import Queries
from app.services.evaluate.evaluations import NewEvaluation
from app.services.evaluate.folding.units import DATA, UnitFolding
from app.services.evaluate.sections.unit import measures_of
from app.services.ports.cluster import Workers
from app.services.processes.progress import progressed
from app.services.runs.joins.spilled import Part, SpilledRun

_PARTS: Final = 1024
_COLUMNS: Final = {"relevance": pa.float64(), "score": pa.float64()}
# Bytes that looking at queries takes of each item, and that values of all queries take of each.
_ITEM_BYTES: Final = 256
_QUERY_BYTES: Final = 64
# What is allowed at least, however small the budget is.
_ALWAYS: Final = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class LookedAt:
    """What is kept of the queries of one part.

    Attributes:
        ids: (Q) integers or texts.
        columns: As the kernel makes them.
    """

    ids: pa.Array
    columns: Columns


class QueryFolding(UnitFolding):
    """One evaluation of rankings made of parts. Who makes it closes it.

    The report is that of the same items at hand, bit for bit, whatever the parts: what is kept of each query is what
    all of it follows from.

    Args:
        budget: Bytes of memory, about, that items may take; more goes into files.
        folder: Where files are made; None: items stay in memory, and can be sent to another process.
    """

    def __init__(self, budget: int, folder: Path | None) -> None:
        super().__init__(Task.RANKING)
        self._budget = budget
        self._held: list[tuple[NDArray[Any], dict[str, NDArray[np.float64]]]] = []
        self._folder: Path | None = None
        self._divided: SpilledRun | None = None
        if folder is not None:
            self._folder = Path(mkdtemp(prefix="queries-", dir=folder))
            self._divided = SpilledRun(self._folder, "items", _PARTS, budget // 4, _COLUMNS)
        self._has_texts = False

    def add(self, part: NewEvaluation) -> None:
        """Add items, of data that was named."""
        samples = part.source.samples
        if samples is None or samples.outputs is None or samples.ids is None:
            raise ValueError("expected parts with items of queries")
        self._begin(part)
        self._take(samples.ids.take(samples.predicted), {"relevance": samples.truth, "score": samples.outputs})

    def merge(self, other: "QueryFolding") -> None:
        """Take in the items that another holds."""
        if other._first is not None:
            self._begin(other._first)
        for ids, columns in other._held:
            self._take(ids, columns)

    def _take(self, ids: NDArray[Any], columns: dict[str, NDArray[np.float64]]) -> None:
        self.rows += ids.size
        self._has_texts |= ids.dtype.kind == "U"
        if self._divided is None:
            self._held.append((ids, columns))
        else:
            self._divided.add(ids, **columns)

    def finish(self, facts: DataFacts, workers: Workers | None = None) -> NewEvaluation:
        """All parts as one input, without its samples, and its report.

        Args:
            facts: What was read.
            workers: Who look at queries, where there are some.

        Raises:
            InvalidInput: there is no part, or what is asked cannot be given.
            TooLarge: there are too many queries, or too many items of one.
        """
        source, divided, folder = self._begun().source, self._divided, self._folder
        if divided is None or folder is None:
            raise ValueError("expected a folder for what is divided")
        divided.finish()
        kept = ColumnFile(folder / "queries.columns")
        ids = []
        look = partial(looked_at, measures=measures_of(self._question(source), Task.RANKING))
        tasks = self._parts(divided)
        for found in map(look, tasks) if workers is None else workers.in_order(look, tasks):
            kept.append(found.columns)
            ids.append(found.ids)
            self._check_queries(kept.rows)
        named, order = _in_order(ids, texts=self._has_texts)
        kept.order(order)
        relevant = kept[RELEVANT]
        counts = kept.rows, self.rows, int(relevant.sum()), int(np.count_nonzero(relevant))
        # The items are gone, and the names of the queries are not.
        nothing = np.zeros(0)
        names = Samples(nothing, nothing.astype(np.int64), ids=named)
        whole = counted_ranking(counts, source.facts["cutoffs"], names)
        return self._reported(whole, QueryValueUnits(kept, kept.rows, self.rows), facts)

    def close(self) -> None:
        """Delete the files."""
        divided, self._divided = self._divided, None
        if divided is not None and self._folder is not None:
            try:
                divided.close()
            finally:
                rmtree(self._folder)

    def _parts(self, divided: SpilledRun) -> Iterator[Part]:
        most = max(self._budget // _ITEM_BYTES, _ALWAYS)
        for number in range(_PARTS):
            progressed(number, _PARTS)
            for part in divided.part(number):
                if part is None:
                    continue
                if len(part.ids) > most:
                    raise TooLarge(
                        f"expected at most {most} items in each of the {_PARTS} files that queries are divided into "
                        f"(by PREVAIL_DATA_MEMORY_BYTES), got {len(part.ids)} in one",
                        pointer=DATA,
                    )
                yield part

    def _check_queries(self, n_queries: int) -> None:
        most = max(self._budget // _QUERY_BYTES, _ALWAYS)
        if n_queries > most:
            raise TooLarge(
                f"expected at most {most} queries in this memory (PREVAIL_DATA_MEMORY_BYTES), got more",
                pointer=DATA,
            )


def looked_at(part: Part, measures: Iterable[Measure]) -> LookedAt:
    """The queries of a part: a pure function of its items, in whatever order they are."""
    coded = part.ids.dictionary_encode()
    queries = Queries(coded.indices.to_numpy(), part.columns["relevance"], part.columns["score"])
    return LookedAt(coded.dictionary, columns_of(queries, measures))


def _in_order(ids: Sequence[pa.Array], *, texts: bool) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The ids (Q) of all parts as they are sorted, and where each was."""
    together = pa.concat_arrays([one.cast(pa.large_string() if texts else pa.int64()) for one in ids])
    order = pc.sort_indices(together)
    return together.take(order).to_numpy(zero_copy_only=not texts), order.to_numpy().astype(np.intp)
