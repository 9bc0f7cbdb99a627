"""Clusterings are kept as the cells of their tables that are not empty: class, cluster, number of samples.

Revision: 0016_cells, after 0015_attributes
"""

from collections.abc import Callable

import numpy as np
import sqlalchemy as sa
from alembic import op
from numpy.typing import NDArray

revision = "0016_cells"
down_revision = "0015_attributes"
branch_labels = None
depends_on = None

FOUND = "SELECT project, id FROM evaluations WHERE kind = 'clustering'"
READ = """
SELECT n_classes, json_array_length(extra -> 'clusters') AS n_clusters, counts_type, counts
FROM evaluations WHERE project = :project AND id = :id
"""
WRITE = "UPDATE evaluations SET counts_type = '<i8', counts = :counts WHERE project = :project AND id = :id"


def upgrade() -> None:
    """Go to this revision."""
    _rewrite(_cells)


def downgrade() -> None:
    """Go back to 0015_attributes: whole tables."""
    _rewrite(_table)


def _cells(counts: NDArray[np.int64], size: tuple[int, int]) -> NDArray[np.int64]:
    table = counts.reshape(size)
    places = np.nonzero(table)
    return np.stack([*places, table[places]], axis=1)


def _table(counts: NDArray[np.int64], size: tuple[int, int]) -> NDArray[np.int64]:
    table = np.zeros(size, dtype=np.int64)
    classes, clusters, samples = counts.reshape(-1, 3).T
    table[classes, clusters] = samples
    return table


def _rewrite(made: Callable[[NDArray[np.int64], tuple[int, int]], NDArray[np.int64]]) -> None:
    bind = op.get_bind()
    for project, identifier in bind.execute(sa.text(FOUND)).all():
        which = {"project": project, "id": identifier}
        row = bind.execute(sa.text(READ), which).one()
        counts = np.frombuffer(row.counts, dtype=np.dtype(row.counts_type)).astype(np.int64)
        # Without classes there is one row.
        found = made(counts, (max(row.n_classes, 1), row.n_clusters))
        bind.execute(sa.text(WRITE), {**which, "counts": found.astype("<i8").tobytes()})
