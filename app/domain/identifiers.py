"""Names of projects, and time-ordered identifiers: UUID version 7 (RFC 9562, section 5.7), which the standard library
has from Python 3.14.
"""

import os
import re
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

PROJECT_NAME: Final = r"^[a-z0-9][a-z0-9._-]{0,63}$"
_PROJECT = re.compile(PROJECT_NAME)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_VERSION_AND_VARIANT = 0x7 << 76 | 0b10 << 62
_SEQUENCE_END = 1 << 12
# A clock set back by more than these milliseconds is followed: it was wrong before.
_MOST_AHEAD = 10_000
_LAST_MILLISECOND = (1 << 48) - 1
# Ids reach to the year 10889, moments do not.
_FIRST_BEYOND = (datetime(9999, 1, 1, tzinfo=UTC) - _EPOCH) // _MILLISECOND

_lock = threading.Lock()
_previous = 0


def is_project_name(name: str) -> bool:
    """Can a project be called so?"""
    return _PROJECT.fullmatch(name) is not None


def new_id() -> UUID:
    """Make an id greater than every id this process has made before.

    48 bits of milliseconds, a 12-bit sequence that starts anew at random in each millisecond, 62 random bits.
    A full sequence borrows the next millisecond, and a clock set back waits at the last one. One set back by more than
    ten seconds does not: ids of a day that is not yet would be made until that day has come.
    """
    global _previous
    noise = int.from_bytes(os.urandom(10), "big")
    fresh = (time.time_ns() // 1_000_000) * _SEQUENCE_END + (noise >> 64) % (_SEQUENCE_END // 2)
    with _lock:
        if 0 <= _previous // _SEQUENCE_END - fresh // _SEQUENCE_END <= _MOST_AHEAD:
            fresh = _previous + 1
        _previous = fresh
    milliseconds, sequence = divmod(fresh, _SEQUENCE_END)
    return UUID(int=milliseconds << 80 | sequence << 64 | noise % (1 << 62) | _VERSION_AND_VARIANT)


def id_at(moment: datetime, fresh: UUID) -> UUID:
    """Make of a fresh id one of a moment that is past, to the millisecond: the same of the same.

    Among those of one millisecond there is no order.

    Raises:
        ValueError: it is before 1970, which no id can be.
    """
    milliseconds = (moment - _EPOCH) // _MILLISECOND
    if not 0 <= milliseconds <= _LAST_MILLISECOND:
        raise ValueError(f"expected a moment from 1970 on, got {moment}")
    return UUID(int=milliseconds << 80 | fresh.int % (1 << 80))


def read_id(text: str) -> UUID:
    """Read an id that was made as ours are: what has its moment in it.

    Raises:
        ValueError: it is no UUID of version 7, or one of a moment that nobody can name.
    """
    identifier = UUID(text)
    if identifier.version != 7:
        raise ValueError(f"expected an id that is a UUID of version 7, got {text}")
    if identifier.int >> 80 >= _FIRST_BEYOND:
        raise ValueError(f"expected an id of a moment before the year 9999, got {text}")
    return identifier


def time_of(identifier: UUID) -> datetime:
    """Return when an id was made, in UTC, to the millisecond."""
    return _EPOCH + (identifier.int >> 80) * _MILLISECOND


def first_id_from(moment: datetime) -> UUID:
    """Return the lower bound of all ids made at `moment` or later, so that a filter by time is a range of ids."""
    milliseconds = -((_EPOCH - moment) // _MILLISECOND)
    return UUID(int=min(max(milliseconds, 0), _LAST_MILLISECOND) << 80)
