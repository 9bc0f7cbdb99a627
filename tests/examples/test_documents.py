"""Every example of the documents is carried out, or it is said why not."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
import prevail
import pytest

from tests.examples.documents import DOCUMENTED_URL, blocks, documents, run

# Not carried out here, and why.
ELSEWHERE = {
    "README.md": "`make run` and `make test` start what runs this; its requests: test_examples.py",
    "CONTRIBUTING.md": "what a developer calls, this test among it",
    "docs/reference/answers.md": "test_examples.py",
    "docs/client.md": "test_python_of_the_client",
    "docs/data.md": "test_data.py",
    "docs/reference/errors.md": "recorded answers: tests/golden/test_documented.py",
    "docs/reference/export.md": "the commands: tests/cli; the files: tests/transfer",
    "docs/gates.md": "the script: test_gate_script.py; test_the_gate",
    "docs/history.md": "the command: tests/client/test_command.py",
    "docs/mlflow.md": "tests/client/test_mlflow.py",
    "docs/reference/operations.md": "needs Docker, a database server of its own or Prometheus",
    "docs/reference/scale.md": "needs Docker, or a database server of its own: test_compose.py",
    "docs/slices.md": "tests/api/test_slices.py; the text is that of examples/slices.py",
    "docs/tutorial.md": "test_tutorial.py",
    "docs/webhooks.md": "needs a key of the scope admin and a receiver: tests/outbound and tests/api have both",
    "examples/README.md": "test_examples.py",
}
MATRIX = {"kind": "confusion_matrix", "matrix": [[5, 1], [2, 4]]}


@pytest.fixture(scope="module")
def kept(base_url: str) -> str:
    """The id of an evaluation, which stands where documents say ID."""
    body = {"model": {"name": "documented"}, "dataset": {"name": "d"}, "input": MATRIX}
    return str(httpx.post(f"{base_url}/v1/evaluations", json=body, trust_env=False).raise_for_status().json()["id"])


REQUESTS = [
    (document, content)
    for document in (
        "docs/entities.md",
        "docs/reference/figures.md",
        "docs/jobs.md",
        "docs/reference/probabilities.md",
        "docs/rankings.md",
        "docs/reference/reliability.md",
    )
    for language, content in blocks(document)
    if language in ("sh", "bash") and "curl" in content
]


@pytest.mark.parametrize(("document", "shell"), REQUESTS)
def test_a_request(document: str, shell: str, base_url: str, kept: str, tmp_path: Path) -> None:
    assert DOCUMENTED_URL in shell
    table = pd.DataFrame({"y_true": ["a", "b"] * 4, "a": [0.7, 0.2] * 4, "b": [0.3, 0.8] * 4})
    table.to_parquet(tmp_path / "test.parquet")
    table.assign(fold=[0, 0, 0, 0, 1, 1, 1, 1]).to_parquet(tmp_path / "folds.parquet")
    printed = run(re.sub(r"\bID\b", kept, shell), base_url, folder=tmp_path)
    assert "application/problem+json" not in printed
    for file in re.findall(r"> (\S+)$", shell, re.MULTILINE):
        assert (tmp_path / file).stat().st_size > 1000


def test_bodies_of_json(base_url: str) -> None:
    """What the pages show of a body is taken: the gate whole, the others with an input that fits."""
    with httpx.Client(base_url=base_url, trust_env=False) as client:
        [gate] = [json.loads(content) for language, content in blocks("docs/gates.md") if language == "json"]
        client.put("/v1/gates/documented", json=gate).raise_for_status()
        for content in (content for language, content in blocks("docs/reference/uncertainty.md") if language == "json"):
            client.post("/v1/metrics/compute", json=json.loads(content)).raise_for_status()
        [costs] = [
            json.loads(content) for language, content in blocks("docs/reference/probabilities.md") if language == "json"
        ]
        probabilities = {"kind": "probabilities", "y_true": ["0", "1"], "probabilities": [[0.9, 0.1], [0.2, 0.8]]}
        client.post("/v1/metrics/compute", json={"input": probabilities, **costs}).raise_for_status()


def two_models(base_url: str) -> str:
    """Two models of fraud on the same 600 samples; the predictions of the second as CSV."""
    rng = np.random.default_rng(7)
    truth = np.where(rng.random(600) < 0.1, "fraud", "ok")
    for version, recall, alarms, seed in (("6", 0.62, 0.03, 1), ("7", 0.80, 0.02, 2)):
        own = np.random.default_rng(seed)
        caught, alarmed = own.random(600) < recall, own.random(600) < alarms
        found = np.where(np.where(truth == "fraud", caught, alarmed), "fraud", "ok")
        body = {
            "model": {"name": "fraud-rf", "version": version},
            "dataset": {"name": "cards", "split": "test"},
            "input": {
                "kind": "predictions",
                "positive": "fraud",
                "sample_ids": list(range(600)),
                "y_true": truth.tolist(),
                "y_pred": found.tolist(),
            },
        }
        httpx.post(f"{base_url}/v1/evaluations", json=body, trust_env=False).raise_for_status()
    return str(pd.DataFrame({"sample_id": range(600), "y_true": truth, "y_pred": found}).to_csv(index=False))


def test_what_commands_print(base_url: str, tmp_path: Path) -> None:
    """The pages show what their commands print of two models."""
    (tmp_path / "preds.csv").write_text(two_models(base_url))
    for page in ("docs/comparing.md", "docs/limits.md"):
        (_, command), (_, shown), *_ = blocks(page)
        done = subprocess.run(
            [Path(sys.executable).with_name("prevail"), *command.split()[1:], "--url", base_url],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        printed = [line.split() for line in done.stdout.splitlines()]
        assert all(line.split() in printed for line in shown.splitlines()), done.stdout


class _Model:
    """A model as scikit-learn has it."""

    classes_ = np.array(["A", "D"])

    def predict(self, features: pd.DataFrame) -> np.ndarray:
        return np.where(self.predict_proba(features)[:, 1] > 0.5, "D", "A")

    def predict_proba(self, features: pd.DataFrame) -> np.ndarray:
        score = features["x"].to_numpy()
        return np.column_stack([1 - score, score])


def test_python_of_the_client(base_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat(["A", "D"], 100)
    features = pd.DataFrame({"x": np.clip(rng.normal(0.3 + 0.4 * (labels == "D"), 0.1), 0.01, 0.99)})
    names: dict[str, Any] = {"X_test": features, "y_test": labels, "y_pred": _Model().predict(features)}
    with prevail.Client(base_url) as client:
        given = {"model": "tumor-rf:8", "dataset": "hartwig", "split": "test", "sample_ids": features.index}
        client.evaluate(labels, probabilities=_Model().predict_proba(features), labels=["A", "D"], **given)
        client.put_gate("promotion", rules=[{"metric": "h_mean", "min": 0.5}])
        monkeypatch.setattr(prevail, "local", lambda: prevail.Client(base_url))
        found = [
            (d, text) for d in ("docs/client.md", "client/README.md") for one, text in blocks(d) if one == "python"
        ]
        assert len(found) == 3
        for _, content in found:
            names["model"] = _Model()
            exec(content.replace(DOCUMENTED_URL, base_url), {**names, "prevail": prevail})  # noqa: S102 - our own pages
        assert float(client.evaluation("tumor-rf:7")["min(recall@*)"]) > 0.9


def test_every_document_with_examples_is_known() -> None:
    """A new page with a block of shell, Python or JSON has a test, or a reason."""
    tested = {document for document, _ in REQUESTS} | {
        "docs/reference/uncertainty.md",
        "docs/why.md",
        "docs/comparing.md",
        "docs/limits.md",
        "client/README.md",
    }
    with_examples = {
        document
        for document in documents()
        if any(language in ("sh", "bash", "python", "json") for language, _ in blocks(document))
    }
    assert with_examples - tested - ELSEWHERE.keys() == set()
    assert ELSEWHERE.keys() - with_examples == set()
