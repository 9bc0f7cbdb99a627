"""Protocols of what the services need from outside: the store, data by reference, an engine, a sender of webhooks."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, Protocol
from uuid import UUID

import pyarrow as pa
from numpy.typing import NDArray

from app.domain.data import DataListing, DataReference
from app.domain.decisions import (
    CheckFilter,
    ComparisonFilter,
    ComparisonRecord,
    ComparisonSummary,
    GateCheck,
    GateVersion,
)
from app.domain.evaluation import (
    AlikeEvaluations,
    DatasetRef,
    EvaluationQuery,
    EvaluationRecord,
    EvaluationSummary,
    ModelRef,
    Page,
    Position,
    Standing,
    ValueCondition,
)
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import Samples
from app.domain.inventory import DatasetFacts, ModelFacts
from app.domain.members import HIDDEN, named
from app.domain.operations import (
    AuditEntry,
    Delivery,
    DeliveryRetry,
    DeliveryStatus,
    Event,
    Job,
    JobEnd,
    JobResult,
    JobStatus,
    KeptRequest,
    KeptResult,
    KeyFacts,
    Order,
    Outgoing,
    SendResult,
    Task,
    Used,
    WebhookEvent,
    WebhookFacts,
)
from app.kernel.streamed.rows import Rows


@dataclass(frozen=True, slots=True)
class StoreState:
    """State of the store: reachable or not, and its schema beside that of this release.

    Attributes:
        reachable: The database answered.
        revision: Schema revision found there; `null` when there is none or it could not be read.
        expected: Schema revision of this release.
        newer: This release does not know the revision, so a newer one has migrated. Migrations let the release before
            go on beside them.
    """

    reachable: bool
    revision: str | None = field(metadata=named("schema"))
    expected: str = field(metadata=named("expected_schema"))
    newer: bool = field(default=False, metadata=HIDDEN)

    @property
    def current(self) -> bool:
        """The schema is one that this release can work with."""
        return self.reachable and (self.newer or self.revision == self.expected)


class EvaluationStore(Protocol):
    """The memory of evaluations. Nothing of one project is ever seen or changed from another.

    Every method raises StoreUnavailableError when the database cannot be reached, and those that write StoreFullError
    when it has no space left.
    """

    async def add(self, project: str, record: EvaluationRecord) -> None:
        """Keep a record; on return it is durable. One that is kept already, under the id of a job, stays as it is.

        Raises:
            Overloaded: too many writes are waiting.
        """

    async def add_all(self, project: str, records: Sequence[EvaluationRecord]) -> None:
        """Keep several records by one transaction; on return they are durable. Those that are kept stay as they are."""

    async def get(self, project: str, identifier: UUID) -> EvaluationRecord | None:
        """Return the record, or None when the project has none of that id."""

    async def get_many(self, project: str, identifiers: Sequence[UUID]) -> Mapping[UUID, EvaluationRecord]:
        """Return those of the records that the project has."""

    async def read_samples(self, project: str, identifier: UUID) -> Samples | None:
        """Return what is saved of the samples of an evaluation; raises NotFound if it was deleted meanwhile."""

    async def kept(self, project: str, identifier: UUID) -> tuple[bool, bool]:
        """Return whether samples are kept of an evaluation, and whether attributes are."""

    async def read_labels(self, project: str, identifiers: Sequence[UUID]) -> Mapping[UUID, Samples]:
        """Return the samples of those evaluations of which they were saved with ids, weights or groups: their
        ``labels``.
        """

    async def read_outputs(self, project: str, identifiers: Sequence[UUID]) -> Mapping[UUID, Samples]:
        """Return the samples of those evaluations of which they were saved, with their probabilities or scores."""

    async def read_part(self, project: str, identifier: UUID) -> Mapping[str, Any] | None:
        """Return what was said of samples that are not saved."""

    async def page(self, project: str, query: EvaluationQuery) -> Page[EvaluationSummary, Position]:
        """Return up to `query.limit` summaries in the order asked for."""

    async def former_models(self, project: str, dataset: DatasetRef) -> int:
        """Return how many model versions had an evaluation on a dataset and have none there since."""

    async def series(self, project: str, query: EvaluationQuery) -> Sequence[AlikeEvaluations]:
        """Return the oldest `query.limit` evaluations that pass, those that are alike together."""

    async def change_tags(
        self, project: str, identifier: UUID, tags: Mapping[str, str | None]
    ) -> EvaluationRecord | None:
        """Set tags, remove those that are None, and return the record as it is now, or None when there is none."""

    async def delete(self, project: str, identifier: UUID) -> bool:
        """Remove the record for good; False when there was none."""

    async def models(self, project: str, limit: int, after: ModelRef | None = None) -> Page[ModelRef, ModelRef]:
        """List the model versions that have an evaluation, by name, then version; those without one come last."""

    async def datasets(self, project: str, limit: int, after: DatasetRef | None = None) -> Page[DatasetRef, DatasetRef]:
        """List the datasets that have an evaluation, by name, version, split; those without one come last."""

    async def leaderboard(
        self,
        project: str,
        dataset: DatasetRef,
        metric: str,
        *,
        limit: int,
        higher_is_better: bool,
        where: tuple[ValueCondition, ...] = (),
    ) -> tuple[Standing, ...]:
        """Rank the latest evaluation of each model version on a dataset; undefined values last.

        A version or split of `dataset` that is None stands for all of them. A latest evaluation that does not satisfy
        `where` is left out; no older one takes its place.
        """


class Inventory(Protocol):
    """Facts of models and datasets, and the removal of many evaluations at once."""

    async def model(self, project: str, name: str) -> ModelFacts:
        """Return the facts of a model. Raises NotFound if it has no evaluation."""

    async def dataset(self, project: str, name: str) -> DatasetFacts:
        """Return the facts of a dataset. Raises NotFound if it has no evaluation."""

    async def count(self, project: str, query: EvaluationQuery) -> int:
        """Return the number of evaluations that pass."""

    async def newest(self, project: str, query: EvaluationQuery) -> UUID | None:
        """Return the newest evaluation that passes."""

    async def remove_some(self, project: str, query: EvaluationQuery) -> int:
        """Remove the oldest `query.limit` that pass, in one transaction; returns how many there were."""


class ComparisonStore(Protocol):
    """The memory of comparisons."""

    async def add(self, project: str, record: ComparisonRecord) -> None:
        """Keep a comparison; durable on return. One that is kept already stays as it is."""

    async def get(self, project: str, identifier: UUID) -> ComparisonRecord | None:
        """Return the comparison, or None when the project has none of that id."""

    async def delete(self, project: str, identifier: UUID) -> bool:
        """Remove the comparison for good; False when there was none."""

    async def page(
        self, project: str, asked: ComparisonFilter, limit: int, before: UUID | None = None
    ) -> Page[ComparisonSummary, UUID]:
        """List the comparisons of the project, latest first."""


class GateStore(Protocol):
    """The memory of gates and their checks. No version is ever changed or forgotten."""

    async def put(self, project: str, name: str, definition: Mapping[str, Any]) -> tuple[GateVersion, bool]:
        """Make the definition the latest version, unless it is that already; True when there was no such gate."""

    async def get(self, project: str, name: str, version: int | None = None) -> GateVersion | None:
        """Return a version, the latest by default. A deleted gate has no latest version; the older ones stay."""

    async def versions(self, project: str, name: str) -> Sequence[GateVersion]:
        """List all versions, latest first, those before a deletion too."""

    async def delete(self, project: str, name: str) -> bool:
        """End a gate; False when there is none."""

    async def page(self, project: str, limit: int, after: str | None = None) -> Page[GateVersion, str]:
        """List the latest versions by name."""

    async def add_check(self, project: str, check: GateCheck) -> None:
        """Keep a check; durable on return. One that is kept already stays as it is."""

    async def get_check(self, project: str, name: str, identifier: UUID) -> GateCheck | None:
        """Return a check of that gate."""

    async def checks(
        self, project: str, asked: CheckFilter, limit: int, before: UUID | None = None
    ) -> Page[GateCheck, UUID]:
        """List checks, latest first."""

    async def last_checks(self, project: str, names: Sequence[str]) -> Mapping[str, GateCheck]:
        """Return the latest check of each of the gates that have one."""


class Trail(Protocol):
    """The audit log, as far as it is cut."""

    async def projects(self) -> Sequence[str]:
        """The projects of which there are entries."""

    async def remove_some(self, project: str, before: datetime, most: int) -> int:
        """Remove the oldest entries of before a moment, so many at most; returns how many there were."""


class KeyLookup(Protocol):
    """Queries about keys before the project of a request is known."""

    async def any(self) -> bool:
        """Return True if there is a key in any project, also if it is revoked."""

    async def find(self, identifier: UUID, day: date) -> KeyFacts | None:
        """Return a key of whatever project, which is found out by it, with how often it was used on a day."""

    async def note_usage(self, used: Mapping[tuple[UUID, date], int], moment: datetime) -> None:
        """Add to how often keys were used on days, and set when they last were."""


class KeyStore(Protocol):
    """The memory of API keys, and of who changed what. No key is ever forgotten."""

    async def add(self, key: KeyFacts) -> None:
        """Keep a key; durable on return."""

    async def get(self, project: str, identifier: UUID) -> KeyFacts:
        """Return a key of the project. Raises NotFound."""

    async def page(self, project: str, limit: int, before: UUID | None = None) -> Page[KeyFacts, UUID]:
        """List the keys of the project, latest first."""

    async def rotate(self, project: str, identifier: UUID, digest: bytes, until: datetime) -> KeyFacts:
        """Put a digest in the place of the present one, which stays good until then.

        Raises:
            NotFound: there is no such key, or it is revoked or expired.
        """

    async def revoke(self, project: str, identifier: UUID) -> None:
        """End a key for good. It stays in the list, with the moment.

        Raises:
            NotFound: there is no such key, or it is revoked already.
        """

    async def audit(self, project: str, limit: int, before: UUID | None = None) -> Page[AuditEntry, UUID]:
        """List what was changed in the project, latest first."""


class Waits(Exception):
    """The task from a queue has to wait for so many seconds at least."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"it waits for {seconds:g} s")
        self.seconds = seconds


class WebhookStore(Protocol):
    """The memory of webhooks."""

    async def put(
        self, project: str, name: str, url: str, events: Sequence[Event], *, given: str | None, fresh: str
    ) -> tuple[WebhookFacts, bool]:
        """Make or change a webhook; True when there was none. A secret that is not given stays, or is the fresh one.

        Raises:
            TooManyWebhooks: there was none, and the project has as many as it may.
        """

    async def get(self, project: str, name: str) -> WebhookFacts:
        """Return the webhook of that name. Raises NotFound."""

    async def page(self, project: str, limit: int, after: str | None = None) -> Page[WebhookFacts, str]:
        """List the webhooks of the project by name."""

    async def delete(self, project: str, name: str) -> None:
        """End a webhook; what it was still to be told is not sent. Raises NotFound."""

    async def deliveries(
        self, project: str, name: str, status: DeliveryStatus | None, limit: int, before: UUID | None = None
    ) -> Page[Delivery, UUID]:
        """List what a webhook was told or is to be told, latest first; only what is so far, where that is said. Raises
        NotFound where there is no webhook of that name.
        """

    async def retry(self, project: str, name: str, identifier: UUID) -> DeliveryRetry:
        """Let a delivery be sent again, now, whatever became of it. Raises NotFound."""

    async def send(self, project: str, name: str, happening: WebhookEvent) -> DeliveryRetry:
        """Let one webhook be told of something, whatever it listens to. Raises NotFound."""

    async def retried(self, project: str, name: str, identifier: UUID) -> DeliveryRetry:
        """Return a delivery that was asked for again. Raises NotFound."""


class Outbox(Protocol):
    """Deliveries to the webhooks of all projects."""

    async def begin(self, order: Order) -> Outgoing | None:
        """Take a delivery in hand; None when there is nothing to send any more."""

    async def settle(
        self, outgoing: Outgoing, status: DeliveryStatus, sent: SendResult, pause: timedelta | None
    ) -> None:
        """Write down what became of an attempt, and in how long there is to be another."""


class KeyTakenError(Exception):
    """Another result is stored under the key of the request. Nothing of this one was stored."""


class IdempotencyStore(Protocol):
    """The memory of keys of requests. What is saved under them is written in the transaction that keeps it."""

    async def claim(
        self, project: str, key: str, fingerprint: bytes, claim: UUID, lease: timedelta
    ) -> Mapping[int, KeptResult]:
        """Claim a key, unless the whole of the request was saved already; returns what was saved under it, by item.

        Raises:
            IdempotencyKeyReused: the key belongs to another request.
            IdempotencyKeyInFlight: a request like this one is under way.
        """

    async def renew(self, project: str, key: str, claim: UUID, lease: timedelta) -> None:
        """Let a claim last for another lease."""

    async def release(self, project: str, key: str, claim: UUID) -> None:
        """End a claim."""

    async def results(self, project: str, key: str) -> Sequence[KeptResult]:
        """Return what was saved under a key and has not expired."""

    async def purge(self) -> None:
        """Forget what has expired, in all projects."""


class JobStore(Protocol):
    """The memory of jobs, and the queue in which they wait.

    Of those who work on one job only the last that began is listened to: what others say of it changes nothing.
    """

    async def require_room(self, project: str) -> None:
        """Go on only when one more job may wait.

        Raises:
            TooManyJobs: too many of the project do.
            Overloaded: too many of all do.
        """

    async def add(self, project: str, request: KeptRequest, body: BinaryIO) -> Job:
        """Keep a request with its body as a job of whoever acts, and put it into the queue, all or nothing. Raises as
        above too.
        """

    async def get(self, project: str, identifier: UUID) -> Job | None:
        """Return a job of the project."""

    async def page(
        self, project: str, status: JobStatus | None, limit: int, before: UUID | None = None
    ) -> Page[Job, UUID]:
        """List the jobs of the project, latest first; those of one status, where one is named."""

    async def result(self, project: str, identifier: UUID) -> JobResult | None:
        """Return what was computed, where it is kept with the job."""

    async def cancel(self, project: str, identifier: UUID) -> Job | None:
        """End a job that waits, or tell its worker to stop; None when the project has no such job under way."""

    async def begin(self, project: str, identifier: UUID) -> Task | None:
        """Take a job in hand; None when it has ended, which one that was cancelled does by this."""

    def body(self, project: str, identifier: UUID) -> AsyncIterator[bytes]:
        """Read the body of its request, piece by piece."""

    async def note_progress(self, task: Task, share: float) -> None:
        """Say how far it is."""

    async def put_back(self, task: Task, *, lost: bool = False) -> None:
        """Let it wait again; ``lost`` when it was lost with the process that it was computed in."""

    async def end(self, task: Task, end: JobEnd) -> None:
        """Say how it ended; from now on it has ended for good, and its request is forgotten."""


@dataclass(frozen=True, slots=True, eq=False)
class Archived:
    """An evaluation, with what was said of samples that are not saved, and of those that are the digests of their
    columns by what these are of, such as `truth`.
    """

    record: EvaluationRecord
    columns: Mapping[str, bytes]
    fold_sizes: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class SampleColumn:
    """One column of samples, of one evaluation or shared by several."""

    values: NDArray[Any]
    shared: bool


class ArchiveKind(StrEnum):
    """Records of a project that are exported beside evaluations."""

    COMPARISONS = "comparisons"
    GATES = "gates"
    CHECKS = "checks"


class Archive(Protocol):
    """All records of a project, read and written piece by piece: no transaction takes longer than one piece."""

    async def newest(self, project: str) -> UUID | None:
        """Return the newest evaluation."""

    async def evaluations(self, project: str, after: UUID, last: UUID, most: int) -> Sequence[Archived]:
        """Return the next evaluations by id up to one of them: at most so many, and fewer where they are large."""

    def columns(self, project: str, digests: Sequence[bytes]) -> AsyncIterator[Mapping[bytes, SampleColumn]]:
        """Return columns of samples in groups that are not large; those that are gone are left out."""

    async def answers(self, kind: ArchiveKind, project: str, after: Any, most: int) -> Sequence[Mapping[str, Any]]:
        """Return the next rows of a kind as JSON, in the order of their `place`."""

    async def add_evaluations(
        self, project: str, found: Sequence[Archived], column: Callable[[bytes], NDArray[Any]]
    ) -> int:
        """Keep those that are not there yet, with their samples; returns how many these were."""

    async def add_answers(self, kind: ArchiveKind, project: str, rows: Sequence[Mapping[str, Any]]) -> int:
        """Keep the rows that are not there yet; returns how many these were.

        Raises:
            ArchiveConflictError: one is there, and another.
            AttributeError, KeyError, TypeError, ValueError: a row is none of ours.
        """


class ArchiveConflictError(Exception):
    """A different record with the same identity exists already."""


class DataSource(Protocol):
    """Finds and opens data that requests name, where the operator allows it. Can be sent to another process."""

    def check(self, uri: str) -> bool:
        """Return True for data on this machine, which is quick to look at.

        Raises:
            DataNotAllowed: it lies where the operator does not allow it.
        """

    def files(self, reference: DataReference) -> DataListing:
        """The files that a reference names, in the order of their paths.

        Raises:
            DataNotAllowed: one of them lies where the operator does not allow it.
            InvalidInput: there are none, or too many, or it is no table that can be read.
            OSError: the place of storage does not answer.
        """


class SamplesElsewhere(Protocol):
    """Reads again what evaluations of named data were made of. Can be sent to another process."""

    def whole(self, record: EvaluationRecord, memory_bytes: int) -> MatrixInput:
        """The input with its samples, in columns of so much memory at most.

        Raises:
            DataNotAllowed: the operator does not allow it, or not any more.
            InvalidInput: it is not the data that was evaluated (`data_changed`), or cannot be read any more.
            TooLarge: it takes more.
        """

    def parts(self, record: EvaluationRecord, *, outputs: bool) -> Iterator[MatrixInput]:
        """The input in parts with their samples, of any number of rows: without weights, groups and ignored classes.
        ``outputs`` if their probabilities or scores are needed.

        Raises:
            DataNotAllowed, InvalidInput: as before.
            TooLarge: it has such.
        """


class OpenEngine(Protocol):
    """Holds rows until it is closed."""

    def take(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Rows:
        """Rows of batches, which are read once. Raises EngineError without room for them."""


class Engine(Protocol):
    """Opens where rows beyond memory are held and asked. Can be sent to another process."""

    def opened(self, folder: Path) -> AbstractContextManager[OpenEngine]:
        """An engine whose files are in a folder; at the end its rows are gone, and the files too."""


class UsageStore(Protocol):
    """Use of each project by day."""

    async def read(self, project: str, day: date) -> Used:
        """Return what a project has used on a day, by all workers."""

    async def add(self, used: Mapping[tuple[str, date], Used]) -> None:
        """Add to what projects have used on days."""
