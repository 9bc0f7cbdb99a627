"""What is decided about evaluations and kept: comparisons, gates in versions, and checks of gates."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from app.domain.identifiers import time_of
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


@dataclass(frozen=True, slots=True)
class Gate:
    """One version of a gate; the definition is JSON as it was put."""

    id: UUID
    name: str
    version: int
    definition: Json

    @property
    def created_at(self) -> datetime:
        """When this version was put."""
        return time_of(self.id)


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
    def created_at(self) -> datetime:
        """When it was made."""
        return time_of(self.id)
