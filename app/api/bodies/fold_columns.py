"""The rows of a file distributed over the folds that its column `fold` names, each an input as it stands in JSON."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from app.domain.errors import InvalidInput
from app.domain.inputs.labels import MOST_CLASSES, Column, as_labels, declared_label, encode, taken
from app.domain.inputs.samples import ids_as_array

MOST_FOLDS = 1000
_LABELLED = ("y_true", "y_pred")


def distribute(columns: Mapping[str, Any], folds: Column, shared: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Inputs of the folds, integers by value and texts by alphabet; rows keep their order.

    Args:
        columns: Of all samples, by their names in the JSON; ``labels`` when they are known.
        folds: The fold of each sample, integers or texts.
        shared: What every input has besides. Without labels, every fold has those that occur in any.

    Raises:
        InvalidInput: the names of the folds are neither integers nor texts, or there are too many.
    """
    try:
        names = ids_as_array(as_labels(folds, "/data"))
    except InvalidInput:
        raise InvalidInput.at("/data", "not_folds", "expected integers or texts in the column 'fold'") from None
    if len(names) != len(columns["y_true"]):
        raise InvalidInput.at(
            "/data", "wrong_length", f"expected {len(columns['y_true'])} entries in the column 'fold'"
        )
    found, codes = np.unique(names, return_inverse=True)
    if len(found) > MOST_FOLDS:
        raise InvalidInput.at(
            "/data", "too_many_folds", f"expected at most {MOST_FOLDS} different folds, got {len(found)}"
        )
    labels = shared.get("labels", columns.get("labels"))
    if labels is None and len(names):
        labels = _classes({name: columns[name] for name in _LABELLED if name in columns}, shared.get("ignore"))
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(found)))[:-1]
    return [
        {**shared, "labels": labels, **{name: taken(columns[name], rows) for name in columns if name != "labels"}}
        for rows in np.split(order, ends)
    ]


def _classes(columns: Mapping[str, Any], ignore: Any) -> list[str]:
    """Those that occur in any fold. What is to be ignored counts only where a sample that is left is predicted as it;
    what cannot be read as labels is refused later, with its place.
    """
    ignored = [declared_label(one) for one in ignore] if isinstance(ignore, list) else []
    coded = encode(columns, None, "/input", MOST_CLASSES + len(ignored))
    codes = [*coded.codes.values()]
    left = ~np.isin(codes[0], [code for code, text in enumerate(coded.labels) if text in ignored])
    occurring = np.unique(np.concatenate([column[left] for column in codes]))
    return [coded.labels[code] for code in occurring.tolist()]
