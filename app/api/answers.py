"""What services answer as JSON: the bytes that are sent, and the schema that the documentation shows.

Both follow from one frozen dataclass. Its fields are the members (see `app.domain.members`), and the section
`Attributes:` of its docstring describes them.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from http import HTTPStatus
from inspect import cleandoc
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

import numpy as np
import orjson
from pydantic import BaseModel, Field, create_model
from starlette.responses import Response

from app.domain.members import WrittenObject, members, rfc3339

_OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
# The section of a docstring, indented; and one attribute of it with the lines that go on.
_SECTION = re.compile(r"\n*^Attributes:\n((?: .*\n?|\n)*)", re.MULTILINE)
_ATTRIBUTE = re.compile(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", re.MULTILINE)
Documented = dict[int | str, dict[str, Any]]


def write_json(answer: Any) -> bytes:
    """JSON as it is sent. Numbers that are not finite are null."""
    return orjson.dumps(answer, default=_known, option=_OPTIONS)


def written(function: Callable[..., Any], *arguments: Any) -> bytes:
    """What a function answers, as JSON: in one piece, so that a process that computes an answer writes it too."""
    return write_json(function(*arguments))


def json_response(answer: Any, status: int = HTTPStatus.OK, headers: dict[str, str] | None = None) -> Response:
    """A response with an answer in JSON."""
    return Response(write_json(answer), status_code=status, media_type="application/json", headers=headers)


def _known(value: Any) -> Any:
    """What orjson does not write by itself, or not as it is to be written."""
    if is_dataclass(value):
        return members(value)
    if isinstance(value, WrittenObject):
        return orjson.Fragment(value.written)
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


def answers(shape: Any, *, status: int = HTTPStatus.OK, name: str | None = None, description: str = "") -> Documented:
    """The member ``responses`` of a route that answers this dataclass, or one of several.

    ``name`` is that of the schema, the name of the class when it is left out.
    """
    said = {"description": description} if description else {}
    return {int(status): {"model": answer_model(shape, name) if name else _shown(shape, {}), **said}}


@cache
def answer_model(shape: Any, name: str | None = None) -> type[BaseModel]:
    """A dataclass, which may be generic and given its types, or a typed dict, as a model with its schema.

    Fields that are left out when there is nothing to say are not required; all others are, since they are always sent.
    """
    kind: Any = get_origin(shape) or shape
    given = dict(zip(getattr(kind, "__parameters__", ()), get_args(shape), strict=True))
    text = _SECTION.sub("\n\n", cleandoc(kind.__doc__ or "")).strip()
    shown = dict(_keys(kind) if is_typeddict(kind) else _fields(kind, given, required=True))
    model: type[BaseModel] = create_model(name or kind.__name__, __doc__=text, __module__=kind.__module__, **shown)
    return model


def _fields(kind: Any, given: Mapping[Any, Any], *, required: bool) -> Iterator[tuple[str, Any]]:
    hints = get_type_hints(kind, include_extras=True)
    said = _described(kind)
    for field in fields(kind):
        hint = field.metadata.get("type", hints[field.name])
        if field.metadata.get("hidden"):
            continue
        if field.metadata.get("spread"):
            for part in (hint, *get_args(hint)):
                if is_typeddict(part):
                    yield from _keys(part)
                elif is_dataclass(part):
                    yield from _fields(part, given, required=required and part is hint)
            continue
        # An alias, since a member may be called as a field must not be called.
        name = field.metadata.get("name", field.name)
        alias = name if name != field.name else None
        default = ... if required and not field.metadata.get("left_out") else None
        yield field.name, (_shown(hint, given), Field(default, alias=alias, description=said.get(field.name)))


def _keys(kind: Any) -> Iterator[tuple[str, Any]]:
    said = _described(kind)
    for name, hint in get_type_hints(kind).items():
        default = ... if name in kind.__required_keys__ else None
        yield name, (_shown(hint, {}), Field(default, description=said.get(name)))


def _described(kind: type) -> dict[str, str]:
    """What the docstrings of a class and of those it inherits from say of each attribute."""
    found: dict[str, str] = {}
    for owner in reversed(kind.__mro__):
        for section in _SECTION.findall(cleandoc(owner.__doc__ or "")):
            found |= {name: " ".join(text.split()) for name, text in _ATTRIBUTE.findall(section)}
    return found


def _shown(hint: Any, given: Mapping[Any, Any]) -> Any:
    """The type of a field as its JSON has it."""
    if isinstance(hint, TypeVar):
        return _shown(given[hint], given)
    origin, inner = get_origin(hint), get_args(hint)
    if is_dataclass(origin or hint) or is_typeddict(hint):
        return answer_model(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        literal: Any = Literal
        return literal[tuple(one.value for one in hint)]
    if origin is None or origin is Literal:
        return hint
    if origin is Annotated:
        return Annotated[(_shown(inner[0], given), *hint.__metadata__)]
    if origin is np.ndarray:
        return list[Any]
    types = tuple(one if one is ... else _shown(one, given) for one in inner)
    if origin in (Union, UnionType):
        return Union[types]  # noqa: UP007 - of types that are found out
    generic: Any = dict if issubclass(origin, Mapping) else tuple
    if generic is dict or (issubclass(origin, tuple) and ... not in types):
        return generic[types]
    return list[types[0]]  # type: ignore[valid-type]  # likewise
