"""Answers that are stored name evaluations, models and versions in one way.

Revision: 0013_named_evaluations, after 0012_lists_by_index
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0013_named_evaluations"
down_revision = "0012_lists_by_index"
branch_labels = None
depends_on = None

Json = dict[str, Any]
_AT_ONCE = 100


def upgrade() -> None:
    """Go to this revision."""
    _rewrite("gate_checks", _check)
    _rewrite("comparisons", _comparison)


def downgrade() -> None:
    """Go back to 0012_lists_by_index."""
    _rewrite("gate_checks", _check_before)
    _rewrite("comparisons", _comparison_before)


def _check(answer: Json) -> Json:
    gate = answer["gate"]
    return answer | {
        "gate": {"name": gate["name"], "url": f"/v1/gates/{gate['name']}", "version": str(gate["version"])},
        "evaluation": _named(answer["evaluation"]),
        "baseline": None if answer["baseline"] is None else _named(answer["baseline"]),
    }


def _check_before(answer: Json) -> Json:
    gate = answer["gate"]
    return answer | {
        "gate": {"name": gate["name"], "version": int(gate["version"])},
        "evaluation": _without(answer["evaluation"], "url", "tags"),
        "baseline": None if answer["baseline"] is None else _without(answer["baseline"], "url", "tags"),
    }


def _comparison(answer: Json) -> Json:
    if "models" not in answer:
        named = _renamed(answer, {"baseline": "baseline_id"})
        named["evaluations"] = [_named(run) for run in answer["evaluations"]]
        return named | {"disagreements": [_preferring(one, {"evaluation": "evaluation_id"}) for one in _splits(answer)]}
    named = answer | {
        "evaluations": [
            [
                _named({"id": run, "model": model, "dataset": data})
                for run, model in zip(row, answer["models"], strict=True)
            ]
            for row, data in zip(answer["evaluations"], answer["datasets"], strict=True)
        ]
    }
    if "control" in answer:
        named["control"] = [one | {"model": answer["models"][one["model"]]} for one in answer["control"]]
    return named


def _comparison_before(answer: Json) -> Json:
    if "models" not in answer:
        named = _renamed(answer, {"baseline_id": "baseline"})
        named["evaluations"] = [_without(run, "url", "tags") for run in answer["evaluations"]]
        return named | {"disagreements": [_preferring(one, {"evaluation_id": "evaluation"}) for one in _splits(answer)]}
    named = answer | {"evaluations": [[run["id"] for run in row] for row in answer["evaluations"]]}
    if "control" in answer:
        named["control"] = [one | {"model": answer["models"].index(one["model"])} for one in answer["control"]]
    return named


def _named(run: Json) -> Json:
    """Its tags at that time are not known."""
    named = {"id": run["id"], "url": f"/v1/evaluations/{run['id']}", "model": run["model"], "dataset": run["dataset"]}
    return named | {"tags": {}} | _without(run, *named)


def _splits(answer: Json) -> Iterable[Json]:
    found: Iterable[Json] = answer["disagreements"]
    return found


def _preferring(split: Json, names: Mapping[str, str]) -> Json:
    return split | {"prefers": [_renamed(one, names) for one in split["prefers"]]}


def _renamed(shape: Json, names: Mapping[str, str]) -> Json:
    return {names.get(name, name): value for name, value in shape.items()}


def _without(shape: Json, *names: str) -> Json:
    return {name: value for name, value in shape.items() if name not in names}


def _rewrite(table: str, change: Callable[[Json], Json]) -> None:
    """Write the answers of a table anew, some at a time."""
    answers = sa.table(table, sa.column("project", sa.Text), sa.column("id", sa.Uuid), sa.column("answer", sa.JSON))
    key, connection = (answers.c.project, answers.c.id), op.get_bind()
    after: tuple[Any, Any] | None = None
    while True:
        wanted = sa.select(answers).order_by(*key).limit(_AT_ONCE)
        rows = connection.execute(wanted if after is None else wanted.where(sa.tuple_(*key) > after)).all()
        for row in rows:
            mine = sa.update(answers).where(answers.c.project == row.project, answers.c.id == row.id)
            connection.execute(mine.values(answer=change(row.answer)))
        if len(rows) < _AT_ONCE:
            return
        after = (rows[-1].project, rows[-1].id)
