"""The arrays of an input from a file of columns: which column is what, and that none is there which means nothing.

Which columns a kind of input has in files stands in its declaration (`app.domain.inputs`).
"""

import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.api.bodies.files.formats import open_arrow, open_csv, open_npz, open_parquet
from app.api.bodies.files.table import MOST_LABELS, FileColumns, Mapped, TableFile, bad_file, names_in
from app.domain.errors import DomainError, InvalidInput, in_pointer
from app.domain.inputs.columns import read_groups
from app.domain.inputs.folds import MOST_FOLDS
from app.domain.inputs.kind import NUMBERS, File, Input, Spread
from app.domain.inputs.kinds import KINDS
from app.domain.inputs.labels import (
    MOST_CLASSES,
    Column,
    as_labels,
    class_of_column,
    declared_label,
    encode,
    listed,
    normalized,
    shown,
    taken,
)

_FORMATS: Final = "Parquet, Arrow IPC, CSV or NPZ"
_TRUTH: Final = "y_true"
_FOLD: Final = "fold"
# Of features: a column of numbers for each, or an array of all of them.
_FEATURE: Final = "feature."
_OR_ATTRIBUTES: Final = ", or name attributes of samples in `columns.attributes`"
# The index of a table of pandas, as it is written to Parquet and to CSV, the latter also once it was read again.
_INDEX = re.compile(r"__index_level_\d+__|Unnamed: \d+|")
_UNREADABLE = (
    *(pa.ArrowException, OSError, ValueError, KeyError, EOFError, RuntimeError),
    *(struct.error, zipfile.BadZipFile, zlib.error),
)
_READERS: tuple[tuple[bytes, Callable[[BinaryIO], TableFile]], ...] = (
    (b"PAR1", open_parquet),
    (b"ARROW1", open_arrow),
    (b"\xff\xff\xff\xff", open_arrow),
    (b"PK", open_npz),
)


def read_columns(
    file: BinaryIO,
    kind: str,
    labels: Sequence[str] | None,
    columns: Mapped | None = None,
    attributes: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """The arrays of an input from a file, by their names in the JSON of that kind.

    Args:
        file: Open for reading, of any of the formats: they are told apart by their first bytes.
        kind: A kind of input that has columns in files.
        labels: The classes, whose columns hold the probabilities, or the scores if there is no column ``score``;
            without them all further columns do, in order, and each has to be a class that occurs.
        columns: Names of columns in the file by the service's names, where they differ.
        attributes: Names of columns in the file by the attributes of samples that they hold.

    Raises:
        InvalidInput: the file cannot be read, lacks a column, or has one that means nothing.
        TooLarge: it holds too much.
    """
    with reading("/data", _FORMATS):
        return columns_of(without_attributes(_opened(file), attributes), kind, labels, columns, attributes)


def columns_of(
    file: TableFile,
    kind: str,
    labels: Sequence[str] | None,
    columns: Mapped | None = None,
    attributes: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """The arrays of an input from a file whose columns are known already. Raises as `read_columns`."""
    declared = _with_columns(kind, "/input/kind", KINDS)
    by_label = any(one.spread is Spread.LABELS for one in declared.file().values())
    names = names_in(file, _own(declared), columns, labels, apart=by_label)
    return _Picked(file, names, declared, labels).read(attributes)


def read_folds(
    file: BinaryIO,
    kind: str | None,
    labels: Sequence[str] | None,
    columns: Mapped | None = None,
    attributes: Mapping[str, str] = MappingProxyType({}),
) -> tuple[str, dict[str, Any], Column]:
    """The kind of all folds, the arrays of all samples, and the fold of each from the column `fold`.

    Without a kind the columns tell: `y_pred` makes predictions, `score` makes scores, and else there are probabilities.
    Raises as `read_columns`.
    """
    single = {name: one for name, one in KINDS.items() if one.in_folds}
    if kind is not None:
        _with_columns(kind, "/input/fold/kind", single)
    with reading("/data", _FORMATS):
        opened = without_attributes(_opened(file), attributes)
        own = {_FOLD}.union(*map(_own, single.values() if kind is None else [single[kind]]))
        names = names_in(opened, own, columns, labels)
        told = {"y_pred": "predictions", "score": "scores"}
        found = kind or next((told[name] for name in names if name in told), "probabilities")
        read = _Picked(opened, names, KINDS[found], labels, besides=(_FOLD,)).read(attributes)
        return found, read, read.pop(_FOLD)


def without_attributes(
    file: TableFile, attributes: Mapping[str, str], pointer: str = "/input/columns/attributes"
) -> TableFile:
    """A file in which columns of attributes of samples are aside.

    Raises:
        InvalidInput: a column is not there, said where it was named.
    """
    for name, column in attributes.items():
        if column not in file.names:
            detail = f"expected a column {column!r}, there are only {listed(file.names)}"
            raise InvalidInput.at(f"{pointer}/{in_pointer(name)}", "missing_column", detail)
    return replace(file, aside=file.aside.union(attributes.values()))


def _own(kind: type[Input]) -> set[str]:
    return {one.name for one in kind.file().values()}


def _with_columns(kind: str, pointer: str, kinds: Mapping[str, type[Input]]) -> type[Input]:
    """A kind that has columns in files. Raises InvalidInput for others."""
    usable = {name: one for name, one in kinds.items() if one.file()}
    if kind not in usable:
        *most, last = usable
        detail = f"expected {', '.join(most)} or {last} with a file, got {kind!r}"
        raise InvalidInput.at(pointer, "no_columns", detail)
    return usable[kind]


def _opened(file: BinaryIO) -> TableFile:
    start = file.read(8)
    file.seek(0)
    reader = next((reader for magic, reader in _READERS if start.startswith(magic)), open_csv)
    return reader(file)


@contextmanager
def reading(pointer: str, expected: str) -> Iterator[None]:
    """Errors of libraries that cannot read a file, as a fault of what names it."""
    try:
        yield
    except (DomainError, MemoryError):
        # Nothing need be wrong with a file that takes more memory than there is: whoever gives it says so. Arrow's own
        # error of that kind is both a MemoryError and an ArrowException.
        raise
    except _UNREADABLE as error:
        reason = str(error).splitlines()[0][:200] if str(error) else "the file is damaged"
        _, written, rest = reason.partition("In CSV column")
        if "conversion error to double" in rest:
            raise InvalidInput.at(pointer, "not_numbers", f"expected numbers: {written}{rest}") from error
        raise InvalidInput.at(pointer, "unreadable_data", f"expected {expected}: {reason}") from error


class _Picked:
    """Columns of a file that an input of a kind has; ``besides`` are columns of labels that it has to have for others.

    Attributes:
        names: Columns of the file by the names of the service, which all others here are.
        declared: The classes or labels, as far as they are known.
        needed: Members by the columns that have to be there.
        optional: Members by the columns that may.
        several: Members that have several columns, with these; or with one array that holds them all.
    """

    def __init__(
        self,
        file: TableFile,
        names: Mapping[str, str],
        kind: type[Input],
        labels: Sequence[str] | None,
        besides: Sequence[str] = (),
    ) -> None:
        self.file, self.names, self.kind, self.files = file, names, kind, kind.file()
        self.declared = None if labels is None else [*map(normalized, labels)]
        self.reads: dict[str, str] = {name: form.in_files for name, form in kind.columns().items()}
        self.reads |= dict.fromkeys(besides, "labels")
        self.needed: dict[str, str] = {}
        self.optional: dict[str, str] = {}
        spread: dict[Spread, str] = {}
        absent = {self._left_out(one, kind.members()[member].instead) for member, one in self.files.items()}
        for member, one in self.files.items():
            # Scores come in one column, or in one for every class, as probabilities do.
            single = one.spread is Spread.CLASSES and one.name != member and one.name in names
            if one.spread is not None and not single:
                spread[one.spread] = member
            elif one.name not in absent:
                (self.needed if one.needed else self.optional)[one.name] = member
        self.needed |= {name: name for name in besides}
        missing = [name for name in self.needed if name not in names]
        if missing:
            have = f"there are only {listed([*names])}" if names else "there are none"
            raise bad_file("missing_column", f"expected a column {missing[0]!r}, {have}")
        ways = {Spread.LABELS: self._of_labels, Spread.CLASSES: self._of_classes, Spread.FEATURES: self._of_features}
        self.several: dict[str, list[str]] = {}
        for way, member in spread.items():
            self.several |= ways[way](member)
        self._refuse_others(spread)

    def read(self, attributes: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any]:
        """The arrays by their names in the JSON, and the member that has the attributes in these columns."""
        names = self.names
        single = self.needed | {name: one for name, one in self.optional.items() if name in names}
        several = {member: [*map(names.__getitem__, own)] for member, own in self.several.items()}
        # Flags may be written as true and false, and so as texts.
        flags = [*chain.from_iterable(own for member, own in several.items() if self.reads[member] == "flags")]
        labels = flags + [names[name] for name, member in single.items() if self.reads[member] not in NUMBERS]
        numbers = [names[name] for name, member in single.items() if self.reads[member] in NUMBERS]
        numbers += chain.from_iterable(own for member, own in several.items() if self.reads[member] != "flags")
        _refuse_used_twice(labels, numbers)
        labels += [column for column in dict.fromkeys(attributes.values()) if column not in {*labels, *numbers}]
        table = self.file.load(labels, numbers)
        found: dict[str, Any] = {
            member: getattr(table, self.reads[member])(names[name]) for name, member in single.items()
        }
        found |= {member: self._matrix(table, member, names) for member, names in self.several.items()}
        if self.several and self.declared is not None:
            found["labels"] = self.declared
        if attributes:
            found["attributes"] = {name: table.values(column) for name, column in attributes.items()}
        return found

    def _left_out(self, one: File, instead: str | None) -> str | None:
        """Return the absent one of two columns that stand in place of each other."""
        if instead is None:
            return None
        other = self.files[instead].name
        return other if one.name in self.names and other not in self.names else one.name

    def _refuse_others(self, spread: Iterable[Spread]) -> None:
        known = {*self.needed, *self.optional, *chain.from_iterable(self.several.values())}
        needed = ", ".join([*map(repr, self.needed), *spread])
        sliced = "attributes" in self.kind.members()
        _refuse_unknown(
            [name for name in self.names if not _INDEX.fullmatch(name)],
            known,
            f"the columns {needed}" + (f" and at most {listed([*self.optional])} besides" if self.optional else ""),
            f": leave out what is no part of {self.kind.kind}{_OR_ATTRIBUTES if sliced else ''}",
        )

    def _of_features(self, member: str) -> dict[str, list[str]]:
        """The columns of features in their order, or the one array that holds them all; nothing without any."""
        columns = [name for name in self.names if name.startswith(_FEATURE)]
        columns = columns or [name for name in self.names if name == member]
        return {member: columns} if columns else {}

    def _of_classes(self, member: str) -> dict[str, list[str]]:
        """The columns of probabilities or scores, one for each class, or the one array that holds them all."""
        names = self.names
        if member in names and member not in (self.declared or ()):
            return {member: [member]}
        known = {*self.needed, *self.optional}
        free = [name for name in names if name not in known and not _INDEX.fullmatch(name)]
        by_class = {class_of_column(name): name for name in free} | {normalized(name): name for name in names}
        chosen = self.declared or [class_of_column(name) for name in free]
        absent = [label for label in chosen if label not in by_class]
        if absent:
            raise bad_file("missing_column", f"expected a column of {member} for the class {absent[0]!r}")
        if len(chosen) < 2:
            single = self.files[member].name
            one = "" if single == member else f"a column {single!r}, or "
            raise bad_file("missing_column", f"expected {one}a column of {member} for every class")
        if self.declared is None:
            # Before they are read as numbers: what is no class need not be one.
            self._refuse_classes_that_do_not_occur(chosen)
        self.declared = chosen
        return {member: [by_class[label] for label in chosen]}

    def _refuse_classes_that_do_not_occur(self, classes: Sequence[str]) -> None:
        truth = self.file.load([self.names[_TRUTH]], []).labels(self.names[_TRUTH])
        if not len(truth):
            return
        try:
            codes = encode({_TRUTH: truth}, classes, "/input").codes[_TRUTH]
        except InvalidInput:
            # A class without a column is said of the fold that has it, or is one that is ignored.
            if _FOLD in self.needed or {*classes} <= {*encode({_TRUTH: truth}, None, "/input", MOST_LABELS).labels}:
                return
            raise
        _refuse_unknown(
            classes,
            {classes[code] for code in np.unique(codes).tolist()},
            f"a column for every class that occurs in {_TRUTH!r}",
            f", which none of its rows names: leave out what is no class, name all classes in `labels`{_OR_ATTRIBUTES}",
        )

    def _of_labels(self, _: str) -> dict[str, list[str]]:
        """Columns called `y_true.cat`, `y_pred.cat`, `probabilities.cat` or `score.cat`, in the order of the labels.

        An NPZ may have arrays [n, L] of the names without a label instead. Without labels they are those of the columns
        of `y_true`, in order.
        """
        tables = {one.name: member for member, one in self.files.items() if one.spread is Spread.LABELS}
        names = self.names
        known = {name: {} if name in names else self._by_label(name) for name in tables}
        others = [name for name in tables if name != _TRUTH]
        said = [name for name in others if name in names or known[name]]
        if len(said) != 1:
            either = " or ".join(f"'{name}.<label>'" for name in others)
            got = " and ".join(said) or "none of them"
            detail = f"expected columns {either} for every label (in an NPZ also arrays [n, L]), got {got}"
            raise bad_file("missing_column", detail)
        if self.declared is None and _TRUTH not in names:
            self.declared = [*known[_TRUTH]]
        found = {}
        for name in (_TRUTH, *said):
            absent = [label for label in self.declared or () if label not in known[name]]
            if name not in names and (absent or not known[name]):
                missing = f"{name}.{absent[0]}" if absent else f"{name}.<label>"
                raise bad_file("missing_column", f"expected a column {missing!r}")
            found[tables[name]] = (
                [name] if name in names else [known[name][label] for label in self.declared or known[name]]
            )
        return found

    def _by_label(self, start: str) -> dict[str, str]:
        """The columns whose names begin so, by label."""
        return {normalized(name.removeprefix(f"{start}.")): name for name in self.names if name.startswith(f"{start}.")}

    def _matrix(self, table: FileColumns, member: str, names: Sequence[str]) -> NDArray[Any]:
        """Columns beside each other (n, K), or the one array that holds them all. Those of labels hold 0 and 1: with
        names they are no lists of labels.
        """
        flags = self.reads[member] == "flags"
        if [*names] in ([member], [self.files[member].name]):
            return table.matrix(self.names[names[0]], flags=flags)
        matrix: NDArray[Any] = np.empty((table.rows, len(names)), np.bool_ if flags else np.float64)
        faults: list[tuple[int, int, float]] = []
        for place, name in enumerate(names):
            column = (table.flags if flags else table.numbers)(self.names[name])
            if len(column) != table.rows:
                raise bad_file("wrong_length", f"expected {table.rows} entries in the column {name!r}")
            if flags and (bad := (column != 0) & (column != 1)).any():
                row = int(np.argmax(bad))
                faults.append((row, place, column[row]))
            matrix[:, place] = column
        if faults:
            row, place, value = min(faults)
            label = shown(names[place].partition(".")[2])
            detail = f"expected 0 or 1 for the label {label}, got {value:g}"
            raise InvalidInput.at(f"/input/{member}/{row}/{place}", "out_of_range", detail)
        return matrix


def _refuse_used_twice(labels: Sequence[str], numbers: Sequence[str]) -> None:
    """Refuse a column of numbers that stands for something else too, as where a class is called `sample_weight`."""
    known = {*labels}
    for name in numbers:
        if name in known:
            raise bad_file("duplicate_column", f"expected a column of its own for each meaning, got {name!r} for two")
        known.add(name)


def _refuse_unknown(names: Sequence[str], known: set[str], expected: str, advice: str = "") -> None:
    unknown = [name for name in names if name not in known]
    if unknown:
        raise bad_file("unknown_column", f"expected {expected}, got {listed(unknown)} too{advice}")


# --- folds -----------------------------------------------------------------------------------------------------------


def distribute(columns: Mapping[str, Any], folds: Column, shared: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Inputs of the folds as they stand in JSON, integers by value and texts by alphabet; rows keep their order.

    Args:
        columns: Of all samples, by their names in the JSON; ``labels`` when they are known.
        folds: The fold of each sample, integers or texts.
        shared: What every input has besides. Without labels, every fold has those that occur in any.

    Raises:
        InvalidInput: the names of the folds are neither integers nor texts, or there are too many.
    """
    try:
        names = read_groups(as_labels(folds, "/data"), "/data")
    except InvalidInput:
        raise bad_file("not_folds", "expected integers or texts in the column 'fold'") from None
    if len(names) != len(columns[_TRUTH]):
        raise bad_file("wrong_length", f"expected {len(columns[_TRUTH])} entries in the column 'fold'")
    found, codes = np.unique(names, return_inverse=True)
    if len(found) > MOST_FOLDS:
        raise bad_file("too_many_folds", f"expected at most {MOST_FOLDS} different folds, got {len(found)}")
    labels = shared.get("labels", columns.get("labels"))
    if labels is None and len(names):
        labels = _classes_of_all(columns, shared.get("ignore"))
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(found)))[:-1]
    return [
        {**shared, "labels": labels, **{name: _some(columns[name], rows) for name in columns if name != "labels"}}
        for rows in np.split(order, ends)
    ]


def _some(column: Any, rows: NDArray[np.intp]) -> Any:
    """Entries of a column at some places, or of the columns of all attributes."""
    return {name: taken(one, rows) for name, one in column.items()} if isinstance(column, dict) else taken(column, rows)


def _classes_of_all(columns: Mapping[str, Any], ignore: Any) -> list[str]:
    """Classes that occur in any fold. One that is to be ignored counts only where a sample that is left is predicted as
    it; what cannot be read as labels is refused later, with its place.
    """
    ignored = [declared_label(one) for one in ignore] if isinstance(ignore, list) else []
    most = MOST_CLASSES + len(ignored)
    coded = encode({name: columns[name] for name in (_TRUTH, "y_pred") if name in columns}, None, "/input", most)
    codes = [*coded.codes.values()]
    left = ~np.isin(codes[0], [code for code, text in enumerate(coded.labels) if text in ignored])
    occurring = np.unique(np.concatenate([column[left] for column in codes]))
    return [coded.labels[code] for code in occurring.tolist()]
