"""Rows of predictions that say the same, counted by an engine: one entry for each, however many rows there are."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from app.api.bodies.files.table import MOST_ROWS, bad_file, canonical, check_labels, doubles, held, refuse_missing
from app.domain.data import MOST_GROUPS
from app.domain.errors import TooLarge
from app.domain.inputs.attributes import MOST_VALUES
from app.domain.inputs.columns import refuse_bad_weights, refuse_first
from app.domain.inputs.content import LARGEST_TOTAL
from app.domain.inputs.samples import Tally
from app.services.evaluate.streamed.units import alike
from app.services.ports import OpenEngine

_TRUTH, _PREDICTED, _GROUP, _WEIGHT = "truth", "predicted", "grouped", "w"


class LabelCodes:
    """Labels of a column as whole numbers.

    Attributes:
        values: Each label at the place of its number, in the order in which they came.
    """

    def __init__(self, name: str, kind: pa.DataType, check: Callable[[int, str], None] = check_labels) -> None:
        self._name, self._check = name, check
        self.values = pa.array([], kind)

    def of(self, column: pa.Array) -> pa.Array:
        """Numbers (int32) of labels, -1 where there is none.

        Raises:
            InvalidInput: there are too many different ones.
        """
        encoded = held(column).dictionary_encode()
        places = pc.index_in(encoded.dictionary, value_set=self.values)
        if places.null_count:
            self.values = pa.concat_arrays([self.values, encoded.dictionary.filter(places.is_null())])
            self._check(len(self.values), self._name)
            places = pc.index_in(encoded.dictionary, value_set=self.values)
        return places.take(encoded.indices).fill_null(-1)

    def taken(self, codes: NDArray[Any]) -> pa.Array:
        """The labels of numbers."""
        return self.values.take(pa.array(codes.astype(np.int64), mask=codes < 0))


def _check_values(count: int, column: str) -> None:
    if count > MOST_VALUES:
        raise bad_file(
            "too_many",
            f"expected at most {MOST_VALUES} different values in the column {column!r}, whose rows are counted since "
            "there are more than memory holds; got more",
        )


def counted(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    labels: Sequence[str],
    weight: str | None,
    engine: OpenEngine,
    attributes: Sequence[str] = (),
) -> tuple[pa.Table, Tally]:
    """Different rows, in the order of their values, and how many samples each stands for.

    Args:
        batches: All rows.
        schema: Of the batches.
        labels: Columns of actual and predicted classes, and perhaps one of groups.
        weight: The column of weights, which are added up.
        engine: Holds the rows.
        attributes: Further columns, whose values may be missing.

    Raises:
        InvalidInput: a value is missing, a weight is none, or there are too many classes or values.
        TooLarge: there are too many groups or different rows.
        EngineError: there is no room for the rows.
    """

    def codes(name: str, check: Callable[[int, str], None] = check_labels) -> LabelCodes:
        return LabelCodes(name, canonical(schema.field(name).type), check)

    # By the name in the engine: how values become what it holds, and what these are again.
    coded = {_TRUTH: codes(labels[0]), _PREDICTED: codes(labels[1])}
    coded |= {f"attribute_{place}": codes(name, _check_values) for place, name in enumerate(attributes)}
    named = dict(zip(coded, [*labels[:2], *attributes], strict=True))
    group = None if len(labels) == 2 else canonical(schema.field(labels[2]).type)
    by = [_TRUTH, _PREDICTED, *([] if group is None else [_GROUP]), *[*coded][2:]]
    own = {**dict.fromkeys(by, pa.int32()), **({} if group is None else {_GROUP: group})}
    taken = pa.schema([*own.items(), *([] if weight is None else [(_WEIGHT, pa.float64())])])

    def in_codes() -> Iterator[pa.RecordBatch]:
        before = 0
        for batch in batches:
            for name in dict.fromkeys([*labels, *([] if weight is None else [weight])]):
                refuse_missing(pa.chunked_array([batch.column(name)]), name, before)
            columns = {one: code.of(batch.column(named[one])) for one, code in coded.items()}
            if group is not None:
                columns[_GROUP] = held(batch.column(labels[2]))
            if weight is not None:
                columns[_WEIGHT] = _weights(batch.column(weight), before)
            before += batch.num_rows
            yield pa.RecordBatch.from_arrays([columns[name] for name in taken.names], schema=taken)

    rows = engine.take(taken, in_codes())
    if _GROUP in by:
        _, n_groups = rows.coded(_GROUP, into="place")
        if n_groups > MOST_GROUPS:
            raise TooLarge(f"expected at most {MOST_GROUPS} groups, got {n_groups}", pointer="/data")
    found, weights, tally = alike(rows, by, weighted=weight is not None)
    if len(tally) > MOST_ROWS:
        detail = f"expected at most {MOST_ROWS} rows that differ, got more; ask for fewer attributes"
        raise TooLarge(detail, pointer="/data")
    values = {name: code.taken(found[name]) for name, code in coded.items()}
    if group is not None:
        values[_GROUP] = pa.array(found[_GROUP], group)
    table = pa.table({name: values[name] for name in by})
    order = pc.sort_indices(table, [(name, "ascending") for name in by])
    # Actual and predicted classes may be one column.
    table = pa.table(dict(zip([*labels, *attributes], table.take(order).columns, strict=True)))
    if weight is not None:
        table = table.append_column(weight, pa.array(weights).take(order))
    return table, tally.taken(order.to_numpy())


def _weights(column: pa.Array, before: int) -> pa.Array:
    """Weights as doubles; ``before`` rows of others come first.

    Raises:
        InvalidInput: one is below 0, not finite or too large.
    """
    weights = doubles(column)
    values = weights.to_numpy(zero_copy_only=False)

    def at(index: int) -> str:
        return f"/input/sample_weight/{before + index}"

    refuse_bad_weights(values, "", at)
    refuse_first(values, values > LARGEST_TOTAL, "", "total_too_large", "expected entries that sum to at most 2^53", at)
    return weights
