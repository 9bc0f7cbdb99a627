"""Clusterings brought to one form: a table of classes by clusters, and the samples where something needs them.

Raises InvalidInput with pointers relative to the ``input`` object it was given a pointer for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import InvalidInput, TooLarge
from app.domain.inputs.beside import group_facts, read_groups, read_ids
from app.domain.inputs.content import Content
from app.domain.inputs.kinds import CLUSTERING, CLUSTERS_FACT, FEATURES_FACT
from app.domain.inputs.labels import Column, Label, as_labels, encode
from app.domain.inputs.matrices import MatrixInput, check_entries, check_labels
from app.domain.inputs.rectangles import rectangle
from app.domain.inputs.samples import Samples
from app.kernel.matrix.contingency import cross_tabulated

# Classes times clusters: a table of so many counts, of which resamples make a thousand.
MOST_CELLS = 250_000
# Samples times features: doubles, of which several copies are held at once.
MOST_ENTRIES = 50_000_000
# Squares of larger ones leave no room for their sum.
LARGEST_FEATURE = 1e100
Rows = list[Any] | NDArray[Any]


@dataclass(frozen=True, slots=True)
class Beside:
    """What may come beside the clusters of the samples."""

    features: Rows | None = None
    sample_ids: Column | None = None
    group_ids: Column | None = None


def from_contingency(
    rows: Sequence[Sequence[float]],
    classes: Sequence[Label] | None,
    clusters: Sequence[Label] | None,
    *,
    pointer: str,
) -> MatrixInput:
    """Numbers of samples, classes by clusters."""
    width = len(rows[0]) if rows else 0
    for index, row in enumerate(rows):
        if len(row) != width or not row:
            raise InvalidInput.at(
                f"{pointer}/contingency/{index}",
                "ragged_row",
                f"expected {max(width, 1)} entries as in the first row, got {len(row)}",
            )
    if not rows:
        raise InvalidInput.at(f"{pointer}/contingency", "no_samples", "expected at least one row, got none")
    table = np.array(rows, dtype=np.float64)
    check_entries(table, f"{pointer}/contingency", lambda row, column: f"{pointer}/contingency/{row}/{column}")
    broken = np.argwhere(table != np.floor(table))
    if broken.size:
        i, j = (int(place) for place in broken[0])
        raise InvalidInput.at(
            f"{pointer}/contingency/{i}/{j}",
            "not_a_count",
            f"expected a whole number of samples, got {table[i, j]:g}",
        )
    names = (
        _names(classes, len(table), "rows", f"{pointer}/classes"),
        _names(clusters, width, "columns", f"{pointer}/clusters"),
    )
    return _made(names[0], names[1], table, None, {}, pointer)


def _names(given: Sequence[Label] | None, count: int, what: str, pointer: str) -> tuple[str, ...]:
    if given is None:
        return check_labels([str(place) for place in range(count)], pointer, fewest=1)
    if len(given) != count:
        raise InvalidInput.at(
            pointer, "wrong_label_count", f"expected {count} names for {count} {what}, got {len(given)}"
        )
    return check_labels(given, pointer, fewest=1)


def from_clusters(y_true: Column | None, y_pred: Column, beside: Beside, *, pointer: str) -> MatrixInput:
    """The cluster of every sample, its class where that is known, and its features where there are some."""
    size = len(y_pred)
    if size == 0:
        raise InvalidInput.at(f"{pointer}/y_pred", "no_samples", "expected at least one sample, got none")
    columns = {
        "y_true": y_true,
        "features": beside.features,
        "sample_ids": beside.sample_ids,
        "group_ids": beside.group_ids,
    }
    for name, column in columns.items():
        if column is not None and len(column) != size:
            raise InvalidInput.at(
                f"{pointer}/{name}", "wrong_length", f"expected {size} entries as in y_pred, got {len(column)}"
            )
    if y_true is None and beside.features is None:
        raise InvalidInput.at(
            f"{pointer}/y_true", "missing", "expected y_true, or features to measure the clusters by, got neither"
        )
    clusters, predicted = _coded(y_pred, "y_pred", pointer)
    classes, truth = ((), np.zeros(size, dtype=np.int64)) if y_true is None else _coded(y_true, "y_true", pointer)
    _check_cells(max(len(classes), 1), len(clusters), pointer)
    features = None if beside.features is None else _features(beside.features, f"{pointer}/features")
    ids = None if beside.sample_ids is None else read_ids(beside.sample_ids, f"{pointer}/sample_ids")
    groups = None if beside.group_ids is None else read_groups(beside.group_ids, f"{pointer}/group_ids")
    facts = group_facts(groups)
    if features is not None:
        facts = {**facts, FEATURES_FACT: features.shape[1]}
    samples = None
    if features is not None or ids is not None or groups is not None:
        samples = Samples(truth, predicted, features, ids, groups=groups)
    table = cross_tabulated(truth, predicted, max(len(classes), 1), len(clusters))
    return _made(classes, clusters, table, samples, facts, pointer)


def _coded(column: Column, name: str, pointer: str) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Names of the groups that occur, and the code of each sample."""
    coded = encode({name: as_labels(column, f"{pointer}/{name}")}, None, pointer)
    return check_labels(coded.labels, f"{pointer}/{name}", fewest=1), coded.codes[name]


def _check_cells(size: int, width: int, pointer: str) -> None:
    if size * width > MOST_CELLS:
        raise TooLarge(
            f"expected at most {MOST_CELLS} classes times clusters, got {size} times {width}", pointer=pointer
        )


def _features(rows: Rows, pointer: str) -> NDArray[np.float64]:
    table = rows if isinstance(rows, np.ndarray) else rectangle(rows, pointer)
    if table.ndim != 2 or table.shape[1] == 0:
        raise InvalidInput.at(f"{pointer}/0", "not_a_row", "expected an array of numbers for every sample")
    if table.size > MOST_ENTRIES:
        raise TooLarge(
            f"expected at most {MOST_ENTRIES} samples times features, got {table.shape[0]} times {table.shape[1]}",
            pointer=pointer,
        )
    features: NDArray[np.float64] = table.astype(np.float64, copy=False)
    bad = ~(np.abs(features) <= LARGEST_FEATURE)
    if bad.any():
        row, column = (int(place) for place in np.argwhere(bad)[0])
        raise InvalidInput.at(
            f"{pointer}/{row}/{column}",
            "out_of_range",
            f"expected a number between -{LARGEST_FEATURE:g} and {LARGEST_FEATURE:g}, got {features[row, column]:g}",
        )
    return features


def _made(
    classes: tuple[str, ...],
    clusters: tuple[str, ...],
    table: NDArray[np.float64],
    samples: Samples | None,
    facts: dict[str, Any],
    pointer: str,
) -> MatrixInput:
    _check_cells(max(len(classes), 1), len(clusters), pointer)
    return MatrixInput(
        kind=CLUSTERING,
        labels=classes,
        positive=None,
        content=Content.counts,
        counts=table.astype(np.int64),
        facts={**facts, CLUSTERS_FACT: list(clusters)},
        samples=samples,
    )
