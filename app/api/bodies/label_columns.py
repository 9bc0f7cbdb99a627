"""Samples with any number of labels from a file: a column for each label, or arrays [n, L]."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.api.bodies.files.table import Table, TableFile
from app.domain.errors import InvalidInput
from app.domain.inputs.labels import listed, shown
from app.domain.inputs.names import normalized

_TRUTH: Final = "y_true"
_PREDICTED: Final = "y_pred"
_SAID: Final = (_PREDICTED, "probabilities")
_OPTIONAL: Final = {"sample_id": "sample_ids", "group_id": "group_ids", "sample_weight": "sample_weight"}
_WEIGHT: Final = "sample_weight"


def read_label_columns(file: TableFile, labels: Sequence[str] | None) -> dict[str, Any]:
    """The arrays of an input by their names in the JSON.

    Columns are called `y_true.cat`, and `y_pred.cat` or `probabilities.cat`; an NPZ may have arrays of these names
    without a label instead.

    Args:
        file: Its columns are known by name.
        labels: The labels; without them those of the columns of `y_true`, in order.

    Raises:
        InvalidInput: a column is missing, or means nothing; what says whether a sample has a label is neither 0 nor 1.
    """
    said = [name for name in _SAID if name in file.names or _by_label(file, name)]
    if len(said) != 1:
        raise InvalidInput.at(
            "/data",
            "missing_column",
            "expected columns 'y_pred.<label>' or 'probabilities.<label>' for every label (in an NPZ also arrays "
            f"'y_pred' or 'probabilities'), got {'both' if said else 'neither'}",
        )
    declared = None if labels is None else [*map(normalized, labels)]
    if declared is None and _TRUTH not in file.names:
        declared = [*_by_label(file, _TRUTH)]
    chosen = {name: _columns(file, name, declared) for name in (_TRUTH, *said)}
    optional = [name for name in _OPTIONAL if name in file.names]
    columns = [column for names in chosen.values() for column in names]
    unknown = [name for name in file.names if name not in {*columns, *optional}]
    if unknown:
        raise InvalidInput.at(
            "/data",
            "unknown_column",
            f"expected columns of the labels {listed(declared or ())}, got {listed(unknown)} too",
        )
    table = file.load([name for name in optional if name != _WEIGHT], [*columns, *({_WEIGHT} & {*optional})])
    found: dict[str, Any] = {
        name: table.flags(names[0]) if names == [name] else _by_sample(name, names, table)
        for name, names in chosen.items()
    }
    found |= {_OPTIONAL[name]: table.numbers(name) if name == _WEIGHT else table.ids(name) for name in optional}
    return found if declared is None else {**found, "labels": declared}


def _by_sample(name: str, columns: Sequence[str], table: Table) -> NDArray[Any]:
    """Columns beside each other (n, L). Those of labels hold 0 and 1: with names they are no lists of labels."""
    found = np.column_stack([table.flags(column) for column in columns])
    if name in (_TRUTH, _PREDICTED) and found.dtype != np.bool_:
        bad = (found != 0) & (found != 1)
        if bad.any():
            row, place = (int(index) for index in np.argwhere(bad)[0])
            label = columns[place].removeprefix(f"{name}.")
            raise InvalidInput.at(
                f"/input/{name}/{row}/{place}",
                "out_of_range",
                f"expected 0 or 1 for the label {shown(label)}, got {found[row, place]:g}",
            )
    return found


def _by_label(file: TableFile, table: str) -> Mapping[str, str]:
    """The columns of a table by label."""
    return {normalized(name.removeprefix(f"{table}.")): name for name in file.names if name.startswith(f"{table}.")}


def _columns(file: TableFile, table: str, labels: Sequence[str] | None) -> list[str]:
    """The columns of a table in the order of the labels, or the one array of its name."""
    if table in file.names:
        return [table]
    known = _by_label(file, table)
    absent = [label for label in labels or () if label not in known]
    if absent or not known:
        missing = f"{table}.{absent[0]}" if absent else f"{table}.<label>"
        raise InvalidInput.at("/data", "missing_column", f"expected a column {missing!r}")
    return [known[label] for label in labels or known]
