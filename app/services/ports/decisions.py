"""The memory of comparisons, gates and checks."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from app.domain.decisions import ComparisonRecord, ComparisonSummary, Gate, GateCheck
from app.domain.evaluation import Page


class ComparisonStore(Protocol):
    """The memory of comparisons."""

    async def add(self, project: str, record: ComparisonRecord) -> None:
        """Keep a comparison; durable on return. One that is kept already stays as it is."""
        ...

    async def get(self, project: str, identifier: UUID) -> ComparisonRecord | None:
        """Return the comparison, or None when the project has none of that id."""
        ...

    async def page(self, project: str, limit: int, before: UUID | None = None) -> Page[ComparisonSummary, UUID]:
        """List the comparisons of the project, latest first."""
        ...


class GateStore(Protocol):
    """The memory of gates and their checks. No version is ever changed or forgotten."""

    async def put(self, project: str, name: str, definition: Mapping[str, Any]) -> tuple[Gate, bool]:
        """Make the definition the latest version, unless it is that already; True when there was no such gate."""
        ...

    async def get(self, project: str, name: str, version: int | None = None) -> Gate | None:
        """Return a version, the latest by default. A deleted gate has no latest version; the older ones stay."""
        ...

    async def versions(self, project: str, name: str) -> Sequence[Gate]:
        """List all versions, latest first, those before a deletion too."""
        ...

    async def delete(self, project: str, name: str) -> bool:
        """End a gate; False when there is none."""
        ...

    async def page(self, project: str, limit: int, after: str | None = None) -> Page[Gate, str]:
        """List the latest versions by name."""
        ...

    async def add_check(self, project: str, check: GateCheck) -> None:
        """Keep a check; durable on return. One that is kept already stays as it is."""
        ...

    async def get_check(self, project: str, name: str, identifier: UUID) -> GateCheck | None:
        """Return a check of that gate."""
        ...

    async def checks(self, project: str, name: str, limit: int, before: UUID | None = None) -> Page[GateCheck, UUID]:
        """List the checks of a gate, latest first."""
        ...

    async def last_checks(self, project: str, names: Sequence[str]) -> Mapping[str, GateCheck]:
        """Return the latest check of each of the gates that have one."""
        ...
