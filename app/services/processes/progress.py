"""How far a piece of work is, told to whoever wants to know: said where steps are counted, and nowhere else."""

from collections.abc import Callable
from contextvars import ContextVar

Tell = Callable[[float], object]
_LISTENER: ContextVar[Tell | None] = ContextVar("progress", default=None)


def tell_progress(tell: Tell | None) -> None:
    """What this task, and those it starts, says of how far it is goes there; None: nowhere."""
    _LISTENER.set(tell)


def listener() -> Tell | None:
    """Who wants to know; None when nobody does."""
    return _LISTENER.get()


def progressed(done: int, steps: int) -> None:
    """So many of the steps are done."""
    tell = _LISTENER.get()
    if tell is not None:
        tell(done / steps)
