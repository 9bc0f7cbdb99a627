"""Answers of services as JSON: their bytes, and their schema in the OpenAPI document.

Both follow from one frozen dataclass. Its fields are the members (see `app.domain.members`), and the section
`Attributes:` of its docstring describes them.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from http import HTTPStatus
from inspect import cleandoc
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import numpy as np
from pydantic import BaseModel, Field, create_model
from starlette.responses import Response

from app.domain.members import write_json as write_json

# The section of a docstring, indented; and one attribute of it with the lines that go on.
_SECTION = re.compile(r"\n*^Attributes:\n((?: .*\n?|\n)*)", re.MULTILINE)
_ATTRIBUTE = re.compile(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", re.MULTILINE)
Documented = dict[int | str, dict[str, Any]]


def written(function: Callable[..., Any], *arguments: Any) -> bytes:
    """Call a function and return its answer as JSON, in one step that a compute process can carry out."""
    return write_json(function(*arguments))


def json_response(answer: Any, status: int = HTTPStatus.OK, headers: dict[str, str] | None = None) -> Response:
    """A response with an answer in JSON."""
    return Response(write_json(answer), status_code=status, media_type="application/json", headers=headers)


# What routes answer, by the name of its schema: a shape, and its name where that is not its own.
_ANSWERED: Final[dict[str, tuple[Any, str | None]]] = {}


def answers(shape: Any, *, status: int = HTTPStatus.OK, name: str | None = None, description: str = "") -> Documented:
    """The member ``responses`` of a route that answers this dataclass, or one of several.

    ``name`` is that of the schema, the name of the class when it is left out. The schema itself is made when somebody
    asks for the document.
    """
    shapes = get_args(shape) if get_origin(shape) in (Union, UnionType) else (shape,)
    named = {name or (get_origin(one) or one).__name__: one for one in shapes}
    _ANSWERED.update({found: (one, name) for found, one in named.items()})
    refs = [{"$ref": f"#/components/schemas/{found}"} for found in named]
    content = {"application/json": {"schema": refs[0] if len(refs) == 1 else {"anyOf": refs}}}
    return {int(status): {"description": description or "Successful Response", "content": content}}


def answer_models() -> list[type[BaseModel]]:
    """Models of everything that routes answer."""
    return [answer_model(shape, name) for shape, name in _ANSWERED.values()]


@cache
def answer_model(shape: Any, name: str | None = None) -> type[BaseModel]:
    """A dataclass, which may be generic and given its types, or a typed dict, as a model with its schema.

    Fields that are left out when there is nothing to say are not required; all others are, since they are always sent.
    """
    kind: Any = get_origin(shape) or shape
    given = dict(zip(getattr(kind, "__parameters__", ()), get_args(shape), strict=True))
    text = _SECTION.sub("\n\n", cleandoc(kind.__doc__ or "")).strip()
    shown: dict[str, Any] = {
        # An alias, since a member may be called as a field must not be called.
        one.field: (
            _shown(one.hint, given),
            Field(
                ... if one.required else None,
                alias=one.alias,
                description=one.said,
                # A member that is not required is left out: it has no default.
                json_schema_extra=lambda schema: schema.pop("default", None),
            ),
        )
        for one in members_of(kind)
    }
    model: type[BaseModel] = create_model(name or kind.__name__, __doc__=text, __module__=kind.__module__, **shown)
    return model


@cache
def member_names(shape: Any) -> tuple[str, ...]:
    """Names of all members that the JSON of a dataclass may have."""
    return tuple(one.alias or one.field for one in members_of(shape))


class Member(NamedTuple):
    """A member as the dataclass or typed dict declares it.

    Attributes:
        alias: Its name in JSON, where the field has another.
        said: What the docstring says of it.
        default: `MISSING` where there is none.
    """

    field: str
    alias: str | None
    hint: Any
    required: bool
    said: str | None
    default: Any = MISSING


def members_of(kind: Any, *, required: bool = True) -> Iterator[Member]:
    """The members that a dataclass or typed dict declares, in their order."""
    said = _described(kind)
    if is_typeddict(kind):
        for key, hint in get_type_hints(kind).items():
            yield Member(key, None, hint, key in kind.__required_keys__, said.get(key))
        return
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        hint, always = field.metadata.get("type", hints[field.name]), not field.metadata.get("left_out")
        if field.metadata.get("hidden"):
            continue
        if field.metadata.get("spread"):
            for part in (hint, *get_args(hint)):
                if is_typeddict(part) or is_dataclass(part):
                    yield from members_of(part, required=required and part is hint)
            continue
        name = field.metadata.get("name", field.name)
        alias = name if name != field.name else None
        default = field.default if field.default_factory is MISSING else field.default_factory()
        yield Member(field.name, alias, hint, required and always, said.get(field.name), default)


def _described(kind: type) -> dict[str, str]:
    """Return the descriptions of attributes, from the docstrings of a class and of those it inherits from."""
    found: dict[str, str] = {}
    for owner in reversed(kind.__mro__):
        for section in _SECTION.findall(cleandoc(owner.__doc__ or "")):
            found |= {name: " ".join(text.split()) for name, text in _ATTRIBUTE.findall(section)}
    return found


def _shown(hint: Any, given: Mapping[Any, Any]) -> Any:
    """The type of a field as the JSON of an answer has it."""

    def known(one: Any) -> Any:
        if isinstance(one, TypeVar):
            return _shown(given[one], given)
        if get_origin(one) is np.ndarray:
            return list[Any]
        kind = get_origin(one) or one
        return answer_model(one) if isinstance(kind, type) and (is_dataclass(kind) or is_typeddict(kind)) else None

    return json_type(hint, known)


def json_type(hint: Any, known: Callable[[Any], Any]) -> Any:
    """The type of a field as JSON has it: what is ``known`` by itself, and all else by its parts."""
    own = known(hint)
    if own is not None:
        return own
    origin, inner = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        literal: Any = Literal
        return literal[tuple(one.value for one in hint)]
    if origin is None or origin is Literal:
        return hint
    if origin is Annotated:
        return Annotated[(json_type(inner[0], known), *(known(one) or one for one in hint.__metadata__))]
    if origin in (Union, UnionType) and NoneType in inner:
        # What else there may be could be known as a whole.
        return json_type(Union[tuple(one for one in inner if one is not NoneType)], known) | None  # noqa: UP007 - of parts
    types = tuple(one if one is ... else json_type(one, known) for one in inner)
    if origin in (Union, UnionType):
        return Union[types]  # noqa: UP007 - of types that are found out
    generic: Any = dict if issubclass(origin, Mapping) else tuple
    if generic is dict or (issubclass(origin, tuple) and ... not in types):
        return generic[types]
    return list[types[0]]  # type: ignore[valid-type]  # likewise
