"""The reading SQL for evaluations, and where to search: names of a query become ids of its scope.

A filter by name can stand for many versions. Each is searched by itself, through an index that already has the order
asked for, and stops after one page (`JOIN LATERAL ... LIMIT`): a page costs the same however much lies behind it.
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    CTE,
    ColumnElement,
    Double,
    FromClause,
    Integer,
    LargeBinary,
    Row,
    Select,
    Subquery,
    TableValuedAlias,
    Text,
    UnaryExpression,
    Uuid,
    and_,
    bindparam,
    cast,
    func,
    literal,
    literal_column,
    null,
    select,
    true,
    tuple_,
)
from sqlalchemy.dialects.postgresql import JSONB, distinct_on
from sqlalchemy.ext.asyncio import AsyncConnection

from app.domain.evaluation import Bound, EvaluationQuery, Position
from app.domain.identifiers import first_id_from
from app.domain.named_metrics import HEADLINE
from app.store.names import Names
from app.store.tables import datasets, evaluations, former_models, model_names, models, value_in_slot

_COMPARED: dict[Bound, Callable[[Any, Any], Any]] = {
    Bound.BELOW: operator.lt,
    Bound.AT_MOST: operator.le,
    Bound.ABOVE: operator.gt,
    Bound.AT_LEAST: operator.ge,
}


@dataclass(frozen=True, slots=True)
class SearchScope:
    """Scope of a search: ids of models, of datasets and of one name of a model; None is every one of the project. An
    undefined value is NULL, which satisfies no condition in ``where``.
    """

    project: str
    model_ids: Sequence[int] | None = None
    dataset_ids: Sequence[int] | None = None
    model_name_id: int | None = None
    where: tuple[ColumnElement[bool], ...] = ()

    @property
    def is_of_model(self) -> bool:
        """True if it is limited to one model, or to one version of it."""
        return self.model_ids is not None or self.model_name_id is not None

    def conditions(self) -> list[ColumnElement[bool]]:
        """Return what is true of the evaluations in it, the project and values aside."""
        conditions: list[ColumnElement[bool]] = []
        if self.model_name_id is not None:
            conditions.append(evaluations.c.model_name_id == self.model_name_id)
        for column, ids in ((evaluations.c.model_id, self.model_ids), (evaluations.c.dataset_id, self.dataset_ids)):
            if ids is not None:
                conditions.append(column.in_(ids))
        return conditions


async def find_scope(
    connection: AsyncConnection, names: Names, project: str, query: EvaluationQuery, *, removing: bool = False
) -> SearchScope | None:
    """Return the ids that the names in a query stand for, or None when a name stands for nothing.

    ``name:version`` is a model of that name, or else that version of a model. Names without evaluations are passed
    over, but not when ``removing``: after the last evaluation of the name it would go on with those of the version.
    """
    model_ids: Sequence[int] | None = None
    dataset_ids: Sequence[int] | None = None
    model_name_id: int | None = None
    if query.model_version is not None:
        wanted = names.models.select_ids(project, name=query.model, version=query.model_version)
        model_ids = await _fetch_ids(connection, wanted)
    elif query.model is not None:
        wanted = names.model_names.select_ids(project, name=query.model)
        if not removing:
            used = select(evaluations.c.id).where(evaluations.c.model_name_id == model_names.c.id)
            wanted = wanted.where(used.exists())
        model_name_id = await connection.scalar(wanted)
        name, colon, version = query.model.rpartition(":")
        if model_name_id is None and not colon:
            return None
        if model_name_id is None:
            model_ids = await _fetch_ids(connection, names.models.select_ids(project, name=name, version=version))
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
) -> tuple[ColumnElement[bool], ...] | None:
    """Return the conditions on values by slot; None when no evaluation ever had one of these metrics."""
    found = []
    for condition in query.where:
        slot = await names.slot_of(connection, condition.metric)
        if slot is None:
            return None
        found.append(_COMPARED[condition.bound](value_in_slot(slot), literal(condition.number, Double)))
    return tuple(found)


async def _fetch_ids(connection: AsyncConnection, statement: Select[Any]) -> Sequence[int]:
    ids: Sequence[int] = (await connection.scalars(statement)).all()
    return ids


NAMES = (
    models.c.name.label("model_name"),
    models.c.version.label("model_version"),
    datasets.c.name.label("dataset_name"),
    datasets.c.version.label("dataset_version"),
    datasets.c.split.label("dataset_split"),
)
SUMMARY = (
    *(
        evaluations.c[name]
        for name in ("id", "n_classes", "positive", "n_samples", "kind", "content", "labels", "tags")
    ),
    evaluations.c.metric_values,
    *NAMES,
)


def _with_names(statement: Select[Any], source: FromClause = evaluations) -> Select[Any]:
    return statement.select_from(
        source.join(models, models.c.id == evaluations.c.model_id).join(
            datasets, datasets.c.id == evaluations.c.dataset_id
        )
    )


# Evaluations whole, by `project` and `ids`, in no order: made once, as every reading needs them.
RECORDS: Final = _with_names(select(*evaluations.c, *NAMES)).where(
    evaluations.c.project == bindparam("project"), evaluations.c.id == func.any(bindparam("ids", type_=ARRAY(Uuid)))
)


def select_by_time(scope: SearchScope, query: EvaluationQuery, limit: int) -> Select[Any]:
    """Select one page of summaries in the order of creation."""
    conditions = _conditions(scope, query)
    if query.after is not None:
        conditions.append(_beyond(query.after.id, descending=query.descending))
    found = _search(scope, conditions, limit, value=None, descending=query.descending, indexed=True)
    return _summaries(scope.project, found, (_directed(found.c.id, descending=query.descending),))


def select_ids(scope: SearchScope, query: EvaluationQuery, limit: int, *, descending: bool = False) -> Select[Any]:
    """Select the ids of the first evaluations that pass in the order of creation."""
    conditions = _conditions(scope, query)
    found = _search(scope, conditions, limit, value=None, descending=descending, indexed=True)
    return select(found.c.id).order_by(_directed(found.c.id, descending=descending))


def select_series(scope: SearchScope, query: EvaluationQuery, limit: int) -> Select[Any]:
    """Select the oldest evaluations that pass: those that are alike in one row, with all their ids and their counts, in
    no order.
    """
    found = _search(scope, _conditions(scope, query), limit, value=None, descending=False, indexed=True)
    last = select(found.c.id).order_by(found.c.id.desc()).limit(1).scalar_subquery()
    names = ("dataset_id", "model_name_id", "n_classes", "positive", "kind", "content", "counts_type", "labels")
    alike = [evaluations.c[name] for name in names]
    texts = [cast(evaluations.c[name], Text).label(name) for name in ("extra", "options")]
    nothing: ColumnElement[bytes] = literal_column("''::bytea")
    joined = [
        func.string_agg(entry, nothing, type_=LargeBinary).label(name)
        for name, entry in (("ids", func.uuid_send(evaluations.c.id)), ("counts", evaluations.c.counts))
    ]
    model_ids = func.array_agg(evaluations.c.model_id).label("model_ids")
    # By their range, which takes a third of the time of one id after another.
    passing = (*scope.conditions(), *_conditions(scope, query), evaluations.c.id <= last)
    rows = select(*alike, *texts, *joined, model_ids).where(evaluations.c.project == scope.project, *passing)
    made = rows.group_by(*alike, *(cast(evaluations.c[text.name], Text) for text in texts)).cte("made")
    versions = select(func.jsonb_object_agg(models.c.id, models.c.version, type_=JSONB))
    of_each = versions.where(models.c.id == func.any(made.c.model_ids)).scalar_subquery()
    model, *of_dataset = (model_names.c.name.label("model_name"), *NAMES[2:])
    return select(made, of_each.label("versions"), model, *of_dataset).select_from(
        made.join(model_names, model_names.c.id == made.c.model_name_id).join(
            datasets, datasets.c.id == made.c.dataset_id
        )
    )


def count_former(project: str, dataset_ids: Select[tuple[int]]) -> Select[Any]:
    """Count the model versions that had an evaluation on some datasets, and have none there since."""
    columns = evaluations.c
    still = select(columns.id).where(
        columns.project == project, columns.dataset_id.in_(dataset_ids), columns.model_id == former_models.c.model_id
    )
    here = former_models.c.dataset_id.in_(dataset_ids)
    return select(func.count(former_models.c.model_id.distinct())).where(here, ~still.exists())


def select_count(scope: SearchScope, query: EvaluationQuery) -> Select[Any]:
    """Select how many evaluations pass."""
    # Names leave out evaluations of other projects too.
    here = scope.conditions() or [evaluations.c.project == scope.project]
    passing = (*here, *_conditions(scope, query))
    return select(func.count()).select_from(evaluations).where(*passing)


def select_by_metric(
    scope: SearchScope, query: EvaluationQuery, limit: int, *, slot: int | None, defined: bool
) -> Select[Any]:
    """Select one page of summaries: of those that have a value of a metric, in its order with their value, or of those
    that have none.

    The slot is None for a metric that no evaluation has: all are undefined.
    """
    value = _value(slot)
    # The headline metrics have the first slots and an index per dataset.
    indexed = has_index(slot) and not scope.is_of_model
    conditions = _conditions(scope, query)
    if scope.model_name_id is not None and not has_index(slot):
        # The index that has all values knows versions, not their common name.
        name = select(model_names.c.name).where(model_names.c.id == scope.model_name_id).scalar_subquery()
        versions = select(models.c.id).where(models.c.project == scope.project, models.c.name == name)
        conditions.append(evaluations.c.model_id == func.any(func.array(versions.scalar_subquery())))
        scope = replace(scope, model_name_id=None)
    after = query.after
    if defined:
        conditions.append(value.is_not(None))
        if after is not None:
            conditions.append(_after(after, value, evaluations.c.id, descending=query.descending))
    elif slot is not None:
        conditions.append(value.is_(None))
    if not defined and after is not None and after.value is None:
        conditions.append(_beyond(after.id, descending=query.descending))
    sorted_by = value if defined else None
    found = _search(scope, conditions, limit, value=sorted_by, descending=query.descending, indexed=indexed)
    order = [found.c.value, found.c.id] if defined else [found.c.id]
    return _summaries(scope.project, found, [_directed(column, descending=query.descending) for column in order])


async def fetch_by_metric(
    connection: AsyncConnection, scope: SearchScope, query: EvaluationQuery, *, slot: int | None, names: Names
) -> Sequence[Row[Any]]:
    """Fetch one evaluation more than the page has, in the order of a metric, each with its value.

    First come those that have a value and, when these run out, those that have none.
    """
    if scope.dataset_ids is None and (scope.is_of_model or (has_index(slot) and not query.tags)):
        # Indexes with values begin with a dataset: what lies in several is merged.
        wanted = names.datasets.select_ids(scope.project)
        if scope.is_of_model:
            here = select(evaluations.c.id).where(evaluations.c.dataset_id == datasets.c.id, *scope.conditions())
            wanted = wanted.where(here.exists())
        scope = replace(scope, dataset_ids=await _fetch_ids(connection, wanted))
    rows: list[Row[Any]] = []
    past_the_defined = slot is None or (query.after is not None and query.after.value is None)
    for defined in (False,) if past_the_defined else (True, False):
        missing = query.limit + 1 - len(rows)
        if missing:
            statement = select_by_metric(scope, query, missing, slot=slot, defined=defined)
            rows.extend((await connection.execute(statement)).all())
    return rows


def has_index(slot: int | None) -> bool:
    """Return True if an index has the evaluations of each dataset in the order of the metric in this slot."""
    return slot is not None and slot <= len(HEADLINE)


def select_leaderboard(scope: SearchScope, limit: int, *, slot: int | None, higher_is_better: bool) -> Select[Any]:
    """Select the latest evaluation of each model version on the datasets of the scope, best value first; of these, what
    satisfies the conditions on values.

    A loose index scan: each step of the recursion jumps to the greatest id of the next model version, so the cost grows
    with the number of model versions, not of evaluations.
    """
    dataset_ids = scope.dataset_ids or ()
    passes = and_(true(), *scope.where).label("passes")
    columns = (evaluations.c.dataset_id, evaluations.c.model_id, evaluations.c.id, _value(slot).label("value"), passes)
    latest_first = (evaluations.c.model_id.desc(), evaluations.c.id.desc())
    wanted = _ids(dataset_ids, "wanted")
    first = select(*columns).where(evaluations.c.dataset_id == wanted.c.wanted).order_by(*latest_first).limit(1)
    start = first.lateral("start")
    latest = select(*start.c).select_from(wanted.join(start, true())).cte("latest", recursive=True)
    next_one = (
        select(*columns)
        .where(evaluations.c.dataset_id == latest.c.dataset_id, evaluations.c.model_id < latest.c.model_id)
        .order_by(*latest_first)
        .limit(1)
    )
    step = next_one.lateral("step")
    latest = latest.union_all(select(*step.c).select_from(latest.join(step, true())))
    one_each: CTE | Subquery = latest
    if len(dataset_ids) > 1:
        one_each = (
            select(latest.c.id, latest.c.value, latest.c.passes)
            .ext(distinct_on(latest.c.model_id))
            .order_by(latest.c.model_id, latest.c.id.desc())
            .subquery("one_each")
        )

    def best_first(rows: CTE | Subquery) -> tuple[ColumnElement[Any], ...]:
        return (_directed(rows.c.value, descending=higher_is_better).nulls_last(), rows.c.id.desc())

    passing = select(one_each.c.id, one_each.c.value).where(one_each.c.passes)
    found = _found(passing.order_by(*best_first(one_each)).limit(limit))
    return _summaries(scope.project, found, best_first(found))


def _search(
    scope: SearchScope,
    conditions: Sequence[ColumnElement[bool]],
    limit: int,
    *,
    value: ColumnElement[Any] | None,
    descending: bool,
    indexed: bool,
) -> CTE:
    """Find the first ids of the scope, ordered by value and id or by id alone.

    `indexed` says that an index has each part of the scope in this order, so its first row is cheap to see. The first n
    rows of all can only come from the n parts whose own first rows are the first: no other part is searched.
    """
    source: FromClause | None = None
    fixed = list(conditions)
    varying: dict[str, ColumnElement[int]] = {}
    for column, ids in ((evaluations.c.model_id, scope.model_ids), (evaluations.c.dataset_id, scope.dataset_ids)):
        if ids is None:
            continue
        if len(ids) == 1:
            fixed.append(column == ids[0])
        else:
            wanted = _ids(ids, column.name)
            source = wanted if source is None else source.join(wanted, true())
            varying[column.name] = wanted.c[column.name]
    if scope.model_name_id is not None:
        fixed.append(evaluations.c.model_name_id == scope.model_name_id)
    elif scope.model_ids is None and scope.dataset_ids is None:
        fixed.append(evaluations.c.project == scope.project)

    def order(rows: FromClause | None = None) -> list[UnaryExpression[Any]]:
        columns = [evaluations.c.id] if rows is None else [rows.c.id]
        keys = columns if value is None else [value if rows is None else rows.c.value, *columns]
        return [_directed(key, descending=descending) for key in keys]

    def first_rows(count: int, part: FromClause | None = None) -> Select[Any]:
        rows = select(evaluations.c.id) if value is None else select(evaluations.c.id, value.label("value"))
        rows = rows.where(*fixed).order_by(*order()).limit(count)
        return rows if part is None else rows.where(*(evaluations.c[name] == part.c[name] for name in varying))

    if source is None:
        return _found(first_rows(limit))
    parts: FromClause = select(*varying.values()).select_from(source).subquery("parts")
    if indexed:
        head = first_rows(1, parts).lateral("head")
        best = select(*parts.c).select_from(parts.join(head, true())).order_by(*order(head)).limit(limit)
        parts = best.subquery("best_parts")
    each = first_rows(limit, parts).lateral("each_part")
    return _found(select(*each.c).select_from(parts.join(each, true())).order_by(*order(each)).limit(limit))


def _found(search: Select[Any]) -> CTE:
    """Fix the few ids of the answer before their wide rows are read."""
    return search.cte("found").prefix_with("MATERIALIZED")


def _summaries(project: str, found: CTE, order: Sequence[ColumnElement[Any]]) -> Select[Any]:
    columns = (*SUMMARY, found.c.value) if "value" in found.c else SUMMARY
    match_id = and_(evaluations.c.project == project, evaluations.c.id == found.c.id)
    return _with_names(select(*columns), found.join(evaluations, match_id)).order_by(*order)


def _conditions(scope: SearchScope, query: EvaluationQuery) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = [evaluations.c.tags.contains({key: value}) for key, value in query.tags]
    conditions += scope.where
    if query.created_after is not None:
        conditions.append(evaluations.c.id >= first_id_from(query.created_after))
    if query.created_before is not None:
        conditions.append(evaluations.c.id < first_id_from(query.created_before))
    return conditions


def _after(
    place: Position, value: ColumnElement[Any], identifier: ColumnElement[UUID], *, descending: bool
) -> ColumnElement[bool]:
    here, there = tuple_(value, identifier), tuple_(literal(place.value, Double), literal(place.id, Uuid))
    return here < there if descending else here > there


def _beyond(identifier: UUID, *, descending: bool) -> ColumnElement[bool]:
    return evaluations.c.id < identifier if descending else evaluations.c.id > identifier


def _directed(column: ColumnElement[Any], *, descending: bool) -> UnaryExpression[Any]:
    return column.desc() if descending else column.asc()


def _value(slot: int | None) -> ColumnElement[Any]:
    return cast(null(), Double) if slot is None else value_in_slot(slot)


def _ids(ids: Sequence[int], name: str) -> TableValuedAlias:
    """Turn a list of ids into a table with one column, both of one name."""
    return func.unnest(literal(list(ids), ARRAY(Integer))).table_valued(name, name=name).render_derived()
