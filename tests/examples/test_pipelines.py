"""The examples of pipelines and of a dashboard, run as far as they can be run here."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import prevail
import pytest
import yaml
from pydantic import SecretStr

from app.settings import Settings
from examples import tumours
from examples.grafana import leaderboard
from tests.serving import Served

ROOT = Path(__file__).resolve().parents[2]
PIPELINES = ROOT / "examples" / "ci"


@pytest.fixture(scope="module")
def base_url(database_url: str) -> Iterator[str]:
    with Served(Settings(database_url=SecretStr(database_url))) as url:
        yield url


def commands(document: Any) -> list[str]:
    """The shell of a pipeline."""
    if "jobs" in document:
        return [step["run"] for job in document["jobs"].values() for step in job["steps"] if "run" in step]
    return [line for job in document.values() for line in job["script"]]


@pytest.mark.parametrize("name", ["github.yml", "gitlab.yml"])
def test_pipelines_can_be_read_and_run_the_script(name: str) -> None:
    document = yaml.safe_load((PIPELINES / name).read_text())
    called = [line for line in commands(document) if "gate.sh" in line]
    assert len(called) == 1
    script, *arguments = re.findall(r'"[^"]*"|\S+', called[0])[1:]
    assert (ROOT / script).is_file()
    assert len(arguments) == 4
    assert "PREVAIL_API_KEY: " not in (PIPELINES / name).read_text().replace("PREVAIL_API_KEY: ${{ secrets.", "")
    if name == "gitlab.yml":
        assert document["gate"]["allow_failure"] == {"exit_codes": 2}


def test_the_script_ends_with_the_verdict(base_url: str, tmp_path: Path) -> None:
    tumours.main(tmp_path)
    program = tmp_path / "prevail"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m prevail "$@"\n')
    program.chmod(0o755)
    summary = tmp_path / "summary.md"
    environment = {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "client" / "src"),
        "PREVAIL_URL": base_url,
        "GITHUB_STEP_SUMMARY": str(summary),
    }

    def run(predictions: str, model: str, url: str = base_url) -> int:
        command = ["/bin/sh", str(PIPELINES / "gate.sh"), predictions, model, "hartwig"]
        return subprocess.run(command, cwd=tmp_path, env={**environment, "PREVAIL_URL": url}, check=False).returncode

    with prevail.Client(base_url) as client:
        client.put_gate("promotion", [{"metric": "h_mean", "min": 0.8}])
        assert run("tumor-rf-8.csv", "rf:8") == 0
        assert run("tumor-rf-7.csv", "rf:7") == 1
        assert summary.read_text().count("<!-- prevail gate=promotion dataset=hartwig") == 2
        assert "<failure" in (tmp_path / "gate.xml").read_text()
        assert run("nowhere.csv", "rf:9") == 5
        board = client.leaderboard("hartwig", split="test")
        written = [*leaderboard.lines(board, 'a "b"', "h_mean")]
    assert [line.split()[:3] for line in written[:2]] == [
        ["#", "HELP", "prevail_leaderboard"],
        ["#", "TYPE", "prevail_leaderboard"],
    ]
    assert len(written) == 2 + 2 * 3
    first = re.fullmatch(r'prevail_leaderboard\{dataset="a \\"b\\"",.*,bound="value"\} ([0-9.]+)', written[2])
    assert first is not None
    assert float(first[1]) == board.items[0]["value"]


def test_the_dashboard_asks_for_what_is_exported() -> None:
    dashboard = json.loads((ROOT / "examples" / "grafana" / "dashboard.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert {expression.partition("{")[0] for expression in asked} == {"prevail_leaderboard"}
    assert {label for expression in asked for label in re.findall(r"(\w+)=", expression)} == {
        "dataset",
        "metric",
        "bound",
    }
