"""Whether what the present request reads may be a moment old. Lists may; everything else is as it is now.

Set where the request came in.
"""

from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class _Recency:
    may_be_old: bool


_RECENCY: ContextVar[_Recency | None] = ContextVar("recency", default=None)


def read_old(*, may_be_old: bool) -> None:
    """Say of this task, and those it starts, whether what they read may be a moment old."""
    _RECENCY.set(_Recency(may_be_old))


def may_be_old() -> bool:
    """Whether that is so; nobody said so outside of requests."""
    recency = _RECENCY.get()
    return recency is not None and recency.may_be_old


def read_now() -> None:
    """What the request reads from now on is as it is now: one answer never mixes newer data with older that follow."""
    recency = _RECENCY.get()
    if recency is not None:
        recency.may_be_old = False
