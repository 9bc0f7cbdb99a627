"""A version of MLflow's registry held against a gate. An alias moves on a pass, and on nothing else."""

import tempfile
from pathlib import Path
from typing import Any, Final

from prevail.client import Client
from prevail.errors import MissingPackage, NoAnswer, NotFound, PrevailError
from prevail.mlflow.records import log, verdict_tags
from prevail.operations.naming import Name, dataset_ref
from prevail.results.decisions import Check

_ABSENT: Final = frozenset({"RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"})


def hold(
    client: Client,
    *,
    model: str,
    version: str,
    gate: str,
    dataset: Name | None = None,
    split: str | None = None,
    alias: str = "champion",
    tracking_uri: str | None = None,
) -> Check:
    """Check the evaluation of a registered version against a gate; the version that has the alias is the baseline.

    The verdict is written to the tags of the version; metrics, reports and the matrix go into its run.

    Args:
        model, version: As in MLflow's registry; the service knows the evaluation by the same names.
        alias: Moved to the version when the gate passes. When it does not, it stays where it is.

    Raises:
        NotFound: the version is not registered, or has no evaluation.
        PrevailError: the gate could not be asked; nothing has moved then.
    """
    try:
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
    except ImportError as error:
        raise MissingPackage("this needs MLflow: pip install mlflow", code="missing_package") from error
    try:
        registry = MlflowClient(tracking_uri)
        registered = registry.get_model_version(model, version)
        before = _holder(registry, model, alias, MlflowException)
        place = dataset_ref(dataset, split)
        here = {} if place is None else {"dataset": place}
        baseline = None
        if before is not None and str(before) != str(version):
            baseline = {"model": {"name": model, "version": str(before)}, **here}
        check = client.check(gate, {"model": {"name": model, "version": str(version)}, **here}, baseline)
        evaluation = client.evaluation(str(check.data["evaluation"]["id"]))
        for name, text in verdict_tags(check).items():
            registry.set_model_version_tag(model, version, name, text)
        if registered.run_id:
            with tempfile.TemporaryDirectory() as folder:
                log(registry, registered.run_id, client, evaluation, check, Path(folder))
        if check.passed:
            registry.set_registered_model_alias(model, alias, version)
    except MlflowException as error:
        raise _worded(error) from error
    return check


def _holder(registry: Any, model: str, alias: str, kind: type[Exception]) -> str | None:
    """The version that has an alias; None where none has it yet."""
    try:
        return str(registry.get_model_version_by_alias(model, alias).version)
    except kind as error:
        if getattr(error, "error_code", "") in _ABSENT:
            return None
        raise


def _worded(error: Any) -> PrevailError:
    kind = NotFound if error.error_code in _ABSENT else NoAnswer
    return kind(f"MLflow: {error.message}", code="mlflow")
