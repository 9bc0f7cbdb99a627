"""What is decided about evaluations and kept: comparisons, gates in versions, and checks of gates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from app.domain.identifiers import time_of
from app.domain.members import HIDDEN, LEFT_OUT
from app.kernel.compare.gates import Verdict

Json = Mapping[str, Any]


class ComparisonKind(StrEnum):
    """What was compared."""

    RUNS = "runs"
    ACROSS_DATASETS = "across_datasets"


@dataclass(frozen=True, slots=True)
class ComparisonRecord:
    """A comparison with its whole answer, which outlives the evaluations that it is about."""

    id: UUID
    kind: ComparisonKind
    answer: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonSummary:
    """A comparison in a list.

    Attributes:
        metrics: What was compared, as in the answer.
        evaluations: Ids of the runs; across datasets of all models on the first, on the second, and so on.
        models: Name and version of what was compared, as in the answer: known also of runs that were removed since.
    """

    id: UUID
    created_at: datetime
    kind: ComparisonKind
    metrics: Sequence[str]
    evaluations: Sequence[UUID]
    models: Sequence[Json] = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class Gate:
    """One version of a gate; the definition is JSON as it was put."""

    id: UUID
    name: str
    version: int
    definition: Json

    @property
    def shown(self) -> "GateVersion":
        """What others are told of it."""
        return GateVersion(name=self.name, version=self.version, created_at=time_of(self.id), **self.definition)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateVersion:
    """One version of a gate.

    Attributes:
        created_at: When this version was put.
        rules: As they were put, with the defaults of what was left out.
        minimum_samples: With fewer samples nothing passes.
    """

    name: str
    version: int
    created_at: datetime
    rules: Sequence[Mapping[str, Any]]
    minimum_samples: int | None = field(default=None, metadata=LEFT_OUT)
    description: str | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True)
class GateCheck:
    """What a version of a gate said of an evaluation; the answer is kept whole."""

    id: UUID
    gate: str
    version: int
    evaluation: UUID
    baseline: UUID | None
    verdict: Verdict
    answer: Json

    @property
    def shown(self) -> "CheckSummary":
        """What a list shows of it."""
        return CheckSummary(
            id=self.id,
            created_at=time_of(self.id),
            version=self.version,
            evaluation=self.evaluation,
            baseline=self.baseline,
            verdict=self.verdict,
            run=self.answer["evaluation"],
            compared_with=self.answer.get("baseline"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSummary:
    """A check in a list.

    Attributes:
        version: Version of the gate.
        baseline: `null` when no rule compares with one.
        run: The evaluation as the answer names it, with its model and dataset: known also when it was removed since.
        compared_with: The same of the baseline.
    """

    id: UUID
    created_at: datetime
    version: int
    evaluation: UUID
    baseline: UUID | None
    verdict: Verdict
    run: Json = field(metadata=HIDDEN)
    compared_with: Json | None = field(metadata=HIDDEN)
