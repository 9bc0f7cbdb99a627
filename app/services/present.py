"""The present request: who makes it, for which project, the id that was chosen for what it makes, and what it has used
so far; and who is told of work, with its kind and its duration.

Set where the request came in, for the code that carries it out.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol
from uuid import UUID

from app.domain.identifiers import new_id
from app.domain.operations import Actor

# Folders and modules of services that are shared: what is computed there is computed for a use case.
_USE_CASES: Final = "app.services."
_ROUTES: Final = "app.api.v1."

# Nobody said who: the service is open to this machine, or a test calls.
_LOCAL: Final = Actor("local")
_ACTOR: ContextVar[Actor] = ContextVar("actor", default=_LOCAL)
_PROJECT: ContextVar[str | None] = ContextVar("project", default=None)


def act_as(actor: Actor, project: str | None = None) -> None:
    """Set the actor and the project of all changes by this task and those it starts."""
    _ACTOR.set(actor)
    _PROJECT.set(project)


def actor() -> Actor:
    """Return the actor of the present request."""
    return _ACTOR.get()


def sharer() -> str | None:
    """The project with whose other requests the present one shares processes; None where nobody needs a key, since
    then all requests are of one owner.
    """
    return None if actor().key is None else _PROJECT.get()


# The id of what a job makes, chosen when the job was taken; None where it is chosen when it is made.
_CHOSEN: ContextVar[UUID | None] = ContextVar("chosen", default=None)


def make_as(identifier: UUID) -> None:
    """Set the id of the object that this task makes, so that carrying out the work again makes no second one."""
    _CHOSEN.set(identifier)


def make_part(place: int) -> None:
    """Set the place of the object that this task makes, among those of one request."""
    if _CHOSEN.get() is not None:
        _CHOSEN.set(part_id(place))


def part_id(place: int) -> UUID:
    """The id of the one at this place."""
    chosen = _CHOSEN.get()
    return new_id() if chosen is None else UUID(int=chosen.int + place)


def made_id() -> UUID:
    """The id of what is made now."""
    return _CHOSEN.get() or new_id()


@dataclass(slots=True)
class ObjectChange:
    """The change of one object by a request.

    Attributes:
        require: Holds the preconditions of the request against what is there; None where it has none, or they are met.
        stands: Once the change is made: tells whether the object still is as this left it.
    """

    require: Callable[[], Awaitable[None]] | None = None
    stands: Callable[[], Awaitable[bool]] | None = None

    async def meet(self) -> None:
        """Hold the preconditions against what is there, once; raises PreconditionFailed where one is not met."""
        require, self.require = self.require, None
        if require is not None:
            await require()


_CHANGE: ContextVar[ObjectChange | None] = ContextVar("change", default=None)


def begin_change(require: Callable[[], Awaitable[None]] | None) -> ObjectChange:
    """Begin the change that this task makes, with its preconditions."""
    change = ObjectChange(require)
    _CHANGE.set(change)
    return change


def present_change() -> ObjectChange:
    """Return the change that the present request makes."""
    return _CHANGE.get() or ObjectChange()


@dataclass(slots=True)
class Tally:
    """Time in seconds that one request has taken so far, and its stored evaluations.

    Attributes:
        compute: Of arithmetic, its own or its share of what was computed for several at once.
        database: Of waiting for the database; statements that run side by side count each.
        evaluations: How many were saved.
    """

    compute: float = 0.0
    database: float = 0.0
    evaluations: int = 0


_TALLY: ContextVar[Tally | None] = ContextVar("tally", default=None)


def begin_tally() -> Tally:
    """Begin a new tally for this task and those it starts."""
    tally = Tally()
    _TALLY.set(tally)
    return tally


def tally() -> Tally | None:
    """Return the tally of the present request; None outside of one."""
    return _TALLY.get()


class Observer(Protocol):
    """Is told of work when it is done, on the loop and in the task that it was done for."""

    def observed(self, what: str, amount: float, **labels: str) -> None:
        """So much of something: seconds of a computation, rows of a commit; see the metrics of the service."""


class Observers(Observer):
    """Several observers as one; none at all is one too. Each request's tally is kept here."""

    def __init__(self, observers: Sequence[Observer] = ()) -> None:
        self._observers = tuple(observers)

    def observed(self, what: str, amount: float, **labels: str) -> None:
        """Told on, and counted for the request."""
        own = _TALLY.get()
        if own is not None and what == "database_seconds":
            own.database += amount
        # What is computed on the loop is computed for several requests at once: `share` says who had how much of it.
        if own is not None and what == "compute_seconds" and labels["where"] != ON_LOOP:
            own.compute += amount
        for one in self._observers:
            one.observed(what, amount, **labels)


# Where something is computed.
ON_LOOP: Final = "loop"
APART: Final = "process"
UNOBSERVED: Final = Observers()


def share(tallies: Sequence[Tally | None], seconds: float) -> None:
    """Count what was computed for several requests at once, the same for each."""
    for one in tallies:
        if one is not None:
            one.compute += seconds / len(tallies)


def kind_of(function: Callable[..., Any]) -> str:
    """Name the use case that a function computes for, or the noun of the route that sends it.

    There are as many kinds as folders of use cases and modules of routes, whatever is asked.
    """
    modules = list(_modules(function))
    for prefix in (_USE_CASES, _ROUTES):
        for module in modules:
            if module.startswith(prefix):
                return module.removeprefix(prefix).partition(".")[0]
    return "other"


def _modules(function: Any) -> Iterator[str]:
    """Yield the module of a function, then those of the functions that it is given to call."""
    if isinstance(function, partial):
        yield from _modules(function.func)
        for argument in function.args:
            if callable(argument) and not isinstance(argument, type):
                yield from _modules(argument)
    else:
        yield getattr(function, "__module__", None) or ""
