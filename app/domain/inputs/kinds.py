"""What is judged in each kind of input, and how what is kept of its counts is read. A new kind is named here first."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from numpy.typing import NDArray

from app.kernel.metrics.card import Task

Counts = NDArray[Any]


@dataclass(frozen=True, slots=True)
class UnitForm:
    """A kind of input that is more than a matrix of classes.

    Attributes:
        task: What is judged.
        shape: Of the counts, from the number of labels and the facts.
        size: How many units (samples or queries) counts are of.
        needs_samples: Whether a report needs the samples, by the facts; else the counts say all.
    """

    task: Task
    shape: Callable[[int, Mapping[str, Any]], tuple[int, ...]]
    size: Callable[[Counts], float]
    needs_samples: Callable[[Mapping[str, Any]], bool] = lambda _: True


MULTILABEL: Final = "multilabel"
RANKING: Final = "ranking"
CLUSTERING: Final = "clustering"
SETS: Final = "sets"
# Among the facts of a confusion matrix whose columns are no classes: what was decided, in the order of the columns.
DECISIONS_FACT: Final = "decisions"
# Among the facts of clusterings: the names of the clusters, and how many features samples have.
CLUSTERS_FACT: Final = "clusters"
FEATURES_FACT: Final = "n_features"

# A confusion matrix of classes by decisions is a kind of its own, whatever its shape.
_OF_DECISIONS: Final = UnitForm(
    Task.DECISIONS,
    lambda n_classes, facts: (n_classes, len(facts[DECISIONS_FACT])),
    lambda counts: counts.sum().item(),
    lambda _: False,
)
# Every other kind is a matrix of classes, [K, K], with as many samples as its entries sum to.
UNIT_FORMS: Final[Mapping[str, UnitForm]] = {
    # Of each label a table of two by two: actual rows, absent before present.
    MULTILABEL: UnitForm(Task.MULTILABEL, lambda n_labels, _: (n_labels, 2, 2), lambda counts: counts[0].sum().item()),
    # Queries, items, relevant items, queries with a relevant item.
    RANKING: UnitForm(Task.RANKING, lambda _, __: (4,), lambda counts: counts[0].item()),
    # Classes by clusters; one row where no classes are known. Distances need the samples.
    CLUSTERING: UnitForm(
        Task.CLUSTERING,
        lambda n_classes, facts: (max(n_classes, 1), len(facts[CLUSTERS_FACT])),
        lambda counts: counts.sum().item(),
        lambda facts: FEATURES_FACT in facts,
    ),
    # Of each class of items, or of all in one row: how many are not exactly what was predicted, and how many are.
    SETS: UnitForm(Task.SETS, lambda n_classes, _: (max(n_classes, 1), 2), lambda counts: counts.sum().item()),
}


def form_of(kind: str, facts: Mapping[str, Any]) -> UnitForm | None:
    """The form of what is more than a matrix of classes."""
    return _OF_DECISIONS if DECISIONS_FACT in facts else UNIT_FORMS.get(kind)


def task_of(kind: str, facts: Mapping[str, Any]) -> Task | None:
    """What is judged; None for classes, two or more."""
    form = form_of(kind, facts)
    return None if form is None else form.task


def shape_of(kind: str, n_labels: int, facts: Mapping[str, Any]) -> tuple[int, ...]:
    """The shape of the counts of an input."""
    form = form_of(kind, facts)
    return (n_labels, n_labels) if form is None else form.shape(n_labels, facts)


def size_of(kind: str, counts: Counts) -> float:
    """How many samples, or queries, the counts of an input are of."""
    form = UNIT_FORMS.get(kind)
    total: float = counts.sum().item() if form is None else form.size(counts)
    return total
