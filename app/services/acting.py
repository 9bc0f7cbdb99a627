"""What is known of the present request where it is carried out: who acts, and under which id what it makes is kept.

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
    """What this task, and those it starts, changes from now on is changed by somebody, for a project."""
    _ACTOR.set(actor)
    _PROJECT.set(project)


def actor() -> Actor:
    """Who acts."""
    return _ACTOR.get()


def sharer() -> str | None:
    """The project with whose other requests the present one shares processes; None where nobody needs a key, since
    then all requests are of one owner.
    """
    return None if actor().key is None else _PROJECT.get()


# The id of what a job makes, chosen when the job was taken; None where it is chosen when it is made.
_CHOSEN: ContextVar[UUID | None] = ContextVar("chosen", default=None)


def make_as(identifier: UUID) -> None:
    """What this task makes has this id. Whoever carries out the same work again makes no second one."""
    _CHOSEN.set(identifier)


def make_part(place: int) -> None:
    """Of many things that one request makes, this task makes the one at this place."""
    if _CHOSEN.get() is not None:
        _CHOSEN.set(part_id(place))


def part_id(place: int) -> UUID:
    """The id of the one at this place."""
    chosen = _CHOSEN.get()
    return new_id() if chosen is None else UUID(int=chosen.int + place)


def made_id() -> UUID:
    """The id of what is made now."""
    return _CHOSEN.get() or new_id()
