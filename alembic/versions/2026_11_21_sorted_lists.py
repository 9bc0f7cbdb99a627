"""Lists of a model of many versions, and the first evaluations of large scopes by every metric.

Rewrites `evaluations` once, which holds up the service for some three minutes per million of them.

Revision: 0004_sorted_lists, after 0003_samples
"""

import sqlalchemy as sa
from alembic import op

revision = "0004_sorted_lists"
down_revision = "0003_samples"
branch_labels = None
depends_on = None

# For writers of the release before, which know no names of models: the condition of the trigger costs nothing else.
NAME_MODEL = """
CREATE FUNCTION name_model() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO model_names (project, name) SELECT project, name FROM models WHERE id = NEW.model_id
        ON CONFLICT DO NOTHING;
    SELECT n.id INTO NEW.model_name_id
        FROM models m JOIN model_names n ON n.project = m.project AND n.name = m.name WHERE m.id = NEW.model_id;
    RETURN NEW;
END $$
"""
TRIGGER = """
CREATE TRIGGER name_model BEFORE INSERT ON evaluations
    FOR EACH ROW WHEN (NEW.model_name_id IS NULL) EXECUTE FUNCTION name_model()
"""
FILL = """
UPDATE evaluations e SET model_name_id = n.id
    FROM models m JOIN model_names n ON n.project = m.project AND n.name = m.name WHERE m.id = e.model_id
"""


def upgrade() -> None:
    """Go to this revision."""
    op.create_table(
        "model_names",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model_names")),
        sa.UniqueConstraint("project", "name", name=op.f("uq_model_names_project_name")),
    )
    op.execute("INSERT INTO model_names (project, name) SELECT DISTINCT project, name FROM models")
    op.add_column("evaluations", sa.Column("model_name_id", sa.Integer()))
    # Two steps: what is there already is not late, and a writer that says nothing is.
    op.add_column(
        "evaluations",
        sa.Column(
            "late_at",
            sa.DateTime(timezone=True),
            comment="When it was written, if that was long after its id was made.",
        ),
    )
    op.alter_column("evaluations", "late_at", server_default=sa.text("clock_timestamp()"))
    op.execute(FILL)
    op.alter_column("evaluations", "model_name_id", nullable=False)
    op.execute(NAME_MODEL)
    op.execute(TRIGGER)
    op.create_index("ix_evaluations_model_name", "evaluations", ["model_name_id", "id"])
    op.create_index("ix_evaluations_dataset_model_name", "evaluations", ["dataset_id", "model_name_id", "id"])
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
    # Numbers that do not shrink.
    op.execute("ALTER TABLE extreme_values ALTER COLUMN entries SET STORAGE EXTERNAL")


def downgrade() -> None:
    """Go back to 0003_samples."""
    op.drop_table("extreme_values")
    op.drop_table("extreme_scopes")
    op.execute("DROP TRIGGER name_model ON evaluations")
    op.execute("DROP FUNCTION name_model()")
    op.drop_column("evaluations", "late_at")
    op.drop_column("evaluations", "model_name_id")
    op.drop_table("model_names")
