"""Data that a request names: its columns, as if they had come in a file with the request."""

import hashlib
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, cast

from app.api.bodies.files.dataset import Columns, Dataset, open_dataset
from app.api.bodies.files.joined import Joined, listing_of
from app.api.bodies.files.table import MOST_ROWS, Mapped, TableFile, bad_file
from app.api.bodies.uploads import columns_of, reading, without_attributes
from app.domain.data import DataEstimate, DataFormat, DataListing, DataReference
from app.domain.errors import BeyondMemory, Fault, InvalidInput, TooLarge, moved_faults
from app.domain.evaluation import ModelRef
from app.domain.identifiers import new_id
from app.domain.inputs.classified import Scores
from app.domain.inputs.content import DataFacts, LabelFacts
from app.domain.inputs.ignored import NothingLeft
from app.domain.inputs.kind import Beyond
from app.domain.inputs.kinds import COLUMNS, KINDS
from app.domain.inputs.labels import listed
from app.domain.inputs.samples import Tally
from app.domain.members import as_json
from app.services.ports import DataSource, Engine, OpenEngine
from app.services.processes.worker import as_step, each_as_step

_DATA: Final = "/input/data"
_JOINED: Final = f"{_DATA}/labels"
LABELS: Final = f"{_JOINED}/data"
_ATTRIBUTES: Final = f"{_DATA}/columns/attributes"
_NAMES: Final = re.compile(r"^/input/columns(/[0-9]+(?=/))?")
_IDS: Final = "sample_id"
_GROUP: Final = "group_id"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for columns of named data.

    Attributes:
        labels: The classes, where they are declared.
        memory_bytes: That columns may take.
        digest: Of the files that it has to be; None where any will do.
        with_ids: Parts have the ids of their rows.
        sliced: Columns have attributes beside them.
        labels_digest: Of the files that are joined, in the same way.
        models: Several models, each with its columns beside those of the reference.
        copy: The file that all rows were written to.
        request: What is asked of the data, as JSON.
    """

    reference: DataReference
    kind: str
    labels: Sequence[str] | None
    memory_bytes: int
    digest: str | None = None
    with_ids: bool = False
    labels_digest: str | None = None
    sliced: bool = False
    models: tuple[tuple[ModelRef, Mapped], ...] = ()
    copy: "Copy | None" = None
    request: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns_by_model(self) -> list[dict[str, str | Sequence[str]]]:
        """All columns that are read, of each model."""
        own = self.reference.columns or {}
        return [{**own, **columns} for _, columns in self.models] or [{**own}]

    @property
    def is_copied(self) -> bool:
        """Are rows written to one file before they are evaluated?"""
        return bool(self.models) or self.reference.labels is not None

    @property
    def counts(self) -> bool:
        """Can rows beyond memory be counted, those that say the same as one entry?"""
        return KINDS[self.kind].beyond is Beyond.COUNTED

    @property
    def streams(self) -> bool:
        """True if rows beyond memory can be streamed: rankings, multilabel, and probabilities or scores with labels,
        unless they are sliced.
        """
        beyond = KINDS[self.kind].beyond
        if self.sliced:
            return False
        return beyond is Beyond.STREAMED or (beyond is Beyond.STREAMED_WITH_LABELS and self.labels is not None)


@dataclass(frozen=True, slots=True)
class Copy:
    """The file that all rows of data were written to.

    Attributes:
        texts: Columns of CSV, whose texts say what they are.
        facts: Of the data.
    """

    listing: DataListing
    texts: frozenset[str]
    facts: DataFacts


@dataclass(frozen=True, slots=True)
class ReadData:
    """Columns that were read.

    Attributes:
        columns: The arrays of the input by their names in the JSON.
        tally: What each entry stands for; None where each is a row.
        before: Rows that came before these.
        part: Are others read apart from these?
    """

    columns: Mapping[str, Any]
    tally: Tally | None
    facts: DataFacts
    before: int = 0
    part: bool = False


def check_data(source: DataSource, asked: Asked) -> None:
    """Check that the columns are there and fit; no row is read.

    Raises:
        DataNotAllowed: a file does not lie where the operator allows it.
        InvalidInput: there are no files, or they do not fit.
    """
    with of_reference():
        if asked.is_copied:
            _Copied.of(source, asked)
        else:
            NamedRows(source, asked)


# Of an evaluation, beside its rows, of each row for each of its columns, and of each row that is joined: measured with
# two processors.
_SECONDS, _ROW_SECONDS, _COUNTED_SECONDS, _JOINED_SECONDS = 1.0, 0.8e-6, 0.15e-6, 1.5e-6


def estimated(source: DataSource, asked: Asked, streamed_from: int) -> DataEstimate:
    """Size of the data and time of an evaluation, of kinds that are streamed from so many rows on; no row is read, but
    for the first ones of CSV. Raises as `check_data`.
    """
    with of_reference():
        if asked.is_copied:
            copied = _Copied.of(source, asked)
            data, (labels, numbers) = copied.joined.here, copied.columns
            files = [file for one in copied.sides for file in one.listing.files]
        else:
            named = NamedRows(source, asked)
            data, (labels, numbers) = named.data, named.columns
            files = [*data.listing.files]
        rows, known = data.rows_about()
        seconds = _SECONDS + rows * len({*labels, *numbers}) * (_COUNTED_SECONDS if asked.counts else _ROW_SECONDS)
        return DataEstimate(
            rows=rows,
            rows_known=known,
            files=len(files),
            bytes=sum(file.size for file in files),
            streamed=rows > streamed_from and (asked.counts or asked.streams),
            seconds=seconds + rows * (_JOINED_SECONDS if asked.is_copied else 0.0),
        )


@dataclass(frozen=True, slots=True)
class _Copied:
    """Data of which some columns are written to one file.

    Attributes:
        named: Columns of each model, as they are in the file.
        columns: Of the file.
    """

    joined: Joined
    named: Sequence[Mapped]
    columns: Columns

    @classmethod
    def of(cls, source: DataSource, asked: Asked) -> "_Copied":
        """Raises as `check_data`: the columns of all models are there and fit; no row is read."""
        reference, labels = asked.reference, asked.reference.labels
        own = asked.columns_by_model
        # One opening for all models: their columns are told apart by their places.
        together = {f"{place}/{ours}": theirs for place, one in enumerate(own) for ours, theirs in one.items()}
        every = replace(asked, reference=replace(reference, columns=together))
        if labels is None:
            joined = Joined(_opened(source, every))
            others: Mapped = {}
        else:
            here = _opened(source, every, labels.on[:1])
            with of_reference(LABELS):
                beside = replace(asked, reference=labels.data, digest=asked.labels_digest)
                there = _opened(source, beside, labels.on[1:])
            joined = Joined(here, there, labels.on, frozenset(reference.attributes.values()))
            for data, name, where in ((here, labels.on[0], _DATA), (there, labels.on[1], LABELS)):
                if name not in data.schema.names:
                    raise InvalidInput.at(where, "missing_column", f"expected a column {name!r} of ids, there is none")
            _check_there(there)
            others = joined.named(there.columns or {})
        whole = joined.whole()
        named: list[Mapped] = []
        found: list[Columns] = []
        for place in range(len(own)):
            mine = {
                key.partition("/")[2]: theirs
                for key, theirs in (joined.here.columns or {}).items()
                if key.partition("/")[0] == str(place)
            }
            both = mine.keys() & others.keys()
            if both:
                detail = (
                    f"expected each column in one place, got {listed(sorted(both))} of the samples and of the labels"
                )
                raise InvalidInput.at(f"{LABELS}/columns", "duplicate_column", detail)
            named.append({**mine, **others})
            found.append(whole.loaded(partial(_columns, asked, named[-1])))
        labels_, numbers = ([*dict.fromkeys(chain.from_iterable(one))] for one in zip(*found, strict=True))
        return cls(joined, named, (labels_, numbers))

    @property
    def sides(self) -> list[Dataset]:
        """Rows, and what is joined to them."""
        return [self.joined.here] if self.joined.there is None else [self.joined.here, self.joined.there]

    def facts(self, reference: DataReference, columns: Mapped, labels: int) -> DataFacts:
        """Facts of the data of one model, of which so many rows were read and joined."""
        here, *there = self.sides
        facts = _facts(replace(reference, columns=columns), here, here.read.rows)
        if reference.labels is not None and there:
            own = _facts(reference.labels.data, there[0], labels)
            matched = {"on": [*reference.labels.on], "unmatched": labels - here.read.rows}
            facts["labels"] = cast(LabelFacts, {**own, **matched})
        return facts


@dataclass(frozen=True, slots=True)
class Reading:
    """Reading of data that requests name.

    Attributes:
        source: Where it lies.
        engine: Joins its rows, and holds those beyond memory.
        folder: Of their files.
        file_bytes: That a file may take to which all rows are written.
    """

    source: DataSource
    engine: Engine
    folder: Path
    file_bytes: int = 1 << 40

    def copied(self, asked: Asked) -> list[Asked]:
        """Write all rows to one file: with the columns that are joined, and those of all models, by one reading.

        Returns:
            For each model what is asked of that file.

        Raises:
            DataNotAllowed, InvalidInput: as `NamedRows.whole`, or ids are missing, doubled or of another type.
            EngineError: the engine has no room for the rows.
        """
        with of_reference():
            found = _Copied.of(self.source, asked)
            file = self.folder / f"{new_id()}.parquet"
            labels = found.joined.written(found.columns, self.engine, self.folder, file, self.file_bytes)
            for data, reference in zip(found.sides, asked.reference.parts, strict=True):
                _check_unchanged(self.source, reference, data)
            listing, texts = listing_of(file), found.joined.whole().texts
            made = []
            for place, (named, columns) in enumerate(zip(found.named, asked.columns_by_model, strict=True)):
                facts = found.facts(asked.reference, columns, labels)
                # The columns that are read now, and no others, are in the file.
                beside = asked.reference.attributes if asked.sliced else {}
                reference = DataReference(asked.reference.uri, DataFormat.PARQUET, named, attributes=beside)
                copy = Copy(listing, texts & {*found.columns[0]}, facts)
                request = {**asked.request, "model": as_json(asked.models[place][0])} if asked.models else asked.request
                made.append(replace(asked, reference=reference, digest=None, models=(), copy=copy, request=request))
            return made

    def at_hand(self, asked: Asked) -> Asked:
        """Return what is asked, of the file that all rows were written to if columns are joined; raises as `copied`."""
        return self.copied(asked)[0] if asked.is_copied else asked


class NamedRows:
    """Rows that a request names, once it is known that their columns are there and fit; none is read yet.

    Attributes:
        columns: Of labels and of numbers.
    """

    def __init__(self, source: DataSource, asked: Asked) -> None:
        """Raises as `check_data`."""
        with of_reference():
            self.source, self.asked, self.data = source, asked, _opened(source, asked)
            self.columns = self.data.loaded(self._picked)

    @property
    def streams(self) -> bool:
        """Can rows beyond memory be streamed?"""
        return self.asked.streams and not self._has_one_score

    def whole(self, most_rows: int = MOST_ROWS) -> ReadData:
        """All rows, up to so many, in memory. Takes as long as it takes, and tells how far it is.

        Raises:
            DataNotAllowed, InvalidInput: as `check_data`, or a row is not as it should be.
            BeyondMemory: there are more rows, or they take more memory than columns may.
        """
        with self._read():
            columns = self._picked(self.data.file(most_rows))
        return ReadData(columns, None, self._known(self.data.read.rows))

    def counted(self, engine: OpenEngine) -> ReadData:
        """All rows of predictions, any number of them: those that say the same are one entry, and ids are left aside.

        Raises:
            DataNotAllowed, InvalidInput: as `whole`.
            TooLarge: there are too many groups.
            EngineError: the engine has no room for the rows.
        """
        with self._read():
            columns = self._picked(self.data.counted(engine, grouped=_GROUP in self._names), ids=False)
        return ReadData(columns, self.data.read.tally, self.facts(self.data.read.rows))

    def parts(self) -> Iterator[ReadData]:
        """All rows in their order, each part as `whole` has all of them. Raises as that does, at the end too, and
        BeyondMemory where they cannot be streamed.

        CSV is gone through once more at first: all rows say what its labels and ids are.
        """
        pick, before = partial(self._picked, ids=self.asked.with_ids), 0
        with of_reference():
            if self._has_one_score:
                detail = "expected one score of two classes in each of so many rows, got one for each"
                raise BeyondMemory(detail, pointer="/data")
            columns = self.data.loaded(pick)
            first = int(not self.data.texts.isdisjoint(columns[0]))
            with as_step(0, first + 1):
                data = replace(self.data, spellings=self.data.spelled(columns))
            facts = self._known(0)
            for file in each_as_step(first, first + 1, data.parts(columns)):
                with _of_entries(COLUMNS, before):
                    found = pick(file)
                rows = data.read.rows - before
                yield ReadData(found, None, {**facts, "rows": rows}, before, part=True)
                before += rows
            self._check_unchanged()

    def facts(self, rows: int) -> DataFacts:
        """Facts of the data, of which so many rows were read without their ids."""
        facts = self._known(rows)
        return {**facts, "sample_ids_unchecked": True} if _IDS in self._names else facts

    def _known(self, rows: int) -> DataFacts:
        copy = self.asked.copy
        return _facts(self.asked.reference, self.data, rows) if copy is None else {**copy.facts, "rows": rows}

    @contextmanager
    def _read(self) -> Iterator[None]:
        with of_reference():
            with _of_entries(COLUMNS, 0):
                yield
            self._check_unchanged()

    def _check_unchanged(self) -> None:
        if self.asked.copy is None:
            _check_unchanged(self.source, self.asked.reference, self.data)

    @property
    def _names(self) -> Container[str]:
        """Columns by the names of the service."""
        return self.asked.reference.columns or self.data.schema.names

    @property
    def _has_one_score(self) -> bool:
        """Have two classes a score each, of which one would be enough?"""
        asked = self.asked
        one_each = asked.kind == Scores.kind and len(asked.labels or ()) == 2
        return one_each and Scores.file()["scores"].name not in (self.data.columns or self.data.schema.names)

    def _picked(self, file: TableFile, *, ids: bool = True) -> dict[str, Any]:
        return _columns(self.asked, self.data.columns, file, ids=ids)


def _check_there(labels: Dataset) -> None:
    """Raises InvalidInput: a column to join is not in the files of the labels."""
    for theirs in (labels.columns or {}).values():
        for name in [theirs] if isinstance(theirs, str) else theirs:
            if name not in labels.schema.names:
                detail = f"expected a column {name!r}, there are only {listed(labels.schema.names)}"
                raise InvalidInput.at(f"{LABELS}/columns", "missing_column", detail)


def _check_unchanged(source: DataSource, reference: DataReference, data: Dataset) -> None:
    # A version of a table stays as it is.
    if data.listing.table is None and source.files(reference).files != data.listing.files:
        raise bad_file("data_changed", "expected files that stay as they are while they are read")


@contextmanager
def of_rows(read: ReadData) -> Iterator[None]:
    """Faults of entries of columns, said of the data."""
    with _of_entries(COLUMNS & read.columns.keys(), read.before if read.tally is None else None):
        yield


@contextmanager
def _of_entries(members: Container[str], before: int | None) -> Iterator[None]:
    """Faults of entries of these arrays, said of the data: ``before`` rows of others came before them; None where an
    entry is no row.
    """
    try:
        yield
    except NothingLeft:
        # Not of any column, and known by what it says.
        raise
    except InvalidInput as error:
        raise InvalidInput([_of_column(fault, members, before) for fault in error.faults]) from None


def _of_column(fault: Fault, members: Container[str], before: int | None) -> Fault:
    member, _, place = fault.pointer.removeprefix("/input/").partition("/")
    if member == "attributes":
        name, _, row = place.partition("/")
        told = f"row {row}: " if row and before is not None else ""
        return Fault(f"{_ATTRIBUTES}/{name}", fault.code, f"{told}{fault.detail}")
    if member not in members:
        return fault
    row = place.partition("/")[0]
    where = f", row {before + int(row)} of those read" if row.isdigit() and before is not None else ""
    return Fault(_DATA, fault.code, f"{member}{where}: {fault.detail}")


def _opened(source: DataSource, asked: Asked, besides: Sequence[str] = ()) -> Dataset:
    if asked.copy is not None:
        listing = asked.copy.listing
        data = open_dataset(listing, asked.reference, asked.labels, asked.memory_bytes)
        return replace(data, texts=asked.copy.texts)
    listing = source.files(asked.reference)
    if asked.digest is not None and _digest(listing) != asked.digest:
        raise bad_file("data_changed", "expected the files that were evaluated, others are there now")
    return open_dataset(listing, asked.reference, asked.labels, asked.memory_bytes, besides)


def _columns(asked: Asked, columns: Mapped | None, file: TableFile, *, ids: bool = True) -> dict[str, Any]:
    attributes = asked.reference.attributes
    file = without_attributes(file, attributes, _ATTRIBUTES)
    if not ids:
        file = replace(file, names=[name for name in file.names if columns is not None or name != _IDS])
        columns = columns and {ours: theirs for ours, theirs in columns.items() if ours != _IDS}
    # Of an evaluation nothing is kept that could be divided.
    return columns_of(file, asked.kind, asked.labels, columns, attributes if asked.sliced else {})


def _digest(listing: DataListing) -> str:
    digest = hashlib.sha256()
    if listing.table is not None:
        digest.update(f"{listing.table.version}\0".encode())
    for file in listing.files:
        # No path has such a character: addresses are printable, and what is listed is a name of one file.
        digest.update(f"{file.path}\0{file.size}\0{file.version}\0".encode())
    return f"sha256:{digest.hexdigest()}"


def _facts(reference: DataReference, data: Dataset, rows: int) -> DataFacts:
    files = data.listing.files
    facts: DataFacts = {
        "uri": reference.uri,
        "format": data.form.value,
        "rows": rows,
        "files": len(files),
        "bytes": sum(file.size for file in files),
        "digest": _digest(data.listing),
    }
    if data.listing.table is not None:
        facts["version"] = str(data.listing.table.version)
    columns: dict[str, str | list[str] | dict[str, str]] = {
        ours: theirs if isinstance(theirs, str) else [*theirs] for ours, theirs in (reference.columns or {}).items()
    }
    if reference.attributes:
        columns["attributes"] = {**reference.attributes}
    if columns:
        facts["columns"] = columns
    if reference.filter is not None:
        facts["filter"] = reference.filter
    return facts


@contextmanager
def of_reference(root: str = _DATA) -> Iterator[None]:
    """Faults of a file told of the reference at a place, and errors of libraries as faults."""

    def moved(fault: Fault) -> Fault:
        return replace(fault, pointer=_place(fault.pointer, root))

    with reading(root, "files that can be read"), moved_faults(moved):
        try:
            yield
        except TooLarge as error:
            raise type(error)(error.detail, pointer=root) from None


def _place(pointer: str, root: str) -> str:
    if pointer == "/data":
        return root
    if pointer.startswith(_JOINED):
        return pointer
    if pointer.startswith(_DATA):
        return root + pointer.removeprefix(_DATA)
    # Columns of several models are told apart by their places.
    return root + _NAMES.sub("/columns", pointer) if pointer.startswith("/input/columns") else pointer
