"""HEAD wherever GET is taken, and what an address says of the methods that it does not take."""

import re

import httpx

from tests.api.answers import check_problem, create, evaluation
from tests.bank import each
from tests.openapi import DOCUMENT

READ = [path for path, methods in DOCUMENT["paths"].items() if "get" in methods]
UNKNOWN = "01900000-0000-7000-8000-000000000001"
NAMED = {"name": "g", "key": "h_mean", "curve": "roc", "code": "x"}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def address(path: str) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: NAMED.get(found[1], UNKNOWN), path)


@each("path", [*READ, "/openapi.json", "/docs"])
def test_head_says_what_get_says(client: httpx.Client, path: str) -> None:
    read, asked = client.get(address(path)), client.head(address(path))
    assert asked.content == b""
    assert asked.status_code == read.status_code
    fixed = set(read.headers) - {"x-request-id", "date"}
    assert set(asked.headers) - {"x-request-id", "date"} == fixed
    if path != "/metrics":
        # That one is another each time.
        assert {name: asked.headers[name] for name in fixed} == {name: read.headers[name] for name in fixed}


def test_head_of_what_is_there(client: httpx.Client) -> None:
    path = f"/v1/evaluations/{create(client, evaluation())['id']}"
    read, asked = client.get(path), client.head(path)
    assert (asked.status_code, asked.content) == (200, b"")
    assert asked.headers["content-length"] == read.headers["content-length"]
    assert asked.headers["etag"] == read.headers["etag"]
    assert client.head(path, headers={"If-None-Match": read.headers["etag"]}).status_code == 304


@each("path", DOCUMENT["paths"])
def test_other_methods_are_refused_with_those_that_are_taken(client: httpx.Client, path: str) -> None:
    documented = {method.upper() for method in DOCUMENT["paths"][path]}
    taken = documented | {"OPTIONS"} | ({"HEAD"} if "GET" in documented else set())
    expected = ", ".join(method for method in METHODS if method in taken)
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "TRACE"} - taken:
        reply = client.request(method, address(path))
        check_problem(reply, 405, "method_not_allowed")
        assert reply.headers["allow"] == expected
    if "GET" not in taken:
        assert client.head(address(path)).status_code == 405
    options = client.options(address(path))
    assert (options.status_code, options.content, options.headers["allow"]) == (204, b"", expected)
