"""Jobs, and the queue in which they wait: procrastinate's, in a schema of its own.

Revision: 0008_jobs, after 0007_idempotency
"""

from importlib.metadata import version
from typing import Any

import sqlalchemy as sa
from alembic import op
from procrastinate.schema import SchemaManager

revision = "0008_jobs"
down_revision = "0007_idempotency"
branch_labels = None
depends_on = None

# A later migration that brings another release of the queue begins with what this says.
RELEASE = version("procrastinate")


def upgrade() -> None:
    """Go to this revision."""
    op.create_table(
        "jobs",
        sa.Column("id", sa.Uuid(), nullable=False, comment="UUID version 7."),
        sa.Column("makes", sa.Uuid(), nullable=False, comment="Id of what it makes."),
        sa.Column("key_id", sa.Uuid()),
        sa.Column("queue_id", sa.BigInteger(), nullable=False, comment="Its id in procrastinate_jobs."),
        sa.Column("started_at", sa.DateTime(timezone=True)),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sa.Column("progress", sa.Double(), nullable=False),
        sa.Column("runs", sa.Integer(), nullable=False, comment="How often work on it has begun."),
        sa.Column("lost", sa.Integer(), nullable=False, comment="How often it was never heard of again."),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("headers", sa.JSON(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text()),
        sa.Column("result", sa.Text(), comment="Address of what it made or computed."),
        sa.Column("problem", sa.JSON()),
        sa.PrimaryKeyConstraint("project", "id", name=op.f("pk_jobs")),
    )
    op.create_index("ix_jobs_queued", "jobs", ["project"], postgresql_where=sa.text("status = 'queued'"))
    op.create_index("ix_jobs_finished", "jobs", ["finished_at"])
    op.create_table(
        "job_bodies",
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("project", "job_id", "place", name=op.f("pk_job_bodies")),
        sa.ForeignKeyConstraint(
            ["project", "job_id"],
            ["jobs.project", "jobs.id"],
            name=op.f("fk_job_bodies_project_jobs"),
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "job_results",
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("project", "job_id", name=op.f("pk_job_results")),
        sa.ForeignKeyConstraint(
            ["project", "job_id"],
            ["jobs.project", "jobs.id"],
            name=op.f("fk_job_results_project_jobs"),
            ondelete="CASCADE",
        ),
    )
    _create_queue()


def _create_queue() -> None:
    op.execute("CREATE SCHEMA procrastinate")
    op.execute(f"COMMENT ON SCHEMA procrastinate IS 'procrastinate {RELEASE}'")
    op.execute("SELECT set_config('search_path', 'procrastinate,' || current_setting('search_path'), true)")
    # Many statements in one text, which is sent as it is and never prepared.
    driver: Any = op.get_bind().connection.dbapi_connection
    driver.run_async(lambda connection: connection.execute(SchemaManager.get_schema()))
    op.execute("SELECT set_config('search_path', replace(current_setting('search_path'), 'procrastinate,', ''), true)")


def downgrade() -> None:
    """Go back to 0007_idempotency."""
    op.execute("DROP SCHEMA procrastinate CASCADE")
    op.drop_table("job_results")
    op.drop_table("job_bodies")
    op.drop_table("jobs")
