"""JSON of answers: fields of frozen dataclasses become members, and numbers of arrays are written straight.

The name of a field is the name of its member. Where more has to be said, the metadata of the field says it::

    label: str | None = field(default=None, metadata=named("class") | LEFT_OUT)
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np
import orjson

from app.kernel.numerics.arrays import Array

Metadata = dict[str, Any]
_OPTIONS: Final = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
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


def write_json(answer: Any) -> bytes:
    """JSON as it is sent. Numbers that are not finite are null."""
    return orjson.dumps(answer, default=_known, option=_OPTIONS)


def as_json(answer: Any) -> Any:
    """An answer as dicts, lists, texts and finite numbers: the form in which it is kept, and sent.

    Raises:
        TypeError: a key is no text, an integer has more than 64 bits, or a part is none of an answer.
    """
    return orjson.loads(write_json(answer))


def _known(value: Any) -> Any:
    """Convert a value for which orjson has no form, or not the form of our answers."""
    if is_dataclass(value):
        return members(value)
    match value:
        case datetime():
            return rfc3339(value)
        case np.ndarray():
            return value.tolist() if value.flags.c_contiguous else np.ascontiguousarray(value)
        case Mapping():
            return dict(value)
        case Iterable():
            return list(value)
    raise TypeError(f"expected a part of an answer, got {type(value).__name__}")


def rfc3339(moment: datetime) -> str:
    """A moment, which is in UTC, with milliseconds."""
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def number(value: float) -> float | None:
    """A number, None for what is not finite; 0 has no sign."""
    return float(value) + 0.0 if np.isfinite(value) else None


def numbers(values: Array) -> list[Any]:
    """Nested lists with None for what is not finite."""
    finite = np.isfinite(values)
    listed: Any = values if finite.all() else np.where(finite, values, np.array(None))
    return listed.tolist()  # type: ignore[no-any-return]  # numpy gives Any
