"""What is answered, and kept, of a run that was held against a gate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from app.domain.evaluation import DatasetRef, ModelRef
from app.domain.findings import Finding
from app.domain.members import LEFT_OUT
from app.kernel.compare.gates import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassVerdict:
    """The result of one class under a rule on all classes."""

    verdict: Verdict
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleResult:
    """What is said of one rule.

    Attributes:
        rule: As it was put.
        value: The metric, or candidate less baseline.
        level: Level of the limits, where it differs from that of the rule: they allow for all values that can fail by
            chance.
        method: How the interval was made.
        needed_samples: What would settle an open rule, if the values stayed.
        power: The chance with which so many samples settle it, where it is not about a half.
        decided_by: The class that decides.
    """

    rule: Mapping[str, Any]
    verdict: Verdict
    quantity: Literal["value", "difference"]
    value: float | None
    low: float | None
    high: float | None
    level: float | None = field(default=None, metadata=LEFT_OUT)
    method: str | None
    needed_samples: int | None
    power: float | None = field(default=None, metadata=LEFT_OUT)
    message: str
    candidate_value: float | None = field(default=None, metadata=LEFT_OUT)
    baseline_value: float | None = field(default=None, metadata=LEFT_OUT)
    decided_by: str | None = field(default=None, metadata=LEFT_OUT)
    each: Mapping[str, ClassVerdict] | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimumSamples:
    """The demand for a number of samples."""

    minimum_samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplesResult:
    """Are there as many samples as the gate asks for?

    Attributes:
        value: How many there are; `null` for weights and rates.
    """

    rule: MinimumSamples
    verdict: Verdict
    value: float | None
    low: float | None = None
    high: float | None = None
    needed_samples: int | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedGate:
    """Which gate it was."""

    name: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRun:
    """Which run it was.

    Attributes:
        matrix_digest: Digest of its matrix, which tells what was judged apart from what was sent later.
    """

    id: UUID
    model: ModelRef
    dataset: DatasetRef
    matrix_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckAnswer:
    """What a version of a gate says of an evaluation.

    Attributes:
        exit_code: pass 0, fail 1, inconclusive 2: for scripts.
        findings: Warnings where a rule uses a score that is not proper, and a proper score prefers the other run.
    """

    id: UUID
    created_at: datetime
    gate: CheckedGate
    evaluation: CheckedRun
    baseline: CheckedRun | None
    verdict: Verdict
    exit_code: Literal[0, 1, 2]
    results: Sequence[RuleResult | SamplesResult]
    findings: Sequence[Finding] | None = field(default=None, metadata=LEFT_OUT)
