"""A decision tree as data: questions with branches, and at the leaves the metrics that are advised."""

from dataclasses import dataclass, field
from typing import Any

from app.domain.members import HIDDEN
from app.kernel.metrics.card import Inputs


@dataclass(frozen=True, slots=True)
class Source:
    """A source of advice: an id of the references, and the place in it."""

    reference: str
    place: str


@dataclass(frozen=True, slots=True)
class Alternative:
    """An alternative metric for the same purpose, and the reason to prefer it."""

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
        instead: What takes its place where there are no probabilities; it is answered itself then, not here.
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
    instead: "Advice | None" = field(default=None, metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class Leaf:
    """The end of a path, with the advised metrics."""

    advice: tuple[Advice, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch of a fork: the answers that take it, and the reason."""

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
