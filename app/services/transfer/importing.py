"""Files into a project."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from app.services.ports import Archive, ArchiveConflictError, ArchiveKind
from app.services.transfer.files import (
    EVALUATIONS,
    ColumnReader,
    Manifest,
    TransferError,
    digest_of,
    read_evaluation,
    read_manifest,
)

# In one transaction: it takes some tens of milliseconds.
_AT_ONCE: Final = 100
_MOST_BYTES: Final = 8 << 20
# What reading a line raises that nobody of ours wrote.
_NOT_OURS: Final = (AttributeError, KeyError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Importer:
    """Reads an export into a project. What is there already stays as it is: asked again, nothing is there twice.

    Attributes:
        archive: Where it is kept.
        tell: Is told after each file how far it is.
    """

    archive: Archive
    tell: Callable[[str], None] = lambda _: None

    async def bring_in(self, folder: Path, project: str | None = None) -> Mapping[str, int]:
        """Import all of an export, into the project that it is of unless another is named; returns how much of each
        kind was not there before.

        Raises:
            TransferError: there is no export, or none that is whole, or a file is not what was exported.
        """
        manifest = read_manifest(folder)
        if manifest is None:
            raise TransferError(f"expected an export in {folder}, there is no manifest")
        if not manifest.complete:
            raise TransferError(f"the export in {folder} has broken off: run `prevail export` again, it goes on")
        _check_files(manifest, folder)
        into = project or manifest.project
        added = {EVALUATIONS: await self._evaluations(manifest, folder, into)}
        for kind in ArchiveKind:
            added[kind.value] = await self._answers(kind, manifest, folder, into)
        return added

    async def _evaluations(self, manifest: Manifest, folder: Path, project: str) -> int:
        """The evaluations with their samples; returns how many were not there before."""
        added = 0
        column = ColumnReader(folder / part.samples for part in manifest.parts if part.samples is not None)
        for part in manifest.of(EVALUATIONS):
            for lines in _pieces(folder / part.file):
                try:
                    found = [read_evaluation(line) for line in lines]
                except _NOT_OURS as error:
                    raise TransferError(f"expected evaluations in {part.file}, got something else: {error}") from error
                added += await self.archive.add_evaluations(project, found, column)
            self.tell(f"{part.file}: {added} evaluations added")
        return added

    async def _answers(self, kind: ArchiveKind, manifest: Manifest, folder: Path, project: str) -> int:
        """What is kept whole of one kind; returns how much of it was not there before."""
        added = 0
        for part in manifest.of(kind.value):
            for lines in _pieces(folder / part.file):
                try:
                    rows: list[Mapping[str, Any]] = [orjson.loads(line) for line in lines]
                    added += await self.archive.add_answers(kind, project, rows)
                except ArchiveConflictError as error:
                    raise TransferError(f"{error}; import into another project, or remove it") from error
                except _NOT_OURS as error:
                    raise TransferError(f"expected {kind} in {part.file}, got something else: {error}") from error
        return added


def _check_files(manifest: Manifest, folder: Path) -> None:
    """Before anything is kept: every file is what was exported."""
    for part in manifest.parts:
        for name, digest in ((part.file, part.sha256), (part.samples, part.samples_sha256)):
            if name is None:
                continue
            path = folder / name
            if path.parent != folder or not path.is_file():
                raise TransferError(f"expected the file {name} of the manifest, it is not there")
            if digest_of(path) != digest:
                raise TransferError(f"{name} is not the file that was exported: its SHA-256 is another")


def _pieces(path: Path) -> Iterator[list[bytes]]:
    """The lines of a file, some at a time and not too many bytes."""
    piece: list[bytes] = []
    size = 0
    with path.open("rb") as file:
        for line in file:
            piece.append(line)
            size += len(line)
            if len(piece) >= _AT_ONCE or size >= _MOST_BYTES:
                yield piece
                piece, size = [], 0
    if piece:
        yield piece
