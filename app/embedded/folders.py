"""Folders, files and locks: who may enter, read and write what."""

import contextlib
import fcntl
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from app.embedded.accounts import EmbeddedPostgresError, ServerUser

# Folders that root can make and everyone can reach; the first that works is taken.
REACHABLE_ROOTS: tuple[Path, ...] = (Path("/var/lib/prevail"), Path("/var/tmp/prevail"))  # noqa: S108 - checked below


def reachable_root(user: ServerUser) -> Path:
    """A folder that belongs to root, that nobody else can write and `user` can enter.

    Raises:
        EmbeddedPostgresError: none of `REACHABLE_ROOTS` is such a folder.
    """
    for root in REACHABLE_ROOTS:
        with contextlib.suppress(OSError):
            if not root.exists():
                make_folder(root, 0o755)
            state = root.lstat()
            closed = stat.S_ISDIR(state.st_mode) and state.st_uid == 0 and not state.st_mode & 0o022
            if closed and user.reaches(root):
                return root
    raise EmbeddedPostgresError(
        f"none of {', '.join(map(str, REACHABLE_ROOTS))} is a folder of root's that others can enter but not write; "
        "clone to a place that is open to others, start the service as an ordinary user, or set PREVAIL_DATABASE_URL"
    )


def make_folder(path: Path, mode: int) -> None:
    """Make a folder of exactly this mode, whatever the umask, unless it is there; its parents get the usual mode."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    # Named when it is as it should be: nobody else may find it closed and draw conclusions.
    partial = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    partial.chmod(mode)
    try:
        partial.rename(path)
    except OSError:
        partial.rmdir()
        if not path.is_dir():
            raise


def write_private(path: Path, text: str, owner: ServerUser | None = None) -> None:
    """Write a 0600 file at once and whole, for `owner` if given."""
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        if owner is not None:
            owner.take_over(file.fileno())
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def open_lock(path: Path) -> IO[str]:
    """Open a lock file of ours; it is never removed, since another process may be about to lock it."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+")


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file, waiting for it."""
    with open_lock(path) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def choose_home(data_dir: Path, user: ServerUser) -> Path:
    """The folder for the server's files: `data_dir` itself, or one in reach of `user` that `data_dir/location` names.

    Raises:
        EmbeddedPostgresError: there is a cluster in `data_dir`, but `user` cannot reach it any more.
    """
    # The service and the server's user must pass; for the rest of the machine only the names are closed.
    make_folder(data_dir, 0o700 if user.account is None else 0o711)
    if user.account is None:
        return data_dir
    note = data_dir / "location"
    # Locked, so that two first starts at once agree on one place.
    with locked(data_dir / "location.lock"):
        if note.exists():
            home = Path(note.read_text().strip())
            if home.parent not in REACHABLE_ROOTS or not re.fullmatch(r"data-[0-9a-f]{32}", home.name):
                raise EmbeddedPostgresError(f"{note} names {home}, which is no folder this service made")
        elif user.reaches(data_dir):
            return data_dir
        elif (data_dir / "cluster").exists():
            raise EmbeddedPostgresError(
                f"{data_dir} holds a database, but the user {user.account.pw_name}, as whom the server runs, "
                f"cannot enter it any more; open its parent folders to others again (chmod o+x)"
            )
        else:
            home = reachable_root(user) / f"data-{secrets.token_hex(16)}"
            write_private(note, f"{home}\n")
        make_folder(home, 0o711)
    return home
