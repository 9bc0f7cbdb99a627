"""The tables. The shape and what it was measured against: docs/adr/0001-storage-shape.md."""

from enum import StrEnum
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    JSON,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Date,
    DateTime,
    Double,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    Uuid,
    cast,
    func,
    literal,
    literal_column,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from app.domain.decisions import ComparisonKind
from app.domain.inputs.content import Content
from app.domain.named_metrics import HEADLINE
from app.domain.operations import Change, DeliveryStatus, Event, JobStatus, Kind, Scope
from app.kernel.compare.gates import Verdict

Member = TypeVar("Member", bound=StrEnum)


class OneOf(TypeDecorator[Member]):
    """Text that is a member of an enumeration."""

    impl, cache_ok = Text, True

    def __init__(self, kind: type[Member]) -> None:
        super().__init__()
        self.kind = kind

    def process_result_value(self, value: Any, dialect: Any) -> Member | None:  # noqa: ARG002 - its signature
        """Return the member."""
        return None if value is None else self.kind(value)


class Id(TypeDecorator[UUID]):
    """An id of the standard library: the driver has a class of its own for them."""

    impl, cache_ok = Uuid, True

    def process_result_value(self, value: Any, dialect: Any) -> UUID | None:  # noqa: ARG002 - its signature
        """Return it as that."""
        return None if value is None else UUID(int=value.int)


metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    }
)

# An entry of an index has room for 2,704 bytes, and one of ours holds all values of an evaluation at eight bytes each.
SLOT_LIMIT = 320


def _names(table: str, *more: str) -> Table:
    """A table of names in a project; what is more of one may be NULL."""
    return Table(
        table,
        metadata,
        Column("id", Integer, Identity(), primary_key=True),
        Column("project", Text, nullable=False),
        Column("name", Text, nullable=False),
        *(Column(part, Text) for part in more),
        UniqueConstraint("project", "name", *more, postgresql_nulls_not_distinct=True if more else None),
    )


models = _names("models", "version")
# All versions of a model together: what a filter by name alone asks for.
model_names = _names("model_names")
datasets = _names("datasets", "version", "split")

metric_slots = Table(
    "metric_slots",
    metadata,
    Column("key", Text, primary_key=True),
    Column(
        "slot", SmallInteger, nullable=False, unique=True, comment="Subscript in evaluations.metric_values, from 1."
    ),
)

# Columns of fixed width first, so that Postgres finds them without walking over the others.
# model_id and dataset_id have no foreign key: names are never removed, and the check would lock the same
# two rows for every insert of a training run (measured in docs/adr/0002-driver-and-write-path.md).
evaluations = Table(
    "evaluations",
    metadata,
    Column("id", Id, nullable=False, comment="UUID version 7: the order of ids is the order of creation."),
    Column("model_id", Integer, nullable=False),
    Column("dataset_id", Integer, nullable=False),
    Column("n_classes", Integer, nullable=False),
    Column("positive", Integer),
    Column("n_samples", Double, nullable=False),
    Column("project", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("content", OneOf(Content), nullable=False),
    Column("revision", Text, nullable=False),
    Column(
        "counts_type", Text, nullable=False, comment="Type of an entry of counts and fold_counts, as numpy names it."
    ),
    Column("labels", ARRAY(Text), nullable=False),
    Column("tags", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("options", JSON(none_as_null=True)),
    Column("extra", JSON(none_as_null=True)),
    Column("metric_values", ARRAY(Double), nullable=False, comment="By slot; NaN: undefined, NULL: does not apply."),
    Column("counts", LargeBinary, nullable=False),
    Column("fold_counts", LargeBinary),
    Column("model_name_id", Integer, nullable=False),
    PrimaryKeyConstraint("project", "id"),
)

# Model versions of which an evaluation on a dataset was removed: the best was chosen among them too.
former_models = Table(
    "former_models",
    metadata,
    Column("dataset_id", Integer, nullable=False),
    Column("model_id", Integer, nullable=False),
    PrimaryKeyConstraint("dataset_id", "model_id"),
)

# No foreign keys here either: evaluations are written and deleted in one place, which sees to these too.
sample_columns = Table(
    "sample_columns",
    metadata,
    Column("links", Integer, nullable=False, comment="How many evaluations have it."),
    Column("project", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False, comment="SHA-256 of what it holds."),
    Column("content", LargeBinary, nullable=False),
    PrimaryKeyConstraint("project", "digest"),
)

evaluation_samples = Table(
    "evaluation_samples",
    metadata,
    Column("evaluation_id", Id, nullable=False),
    Column("project", Text, nullable=False),
    Column("truth", LargeBinary, nullable=False, comment="Digests in sample_columns, as all that follow."),
    Column("predicted", LargeBinary, nullable=False),
    Column("outputs", LargeBinary, comment="Probabilities or scores."),
    Column("ids", LargeBinary),
    Column("weights", LargeBinary),
    Column("fold_sizes", ARRAY(Integer)),
    Column("groups", LargeBinary),
    Column("attributes", LargeBinary, comment="All of them, as one text."),
    PrimaryKeyConstraint("project", "evaluation_id"),
)

probability_reports = Table(
    "probability_reports",
    metadata,
    Column("evaluation_id", Id, nullable=False),
    Column("project", Text, nullable=False),
    Column("content", LargeBinary, nullable=False, comment="JSON."),
    PrimaryKeyConstraint("project", "evaluation_id"),
)

# Answers are kept as the text that was sent: what is read later is what was said, byte for byte, though metrics may
# have been mended and evaluations deleted since.
comparisons = Table(
    "comparisons",
    metadata,
    Column("id", Id, nullable=False, comment="UUID version 7."),
    Column("project", Text, nullable=False),
    Column("kind", OneOf(ComparisonKind), nullable=False),
    Column("answer", JSON, nullable=False),
    PrimaryKeyConstraint("project", "id"),
)

# The runs that an answer names: a list of them, or one list for each dataset.
COMPARED_RUNS: ColumnElement[Any] = func.jsonb_path_query_array(
    cast(comparisons.c.answer, JSONB), text("'$.evaluations[*][*]'"), type_=JSONB
)
Index("ix_comparisons_runs", COMPARED_RUNS, postgresql_using="gin")

gates = Table(
    "gates",
    metadata,
    Column("id", Id, nullable=False, comment="UUID version 7 of this version."),
    Column("version", Integer, nullable=False),
    Column("project", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("definition", JSON(none_as_null=True), comment="NULL: the gate was deleted with this version."),
    PrimaryKeyConstraint("project", "name", "version"),
)

gate_checks = Table(
    "gate_checks",
    metadata,
    Column("id", Id, nullable=False, comment="UUID version 7."),
    Column("evaluation_id", Id, nullable=False),
    Column("baseline_id", Id),
    Column("version", Integer, nullable=False),
    Column("project", Text, nullable=False),
    Column("gate", Text, nullable=False),
    Column("verdict", OneOf(Verdict), nullable=False),
    Column("answer", JSON, nullable=False),
    PrimaryKeyConstraint("project", "id"),
)
Index("ix_gate_checks_gate", gate_checks.c.project, gate_checks.c.gate, gate_checks.c.id)

# Keys of all projects together: that of a request is known once its key is found.
api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Id, primary_key=True, comment="UUID version 7."),
    Column("project", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("scopes", ARRAY(OneOf(Scope)), nullable=False),
    Column("digest", LargeBinary, nullable=False, comment="SHA-256 of the secret."),
    Column("expires_at", DateTime(timezone=True)),
    Column("revoked_at", DateTime(timezone=True)),
    Column("last_used_at", DateTime(timezone=True)),
    Column("previous_digest", LargeBinary, comment="Good until previous_until."),
    Column("previous_until", DateTime(timezone=True)),
    Column("rate", Text),
    Column("daily_quota", BigInteger),
)
Index("ix_api_keys_project", api_keys.c.project, api_keys.c.id)

key_usage = Table(
    "key_usage",
    metadata,
    Column("key_id", Id, nullable=False),
    Column("day", Date, nullable=False, comment="UTC."),
    Column("requests", BigInteger, nullable=False),
    PrimaryKeyConstraint("key_id", "day"),
)

project_usage = Table(
    "project_usage",
    metadata,
    Column("project", Text, nullable=False),
    Column("day", Date, nullable=False, comment="UTC."),
    Column("evaluations", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("compute_seconds", Double, nullable=False),
    PrimaryKeyConstraint("project", "day"),
)

# Written in the transaction of what they tell.
audit_entries = Table(
    "audit_entries",
    metadata,
    Column("id", Id, nullable=False, comment="UUID version 7."),
    Column("key_id", Id),
    Column("project", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", OneOf(Change), nullable=False),
    Column("kind", OneOf(Kind), nullable=False),
    Column("object", Text, nullable=False),
    Column("request_id", Text),
    PrimaryKeyConstraint("project", "id"),
)

# What was kept under the key of a request, written in the transaction that keeps it: the primary key makes a second one
# impossible (docs/adr/0008-idempotency-keys.md).
idempotency_results = Table(
    "idempotency_results",
    metadata,
    Column("expires_at", DateTime(timezone=True), nullable=False),
    Column("item", Integer, nullable=False, comment="0: the whole of the request; from 1: an item of a batch."),
    Column("status", SmallInteger, nullable=False),
    Column("project", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("fingerprint", LargeBinary, nullable=False, comment="SHA-256 of what was asked."),
    Column("kind", OneOf(Kind), nullable=False),
    Column("object", Text, nullable=False, comment="Id of what was kept; the version of a gate."),
    PrimaryKeyConstraint("project", "key", "item"),
)
Index("ix_idempotency_results_expires_at", idempotency_results.c.expires_at)

# Who is at work on a request with a key.
idempotency_claims = Table(
    "idempotency_claims",
    metadata,
    Column("claim", Id, nullable=False),
    Column("leased_until", DateTime(timezone=True), nullable=False),
    Column("project", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("fingerprint", LargeBinary, nullable=False),
    PrimaryKeyConstraint("project", "key"),
)

# Requests that are answered later. Who works on them, and which is next, procrastinate keeps in a schema of its own.
jobs = Table(
    "jobs",
    metadata,
    Column("id", Id, nullable=False, comment="UUID version 7."),
    Column("makes", Id, nullable=False, comment="Id of what it makes."),
    Column("key_id", Id),
    Column("queue_id", BigInteger, nullable=False, comment="Its id in procrastinate_jobs."),
    Column("started_at", DateTime(timezone=True)),
    Column("finished_at", DateTime(timezone=True)),
    Column("progress", Double, comment="NULL: not known."),
    Column("runs", Integer, nullable=False, comment="How often work on it has begun."),
    Column("lost", Integer, nullable=False, comment="How often it was never heard of again."),
    Column("cancel_requested", Boolean, nullable=False),
    Column("project", Text, nullable=False),
    Column("status", OneOf(JobStatus), nullable=False),
    Column("kind", Text, nullable=False),
    Column("method", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("query", Text, nullable=False),
    Column("headers", JSON, nullable=False),
    Column("actor", Text, nullable=False),
    Column("request_id", Text),
    Column("result", Text, comment="Address of what it made or computed."),
    Column("problem", JSON(none_as_null=True)),
    PrimaryKeyConstraint("project", "id"),
)
Index("ix_jobs_queued", jobs.c.project, postgresql_where=jobs.c.status == JobStatus.QUEUED)
Index("ix_jobs_finished", jobs.c.finished_at)

# The body of a request in pieces, so that nobody has to hold all of it; gone when its job has ended.
job_bodies = Table(
    "job_bodies",
    metadata,
    Column("job_id", Id, nullable=False),
    Column("place", Integer, nullable=False),
    Column("project", Text, nullable=False),
    Column("content", LargeBinary, nullable=False),
    PrimaryKeyConstraint("project", "job_id", "place"),
    ForeignKeyConstraint(["project", "job_id"], ["jobs.project", "jobs.id"], ondelete="CASCADE"),
)

job_results = Table(
    "job_results",
    metadata,
    Column("job_id", Id, nullable=False),
    Column("project", Text, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("content", LargeBinary, nullable=False),
    PrimaryKeyConstraint("project", "job_id"),
    ForeignKeyConstraint(["project", "job_id"], ["jobs.project", "jobs.id"], ondelete="CASCADE"),
)

webhooks = Table(
    "webhooks",
    metadata,
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
    Column("project", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("secret", Text, nullable=False),
    Column("events", ARRAY(OneOf(Event)), nullable=False),
    PrimaryKeyConstraint("project", "name"),
)

# Written in the transaction of what they tell.
webhook_deliveries = Table(
    "webhook_deliveries",
    metadata,
    Column("id", Id, nullable=False, comment="Of what happened to, sent as webhook-id."),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
    Column("next_at", DateTime(timezone=True), server_default=text("now()"), comment="NULL: not any more."),
    Column("delivered_at", DateTime(timezone=True)),
    Column("asked", Integer, nullable=False, server_default=text("1"), comment="How often it was asked for."),
    Column("attempts", Integer, nullable=False, server_default=text("0"), comment="Since it was last asked for."),
    Column("response_status", SmallInteger),
    Column("project", Text, nullable=False),
    Column("webhook", Text, nullable=False),
    Column("event", OneOf(Event), nullable=False),
    Column("status", OneOf(DeliveryStatus), nullable=False, server_default=text("'pending'")),
    Column("body", Text, nullable=False, comment="As it is sent and signed."),
    Column("error", Text),
    PrimaryKeyConstraint("project", "webhook", "id"),
    ForeignKeyConstraint(["project", "webhook"], ["webhooks.project", "webhooks.name"], ondelete="CASCADE"),
)
Index("ix_webhook_deliveries_created", webhook_deliveries.c.created_at)


def value_in_slot(slot: int) -> ColumnElement[float]:
    """Return the value of the metric in a slot as SQL: NULL where undefined or absent.

    A slot that has an index is written out, so that Postgres recognises its expression; any other is bound, so that
    one statement, compiled once, serves all metrics.
    """
    subscript: ColumnElement[int] = literal(slot, Integer)
    if slot <= len(HEADLINE):
        subscript = literal_column(str(slot), Integer)
    value = evaluations.c.metric_values[subscript]
    return func.nullif(value, literal_column("'NaN'::double precision"), type_=Double)


Index("ix_evaluations_model", evaluations.c.model_id, evaluations.c.id)
Index("ix_evaluations_model_name", evaluations.c.model_name_id, evaluations.c.id)
Index("ix_evaluations_dataset", evaluations.c.dataset_id, evaluations.c.id)
Index("ix_evaluations_dataset_model_name", evaluations.c.dataset_id, evaluations.c.model_name_id, evaluations.c.id)
# Holds the values too, so that two questions are answered from it alone: a leaderboard, which jumps to the greatest id
# of each model version, and a dataset sorted by any metric, which reads the dataset's part from end to end.
Index(
    "ix_evaluations_dataset_model",
    evaluations.c.dataset_id,
    evaluations.c.model_id,
    evaluations.c.id,
    postgresql_include=["metric_values"],
)
Index(
    "ix_evaluations_tags",
    evaluations.c.tags,
    postgresql_using="gin",
    postgresql_ops={"tags": "jsonb_path_ops"},
    postgresql_with={"gin_pending_list_limit": 256},
)
for _slot, _key in enumerate(HEADLINE, start=1):
    Index(f"ix_evaluations_{_key}", evaluations.c.dataset_id, value_in_slot(_slot), evaluations.c.id)
