"""A gate as a step of Airflow, Dagster, or whatever else calls a function and stops at an exception."""

from pathlib import Path

import prevail


def held(predictions: str, model: str, dataset: str, *, gate: str = "promotion", baseline: str | None = None) -> str:
    """Evaluate a file of predictions and hold it against a gate; the answer is the id of the evaluation.

    Raises:
        prevail.GateFailed: A rule fails.
        prevail.GateInconclusive: There is not enough data to decide.
    """
    with prevail.Client() as client:
        run = client.evaluate(file=Path(predictions), model=model, dataset=dataset, split="test")
        client.check(gate, run, baseline=baseline).require()
        return str(run.id)
