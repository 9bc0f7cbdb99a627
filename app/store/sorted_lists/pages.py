"""A page in the order of a metric: from the extremes that are kept of large parts, or else from the table.

Three things together are exact. The kept entries of each part of the query, as far as the nearest end of any of them;
what was written since they were made; and the table, which is asked for every one of them whether it still exists and
passes the filters. When they do not fill the page, the table answers alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
from sqlalchemy import Row, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from app.domain.evaluation import DatasetRef, EvaluationQuery
from app.domain.identifiers import first_id_from
from app.store import statements
from app.store.names import NameTable
from app.store.sorted_lists.maintainer import ExtremeKeeper
from app.store.sorted_lists.partitions import Part, Scope
from app.store.sorted_lists.top_entries import (
    Entries,
    beyond,
    identifiers_of,
    in_order,
    is_full,
    made_before,
    made_from,
    make_entries,
    no_entries,
    place_of,
    unpack,
)
from app.store.statements import Segment
from app.store.tables import extreme_scopes, extreme_values

Rows = Sequence[Row[Any]]
# A query that stands for more parts than this is left to the table.
_MOST_PARTS = 16


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """What is kept of one part: a part that is small has nothing kept and was never looked at."""

    entries: Entries
    complete_to: datetime | None


async def fetch_by_metric(
    connection: AsyncConnection,
    scope: Scope,
    query: EvaluationQuery,
    *,
    slot: int | None,
    keeper: ExtremeKeeper,
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
        first = await _fetch_first(connection, keeper, scope, query, slot)
        if first is not None:
            rows, segments = list(first), (Segment.undefined,)
    if len(rows) <= query.limit and statements.has_index(slot) and scope == Scope(scope.project) and not query.tags:
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
    connection: AsyncConnection, keeper: ExtremeKeeper, scope: Scope, query: EvaluationQuery, slot: int
) -> Rows | None:
    """Fetch those that have a value from what is kept: the page whole or, when there are no more, less of it.

    None when that is not enough.
    """
    parts = scope.parts(_MOST_PARTS)
    if all(keeper.is_small(part) for part in parts):
        keeper.want(parts)
        return None
    kept = await _fetch_kept(connection, parts, slot, greatest=query.descending)
    keeper.want(parts)
    if not kept or not all(part in kept or keeper.is_small(part) for part in parts):
        return None
    nothing = _Kept(no_entries(), None)
    of_parts = {part: kept.get(part, nothing) for part in parts}
    bounds = [one.entries[-1:] for one in of_parts.values() if is_full(one.entries)]
    horizon = in_order(np.concatenate(bounds), greatest=query.descending)[:1] if bounds else no_entries()
    if len(horizon) and query.after is not None and query.after.value is not None:
        reached = beyond(horizon, query.after.value, query.after.id, greatest=query.descending)
        if not len(reached):
            return None
    since = statements.select_written_since(
        scope, query, [(part, one.complete_to) for part, one in of_parts.items()], slot=slot
    )
    written = (await connection.execute(since)).all()
    entries = [one.entries for one in of_parts.values()]
    if written:
        entries.append(make_entries(np.array([row.value for row in written]), [row.id for row in written]))
    candidates = _candidates(np.concatenate(entries), horizon, query)
    rows = await _fetch_existing(connection, scope, query, candidates, slot, all_there_are=not len(horizon))
    if len(rows) <= query.limit and len(horizon):
        if query.after is None and query.created_after is query.created_before is None and _passes_all(scope, query):
            # So many were deleted that what is left of those kept does not fill one page.
            keeper.want(parts, anew=True)
        return None
    return rows


async def _fetch_kept(
    connection: AsyncConnection, parts: Sequence[Part], slot: int, *, greatest: bool
) -> Mapping[Part, _Kept]:
    scopes, values = extreme_scopes.c, extreme_values.c
    here = (values.scope_id == scopes.id) & (values.slot == slot) & (values.greatest == greatest)
    statement = (
        select(scopes.kind, scopes.member, scopes.complete_to, values.entries)
        .select_from(extreme_scopes.outerjoin(extreme_values, here))
        .where(
            scopes.project == parts[0].project,
            tuple_(scopes.kind, scopes.member).in_([(part.kind.value, part.member) for part in parts]),
        )
    )
    by_name = {(part.kind.value, part.member): part for part in parts}
    return {
        by_name[row.kind, row.member]: _Kept(
            no_entries() if row.entries is None else unpack(row.entries), row.complete_to
        )
        for row in await connection.execute(statement)
    }


def _passes_all(scope: Scope, query: EvaluationQuery) -> bool:
    """Whether every evaluation of the parts is one of the query, time aside."""
    within_dataset = scope.dataset_ids is not None and scope.model_name_id is not None
    return not (within_dataset or query.tags)


def _candidates(entries: Entries, horizon: Entries, query: EvaluationQuery) -> Entries:
    """Return the entries of the time asked for, from where the last page ended to where the first of the parts ends."""
    greatest = query.descending
    if query.created_after is not None:
        entries = made_from(entries, first_id_from(query.created_after))
    if query.created_before is not None:
        entries = made_before(entries, first_id_from(query.created_before))
    if query.after is not None and query.after.value is not None:
        entries = beyond(entries, query.after.value, query.after.id, greatest=greatest)
    ordered = in_order(entries, greatest=greatest)
    if not len(horizon):
        return ordered
    return ordered[: len(ordered) - len(beyond(ordered, *place_of(horizon[0]), greatest=greatest))]


async def _fetch_existing(
    connection: AsyncConnection,
    scope: Scope,
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
