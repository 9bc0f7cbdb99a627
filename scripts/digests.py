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
FILES: Final = ("Dockerfile", "docker-compose.yml", "docs/scale.md")
# `ARG BASE=` and `image:` of a tag; an image without one is built here.
_IMAGE: Final = re.compile(r"(?m)(ARG BASE=| image: )([\w./-]+):([\w.-]+)(@sha256:[0-9a-f]{64})?$")
_INDEX: Final = "application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json"


def digest(image: str, tag: str) -> str:
    """Digest of all platforms of an image, as Docker Hub has it now; raises httpx.HTTPError when it does not say."""
    name = image if "/" in image else f"library/{image}"
    with httpx.Client(timeout=30) as client:
        asked = {"service": "registry.docker.io", "scope": f"repository:{name}:pull"}
        token = client.get("https://auth.docker.io/token", params=asked).raise_for_status().json()["token"]
        headers = {"Authorization": f"Bearer {token}", "Accept": _INDEX}
        answer = client.head(f"https://registry-1.docker.io/v2/{name}/manifests/{tag}", headers=headers)
        found: str = answer.raise_for_status().headers["Docker-Content-Digest"]
    return found


def pinned(text: str) -> str:
    """The text of a file with the digest of every image."""
    return _IMAGE.sub(lambda found: f"{found[1]}{found[2]}:{found[3]}@{digest(found[2], found[3])}", text)


def main() -> int:
    """Write or check the digests; returns 1 when a file is not up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 when a digest is missing or old")
    chosen = parser.parse_args()
    changed = {}
    for name in FILES:
        before = (ROOT / name).read_text()
        after = pinned(before)
        if after != before:
            changed[name] = after
    for name, text in changed.items():
        print(f"{name} is not up to date" if chosen.check else f"{name} is written")
        if not chosen.check:
            (ROOT / name).write_text(text)
    return int(chosen.check and bool(changed))


if __name__ == "__main__":
    sys.exit(main())
