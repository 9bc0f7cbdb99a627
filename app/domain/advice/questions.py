"""The decision trees one question at a time, for whoever clicks through them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.domain.advice.decision_tree import Fork, Node
from app.domain.advice.metric_trees import TREES
from app.domain.advice.recommendations import (
    Classes,
    ErrorPriority,
    Recommendation,
    Request,
    TaskRequest,
    recommend,
)
from app.domain.advice.task_trees import TASK_TREES
from app.domain.errors import InvalidInput
from app.kernel.metrics.card import Inputs, Task

CLASSIFICATION: Final = "classification"
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
_YES_NO: Final = {"yes": True, "no": False}
_PROBABILITIES: Final = "has_probabilities"


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer that can be given, what it is called, and what follows from it."""

    answer: str
    words: str
    reason: str


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked next."""

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
    """How far the answers lead.

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
    for tree in TREES.values() if task == CLASSIFICATION else (TASK_TREES[Task(task)],):
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
        if last not in _YES_NO:
            raise _unknown(_PROBABILITIES, last)
        path[_PROBABILITIES] = Answered(_PROBABILITIES, _OF_LABELS.text, last, _words(_PROBABILITIES, last))
    return Walk(tuple(path.values()), None)


def recommended(task: str, given: Mapping[str, str]) -> Recommendation:
    """What the trees recommend to whoever has answered all questions.

    Raises:
        InvalidInput: an answer is missing or is none.
    """
    inputs = ["matrix", *(["probabilities"] if given.get(_PROBABILITIES) == "yes" else [])]
    answers: dict[str, Any] = {
        about: _YES_NO.get(answer, answer) for about, answer in given.items() if about != _PROBABILITIES
    }
    if task != CLASSIFICATION:
        return recommend(TaskRequest.of(task, answers, inputs))
    return recommend(
        Request(
            classes=Classes(answers["classes"]),
            balanced=answers["balanced"],
            error_priority=ErrorPriority(answers.get("error_priority", ErrorPriority.BOTH)),
            chance_corrected=answers.get("chance_corrected", False),
            graphical=answers.get("graphical", False),
            inputs=[Inputs(one) for one in inputs],
        )
    )


def _forks(tree: Node, given: Mapping[str, str]) -> Iterator[Fork]:
    """The questions of a tree on the way of the answers, the first without an answer being the last."""
    node = tree
    while isinstance(node, Fork):
        yield node
        if node.about not in given:
            return
        about, answer = node.about, given[node.about]
        try:
            node = node.branch(_YES_NO.get(answer, answer)).next
        except KeyError:
            raise _unknown(about, answer) from None


def _question(fork: Fork) -> Question:
    choices = []
    for branch in fork.branches:
        for one in branch.answers:
            answer = ("no", "yes")[one] if isinstance(one, bool) else str(one)
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
