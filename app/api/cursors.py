"""Opaque cursors: where a page ended, bound to the filters it was asked with."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import orjson

from app.domain.errors import Fault, InvalidInput


def filters_digest(filters: Mapping[str, Any]) -> str:
    """A short digest of what a list was asked with."""
    return sha256(orjson.dumps(filters, option=orjson.OPT_SORT_KEYS, default=str)).hexdigest()[:12]


def encode_cursor(place: list[Any], filters: Mapping[str, Any]) -> str:
    """A cursor for the place at which a page ended."""
    return urlsafe_b64encode(orjson.dumps([filters_digest(filters), *place])).decode().rstrip("=")


def decode_cursor(cursor: str, filters: Mapping[str, Any], size: int) -> list[Any]:
    """The place, ``size`` values long.

    Raises:
        InvalidInput: no cursor of ours, or one of a list with other filters.
    """
    try:
        decoded = orjson.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError):
        decoded = None
    if not isinstance(decoded, list) or len(decoded) != size + 1:
        raise _invalid("expected the next_cursor of a page, got something else")
    digest, *place = decoded
    if digest != filters_digest(filters):
        raise _invalid("the cursor belongs to a list with other filters; send the same filters with every page")
    return place


def _invalid(detail: str) -> InvalidInput:
    return InvalidInput([Fault("?cursor", "invalid_cursor", detail)])
