"""MLflow: a real tracking server that the tests start; a model is blocked there, and another promoted."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import prevail
import pytest
from mlflow import MlflowClient
from prevail.command.main import main
from prevail.mlflow.records import metric_name
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from werkzeug.serving import make_server

from tests.client.conftest import MATRIX

pytestmark = pytest.mark.slow

GOOD = [[780, 10, 6, 4], [8, 584, 4, 4], [5, 5, 486, 4], [3, 3, 3, 91]]
PAGE = Path(__file__).parents[2] / "docs" / "mlflow.md"
LABELS = np.array(["A", "B", "C", "D"])


@pytest.fixture(scope="module")
def tracking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """MLflow's tracking server in a thread, with its data in a folder of its own."""
    folder = tmp_path_factory.mktemp("mlflow")
    with pytest.MonkeyPatch.context() as patched:
        # What `mlflow server` tells the application that it starts.
        patched.setenv("_MLFLOW_SERVER_FILE_STORE", f"sqlite:///{folder}/mlflow.db")
        patched.setenv("_MLFLOW_SERVER_ARTIFACT_ROOT", "mlflow-artifacts:/")
        patched.setenv("_MLFLOW_SERVER_ARTIFACT_DESTINATION", str(folder / "files"))
        patched.setenv("_MLFLOW_SERVER_SERVE_ARTIFACTS", "true")
        from mlflow.server import app

        with ThreadingServer(app) as url:
            # At its first request the server says to this process where its database is; from here on it is the URL.
            assert MlflowClient(url).search_experiments()
            yield url


class ThreadingServer:
    """A WSGI application on a free port, in a thread."""

    def __init__(self, application: Any) -> None:
        self._server = make_server("127.0.0.1", 0, application, threaded=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> str:
        self._thread.start()
        return f"http://127.0.0.1:{self._server.server_port}"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join(30)


@pytest.fixture
def registry(tracking: str, base_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[MlflowClient]:
    monkeypatch.setenv("PREVAIL_URL", base_url)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tracking)
    mlflow.set_tracking_uri(tracking)
    yield MlflowClient(tracking)
    mlflow.set_tracking_uri(None)


def samples(matrix: list[list[int]]) -> tuple[Any, Any]:
    """Actual and predicted labels, sample by sample."""
    counts = np.array(matrix)
    rows, columns = np.indices(counts.shape)
    return LABELS[np.repeat(rows.ravel(), counts.ravel())], LABELS[np.repeat(columns.ravel(), counts.ravel())]


def registered(registry: MlflowClient, name: str, matrix: list[list[int]], pv: prevail.Client) -> str:
    """A version in the registry with a run of its own, evaluated under the same names."""
    run = registry.create_run(registry.get_experiment_by_name("Default").experiment_id)
    version = str(registry.create_model_version(name, f"runs:/{run.info.run_id}/model", run.info.run_id).version)
    actual, predicted = samples(matrix)
    ids = np.arange(len(actual))
    pv.evaluate(actual, predicted, sample_ids=ids, model=f"{name}:{version}", dataset="payments", split="test")
    return version


def holder(registry: MlflowClient, name: str) -> str:
    return str(registry.get_model_version_by_alias(name, "champion").version)


def test_a_registered_model_is_blocked_and_another_promoted(
    registry: MlflowClient, pv: prevail.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    registry.create_registered_model("fraud")
    pv.put_gate("promotion", [{"metric": "h_mean", "min": 0.8}])
    gate = ("mlflow", "gate", "--model", "fraud", "--gate", "promotion", "--dataset", "payments", "--version")
    good = registered(registry, "fraud", GOOD, pv)
    assert main([*gate, good]) == 0
    assert holder(registry, "fraud") == good
    bad = registered(registry, "fraud", MATRIX, pv)
    assert main([*gate, bad]) == 1
    assert holder(registry, "fraud") == good
    printed = capsys.readouterr().out
    assert printed.index("PASS") < printed.index("FAIL")

    version = registry.get_model_version("fraud", bad)
    assert version.tags["prevail.verdict"] == "fail"
    assert version.tags["prevail.gate"] == "promotion, version 1"
    run = registry.get_run(version.run_id)
    assert run.data.metrics["prevail/h_mean"] == pytest.approx(0.4324, abs=1e-4)
    assert run.data.metrics["prevail/h_mean_low"] < 0.4324 < run.data.metrics["prevail/h_mean_high"]
    files = {Path(one.path).name for one in registry.list_artifacts(version.run_id, "prevail")}
    assert files == {*("report.txt", "report.md", "report.json", "gate.txt", "gate.md", "confusion_matrix.csv")}
    matrix = mlflow.artifacts.load_text(f"runs:/{version.run_id}/prevail/confusion_matrix.csv").splitlines()
    assert matrix[0] == "actual,A,B,C,D"
    assert matrix[-1] == "D,40,24,20,16"

    # What cannot be asked moves nothing, and is no verdict.
    assert main([*gate, "99"]) == 6
    assert main([*gate[:5], "nowhere", *gate[6:], good]) == 6
    assert holder(registry, "fraud") == good


def test_the_evaluator_logs_what_is_defined_and_says_why_the_rest_is_not(
    registry: MlflowClient, pv: prevail.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow.models.evaluation.evaluator_registry import _model_evaluation_registry
    from prevail.mlflow.evaluator import PrevailEvaluator

    # What MLflow does with the entry point of an installed client.
    _model_evaluation_registry.register("prevail", PrevailEvaluator)
    pv.put_gate("weak", [{"metric": "recall@b", "min": 0.5}])
    frame = pd.DataFrame({"row": range(60), "target": ["a"] * 40 + ["b"] * 20, "said": ["a"] * 60})
    with mlflow.start_run() as run:
        result = mlflow.models.evaluate(
            data=frame,
            targets="target",
            predictions="said",
            model_type="classifier",
            evaluators=["prevail"],
            evaluator_config={
                "prevail": {
                    "model": "constant",
                    "version": 3,
                    "dataset": "d",
                    "metrics": ["precision@b", "recall@b"],
                    "gate": "weak",
                    "raise_unless_passed": False,
                }
            },
        )
    kept = registry.get_run(run.info.run_id).data
    assert result.metrics["prevail/recall.b"] == 0.0
    assert kept.metrics["prevail/recall.b"] == 0.0
    # Undefined is no 0: there is no such metric, and a tag says why.
    assert "prevail/precision.b" not in kept.metrics
    assert "never predicted" in kept.tags["prevail.undefined.precision.b"]
    assert kept.tags["prevail.verdict"] == "fail"
    assert kept.tags["prevail.evaluation"] == pv.evaluation("constant:3").id
    assert result.artifacts["prevail/report.json"].content["id"] == kept.tags["prevail.evaluation"]


def test_a_model_is_asked_for_probabilities_and_a_gate_that_fails_raises(
    registry: MlflowClient, pv: prevail.Client
) -> None:
    from mlflow.models.evaluation.evaluator_registry import _model_evaluation_registry
    from prevail.mlflow.evaluator import PrevailEvaluator

    _model_evaluation_registry.register("prevail", PrevailEvaluator)
    pv.put_gate("strict", [{"metric": "roc_auc@b", "min": 0.999}])
    random = np.random.default_rng(3)
    frame = pd.DataFrame({"x": random.normal(size=200), "target": np.where(random.random(200) < 0.3, "b", "a")})
    frame["x"] += frame["target"] == "b"
    model = LogisticRegression().fit(frame[["x"]], frame["target"])
    with mlflow.start_run() as run:
        uri = mlflow.sklearn.log_model(model, name="model").model_uri
        config = {"model": "logistic:1", "dataset": "d", "gate": "strict", "metrics": ["roc_auc@b"]}
        with pytest.raises(prevail.GateFailed, match="roc_auc"):
            mlflow.models.evaluate(
                model=uri,
                data=frame,
                targets="target",
                model_type="classifier",
                evaluators=["prevail"],
                evaluator_config={"prevail": config},
            )
    kept = registry.get_run(run.info.run_id).data
    expected = roc_auc_score(frame["target"], model.predict_proba(frame[["x"]])[:, 1])
    assert kept.metrics["prevail/roc_auc.b"] == pytest.approx(expected)
    assert kept.tags["prevail.verdict"] == "fail"


@pytest.mark.parametrize("alone", [{"version": 3}, {"baseline": "tumor-rf:1"}])
def test_what_nothing_is_done_with_is_refused(alone: dict[str, Any]) -> None:
    from prevail.mlflow.evaluator import PrevailEvaluator

    evaluator = PrevailEvaluator()
    with pytest.raises(prevail.InvalidInput, match=f"{next(iter(alone))} is that of a"):
        evaluator.evaluate(model_type="classifier", dataset=None, run_id="r", evaluator_config=alone)


def test_the_page(registry: MlflowClient, pv: prevail.Client) -> None:
    from mlflow.models.evaluation.evaluator_registry import _model_evaluation_registry
    from prevail.mlflow.evaluator import PrevailEvaluator

    _model_evaluation_registry.register("prevail", PrevailEvaluator)
    frame = pd.DataFrame({"x": range(40), "target": ["no", "yes"] * 20})
    with mlflow.start_run():
        model = LogisticRegression().fit(frame[["x"]], frame["target"])
        uri = mlflow.sklearn.log_model(model, name="model").model_uri
        block = PAGE.read_text().split("```python\n")[1].split("```")[0]
        exec(block, {"model_uri": uri, "frame": frame})  # noqa: S102 - our own page
    assert pv.evaluation("fraud:7")["recall@yes"].value == pytest.approx(
        np.mean(model.predict(frame[["x"]])[1::2] == "yes")
    )


def test_expressions_have_names_that_mlflow_takes() -> None:
    assert metric_name("h_mean") == "prevail/h_mean"
    assert metric_name("recall@D") == "prevail/recall.D"
    assert metric_name("gps(recall@*, precision@D)") == "prevail/gps_recall._ precision.D"
