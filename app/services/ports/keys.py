"""The memory of API keys, and the trail of who changed what."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from app.domain.evaluation import Page
from app.domain.operations.access import ApiKey, AuditEntry


class Trail(Protocol):
    """The trail of changes, as far as it is cut."""

    async def projects(self) -> Sequence[str]:
        """The projects of which there are entries."""
        ...

    async def remove_some(self, project: str, before: datetime, most: int) -> int:
        """Remove the oldest entries of before a moment, so many at most; returns how many there were."""
        ...


class KeyLookup(Protocol):
    """What is asked of keys before the project of a request is known."""

    async def any(self) -> bool:
        """Whether there is a key in any project, revoked ones too."""
        ...

    async def find(self, identifier: UUID) -> ApiKey | None:
        """Return a key of whatever project: which one is to be found out by it."""
        ...

    async def note_usage(self, used: Mapping[UUID, int], moment: datetime) -> None:
        """Add to how often keys were used on this day, and when they last were."""
        ...


class KeyStore(Protocol):
    """The memory of API keys, and of who changed what. No key is ever forgotten."""

    async def add(self, key: ApiKey) -> None:
        """Keep a key; durable on return."""
        ...

    async def get(self, project: str, identifier: UUID) -> ApiKey | None:
        """Return a key of the project."""
        ...

    async def page(self, project: str, limit: int, before: UUID | None = None) -> Page[ApiKey, UUID]:
        """List the keys of the project, latest first."""
        ...

    async def rotate(self, project: str, identifier: UUID, digest: bytes, until: datetime) -> ApiKey | None:
        """Put a digest in the place of the present one, which stays good until then; None when there is no good key."""
        ...

    async def revoke(self, project: str, identifier: UUID) -> bool:
        """End a key; False when there is no good one."""
        ...

    async def audit(self, project: str, limit: int, before: UUID | None = None) -> Page[AuditEntry, UUID]:
        """List what was changed in the project, latest first."""
        ...
