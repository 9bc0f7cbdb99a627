"""Reports of samples: predictions, probabilities, scores, folds of any of them, and files."""

import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from tests.golden.calls import Call, Json, compute, evaluation
from tests.golden.data import (
    decisions,
    groups,
    labelled,
    letters,
    matrix,
    of_counts,
    of_folds,
    of_labels,
    of_matrix,
    of_rows,
    of_scores,
    probabilities,
    scored,
    scores,
    truth,
    weights,
)

_THREE = (5, 3, 2)
_BINARY = truth(160, (3, 2))
_MANY = truth(240, _THREE)
_TWO_SCORES = scores(_BINARY, 5)
_UNIT_SCORES = [round(1 / (1 + 2.718281828 ** (-score)), 2) for score in _TWO_SCORES]

_LOGITS = [[round(20 * value - 3, 3) for value in row] for row in probabilities(_MANY, 31)]

PREDICTIONS = [
    compute("texts", labelled(200, _THREE, 0.8, 1), metrics=["f1@*", "mcc"]),
    compute("integers", of_labels(_MANY, decisions(_MANY, 0.7, 2))),
    compute("two-classes-positive-first", labelled(120, (1, 1), 0.75, 3, positive="A"), metrics=["recall"]),
    compute("further-labels", labelled(90, _THREE, 0.8, 4, labels=["D", "C", "B", "A"])),
    compute("sample-ids", labelled(60, _THREE, 0.8, 5, sample_ids=list(range(60))), seed=1),
    compute("weights", labelled(150, _THREE, 0.7, 6, sample_weight=weights(150))),
    compute("whole-weights", labelled(60, (1, 1), 0.7, 6, sample_weight=[1 + i % 3 for i in range(60)])),
    compute("all-intervals", labelled(150, _THREE, 0.8, 7), intervals="all", seed=1, draws=300),
    compute("never-predicted", of_labels(["a", "b", "c", "a", "b"], ["a", "b", "a", "a", "a"])),
    compute("twelve-classes", labelled(600, [1 + i % 3 for i in range(12)], 0.6, 8), interpretation=True),
    compute("groups", labelled(300, _THREE, 0.7, 9, group_ids=groups(300))),
    compute("groups-all", labelled(300, _THREE, 0.7, 9, group_ids=groups(300)), intervals="all", seed=2, draws=300),
    compute("groups-none", labelled(300, _THREE, 0.7, 9, group_ids=groups(300)), intervals="none"),
    compute("groups-sampled", labelled(200, (1, 1), 0.8, 9, group_ids=groups(200)), prevalence_design="sampled"),
    compute(
        "few-groups", labelled(80, (1, 1), 0.7, 10, group_ids=[i // 16 for i in range(80)]), intervals="all", draws=200
    ),
    compute("groups-of-one", labelled(70, (1, 1), 0.7, 11, group_ids=list(range(70))), metrics=["f1"]),
    compute("ignored", labelled(150, _THREE, 0.7, 13, ignore=["C"], labels=["A", "B", "C"]), metrics=["h_mean"]),
    compute("ignored-and-unknown", labelled(90, _THREE, 0.9, 14, ignore=["Z"])),
    compute("groups-and-weights", labelled(120, _THREE, 0.7, 12, group_ids=groups(120), sample_weight=weights(120))),
]

PROBABILITIES = [
    compute("three-classes", scored(240, _THREE, 0.8, 1), metrics=["roc_auc@*", "log_loss(clip=0.001)"]),
    compute(
        "two-classes",
        scored(160, (3, 2), 0.7, 2),
        metrics=["roc_auc", "h_measure(a=2, b=5)", "partial_roc_auc(max_fpr=0.2)"],
    ),
    compute("threshold", scored(160, (3, 2), 0.7, 3, threshold=0.3), metrics=["recall", "mean(roc_auc, recall)"]),
    compute("positive-first", scored(100, (1, 1), 0.7, 4, positive="A", threshold=0.6), metrics=["average_precision"]),
    compute("twelve-classes", scored(400, [2 + i % 3 for i in range(12)], 1.5, 5), metrics=["top_k_accuracy(k=3)"]),
    compute("labels-left-out", of_rows(_BINARY, probabilities(_BINARY, 6), labels=None)),
    compute(
        "renormalize", of_rows([0, 1, 1, 0], [[0.5, 0.4], [0.2, 0.9], [0.1, 0.7], [2 / 3, 1 / 3]], renormalize=True)
    ),
    compute("sum-tolerance", of_rows([0, 1, 1], [[0.501, 0.5], [0.2, 0.8], [0.4, 0.6]], sum_tolerance=0.01)),
    compute("ties", of_rows([0, 1, 2, 1], [[0.4, 0.4, 0.2], [0.5, 0.5, 0], [0.25, 0.25, 0.5], [0, 0.5, 0.5]])),
    compute("weights", scored(120, _THREE, 0.8, 7, sample_weight=weights(120)), metrics=["brier_score", "roc_auc@*"]),
    compute("groups", scored(250, _THREE, 0.8, 8, group_ids=groups(250)), metrics=["roc_auc@A"]),
    compute("groups-all", scored(250, (1, 1), 0.8, 9, group_ids=groups(250)), intervals="all", seed=3, draws=200),
    compute(
        "all-of-two",
        scored(160, (3, 2), 0.7, 10),
        intervals="all",
        seed=1,
        draws=300,
        metrics=["mean(h_mean, roc_auc)"],
    ),
    compute(
        "all-of-three", scored(150, _THREE, 0.8, 11), intervals="all", seed=2, draws=200, metrics=["mean(roc_auc@*)"]
    ),
    compute(
        "all-sampled", scored(120, (1, 1), 0.7, 12), intervals="all", prevalence_design="sampled", draws=200, level=0.9
    ),
    compute("no-intervals", scored(100, _THREE, 0.8, 13), intervals="none"),
    compute("zeros-and-ones", of_rows([0, 1, 1, 0, 1], [[1, 0], [0, 1], [1, 0], [0.5, 0.5], [0.1, 0.9]])),
    compute("one-class-only", of_rows([1, 1, 1], [[0.2, 0.8], [0.6, 0.4], [0.3, 0.7]])),
    compute("confident-and-wrong", scored(300, (1, 1), 0.0, 14), interpretation=True),
    compute("ignored", scored(150, _THREE, 0.8, 15, ignore=["C"], sample_weight=weights(150)), seed=1),
    compute("unrounded", of_rows([0, 1, 2, 2], [[0.1, 0.2, 0.7], [1 / 3, 1 / 3, 1 / 3], [0.3, 0.3, 0.4], [0, 0, 1]])),
]

SCORES = [
    compute("threshold", of_scores(letters(_BINARY), _TWO_SCORES, labels=["A", "B"], threshold=0.35)),
    compute("threshold-left-out", of_scores(_BINARY, _TWO_SCORES), metrics=["roc_auc", "ks_statistic"]),
    compute("between-0-and-1", of_scores(_BINARY, _UNIT_SCORES), metrics=["average_precision", "equal_error_rate"]),
    compute("positive-first", of_scores(letters(_BINARY), _TWO_SCORES, positive="A")),
    compute("all", of_scores(_BINARY, _TWO_SCORES, threshold=0), intervals="all", seed=1, draws=300),
    compute("many-ties", of_scores(_BINARY, scores(_BINARY, 6, decimals=0)), metrics=["roc_auc", "roc_gini"]),
    compute("weights", of_scores(_BINARY, _TWO_SCORES, sample_weight=weights(160))),
    compute("groups", of_scores(_BINARY, _TWO_SCORES, group_ids=groups(160)), intervals="all", seed=2, draws=200),
    compute("constant", of_scores([0, 1, 1, 0], [0.5, 0.5, 0.5, 0.5])),
    compute("separated", of_scores([0, 0, 1, 1], [1.5, 2.5, 3.5, 4.5], threshold=3)),
    compute("one-class-only", of_scores(["x", "x"], [0.2, 0.9], labels=["x", "y"])),
    compute(
        "of-every-class",
        of_scores(letters(_MANY), _LOGITS, labels=["A", "B", "C"]),
        metrics=["roc_auc@*", "roc_auc_ovo_macro", "recall_at(specificity=0.8)@B", "log_loss"],
    ),
    compute(
        "of-every-class-all",
        of_scores(letters(_MANY), _LOGITS, labels=["A", "B", "C"], sample_ids=list(range(240))),
        intervals="all",
        seed=1,
        draws=200,
    ),
]

FOLDS = [
    compute("matrices", of_folds(*(of_matrix(matrix(3, 90, seed)) for seed in (1, 2, 3)))),
    compute(
        "matrices-all",
        of_folds(*(of_matrix(matrix(2, 60, seed)) for seed in (4, 5))),
        intervals="all",
        seed=1,
        draws=300,
    ),
    compute("counts", of_folds(of_counts(20, 3, 4, 30), of_counts(18, 5, 2, 32)), metrics=["f1", "mean(f1@*)"]),
    compute("one", of_folds(of_matrix([[5, 1], [2, 6]]))),
    compute("fold-without-a-class", of_folds(of_matrix([[5, 1], [0, 0]]), of_matrix([[5, 1], [2, 6]]))),
    compute("predictions", of_folds(*(labelled(80, _THREE, 0.8, seed) for seed in (1, 2, 3)))),
    compute("probabilities", of_folds(*(scored(80, _THREE, 0.8, seed) for seed in (1, 2))), metrics=["roc_auc@*"]),
    compute("scores", of_folds(*(of_scores(_BINARY, scores(_BINARY, seed), threshold=0.1) for seed in (1, 2)))),
    compute("groups", of_folds(*(labelled(60, (1, 1), 0.8, seed, group_ids=groups(60)) for seed in (1, 2)))),
    compute("weights", of_folds(of_matrix([[5.5, 1], [2, 6]]), of_matrix([[4, 1], [2.5, 6]]))),
]


def _parquet(columns: Json) -> bytes:
    sink = io.BytesIO()
    pa.parquet.write_table(pa.table(columns), sink)
    return sink.getvalue()


def _arrow(columns: Json, new: Callable[..., Any] = pa.ipc.new_file) -> bytes:
    sink, table = io.BytesIO(), pa.table(columns)
    with new(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _csv(columns: Json) -> bytes:
    sink = io.BytesIO()
    pa.csv.write_csv(pa.table(columns), sink)
    return sink.getvalue()


def _npz(columns: Json) -> bytes:
    sink = io.BytesIO()
    arrays: dict[str, Any] = {name: np.array(column) for name, column in columns.items()}
    np.savez(sink, **arrays)
    return sink.getvalue()


def _send(name: str, data: bytes | None, source: Json, **members: Any) -> Call:
    return Call(name=name, method="POST", path="/v1/metrics/compute", json={"input": source, **members}, upload=data)


def _columns(actual: list[int], **others: Any) -> Json:
    return {"y_true": letters(actual), **others}


_PREDICTED = _columns(_MANY, y_pred=letters(decisions(_MANY, 0.8, 20)), sample_id=[f"{i:03}" for i in range(240)])
_ROWS = probabilities(_MANY, 21)
_SHARES = _columns(_MANY, **{name: [row[place] for row in _ROWS] for place, name in enumerate("ABC")})
_SCORED = {"y_true": _BINARY, "score": _TWO_SCORES, "sample_weight": weights(160), "group_id": groups(160)}
_DEALT = [i % 4 for i in range(240)]

FILES = [
    _send("parquet-predictions", _parquet(_PREDICTED), {"kind": "predictions"}),
    _send("csv-predictions", _csv(_PREDICTED), {"kind": "predictions", "labels": ["C", "B", "A"]}),
    _send("arrow-probabilities", _arrow(_SHARES), {"kind": "probabilities"}, options={"metrics": ["roc_auc@*"]}),
    _send(
        "stream-probabilities", _arrow(_SHARES, pa.ipc.new_stream), {"kind": "probabilities", "labels": ["B", "A", "C"]}
    ),
    _send("npz-probabilities", _npz({"y_true": np.array(_MANY), "probabilities": _ROWS}), {"kind": "probabilities"}),
    _send("parquet-scores", _parquet(_SCORED), {"kind": "scores", "threshold": 0.2}),
    _send("csv-scores", _csv(_SCORED), {"kind": "scores"}, options={"intervals": "none"}),
    _send("folds-predictions", _parquet({**_PREDICTED, "fold": _DEALT}), {"kind": "folds"}),
    _send(
        "folds-probabilities", _csv({**_SHARES, "fold": _DEALT}), {"kind": "folds", "fold": {"kind": "probabilities"}}
    ),
    _send(
        "folds-scores",
        _parquet({"y_true": _BINARY, "score": _TWO_SCORES, "fold": [f"f{i % 3}" for i in range(160)]}),
        {"kind": "folds", "fold": {"threshold": 0.3}},
    ),
    Call(
        name="kept",
        method="POST",
        path="/v1/evaluations",
        json=evaluation({"kind": "predictions"}, "from a file"),
        upload=_parquet(_PREDICTED),
    ),
    _send("no-file", b"", {"kind": "predictions"}),
    _send("column-missing", _parquet(_SHARES), {"kind": "predictions"}),
    _send("not-a-file", b"\x00\x01 nothing that anybody reads", {"kind": "predictions"}),
    _send("damaged", _parquet(_PREDICTED)[:200], {"kind": "predictions"}),
    _send("given-twice", _parquet(_PREDICTED), {"kind": "predictions", "y_pred": ["A"]}),
    _send("no-columns", _parquet(_PREDICTED), {"kind": "confusion_matrix"}),
    _send("missing-value", _parquet(_columns([0, 1], y_pred=["A", None])), {"kind": "predictions"}),
    _send("no-fold-column", _parquet(_PREDICTED), {"kind": "folds"}),
    _send("not-folds", _parquet({**_PREDICTED, "fold": [0.5] * 240}), {"kind": "folds"}),
    Call(name="no-json", method="POST", path="/v1/evaluations", upload=_parquet(_PREDICTED)),
    Call(
        name="form-without-file",
        method="POST",
        path="/v1/metrics/compute",
        content=b'--b\r\nContent-Disposition: form-data; name="evaluation"\r\n\r\n'
        + json.dumps({"input": {"kind": "predictions"}}).encode()
        + b"\r\n--b--\r\n",
        headers={"content-type": "multipart/form-data; boundary=b"},
    ),
]


def _ranking(seed: int, **members: Any) -> Json:
    """Items of twelve queries, one of them without relevant items, in mixed order and with ties."""
    places = [(item * 7 + seed) % 96 for item in range(96)]
    return {
        "kind": "ranking",
        "query_ids": [f"q{place // 8}" for place in places],
        "relevance": [0 if place < 8 else (place * place) % 5 // 2 for place in places],
        "scores": [(place * (seed + 3)) % 23 / 4 for place in places],
        **members,
    }


RANKINGS = [
    compute("default-cutoffs", _ranking(1)),
    compute("cutoffs", _ranking(2, cutoffs=[2, 5]), metrics=["ndcg_at_k(k=3, gain=exponential)", "mrr"]),
    compute("all-intervals", _ranking(3), intervals="all", seed=1, draws=300, metrics=["gps(query_auc, r_precision)"]),
    compute("ranks", {**_ranking(4), "scores": None, "ranks": [1 + item % 9 for item in range(96)]}),
]
