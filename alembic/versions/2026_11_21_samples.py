"""Samples of evaluations in columns that are kept once, and what was said of samples that are not kept.

Revision: 0003_samples, after 0002_comparisons
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003_samples"
down_revision = "0002_comparisons"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go to this revision."""
    op.create_table(
        "sample_columns",
        sa.Column("links", sa.Integer(), nullable=False, comment="How many evaluations have it."),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False, comment="SHA-256 of what it holds."),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("project", "digest", name=op.f("pk_sample_columns")),
    )
    # Compressed already.
    op.execute("ALTER TABLE sample_columns ALTER COLUMN content SET STORAGE EXTERNAL")
    op.create_table(
        "evaluation_samples",
        sa.Column("evaluation_id", sa.Uuid(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("truth", sa.LargeBinary(), nullable=False, comment="Digests in sample_columns, as all that follow."),
        sa.Column("predicted", sa.LargeBinary(), nullable=False),
        sa.Column("outputs", sa.LargeBinary(), comment="Probabilities or scores."),
        sa.Column("ids", sa.LargeBinary()),
        sa.Column("weights", sa.LargeBinary()),
        sa.Column("fold_sizes", postgresql.ARRAY(sa.Integer())),
        sa.PrimaryKeyConstraint("project", "evaluation_id", name=op.f("pk_evaluation_samples")),
    )
    op.create_table(
        "probability_reports",
        sa.Column("evaluation_id", sa.Uuid(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False, comment="JSON."),
        sa.PrimaryKeyConstraint("project", "evaluation_id", name=op.f("pk_probability_reports")),
    )


def downgrade() -> None:
    """Go back to 0002_comparisons."""
    op.drop_table("probability_reports")
    op.drop_table("evaluation_samples")
    op.drop_table("sample_columns")
