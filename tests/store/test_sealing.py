"""A statement that reaches beyond one project is never compiled."""

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Table, delete, func, or_, select, true, update
from sqlalchemy.dialects.postgresql.asyncpg import dialect

from app.store import tables
from app.store.engine import UnsealedStatement, seal
from app.store.tables import comparisons, datasets, evaluations, gates, metadata, models

STORE = Path(tables.__file__).parents[1]
MINE = evaluations.c.project == "mine"
OTHER = evaluations.alias("other")
SEALED: dict[str, Any] = {
    "by project": select(evaluations).where(MINE),
    "by project among others": select(evaluations).where(evaluations.c.n_classes > 2, MINE, true()),
    "by an id of the project": select(evaluations).where(evaluations.c.dataset_id == 5),
    "by ids of the project": select(evaluations).where(evaluations.c.model_id.in_([5, 6])),
    "joined by such an id": select(models.c.name).join(evaluations, models.c.id == evaluations.c.model_id).where(MINE),
    "of an inner statement": select(select(evaluations.c.id).where(MINE).subquery().c.id),
    "change": update(comparisons).where(comparisons.c.project == "mine").values(kind="x"),
    "deletion": delete(models).where(models.c.id == 1),
    "of no project": select(tables.metric_slots),
}
UNSEALED: dict[str, Any] = {
    "everything": select(evaluations),
    "by id": select(evaluations).where(evaluations.c.id == func.gen_random_uuid()),
    "or": select(evaluations).where(or_(MINE, evaluations.c.n_classes > 2)),
    "not": select(evaluations).where(evaluations.c.project != "mine"),
    "inner": select(select(evaluations.c.id).subquery().c.id),
    "of a condition": select(evaluations).where(MINE, evaluations.c.id.in_(select(comparisons.c.id))),
    "second table": select(evaluations.c.id, comparisons.c.id).where(MINE),
    "second of the same table": select(evaluations.c.id, OTHER.c.id).where(MINE, OTHER.c.n_classes == 2),
    "common table expression": select(select(gates.c.name).cte("all").c.name),
    "union": select(evaluations.c.id).where(MINE).union_all(select(evaluations.c.id)),
    "change": update(comparisons).values(kind="x"),
    "deletion": delete(datasets),
    "names": select(models.c.id).where(models.c.name == "m"),
    "count": select(func.count()).select_from(evaluations),
}


def compile_sealed(statement: Any) -> str:
    sealed = dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy leaves it untyped
    seal(sealed)
    return str(statement.compile(dialect=sealed))


@pytest.mark.parametrize("name", SEALED)
def test_what_is_held_to_one_project_passes(name: str) -> None:
    assert compile_sealed(SEALED[name])


@pytest.mark.parametrize("name", UNSEALED)
def test_what_reaches_beyond_one_project_is_refused(name: str) -> None:
    with pytest.raises(UnsealedStatement, match="expected a statement that holds"):
        compile_sealed(UNSEALED[name])


def _of_projects() -> Sequence[Table]:
    return [table for table in metadata.sorted_tables if "project" in table.c]


def test_every_table_of_projects_is_held() -> None:
    tables_of_projects = _of_projects()
    assert len(tables_of_projects) >= 13
    for table in tables_of_projects:
        with pytest.raises(UnsealedStatement, match=f"holds {table.name} to"):
            compile_sealed(select(table))
        # What is added names its project: the database refuses a row without.
        assert not table.c.project.nullable
        assert table.c.project.server_default is None


def test_what_is_no_compiled_statement_is_known() -> None:
    """Text is not looked at, so there is as little of it as can be."""
    texts = {
        node.args[0].value
        for path in STORE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "text"
        if isinstance(node.args[0], ast.Constant)
    }
    names = [table.name for table in _of_projects()]
    assert {text for text in texts if any(name in str(text) for name in names)} == {
        "SELECT EXISTS (SELECT FROM api_keys)",
        "DELETE FROM idempotency_results WHERE expires_at <= now()",
        "DELETE FROM idempotency_claims WHERE leased_until <= now()",
        # Which projects have a trail that may have to be cut.
        "WITH RECURSIVE known (project) AS ((SELECT project FROM audit_entries ORDER BY 1 LIMIT 1) UNION ALL SELECT "
        "(SELECT next.project FROM audit_entries next WHERE next.project > known.project ORDER BY 1 LIMIT 1) "
        "FROM known WHERE known.project IS NOT NULL) SELECT project FROM known WHERE project IS NOT NULL",
        # How many wait, and what ended long ago, is asked of all projects.
        "SELECT count(*) FROM jobs WHERE status = 'queued'",
        "DELETE FROM jobs WHERE finished_at < now() - make_interval(secs => :seconds)",
        # So is who is to be told of what, and what was told long ago.
        "SELECT DISTINCT project, unnest(events) FROM webhooks",
        "DELETE FROM webhook_deliveries "
        "WHERE status <> 'pending' AND created_at < now() - make_interval(secs => :seconds)",
        # Of one answer, the runs that it names.
        "'$.evaluations[*][*]'",
        # The queue has no projects.
        "SELECT (procrastinate_defer_jobs_v1(ARRAY[ROW(CAST(:queue AS varchar), CAST(:task AS varchar), 0, NULL, NULL, "
        "CAST(:given AS jsonb), NULL)]::procrastinate_job_to_defer_v1[]))[1]",
        "SELECT EXISTS (SELECT FROM procrastinate_jobs WHERE id = :id AND status = 'doing')",
    }
