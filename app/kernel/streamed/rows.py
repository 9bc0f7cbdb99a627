"""The interface to an engine that holds rows beyond memory.

Everything that the service asks of such rows goes through it: computed columns, counts and sums by columns, a join, and
one pass along an order. Expressions are SQL over column names. The engine in the process is DuckDB
(`app/outbound/duckdb_rows.py`).
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from numpy.typing import NDArray

if TYPE_CHECKING:
    from app.kernel.streamed.spool import Spool

# Columns by name, all of one length.
Table = Mapping[str, NDArray[Any]]
# Rows of a batch of an order: always so many but for the last, so that sums do not depend on how the engine reads.
BATCH_ROWS = 1 << 20
_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


class Rows(Protocol):
    """Rows of named columns, held by an engine. They are values: every method answers others and changes none.

    Raises:
        EngineError: any method, when the engine does not do it.
    """

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns."""
        ...

    @property
    def threads(self) -> int:
        """Number of threads that may look at rows beside each other."""
        ...

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    def having(self, **columns: str) -> Self:
        """Rows with more columns, each an SQL expression over those that are there; an equal name replaces."""
        ...

    def where(self, condition: str) -> Self:
        """Rows for which an SQL condition is true."""
        ...

    def distinct(self, *by: str) -> Self:
        """Each combination of some columns once, with the number ``n`` of its rows."""
        return self.summed(*by, n="1")

    def summed(self, *by: str, **values: str) -> Self:
        """Each combination of some columns once, with `sums` of SQL expressions, in no order."""
        ...

    def counted(self, *by: str) -> Table:
        """Number of rows ``n`` for each combination of some columns, ordered by these."""
        return self.sums(*by, n="1")

    def sums(self, *by: str, **values: str) -> Table:
        """Sums (float64) of SQL expressions for each combination of some columns, ordered by these.

        Sums are compensated, so that they do not depend on threads beyond 1e-12 of the sum of magnitudes. Whole numbers
        are summed as such and are exact. Without ``by`` there is one row. Sums of no rows are 0.
        """
        return self.totals(by, values, {})

    def totals(self, by: Sequence[str], sums: Mapping[str, str], smallest: Mapping[str, str]) -> Table:
        """Return sums, and the smallest values (float64) of other expressions, at once.

        NULL is passed over; where there is nothing else the smallest value is NaN.
        """
        ...

    def coded(self, column: str, into: str) -> tuple[Self, int]:
        """Rows with a column of whole numbers 0..G-1 in place of any values, ordered by these values, and G."""
        ...

    def joined(self, other: Self, on: str) -> Self:
        """Rows of both that are equal in a column; other columns of ``other`` must have other names."""
        ...

    def kept(self) -> Self:
        """Rows written once, for several questions to what is dear to compute."""
        ...

    def ordered(self, *by: str, columns: Sequence[str]) -> Iterator[Table]:
        """Columns in an order (``"p DESC"``), in batches of `BATCH_ROWS` rows; every batch is checked to be in order.

        Only the first of ``by`` is checked. It must be a column, numeric, and one of ``columns``.
        """
        ...

    def sorted(self, *by: str, columns: Sequence[str]) -> "Spool":
        """Columns in such an order, put into it once and read from either end."""
        ...

    def batches(self, *columns: str) -> Iterator[Table]:
        """Columns in any order, in batches."""
        ...


class EngineError(Exception):
    """The engine does not do what it was asked for: no room, or it cannot be reached."""


class NotStreamed(AttributeError):
    """The value needs all samples at once, and they were streamed."""


def side_by_side(work: Callable[[_Item], _Made], items: Iterable[_Item], threads: int) -> Iterator[_Made]:
    """Results of items in their order, while the next ones are worked on: numpy leaves the interpreter to others."""
    if threads == 1:
        yield from map(work, items)
        return
    waiting = deque[Future[_Made]]()
    with ThreadPoolExecutor(threads) as pool:
        for item in items:
            # With what the caller says of divisions and of progress.
            waiting.append(pool.submit(copy_context().run, work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
