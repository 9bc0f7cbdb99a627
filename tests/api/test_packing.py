"""Answers that come packed, and bodies that are sent so."""

import gzip
import json
from collections.abc import Callable

import httpx
import pytest

from app.api.wire.packing import preferred_coding
from app.api.wire.zstd import ZstdCompressor, ZstdDecompressor
from tests.api.answers import create, evaluation

LARGE = "/v1/metrics"


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("", None),
        ("gzip", "gzip"),
        ("x-gzip", "gzip"),
        ("zstd", "zstd"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip, zstd;q=1", "zstd"),
        ("gzip;q=1.0, zstd;q=0.5", "gzip"),
        ("GZIP;Q=0.1, ZSTD;Q=0.05", "gzip"),
        ("gzip ; q=0.4 , zstd ; q=0.3", "gzip"),
        ("zstd;q=0, gzip;q=0.001", "gzip"),
        ("gzip;q=0", None),
        ("gzip;q=0, zstd;q=0, *", None),
        ("*", "zstd"),
        ("*;q=0", None),
        ("zstd;q=0, *;q=0.5", "gzip"),
        ("identity", None),
        ("identity;q=1, gzip;q=0.5", None),
        ("identity;q=0.5, gzip;q=0.8", "gzip"),
        ("identity;q=0", None),
        ("br, deflate", None),
        ("zstd;q=often", None),
        ("zstd;q=nan, gzip;q=2", None),
        ("zstd;level=3", None),
        ("gzipped", None),
        (",,;;,", None),
    ],
)
def test_a_client_gets_what_it_likes_best(client: httpx.Client, accepted: str, coding: str | None) -> None:
    assert preferred_coding(accepted) == coding
    plain = client.get(LARGE, headers={"Accept-Encoding": "identity"}).content
    with client.stream("GET", LARGE, headers={"Accept-Encoding": accepted}) as reply:
        sent = b"".join(reply.iter_raw())
        assert reply.headers.get("content-encoding") == coding
        assert reply.headers["vary"] == "Accept-Encoding"
        assert int(reply.headers["content-length"]) == len(sent)
    unpack: dict[str | None, Callable[[bytes], bytes]] = {
        None: bytes,
        "gzip": gzip.decompress,
        "zstd": lambda packed: ZstdDecompressor().decompress(packed),
    }
    assert unpack[coding](sent) == plain


def test_small_answers_stay_plain(client: httpx.Client) -> None:
    reply = client.get("/v1/metrics/h_mean", headers={"Accept-Encoding": "zstd, gzip"})
    assert "content-encoding" not in reply.headers


def test_a_report_becomes_a_quarter(client: httpx.Client) -> None:
    matrix = [[50 if row == column else (row * column) % 3 for column in range(20)] for row in range(20)]
    path = f"/v1/evaluations/{create(client, evaluation(input={'kind': 'confusion_matrix', 'matrix': matrix}))['id']}"
    plain = client.get(path, headers={"Accept-Encoding": "identity"})
    with client.stream("GET", path, headers={"Accept-Encoding": "zstd"}) as reply:
        sent = b"".join(reply.iter_raw())
    assert len(sent) < len(plain.content) / 4
    assert reply.headers["etag"] == plain.headers["etag"]


def test_a_body_may_come_in_zstd(client: httpx.Client) -> None:
    body = json.dumps(evaluation(model="packed")).encode()
    packed = ZstdCompressor(level=1).compress(body, ZstdCompressor.FLUSH_FRAME)
    headers = {"Content-Type": "application/json", "Content-Encoding": "zstd"}
    reply = client.post("/v1/evaluations", content=packed, headers=headers)
    assert reply.status_code == 201
    again = client.post("/v1/evaluations", content=body, headers={"Content-Type": "application/json"})
    assert reply.json()["metrics"] == again.json()["metrics"]
    # In pieces of one byte, as a slow network brings it.
    pieces = (packed[place : place + 1] for place in range(len(packed)))
    assert client.post("/v1/evaluations", content=pieces, headers=headers).status_code == 201


def test_what_is_taken_is_said(client: httpx.Client) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "br"}
    reply = client.post("/v1/evaluations", content=b"{}", headers=headers)
    assert reply.status_code == 415
    assert reply.headers["accept-encoding"] == "gzip, zstd"
