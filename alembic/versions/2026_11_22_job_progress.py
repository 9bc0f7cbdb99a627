"""Progress of jobs that is not known.

Revision: 0010_job_progress, after 0009_webhooks
"""

import sqlalchemy as sa
from alembic import op

revision = "0010_job_progress"
down_revision = "0009_webhooks"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go to this revision."""
    op.alter_column("jobs", "progress", existing_type=sa.Double(), nullable=True, comment="NULL: not known.")


def downgrade() -> None:
    """Go back to 0009_webhooks."""
    op.execute("UPDATE jobs SET progress = 0 WHERE progress IS NULL")
    op.alter_column("jobs", "progress", existing_type=sa.Double(), nullable=False, comment=None)
