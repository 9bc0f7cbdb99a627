"""The arrays of an input from a file of columns: which column is what, and that none is there which means nothing."""

import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from app.api.bodies.files.arrow_ipc import open_arrow
from app.api.bodies.files.csv_text import open_csv
from app.api.bodies.files.mapped import Mapped, mapped_file
from app.api.bodies.files.npz import open_npz
from app.api.bodies.files.parquet import open_parquet
from app.api.bodies.files.table import Table, TableFile
from app.api.bodies.label_columns import read_label_columns
from app.domain.errors import DomainError, InvalidInput
from app.domain.inputs.kinds import CLUSTERING, MULTILABEL, RANKING, SETS
from app.domain.inputs.labels import Column, class_of_column, encode, listed
from app.domain.inputs.names import normalized

_PROBABILITIES = "probabilities"
_SCORES, _SCORE = "scores", "score"
_FOLD = "fold"
_TRUTH = "y_true"
# Names in a file and in the JSON of an input, by kind of input.
_LABELS = {"predictions": {_TRUTH: "y_true", "y_pred": "y_pred"}, "scores": {_TRUTH: "y_true"}}
_LABELS[_PROBABILITIES] = {_TRUTH: "y_true"}
_LABELS[RANKING] = {"query_id": "query_ids"}
_LABELS[CLUSTERING] = {"y_pred": "y_pred"}
_LABELS[SETS] = {}
_NUMBERS = {"predictions": {}, _SCORES: {_SCORE: _SCORES}, _PROBABILITIES: {}, RANKING: {"relevance": "relevance"}}
_NUMBERS[CLUSTERING] = {}
_NUMBERS[SETS] = {name: name for name in ("n_true", "n_predicted", "n_common")}
# Of these a file of rankings has one.
_ORDERS = {_SCORE: _SCORES, "rank": "ranks"}
_OPTIONAL_LABELS = {"sample_id": "sample_ids", "group_id": "group_ids"}
# Read as they are written where labels would be read as numbers.
_IDS = ("query_id", *_OPTIONAL_LABELS)
_OPTIONAL_NUMBERS = {"sample_weight": "sample_weight"}
_OPTIONAL = (*_OPTIONAL_LABELS, *_OPTIONAL_NUMBERS)
# Kinds that may have other columns besides.
_OTHER_LABELS: Mapping[str, Mapping[str, str]] = {
    CLUSTERING: {_TRUTH: "y_true", **_OPTIONAL_LABELS},
    SETS: {"exact": "exact", "item_class": "item_classes", **_OPTIONAL_LABELS},
}
# Of clusterings: a column of numbers for every feature, or an array of all of them.
_FEATURE, _FEATURES = "feature.", "features"
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


# Kinds of input that are more than a matrix of classes, each with what reads its columns, given the labels.
_OTHER_KINDS: Mapping[str, Callable[[TableFile, Sequence[str] | None], dict[str, Any]]] = {
    MULTILABEL: read_label_columns
}


def read_columns(
    file: BinaryIO, kind: str, labels: Sequence[str] | None, columns: Mapped | None = None
) -> dict[str, Any]:
    """The arrays of an input from a file, by their names in the JSON of that kind.

    Args:
        file: Open for reading, of any of the formats: they are told apart by their first bytes.
        kind: ``predictions``, ``probabilities``, ``scores``, ``clustering``, ``ranking``, ``multilabel`` or ``sets``.
        labels: The classes, whose columns hold the probabilities, or the scores if there is no column ``score``;
            without them all further columns do, in order, and each has to be a class that occurs.
        columns: What they are called in the file, where that is not what the service calls them.

    Raises:
        InvalidInput: the file cannot be read, lacks a column, or has one that means nothing.
        TooLarge: it holds too much.
    """
    with _reading():
        return columns_of(_opened(file), kind, labels, columns)


def columns_of(
    file: TableFile, kind: str, labels: Sequence[str] | None, columns: Mapped | None = None
) -> dict[str, Any]:
    """The same of a file whose columns are known already.

    Raises:
        InvalidInput, TooLarge: as before.
    """
    if kind in _OTHER_KINDS:
        return _OTHER_KINDS[kind](_named(file, columns, labels, apart=True), labels)
    _check_kind(kind, "/input/kind")
    return _Picked(_named(file, columns, labels), kind, labels).read()


def read_folds(
    file: BinaryIO, kind: str | None, labels: Sequence[str] | None, columns: Mapped | None = None
) -> tuple[str, dict[str, Any], Column]:
    """The same of a file that has a column `fold` too: the kind, the arrays, and that column.

    Without a kind the columns tell: `y_pred` makes predictions, `score` makes scores, and else there are probabilities.

    Raises:
        InvalidInput, TooLarge: as before, or there is no such column.
    """
    if kind is not None:
        _check_kind(kind, "/input/fold/kind")
    with _reading():
        source = _named(_opened(file), columns, labels)
        told = {"y_pred": "predictions", "score": "scores"}
        found = kind or next((told[name] for name in source.names if name in told), _PROBABILITIES)
        read = _Picked(source, found, labels, besides=(_FOLD,)).read()
        return found, read, read.pop(_FOLD)


def _check_kind(kind: str, pointer: str) -> None:
    if kind not in _LABELS:
        raise InvalidInput.at(
            pointer,
            "no_columns",
            "expected predictions, probabilities, scores, clustering, ranking, multilabel or sets with a file, got "
            f"{kind!r}",
        )


def _opened(file: BinaryIO) -> TableFile:
    start = file.read(8)
    file.seek(0)
    reader = next((reader for magic, reader in _READERS if start.startswith(magic)), open_csv)
    return reader(file)


def _named(file: TableFile, columns: Mapped | None, labels: Sequence[str] | None, *, apart: bool = False) -> TableFile:
    return file if columns is None else mapped_file(file, columns, labels, apart=apart)


@contextmanager
def _reading() -> Iterator[None]:
    """What the libraries say of a file that they cannot read, said of the part with the file."""
    try:
        yield
    except (DomainError, MemoryError):
        # Nothing need be wrong with a file that takes more memory than there is: whoever gives it says so. Arrow's own
        # error of that kind is both a MemoryError and an ArrowException.
        raise
    except _UNREADABLE as error:
        reason = str(error).splitlines()[0][:200] if str(error) else "the file is damaged"
        raise InvalidInput.at(
            "/data", "unreadable_data", f"expected Parquet, Arrow IPC, CSV or NPZ: {reason}"
        ) from error


class _Picked:
    """What an input of a kind needs of a file; ``besides`` are columns of labels that it has to have for others."""

    def __init__(self, file: TableFile, kind: str, labels: Sequence[str] | None, besides: Sequence[str] = ()) -> None:
        self.file, self.kind = file, kind
        self.declared = None if labels is None else [*map(normalized, labels)]
        self.labels: Mapping[str, str] = {**_LABELS[kind], **{name: name for name in besides}}
        # Scores come in one column, or in one for every class, as probabilities do.
        self.by_class = kind == _PROBABILITIES or (kind == _SCORES and _SCORE not in file.names)
        self.numbers: Mapping[str, str] = {} if self.by_class else _NUMBERS[kind]
        if kind == RANKING:
            name = "rank" if "rank" in file.names and _SCORE not in file.names else _SCORE
            self.numbers = {**self.numbers, name: _ORDERS[name]}
        self._refuse_absent([*self.labels, *self.numbers])

    def read(self) -> dict[str, Any]:
        """The arrays by their names in the JSON."""
        classes = self._classes() if self.by_class else {}
        features = self._features() if self.kind == CLUSTERING else []
        labels = self._with_optional(self.labels, self._optional_labels)
        numbers = self._with_optional(self.numbers, self._optional_numbers)
        self._refuse_unknown({*labels, *numbers, *classes.values(), *features})
        if self.declared is None and len(classes) > 1:
            # Before they are read as numbers: what is no class need not be one.
            self._refuse_classes_that_do_not_occur(self.file.load([_TRUTH], []).labels(_TRUTH), classes)
        table = self.file.load([*labels], [*numbers, *classes.values(), *features])
        found: dict[str, Any] = {
            member: (table.ids if name in _IDS else table.labels)(name) for name, member in labels.items()
        }
        found |= {member: table.numbers(name) for name, member in numbers.items()}
        if features:
            found[_FEATURES] = table.matrix(_FEATURES) if features == [_FEATURES] else _matrix(table, features)
        if self.kind in classes.values() and len(classes) == 1:
            return {**found, self.kind: table.matrix(self.kind)}
        if classes:
            found |= {self.kind: _matrix(table, [*classes.values()]), "labels": [*classes]}
        return found

    def _with_optional(self, names: Mapping[str, str], optional: Mapping[str, str]) -> Mapping[str, str]:
        return {**names, **{name: member for name, member in optional.items() if name in self.file.names}}

    @property
    def _optional_labels(self) -> Mapping[str, str]:
        return _OTHER_LABELS.get(self.kind, _OPTIONAL_LABELS)

    @property
    def _optional_numbers(self) -> Mapping[str, str]:
        return {} if self.kind in _OTHER_LABELS else _OPTIONAL_NUMBERS

    def _features(self) -> list[str]:
        """The columns of features, in their order."""
        columns = [name for name in self.file.names if name.startswith(_FEATURE)]
        return columns or [name for name in self.file.names if name == _FEATURES]

    def _classes(self) -> dict[str, str]:
        """The columns of probabilities or scores by the class of each, or the one array that holds them all."""
        names = self.file.names
        if self.kind in names and self.kind not in (self.declared or ()):
            return {self.kind: self.kind}
        known = {*self.labels, *_OPTIONAL}
        free = [name for name in names if name not in known and not _INDEX.fullmatch(name)]
        by_class = {class_of_column(name): name for name in free} | {normalized(name): name for name in names}
        chosen = self.declared or [class_of_column(name) for name in free]
        absent = [label for label in chosen if label not in by_class]
        if absent:
            raise InvalidInput.at(
                "/data", "missing_column", f"expected a column of {self.kind} for the class {absent[0]!r}"
            )
        if len(chosen) < 2:
            one = f"a column {_SCORE!r}, or " if self.kind == _SCORES else ""
            raise InvalidInput.at("/data", "missing_column", f"expected {one}a column of {self.kind} for every class")
        return {label: by_class[label] for label in chosen}

    def _refuse_absent(self, needed: Sequence[str]) -> None:
        absent = [name for name in needed if name not in self.file.names]
        if absent:
            have = f"there are only {listed(self.file.names)}" if self.file.names else "there are none"
            raise InvalidInput.at("/data", "missing_column", f"expected a column {absent[0]!r}, {have}")

    def _refuse_unknown(self, known: set[str]) -> None:
        unknown = [name for name in self.file.names if name not in known and not _INDEX.fullmatch(name)]
        if unknown:
            more = ["one per class"] if self.by_class else []
            more += [f"{_FEATURE}* if there are features"] if self.kind == CLUSTERING else []
            needed = ", ".join([*map(repr, [*self.labels, *self.numbers]), *more])
            optional = [*self._optional_labels, *self._optional_numbers]
            raise InvalidInput.at(
                "/data",
                "unknown_column",
                f"expected the columns {needed} and at most {listed(optional)} besides, got {listed(unknown)} too: "
                f"leave out what is no part of {self.kind}",
            )

    def _refuse_classes_that_do_not_occur(self, truth: Column, classes: Mapping[str, str]) -> None:
        if not len(truth):
            return
        try:
            codes = encode({_TRUTH: truth}, [*classes], "/input").codes[_TRUTH]
        except InvalidInput:
            # A class without a column: said where the labels are read.
            return
        occurring = {[*classes][code] for code in np.unique(codes).tolist()}
        others = [name for label, name in classes.items() if label not in occurring]
        if others:
            raise InvalidInput.at(
                "/data",
                "unknown_column",
                f"expected a column for every class that occurs in {_TRUTH!r}, got {listed(others)} too, which none of "
                "its rows names: leave out what is no class, or name all classes in `labels`",
            )


def _matrix(table: Table, names: Sequence[str]) -> Any:
    matrix = np.empty((table.rows, len(names)))
    for place, name in enumerate(names):
        column = table.numbers(name)
        if len(column) != table.rows:
            raise InvalidInput.at("/data", "wrong_length", f"expected {table.rows} entries in the column {name!r}")
        matrix[:, place] = column
    return matrix
