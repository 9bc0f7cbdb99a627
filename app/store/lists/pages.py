"""A page in the order of a metric: from the top entries that are kept of large partitions, or else from the table.

Three things together are exact. The kept entries of each partition of the query, as far as the nearest end of any of
them; what was written since they were made; and the table, which is asked for every one of them whether it still
exists and passes the filters. When they do not fill the page, the table answers alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from sqlalchemy import Row, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from app.domain.evaluation import DatasetRef, EvaluationQuery
from app.domain.identifiers import first_id_from
from app.store.database.tables import extreme_scopes, extreme_values
from app.store.lists import statements
from app.store.lists.maintainer import TopEntriesMaintainer
from app.store.lists.partitions import Partition, SearchScope, SlotCondition
from app.store.lists.statements import Segment
from app.store.lists.top_entries import (
    Entries,
    beyond,
    identifiers_of,
    in_order,
    is_full,
    made_between,
    make_entries,
    no_entries,
    place_of,
    unpack,
)
from app.store.names import NameTable

Rows = Sequence[Row[Any]]
# A query that stands for more partitions than this is left to the table.
_MOST_PARTITIONS = 16


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """What is kept of one partition: a partition that is small has nothing kept and was never looked at."""

    entries: Entries
    complete_to: datetime | None


async def fetch_by_metric(
    connection: AsyncConnection,
    scope: SearchScope,
    query: EvaluationQuery,
    *,
    slot: int | None,
    maintainer: TopEntriesMaintainer,
    datasets: NameTable[DatasetRef],
) -> Rows:
    """Fetch one evaluation more than the page has, in the order of a metric, each with its value.

    First come those that have a value and, when these run out, those that have none. The slot is None for a metric that
    no evaluation has: all are undefined.
    """
    rows: list[Row[Any]] = []
    segments = tuple(Segment)
    if slot is None or (query.after is not None and query.after.value is None):
        segments = (Segment.undefined,)
    else:
        first = await _fetch_first(connection, maintainer, scope, query, slot)
        if first is not None:
            rows, segments = list(first), (Segment.undefined,)
    if len(rows) <= query.limit and statements.has_index(slot) and scope.is_whole_project and not query.tags:
        # An index per dataset makes a sort of everything a merge of all datasets.
        ids: Sequence[Any] = (await connection.scalars(datasets.select_ids(scope.project))).all()
        scope = replace(scope, dataset_ids=ids)
    for segment in segments:
        missing = query.limit + 1 - len(rows)
        if missing:
            statement = statements.select_by_metric(scope, query, missing, slot=slot, segment=segment)
            rows.extend((await connection.execute(statement)).all())
    return rows


async def _fetch_first(
    connection: AsyncConnection, maintainer: TopEntriesMaintainer, scope: SearchScope, query: EvaluationQuery, slot: int
) -> Rows | None:
    """Fetch those that have a value from what is kept: the page whole or, when there are no more, less of it.

    None when that is not enough.
    """
    partitions = scope.partitions(_MOST_PARTITIONS)
    if all(maintainer.is_small(partition) for partition in partitions):
        maintainer.want(partitions)
        return None
    kept = await _fetch_kept(connection, partitions, slot, greatest=query.descending)
    maintainer.want(partitions)
    if not kept or not all(partition in kept or maintainer.is_small(partition) for partition in partitions):
        return None
    nothing = _Kept(no_entries(), None)
    of_partitions = {partition: kept.get(partition, nothing) for partition in partitions}
    bounds = [one.entries[-1:] for one in of_partitions.values() if is_full(one.entries)]
    nearest_end = in_order(np.concatenate(bounds), greatest=query.descending)[:1] if bounds else no_entries()
    if len(nearest_end) and query.after is not None and query.after.value is not None:
        reached = beyond(nearest_end, query.after.value, query.after.id, greatest=query.descending)
        if not len(reached):
            return None
    since = statements.select_written_since(
        scope, query, [(partition, one.complete_to) for partition, one in of_partitions.items()], slot=slot
    )
    written = (await connection.execute(since)).all()
    entries = [one.entries for one in of_partitions.values()]
    if written:
        entries.append(make_entries(np.array([row.value for row in written]), [row.id for row in written]))
    candidates = _candidates(np.concatenate(entries), nearest_end, query)
    rows = await _fetch_existing(connection, scope, query, candidates, slot, all_there_are=not len(nearest_end))
    if len(rows) <= query.limit and len(nearest_end):
        if query.after is None and query.created_after is query.created_before is None and _passes_all(scope, query):
            # So many were deleted that what is left of those kept does not fill one page.
            maintainer.want(partitions, anew=True)
        return None
    return rows


async def fetch_few(
    connection: AsyncConnection,
    scope: SearchScope,
    query: EvaluationQuery,
    *,
    slot: int | None,
    maintainer: TopEntriesMaintainer,
) -> Rows | None:
    """Fetch one evaluation more than the page has where a condition on values leaves few in all: what satisfies it is
    then among the top entries of its metric, or was written since.

    None when that is not known.
    """
    if not scope.where:
        return None
    partitions = scope.partitions(_MOST_PARTITIONS)
    maintainer.want(partitions)
    if all(maintainer.is_small(partition) for partition in partitions):
        return None
    for condition in scope.where:
        kept = await _fetch_kept(connection, partitions, condition.slot, greatest=condition.wants_greatest)
        known = all(partition in kept or maintainer.is_small(partition) for partition in partitions)
        if not kept or not known or any(_may_have_more(one.entries, condition) for one in kept.values()):
            continue
        moments = [(one, kept[one].complete_to if one in kept else None) for one in partitions]
        since = await connection.scalars(statements.select_all_written_since(scope, query, moments))
        found = {UUID(int=identifier.int) for identifier in since}
        for one in kept.values():
            satisfying = np.array([condition.is_satisfied_by(value) for value in one.entries["value"].tolist()], bool)
            found.update(identifiers_of(one.entries[satisfying]))
        rows: Rows = (
            await connection.execute(statements.select_page_among(scope, query, list(found), slot=slot))
        ).all()
        return rows
    return None


def _may_have_more(entries: Entries, condition: SlotCondition) -> bool:
    """Whether there may be evaluations beyond these that satisfy a condition: the last of all that are kept does."""
    return is_full(entries) and condition.is_satisfied_by(float(entries["value"][-1]))


async def _fetch_kept(
    connection: AsyncConnection, partitions: Sequence[Partition], slot: int, *, greatest: bool
) -> Mapping[Partition, _Kept]:
    scopes, values = extreme_scopes.c, extreme_values.c
    here = (values.scope_id == scopes.id) & (values.slot == slot) & (values.greatest == greatest)
    statement = (
        select(scopes.kind, scopes.member, scopes.complete_to, values.entries)
        .select_from(extreme_scopes.outerjoin(extreme_values, here))
        .where(
            scopes.project == partitions[0].project,
            tuple_(scopes.kind, scopes.member).in_([partition.key for partition in partitions]),
        )
    )
    by_key = {partition.key: partition for partition in partitions}
    return {
        by_key[row.kind, row.member]: _Kept(
            no_entries() if row.entries is None else unpack(row.entries), row.complete_to
        )
        for row in await connection.execute(statement)
    }


def _passes_all(scope: SearchScope, query: EvaluationQuery) -> bool:
    """Whether every evaluation of the partitions is one of the query, time aside."""
    within_dataset = scope.dataset_ids is not None and scope.model_name_id is not None
    return not (within_dataset or query.tags or scope.where)


def _candidates(entries: Entries, nearest_end: Entries, query: EvaluationQuery) -> Entries:
    """Return the entries of the time asked for, from the end of the last page to the nearest end of a partition."""
    greatest = query.descending
    first, end = (
        None if moment is None else first_id_from(moment) for moment in (query.created_after, query.created_before)
    )
    entries = made_between(entries, first, end)
    if query.after is not None and query.after.value is not None:
        entries = beyond(entries, query.after.value, query.after.id, greatest=greatest)
    ordered = in_order(entries, greatest=greatest)
    if not len(nearest_end):
        return ordered
    return ordered[: len(ordered) - len(beyond(ordered, *place_of(nearest_end[0]), greatest=greatest))]


async def _fetch_existing(
    connection: AsyncConnection,
    scope: SearchScope,
    query: EvaluationQuery,
    candidates: Entries,
    slot: int,
    *,
    all_there_are: bool,
) -> Rows:
    """Fetch the first of some evaluations that exist and pass the filters, in their order.

    Not all of them when the table has more and these are not going to fill the page.
    """
    rows: list[Row[Any]] = []
    # Enough for a page if all pass, or one in ten of them; then all the others.
    first = (query.limit + 1) * (1 if _passes_all(scope, query) else 10)
    for chunk in (candidates[:first], candidates[first:]):
        if not len(chunk) or len(rows) > query.limit:
            break
        identifiers = identifiers_of(chunk)
        rows.extend(await connection.execute(statements.select_among(scope, query, identifiers, slot=slot)))
        if not all_there_are and 2 * len(rows) * len(candidates) < len(chunk) * (query.limit + 1):
            break
    return rows[: query.limit + 1]
