"""Columns of numbers in files."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import numpy as np

from app.kernel.numerics.arrays import Array

# How names of the folders of such files end.
SPOOL = ".spool"
# Rows that are read together, so that they stay in the cache.
BLOCK = 1 << 16


class Spool(Mapping[Hashable, Array]):
    """Columns in files, read whole one by one, or some rows of all at a time from either end; the files go with this.

    It is made of the columns of some rows by name, one part after another.
    """

    def __init__(self, parts: Iterable[Iterable[tuple[Hashable, Array]]], folder: Path) -> None:
        self._folder, self._own = folder, TemporaryDirectory(dir=folder, suffix=SPOOL, ignore_cleanup_errors=True)
        self.n_rows, self._columns = 0, dict[Hashable, tuple[Path, np.dtype[Any]]]()
        files: dict[Hashable, BinaryIO] = {}
        with ExitStack() as opened:
            for part in parts:
                size = 0
                for name, column in part:
                    if name not in files:
                        path = Path(self._own.name) / str(len(files))
                        self._columns[name] = path, column.dtype
                        files[name] = opened.enter_context(path.open("wb"))
                    files[name].write(np.ascontiguousarray(column).data)
                    size = column.size
                self.n_rows += size

    def batches(self, *, back: bool = False) -> Iterator[dict[str, Array]]:
        """The rows as they came, or from the last one to the first, in small batches."""
        step = -1 if back else 1
        for start in range(0, self.n_rows, BLOCK)[::step]:
            yield {
                str(name): np.fromfile(path, kind, BLOCK, offset=start * kind.itemsize)[::step]
                for name, (path, kind) in self._columns.items()
            }

    def taken(self, chosen: Any) -> "Spool":
        """The columns of some rows (m), in this order."""
        return Spool([((name, self[name].take(chosen)) for name in self)], self._folder)

    def __getitem__(self, name: Hashable) -> Array:
        return np.fromfile(*self._columns[name])

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)
