"""An evaluation as it is remembered: whose it is, what came in, and the overall values that it is found and ranked by.

The report of an evaluation is a pure function of its input and options, so the report itself is not part of the record.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Generic, TypeVar
from uuid import UUID

from numpy.typing import NDArray

from app.domain.findings import FindingMark
from app.domain.identifiers import time_of
from app.domain.inputs.content import DATA_FACT, DECISIONS_FACT, GROUPS_FACT, WEIGHTS_FACT, Content, DataFacts
from app.domain.inputs.kinds import size_of, task_of
from app.domain.inputs.samples import Samples
from app.domain.members import LEFT_OUT
from app.kernel.metrics.card import Task

Item = TypeVar("Item")
Place = TypeVar("Place")


@dataclass(frozen=True, slots=True)
class ModelRef:
    """One version of a model.

    Attributes:
        version: `null` where it has none.
    """

    name: str
    version: str | None = None


@dataclass(frozen=True, slots=True)
class DatasetRef:
    """One split of one version of a dataset.

    Attributes:
        version: `null` where it has none.
        split: `null` where it has none.
    """

    name: str
    version: str | None = None
    split: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationRecord:
    """One stored evaluation with everything its report is computed from.

    Attributes:
        id: Time-ordered (`app.domain.identifiers.new_id`); the moment of creation is part of it.
        kind: The kind of input it came as.
        labels: The K classes in the order of the matrix.
        positive: Index of the positive class, K = 2 only.
        counts: [K, K], rows are actual; int64 for counts, float64 otherwise. Of another shape for what is more than a
            matrix of classes (`app.domain.inputs.kinds`).
        fold_counts: [F, K, K] of the same type, or None when the input was not folds.
        options: The options of the request, as JSON.
        revision: Revision of the metric catalogue that `values` were computed with.
        values: Overall metric key → value, None where undefined; a metric that does not apply has no key.
        extra: Small facts of this kind of input to give back, as JSON.
        samples: What is to be kept of the samples. A record that was read has none: they are read by themselves.
        part: What was said of samples that are not to be kept, as JSON; read by itself too.
    """

    id: UUID
    model: ModelRef
    dataset: DatasetRef
    kind: str
    labels: tuple[str, ...]
    content: Content
    counts: NDArray[Any]
    revision: str
    values: Mapping[str, float | None]
    positive: int | None = None
    fold_counts: NDArray[Any] | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    samples: Samples | None = None
    part: Mapping[str, Any] | None = None

    @property
    def created_at(self) -> datetime:
        """When it was made, UTC, to the millisecond; read from the id so that the two cannot disagree."""
        return time_of(self.id)

    @property
    def n_samples(self) -> float:
        """How many samples, or queries: a count, or a sum of weights or of rates."""
        return float(size_of(self.kind, self.counts))

    @property
    def task(self) -> Task | None:
        """What is judged; None for classes, two or more."""
        return task_of(self.kind, self.extra)

    @property
    def decisions(self) -> Sequence[str] | None:
        """What was decided, in the order of the columns, where that is no class."""
        found: Sequence[str] | None = self.extra.get(DECISIONS_FACT)
        return found

    @property
    def judged(self) -> tuple[Task | None, Sequence[str] | None]:
        """What is judged, and what can be decided where that is no class."""
        return self.task, self.decisions

    @property
    def n_rows(self) -> float:
        """Samples that came, whatever they weigh."""
        rows: float = self.extra.get("rows", self.n_samples) if self.is_weighted else self.n_samples
        return rows

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.labels)

    @property
    def data(self) -> DataFacts | None:
        """What was read of data that a request named; its samples lie there still, and nowhere else."""
        found: DataFacts | None = self.extra.get(DATA_FACT)
        return found

    @property
    def is_grouped(self) -> bool:
        """Whether its samples came in groups, so that they are not independent."""
        return GROUPS_FACT in self.extra

    @property
    def is_weighted(self) -> bool:
        """Whether its samples have weights of their own, from which the sampling error follows."""
        return WEIGHTS_FACT in self.extra

    @property
    def samples_independent(self) -> bool:
        """Whether its samples are, and their number or the weight of each is known."""
        return (self.content is Content.counts or self.is_weighted) and not self.is_grouped

    @property
    def counts_independent(self) -> bool:
        """Whether its entries are numbers of independent samples, from which their sampling error is known."""
        return self.content is Content.counts and not self.is_grouped


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarisedInput:
    """What was evaluated, without the matrix.

    Attributes:
        n_samples: A whole number for counts, a sum of weights; `null` when the entries are rates.
        positive: The positive class of two.
    """

    kind: str
    content: Content
    n_samples: float | None
    n_classes: int
    labels: Sequence[str]
    positive: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSummary:
    """An evaluation in a list.

    Attributes:
        metrics: The overall ones by key, `null` where undefined.
        findings: Where they are asked for, those of the report that follow from the matrix alone; left out of what is
            more than a matrix of classes.
    """

    id: UUID
    created_at: datetime
    model: ModelRef
    dataset: DatasetRef
    tags: Mapping[str, str]
    input: SummarisedInput
    metrics: Mapping[str, float | None]
    findings: Sequence[FindingMark] | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True)
class Position:
    """The last item of a page. With a sort metric `value` is its value there, None when it was undefined."""

    id: UUID
    value: float | None = None


class Bound(StrEnum):
    """On which side of a number a value has to be."""

    BELOW = "<"
    AT_MOST = "<="
    ABOVE = ">"
    AT_LEAST = ">="


@dataclass(frozen=True, slots=True)
class ValueCondition:
    """What a stored value has to satisfy. One that is undefined, or does not apply, never does.

    Attributes:
        metric: Key of an overall metric.
    """

    metric: str
    bound: Bound
    number: float

    def __str__(self) -> str:
        """As it is asked for."""
        return f"{self.metric}{self.bound.value}{self.number!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationQuery:
    """Which evaluations, in which order. A filter that is None lets everything pass; all filters must hold.

    Attributes:
        tags: Pairs that must all be among the tags.
        where: Conditions on stored values.
        created_after: From this moment on, the moment included.
        created_before: Up to this moment, the moment excluded.
        sort_metric: Overall metric to sort by, or None to sort by time. Undefined values come last in both directions,
            equal values in the direction of time that `descending` says.
        after: Where the page before ended.
    """

    model: str | None = None
    model_version: str | None = None
    dataset: str | None = None
    dataset_version: str | None = None
    split: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    where: tuple[ValueCondition, ...] = ()
    created_after: datetime | None = None
    created_before: datetime | None = None
    sort_metric: str | None = None
    descending: bool = True
    limit: int = 50
    after: Position | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """An evaluation by what it is of: the latest that matches all that is given."""

    model: ModelRef | None = None
    dataset: DatasetRef | None = None
    tags: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """In words, for messages."""
        parts = [f"model {self.model.name} {self.model.version or ''}".rstrip()] if self.model else []
        if self.dataset:
            named = (self.dataset.name, self.dataset.version, self.dataset.split)
            parts.append(f"dataset {' '.join(part for part in named if part)}")
        return ", ".join([*parts, *(f"tag {key}:{value}" for key, value in self.tags)])


@dataclass(frozen=True, slots=True)
class Page(Generic[Item, Place]):
    """Some items, and where to go on: None when these are the last."""

    items: tuple[Item, ...]
    next_position: Place | None


@dataclass(frozen=True, slots=True)
class Standing:
    """One line of a leaderboard: the latest evaluation of one model version.

    Attributes:
        rank: 1 is best, equal values share a rank; None when the metric is undefined.
    """

    rank: int | None
    value: float | None
    evaluation: EvaluationSummary
