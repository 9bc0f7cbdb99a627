"""Dataclasses as JSON objects."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from math import inf, nan
from types import MappingProxyType
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from app.domain.members import HIDDEN, LEFT_OUT, SPREAD, as_json, members, named, number, rfc3339


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Inner:
    only: float


@dataclass(frozen=True, slots=True, eq=False)
class Outer:
    label: str = field(metadata=named("class"))
    inner: Inner
    facts: Mapping[str, Any] = field(metadata=SPREAD)
    reason: str | None = field(default=None, metadata=LEFT_OUT)
    note: str | None = None


def test_members_are_named_left_out_and_spread_as_their_fields_say() -> None:
    inner = Inner(1.0)
    assert members(Outer("A", inner, {"folds": 2})) == {"class": "A", "inner": inner, "note": None, "folds": 2}
    assert members(Outer("A", inner, {}, reason="why")) == {"class": "A", "inner": inner, "reason": "why", "note": None}


@dataclass(frozen=True, slots=True)
class Whole:
    name: str
    part: Inner | None = field(metadata=SPREAD)


def test_the_members_of_a_part_stand_beside_the_others() -> None:
    assert members(Whole("a", Inner(1.0))) == {"name": "a", "only": 1.0}
    assert members(Whole("a", None)) == {"name": "a"}


@dataclass(frozen=True, slots=True)
class Measured:
    value: float
    draws: list[float] = field(metadata=HIDDEN)


def test_a_hidden_field_is_no_member() -> None:
    assert members(Measured(1.0, [0.5, 1.5])) == as_json(Measured(1.0, [0.5])) == {"value": 1.0}


def test_a_single_field_is_a_member_too() -> None:
    assert members(Inner(2.0)) == {"only": 2.0}


def test_what_is_kept_has_only_what_json_has() -> None:
    identifier = UUID(int=5)
    moment = datetime(2026, 1, 2, 3, 4, 5, 678_900, tzinfo=UTC)

    @dataclass(frozen=True, slots=True, eq=False)
    class Answer:
        id: UUID
        at: datetime
        colour: Colour
        values: NDArray[np.float64]
        by_label: Mapping[str, Any]
        pair: tuple[float, float]
        flag: np.bool_

    values = np.array([[1.0, nan], [inf, 4.0]]).T
    answer = Answer(identifier, moment, Colour.RED, values, MappingProxyType({"a": Inner(-inf)}), (nan, 2), np.True_)
    kept = as_json(answer)
    assert kept == {
        "id": str(identifier),
        "at": "2026-01-02T03:04:05.678Z",
        "colour": "red",
        "values": [[1.0, None], [None, 4.0]],
        "by_label": {"a": {"only": None}},
        "pair": [None, 2],
        "flag": True,
    }
    assert type(kept["colour"]) is str
    assert type(as_json(np.float64(0.5))) is float


def test_moments_are_cut_to_milliseconds() -> None:
    assert rfc3339(datetime(2026, 1, 2, tzinfo=UTC)) == "2026-01-02T00:00:00.000Z"
    assert rfc3339(datetime(2026, 1, 2, microsecond=999_999, tzinfo=UTC)) == "2026-01-02T00:00:00.999Z"


def test_nothing_is_less_than_0_that_is_0() -> None:
    assert [str(number(value)) for value in (-0.0, 0.0, -1.5, nan, inf)] == ["0.0", "0.0", "-1.5", "None", "None"]
