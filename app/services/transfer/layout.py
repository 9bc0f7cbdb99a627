"""How a project lies in files: docs/export.md.

A folder with `manifest.json`, which names the files that are whole. What it does not name is not there: an export that
broke off goes on after the last file of the manifest.
"""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import orjson

FORMAT: Final = "prevail-export"
# Raised when a reader of the version before could not read it.
VERSION: Final = 1
MANIFEST: Final = "manifest.json"
EVALUATIONS: Final = "evaluations"


class TransferError(Exception):
    """An export or an import cannot be done; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Part:
    """One file that is whole.

    Attributes:
        kind: `evaluations`, `comparisons`, `gates` or `checks`.
        last: Place of its last row: where to go on.
        samples: The file with the columns that its evaluations have and no file before; None when there are none.
    """

    kind: str
    file: str
    rows: int
    last: Any
    sha256: str
    samples: str | None = None
    samples_sha256: str | None = None


@dataclass(slots=True)
class Manifest:
    """What an export is of, and the files that are whole.

    Attributes:
        newest: The newest evaluation when it began; later ones are no part of it. None when there was none.
        done: Kinds of which all is there.
    """

    project: str
    newest: UUID | None
    begun_at: str
    parts: list[Part] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    complete: bool = False

    def of(self, kind: str) -> list[Part]:
        """The files of a kind."""
        return [part for part in self.parts if part.kind == kind]

    def rows(self, kind: str) -> int:
        """How many rows of a kind there are."""
        return sum(part.rows for part in self.of(kind))


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder; None when it has none.

    Raises:
        TransferError: it is not one of ours, or one of another version.
    """
    path = folder / MANIFEST
    if not path.exists():
        return None
    try:
        found: Mapping[str, Any] = orjson.loads(path.read_bytes())
        if found["format"] != FORMAT:
            raise KeyError("format")
        if found["version"] != VERSION:
            raise TransferError(
                f"expected version {VERSION} of the format in {path}, got {found['version']}: use the release that "
                "wrote it, or a newer one"
            )
        newest = found["newest"]
        return Manifest(
            project=found["project"],
            newest=None if newest is None else UUID(newest),
            begun_at=found["begun_at"],
            parts=[Part(**part) for part in found["parts"]],
            done=found["done"],
            complete=found["complete"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise TransferError(f"expected the manifest of an export in {path}, got something else") from error


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Put a manifest into a folder: the one before stays until the new one is whole."""
    content = {"format": FORMAT, "version": VERSION, **asdict(manifest)}
    write_whole(folder / MANIFEST, orjson.dumps(content, option=orjson.OPT_INDENT_2))


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that is there whole or not at all."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.write_bytes(content)
    publish(unfinished, path)


def publish(unfinished: Path, path: Path) -> None:
    """Give a file that is written its name, once it is on disk."""
    with unfinished.open("rb") as file:
        os.fsync(file.fileno())
    unfinished.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def digest_of(path: Path) -> str:
    """SHA-256 of a file."""
    found = sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            found.update(piece)
    return found.hexdigest()
