"""JSON of answers: fields of frozen dataclasses become members, and numbers of arrays are written straight.

The name of a field is the name of its member. Where more has to be said, the metadata of the field says it::

    label: str | None = field(default=None, metadata=named("class") | LEFT_OUT)
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from math import isfinite
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self
from uuid import UUID

import numpy as np
import orjson

from app.kernel.numerics.arrays import Array

Metadata = dict[str, Any]
# The member is absent when it is None, where others are null.
LEFT_OUT: Metadata = {"left_out": True}
# The field is no member: it is there for what is done with the answer besides.
HIDDEN: Metadata = {"hidden": True}
# The members of this mapping or dataclass stand beside those of the others, if it is not None.
SPREAD: Metadata = {"spread": True}


def named(name: str) -> Metadata:
    """The member has another name than the field, such as a word that Python keeps for itself."""
    return {"name": name}


def typed(kind: Any) -> Metadata:
    """The type that the documentation shows, where that of the field says too little, such as one of an array."""
    return {"type": kind}


def members(answer: Any) -> dict[str, Any]:
    """The members of one dataclass, values as they are."""
    kind: Any = type(answer)
    layout = _layout(kind)
    found = dict(zip(layout.names, layout.values(answer), strict=True))
    for name in layout.optional:
        if found[name] is None:
            del found[name]
    for name in layout.spread:
        part = found.pop(name)
        if part is not None:
            found |= members(part) if is_dataclass(part) else part
    return found


class _Layout(NamedTuple):
    """Names of the members of a dataclass, what reads them all at once, and those that its metadata speaks of."""

    names: tuple[str, ...]
    values: Callable[[Any], tuple[Any, ...]]
    optional: tuple[str, ...]
    spread: tuple[str, ...]


@cache
def _layout(kind: Any) -> _Layout:
    shown = {
        field.metadata.get("name", field.name): field for field in fields(kind) if not field.metadata.get("hidden")
    }
    read = attrgetter(*(field.name for field in shown.values()))
    return _Layout(
        names=tuple(shown),
        # Of a single name the getter gives the value, not a tuple.
        values=read if len(shown) > 1 else lambda answer: (read(answer),),
        optional=tuple(name for name, field in shown.items() if field.metadata.get("left_out")),
        spread=tuple(name for name, field in shown.items() if field.metadata.get("spread")),
    )


class WrittenObject(Mapping[str, Any]):
    """A JSON object that is written already: it is sent as it is, and read only where somebody looks into it.

    A report has two thousand numbers under names that are always the same. As dicts they take three times as long.

    Attributes:
        written: The JSON.
    """

    __slots__ = ("_known", "_read", "written")

    def __init__(self, written: bytes, known: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Take the JSON, and those of its members that are looked at before the rest is read."""
        self.written = written
        self._known = dict(known)
        self._read: dict[str, Any] | None = None

    def __getitem__(self, name: str) -> Any:
        """One member."""
        return self._known[name] if name in self._known else self._members[name]

    def __iter__(self) -> Iterator[str]:
        """The names of the members."""
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    @property
    def _members(self) -> dict[str, Any]:
        if self._read is None:
            self._read = orjson.loads(self.written)
        return self._read


def as_json(value: Any) -> Any:
    """An answer as dicts, lists, texts and finite numbers: the form in which it is kept."""
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(value) if isfinite(value) else None
    if is_dataclass(value):
        return {name: as_json(member) for name, member in members(value).items()}
    if isinstance(value, Mapping):
        return {str(name): as_json(member) for name, member in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist())
    return _text(value) if isinstance(value, UUID | datetime) else [as_json(member) for member in value]


def _text(value: UUID | datetime) -> str:
    return rfc3339(value) if isinstance(value, datetime) else str(value)


def rfc3339(moment: datetime) -> str:
    """A moment, which is in UTC, with milliseconds."""
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


# Where a number is to come. A text in JSON never holds this byte.
_MARK: Final = b"\0"
NUMBER: Final = orjson.Fragment(_MARK)


def number(value: float) -> float | None:
    """A number, None for what is not finite."""
    return float(value) if np.isfinite(value) else None


def numbers(values: Array) -> list[Any]:
    """Nested lists with None for what is not finite."""
    finite = np.isfinite(values)
    listed: Any = values if finite.all() else np.where(finite, values, np.array(None))
    return listed.tolist()  # type: ignore[no-any-return]  # numpy gives Any


def written_numbers(values: Array) -> list[bytes]:
    """Every number of an array, entry by entry, as JSON has it: `null` for what is not finite."""
    flat = np.ascontiguousarray(values, dtype=np.float64).ravel()
    return orjson.dumps(flat, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1].split(b",")


@dataclass(frozen=True, slots=True, eq=False)
class JsonTemplate:
    """A JSON object whose numbers are still to come.

    Attributes:
        between: What stands before, between and behind them: one piece more than there are numbers.
    """

    between: tuple[bytes, ...]

    @classmethod
    def of(cls, shape: Mapping[str, Any]) -> Self:
        """Make the template of an object that has `NUMBER` in the place of each number."""
        return cls(tuple(orjson.dumps(shape).split(_MARK)))

    def under(self, names: Sequence[str]) -> "JsonTemplate":
        """An object with such an object under each name."""
        first, *inner, last = self.between
        between: list[bytes] = []
        behind = b"{"
        for name in names:
            between.append(behind + orjson.dumps(name) + b":" + first)
            between += inner
            behind = last + b","
        between.append(last + b"}")
        return JsonTemplate(tuple(between))

    def filled(self, values: Sequence[bytes]) -> bytes:
        """The JSON with these numbers (`written_numbers`), of which there are as many as places."""
        parts = [b""] * (2 * len(self.between) - 1)
        parts[::2] = self.between
        parts[1::2] = values
        return b"".join(parts)
