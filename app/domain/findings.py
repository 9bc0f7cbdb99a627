"""Findings: notable facts about the numbers of a report, each as a sentence with its evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from app.domain.members import LEFT_OUT, named


class Severity(StrEnum):
    """Weight of a finding."""

    CRITICAL = "critical"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """A notable fact about the numbers. ``message`` needs no statistics to be understood.

    Attributes:
        metrics: What it bears on, where it is said beside rules on some metrics.
    """

    code: str
    severity: Severity
    message: str
    evidence: Mapping[str, Any]
    metrics: Sequence[str] | None = field(default=None, metadata=LEFT_OUT)

    @classmethod
    def critical(cls, code: str, message: str, **evidence: Any) -> Self:
        """Make a finding that makes the evaluation unfit for its purpose."""
        return cls(code, Severity.CRITICAL, message, evidence)

    @classmethod
    def warning(cls, code: str, message: str, **evidence: Any) -> Self:
        """Make a finding that changes what the numbers mean."""
        return cls(code, Severity.WARNING, message, evidence)

    @classmethod
    def note(cls, code: str, message: str, **evidence: Any) -> Self:
        """Make a finding that is good to know."""
        return cls(code, Severity.NOTE, message, evidence)

    @property
    def mark(self) -> "FindingMark":
        """The finding as a list shows it: its code, severity and class."""
        first = next(iter(self.evidence.get("classes", ())), None)
        label = first["class"] if isinstance(first, Mapping) else first
        return FindingMark(self.code, self.severity, self.evidence.get("class", label))


@dataclass(frozen=True, slots=True)
class FindingMark:
    """A finding in a list.

    Attributes:
        label: The class that it is about, the first of several; `null` where it is about all together.
    """

    code: str
    severity: Severity
    label: str | None = field(metadata=named("class"))
