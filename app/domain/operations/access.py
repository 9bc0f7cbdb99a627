"""Who may do what: API keys, the projects they act in, and the trail of what was changed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

from app.domain.identifiers import time_of
from app.domain.members import LEFT_OUT, SPREAD

DEFAULT_PROJECT: Final = "default"
PROJECT_NAME: Final = r"^[a-z0-9][a-z0-9._-]{0,63}$"
_PROJECT = re.compile(PROJECT_NAME)


def is_project_name(name: str) -> bool:
    """Can a project be called so?"""
    return _PROJECT.fullmatch(name) is not None


class Scope(StrEnum):
    """What a key may do; each includes those before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


_ORDER: Final = tuple(Scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """A key that is to be made.

    Attributes:
        rate: How often it may be used, such as `100/second; 10000/hour`; None is what the service gives to all.
        daily_quota: Requests per day (UTC); None is no limit.
    """

    name: str
    project: str
    scopes: Sequence[Scope]
    expires_at: datetime | None = None
    rate: str | None = None
    daily_quota: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key as it is remembered: of its secret only the digest.

    Attributes:
        digest: SHA-256 of the secret.
        previous_digest: That of the secret before the last rotation, good until `previous_until`.
        used_today: Requests of this day (UTC) that were counted when the key was read.
    """

    id: UUID
    name: str
    project: str
    scopes: tuple[Scope, ...]
    digest: bytes
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    previous_digest: bytes | None = None
    previous_until: datetime | None = None
    rate: str | None = None
    daily_quota: int | None = None
    used_today: int = 0

    def is_good_at(self, moment: datetime) -> bool:
        """Neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or moment < self.expires_at)

    def allows(self, scope: Scope) -> bool:
        """Has it this scope, or one that includes it?"""
        return any(_ORDER.index(own) >= _ORDER.index(scope) for own in self.scopes)

    @property
    def shown(self) -> "KeyFacts":
        """What others are told of it."""
        return KeyFacts(
            id=self.id,
            name=self.name,
            project=self.project,
            scopes=self.scopes,
            prefix=key_prefix(self.id),
            created_at=time_of(self.id),
            expires_at=self.expires_at,
            revoked_at=self.revoked_at,
            last_used_at=self.last_used_at,
            rate=self.rate,
            daily_quota=self.daily_quota,
        )


def key_prefix(identifier: UUID) -> str:
    """How a key begins, which tells it from others and is no secret."""
    return f"pv_{identifier.hex}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFacts:
    """An API key; its secret is shown once, when it is made.

    Attributes:
        project: The project it acts in.
        prefix: How the key begins.
        expires_at: `null` when it never does.
        revoked_at: `null` where it was not revoked.
        last_used_at: Accurate to some seconds; `null` when it was never used.
        rate: How often it may be used; `null` is the rate of the service.
        daily_quota: Requests per day (UTC); `null` is no limit.
    """

    id: UUID
    name: str
    project: str
    scopes: Sequence[Scope]
    prefix: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    rate: str | None
    daily_quota: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyMade:
    """An API key with its secret.

    Attributes:
        key: What goes into the header `Authorization`, after `Bearer`. It is not stored, and shown only in this answer.
    """

    key: str
    facts: KeyFacts = field(metadata=SPREAD)


@dataclass(frozen=True, slots=True)
class Actor:
    """Who changes something.

    Attributes:
        name: Of the key when it was used; `local` where no key was needed, `command line`.
        key: Its id; None where there was none.
        request: Id of the request.
    """

    name: str
    key: UUID | None = None
    request: str | None = None


class Change(StrEnum):
    """What was done."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    ROTATED = "rotated"
    REVOKED = "revoked"
    CANCELLED = "cancelled"
    RETRIED = "retried"


class Kind(StrEnum):
    """What it was done to."""

    EVALUATION = "evaluation"
    COMPARISON = "comparison"
    GATE = "gate"
    CHECK = "check"
    KEY = "key"
    JOB = "job"
    WEBHOOK = "webhook"
    DELIVERY = "delivery"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """Who did what to which object, and when.

    Attributes:
        actor: Name of the key when it was used; `local` where none was needed, `command line` for a command.
        key: Id of the key.
        object: Id of what was changed; the name of a gate.
        request_id: Id of the request, as in the log.
    """

    id: UUID
    at: datetime
    actor: str
    key: UUID | None = field(metadata=LEFT_OUT)
    action: Change
    kind: Kind
    object: str
    request_id: str | None = field(metadata=LEFT_OUT)
