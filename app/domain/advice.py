"""Advice on the choice of metrics, with its sources: decision trees as data, walked by a request as a whole, and one
question at a time for the pages.

The trees and the advice at their leaves stand in `trees.toml`.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from app.domain.errors import Fault, InvalidInput
from app.domain.members import HIDDEN
from app.kernel.metrics.card import Inputs
from app.kernel.metrics.references import REFERENCES


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

    @property
    def said(self) -> str:
        """The answer as a text."""
        return ("no", "yes")[self.answer] if isinstance(self.answer, bool) else str(self.answer)


@dataclass(frozen=True, slots=True)
class Fork:
    """A fork. ``about`` is the attribute of the request that answers it."""

    about: str
    text: str
    source: Source
    branches: tuple[Branch, ...]

    def branch(self, answer: object) -> Branch:
        """The branch of an answer or of its text. Raises InvalidInput when there is none."""
        for branch in self.branches:
            if answer in (branch.answer, branch.said):
                return branch
        known = ", ".join(branch.said for branch in self.branches)
        raise InvalidInput.at(f"/{self.about}", "unknown_answer", f"expected one of {known}, got {answer!r}")

    def words(self, branch: Branch) -> str:
        """The answer of a branch in words."""
        return trees().words.get(self.about, {}).get(branch.said, branch.said.capitalize())


Node = Fork | Leaf
YES_NO: Final = {"yes": True, "no": False}


@dataclass(frozen=True, slots=True)
class Trees:
    """All trees.

    Attributes:
        by_task: By task and name, in the order in which they are walked.
        asked: Further questions of pages, by task: inputs that only decide which of the advised metrics can be had.
        assumed: By task, what is assumed where a question is not answered; None has to be answered.
        advice: By name.
        words: What answers are called, by what they are about; those of yes and no are called so.
        texts: By name.
    """

    by_task: Mapping[str, Mapping[str, Node]]
    asked: Mapping[str, Node]
    assumed: Mapping[str, Mapping[str, object]]
    advice: Mapping[str, Advice]
    words: Mapping[str, Mapping[str, str]]
    texts: Mapping[str, str]


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
    asked = {task: _node(one, told, advice) for task, one in told["asked"].items()}
    return Trees(by_task, asked, assumed, advice, told["words"], told["texts"])


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


CLASSIFICATION: Final = "classification"
_PROBABILITIES: Final = "has_probabilities"
# Texts on inputs of advice that are not there without probabilities.
_LACKING: Final = {Inputs.PROBABILITIES: "no_probabilities", Inputs.LABEL_SCORES: "no_label_probabilities"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A question for metrics.

    Attributes:
        task: `classification`, or another task that has a tree.
        answers: By the ``about`` of the questions of its trees; what is not answered is assumed.
    """

    task: str = CLASSIFICATION
    answers: Mapping[str, Any] = field(default_factory=dict)
    inputs: Sequence[str] = (Inputs.MATRIX,)

    @property
    def has_probabilities(self) -> bool:
        """Are there predicted probabilities? Labels, and so the matrix, follow from them."""
        return Inputs.PROBABILITIES in self.inputs

    @property
    def all_answers(self) -> Mapping[str, Any]:
        """Answers by what they are about, given or assumed."""
        return {**trees().assumed[self.task], **self.answers, _PROBABILITIES: self.has_probabilities}

    def check(self) -> None:
        """Raises InvalidInput: an answer is missing, and nothing can be assumed, or one is of another task."""
        known = trees().assumed[self.task]
        faults = [
            Fault(f"/{about}", "missing_field", f"expected an answer, which {self.task} needs")
            for about, usual in known.items()
            if usual is None and about not in self.answers
        ]
        faults += [
            Fault(
                f"/{about}",
                "not_for_this_task",
                f"expected at most {', '.join(known)}: {self.task} has no such question",
            )
            for about in self.answers
            if about not in known
        ]
        if faults:
            raise InvalidInput(faults)


@dataclass(frozen=True, slots=True)
class Step:
    """One question on the way, the answer it got and what follows."""

    tree: str
    question: str
    answer: Any
    reason: str
    source: Source


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The metrics, the most specific first; the questions and answers that led to them; what to keep in mind.

    Attributes:
        path: Questions, answers, and why they lead on as they do.
        references: What the sources in `metrics` and `path` are.
    """

    metrics: tuple[Advice, ...]
    path: tuple[Step, ...]
    notes: tuple[str, ...]
    references: Mapping[str, str]


def recommend(request: Request) -> Recommendation:
    """Walk all trees of the task.

    Raises:
        InvalidInput: an answer is missing, is none of those that a question knows, or answers no question of the task.
    """
    request.check()
    path: list[Step] = []
    advised: dict[str, Advice] = {}
    notes: list[str] = []
    for name, tree in trees().by_task[request.task].items():
        taken, leaf = _way(tree, request.all_answers)
        if not isinstance(leaf, Leaf):
            raise TypeError(f"expected an answer about {leaf.about}")
        path += [Step(name, fork.text, branch.answer, branch.reason, fork.source) for fork, branch in taken]
        for advice in leaf.advice:
            lacking = None if request.has_probabilities else _LACKING.get(advice.inputs)
            if lacking is not None:
                notes.append(trees().texts[lacking])
            # What would take its place is of no interest where it is not needed.
            usable = replace(advice, instead=None) if lacking is None else advice.instead
            if usable is not None:
                advised.setdefault(usable.metric, usable)
        notes.extend(leaf.notes)
    if request.task == CLASSIFICATION:
        notes.append(trees().texts["not_alone"])
    sources = [step.source for step in path] + [advice.source for advice in advised.values()]
    return Recommendation(
        metrics=tuple(advised.values()),
        path=tuple(path),
        notes=tuple(dict.fromkeys(notes)),
        references={source.reference: REFERENCES[source.reference] for source in sources},
    )


def _way(node: Node, answers: Mapping[str, Any]) -> tuple[list[tuple[Fork, Branch]], Node]:
    """The answered questions on the way through a tree, each with its branch, and the open question or end behind."""
    taken = []
    while isinstance(node, Fork) and node.about in answers:
        branch = node.branch(answers[node.about])
        taken.append((node, branch))
        node = branch.next
    return taken, node


def walk(task: str, given: Mapping[str, str]) -> tuple[list[tuple[Fork, Branch]], Fork | None]:
    """Follow the answers through the trees as far as they go: the questions that were answered, each with its branch,
    and the next one, if there is one.

    Raises:
        InvalidInput: one is none of those that its question knows.
    """
    path: dict[str, tuple[Fork, Branch]] = {}
    for tree in (*trees().by_task[task].values(), *(one for of, one in trees().asked.items() if of == task)):
        taken, end = _way(tree, given)
        for fork, branch in taken:
            path.setdefault(fork.about, (fork, branch))
        if isinstance(end, Fork):
            return list(path.values()), end
    return list(path.values()), None


def recommended(task: str, given: Mapping[str, str]) -> Recommendation:
    """Return the recommendation of the trees for a complete set of answers.

    Raises:
        InvalidInput: an answer is missing or is none.
    """
    answers = {about: YES_NO.get(answer, answer) for about, answer in given.items()}
    inputs = [Inputs.MATRIX, *([Inputs.PROBABILITIES] if answers.pop(_PROBABILITIES, False) else [])]
    return recommend(Request(task=task, answers=answers, inputs=inputs))
