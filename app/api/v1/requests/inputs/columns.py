"""Columns of samples in JSON, and other types of members that several kinds of input have."""

from typing import Annotated, Any

import numpy as np
from pydantic import Field, PlainValidator, WithJsonSchema
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

from app.api.v1.requests.fields import LABEL_TEXT, LabelField
from app.domain.inputs.content import LARGEST_TOTAL
from app.domain.inputs.labels import MOST_CLASSES, CodedTexts
from app.domain.inputs.matrices import MOST_SAMPLES
from app.domain.inputs.names import LONGEST_NAME

GROUPS = (
    "One per sample: the patient, session or other group that it is one of, where samples are not independent. Every "
    "interval then counts groups, not samples."
)


def _column(value: Any) -> Any:
    if not isinstance(value, list | np.ndarray | CodedTexts):
        raise PydanticCustomError("list_type", "expected an array")
    if len(value) > MOST_SAMPLES:
        raise PydanticCustomError("too_many_samples", f"expected at most {MOST_SAMPLES} samples")
    return value


def _array(**facts: Any) -> WithJsonSchema:
    return WithJsonSchema({"type": "array", "minItems": 1, "maxItems": MOST_SAMPLES, **facts})


_WHOLE = {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}
# Entries of one type: integers sort by value, texts by alphabet.
_LABELS = {"anyOf": [{"items": one} for one in (LABEL_TEXT, _WHOLE, {"type": "boolean"})]}
_IDS = {
    "anyOf": [{"items": one} for one in ({"type": "string", "maxLength": LONGEST_NAME}, _WHOLE, {"type": "boolean"})]
}
# Checked as a whole in the domain: a validator per element would take seconds for ten million of them.
LabelColumn = Annotated[Any, PlainValidator(_column), _array(**_LABELS)]
SampleIds = Annotated[Any, PlainValidator(_column), _array(**_IDS, uniqueItems=True)]
GroupIds = Annotated[Any, PlainValidator(_column), _array(**_IDS)]
NumberColumn = Annotated[Any, PlainValidator(_column), _array(items={"type": "number"})]
WeightColumn = Annotated[Any, PlainValidator(_column), _array(items={"type": "number", "minimum": 0})]
Rows = Annotated[
    Any,
    PlainValidator(_column),
    _array(items={"type": "array", "items": {"type": "number", "minimum": 0}, "minItems": 2, "maxItems": MOST_CLASSES}),
]
ScoreColumn = Annotated[
    Any,
    PlainValidator(_column),
    _array(
        anyOf=[
            {"items": {"type": "number"}},
            {"items": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": MOST_CLASSES}},
        ]
    ),
]
_ROW_OF_LABELS = {"type": "array", "maxItems": MOST_CLASSES, "uniqueItems": True}
_ROW_OF_FLAGS = {"type": "array", "minItems": 2, "maxItems": MOST_CLASSES, "items": {"enum": [0, 1]}}
LabelRows = Annotated[
    Any,
    PlainValidator(_column),
    _array(
        anyOf=[
            {"items": {**_ROW_OF_LABELS, "items": LABEL_TEXT}},
            {"items": {**_ROW_OF_LABELS, "items": _WHOLE}},
            {"items": _ROW_OF_FLAGS},
        ]
    ),
]
Points = Annotated[
    Any,
    PlainValidator(_column),
    _array(items={"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": MOST_CLASSES}),
]
_TOKENS = {"type": "array", "maxItems": MOST_SAMPLES, "items": {"anyOf": [{"type": "string"}, _WHOLE]}}
Bags = Annotated[Any, PlainValidator(_column), _array(items=_TOKENS)]
Flags = Annotated[Any, PlainValidator(_column), _array(items={"enum": [0, 1, True, False]})]
# What the domain says of them, in its own words, where it does not hold.
CLASSES: JsonDict = {"minItems": 2, "maxItems": MOST_CLASSES}
FEW: JsonDict = {"minItems": 1, "maxItems": MOST_CLASSES}
_ENTRY: JsonDict = {"type": "number", "minimum": 0, "maximum": LARGEST_TOTAL}
# Far beyond any matrix: with fewer the domain says what is wrong with their number.
MOST_LABELS = 10 * MOST_CLASSES
Labels = Annotated[
    list[LabelField],
    Field(
        max_length=MOST_LABELS,
        description="The classes in the order of the matrix, all different.",
        json_schema_extra={**CLASSES, "uniqueItems": True},
    ),
]
Entry = Annotated[float, Field(json_schema_extra=_ENTRY)]
