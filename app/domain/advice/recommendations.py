"""Recommended metrics: a request is walked through the trees of ``metric_trees``, or that of its task in
``task_trees``; the same trees are walked one question at a time for the pages.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, Self

from app.domain.advice.decision_tree import Advice, Fork, Leaf, Node, Source
from app.domain.advice.metric_trees import TREES
from app.domain.advice.task_trees import ASSUMED, TASK_TREES
from app.domain.errors import InvalidInput
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


class Classes(StrEnum):
    """How many classes there are."""

    BINARY = "binary"
    MULTICLASS = "multiclass"


class ErrorPriority(StrEnum):
    """Which error matters: false alarms (type 1), misses (type 2), both alike, or by their costs."""

    TYPE1 = "type1"
    TYPE2 = "type2"
    BOTH = "both"
    COSTS = "costs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is to be judged, and what matters about it."""

    classes: Classes
    balanced: bool
    error_priority: ErrorPriority = ErrorPriority.BOTH
    chance_corrected: bool = False
    graphical: bool = False
    inputs: Sequence[Inputs] = (Inputs.MATRIX,)

    @property
    def has_probabilities(self) -> bool:
        """Are there predicted probabilities? Labels, and so the matrix, follow from them."""
        return Inputs.PROBABILITIES in self.inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRequest:
    """The same of labels, clusterings, rankings or sets.

    Attributes:
        answers: By the ``about`` of the questions of its tree; what is not answered is assumed.
    """

    task: Task
    answers: Mapping[str, Any] = field(default_factory=dict)
    inputs: Sequence[Inputs] = (Inputs.MATRIX,)

    @classmethod
    def of(cls, task: str, answers: Mapping[str, Any], inputs: Sequence[str]) -> Self:
        """From the names of a task and of inputs."""
        return cls(task=Task(task), answers=answers, inputs=[Inputs(one) for one in inputs])

    def answer(self, about: str) -> Any:
        """The answer to a question.

        Raises:
            InvalidInput: it is not given, and nothing can be assumed.
        """
        found = self.answers.get(about, ASSUMED[self.task].get(about))
        if found is None:
            raise InvalidInput.at(f"/{about}", "missing", f"expected an answer, which {self.task} needs")
        return found


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


def recommend(request: Request | TaskRequest) -> Recommendation:
    """Walk all trees that the request is for.

    Raises:
        InvalidInput: an answer is missing, is none of those that a question knows, or answers no question of the task.
    """
    return _recommend_for_task(request) if isinstance(request, TaskRequest) else _recommend_for_classes(request)


def _recommend_for_classes(request: Request) -> Recommendation:
    path: list[Step] = []
    advised: dict[str, Advice] = {}
    notes: list[str] = []
    for name, tree in TREES.items():
        leaf = _walk(lambda about: getattr(request, about), name, tree, path)
        for advice in leaf.advice:
            usable = _usable(advice, request)
            if usable is not None:
                advised.setdefault(usable.metric, usable)
            if advice.inputs is Inputs.PROBABILITIES and not request.has_probabilities:
                notes.append(NO_PROBABILITIES)
        notes.extend(leaf.notes)
    return _recommendation(tuple(advised.values()), path, [*notes, NOT_ALONE])


def _recommend_for_task(request: TaskRequest) -> Recommendation:
    unknown = next((about for about in request.answers if about not in ASSUMED[request.task]), None)
    if unknown is not None:
        known = ", ".join(ASSUMED[request.task])
        raise InvalidInput.at(
            f"/{unknown}", "not_for_this_task", f"expected at most {known}: {request.task} has no such question"
        )
    path: list[Step] = []
    leaf = _walk(request.answer, request.task.value, TASK_TREES[request.task], path)
    has_scores = Inputs.PROBABILITIES in request.inputs
    chosen = tuple(one for one in leaf.advice if has_scores or one.inputs is not Inputs.LABEL_SCORES)
    lacking = [] if len(chosen) == len(leaf.advice) else [NO_LABEL_PROBABILITIES]
    return _recommendation(chosen, path, [*lacking, *leaf.notes])


def _recommendation(metrics: tuple[Advice, ...], path: Sequence[Step], notes: Sequence[str]) -> Recommendation:
    sources = [step.source for step in path] + [advice.source for advice in metrics]
    return Recommendation(
        metrics=metrics,
        path=tuple(path),
        notes=tuple(dict.fromkeys(notes)),
        references={source.reference: REFERENCES[source.reference] for source in sources},
    )


def _walk(answer_to: Callable[[str], Any], name: str, tree: Node, path: list[Step]) -> Leaf:
    node = tree
    while not isinstance(node, Leaf):
        answer = answer_to(node.about)
        try:
            branch = node.branch(answer)
        except KeyError:
            known = ", ".join(str(known) for branch in node.branches for known in branch.answers)
            raise InvalidInput.at(
                f"/{node.about}", "unknown_answer", f"expected one of {known}, got {answer!r}"
            ) from None
        path.append(Step(name, node.text, answer, branch.reason, node.source))
        node = branch.next
    return node


def _usable(advice: Advice, request: Request) -> Advice | None:
    """The advice if its inputs are there, else what takes its place."""
    if advice.inputs is Inputs.MATRIX or request.has_probabilities:
        # What would take its place is of no interest then.
        return advice if advice.instead is None else replace(advice, instead=None)
    return advice.instead


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
