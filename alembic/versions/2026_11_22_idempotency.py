"""Keys of requests: what was kept under them, and who is at work on one.

Revision: 0007_idempotency, after 0006_keys
"""

import sqlalchemy as sa
from alembic import op

revision = "0007_idempotency"
down_revision = "0006_keys"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go to this revision."""
    op.create_table(
        "idempotency_results",
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column(
            "item", sa.Integer(), nullable=False, comment="0: the whole of the request; from 1: an item of a batch."
        ),
        sa.Column("status", sa.SmallInteger(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False, comment="SHA-256 of what was asked."),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("object", sa.Text(), nullable=False, comment="Id of what was kept; the version of a gate."),
        sa.PrimaryKeyConstraint("project", "key", "item", name=op.f("pk_idempotency_results")),
    )
    op.create_index("ix_idempotency_results_expires_at", "idempotency_results", ["expires_at"])
    op.create_table(
        "idempotency_claims",
        sa.Column("claim", sa.Uuid(), nullable=False),
        sa.Column("leased_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("project", "key", name=op.f("pk_idempotency_claims")),
    )


def downgrade() -> None:
    """Go back to 0006_keys."""
    op.drop_table("idempotency_claims")
    op.drop_table("idempotency_results")
