"""The short ids that stand in the rows for names: models, datasets and metrics.

Names are only ever added, so what a process has read once stays true and is kept in memory.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Generic, TypeVar

from sqlalchemy import ColumnElement, Row, Select, Table, func, select, text, true, tuple_
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.domain.evaluation import DatasetRef, ModelRef
from app.store.engine import same
from app.store.tables import SLOT_LIMIT, datasets, evaluations, metric_slots, model_names, models


@dataclass(frozen=True, slots=True)
class ModelName:
    """All versions of a model together."""

    name: str


Ref = TypeVar("Ref", ModelRef, DatasetRef, ModelName)

_CACHE_LIMIT = 65_536


class NameTable(Generic[Ref]):
    """One table of names: `models`, `model_names` or `datasets`."""

    def __init__(self, table: Table, ref: type[Ref], used_in: ColumnElement[int]) -> None:
        """Take the table, the dataclass of its columns after project, and the column that refers to it."""
        self._table = table
        self.ref: type[Ref] = ref
        self._used_in = used_in
        self._columns = tuple(table.c[one.name] for one in fields(ref))
        self._known: dict[tuple[str, Ref], int] = {}

    def known(self, project: str, ref: Ref) -> int | None:
        """Return the id if this process has seen it."""
        return self._known.get((project, ref))

    async def get_or_add(self, connection: AsyncConnection, project: str, ref: Ref) -> int:
        """Return the id of a name, which is new if need be. Two that add it at once get the same id."""
        columns = self._table.c
        find = select(columns.id).where(*same(self._table, project=project, **asdict(ref)))
        identifier = await connection.scalar(find)
        if identifier is None:
            add = (
                insert(self._table)
                .values(project=project, **asdict(ref))
                .on_conflict_do_nothing()
                .returning(columns.id)
            )
            identifier = await connection.scalar(add) or (await connection.scalars(find)).one()
        return int(identifier)

    def remember(self, project: str, ref: Ref, identifier: int) -> None:
        """Keep an id that is committed."""
        if len(self._known) >= _CACHE_LIMIT:
            self._known.clear()
        self._known[project, ref] = identifier

    def select_ids(self, project: str, **filters: str | None) -> Select[tuple[int]]:
        """Select the ids of the names that match; a filter that is None matches all."""
        wanted = [self._table.c[name] == value for name, value in filters.items() if value is not None]
        return select(self._table.c.id).where(self._table.c.project == project, *wanted).order_by(self._table.c.id)

    def select_used(self, project: str, limit: int, after: Ref | None) -> Select[Any]:
        """Select the names that an evaluation has, in order; a part that is NULL comes after all others."""
        used = select(self._used_in).where(self._used_in == self._table.c.id).limit(1).lateral("used")
        statement = select(*self._columns).select_from(self._table.join(used, true()))
        statement = statement.where(self._table.c.project == project)
        if after is not None:
            # The first part alone lets the index of the unique constraint start at the right place.
            statement = statement.where(self._columns[0] >= after.name)
            # NULL comes last.
            order = [part for column in self._columns for part in (column.is_(None), func.coalesce(column, ""))]
            place = [part for value in asdict(after).values() for part in (value is None, value or "")]
            statement = statement.where(tuple_(*order) > tuple_(*place))
        return statement.order_by(*(column.asc() for column in self._columns)).limit(limit)


class Names:
    """All names of one process."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self.models: NameTable[ModelRef] = NameTable(models, ModelRef, evaluations.c.model_id)
        self.model_names: NameTable[ModelName] = NameTable(model_names, ModelName, evaluations.c.model_name_id)
        self.datasets: NameTable[DatasetRef] = NameTable(datasets, DatasetRef, evaluations.c.dataset_id)
        self._slots: dict[str, int] = {}
        self._keys: dict[int, str] = {}

    async def resolve(self, project: str, model: ModelRef, dataset: DatasetRef) -> Mapping[str, int]:
        """Return the columns of a model and a dataset. New names are committed before the evaluation that has them."""
        wanted: dict[str, tuple[NameTable[Any], Any]] = {
            "model_name_id": (self.model_names, ModelName(model.name)),
            "model_id": (self.models, model),
            "dataset_id": (self.datasets, dataset),
        }
        ids: dict[str, Any] = {column: table.known(project, ref) for column, (table, ref) in wanted.items()}
        if None in ids.values():
            async with self._engine.begin() as connection:
                for column, (table, ref) in wanted.items():
                    ids[column] = await table.get_or_add(connection, project, ref)
            for column, (table, ref) in wanted.items():
                table.remember(project, ref, ids[column])
        return ids

    async def slots_of(self, keys: Collection[str]) -> Mapping[str, int]:
        """Return the slot of every metric known, those of `keys` among them; new keys get the next free slots."""
        # Asked for every evaluation: no set is made as long as all of them are known.
        if not all(map(self._slots.__contains__, keys)):
            async with self._engine.begin() as connection:
                await self._load(connection)
                # In the order they came in: the catalogue's, when the service starts.
                await self._add_slots(connection, [key for key in dict.fromkeys(keys) if key not in self._slots])
            async with self._engine.connect() as connection:
                await self._load(connection)
        return self._slots

    async def _add_slots(self, connection: AsyncConnection, wanted: Sequence[str]) -> None:
        """Give new metrics their slots: rare, so a lock may keep them dense when several workers start at once."""
        if not wanted:
            return
        await connection.execute(text("LOCK TABLE metric_slots IN SHARE ROW EXCLUSIVE MODE"))
        rows = (await connection.execute(select(metric_slots.c.key, metric_slots.c.slot))).all()
        last = max((row.slot for row in rows), default=0)
        new = [key for key in wanted if key not in {row.key for row in rows}]
        if last + len(new) > SLOT_LIMIT:
            raise ValueError(f"expected at most {SLOT_LIMIT} metrics in all, got {last + len(new)}")
        if new:
            values = [{"key": key, "slot": slot} for slot, key in enumerate(new, start=last + 1)]
            await connection.execute(insert(metric_slots), values)

    async def slot_of(self, connection: AsyncConnection, key: str) -> int | None:
        """Return the slot of a metric, or None when no evaluation ever had it."""
        if key not in self._slots:
            await self._load(connection)
        return self._slots.get(key)

    async def keys_of(self, connection: AsyncConnection, rows: Iterable[Row[Any]]) -> Mapping[int, str]:
        """Return the metric of every slot of evaluations; another process may have added some since this one looked."""
        if max((len(row.metric_values) for row in rows), default=0) > max(self._keys, default=0):
            await self._load(connection)
        return self._keys

    async def _load(self, connection: AsyncConnection) -> None:
        rows = (await connection.execute(select(metric_slots.c.key, metric_slots.c.slot))).all()
        self._slots |= {row.key: row.slot for row in rows}
        self._keys |= {row.slot: row.key for row in rows}
