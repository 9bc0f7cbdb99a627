"""Which answers may be a moment old where there is a read replica, and the header by which a client refuses such."""

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

from starlette.requests import Request

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
_MARK: Final = "may_be_old"
# RFC 9111, sections 5.2.1.1 and 5.2.1.4.
_NOW: Final = re.compile(r"(?i)(^|[\s,])(no-cache|max-age=0)([\s,]|$)")


def lists(endpoint: Endpoint) -> Endpoint:
    """Mark a route that answers a list: it may be as old as a read replica is."""
    setattr(endpoint, _MARK, True)
    return endpoint


def is_list(endpoint: Callable[..., Any]) -> bool:
    """Whether a route is marked so."""
    return getattr(endpoint, _MARK, False)


def wants_now(request: Request) -> bool:
    """Does the client want the answer as it is now, by `Cache-Control: no-cache` or `max-age=0`?"""
    wanted = request.headers.get("cache-control")
    return wanted is not None and _NOW.search(wanted) is not None
