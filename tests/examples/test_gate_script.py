"""The script of docs/gates.md, run as it is printed there."""

import os
import re
import subprocess
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "gates.md"
SHELLS = ("/bin/sh", "/bin/bash")


def run(shell: str, url: str, candidate: str, champion: str) -> "subprocess.CompletedProcess[str]":
    found = re.findall(r"^```sh\n(.*?)^```$", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    assert len(found) == 1
    return subprocess.run(
        [shell, "-c", found[0]],
        env={"PATH": os.defpath, "PREVAIL": url, "CANDIDATE": candidate, "CHAMPION": champion, "no_proxy": "*"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def keep(client: httpx.Client, matrix: list[list[int]]) -> str:
    body = {
        "model": {"name": "m"},
        "dataset": {"name": "d"},
        "input": {"kind": "confusion_matrix", "matrix": matrix},
    }
    return str(client.post("/v1/evaluations", json=body).raise_for_status().json()["id"])


@pytest.mark.parametrize("shell", SHELLS)
def test_the_exit_code_is_the_verdict(base_url: str, shell: str) -> None:
    with httpx.Client(base_url=base_url, timeout=60) as client:
        gate = {"rules": [{"metric": "accuracy", "min": 0.8}]}
        client.put("/v1/gates/promotion", json=gate).raise_for_status()
        champion = keep(client, [[500, 500], [500, 500]])
        for matrix, code in (([[950, 50], [50, 950]], 0), ([[500, 500], [500, 500]], 1), ([[8, 2], [2, 8]], 2)):
            done = run(shell, base_url, keep(client, matrix), champion)
            assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_gate_that_cannot_be_asked_has_a_code_of_its_own(base_url: str, shell: str) -> None:
    missing = str(uuid4())
    away = run(shell, "http://127.0.0.1:9", missing, missing)
    assert away.returncode == 3
    assert "the gate could not be asked: no answer from http://127.0.0.1:9" in away.stderr
    assert "curl: (7)" in away.stderr
    refused = run(shell, base_url, missing, missing)
    assert refused.returncode == 3
    assert '"code":"not_found"' in refused.stderr
    no_service = run(shell, f"{base_url}/elsewhere", missing, missing)
    assert no_service.returncode == 3
    assert "the gate could not be asked" in no_service.stderr
