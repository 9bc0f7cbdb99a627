"""Opaque cursors: where a page ended, bound to the filters it was asked with."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from types import UnionType
from typing import Any

import orjson

from app.api.problems import InvalidQuery
from app.domain.errors import Fault


def filters_digest(filters: Mapping[str, Any]) -> str:
    """A short digest of what a list was asked with."""
    return sha256(orjson.dumps(filters, option=orjson.OPT_SORT_KEYS, default=str)).hexdigest()[:12]


def encode_cursor(place: list[Any], filters: Mapping[str, Any]) -> str:
    """A cursor for the place at which a page ended."""
    return urlsafe_b64encode(orjson.dumps([filters_digest(filters), *place])).decode().rstrip("=")


def decode_cursor(cursor: str, filters: Mapping[str, Any], types: tuple[type | UnionType, ...]) -> list[Any]:
    """The place, its values being of these types.

    Raises:
        InvalidQuery: no cursor of ours, or one of a list with other filters.
    """
    try:
        decoded = orjson.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError):
        decoded = None
    if not isinstance(decoded, list) or len(decoded) != len(types) + 1:
        raise invalid_cursor()
    digest, *place = decoded
    if not all(isinstance(value, kind) and "\x00" not in str(value) for value, kind in zip(place, types, strict=True)):
        raise invalid_cursor()
    if digest != filters_digest(filters):
        raise InvalidQuery(
            [
                Fault(
                    "cursor",
                    "cursor_of_another_list",
                    "the cursor belongs to a list with other filters; send the same filters and sort with every page",
                )
            ]
        )
    return place


def invalid_cursor() -> InvalidQuery:
    """What is no cursor of ours."""
    return InvalidQuery([Fault("cursor", "invalid_cursor", "expected the next_cursor of a page, got something else")])
