"""Webhooks, and what they are told.

Revision: 0009_webhooks, after 0008_jobs
"""

import sqlalchemy as sa
from alembic import op

revision = "0009_webhooks"
down_revision = "0008_jobs"
branch_labels = None
depends_on = None


def _count(name: str, begin: str, comment: str) -> "sa.Column[int]":
    return sa.Column(name, sa.Integer(), nullable=False, server_default=sa.text(begin), comment=comment)


def upgrade() -> None:
    """Go to this revision."""
    op.create_table(
        "webhooks",
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.text("now()")),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("events", sa.ARRAY(sa.Text()), nullable=False),
        sa.PrimaryKeyConstraint("project", "name", name=op.f("pk_webhooks")),
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", sa.Uuid(), nullable=False, comment="Of what happened to, sent as webhook-id."),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.text("now()")),
        sa.Column(
            "next_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), comment="NULL: not any more."
        ),
        sa.Column("delivered_at", sa.DateTime(timezone=True)),
        _count("asked", "1", "How often it was asked for."),
        _count("attempts", "0", "Since it was last asked for."),
        sa.Column("response_status", sa.SmallInteger()),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("webhook", sa.Text(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False, server_default=sa.text("'pending'")),
        sa.Column("body", sa.Text(), nullable=False, comment="As it is sent and signed."),
        sa.Column("error", sa.Text()),
        sa.PrimaryKeyConstraint("project", "webhook", "id", name=op.f("pk_webhook_deliveries")),
        sa.ForeignKeyConstraint(
            ["project", "webhook"],
            ["webhooks.project", "webhooks.name"],
            name=op.f("fk_webhook_deliveries_project_webhook_webhooks"),
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_webhook_deliveries_created", "webhook_deliveries", ["created_at"])


def downgrade() -> None:
    """Go back to 0008_jobs."""
    op.drop_table("webhook_deliveries")
    op.drop_table("webhooks")
