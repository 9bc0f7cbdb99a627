"""Names that people give, and class labels as they come with their codes 0 .. K-1.

A name is what is seen. Unicode writes some letters in two ways (one character, or a letter and an accent), so names are
brought to one form, NFC; characters that nobody sees, or that turn the text around them, are refused.

A label is a text or an integer. Two spellings that libraries make of these are understood: whole numbers written with a
fraction (1.0) are integers, and booleans are the classes "false" and "true". Where the classes are declared, booleans
are found among them as false, False or 0 and true, True or 1; beside a column of integers they are 0 and 1.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import InvalidInput
from app.domain.wording import shown as shown

Label = str | int
MOST_CLASSES = 1000
# Integer labels that lie this close together are coded by a table; others by a sort.
_TABLE_SPAN = 1 << 16
# Doubles hold every whole number up to here.
_LARGEST_WHOLE = 2.0**53
# Entries that are looked at together until there are too many classes.
_BLOCK = 1 << 12
# As `str` writes an integer.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
# Messages list this many labels.
_MOST_LISTED = 10
_WHOLE_NAME = re.compile(r"(-?[0-9]+)\.0+")
# How the classes of a column of booleans may be called, the usual name first.
_BOOLEANS = (("false", "False", "0"), ("true", "True", "1"))
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


@dataclass(frozen=True, slots=True, eq=False)
class CodedTexts:
    """A column of texts that holds each text once, as files give it.

    Attributes:
        codes: (n) which of the texts stands at each place.
        texts: All different; some may not occur.
    """

    codes: NDArray[np.integer[Any]]
    texts: Sequence[str]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, index: int) -> str:
        return self.texts[int(self.codes[index])]

    def taken(self, rows: NDArray[np.integer[Any]]) -> "CodedTexts":
        """Entries at some places."""
        return CodedTexts(self.codes[rows], self.texts)


# A column of numbers: a JSON array as a list, or what a fast reader made of it. Labels and ids may be coded texts too.
Numbers = list[Any] | NDArray[Any]
Column = Numbers | CodedTexts
# The same, known to hold labels only: int64, booleans or texts.
Labelled = NDArray[np.int64] | NDArray[np.bool_] | list[str] | CodedTexts


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """Columns as class codes: labels (K) and, by column name, codes (n) into them."""

    labels: tuple[str, ...]
    codes: Mapping[str, NDArray[np.int64]]


def taken(column: Any, rows: NDArray[np.intp]) -> Any:
    """The entries of a column at some places, in the form that the column has."""
    if isinstance(column, CodedTexts):
        return column.taken(rows)
    return [column[row] for row in rows.tolist()] if isinstance(column, list) else column[rows]


def encode(
    columns: Mapping[str, Column], declared: Sequence[str] | None, pointer: str, most: int = MOST_CLASSES
) -> Coded:
    """Code columns of labels by one common set of classes. No column is read beyond the first class too many.

    Args:
        columns: By name, the name being the last part of the pointer to it.
        declared: The classes; None takes those that occur, integers by value, strings by alphabet.
        pointer: JSON pointer to the object that holds the columns.
        most: Classes that may occur when none are declared.

    Raises:
        InvalidInput: a label that is neither string, integer nor boolean, mixed types without declared classes, a label
            that is not among the declared ones, or too many classes.
    """
    plain = {name: as_labels(column, f"{pointer}/{name}") for name, column in columns.items()}
    arrays = {name: column for name, column in plain.items() if isinstance(column, np.ndarray)}
    if len(arrays) == len(plain):
        spelled: Callable[[int], str] = str
        if all(array.dtype.kind == "b" for array in arrays.values()):
            spelled = [_boolean(code, declared) for code in (0, 1)].__getitem__
        whole = {name: array.astype(np.int64, copy=False) for name, array in arrays.items()}
        return _encode_integers(whole, declared, spelled, pointer, most)
    if declared is None and arrays:
        name = next(iter(arrays))
        raise InvalidInput.at(
            f"{pointer}/{name}", "mixed_labels", f"expected strings as in the other column, got {_kind(arrays[name])}"
        )
    return _encode_texts({name: _as_texts(column, declared) for name, column in plain.items()}, declared, pointer, most)


def _kind(array: NDArray[Any]) -> str:
    return "booleans" if array.dtype.kind == "b" else "integers"


def _boolean(code: int, declared: Sequence[str] | None) -> str:
    names = _BOOLEANS[code]
    return next((name for name in names if name in (declared or ())), names[0])


def _as_texts(column: Labelled, declared: Sequence[str] | None) -> list[str] | CodedTexts:
    if not isinstance(column, np.ndarray):
        return column
    if column.dtype.kind == "b":
        return CodedTexts(column.astype(np.int64), [_boolean(code, declared) for code in (0, 1)])
    return list(map(str, column.tolist()))


def as_labels(column: Column, pointer: str, *, code: str = "not_a_label") -> Labelled:
    """A column of labels or ids: int64, booleans or texts.

    Args:
        column: As it came.
        pointer: JSON pointer to it.
        code: Of the fault when an entry is something else.

    Raises:
        InvalidInput: an entry is neither string, integer, whole number nor boolean, or they are of several types.
    """
    if isinstance(column, CodedTexts):
        return column
    if isinstance(column, np.ndarray):
        if column.ndim != 1:
            raise _not_a_label(f"{pointer}/0", column[0].tolist(), code)
        return _array_labels(column, pointer, code)
    types = set(map(type, column))
    if types == {str}:
        return column
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
    return [str(text) for text in column.tolist()]


def first_fraction(column: NDArray[Any]) -> int | None:
    """Index of the first number of an array of floats that is not whole, or too large to be sure of; None without."""
    bad = ~((column == np.floor(column)) & (np.abs(column) <= _LARGEST_WHOLE))
    return int(np.argmax(bad)) if bad.any() else None


def _not_a_label(pointer: str, value: Any, code: str) -> InvalidInput:
    return InvalidInput.at(pointer, code, f"expected a string or an integer, got {described(value)}")


def _too_large(pointer: str) -> InvalidInput:
    return InvalidInput.at(
        pointer, "label_too_large", "expected integer labels within 64 bits; send larger ones as strings"
    )


def described(value: Any) -> str:
    """Type of a JSON value in words, with the value of a number."""
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


def _encode_integers(
    arrays: Mapping[str, NDArray[np.int64]],
    declared: Sequence[str] | None,
    spelled: Callable[[int], str],
    pointer: str,
    most: int,
) -> Coded:
    low = min(int(array.min()) for array in arrays.values())
    high = max(int(array.max()) for array in arrays.values())
    near = high - low < _TABLE_SPAN
    if near:
        present = sum(np.bincount(array - low, minlength=high - low + 1) for array in arrays.values())
        values = np.flatnonzero(present) + low
    else:
        # One that occurs among them, so that there is one.
        values = np.unique([high, *(int(text) for text in declared or () if _INTEGER.fullmatch(text))])
    if declared is None and (not near or len(values) > most):
        values = _occurring_integers(arrays, pointer, most)
    texts = [spelled(value) for value in values.tolist()]
    labels = tuple(texts) if declared is None else tuple(declared)
    order = {text: code for code, text in enumerate(labels)}
    known = np.array([order.get(text, -1) for text in texts], dtype=np.int64)
    table = np.full(high - low + 1 if near else 0, -1, dtype=np.int64)
    if near:
        table[values - low] = known

    def coded(array: NDArray[np.int64]) -> NDArray[np.int64]:
        if near:
            return np.asarray(table[array - low])
        places = np.minimum(np.searchsorted(values, array), len(values) - 1)
        return np.where(values[places] == array, known[places], -1)

    codes = {name: coded(array) for name, array in arrays.items()}
    for name, column in codes.items():
        if column.min() < 0:
            index = int(np.argmin(column))
            raise _unknown(f"{pointer}/{name}/{index}", spelled(int(arrays[name][index])), labels)
    return Coded(labels, codes)


def _occurring_integers(arrays: Mapping[str, NDArray[np.int64]], pointer: str, most: int) -> NDArray[np.int64]:
    """The different integers, in order; raises InvalidInput at the first beyond ``most``."""
    found = np.empty(0, dtype=np.int64)
    for name, array in arrays.items():
        for start in range(0, len(array), _BLOCK):
            values, first = np.unique(array[start : start + _BLOCK], return_index=True)
            new = ~np.isin(values, found)
            if len(found) + np.count_nonzero(new) > most:
                index = start + int(np.sort(first[new])[most - len(found)])
                raise _too_many(f"{pointer}/{name}/{index}", most)
            found = np.union1d(found, values)
    return found


def _encode_texts(
    columns: Mapping[str, list[str] | CodedTexts], declared: Sequence[str] | None, pointer: str, most: int
) -> Coded:
    """Texts are compared as they are seen: NFC and NFD of one text are one class."""
    spelled: dict[str, str] = {}
    classes = dict.fromkeys(declared or ())
    for name, column in columns.items():
        places = _first_places(column)
        for start in range(0, len(places), _BLOCK):
            some = places[start : start + _BLOCK]
            block = column[start : start + _BLOCK] if isinstance(column, list) else [column[index] for index in some]
            new = {text: normalized(text) for text in {*block} - spelled.keys()}
            if classes.keys() >= {*new.values()}:
                spelled |= new
                continue
            for index, text in zip(some, block, strict=True):
                if text in new and new[text] not in classes:
                    if declared is not None:
                        raise _unknown(f"{pointer}/{name}/{index}", text, declared)
                    if len(classes) == most:
                        raise _too_many(f"{pointer}/{name}/{index}", most)
                    classes[new[text]] = None
            spelled |= new
    labels = tuple(declared) if declared is not None else tuple(sorted(classes))
    order = {text: code for code, text in enumerate(labels)}
    code_of = {text: order[one] for text, one in spelled.items()}
    codes: dict[str, NDArray[np.int64]] = {}
    for name, column in columns.items():
        if isinstance(column, CodedTexts):
            table = np.full(len(column.texts), -1, dtype=np.int64)
            for index in _first_places(column):
                table[column.codes[index]] = code_of[column[index]]
            codes[name] = table[column.codes]
        else:
            codes[name] = np.fromiter(map(code_of.__getitem__, column), dtype=np.int64, count=len(column))
    return Coded(labels, codes)


def _first_places(column: list[str] | CodedTexts) -> Sequence[int]:
    """Places of a column that have all of its texts: of one that holds each once where they occur first, in order."""
    if not isinstance(column, CodedTexts):
        return range(len(column))
    first = np.full(len(column.texts), len(column), dtype=np.int64)
    # Of several that are written to one place the last stays.
    first[column.codes[::-1]] = np.arange(len(column))[::-1]
    places: list[int] = np.sort(first[first < len(column)]).tolist()
    return places


def _unknown(pointer: str, text: str, labels: Sequence[str]) -> InvalidInput:
    return InvalidInput.at(pointer, "unknown_label", f"expected one of {listed(labels)}, got {shown(text)}")


def _too_many(pointer: str, most: int) -> InvalidInput:
    return InvalidInput.at(pointer, "too_many_classes", f"expected at most {most} classes, here is one more")


def listed(labels: Sequence[str]) -> str:
    """Labels for a message, the first ten of many."""
    more = f" and {len(labels) - _MOST_LISTED} more" if len(labels) > _MOST_LISTED else ""
    return ", ".join(map(shown, labels[:_MOST_LISTED])) + more
