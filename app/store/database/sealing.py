"""Projects are sealed from each other: a statement that could show or change what lies in another is never compiled.

Every read, change and deletion of a table that has a column `project` must hold it to one project, or hold its rows by
an id that belongs to one project alone. The check looks at the statement when it is compiled, which happens once for
each shape of statement; afterwards it costs nothing. Why not row-level security: docs/adr/0007-sealed-projects.md.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sqlalchemy import Alias, BinaryExpression, BooleanClauseList, Column, ColumnElement, FromClause, Join, Table
from sqlalchemy.engine import Dialect
from sqlalchemy.sql import operators
from sqlalchemy.sql.elements import Grouping

from app.store.database.tables import api_keys, datasets, evaluations, model_names, models

# Ids that are given to names within one project, and found through it (`app/store/names.py`).
_OWN_IDS: Final[Mapping[Table, frozenset[str]]] = {
    evaluations: frozenset({"model_id", "dataset_id", "model_name_id"}),
    models: frozenset({"id"}),
    model_names: frozenset({"id"}),
    datasets: frozenset({"id"}),
    # A key is found before anybody knows its project, by an id that comes with a secret. Lists name the project.
    api_keys: frozenset({"id"}),
}
_HOLDING: Final = (operators.eq, operators.in_op)


class UnsealedStatement(RuntimeError):
    """A statement reaches beyond one project: a fault of ours, found before the database sees it."""


def seal(dialect: Dialect) -> None:
    """Let a dialect compile sealed statements only."""
    dialect.statement_compiler = _sealed(dialect.statement_compiler)


def _sealed(compiler: Any) -> Any:
    class SealedCompiler(compiler):  # type: ignore[misc]  # of the dialect, whatever it is
        def visit_select(self, select_stmt: Any, *args: Any, **options: Any) -> Any:
            found = list(_tables(select_stmt.get_final_froms()))
            _check(found, [*_conjuncts(select_stmt.whereclause), *_joined(select_stmt.get_final_froms())])
            return super().visit_select(select_stmt, *args, **options)

        def visit_update(self, update_stmt: Any, *args: Any, **options: Any) -> Any:
            _check([update_stmt.table], _conjuncts(update_stmt.whereclause))
            return super().visit_update(update_stmt, *args, **options)

        def visit_delete(self, delete_stmt: Any, *args: Any, **options: Any) -> Any:
            _check([delete_stmt.table], _conjuncts(delete_stmt.whereclause))
            return super().visit_delete(delete_stmt, *args, **options)

    return SealedCompiler


def _tables(sources: Any) -> Iterator[FromClause]:
    """Tables read here; subqueries are statements of their own, which are looked at when their turn comes."""
    for source in sources:
        if isinstance(source, Join):
            yield from _tables((source.left, source.right))
        elif isinstance(source, Table) or (isinstance(source, Alias) and isinstance(source.element, Table)):
            yield source


def _joined(sources: Any) -> Iterator[ColumnElement[Any]]:
    for source in sources:
        if isinstance(source, Join):
            yield from _joined((source.left, source.right))
            # What an outer join says of its second table says nothing of the first.
            yield from _conjuncts(source.onclause)


def _conjuncts(condition: Any) -> Iterator[ColumnElement[Any]]:
    """The conditions that all hold together."""
    if isinstance(condition, Grouping):
        yield from _conjuncts(condition.element)
    elif isinstance(condition, BooleanClauseList) and condition.operator is operators.and_:
        for one in condition.clauses:
            yield from _conjuncts(one)
    elif condition is not None:
        yield condition


def _check(sources: list[Any], conditions: Any) -> None:
    held = {column for condition in conditions for column in _held(condition)}
    for source in sources:
        table: Any = source.element if isinstance(source, Alias) else source
        if "project" in source.c and not any(source.c[name] in held for name in {"project", *_OWN_IDS.get(table, ())}):
            raise UnsealedStatement(f"expected a statement that holds {table.name} to one project")


def _held(condition: ColumnElement[Any]) -> Iterator[Column[Any]]:
    """The columns that a condition holds to values, or to columns of another table."""
    if isinstance(condition, BinaryExpression) and condition.operator in _HOLDING:
        for side in (condition.left, condition.right):
            if isinstance(side, Column):
                yield side
