"""The reading SQL for evaluations.

A filter by name can stand for many versions. Each is searched by itself, through an index that already has the order
asked for, and stops after one page (`JOIN LATERAL ... LIMIT`): a page costs the same however much lies behind it.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import Enum, auto
from typing import Any, assert_never
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    CTE,
    ColumnElement,
    Double,
    FromClause,
    Integer,
    Select,
    Subquery,
    TableValuedAlias,
    UnaryExpression,
    Uuid,
    and_,
    cast,
    func,
    literal,
    null,
    or_,
    select,
    true,
    tuple_,
    union_all,
)
from sqlalchemy.dialects.postgresql import distinct_on

from app.domain.evaluation import EvaluationQuery, Position
from app.domain.identifiers import first_id_from
from app.domain.named_metrics import HEADLINE
from app.store.database.tables import datasets, evaluations, models, value_in_slot
from app.store.lists.partitions import Partition, SearchScope
from app.store.lists.visibility import in_time_since, late_since

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
RECORD = (*evaluations.c, *NAMES)


class Segment(Enum):
    """Sorted by a metric, first come the evaluations that have a value, then those that have none."""

    defined = auto()
    undefined = auto()


def select_record(project: str, identifier: UUID) -> Select[Any]:
    """Select one evaluation whole."""
    return _with_names(select(*RECORD)).where(evaluations.c.project == project, evaluations.c.id == identifier)


def select_records(project: str, identifiers: Sequence[UUID]) -> Select[Any]:
    """Select some evaluations whole, in no order."""
    wanted = evaluations.c.id == func.any(literal(list(identifiers), ARRAY(Uuid)))
    return _with_names(select(*RECORD)).where(evaluations.c.project == project, wanted)


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


def select_count(scope: SearchScope, query: EvaluationQuery) -> Select[Any]:
    """Select how many evaluations pass."""
    here = [evaluations.c.project == scope.project] if scope.is_whole_project else []
    passing = (*here, *scope.conditions(), *_conditions(scope, query))
    return select(func.count()).select_from(evaluations).where(*passing)


def select_by_metric(
    scope: SearchScope, query: EvaluationQuery, limit: int, *, slot: int | None, segment: Segment
) -> Select[Any]:
    """Select one page of summaries and their value, in the order of a metric within one segment.

    The slot is None for a metric that no evaluation has: all are undefined.
    """
    value = _value(slot)
    # The headline metrics have the first slots and an index per dataset.
    indexed = has_index(slot) and scope.model_ids is None and scope.model_name_id is None
    conditions = _conditions(scope, query)
    order: list[ColumnElement[Any]]
    after = query.after
    match segment:
        case Segment.defined:
            conditions.append(value.is_not(None))
            if after is not None:
                conditions.append(_after(after, value, evaluations.c.id, descending=query.descending))
            found = _search(scope, conditions, limit, value=value, descending=query.descending, indexed=indexed)
            order = [found.c.value, found.c.id]
        case Segment.undefined:
            if slot is not None:
                conditions.append(value.is_(None))
            if after is not None and after.value is None:
                conditions.append(_beyond(after.id, descending=query.descending))
            found = _search(scope, conditions, limit, value=None, descending=query.descending, indexed=indexed)
            order = [found.c.id]
        case _:
            assert_never(segment)
    return _summaries(scope.project, found, [_directed(column, descending=query.descending) for column in order])


def has_index(slot: int | None) -> bool:
    """Whether every dataset has an index in the order of the metric."""
    return slot is not None and slot <= len(HEADLINE)


def select_written_since(
    scope: SearchScope, query: EvaluationQuery, partitions: Sequence[tuple[Partition, datetime | None]], *, slot: int
) -> Select[Any]:
    """Select ids and values for one page, of what was written to each partition since a moment, or of all of it.

    An evaluation can come twice. What is beyond the end of a page does not come at all.
    """
    written = _written_since(scope, query, partitions, slot)
    page = select(written.c.id, written.c.value).where(written.c.value.is_not(None))
    if query.after is not None and query.after.value is not None:
        page = page.where(_after(query.after, written.c.value, written.c.id, descending=query.descending))
    order = _by_value(written, descending=query.descending)
    return page.order_by(*order).limit(len(partitions) * 2 * (query.limit + 1))


def select_all_written_since(
    scope: SearchScope, query: EvaluationQuery, partitions: Sequence[tuple[Partition, datetime | None]]
) -> Select[Any]:
    """Select the ids of all that was written to each partition since a moment, or of all of it, and passes.

    An evaluation can come twice.
    """
    return select(_written_since(scope, query, partitions, None).c.id)


def _written_since(
    scope: SearchScope,
    query: EvaluationQuery,
    partitions: Sequence[tuple[Partition, datetime | None]],
    slot: int | None,
) -> CTE:
    columns = (evaluations.c.id, _value(slot).label("value"))
    conditions = [*scope.conditions(), *_conditions(scope, query)]
    selects = []
    for partition, moment in partitions:
        mine = select(*columns).where(partition.condition(), *conditions)
        if moment is None:
            selects.append(mine)
        else:
            late = mine.where(evaluations.c.project == partition.project, late_since(moment))
            selects += [mine.where(in_time_since(moment)), late]
    # Materialized, so that it is found by its ids: an index in the order of the metric would lead through everything.
    return union_all(*selects).cte("written").prefix_with("MATERIALIZED")


def select_among(scope: SearchScope, query: EvaluationQuery, identifiers: Sequence[UUID], *, slot: int) -> Select[Any]:
    """Select the first of some evaluations that pass the filters, one more than a page has, with their value."""
    one, passing = _among(scope, query, identifiers, slot)
    found = _found(passing.order_by(*_by_value(one, descending=query.descending)))
    return _summaries(scope.project, found, _by_value(found, descending=query.descending))


def select_page_among(
    scope: SearchScope, query: EvaluationQuery, identifiers: Sequence[UUID], *, slot: int | None
) -> Select[Any]:
    """Select the page of a list of which no other evaluations than these can be, with their value.

    The slot is that of the metric of the order, None for one that no evaluation has.
    """
    one, passing = _among(scope, query, identifiers, slot)
    if query.after is not None:
        passing = passing.where(_beyond_page(query, query.after, one))
    found = _found(passing.order_by(*_in_order(query, one)))
    return _summaries(scope.project, found, _in_order(query, found))


def _among(
    scope: SearchScope, query: EvaluationQuery, identifiers: Sequence[UUID], slot: int | None
) -> tuple[FromClause, Select[Any]]:
    """Those of some evaluations that pass the filters, id and value, and the rows that they come from."""
    wanted = func.unnest(literal(list(identifiers), ARRAY(Uuid))).table_valued("id", name="wanted").render_derived()
    # Row by row, and not what an index finds: a tag can stand for a good part of all evaluations.
    values = [evaluations.c.metric_values] if scope.where else []
    mine = select(evaluations.c.id, evaluations.c.tags, _value(slot).label("value"), *values)
    mine = mine.where(evaluations.c.project == scope.project, evaluations.c.id == wanted.c.id, *scope.conditions())
    one = mine.offset(0).lateral("one")
    passing = select(one.c.id, one.c.value).select_from(wanted.join(one, true()))
    return one, passing.where(*_conditions(scope, query, one)).limit(query.limit + 1)


def _in_order(query: EvaluationQuery, rows: FromClause) -> list[UnaryExpression[Any]]:
    """The order of a list, whatever it is: undefined values last."""
    by_id = _directed(rows.c.id, descending=query.descending)
    if query.sort_metric is None:
        return [by_id]
    return [_directed(rows.c.value, descending=query.descending).nulls_last(), by_id]


def _beyond_page(query: EvaluationQuery, place: Position, rows: FromClause) -> ColumnElement[bool]:
    """Whether a row comes after the end of the page before, in that order."""
    later = rows.c.id < place.id if query.descending else rows.c.id > place.id
    if query.sort_metric is None:
        return later
    undefined = rows.c.value.is_(None)
    if place.value is None:
        return and_(undefined, later)
    return or_(undefined, _after(place, rows.c.value, rows.c.id, descending=query.descending))


def select_leaderboard(scope: SearchScope, limit: int, *, slot: int | None, higher_is_better: bool) -> Select[Any]:
    """Select the latest evaluation of each model version on the datasets of the scope, best value first; of these, what
    satisfies the conditions on values.

    A loose index scan: each step of the recursion jumps to the greatest id of the next model version, so the cost grows
    with the number of model versions, not of evaluations.
    """
    dataset_ids = scope.dataset_ids or ()
    passes = and_(true(), *(condition.of() for condition in scope.where)).label("passes")
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


def _with_names(statement: Select[Any], source: FromClause = evaluations) -> Select[Any]:
    return statement.select_from(
        source.join(models, models.c.id == evaluations.c.model_id).join(
            datasets, datasets.c.id == evaluations.c.dataset_id
        )
    )


def _conditions(
    scope: SearchScope, query: EvaluationQuery, rows: FromClause = evaluations
) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = [rows.c.tags.contains({key: value}) for key, value in query.tags]
    conditions += [condition.of(rows) for condition in scope.where]
    if query.created_after is not None:
        conditions.append(rows.c.id >= first_id_from(query.created_after))
    if query.created_before is not None:
        conditions.append(rows.c.id < first_id_from(query.created_before))
    return conditions


def _by_value(rows: FromClause, *, descending: bool) -> list[UnaryExpression[Any]]:
    return [_directed(column, descending=descending) for column in (rows.c.value, rows.c.id)]


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
