"""Evaluations and the names of models, datasets and metrics.

Revision: 0001_evaluations, the first
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001_evaluations"
down_revision = None
branch_labels = None
depends_on = None

HEADLINE_METRICS = ("accuracy", "balanced_accuracy", "g_mean", "h_mean", "macro_f1", "mcc", "cohen_kappa")


def upgrade() -> None:
    """Go to this revision."""
    op.create_table(
        "models",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Text()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_models")),
        sa.UniqueConstraint(
            "project",
            "name",
            "version",
            name=op.f("uq_models_project_name_version"),
            postgresql_nulls_not_distinct=True,
        ),
    )
    op.create_table(
        "datasets",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Text()),
        sa.Column("split", sa.Text()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_datasets")),
        sa.UniqueConstraint(
            "project",
            "name",
            "version",
            "split",
            name=op.f("uq_datasets_project_name_version_split"),
            postgresql_nulls_not_distinct=True,
        ),
    )
    slots = op.create_table(
        "metric_slots",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("slot", sa.SmallInteger(), nullable=False, comment="Subscript in evaluations.metric_values, from 1."),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_metric_slots")),
        sa.UniqueConstraint("slot", name=op.f("uq_metric_slots_slot")),
    )
    op.bulk_insert(slots, [{"key": key, "slot": slot} for slot, key in enumerate(HEADLINE_METRICS, start=1)])
    op.create_table(
        "evaluations",
        sa.Column(
            "id", sa.Uuid(), nullable=False, comment="UUID version 7: the order of ids is the order of creation."
        ),
        sa.Column("model_id", sa.Integer(), nullable=False),
        sa.Column("dataset_id", sa.Integer(), nullable=False),
        sa.Column("n_classes", sa.Integer(), nullable=False),
        sa.Column("positive", sa.Integer()),
        sa.Column("n_samples", sa.Double(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("revision", sa.Text(), nullable=False),
        sa.Column(
            "counts_type",
            sa.Text(),
            nullable=False,
            comment="Type of an entry of counts and fold_counts, as numpy names it.",
        ),
        sa.Column("labels", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("tags", postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("options", sa.JSON()),
        sa.Column("extra", sa.JSON()),
        sa.Column(
            "metric_values",
            postgresql.ARRAY(sa.Double()),
            nullable=False,
            comment="By slot; NaN: undefined, NULL: does not apply.",
        ),
        sa.Column("counts", sa.LargeBinary(), nullable=False),
        sa.Column("fold_counts", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("project", "id", name=op.f("pk_evaluations")),
    )
    # Never compressed: floats do not shrink, and trying costs more than it saves in the index that holds them too.
    op.execute("ALTER TABLE evaluations ALTER COLUMN metric_values SET STORAGE EXTERNAL")
    # Reads from an index alone need pages that VACUUM has marked as visible to all: sooner than by default.
    op.execute("ALTER TABLE evaluations SET (autovacuum_vacuum_insert_scale_factor = 0.02)")
    op.create_index("ix_evaluations_model", "evaluations", ["model_id", "id"])
    op.create_index("ix_evaluations_dataset", "evaluations", ["dataset_id", "id"])
    op.create_index(
        "ix_evaluations_dataset_model",
        "evaluations",
        ["dataset_id", "model_id", "id"],
        postgresql_include=["metric_values"],
    )
    op.create_index(
        "ix_evaluations_tags",
        "evaluations",
        ["tags"],
        postgresql_using="gin",
        postgresql_ops={"tags": "jsonb_path_ops"},
        postgresql_with={"gin_pending_list_limit": 256},
    )
    for slot, key in enumerate(HEADLINE_METRICS, start=1):
        value = sa.text(f"nullif(metric_values[{slot}], 'NaN'::double precision)")
        op.create_index(f"ix_evaluations_{key}", "evaluations", ["dataset_id", value, "id"])


def downgrade() -> None:
    """Go back to nothing."""
    op.drop_table("evaluations")
    op.drop_table("metric_slots")
    op.drop_table("datasets")
    op.drop_table("models")
