"""Attributes of samples, such as sex, site or age: whom or where each sample is about, and what slices are made of."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

from app.domain.errors import InvalidInput, in_pointer
from app.domain.inputs.labels import fault_of_name, normalized, shown
from app.domain.wording import described

MOST_ATTRIBUTES: Final = 50
# Of texts and flags; numbers have no limit.
MOST_VALUES: Final = 1000
# Whole numbers up to here are exact as doubles.
_EXACT = 2**53
Value = str | bool | int | float | None
_TYPES = frozenset({str, bool, int, float, type(None)})
Codes = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Attribute:
    """One attribute of samples.

    Attributes:
        codes: (n) place of the value of each sample.
        values: The different ones, in their order: nothing last, numbers by size, before texts by alphabet.
    """

    codes: Codes
    values: tuple[Value, ...]

    @property
    def is_number(self) -> bool:
        """Are all values numbers, as far as they are there?"""
        known = [one for one in self.values if one is not None]
        return bool(known) and all(type(one) in (int, float) for one in known)

    def taken(self, places: NDArray[np.intp]) -> "Attribute":
        """Return that of some samples, with all values that there may be."""
        return Attribute(self.codes[places], self.values)


@dataclass(frozen=True, slots=True, eq=False)
class Attributes:
    """Attributes of samples by name, in the order in which they came."""

    by_name: Mapping[str, Attribute]

    def taken(self, places: NDArray[np.intp]) -> "Attributes":
        """Return those of some samples."""
        return Attributes({name: one.taken(places) for name, one in self.by_name.items()})

    def as_column(self) -> NDArray[Any]:
        """All of them as one text, which is saved as a column of its own."""
        content = {
            name: {"values": list(one.values), "codes": one.codes.tolist()} for name, one in self.by_name.items()
        }
        return np.array([orjson.dumps(content).decode()])

    @classmethod
    def of_column(cls, column: NDArray[Any]) -> "Attributes":
        """Make them of the text that `as_column` made."""
        content = orjson.loads(str(column[0]))
        return cls(
            {
                name: Attribute(np.array(one["codes"], dtype=np.intp), tuple(one["values"]))
                for name, one in content.items()
            }
        )


def read_attributes(given: Mapping[str, Sequence[Any]], size: int, pointer: str) -> Attributes:
    """Return attributes of n samples.

    Raises:
        InvalidInput: they are too many, a name is none, one has another length, a value is no text, flag or number, or
            texts have too many values.
    """
    if len(given) > MOST_ATTRIBUTES:
        raise InvalidInput.at(pointer, "too_many", f"expected at most {MOST_ATTRIBUTES} attributes, got {len(given)}")
    found: dict[str, Attribute] = {}
    for name, column in given.items():
        place, known = f"{pointer}/{in_pointer(name)}", normalized(name)
        fault = fault_of_name(name)
        if fault is not None:
            raise InvalidInput.at(place, "bad_attribute", f"{fault} in the name")
        if known in found:
            raise InvalidInput.at(place, "bad_attribute", f"expected names that differ, got {shown(name)} twice")
        found[known] = _read(column, size, place)
    return Attributes(found)


def _read(column: Sequence[Any], size: int, pointer: str) -> Attribute:
    if len(column) != size:
        raise InvalidInput.at(pointer, "wrong_length", f"expected {size} values, one per sample, got {len(column)}")
    types = {*map(type, column)}
    if not types <= _TYPES:
        place = next(place for place, value in enumerate(column) if type(value) not in _TYPES)
        detail = f"expected a text, a number, true, false or null, got {described(column[place])}"
        raise InvalidInput.at(f"{pointer}/{place}", "bad_attribute", detail)
    # There may be millions of values, of which few differ: each different one is looked at once. Python takes true for
    # 1, which are told apart where there are both.
    mixed = bool in types and not types.isdisjoint((int, float))
    entries: Sequence[Any] = [*zip(map(type, column), column, strict=True)] if mixed else column
    places: dict[tuple[bool, Value], int] = {}
    known = {}
    for one in dict.fromkeys(entries):
        value = one[1] if mixed else one
        fault = _fault(value)
        if fault is not None:
            raise InvalidInput.at(f"{pointer}/{entries.index(one)}", *fault)
        known[one] = places.setdefault(value_key(value), len(places))
    codes = np.fromiter(map(known.__getitem__, entries), dtype=np.intp, count=size)
    values = [value for _, value in places]
    if not all(type(one) in (int, float) or one is None for one in values) and len(values) > MOST_VALUES:
        detail = f"expected at most {MOST_VALUES} different values, got {len(values)}"
        raise InvalidInput.at(pointer, "too_many", detail)
    order = sorted(range(len(values)), key=lambda place: value_rank(values[place]))
    renamed = np.empty(len(values), dtype=np.intp)
    renamed[order] = np.arange(len(values))
    return Attribute(renamed[codes], tuple(values[place] for place in order))


def _fault(value: Value) -> tuple[str, str] | None:
    """Code and sentence of a value that is none; None for others."""
    if isinstance(value, str):
        text = normalized(value)
        fault = fault_of_name(text) if text and not text.isspace() else None
        return None if fault is None else ("bad_attribute", fault)
    if value is not None and (not math.isfinite(value) or abs(value) > _EXACT):
        return "out_of_range", f"expected a number of at most 2^53, got {value}"
    return None


def value_key(value: Value) -> tuple[bool, Value]:
    """A value, apart from others that Python takes for equal: true is not 1."""
    if isinstance(value, str):
        return False, normalized(value)
    if value is None or isinstance(value, bool):
        return isinstance(value, bool), value
    return False, int(value) if value == int(value) else float(value)


def value_rank(value: Value) -> tuple[int, float, str]:
    """Place of a value among others: flags first, numbers by size, texts by alphabet, nothing last."""
    if value is None:
        return 3, 0.0, ""
    if isinstance(value, str):
        return 2, 0.0, value
    return 0 if isinstance(value, bool) else 1, float(value), ""


def joined_attributes(parts: Sequence[Attributes | None]) -> Attributes | None:
    """Attributes of several sets of samples as one; None where they have not all the same names."""
    known = [one for one in parts if one is not None]
    if len(known) < len(parts) or len({frozenset(one.by_name) for one in known}) > 1:
        return None
    return Attributes({name: _joined([one.by_name[name] for one in known]) for name in known[0].by_name})


def _joined(parts: Sequence[Attribute]) -> Attribute:
    values = sorted({value_key(value): value for one in parts for value in one.values}.values(), key=value_rank)
    places = {value_key(value): place for place, value in enumerate(values)}
    codes = [np.array([places[value_key(value)] for value in one.values], dtype=np.intp)[one.codes] for one in parts]
    return Attribute(np.concatenate(codes), tuple(values))


def of_units(given: Attributes, codes: NDArray[np.intp], unit: str, pointer: str) -> Attributes:
    """Attributes of units, of which each entry is one, by the code of each entry's.

    Raises:
        InvalidInput: entries of one unit have different values.
    """
    first = np.unique(codes, return_index=True)[1]
    for name, one in given.by_name.items():
        other = one.codes != one.codes[first[codes]]
        if other.any():
            place = int(np.argmax(other))
            detail = f"expected the value of the entry {first[codes[place]]}, of the same {unit}, got another"
            raise InvalidInput.at(f"{pointer}/{in_pointer(name)}/{place}", "attribute_differs", detail)
    return given.taken(first)
