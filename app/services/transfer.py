"""Projects as files: exported, imported, and their stored values checked against their stored inputs."""

import math
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from app.domain.errors import DomainError
from app.domain.evaluation import DatasetRef, EvaluationRecord, ModelRef
from app.domain.identifiers import read_id
from app.domain.inputs.attributes import Attributes
from app.domain.inputs.clustering import Clustering
from app.domain.inputs.content import Content
from app.domain.inputs.kinds import shape_of
from app.domain.inputs.samples import Samples
from app.kernel.matrix.table import confusion_counts
from app.services.ports import Archive, ArchiveConflictError, Archived, ArchiveKind, SampleColumn

# Values come from the same arithmetic, by whatever build of numpy: what differs by more has another cause.
_RELATIVE, _ABSOLUTE = 1e-9, 1e-12
_AT_ONCE: Final = 200

Values = Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Recomputed:
    """Values of an evaluation as this release computes them.

    Attributes:
        values: Empty where they cannot be computed.
        revision: Of the catalogue, for that kind of input.
        refused: Why they cannot be computed.
    """

    values: Values
    revision: str
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """A stored value that does not follow from the stored input: that of a metric, the `counts` or the `samples`."""

    evaluation: UUID
    what: str
    reason: str

    def __str__(self) -> str:
        """Return it in one line."""
        return f"{self.evaluation}  {self.what}: {self.reason}"


@dataclass(slots=True)
class Verdict:
    """Result of checking a project.

    Attributes:
        evaluations: How many were looked at.
        values: How many of their values.
        of_earlier_catalogue: Evaluations whose values differ and were stored by another revision of the catalogue: a
            definition was mended since.
        wrong: How many evaluations have something that does not follow.
    """

    evaluations: int = 0
    values: int = 0
    of_earlier_catalogue: int = 0
    wrong: int = 0


@dataclass(frozen=True, slots=True)
class Checker:
    """Computes every stored value again from the stored input; `recompute` is given evaluations with their samples."""

    archive: Archive
    recompute: Callable[[Sequence[EvaluationRecord]], Sequence[Recomputed]]

    async def check(self, project: str, tell: Callable[[Discrepancy], None]) -> Verdict:
        """Look at all evaluations of a project; `tell` is told of everything that does not follow."""
        verdict = Verdict()
        async for found in self._read(project):
            checked = []
            for one in found:
                samples, missing = await self._samples(project, one)
                if missing is None:
                    checked.append(replace(one.record, samples=samples))
                elif await _is_there(self.archive, project, one):
                    verdict.wrong += 1
                    verdict.evaluations += 1
                    tell(missing)
            for record, again in zip(checked, self.recompute(checked), strict=True):
                verdict.evaluations += 1
                verdict.values += len(record.values)
                self._judge(record, again, verdict, tell)
        return verdict

    async def _read(self, project: str) -> AsyncIterator[Sequence[Archived]]:
        newest = await self.archive.newest(project)
        after = UUID(int=0)
        while newest is not None:
            found = await self.archive.evaluations(project, after, newest, _AT_ONCE)
            if not found:
                break
            plain = [one for one in found if not one.columns]
            yield plain
            for one in found:
                # One at a time: samples can be large.
                if one.columns:
                    yield [one]
            after = found[-1].record.id

    async def _samples(self, project: str, one: Archived) -> tuple[Samples | None, Discrepancy | None]:
        if not one.columns:
            return None, None
        columns: dict[bytes, NDArray[Any]] = {}
        async for group in self.archive.columns(project, sorted(set(one.columns.values()))):
            columns |= {digest: column.values for digest, column in group.items()}
        absent = [name for name, digest in one.columns.items() if digest not in columns]
        if absent:
            reason = f"the column {absent[0]} is not there"
            return None, Discrepancy(one.record.id, "samples", reason)
        parts: dict[str, Any] = {name: columns[digest] for name, digest in one.columns.items()}
        if "attributes" in parts:
            parts["attributes"] = Attributes.of_column(parts["attributes"])
        return Samples(**parts, fold_sizes=one.fold_sizes), None

    def _judge(
        self, record: EvaluationRecord, again: Recomputed, verdict: Verdict, tell: Callable[[Discrepancy], None]
    ) -> None:
        found = [*_of_counts(record), *_of_values(record, again)]
        if not found:
            return
        if record.revision != again.revision and all(each.what in record.values for each in found):
            verdict.of_earlier_catalogue += 1
            return
        verdict.wrong += 1
        for each in found:
            tell(each)


async def _is_there(archive: Archive, project: str, one: Archived) -> bool:
    """Return False of an evaluation that was removed since it was read."""
    identifier = one.record.id
    return bool(await archive.evaluations(project, UUID(int=identifier.int - 1), identifier, 1))


def _of_values(record: EvaluationRecord, again: Recomputed) -> Iterator[Discrepancy]:
    if again.refused is not None:
        yield Discrepancy(record.id, "values", f"they cannot be computed: {again.refused}")
        return
    for key, stored in record.values.items():
        if key not in again.values:
            yield Discrepancy(record.id, key, f"stored {_shown(stored)}, does not apply")
        elif not _same(stored, again.values[key]):
            yield Discrepancy(record.id, key, f"stored {_shown(stored)}, computed {_shown(again.values[key])}")
    if record.revision == again.revision:
        for key in sorted(again.values.keys() - record.values.keys()):
            yield Discrepancy(record.id, key, f"not stored, computed {_shown(again.values[key])}")


def _of_counts(record: EvaluationRecord) -> Iterator[Discrepancy]:
    """A matrix of classes is that of its samples, and the sum of its folds."""
    samples = record.samples
    if record.fold_counts is not None and not np.allclose(record.fold_counts.sum(axis=0), record.counts):
        yield Discrepancy(record.id, "counts", "they are not the sum of the folds")
    if samples is not None and record.task is None:
        counts = confusion_counts(samples.truth, samples.predicted, record.n_classes, samples.weights)
        if not np.allclose(counts, record.counts):
            yield Discrepancy(record.id, "counts", "they are not those of the samples")


def _same(stored: float | None, now: float | None) -> bool:
    if stored is None or now is None:
        return stored is now
    return math.isclose(stored, now, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE)


def _shown(value: float | None) -> str:
    return "undefined" if value is None else repr(value)


FORMAT: Final = "prevail-export"
# Raised when a reader of the version before could not read it.
VERSION: Final = 2
# In which clusterings are whole tables.
_WHOLE_TABLES: Final = 1
MANIFEST: Final = "manifest.json"
EVALUATIONS: Final = "evaluations"
_UNFINISHED: Final = ".unfinished"


class TransferError(DomainError):
    """An export or an import cannot be done; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class FilePart:
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
    """Scope of an export, and its finished files.

    Attributes:
        newest: The newest evaluation when it began; later ones are no part of it. None when there was none.
        done: Kinds of which all is there.
        version: Of the format.
    """

    project: str
    newest: UUID | None
    begun_at: str
    parts: list[FilePart] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    complete: bool = False
    version: int = VERSION

    def of(self, kind: str) -> list[FilePart]:
        """The files of a kind."""
        return [part for part in self.parts if part.kind == kind]

    def rows(self, kind: str) -> int:
        """Return the number of rows of a kind."""
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
        if found["version"] not in (_WHOLE_TABLES, VERSION):
            raise TransferError(
                f"expected version {VERSION} of the format in {path}, or one before, got {found['version']}: use the "
                "release that wrote it, or a newer one"
            )
        manifest = Manifest(**{name: value for name, value in found.items() if name != "format"})
        manifest.newest = None if manifest.newest is None else UUID(found["newest"])
        manifest.parts = [FilePart(**part) for part in found["parts"]]
        return manifest
    except (KeyError, TypeError, ValueError) as error:
        raise TransferError(f"expected the manifest of an export in {path}, got something else") from error


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Put a manifest into a folder: the one before stays until the new one is whole."""
    content = {"format": FORMAT, **asdict(manifest)}
    _unfinished(folder / MANIFEST).write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))
    publish(folder / MANIFEST)


def _unfinished(path: Path) -> Path:
    """The name of a file until it is whole."""
    return path.with_name(path.name + _UNFINISHED)


def publish(path: Path) -> None:
    """Give a file that is written its name, once it is on disk."""
    with _unfinished(path).open("rb") as file:
        os.fsync(file.fileno())
    _unfinished(path).replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def digest_of(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def write_evaluation(one: Archived) -> bytes:
    """A line, its end included."""
    record = one.record
    line = {
        **{name: getattr(record, name) for name in ("id", "created_at", "model", "dataset")},
        **{name: getattr(record, name) for name in ("tags", "kind", "labels", "positive", "content")},
        "counts": record.counts.tolist(),
        "fold_counts": None if record.fold_counts is None else record.fold_counts.tolist(),
        "options": dict(record.options),
        "extra": dict(record.facts),
        "revision": record.revision,
        "values": {key: _number(value) for key, value in record.values.items()},
        "samples": {name: digest.hex() for name, digest in one.columns.items()} or None,
        "fold_sizes": one.fold_sizes,
        "said_of_samples": record.part,
    }
    return orjson.dumps(line, option=orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE)


def read_evaluation(line: bytes, version: int = VERSION) -> Archived:
    """The reverse of `write_evaluation`, also of lines of a version before.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: the line is none of ours.
    """
    found: Mapping[str, Any] = orjson.loads(line)
    content, labels, extra = Content(found["content"]), tuple(found["labels"]), found["extra"]
    shape = shape_of(found["kind"], len(labels), extra)
    folds, entries = found["fold_counts"], found["counts"]
    if version == _WHOLE_TABLES and found["kind"] == Clustering.kind:
        table = np.array(entries, dtype=np.int64)
        entries = [[*place, table[place]] for place in zip(*np.nonzero(table), strict=True)]
    record = EvaluationRecord(
        **{name: found[name] for name in ("kind", "positive", "tags", "options", "revision")},
        id=read_id(found["id"]),
        model=ModelRef(**found["model"]),
        dataset=DatasetRef(**found["dataset"]),
        labels=labels,
        content=content,
        counts=_counts(entries, content, shape),
        values={key: None if value is None else float(value) for key, value in found["values"].items()},
        fold_counts=None if folds is None else _counts(folds, content, (-1, *shape)),
        facts=extra,
        part=found["said_of_samples"],
    )
    sizes = found["fold_sizes"]
    return Archived(
        record,
        {name: bytes.fromhex(digest) for name, digest in (found["samples"] or {}).items()},
        None if sizes is None else tuple(sizes),
    )


def _number(value: float | None) -> float | str | None:
    # JSON knows no infinities; Python reads these words.
    return value if value is None or math.isfinite(value) else str(value)


def _counts(entries: list[Any], content: Content, shape: tuple[int, ...]) -> NDArray[Any]:
    in_memory = np.int64 if content is Content.counts else np.float64
    return np.array(entries, dtype=in_memory).reshape(shape)


_INTEGERS, _NUMBERS, _TEXTS = "integers", "numbers", "texts"
_TYPES: Final = {_INTEGERS: pa.int64(), _NUMBERS: pa.float64(), _TEXTS: pa.string()}
_MEMBERS: Final = {"i": _INTEGERS, "f": _NUMBERS, "U": _TEXTS}
_SCHEMA: Final = pa.schema(
    [
        ("digest", pa.binary(32)),
        ("shared", pa.bool_()),
        ("shape", pa.list_(pa.int64())),
        *((name, pa.large_list(kind)) for name, kind in _TYPES.items()),
    ]
)
# Groups of columns that a reader remembers: those that many evaluations share come again and again.
_REMEMBERED: Final = 4


class ColumnWriter:
    """Writes columns into a file, which is made with the first of them; ``size`` is their bytes so far."""

    def __init__(self, path: Path) -> None:
        self._path, self.size = path, 0
        self._file: pq.ParquetWriter | None = None

    def add(self, columns: Mapping[bytes, SampleColumn]) -> None:
        """Write some columns by their digests as a group, which is read together."""
        if self._file is None:
            self._file = pq.ParquetWriter(self._path, _SCHEMA, compression="zstd")
        rows: list[dict[str, Any]] = []
        for digest, column in columns.items():
            values = column.values
            flat = {_MEMBERS[values.dtype.kind]: values.reshape(-1)}
            rows.append({"digest": digest, "shared": column.shared, "shape": values.shape, **flat})
            self.size += values.nbytes
        self._file.write_table(pa.Table.from_pylist(rows, _SCHEMA), row_group_size=len(rows))

    def close(self) -> None:
        """Finish the file, if there is one."""
        if self._file is not None:
            self._file.close()


def digests_in(path: Path) -> Iterator[tuple[bytes, int]]:
    """The digests of the columns of a file, each with its row group."""
    file = pq.ParquetFile(path)
    for group in range(file.num_row_groups):
        for digest in file.read_row_group(group, columns=["digest"])["digest"].to_pylist():
            yield digest, group


class ColumnReader:
    """Finds columns in some files by their digests."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._places = {digest: (path, group) for path in paths for digest, group in digests_in(path)}
        self._read = lru_cache(maxsize=_REMEMBERED)(_columns_in)

    def __call__(self, digest: bytes) -> NDArray[Any]:
        """Read one column. Raises TransferError if no file has it."""
        if digest not in self._places:
            raise TransferError(f"expected the column {digest.hex()} of samples in the export, it is not there")
        return self._read(*self._places[digest])[digest]


def _columns_in(path: Path, group: int) -> dict[bytes, NDArray[Any]]:
    table, found = pq.ParquetFile(path).read_row_group(group), {}
    for row in range(table.num_rows):
        name = next(name for name in _TYPES if table[name][row].is_valid)
        values = table[name][row].values
        made = np.array(values.to_pylist(), dtype=np.str_) if name == _TEXTS else values.to_numpy()
        found[table["digest"][row].as_py()] = made.reshape(table["shape"][row].as_py())
    return found


# Of a file: what is lost when an export breaks off.
_MOST_ROWS: Final = 2_000
_MOST_BYTES: Final = 64 << 20
# Answers may have megabytes each.
_ANSWERS_AT_ONCE: Final = 20


@dataclass(frozen=True, slots=True)
class Exporter:
    """Writes all of a project into a folder, or goes on with what was begun there; `tell` is told after each file."""

    archive: Archive
    tell: Callable[[str], None] = lambda _: None

    async def export(self, project: str, folder: Path) -> Manifest:
        """Export until all is there.

        Raises:
            TransferError: something else lies in the folder, or samples are not there that an evaluation has.
        """
        manifest = await self._begin(project, folder)
        if manifest.complete:
            return manifest
        for unfinished in folder.glob(f"*{_UNFINISHED}"):
            unfinished.unlink()
        samples = [folder / part.samples for part in manifest.parts if part.samples is not None]
        written = {digest for path in samples for digest, _ in digests_in(path)}
        for kind in (EVALUATIONS, *ArchiveKind):
            while kind not in manifest.done:
                await self._write_part(kind, manifest, folder, written)
                write_manifest(folder, manifest)
                self.tell(f"{manifest.rows(kind)} {kind}")
        manifest.complete = True
        write_manifest(folder, manifest)
        return manifest

    async def _begin(self, project: str, folder: Path) -> Manifest:
        folder.mkdir(parents=True, exist_ok=True)
        manifest = read_manifest(folder)
        if manifest is None:
            if any(path.suffix != _UNFINISHED for path in folder.iterdir()):
                raise TransferError(f"expected a folder that is empty or has an export, {folder} has something else")
            manifest = Manifest(project, await self.archive.newest(project), datetime.now(UTC).isoformat())
            write_manifest(folder, manifest)
        if manifest.project != project:
            raise TransferError(f"expected an export of {project} in {folder}, got one of {manifest.project}")
        if manifest.version != VERSION and not manifest.complete:
            raise TransferError(
                f"expected an export of version {VERSION} to go on with in {folder}, got one of {manifest.version}: "
                "begin anew in an empty folder"
            )
        return manifest

    async def _write_part(self, kind: str, manifest: Manifest, folder: Path, written: set[bytes]) -> None:
        """Write the next file of a kind, and one with the columns that its evaluations bring and no file before has, as
        far as there are any; the kind is done when nothing is left.
        """
        parts = manifest.of(kind)
        place = parts[-1].last if parts else None
        number = f"{len(parts) + 1:06}"
        path, samples = folder / f"{kind}-{number}.ndjson", folder / f"samples-{number}.parquet"
        content, rows = bytearray(), 0
        with closing(ColumnWriter(_unfinished(samples))) as columns:
            while rows < _MOST_ROWS and len(content) + columns.size < _MOST_BYTES:
                lines, last = await self._next(kind, manifest, place, columns, written)
                if last is None:
                    manifest.done.append(kind)
                    break
                content += b"".join(lines)
                rows, place = rows + len(lines), last
        if not rows:
            _unfinished(samples).unlink(missing_ok=True)
            return
        part = FilePart(kind, path.name, rows, place, sha256(content).hexdigest())
        if columns.size:
            publish(samples)
            part = replace(part, samples=samples.name, samples_sha256=digest_of(samples))
        _unfinished(path).write_bytes(content)
        publish(path)
        manifest.parts.append(part)

    async def _next(
        self, kind: str, manifest: Manifest, place: Any, columns: ColumnWriter, written: set[bytes]
    ) -> tuple[list[bytes], Any]:
        """Read the next lines of a kind behind a place, and the place of the last of them, None behind the end; write
        the columns that no evaluation before had.
        """
        if kind != EVALUATIONS:
            rows = await self.archive.answers(ArchiveKind(kind), manifest.project, place, _ANSWERS_AT_ONCE)
            lines = [orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows]
            return lines, rows[-1]["place"] if rows else None
        if manifest.newest is None:
            return [], None
        after = UUID(int=0) if place is None else UUID(place)
        found = await self.archive.evaluations(manifest.project, after, manifest.newest, _AT_ONCE)
        wanted = {digest for one in found for digest in one.columns.values()} - written
        async for group in self.archive.columns(manifest.project, sorted(wanted)):
            columns.add(group)
            written.update(group)
        lines = []
        for one in found:
            if written.issuperset(one.columns.values()):
                lines.append(write_evaluation(one))
            elif await _is_there(self.archive, manifest.project, one):
                raise TransferError(
                    f"the samples of {one.record.id} are not all there: `prevail check` names every such evaluation; "
                    "remove it and export again"
                )
        return lines, str(found[-1].record.id) if found else None


# In one transaction: it takes some tens of milliseconds.
_LINES_IN_A_PIECE: Final = 100
_BYTES_IN_A_PIECE: Final = 8 << 20
# What reading a line raises that nobody of ours wrote.
_NOT_OURS: Final = (AttributeError, KeyError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Importer:
    """Reads an export into a project. What is there already stays as it is: asked again, nothing is there twice."""

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
        column = ColumnReader(folder / part.samples for part in manifest.parts if part.samples is not None)
        added = dict.fromkeys((EVALUATIONS, *(kind.value for kind in ArchiveKind)), 0)
        for kind in added:
            for part in manifest.of(kind):
                for lines in _pieces(folder / part.file):
                    added[kind] += await self._add(part, manifest.version, lines, column, project or manifest.project)
                self.tell(f"{part.file}: {added[kind]} {kind} added")
        return added

    async def _add(
        self, part: FilePart, version: int, lines: Sequence[bytes], column: ColumnReader, project: str
    ) -> int:
        """Add what some lines of a file say; returns how much of it was not there before."""
        try:
            if part.kind != EVALUATIONS:
                rows = [orjson.loads(line) for line in lines]
                return await self.archive.add_answers(ArchiveKind(part.kind), project, rows)
            found = [read_evaluation(line, version) for line in lines]
        except ArchiveConflictError as error:
            raise TransferError(f"{error}; import into another project") from error
        except _NOT_OURS as error:
            raise TransferError(f"expected {part.kind} in {part.file}, got something else: {error}") from error
        return await self.archive.add_evaluations(project, found, column)


def _check_files(manifest: Manifest, folder: Path) -> None:
    """Check, before anything is stored, that every file is the one that was exported."""
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
            if len(piece) >= _LINES_IN_A_PIECE or size >= _BYTES_IN_A_PIECE:
                yield piece
                piece, size = [], 0
    if piece:
        yield piece
