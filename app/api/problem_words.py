"""Faults of form that pydantic found, in our words where its own are for programmers."""

from collections.abc import Callable, Mapping
from typing import Any, Final

_MOST_SHOWN: Final = 40
_OF_NUMBERS: Final = frozenset({"greater_than", "greater_than_equal", "less_than", "less_than_equal", "multiple_of"})


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _expected_object(_: Mapping[str, Any]) -> str:
    return "expected an object"


_WORDS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "finite_number": lambda _: "expected a finite number, got NaN, Infinity or one too large for a double",
    "missing": lambda _: "expected this field, it is missing",
    "extra_forbidden": lambda _: "unknown field",
    "union_tag_invalid": lambda c: f"expected kind to be one of {c['expected_tags']}, got {c['tag'][:60]!r}",
    "union_tag_not_found": lambda _: "expected a field kind that says what the input is",
    "model_attributes_type": _expected_object,
    "model_type": _expected_object,
    "dict_type": _expected_object,
    "list_type": lambda _: "expected an array",
    "too_short": lambda c: f"expected at least {_count(c['min_length'], 'entry', 'entries')}, got {c['actual_length']}",
    "too_long": lambda c: f"expected at most {_count(c['max_length'], 'entry', 'entries')}, got more",
    "string_too_short": lambda c: f"expected at least {_count(c['min_length'], 'character', 'characters')}",
    "string_too_long": lambda c: f"expected at most {c['max_length']} characters",
}


def worded(kind: str, message: str, context: Mapping[str, Any], given: Any = None) -> str:
    """What a fault is, by its kind; with a plain value that came."""
    words = _WORDS.get(kind)
    if words is not None:
        return words(context)
    text = message.replace("Input should be", "expected").removeprefix("Value error, ")
    came = f", got {str(given)[:_MOST_SHOWN]}" if isinstance(given, int | float | str) and kind in _OF_NUMBERS else ""
    return text[:1].lower() + text[1:] + came
