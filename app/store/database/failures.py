"""Which errors mean that the database is not there, told apart from those that mean our SQL is wrong."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import asyncpg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from app.services.ports import StoreFullError, StoreUnavailableError

# SQLSTATE classes: connection lost, out of resources, stopped by an operator or a timeout, failure outside Postgres.
_UNAVAILABLE_CLASSES = ("08", "53", "57", "58")
# Wrong password, no such role or database.
_REFUSED_CLASSES = ("28", "3D")
_DISK_FULL = "53100"
# Of a quota that is used up Postgres knows no state of its own, only what the system says.
_INTERNAL, _QUOTA = "XX000", os.strerror(errno.EDQUOT)
DRIVER_ERRORS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
NO_SPACE = "expected space for what is to be written, there is none left where the database keeps its files"


def is_unavailable(error: BaseException) -> bool:
    """Tell whether an error comes from a database that cannot be worked with right now."""
    # The last is what the driver raises when a connection broke between two messages.
    if isinstance(error, (OSError, PoolTimeoutError, asyncpg.InternalClientError)):
        return True
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or (error.orig is not None and is_unavailable(error.orig))
    if isinstance(error, asyncpg.InterfaceError):
        return not isinstance(error, asyncpg.DataError)
    state = _state(error)
    if state is not None:
        return state[:2] in _UNAVAILABLE_CLASSES + _REFUSED_CLASSES
    return error.__cause__ is not None and is_unavailable(error.__cause__)


def is_full(error: BaseException) -> bool:
    """Tell whether an error says that the disk of the database, or what it may use of it, is full: the transaction left
    nothing.
    """
    found = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    state = _state(found)
    return state == _DISK_FULL or (state == _INTERNAL and _QUOTA in str(found))


def state_of(error: BaseException) -> str | None:
    """The SQLSTATE of an error of the driver, or of one that SQLAlchemy has made of it."""
    return _state(error.orig if isinstance(error, DBAPIError) and error.orig is not None else error)


def _state(error: BaseException) -> str | None:
    state = getattr(error, "sqlstate", None)
    return state if isinstance(state, str) else None


@contextmanager
def translated() -> Iterator[None]:
    """Raise StoreFullError and StoreUnavailableError in the place of errors that mean so; others pass unchanged."""
    try:
        yield
    except (PoolTimeoutError, DBAPIError, *DRIVER_ERRORS) as error:
        if is_full(error):
            raise StoreFullError(NO_SPACE) from error
        if is_unavailable(error):
            raise StoreUnavailableError(f"expected an answer from the database, got {type(error).__name__}") from error
        raise
