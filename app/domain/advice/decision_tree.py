"""A decision tree as data: questions with branches, and at the leaves the metrics that are advised."""

from dataclasses import dataclass, field
from typing import Any

from app.domain.members import typed
from app.kernel.metrics.card import Inputs


@dataclass(frozen=True, slots=True)
class Source:
    """Where something is said: an id of the references, and the place in it."""

    reference: str
    place: str


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another metric for the same purpose, and when to prefer it."""

    metric: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One metric that is advised.

    Attributes:
        condition: When it applies, if the questions do not settle that.
        parameters: Parameters that differ from the default, as in an expression.
        curve: Name of the curve to look at with it.
        disagreement: What another source says against it, or what the source itself gets wrong.
        instead: What takes its place when there are no probabilities; `null` in answers, where it has taken it.
    """

    metric: str
    reason: str
    source: Source
    inputs: Inputs = Inputs.MATRIX
    condition: str | None = None
    parameters: str | None = None
    curve: str | None = None
    alternatives: tuple[Alternative, ...] = ()
    disagreement: str | None = None
    instead: "Advice | None" = field(default=None, metadata=typed(None))


@dataclass(frozen=True, slots=True)
class Leaf:
    """Where a path ends."""

    advice: tuple[Advice, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """What follows from any of some answers, and why."""

    answers: tuple[Any, ...]
    reason: str
    next: "Fork | Leaf"


@dataclass(frozen=True, slots=True)
class Fork:
    """A fork. ``about`` is the attribute of the request that answers it."""

    about: str
    text: str
    source: Source
    branches: tuple[Branch, ...]

    def branch(self, answer: object) -> Branch:
        """The branch of an answer. Raises KeyError when there is none."""
        for branch in self.branches:
            if answer in branch.answers:
                return branch
        raise KeyError(answer)


Node = Fork | Leaf
