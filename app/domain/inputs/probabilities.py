"""Probabilities and scores brought to the form of every input: the matrix of their decisions, and the samples.

Every function here raises InvalidInput with a pointer to the first element at fault.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import InvalidInput
from app.domain.inputs.beside import group_facts, read_groups, read_ids, read_weights, weight_facts
from app.domain.inputs.content import Content
from app.domain.inputs.labels import Column, Label, Numbers, check_lengths, encode
from app.domain.inputs.matrices import (
    MatrixInput,
    check_entries,
    check_found_labels,
    check_labels,
    check_total,
    positive_index,
)
from app.domain.inputs.rectangles import not_a_number, rectangle
from app.domain.inputs.samples import DecidedBy, Samples
from app.kernel.matrix.table import confusion_counts

SUM_TOLERANCE = 1e-6
Rows = list[Any] | NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accompanying:
    """What comes beside the probabilities or scores of an input.

    Attributes:
        part: Are these some of the samples only, whose weights may add up to nothing?
    """

    labels: Sequence[Label] | None = None
    positive: Label | None = None
    sample_ids: Column | None = None
    sample_weight: Numbers | None = None
    group_ids: Column | None = None
    threshold: float | None = None
    part: bool = False


def from_probabilities(
    y_true: Column, rows: Rows, beside: Accompanying, *, sum_tolerance: float, renormalize: bool, pointer: str
) -> MatrixInput:
    """Probabilities [n, K] in the order of the labels; the class decided for is the most probable one, ties the first.

    With a threshold (K = 2) it is the positive class from that probability on. Without ``labels`` the classes are those
    that occur, sorted, and there have to be as many as columns.
    """
    size = check_lengths(y_true, {"probabilities": rows, **_beside(beside)}, pointer)
    matrix = _read_matrix(rows, f"{pointer}/probabilities")
    matrix, changed = _check_matrix(matrix, f"{pointer}/probabilities", sum_tolerance, renormalize=renormalize)
    truth, labels = _read_truth(y_true, beside.labels, matrix.shape[1], pointer)
    if beside.threshold is not None and len(labels) != 2:
        raise InvalidInput.at(
            f"{pointer}/threshold",
            "threshold_needs_two_classes",
            f"expected no threshold with {len(labels)} classes: it is a choice for two classes only",
        )
    positive = positive_index(beside.positive, labels, f"{pointer}/positive")
    facts: dict[str, Any] = {"rows": size, "rule": DecidedBy.ARGMAX.value}
    if beside.threshold is None:
        predicted, ties = decide(matrix)
        facts["ties"] = ties
    else:
        predicted = decide_by_threshold(matrix[:, positive or 0], beside.threshold, positive or 0)
        facts |= {"rule": DecidedBy.THRESHOLD.value, "threshold": beside.threshold}
    if renormalize:
        facts["renormalized"] = changed
        if sum_tolerance != SUM_TOLERANCE:
            facts["sum_tolerance"] = sum_tolerance
    return _made("probabilities", labels, positive, truth, predicted, matrix, beside, facts, pointer)


def from_scores(y_true: Column, scores: Numbers, beside: Accompanying, *, pointer: str) -> MatrixInput:
    """Scores (n) of two classes, higher for the positive one, which is decided for from the threshold on; or scores
    [n, K] in the order of the labels, each column higher for its class, of which the highest decides, ties the first.

    The threshold is 0.5 when none is given and all scores lie in [0, 1], and 0 otherwise.
    """
    size = check_lengths(y_true, {"scores": scores, **_beside(beside)}, pointer)
    if _are_rows(scores):
        return _from_class_scores(y_true, scores, beside, size, pointer)
    values = read_numbers(scores, f"{pointer}/scores")
    truth, labels = _read_truth(y_true, beside.labels, 2, pointer)
    positive = positive_index(beside.positive, labels, f"{pointer}/positive")
    threshold = beside.threshold
    if threshold is None:
        threshold = assumed_threshold(float(values.min()), float(values.max()))
    predicted = decide_by_threshold(values, threshold, positive or 0)
    facts: dict[str, Any] = {"rows": size, "rule": DecidedBy.THRESHOLD.value, "threshold": threshold}
    if beside.threshold is None:
        facts["threshold_assumed"] = True
    return _made("scores", labels, positive, truth, predicted, values, beside, facts, pointer)


def assumed_threshold(lowest: float, highest: float) -> float:
    """From where on the positive class is decided for when nobody says so, by the range of all scores."""
    return 0.5 if lowest >= 0.0 and highest <= 1.0 else 0.0


def _are_rows(scores: Numbers) -> bool:
    return scores.ndim > 1 if isinstance(scores, np.ndarray) else isinstance(scores[0], list)


def _from_class_scores(y_true: Column, rows: Rows, beside: Accompanying, size: int, pointer: str) -> MatrixInput:
    if beside.threshold is not None:
        raise InvalidInput.at(
            f"{pointer}/threshold",
            "threshold_needs_one_score",
            "expected no threshold with a score for every class, of which the highest decides",
        )
    matrix = _read_matrix(rows, f"{pointer}/scores")
    truth, labels = _read_truth(y_true, beside.labels, matrix.shape[1], pointer)
    positive = positive_index(beside.positive, labels, f"{pointer}/positive")
    predicted, ties = decide(matrix)
    facts = {"rows": size, "rule": DecidedBy.ARGMAX.value, "ties": ties}
    return _made("scores", labels, positive, truth, predicted, matrix, beside, facts, pointer)


def decide(scores: NDArray[np.float64]) -> tuple[NDArray[np.int64], int]:
    """Codes (n) of the most probable classes, or those of the highest scores, the first of equals, and how many rows
    had equals.
    """
    n_classes = scores.shape[1]
    best = scores[:, 0].copy()
    codes = np.zeros(len(best), dtype=np.int64)
    for code in range(1, n_classes):
        column = scores[:, code]
        codes[column > best] = code
        np.maximum(best, column, out=best)
    at_top = np.count_nonzero(scores == best[:, None], axis=1)
    return codes, int(np.count_nonzero(at_top > 1))


def decide_by_threshold(scores: NDArray[np.float64], threshold: float, positive: int) -> NDArray[np.int64]:
    """Codes (n): the positive class from the threshold on, the other one below."""
    above = scores >= threshold
    return np.where(above, positive, 1 - positive).astype(np.int64)


def _beside(beside: Accompanying) -> dict[str, Column | None]:
    return {"sample_ids": beside.sample_ids, "sample_weight": beside.sample_weight, "group_ids": beside.group_ids}


def _read_truth(
    y_true: Column, declared: Sequence[Label] | None, columns: int, pointer: str
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    texts = None if declared is None else check_labels(declared, f"{pointer}/labels")
    if texts is not None and len(texts) != columns:
        raise InvalidInput.at(
            f"{pointer}/labels",
            "wrong_label_count",
            f"expected {columns} labels for {columns} columns, got {len(texts)}",
        )
    coded = encode({"y_true": y_true}, texts, pointer)
    if texts is None:
        if len(coded.labels) != columns:
            raise InvalidInput.at(
                f"{pointer}/labels",
                "labels_needed",
                f"expected labels for {columns} columns, since {len(coded.labels)} different ones occur in y_true",
            )
        check_found_labels(coded, pointer)
    return coded.codes["y_true"], coded.labels


def _read_matrix(rows: Rows, pointer: str) -> NDArray[np.float64]:
    """[n, K] of finite numbers."""
    if isinstance(rows, np.ndarray):
        if rows.ndim != 2:
            raise InvalidInput.at(f"{pointer}/0", "not_a_row", "expected an array of numbers for every sample")
        matrix = rows.astype(np.float64, copy=False)
    else:
        matrix = rectangle(rows, pointer)
    if matrix.shape[1] < 2:
        raise InvalidInput.at(
            pointer, "too_few_classes", f"expected at least 2 numbers in a row, got {matrix.shape[1]}"
        )
    if not np.isfinite(matrix.sum()) and not np.isfinite(matrix).all():
        row, column = _first(~np.isfinite(matrix))
        raise InvalidInput.at(
            f"{pointer}/{row}/{column}", "not_finite", f"expected a finite number, got {matrix[row, column]}"
        )
    return matrix


def read_numbers(column: Numbers, pointer: str) -> NDArray[np.float64]:
    """Finite numbers (n)."""
    if isinstance(column, list) and not set(map(type, column)) <= {int, float}:
        index = next(i for i, value in enumerate(column) if type(value) not in (int, float))
        raise not_a_number(f"{pointer}/{index}", column[index])
    try:
        values = np.asarray(column, dtype=np.float64)
    except OverflowError:
        index = next(i for i, value in enumerate(column) if abs(value) > 1e300)
        raise InvalidInput.at(f"{pointer}/{index}", "not_finite", "expected a number that fits a double") from None
    bad = ~np.isfinite(values)
    if bad.any():
        index = int(np.argmax(bad))
        raise InvalidInput.at(f"{pointer}/{index}", "not_finite", f"expected a finite number, got {values[index]}")
    return values


def _first(bad: NDArray[np.bool_]) -> tuple[int, int]:
    row, column = np.unravel_index(int(np.argmax(bad)), bad.shape)
    return int(row), int(column)


def _check_matrix(
    matrix: NDArray[np.float64], pointer: str, tolerance: float, *, renormalize: bool
) -> tuple[NDArray[np.float64], int]:
    """Probabilities in [0, 1] that sum to 1, and how many rows had to be renormalised for it."""
    low, high = float(matrix.min()), float(matrix.max())
    if low < -tolerance or (high > 1.0 + tolerance and not renormalize):
        row, column = _first((matrix < -tolerance) | (matrix > (np.inf if renormalize else 1.0 + tolerance)))
        expected = "0 or more" if renormalize else "a probability between 0 and 1"
        raise InvalidInput.at(
            f"{pointer}/{row}/{column}", "out_of_range", f"expected {expected}, got {matrix[row, column]:g}"
        )
    if low < 0.0 or (high > 1.0 and not renormalize):
        # Within the tolerance: rounding of whoever computed them.
        matrix = np.clip(matrix, 0.0, None if renormalize else 1.0)
    with np.errstate(over="ignore"):
        sums = matrix @ np.ones(matrix.shape[1])
    if sums.min() <= 0.0:
        row = int(np.argmin(sums))
        raise InvalidInput.at(
            f"{pointer}/{row}", "all_zero_row", "expected probabilities that sum to 1, got nothing but zeros"
        )
    wrong = np.abs(sums - 1.0) > tolerance
    count = int(np.count_nonzero(wrong))
    if not count:
        return matrix, 0
    row = int(np.argmax(wrong))
    if not renormalize or not np.isfinite(sums).all():
        raise InvalidInput.at(
            f"{pointer}/{row}",
            "row_sum",
            f"expected probabilities that sum to 1 within {tolerance:g}, got {sums[row]:.9g}; "
            "`renormalize` divides every row by its sum",
        )
    return matrix / np.where(wrong, sums, 1.0)[:, None], count


def _made(
    kind: str,
    labels: tuple[str, ...],
    positive: int | None,
    truth: NDArray[np.int64],
    predicted: NDArray[np.int64],
    outputs: NDArray[np.float64],
    beside: Accompanying,
    facts: Mapping[str, Any],
    pointer: str,
) -> MatrixInput:
    weights = None
    if beside.sample_weight is not None:
        weights = read_weights(beside.sample_weight, f"{pointer}/sample_weight")
    ids = None if beside.sample_ids is None else read_ids(beside.sample_ids, f"{pointer}/sample_ids")
    groups = None if beside.group_ids is None else read_groups(beside.group_ids, f"{pointer}/group_ids")
    counts = confusion_counts(truth, predicted, len(labels), weights)
    if weights is not None and beside.part:
        check_total(float(counts.sum()), f"{pointer}/sample_weight")
    elif weights is not None:
        check_entries(counts, f"{pointer}/sample_weight", lambda *_: f"{pointer}/sample_weight")
    return MatrixInput(
        kind=kind,
        labels=labels,
        positive=positive,
        content=Content.counts if weights is None else Content.weights,
        counts=counts,
        facts={**facts, **weight_facts(weights), **group_facts(groups)},
        samples=Samples(truth, predicted, outputs, ids, weights, groups=groups),
    )
