"""Data of every library, sent as JSON and as Arrow, is the same data."""

import csv
import io
import json
import tracemalloc
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import prevail
import pyarrow as pa
import pyarrow.parquet
import pytest
from prevail.uploads import bodies, inputs
from prevail.uploads.progress import drawn, watcher
from scipy.sparse import csr_array

from tests.bank import each
from tests.client.conftest import LABELS, MATRIX

TRUE = ["cat", "dog", "dog", "bird", "cat", "dog"]
GUESS = ["cat", "dog", "cat", "bird", "cat", "dog"]
CODES = [1, 2, 2, 0, 1, 2]
SHARES = [[0.1, 0.8, 0.1], [0.1, 0.2, 0.7], [0.1, 0.5, 0.4], [0.9, 0.05, 0.05], [0.2, 0.6, 0.2], [0.0, 0.3, 0.7]]

TABLE = pd.DataFrame({"x": [1, 0, 1], "z": [0, 1, 1]})


class Tensor:
    """Has what a tensor of torch has, and needs gradients."""

    def __init__(self, values: Any) -> None:
        self._values, self.dtype = np.asarray(values), "torch.float32"

    def detach(self) -> "Tensor":
        return self

    def cpu(self) -> "Tensor":
        return self

    def numpy(self) -> Any:
        return self._values

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad")


class Capsule:
    """Speaks Arrow and nothing else."""

    def __init__(self, values: Any) -> None:
        self._values = pa.chunked_array([values])

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._values.__arrow_c_stream__(requested_schema)


class Lazy:
    """Has the names of its columns and no data, as a lazy frame of polars."""

    columns = ("bird", "cat", "dog")

    def collect_schema(self) -> dict[str, str]:
        return dict.fromkeys(self.columns, "Float64")

    def __getitem__(self, name: str) -> Any:
        raise TypeError("LazyFrame is not subscriptable (aside from slicing)")


@pytest.mark.parametrize(
    "made",
    [
        list,
        tuple,
        np.array,
        pd.Series,
        pd.Index,
        pd.Categorical,
        pa.array,
        lambda values: pa.chunked_array([values[:2], values[2:]]),
        Capsule,
        iter,
        lambda values: np.array(values)[:, None],
        lambda values: pd.DataFrame({"label": values}),
    ],
)
def test_labels_of_every_library(pv: prevail.Client, made: Any) -> None:
    found = pv.evaluate(made(TRUE), made(GUESS))
    assert found.confusion_matrix == [[1, 0, 0], [0, 2, 0], [0, 1, 2]]
    assert found.labels == ["bird", "cat", "dog"]
    assert found.id is None


@pytest.mark.parametrize(
    "made",
    [
        list,
        np.array,
        lambda rows: [np.array(row) for row in rows],
        lambda rows: np.asfortranarray(rows),
        lambda rows: np.array(rows, dtype=np.float32),
        Tensor,
        lambda rows: pd.DataFrame(rows, columns=["bird", "cat", "dog"]),
        lambda rows: pa.table(
            {name: [row[place] for row in rows] for place, name in enumerate(["bird", "cat", "dog"])}
        ),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_probabilities_of_every_library(
    pv: prevail.Client, made: Any, streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if streamed:
        monkeypatch.setattr(inputs, "STREAMED_CELLS", 1)
        monkeypatch.setattr(bodies, "_BATCH_CELLS", 8)
    found = pv.evaluate(np.array(TRUE), probabilities=made(SHARES), options={"metrics": ["log_loss"]}, input=None)
    expected = -np.log([0.8, 0.7, 0.4, 0.9, 0.6, 0.7]).mean()
    assert float(found["log_loss"]) == pytest.approx(expected, rel=1e-6)
    assert found.labels == ["bird", "cat", "dog"]


def test_without_arrow_much_data_is_sent_as_json_in_parts(pv: prevail.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "STREAMED_CELLS", 1)
    monkeypatch.setattr(inputs, "has_arrow", lambda: False)
    monkeypatch.setattr(bodies, "_BATCH_CELLS", 4)
    told: list[prevail.Progress] = []
    found = pv.evaluate(
        TRUE, probabilities=SHARES, sample_ids=range(6), labels=["bird", "cat", "dog"], progress=told.append
    )
    assert found.confusion_matrix == [[1, 0, 0], [0, 2, 0], [0, 1, 2]]
    assert told[-1].share == 1.0
    assert [one.done for one in told] == sorted(one.done for one in told)
    with pytest.raises(prevail.InvalidInput, match=r"sample_weight\[5\]: expected finite"):
        pv.evaluate(TRUE, GUESS, sample_weight=[1.0] * 5 + [float("nan")])


def test_a_million_rows_are_sent_in_bounded_memory() -> None:
    rows = np.full((1_000_000, 10), 0.1)
    truth = np.zeros(1_000_000, dtype=np.int8)
    given = inputs.Given(y_true=truth, probabilities=rows, labels=range(10))
    before, highest, sent = pa.total_allocated_bytes(), 0, 0
    tracemalloc.start()
    try:
        _, parts, _ = inputs.prepared({}, given, None)
        assert parts is not None
        for part in parts():
            sent += len(part)
            highest = max(highest, pa.total_allocated_bytes() - before)
        _, of_python = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sent > rows.nbytes
    # A batch as arrays and as the bytes that are sent, of the 81 MB that go out in all.
    assert highest + of_python < 12e6


@pytest.mark.parametrize("made", [dict, pd.DataFrame])
def test_attributes_make_slices(pv: prevail.Client, made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    beside = {"site": ["A", "B", "A", None, "B", "B"], "age": [30.0, float("nan"), 41.5, 50.0, 28.0, 77.0]}
    for cells in (bodies.STREAMED_CELLS, 1):
        monkeypatch.setattr(inputs, "STREAMED_CELLS", cells)
        run = pv.evaluate(TRUE, GUESS, attributes=made(beside), model=f"m{cells}", dataset=made.__name__)
        assert pv.evaluation(run, slice='site="B"').data["input"]["n_samples"] == 3
        assert pv.evaluation(run, slice="site=null").data["input"]["slice"] == {
            "where": "site=null",
            "size": 1,
            "of": 6,
        }
        some = pv.evaluation(run, slice="age<50")
        assert some.data["input"]["n_samples"] == 3
        assert "slice age<50" in some.text()
        assert "3 of 6 samples" in some.text()
    with pytest.raises(prevail.errors.InvalidInput, match="expected columns by name or a data frame"):
        pv.evaluate(TRUE, GUESS, attributes=["A"] * 6)


def test_attributes_of_files(pv: prevail.Client, tmp_path: Path) -> None:
    table = pd.DataFrame({"y_true": TRUE, "y_pred": GUESS, "site": ["A", "B", "A", None, "B", "B"]})
    table.to_parquet(tmp_path / "some.parquet")
    run = pv.evaluate(file=tmp_path / "some.parquet", attributes=["site"], model="m", dataset="file")
    assert pv.evaluation(run, slice="site=null").data["input"]["n_samples"] == 1


def test_codes_are_translated_by_a_mapping_and_by_nothing_else(pv: prevail.Client) -> None:
    names = {0: "bird", 1: "cat", 2: "dog"}
    assert pv.evaluate(CODES, probabilities=Tensor(SHARES), labels=names).labels == ["bird", "cat", "dog"]
    with pytest.raises(prevail.InvalidInput, match="7 is none of the codes"):
        pv.evaluate([7, *CODES[1:]], probabilities=SHARES, labels=names)
    with pytest.raises(prevail.InvalidInput) as refused:
        pv.evaluate(CODES, CODES, labels=["bird", "cat", "dog"])
    assert refused.value.faults[0].pointer.startswith("/input/")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"y_true": TRUE}, "expected one of y_pred"),
        ({"y_pred": GUESS}, "y_true: expected the actual classes"),
        ({"y_true": TRUE, "y_pred": GUESS, "scores": [1.0] * 6}, "got y_pred and scores"),
        ({"y_true": TRUE, "y_pred": GUESS[:5]}, "y_true has 6, y_pred has 5"),
        ({"y_true": TRUE, "probabilities": [[float("nan"), 1.0]] * 6}, "not_probabilities|from 0 to 1|finite"),
        ({"y_true": TRUE, "probabilities": [[-3.0, 8.0]] * 6}, "take the softmax"),
        ({"y_true": TRUE, "probabilities": np.zeros(6)}, "samples x classes"),
        ({"y_true": "cat", "y_pred": GUESS}, "expected a list or an array, got str"),
        ({"y_true": TRUE, "y_pred": GUESS, "labels": {*TRUE}}, "labels: expected a list or an array, got set"),
        (
            {"y_true": [b"a", b"b"], "y_pred": [b"a", b"b"]},
            "y_true: expected numbers, texts and lists of them, got byt",
        ),
        ({"y_true": pd.Series(["a", None]), "y_pred": ["a", "a"]}, r"y_true\[1\]: .* or NaN, as what is missing"),
        (
            {"y_true": [0, 1], "probabilities": [[False, True]] * 2},
            r"probabilities\[0\]\[0\]: expected a number, got boo",
        ),
        (
            {"y_true": TRUE, "y_pred": GUESS, "attributes": {"age": pd.cut(pd.Series([1, 2, 3, 4, 5, 6]), 2)}},
            r"expected numbers, texts and lists of them, got Interval \(0.995, 3.5\]",
        ),
        ({"y_true": TRUE, "scores": [1.0, float("inf"), 0, 0, 0, 0]}, "finite"),
        ({"y_true": TRUE, "y_pred": GUESS, "metrics": "h_mean"}, "metrics: expected a list, got the text"),
        ({"matrix": MATRIX, "y_true": TRUE}, "y_true: expected it beside what was predicted"),
        ({"input": {"kind": "confusion_matrix", "matrix": MATRIX}, "y_true": TRUE}, "got it beside input"),
        ({"matrix": MATRIX, "file": "p.csv"}, "matrix: expected it, a file or data"),
        ({"y_true": "y", "y_pred": "p", "labels": {0: "b", 1: "a"}, "file": "p.csv"}, "labels: a mapping translates"),
        (
            {"y_true": TRUE, "probabilities": [[0.5, None]] * 6},
            r"probabilities\[0\]\[1\]: expected a number, got NoneType",
        ),
        ({"y_true": TRUE, "probabilities": [["a", "b"]] * 6}, r"probabilities\[0\]\[0\]: expected a number, got str"),
        ({"matrix": pd.crosstab(pd.Series([*"abc"]), pd.Series([*"abd"]))}, "rows are named a, b, c, and .* a, b, d"),
        ({"y_true": TABLE, "y_pred": TABLE.rename(columns={"x": "q"})}, "y_pred: the columns are named q, z"),
        ({"matrix": pd.crosstab(pd.Series([*"aab"]), pd.Series([*"abb"]), margins=True)}, "'All' are the sums"),
        ({"matrix": [[5, 1], [float("nan"), 2]]}, r"matrix\[1\]\[0\]: expected finite"),
        ({"input": {"kind": "confusion_matrix", "matrix": np.array([[1, np.inf]])}}, r"^matrix\[0\]\[1\]: expected"),
        (
            {"y_true": TRUE, "y_pred": GUESS, "attributes": {"age": [1.0, *[float("inf")] * 5]}},
            r"attributes.age\[1\]: ",
        ),
        ({"y_true": TRUE, "y_pred": GUESS, "level": float("nan")}, "options.level: expected finite"),
        ({"y_true": TRUE, "probabilities": pa.array([{"dog": 0.5, "cat": 0.5}] * 6)}, "column of structs: unnest"),
        ({"y_true": TRUE, "probabilities": Lazy()}, "got a Lazy: collect it first"),
        ({"y_true": TRUE, "y_pred": GUESS, "attributes": Lazy()}, "got a Lazy: collect it first"),
        ({"file": "/nowhere/x.parquet"}, "there is no file"),
    ],
)
def test_what_cannot_be_meant_is_said_before_anything_is_sent(wrong: dict[str, Any], said: str) -> None:
    with prevail.Client("http://127.0.0.1:9", retries=0) as client, pytest.raises(prevail.InvalidInput, match=said):
        client.evaluate(**wrong)


def test_two_classes_told_apart_by_chance_are_no_sums(pv: prevail.Client) -> None:
    found = pv.evaluate(matrix=pd.DataFrame([[5, 5], [5, 5]], index=["a", "b"], columns=["a", "b"]))
    assert found.confusion_matrix == [[5, 5], [5, 5]]


@pytest.mark.parametrize("labels", [["bird", "cat", "dog"], {0: "bird", 1: "cat", 2: "dog"}])
def test_columns_of_a_table_are_found_by_their_names_in_any_order(pv: prevail.Client, labels: Any) -> None:
    names = [2, 0, 1] if isinstance(labels, dict) else ["dog", "bird", "cat"]
    shares = pd.DataFrame(np.array(SHARES)[:, [2, 0, 1]], columns=names)
    found = pv.evaluate(TRUE, probabilities=shares, labels=labels)
    assert (
        found.data["metrics"] == pv.evaluate(TRUE, probabilities=SHARES, labels=["bird", "cat", "dog"]).data["metrics"]
    )
    counts = pd.DataFrame([[2, 0, 1], [0, 1, 0], [0, 0, 2]], index=names, columns=names)
    expected = [[1, 0, 0], [0, 2, 0], [0, 1, 2]]
    assert pv.evaluate(matrix=counts, labels=labels).confusion_matrix == expected
    assert pv.evaluate(matrix=counts.loc[names[::-1]], labels=labels).confusion_matrix == expected
    # Numbers that pandas gives by itself are no names.
    assert pv.evaluate(matrix=pd.DataFrame(expected), labels=[2, 1, 0]).confusion_matrix == expected


@pytest.mark.parametrize("member", ["y_pred", "probabilities"])
def test_columns_of_several_labels_are_those_of_the_same_name(pv: prevail.Client, member: str) -> None:
    found = pv.evaluate(TABLE, **{member: TABLE[["z", "x"]]})
    assert (found["h_mean"].value, found.labels) == (1.0, ["x", "z"])
    assert pv.evaluate(TABLE, TABLE[["z", "x"]], labels=["z", "x"]).labels == ["z", "x"]
    lists = [["x"], ["z"], ["x", "z"]]
    for made in (pd.Series, pa.array, lambda values: pa.array(values, pa.large_list(pa.string()))):
        assert pv.evaluate(made(lists), made(lists)).labels == ["x", "z"]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "given",
    [
        {"y_true": np.array(CODES, dtype=">i8"), "probabilities": np.array(SHARES, dtype=">f8")},
        {"y_true": np.array(CODES), "probabilities": np.array(SHARES, dtype=np.longdouble)},
        {"y_true": np.array(CODES, dtype=float), "probabilities": SHARES},
        {"y_true": CODES, "probabilities": pd.DataFrame(SHARES).astype(object)},
        {"y_true": CODES, "y_pred": CODES, "sample_ids": ["x", 1, 2, 3, 4, 5]},
        {"y_true": CODES, "y_pred": CODES, "sample_ids": pd.date_range("2026-01-01", periods=6)},
    ],
)
def test_much_data_may_be_what_little_may_be(
    pv: prevail.Client, given: dict[str, Any], streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "STREAMED_CELLS", 1 if streamed else 20_000)
    assert pv.evaluate(**given).labels == ["0", "1", "2"]


def test_labels_of_two_types_are_refused_in_much_data_too(pv: prevail.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "STREAMED_CELLS", 1)
    with pytest.raises(prevail.InvalidInput, match="labels of one type, got strings and integers"):
        pv.evaluate([1, *TRUE[1:]], probabilities=SHARES)
    with pytest.raises(prevail.InvalidInput, match="integer labels within 64 bits"):
        pv.evaluate([2**70, 1, 2], [1, 1, 2])
    with pytest.raises(prevail.InvalidInput, match=r"labels.*: expected labels that differ"):
        pv.evaluate([1, 2], probabilities=np.full((2, 3), 1 / 3), labels=[1, "1", 2])


def test_a_table_may_have_a_class_that_does_not_occur(pv: prevail.Client) -> None:
    shares = pd.DataFrame({"a": [0.5, 0.2], "b": [0.3, 0.7], "c": [0.2, 0.1]})
    assert pv.evaluate(["a", "b"], probabilities=shares).labels == ["a", "b", "c"]


def test_labels_may_be_sparse(pv: prevail.Client) -> None:
    y_true, y_pred = np.array([[1, 0], [0, 1], [1, 1]]), np.array([[1, 0], [1, 1], [0, 1]])
    expected = pv.evaluate(y_true, y_pred).data["metrics"]
    assert pv.evaluate(csr_array(y_true), csr_array(y_pred)).data["metrics"] == expected


@pytest.mark.parametrize("streamed", [False, True])
def test_the_positive_class_may_be_a_number_of_numpy(
    pv: prevail.Client, streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "STREAMED_CELLS", 1 if streamed else 20_000)
    for zero in (np.int64(0), np.bool_(False)):
        classes = np.array([0, 1, 1]).astype(zero.dtype)
        assert pv.evaluate(classes, classes, positive=zero).data["input"]["positive"] == str(zero).lower()
    shares = np.array([[0.5, 0.5]] * 3)
    assert pv.evaluate([0, 1, 1], probabilities=shares, positive=np.float32(0)).data["input"]["positive"] == "0"


@each("unit", ["s", "ns"])
def test_moments_are_texts_and_what_is_missing_among_them_is_missing(pv: prevail.Client, unit: str) -> None:
    days = np.array(["2026-01-01", "2026-01-02", "2026-01-01"], dtype=f"datetime64[{unit}]")
    assert pv.evaluate(days, pd.Series(days)).labels == ["2026-01-01T00:00:00", "2026-01-02T00:00:00"]
    days[2] = "NaT"
    beside = pd.DataFrame({"day": days, "age": pd.array([30, None, 40], dtype="Int64")})
    name = f"moments-{unit}"
    run = pv.evaluate([0, 1, 1], [0, 1, 0], attributes=beside, model=name, dataset=name)
    for where in ("day=null", "age=null"):
        assert pv.evaluation(run, slice=where).data["input"]["n_samples"] == 1


def test_names_of_scikit_learn(pv: prevail.Client) -> None:
    y_true, y_pred = [0, 1, 1, 0, 1, 0], [0, 1, 0, 0, 1, 1]
    patients = ["a", "a", "b", "b", "c", "c"]
    ours = pv.evaluate(y_true, y_pred, positive=0, group_ids=patients)
    assert ours.data["input"]["n_groups"] == 3
    assert ours.data["input"]["positive"] == "0"
    assert pv.evaluate(y_true, y_pred, pos_label=0, groups=patients).data == ours.data
    for twice in ({"pos_label": 0, "positive": 0}, {"groups": patients, "group_ids": patients}):
        with pytest.raises(prevail.InvalidInput, match="got both"):
            pv.evaluate(y_true, y_pred, **twice)


def test_files_are_sent_as_they_are(pv: prevail.Client, tmp_path: Path) -> None:
    frame = pd.DataFrame({"label": TRUE, "guess": GUESS, "row": range(6)})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.rename(columns={"label": "y_true", "guess": "y_pred", "row": "sample_id"}).to_parquet(tmp_path / "a.parquet")
    told: list[prevail.Progress] = []
    by_name = pv.evaluate("label", "guess", sample_ids="row", file=tmp_path / "a.csv", progress=told.append)
    assert by_name.confusion_matrix == pv.evaluate(file=tmp_path / "a.parquet").confusion_matrix
    assert told[-1].unit == "bytes"
    assert told[-1].total == (tmp_path / "a.csv").stat().st_size


def test_columns_of_files_that_are_not_named_have_our_names(pv: prevail.Client, tmp_path: Path) -> None:
    frame = pd.DataFrame({"label": TRUE, "y_pred": GUESS})
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert pv.evaluate("label", file=tmp_path / "a.csv").confusion_matrix == [[1, 0, 0], [0, 2, 0], [0, 1, 2]]
    frame.set_axis(["y_true", "guess"], axis=1).to_csv(tmp_path / "b.csv", index=False)
    assert pv.evaluate(y_pred="guess", file=tmp_path / "b.csv")["accuracy"].value == pytest.approx(5 / 6)


@pytest.mark.parametrize(
    ("matrix", "labels", "metrics"),
    [
        (MATRIX, ["A", "B x", '"C"', "D"], ["recall@*", "gps(recall@*, precision@D)"]),
        ([[9, 1], [0, 0]], ["yes", "no"], ["recall", "recall@*", "tpr@ *", "(precision@*)"]),
    ],
)
def test_the_table_is_the_csv_of_the_service(
    pv: prevail.Client, matrix: list[list[int]], labels: list[str], metrics: list[str]
) -> None:
    _check_table(pv.evaluate(matrix=matrix, labels=labels, metrics=metrics))


def test_the_table_has_the_shares_of_decisions(pv: prevail.Client) -> None:
    source = {"matrix": [[8, 1, 1], [0, 5, 0], [0, 0, 0]], "labels": ["A", "B", "C"], "decisions": ["A", "B", "ask"]}
    found = pv.evaluate(input={"kind": "confusion_matrix", **source})
    assert ("decision", "A", "ask", "share_of_class", 0.1) in [(*row[:5],) for row in found.rows()]
    _check_table(found)


def _check_table(found: prevail.Evaluation) -> None:
    lines = [*csv.reader(io.StringIO(found.text("text/csv")))]
    assert lines[0] == [*found.columns]
    ours = [["" if cell is None else cell for cell in row] for row in found.rows()]
    assert len(ours) == len(lines) - 1
    for mine, theirs in zip(ours, lines[1:], strict=True):
        for cell, text in zip(mine, theirs, strict=True):
            assert (float(text) == cell) if isinstance(cell, float | int) else (text.lstrip("'") == cell)


def test_values_by_name(pv: prevail.Client) -> None:
    found = pv.evaluate(matrix=MATRIX, labels=LABELS, metrics=["min(recall@*)"])
    assert found["recall@D"] == 0.16
    assert found["accuracy"].at_equal_prevalence == pytest.approx(0.79)
    low, high = found["h_mean"].low, found["h_mean"].high
    assert low is not None
    assert high is not None
    assert low < found["h_mean"] < high
    assert str(found["recall@D"]) == "0.160 (0.101 to 0.244)"
    assert "min(recall@*)" in found
    with pytest.raises(KeyError, match=r"f_beta was not computed.*metrics="):
        found["f_beta"]
    two = pv.evaluate(matrix=[[45, 5], [10, 40]])
    assert str(two["recall"]) == str(two["recall@1"]) == "0.800 (0.670 to 0.888)"
    never = pv.evaluate(matrix=[[5, 0], [5, 0]])
    assert never["precision@1"].value is None
    with pytest.raises(prevail.UndefinedValue, match="precision@1 has no value"):
        assert never["precision@1"] > 0.5


def test_what_a_matrix_has_no_use_for_is_not_passed_over(pv: prevail.Client) -> None:
    for name in ("sample_ids", "group_ids", "sample_weight"):
        vain: dict[str, Any] = {name: [1, 2]}
        with pytest.raises(prevail.InvalidInput, match=f"{name}: there is no such field"):
            pv.evaluate(matrix=MATRIX, **vain)


def test_shares_beyond_one_are_divided_where_that_is_asked_for(pv: prevail.Client) -> None:
    found = pv.evaluate(TRUE, probabilities=[[3 * one for one in row] for row in SHARES], renormalize=True)
    assert found["accuracy"] == pv.evaluate(TRUE, probabilities=SHARES)["accuracy"]


def test_reports_frames_and_notebooks(pv: prevail.Client) -> None:
    found = pv.evaluate(matrix=MATRIX, labels=["A", "B", "<script>", "D"], model="rf:7", dataset="reports")
    text = str(found)
    assert text.startswith("rf 7 on reports")
    assert "WARNING  Class D is found in 16 of 100 cases" in text
    assert max(map(len, text.splitlines())) <= 80
    assert found.text("text/markdown") != text
    frame = found.to_pandas()
    assert [*frame.columns] == [*found.columns]
    assert frame.loc[frame.metric == "h_mean", "value"].iloc[0] == pytest.approx(0.4324, abs=1e-4)
    page = found._repr_html_()
    assert "&lt;script&gt;" in page
    assert "<script>" not in page
    assert "0.432" in page
    assert repr(found).startswith("<Evaluation rf 7 on reports, 2,000 samples")
    assert json.loads(json.dumps(found.to_dict())) == found.data
    assert found.to_dict()["id"] == found.id


def test_kept_only_with_names_unless_told(pv: prevail.Client) -> None:
    assert pv.evaluate(matrix=MATRIX, model="kept").id is None
    with pytest.raises(prevail.InvalidInput) as refused:
        pv.evaluate(matrix=MATRIX, store=True)
    assert [one.place for one in refused.value.faults] == ["model", "dataset"]
    kept = pv.evaluate(matrix=MATRIX, model="kept:1", dataset="d", split="s", tags={"stage": "candidate"})
    assert kept.id is not None
    assert pv.evaluation("kept:1").id == pv.evaluation("stage=candidate", dataset="d", split="s").id == kept.id
    assert pv.tag(kept, {"stage": None, "by": "me"}).tags == {"by": "me"}
    assert [one["id"] for one in pv.evaluations(model="kept")] == [kept.id]
    pv.delete_evaluation(kept)
    with pytest.raises(prevail.NotFound, match="no evaluation of kept:1"):
        pv.evaluation("kept:1")


def test_batches_fail_one_by_one(pv: prevail.Client) -> None:
    source = {"kind": "confusion_matrix", "matrix": MATRIX}
    requests = [
        {"model": "many:1", "dataset": "d", "input": source},
        {"model": "many:2", "dataset": "d", "input": {"kind": "confusion_matrix", "matrix": [[1, -1], [0, 1]]}},
    ]
    good, bad = pv.evaluate_many(requests)
    assert isinstance(good, prevail.Evaluation)
    assert good["h_mean"] > 0.4
    assert isinstance(bad, prevail.InvalidInput)


def test_lists_are_read_to_their_end(pv: prevail.Client) -> None:
    source = {"kind": "confusion_matrix", "matrix": [[5, 1], [1, 5]]}
    pv.evaluate_many([{"model": f"paged:{number}", "dataset": "pages", "input": source} for number in range(203)])
    every = pv.evaluations(dataset="pages", limit=None)
    assert len(every) == 203
    assert every.is_complete
    some = pv.evaluations(dataset="pages", limit=201)
    assert len(some) == 201
    assert not some.is_complete
    assert "and more" in str(some)
    assert len(every.to_pandas()) == 203


def test_a_bar_is_drawn_for_somebody_who_looks_on(monkeypatch: pytest.MonkeyPatch) -> None:
    assert watcher(None) is None
    assert watcher(False) is None
    stream = StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", stream)
    bar = watcher(None)
    assert bar is not None
    bar(prevail.Progress("rows", 5, 10, "rows", 50, 0.9))
    assert stream.getvalue() == ""
    bar(prevail.Progress("rows", 6, 10, "rows", 60, 1.1))
    assert "6 of 10 rows" in stream.getvalue()


def test_the_line_of_progress() -> None:
    progress = prevail.Progress("p.parquet", 31_500_000, 42_000_000, "bytes", 31_500_000, 3.0)
    assert drawn(progress, unicode=False) == (
        "uploading  p.parquet  31.5 of 42.0 MB   75 %  ###############.....  1 s left"
    )
