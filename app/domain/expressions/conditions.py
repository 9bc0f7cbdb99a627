"""Conditions on attributes of samples, as they stand in the brackets of an expression and in addresses."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from app.domain.errors import InvalidExpression
from app.domain.expressions.syntax import WORD, Compared, Literal, TokenKind, quote, read_conditions

Value = str | bool | int | float | None


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one attribute.

    Attributes:
        name: Of the attribute.
        operator: `=`, which is one of the values, `!=`, `<`, `<=`, `>` or `>=`.
        values: One or, with `=`, several.
    """

    name: str
    operator: str
    values: tuple[Value, ...]


Slice = tuple[Condition, ...]
_WORDS: Final[Mapping[str, Value]] = {"null": None, "true": True, "false": False}


def read_slice(text: str) -> Slice:
    """Conditions of a slice, such as `site="B", age<50`.

    Raises:
        InvalidExpression: the text is none.
    """
    return understood(read_conditions(text))


def understood(written_ones: Iterable[Compared]) -> Slice:
    """Conditions from what was written.

    Raises:
        InvalidExpression: a value is none.
    """
    return tuple(Condition(one.name, one.operator, tuple(map(_value, one.values))) for one in written_ones)


def _value(literal: Literal) -> Value:
    if literal.kind is TokenKind.QUOTED:
        return literal.text
    if literal.kind is TokenKind.WORD:
        if literal.text not in _WORDS:
            raise InvalidExpression(
                f"expected a number, true, false, null or a text in quotes, got {literal.text}; did you mean "
                f"{quote(literal.text)}? (at character {literal.position + 1})",
                position=literal.position,
                suggestions=[quote(literal.text)],
            )
        return _WORDS[literal.text]
    number = float(literal.text)
    if not math.isfinite(number):
        raise InvalidExpression(f"expected a finite number, got {literal.text}", position=literal.position)
    return int(number) if number.is_integer() else number


def written(value: Value) -> str:
    """A value as it stands in a condition."""
    if isinstance(value, str):
        return quote(value)
    return json.dumps(value)


def text_of(where: Slice) -> str:
    """The conditions as `read_slice` takes them back."""
    return ", ".join(map(_condition_text, where))


def _condition_text(one: Condition) -> str:
    name = one.name if WORD.fullmatch(one.name) else quote(one.name)
    values = [*map(written, one.values)]
    return f"{name} in ({', '.join(values)})" if values[1:] else f"{name}{one.operator}{values[0]}"
