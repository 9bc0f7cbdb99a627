"""Columns of numbers in a file."""

import os
from collections.abc import Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np

from app.kernel.numerics.arrays import Array

# How names of such files end.
SPOOL = ".spool"
# Rows that are read together, so that they stay in the cache.
BLOCK = 1 << 16


class Spool(Mapping[Hashable, Array]):
    """Columns in a file, read whole one by one, or some rows of all at a time from either end; the file goes with this.

    It is made of the columns of some rows by name, one part after another.
    """

    def __init__(self, parts: Iterable[Iterable[tuple[Hashable, Array]]], folder: Path) -> None:
        self.n_rows, self._folder = 0, folder
        self._file: Any = NamedTemporaryFile(dir=folder, suffix=SPOOL, delete=False)  # noqa: SIM115 - closed with this
        # Where columns of a part begin, of which type, and how many rows they have.
        self._parts: list[dict[Hashable, tuple[int, np.dtype[Any], int]]] = []
        for part in parts:
            places = {}
            for name, column in part:
                places[name] = self._file.tell(), column.dtype, column.size
                self._file.write(np.ascontiguousarray(column).data)
            self._parts.append(places)
            self.n_rows += max((size for _, _, size in places.values()), default=0)
        self._file.flush()

    def __del__(self) -> None:
        self._file.close()
        # The folder may be gone already.
        Path(self._file.name).unlink(missing_ok=True)

    def batches(self, *, back: bool = False) -> Iterator[dict[str, Array]]:
        """The rows as they came, or from the last one to the first, in small batches."""
        step = -1 if back else 1
        for part in self._parts[::step]:
            size = max(size for _, _, size in part.values())
            for start in range(0, size, BLOCK)[::step]:
                yield {str(name): self._read(place, start, start + BLOCK)[::step] for name, place in part.items()}

    def taken(self, chosen: Any) -> "Spool":
        """The columns of some rows (m), in this order."""
        return Spool([((name, self[name].take(chosen)) for name in self)], self._folder)

    def _read(self, place: tuple[int, np.dtype[Any], int], start: int, stop: int) -> Array:
        begin, kind, size = place
        count = min(stop, size) - start
        # Several threads read beside each other.
        read = os.pread(self._file.fileno(), count * kind.itemsize, begin + start * kind.itemsize)
        return np.frombuffer(read, kind)

    def __getitem__(self, name: Hashable) -> Array:
        places = [part[name] for part in self._parts]
        found, start = np.empty(self.n_rows, places[0][1]), 0
        for place in places:
            found[start : start + place[2]] = self._read(place, 0, self.n_rows)
            start += place[2]
        return found

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._parts[0])

    def __len__(self) -> int:
        return len(self._parts[0])
