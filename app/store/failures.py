"""Which errors mean that the database is not there, told apart from those that mean our SQL is wrong."""

from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from app.services.ports import StoreUnavailableError

# SQLSTATE classes: connection lost, out of resources, stopped by an operator or a timeout, failure outside Postgres.
_UNAVAILABLE_CLASSES = ("08", "53", "57", "58")
# Wrong password, no such role or database.
_REFUSED_CLASSES = ("28", "3D")


def is_unavailable(error: BaseException) -> bool:
    """Tell whether an error comes from a database that cannot be worked with right now."""
    if isinstance(error, (OSError, PoolTimeoutError)):
        return True
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or (error.orig is not None and is_unavailable(error.orig))
    if isinstance(error, asyncpg.InterfaceError):
        return not isinstance(error, asyncpg.DataError)
    state = getattr(error, "sqlstate", None)
    if isinstance(state, str):
        return state[:2] in _UNAVAILABLE_CLASSES + _REFUSED_CLASSES
    return error.__cause__ is not None and is_unavailable(error.__cause__)


@contextmanager
def translated() -> Iterator[None]:
    """Raise StoreUnavailableError in the place of every error that means so; all others pass unchanged."""
    try:
        yield
    except (OSError, PoolTimeoutError, DBAPIError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        if is_unavailable(error):
            raise StoreUnavailableError(f"expected an answer from the database, got {type(error).__name__}") from error
        raise
