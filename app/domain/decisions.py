"""Decisions about evaluations, as they are stored: comparisons, gates in versions, and checks of gates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Self
from uuid import UUID

from app.domain.evaluation import EvaluationName
from app.domain.identifiers import time_of
from app.domain.members import HIDDEN, LEFT_OUT, typed
from app.kernel.compare.gates import Verdict as Verdict

Json = Mapping[str, Any]


class PairVerdict(StrEnum):
    """Verdict on one value against another: of the first of two runs, or of a slice against its reference."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    UNDECIDED = "undecided"


class ComparisonKind(StrEnum):
    """The two kinds of comparison: two or more runs, or models across data sets."""

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
        evaluations: The runs; across datasets all models on the first, on the second, and so on.
        models: Name and version of what was compared, as in the answer: known also of runs that were removed since.
    """

    id: UUID
    created_at: datetime
    kind: ComparisonKind
    metrics: Sequence[str]
    evaluations: Sequence[Json] = field(metadata=typed(Sequence[EvaluationName]))
    models: Sequence[Json] = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class ComparisonFilter:
    """Filter of a list of comparisons: those of an evaluation, and of a model, by name or as ``name:version``."""

    evaluation: UUID | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class CheckFilter:
    """Filter of a list of checks: those of a gate, and of evaluations of a model, by name or as ``name:version``."""

    gate: str | None = None
    verdict: Verdict | None = None
    model: str | None = None


def model_readings(text: str) -> Sequence[Mapping[str, str]]:
    """Return the readings of a model that is named in one text: a name, or a name with a version behind a colon."""
    name, colon, version = text.rpartition(":")
    return ({"name": text}, {"name": name, "version": version}) if colon else ({"name": text},)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateVersion:
    """One version of a gate.

    Attributes:
        created_at: When this version was put.
        rules: As they were put, with the defaults of what was left out.
        minimum_samples: With fewer samples nothing passes.
        applies_to: The evaluations that it is for, by dataset, model or tags; others are refused.
    """

    name: str
    version: str
    created_at: datetime
    rules: Sequence[Mapping[str, Any]]
    minimum_samples: int | None = field(default=None, metadata=LEFT_OUT)
    applies_to: Json | None = field(default=None, metadata=LEFT_OUT)
    description: str | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedGate:
    """The version of the gate.

    Attributes:
        url: Address of the gate.
    """

    name: str
    url: str
    version: str

    @classmethod
    def of(cls, name: str, version: str) -> Self:
        """Name a version of a gate."""
        return cls(name=name, url=f"/v1/gates/{name}", version=version)


@dataclass(frozen=True, slots=True)
class GateCheck:
    """A check of an evaluation against one version of a gate, with the whole answer."""

    id: UUID
    gate: str
    version: int
    evaluation: UUID
    baseline: UUID | None
    verdict: Verdict
    answer: Json

    @property
    def shown(self) -> "CheckSummary":
        """The check as a list has it."""
        return CheckSummary(
            id=self.id,
            created_at=time_of(self.id),
            gate=CheckedGate.of(self.gate, str(self.version)),
            evaluation=EvaluationName.within(self.answer["evaluation"]),
            baseline=None if self.answer["baseline"] is None else EvaluationName.within(self.answer["baseline"]),
            verdict=self.verdict,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSummary:
    """A check in a list.

    Attributes:
        evaluation: As the check names it: known also when it was removed since.
        baseline: `null` when no rule compares with one.
    """

    id: UUID
    created_at: datetime
    gate: CheckedGate
    evaluation: Json = field(metadata=typed(EvaluationName))
    baseline: Json | None = field(metadata=typed(EvaluationName | None))
    verdict: Verdict
