"""Files whose columns have names of their own."""

import io
import json
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.api.answers import check_problem, compute

COLUMNS: dict[str, Any] = {
    "label": ["cat", "dog", "dog", "cat", "dog"],
    "guess": ["cat", "dog", "cat", "cat", "dog"],
    "p_cat": [0.9, 0.2, 0.6, 0.7, 0.1],
    "p_dog": [0.1, 0.8, 0.4, 0.3, 0.9],
    "image": ["a.png", "b.png", "c.png", "d.png", "e.png"],
    "id": [11, 12, 13, 14, 15],
    "part": [0, 0, 1, 1, 1],
}


def parquet() -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(COLUMNS), file)
    return file.getvalue()


def csv() -> bytes:
    rows = [",".join(COLUMNS), *(",".join(map(str, row)) for row in zip(*COLUMNS.values(), strict=True))]
    return "\n".join(rows).encode()


def npz() -> bytes:
    file = io.BytesIO()
    np.savez(file, **{name: np.array(column) for name, column in COLUMNS.items()})  # type: ignore[arg-type]
    return file.getvalue()


def post(client: httpx.Client, source: dict[str, Any], data: bytes) -> httpx.Response:
    form = {"evaluation": json.dumps({"input": source})}
    return client.post("/v1/metrics/compute", data=form, files={"data": ("samples", data)})


@pytest.mark.parametrize("data", [parquet(), csv(), npz()], ids=["parquet", "csv", "npz"])
def test_the_answer_is_that_of_the_same_arrays(client: httpx.Client, data: bytes) -> None:
    labels = ["cat", "dog"]
    columns: dict[str, Any] = {"y_true": "label", "y_pred": "guess", "sample_id": "id"}
    found = post(client, {"kind": "predictions", "labels": labels, "columns": columns}, data)
    assert found.status_code == 200, found.text
    same = {"kind": "predictions", "labels": labels, "y_true": COLUMNS["label"], "y_pred": COLUMNS["guess"]}
    assert found.json()["metrics"] == compute(client, same)["metrics"]
    columns = {"y_true": "label", "probabilities": ["p_cat", "p_dog"]}
    found = post(client, {"kind": "probabilities", "labels": labels, "columns": columns}, data)
    rows = [list(row) for row in zip(COLUMNS["p_cat"], COLUMNS["p_dog"], strict=True)]
    same = {"kind": "probabilities", "labels": labels, "y_true": COLUMNS["label"], "probabilities": rows}
    assert found.json()["metrics"] == compute(client, same)["metrics"]


def test_the_order_of_the_columns_is_that_of_the_labels(client: httpx.Client) -> None:
    source = {"kind": "probabilities", "labels": ["dog", "cat"]}
    turned = post(client, {**source, "columns": {"y_true": "label", "probabilities": ["p_dog", "p_cat"]}}, parquet())
    assert turned.json()["metrics"]["prevalence_sensitive"]["accuracy"] == 0.8


def test_folds_are_mapped_too(client: httpx.Client) -> None:
    columns = {"y_true": "label", "y_pred": "guess", "fold": "part"}
    source = {"kind": "folds", "fold": {"kind": "predictions", "labels": ["cat", "dog"]}, "columns": columns}
    found = post(client, source, parquet())
    assert found.status_code == 200, found.text
    assert found.json()["folds"]["accuracy"]["values"] == [1.0, pytest.approx(2 / 3)]


@pytest.mark.parametrize("ids", [["1.10", "1.1", "2.5"], ["True", "False", "True"], ["7.0", "7", "8.0"]])
def test_ids_of_csv_are_read_alike_whatever_their_column_is_called(client: httpx.Client, ids: list[str]) -> None:
    rows = [f"{label},{guess},{one}" for label, guess, one in zip("aabbab", "abbbaa", ids * 2, strict=True)]
    found = []
    for name in ("group_id", "visit"):
        data = "\n".join([f"y_true,y_pred,{name}", *rows]).encode()
        columns = {"y_true": "y_true", "y_pred": "y_pred", "group_id": name}
        reply = post(client, {"kind": "predictions", "columns": columns}, data)
        assert reply.status_code == 200, reply.text
        found.append(reply.json())
    assert found[0] == found[1]
    assert found[0]["input"]["n_groups"] == len({*ids}) - ("7" in ids)


@pytest.mark.parametrize(
    ("columns", "pointer", "code", "said"),
    [
        ({"y_true": "label", "y_pred": "gues"}, "/input/columns", "missing_column", "'gues'"),
        ({"y_true": "label"}, "/data", "missing_column", "'y_pred'"),
        ({"y_true": ["label"], "y_pred": "guess"}, "/input/columns/y_true", "wrong_length", "each class"),
        ({"y_true": "label", "y_pred": "guess", "colour": "image"}, "/data", "unknown_column", "'colour'"),
        (["label", "guess"], "/input/columns", "column_names", "object"),
        ({"y_true": 3}, "/input/columns", "column_names", "object"),
    ],
)
def test_what_does_not_fit(client: httpx.Client, columns: Any, pointer: str, code: str, said: str) -> None:
    reply = post(client, {"kind": "predictions", "columns": columns}, parquet())
    (fault, *_) = check_problem(reply, 422, reply.json()["code"])["errors"]
    assert (fault["pointer"], fault["code"]) == (pointer, code)
    assert said in fault["detail"]


def test_a_body_without_a_file_has_no_columns_to_name(client: httpx.Client) -> None:
    source = {"kind": "predictions", "y_true": [0, 1], "y_pred": [0, 1], "columns": {"y_true": "label"}}
    reply = client.post("/v1/metrics/compute", json={"input": source})
    assert check_problem(reply, 422, "invalid_request")["errors"][0]["pointer"] == "/input/columns"
