"""Signatures of what is sent to webhooks (Standard Webhooks, https://www.standardwebhooks.com, version v1)."""

import binascii
import hmac
import secrets
from base64 import b64decode, b64encode
from typing import Final

PREFIX: Final = "whsec_"
# Bytes of a secret, by the specification.
_LEAST, _USUAL, _MOST = 24, 32, 64


def make_secret() -> str:
    """A new secret."""
    return PREFIX + b64encode(secrets.token_bytes(_USUAL)).decode()


def is_secret(text: str) -> bool:
    """Is it a secret: `whsec_` and 24 to 64 bytes in Base64?"""
    try:
        return text.startswith(PREFIX) and _LEAST <= len(_bytes_of(text)) <= _MOST
    except binascii.Error:
        return False


def signed_headers(secret: str, identifier: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers that tell a receiver who sent a body, and when.

    Args:
        secret: Of the webhook.
        identifier: Of the message, the same whenever it is sent again.
        timestamp: Seconds since 1970, of this attempt.
        body: As it is sent.
    """
    content = f"{identifier}.{timestamp}.".encode() + body
    signature = b64encode(hmac.digest(_bytes_of(secret), content, "sha256")).decode()
    return {
        "webhook-id": identifier,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{signature}",
    }


def _bytes_of(secret: str) -> bytes:
    return b64decode(secret.removeprefix(PREFIX), validate=True)
