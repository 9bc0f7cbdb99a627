"""Requests as JSON that are made of dataclasses of the domain and of services, which declare their members."""

from collections.abc import Mapping
from dataclasses import MISSING
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from pydantic import Field, model_validator
from pydantic.fields import FieldInfo

from app.api.answers import json_type, members_of
from app.api.bodies.parsing import Wire
from app.api.v1.requests.fields import (
    DatasetField,
    DatasetName,
    Expression,
    LabelField,
    ModelField,
    ModelName,
    Name,
    RunField,
    Sought,
)
from app.domain.asked import ExpressionText, LabelOf, LabelText, Limits, NameText, SoughtText
from app.domain.evaluation import DatasetRef, ModelRef, Named, NamedDataset, NamedModel

# What has a form of its own in JSON.
_KNOWN: Final[Mapping[Any, Any]] = {
    DatasetRef: DatasetField,
    ExpressionText: Expression,
    LabelOf: LabelField,
    LabelText: LabelField,
    ModelRef: ModelField,
    NameText: Name,
    Named: RunField,
    NamedDataset: DatasetName,
    NamedModel: ModelName,
    SoughtText: Sought,
}


class Declared(Wire):
    """A request with the members of a dataclass. Those that it declares itself are as it says; their descriptions and
    other names, and defaults that it does not say, are those of the dataclass too.
    """

    shape: ClassVar[Any]

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """A member that the dataclass declares."""

    def __init_subclass__(cls, of: Any = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if of is None:
            return
        own, members = vars(cls).get("__annotations__", {}), [*members_of(of)]
        for one in members:
            value = vars(cls).get(one.field, one.default)
            if not isinstance(value, FieldInfo):
                setattr(cls, one.field, member(value, one.said, one.alias))
        cls.__annotations__ = {one.field: own.get(one.field) or json_type(one.hint, known) for one in members} | own
        cls.shape = of

    @model_validator(mode="after")
    def check_whole(self) -> Self:
        """Refuse members that do not go together."""
        self.check()
        return self

    def check(self) -> None:
        """Raises ValueError where the dataclass does."""
        if hasattr(self.shape, "check"):
            self.to_domain().check()

    def to_domain(self, **others: Any) -> Any:
        """The dataclass, with others of its fields."""
        return self.filled(self.shape, **others)


def member(default: Any, about: str | None, alias: str | None = None) -> Any:
    """A member that may be left out unless its default is missing."""
    said: dict[str, Any] = {"description": about, "alias": alias}
    if isinstance(default, tuple | dict):
        return Field(default_factory=lambda: [*default] if isinstance(default, tuple) else {**default}, **said)
    return Field(... if default is MISSING else default, **said)


def known(hint: Any) -> Any:
    """The type or the bounds of pydantic that stand for those of a dataclass; None for all others."""
    if isinstance(hint, Limits):
        words: dict[str, Any] = {**hint.checked, "json_schema_extra": dict(hint.said) or None}
        return Field(**words)
    return _KNOWN.get(hint)
