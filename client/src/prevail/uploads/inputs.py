"""The `input` of an evaluation made of what a user gives: which kind it is, its facts, and its arrays."""

import csv
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from prevail.errors import InvalidInput
from prevail.uploads.arrays import Data, Rows, column, has_rows, label_name, listed, plain, rows, table_columns
from prevail.uploads.bodies import (
    COLUMNS,
    STREAMED_CELLS,
    arrow_form,
    check_lengths,
    compact,
    file_form,
    has_arrow,
    json_body,
    json_parts,
)
from prevail.uploads.progress import Watcher
from prevail.wire.steps import Parts

# The kind of input by the member that it is known by.
KINDS: Final = {"y_pred": "predictions", "scores": "scores", "probabilities": "probabilities"}
# Sums further from 1 than any rounding makes them.
_ROUGH_SUM: Final = 0.05
_BESIDE: Final = ("sample_ids", "group_ids", "sample_weight")
Prepared = tuple[Any, Parts | None, Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Arguments of `Client.evaluate` that describe the input; with a file or data they are names of its columns."""

    y_true: Any = None
    y_pred: Any = None
    probabilities: Any = None
    scores: Any = None
    matrix: Any = None
    input: Mapping[str, Any] | None = None
    file: Path | None = None
    data: str | Mapping[str, Any] | None = None
    labels: Any = None
    positive: Any = None
    threshold: float | Sequence[float] | None = None
    renormalize: bool | None = None
    sample_ids: Any = None
    group_ids: Any = None
    sample_weight: Any = None
    attributes: Any = None

    def facts(self) -> dict[str, Any]:
        """Return the members of the input beside its arrays."""
        labels = self.labels
        if isinstance(labels, Mapping):
            labels = [*labels.values()]
        found = {
            "labels": None if labels is None else _label_list(labels),
            "positive": self.positive,
            "threshold": self.threshold,
            "renormalize": self.renormalize,
        }
        return {name: value for name, value in found.items() if value is not None}

    def beside(self) -> dict[str, Any]:
        """Return the members of the input with one value per sample that stand beside it."""
        given = {one: getattr(self, one) for one in _BESIDE}
        return {one: listed(each, one)[0] for one, each in given.items() if each is not None} | self.attribute_columns()

    def attribute_columns(self) -> dict[str, Any]:
        """Return the member of the input with the attributes of samples; none without them."""
        if self.attributes is None:
            return {}
        found = {name: _values(one, f"attributes[{name!r}]") for name, one in _by_name(self.attributes).items()}
        return {"attributes": found}


def _by_name(attributes: Any) -> dict[str, Any]:
    """Columns by name, of a mapping or of a table of pandas, polars or Arrow."""
    if isinstance(attributes, Mapping):
        return {str(name): one for name, one in attributes.items()}
    names = table_columns(attributes)
    if names is None:
        raise InvalidInput(
            f"attributes: expected columns by name or a data frame, got {type(attributes).__name__}", code="array_type"
        )
    return {str(name): attributes[name] for name in names}


def _values(values: Any, name: str) -> list[Any]:
    """One value per sample, None where there is none: NaN and what else pandas has for it."""
    found = column(values, name)
    return [None if _is_missing(one) else one for one in found.part(0, len(found))]


def _is_missing(one: Any) -> bool:
    return type(one).__name__ in ("NAType", "NaTType") or (isinstance(one, float) and one != one)


def _label_list(labels: Any) -> list[Any]:
    found = plain(labels, "labels")
    return found if isinstance(found, list) else list(found.tolist())


def prepared(request: Mapping[str, Any], given: Given, watch: Watcher | None) -> Prepared:
    """The body of a request: JSON, or what makes it part by part and the headers that say what it is.

    Raises:
        InvalidInput: what is given makes no input.
    """
    what = {
        "y_pred": given.y_pred,
        "probabilities": given.probabilities,
        "scores": given.scores,
        "matrix": given.matrix,
        "input": given.input,
    }
    names = [name for name, value in what.items() if value is not None]
    if len(names) > 1:
        raise InvalidInput(f"expected one of {', '.join(what)}, got {' and '.join(names)}", code="one_of")
    _refuse_vain(given, names)
    if given.data is not None:
        return {**request, "input": _of_data(given, given.data)}, None, {}
    if given.file is not None:
        return _of_file(request, given, watch)
    if not names:
        raise InvalidInput(f"expected one of {', '.join(what)}, a file or data; got none", code="one_of")
    if given.input is not None:
        return {**request, "input": {**given.input, **given.facts(), **given.beside()}}, None, {}
    if given.matrix is not None:
        return {**request, "input": _of_matrix(given)}, None, {}
    return _of_arrays(request, given, names[0], watch)


def _refuse_vain(given: Given, names: list[str]) -> None:
    """Arguments that nothing would be done with."""
    is_elsewhere = given.data is not None or given.file is not None
    if names == ["matrix"] and is_elsewhere:
        raise InvalidInput("matrix: expected it, a file or data; got two of them", code="one_of")
    if names in (["matrix"], ["input"]) and not is_elsewhere and given.y_true is not None:
        raise InvalidInput(f"y_true: expected it beside what was predicted, got it beside {names[0]}", code="one_of")
    if isinstance(given.labels, Mapping) and (is_elsewhere or names == ["input"]):
        raise InvalidInput(
            "labels: a mapping translates arrays; of a file, data or an input expected the names that are in it",
            code="array_type",
        )


def _of_matrix(given: Given) -> dict[str, Any]:
    """The input of a matrix; of a table the rows are in the order of the columns, and both in that of labels."""
    found, names = rows(given.matrix, "matrix")
    matrix, facts = found.part(0, len(found)), given.facts()
    if names is not None:
        index = getattr(given.matrix, "index", ())
        _refuse_margins(matrix, names, index)
        names = _translated_names(names, given.labels)
        if len(index) == len(names):
            own = _translated_names([str(one) for one in index], given.labels)
            matrix = [matrix[place] for place in _places(index, own, names, given.labels, "matrix: the rows")]
        facts.setdefault("labels", names)
        if len(matrix) == len(names):
            axis = getattr(given.matrix, "columns", None)
            places = _places(axis, names, facts["labels"], given.labels, "matrix: the columns")
            matrix = [[matrix[row][place] for place in places] for row in places]
    return {"kind": "confusion_matrix", "matrix": matrix, **facts, **given.beside()}


def _refuse_margins(matrix: Sequence[Sequence[Any]], names: Sequence[str], index: Sequence[Any]) -> None:
    """The sums of rows and columns, as `pandas.crosstab` adds them with ``margins=True``, are no class."""
    is_named = len(names) > 2 and len(index) == len(matrix) and str(index[-1]) == names[-1]
    if is_named and all(line[-1] == sum(line[:-1]) for line in (*matrix, *zip(*matrix, strict=True))):
        raise InvalidInput(
            f"matrix: the row and the column {names[-1]!r} are the sums of the others: leave them out (margins=False)",
            code="array_shape",
        )


def _is_counted(axis: Any, labels: Any) -> bool:
    """Are these the numbers that pandas gives columns and rows without names? Of codes they are names."""
    return hasattr(axis, "step") and not isinstance(labels, Mapping)


def _translated_names(names: Sequence[str], labels: Any) -> list[str]:
    """Names of columns, of codes those that a mapping of labels gives them."""
    known = {label_name(code): str(name) for code, name in labels.items()} if isinstance(labels, Mapping) else {}
    return [known.get(one, one) for one in names]


def _places(axis: Any, names: Sequence[str], labels: Sequence[Any], given: Any, what: str) -> list[int]:
    """The place of each label among the names of an axis, which may be in another order; their own if they are other
    names, or numbers that pandas gave. ``given`` are the labels as they came.

    Raises:
        InvalidInput: some names are labels, and some are none.
    """
    order = [label_name(one) for one in labels]
    if not _is_counted(axis, given) and len(names) == len(order) and len({*names}) == len(names) and names != order:
        if {*names} == {*order}:
            return [names.index(one) for one in order]
        if {*names} & {*order}:
            raise InvalidInput(
                f"{what} are named {', '.join(names[:5])}, and the classes are {', '.join(order[:5])}: expected the "
                "same names",
                code="array_shape",
            )
    return [*range(len(names))]


def _of_labels(given: Given, name: str) -> dict[str, Any]:
    """The input of samples with several labels; columns of tables are in the order of the labels."""
    facts, said = given.facts(), {}
    for member, table in (("y_true", given.y_true), (name, getattr(given, name))):
        said[member], names = listed(table, member)
        if names is None:
            continue
        names = _translated_names(names, given.labels)
        if member == "y_true":
            facts.setdefault("labels", names)
        if "labels" in facts:
            axis = getattr(table, "columns", None)
            places = _places(axis, names, facts["labels"], given.labels, f"{member}: the columns")
            said[member] = [[row[place] for place in places] for row in said[member]]
    return {"kind": "multilabel", **facts, **said}


def _of_arrays(request: Mapping[str, Any], given: Given, name: str, watch: Watcher | None) -> Prepared:
    if given.y_true is None:
        raise InvalidInput("y_true: expected the actual classes, got none", code="missing")
    if has_rows(given.y_true):
        source = _of_labels(given, name)
        if given.threshold is not None:
            source["thresholds"] = source.pop("threshold")
        return {**request, "input": {**source, **given.beside()}}, None, {}
    facts: dict[str, Any] = {"kind": KINDS[name], **given.facts()}
    columns: list[Data] = [column(_translated(given.y_true, given.labels, "y_true"), "y_true")]
    if name == "y_pred":
        columns.append(column(_translated(given.y_pred, given.labels, "y_pred"), "y_pred"))
    elif name == "probabilities" or has_rows(given.scores):
        found, names = rows(getattr(given, name), name)
        if names is not None:
            names = _translated_names(names, given.labels)
            facts.setdefault("labels", names)
            axis = getattr(getattr(given, name), "columns", None)
            places = _places(axis, names, facts["labels"], given.labels, f"{name}: the columns")
            found = replace(found, values=[found.values[place] for place in places])
        columns.append(found)
    else:
        columns.append(column(given.scores, "scores"))
    columns += [column(getattr(given, one), one) for one in _BESIDE if getattr(given, one) is not None]
    check_lengths(columns)
    if not given.renormalize:
        _refuse_logits(columns)
    _refuse_columns(columns, facts)
    beside = given.attribute_columns()
    asked = {**request, "input": {**facts, **beside}}
    if sum(one.cells for one in columns) <= STREAMED_CELLS:
        return json_body(asked, columns), None, {}
    labels = _column_labels(facts, columns)
    if has_arrow() and labels is not None and not beside:
        form = arrow_form({**request, "input": {**facts, **_named(labels)}}, columns, labels, watch)
        if form is not None:
            return None, *form
    return None, json_parts(asked, columns, watch), {"Content-Type": "application/json"}


def _named(labels: Sequence[str]) -> dict[str, Any]:
    return {"labels": [*labels]} if labels else {}


def _translated(values: Any, labels: Any, name: str) -> Any:
    """Codes as the names that a mapping of labels gives them; anything else as it is."""
    if not isinstance(labels, Mapping):
        return values
    found = plain(values, name)
    codes = found if isinstance(found, list) else found.tolist()
    names = {*labels.values()}
    unknown = sorted({str(one) for one in codes if one not in labels and one not in names})
    if unknown:
        raise InvalidInput(f"{name}: {', '.join(unknown[:5])} is none of the codes of labels", code="unknown_label")
    return [labels.get(one, one) for one in codes]


def _refuse_columns(columns: Sequence[Data], facts: Mapping[str, Any]) -> None:
    """Columns of probabilities are the classes: what are too many or too few is said before any sum is wrong."""
    wide = next((one for one in columns if isinstance(one, Rows) and one.name == "probabilities"), None)
    if wide is None:
        return
    truth, labels = columns[0], facts.get("labels")
    if labels is not None and len(labels) != wide.width:
        raise InvalidInput(
            f"probabilities: expected a column for each of {len(labels)} labels, got {wide.width}", code="array_shape"
        )
    if len(truth) * wide.width > STREAMED_CELLS:
        return
    classes = list(dict.fromkeys(one for one in truth.part(0, len(truth)) if isinstance(one, str | int)))
    if labels is None and len(classes) > wide.width:
        raise InvalidInput(
            f"probabilities: expected a column for each class, got {wide.width} for the {len(classes)} in y_true",
            code="array_shape",
        )
    named = [*map(str, classes)]
    if wide.by_column and labels is not None and {*named} < {*map(str, labels)}:
        sums = [sum(row) for row in wide.part(0, 10)]
        if any(abs(one - 1) > _ROUGH_SUM for one in sums):
            extra = [str(one) for one in labels if str(one) not in named]
            raise InvalidInput(
                f"probabilities: the columns of the table are classes, and {', '.join(extra[:5])} "
                f"{'is' if len(extra) == 1 else 'are'} none of y_true; give those of the classes: "
                f"probabilities[{sorted(named)[:10]}]",
                code="array_shape",
            )


def _refuse_logits(columns: Sequence[Data]) -> None:
    """Numbers beyond 0 and 1 are no probabilities; only the first ones are looked at, the service looks at all."""
    for one in columns:
        if isinstance(one, Rows) and one.name == "probabilities" and len(one):
            first = one.part(0, 10)
            compact(first, one.name)
            wrong = [
                (f"[{row}][{col}]", value)
                for row, values in enumerate(first)
                for col, value in enumerate(values)
                if isinstance(value, bool) or not hasattr(value, "__float__")
            ]
            if wrong:
                where, value = wrong[0]
                raise InvalidInput(
                    f"probabilities{where}: expected a number, got {type(value).__name__}", code="array_type"
                )
            outside = [value for row in first for value in row if not -1e-6 <= value <= 1 + 1e-6]
            if outside:
                raise InvalidInput(
                    f"probabilities: expected numbers from 0 to 1, got {outside[0]:.6g}. Of logits take the softmax "
                    "first, or give them as scores",
                    code="not_probabilities",
                )


def _column_labels(facts: Mapping[str, Any], columns: Sequence[Data]) -> list[str] | None:
    """Return the names of the columns of rows in a file; None if a file cannot have them."""
    wide = next((one for one in columns if isinstance(one, Rows)), None)
    if wide is None:
        return []
    labels = facts.get("labels")
    if labels is None:
        truth, found = columns[0], set[Any]()
        for start in range(0, len(truth), STREAMED_CELLS):
            found.update(truth.part(start, start + STREAMED_CELLS))
        try:
            labels = sorted(found)
        except TypeError:  # what is no label, the service says
            return None
    texts = [label_name(one) for one in labels]
    usable = len(texts) == wide.width and len(set(texts)) == len(texts) and not {*COLUMNS, *COLUMNS.values()} & {*texts}
    return texts if usable and not any(isinstance(one, bool) for one in labels) else None


def _of_file(request: Mapping[str, Any], given: Given, watch: Watcher | None) -> Prepared:
    path = given.file
    if path is None:
        raise InvalidInput("file: expected a path, got none", code="missing")
    named = _column_names(given)
    source: dict[str, Any] = {"kind": _kind_of_file(given, path), **(given.input or {}), **given.facts()}
    if named:
        source["columns"] = named if [*named] == ["attributes"] else {**_own_names(source["kind"]), **named}
    parts, headers = file_form({**request, "input": source}, path, watch)
    return None, parts, headers


def _own_names(kind: str) -> dict[str, str]:
    """Columns that a kind needs under the names of the service: those that have no other name."""
    wanted = (
        "y_true",
        *(COLUMNS[member] for member, one in KINDS.items() if one == kind and member != "probabilities"),
    )
    return {name: name for name in wanted} if kind in KINDS.values() else {}


def _of_data(given: Given, data: str | Mapping[str, Any]) -> dict[str, Any]:
    """The input of files that the service is to read; `columns` of the data itself count first."""
    if given.file is not None:
        raise InvalidInput("expected a file or data, got both", code="one_of")
    kind = _kind_of_columns(given)
    if kind is None:
        raise InvalidInput("data: say what the columns hold, by y_pred, scores or probabilities", code="missing")
    named = _column_names(given)
    source = {"uri": data} if isinstance(data, str) else dict(data)
    where = {**({"columns": named} if named else {}), **source}
    return {"kind": kind, **(given.input or {}), **given.facts(), "data": where}


def _column_names(given: Given) -> dict[str, Any]:
    named = {column: getattr(given, member) for member, column in COLUMNS.items()}
    found: dict[str, Any] = {
        name: value if isinstance(value, str) else [*value] for name, value in named.items() if value is not None
    }
    if given.attributes is not None:
        own = given.attributes
        found["attributes"] = dict(own) if isinstance(own, Mapping) else {one: one for one in own}
    return found


def _kind_of_columns(given: Given) -> str | None:
    if given.input is not None and "kind" in given.input:
        return str(given.input["kind"])
    return next((kind for member, kind in KINDS.items() if getattr(given, member) is not None), None)


def _kind_of_file(given: Given, path: Path) -> str:
    found = _kind_of_columns(given)
    if found is not None:
        return found
    names = column_names(path)
    if names is None:
        raise InvalidInput(
            f"{path.name}: say what the columns hold, by y_pred, scores or probabilities; to look into the file "
            "by itself the client needs pyarrow",
            code="missing_package",
        )
    kind = next((kind for member, kind in KINDS.items() if COLUMNS[member] in names), KINDS["probabilities"])
    if kind == KINDS["probabilities"] and {*_column_names(given)} - {"attributes"}:
        raise InvalidInput(
            f"{path.name}: where columns are named only these are read: name y_pred, scores, or probabilities with "
            "labels in their order",
            code="missing",
        )
    return kind


def column_names(path: Path) -> list[str] | None:
    """The names of the columns of a file; None where its format needs a package that is not there.

    Raises:
        InvalidInput: there is no such file, or it is none of the formats.
    """
    if not path.is_file():
        raise InvalidInput(f"there is no file {path}", code="no_such_file")
    with path.open("rb") as file:
        start = file.read(8)
    if start.startswith(b"PK"):
        try:
            with zipfile.ZipFile(path) as archive:
                return [name.removesuffix(".npy") for name in archive.namelist()]
        except zipfile.BadZipFile as error:
            raise InvalidInput(f"{path.name} cannot be read: {error}", code="unreadable") from error
    if start.startswith(b"\x1f\x8b"):
        raise InvalidInput(f"{path.name}: expected a file that is not packed, got gzip", code="unreadable")
    if start.startswith((b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")):
        return _arrow_names(path, start) if has_arrow() else None
    try:
        with path.open(newline="", encoding="utf-8-sig") as text:
            return next(csv.reader(text), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"{path.name}: expected Parquet, Arrow, CSV or NPZ: {error}", code="unreadable") from error


def _arrow_names(path: Path, start: bytes) -> list[str]:
    import pyarrow as pa  # only for its formats
    import pyarrow.parquet as pq

    try:
        if start.startswith(b"PAR1"):
            return list(pq.read_schema(path).names)
        opened = pa.ipc.open_file if start.startswith(b"ARROW1") else pa.ipc.open_stream
        return list(opened(path.open("rb")).schema.names)
    except (pa.ArrowException, OSError) as error:
        raise InvalidInput(f"{path.name} cannot be read: {error}", code="unreadable") from error
