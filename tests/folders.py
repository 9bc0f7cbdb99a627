"""Folders for the servers that tests start."""

import os
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")  # noqa: S108 - below it a folder of our own is made
_ENOUGH = 4 << 30


def server_folder(name: str) -> Path:
    """A new folder that every user can enter (pytest's own is closed to others).

    In memory where there is room: making a cluster writes 40 MB, and most of its time is that of the disk.
    """
    return _made(MEMORY if _has_room(MEMORY) else None, name)


def _made(place: Path | None, name: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=f"prevail-{name}-", dir=place)).resolve()
    folder.chmod(0o755)
    return folder


def _has_room(place: Path) -> bool:
    """Can servers be kept there, and the programs that some tests copy be run there?"""
    if not os.access(place, os.W_OK):
        return False
    runs_programs = not os.statvfs(place).f_flag & os.ST_NOEXEC
    return runs_programs and shutil.disk_usage(place).free >= _ENOUGH
