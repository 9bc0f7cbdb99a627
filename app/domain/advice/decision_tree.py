"""Decision trees as data: questions with branches, and at the leaves the metrics that are advised.

The trees and the advice stand in `trees.toml`.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

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
    """A branch of a fork: the answer that takes it, and the reason."""

    answer: object
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
            if answer == branch.answer:
                return branch
        raise KeyError(answer)


Node = Fork | Leaf
YES_NO: Final = {"yes": True, "no": False}


@dataclass(frozen=True, slots=True)
class Trees:
    """All trees.

    Attributes:
        by_task: By task and name, in the order in which they are walked.
        assumed: By task, what is assumed where a question is not answered; None has to be answered.
        advice: By name.
    """

    by_task: Mapping[str, Mapping[str, Node]]
    assumed: Mapping[str, Mapping[str, object]]
    advice: Mapping[str, Advice]


@cache
def trees() -> Trees:
    """Read the trees, when somebody asks for the first time."""
    told = tomllib.loads(Path(__file__).with_name("trees.toml").read_text(encoding="utf-8"))
    advice = {name: _advice(name, told) for name in told["metrics"]}
    by_task = {
        task: {name: _node(one, told, advice) for name, one in named.items()} for task, named in told["trees"].items()
    }
    assumed = {
        task: {about: None if usual == "" else usual for about, usual in usuals.items()}
        for task, usuals in told["assumed"].items()
    }
    return Trees(by_task, assumed, advice)


def _advice(name: str, told: Mapping[str, Any]) -> Advice:
    said = {"metric": name, **told["metrics"][name]}
    if "disagreement" in said:
        said["disagreement"] = told["texts"].get(said["disagreement"], said["disagreement"])
    return Advice(
        **{
            **said,
            "source": _source(said["source"], told),
            "inputs": Inputs(said.get("inputs", Inputs.MATRIX)),
            "alternatives": tuple(Alternative(*one) for one in said.get("alternatives", ())),
            "instead": _advice(said["instead"], told) if "instead" in said else None,
        }
    )


def _source(said: str | list[str], told: Mapping[str, Any]) -> Source:
    return Source(*(told["sources"][said] if isinstance(said, str) else said))


def _node(said: Mapping[str, Any], told: Mapping[str, Any], advice: Mapping[str, Advice]) -> Node:
    if "ask" not in said:
        return Leaf(
            tuple(advice[name] for name in said["metrics"]),
            tuple(told["texts"][name] for name in said.get("notes", ())),
        )
    question = told["questions"][said["ask"]]
    branches = tuple(
        Branch(YES_NO.get(answer, answer), reason, _node(said[answer], told, advice))
        for answer, reason in question["answers"].items()
    )
    source = _source(said.get("source", question["source"]), told)
    return Fork(question.get("about", said["ask"]), question["text"], source, branches)
