"""The arrays of an input from a file of columns: which column is what, and that none is there which means nothing.

Which columns a kind of input has in files stands in its declaration (`app.domain.inputs`).
"""

import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.api.bodies.files.formats import open_arrow, open_csv, open_npz, open_parquet
from app.api.bodies.files.table import FileColumns, Mapped, TableFile, bad_file, mapped_file
from app.domain.errors import DomainError, InvalidInput
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
    with reading("/data", "Parquet, Arrow IPC, CSV or NPZ"):
        opened, beside = with_attributes(_opened(file), attributes)
        return columns_of(opened, kind, labels, columns) | beside()


def columns_of(
    file: TableFile, kind: str, labels: Sequence[str] | None, columns: Mapped | None = None
) -> dict[str, Any]:
    """The arrays of an input from a file whose columns are known already. Raises as `read_columns`."""
    declared = _with_columns(kind, "/input/kind", KINDS)
    by_label = any(one.spread is Spread.LABELS for one in declared.file().values())
    named = file if columns is None else mapped_file(file, columns, labels, apart=by_label)
    return _by_labels(named, declared, labels) if by_label else _Picked(named, declared, labels).read()


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
    with reading("/data", "Parquet, Arrow IPC, CSV or NPZ"):
        opened, beside = with_attributes(_opened(file), attributes)
        source = opened if columns is None else mapped_file(opened, columns, labels)
        told = {"y_pred": "predictions", "score": "scores"}
        found = kind or next((told[name] for name in source.names if name in told), "probabilities")
        read = _Picked(source, KINDS[found], labels, besides=(_FOLD,)).read()
        folds = read.pop(_FOLD)
        return found, read | beside(), folds


def with_attributes(
    file: TableFile, attributes: Mapping[str, str], pointer: str = "/input/columns/attributes"
) -> tuple[TableFile, Callable[[], dict[str, Any]]]:
    """A file without the columns that hold nothing but attributes of samples, and the member that has these.

    Args:
        file: As it came.
        attributes: Names of columns in the file by the attributes that they hold.
        pointer: Where these were named.

    Returns:
        The file, which loads them with whatever else is loaded of it, and a function that makes the member
        `attributes` of what was loaded last.

    Raises:
        InvalidInput: a column is not there.
    """
    for name, column in attributes.items():
        if column not in file.names:
            detail = f"expected a column {column!r}, there are only {listed(file.names)}"
            raise InvalidInput.at(f"{pointer}/{name}", "missing_column", detail)
    own = {one.name for kind in KINDS.values() for one in kind.file().values()} | {_FOLD}
    loaded: list[FileColumns] = []

    def load(labels: Sequence[str], numbers: Sequence[str]) -> FileColumns:
        beside = [name for name in dict.fromkeys(attributes.values()) if name not in {*labels, *numbers}]
        loaded[:] = [file.load([*labels, *beside], numbers)]
        return loaded[0]

    def member() -> dict[str, Any]:
        """Raises InvalidInput: a column holds something else than texts, numbers or booleans."""
        return {"attributes": {name: loaded[0].values(one) for name, one in attributes.items()}} if attributes else {}

    left = [name for name in file.names if name in own or name not in {*attributes.values()}]
    return TableFile(left, load), member


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
        raise InvalidInput.at(pointer, "unreadable_data", f"expected {expected}: {reason}") from error


def _refuse_unknown(names: Sequence[str], known: set[str], expected: str, advice: str = "") -> None:
    unknown = [name for name in names if name not in known]
    if unknown:
        raise bad_file("unknown_column", f"expected {expected}, got {listed(unknown)} too{advice}")


# --- one column per member, per class or per feature -----------------------------------------------------------------


class _Picked:
    """Columns of a file that an input of a kind has; ``besides`` are columns of labels that it has to have for others.

    Attributes:
        needed: Members by the columns that have to be there.
        optional: Members by the columns that may.
        by_class: The member that has a column for every class; None without one.
        features: The member that has a column for every feature; None without one.
    """

    def __init__(
        self, file: TableFile, kind: type[Input], labels: Sequence[str] | None, besides: Sequence[str] = ()
    ) -> None:
        self.file, self.kind = file, kind
        self.declared = None if labels is None else [*map(normalized, labels)]
        self.reads: dict[str, str] = {name: form.in_files for name, form in kind.columns().items()}
        self.reads |= dict.fromkeys(besides, "labels")
        self.by_class: str | None = None
        self.features: str | None = None
        self.needed: dict[str, str] = {}
        self.optional: dict[str, str] = {}
        files = kind.file()
        absent = {self._left_out(one, kind.members()[member].instead) for member, one in files.items()}
        for member, one in files.items():
            if one.spread is Spread.FEATURES:
                self.features = member
            elif one.spread is Spread.CLASSES and (one.name == member or one.name not in file.names):
                # Scores come in one column, or in one for every class, as probabilities do.
                self.by_class = member
            elif one.name not in absent:
                (self.needed if one.needed else self.optional)[one.name] = member
        self.needed |= {name: name for name in besides}
        self._refuse_absent()

    def _left_out(self, one: File, instead: str | None) -> str | None:
        """Return the absent one of two columns that stand in place of each other."""
        if instead is None:
            return None
        other = self.kind.file()[instead].name
        return other if one.name in self.file.names and other not in self.file.names else one.name

    def read(self) -> dict[str, Any]:
        """The arrays by their names in the JSON."""
        classes = {} if self.by_class is None else self._classes(self.by_class)
        features = self._features()
        chosen = self.needed | {name: one for name, one in self.optional.items() if name in self.file.names}
        self._refuse_others({*chosen, *classes.values(), *features})
        if self.declared is None and len(classes) > 1:
            # Before they are read as numbers: what is no class need not be one.
            of_folds = _FOLD in self.needed
            _refuse_classes_that_do_not_occur(self.file.load([_TRUTH], []).labels(_TRUTH), classes, of_folds=of_folds)
        numbers = [name for name, member in chosen.items() if self.reads[member] in NUMBERS]
        labels = [name for name in chosen if name not in numbers]
        table = self.file.load(labels, [*numbers, *classes.values(), *features])
        found: dict[str, Any] = {member: getattr(table, self.reads[member])(name) for name, member in chosen.items()}
        if self.features is not None and features:
            whole = features == [self.features]
            found[self.features] = table.matrix(self.features) if whole else _matrix(table, features)
        if self.by_class is not None:
            if [*classes] == [self.by_class]:
                return {**found, self.by_class: table.matrix(self.by_class)}
            found |= {self.by_class: _matrix(table, [*classes.values()]), "labels": [*classes]}
        return found

    def _features(self) -> list[str]:
        """The columns of features in their order, or the one array that holds them all."""
        if self.features is None:
            return []
        columns = [name for name in self.file.names if name.startswith(_FEATURE)]
        return columns or [name for name in self.file.names if name == self.features]

    def _classes(self, member: str) -> dict[str, str]:
        """The columns of probabilities or scores by the class of each, or the one array that holds them all."""
        names = self.file.names
        if member in names and member not in (self.declared or ()):
            return {member: member}
        known = {*self.needed, *self.optional}
        free = [name for name in names if name not in known and not _INDEX.fullmatch(name)]
        by_class = {class_of_column(name): name for name in free} | {normalized(name): name for name in names}
        chosen = self.declared or [class_of_column(name) for name in free]
        absent = [label for label in chosen if label not in by_class]
        if absent:
            raise bad_file("missing_column", f"expected a column of {member} for the class {absent[0]!r}")
        if len(chosen) < 2:
            single = self.kind.file()[member].name
            one = "" if single == member else f"a column {single!r}, or "
            raise bad_file("missing_column", f"expected {one}a column of {member} for every class")
        return {label: by_class[label] for label in chosen}

    def _refuse_absent(self) -> None:
        absent = [name for name in self.needed if name not in self.file.names]
        if absent:
            have = f"there are only {listed(self.file.names)}" if self.file.names else "there are none"
            raise bad_file("missing_column", f"expected a column {absent[0]!r}, {have}")

    def _refuse_others(self, known: set[str]) -> None:
        more = ["one per class"] if self.by_class is not None else []
        more += [f"{_FEATURE}* if there are features"] if self.features is not None else []
        needed = ", ".join([*map(repr, self.needed), *more])
        sliced = "attributes" in self.kind.members()
        _refuse_unknown(
            [name for name in self.file.names if not _INDEX.fullmatch(name)],
            known,
            f"the columns {needed} and at most {listed([*self.optional])} besides",
            f": leave out what is no part of {self.kind.kind}{_OR_ATTRIBUTES if sliced else ''}",
        )


def _refuse_classes_that_do_not_occur(truth: Column, classes: Mapping[str, str], *, of_folds: bool) -> None:
    if not len(truth):
        return
    try:
        codes = encode({_TRUTH: truth}, [*classes], "/input").codes[_TRUTH]
    except InvalidInput:
        if of_folds:
            # A class without a column is said of the fold that has it.
            return
        raise
    occurring = {[*classes][code] for code in np.unique(codes).tolist()}
    _refuse_unknown(
        [*classes],
        occurring,
        f"a column for every class that occurs in {_TRUTH!r}",
        f", which none of its rows names: leave out what is no class, name all classes in `labels`{_OR_ATTRIBUTES}",
    )


def _matrix(table: FileColumns, names: Sequence[str]) -> NDArray[np.float64]:
    matrix = np.empty((table.rows, len(names)))
    for place, name in enumerate(names):
        column = table.numbers(name)
        if len(column) != table.rows:
            raise bad_file("wrong_length", f"expected {table.rows} entries in the column {name!r}")
        matrix[:, place] = column
    return matrix


# --- one column per label and member ---------------------------------------------------------------------------------


def _by_labels(file: TableFile, kind: type[Input], labels: Sequence[str] | None) -> dict[str, Any]:
    """The arrays of an input with columns called `y_true.cat`, and `y_pred.cat`, `probabilities.cat` or `score.cat`.

    An NPZ may have arrays [n, L] of the names without a label instead. Without ``labels`` they are those of the columns
    of `y_true`, in order.

    Raises:
        InvalidInput: a column is missing, or means nothing; what says whether a sample has a label is neither 0 nor 1.
    """
    files, forms = kind.file(), kind.columns()
    tables = {one.name: member for member, one in files.items() if one.spread is Spread.LABELS}
    optional = {one.name: member for member, one in files.items() if one.spread is None and one.name in file.names}
    said = [name for name in tables if name != _TRUTH and (name in file.names or _of_labels(file, name))]
    if len(said) != 1:
        either = " or ".join(f"'{name}.<label>'" for name in tables if name != _TRUTH)
        arrays = " or ".join(repr(name) for name in tables if name != _TRUTH)
        raise bad_file(
            "missing_column",
            f"expected columns {either} for every label (in an NPZ also arrays {arrays}), got "
            f"{' and '.join(said) or 'none of them'}",
        )
    declared = None if labels is None else [*map(normalized, labels)]
    if declared is None and _TRUTH not in file.names:
        declared = [*_of_labels(file, _TRUTH)]
    chosen = {name: _columns_of_labels(file, name, declared) for name in (_TRUTH, *said)}
    columns = [column for names in chosen.values() for column in names]
    _refuse_unknown(file.names, {*columns, *optional}, f"columns of the labels {listed(declared or ())}")
    numbers = [name for name, member in optional.items() if forms[member].in_files in NUMBERS]
    table = file.load([name for name in optional if name not in numbers], [*columns, *numbers])
    found: dict[str, Any] = {
        tables[name]: table.flags(names[0])
        if names == [name]
        else _flags(table, names, checked=forms[tables[name]].in_files == "flags")
        for name, names in chosen.items()
    }
    found |= {member: getattr(table, forms[member].in_files)(name) for name, member in optional.items()}
    return found if declared is None else {**found, "labels": declared}


def _flags(table: FileColumns, columns: Sequence[str], *, checked: bool) -> NDArray[Any]:
    """Columns beside each other (n, L). Those of labels hold 0 and 1: with names they are no lists of labels."""
    found = np.column_stack([table.flags(column) for column in columns])
    if checked and found.dtype != np.bool_:
        bad = (found != 0) & (found != 1)
        if bad.any():
            row, place = (int(index) for index in np.argwhere(bad)[0])
            name, _, label = columns[place].partition(".")
            raise InvalidInput.at(
                f"/input/{name}/{row}/{place}",
                "out_of_range",
                f"expected 0 or 1 for the label {shown(label)}, got {found[row, place]:g}",
            )
    return found


def _of_labels(file: TableFile, member: str) -> Mapping[str, str]:
    """The columns of a member by label."""
    start = f"{member}."
    return {normalized(name.removeprefix(start)): name for name in file.names if name.startswith(start)}


def _columns_of_labels(file: TableFile, member: str, labels: Sequence[str] | None) -> list[str]:
    """The columns of a member in the order of the labels, or the one array of its name."""
    if member in file.names:
        return [member]
    known = _of_labels(file, member)
    absent = [label for label in labels or () if label not in known]
    if absent or not known:
        missing = f"{member}.{absent[0]}" if absent else f"{member}.<label>"
        raise bad_file("missing_column", f"expected a column {missing!r}")
    return [known[label] for label in labels or known]


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
