"""`mlflow.models.evaluate(..., evaluators="prevail")`: MLflow finds this by its entry point.

`evaluator_config` may have: ``url``, ``dataset``, ``split``, ``model``, ``version``, ``metrics``, ``labels``,
``positive``, ``sample_ids`` (the name of a feature), ``gate``, ``baseline``, ``raise_unless_passed`` (True by default).
Without a model and a data set nothing is saved.
"""

import contextlib
import tempfile
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from mlflow.models.evaluation.artifacts import JsonEvaluationArtifact
from mlflow.models.evaluation.base import EvaluationResult, ModelEvaluator

from prevail.client import Client
from prevail.errors import InvalidInput
from prevail.mlflow.records import PREFIX, log
from prevail.uploads.arrays import has_rows
from prevail.uploads.estimators import predicted

_KNOWN = frozenset(
    {
        *("url", "dataset", "split", "model", "version", "metrics", "labels", "positive", "sample_ids"),
        *("gate", "baseline", "raise_unless_passed"),
    }
)


class PrevailEvaluator(ModelEvaluator):  # type: ignore[misc]  # MLflow leaves it untyped
    """Sends predictions to the service and keeps what it says in the run."""

    @classmethod
    def can_evaluate(cls, *, model_type: str, evaluator_config: dict[str, Any], **_: Any) -> bool:
        """Is it a classifier?"""
        return model_type == "classifier"

    def evaluate(
        self,
        *,
        model_type: str,
        dataset: Any,
        run_id: str,
        evaluator_config: dict[str, Any],
        model: Any = None,
        predictions: Any = None,
        **_: Any,
    ) -> Any:
        """Metrics with their limits, tags for what is undefined, reports as artifacts; a verdict where a gate is named.

        A model is asked for probabilities where it has them, so that AUC and log loss are there too.

        Raises:
            InvalidInput: there is nothing to evaluate, or an option is unknown.
            GateFailed, GateInconclusive: the gate does not pass. Everything is logged by then.
        """
        config = dict(evaluator_config or {})
        unknown = sorted(key for key in config if key not in _KNOWN and not key.startswith("_"))
        if unknown:
            raise InvalidInput(f"evaluator_config: {', '.join(unknown)} is none of {', '.join(sorted(_KNOWN))}")
        for key, whose in (("version", "model"), ("baseline", "gate")):
            if config.get(key) is not None and config.get(whose) is None:
                raise InvalidInput(f"evaluator_config: {key} is that of a {whose}, and none is named", code="missing")
        given = predictions if predictions is not None else dataset.predictions_data
        if (given is None and model is None) or dataset.labels_data is None:
            raise InvalidInput("expected a model or predictions, and targets", code="missing")
        if given is None:
            said = predicted(_within(model), dataset.features_data, config)
        else:
            said = {"probabilities" if has_rows(given) else "y_pred": given}
        if config.get("labels") is not None:
            said["labels"] = config["labels"]
        name = config.get("model")
        if name is not None and config.get("version") is not None:
            name = {"name": str(name), "version": str(config["version"])}
        ids = config.get("sample_ids")
        with Client(config.get("url")) as client, tempfile.TemporaryDirectory() as folder:
            evaluation = client.evaluate(
                dataset.labels_data,
                **said,
                positive=config.get("positive"),
                sample_ids=None if ids is None else dataset.features_data[ids],
                model=name,
                dataset=config.get("dataset"),
                split=config.get("split"),
                metrics=config.get("metrics") or (),
                tags={"mlflow.run_id": run_id},
            )
            check = None
            if config.get("gate") is not None:
                check = client.check(config["gate"], evaluation, config.get("baseline"))
            metrics = log(MlflowClient(), run_id, client, evaluation, check, Path(folder))
        if check is not None and config.get("raise_unless_passed", True):
            check.require()
        artifact = JsonEvaluationArtifact(uri=f"runs:/{run_id}/{PREFIX}/report.json", content=evaluation.to_dict())
        return EvaluationResult(metrics=dict(metrics), artifacts={f"{PREFIX}/report.json": artifact})


def _within(model: Any) -> Any:
    """The estimator of scikit-learn's kind in a model of MLflow, which alone knows its classes; else the model."""
    with contextlib.suppress(NotImplementedError):
        raw = model.get_raw_model()
        return raw if hasattr(raw, "classes_") else model
    return model
