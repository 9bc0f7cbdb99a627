"""The text of an API key: its id, by which it is found, and a secret of 256 random bits, of which the digest is kept.

A digest that takes long (Argon2, scrypt) protects secrets that can be guessed. This one cannot, so one round of SHA-256
is as good and costs a microsecond.
"""

import re
import secrets
from hashlib import sha256
from typing import NamedTuple
from uuid import UUID

from app.domain.operations import key_prefix

_TOKEN = re.compile(r"pv_([0-9a-f]{32})_([A-Za-z0-9_-]{43})")


class Token(NamedTuple):
    """A key that came with a request."""

    id: UUID
    digest: bytes


def make_token(identifier: UUID) -> tuple[str, bytes]:
    """A new key of this id, and the digest of its secret."""
    secret = secrets.token_urlsafe(32)
    return f"{key_prefix(identifier)}_{secret}", sha256(secret.encode()).digest()


def read_token(text: str) -> Token | None:
    """The parts of a key; None when it has not the form of one."""
    match = _TOKEN.fullmatch(text)
    if match is None:
        return None
    return Token(UUID(hex=match[1]), sha256(match[2].encode()).digest())
