"""Comparisons, gates in versions, and the checks of gates.

Revision: 0002_comparisons, after 0001_evaluations
"""

import sqlalchemy as sa
from alembic import op

revision = "0002_comparisons"
down_revision = "0001_evaluations"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go to this revision."""
    op.create_table(
        "comparisons",
        sa.Column("id", sa.Uuid(), nullable=False, comment="UUID version 7."),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("answer", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("project", "id", name=op.f("pk_comparisons")),
    )
    op.create_table(
        "gates",
        sa.Column("id", sa.Uuid(), nullable=False, comment="UUID version 7 of this version."),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("definition", sa.JSON(), comment="NULL: the gate was deleted with this version."),
        sa.PrimaryKeyConstraint("project", "name", "version", name=op.f("pk_gates")),
    )
    op.create_table(
        "gate_checks",
        sa.Column("id", sa.Uuid(), nullable=False, comment="UUID version 7."),
        sa.Column("evaluation_id", sa.Uuid(), nullable=False),
        sa.Column("baseline_id", sa.Uuid()),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("gate", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("answer", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("project", "id", name=op.f("pk_gate_checks")),
    )
    op.create_index("ix_gate_checks_gate", "gate_checks", ["project", "gate", "id"])


def downgrade() -> None:
    """Go back to 0001_evaluations."""
    op.drop_table("gate_checks")
    op.drop_table("gates")
    op.drop_table("comparisons")
