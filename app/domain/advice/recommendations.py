"""Which metrics to use: the request is walked through the trees of ``app.domain.advice.metric_trees``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from app.domain.advice.decision_tree import Advice, Leaf, Node, Source
from app.domain.advice.metric_trees import TREES
from app.domain.errors import InvalidInput
from app.kernel.metrics.card import Inputs
from app.kernel.metrics.references import REFERENCES

NO_PROBABILITIES = (
    "Some metrics need predicted probabilities, which are not among the inputs: from labels alone a "
    "curve is one point. "
    "Metrics of that point are given instead."
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
    """The metrics, the most specific to what was asked first; the way there; what to keep in mind.

    Attributes:
        path: Questions, answers, and why they lead on as they do.
        references: What the sources in `metrics` and `path` are.
    """

    metrics: tuple[Advice, ...]
    path: tuple[Step, ...]
    notes: tuple[str, ...]
    references: Mapping[str, str]


def recommend(request: Request) -> Recommendation:
    """Walk all trees.

    Raises:
        InvalidInput: an answer is none of those that a question knows.
    """
    path: list[Step] = []
    advised: dict[str, Advice] = {}
    notes: list[str] = []
    for name, tree in TREES.items():
        leaf = _walk(request, name, tree, path)
        for advice in leaf.advice:
            usable = _usable(advice, request)
            if usable is not None:
                advised.setdefault(usable.metric, usable)
            if advice.inputs is Inputs.PROBABILITIES and not request.has_probabilities:
                notes.append(NO_PROBABILITIES)
        notes.extend(leaf.notes)
    sources = [step.source for step in path] + [advice.source for advice in advised.values()]
    return Recommendation(
        metrics=tuple(advised.values()),
        path=tuple(path),
        notes=tuple(dict.fromkeys([*notes, NOT_ALONE])),
        references={source.reference: REFERENCES[source.reference] for source in sources},
    )


def _walk(request: Request, name: str, tree: Node, path: list[Step]) -> Leaf:
    node = tree
    while not isinstance(node, Leaf):
        answer = getattr(request, node.about)
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
