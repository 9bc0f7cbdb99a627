"""The peer: an MLflow tracking server on Postgres, and what a client sends it to keep one evaluation.

The conversation is what MLflow's own client does for a run with metrics: create the run, log the metrics, end the run.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import httpx

from benchmarks.client import PLACEHOLDER

METRICS = 60
_PREFIX = "/api/2.0/mlflow"


def python_with_mlflow() -> str | None:
    """The interpreter that has MLflow: of `MLFLOW_PYTHON`, or this one; None when there is none."""
    python = os.environ.get("MLFLOW_PYTHON", sys.executable)
    found = subprocess.run([python, "-c", "import mlflow, psycopg2, uvloop"], capture_output=True, check=False)
    return python if found.returncode == 0 else None


def version(python: str) -> str:
    """MLflow's version."""
    command = [python, "-c", "from importlib.metadata import version; print(version('mlflow'))"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def start(python: str, dsn: str, port: int, folder: Path, *, workers: int, tuned: bool) -> "subprocess.Popen[bytes]":
    """Start `mlflow server` as it ships, or tuned: with uvloop, httptools and a larger pool.

    Either way without its background jobs, whose processes would take time from all that is measured beside it.
    """
    command = [python, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", str(workers)]
    command += ["--backend-store-uri", dsn.replace("postgresql://", "postgresql+psycopg2://")]
    command += ["--default-artifact-root", str(folder)]
    environment = os.environ | {
        "PATH": f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
    if tuned:
        command += ["--uvicorn-opts", "--loop uvloop --http httptools --log-level warning"]
        environment["MLFLOW_SQLALCHEMYSTORE_POOL_SIZE"] = "40"
    with (folder / "server.log").open("wb") as log:
        return subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True)


def create_experiment(port: int) -> str:
    """Create the experiment that all runs go to; its id."""
    answer = httpx.post(f"http://127.0.0.1:{port}{_PREFIX}/experiments/create", json={"name": "benchmark"})
    answer.raise_for_status()
    identifier: str = answer.json()["experiment_id"]
    return identifier


def conversation(experiment: str, name: str, values: dict[str, float]) -> list[tuple[str, str]]:
    """Path and body of the three requests that keep one evaluation."""
    now = int(time.time() * 1000)
    run = PLACEHOLDER.decode()
    metrics = [{"key": key, "value": value, "timestamp": now, "step": 0} for key, value in values.items()]
    return [
        (f"{_PREFIX}/runs/create", json.dumps({"experiment_id": experiment, "run_name": name, "start_time": now})),
        (f"{_PREFIX}/runs/log-batch", json.dumps({"run_id": run, "metrics": metrics})),
        (f"{_PREFIX}/runs/update", json.dumps({"run_id": run, "status": "FINISHED", "end_time": now})),
    ]
