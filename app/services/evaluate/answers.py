"""What is answered about one evaluation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from app.domain.evaluation import (
    DatasetRef,
    EvaluationRecord,
    ModelRef,
)
from app.domain.members import SPREAD, typed
from app.domain.report import Headline, Report
from app.kernel.numerics.arrays import Array, ratio, silently


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluation:
    """An evaluation with its report.

    Attributes:
        id: `null` when the evaluation was not kept.
    """

    id: UUID | None = None
    created_at: datetime | None = None
    model: ModelRef | None = None
    dataset: DatasetRef | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    report: Report = field(metadata=SPREAD)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EvaluationHeadline:
    """An evaluation without its report: what everybody looks at first."""

    id: UUID | None = None
    created_at: datetime | None = None
    model: ModelRef | None = None
    dataset: DatasetRef | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    headline: Headline


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNames:
    """Whose evaluation it is."""

    id: UUID
    model: ModelRef
    dataset: DatasetRef


class Normalized(StrEnum):
    """What the entries of a confusion matrix are divided by."""

    FALSE = "false"
    TRUE = "true"
    PRED = "pred"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatrixShown:
    """The confusion matrix of an evaluation.

    Attributes:
        normalized: `false`: as it came. `true`: shares of each actual class, the recalls on the diagonal. `pred`:
            shares of each predicted class, the precisions on the diagonal. `all`: shares of all samples.
        confusion_matrix: Rows are the actual classes; `null` where nothing is to be divided by.
    """

    evaluation: UUID
    labels: tuple[str, ...]
    normalized: Normalized
    confusion_matrix: Array = field(metadata=typed(list[list[float | None]]))


def answer_of(record: EvaluationRecord, report: Report) -> Evaluation:
    """What is answered about a record."""
    return Evaluation(
        id=record.id,
        created_at=record.created_at,
        model=record.model,
        dataset=record.dataset,
        tags=by_name(record.tags),
        report=report,
    )


def brief_answer(record: EvaluationRecord, headline: Headline) -> EvaluationHeadline:
    """The same in short."""
    return EvaluationHeadline(
        id=record.id,
        created_at=record.created_at,
        model=record.model,
        dataset=record.dataset,
        tags=by_name(record.tags),
        headline=headline,
    )


def by_name(tags: Mapping[str, str]) -> dict[str, str]:
    """Tags in the order of their names: the order in which they were sent is not kept."""
    return dict(sorted(tags.items()))


def normalized_counts(counts: Array, by: Normalized) -> Array:
    """A matrix (K, K) as it is, or as shares; NaN where nothing is to be divided by."""
    match by:
        case Normalized.TRUE:
            whole = counts.sum(axis=1, keepdims=True)
        case Normalized.PRED:
            whole = counts.sum(axis=0, keepdims=True)
        case Normalized.ALL:
            whole = counts.sum(keepdims=True)
        case _:
            return counts
    with silently():
        return ratio(counts, whole)
