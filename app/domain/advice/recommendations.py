"""Recommended metrics: a request is walked through the trees of its task. The same trees are walked one question at a
time for the pages.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from app.domain.advice.decision_tree import YES_NO, Advice, Fork, Leaf, Node, Source, trees
from app.domain.errors import Fault, InvalidInput
from app.kernel.metrics.card import Inputs, Task
from app.kernel.metrics.references import REFERENCES

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

    def answer(self, about: str) -> Any:
        """The answer to a question, given or assumed."""
        if about == _PROBABILITIES:
            return self.has_probabilities
        return self.answers.get(about, trees().assumed[self.task].get(about))

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
        leaf = _walk(request, name, tree, path)
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


def _walk(request: Request, name: str, tree: Node, path: list[Step]) -> Leaf:
    node = tree
    while not isinstance(node, Leaf):
        answer = request.answer(node.about)
        try:
            branch = node.branch(answer)
        except KeyError:
            known = ", ".join(str(branch.answer) for branch in node.branches)
            raise InvalidInput.at(
                f"/{node.about}", "unknown_answer", f"expected one of {known}, got {answer!r}"
            ) from None
        path.append(Step(name, node.text, answer, branch.reason, node.source))
        node = branch.next
    return node


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
class Choice:
    """An answer that can be given, what it is called, and what follows from it."""

    answer: str
    words: str
    reason: str


@dataclass(frozen=True, slots=True)
class Question:
    """The next question of a tree."""

    about: str
    text: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Answered:
    """A question that was answered, and what the answer is called."""

    about: str
    text: str
    answer: str
    words: str


@dataclass(frozen=True, slots=True)
class Walk:
    """A path through the trees.

    Attributes:
        path: The questions that were answered, in their order.
        question: The next one; None at the end.
    """

    path: tuple[Answered, ...]
    question: Question | None


def walk(task: str, given: Mapping[str, str]) -> Walk:
    """Follow the answers as far as they go.

    Raises:
        InvalidInput: one is none of those that its question knows.
    """
    path: dict[str, Answered] = {}
    for tree in trees().by_task[task].values():
        for fork in _forks(tree, given):
            if fork.about not in given:
                return Walk(tuple(path.values()), _question(fork))
            answer = given[fork.about]
            path.setdefault(fork.about, Answered(fork.about, fork.text, answer, _words(fork.about, answer)))
    if task == Task.MULTILABEL:
        # Not in its tree, since it only says which of the metrics there can be had.
        if _PROBABILITIES not in given:
            return Walk(tuple(path.values()), _OF_LABELS)
        last = given[_PROBABILITIES]
        if last not in YES_NO:
            raise _unknown(_PROBABILITIES, last)
        path[_PROBABILITIES] = Answered(_PROBABILITIES, _OF_LABELS.text, last, _words(_PROBABILITIES, last))
    return Walk(tuple(path.values()), None)


def recommended(task: str, given: Mapping[str, str]) -> Recommendation:
    """Return the recommendation of the trees for a complete set of answers.

    Raises:
        InvalidInput: an answer is missing or is none.
    """
    probabilities = [Inputs.PROBABILITIES] if given.get(_PROBABILITIES) == "yes" else []
    answers = {about: YES_NO.get(answer, answer) for about, answer in given.items() if about != _PROBABILITIES}
    return recommend(Request(task=task, answers=answers, inputs=[Inputs.MATRIX, *probabilities]))


def _forks(tree: Node, given: Mapping[str, str]) -> Iterator[Fork]:
    """The questions of a tree on the way of the answers, the first without an answer being the last."""
    node = tree
    while isinstance(node, Fork):
        yield node
        if node.about not in given:
            return
        about, answer = node.about, given[node.about]
        try:
            node = node.branch(YES_NO.get(answer, answer)).next
        except KeyError:
            raise _unknown(about, answer) from None


def _question(fork: Fork) -> Question:
    choices = []
    for branch in fork.branches:
        answer = ("no", "yes")[branch.answer] if isinstance(branch.answer, bool) else str(branch.answer)
        choices.append(Choice(answer, _words(fork.about, answer), branch.reason))
    return Question(fork.about, fork.text, tuple(choices))


def _words(about: str, answer: str) -> str:
    return WORDS.get(about, {}).get(answer, answer.capitalize())


def _unknown(about: str, answer: str) -> InvalidInput:
    return InvalidInput.at(f"/{about}", "unknown_answer", f"expected an answer that the question knows, got {answer!r}")


_OF_LABELS: Final = Question(
    _PROBABILITIES,
    "Are there predicted probabilities of the labels?",
    (
        Choice("yes", "Yes", "Metrics of their order can be had too."),
        Choice("no", "No", "Only decisions can be judged."),
    ),
)
