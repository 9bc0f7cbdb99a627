"""Blocks of code of the documents, and shell carried out as it stands there."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTED_URL = "http://127.0.0.1:8000"
FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<content>.*?)^```$", re.MULTILINE | re.DOTALL)


def documents() -> Iterator[str]:
    """Every page that people read, without those of single metrics."""
    for folder in (".", "client", "docs", "docs/reference", "docs/adr", "examples", "examples/ci", "examples/figures"):
        yield from (str(path.relative_to(ROOT)) for path in sorted((ROOT / folder).glob("*.md")))


def blocks(document: str) -> list[tuple[str, str]]:
    """Language and content of each block."""
    text = (ROOT / document).read_text()
    return [(match["language"], match["content"]) for match in FENCE.finditer(text)]


def run(shell: str, base_url: str, *, folder: Path | None = None) -> str:
    """Run a block with the address of the service put in; any answer but a success fails it."""
    assert DOCUMENTED_URL in shell
    command = shell.replace(DOCUMENTED_URL, base_url).replace("curl ", "curl --fail-with-body --noproxy '*' ")
    command = f"uuidgen() {{ cat /proc/sys/kernel/random/uuid; }}\n{command}"
    done = subprocess.run(
        ["/bin/bash", "-euo", "pipefail", "-c", command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=folder,
    )
    assert done.returncode == 0, f"{shell}\n{done.stdout}\n{done.stderr}"
    return done.stdout
