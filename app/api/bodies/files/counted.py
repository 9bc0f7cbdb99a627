"""Rows that say the same, counted: as much memory as there are different ones, however many rows go by."""

from collections.abc import Sequence
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from app.api.bodies.files.table import check_labels, is_text, refuse_missing
from app.domain.data import MOST_GROUPS
from app.domain.errors import InvalidInput, TooLarge
from app.domain.inputs.content import LARGEST_TOTAL
from app.domain.inputs.samples import Tally, WeightSums

# Rows of batches, already counted by themselves, that are gathered before they are counted together.
_GATHERED: Final = 1 << 18
_TIMES: Final = "times"
_USED: Final = "used"
_LIGHTEST: Final = "lightest"
_HEAVIEST: Final = "heaviest"
_SUM: Final = "sum"
_SQUARES: Final = "squares"
# A weight is cut along fixed powers of 2 into whole numbers below 2^24, one column for each power that occurs: sums of
# 2^39 of them fit into 64 bits, so sums of weights are exact and do not depend on the order. `ExactSums` says the same
# of arrays; here Arrow groups and adds, which it does of columns of whole numbers.
_BITS: Final = 24
# A level that a part has not stands for nothing there.
_NULL_IS_ZERO: Final = pc.ScalarAggregateOptions(skip_nulls=True, min_count=0)


class RowCounts:
    """The different rows and how often each occurs. States merge in any order, and can be pickled.

    Args:
        schema: Of the batches.
        keys: Columns in which rows are the same, at least one.
        pair: Those of them that are labels; the others name groups.
        weight: The column of weights, which are added up.
        memory_bytes: That the different rows may take.
        before: Rows that come before, for faults to say which row it is.
    """

    def __init__(
        self,
        schema: pa.Schema,
        keys: Sequence[str],
        pair: Sequence[str],
        weight: str | None,
        memory_bytes: int,
        before: int = 0,
    ) -> None:
        self.rows = 0
        self._before = before
        self._keys = pa.schema([(name, _countable(schema.field(name).type)) for name in dict.fromkeys(keys)])
        self._pair, self._weight, self._memory = [*dict.fromkeys(pair)], weight, memory_bytes
        # Columns of keys may have any names: here they are numbers.
        self._names = [str(place) for place in range(len(self._keys))]
        plain = [*zip(self._names, self._keys.types, strict=True), (_TIMES, pa.int64())]
        weighed = [(_USED, pa.int64()), (_LIGHTEST, pa.float64()), (_HEAVIEST, pa.float64())]
        self._table = pa.schema([*plain, *([] if weight is None else weighed)]).empty_table()
        self._parts: list[pa.Table] = []

    def add(self, batch: pa.RecordBatch) -> Self:
        """Count the rows of a batch.

        Raises:
            InvalidInput: a value is missing, a weight is none, or there are too many classes or groups.
            TooLarge: there are too many different rows.
        """
        for name in [*self._keys.names, *([] if self._weight is None else [self._weight])]:
            refuse_missing(pa.chunked_array([batch.column(name)]), name, self._before + self.rows)
        columns = [batch.column(name).cast(kind) for name, kind in zip(self._keys.names, self._keys.types, strict=True)]
        table = pa.Table.from_arrays([*columns, pa.array(np.ones(batch.num_rows, np.int64))], [*self._names, _TIMES])
        if self._weight is not None:
            for name, column in self._weighed(batch.column(self._weight)).items():
                table = table.append_column(name, column)
        self.rows += batch.num_rows
        return self._gathered([self._together([table])])

    def merge(self, other: Self) -> Self:
        """Take in the rows of another state, of the same columns. Raises as `add`."""
        self.rows += other.rows
        return self._gathered([other._table, *other._parts])

    def finish(self) -> tuple[pa.Table, Tally]:
        """The different rows, in an order that does not depend on how they came, and how many samples each stands for.

        The column of weights has their sums, each rounded once. Raises as `add`.
        """
        self._compact()
        table = self._table.sort_by([(name, "ascending") for name in self._names])
        found = pa.Table.from_arrays([table.column(name) for name in self._names], self._keys.names)
        times = table.column(_TIMES).to_numpy()
        if self._weight is None:
            return found, Tally(times)
        sums, squares = (pa.array(_rounded(table, kind)) for kind in (_SUM, _SQUARES))
        ends = [table.column(name).to_numpy(zero_copy_only=False) for name in (_LIGHTEST, _HEAVIEST)]
        weights = WeightSums(squares.to_numpy(), table.column(_USED).to_numpy(), *ends)
        return found.append_column(self._weight, sums), Tally(times, weights)

    def __getstate__(self) -> dict[str, object]:
        self._compact()
        return self.__dict__

    def _gathered(self, tables: Sequence[pa.Table]) -> Self:
        self._parts += tables
        if sum(part.num_rows for part in self._parts) > max(_GATHERED, self._table.num_rows):
            self._compact()
        return self

    def _weighed(self, column: pa.Array) -> dict[str, pa.Array]:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        weights: NDArray[np.float64] = column.cast(kind).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        self._check(weights)
        used = weights > 0
        ends = pa.array(weights, mask=~used)
        found = {_USED: pa.array(used.astype(np.int64)), _LIGHTEST: ends, _HEAVIEST: ends}
        for name, values in ((_SUM, weights), (_SQUARES, weights * weights)):
            found |= {f"{name}{level}": pa.array(whole) for level, whole in _pieces(values).items()}
        return found

    def _check(self, weights: NDArray[np.float64]) -> None:
        bad = ~np.isfinite(weights) | (weights < 0)
        if bad.any():
            index = int(np.argmax(bad))
            row = self._before + self.rows + index
            raise InvalidInput.at(
                "/data",
                "bad_weight",
                f"sample_weight, row {row} of those read: expected a finite weight of 0 or more, got "
                f"{weights[index]:g}",
            )
        if weights.size and weights.max() > LARGEST_TOTAL:
            raise InvalidInput.at(
                "/data",
                "total_too_large",
                f"sample_weight: expected entries that sum to at most 2^53, got {weights.max():g}",
            )

    def _together(self, tables: Sequence[pa.Table]) -> pa.Table:
        joined = pa.concat_tables(tables, promote_options="default")
        aside = {*self._names, _LIGHTEST, _HEAVIEST}
        asked: list[Any] = [(name, "sum", _NULL_IS_ZERO) for name in joined.column_names if name not in aside]
        if self._weight is not None:
            asked += [(_LIGHTEST, "min"), (_HEAVIEST, "max")]
        made = joined.group_by(self._names, use_threads=False).aggregate(asked)
        return made.select([*self._names, *(f"{name}_{how}" for name, how, *_ in asked)]).rename_columns(
            [*self._names, *(name for name, *_ in asked)]
        )

    def _compact(self) -> None:
        self._table, self._parts = self._together([self._table, *self._parts]), []
        table = self._table
        for name, key in zip(self._names, self._keys.names, strict=True):
            different = pc.count_distinct(table.column(name)).as_py()
            if key in self._pair:
                check_labels(different, key)
            elif different > MOST_GROUPS:
                raise TooLarge(f"expected at most {MOST_GROUPS} groups, got {different}", pointer="/data")
        if table.nbytes > self._memory:
            raise TooLarge(
                f"expected groups and labels of at most {self._memory} bytes (PREVAIL_DATA_MEMORY_BYTES), got "
                f"{table.num_rows} different rows",
                pointer="/data",
            )


def _countable(kind: pa.DataType) -> pa.DataType:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.large_string() if is_text(kind) else kind


def _pieces(values: NDArray[np.float64]) -> dict[int, NDArray[np.int64]]:
    """Whole numbers (n) by level: a value is the sum of them times 2^(24 level), exactly."""
    found: dict[int, NDArray[np.int64]] = {}
    level = -(-int(np.frexp(values.max(initial=0.0))[1]) // _BITS) - 1
    while values.any():
        whole = np.floor(np.ldexp(values, -_BITS * level))
        values = values - np.ldexp(whole, _BITS * level)
        if whole.any():
            found[level] = whole.astype(np.int64)
        level -= 1
    return found


def _rounded(table: pa.Table, kind: str) -> NDArray[np.float64]:
    """The sums (n) of the pieces of a kind, each the float64 that is nearest to it."""
    levels = {int(name.removeprefix(kind)): name for name in table.column_names if name.startswith(kind)}
    if not levels:
        return np.zeros(table.num_rows)
    lowest = min(levels)
    whole = np.zeros(table.num_rows, dtype=object)
    for level, name in levels.items():
        whole = whole + (table.column(name).to_numpy().astype(object) << (_BITS * (level - lowest)))
    # Integers are divided and multiplied by others with one rounding.
    scale = 1 << abs(_BITS * lowest)
    return np.array([float(one * scale) if lowest > 0 else one / scale for one in whole], dtype=np.float64)
