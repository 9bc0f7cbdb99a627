"""What the numbers mean, in a sentence and with the evidence for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self


class Severity(StrEnum):
    """How much a finding weighs."""

    CRITICAL = "critical"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something a reader of the numbers should know. ``message`` needs no statistics to be understood."""

    code: str
    severity: Severity
    message: str
    evidence: Mapping[str, Any]

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
