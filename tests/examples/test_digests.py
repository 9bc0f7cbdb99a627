"""Digests of images, asked of a small server that speaks the protocol of registries (OCI Distribution, 4.4)."""

import hashlib
import json
import re
import shutil
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from scripts import digests

MANIFESTS = re.compile(r"/v2/([\w./-]+)/manifests/([\w.:-]+)")
INDEX = "application/vnd.oci.image.index.v1+json"


class Registry(ThreadingHTTPServer):
    """Has an image of every name and tag, for whoever brings the token of its name.

    Attributes:
        built: Part of every image: another one is another image under the same tag.
        says: Whether it tells digests.
        gives: Whether it gives tokens.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.built, self.says, self.gives = 1, True, True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def manifest(self, name: str, tag: str, accepted: str) -> bytes:
        """That of all platforms for who takes it, else that of one."""
        kind = INDEX if INDEX in accepted else "application/vnd.oci.image.manifest.v1+json"
        return json.dumps({"mediaType": kind, "name": name, "tag": tag, "built": self.built}).encode()


class Answering(BaseHTTPRequestHandler):
    """Answers one request."""

    server: Registry

    def do_HEAD(self) -> None:
        """Answer as to GET, without the body."""
        self.do_GET()

    def do_GET(self) -> None:
        """Give a token, or a manifest."""
        address = urlsplit(self.path)
        if address.path == "/token":
            asked = {name: value for name, (value,) in parse_qs(address.query).items()}
            assert asked.keys() == {"service", "scope"}
            self.answer(200 if self.server.gives else 403, json.dumps({"token": f"for {asked['scope']}"}).encode())
            return
        found = MANIFESTS.fullmatch(address.path)
        if found is None:
            self.answer(404, b"{}")
            return
        scope = f"repository:{found[1]}:pull"
        if self.headers["Authorization"] != f"Bearer for {scope}":
            challenge = f'Bearer realm="{self.server.url}/token",service="registry.example",scope="{scope}"'
            self.answer(401, b"{}", {"WWW-Authenticate": challenge})
            return
        body = self.server.manifest(found[1], found[2], self.headers["Accept"])
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        self.answer(200, body, {"Docker-Content-Digest": digest} if self.server.says else {})

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        """Send it."""
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that name images."""
    for name in digests.FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(digests.ROOT / name, tmp_path / name)
    monkeypatch.setattr(digests, "ROOT", tmp_path)
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, registry: Registry, *options: str) -> int:
    monkeypatch.setattr(sys, "argv", ["digests", "--registry", registry.url, *options])
    return digests.main()


def contents(clone: Path) -> list[str]:
    return [(clone / name).read_text() for name in digests.FILES]


def test_a_digest_is_that_of_what_the_registry_gives(registry: Registry) -> None:
    found = digests.digest(registry.url, "python", "3.13-slim")
    headers = {"Authorization": "Bearer for repository:library/python:pull", "Accept": INDEX}
    manifest = httpx.get(f"{registry.url}/v2/library/python/manifests/3.13-slim", headers=headers).content
    assert found == f"sha256:{hashlib.sha256(manifest).hexdigest()}"
    assert json.loads(manifest)["mediaType"] == INDEX
    assert digests.digest(registry.url, "motoserver/moto", "latest") != found


def test_every_image_gets_its_digest(registry: Registry, clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(clone)
    assert run(monkeypatch, registry, "--check") == 1
    assert contents(clone) == before
    assert run(monkeypatch, registry) == 0
    images = [
        line
        for text in contents(clone)
        for line in text.splitlines()
        if re.match(r"(ARG BASE=| +image: )", line) and not line.endswith("image: prevail")
    ]
    assert len(images) >= 4
    for line in images:
        found = re.search(r"(?:=| )([\w./-]+):([\w.-]+)@(sha256:[0-9a-f]{64})$", line)
        assert found is not None, line
        assert found[3] == digests.digest(registry.url, found[1], found[2])
    assert run(monkeypatch, registry, "--check") == 0
    # The tags are moved to other images.
    registry.built += 1
    assert run(monkeypatch, registry, "--check") == 1
    assert run(monkeypatch, registry) == 0
    assert run(monkeypatch, registry, "--check") == 0


@pytest.mark.parametrize("lacks", ["says", "gives"])
def test_without_a_digest_nothing_is_written(
    registry: Registry, clone: Path, monkeypatch: pytest.MonkeyPatch, lacks: str
) -> None:
    before = contents(clone)
    setattr(registry, lacks, False)
    assert run(monkeypatch, registry) == 2
    assert contents(clone) == before
