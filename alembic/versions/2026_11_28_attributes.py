"""Attributes of samples are kept beside them.

Revision: 0015_attributes, after 0014_runs_of_comparisons
"""

import sqlalchemy as sa
from alembic import op

revision = "0015_attributes"
down_revision = "0014_runs_of_comparisons"
branch_labels = None
depends_on = None

UNLINK = """
UPDATE sample_columns c SET links = links - gone.number FROM (
    SELECT project, attributes, count(*) AS number FROM evaluation_samples
    WHERE attributes IS NOT NULL GROUP BY project, attributes
) gone WHERE c.project = gone.project AND c.digest = gone.attributes
"""


def upgrade() -> None:
    """Go to this revision."""
    comment = "All of them, as one text."
    op.add_column("evaluation_samples", sa.Column("attributes", sa.LargeBinary(), comment=comment))


def downgrade() -> None:
    """Go back to 0014_runs_of_comparisons: attributes are lost."""
    op.execute(UNLINK)
    op.execute("DELETE FROM sample_columns WHERE links <= 0")
    op.drop_column("evaluation_samples", "attributes")
