"""Names that people give, and class labels as they come with their codes 0 .. K-1.

A name is what is seen. Unicode writes some letters in two ways (one character, or a letter and an accent), so names are
brought to one form, NFC; characters that nobody sees, or that turn the text around them, are refused.

A label is a text or an integer. Two spellings that libraries make of these are understood: whole numbers written with a
fraction (1.0) are integers, and booleans are the classes "false" and "true". Where the classes are declared, booleans
are found among them as false (False, FALSE) or 0 and true (True, TRUE) or 1; beside a column of integers they are 0
and 1.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.domain.errors import InvalidInput, UnknownClass
from app.domain.wording import described, did_you_mean, nearest_labels
from app.domain.wording import shown as shown

Label = str | int
MOST_CLASSES = 1000
# Doubles hold every whole number below this one; this one may also be the next, rounded.
INEXACT = 2.0**53
# Messages list this many labels.
_MOST_LISTED = 10
_WHOLE_NAME = re.compile(r"(-?[0-9]+)\.0+")
# How the classes of a column of booleans may be called, the usual name first.
_BOOLEANS = (("false", "False", "FALSE", "0"), ("true", "True", "TRUE", "1"))
LONGEST_NAME = 256
# Control characters, format characters (zero width, direction marks), halves of pairs, ends of lines and paragraphs.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def normalized(text: str) -> str:
    """The text in Unicode's form NFC, so that one name is written in one way."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def unseen_character(text: str) -> str | None:
    """The first character that is not seen, as U+0000; None when there is none."""
    if text.isprintable():
        return None
    return next((f"U+{ord(one):04X}" for one in text if unicodedata.category(one) in _UNSEEN), None)


def fault_of_name(text: str) -> str | None:
    """Fault of a text that is no name, as a sentence that says what was expected; None when it is one."""
    if not text:
        return f"expected 1 to {LONGEST_NAME} characters, got none"
    if len(text) > LONGEST_NAME:
        return f"expected 1 to {LONGEST_NAME} characters, got {len(text)}"
    unseen = unseen_character(text)
    if unseen is not None:
        return f"expected text without control characters and other unseen ones, got {unseen}"
    if text.isspace():
        return "expected more than spaces"
    return None


def label_text(label: Any) -> str:
    """A label as text; the integer 3 and the string "3" are the same class, True is "true"."""
    if isinstance(label, str):
        return label
    return _BOOLEANS[label][0] if isinstance(label, bool) else str(label)


def declared_label(value: Any) -> str | None:
    """A label as somebody declared it, as text; None when it is none."""
    if isinstance(value, float):
        return str(int(value)) if first_fraction(np.array([value])) is None else None
    return normalized(label_text(value)) if isinstance(value, str | int) else None


def class_of_column(name: str) -> str:
    """The class that a column is named after, as libraries write it: 1.0 is the class 1."""
    match = _WHOLE_NAME.fullmatch(name)
    return match[1] if match else normalized(name)


# A column of numbers: a JSON array as a list, or what a fast reader made of it. Labels and ids may be texts of Arrow.
Numbers: TypeAlias = list[Any] | NDArray[Any]
Column: TypeAlias = Numbers | pa.Array
# One that is known to hold labels only: int64, booleans or texts.
Labelled: TypeAlias = NDArray[np.int64] | NDArray[np.bool_] | pa.Array


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """Columns as class codes: labels (K) and, by column name, codes (n) into them."""

    labels: tuple[str, ...]
    codes: Mapping[str, NDArray[np.int64]]


def taken(column: Any, rows: NDArray[np.intp]) -> Any:
    """Return the entries of a column at some places, in the form that the column has."""
    if isinstance(column, pa.Array):
        return column.take(pa.array(rows))
    return [column[row] for row in rows.tolist()] if isinstance(column, list) else column[rows]


def different(column: Labelled) -> tuple[NDArray[np.integer[Any]], pa.Array]:
    """Return the codes (n) of the entries of a column, and the different entries in the order in which they come."""
    if isinstance(column, pa.DictionaryArray):
        # Some of its texts may not occur, or be there twice.
        codes, used = different(column.indices)
        return codes, column.dictionary.take(used)
    encoded = (column if isinstance(column, pa.Array) else pa.array(column)).dictionary_encode()
    return encoded.indices.to_numpy(), encoded.dictionary


def encode(
    columns: Mapping[str, Column], declared: Sequence[str] | None, pointer: str, most: int = MOST_CLASSES
) -> Coded:
    """Code columns of labels by one common set of classes. Texts are compared as they are seen, in Unicode's form NFC.

    Args:
        columns: By name, the name being the last part of the pointer to it.
        declared: The classes; None takes those that occur, integers by value, strings by alphabet.
        pointer: JSON pointer to the object that holds the columns.
        most: Classes that may occur when none are declared.

    Raises:
        InvalidInput: a label that is neither string, integer nor boolean, mixed types without declared classes, a label
            that is not among the declared ones, or too many classes.
    """
    plain = _of_one_type({name: as_labels(column, f"{pointer}/{name}") for name, column in columns.items()})
    if declared is None and len({isinstance(column, pa.Array) for column in plain.values()}) > 1:
        name, kind = next((name, one.dtype.kind) for name, one in plain.items() if isinstance(one, np.ndarray))
        got = "booleans" if kind == "b" else "integers"
        raise InvalidInput.at(
            f"{pointer}/{name}", "mixed_labels", f"expected strings as in the other column, got {got}"
        )
    found: dict[str, Any] = dict.fromkeys(declared or ())
    coded: dict[str, tuple[NDArray[np.integer[Any]], list[str]]] = {}
    for name, column in plain.items():
        codes, entries = different(column)
        texts: list[str] = []
        for place, entry in enumerate(entries):
            value = entry.as_py()
            text = _spelled(value, declared)
            if text not in found:
                if declared is not None or len(found) == most:
                    where = f"{pointer}/{name}/{int(np.argmax(codes == place))}"
                    if declared is not None:
                        raise unknown_label(where, value if isinstance(value, str) else text, declared)
                    detail = f"expected at most {most} classes, here is one more"
                    raise InvalidInput.at(where, "too_many_classes", detail)
                found[text] = text if isinstance(value, str) else value
            texts.append(text)
        coded[name] = codes, texts
    labels = tuple(sorted(found, key=found.__getitem__)) if declared is None else tuple(declared)
    order = {text: code for code, text in enumerate(labels)}
    return Coded(
        labels,
        {
            name: np.array([order[text] for text in texts], dtype=np.int64)[codes]
            for name, (codes, texts) in coded.items()
        },
    )


def _of_one_type(columns: Mapping[str, Labelled]) -> Mapping[str, Labelled]:
    """Return columns in which booleans beside integers are 0 and 1."""
    if {column.dtype.kind if isinstance(column, np.ndarray) else "U" for column in columns.values()} != {"b", "i"}:
        return columns
    return {name: np.asarray(column).astype(np.int64, copy=False) for name, column in columns.items()}


def _spelled(value: str | int, declared: Sequence[str] | None) -> str:
    """Return the name of a class; a boolean is found among declared ones."""
    if isinstance(value, bool):
        names = _BOOLEANS[value]
        return next((name for name in names if name in (declared or ())), names[0])
    return normalized(value) if isinstance(value, str) else str(value)


def as_labels(column: Column, pointer: str, *, code: str = "not_a_label") -> Labelled:
    """Return a column of labels or ids as int64, booleans or texts.

    Raises:
        InvalidInput: an entry is neither string, integer, whole number nor boolean, with this code, or they are of
            several types.
    """
    if isinstance(column, pa.Array):
        return column
    if isinstance(column, np.ndarray):
        if column.ndim != 1:
            raise _not_a_label(f"{pointer}/0", column[0].tolist(), code)
        return _array_labels(column, pointer, code)
    types = set(map(type, column))
    if types == {str}:
        return pa.array(column, pa.large_string())
    if types in ({bool}, {int}, {float}, {int, float}):
        try:
            kind: type = float if float in types else np.int64 if int in types else np.bool_
            return _array_labels(np.asarray(column, dtype=kind), pointer, code)
        except OverflowError:
            index = next(i for i, v in enumerate(column) if not -(2**63) <= v < 2**63)
            raise _too_large(f"{pointer}/{index}") from None
    allowed = {str} if str in types else {int, float} if float in types else {int}
    index, value = next((i, v) for i, v in enumerate(column) if type(v) not in allowed)
    if types == {int, str}:
        raise InvalidInput.at(
            f"{pointer}/{index}", "mixed_labels", "expected labels of one type, got strings and integers"
        )
    raise _not_a_label(f"{pointer}/{index}", value, code)


def _array_labels(column: NDArray[Any], pointer: str, code: str) -> Labelled:
    match column.dtype.kind:
        case "b":
            return column
        case "i" | "u":
            if column.dtype == np.uint64 and len(column) and column.max() >= 2**63:
                raise _too_large(f"{pointer}/{int(np.argmax(column >= 2**63))}")
            return column.astype(np.int64, copy=False)
        case "f":
            index = first_fraction(column)
            if index is not None:
                raise _not_a_label(f"{pointer}/{index}", column[index], code)
            return column.astype(np.int64)
    return pa.array(column)


def first_fraction(column: NDArray[Any]) -> int | None:
    """Index of the first number of an array of floats that is not whole, or too large to be sure of; None without."""
    bad = ~((column == np.floor(column)) & (np.abs(column) < INEXACT))
    return int(np.argmax(bad)) if bad.any() else None


def _not_a_label(pointer: str, value: Any, code: str) -> InvalidInput:
    may_be_probability = code == "not_a_label" and isinstance(value, float) and 0.0 < value < 1.0
    hint = "; probabilities are of the kinds `probabilities` and `scores`" if may_be_probability else ""
    return InvalidInput.at(pointer, code, f"expected a string or an integer, got {described(value)}{hint}")


def _too_large(pointer: str) -> InvalidInput:
    return InvalidInput.at(
        pointer, "label_too_large", "expected integer labels within 64 bits; send larger ones as strings"
    )


def unknown_label(pointer: str, text: str, labels: Sequence[str]) -> InvalidInput:
    """The refusal of a label that is none of the classes; the nearest ones are offered."""
    near = nearest_labels(text, labels)
    detail = f"expected one of {listed(labels)}, got {shown(text)}{did_you_mean([*map(repr, near)])}"
    return InvalidInput.at(pointer, "unknown_label", detail, near)


def place_in(labels: Sequence[str], label: str) -> int:
    """The place of a class.

    Raises:
        UnknownClass: there is none of this name.
    """
    if label not in labels:
        near = nearest_labels(label, labels)
        raise UnknownClass(f"expected one of {listed(labels)}, got {shown(label)}", suggestions=near)
    return labels.index(label)


def listed(labels: Sequence[str]) -> str:
    """Labels for a message, the first ten of many."""
    more = f" and {len(labels) - _MOST_LISTED} more" if len(labels) > _MOST_LISTED else ""
    return ", ".join(map(shown, labels[:_MOST_LISTED])) + more
