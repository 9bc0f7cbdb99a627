"""A project exported, dropped and imported: every list, report, comparison and check is what it was."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from app import cli
from app.settings import Authentication, Settings
from tests.api.answers import Json, create, evaluation
from tests.api.generated.kept import PROBABILITIES
from tests.serving import Served

PROJECT = "moved"
TRUTH = [index % 3 for index in range(60)]
CALLED = [(index * 7 % 5) % 3 for index in range(60)]
INPUTS: dict[str, Json] = {
    "matrix": {"kind": "confusion_matrix", "matrix": [[50, 3, 2], [4, 40, 1], [0, 0, 0]], "labels": ["a", "ü", "c d"]},
    "counts": {"kind": "binary_counts", "tp": 40, "fn": 10, "fp": 5, "tn": 45},
    "rates": {"kind": "confusion_matrix", "matrix": [[0.9, 0.1], [0.2, 0.8]], "normalized": True},
    "weights": {"kind": "confusion_matrix", "matrix": [[1.25, 0.1], [1 / 3, 1e-7]]},
    "predictions": {"kind": "predictions", "y_true": TRUTH, "y_pred": CALLED, "sample_ids": list(range(60))},
    "named": {
        "kind": "predictions",
        "y_true": TRUTH,
        "y_pred": TRUTH[::-1],
        "sample_ids": [f"s{i}" for i in range(60)],
    },
    "weighted": {
        "kind": "predictions",
        "y_true": TRUTH,
        "y_pred": CALLED,
        "sample_weight": [0.1 + index / 7 for index in range(60)],
    },
    "groups": {"kind": "predictions", "y_true": TRUTH, "y_pred": CALLED, "group_ids": [i // 3 for i in range(60)]},
    "probabilities": PROBABILITIES,
    "scores": {
        "kind": "scores",
        "y_true": [index % 2 for index in range(40)],
        "scores": [(index * 13 % 17) / 7 - 1 for index in range(40)],
        "threshold": 0.1,
        "labels": [0, 1],
    },
    "folds": {"kind": "folds", "folds": [{"kind": "confusion_matrix", "matrix": [[9, k], [k, 7]]} for k in (1, 2, 3)]},
    "multilabel": {
        "kind": "multilabel",
        "labels": ["x", "y", "z"],
        "y_true": [[index % 2, index % 3 == 0, 1] for index in range(30)],
        "y_pred": [[index % 2, index % 4 == 0, 0] for index in range(30)],
    },
    "clustering": {"kind": "clustering", "y_true": TRUTH, "y_pred": CALLED},
    "ranking": {
        "kind": "ranking",
        "query_ids": [index // 5 for index in range(30)],
        "relevance": [index % 3 for index in range(30)],
        "scores": [(index * 7 % 11) / 3 for index in range(30)],
    },
}
NOT_RETAINED = ("probabilities", "weighted", "groups")


@dataclass(frozen=True)
class Done:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


Prevail = Callable[..., Done]


@pytest.fixture
def prevail(database_url: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Prevail:
    """Runs a command on the database of the tests."""
    monkeypatch.setenv("PREVAIL_DATABASE_URL", database_url)

    def run(*arguments: str) -> Done:
        capfd.readouterr()
        code = cli.main(arguments)
        out, err = capfd.readouterr()
        return Done(code, out, err)

    return run


@pytest.fixture(scope="module")
def client(database_url: str) -> Iterator[httpx.Client]:
    settings = Settings(database_url=SecretStr(database_url), authentication=Authentication.off)
    headers = {"X-Prevail-Project": PROJECT}
    with Served(settings) as url, httpx.Client(base_url=url, timeout=60, headers=headers) as opened:
        yield opened


@pytest.fixture(scope="module")
def kept(client: httpx.Client) -> list[Json]:
    made = [create(client, _numbered(name, source)) for name, source in INPUTS.items()]
    bodies = [_numbered(name, INPUTS[name]) | {"options": {"retain": "none"}} for name in NOT_RETAINED]
    made += [create(client, body) for body in bodies]
    # A second run on the same test set, and one of long ago.
    made.append(create(client, _numbered("probabilities", PROBABILITIES)))
    made.append(create(client, _numbered("old", INPUTS["matrix"]) | {"created_at": "2020-02-03T04:05:06.789Z"}))
    return made


def _numbered(name: str, source: Json) -> Json:
    return evaluation(model=f"m/{name}", dataset=f"d {name}", input=source, tags={"kind": name})


def everything(client: httpx.Client, kept: list[Json], answers: list[str]) -> dict[str, Any]:
    """All that can be read of the project."""
    paths = [
        *(f"/v1/evaluations/{run['id']}" for run in kept),
        *(f"/v1/evaluations?limit=200&sort={sort}" for sort in ("-created_at", "h_mean", "-log_loss", "-accuracy")),
        "/v1/evaluations?where=accuracy>0.5&limit=200",
        "/v1/models?limit=200",
        "/v1/datasets?limit=200",
        "/v1/models/m/probabilities",
        "/v1/datasets/d probabilities",
        "/v1/leaderboard?dataset=d probabilities",
        "/v1/comparisons",
        "/v1/gates",
        "/v1/gates/g",
        "/v1/gates/g/versions",
        "/v1/gates/g/checks",
        *answers,
    ]
    found = {}
    for path in paths:
        reply = client.get(path)
        assert reply.status_code == 200, reply.text
        found[path] = reply.content
    return found


def test_a_project_comes_back_whole(client: httpx.Client, kept: list[Json], prevail: Prevail, tmp_path: Path) -> None:
    by_name = {run["tags"]["kind"]: run["id"] for run in kept}
    runs = [run["id"] for run in kept if run["tags"]["kind"] == "probabilities"]
    answers = [f"/v1/evaluations/{by_name['scores']}/curves/roc", f"/v1/evaluations/{runs[0]}/curves/calibration"]
    comparison = client.post("/v1/comparisons", json={"evaluations": [runs[0], runs[2]]})
    answers.append(f"/v1/comparisons/{comparison.json()['id']}")
    for least in (0.1, 0.2):
        client.put("/v1/gates/g", json={"rules": [{"metric": "h_mean", "min": least}]}).raise_for_status()
    check = client.post("/v1/gates/g/checks", json={"evaluation": by_name["matrix"], "baseline": by_name["folds"]})
    answers.append(f"/v1/gates/g/checks/{check.json()['id']}")
    client.put("/v1/gates/ended", json={"rules": [{"metric": "h_mean", "min": 0.1}]}).raise_for_status()
    client.delete("/v1/gates/ended").raise_for_status()
    before = everything(client, kept, answers)
    fine = prevail("check", "--project", PROJECT)
    assert fine.code == 0, fine.out + fine.err
    assert f"evaluations of {PROJECT}" in fine.out

    exported = prevail("export", str(tmp_path / "x"), "--project", PROJECT)
    assert exported.code == 0, exported.err
    assert f"{len(kept)} evaluations, 1 comparisons, 4 gates, 1 checks" in exported.out
    again = prevail("export", str(tmp_path / "x"), "--project", PROJECT)
    assert again.out == exported.out

    # Into a project of its own: the same ids, and nothing of them is that of the other.
    copied = prevail("import", str(tmp_path / "x"), "--project", "copied")
    assert copied.code == 0, copied.err
    client.headers["X-Prevail-Project"] = "copied"
    assert everything(client, kept, answers) == before
    client.headers["X-Prevail-Project"] = PROJECT

    assert client.delete("/v1/evaluations?created_after=1970-01-01").json()["n_evaluations"] == len(kept)
    assert client.get("/v1/evaluations").json()["items"] == []
    for added in (len(kept), 0):
        imported = prevail("import", str(tmp_path / "x"))
        assert imported.code == 0, imported.err
        assert imported.out.startswith(f"Added {added} evaluations, 0 comparisons, 0 gates, 0 checks;")
        assert everything(client, kept, answers) == before
    for project in (PROJECT, "copied"):
        fine = prevail("check", "--project", project)
        assert fine.code == 0, fine.out
    entries = client.get("/v1/audit?limit=200").json()["items"]
    brought = [entry for entry in entries if entry["actor"] == "command line"]
    assert {(entry["kind"], entry["action"]) for entry in brought} == {("evaluation", "created")}
    assert sorted(entry["object"] for entry in brought) == sorted(run["id"] for run in kept)


def test_what_cannot_be_done_is_said(prevail: Prevail, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("mine")
    for arguments, words in (
        (("export", str(tmp_path), "--project", "none"), "has something else"),
        (("import", str(tmp_path)), "there is no manifest"),
    ):
        refused = prevail(*arguments)
        assert refused.code != 0
        assert words in refused.err
    empty = prevail("export", str(tmp_path / "empty"), "--project", "none")
    assert "0 evaluations" in empty.out
    assert prevail("import", str(tmp_path / "empty")).code == 0
    other = prevail("export", str(tmp_path / "empty"), "--project", "another")
    assert "expected an export of another" in other.err
