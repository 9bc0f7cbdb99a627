"""One input in every format has one answer: JSON, Parquet, Arrow, CSV and NPZ."""

import csv as csv_module
import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.answers import write_json
from app.api.bodies.multipart import parse_upload
from app.api.bodies.parsing import parse_body
from app.api.v1.requests.evaluations import EvaluationRequest
from app.services.evaluate.evaluations import evaluate_alone
from tests.api.generated import strategies
from tests.api.generated.profile import generated
from tests.hostile.cases_files import arrow, npz, parquet

pytestmark = pytest.mark.slow


def csv(columns: Mapping[str, list[Any]]) -> bytes:
    """With quotes where a text needs them."""
    sink = io.StringIO()
    writer = csv_module.writer(sink)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return sink.getvalue().encode()


FORMATS: Mapping[str, Callable[[dict[str, Any]], bytes]] = {
    "parquet": parquet,
    "arrow": arrow,
    "arrow stream": lambda columns: arrow(columns, stream=True),
    "csv": csv,
    "npz": lambda columns: npz(**columns),
}
KINDS = {
    "predictions": strategies.predictions(),
    "scores": strategies.scores(),
    "probabilities": strategies.probabilities(),
    "folds": strategies.folds(),
}
# Names in a file of what JSON has under another name.
COLUMNS = {"scores": "score", "sample_ids": "sample_id", "group_ids": "group_id"}
_ARRAYS = ("y_true", "y_pred", "scores", "probabilities", "sample_ids", "sample_weight", "group_ids")


def in_columns(source: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """An input of samples as what stays in the JSON, and its columns."""
    columns: dict[str, Any] = {}
    for name in _ARRAYS:
        if name == "probabilities" and name in source:
            columns |= {str(label): [row[k] for row in source[name]] for k, label in enumerate(source["labels"])}
        elif name in source:
            columns[COLUMNS.get(name, name)] = source[name]
    return {name: value for name, value in source.items() if name not in _ARRAYS}, columns


def split(source: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Any input that a file can hold as its JSON and its columns."""
    if source["kind"] != "folds":
        return in_columns(source)
    parts = [in_columns(fold) for fold in source["folds"]]
    columns = {name: [value for _, part in parts for value in part[name]] for name in parts[0][1]}
    columns["fold"] = [index for index, (_, part) in enumerate(parts) for _ in part["y_true"]]
    return {"kind": "folds", "fold": parts[0][0]}, columns


@pytest.mark.parametrize("kind", KINDS)
@generated()
@given(data=st.data())
def test_one_input_has_one_answer_in_every_format(kind: str, data: st.DataObject) -> None:
    source = data.draw(KINDS[kind])
    options = {"metrics": [data.draw(strategies.one_value)], "seed": 0}
    told = answer(parse_body(json.dumps({"input": source, "options": options}).encode(), EvaluationRequest))
    kept, columns = split(source)
    for name, write in FORMATS.items():
        evaluation = json.dumps({"input": kept, "options": options}).encode()
        read = parse_upload(evaluation, io.BytesIO(write(columns)), EvaluationRequest)
        assert answer(read) == told, name


def answer(request: EvaluationRequest) -> Any:
    """What is answered, as the process does that computes it."""
    return json.loads(write_json(evaluate_alone(request.to_domain(), None)[0]))
