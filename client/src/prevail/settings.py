"""Address and key of the service: the arguments, else the environment, else a file of the user's.

The file is ``prevail/config.toml`` in ``XDG_CONFIG_HOME`` or ``~/.config``; ``prevail login`` writes it, for its owner
alone. It has an address, and keys by the address that each is for: a key is never sent anywhere else.
"""

import json
import os
import stat
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from prevail.errors import InvalidInput, NotAllowed

DEFAULT_URL: Final = "http://127.0.0.1:8000"
USUAL: Final = "the usual one"
_FOR_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def path() -> Path:
    """Return the path of the file, whether or not it exists."""
    home = os.environ.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "prevail" / "config.toml"


@dataclass(frozen=True, slots=True)
class Kept:
    """Contents of the user's file.

    Attributes:
        url: The address that is meant when none is given.
        keys: By address.
    """

    url: str | None = None
    keys: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """Return the contents of the file; texts of JSON are texts of TOML too."""
        lines = ["# Written by `prevail login`: keys are secrets.", ""]
        lines += [] if self.url is None else [f"url = {json.dumps(self.url)}", ""]
        lines += ["[keys]", *(f"{json.dumps(url)} = {json.dumps(key)}" for url, key in self.keys.items())]
        return "\n".join(lines) + "\n"


def kept() -> Kept:
    """Read the user's file; empty if there is none.

    Raises:
        NotAllowed: it has keys, and others can read it.
        InvalidInput: it cannot be understood.
    """
    file = path()
    try:
        with file.open("rb") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            found = _understood(tomllib.load(opened))
    except (FileNotFoundError, NotADirectoryError):
        return Kept()
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}", code="config") from error
    if found.keys and mode & _FOR_OTHERS and os.name == "posix":
        raise NotAllowed(
            f"others can read {file}, which has keys: make it yours alone (chmod 600), and change the keys if somebody "
            "else is on this machine",
            code="config_readable",
        )
    return found


def _understood(found: Mapping[str, Any]) -> Kept:
    url, keys = found.get("url"), found.get("keys", {})
    if not isinstance(url, str | None) or not isinstance(keys, dict):
        raise ValueError('expected url = "..." and a table [keys]')
    if not all(isinstance(one, str) for one in keys.values()):
        raise ValueError("expected a text for each of [keys]")
    return Kept(None if url is None else normal(url), {normal(one): key for one, key in keys.items()})


def keep(found: Kept) -> None:
    """Write the file, readable by its owner alone from its first byte on.

    Raises:
        InvalidInput: it cannot be written.
    """
    file = path()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Beside it and then in its place, so that nobody ever reads half of it; made with mode 600.
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=".config-")
        with os.fdopen(handle, "w", encoding="utf-8") as opened:
            opened.write(found.text())
        Path(name).replace(file)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written: {error.strerror or error}", code="config") from error


def normal(url: str) -> str:
    """An address without what makes no difference."""
    return url.strip().rstrip("/")


@dataclass(frozen=True, slots=True)
class Found:
    """An address and a key, each with where it comes from."""

    url: str
    url_from: str
    key: str | None = None
    key_from: str = ""


def found(url: str | None, key: str | None) -> Found:
    """Address and key: what is given, the environment, the file, and the address of this machine.

    Raises:
        NotAllowed, InvalidInput: the file is needed and cannot be used.
    """
    address, address_from = url or os.environ.get("PREVAIL_URL"), "given" if url else "PREVAIL_URL"
    secret, secret_from = key or os.environ.get("PREVAIL_API_KEY"), "given" if key else "PREVAIL_API_KEY"
    if address and secret:
        return Found(normal(address), address_from, secret, secret_from)
    file = kept()
    if not address:
        address, address_from = (file.url, str(path())) if file.url else (DEFAULT_URL, USUAL)
    address = normal(address)
    if not secret:
        secret, secret_from = file.keys.get(address), str(path())
    return Found(address, address_from, secret, secret_from if secret else "")
