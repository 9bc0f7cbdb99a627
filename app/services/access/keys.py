"""Keys as those know them who give them out."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from limits import parse_many

from app.domain.errors import InvalidInput, NotFound
from app.domain.evaluation import Page
from app.domain.identifiers import new_id
from app.domain.operations import ApiKey, AuditEntry, KeyFacts, KeyMade, NewKey
from app.services.access.tokens import make_token
from app.services.ports import KeyStore


class KeyService:
    """Use cases of keys. Everything happens within one project."""

    def __init__(self, store: KeyStore) -> None:
        self._store = store

    async def create(self, new: NewKey) -> KeyMade:
        """Make a key.

        Raises:
            InvalidInput: it would be expired already, or its rate is none.
        """
        if new.expires_at is not None and new.expires_at <= datetime.now(UTC):
            raise InvalidInput.at("/expires_at", "past", "expected a moment in the future")
        if new.rate is not None and not is_rate(new.rate):
            detail = "expected a rate such as 100/second, or several such as 100/second; 10000/hour"
            raise InvalidInput.at("/rate", "invalid_rate", detail)
        identifier = new_id()
        text, digest = make_token(identifier)
        key = ApiKey(
            id=identifier,
            name=new.name,
            project=new.project,
            scopes=tuple(dict.fromkeys(new.scopes)),
            digest=digest,
            expires_at=new.expires_at,
            rate=new.rate,
            daily_quota=new.daily_quota,
        )
        await self._store.add(key)
        return KeyMade(key=text, facts=key.shown)

    async def read(self, project: str, identifier: UUID) -> KeyFacts:
        """One key."""
        key = await self._store.get(project, identifier)
        if key is None:
            raise _missing(identifier)
        return key.shown

    async def page(self, project: str, limit: int, before: UUID | None) -> Page[KeyFacts, UUID]:
        """The keys of a project, latest first, revoked ones too."""
        page = await self._store.page(project, limit, before)
        return Page(tuple(key.shown for key in page.items), page.next_position)

    async def rotate(self, project: str, identifier: UUID, overlap_seconds: int) -> KeyMade:
        """Give a key another secret; the one before stays good for a while.

        Raises:
            NotFound: there is no such key, or it is revoked.
        """
        text, digest = make_token(identifier)
        until = datetime.now(UTC) + timedelta(seconds=overlap_seconds)
        key = await self._store.rotate(project, identifier, digest, until)
        if key is None:
            raise _missing(identifier)
        return KeyMade(key=text, facts=key.shown)

    async def revoke(self, project: str, identifier: UUID) -> None:
        """End a key for good. It stays in the list, with the moment.

        Raises:
            NotFound: there is no such key, or it is revoked already.
        """
        if not await self._store.revoke(project, identifier):
            raise _missing(identifier)

    async def audit(self, project: str, limit: int, before: UUID | None) -> Page[AuditEntry, UUID]:
        """What was changed in a project, latest first."""
        return await self._store.audit(project, limit, before)


def is_rate(text: str) -> bool:
    """Does it say how often, such as `100/second; 10000/hour`?"""
    try:
        return bool(parse_many(text))
    except ValueError:
        return False


def _missing(identifier: UUID) -> NotFound:
    return NotFound(f"there is no key {identifier}, or it is revoked")
