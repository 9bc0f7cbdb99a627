"""Answers that come packed, and bodies that are sent so."""

import gzip
import json

import httpx
import pytest

from tests.api.answers import create, evaluation
from tests.bank import each

LARGE = "/v1/metrics"


@each(
    ("accepted", "coding"),
    [
        *(("", None), ("gzip", "gzip"), ("gzip, deflate, br, zstd", "gzip"), ("zstd", None), ("identity", None)),
        *(("gzip;q=0", None), ("GZIP ; Q=0.000, *", None), ("br, gzip;q=0.0", None), ("gzip;q=0.001", "gzip")),
        *(("deflate, gzip;q=1.0, *;q=0", "gzip"), ("gzip;q=x", None)),
    ],
)
def test_a_client_gets_gzip_where_it_takes_it(client: httpx.Client, accepted: str, coding: str | None) -> None:
    plain = client.get(LARGE, headers={"Accept-Encoding": "identity"}).content
    with client.stream("GET", LARGE, headers={"Accept-Encoding": accepted}) as reply:
        sent = b"".join(reply.iter_raw())
        assert reply.headers.get("content-encoding") == coding
        assert reply.headers["vary"] == "Accept-Encoding"
        assert int(reply.headers["content-length"]) == len(sent)
    assert (gzip.decompress(sent) if coding else sent) == plain


def test_of_a_header_that_comes_twice_the_first_counts(client: httpx.Client) -> None:
    twice = [("Accept-Encoding", "gzip;q=0"), ("Accept-Encoding", "br")]
    assert "content-encoding" not in client.get(LARGE, headers=twice).headers
    body = json.dumps(evaluation()).encode()
    coded = [("Content-Encoding", "gzip"), ("Content-Encoding", "identity"), ("Content-Type", "application/json")]
    assert client.post("/v1/evaluations", content=gzip.compress(body), headers=coded).status_code == 201


def test_small_answers_stay_plain(client: httpx.Client) -> None:
    reply = client.get("/v1/metrics/h_mean", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in reply.headers


def test_a_report_becomes_a_quarter(client: httpx.Client) -> None:
    matrix = [[50 if row == column else (row * column) % 3 for column in range(20)] for row in range(20)]
    path = f"/v1/evaluations/{create(client, evaluation(input={'kind': 'confusion_matrix', 'matrix': matrix}))['id']}"
    plain = client.get(path, headers={"Accept-Encoding": "identity"})
    with client.stream("GET", path, headers={"Accept-Encoding": "gzip"}) as reply:
        sent = b"".join(reply.iter_raw())
    assert len(sent) < len(plain.content) / 3
    assert reply.headers["etag"] == plain.headers["etag"]


def test_a_body_may_come_in_gzip(client: httpx.Client) -> None:
    body = json.dumps(evaluation(model="packed")).encode()
    packed = gzip.compress(body)
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    reply = client.post("/v1/evaluations", content=packed, headers=headers)
    assert reply.status_code == 201
    again = client.post("/v1/evaluations", content=body, headers={"Content-Type": "application/json"})
    assert reply.json()["metrics"] == again.json()["metrics"]
    # In pieces of one byte, as a slow network brings it.
    pieces = (packed[place : place + 1] for place in range(len(packed)))
    assert client.post("/v1/evaluations", content=pieces, headers=headers).status_code == 201


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip"])
def test_what_is_taken_is_said(client: httpx.Client, encoding: str) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
    reply = client.post("/v1/evaluations", content=b"{}", headers=headers)
    assert reply.status_code == 415
    assert reply.headers["accept-encoding"] == "gzip"
