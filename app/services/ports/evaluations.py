"""The memory of evaluations and of their samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from app.domain.evaluation import (
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
from app.domain.inputs.samples import Samples
from app.domain.inventory import DatasetFacts, ModelFacts


class EvaluationStore(Protocol):
    """The memory of evaluations. Nothing of one project is ever seen or changed from another.

    Every method raises StoreUnavailableError when the database cannot be reached, and those that write StoreFullError
    when it has no space left.
    """

    async def add(self, project: str, record: EvaluationRecord) -> None:
        """Keep a record; on return it is durable. One that is kept already, under the id of a job, stays as it is.

        Raises:
            StoreOverloadedError: too many writes are waiting.
        """
        ...

    async def get(self, project: str, identifier: UUID) -> EvaluationRecord | None:
        """Return the record, or None when the project has none of that id."""
        ...

    async def get_many(self, project: str, identifiers: Sequence[UUID]) -> Mapping[UUID, EvaluationRecord]:
        """Return those of the records that the project has."""
        ...

    async def read_samples(self, project: str, identifier: UUID) -> Samples | None:
        """Return what is kept of the samples of an evaluation."""
        ...

    async def read_part(self, project: str, identifier: UUID) -> Mapping[str, Any] | None:
        """Return what was said of samples that are not kept."""
        ...

    async def page(self, project: str, query: EvaluationQuery) -> Page[EvaluationSummary, Position]:
        """Return up to `query.limit` summaries in the order asked for."""
        ...

    async def replace_tags(self, project: str, identifier: UUID, tags: Mapping[str, str]) -> EvaluationRecord | None:
        """Put `tags` in the place of all tags and return the record as it is now, or None when there is none."""
        ...

    async def delete(self, project: str, identifier: UUID) -> bool:
        """Remove the record for good; False when there was none."""
        ...

    async def models(self, project: str, limit: int, after: ModelRef | None = None) -> Page[ModelRef, ModelRef]:
        """List the model versions that have an evaluation, by name, then version; those without one come last."""
        ...

    async def datasets(self, project: str, limit: int, after: DatasetRef | None = None) -> Page[DatasetRef, DatasetRef]:
        """List the datasets that have an evaluation, by name, version, split; those without one come last."""
        ...

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
        """Rank the latest evaluation of each model version on a dataset; undefined values last, without a rank.

        A version or split of `dataset` that is None stands for all of them. A latest evaluation that does not satisfy
        `where` is left out; no older one takes its place.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class SampleLabels:
    """What is kept of the samples of an evaluation that came with ids or with weights.

    Attributes:
        ids: (n) all different, integers or text; None when only weights are known.
        truth: (n) codes into the labels of the evaluation.
        predicted: (n) the same.
        groups: (n) what each is one of, integers or text; None when they are independent.
        weights: (n), 0 or more; None is 1 each.
    """

    ids: NDArray[Any] | None
    truth: NDArray[np.int64]
    predicted: NDArray[np.int64]
    groups: NDArray[Any] | None = None
    weights: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, samples: Samples) -> Self | None:
        """Those of some samples; None without ids and weights."""
        if samples.ids is None and samples.weights is None:
            return None
        return cls(samples.ids, samples.truth, samples.predicted, samples.groups, samples.weights)

    @property
    def samples(self) -> Samples:
        """The same as samples of which nothing else is known."""
        return Samples(self.truth, self.predicted, None, self.ids, self.weights, groups=self.groups)


class PairedLabels(Protocol):
    """Remembers which sample was predicted as what, so that runs can be compared sample by sample."""

    async def read_labels(self, project: str, identifiers: Sequence[UUID]) -> Mapping[UUID, SampleLabels]:
        """Return the samples of those evaluations of which they were kept with ids or weights."""
        ...

    async def read_outputs(self, project: str, identifiers: Sequence[UUID]) -> Mapping[UUID, Samples]:
        """Return the samples of those evaluations of which they were kept, with their probabilities or scores."""
        ...


class Inventory(Protocol):
    """What there is of names, and the removal of many evaluations at once."""

    async def model(self, project: str, name: str) -> ModelFacts | None:
        """What there is of a model; None when it has no evaluation."""
        ...

    async def dataset(self, project: str, name: str) -> DatasetFacts | None:
        """What there is of a dataset; None when it has no evaluation."""
        ...

    async def count(self, project: str, query: EvaluationQuery) -> int:
        """How many evaluations pass."""
        ...

    async def newest(self, project: str, query: EvaluationQuery) -> UUID | None:
        """Return the newest evaluation that passes."""
        ...

    async def remove_some(self, project: str, query: EvaluationQuery) -> int:
        """Remove the oldest `query.limit` that pass, in one transaction; returns how many there were."""
        ...
