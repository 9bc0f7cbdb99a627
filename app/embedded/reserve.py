"""Space that is kept for the day the disk is full: Postgres cannot even start again without some."""

import errno
import logging
import os
from pathlib import Path
from typing import Final

# Recovery writes its log to the end of a segment, and then begins the next: 16 MiB each.
RESERVE_BYTES: Final = 64 * 1024 * 1024
NAME: Final = "reserve"

_log = logging.getLogger("prevail.embedded")


def free_bytes(folder: Path) -> int:
    """What an ordinary user may still write to the file system of a folder."""
    state = os.statvfs(folder)
    return state.f_bavail * state.f_frsize


def keep_reserve(home: Path) -> None:
    """Take the reserve, unless it is taken, or there would not be as much again left beside it."""
    path = home / NAME
    if path.exists() or free_bytes(home) < 2 * RESERVE_BYTES:
        return
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
            _fill(file.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise


def release_reserve(home: Path) -> None:
    """Give the reserve back to the file system when that is as good as full."""
    if free_bytes(home) < RESERVE_BYTES and (home / NAME).exists():
        (home / NAME).unlink()
        _log.error("no space left in %s: its reserve of %d MiB was released", home, RESERVE_BYTES >> 20)


def _fill(descriptor: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
        return
    for _ in range(RESERVE_BYTES >> 20):
        os.write(descriptor, bytes(1 << 20))
