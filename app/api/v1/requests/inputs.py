"""Inputs of every kind as JSON: strict models made of the declarations in `app.domain.inputs`."""

from collections.abc import Iterable
from dataclasses import fields
from functools import cache
from types import NoneType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_type_hints

import numpy as np
import pyarrow as pa
from pydantic import Field, PlainValidator, WithJsonSchema, create_model
from pydantic_core import PydanticCustomError

from app.api.answers import json_type
from app.api.bodies.parsing import Wire
from app.api.v1.requests.asked import known, member
from app.domain.inputs.kind import AttributeColumns, Columns, Form, Input, tables_in
from app.domain.inputs.kinds import KINDS
from app.domain.inputs.matrices import MOST_SAMPLES, MatrixInput
from app.domain.inputs.samples import Tally

# Models travel to compute processes, which find them by name in this module.
_TRAVELLING = globals()


class TableModel(Wire):
    """A declaration of the domain as JSON."""

    declared: ClassVar[Any]

    def as_declared(self, **told: Any) -> Any:
        """The declared dataclass, with what is told of its samples as far as it knows such a thing."""
        members, known = _names(self.declared)
        given = {name: _as_declared(getattr(self, name)) for name in members}
        return self.declared(**given, **{name: value for name, value in told.items() if name in known})


class InputModel(TableModel):
    """An input of one kind as JSON."""

    def to_domain(self, pointer: str, *, tally: Tally | None = None, part: bool = False) -> MatrixInput:
        """The canonical form, with faults told from this JSON pointer.

        Each entry stands for ``tally`` samples, None is 1 each; a ``part`` has some of the samples only.

        Raises:
            InvalidInput, TooLarge: it cannot be evaluated.
        """
        source: MatrixInput = self.as_declared(tally=tally, part=part).read(pointer)
        return source


@cache
def _names(kind: Any) -> tuple[tuple[str, ...], frozenset[str]]:
    """Members of what is declared, and all of its fields."""
    return tuple(kind.members()), frozenset(one.name for one in fields(kind))


def _as_declared(value: Any) -> Any:
    if isinstance(value, TableModel):
        return value.as_declared()
    folds = isinstance(value, list) and len(value) > 0 and isinstance(value[0], TableModel)
    return [one.as_declared() for one in value] if folds else value


def _check_column(value: Any) -> Any:
    """Columns are checked as a whole by the kind: a validator per element would take seconds for ten million."""
    if not isinstance(value, list | np.ndarray | pa.Array):
        raise PydanticCustomError("list_type", "expected an array")
    if len(value) > MOST_SAMPLES:
        raise PydanticCustomError("too_many_samples", f"expected at most {MOST_SAMPLES} samples")
    return value


def _column(form: Form) -> Any:
    schema = {"type": "array", "minItems": 1, "maxItems": MOST_SAMPLES, **form.schema}
    return Annotated[Any, PlainValidator(_check_column), WithJsonSchema(schema)]


def _known(hint: Any) -> Any:
    """The types that all requests know, and models of folds and tables."""
    if hint is Input:
        return single_input()
    if isinstance(hint, type) and issubclass(hint, Columns):
        return _made(hint)  # type: ignore[arg-type]  # classes are hashable, whatever their instances are
    return known(hint)


@cache
def _made(declared: Any, base: type[TableModel] = TableModel, suffix: str = "", **others: Any) -> Any:
    """The model of what is declared, with other members before its own."""
    made = create_model(
        f"{declared.__name__}{suffix}",
        __base__=base,
        __doc__=_sentence(declared),
        **others,
        **_fields(declared, columns=True),
    )
    made.declared = declared
    _TRAVELLING[made.__name__] = made
    return made


def _tag(kind: type[Input]) -> dict[str, Any]:
    """The member that says of which kind an input is."""
    return {"kind": (Literal[kind.kind], ...)}


def _fields(kind: type[Columns], *, columns: bool) -> dict[str, Any]:
    """Fields of the members in their order, perhaps without columns and without tables of them."""
    hints = get_type_hints(kind, include_extras=True)
    defaults = {one.name: one.default for one in fields(kind)}
    found: dict[str, Any] = {}
    for name, one in kind.members().items():
        if not columns and (tables_in(hints[name]) or AttributeColumns in get_args(hints[name])):
            continue
        if one.form is None:
            found[name] = json_type(hints[name], _known), member(defaults[name], one.about)
        elif columns:
            required = NoneType not in get_args(hints[name])
            form = _column(one.form)
            found[name] = form if required else form | None, member(defaults[name], one.about)
    return found


def _sentence(kind: type[Columns]) -> str:
    """The docstring of a kind up to what it says of fields."""
    return (kind.__doc__ or "").partition("\n")[0]


def _union(models: Iterable[Any]) -> Any:
    return Annotated[Union[tuple(models)], Field(discriminator="kind")]  # noqa: UP007 - made of parts


def single_input() -> Any:
    """The union of all kinds that a fold can be."""
    return _union(_MODELS[kind.kind] for kind in KINDS.values() if kind.in_folds)


def referenced_input(data: Any) -> Any:
    """The union of all kinds whose data may be named, with a member ``data`` in place of the columns."""
    return _union(
        create_model(
            f"Referenced{kind.__name__}Input",
            __base__=Wire,
            __doc__=f"{_sentence(kind)} The samples lie elsewhere.",
            data=data,
            **_tag(kind),
            **_fields(kind, columns=False),
        )
        for kind in KINDS.values()
        if kind.beyond
    )


_MODELS: dict[str, type[InputModel]] = {}
for _kind in sorted(KINDS.values(), key=lambda one: not one.in_folds):
    _MODELS[_kind.kind] = _made(_kind, InputModel, "Input", **_tag(_kind))
AnyInput: Any = _union(_MODELS[name] for name in KINDS)
