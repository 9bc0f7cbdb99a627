"""API keys, how often they are used, and who changed what.

Revision: 0006_keys, after 0005_sample_groups
"""

import sqlalchemy as sa
from alembic import op

revision = "0006_keys"
down_revision = "0005_sample_groups"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go to this revision."""
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Uuid(), nullable=False, comment="UUID version 7."),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("scopes", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False, comment="SHA-256 of the secret."),
        sa.Column("expires_at", sa.DateTime(timezone=True)),
        sa.Column("revoked_at", sa.DateTime(timezone=True)),
        sa.Column("last_used_at", sa.DateTime(timezone=True)),
        sa.Column("previous_digest", sa.LargeBinary(), comment="Good until previous_until."),
        sa.Column("previous_until", sa.DateTime(timezone=True)),
        sa.Column("rate", sa.Text()),
        sa.Column("daily_quota", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
    )
    op.create_index("ix_api_keys_project", "api_keys", ["project", "id"])
    op.create_table(
        "key_usage",
        sa.Column("key_id", sa.Uuid(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False, comment="UTC."),
        sa.Column("requests", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key_id", "day", name=op.f("pk_key_usage")),
    )
    op.create_table(
        "audit_entries",
        sa.Column("id", sa.Uuid(), nullable=False, comment="UUID version 7."),
        sa.Column("key_id", sa.Uuid()),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text()),
        sa.PrimaryKeyConstraint("project", "id", name=op.f("pk_audit_entries")),
    )


def downgrade() -> None:
    """Go back to 0005_sample_groups."""
    op.drop_table("audit_entries")
    op.drop_table("key_usage")
    op.drop_table("api_keys")
