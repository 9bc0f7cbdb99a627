"""Samples and labels that lie in different files, joined by the engine."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from app.domain.errors import InvalidInput
from app.domain.inputs.labels import shown
from app.kernel.streamed.rows import Rows, Table
from app.services.ports import OpenEngine

ON: Final = "/input/data/labels/on"
# Columns of both sides, and of each: places count rows from 0.
ID, PLACE, LABEL_PLACE = "id", "place", "label_place"
Batches = tuple[pa.Schema, Iterable[pa.RecordBatch]]


def joined(engine: OpenEngine, samples: Batches, labels: Batches) -> Iterator[Table]:
    """Yield the columns of both sides in the order of the samples, in batches.

    Args:
        engine: Holds the rows.
        samples: Columns `ID`, `PLACE` and others.
        labels: Columns `ID`, `LABEL_PLACE` and others, whose names samples do not have. One row for each id.

    Raises:
        InvalidInput: an id comes twice, or a sample has no label.
        EngineError: there is no room for the rows.
    """
    here, there = engine.take(*samples), engine.take(*labels)
    _refuse_repeated(here, PLACE, "samples")
    _refuse_repeated(there, LABEL_PLACE, "labels")
    both = here.joined(there, ID).kept()
    found, total = both.n_rows, here.n_rows
    if found < total:
        moved = both.having(nth=f"row_number() OVER (ORDER BY {PLACE}) - 1").where(f"nth <> {PLACE}")
        gap = float(moved.totals((), {}, {"nth": "nth"})["nth"][0])
        first = found if np.isnan(gap) else int(gap)
        raise InvalidInput.at(
            ON,
            "missing_label",
            f"expected a row of the labels for each sample, {total - found} of {total} have none: the first is row "
            f"{first} of those read, with the id {_id_at(here, PLACE, first)}",
        )
    yield from both.ordered(PLACE, columns=[name for name in both.names if name not in (ID, LABEL_PLACE)])


def _refuse_repeated(rows: Rows, place: str, whose: str) -> None:
    twice = rows.distinct(ID).where("n > 1").kept()
    count = twice.n_rows
    if count:
        first = int(rows.joined(twice, ID).totals((), {}, {place: place})[place][0])
        raise InvalidInput.at(
            ON,
            "duplicate_id",
            f"expected each id once, {count} of the {whose} come more than once: the first is "
            f"{_id_at(rows, place, first)}, at row {first} of those read",
        )


def _id_at(rows: Rows, place: str, row: int) -> str:
    found: Any = next(rows.where(f"{place} = {row}").batches(ID))[ID][0]
    return shown(str(found))
