"""Folders for rows beyond memory: one for each process of the service, gone when it is, however it ended."""

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_PREFIX: Final = "prevail-"
# Held by whoever the folder belongs to: the system lets go of it when the process ends, also when it is killed.
_LOCK: Final = "lock"


@contextmanager
def spill_folder(root: Path) -> Iterator[Path]:
    """A folder of this process below another one, in which those of processes that have ended are removed.

    Raises:
        OSError: nothing can be written there.
    """
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (root / _LOCK).open("a") as starting:
        # One at a time: a folder that was just made is not locked yet.
        fcntl.flock(starting, fcntl.LOCK_EX)
        _sweep(root)
        own = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
        held = (own / _LOCK).open("w")
        fcntl.flock(held, fcntl.LOCK_EX)
    try:
        yield own
    finally:
        shutil.rmtree(own, ignore_errors=True)
        held.close()


def _sweep(root: Path) -> None:
    for folder in root.glob(f"{_PREFIX}*"):
        with suppress(OSError), (folder / _LOCK).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
