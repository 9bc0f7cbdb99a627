"""Files of samples: the same request as in JSON, the same answer."""

import gzip
import io
import json
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import pytest

from tests.api.answers import check_problem, compute, create, evaluation
from tests.api.test_probabilities import make, make_scores
from tests.bank import each

Json = dict[str, Any]
Columns = dict[str, Any]


def as_parquet(columns: Columns) -> bytes:
    sink = io.BytesIO()
    pa.parquet.write_table(pa.table(columns), sink, row_group_size=50)
    return sink.getvalue()


def as_arrow_file(columns: Columns) -> bytes:
    sink = io.BytesIO()
    table = pa.table(columns)
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def as_arrow_stream(columns: Columns) -> bytes:
    sink = io.BytesIO()
    table = pa.table(columns)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def as_csv(columns: Columns) -> bytes:
    sink = io.BytesIO()
    pa.csv.write_csv(pa.table(columns), sink)
    return sink.getvalue()


def as_npz(columns: Columns) -> bytes:
    sink = io.BytesIO()
    arrays: dict[str, Any] = {name: np.array(column) for name, column in columns.items()}
    np.savez(sink, **arrays)
    return sink.getvalue()


FORMATS: dict[str, Callable[[Columns], bytes]] = {
    "parquet": as_parquet,
    "arrow file": as_arrow_file,
    "arrow stream": as_arrow_stream,
    "csv": as_csv,
    "npz": as_npz,
}


def send(
    client: httpx.Client, source: Json, data: bytes, path: str = "/v1/metrics/compute", **members: Any
) -> httpx.Response:
    return client.post(
        path,
        data={"evaluation": json.dumps({"input": source, **members})},
        files={"data": ("samples", data, "application/octet-stream")},
    )


@pytest.fixture
def source() -> Json:
    return make(n=120, sample_ids=[f"{i:03}" for i in range(120)], sample_weight=[1.0 + i % 3 for i in range(120)])


def columns_of(source: Json) -> Columns:
    matrix = np.array(source["probabilities"])
    return {
        "y_true": source["y_true"],
        "sample_id": source["sample_ids"],
        "sample_weight": source["sample_weight"],
        **{str(code): matrix[:, code] for code in range(3)},
    }


@pytest.mark.parametrize("write", FORMATS.values(), ids=FORMATS.keys())
def test_probabilities(client: httpx.Client, source: Json, write: Callable[[Columns], bytes]) -> None:
    data = write(columns_of(source))
    expected = compute(client, source, seed=0)
    for labels in ({}, {"labels": ["0", "1", "2"]}, {"labels": [0, 1, 2]}):
        reply = send(client, {"kind": "probabilities", **labels}, data, options={"seed": 0})
        assert reply.status_code == 200, reply.text
        assert reply.json() == expected
    # Columns are found by name: another order of the labels is another order of the classes.
    turned = send(client, {"kind": "probabilities", "labels": [2, 0, 1]}, data).json()
    assert turned["input"]["labels"] == ["2", "0", "1"]
    assert turned["per_class"]["2"]["prevalence_insensitive"]["recall"] == pytest.approx(
        expected["per_class"]["2"]["prevalence_insensitive"]["recall"]
    )


@pytest.mark.parametrize("write", FORMATS.values(), ids=FORMATS.keys())
def test_predictions_and_scores(client: httpx.Client, write: Callable[[Columns], bytes]) -> None:
    truth, predicted = ["cat", "dog", "cat", "dog", "dog"], ["cat", "dog", "dog", "dog", "cat"]
    reply = send(client, {"kind": "predictions"}, write({"y_true": truth, "y_pred": predicted}))
    assert reply.json() == compute(client, {"kind": "predictions", "y_true": truth, "y_pred": predicted})
    numbers = {"y_true": [2, 10, 10, 2], "y_pred": [10, 10, 2, 2]}
    reply = send(client, {"kind": "predictions"}, write(numbers))
    # By value, not by alphabet.
    assert reply.json()["input"]["labels"] == ["2", "10"]
    scored = make_scores()
    data = write({"y_true": scored["y_true"], "score": scored["scores"]})
    reply = send(client, {"kind": "scores", "threshold": 0.5}, data)
    assert reply.json() == compute(client, scored)


def test_samples_of_ignored_classes_need_no_column(client: httpx.Client) -> None:
    rows: Columns = {"y_true": ["a", "b", "void", "b"], "a": [0.5, 0.25, 1.0, 0.75], "b": [0.5, 0.75, 0.0, 0.25]}
    same = {"y_true": rows["y_true"], "probabilities": [*map(list, zip(rows["a"], rows["b"], strict=True))]}
    expected = compute(client, {"kind": "probabilities", "ignore": ["void"], **same})
    for write in FORMATS.values():
        assert send(client, {"kind": "probabilities", "ignore": ["void"]}, write(rows)).json() == expected
    refused = send(client, {"kind": "probabilities"}, as_csv(rows))
    assert check_problem(refused, 422, "invalid_input")["errors"][0]["code"] == "unknown_label"


@pytest.mark.parametrize("write", FORMATS.values(), ids=FORMATS.keys())
def test_labels_that_are_there_are_true_or_1(client: httpx.Client, write: Callable[[Columns], bytes]) -> None:
    there, said = [[True, False], [True, True], [False, True]], [[True, True], [False, True], [False, True]]
    names = [f"{table}.{label}" for table in ("y_true", "y_pred") for label in "ab"]
    flags = [*zip(*there, strict=True), *zip(*said, strict=True)]
    expected = compute(client, {"kind": "multilabel", "labels": ["a", "b"], "y_true": there, "y_pred": said})
    for kind in (bool, int, float):
        columns = {name: [*map(kind, column)] for name, column in zip(names, flags, strict=True)}
        assert send(client, {"kind": "multilabel"}, write(columns)).json() == expected


def test_whole_decimals_are_whole_numbers(client: httpx.Client) -> None:
    large = pa.array([2**53 + 1, 2**53, 2**53 + 2], pa.decimal128(38, 0))
    answer = send(client, {"kind": "predictions"}, as_parquet({"y_true": large, "y_pred": large})).json()
    assert answer["input"]["labels"] == [str(2**53 + place) for place in range(3)]


def test_attributes_may_be_called_as_columns_of_other_kinds(client: httpx.Client) -> None:
    columns = {"y_true": ["a", "b"], "y_pred": ["a", "a"], "score": [0.5, 1.5]}
    kept = {"kind": "predictions", "columns": {"attributes": {"score": "score"}}}
    reply = send(client, kept, as_csv(columns), options={"metrics": ["accuracy[score<1]"]})
    assert reply.json()["requested"]["accuracy[score<1]"] == 1.0


def test_what_is_sent_as_a_file_is_kept_like_any_other(client: httpx.Client, source: Json) -> None:
    members = {"model": {"name": "m"}, "dataset": {"name": "files"}}
    reply = send(client, {"kind": "probabilities"}, as_parquet(columns_of(source)), "/v1/evaluations", **members)
    assert reply.status_code == 201, reply.text
    made = reply.json()
    assert client.get(f"/v1/evaluations/{made['id']}").json() == made
    alike = create(client, evaluation(input=source))
    assert alike["metrics"] == made["metrics"]


def test_narrow_types(client: httpx.Client) -> None:
    columns = {
        "y_true": pa.array(["a", "b", "a", "b"]).dictionary_encode(),
        "a": pa.array([0.75, 0.5, 1, 0.25], pa.float32()),
        "b": pa.array([0.25, 0.5, 0, 0.75], pa.float32()),
    }
    answer = send(client, {"kind": "probabilities"}, as_parquet(columns)).json()
    assert answer["input"]["labels"] == ["a", "b"]
    assert answer["input"]["ties"] == 1
    arrays = as_npz({"y_true": [0, 1, 1], "probabilities": [[0.5, 0.5], [0.2, 0.8], [0.6, 0.4]]})
    answer = send(client, {"kind": "probabilities"}, arrays).json()
    assert answer["input"]["confusion_matrix"] == [[1, 0], [1, 1]]


GOOD: Columns = {"y_true": [0, 1, 1], "0": [0.5, 0.25, 1.0], "1": [0.5, 0.75, 0.0]}
FAULTS: dict[str, tuple[Json, bytes, str, str]] = {
    "nonsense": ({}, b"\x00\x01\x02", "/data", "unreadable_data"),
    "empty": ({}, b"", "/data", "unreadable_data"),
    "cut parquet": ({}, as_parquet(GOOD)[:-20], "/data", "unreadable_data"),
    "cut zip": ({}, as_npz(GOOD)[:-30], "/data", "unreadable_data"),
    "cut arrow": ({}, as_arrow_file(GOOD)[:-30], "/data", "unreadable_data"),
    "objects": (
        {},
        as_npz({"y_true": np.array([{}, 1], dtype=object), "0": [1], "1": [1]}),
        "/data",
        "not_a_column",
    ),
    "no truth": ({}, as_csv({"0": [1.0], "1": [0.0]}), "/data", "missing_column"),
    "no column of a class": ({"labels": ["0", "1", "2"]}, as_csv(GOOD), "/data", "missing_column"),
    "no scores": ({"kind": "scores"}, as_csv({"y_true": [0, 1], "1": [1.0, 2.0]}), "/data", "missing_column"),
    "missing value": ({}, as_parquet({**GOOD, "1": [0.5, None, 0.0]}), "/data", "missing_value"),
    "text": ({}, as_parquet({**GOOD, "1": ["a", "b", "c"]}), "/data", "not_numbers"),
    "dates": ({}, as_parquet({**GOOD, "1": pa.array([1, 2, 3], pa.date32())}), "/data", "not_numbers"),
    "uneven": ({}, as_npz({**GOOD, "1": [0.5]}), "/data", "wrong_length"),
    "sum": ({}, as_csv({**GOOD, "1": [0.5, 0.7, 0.0]}), "/input/probabilities/1", "row_sum"),
    "NaN": ({}, as_npz({**GOOD, "1": [0.5, np.nan, 0.0]}), "/input/probabilities/1/1", "not_finite"),
    "label that is none": ({"labels": ["0", None]}, as_csv(GOOD), "/input/labels/1", "label_type"),
    "NaN in a CSV": ({}, b"y_true,0,1\n0,.5,.5\n1,nan,1\n", "/input/probabilities/1/0", "not_finite"),
    "NaN in a ranking": ({"kind": "ranking"}, b"query_id,relevance,score\na,1,NaN\n", "/data", "not_finite"),
    "missing truth": ({}, b"y_true,0,1\n0,.5,.5\n,0,1\n", "/data", "missing_value"),
    "missing group": ({}, b"y_true,0,1,group_id\n0,.5,.5,a\n1,0,1,\n", "/data", "missing_value"),
    "missing id": ({}, b'y_true,0,1,sample_id\n0,.5,.5,""\n1,0,1,7\n', "/data", "missing_value"),
    "missing among values": (
        {},
        as_arrow_file({**GOOD, "group_id": pa.DictionaryArray.from_arrays([0, 1, 0], ["a", None])}),
        "/data",
        "missing_value",
    ),
    "class called as weights": (
        {"labels": [0, "sample_weight"]},
        as_csv({"y_true": [0, 0], "0": [1.0, 0.0], "sample_weight": [0.0, 1.0]}),
        "/data",
        "duplicate_column",
    ),
    "one column of two classes": (
        {"labels": [0, 1], "columns": {"y_true": "y_true", "probabilities": ["0", "0"]}},
        as_parquet(GOOD),
        "/data",
        "duplicate_column",
    ),
    "given twice": ({"y_true": [0, 1, 1]}, as_csv(GOOD), "/input/y_true", "given_twice"),
    "matrix": ({"kind": "confusion_matrix", "matrix": [[1, 0], [0, 1]]}, as_csv(GOOD), "/input/kind", "no_columns"),
    "unknown member": ({"wieght": 1}, as_csv(GOOD), "/input/wieght", "unknown_field"),
}


@each(("members", "data", "pointer", "code"), FAULTS.values(), ids=FAULTS.keys())
def test_faults_have_their_place(client: httpx.Client, members: Json, data: bytes, pointer: str, code: str) -> None:
    reply = send(client, {"kind": "probabilities", **members}, data)
    problem = check_problem(reply, 422, reply.json()["code"])
    assert [(fault["pointer"], fault["code"]) for fault in problem["errors"]] == [(pointer, code)]


def test_forms_that_are_none(client: httpx.Client) -> None:
    path = "/v1/metrics/compute"
    files = {"data": ("samples", as_csv(GOOD))}
    reply = client.post(path, files=files)
    assert check_problem(reply, 422, "invalid_request")["errors"][0]["pointer"] == "/evaluation"
    reply = client.post(path, data={"evaluation": "{}"}, files={"other": ("samples", b"")})
    assert check_problem(reply, 422, "invalid_request")["errors"][0]["pointer"] == "/data"
    reply = client.post(path, data={"evaluation": "{"}, files=files)
    assert check_problem(reply, 400, "bad_request")["errors"][0]["pointer"] == "/evaluation"
    for text in ("{}", "[]", '{"input": {}}', '{"input": {"kind": "x"}}'):
        reply = client.post(path, data={"evaluation": text}, files=files)
        assert reply.status_code == 422, reply.text
    reply = client.post(path, content=b"x", headers={"Content-Type": "multipart/form-data"})
    fault = check_problem(reply, 400, "bad_request")["errors"][0]
    assert (fault["pointer"], fault["code"]) == ("", "invalid_form")
    assert "expected a form with one part evaluation and one part data: " in fault["detail"]


def test_a_part_comes_once(client: httpx.Client) -> None:
    evaluation = ("evaluation", (None, json.dumps({"input": {"kind": "probabilities"}}).encode()))
    data = ("data", ("samples", as_csv(GOOD)))
    for name, parts in (("data", [evaluation, data, data]), ("evaluation", [evaluation, evaluation, data])):
        reply = client.post("/v1/metrics/compute", files=parts)
        fault = check_problem(reply, 422, "invalid_request")["errors"][0]
        assert (fault["pointer"], fault["code"]) == (f"/{name}", "repeated_part")
    marked = ("evaluation", (None, b"\xef\xbb\xbf" + evaluation[1][1]))
    assert client.post("/v1/metrics/compute", files=[marked, data]).status_code == 200
    twice = b'{"input": {"kind": "scores", "kind": "probabilities"}}'
    reply = client.post("/v1/metrics/compute", files=[("evaluation", (None, twice)), data])
    assert check_problem(reply, 422, "invalid_request")["errors"][0]["code"] == "repeated_member"


def test_a_file_within_the_limit_may_not_unpack_to_more(client: httpx.Client) -> None:
    rows = 30_000_000
    constant = pa.array(np.zeros(rows, dtype=np.int8))
    sink = io.BytesIO()
    pa.parquet.write_table(pa.table({"y_true": constant, "0": constant, "1": constant}), sink, compression="zstd")
    assert len(sink.getvalue()) < 1_000_000
    reply = send(client, {"kind": "probabilities"}, sink.getvalue())
    assert "10000000 rows" in check_problem(reply, 413, "too_large")["detail"]


def test_a_form_too_large_is_refused(client: httpx.Client) -> None:
    reply = send(client, {"kind": "probabilities"}, b"0" * (17 * 1024 * 1024))
    check_problem(reply, 413, "body_too_large")


# Folds.


def dealt(source: Json, folds: list[Any]) -> Json:
    """The samples of an input as folds in JSON, in the order of their names."""
    arrays = ("y_true", "y_pred", "scores", "probabilities", "sample_ids", "sample_weight")
    return {
        "kind": "folds",
        "folds": [
            {
                name: [entry for entry, here in zip(value, folds, strict=True) if here == fold]
                if name in arrays
                else value
                for name, value in source.items()
            }
            for fold in sorted(set(folds))
        ],
    }


@pytest.mark.slow
@each("names", [range(5), ("e", "a", "d", "c", "b"), (10, 9, 2, -1, 0)], ids=str)
@each("write", FORMATS.values(), ids=FORMATS.keys())
def test_folds_of_probabilities(
    client: httpx.Client, source: Json, write: Callable[[Columns], bytes], names: Any
) -> None:
    folds = [names[index * 7 % 5] for index in range(120)]
    data = write({**columns_of(source), "fold": folds})
    expected = compute(client, dealt(source | {"labels": ["0", "1", "2"]}, folds), seed=0)
    assert len(expected["folds"]["au_imcp"]["values"]) == 5
    for shared in ({}, {"kind": "probabilities"}, {"labels": [0, 1, 2]}):
        reply = send(client, {"kind": "folds", **({"fold": shared} if shared else {})}, data, options={"seed": 0})
        assert reply.status_code == 200, reply.text
        assert reply.json() == expected


def test_folds_of_predictions_and_scores(client: httpx.Client) -> None:
    # The second fold has two of the three classes: all folds have the labels of the whole file.
    truth, predicted = ["a", "b", "c", "a", "b", "b"], ["a", "c", "c", "b", "b", "b"]
    folds = [0, 0, 0, 1, 1, 1]
    members = {"kind": "predictions", "labels": ["a", "b", "c"], "y_true": truth, "y_pred": predicted}
    reply = send(client, {"kind": "folds"}, as_parquet({"y_true": truth, "y_pred": predicted, "fold": folds}))
    assert reply.json() == compute(client, dealt(members, folds))
    scored = make_scores()
    folds = [index % 3 for index in range(len(scored["scores"]))]
    columns = {"y_true": scored["y_true"], "score": scored["scores"], "fold": folds}
    reply = send(client, {"kind": "folds", "fold": {"threshold": 0.25}}, as_csv(columns))
    labels = sorted({str(label) for label in scored["y_true"]})
    assert reply.json() == compute(client, dealt({**scored, "labels": labels, "threshold": 0.25}, folds))


def test_folds_of_an_array_of_probabilities(client: httpx.Client, source: Json) -> None:
    folds = [index // 40 for index in range(120)]
    arrays = {"y_true": source["y_true"], "probabilities": source["probabilities"], "fold": folds}
    expected = dealt({"kind": "probabilities", "labels": [0, 1, 2]} | {name: arrays[name] for name in arrays}, folds)
    for fold in expected["folds"]:
        del fold["fold"]
    assert send(client, {"kind": "folds"}, as_npz(arrays)).json() == compute(client, expected)


def test_folds_in_a_file_are_kept(client: httpx.Client, source: Json) -> None:
    folds = [index % 4 for index in range(120)]
    members = {"model": {"name": "m"}, "dataset": {"name": "folds in files"}}
    data = as_parquet({**columns_of(source), "fold": folds})
    reply = send(client, {"kind": "folds"}, data, "/v1/evaluations", **members)
    assert reply.status_code == 201, reply.text
    assert client.get(f"/v1/evaluations/{reply.json()['id']}").json() == reply.json()


FOLDED: Columns = {**GOOD, "fold": [0, 1, 1]}
FOLD_FAULTS: dict[str, tuple[Json, bytes, str, str]] = {
    "no folds": ({}, as_csv(GOOD), "/data", "missing_column"),
    "fractions": ({}, as_csv({**FOLDED, "fold": [0.5, 1.0, 1.0]}), "/data", "not_folds"),
    "missing fold": ({}, as_parquet({**FOLDED, "fold": [0, None, 1]}), "/data", "missing_value"),
    "uneven": ({}, as_npz({**FOLDED, "fold": [0, 1]}), "/data", "wrong_length"),
    "too many": (
        {},
        as_parquet({"y_true": [0, 1] * 600, "y_pred": [0, 1] * 600, "fold": list(range(1200))}),
        "/data",
        "too_many_folds",
    ),
    "given twice": ({"folds": []}, as_csv(FOLDED), "/input/folds", "given_twice"),
    "truth given twice": ({"fold": {"y_true": [1]}}, as_csv(FOLDED), "/input/fold/y_true", "given_twice"),
    "no object": ({"fold": 3}, as_csv(FOLDED), "/input/fold", "wrong_type"),
    "no kind": ({"fold": {"kind": 3}}, as_csv(FOLDED), "/input/fold/kind", "wrong_type"),
    "matrices": ({"fold": {"kind": "confusion_matrix"}}, as_csv(FOLDED), "/input/fold/kind", "no_columns"),
    "sum": ({}, as_csv({**FOLDED, "1": [0.5, 0.75, 0.5]}), "/input/folds/1/probabilities/1", "row_sum"),
    "unknown label": ({}, as_csv({**FOLDED, "y_true": [0, 1, 2]}), "/input/folds/1/y_true/1", "unknown_label"),
    "unknown member": ({"wieght": 1}, as_csv(FOLDED), "/input/wieght", "unknown_field"),
}


@pytest.mark.parametrize(("members", "data", "pointer", "code"), FOLD_FAULTS.values(), ids=FOLD_FAULTS.keys())
def test_faults_of_folds_have_their_place(
    client: httpx.Client, members: Json, data: bytes, pointer: str, code: str
) -> None:
    reply = send(client, {"kind": "folds", **members}, data)
    problem = check_problem(reply, 422, reply.json()["code"])
    assert [(fault["pointer"], fault["code"]) for fault in problem["errors"]] == [(pointer, code)]


# Labels as libraries write them.

AS_WRITTEN: dict[str, tuple[list[Any], list[Any], list[str]]] = {
    "booleans": ([True, False, True, False], [True, True, True, False], ["false", "true"]),
    "whole numbers": ([1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 0.0], ["0", "1"]),
    "booleans beside integers": ([True, False, True, False], [1, 1, 1, 0], ["0", "1"]),
    "whole numbers beside integers": ([10.0, 9.0, 10.0, 9.0], [10, 10, 10, 9], ["9", "10"]),
}


def in_every_format(client: httpx.Client, columns: Columns, **members: Any) -> list[httpx.Response]:
    source = {"kind": "predictions", **members}
    plain = client.post("/v1/metrics/compute", json={"input": {**source, **columns}})
    return [plain, *(send(client, source, write(columns)) for write in FORMATS.values())]


@pytest.mark.parametrize(("y_true", "y_pred", "labels"), AS_WRITTEN.values(), ids=AS_WRITTEN.keys())
def test_labels_as_libraries_write_them(
    client: httpx.Client, y_true: list[Any], y_pred: list[Any], labels: list[str]
) -> None:
    for reply in in_every_format(client, {"y_true": y_true, "y_pred": y_pred}):
        assert reply.status_code == 200, reply.text
        assert reply.json()["input"]["labels"] == labels
        assert reply.json()["input"]["positive"] == labels[1]
        assert reply.json()["input"]["confusion_matrix"] == [[1, 1], [0, 2]]


@pytest.mark.parametrize(
    "labels",
    [[False, True], ["false", "true"], ["False", "True"], ["FALSE", "TRUE"], [0, 1], ["0", "1"], [0.0, 1.0]],
    ids=str,
)
def test_booleans_are_found_among_the_labels(client: httpx.Client, labels: list[Any]) -> None:
    columns = {"y_true": [True, False, True, False], "y_pred": [True, True, True, False]}
    for reply in in_every_format(client, columns, labels=labels, positive=labels[0]):
        assert reply.status_code == 200, reply.text
        assert [label.lower() for label in reply.json()["input"]["labels"]] == [
            str(label).lower().removesuffix(".0") for label in labels
        ]
        assert reply.json()["input"]["confusion_matrix"] == [[1, 1], [0, 2]]


def test_booleans_of_spreadsheets_are_those_of_other_files(client: httpx.Client) -> None:
    attributes = {"columns": {"attributes": {"vip": "vip"}}}
    rows = b"y_true,y_pred,vip\nTRUE,True,TRUE\nFALSE,true,FALSE\n"
    for columns in (rows, as_parquet({"y_true": [True, False], "y_pred": [True, True], "vip": [True, False]})):
        found = send(client, {"kind": "predictions", **attributes}, columns).json()["input"]
        assert (found["labels"], found["confusion_matrix"]) == (["false", "true"], [[0, 1], [0, 1]])
    flags = b"y_true.a,y_true.b,y_pred.a,y_pred.b\nTRUE,FALSE,TRUE,TRUE\nFALSE,TRUE,FALSE,TRUE\n"
    assert (
        send(client, {"kind": "multilabel"}, flags).json()["metrics"]
        == (
            send(client, {"kind": "multilabel"}, flags.replace(b"TRUE", b"1").replace(b"FALSE", b"0")).json()["metrics"]
        )
    )


def test_classes_as_libraries_name_their_columns(client: httpx.Client) -> None:
    rates = {"no": [0.9, 0.2, 0.6, 0.1], "yes": [0.1, 0.8, 0.4, 0.9]}
    for names, truth in (
        (("0", "1"), [False, True, False, True]),
        (("False", "True"), [False, True, False, True]),
        (("0.0", "1.0"), [0.0, 1.0, 0.0, 1.0]),
        (("0", "1"), [0.0, 1.0, 0.0, 1.0]),
    ):
        columns = {"y_true": truth, names[0]: rates["no"], names[1]: rates["yes"]}
        for write in FORMATS.values():
            reply = send(client, {"kind": "probabilities"}, write(columns))
            assert reply.status_code == 200, reply.text
            assert reply.json()["input"]["confusion_matrix"] == [[2, 0], [0, 2]]


@pytest.mark.parametrize("y_true", [[0.5, 1.0, 0.0], [float("inf"), 1.0, 0.0], [2.0**60, 1.0, 0.0]], ids=str)
def test_fractions_are_no_labels(client: httpx.Client, y_true: list[float]) -> None:
    columns = {"y_true": y_true, "y_pred": [0, 1, 0]}
    for write in (as_parquet, as_arrow_file, as_npz, *([as_csv] if y_true[0] == 0.5 else [])):
        reply = send(client, {"kind": "predictions"}, write(columns))
        fault = check_problem(reply, 422, "invalid_input")["errors"][0]
        assert (fault["pointer"], fault["code"]) == ("/input/y_true/0", "not_a_label")


def test_integers_with_leading_zeros_stay_texts(client: httpx.Client) -> None:
    reply = send(client, {"kind": "predictions"}, b"y_true,y_pred\n007,008\n008,008\n")
    assert reply.json()["input"]["labels"] == ["007", "008"]


@pytest.mark.parametrize(("sign", "word"), [(b";", "semicolons"), (b"\t", "tabs")])
def test_other_separators_than_commas_are_named(client: httpx.Client, sign: bytes, word: str) -> None:
    for rows in (b"a,0.5\nb,0.25\n", b"a,0_5\nb,0_25\n"):
        data = b"y_true,score\n".replace(b",", sign) + rows.replace(b",", sign).replace(b"_", b",")
        (fault,) = check_problem(send(client, {"kind": "scores"}, data), 422, "invalid_input")["errors"]
        assert (fault["pointer"], fault["code"]) == ("/data", "wrong_separator")
        assert f"commas between the columns of a CSV, got {word}" in fault["detail"]


def test_a_file_that_is_packed_is_named_as_such(client: httpx.Client) -> None:
    data = gzip.compress(b"y_true,y_pred\na,a\nb,b\n")
    (fault,) = check_problem(send(client, {"kind": "predictions"}, data), 422, "invalid_input")["errors"]
    assert (fault["pointer"], fault["detail"]) == ("/data", "expected a file that is not packed, got gzip")


def test_one_column_with_a_semicolon_in_its_name_is_no_csv(client: httpx.Client) -> None:
    reply = send(client, {"kind": "predictions"}, as_parquet({"y_true;y_pred": ["a;a"]}))
    (fault,) = check_problem(reply, 422, "invalid_input")["errors"]
    assert (fault["code"], fault["detail"]) == (
        "missing_column",
        "expected a column 'y_true', there are only 'y_true;y_pred'",
    )


def test_the_column_that_nobody_named_is_named(client: httpx.Client) -> None:
    columns = {**GOOD, "age": [0.0, 0.0, 0.0]}
    fault = check_problem(send(client, {"kind": "probabilities"}, as_csv(columns)), 422, "invalid_input")["errors"][0]
    assert "'age'" in fault["detail"]
    assert "`labels`" in fault["detail"]
    columns = {"y_true": [0, 1], "y_pred": [0, 1], "image": ["a.png", "b.png"]}
    fault = check_problem(send(client, {"kind": "predictions"}, as_csv(columns)), 422, "invalid_input")["errors"][0]
    assert fault["detail"] == (
        "expected the columns 'y_true', 'y_pred' and at most 'sample_id', 'group_id', 'sample_weight' besides, "
        "got 'image' too: leave out what is no part of predictions, or name attributes of samples in "
        "`columns.attributes`"
    )
    columns = {"y_pred": [0, 1], "feature.age": [3.0, 4.0], "size": [1.0, 2.0]}
    fault = check_problem(send(client, {"kind": "clustering"}, as_csv(columns)), 422, "invalid_input")["errors"][0]
    assert fault["detail"].startswith("expected the columns 'y_pred', feature.* if there are features and at most ")
    # A class without a column is named before texts of other columns are read as numbers.
    columns = {"y_true": ["a", "b"], "p.a": [0.8, 0.3], "p.b": [0.2, 0.7], "site": ["north", "south"]}
    fault = check_problem(send(client, {"kind": "probabilities"}, as_csv(columns)), 422, "invalid_input")["errors"][0]
    assert fault["detail"] == "expected one of 'p.a', 'p.b', 'site', got 'a'; did you mean 'p.a'?"


@pytest.mark.parametrize("write", FORMATS.values(), ids=FORMATS.keys())
def test_one_name_in_two_spellings_is_one_class(client: httpx.Client, write: Callable[[Columns], bytes]) -> None:
    columns = {"y_true": ["\u00e9", "x", "e\u0301"], "y_pred": ["e\u0301", "x", "x"]}
    answer = send(client, {"kind": "predictions"}, write(columns)).json()
    assert answer["input"]["labels"] == ["x", "\u00e9"]
    assert answer["input"]["confusion_matrix"] == [[1, 0], [1, 1]]


@pytest.mark.parametrize("write", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("of", [str, lambda index: f"c{index}", lambda index: index << 40])
def test_a_file_is_refused_at_the_first_class_too_many(
    client: httpx.Client, write: Callable[[Columns], bytes], of: Callable[[int], Any]
) -> None:
    names = [of(index) for index in range(100_000)]
    reply = send(client, {"kind": "predictions"}, write({"y_true": [of(0)] * len(names), "y_pred": names}))
    (fault,) = check_problem(reply, 422, "invalid_input")["errors"]
    assert fault["code"] == "too_many_classes"
    assert fault["pointer"] in {"/data", "/input/y_pred/1000"}


@pytest.mark.parametrize("write", FORMATS.values(), ids=FORMATS)
def test_classes_to_be_ignored_do_not_count(client: httpx.Client, write: Callable[[Columns], bytes]) -> None:
    names = [f"c{index:04}" for index in range(1040)]
    data = write({"y_true": names, "y_pred": names[:40] * 26, "sample_id": list(range(1040))})
    answer = send(client, {"kind": "predictions", "ignore": names[40:]}, data)
    assert answer.status_code == 200, answer.text
    assert answer.json()["input"]["n_classes"] == 40
