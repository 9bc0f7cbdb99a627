"""Clients that generators make of the OpenAPI document import, and the commonest requests work with their types."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.api import documentation

pytestmark = pytest.mark.slow
DOCUMENT = Path(documentation.__file__).parents[2] / "docs" / "openapi.json"
GENERATOR = Path(sys.executable).with_name("openapi-generator-cli")
_BODIES = """
def made(name, matrix):
    return {"model": {"name": name}, "dataset": {"name": "d"}, "input": {"kind": "confusion_matrix", "matrix": matrix}}

MATRICES = [[[45, 5], [10, 40]], [[40, 10], [10, 40]]]
RULES = {"rules": [{"metric": "h_mean", "min": 0.5}]}
"""
WITH_ATTRS = (
    _BODIES
    + """
import importlib, pkgutil, sys
import prevail_client
from prevail_client import models
from prevail_client.api.comparisons import create_comparison
from prevail_client.api.evaluations import create_evaluation, get_evaluation, list_evaluations
from prevail_client.api.gates import create_check, put_gate

for module in pkgutil.walk_packages(prevail_client.__path__, "prevail_client."):
    importlib.import_module(module.name)
client = prevail_client.Client(base_url=sys.argv[1])
runs = [
    create_evaluation.sync(client=client, body=models.EvaluationRequest.from_dict(made(name, matrix)))
    for name, matrix in zip("ab", MATRICES)
]
again = get_evaluation.sync(runs[0].id, client=client)
assert isinstance(again, models.Evaluation) and again.id == runs[0].id
assert again.headline.metrics["h_mean"].low < again.headline.metrics["h_mean"].value
asked = models.ComparisonRequest.from_dict({"evaluations": [str(run.id) for run in runs], "paired": False})
compared = create_comparison.sync(client=client, body=asked)
assert 0 < compared.metrics["h_mean"].differences[0].p_value < 1
put_gate.sync("enough", client=client, body=models.GateRequest.from_dict(RULES))
checked = create_check.sync("enough", client=client, body=models.CheckRequest.from_dict({"evaluation": str(again.id)}))
assert checked.verdict == "pass", checked
assert len(list_evaluations.sync(client=client).items) >= 2
"""
)
WITH_PYDANTIC = (
    _BODIES
    + """
import sys
import openapi_client as generated

api = generated.ApiClient(generated.Configuration(host=sys.argv[1]))
evaluations = generated.EvaluationsApi(api)
runs = [
    evaluations.create_evaluation(generated.CreateEvaluationRequest.from_dict(made(name, matrix)))
    for name, matrix in zip("ab", MATRICES)
]
again = evaluations.get_evaluation(runs[0].id)
assert isinstance(again, generated.Evaluation) and again.id == runs[0].id
assert again.headline.metrics["h_mean"].low < again.headline.metrics["h_mean"].value
asked = generated.ComparisonRequest.from_dict({"evaluations": [str(run.id) for run in runs]})
compared = generated.ComparisonsApi(api).create_comparison(asked)
assert 0 < compared.metrics["h_mean"].differences[0].p_value < 1
gates = generated.GatesApi(api)
gates.put_gate("enough", generated.GateRequest.from_dict(RULES))
checked = gates.create_check("enough", generated.CheckRequest.from_dict({"evaluation": str(again.id)}))
assert checked.verdict == "pass", checked
"""
)


def run(*command: str, folder: Path) -> str:
    # The generator formats what it made with a ruff that it looks for in the path.
    path = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    found = subprocess.run(
        command, cwd=folder, env=os.environ | path, capture_output=True, text=True, timeout=300, check=False
    )
    assert found.returncode == 0, found.stdout[-3000:] + found.stderr[-3000:]
    return found.stdout + found.stderr


def test_openapi_python_client_makes_a_client_without_a_warning(tmp_path: Path, base_url: str) -> None:
    command = [
        sys.executable,
        "-m",
        "openapi_python_client",
        "generate",
        "--path",
        str(DOCUMENT),
        "--output-path",
        "made",
    ]
    said = run(*command, folder=tmp_path)
    assert "Unable" not in said
    assert "warning" not in said.lower()
    (tmp_path / "made" / "use.py").write_text(WITH_ATTRS)
    run(sys.executable, "use.py", base_url, folder=tmp_path / "made")


def test_openapi_generator_makes_a_client(tmp_path: Path, base_url: str) -> None:
    command = [str(GENERATOR), "generate", "-g", "python", "-i", str(DOCUMENT), "-o", "made"]
    run(*command, folder=tmp_path)
    (tmp_path / "made" / "use.py").write_text(WITH_PYDANTIC)
    run(sys.executable, "use.py", base_url, folder=tmp_path / "made")
