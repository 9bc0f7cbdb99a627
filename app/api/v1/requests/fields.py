"""Fields that several requests have."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from fastapi import Path, Query
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BeforeValidator,
    Discriminator,
    Field,
    PlainValidator,
    Strict,
    StringConstraints,
    Tag,
    WithJsonSchema,
    model_validator,
)
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

from app.api.bodies.parsing import ID_TAG, REFERENCE_TAG, TEXT_TAG, Wire
from app.domain.evaluation import MOST_TAGS, DatasetRef, ModelRef, Reference
from app.domain.inputs.kind import LABEL_SCHEMA
from app.domain.inputs.labels import LONGEST_NAME, declared_label, normalized, unseen_character

# In the path of a request.
_GATE: dict[str, Any] = {"min_length": 1, "max_length": 128, "pattern": r"^[A-Za-z0-9][A-Za-z0-9._-]*$"}
GateName = Annotated[str, Path(**_GATE)]
GateNameField = Annotated[str, StringConstraints(**_GATE)]
AlternativeName = Literal["two-sided", "greater", "less"]
ProportionIntervalName = Literal["wilson", "clopper_pearson", "jeffreys", "wald"]
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# A plus that stands in an address as it is comes as a space.
_SPACE_OF_PLUS = re.compile(r":[0-9.]+ [0-9]{2}:?[0-9]{2}$")
_FIRST_MOMENT = datetime(1970, 1, 1, tzinfo=UTC)
_SPACES = {ord(one): " " for one in "\t\r\n"}


def _text(value: str) -> str:
    """Text in one form of Unicode, with nothing in it that is not seen; Postgres cannot keep the character NUL."""
    text = _without_nul(value)
    if (unseen := unseen_character(text)) is not None:
        raise PydanticCustomError(
            "unseen_character",
            "expected text without control characters and other unseen ones, got {character}",
            {"character": unseen},
        )
    return text


def _without_nul(value: str) -> str:
    if "\x00" in value:
        raise PydanticCustomError("nul_character", "expected text without the character U+0000")
    return normalized(value)


def _name(value: str) -> str:
    if value.isspace():
        raise PydanticCustomError("blank", "expected more than spaces")
    return _text(value)


def _lines(value: str) -> str:
    """Expressions and descriptions may go over several lines."""
    return _text(value) if unseen_character(value.translate(_SPACES)) else normalized(value)


def _distinct_keys(value: Any) -> Any:
    """Refuse two spellings of one name."""
    if isinstance(value, dict):
        keys = [normalized(key) for key in value if isinstance(key, str)]
        if len(set(keys)) < len(keys):
            raise PydanticCustomError("repeated_name", "expected names that differ, one is there in two spellings")
    return value


def _label(value: Any) -> str | int:
    if isinstance(value, str):
        if not 0 < len(value) <= LONGEST_NAME:
            raise PydanticCustomError("label_length", f"expected a label of 1 to {LONGEST_NAME} characters")
        return _name(value)
    text = declared_label(value)
    if text is not None:
        return text
    raise PydanticCustomError("label_type", "expected a string or an integer")


def _identifier(value: Any) -> UUID:
    try:
        return value if isinstance(value, UUID) else UUID(value)
    except (ValueError, TypeError, AttributeError):
        raise PydanticCustomError(
            "wrong_value", "expected the id of an evaluation, a model as name:version, or an object"
        ) from None


def _date_first(value: Any) -> Any:
    if isinstance(value, str) and _SPACE_OF_PLUS.search(value):
        raise PydanticCustomError("wrong_value", "expected an offset from UTC with its plus written as %2B")
    if isinstance(value, str) and not _DATE.match(value):
        raise PydanticCustomError("wrong_value", "expected a date and a time, such as 2026-01-31T12:00:00Z")
    return value


def _written_date(value: Any) -> Any:
    if not isinstance(value, str):
        raise PydanticCustomError("wrong_value", "expected a date and a time, such as 2026-01-31T12:00:00Z")
    return _date_first(value)


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise PydanticCustomError("wrong_value", "expected a moment of the years 1 to 9999 in UTC") from None


def _not_too_early(moment: datetime) -> datetime:
    if moment < _FIRST_MOMENT:
        raise PydanticCustomError("too_early", "expected a moment from 1970 on")
    return moment


# A bare number is no moment: 2026 would be taken for seconds since 1970.
Moment = Annotated[datetime, BeforeValidator(_date_first)]
# One that is kept: text is the only form that JSON has, and without an offset nobody knows which moment it is.
KeptMoment = Annotated[
    AwareDatetime,
    Strict(False),  # noqa: FBT003 - pydantic's
    BeforeValidator(_written_date),
    AfterValidator(_in_utc),
]
PastMoment = Annotated[KeptMoment, AfterValidator(_not_too_early)]
# Of a name that something is looked for by, or none: what was stored before names were checked has to be found too.
SOUGHT = AfterValidator(lambda value: None if value is None else normalized(value))
Sought = Annotated[str, SOUGHT]
OfModel = Annotated[
    str | None, Query(max_length=512, description="Only those of this model: its name, or name:version."), SOUGHT
]
# The same of a part of an address, which no other check has seen.
SOUGHT_IN_PATH = AfterValidator(_without_nul)
# How the address of the history of a model ends, and that of its figures: a model of such a name had no address.
ADDRESS_OF_HISTORY = r"/history(/plots/[^/]*)?$"
# Formats that JSON Schema has no word for: text with nothing in it that is not seen, and metric expressions.
_SEEN = Field(json_schema_extra={"format": "visible-text"})
EXPRESSION_FORMAT: JsonDict = {"format": "metric-expression"}
SoughtExpression = Annotated[str, Field(json_schema_extra=EXPRESSION_FORMAT)]
SoughtCondition = Annotated[
    str,
    StringConstraints(max_length=256),
    SOUGHT,
    WithJsonSchema({"type": "string", "maxLength": 256, "pattern": "^[^<>]+(<|<=|>|>=)-?[0-9]+$"}),
]
SoughtTag = Annotated[Sought, WithJsonSchema({"type": "string", "pattern": "^[^:]+:"})]
Name = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME), AfterValidator(_name), _SEEN]
Level = Annotated[float, Field(gt=0, lt=1)]
Expression = Annotated[
    str,
    StringConstraints(min_length=1, max_length=2000),
    AfterValidator(_lines),
    Field(json_schema_extra=EXPRESSION_FORMAT),
]
Description = Annotated[
    str,
    StringConstraints(max_length=2000),
    AfterValidator(_lines),
    Field(json_schema_extra={"format": "visible-lines"}),
]
TagKey = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[^:\x00]+$"), AfterValidator(_name)]
TagValue = Annotated[str, StringConstraints(max_length=1024), AfterValidator(_text), _SEEN]
Tags = Annotated[
    dict[TagKey, TagValue],
    Field(max_length=MOST_TAGS, json_schema_extra={"additionalProperties": False}),
    BeforeValidator(_distinct_keys),
]
ChangedTags = Annotated[
    dict[TagKey, TagValue | None],
    Field(max_length=MOST_TAGS, json_schema_extra={"additionalProperties": False}),
    BeforeValidator(_distinct_keys),
]
Identifier = Annotated[UUID, PlainValidator(_identifier), WithJsonSchema({"type": "string", "format": "uuid"})]
LabelField = Annotated[str | int, PlainValidator(_label), WithJsonSchema(LABEL_SCHEMA)]


class ModelField(Wire):
    """A model, one version of it."""

    name: Name = Field(description="Name of the model.")
    version: Name | None = Field(None, description="Its version.")

    def to_domain(self) -> ModelRef:
        """Convert the name for the domain."""
        return ModelRef(self.name, self.version)


class DatasetField(Wire):
    """A dataset, one split of one version of it."""

    name: Name = Field(description="Name of the dataset.")
    version: Name | None = Field(None, description="Its version.")
    split: Name | None = Field(None, description="The split, such as test.")

    def to_domain(self) -> DatasetRef:
        """Convert the name for the domain."""
        return DatasetRef(self.name, self.version, self.split)


# A name alone stands for every version of it.
ModelName: Any = Annotated[
    Name | ModelField,
    Field(union_mode="left_to_right"),
    AfterValidator(lambda one: ModelRef(one) if isinstance(one, str) else one.to_domain()),
]
DatasetName: Any = Annotated[
    Name | DatasetField,
    Field(union_mode="left_to_right"),
    AfterValidator(lambda one: DatasetRef(one) if isinstance(one, str) else one.to_domain()),
]


class ReferenceField(Wire):
    """An evaluation by what it is of, in place of its id: the latest that matches all that is given."""

    model: ModelField | None = None
    dataset: DatasetField | None = None
    tags: Tags | None = None

    @model_validator(mode="after")
    def check_members(self) -> Self:
        """Refuse a reference that names nothing."""
        if self.model is None and self.dataset is None and not self.tags:
            raise ValueError("expected a model, a dataset or tags to find the evaluation by")
        return self

    def to_domain(self) -> Reference:
        """Convert the reference for the domain."""
        return self.filled(Reference, tags=tuple((self.tags or {}).items()))


def _kind_of_name(value: Any) -> str:
    if isinstance(value, str) and ":" in value:
        return TEXT_TAG
    return REFERENCE_TAG if isinstance(value, dict | ReferenceField) else ID_TAG


# A model with its version in one text.
NamedVersion = Annotated[
    str,
    StringConstraints(min_length=3, max_length=2 * LONGEST_NAME + 1, pattern="^.+:.+$"),
    AfterValidator(_name),
    Field(json_schema_extra={"format": "visible-text"}),
]


def _named(run: UUID | str | ReferenceField) -> UUID | Reference:
    if isinstance(run, str):
        return Reference(model=ModelRef(run))
    return run if isinstance(run, UUID) else run.to_domain()


# How an evaluation is named in a body, as the services have it.
RunField: Any = Annotated[
    Annotated[Identifier, Tag(ID_TAG)]
    | Annotated[NamedVersion, Tag(TEXT_TAG)]
    | Annotated[ReferenceField, Tag(REFERENCE_TAG)],
    Discriminator(_kind_of_name),
    AfterValidator(_named),
]
