"""What work takes, told to whoever watches the service: which kind, how long, and for which request."""

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

# Folders and modules of services that are shared: what is computed there is computed for a use case.
_USE_CASES: Final = "app.services."
_ROUTES: Final = "app.api.v1."


@dataclass(slots=True)
class Tally:
    """What one request has taken so far, of time in seconds.

    Attributes:
        compute: Of arithmetic, its own or its share of what was computed for several at once.
        database: Of waiting for the database; statements that run side by side count each.
        evaluations: How many were kept.
    """

    compute: float = 0.0
    database: float = 0.0
    evaluations: int = 0


_TALLY: ContextVar[Tally | None] = ContextVar("tally", default=None)


def begin_tally() -> Tally:
    """From now on what this task takes, and what those take that it starts, is counted here."""
    tally = Tally()
    _TALLY.set(tally)
    return tally


def tally() -> Tally | None:
    """What is counted for the present request; None outside of one."""
    return _TALLY.get()


class Observer:
    """Is told of work when it is done, on the loop and in the task that it was done for; this one does nothing."""

    def computed(self, kind: str, seconds: float, *, apart: bool) -> None:
        """Arithmetic of a kind, in a process of its own or on the event loop."""

    def waited_to_compute(self, seconds: float) -> None:
        """How long arithmetic waited for a process."""

    def asked_database(self, work: str, seconds: float) -> None:
        """A ``read``, a ``write`` or an ``insert`` that shares its commit, the wait for a connection included."""

    def committed(self, rows: int, seconds: float) -> None:
        """A group of evaluations that were committed together."""

    def told_webhook(self, outcome: str, seconds: float) -> None:
        """An attempt to tell a webhook: it is ``delivered``, ``pending`` (to be tried again) or has ``failed``."""

    def database_lost(self, reason: str) -> None:
        """The database does not answer any more."""

    def database_back(self, seconds: float) -> None:
        """It answers again, so many seconds after it was lost."""


class Observers(Observer):
    """Several observers as one; none at all is one too. Each request's tally is kept here."""

    def __init__(self, observers: Sequence[Observer] = ()) -> None:
        self._observers = tuple(observers)

    def computed(self, kind: str, seconds: float, *, apart: bool) -> None:
        """Told on, and counted for the request."""
        own = _TALLY.get()
        # What is computed on the loop is computed for several requests at once: `share` says who had how much of it.
        if own is not None and apart:
            own.compute += seconds
        for one in self._observers:
            one.computed(kind, seconds, apart=apart)

    def waited_to_compute(self, seconds: float) -> None:
        """Told on."""
        for one in self._observers:
            one.waited_to_compute(seconds)

    def asked_database(self, work: str, seconds: float) -> None:
        """Told on, and counted for the request."""
        own = _TALLY.get()
        if own is not None:
            own.database += seconds
        for one in self._observers:
            one.asked_database(work, seconds)

    def committed(self, rows: int, seconds: float) -> None:
        """Told on."""
        for one in self._observers:
            one.committed(rows, seconds)

    def told_webhook(self, outcome: str, seconds: float) -> None:
        """Told on."""
        for one in self._observers:
            one.told_webhook(outcome, seconds)

    def database_lost(self, reason: str) -> None:
        """Told on."""
        for one in self._observers:
            one.database_lost(reason)

    def database_back(self, seconds: float) -> None:
        """Told on."""
        for one in self._observers:
            one.database_back(seconds)


UNOBSERVED: Final = Observers()


def share(tallies: Sequence[Tally | None], seconds: float) -> None:
    """Count what was computed for several requests at once, the same for each."""
    for one in tallies:
        if one is not None:
            one.compute += seconds / len(tallies)


def kind_of(function: Callable[..., Any]) -> str:
    """What a function computes for: the use case it belongs to, or the noun of the route that sends it.

    There are as many kinds as folders of use cases and modules of routes, whatever is asked.
    """
    modules = list(_modules(function))
    for prefix in (_USE_CASES, _ROUTES):
        for module in modules:
            if module.startswith(prefix):
                return module.removeprefix(prefix).partition(".")[0]
    return "other"


def _modules(function: Any) -> Iterator[str]:
    """Where a function comes from, and then the functions that it is given to call."""
    if isinstance(function, partial):
        yield from _modules(function.func)
        for argument in function.args:
            if callable(argument) and not isinstance(argument, type):
                yield from _modules(argument)
    else:
        yield getattr(function, "__module__", None) or ""
