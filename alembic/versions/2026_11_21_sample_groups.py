"""Samples that come in groups, such as several of one patient.

Revision: 0005_sample_groups, after 0004_sorted_lists
"""

import sqlalchemy as sa
from alembic import op

revision = "0005_sample_groups"
down_revision = "0004_sorted_lists"
branch_labels = None
depends_on = None

# A column that an evaluation has twice is counted once.
UNLINK = """
UPDATE sample_columns c SET links = links - gone.number FROM (
    SELECT project, groups, count(*) AS number FROM evaluation_samples
    WHERE groups NOT IN (truth, predicted) AND groups IS DISTINCT FROM outputs
        AND groups IS DISTINCT FROM ids AND groups IS DISTINCT FROM weights
    GROUP BY project, groups
) gone WHERE c.project = gone.project AND c.digest = gone.groups
"""


def upgrade() -> None:
    """Go to this revision."""
    op.add_column("evaluation_samples", sa.Column("groups", sa.LargeBinary()))


def downgrade() -> None:
    """Go back to 0004_sorted_lists: what was known of groups is lost."""
    op.execute(UNLINK)
    op.execute("DELETE FROM sample_columns WHERE links <= 0")
    op.drop_column("evaluation_samples", "groups")
