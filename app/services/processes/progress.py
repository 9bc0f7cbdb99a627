"""How far a piece of work is, told to whoever wants to know: said where steps are counted, and nowhere else."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Item = TypeVar("Item")
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


@contextmanager
def as_step(done: int, steps: int) -> Iterator[None]:
    """What is said inside is how far one of several steps is, after those that are done."""
    tell = _LISTENER.get()
    token = _LISTENER.set(None if tell is None else lambda share: tell((done + share) / steps))
    try:
        yield
    finally:
        _LISTENER.reset(token)


def each_as_step(done: int, steps: int, items: Iterable[Item]) -> Iterator[Item]:
    """Items, each made as a part of one of several steps; what is said between them is no part of it."""
    left = iter(items)
    while True:
        with as_step(done, steps):
            try:
                item = next(left)
            except StopIteration:
                return
        yield item
