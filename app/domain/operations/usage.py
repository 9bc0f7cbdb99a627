"""What a project has used on a day, and what it may use."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Used:
    """What was used of each quota.

    Attributes:
        bytes: Of bodies with evaluations that were kept.
        compute_seconds: Of arithmetic, of requests and of jobs.
    """

    evaluations: int = 0
    bytes: int = 0
    compute_seconds: float = 0.0

    def __add__(self, other: "Used") -> "Used":
        return Used(
            self.evaluations + other.evaluations,
            self.bytes + other.bytes,
            self.compute_seconds + other.compute_seconds,
        )


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """How much of a quota is used.

    Attributes:
        limit: For each day; `null` is no limit.
    """

    used: float
    limit: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a project has used today (UTC), accurate to some seconds.

    Attributes:
        since: When the day began.
        until: When it ends and quotas are free again.
        bytes: Of bodies with evaluations that were kept.
        compute_seconds: Of arithmetic, of requests and of jobs.
    """

    since: datetime
    until: datetime
    evaluations: QuotaUse
    bytes: QuotaUse
    compute_seconds: QuotaUse
