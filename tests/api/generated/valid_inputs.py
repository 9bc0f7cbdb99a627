"""Generated inputs of evaluations made right, kind by kind; see ``valid``."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from app.domain.inputs.labels import declared_label

Json = dict[str, Any]
_ROWS = 8


def make_valid_input(source: Json) -> Json:
    """The same input with members that go with each other."""
    if "data" in source:
        # Refused with 403: nothing is allowed here.
        return source
    # What is left has to be a run still.
    source.pop("ignore", None)
    # They have a value for every sample, and those of folds the same names.
    for one in (source, *source.get("folds", [])):
        one.pop("attributes", None)
    return _INPUTS[source["kind"]](dict(source))


def cycled(values: Any, size: int) -> list[Any]:
    """So many entries, again from the first where there are fewer."""
    return [values[index % len(values)] for index in range(size)]


def _entry(value: float) -> float:
    """A count or a weight that arithmetic can do with."""
    return min(max(abs(value), 1e-6), 1e9)


def _matrix(source: Json) -> Json:
    # Decisions that are no classes leave little to be asked.
    source.pop("decisions", None)
    size = min(len(source["matrix"]), 5)
    source["matrix"] = [[_entry(value) for value in cycled(row, size)] for row in cycled(source["matrix"], size)]
    _fit_labels(source, [str(index) for index in range(size)])
    return source


def _counts(source: Json) -> Json:
    for name in ("tp", "fn", "fp", "tn"):
        source[name] = _entry(source[name])
    if declared_label(source.get("negative", "0")) == declared_label(source.get("positive", "1")):
        source |= {"negative": "0", "positive": "1"}
    return source


def _fit_labels(source: Json, found: list[Any]) -> None:
    """Labels that are there, one for each class, and a positive one among them."""
    if source.get("labels") is not None:
        source["labels"] = found
    if source.get("positive") is not None:
        source["positive"] = found[-1] if len(found) == 2 else None


def _classes(column: list[Any]) -> list[Any]:
    """Those of a column, two or more of one type."""
    found = list({declared_label(value): value for value in column}.values())
    return found if len(found) > 1 else [0, 1]


def _beside(source: Json, size: int) -> None:
    if source.get("sample_ids") is not None and len(set(map(str, source["sample_ids"][:size]))) < size:
        source["sample_ids"] = list(range(size))
    elif source.get("sample_ids") is not None:
        source["sample_ids"] = source["sample_ids"][:size]
    if source.get("sample_weight") is not None:
        source["sample_weight"] = [_entry(value) for value in cycled(source["sample_weight"], size)]
    if source.get("group_ids") is not None:
        source["group_ids"] = [index % max(size - 1, 2) for index in range(size)] if size > 1 else None


def _predictions(source: Json) -> Json:
    size = min(max(len(source["y_true"]), 2), _ROWS)
    classes = _classes(source["y_true"])
    source["y_true"], source["y_pred"] = cycled(classes, size), cycled(classes[::-1], size)
    _fit_labels(source, _classes(source["y_true"]))
    _beside(source, size)
    return source


def _probabilities(source: Json) -> Json:
    size = min(max(len(source["y_true"]), 2), _ROWS)
    classes = _classes(source["y_true"])[: 2 if source.get("threshold") is not None else _ROWS]
    size = max(size, len(classes))
    source["y_true"] = cycled(classes, size)
    rows = [[_entry(value) for value in cycled(row, len(classes))] for row in cycled(source["probabilities"], size)]
    source["probabilities"] = [[value / math.fsum(row) for value in row] for row in rows]
    source["sum_tolerance"] = max(source.get("sum_tolerance", 0), 1e-6)
    _fit_labels(source, classes)
    _beside(source, size)
    return source


def _scores(source: Json) -> Json:
    """One score for each sample, or one for each class."""
    size, of_classes = min(max(len(source["y_true"]), 2), _ROWS), isinstance(source["scores"][0], list)
    classes = _classes(source["y_true"])[: _ROWS if of_classes else 2]
    size = max(size, len(classes))
    source["y_true"], source["scores"] = cycled(classes, size), cycled(source["scores"], size)
    if of_classes:
        source["scores"] = [cycled(row, len(classes)) for row in source["scores"]]
        source.pop("threshold", None)
    _fit_labels(source, classes)
    _beside(source, size)
    return source


def _ranking(source: Json) -> Json:
    """Items with either scores or ranks."""
    # Both tables apart are in place of these columns.
    for name in ("judgements", "retrieved"):
        source.pop(name, None)
    query_ids = [one for one in source.get("query_ids") or () if one is not None] or [1]
    size = min(len(query_ids), _ROWS)
    source["query_ids"] = [str(one) for one in cycled(query_ids, size)]
    source["relevance"] = [min(abs(value or 0.0), 1000.0) for value in cycled(source.get("relevance") or [1.0], size)]
    order = "ranks" if source.get("ranks") else "scores"
    source[order] = [min(abs(value or 0.0), 1e9) for value in cycled(source.get(order) or [1.0], size)]
    source.pop("scores" if order == "ranks" else "ranks", None)
    return source


def _multilabel(source: Json) -> Json:
    """Two labels as columns of 0 and 1, or with probabilities or scores."""
    size = min(max(len(source["y_true"]), 2), _ROWS)
    if source.get("labels") is not None:
        source["labels"] = ["a", "b"]
    source["y_true"] = cycled([[0, 1], [1, 0]], size)
    outputs = next((one for one in ("probabilities", "scores") if source.get(one) is not None), None)
    for name in {"y_pred", "probabilities", "scores"} - {outputs}:
        source.pop(name, None)
    if outputs is None:
        source["y_pred"] = cycled([[1, 1], [1, 0], [0, 1]], size)
        source.pop("thresholds", None)
    else:
        rows = [cycled(row, 2) for row in cycled(source[outputs], size)]
        source[outputs] = [[min(abs(value), 1.0) for value in row] for row in rows]
        given = source.get("thresholds")
        if given is not None:
            each = [min(abs(value), 1.0) for value in (given if isinstance(given, list) else [given])]
            source["thresholds"] = cycled(each or [0.5], 2) if isinstance(given, list) else each[0]
    _beside(source, size)
    return source


def _clustering(source: Json) -> Json:
    """A table, or samples in two clusters with classes, features or distances, or both."""
    if source.get("contingency") is not None:
        width = min(max(len(source["contingency"][0]), 1), 4)
        rows = cycled(source["contingency"], min(len(source["contingency"]), 4))
        source["contingency"] = [[math.ceil(_entry(value)) for value in cycled(row or [1], width)] for row in rows]
        for name, size in (("classes", len(rows)), ("clusters", width)):
            if source.get(name) is not None:
                source[name] = [f"{name} {place}" for place in range(size)]
        for name in ("y_true", "y_pred", "features", "distances", "sample_ids", "group_ids"):
            source.pop(name, None)
        return source
    size = min(max(len(source.get("y_pred") or []), 4), _ROWS)
    source["y_pred"] = cycled([0, 1, 0, 1, 1], size)
    if source.get("y_true") is not None or (source.get("features") or source.get("distances")) is None:
        source["y_true"] = cycled(["a", "b"], size)
    if source.get("distances") is not None:
        source.pop("features", None)
        source["distances"] = [[abs(row - column) for column in range(size)] for row in range(size)]
    elif source.get("features") is not None:
        source["features"] = cycled([[0.0, 1.0], [1.0, 0.5], [3.0, 2.0]], size)
    measured = source.get("features") is not None or source.get("distances") is not None
    for name in ("contingency", "classes", "clusters", *(["sample_weight"] if measured else [])):
        source.pop(name, None)
    _beside(source, size)
    return source


def _sets(source: Json) -> Json:
    """Sizes that go together, or lists."""
    sizes, lists = ("n_true", "n_predicted", "n_common"), ("y_true", "y_pred")
    if source.get("y_true") is not None:
        size = min(max(len(source["y_true"]), 1), _ROWS)
        source["y_true"], source["y_pred"] = cycled([["a", "b"], []], size), cycled([["a"], ["c"]], size)
    else:
        size = min(max(len(source.get("n_true") or []), 1), _ROWS)
        there = [_entry(value) for value in cycled(source.get("n_true") or [1], size)]
        source |= {"n_true": there, "n_predicted": there, "n_common": there}
    for name in sizes if source.get("y_true") is not None else lists:
        source.pop(name, None)
    if source.get("exact") is not None:
        source["exact"] = [False] * size
    if source.get("item_classes") is not None:
        source["item_classes"] = cycled(["a", "b"], size)
    _beside(source, size)
    return source


def _folds(source: Json) -> Json:
    """The first of them as often as there are any, so that all have the same classes."""
    fold = make_valid_input(source["folds"][0])
    fold.pop("normalized", None)
    fold.pop("sample_ids", None)
    source["folds"] = [fold] * min(max(len(source["folds"]), 2), 4)
    source.pop("repeats", None)
    source.pop("repeat_of_fold", None)
    return source


_INPUTS: Final[Mapping[str, Callable[[Json], Json]]] = {
    "confusion_matrix": _matrix,
    "binary_counts": _counts,
    "predictions": _predictions,
    "probabilities": _probabilities,
    "scores": _scores,
    "folds": _folds,
    "ranking": _ranking,
    "multilabel": _multilabel,
    "clustering": _clustering,
    "sets": _sets,
}
