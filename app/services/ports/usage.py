"""The memory of what projects use."""

from collections.abc import Mapping
from datetime import date
from typing import Protocol

from app.domain.operations.usage import Used


class UsageStore(Protocol):
    """What each project has used, by day."""

    async def read(self, project: str, day: date) -> Used:
        """Return what a project has used on a day, by all workers."""
        ...

    async def add(self, used: Mapping[str, Used], day: date) -> None:
        """Add to what projects have used on a day."""
        ...
