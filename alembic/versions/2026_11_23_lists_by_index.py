"""Lists in the order of a metric come from indexes: nothing is kept beside the table.

Revision: 0012_lists_by_index, after 0011_project_usage
"""

import sqlalchemy as sa
from alembic import op

revision = "0012_lists_by_index"
down_revision = "0011_project_usage"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go to this revision."""
    op.drop_table("extreme_values")
    op.drop_table("extreme_scopes")
    op.drop_index("ix_evaluations_late", table_name="evaluations")
    op.drop_column("evaluations", "late_at")


def downgrade() -> None:
    """Go back: what was kept is made again when lists ask for it."""
    op.add_column(
        "evaluations",
        sa.Column(
            "late_at",
            sa.DateTime(timezone=True),
            comment="When it was written, if that was long after its id was made.",
        ),
    )
    op.alter_column("evaluations", "late_at", server_default=sa.text("clock_timestamp()"))
    op.create_index(
        "ix_evaluations_late", "evaluations", ["project", "late_at"], postgresql_where=sa.text("late_at IS NOT NULL")
    )
    op.create_table(
        "extreme_scopes",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column(
            "member",
            sa.Integer(),
            nullable=False,
            comment="Id of the dataset, model or name of a model; 0: the project.",
        ),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column(
            "complete_to",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="What was written before has been looked at.",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_extreme_scopes")),
        sa.UniqueConstraint("project", "kind", "member", name=op.f("uq_extreme_scopes_project_kind_member")),
    )
    op.create_table(
        "extreme_values",
        sa.Column("scope_id", sa.Integer(), nullable=False),
        sa.Column("slot", sa.SmallInteger(), nullable=False),
        sa.Column("greatest", sa.Boolean(), nullable=False),
        sa.Column("entries", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("scope_id", "slot", "greatest", name=op.f("pk_extreme_values")),
    )
    op.execute("ALTER TABLE extreme_values ALTER COLUMN entries SET STORAGE EXTERNAL")
