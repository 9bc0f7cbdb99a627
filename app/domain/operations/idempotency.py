"""What is remembered of a request with an `Idempotency-Key`."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from app.domain.operations.access import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptResult:
    """What was kept for a request, or for one item of it.

    Attributes:
        item: 0 is the request as a whole; an item of a batch counts from 1.
        fingerprint: Of the request: another one with the same key is refused.
        kind: Of the object that was kept.
        object: Its id; the version of a gate.
        status: As it was answered.
    """

    item: int
    fingerprint: bytes
    kind: Kind
    object: str
    status: int

    @property
    def identifier(self) -> UUID:
        """The id of the object, for all kinds but gates."""
        return UUID(self.object)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimOutcome:
    """What became of the claim of a key.

    Attributes:
        taken: The key is ours until the lease ends.
        holder: Fingerprint of the request that has it otherwise; None when nobody has.
        results: What was kept under the key and has not expired, by whatever request.
    """

    taken: bool
    holder: bytes | None = None
    results: Sequence[KeptResult] = ()
