"""Rows of predictions that say the same, counted by an engine: one entry for each, however many rows there are."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.api.bodies.files.table import check_labels, is_text, refuse_missing
from app.domain.data import MOST_GROUPS
from app.domain.errors import InvalidInput, TooLarge
from app.domain.inputs.content import LARGEST_TOTAL
from app.domain.inputs.samples import Tally, WeightSums
from app.services.ports import OpenEngine

_TRUTH, _PREDICTED, _GROUP, _WEIGHT = "truth", "predicted", "grouped", "weight"


class LabelCodes:
    """Labels of a column as whole numbers.

    Attributes:
        values: Each label at the place of its number, in the order in which they came.
    """

    def __init__(self, name: str, kind: pa.DataType) -> None:
        self._name = name
        self.values = pa.array([], kind)

    def of(self, column: pa.Array) -> pa.Array:
        """Numbers (int32) of labels.

        Raises:
            InvalidInput: there are too many different ones.
        """
        encoded = column.cast(self.values.type).dictionary_encode()
        places = pc.index_in(encoded.dictionary, value_set=self.values)
        if places.null_count:
            self.values = pa.concat_arrays([self.values, encoded.dictionary.filter(places.is_null())])
            check_labels(len(self.values), self._name)
            places = pc.index_in(encoded.dictionary, value_set=self.values)
        return places.take(encoded.indices)


def counted(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, labels: Sequence[str], weight: str | None, engine: OpenEngine
) -> tuple[pa.Table, Tally]:
    """Different rows, in the order of their values, and how many samples each stands for.

    Args:
        batches: All rows.
        schema: Of the batches.
        labels: Columns of actual and predicted classes, and perhaps one of groups.
        weight: The column of weights, which are added up.
        engine: Holds the rows.

    Raises:
        InvalidInput: a value is missing, a weight is none, or there are too many classes.
        TooLarge: there are too many groups.
        EngineError: there is no room for the rows.
    """
    kinds = [_kind(schema.field(name).type) for name in labels]
    coded = [LabelCodes(name, kind) for name, kind in zip(labels[:2], kinds, strict=False)]
    by = [_TRUTH, _PREDICTED, _GROUP][: len(labels)]
    own = [pa.int32(), pa.int32(), *kinds[2:], *([] if weight is None else [pa.float64()])]
    taken = pa.schema([*zip([*by, *([] if weight is None else [_WEIGHT])], own, strict=True)])

    def canonical() -> Iterator[pa.RecordBatch]:
        before = 0
        for batch in batches:
            for name in dict.fromkeys([*labels, *([] if weight is None else [weight])]):
                refuse_missing(pa.chunked_array([batch.column(name)]), name, before)
            columns = [one.of(batch.column(name)) for one, name in zip(coded, labels, strict=False)]
            columns += [batch.column(name).cast(kind) for name, kind in zip(labels[2:], kinds[2:], strict=True)]
            if weight is not None:
                columns.append(_weights(batch.column(weight), before))
            before += batch.num_rows
            yield pa.RecordBatch.from_arrays(columns, schema=taken)

    rows = engine.take(taken, canonical())
    if _GROUP in by:
        _, n_groups = rows.coded(_GROUP, into="place")
        if n_groups > MOST_GROUPS:
            raise TooLarge(f"expected at most {MOST_GROUPS} groups, got {n_groups}", pointer="/data")
    weighed, ends = {"times": "1"}, {}
    if weight is not None:
        weighed |= {"used": "(weight > 0)::INT", _WEIGHT: _WEIGHT, "squares": "weight * weight"}
        ends = {"lightest": "nullif(weight, 0)", "heaviest": "-nullif(weight, 0)"}
    found = dict(rows.totals(by, weighed, ends))
    values = [one.values.take(pa.array(found[name].astype(np.int64))) for one, name in zip(coded, by, strict=False)]
    values += [pa.array(found[name], kind) for name, kind in zip(by[2:], kinds[2:], strict=True)]
    table = pa.table(values, [*by])
    order = pc.sort_indices(table, [(name, "ascending") for name in by])
    # Actual and predicted classes may be one column.
    table = pa.table(dict(zip(labels, table.take(order).columns, strict=True)))
    tally = Tally(found["times"].astype(np.int64))
    if weight is not None:
        sums = WeightSums(found["squares"], found["used"].astype(np.int64), found["lightest"], -found["heaviest"])
        tally = Tally(tally.times, sums)
        table = table.append_column(weight, pa.array(found[_WEIGHT]).take(order))
    return table, tally.taken(order.to_numpy())


def _kind(kind: pa.DataType) -> pa.DataType:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.large_string() if is_text(kind) else kind


def _weights(column: pa.Array, before: int) -> pa.Array:
    """Weights as doubles; ``before`` rows of others come first.

    Raises:
        InvalidInput: one is below 0, not finite or too large.
    """
    weights = column.cast(_kind(column.type)).cast(pa.float64(), safe=False)
    values = weights.to_numpy(zero_copy_only=False)
    bad = ~np.isfinite(values) | (values < 0)
    if bad.any():
        index = int(np.argmax(bad))
        raise InvalidInput.at(
            "/data",
            "bad_weight",
            f"sample_weight, row {before + index} of those read: expected a finite weight of 0 or more, got "
            f"{values[index]:g}",
        )
    if values.size and values.max() > LARGEST_TOTAL:
        raise InvalidInput.at(
            "/data",
            "total_too_large",
            f"sample_weight: expected entries that sum to at most 2^53, got {values.max():g}",
        )
    return weights
