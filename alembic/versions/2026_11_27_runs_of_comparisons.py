"""Comparisons are found by the runs that they name, and say a verdict on each difference.

Revision: 0014_runs_of_comparisons, after 0013_named_evaluations
"""

from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0014_runs_of_comparisons"
down_revision = "0013_named_evaluations"
branch_labels = None
depends_on = None

Json = dict[str, Any]
_AT_ONCE = 100
_ANSWERS = sa.table(
    "comparisons", sa.column("project", sa.Text), sa.column("id", sa.Uuid), sa.column("answer", sa.JSON)
)


def upgrade() -> None:
    """Go to this revision."""
    _rewrite(lambda answer: "metrics" in answer and "headline" not in answer, _decided)
    op.execute(
        "CREATE INDEX ix_comparisons_runs ON comparisons USING gin "
        "(jsonb_path_query_array(answer::jsonb, '$.evaluations[*][*]'))"
    )


def downgrade() -> None:
    """Go back to 0013_named_evaluations."""
    op.drop_index("ix_comparisons_runs", "comparisons")
    _rewrite(lambda answer: "headline" in answer, _undecided)


def _rewrite(concerns: Callable[[Json], bool], change: Callable[[Json], Json]) -> None:
    """Write answers anew, some at a time."""
    key, connection = (_ANSWERS.c.project, _ANSWERS.c.id), op.get_bind()
    after: tuple[Any, Any] | None = None
    while True:
        wanted = sa.select(_ANSWERS).order_by(*key).limit(_AT_ONCE)
        rows = connection.execute(wanted if after is None else wanted.where(sa.tuple_(*key) > after)).all()
        for row in rows:
            if concerns(row.answer):
                mine = sa.update(_ANSWERS).where(_ANSWERS.c.project == row.project, _ANSWERS.c.id == row.id)
                connection.execute(mine.values(answer=change(row.answer)))
        if len(rows) < _AT_ONCE:
            return
        after = (rows[-1].project, rows[-1].id)


def _undecided(answer: Json) -> Json:
    metrics = {
        name: {
            **metric,
            "differences": [_without(one, "level", "verdict", "too_little_to_matter") for one in metric["differences"]],
        }
        for name, metric in answer["metrics"].items()
    }
    return {**_without(answer, "headline"), "metrics": metrics}


def _without(shape: Json, *names: str) -> Json:
    return {name: value for name, value in shape.items() if name not in names}


def _decided(answer: Json) -> Json:
    level = answer["design"]["level"]
    metrics = {
        name: {**metric, "differences": [_with_verdict(metric["better"], level, one) for one in metric["differences"]]}
        for name, metric in answer["metrics"].items()
    }
    return {**answer, "metrics": metrics, "headline": _headline(metrics)}


def _with_verdict(better: str, level: float, pair: Mapping[str, Any]) -> dict[str, Any]:
    low, high, within = pair["low"], pair["high"], pair["probability_equivalent"] or 0.0
    decided = {**pair, "level": level}
    above, below = low is not None and low > 0.0, high is not None and high < 0.0
    if better not in ("higher", "lower") or not (above or below):
        return decided | {"verdict": "same" if within >= 0.95 or pair.get("identical") else "undecided"}
    decided["verdict"] = "better" if above == (better == "higher") else "worse"
    return decided | ({"too_little_to_matter": True} if within > 0.5 else {})


def _headline(metrics: Mapping[str, Any]) -> dict[str, Any]:
    name = next(iter(metrics))
    of_pair = {key: one["differences"][0] for key, one in metrics.items() if len(one["differences"]) == 1}
    return {
        "metric": name,
        "best": metrics[name]["best"],
        "verdict": of_pair[name]["verdict"] if name in of_pair else None,
        **{
            word: [key for key, pair in of_pair.items() if pair["verdict"] == word]
            for word in ("better", "worse", "same", "undecided")
        },
        "too_little_to_matter": [key for key, pair in of_pair.items() if "too_little_to_matter" in pair],
    }
