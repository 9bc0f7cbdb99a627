"""The examples of pipelines and of a dashboard, run as far as they can be run here."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs

import prevail
import pytest
import yaml

from examples import tumours
from examples.ci import step
from examples.grafana import leaderboard

ROOT = Path(__file__).resolve().parents[2]
PIPELINES = ROOT / "examples" / "ci"


@pytest.fixture
def environment(base_url: str, tmp_path: Path) -> dict[str, str]:
    """Predictions in the folder, and what a runner has."""
    tumours.main(tmp_path)
    for name, module in (("prevail", " -m prevail"), ("python", "")):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}"{module} "$@"\n')
        program.chmod(0o755)
    return {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "client" / "src"),
        "PREVAIL_URL": base_url,
        "no_proxy": "*",
    }


def called() -> dict[str, str]:
    """The command by which each pipeline runs the script."""
    gitlab = yaml.safe_load((PIPELINES / "gitlab.yml").read_text())["gate"]
    assert gitlab["allow_failure"] == {"exit_codes": 2}
    (hook,) = yaml.safe_load((PIPELINES / "pre-commit.yaml").read_text())["repos"][0]["hooks"]
    jenkins = re.findall(r"script: '([^']+)'", (PIPELINES / "Jenkinsfile").read_text())
    return {
        "gitlab": next(line for line in gitlab["script"] if "gate.sh" in line),
        "jenkins": jenkins[0],
        "pre-commit": hook["entry"],
    }


@pytest.mark.parametrize(
    "name", ["gitlab", *(pytest.param(name, marks=pytest.mark.slow) for name in ("jenkins", "pre-commit"))]
)
def test_pipelines_run_the_script(name: str, environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "prevail").rename(tmp_path / "program")  # the examples have a checkout of that name
    (tmp_path / "bin").mkdir()
    (tmp_path / "program").rename(tmp_path / "bin" / "prevail")
    (tmp_path / "prevail").symlink_to(ROOT)
    (tmp_path / "tumor-rf-8.csv").rename(tmp_path / "preds.csv")
    environment |= {
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{environment['PATH']}",
        "CI_COMMIT_SHA": name,
        "GIT_COMMIT": name,
    }
    with prevail.Client(environment["PREVAIL_URL"]) as client:
        client.put_gate("promotion", [{"metric": "h_mean", "min": 0.8}])
        client.evaluate(
            matrix=[[9, 1], [1, 9]], model="old", dataset="hartwig", split="test", tags={"stage": "champion"}
        )
    command = called()[name].replace("preds.parquet", "preds.csv")
    done = subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 0
    assert (tmp_path / "gate.md").is_file()


def test_the_job_of_kubernetes_ends_with_the_verdict(environment: dict[str, str], tmp_path: Path) -> None:
    job = yaml.safe_load((PIPELINES / "kubernetes.yaml").read_text())
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert job["spec"]["backoffLimit"] == 0
    assert {one["name"] for one in container["env"]} == {"PREVAIL_URL", "PREVAIL_API_KEY"}
    with prevail.Client(environment["PREVAIL_URL"]) as client:
        client.put_gate("promotion", [{"metric": "h_mean", "min": 0.8}])
    for number, code in ((8, 0), (7, 1)):
        file = str(tmp_path / f"tumor-rf-{number}.csv")
        command = [file if part == "/data/preds.parquet" else part for part in container["command"]]
        assert subprocess.run(command, env=environment, check=False).returncode == code


def test_a_step_raises_what_is_no_pass(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREVAIL_URL", environment["PREVAIL_URL"])
    with prevail.Client() as client:
        client.put_gate("promotion", [{"metric": "h_mean", "min": 0.8}])
        found = step.held(str(tmp_path / "tumor-rf-8.csv"), "rf:8", "hartwig")
        assert client.evaluation(found)["h_mean"].value == pytest.approx(0.9567670529348703)
    with pytest.raises(prevail.GateFailed):
        step.held(str(tmp_path / "tumor-rf-7.csv"), "rf:7", "hartwig")


class Forge(BaseHTTPRequestHandler):
    """The comments of pull request 5, as GitHub's API has them."""

    comments: ClassVar[list[dict[str, Any]]] = []
    allowed = True

    def _answer(self, body: object, status: int = 200) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def _text(self) -> str:
        assert self.headers["Authorization"] == "Bearer token"
        return str(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"])

    def do_GET(self) -> None:
        address, _, query = self.path.partition("?")
        assert address == "/repos/o/r/issues/5/comments"
        page = int(parse_qs(query)["page"][0])
        self._answer(self.comments[100 * (page - 1) : 100 * page])

    def do_POST(self) -> None:
        assert self.path == "/repos/o/r/issues/5/comments"
        text = self._text()
        if not self.allowed:
            self._answer({"message": "Resource not accessible by integration"}, 403)
            return
        self.comments.append({"id": len(self.comments), "body": text, "html_url": "new"})
        self._answer(self.comments[-1], 201)

    def do_PATCH(self) -> None:
        found = self.comments[int(self.path.removeprefix("/repos/o/r/issues/comments/"))]
        found |= {"body": self._text(), "html_url": "updated"}
        self._answer(found)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it
        pass


@pytest.fixture
def forge() -> Iterator[str]:
    Forge.comments, Forge.allowed = [{"id": n, "body": "by a person", "html_url": ""} for n in range(130)], True
    with ThreadingHTTPServer(("127.0.0.1", 0), Forge) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_the_action_keeps_one_comment_up_to_date(environment: dict[str, str], tmp_path: Path, forge: str) -> None:
    action = yaml.safe_load((PIPELINES / "action.yml").read_text())
    workflow = yaml.safe_load((PIPELINES / "github.yml").read_text())["jobs"]["gate"]["steps"]
    (given,) = [one["with"] for one in workflow if one.get("uses") == "./prevail/examples/ci"]
    assert given.keys() <= action["inputs"].keys()
    assert {name for name, one in action["inputs"].items() if one.get("required")} <= given.keys()
    assert given["api-key"] == "${{ secrets.PREVAIL_API_KEY }}"
    summary = tmp_path / "summary.md"
    runner = environment | {
        "GITHUB_ACTION_PATH": str(PIPELINES),
        "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_API_URL": forge,
        "GITHUB_REPOSITORY": "o/r",
    }
    said = {f"inputs.{name}": str(one.get("default", "")) for name, one in action["inputs"].items()}
    said |= {"inputs.dataset": "hartwig", "inputs.url": environment["PREVAIL_URL"], "github.event.number": "5"}
    said |= {"inputs.token": "token"}

    def run(number: int) -> list[int]:
        here = said | {"inputs.predictions": f"tumor-rf-{number}.csv", "inputs.model": f"rf:{number}"}
        codes = []
        for one in action["runs"]["steps"][1:]:  # the client is there
            env = {name: here[text.strip("${} ")] for name, text in one["env"].items()}
            shell = ["bash", "-eo", "pipefail", "-c", one["run"]]
            codes.append(subprocess.run(shell, cwd=tmp_path, env=runner | env, check=False).returncode)
        return codes

    with prevail.Client(environment["PREVAIL_URL"]) as client:
        client.put_gate("promotion", [{"metric": "h_mean", "min": 0.8}])
    assert run(7) == [1, 0]
    assert len(Forge.comments) == 131
    first = Forge.comments[130]["body"].splitlines()
    assert first[0].startswith("<!-- prevail gate=promotion dataset=hartwig")
    assert re.fullmatch(r"### \S+ fail \(exit 1\): gate `promotion`, version \d+", first[1])
    assert run(8) == [0, 0]
    assert len(Forge.comments) == 131
    assert Forge.comments[130]["html_url"] == "updated"
    assert " pass (exit 0): gate `promotion`" in Forge.comments[130]["body"].splitlines()[1]
    assert Forge.comments[130]["body"].count("<!-- prevail") == 1
    assert summary.read_text().count("<!-- prevail gate=promotion dataset=hartwig") == 2
    Forge.comments, Forge.allowed = [], False
    assert run(8) == [0, 1]


def test_the_script_ends_with_the_verdict(base_url: str, environment: dict[str, str], tmp_path: Path) -> None:
    def run(predictions: str, model: str, url: str = base_url) -> int:
        command = ["/bin/sh", str(PIPELINES / "gate.sh"), predictions, model, "tumours"]
        return subprocess.run(command, cwd=tmp_path, env={**environment, "PREVAIL_URL": url}, check=False).returncode

    with prevail.Client(base_url) as client:
        client.put_gate("promotion", [{"metric": "h_mean", "min": 0.8}])
        assert run("tumor-rf-8.csv", "rf:8") == 0
        assert run("tumor-rf-7.csv", "rf:7") == 1
        assert "<failure" in (tmp_path / "gate.xml").read_text()
        assert run("nowhere.csv", "rf:9") == 5
        board = client.leaderboard("tumours", split="test")
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
