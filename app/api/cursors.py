"""Pages of lists: opaque cursors, bound to the filters they were asked with."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from hashlib import sha256
from types import UnionType
from typing import Annotated, Any, Generic, TypeVar
from uuid import UUID

import orjson
from fastapi import Depends, Query
from starlette.responses import Response

from app.api.answers import json_response, member_names
from app.api.presentation import chosen_members, fields_of, kept_members
from app.api.problems import InvalidQuery
from app.domain.evaluation import Page

Item = TypeVar("Item")
Place = TypeVar("Place")
Limit = Annotated[int, Query(ge=1, le=200, description="Items per page.")]
Cursor = Annotated[str | None, Query(description="`next_cursor` of the previous page.")]


@dataclass(frozen=True, slots=True)
class Listing(Generic[Item]):
    """A page of items; `next_cursor` is null on the last page."""

    items: Sequence[Item]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class Items(Generic[Item]):
    """All items."""

    items: Sequence[Item]


@dataclass(frozen=True, slots=True)
class Paging:
    """A page of a list, as it is asked for.

    Attributes:
        members: Of the items; None keeps all.
    """

    limit: int
    cursor: str | None
    members: tuple[str, ...] | None

    async def page(
        self,
        read: Callable[[int, Any], Awaitable[Page[Any, Any]]],
        filters: Mapping[str, Any],
        *types: type | UnionType,
        place: Callable[..., Any] = lambda value: value,
    ) -> Response:
        """A response with the page; as `read_page`."""
        return self.answer(await read_page(read, self.limit, self.cursor, filters, *types, place=place))

    def answer(self, found: Listing[Any]) -> Response:
        """A response with a page."""
        if self.members is not None:
            found = Listing([kept_members(item, self.members) for item in found.items], found.next_cursor)
        return json_response(found)


def paging_of(shape: type) -> Any:
    """Return the parameters of a list whose items have this shape, to stand in `Annotated`."""
    known = member_names(shape)

    async def paging(
        limit: Limit = 50, cursor: Cursor = None, fields: Annotated[str | None, fields_of(known)] = None
    ) -> Paging:
        return Paging(limit, cursor, chosen_members(fields, known))

    return Depends(paging)


def place_in(
    cursor: str | None,
    filters: Mapping[str, Any],
    types: tuple[type | UnionType, ...],
    place: Callable[..., Place] = lambda value: value,
) -> Place | None:
    """The place where the page before ended: ``place`` makes it of values of these types. Raises InvalidQuery where the
    cursor is none of ours, or one of a list with other filters.
    """
    if cursor is None:
        return None
    try:
        decoded = orjson.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError):
        decoded = None
    if not isinstance(decoded, list) or len(decoded) != len(types) + 1:
        raise _invalid_cursor()
    digest, *values = decoded
    values = [_typed(value, kind) for value, kind in zip(values, types, strict=True)]
    if digest != filters_digest(filters):
        raise InvalidQuery.at(
            "cursor",
            "cursor_of_another_list",
            "the cursor belongs to a list with other filters; send the same filters and sort with every page",
        )
    return place(*values)


def listed(page: Page[Item, Any], filters: Mapping[str, Any]) -> Listing[Item]:
    """A page with its cursor, which is good for the same filters only."""
    place = page.next_position
    if place is None:
        return Listing(page.items, None)
    values = [getattr(place, field.name) for field in fields(place)] if is_dataclass(place) else [place]
    return Listing(page.items, encode_cursor(values, filters))


async def read_page(
    read: Callable[[int, Any], Awaitable[Page[Item, Any]]],
    limit: int,
    cursor: str | None,
    filters: Mapping[str, Any],
    *types: type | UnionType,
    place: Callable[..., Any] = lambda value: value,
) -> Listing[Item]:
    """The page of a list that a cursor leads to; ``read`` is told the limit and where the page before ended. Raises as
    `place_in` does.
    """
    return listed(await read(limit, place_in(cursor, filters, types, place)), filters)


def filters_digest(filters: Mapping[str, Any]) -> str:
    """A short digest of what a list was asked with."""
    return sha256(orjson.dumps(filters, option=orjson.OPT_SORT_KEYS, default=str)).hexdigest()[:12]


def encode_cursor(place: list[Any], filters: Mapping[str, Any]) -> str:
    """A cursor for the place at which a page ended."""
    return urlsafe_b64encode(orjson.dumps([filters_digest(filters), *place])).decode().rstrip("=")


def _typed(value: Any, kind: type | UnionType) -> Any:
    if kind is UUID and isinstance(value, str):
        try:
            value = UUID(value)
        except ValueError:
            raise _invalid_cursor() from None
    if isinstance(value, kind) and "\x00" not in str(value):
        return value
    raise _invalid_cursor()


def _invalid_cursor() -> InvalidQuery:
    return InvalidQuery.at("cursor", "invalid_cursor", "expected the next_cursor of a page, got something else")
