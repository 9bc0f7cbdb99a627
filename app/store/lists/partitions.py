"""The sets of evaluations that are sorted by themselves: a project, a dataset, all versions of a model, one of them."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Double, FromClause, literal

from app.domain.evaluation import Bound
from app.store.database.tables import evaluations, value_in_slot


class PartitionKind(StrEnum):
    """What has in common what belongs to a partition."""

    PROJECT = "project"
    DATASET = "dataset"
    MODEL_NAME = "model_name"
    MODEL = "model"


# Below this many evaluations reading all of them is fast: a dataset lies together in the index that holds the values,
# the others are scattered over the table.
LARGE = {
    PartitionKind.PROJECT: 2_500,
    PartitionKind.DATASET: 10_000,
    PartitionKind.MODEL_NAME: 2_500,
    PartitionKind.MODEL: 2_500,
}

_COLUMNS = {
    PartitionKind.DATASET: evaluations.c.dataset_id,
    PartitionKind.MODEL_NAME: evaluations.c.model_name_id,
    PartitionKind.MODEL: evaluations.c.model_id,
}


@dataclass(frozen=True, slots=True)
class Partition:
    """One such set. `member` is an id of its kind, 0 for the project itself."""

    project: str
    kind: PartitionKind
    member: int = 0

    @property
    def key(self) -> tuple[str, int]:
        """Return what tells it from the others of the project."""
        return self.kind.value, self.member

    def condition(self) -> ColumnElement[bool]:
        """Return what is true of the evaluations that belong to it."""
        if self.kind is PartitionKind.PROJECT:
            return evaluations.c.project == self.project
        return _COLUMNS[self.kind] == self.member


@dataclass(frozen=True, slots=True)
class SlotCondition:
    """What the value in a slot has to satisfy."""

    slot: int
    bound: Bound
    number: float

    @property
    def wants_greatest(self) -> bool:
        """Whether the greatest values satisfy it, or else the smallest."""
        return self.bound in (Bound.ABOVE, Bound.AT_LEAST)

    def of(self, rows: FromClause = evaluations) -> ColumnElement[bool]:
        """Return it as SQL; NULL, which an undefined value is, satisfies nothing."""
        value, number = value_in_slot(self.slot, rows), literal(self.number, Double)
        found: ColumnElement[bool] = _COMPARED[self.bound](value, number)
        return found

    def is_satisfied_by(self, value: float) -> bool:
        """Whether a value does."""
        return bool(_COMPARED[self.bound](value, self.number))


_COMPARED: dict[Bound, Callable[[Any, Any], Any]] = {
    Bound.BELOW: operator.lt,
    Bound.AT_MOST: operator.le,
    Bound.ABOVE: operator.gt,
    Bound.AT_LEAST: operator.ge,
}


@dataclass(frozen=True, slots=True)
class SearchScope:
    """Where to search: ids of models, of datasets and of one name of a model; None is every one of the project.

    Attributes:
        where: What values have to satisfy.
    """

    project: str
    model_ids: Sequence[int] | None = None
    dataset_ids: Sequence[int] | None = None
    model_name_id: int | None = None
    where: tuple[SlotCondition, ...] = ()

    @property
    def is_whole_project(self) -> bool:
        """Whether all evaluations of the project are in it, values aside."""
        return self.model_ids is None and self.dataset_ids is None and self.model_name_id is None

    def conditions(self) -> list[ColumnElement[bool]]:
        """Return what is true of the evaluations in it, the project and values aside."""
        conditions: list[ColumnElement[bool]] = []
        if self.model_name_id is not None:
            conditions.append(evaluations.c.model_name_id == self.model_name_id)
        for column, ids in ((evaluations.c.model_id, self.model_ids), (evaluations.c.dataset_id, self.dataset_ids)):
            if ids is not None:
                conditions.append(column.in_(ids))
        return conditions

    def partitions(self, most: int) -> tuple[Partition, ...]:
        """Return the partitions it is within, none when there are more than `most` or it is small by its nature."""
        if self.dataset_ids is not None:
            narrow = self.model_ids is not None or len(self.dataset_ids) > most
            return (
                () if narrow else tuple(Partition(self.project, PartitionKind.DATASET, one) for one in self.dataset_ids)
            )
        if self.model_ids is not None:
            many = len(self.model_ids) > most
            return () if many else tuple(Partition(self.project, PartitionKind.MODEL, one) for one in self.model_ids)
        if self.model_name_id is not None:
            return (Partition(self.project, PartitionKind.MODEL_NAME, self.model_name_id),)
        return (Partition(self.project, PartitionKind.PROJECT),)
