"""Long answers that are sent in pieces say the same as if they were sent whole."""

import asyncio
import json
from typing import Any

import pytest
from starlette.datastructures import Headers
from starlette.types import Message

from app.api.wire.packing import Packed
from app.api.wire.pieces import Item, Written, item_file, list_response, write_items
from app.api.wire.zstd import ZstdDecompressor


def items_of(values: list[Any]) -> list[Item]:
    """Every third is in memory; those between them are in files, two in each, of which the last are turned around."""
    written = [json.dumps(value).encode() for value in values]
    items: list[Item] = [*written]
    for first in range(0, len(values) - 2, 3):
        file = item_file()
        for place, ends in enumerate(write_items(file, written[first : first + 2])):
            items[first + place] = Written(file, *ends)
    items[-3:-1] = items[-3:-1][::-1]
    return items


def answered(values: list[Any], accepted: str) -> tuple[list[Message], bytes]:
    sent: list[Message] = []

    async def receive() -> Message:
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(dict(message))

    scope = {"type": "http", "method": "POST", "headers": [(b"accept-encoding", accepted.encode())]}
    response = list_response("items", items_of(values), 207, {"X-Said": "this"})
    asyncio.run(Packed(response)(scope, receive, send))
    return sent, b"".join(message["body"] for message in sent[1:])


@pytest.mark.parametrize(("size", "pieces"), [(10, 1), (70_000, 12)])
def test_a_list_is_the_same_whole_and_in_pieces(size: int, pieces: int) -> None:
    values = [f"{place}" + "x" * size for place in range(30)]
    expected = {"items": [*values[:27], values[28], values[27], values[29]]}
    sent, content = answered(values, "identity")
    assert json.loads(content) == expected
    start, *bodies = sent
    headers = Headers(raw=start["headers"])
    assert (start["status"], headers["x-said"], headers["content-type"]) == (207, "this", "application/json")
    assert int(headers["content-length"]) == len(content)
    assert len(bodies) == pieces
    assert [one.get("more_body", False) for one in bodies] == [True] * (pieces - 1) + [False]


def test_pieces_are_packed() -> None:
    values = ["x" * 70_000] * 30
    sent, content = answered(values, "zstd")
    headers = Headers(raw=sent[0]["headers"])
    assert headers["content-encoding"] == "zstd"
    assert "content-length" not in headers
    assert json.loads(ZstdDecompressor().decompress(content)) == {"items": values}


def test_an_empty_list() -> None:
    assert list_response("items", [], 200, {}).body == b'{"items":[]}'
