"""Evaluations of rows that Spark holds are those of rows that DuckDB holds."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.api.answers import write_json
from app.api.bodies.referenced import Asked, Reading
from app.api.v1.evaluations.referenced import STREAMED_FROM
from app.domain.data import DataFormat, DataReference, LabelReference
from app.domain.errors import InvalidInput
from app.outbound.data import DataPlaces
from app.services.evaluate.evaluations import evaluate_alone
from app.services.ports import Engine
from tests.engine import ENGINE, spark_here
from tests.golden.comparing import compare
from tests.services.named_data import new_evaluation

pytestmark = pytest.mark.slow
N = STREAMED_FROM + 1000
_RANDOM = np.random.default_rng(31)
_TRUTH = _RANDOM.integers(0, 3, N)
_SHARES = _RANDOM.dirichlet([1.0, 1.0, 1.0], N) + 0.7 * np.eye(3)[_TRUTH]
_SHARES /= _SHARES.sum(axis=1, keepdims=True)
TABLE = pa.table(
    {
        "y_true": np.array(["a", "b", "c"])[_TRUTH],
        "y_pred": np.array(["a", "b", "c"])[_SHARES.argmax(axis=1)],
        **dict(zip(["a", "b", "c"], _SHARES.T, strict=True)),
        "ill": _TRUTH == 0,
        "score": _RANDOM.normal(size=N) + (_TRUTH == 0),
        "weight": _RANDOM.gamma(2.0, size=N),
        "site": _RANDOM.integers(0, 400, N),
        "query": _RANDOM.integers(0, 5000, N),
        "grade": _RANDOM.integers(0, 4, N),
        "t0": _TRUTH == 0,
        "t1": _RANDOM.random(N) < 0.2,
        "g0": _SHARES[:, 0] > 0.5,
        "g1": _RANDOM.random(N) < 0.2,
    }
)
KINDS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "predictions with weights": (
        "predictions",
        {"y_true": "y_true", "y_pred": "y_pred", "sample_weight": "weight"},
        {},
    ),
    "probabilities": (
        "probabilities",
        {"y_true": "y_true", "probabilities": ["a", "b", "c"]},
        {"labels": ["a", "b", "c"]},
    ),
    "scores with groups": (
        "scores",
        {"y_true": "ill", "score": "score", "group_id": "site"},
        {"labels": [False, True], "threshold": 0.0},
    ),
    "scores with weights": (
        "scores",
        {"y_true": "ill", "score": "score", "sample_weight": "weight"},
        {"labels": [False, True], "threshold": 0.0},
    ),
    "labels": ("multilabel", {"y_true": ["t0", "t1"], "y_pred": ["g0", "g1"]}, {"labels": ["x", "y"]}),
    "rankings": ("ranking", {"query_id": "query", "relevance": "grade", "score": "score"}, {}),
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("spark") / "rows.parquet"
    pq.write_table(TABLE, place, row_group_size=30_000)
    return place


@pytest.mark.parametrize("name", KINDS)
def test_both_engines_answer_alike(name: str, file: Path, tmp_path: Path) -> None:
    kind, columns, members = KINDS[name]
    data = {"uri": str(file), "columns": columns}
    body = json.dumps({"input": {"kind": kind, "data": data, **members}}).encode()
    labels = [str(label).lower() for label in members["labels"]] if "labels" in members else None

    def answer(engine: Engine) -> Any:
        asked = Asked(DataReference(str(file), DataFormat.PARQUET, columns), kind, labels, 1 << 30)
        new = new_evaluation(body, DataPlaces((str(file.parent),)), asked, engine, tmp_path)
        return orjson.loads(write_json(evaluate_alone(new, None)[0]))

    own, other = answer(ENGINE), answer(spark_here())
    assert own["input"]["data"]["rows"] == N
    assert compare({name: {"body": own}}, {name: {"body": other}}) == {}


def test_labels_are_joined_alike(file: Path, tmp_path: Path) -> None:
    """In the order of the samples; what does not fit is told with the same number and row."""
    place, order = DataPlaces((str(tmp_path),)), _RANDOM.permutation(N)
    ids = pa.array([f"sample {one}" for one in range(N)])
    labels = pa.table({"id": ids, "y_true": TABLE["y_true"], "ill": TABLE["ill"]}).take(order)
    pq.write_table(pa.table({"id": ids, "y_pred": TABLE["y_pred"]}), tmp_path / "rows.parquet")

    def joined(engine: Engine, labels: pa.Table) -> pa.Table:
        pq.write_table(labels, tmp_path / "labels.parquet")
        columns = {"y_true": "y_true", "group_id": "ill"}
        others = DataReference(str(tmp_path / "labels.parquet"), DataFormat.PARQUET, columns)
        rows = DataReference(str(tmp_path / "rows.parquet"), DataFormat.PARQUET, {"y_pred": "y_pred"})
        reference = replace(rows, labels=LabelReference(others, ("id", "id")))
        [one] = Reading(place, engine, tmp_path).copied(Asked(reference, "predictions", None, 1 << 30))
        assert one.copy is not None
        return pq.read_table(one.copy.listing.files[0].path)

    for engine in (ENGINE, spark_here()):
        found = joined(engine, labels)
        for name in ("y_true", "y_pred", "ill"):
            assert found[name].cast(TABLE[name].type).equals(TABLE[name]), name
        with pytest.raises(InvalidInput, match=f"2 of {N} have none: the first is row {order[-2:].min()} of"):
            joined(engine, labels.slice(0, N - 2))
        twice = f"3 of the labels come more than once: the first is 'sample {order[4]}', at row 4"
        with pytest.raises(InvalidInput, match=twice):
            joined(engine, pa.concat_tables([labels, labels.slice(4, 3)]))
