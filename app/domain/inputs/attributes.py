"""Attributes of samples, such as sex, site or age: whom or where each sample is about, and what slices are made of."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

from app.domain.errors import InvalidInput
from app.domain.inputs.labels import LONGEST_NAME, fault_of_name, normalized
from app.domain.wording import described

MOST_ATTRIBUTES: Final = 50
# Of texts and flags; numbers have no limit.
MOST_VALUES: Final = 1000
# Whole numbers up to here are exact as doubles.
_EXACT = 2**53
Value = str | bool | int | float | None
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
        """All of them as one text, which is kept as a column of its own."""
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
        InvalidInput: they are too many, one has another length, a value is no text, flag or number, or texts have too
            many values.
    """
    if len(given) > MOST_ATTRIBUTES:
        raise InvalidInput.at(pointer, "too_many", f"expected at most {MOST_ATTRIBUTES} attributes, got {len(given)}")
    return Attributes({normalized(name): _read(column, size, f"{pointer}/{name}") for name, column in given.items()})


def _read(column: Sequence[Any], size: int, pointer: str) -> Attribute:
    if len(column) != size:
        raise InvalidInput.at(pointer, "wrong_length", f"expected {size} values, one per sample, got {len(column)}")
    places: dict[tuple[bool, Value], int] = {}
    codes = [places.setdefault(_key(value, f"{pointer}/{place}"), len(places)) for place, value in enumerate(column)]
    values = [value for _, value in places]
    if not all(type(one) in (int, float) or one is None for one in values) and len(values) > MOST_VALUES:
        detail = f"expected at most {MOST_VALUES} different values, got {len(values)}"
        raise InvalidInput.at(pointer, "too_many", detail)
    order = sorted(range(len(values)), key=lambda place: _rank(values[place]))
    renamed = np.empty(len(values), dtype=np.intp)
    renamed[order] = np.arange(len(values))
    return Attribute(renamed[np.array(codes, dtype=np.intp)], tuple(values[place] for place in order))


def _key(value: Any, pointer: str) -> tuple[bool, Value]:
    """A value, apart from others that Python takes for equal: true is not 1."""
    if isinstance(value, str):
        text = normalized(value)
        fault = fault_of_name(text) if text else None
        if fault is not None or len(text) > LONGEST_NAME:
            raise InvalidInput.at(pointer, "bad_attribute", fault or f"expected at most {LONGEST_NAME} characters")
        return False, text
    if value is None or isinstance(value, bool):
        return isinstance(value, bool), value
    if isinstance(value, int | float):
        if not math.isfinite(value) or abs(value) > _EXACT:
            raise InvalidInput.at(pointer, "out_of_range", f"expected a number of at most 2^53, got {value}")
        return False, int(value) if value == int(value) else float(value)
    raise InvalidInput.at(
        pointer, "bad_attribute", f"expected a text, a number, true, false or null, got {described(value)}"
    )


def _rank(value: Value) -> tuple[int, float, str]:
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
    keys = {(isinstance(value, bool), value): value for one in parts for value in one.values}
    values = sorted(keys.values(), key=_rank)
    places = {(isinstance(value, bool), value): place for place, value in enumerate(values)}
    codes = [
        np.array([places[isinstance(value, bool), value] for value in one.values], dtype=np.intp)[one.codes]
        for one in parts
    ]
    return Attribute(np.concatenate(codes), tuple(values))
