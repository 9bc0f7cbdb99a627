import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import RFC_4122, UUID, uuid4

import pytest

from app.domain.identifiers import first_id_from, id_at, new_id, read_id, time_of


def test_ids_are_version_7_and_tell_their_time() -> None:
    before = datetime.now(UTC)
    identifier = new_id()
    assert (identifier.version, identifier.variant) == (7, RFC_4122)
    assert before - timedelta(milliseconds=1) < time_of(identifier) < datetime.now(UTC) + timedelta(seconds=1)


def test_ids_of_a_process_only_grow_whatever_the_thread() -> None:
    ids = [new_id() for _ in range(20_000)]
    assert ids == sorted(set(ids))
    with ThreadPoolExecutor(4) as pool:
        shared = [
            identifier for part in pool.map(lambda _: [new_id() for _ in range(2_000)], range(8)) for identifier in part
        ]
    assert len(set(shared)) == 16_000
    assert min(shared) > ids[-1]


def test_a_clock_set_back_a_little_does_not_make_smaller_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    last = new_id()
    back = time.time_ns() - 5_000_000_000
    monkeypatch.setattr("app.domain.identifiers.time.time_ns", lambda: back)
    following = [new_id() for _ in range(5_000)]
    assert [last, *following] == sorted({last, *following})
    assert {identifier.version for identifier in following} == {7}


def test_a_clock_that_was_a_day_ahead_is_followed_back(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time_ns()
    with monkeypatch.context() as patched:
        patched.setattr("app.domain.identifiers.time.time_ns", lambda: now + 86_400_000_000_000)
        ahead = new_id()
        patched.setattr("app.domain.identifiers.time.time_ns", lambda: now)
        following = [new_id() for _ in range(5_000)]
    assert time_of(following[-1]) < time_of(ahead) - timedelta(hours=23)
    assert following == sorted(set(following))


@pytest.mark.parametrize("microseconds", [0, 1, 500, 999, 1_000, 123_456])
def test_a_moment_becomes_the_first_id_at_or_after_it(microseconds: int) -> None:
    moment = datetime(2026, 3, 4, 5, 6, 7, microseconds, tzinfo=UTC)
    bound = first_id_from(moment)
    assert timedelta(0) <= time_of(bound) - moment < timedelta(milliseconds=1)
    assert time_of(UUID(int=bound.int - 1)) < moment


def test_moments_before_and_after_all_ids_are_bounds_too() -> None:
    assert (
        first_id_from(datetime(1900, 1, 1, tzinfo=UTC)) < new_id() < first_id_from(datetime(9999, 12, 31, tzinfo=UTC))
    )


def test_an_id_that_is_read_has_a_moment_that_can_be_named() -> None:
    identifier = new_id()
    assert read_id(str(identifier)) == identifier
    last = UUID(
        int=(first_id_from(datetime(9999, 1, 1, tzinfo=UTC)).int - 1) & ~(0xF << 76 | 0x3 << 62) | 7 << 76 | 2 << 62
    )
    assert time_of(read_id(str(last))).year == 9998
    for other in (UUID(int=last.int + (1 << 80)), UUID(int=(1 << 128) - 1), UUID(int=0), uuid4()):
        with pytest.raises(ValueError, match="expected an id"):
            read_id(str(other))


def test_an_id_of_another_moment_follows_from_a_fresh_one() -> None:
    moment = datetime(2024, 1, 1, 0, 0, 0, 1_999, tzinfo=UTC)
    first, second = new_id(), new_id()
    made = id_at(moment, first)
    assert (made.version, made.variant, time_of(made)) == (7, RFC_4122, moment.replace(microsecond=1_000))
    assert made == id_at(moment, first) != id_at(moment, second)
    with pytest.raises(ValueError, match="from 1970 on"):
        id_at(datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), first)
