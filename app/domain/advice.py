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
from app.kernel.metrics.card import Inputs, Task
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


@dataclass(frozen=True, slots=True)
class Fork:
    """A fork. ``about`` is the attribute of the request that answers it."""

    about: str
    text: str
    source: Source
    branches: tuple[Branch, ...]

    def branch(self, answer: object) -> Branch:
        """The branch of an answer. Raises InvalidInput when there is none."""
        for branch in self.branches:
            if answer == branch.answer:
                return branch
        known = ", ".join(str(branch.answer) for branch in self.branches)
        raise InvalidInput.at(f"/{self.about}", "unknown_answer", f"expected one of {known}, got {answer!r}")

    @property
    def choices(self) -> list[tuple[str, str, str]]:
        """Each answer, what it is called, and what follows from it."""
        found = []
        for branch in self.branches:
            answer = ("no", "yes")[branch.answer] if isinstance(branch.answer, bool) else str(branch.answer)
            found.append((answer, _words(self.about, answer), branch.reason))
        return found


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


NO_PROBABILITIES = (
    "Some metrics need predicted probabilities, which are not among the inputs: from labels alone a "
    "curve is one point. "
    "Metrics of that point are given instead."
)
NO_LABEL_PROBABILITIES = (
    "Metrics of the order of the labels need the probability of each, which are not among the inputs: they are left "
    "out."
)
NOT_ALONE = "No single number settles it: read the per-class recalls beside whatever is chosen."


CLASSIFICATION: Final = "classification"
_PROBABILITIES: Final = "has_probabilities"
# Notes on inputs of advice that are not there without probabilities.
_LACKING: Final = {Inputs.PROBABILITIES: NO_PROBABILITIES, Inputs.LABEL_SCORES: NO_LABEL_PROBABILITIES}


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
                notes.append(lacking)
            # What would take its place is of no interest where it is not needed.
            usable = replace(advice, instead=None) if lacking is None else advice.instead
            if usable is not None:
                advised.setdefault(usable.metric, usable)
        notes.extend(leaf.notes)
    if request.task == CLASSIFICATION:
        notes.append(NOT_ALONE)
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


# What answers are called, by what they are about; those of yes and no are called so.
WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "task": {
        CLASSIFICATION: "One class of two or more",
        "multilabel": "Labels, of which a sample can have several",
        "clustering": "Clusters",
        "ranking": "An order, as of search results",
        "sets": "Sets: regions of a picture, parts of a text",
    },
    "classes": {"binary": "Two", "multiclass": "More than two"},
    "error_priority": {
        "type1": "False alarms",
        "type2": "Misses",
        "both": "Both alike",
        "costs": "What they cost",
        "first": "How early the first relevant one comes",
        "order": "The whole order",
    },
    "judged": {
        "labels": "Every label",
        "samples": "Every sample",
        "items": "Every item",
        "pixels": "Every pixel or token",
        "classes": "Every class",
        "whole_sets": "The whole set",
    },
}


@dataclass(frozen=True, slots=True)
class Answered:
    """A question that was answered, and what the answer is called."""

    about: str
    text: str
    answer: str
    words: str


def walk(task: str, given: Mapping[str, str]) -> tuple[list[Answered], Fork | None]:
    """Follow the answers through the trees as far as they go: the questions that were answered, and the next one, if
    there is one.

    Raises:
        InvalidInput: one is none of those that its question knows.
    """
    path: dict[str, Answered] = {}
    # Of labels the last question is not in the tree: it only says which of the metrics there can be had.
    for tree in (*trees().by_task[task].values(), *((_OF_LABELS,) if task == Task.MULTILABEL else ())):
        try:
            taken, end = _way(tree, _understood(given))
        except InvalidInput as error:
            (fault,) = error.faults
            detail = f"expected an answer that the question knows, got {given[fault.pointer[1:]]!r}"
            raise InvalidInput([replace(fault, detail=detail)]) from None
        for fork, _ in taken:
            answer = given[fork.about]
            path.setdefault(fork.about, Answered(fork.about, fork.text, answer, _words(fork.about, answer)))
        if isinstance(end, Fork):
            return list(path.values()), end
    return list(path.values()), None


def recommended(task: str, given: Mapping[str, str]) -> Recommendation:
    """Return the recommendation of the trees for a complete set of answers.

    Raises:
        InvalidInput: an answer is missing or is none.
    """
    answers = _understood(given)
    inputs = [Inputs.MATRIX, *([Inputs.PROBABILITIES] if answers.pop(_PROBABILITIES, False) else [])]
    return recommend(Request(task=task, answers=answers, inputs=inputs))


def _understood(given: Mapping[str, str]) -> dict[str, Any]:
    return {about: YES_NO.get(answer, answer) for about, answer in given.items()}


def _words(about: str, answer: str) -> str:
    return WORDS.get(about, {}).get(answer, answer.capitalize())


_OF_LABELS: Final = Fork(
    _PROBABILITIES,
    "Are there predicted probabilities of the labels?",
    Source("", ""),
    (
        Branch(answer=True, reason="Metrics of their order can be had too.", next=Leaf(())),
        Branch(answer=False, reason="Only decisions can be judged.", next=Leaf(())),
    ),
)
