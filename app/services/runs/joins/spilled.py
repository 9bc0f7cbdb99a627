"""What is known of samples by their ids, in files: a part of the ids can be read at a time."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.services.runs.joins.keys import Keys, keys_of

_KINDS: Final = {"integers": pa.int64(), "texts": pa.large_string()}
_ID: Final = "id"
# Labels of a sample as one number.
CODE: Final = "code"
CODES: Final = {CODE: pa.int64()}
Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Samples of one run whose ids belong to one part and are of one kind.

    Attributes:
        ids: (m) integers or texts.
        columns: By name, (m) what is known of each.
    """

    ids: pa.Array
    columns: Columns

    @classmethod
    def of(cls, table: pa.Table) -> Self:
        """From what was written."""
        ids, *names = table.column_names
        return cls(table.column(ids).combine_chunks(), {name: table.column(name).to_numpy() for name in names})


@dataclass(slots=True)
class _File:
    """Blocks of one kind of ids, each of one part.

    Attributes:
        waiting: Ids, columns and parts of samples that are not written yet.
        blocks: Of each part the numbers of its blocks.
        rows: Of each part how many samples are written.
    """

    path: Path
    schema: pa.Schema
    waiting: list[tuple[pa.Array, Columns, NDArray[np.uint16]]] = field(default_factory=list)
    blocks: dict[int, list[int]] = field(default_factory=dict)
    rows: dict[int, int] = field(default_factory=dict)
    writer: Any = None
    written: int = 0

    def flush(self) -> None:
        """Write what waits, sorted by part."""
        if not self.waiting:
            return
        if self.writer is None:
            self.writer = pa.ipc.new_file(str(self.path), self.schema)
        parts = np.concatenate([one[2] for one in self.waiting])
        order = np.argsort(parts, kind="stable")
        ids = pa.concat_arrays([one[0] for one in self.waiting]).take(pa.array(order))
        names = self.schema.names[1:]
        columns = [np.concatenate([one[1][name] for one in self.waiting])[order] for name in names]
        self.waiting.clear()
        batch = pa.record_batch([ids, *map(pa.array, columns)], schema=self.schema)
        present, starts = np.unique(parts[order], return_index=True)
        for part, start, stop in zip(present.tolist(), starts, [*starts[1:], order.size], strict=True):
            self.writer.write_batch(batch.slice(start, stop - start))
            self.blocks.setdefault(part, []).append(self.written)
            self.rows[part] = self.rows.get(part, 0) + int(stop - start)
            self.written += 1

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
            self.writer = None

    def read(self, number: int) -> Iterator[pa.Table]:
        """The blocks of a part."""
        blocks = self.blocks.get(number)
        if blocks:
            with pa.OSFile(str(self.path)) as source:
                reader = pa.ipc.open_file(source)
                for block in blocks:
                    yield pa.Table.from_batches([reader.get_batch(block)], self.schema)

    def part(self, number: int) -> Part | None:
        blocks = [*self.read(number)]
        return Part.of(pa.concat_tables(blocks)) if blocks else None


class SpilledRun:
    """The samples of one run, of which no more than a budget is in memory.

    Args:
        folder: Where files are made; who made it removes it.
        name: Of the files.
        parts: Into how many parts the ids are divided, by a hash of each: at most 2^16.
        budget: Bytes that may wait in memory, about.
        columns: What is known of each sample, by name the type of the numbers.
        divided: Into how many parts all ids were divided before, of which these are one.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        parts: int,
        budget: int,
        columns: Mapping[str, pa.DataType] = CODES,
        divided: int = 1,
    ) -> None:
        self.name, self.n_parts, self.divided = name, parts, divided
        self._budget, self._taken = budget, 0
        self._files = {
            kind: _File(folder / f"{name}-{kind}.arrow", pa.schema([(_ID, ids), *columns.items()]))
            for kind, ids in _KINDS.items()
        }
        self.rows = 0

    def add(self, ids: NDArray[Any], **columns: NDArray[Any]) -> None:
        """Take in samples: their ids (n), and what is known of each (n), by name."""
        self.rows += ids.size
        for file, keys in zip(self._files.values(), keys_of(ids), strict=True):
            self._wait(file, keys, columns)
        if self._taken > self._budget:
            self._flush()

    def _wait(self, file: _File, keys: Keys, columns: Columns) -> None:
        if keys.rows.size:
            chosen = {name: column[keys.rows] for name, column in columns.items()}
            numbers = keys.hashes // np.uint64(self.divided) % np.uint64(self.n_parts)
            file.waiting.append((keys.ids, chosen, numbers.astype(np.uint16)))
            self._taken += keys.ids.nbytes + sum(one.nbytes for one in chosen.values()) + 8 * keys.rows.size

    def _flush(self) -> None:
        for file in self._files.values():
            file.flush()
        self._taken = 0

    def finish(self) -> None:
        """All samples are there: what waits is written."""
        self._flush()
        self.close()

    def part(self, number: int) -> Iterator[Part | None]:
        """The samples of a part, by kind of ids; None where there are none."""
        for file in self._files.values():
            yield file.part(number)

    def blocks(self, number: int) -> Iterator[Part]:
        """The same a block at a time."""
        for file in self._files.values():
            yield from map(Part.of, file.read(number))

    def most_rows(self, number: int) -> int:
        """How many samples the larger kind of ids has in a part, of those that are written."""
        return max(file.rows.get(number, 0) for file in self._files.values())

    def close(self) -> None:
        """Write no more."""
        with ExitStack() as ending:
            for file in self._files.values():
                ending.callback(file.close)
