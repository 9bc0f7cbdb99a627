"""Who the server runs as."""

import contextlib
import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

SERVER_USERS: Final = ("postgres", "nobody")


class EmbeddedPostgresError(RuntimeError):
    """The embedded server cannot be had; the message says why and what to do."""


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
        """Whether this user can read a file, or enter a folder."""
        # Asked as the user: mode bits alone would miss access lists and mount options.
        question = 'if [ -d "$1" ]; then cd "$1"; else [ -r "$1" ]; fi'
        return self.run("/bin/sh", "-c", question, "sh", path).returncode == 0

    def take_over(self, target: Path | int) -> None:
        """Give a folder, or the file of a descriptor, to this user."""
        if self.account is not None:
            os.chown(target, self.account.pw_uid, self.account.pw_gid)
