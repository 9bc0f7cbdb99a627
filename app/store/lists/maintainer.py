"""Makes the top entries of large partitions by every metric and keeps them near the present, outside of requests.

A list that is sorted by a metric says which partitions it asks of. Those that are large are read once from end to end;
afterwards, whenever enough has been written since, only that is read. Nobody waits for it and nothing depends on it but
speed: a list takes what was written since from the table (`app/store/lists/pages.py`).
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from sqlalchemy import ColumnElement, Row, delete, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.services.ports.state import StoreFullError, StoreUnavailableError
from app.store.database.engine import require_room
from app.store.database.tables import evaluations, extreme_scopes, extreme_values
from app.store.lists.partitions import LARGE, Partition
from app.store.lists.top_entries import Entries, make_entries, merge_entries, no_entries, pack, unpack
from app.store.lists.visibility import find_visibility_horizon, in_time_since, late_since

_CHUNK = 4_000
# Read by every list in addition to what is kept, so the fewer the better; each time the kept is read and written again.
_MOST_SINCE = 1_000
# Seconds between two looks at one partition, at a small one, and between two times of making one anew.
_LOOK, _LOOK_SMALL, _ANEW = 5.0, 60.0, 60.0
_MOST_REMEMBERED = 65_536

_log = logging.getLogger(__name__)

Rows = Sequence[Row[Any]]
# By slot and end: True for the greatest values.
Kept = dict[tuple[int, bool], Entries]


class TopEntriesMaintainer:
    """One per process. Several processes do not disturb each other: one works on a partition, the others pass."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._wanted: dict[Partition, bool] = {}
        self._next_look: dict[Partition, float] = {}
        self._next_anew: dict[Partition, float] = {}
        self._small: dict[Partition, float] = {}
        self._event = asyncio.Event()
        self._busy = False
        self._task: asyncio.Task[None] | None = None

    def want(self, partitions: Sequence[Partition], *, anew: bool = False) -> None:
        """Have a look at some partitions soon; `anew` when what is kept has too few that still exist."""
        now = time.monotonic()
        if len(self._next_look) > _MOST_REMEMBERED:
            for remembered in (self._next_look, self._next_anew, self._small):
                remembered.clear()
        for partition in partitions:
            due = self._next_anew if anew else self._next_look
            if now >= due.get(partition, 0.0):
                due[partition] = now + (_ANEW if anew else _LOOK)
                self._wanted[partition] = self._wanted.get(partition, False) or anew
        if self._wanted:
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._run(), name="top-entries")
            self._event.set()

    def is_small(self, partition: Partition) -> bool:
        """Whether a partition was found to be small of late."""
        return time.monotonic() < self._small.get(partition, 0.0)

    async def rest(self) -> None:
        """Wait until nothing is wanted."""
        while self._task is not None and not self._task.done() and (self._wanted or self._busy):
            await asyncio.sleep(0.01)

    async def close(self) -> None:
        """Stop; what is being made is left."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _run(self) -> None:
        while True:
            await self._event.wait()
            self._event.clear()
            while self._wanted:
                partition, anew = self._wanted.popitem()
                self._busy = True
                try:
                    await self.maintain(partition, anew=anew)
                except (DBAPIError, OSError, PoolTimeoutError, StoreFullError, StoreUnavailableError) as error:
                    # Lists go on without it, more slowly, and the next one asks again.
                    _log.warning("the top entries of %s were not brought up to date: %s", partition, error)
                finally:
                    self._busy = False

    async def maintain(self, partition: Partition, *, anew: bool = False) -> None:
        """Make what is kept of a partition, or bring it up to date, if that is worth it."""
        require_room(self._engine)
        async with self._engine.begin() as connection:
            found = await _find_state(connection, partition)
            if not await self._is_worth_it(connection, partition, None if found is None or anew else found.complete_to):
                if anew and found is not None and await _lock(connection, partition):
                    # Large once; the rest was deleted.
                    await _forget(connection, found.id)
                return
        moment = await find_visibility_horizon(self._engine)
        if moment is None:
            return
        async with self._engine.begin() as connection:
            if not await _lock(connection, partition):
                return
            found = await _find_state(connection, partition)
            since = None if found is None or anew else found.complete_to
            kept = {} if found is None or since is None else await _load(connection, found.id)
            changed: Kept = {}
            async for rows in _read(connection, partition, since):
                new = await asyncio.to_thread(_merge, kept, rows)
                kept |= new
                changed |= new
            await _write(connection, partition, moment, changed, anew=since is None)

    async def _is_worth_it(self, connection: AsyncConnection, partition: Partition, since: datetime | None) -> bool:
        if since is not None:
            return any([await _has_more(connection, where, _MOST_SINCE) for where in _written_since(partition, since)])
        large = await _has_more(connection, partition.condition(), LARGE[partition.kind])
        if large:
            self._small.pop(partition, None)
        else:
            self._small[partition] = self._next_look[partition] = time.monotonic() + _LOOK_SMALL
        return large


async def _lock(connection: AsyncConnection, partition: Partition) -> bool:
    """Whether this transaction is the one that may change what is kept of a partition, until its end."""
    name = func.hashtextextended(f"{partition.project} {partition.kind} {partition.member}", 0)
    return bool(await connection.scalar(select(func.pg_try_advisory_xact_lock(name))))


async def _find_state(connection: AsyncConnection, partition: Partition) -> Any:
    columns = extreme_scopes.c
    mine = select(columns.id, columns.complete_to).where(
        columns.project == partition.project, columns.kind == partition.kind.value, columns.member == partition.member
    )
    return (await connection.execute(mine)).one_or_none()


def _written_since(partition: Partition, since: datetime | None) -> list[ColumnElement[bool]]:
    """Return the conditions that together are true of all of a partition, or of all that was written since."""
    if since is None:
        return [partition.condition()]
    late = (evaluations.c.project == partition.project) & partition.condition() & late_since(since)
    return [partition.condition() & in_time_since(since), late]


async def _has_more(connection: AsyncConnection, where: ColumnElement[bool], than: int) -> bool:
    some = select(evaluations.c.id).where(where).limit(than + 1).subquery("some")
    return (await connection.scalar(select(func.count()).select_from(some)) or 0) > than


async def _forget(connection: AsyncConnection, scope_id: int) -> None:
    await connection.execute(delete(extreme_scopes).where(extreme_scopes.c.id == scope_id))
    await connection.execute(delete(extreme_values).where(extreme_values.c.scope_id == scope_id))


async def _load(connection: AsyncConnection, scope_id: int) -> Kept:
    columns = extreme_values.c
    rows = await connection.execute(
        select(columns.slot, columns.greatest, columns.entries).where(columns.scope_id == scope_id)
    )
    return {(row.slot, row.greatest): unpack(row.entries) for row in rows}


async def _read(connection: AsyncConnection, partition: Partition, since: datetime | None) -> AsyncIterator[Rows]:
    """Read ids and values in chunks; what the present misses was written after the moment that is kept with it."""
    for where in _written_since(partition, since):
        last = UUID(int=0)
        while True:
            chunk = select(evaluations.c.id, evaluations.c.metric_values).where(where, evaluations.c.id > last)
            result = await connection.execute(chunk.order_by(evaluations.c.id).limit(_CHUNK))
            rows: Sequence[Any] = result.all()
            if rows:
                yield rows
                last = rows[-1].id
            if len(rows) < _CHUNK:
                break


def _merge(kept: Kept, rows: Rows) -> Kept:
    """Return what changes by some evaluations; a slot that none of them has stays out."""
    width = max(len(row.metric_values) for row in rows)
    values = np.full((len(rows), width), np.nan)
    for place, row in enumerate(rows):
        values[place, : len(row.metric_values)] = row.metric_values
    added = make_entries(np.zeros(len(rows)), [row.id for row in rows])
    changed: Kept = {}
    for column in range(width):
        added["value"] = values[:, column]
        for greatest in (True, False):
            known = kept.get((column + 1, greatest), no_entries())
            merged = merge_entries(known, added, greatest=greatest)
            if merged is not known:
                changed[column + 1, greatest] = merged
    return changed


async def _write(
    connection: AsyncConnection, partition: Partition, moment: datetime, changed: Kept, *, anew: bool
) -> None:
    kind, member = partition.key
    row = {"project": partition.project, "kind": kind, "member": member, "complete_to": moment}
    add_scope = insert(extreme_scopes).values(row)
    identifier = await connection.scalar(
        add_scope.on_conflict_do_update(
            index_elements=["project", "kind", "member"],
            set_={"complete_to": func.greatest(extreme_scopes.c.complete_to, moment)},
        ).returning(extreme_scopes.c.id)
    )
    if anew:
        await connection.execute(delete(extreme_values).where(extreme_values.c.scope_id == identifier))
    if changed:
        add = insert(extreme_values)
        add = add.on_conflict_do_update(
            index_elements=["scope_id", "slot", "greatest"], set_={"entries": add.excluded.entries}
        )
        rows = [
            {"scope_id": identifier, "slot": slot, "greatest": greatest, "entries": pack(entries)}
            for (slot, greatest), entries in changed.items()
        ]
        await connection.execute(add, rows)
