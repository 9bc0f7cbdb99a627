"""Tables of Delta and Iceberg, read by their own libraries: files, versions, and rows without the deleted ones.

Every file that the log of a table names is looked at as if a request had named it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from app.domain.data import DataFile, DataListing, DataTable
from app.domain.errors import InvalidInput

_URI: Final = "/input/data/uri"
_FORMAT: Final = "/input/data/format"
_HINT: Final = "version-hint.text"
METADATA: Final = ".metadata.json"
# Batches of a file that are read ahead.
_AHEAD: Final = 4


def delta_listing(
    location: str,
    version: int | None,
    filesystem: Any,
    options: Mapping[str, str],
    check: Callable[[str], object],
) -> DataListing:
    """The files of a version of a Delta table, the present one where it is None.

    Its folder has the location that its library wants, and is the root of the filesystem; ``options`` are those of the
    store of objects, and ``check`` raises where a path within the folder may not be read.

    Raises:
        InvalidInput: it is none, or needs what its library does not read (deletion vectors, mapped columns).
    """
    deltalake = _library("deltalake")
    import pyarrow as pa

    try:
        table = deltalake.DeltaTable(location, storage_options=dict(options))
        if version is not None:
            # Of a version that is far away its library looks for every file up to it.
            if not 0 <= version <= table.version():
                raise ValueError(f"its versions are 0 to {table.version()}")
            table.load_as_version(version)
        found = table.to_pyarrow_dataset(filesystem=filesystem)
        actions = pa.table(table.get_add_actions()).select(["path", "size_bytes", "modification_time", "num_records"])
    except (deltalake.exceptions.DeltaError, ValueError, OSError) as error:
        raise _unreadable("a Delta table", error) from error
    fragments = {fragment.path.lstrip("/"): fragment for fragment in found.get_fragments()}
    files = []
    for path, fragment in sorted(fragments.items()):
        check(path)
        files.append(DataFile(path, filesystem.get_file_info(fragment.path).size, ""))
    counts = actions["num_records"].to_pylist()

    def batches(path: str, columns: Sequence[str]) -> Iterator[Any]:
        scanner = fragments[path].scanner(schema=found.schema, columns=[*columns], batch_readahead=_AHEAD)
        return iter(scanner.to_batches())

    rows = None if None in counts else sum(counts)
    return DataListing(
        tuple(files), filesystem.open_input_file, DataTable(table.version(), found.schema, rows, batches)
    )


def iceberg_listing(
    location: str, snapshot: int | None, filesystem: Any, place_of: Callable[[str], str]
) -> DataListing:
    """The files of a snapshot of an Iceberg table, the present one where it is None.

    The location is that of its folder, or of a file of its metadata; ``place_of`` makes the path of an address, and
    raises where it may not be read.

    Raises:
        InvalidInput: it is none, or needs what its library does not read.
    """
    _library("pyiceberg")
    from pyiceberg.catalog.noop import NoopCatalog
    from pyiceberg.exceptions import NoSuchTableError, ValidationError
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan, PyArrowFile, PyArrowFileIO
    from pyiceberg.serializers import FromInputFile
    from pyiceberg.table import StaticTable

    io = PyArrowFileIO()
    # Files that may be read, whatever metadata names.
    io.new_input = lambda location: PyArrowFile(location, place_of(location), filesystem)
    try:
        metadata = location if location.endswith(METADATA) else _present(location, io)
        described = FromInputFile.table_metadata(io.new_input(metadata))
        table = StaticTable(("table", metadata), described, metadata, io, NoopCatalog("none"))
        scan = table.scan(snapshot_id=snapshot)
        chosen = scan.snapshot()
        if chosen is None:
            raise ValueError("it has no such snapshot")
        tasks = {task.file.file_path: task for task in scan.plan_files()}
        schema = scan.projection().as_arrow()
    except (ValueError, OverflowError, OSError, NoSuchTableError, ValidationError, NotImplementedError) as error:
        raise _unreadable("an Iceberg table", error) from error

    def batches(path: str, columns: Sequence[str]) -> Iterator[Any]:
        # A file at a time: its library reads all of those that it is given beside each other.
        wanted = scan.select(*columns).projection()
        return iter(ArrowScan(described, io, wanted, AlwaysTrue()).to_record_batches([tasks[path]]))

    found = [tasks[path].file for path in sorted(tasks)]
    deleted = sum(one.record_count for task in tasks.values() for one in task.delete_files)
    rows = None if deleted else sum(one.record_count for one in found)
    files = tuple(DataFile(one.file_path, one.file_size_in_bytes, "") for one in found)
    return DataListing(
        files,
        lambda path: filesystem.open_input_file(place_of(path)),
        DataTable(chosen.snapshot_id, schema, rows, batches),
    )


def _present(folder: str, io: Any) -> str:
    """The metadata that a table without a catalogue takes as the present one."""
    with io.new_input(f"{folder}/metadata/{_HINT}").open() as hint:
        name = hint.read(200).decode().strip()
    if "/" in name:
        raise ValueError(f"{_HINT} names no file of the folder")
    if not name.endswith(METADATA):
        name = f"v{name}{METADATA}" if name.isdigit() else f"{name}{METADATA}"
    return f"{folder}/metadata/{name}"


def _library(name: str) -> Any:
    # Imported when a table is read: not every installation has it.
    try:
        return import_module(name)
    except ImportError:
        detail = f"expected files that are all rows: this installation does not have {name}, which reads such tables"
        raise InvalidInput.at(_FORMAT, "not_installed", detail) from None


def _unreadable(what: str, error: Exception) -> InvalidInput:
    reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
    hint = f" (without {_HINT} name the file of its metadata that ends in {METADATA})" if _HINT in reason else ""
    return InvalidInput.at(_URI, "unreadable_table", f"expected {what} that can be read: {reason}{hint}")
