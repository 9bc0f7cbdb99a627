"""Class labels as they come, strings or integers, and their codes 0 .. K-1."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import InvalidInput

Label = str | int
# A column of labels, ids or numbers: a JSON array as a list, or what a fast reader made of it.
Column = list[Any] | NDArray[Any]
# Integer labels that lie this close together are coded by a table; others by a sort.
_TABLE_SPAN = 1 << 16
# Messages list this many labels.
_MOST_LISTED = 10
_LONGEST_SHOWN = 60


def label_text(label: Any) -> str:
    """A label as text; the integer 3 and the string "3" are the same class."""
    return label if isinstance(label, str) else str(label)


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """Columns as class codes: labels (K) and, by column name, codes (n) into them."""

    labels: tuple[str, ...]
    codes: Mapping[str, NDArray[np.int64]]


def encode(columns: Mapping[str, Column], declared: Sequence[str] | None, pointer: str) -> Coded:
    """Code columns of labels by one common set of classes.

    Args:
        columns: By name, the name being the last part of the pointer to it.
        declared: The classes; None takes those that occur, integers by value, strings by alphabet.
        pointer: JSON pointer to the object that holds the columns.

    Raises:
        InvalidInput: a label that is neither string nor integer, mixed types without declared classes, or a label
            that is not among the declared ones.
    """
    kinds = {name: _kind(column, f"{pointer}/{name}") for name, column in columns.items()}
    if all(kind is int for kind in kinds.values()):
        arrays = {name: _integers(column, f"{pointer}/{name}") for name, column in columns.items()}
        return _encode_integers(arrays, declared, pointer)
    if declared is None and len(set(kinds.values())) > 1:
        name = next(name for name, kind in kinds.items() if kind is int)
        raise InvalidInput.at(
            f"{pointer}/{name}", "mixed_labels", "expected strings as in the other column, got integers"
        )
    texts = {name: list(map(label_text, column)) for name, column in columns.items()}
    return _encode_texts(texts, declared, pointer)


def _kind(column: Column, pointer: str) -> type:
    if isinstance(column, np.ndarray):
        if column.dtype.kind in "iu":
            return int
        index = first_fraction(column)
        value = column[index]
    else:
        types = set(map(type, column))
        if types == {int}:
            return int
        if types == {str}:
            return str
        allowed = str if str in types else int
        index, value = next((i, v) for i, v in enumerate(column) if type(v) is not allowed)
        if types == {int, str}:
            raise InvalidInput.at(
                f"{pointer}/{index}", "mixed_labels", "expected labels of one type, got strings and integers"
            )
    raise InvalidInput.at(
        f"{pointer}/{index}", "not_a_label", f"expected a string or an integer, got {described(value)}"
    )


def first_fraction(column: NDArray[Any]) -> int:
    """Index of the first number of an array of floats that is not whole; 0 when all were written like 1.0."""
    return int(np.argmax(column != np.floor(column)))


def described(value: Any) -> str:
    """What a JSON value is, in words."""
    match value:
        case str():
            return "a string"
        case None:
            return "null"
        case bool():
            return "a boolean"
        case float() | np.floating():
            return f"the number {value}"
        case list():
            return "an array"
        case dict():
            return "an object"
    return type(value).__name__


def _integers(column: Column, pointer: str) -> NDArray[np.int64]:
    try:
        return np.asarray(column, dtype=np.int64)
    except OverflowError:
        index = next(i for i, v in enumerate(column) if not -(2**63) <= v < 2**63)
        raise InvalidInput.at(
            f"{pointer}/{index}",
            "label_too_large",
            "expected integer labels within 64 bits; send larger ones as strings",
        ) from None


def _encode_integers(arrays: Mapping[str, NDArray[np.int64]], declared: Sequence[str] | None, pointer: str) -> Coded:
    low = min(int(array.min()) for array in arrays.values())
    high = max(int(array.max()) for array in arrays.values())
    if high - low < _TABLE_SPAN:
        present = sum(np.bincount(array - low, minlength=high - low + 1) for array in arrays.values())
        values = np.flatnonzero(present) + low
        shifted = {name: array - low for name, array in arrays.items()}
        places = values - low
        span = high - low + 1
    else:
        values, inverse = np.unique(np.concatenate(list(arrays.values())), return_inverse=True)
        ends = np.cumsum([len(array) for array in arrays.values()])[:-1]
        shifted = dict(zip(arrays, np.split(inverse, ends), strict=True))
        places = np.arange(len(values))
        span = len(values)
    texts = [str(value) for value in values.tolist()]
    labels = tuple(texts) if declared is None else tuple(declared)
    order = {text: code for code, text in enumerate(labels)}
    table = np.full(span, -1, dtype=np.int64)
    table[places] = [order.get(text, -1) for text in texts]
    codes = {name: table[array] for name, array in shifted.items()}
    for name, column in codes.items():
        if declared is not None and column.min() < 0:
            index = int(np.argmin(column))
            raise _unknown(f"{pointer}/{name}/{index}", str(arrays[name][index]), labels)
    return Coded(labels, codes)


def _encode_texts(columns: Mapping[str, Sequence[str]], declared: Sequence[str] | None, pointer: str) -> Coded:
    labels = tuple(declared) if declared is not None else tuple(sorted(set().union(*columns.values())))
    order = {text: code for code, text in enumerate(labels)}
    codes: dict[str, NDArray[np.int64]] = {}
    for name, column in columns.items():
        try:
            codes[name] = np.fromiter(map(order.__getitem__, column), dtype=np.int64, count=len(column))
        except KeyError:
            index = next(i for i, text in enumerate(column) if text not in order)
            raise _unknown(f"{pointer}/{name}/{index}", column[index], labels) from None
    return Coded(labels, codes)


def _unknown(pointer: str, text: str, labels: Sequence[str]) -> InvalidInput:
    return InvalidInput.at(pointer, "unknown_label", f"expected one of {listed(labels)}, got {shown(text)}")


def shown(text: str) -> str:
    """A text for a message, cut when it is long."""
    return repr(text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…")


def listed(labels: Sequence[str]) -> str:
    """Labels for a message, the first ten of many."""
    more = f" and {len(labels) - _MOST_LISTED} more" if len(labels) > _MOST_LISTED else ""
    return ", ".join(map(shown, labels[:_MOST_LISTED])) + more
