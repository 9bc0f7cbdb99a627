"""Conditions on rows, by the types of columns."""

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from app.api.bodies.files.filters import read_filter
from app.domain.errors import InvalidInput

MOMENTS = [datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)]
ROWS = pa.table(
    {
        "price": pa.array([Decimal("1.50"), Decimal("7.25")], pa.decimal128(10, 2)),
        "site": pa.array(["a", "b"]).dictionary_encode(),
        "at": pa.array(MOMENTS, pa.timestamp("us", "UTC")),
        "day": pa.array([one.date() for one in MOMENTS]),
        "local": pa.array(MOMENTS, pa.timestamp("us")),
        "sure": [True, False],
    }
)


@pytest.mark.parametrize(
    "condition",
    [
        *("price >= 5", "price = 7.25", "price in (7, 7.25)", "price between 2 and 1e1"),
        *("site in ('b', 'c')", "site not like 'a%'", "not site = 'a'"),
        *("at >= '2026-01-15'", "at > '2026-01-31T12:00:00+01:00'", "day > '2026-01-15'", "sure = false"),
    ],
)
def test_the_second_row_is_chosen(condition: str) -> None:
    assert ROWS.filter(read_filter(condition).bound(ROWS.schema)).equals(ROWS.slice(1))


@pytest.mark.parametrize(
    "condition",
    [
        *("price = 'a'", "price < 1e9999999999999999999", "site > 3", "at > 3", "at > local", "day > 'soon'"),
        *("sure = 1", "sure like 'a'", "site = price"),
    ],
)
def test_what_a_column_never_is_is_refused(condition: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_filter(condition).bound(ROWS.schema)
    [fault] = refused.value.faults
    assert (fault.pointer, fault.code) == ("/input/data/filter", "wrong_type")
