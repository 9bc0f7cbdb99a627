"""Numbers of the kernel as JSON has them, and objects of many numbers that are written straight from arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import orjson

from app.kernel.numerics.arrays import Array

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
class Form:
    """A JSON object whose numbers are still to come.

    Attributes:
        between: What stands before, between and behind them: one piece more than there are numbers.
    """

    between: tuple[bytes, ...]

    @classmethod
    def of(cls, shape: Mapping[str, Any]) -> Self:
        """That of an object which has `NUMBER` in the place of each number."""
        return cls(tuple(orjson.dumps(shape).split(_MARK)))

    def under(self, names: Sequence[str]) -> "Form":
        """An object with such an object under each name."""
        first, *inner, last = self.between
        between: list[bytes] = []
        behind = b"{"
        for name in names:
            between.append(behind + orjson.dumps(name) + b":" + first)
            between += inner
            behind = last + b","
        between.append(last + b"}")
        return Form(tuple(between))

    def filled(self, values: Sequence[bytes]) -> bytes:
        """The JSON with these numbers (`written_numbers`), of which there are as many as places."""
        parts = [b""] * (2 * len(self.between) - 1)
        parts[::2] = self.between
        parts[1::2] = values
        return b"".join(parts)
