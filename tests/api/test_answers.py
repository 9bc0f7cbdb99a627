"""Answers of services as JSON and as its schema. Needs no server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from math import inf, nan
from types import MappingProxyType
from typing import Any, Generic, Literal, TypedDict, TypeVar
from uuid import UUID

import numpy as np
import orjson
import pytest
from numpy.typing import NDArray

from app.api.answers import answer_model, write_json
from app.domain.members import HIDDEN, LEFT_OUT, SPREAD, as_json, named, typed

Item = TypeVar("Item")


class Verdict(StrEnum):
    PASS = "pass"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Limits:
    """Two ends.

    Attributes:
        low: The lower end; `null` when there
            is none.
    """

    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Line(Limits):
    """What is said of a run.

    It goes on in a second paragraph.

    Attributes:
        label: The class.
        values: Of all draws.
        reason: Why there is nothing: so.
    """

    id: UUID
    at: datetime
    label: str = field(metadata=named("class"))
    verdict: Verdict
    values: NDArray[np.float64] = field(metadata=typed(list[float | None]))
    others: Mapping[str, Limits]
    method: Literal["exact", "drawn"] = "exact"
    pair: tuple[int, str] = (1, "b")
    reason: str | None = field(default=None, metadata=LEFT_OUT)
    facts: Mapping[str, Any] = field(default_factory=dict, metadata=SPREAD)


@dataclass(frozen=True, slots=True)
class Listed(Generic[Item]):
    """Some items."""

    items: Sequence[Item]
    next_cursor: str | None


def line(**members: Any) -> Line:
    usual = {
        "low": nan,
        "high": 0.5,
        "id": UUID(int=7),
        "at": datetime(2026, 1, 2, 3, 4, 5, 678_900, tzinfo=UTC),
        "label": "A",
        "verdict": Verdict.FAIL,
        "values": np.array([1.0, 2.0, inf, 4.0])[::2],
        "others": MappingProxyType({"B": Limits(None, 1.0)}),
    }
    return Line(**{**usual, **members})


def test_a_dataclass_is_written_with_everything_in_it() -> None:
    assert orjson.loads(write_json(Listed([line(facts={"n_groups": 3})], None))) == {
        "items": [
            {
                "low": None,
                "high": 0.5,
                "id": str(UUID(int=7)),
                "at": "2026-01-02T03:04:05.678Z",
                "class": "A",
                "verdict": "fail",
                "values": [1.0, None],
                "others": {"B": {"low": None, "high": 1.0}},
                "method": "exact",
                "pair": [1, "b"],
                "n_groups": 3,
            }
        ],
        "next_cursor": None,
    }


def test_what_is_sent_is_what_is_kept() -> None:
    answer = Listed([line(), line(reason="none", values=np.array([["a"], ["b"]]))], "more")
    assert orjson.loads(write_json(answer)) == as_json(answer)


def test_what_json_has_not_is_refused() -> None:
    with pytest.raises(TypeError, match="not JSON serializable: object"):
        write_json({"a": object()})


def test_the_schema_follows_from_the_dataclass() -> None:
    schema = answer_model(Listed[Line], "LinePage").model_json_schema(mode="serialization")
    assert schema["title"] == "LinePage"
    assert schema["properties"]["items"]["items"] == {"$ref": "#/$defs/Line"}
    shown = schema["$defs"]["Line"]
    assert shown["description"] == "What is said of a run.\n\nIt goes on in a second paragraph."
    assert set(shown["required"]) == {
        "low",
        "high",
        "id",
        "at",
        "class",
        "verdict",
        "values",
        "others",
        "method",
        "pair",
    }
    assert set(shown["properties"]) == {*shown["required"], "reason"}
    members = shown["properties"]
    assert members["low"]["description"] == "The lower end; `null` when there is none."
    assert members["reason"]["description"] == "Why there is nothing: so."
    assert members["class"] == {"description": "The class.", "title": "Class", "type": "string"}
    assert members["verdict"]["enum"] == ["pass", "fail"]
    assert members["method"]["enum"] == ["exact", "drawn"]
    assert members["id"]["format"] == "uuid"
    assert members["values"]["items"] == {"anyOf": [{"type": "number"}, {"type": "null"}]}
    assert members["others"]["additionalProperties"] == {"$ref": "#/$defs/Limits"}
    assert [one["type"] for one in members["pair"]["prefixItems"]] == ["integer", "string"]


def test_the_members_of_a_part_are_shown_beside_the_others() -> None:
    @dataclass(frozen=True, slots=True)
    class Perhaps:
        """A run, perhaps with limits."""

        run: str
        limits: Limits | None = field(metadata=SPREAD)

    @dataclass(frozen=True, slots=True)
    class Always:
        """A run with its limits."""

        run: str
        limits: Limits = field(metadata=SPREAD)

    perhaps, always = (answer_model(kind).model_json_schema() for kind in (Perhaps, Always))
    assert set(perhaps["properties"]) == set(always["properties"]) == {"run", "low", "high"}
    assert perhaps["required"] == ["run"]
    assert always["required"] == ["run", "low", "high"]


class Facts(TypedDict, total=False):
    """What is noted of an input.

    Attributes:
        rows: Samples that came.
    """

    rows: int


@dataclass(frozen=True, slots=True)
class Noted:
    """An input with what is noted of it."""

    kind: str
    facts: Mapping[str, Any] = field(metadata=SPREAD | typed(Facts))
    kept: Facts
    counts: Sequence[float] = field(default=(), metadata=HIDDEN)


def test_typed_dicts_are_shown_and_hidden_fields_are_not() -> None:
    schema = answer_model(Noted).model_json_schema()
    assert schema["required"] == ["kind", "kept"]
    assert set(schema["properties"]) == {"kind", "rows", "kept"}
    assert schema["properties"]["rows"]["description"] == "Samples that came."
    assert "required" not in schema["$defs"]["Facts"]
    assert orjson.loads(write_json(Noted("folds", {"rows": 3}, {}, [1.0]))) == {"kind": "folds", "rows": 3, "kept": {}}


def test_the_model_checks_what_is_sent() -> None:
    model = answer_model(Listed[Line], "LinePage")
    model.model_validate_json(write_json(Listed([line()], None)))
    with pytest.raises(ValueError, match="verdict"):
        model.model_validate({"items": [{**as_json(line()), "verdict": "perhaps"}], "next_cursor": None})
