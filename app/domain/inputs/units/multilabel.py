"""Samples with any number of labels, brought to one form: a table of two by two for each label, and the samples.

Raises InvalidInput with pointers relative to the ``input`` object it was given a pointer for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import Fault, InvalidInput, TooLarge
from app.domain.inputs.beside import group_facts, read_groups, read_ids, read_weights, weight_facts
from app.domain.inputs.content import Content
from app.domain.inputs.kinds import MULTILABEL
from app.domain.inputs.labels import Column, Label, Numbers, described, encode, shown
from app.domain.inputs.matrices import MatrixInput, check_entries, check_labels
from app.domain.inputs.rectangles import rectangle
from app.domain.inputs.samples import DecidedBy, Samples
from app.kernel.samples.label_units import LabelPairs

# Samples times labels: a table of so many bytes, of which some are held at once.
MOST_ENTRIES = 100_000_000
THRESHOLD = 0.5
Members = NDArray[np.bool_]
Rows = list[Any] | NDArray[Any]


@dataclass(frozen=True, slots=True)
class Beside:
    """What may come beside the labels of the samples.

    Attributes:
        part: Are these some of the samples only, whose weights may add up to nothing?
    """

    labels: Sequence[Label] | None = None
    sample_ids: Column | None = None
    sample_weight: Numbers | None = None
    group_ids: Column | None = None
    part: bool = False


def from_label_sets(y_true: Rows, y_pred: Rows, beside: Beside, *, pointer: str) -> MatrixInput:
    """Actual and predicted labels of every sample, as lists of labels or as columns of 0 and 1.

    Rows of 0 and 1 that are all as long as there are labels are columns. Without ``labels`` those that occur are taken,
    sorted, or for columns the numbers from 0 on.
    """
    _check_lengths({"y_true": y_true, "y_pred": y_pred}, beside, pointer)
    declared = None if beside.labels is None else check_labels(beside.labels, f"{pointer}/labels")
    given = {"y_true": y_true, "y_pred": y_pred}
    read = {name: _as_columns(rows, declared, f"{pointer}/{name}") for name, rows in given.items()}
    members = {name: table for name, table in read.items() if table is not None}
    if declared is not None:
        lists = {name: rows for name, rows in given.items() if name not in members}
        labels, members = declared, members | _encoded(lists, declared, pointer)[1]
    elif len({table.shape for table in members.values()}) == 1 and len(members) == len(given):
        labels = check_labels([str(place) for place in range(members["y_true"].shape[1])], f"{pointer}/labels")
    else:
        labels, members = _encoded(given, None, pointer)
    return _made(labels, members["y_true"], members["y_pred"], None, beside, {}, pointer)


def from_label_probabilities(
    y_true: Rows, probabilities: Rows, thresholds: float | Sequence[float] | None, beside: Beside, *, pointer: str
) -> MatrixInput:
    """Actual labels and the probability of every label, which is predicted from its threshold on."""
    _check_lengths({"y_true": y_true, "probabilities": probabilities}, beside, pointer)
    outputs = _probabilities(probabilities, f"{pointer}/probabilities")
    size, width = outputs.shape
    labels = check_labels(beside.labels or [str(place) for place in range(width)], f"{pointer}/labels")
    if len(labels) != width:
        raise InvalidInput.at(
            f"{pointer}/labels", "wrong_label_count", f"expected {width} labels for {width} columns, got {len(labels)}"
        )
    chosen = THRESHOLD if thresholds is None else thresholds
    levels = np.asarray(chosen, dtype=np.float64)
    if levels.ndim and len(levels) != width:
        raise InvalidInput.at(
            f"{pointer}/thresholds",
            "wrong_length",
            f"expected one threshold, or {width} as there are labels, got {len(levels)}",
        )
    truth = _as_columns(y_true, labels, f"{pointer}/y_true")
    if truth is None:
        truth = _encoded({"y_true": y_true}, labels, pointer)[1]["y_true"]
    threshold = chosen if isinstance(chosen, int | float) else list(chosen)
    facts = {"rows": size, "rule": DecidedBy.THRESHOLD.value, "threshold": threshold}
    return _made(labels, truth, outputs >= levels, outputs, beside, facts, pointer)


def _check_lengths(columns: dict[str, Rows], beside: Beside, pointer: str) -> None:
    size = len(columns["y_true"])
    if size == 0:
        raise InvalidInput.at(f"{pointer}/y_true", "no_samples", "expected at least one sample, got none")
    others = {
        **columns,
        "sample_ids": beside.sample_ids,
        "sample_weight": beside.sample_weight,
        "group_ids": beside.group_ids,
    }
    for name, column in others.items():
        if column is not None and len(column) != size:
            raise InvalidInput.at(
                f"{pointer}/{name}", "wrong_length", f"expected {size} entries as in y_true, got {len(column)}"
            )


def _as_columns(rows: Rows, labels: Sequence[str] | None, pointer: str) -> Members | None:
    """Rows of 0 and 1 as a table (n, L); None for lists of labels."""
    table = _as_table(rows)
    if table is None or not _is_binary(table):
        return None
    if labels is not None and table.shape[1] != len(labels):
        if {"0", "1"} & set(labels):
            return None
        raise InvalidInput.at(
            f"{pointer}/0",
            "wrong_label_count",
            f"expected {len(labels)} entries as there are labels, got {table.shape[1]}",
        )
    members: Members = table != 0
    return members


def _is_binary(table: NDArray[Any]) -> bool:
    """Is every entry 0 or 1? Whole numbers below 0 are large ones without their sign."""
    if table.dtype.kind in "bui" and table.size:
        unsigned = table.view(np.dtype(f"u{table.dtype.itemsize}")) if table.dtype.kind == "i" else table
        return bool(unsigned.max() <= 1)
    return bool(((table == 0) | (table == 1)).all())


def _as_table(rows: Rows) -> NDArray[Any] | None:
    """Rows of numbers that are all of one length; None for others."""
    if isinstance(rows, np.ndarray):
        return rows if rows.ndim == 2 and rows.dtype.kind in "buif" else None
    width = len(rows[0]) if isinstance(rows[0], list) else 0
    if width == 0 or not all(isinstance(row, list) and len(row) == width for row in rows):
        return None
    return np.asarray(rows) if set(map(type, chain.from_iterable(rows))) <= {int, float, bool} else None


def _encoded(
    columns: dict[str, Rows], declared: tuple[str, ...] | None, pointer: str
) -> tuple[tuple[str, ...], dict[str, Members]]:
    """Lists of labels as tables (n, L)."""
    flat: dict[str, list[Any]] = {}
    lengths: dict[str, NDArray[np.int64]] = {}
    for name, rows in columns.items():
        listed = rows.tolist() if isinstance(rows, np.ndarray) else [*rows]
        for index, row in enumerate(listed):
            if not isinstance(row, list):
                raise InvalidInput.at(
                    f"{pointer}/{name}/{index}",
                    "not_a_row",
                    f"expected a list of labels, or a 0 or 1 for each label, got {described(row)}",
                )
        flat[name] = list(chain.from_iterable(listed))
        lengths[name] = np.fromiter(map(len, listed), dtype=np.int64, count=len(listed))
    filled = {name: entries for name, entries in flat.items() if entries}
    if not filled and declared is None:
        raise InvalidInput.at(f"{pointer}/labels", "labels_needed", "expected labels, since none occurs")
    codes: dict[str, NDArray[np.int64]] = dict.fromkeys(flat, np.zeros(0, dtype=np.int64))
    labels = declared or ()
    if filled:
        try:
            coded = encode(filled, declared, pointer)
        except InvalidInput as error:
            raise _in_rows(error, lengths, pointer) from None
        codes |= coded.codes
        labels = coded.labels if declared is not None else check_labels(coded.labels, f"{pointer}/labels")
    return labels, {name: _table(codes[name], lengths[name], labels, f"{pointer}/{name}") for name in columns}


def _table(codes: NDArray[np.int64], lengths: NDArray[np.int64], labels: Sequence[str], pointer: str) -> Members:
    _check_size(len(lengths), len(labels), pointer)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    members = np.zeros((len(lengths), len(labels)), dtype=bool)
    members[rows, codes] = True
    if np.count_nonzero(members) < codes.size:
        counts = np.zeros(members.shape, dtype=np.int64)
        np.add.at(counts, (rows, codes), 1)
        row, code = (int(place) for place in np.argwhere(counts > 1)[0])
        raise InvalidInput.at(
            f"{pointer}/{row}", "duplicate_label", f"expected labels that differ, got {shown(labels[code])} twice"
        )
    return members


def _in_rows(error: InvalidInput, lengths: dict[str, NDArray[np.int64]], pointer: str) -> InvalidInput:
    """The same faults where the entries stand in rows, and not one after another."""
    faults = []
    for fault in error.faults:
        name, _, place = fault.pointer.removeprefix(f"{pointer}/").partition("/")
        if name in lengths and place.isdigit():
            ends = np.cumsum(lengths[name])
            row = int(np.searchsorted(ends, int(place), side="right"))
            column = int(place) - int(ends[row] - lengths[name][row])
            fault = Fault(f"{pointer}/{name}/{row}/{column}", fault.code, fault.detail)
        faults.append(fault)
    return InvalidInput(faults)


def _check_size(n_samples: int, n_labels: int, pointer: str) -> None:
    if n_samples * n_labels > MOST_ENTRIES:
        raise TooLarge(
            f"expected at most {MOST_ENTRIES} samples times labels, got {n_samples} times {n_labels}", pointer=pointer
        )


def _probabilities(rows: Rows, pointer: str) -> NDArray[np.float64]:
    table = rows.astype(np.float64, copy=False) if isinstance(rows, np.ndarray) else rectangle(rows, pointer)
    if table.ndim != 2:
        raise InvalidInput.at(f"{pointer}/0", "not_a_row", "expected an array of numbers for every sample")
    _check_size(table.shape[0], table.shape[1], pointer)
    bad_entries = ~((table >= 0.0) & (table <= 1.0))
    if bad_entries.any():
        row, column = (int(place) for place in np.argwhere(bad_entries)[0])
        raise InvalidInput.at(
            f"{pointer}/{row}/{column}",
            "out_of_range",
            f"expected a probability between 0 and 1, got {table[row, column]:g}",
        )
    return table


def _made(
    labels: tuple[str, ...],
    truth: Members,
    predicted: Members,
    outputs: NDArray[np.float64] | None,
    beside: Beside,
    facts: dict[str, Any],
    pointer: str,
) -> MatrixInput:
    weights = None
    if beside.sample_weight is not None:
        weights = read_weights(beside.sample_weight, f"{pointer}/sample_weight")
        if weights.any() or not beside.part:
            check_entries(weights, f"{pointer}/sample_weight", lambda index: f"{pointer}/sample_weight/{index}")
    ids = None if beside.sample_ids is None else read_ids(beside.sample_ids, f"{pointer}/sample_ids")
    groups = None if beside.group_ids is None else read_groups(beside.group_ids, f"{pointer}/group_ids")
    if weights is not None:
        facts = {"rows": len(truth), **facts}
    return MatrixInput(
        kind=MULTILABEL,
        labels=labels,
        positive=None,
        content=Content.counts if weights is None else Content.weights,
        counts=_counts(truth, predicted, weights),
        facts={**facts, **weight_facts(weights), **group_facts(groups)},
        samples=Samples(truth.view(np.uint8), predicted.view(np.uint8), outputs, ids, weights, groups=groups),
    )


def _counts(truth: Members, predicted: Members, weights: NDArray[np.float64] | None) -> NDArray[Any]:
    """Tables (L, 2, 2): actual rows, absent before present."""
    if weights is None:
        return LabelPairs(truth, predicted).counts.reshape(-1, 2, 2)
    cells = (~(truth | predicted), predicted & ~truth, truth & ~predicted, truth & predicted)
    return np.stack([weights @ cell for cell in cells], axis=-1).reshape(-1, 2, 2)
