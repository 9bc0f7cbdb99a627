"""A project into files."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import orjson

from app.services.ports import Archive, Archived, ArchiveKind
from app.services.transfer.files import (
    EVALUATIONS,
    ColumnWriter,
    Manifest,
    Part,
    TransferError,
    digest_of,
    digests_in,
    publish,
    read_manifest,
    write_evaluation,
    write_manifest,
    write_whole,
)

# Of a file: what is lost when an export breaks off.
_MOST_ROWS: Final = 2_000
_MOST_BYTES: Final = 64 << 20
_AT_ONCE: Final = 200
# Answers may have megabytes each.
_ANSWERS_AT_ONCE: Final = 20


@dataclass(frozen=True, slots=True)
class Exporter:
    """Writes all of a project into a folder, or goes on with what was begun there.

    Attributes:
        archive: Where it is read from.
        tell: Is told after each file how far it is.
    """

    archive: Archive
    tell: Callable[[str], None] = lambda _: None

    async def export(self, project: str, folder: Path) -> Manifest:
        """Export until all is there.

        Raises:
            TransferError: something else lies in the folder.
        """
        manifest = await self._begin(project, folder)
        if manifest.complete:
            return manifest
        for unfinished in folder.glob("*.unfinished"):
            unfinished.unlink()
        await self._evaluations(manifest, folder)
        for kind in ArchiveKind:
            await self._answers(kind, manifest, folder)
        manifest.complete = True
        write_manifest(folder, manifest)
        return manifest

    async def _begin(self, project: str, folder: Path) -> Manifest:
        folder.mkdir(parents=True, exist_ok=True)
        manifest = read_manifest(folder)
        if manifest is None:
            if any(folder.iterdir()):
                raise TransferError(f"expected a folder that is empty or has an export, {folder} has something else")
            manifest = Manifest(project, await self.archive.newest(project), datetime.now(UTC).isoformat())
            write_manifest(folder, manifest)
        if manifest.project != project:
            raise TransferError(f"expected an export of {project} in {folder}, got one of {manifest.project}")
        return manifest

    async def _evaluations(self, manifest: Manifest, folder: Path) -> None:
        if EVALUATIONS in manifest.done or manifest.newest is None:
            return
        parts = manifest.of(EVALUATIONS)
        # Those that one evaluation alone has do not come again.
        shared = {
            digest
            for part in parts
            if part.samples is not None
            for digest, _ in digests_in(folder / part.samples, shared=True)
        }
        after = UUID(parts[-1].last) if parts else UUID(int=0)
        while True:
            part = await self._evaluation_part(manifest, folder, after, shared)
            if part is None:
                break
            manifest.parts.append(part)
            write_manifest(folder, manifest)
            after = UUID(part.last)
            self.tell(f"{manifest.rows(EVALUATIONS)} evaluations")
        manifest.done.append(EVALUATIONS)
        write_manifest(folder, manifest)

    async def _evaluation_part(self, manifest: Manifest, folder: Path, after: UUID, shared: set[bytes]) -> Part | None:
        """Write the next file of evaluations, and one with the columns that they bring; None when there are no more."""
        number = len(manifest.of(EVALUATIONS)) + 1
        path, samples = folder / f"evaluations-{number:06}.ndjson", folder / f"samples-{number:06}.parquet"
        unfinished = [one.with_name(f"{one.name}.unfinished") for one in (path, samples)]
        rows = size = 0
        written = sha256()
        own: set[bytes] = set()
        with unfinished[0].open("wb") as file, ColumnWriter(unfinished[1]) as columns:
            while rows < _MOST_ROWS and size + columns.size < _MOST_BYTES:
                found = await self._next(manifest, after)
                if not found:
                    break
                await self._columns_of(manifest.project, found, columns, shared, own)
                for one in found:
                    line = write_evaluation(one)
                    file.write(line)
                    written.update(line)
                    size += len(line)
                rows += len(found)
                after = found[-1].record.id
        if not rows:
            unfinished[0].unlink()
            return None
        has_samples = unfinished[1].exists()
        if has_samples:
            publish(unfinished[1], samples)
        publish(unfinished[0], path)
        return Part(
            kind=EVALUATIONS,
            file=path.name,
            rows=rows,
            last=str(after),
            sha256=written.hexdigest(),
            samples=samples.name if has_samples else None,
            samples_sha256=digest_of(samples) if has_samples else None,
        )

    async def _next(self, manifest: Manifest, after: UUID) -> list[Archived]:
        if manifest.newest is None:
            return []
        return list(await self.archive.evaluations(manifest.project, after, manifest.newest, _AT_ONCE))

    async def _columns_of(
        self, project: str, found: list[Archived], writer: ColumnWriter, shared: set[bytes], own: set[bytes]
    ) -> None:
        """Write the columns of some evaluations that were not written yet."""
        wanted = {digest for one in found for digest in one.columns.values()} - shared - own
        if not wanted:
            return
        async for columns in self.archive.columns(project, sorted(wanted)):
            writer.add(columns)
            shared |= {digest for digest, column in columns.items() if column.shared}
            own |= columns.keys()

    async def _answers(self, kind: ArchiveKind, manifest: Manifest, folder: Path) -> None:
        """Write comparisons, gates or checks."""
        while kind.value not in manifest.done:
            parts = manifest.of(kind.value)
            place: Any = parts[-1].last if parts else None
            lines: list[bytes] = []
            size = 0
            while len(lines) < _MOST_ROWS and size < _MOST_BYTES // 4:
                rows = await self.archive.answers(kind, manifest.project, place, _ANSWERS_AT_ONCE)
                if not rows:
                    manifest.done.append(kind.value)
                    break
                lines += [orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows]
                size += sum(map(len, lines[-len(rows) :]))
                place = rows[-1]["place"]
            if lines:
                path = folder / f"{kind.value}-{len(parts) + 1:06}.ndjson"
                content = b"".join(lines)
                write_whole(path, content)
                manifest.parts.append(Part(kind.value, path.name, len(lines), place, sha256(content).hexdigest()))
            write_manifest(folder, manifest)
            self.tell(f"{manifest.rows(kind.value)} {kind.value}")
