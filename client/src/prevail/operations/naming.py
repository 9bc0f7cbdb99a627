"""Names of runs, models and data sets."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from prevail.errors import InvalidInput, NotFound
from prevail.results.evaluation import Evaluation
from prevail.wire.exchange import Retries, answered
from prevail.wire.steps import Call, Flow

# An evaluation, its id, "tumor-rf:7", "stage=champion", an item of a list, or a reference as the service takes it.
Run = Evaluation | UUID | str | Mapping[str, Any]
# "tumor-rf:7", or name and version as the service takes them.
Name = str | Mapping[str, Any]
_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
# Of the latest evaluations that a reference matches.
_LOOKED_AT: Final = 100


def model_ref(model: Name | None) -> dict[str, Any] | None:
    """A model as the service takes it: the version stands behind the last colon."""
    if model is None or isinstance(model, Mapping):
        return None if model is None else dict(model)
    if not isinstance(model, str):
        raise InvalidInput(f'a name: expected "name" or "name:version", got {type(model).__name__}', code="no_name")
    name, colon, version = model.rpartition(":")
    return {"name": name, "version": version} if colon and name and version else {"name": model}


def several(names: Sequence[Any], what: str) -> list[Any]:
    """Names, expressions or rules as a list.

    Raises:
        InvalidInput: it is one text, whose letters would be taken for them.
    """
    if isinstance(names, str):
        raise InvalidInput(f"{what}: expected a list, got the text {names!r}", code="list_type")
    return [*names]


def dataset_ref(dataset: Name | None, split: str | None = None) -> dict[str, Any] | None:
    """A data set as the service takes it, and the split of it."""
    found = model_ref(dataset)
    if split is None:
        return found
    if found is None:
        raise InvalidInput(f"split: {split!r} is a split of a data set, and none is named", code="no_dataset")
    return {**found, "split": split}


def run_ref(run: Run, dataset: Name | None = None, split: str | None = None) -> str | dict[str, Any]:
    """A run as the service takes it where one is named: an id, or a reference.

    Raises:
        InvalidInput: it names nothing, is nothing of the kind, or is an evaluation that was not saved.
    """
    if isinstance(run, Evaluation):
        if run.id is None:
            raise InvalidInput("this evaluation was not saved: name a model and a data set", code="not_kept")
        return run.id
    if isinstance(run, UUID) or (isinstance(run, str) and _ID.fullmatch(run)):
        return str(run)
    if isinstance(run, Mapping):
        # An item of a list of evaluations has an id beside its names, which others have too.
        return str(run["id"]) if "id" in run else dict(run)
    given: object = run
    if not isinstance(given, str) or not given:
        came = "nothing" if isinstance(given, str | None) else type(given).__name__
        raise InvalidInput(f"a run: expected an id, MODEL:VERSION or TAG=VALUE, got {came}", code="no_run")
    key, sign, value = run.partition("=")
    found: dict[str, Any] = {"tags": {key: value}} if sign else {"model": model_ref(run)}
    place = dataset_ref(dataset, split)
    return found if place is None else {**found, "dataset": place}


def identified(run: Run, retries: Retries, dataset: Name | None = None, split: str | None = None) -> Flow[str]:
    """The id of a run; of a reference that of the latest evaluation that matches.

    Raises:
        NotFound: nothing matches.
        InvalidInput: evaluations of several data sets or splits do.
    """
    reference = run_ref(run, dataset, split)
    if isinstance(reference, str):
        return reference
    model, data = reference.get("model") or {}, reference.get("dataset") or {}
    params = {
        "model": model.get("name"),
        "model_version": model.get("version"),
        "dataset": data.get("name"),
        "dataset_version": data.get("version"),
        "split": data.get("split"),
        "tag": [f"{key}:{value}" for key, value in (reference.get("tags") or {}).items()],
        "fields": "id,dataset",
        "limit": _LOOKED_AT,
    }
    page = yield from answered(Call("GET", "/v1/evaluations", params), retries)
    if not page["items"]:
        raise NotFound(f"there is no evaluation of {run}", code="not_found")
    check_one_dataset((item["dataset"] for item in page["items"]), f"the evaluations of {run}")
    return str(page["items"][0]["id"])


def check_one_dataset(datasets: Iterable[Mapping[str, Any] | None], what: str) -> None:
    """Raise InvalidInput where datasets have several names or splits, which are not to be mixed or taken by chance."""
    found = dict.fromkeys((one["name"], one.get("split")) for one in datasets if one is not None)
    if len(found) > 1:
        named = ", ".join(name if split is None else f"{name} (split {split})" for name, split in found)
        raise InvalidInput(f"{what} are of {named}: name one of them by dataset and split", code="ambiguous_dataset")
