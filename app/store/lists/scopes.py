"""From the names in a query to the ids that stand in the rows."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.domain.evaluation import EvaluationQuery
from app.store.lists.partitions import SearchScope, SlotCondition
from app.store.names import Names


async def find_scope(
    connection: AsyncConnection, names: Names, project: str, query: EvaluationQuery
) -> SearchScope | None:
    """Return the ids that the names in a query stand for, or None when a name stands for nothing."""
    model_ids: Sequence[int] | None = None
    dataset_ids: Sequence[int] | None = None
    model_name_id: int | None = None
    if query.model_version is not None:
        wanted = names.models.select_ids(project, name=query.model, version=query.model_version)
        model_ids = await _fetch_ids(connection, wanted)
    elif query.model is not None:
        model_name_id = await connection.scalar(names.model_names.select_ids(project, name=query.model))
        if model_name_id is None:
            return None
    if query.dataset is not None or query.dataset_version is not None or query.split is not None:
        wanted = names.datasets.select_ids(
            project, name=query.dataset, version=query.dataset_version, split=query.split
        )
        dataset_ids = await _fetch_ids(connection, wanted)
    where = await _find_slots(connection, names, query)
    if model_ids == [] or dataset_ids == [] or where is None:
        return None
    return SearchScope(project, model_ids, dataset_ids, model_name_id, where)


async def _find_slots(
    connection: AsyncConnection, names: Names, query: EvaluationQuery
) -> tuple[SlotCondition, ...] | None:
    """Return the conditions on values by slot; None when no evaluation ever had one of these metrics."""
    found = []
    for condition in query.where:
        slot = await names.slot_of(connection, condition.metric)
        if slot is None:
            return None
        found.append(SlotCondition(slot, condition.bound, condition.number))
    return tuple(found)


async def _fetch_ids(connection: AsyncConnection, statement: Select[Any]) -> Sequence[int]:
    ids: Sequence[int] = (await connection.scalars(statement)).all()
    return ids
