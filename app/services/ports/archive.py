"""What a project is exported from and imported into."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

from numpy.typing import NDArray

from app.domain.evaluation import EvaluationRecord


@dataclass(frozen=True, slots=True, eq=False)
class Archived:
    """An evaluation with the names of the columns of its samples.

    Attributes:
        record: Without samples; with what was said of samples that are not kept.
        columns: Digests by what they are of, such as `truth`; empty when no samples are kept.
        fold_sizes: Of the samples.
    """

    record: EvaluationRecord
    columns: Mapping[str, bytes]
    fold_sizes: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class SampleColumn:
    """One column of samples.

    Attributes:
        shared: Whether several evaluations have it.
    """

    values: NDArray[Any]
    shared: bool


class ArchiveKind(StrEnum):
    """What there is in a project beside evaluations."""

    COMPARISONS = "comparisons"
    GATES = "gates"
    CHECKS = "checks"


class Archive(Protocol):
    """All of a project, read and written piece by piece: no transaction takes longer than one piece."""

    async def newest(self, project: str) -> UUID | None:
        """Return the newest evaluation."""
        ...

    async def evaluations(self, project: str, after: UUID, last: UUID, most: int) -> Sequence[Archived]:
        """Return the next evaluations by id up to one of them: at most so many, and fewer where they are large."""
        ...

    def columns(self, project: str, digests: Sequence[bytes]) -> AsyncIterator[Mapping[bytes, SampleColumn]]:
        """Return columns of samples in groups that are not large; those that are gone are left out."""
        ...

    async def answers(self, kind: ArchiveKind, project: str, after: Any, most: int) -> Sequence[Mapping[str, Any]]:
        """Return the next rows of a kind as JSON, in the order of their `place`."""
        ...

    async def add_evaluations(
        self, project: str, found: Sequence[Archived], column: Callable[[bytes], NDArray[Any]]
    ) -> int:
        """Keep those that are not there yet, with their samples; returns how many these were."""
        ...

    async def add_answers(self, kind: ArchiveKind, project: str, rows: Sequence[Mapping[str, Any]]) -> int:
        """Keep the rows that are not there yet; returns how many these were.

        Raises:
            ArchiveConflictError: one is there, and another.
            AttributeError, KeyError, TypeError, ValueError: a row is none of ours.
        """
        ...


class ArchiveConflictError(Exception):
    """What is to be kept is there already, and is something else."""
