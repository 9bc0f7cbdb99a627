"""What projects use, by day.

Revision: 0011_project_usage, after 0010_job_progress
"""

import sqlalchemy as sa
from alembic import op

revision = "0011_project_usage"
down_revision = "0010_job_progress"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go to this revision."""
    op.create_table(
        "project_usage",
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False, comment="UTC."),
        sa.Column("evaluations", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("compute_seconds", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("project", "day", name=op.f("pk_project_usage")),
    )


def downgrade() -> None:
    """Go back to 0010_job_progress."""
    op.drop_table("project_usage")
