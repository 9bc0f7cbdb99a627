"""Whether the store can be worked with, and how it fails."""

from dataclasses import dataclass
from typing import Protocol


class StoreUnavailableError(Exception):
    """The store did not answer. Whether a write under way was kept is unknown; a retry later is sensible."""


class StoreOverloadedError(Exception):
    """More writes are waiting than the store takes. Nothing of this one was kept; a retry later is sensible."""


class StoreFullError(Exception):
    """There is no space left where the store keeps its files. Nothing of what was to be written was kept."""


@dataclass(frozen=True, slots=True)
class StoreState:
    """Whether the store answers, and whether its schema is the one this release was written for.

    Attributes:
        reachable: The database answered.
        revision: Schema revision found there; None when there is none or it could not be read.
        expected: Schema revision of this release.
        newer: This release does not know the revision, so a newer one has migrated. Migrations let the release before
            go on beside them.
    """

    reachable: bool
    revision: str | None
    expected: str
    newer: bool = False

    @property
    def current(self) -> bool:
        """The schema is one that this release can work with."""
        return self.reachable and (self.newer or self.revision == self.expected)


class Readiness(Protocol):
    """Tells whether the store can be worked with."""

    async def check(self) -> StoreState:
        """Ask the database now; an unreachable one is an answer, not an error."""
        ...
