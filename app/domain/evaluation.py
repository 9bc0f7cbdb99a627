"""An evaluation as it is remembered: whose it is, what came in, and the overall values that it is found and ranked by.

The report of an evaluation is a pure function of its input and options, so the report itself is not part of the record.
"""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Generic, Literal, Self, TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import InvalidInput
from app.domain.findings import FindingMark
from app.domain.identifiers import time_of
from app.domain.inputs.content import DATA_FACT, Content, DataFacts
from app.domain.inputs.matrices import MatrixInput
from app.domain.members import LEFT_OUT
from app.kernel.metrics.card import Task

Item = TypeVar("Item")
Place = TypeVar("Place")


MOST_TAGS: Final = 64


def merged_tags(old: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """Tags after a merge patch (RFC 7396): None removes one, others stay.

    Raises:
        InvalidInput: there would be more than an evaluation may have.
    """
    merged = {key: value for key, value in {**old, **changes}.items() if value is not None}
    if len(merged) > MOST_TAGS:
        detail = f"expected at most {MOST_TAGS} tags, there would be {len(merged)}"
        raise InvalidInput.at("/tags", "wrong_length", detail)
    return merged


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


# Those whose name alone stands for every version of them.
NamedModel = Annotated[ModelRef, "name"]
NamedDataset = Annotated[DatasetRef, "name"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class EvaluationRecord(MatrixInput):
    """One stored evaluation with everything its report is computed from: an input, and whose it is.

    A record that was read has no samples: they are read by themselves. Of a new one they are what is to be kept.

    Attributes:
        id: Time-ordered (`app.domain.identifiers.new_id`); the moment of creation is part of it.
        revision: Revision of the metric catalogue that `values` were computed with.
        values: Overall metric key → value, None where undefined; a metric that does not apply has no key.
        options: The options of the request, as JSON.
        part: What was said of samples that are not to be kept, as JSON; read by itself too.
        parts: Those that it was merged of, and in place of one that was merged itself its parts. They are looked up by
            themselves too; none where one of them was deleted since.
    """

    id: UUID
    model: ModelRef
    dataset: DatasetRef
    revision: str
    values: Mapping[str, float | None]
    tags: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    part: Mapping[str, Any] | None = None
    parts: "tuple[EvaluationRecord, ...]" = ()

    @property
    def created_at(self) -> datetime:
        """Time of creation, UTC, to the millisecond; read from the id so that the two cannot disagree."""
        return time_of(self.id)

    @property
    def judged(self) -> tuple[Task | None, Sequence[str] | None]:
        """The task, and the decisions if they are no classes."""
        return self.task, self.decisions

    @property
    def n_counted(self) -> float | None:
        """Samples that came, whatever they weigh; None of a matrix of rates, or of weights without their samples."""
        return self.n_rows if self.content is Content.counts or self.is_weighted else None

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.labels)

    @property
    def data(self) -> DataFacts | None:
        """Facts of data that was named by a reference; its samples are not stored here. None for data that was sent."""
        found: DataFacts | None = self.facts.get(DATA_FACT)
        return found

    @property
    def elsewhere(self) -> "tuple[EvaluationRecord, ...]":
        """The evaluations whose named data its samples lie in: itself or its parts. None for data that was sent."""
        whole = self.parts or (self,)
        return whole if all(one.data is not None for one in whole) else ()


@dataclass(frozen=True, slots=True, eq=False)
class AlikeEvaluations:
    """Evaluations of one model on one split of a dataset that differ in its version, in when they were made and in what
    was counted, and in nothing else.

    Attributes:
        first: Of them, without its tags and its values.
        ids: (n, 2) halves of their ids.
        versions: (n) of the model.
        counts: (n, K, K), or of another shape as `EvaluationRecord.counts`.
    """

    first: EvaluationRecord
    ids: NDArray[np.uint64]
    versions: Sequence[str | None]
    counts: NDArray[Any]

    def record(self, place: int) -> EvaluationRecord:
        """Return one of them, likewise without tags and values."""
        upper, lower = self.ids[place].tolist()
        model = ModelRef(self.first.model.name, self.versions[place])
        return replace(self.first, id=UUID(int=upper << 64 | lower), model=model, counts=self.counts[place])


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarisedInput:
    """The input of an evaluation, without the matrix.

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


@dataclass(frozen=True, slots=True)
class BalancedValue:
    """A value at equally frequent classes, with its limits."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownValue:
    """A value with all that is needed to read it.

    Attributes:
        low: `null` where there are no limits; `reason` says why.
        method: Of the limits.
        group: Whether class prevalence moves it: `insensitive` or `sensitive`; `null` where it is not known.
        balanced: The same at equally frequent classes, of what is sensitive and has such a value.
        reason: Why the value or its limits are `null`.
        as_asked: The name under which it was asked for, where that is another.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    method: str | None = None
    group: Literal["insensitive", "sensitive"] | None = None
    balanced: BalancedValue | None = None
    reason: str | None = None
    as_asked: str | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSummary:
    """An evaluation in a list.

    Attributes:
        metrics: The overall ones by key, `null` where undefined.
        findings: Where they are asked for, those of the report that follow from the matrix alone; left out of what is
            more than a matrix of classes.
        values: Where they are asked for: by canonical name.
    """

    id: UUID
    created_at: datetime
    model: ModelRef
    dataset: DatasetRef
    tags: Mapping[str, str]
    input: SummarisedInput
    metrics: Mapping[str, float | None]
    findings: Sequence[FindingMark] | None = field(default=None, metadata=LEFT_OUT)
    values: Mapping[str, ShownValue] | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationName:
    """An evaluation as other objects name it.

    Attributes:
        url: Its address.
    """

    id: UUID
    url: str
    model: ModelRef
    dataset: DatasetRef
    tags: Mapping[str, str]

    @classmethod
    def of(cls, named: EvaluationRecord | EvaluationSummary, **more: Any) -> Self:
        """Name an evaluation; ``more`` are the fields of a class that says more of it."""
        return cls(
            id=named.id,
            url=f"/v1/evaluations/{named.id}",
            model=named.model,
            dataset=named.dataset,
            tags=named.tags,
            **more,
        )

    @staticmethod
    def within(stored: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the members of the name, of a stored object that has them among others."""
        return {one.name: stored[one.name] for one in fields(EvaluationName)}


@dataclass(frozen=True, slots=True)
class Position:
    """The last item of a page. With a sort metric `value` is its value there, None when it was undefined."""

    id: UUID
    value: float | None = None


class Bound(StrEnum):
    """Side of a number on which a value has to be."""

    BELOW = "<"
    AT_MOST = "<="
    ABOVE = ">"
    AT_LEAST = ">="


@dataclass(frozen=True, slots=True)
class ValueCondition:
    """A condition on a stored value. An undefined or missing value never satisfies it.

    Attributes:
        metric: Key of an overall metric.
    """

    metric: str
    bound: Bound
    number: float

    def __str__(self) -> str:
        """Write the condition as it stands in a query."""
        return f"{self.metric}{self.bound.value}{self.number!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationQuery:
    """Filters and order of a list of evaluations. All filters must hold; one that is None lets everything pass.

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
    """An evaluation by what it is of: the latest that matches all that is given.

    A model without a version may be named as `name:version`, where no model has that whole text as its name.
    """

    model: ModelRef | None = None
    dataset: DatasetRef | None = None
    tags: tuple[tuple[str, str], ...] = ()

    def is_of(self, record: EvaluationRecord) -> bool:
        """Return whether an evaluation matches all that is given."""
        model = record.model
        if model.version is not None and self.model == ModelRef(f"{model.name}:{model.version}"):
            model = self.model
        return all(
            wanted is None or wanted == found
            for mine, own in ((self.model, model), (self.dataset, record.dataset))
            if mine is not None
            for wanted, found in zip(astuple(mine), astuple(own), strict=True)
        ) and set(self.tags) <= set(record.tags.items())

    def within(self, place: "Reference") -> "Reference":
        """Return the reference narrowed by what another one says and it does not."""
        tags = {**dict(place.tags), **dict(self.tags)}
        return Reference(
            _narrowed(self.model, place.model), _narrowed(self.dataset, place.dataset), tuple(tags.items())
        )

    def __str__(self) -> str:
        """Return the reference in words, for messages."""
        parts = [f"model {self.model.name} {self.model.version or ''}".rstrip()] if self.model else []
        if self.dataset:
            named = (self.dataset.name, self.dataset.version, self.dataset.split)
            parts.append(f"dataset {' '.join(part for part in named if part)}")
        return ", ".join([*parts, *(f"tag {key}:{value}" for key, value in self.tags)])


_Name = TypeVar("_Name", ModelRef, DatasetRef)


def _narrowed(own: _Name | None, place: _Name | None) -> _Name | None:
    if own is None or place is None or own.name != place.name:
        return own or place
    given = {one.name: getattr(own, one.name) for one in fields(own) if getattr(own, one.name) is not None}
    return replace(place, **given)


# How a run is named where one is asked for.
Named = UUID | Reference


@dataclass(frozen=True, slots=True)
class Page(Generic[Item, Place]):
    """A page of items, and the place where the next one begins: None on the last page."""

    items: tuple[Item, ...]
    next_position: Place | None


@dataclass(frozen=True, slots=True)
class Standing:
    """One line of a leaderboard: the latest evaluation of one model version."""

    value: float | None
    evaluation: EvaluationSummary
