"""Model versions that were judged on a dataset stay known when their evaluations are removed.

Revision: 0017_former_models, after 0016_cells
"""

import sqlalchemy as sa
from alembic import op

revision = "0017_former_models"
down_revision = "0016_cells"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go to this revision."""
    op.create_table(
        "former_models",
        sa.Column("dataset_id", sa.Integer(), nullable=False),
        sa.Column("model_id", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("dataset_id", "model_id", name=op.f("pk_former_models")),
    )


def downgrade() -> None:
    """Go back to 0016_cells."""
    op.drop_table("former_models")
