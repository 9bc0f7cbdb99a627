"""The mistakes that users make most, in words and as requests.

`docs/reference/errors.md` is written from them and from the recorded answers (`python -m tests.golden.mistakes`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.golden.calls import Call, Json

_STORED, _COMPUTE, _COMPARE = "/v1/evaluations", "/v1/metrics/compute", "/v1/comparisons"
_MATRIX: Json = {"kind": "confusion_matrix", "matrix": [[90, 10], [4, 16]], "labels": ["healthy", "ill"]}
_PREDICTIONS: Json = {
    "kind": "predictions",
    "y_true": ["ill", "healthy", "ill", "healthy"],
    "y_pred": ["ill", "healthy", "healthy", "healthy"],
}
_PROBABILITIES: Json = {
    "kind": "probabilities",
    "y_true": ["ill", "healthy", "ill", "healthy"],
    "probabilities": [[0.2, 0.8], [0.7, 0.3], [0.6, 0.4], [0.9, 0.1]],
    "labels": ["healthy", "ill"],
}
_NAMES: Json = {"model": {"name": "tumor-rf", "version": "7"}, "dataset": {"name": "tumor", "split": "test"}}
_NOWHERE = "01900000-0000-7000-8000-000000000001"


@dataclass(frozen=True, slots=True)
class Mistake:
    """A request at fault, and the mistake in words."""

    what: str
    call: Call


# Name, the mistake, and what is sent: a body, or an address with its parameters.
Row = tuple[str, str, Any]


def _sent(method: str, path: str, rows: Sequence[Row]) -> Iterator[Mistake]:
    for name, what, body in rows:
        yield Mistake(what, Call(name=name, method=method, path=path, json=body))


def _got(rows: Sequence[Row]) -> Iterator[Mistake]:
    for name, what, address in rows:
        path, _, query = address.partition("?")
        params = dict(one.split("=", 1) for one in query.split("&")) if query else {}
        yield Mistake(what, Call(name=name, method="GET", path=path, params=params))


def _without(source: Json, *names: str) -> Json:
    return {name: value for name, value in source.items() if name not in names}


_INPUTS: Sequence[Row] = [
    ("no-kind", "an input without its kind", _without(_MATRIX, "kind")),
    ("kind", "another spelling of a kind", {**_MATRIX, "kind": "confusion-matrix"}),
    ("kind-unknown", "a kind that does not exist", {**_MATRIX, "kind": "regression"}),
    ("lables", "a field misspelt", {**_without(_MATRIX, "labels"), "lables": ["a", "b"]}),
    ("y-prob", "scikit-learn's name of a field", {**_without(_PROBABILITIES, "probabilities"), "y_prob": [[1, 0]]}),
    ("y-score", "scores under another name", {"kind": "scores", "y_true": [0, 1], "y_scores": [0.2, 0.7]}),
    ("threshold", "a threshold beside predictions", {**_PREDICTIONS, "threshold": 0.3}),
    ("matrix-text", "a matrix as text", {**_MATRIX, "matrix": "[[90,10],[4,16]]"}),
    ("matrix-flat", "a flat matrix", {**_MATRIX, "matrix": [90, 10, 4, 16]}),
    ("matrix-ragged", "a row too short", {**_MATRIX, "matrix": [[90, 10], [4]]}),
    ("matrix-negative", "a negative count", {**_MATRIX, "matrix": [[90, -10], [4, 16]]}),
    ("matrix-null", "a count that is null", {**_MATRIX, "matrix": [[90, None], [4, 16]]}),
    ("matrix-strings", "counts as texts", {**_MATRIX, "matrix": [["90", "10"], ["4", "16"]]}),
    ("matrix-nothing", "a matrix without samples", {**_MATRIX, "matrix": [[0, 0], [0, 0]]}),
    ("labels-few", "fewer labels than classes", {**_MATRIX, "labels": ["healthy"]}),
    ("labels-twice", "a label twice", {**_MATRIX, "labels": ["ill", "ill"]}),
    ("positive", "a positive class that is no label", {**_MATRIX, "positive": "il"}),
    ("orientation", "rows and columns in other words", {**_MATRIX, "orientation": "rows_predicted"}),
    ("counts-missing", "counts of two classes, one missing", {"kind": "binary_counts", "tp": 8, "fn": 2, "fp": 1}),
    ("counts-names", "counts under other names", {"kind": "binary_counts", "TP": 8, "fn": 2, "fp": 1, "tn": 9}),
    ("lengths", "one prediction too few", {**_PREDICTIONS, "y_pred": ["ill", "healthy", "ill"]}),
    ("missing-pred", "no predictions", _without(_PREDICTIONS, "y_pred")),
    ("pred-null", "a prediction that is null", {**_PREDICTIONS, "y_pred": ["ill", None, "ill", "ill"]}),
    ("pred-types", "numbers for texts", {**_PREDICTIONS, "y_pred": [1, 0, 0, 0]}),
    ("pred-probabilities", "probabilities as predictions", {**_PREDICTIONS, "y_true": [1, 0], "y_pred": [0.8, 0.3]}),
    (
        "pred-blank",
        "a label with a blank",
        {**_PREDICTIONS, "labels": ["ill", "healthy"], "y_pred": ["ill ", "healthy", "ill", "ill"]},
    ),
    ("weights-length", "weights for other samples", {**_PREDICTIONS, "sample_weight": [1, 2]}),
    ("weights-negative", "a negative weight", {**_PREDICTIONS, "sample_weight": [1, 2, -1, 1]}),
    ("weights-name", "weights under another name", {**_PREDICTIONS, "weights": [1, 2, 1, 1]}),
    ("groups-name", "groups under another name", {**_PREDICTIONS, "groups": [1, 2, 1, 1]}),
    (
        "rows-sum",
        "rows that do not sum to 1",
        {**_PROBABILITIES, "probabilities": [[0.2, 0.8], [0.7, 0.7], [0.6, 0.4], [0.9, 0.1]]},
    ),
    (
        "rows-percent",
        "probabilities in percent",
        {**_PROBABILITIES, "probabilities": [[20, 80], [70, 30], [60, 40], [90, 10]]},
    ),
    (
        "rows-one-column",
        "only the probability of the positive class",
        {**_PROBABILITIES, "probabilities": [0.8, 0.3, 0.4, 0.1]},
    ),
    ("rows-columns", "more columns than labels", {**_PROBABILITIES, "probabilities": [[0.2, 0.7, 0.1]] * 4}),
    (
        "rows-labels",
        "three columns and no labels",
        {**_without(_PROBABILITIES, "labels"), "probabilities": [[0.2, 0.7, 0.1]] * 4},
    ),
    ("rows-fewer", "fewer rows than labels of samples", {**_PROBABILITIES, "probabilities": [[0.2, 0.8]]}),
    ("threshold-percent", "a threshold in percent", {**_PROBABILITIES, "threshold": 30}),
    (
        "scores-three",
        "one score for three classes",
        {"kind": "scores", "y_true": [0, 1, 2], "scores": [0.1, 0.5, 0.9]},
    ),
]
_OPTIONS: Sequence[Row] = [
    ("metric", "a metric misspelt", {"metrics": ["acuracy"]}),
    ("metric-label", "a class misspelt", {"metrics": ["recall@il"]}),
    ("metric-parameter", "a parameter misspelt", {"metrics": ["f_beta(bta=2)"]}),
    ("metric-value", "a parameter out of range", {"metrics": ["f_beta(beta=-1)"]}),
    ("metric-bracket", "an expression cut short", {"metrics": ["min(recall@healthy, recall@ill"]}),
    ("metric-string", "one metric instead of a list", {"metrics": "accuracy"}),
    ("metric-scores", "a metric of probabilities for a matrix", {"metrics": ["roc_auc"]}),
    ("level-percent", "a level in percent", {"level": 95}),
    ("intervals-word", "another word for intervals", {"intervals": True}),
    ("method", "a method that does not exist", {"intervals": "all", "interval_method": "bootstrapp"}),
]
_PLACES: Sequence[Row] = [
    ("options", "an option beside the input", {"input": _MATRIX, "metrics": ["accuracy"]}),
    ("confidence", "an option under another name", {"input": _MATRIX, "confidence": 0.9}),
    ("bare", "the input without its envelope", _MATRIX),
]
_STORING: Sequence[Row] = [
    ("no-model", "no model", {"input": _MATRIX, "dataset": {"name": "tumor"}}),
    ("model-text", "the model's name alone", {"input": _MATRIX, "model": "tumor-rf", "dataset": {"name": "tumor"}}),
    ("model-empty", "an empty name", {"input": _MATRIX, "model": {"name": ""}, "dataset": {"name": "tumor"}}),
    (
        "version-number",
        "a version as a number",
        {"input": _MATRIX, "model": {"name": "m", "version": 7}, "dataset": {"name": "d"}},
    ),
    ("tags-list", "tags as a list", {"input": _MATRIX, **_NAMES, "tags": ["nightly"]}),
    ("tags-number", "a tag that is a number", {"input": _MATRIX, **_NAMES, "tags": {"epoch": 3}}),
    ("list", "a list for a batch", [{"input": _MATRIX, **_NAMES}]),
]
_READING: Sequence[Row] = [
    ("id", "a name where an id belongs", "/v1/evaluations/tumor-rf"),
    ("id-unknown", "an id that nothing has", f"/v1/evaluations/{_NOWHERE}"),
    ("model-other", "the latest of a model that is not there", "/v1/evaluations/latest?model=tumor-fr&dataset=tumor"),
    ("limit", "a limit too large", "/v1/evaluations?limit=100000"),
    ("limit-word", "a limit that is no number", "/v1/evaluations?limit=all"),
    ("parameter", "a parameter misspelt", "/v1/evaluations?modle=tumor-rf"),
    ("sort", "a sort by an unknown metric", "/v1/evaluations?sort=acuracy"),
    ("fields", "a field misspelt", "/v1/evaluations?fields=valeus"),
    ("since", "a date in another form", "/v1/evaluations?created_after=27.11.2026"),
    ("cursor", "a cursor that was cut", "/v1/evaluations?cursor=abc"),
    ("tag", "a tag without its value", "/v1/evaluations?tag=nightly"),
    ("leaderboard", "a leaderboard of no dataset", "/v1/leaderboard"),
    ("leaderboard-metric", "a leaderboard by a metric misspelt", "/v1/leaderboard?dataset=tumor&metric=h_meen"),
    ("leaderboard-list", "a leaderboard by a list", "/v1/leaderboard?dataset=tumor&metric=recall@*"),
    ("curve", "a curve that does not exist", "/v1/evaluations/$matrix/curves/rock"),
    ("curve-matrix", "a curve of a matrix", "/v1/evaluations/$matrix/curves/roc"),
    ("curve-class", "a curve of a class misspelt", "/v1/evaluations/$probabilities/curves/roc?class=il"),
    ("metric-page", "the page of a metric misspelt", "/v1/metrics/acuracy"),
    ("gate", "a gate that is not there", "/v1/gates/promotoin"),
    ("version-path", "an address without its version", "/evaluations"),
    ("plural", "an address misspelt", "/v1/evaluation"),
    ("slash", "a slash at the end", "/v1/evaluations/"),
]
_COMPARING: Sequence[Row] = [
    ("compare-one", "one run alone", {"evaluations": ["$matrix"]}),
    ("compare-same", "a run with itself", {"evaluations": ["$matrix", "$matrix"]}),
    ("compare-name", "a model that is not there", {"evaluations": ["$matrix", "tumor-rf:8"]}),
    ("compare-paired", "pairs where none are known", {"evaluations": ["$matrix", "$probabilities"], "paired": True}),
    ("compare-field", "a field misspelt", {"evaluations": ["$matrix", "$probabilities"], "basline": "$matrix"}),
]
_GATES: Sequence[Row] = [
    ("gate-percent", "a limit in percent", {"rules": [{"metric": "accuracy", "min": 80}]}),
    ("gate-metric", "a rule of a metric misspelt", {"rules": [{"metric": "acuracy", "min": 0.8}]}),
    ("gate-limit", "a rule without a limit", {"rules": [{"metric": "accuracy"}]}),
]

MISTAKES: Sequence[Mistake] = [
    *_sent("POST", _COMPUTE, [(name, what, {"input": source}) for name, what, source in _INPUTS]),
    *_sent("POST", _COMPUTE, [(name, what, {"input": _MATRIX, "options": asked}) for name, what, asked in _OPTIONS]),
    *_sent("POST", _COMPUTE, _PLACES),
    *_sent("POST", _STORED, _STORING),
    *_got(_READING),
    *_sent("POST", _COMPARE, _COMPARING),
    *_sent("PUT", "/v1/gates/promotion", _GATES),
]
KEPT = [
    Call(name="matrix", method="POST", path=_STORED, json={"input": _MATRIX, **_NAMES}),
    Call(name="probabilities", method="POST", path=_STORED, json={"input": _PROBABILITIES, **_NAMES}),
]
CALLS = [*KEPT, *(mistake.call for mistake in MISTAKES)]
