"""Images of the Dockerfile and the compose files by digest: `python -m scripts.digests` asks their registry and writes
them, `--check` says whether what stands there is what the registry has.

A tag can be moved to another image, a digest cannot. It needs the network, so it is no part of `make check`.
"""

import argparse
import re
import sys
from pathlib import Path
from typing import Final

import httpx

ROOT: Final = Path(__file__).resolve().parents[1]
FILES: Final = ("Dockerfile", "docker-compose.yml", "docs/reference/scale.md")
# `ARG BASE=` and `image:` of a tag; an image without one is built here.
_IMAGE: Final = re.compile(r"(?m)(ARG BASE=| image: )([\w./-]+):([\w.-]+)(@sha256:[0-9a-f]{64})?$")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_PARAMETER: Final = re.compile(r'(\w+)="([^"]*)"')
_HUB: Final = "https://registry-1.docker.io"
_INDEX: Final = "application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json"


class NoDigest(Exception):
    """The registry does not say which digest an image has."""


def digest(registry: str, image: str, tag: str) -> str:
    """Digest of all platforms of an image, as a registry has it now: `sha256:` and 64 hexadecimal digits.

    Raises:
        NoDigest: it says none.
        httpx.HTTPError: it cannot be reached, or refuses.
    """
    name = image if "/" in image else f"library/{image}"
    address = f"{registry}/v2/{name}/manifests/{tag}"
    with httpx.Client(timeout=30, headers={"Accept": _INDEX}) as client:
        answer = client.head(address)
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            answer = client.head(address, headers={"Authorization": f"Bearer {_token(client, answer)}"})
    found = answer.raise_for_status().headers.get("Docker-Content-Digest", "")
    if _DIGEST.fullmatch(found) is None:
        raise NoDigest(f"{address}: expected a digest in the header Docker-Content-Digest, got {found!r}")
    return str(found)


def _token(client: httpx.Client, challenge: httpx.Response) -> str:
    """What opens what was refused: the challenge names who gives it, to everybody for a public image."""
    asked = dict(_PARAMETER.findall(challenge.headers.get("WWW-Authenticate", "")))
    if "realm" not in asked:
        raise NoDigest(f"{challenge.url}: refused, and nobody named who gives tokens")
    given = client.get(asked.pop("realm"), params=asked).raise_for_status().json()
    return str(given["token"])


def pinned(text: str, registry: str) -> str:
    """The text of a file with the digest of every image."""
    return _IMAGE.sub(lambda found: f"{found[1]}{found[2]}:{found[3]}@{digest(registry, found[2], found[3])}", text)


def main() -> int:
    """Write or check the digests; returns 1 when a file is not up to date, 2 when a digest is not to be had."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 when a digest is missing or old")
    parser.add_argument("--registry", default=_HUB, help="address of the registry, or of a mirror of it (%(default)s)")
    chosen = parser.parse_args()
    changed = {}
    try:
        for name in FILES:
            before = (ROOT / name).read_text()
            after = pinned(before, chosen.registry.rstrip("/"))
            if after != before:
                changed[name] = after
    except (NoDigest, httpx.HTTPError) as error:
        print(f"nothing is written: {error}", file=sys.stderr)
        return 2
    for name, text in changed.items():
        print(f"{name} is not up to date" if chosen.check else f"{name} is written")
        if not chosen.check:
            (ROOT / name).write_text(text)
    return int(chosen.check and bool(changed))


if __name__ == "__main__":
    sys.exit(main())
