"""Every operation of the service has a method of the client, or a reason why not; and both clients have the same."""

import ast
import inspect
import json
import re
import tomllib
from pathlib import Path

import prevail
from prevail.wire.steps import Operation

from tests.bank import each

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "client" / "src" / "prevail"
# The operations of docs/openapi.json by the method that asks for them.
METHODS = {
    "isAlive": "is_alive",
    "isReady": "is_ready",
    "getVersion": "status",
    "getProblemType": "problem",
    "listAuditEntries": "audit",
    "getUsage": "usage",
    "boundHMean": "bounds",
    "boundHMeanOfEvaluation": "bounds",
    "listComparisons": "comparisons",
    "createComparison": "compare",
    "compareAcrossDatasets": "compare_across_datasets",
    "getComparison": "comparison",
    "deleteComparison": "delete_comparison",
    "checkConsistency": "consistency",
    "computeCurve": "curve_of_input",
    "getCurve": "curve",
    "listDatasets": "datasets",
    "listModels": "models",
    "listEvaluations": "evaluations",
    "createEvaluation": "evaluate",
    "createEvaluations": "evaluate_many",
    "deleteEvaluation": "delete_evaluation",
    "deleteEvaluations": "delete_evaluations",
    "mergeEvaluations": "merge",
    "getModel": "model",
    "deleteModel": "delete_model",
    "getDataset": "dataset",
    "deleteDataset": "delete_dataset",
    "getLatestEvaluation": "evaluation",
    "getEvaluation": "evaluation",
    "changeTags": "tag",
    "getConfusionMatrix": "confusion_matrix",
    "estimatePrevalence": "estimate_prevalence",
    "projectEvaluation": "project",
    "projectInput": "project_input",
    "sliceEvaluation": "slices",
    "sliceInput": "slices_of_input",
    "findThreshold": "threshold",
    "findThresholdOfInput": "threshold_of_input",
    "listGates": "gates",
    "getGate": "gate",
    "putGate": "put_gate",
    "deleteGate": "delete_gate",
    "listGateVersions": "gate_versions",
    "createCheck": "check",
    "tryGate": "try_gate",
    "listChecks": "checks",
    "listAllChecks": "checks",
    "getCheck": "read_check",
    "computeIsocurves": "isocurves",
    "listKeys": "keys",
    "createKey": "create_key",
    "revokeKey": "revoke_key",
    "getKey": "key",
    "rotateKey": "rotate_key",
    "getLeaderboard": "leaderboard",
    "getHistory": "history",
    "listMetrics": "metrics",
    "getMetric": "metric",
    "computeMetrics": "compute",
    "recommendMetrics": "recommend",
    "listPlots": "plots",
    "getEvaluationPlot": "plot",
    "getComparisonPlot": "comparison_plot",
    "getCheckPlot": "check_plot",
    "getHistoryPlot": "history_plot",
    "getSlicesPlot": "slices_plot",
    "getEvaluationReport": "page",
    "getComparisonReport": "comparison_page",
    "listJobs": "jobs",
    "getJob": "job",
    "getJobResult": "job_result",
    "cancelJob": "cancel",
    "putWebhook": "put_webhook",
    "listWebhooks": "webhooks",
    "getWebhook": "webhook",
    "deleteWebhook": "delete_webhook",
    "listDeliveries": "deliveries",
    "retryDelivery": "retry_delivery",
    "testWebhook": "test_webhook",
}
# What has no method, and why.
REASONS = {
    "getServiceMetrics": "read by Prometheus, in its own form",
    "getIndex": "addresses, which the client knows",
    "getRoot": "the same",
}


def operations() -> dict[str, str]:
    """The operations of the service, and where each is."""
    paths = json.loads((ROOT / "docs" / "openapi.json").read_text())["paths"]
    return {
        said["operationId"]: f"{method.upper()} {path}"
        for path, methods in paths.items()
        for method, said in methods.items()
        if isinstance(said, dict) and "operationId" in said
    }


def missing(found: dict[str, str]) -> list[str]:
    return [f"{name} ({place})" for name, place in found.items() if name not in METHODS and name not in REASONS]


def test_every_operation_has_a_method_or_a_reason() -> None:
    assert missing(operations()) == []


def test_a_new_operation_would_be_noticed() -> None:
    assert missing({"makeCoffee": "POST /v1/coffee"}) == ["makeCoffee (POST /v1/coffee)"]


def test_what_has_a_reason_has_no_method() -> None:
    assert {*METHODS} & {*REASONS} == set()
    assert all(REASONS.values())


@each("method", sorted(set(METHODS.values())))
def test_both_clients_have_the_method(method: str) -> None:
    found = inspect.getattr_static(prevail.Client, method)
    assert isinstance(found, Operation)
    assert inspect.getattr_static(prevail.AsyncClient, method) is found
    assert found.__doc__
    with prevail.Client("http://elsewhere.test") as client:
        assert "self" not in inspect.signature(getattr(client, method)).parameters


def test_the_client_needs_httpx_only_and_imports_nothing_else_by_itself() -> None:
    project = tomllib.loads((ROOT / "client" / "pyproject.toml").read_text())["project"]
    assert project["name"] == "prevail"
    assert [one.split(">")[0] for one in project["dependencies"]] == ["httpx"]
    allowed = {"httpx", "prevail"}
    for path in SOURCE.rglob("*.py"):
        if "mlflow" in path.parts:
            continue  # imported by who uses it
        for node in ast.parse(path.read_text()).body:
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            others = {name.split(".")[0] for name in names} - allowed - set(__import__("sys").stdlib_module_names)
            assert others == set(), path


def test_installing_the_client_pulls_in_fewer_than_eight_packages() -> None:
    from importlib.metadata import requires

    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    pulled: set[str] = set()
    waiting = ["httpx"]
    while waiting:
        name = waiting.pop()
        if name in pulled:
            continue
        pulled.add(name)
        for line in requires(name) or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                waiting.append(canonicalize_name(needed.name))
    assert "httpcore" in pulled
    assert len(pulled) < 8


def test_the_service_is_called_by_its_own_name() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["name"] == "prevail-server"
    assert "scripts" not in project


def test_the_page_of_methods_has_all_of_them_with_their_arguments() -> None:
    """As they are called: without the types, and with what each argument is."""
    page = (ROOT / "docs" / "reference" / "client-methods.md").read_text()
    named = {name for part in prevail.Client.__mro__ for name, one in vars(part).items() if isinstance(one, Operation)}
    assert set(re.findall(r"(?m)^### (\w+)$", page)) == named
    assert "\ncheck(gate, run, baseline=None, *, dataset=None, split=None) -> Check\n" in page
    assert "\n- `pos_label, groups`: What scikit-learn calls `positive` and `group_ids`.\n" in page
