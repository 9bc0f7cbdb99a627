"""Fields that several requests have."""

from typing import Annotated, Any
from uuid import UUID

from pydantic import AfterValidator, Field, PlainValidator, StringConstraints, WithJsonSchema
from pydantic_core import PydanticCustomError

from app.api.bodies.parsing import Wire
from app.domain.evaluation import DatasetRef, ModelRef
from app.domain.inputs.matrices import LONGEST_LABEL

# Stand for ids of evaluations that exist: the tests put their own in their place.
FIRST = "01900000-0000-7000-8000-000000000001"
SECOND = "01900000-0000-7000-8000-000000000002"


def clean_text(value: str) -> str:
    """Postgres cannot keep the character NUL, and nobody means it."""
    if "\x00" in value:
        raise PydanticCustomError("nul_character", "expected text without the character U+0000")
    return value


def _label(value: Any) -> str | int:
    if isinstance(value, str):
        if not 0 < len(value) <= LONGEST_LABEL:
            raise PydanticCustomError("label_length", f"expected a label of 1 to {LONGEST_LABEL} characters")
        return clean_text(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise PydanticCustomError("label_type", "expected a string or an integer")


def _identifier(value: Any) -> UUID:
    try:
        return value if isinstance(value, UUID) else UUID(value)
    except (ValueError, TypeError, AttributeError):
        raise PydanticCustomError("uuid", "expected the id of an evaluation") from None


Name = Annotated[str, StringConstraints(min_length=1, max_length=256), AfterValidator(clean_text)]
Expression = Annotated[str, StringConstraints(min_length=1, max_length=2000), AfterValidator(clean_text)]
TagKey = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[^:\x00]+$")]
TagValue = Annotated[str, StringConstraints(max_length=1024), AfterValidator(clean_text)]
Tags = Annotated[dict[TagKey, TagValue], Field(max_length=64)]
Identifier = Annotated[UUID, PlainValidator(_identifier), WithJsonSchema({"type": "string", "format": "uuid"})]
LABEL_SCHEMA = {"anyOf": [{"type": "string", "minLength": 1, "maxLength": LONGEST_LABEL}, {"type": "integer"}]}
LabelField = Annotated[str | int, PlainValidator(_label), WithJsonSchema(LABEL_SCHEMA)]


class ModelField(Wire):
    """A model, one version of it."""

    name: Name = Field(description="Name of the model.")
    version: Name | None = Field(None, description="Its version.")

    def to_domain(self) -> ModelRef:
        """The domain's name for it."""
        return ModelRef(self.name, self.version)


class DatasetField(Wire):
    """A dataset, one split of one version of it."""

    name: Name = Field(description="Name of the dataset.")
    version: Name | None = Field(None, description="Its version.")
    split: Name | None = Field(None, description="The split, such as test.")

    def to_domain(self) -> DatasetRef:
        """The domain's name for it."""
        return DatasetRef(self.name, self.version, self.split)
