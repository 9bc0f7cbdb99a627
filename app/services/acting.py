"""Who the present request acts for: asked where something is changed, set where the request came in."""

from contextvars import ContextVar
from typing import Final

from app.domain.access import Actor

# Nobody said who: the service is open to this machine, or a test calls.
_LOCAL: Final = Actor("local")
_ACTOR: ContextVar[Actor] = ContextVar("actor", default=_LOCAL)


def act_as(actor: Actor) -> None:
    """What this task, and those it starts, changes from now on is changed by somebody."""
    _ACTOR.set(actor)


def actor() -> Actor:
    """Who acts."""
    return _ACTOR.get()
