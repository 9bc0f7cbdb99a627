"""The actor, project and chosen id of the present request, for the code that carries it out.

Set where the request came in.
"""

from contextvars import ContextVar
from typing import Final
from uuid import UUID

from app.domain.identifiers import new_id
from app.domain.operations import Actor

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
