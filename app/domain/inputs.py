"""What can be evaluated from counts or labels, brought to one form: a confusion matrix with its labels.

Every function here raises InvalidInput with pointers relative to the ``input`` object it was given a pointer for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import Fault, InvalidInput
from app.domain.evaluation import Content
from app.domain.labels import Column, Label, encode, label_text
from app.kernel.labels import confusion_counts

MOST_CLASSES = 1000
# Doubles hold every whole number up to here; beyond it sums of counts would be rounded in silence.
LARGEST_TOTAL = 2.0**53
# Products of four margins stay far inside the range of doubles between these.
SMALLEST_ENTRY = 1e-15


@dataclass(frozen=True, slots=True, eq=False)
class MatrixInput:
    """An input in its canonical form.

    Attributes:
        kind: The kind it came as.
        labels: The K classes in the order of the matrix.
        positive: Index of the positive class, K = 2 only.
        content: What the entries are.
        counts: [K, K], rows actual; int64 for counts, float64 otherwise.
        fold_counts: [F, K, K] of the folds that ``counts`` is the sum of.
        facts: Small facts of this kind of input to give back, as JSON.
    """

    kind: str
    labels: tuple[str, ...]
    positive: int | None
    content: Content
    counts: NDArray[Any]
    fold_counts: NDArray[Any] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


def _refuse(pointer: str, code: str, detail: str) -> InvalidInput:
    return InvalidInput([Fault(pointer, code, detail)])


def check_labels(labels: Sequence[Label], pointer: str) -> tuple[str, ...]:
    """Labels as text: at least two, at most 1,000, all different."""
    texts = tuple(label_text(label) for label in labels)
    check_class_count(len(texts), pointer)
    seen: set[str] = set()
    for index, text in enumerate(texts):
        if text in seen:
            raise _refuse(f"{pointer}/{index}", "duplicate_label", f"expected labels that differ, got {text!r} twice")
        seen.add(text)
    return texts


def check_class_count(count: int, pointer: str) -> None:
    """Between 2 and 1,000 classes."""
    if count < 2:
        raise _refuse(pointer, "too_few_classes", f"expected at least 2 classes, got {count}")
    if count > MOST_CLASSES:
        raise _refuse(pointer, "too_many_classes", f"expected at most {MOST_CLASSES} classes, got {count}")


def positive_index(positive: Label | None, labels: Sequence[str], pointer: str) -> int | None:
    """Index of the positive class: the second label by default for two classes, none beyond two."""
    if len(labels) != 2:
        if positive is not None:
            raise _refuse(
                pointer,
                "positive_needs_two_classes",
                f"expected no positive class with {len(labels)} classes: it is a choice for two classes only",
            )
        return None
    if positive is None:
        return 1
    text = label_text(positive)
    if text not in labels:
        raise _refuse(pointer, "unknown_label", f"expected one of {list(labels)}, got {text!r}")
    return labels.index(text)


def check_entries(matrix: NDArray[np.float64], pointer: str) -> None:
    """Entries non-negative, within the range that keeps the arithmetic exact, not all zero."""
    if matrix.min() < 0:
        row, column = (int(index) for index in np.argwhere(matrix < 0)[0])
        raise _refuse(
            f"{pointer}/{row}/{column}", "negative_entry", f"expected an entry of 0 or more, got {matrix[row, column]:g}"
        )
    largest = matrix.sum()
    if largest == 0:
        raise _refuse(pointer, "no_samples", "expected at least one sample, got a matrix of zeros")
    if largest > LARGEST_TOTAL:
        raise _refuse(pointer, "total_too_large", f"expected entries that sum to at most 2^53, got {largest:g}")
    small = (matrix > 0) & (matrix < SMALLEST_ENTRY)
    if small.any():
        row, column = (int(index) for index in np.argwhere(small)[0])
        raise _refuse(
            f"{pointer}/{row}/{column}",
            "entry_too_small",
            f"expected entries of 0 or at least {SMALLEST_ENTRY:g}, got {matrix[row, column]:g}",
        )


def _square(rows: Sequence[Sequence[float]], labels: Sequence[Label] | None, pointer: str) -> NDArray[np.float64]:
    count = len(rows)
    check_class_count(count, f"{pointer}/matrix")
    for index, row in enumerate(rows):
        if len(row) != count:
            raise _refuse(
                f"{pointer}/matrix/{index}",
                "not_square",
                f"expected {count} entries as there are {count} rows, got {len(row)}",
            )
    if labels is not None and len(labels) != count:
        raise _refuse(
            f"{pointer}/labels", "wrong_label_count", f"expected {count} labels for {count} rows, got {len(labels)}"
        )
    return np.array(rows, dtype=np.float64)


def from_matrix(
    rows: Sequence[Sequence[float]],
    *,
    labels: Sequence[Label] | None,
    positive: Label | None,
    predicted_rows: bool,
    normalized: bool,
    pointer: str,
) -> MatrixInput:
    """A confusion matrix; whole numbers are counts, others weights, ``normalized`` ones rates."""
    matrix = _square(rows, labels, pointer)
    check_entries(matrix, f"{pointer}/matrix")
    texts = (
        check_labels(labels, f"{pointer}/labels") if labels is not None else tuple(str(k) for k in range(len(matrix)))
    )
    content = Content.rates if normalized else whole_or_weights(matrix)
    # A transposed view would be stored in the wrong order.
    actual = np.ascontiguousarray(matrix.T) if predicted_rows else matrix
    return MatrixInput(
        kind="confusion_matrix",
        labels=texts,
        positive=positive_index(positive, texts, f"{pointer}/positive"),
        content=content,
        counts=actual.astype(np.int64) if content is Content.counts else actual,
    )


def whole_or_weights(matrix: NDArray[np.float64]) -> Content:
    """Counts when every entry is a whole number, weights otherwise."""
    return Content.counts if (matrix == np.floor(matrix)).all() else Content.weights


def from_binary_counts(
    *, tp: float, fn: float, fp: float, tn: float, negative: str, positive: str, pointer: str
) -> MatrixInput:
    """Four counts, as [[tn, fp], [fn, tp]]."""
    matrix = np.array([[tn, fp], [fn, tp]], dtype=np.float64)
    for name, value in (("tp", tp), ("fn", fn), ("fp", fp), ("tn", tn)):
        if value < 0:
            raise _refuse(f"{pointer}/{name}", "negative_entry", f"expected 0 or more, got {value:g}")
    check_entries(matrix, pointer)
    if negative == positive:
        raise _refuse(f"{pointer}/positive", "duplicate_label", f"expected two different names, got {positive!r} twice")
    content = whole_or_weights(matrix)
    return MatrixInput(
        kind="binary_counts",
        labels=(negative, positive),
        positive=1,
        content=content,
        counts=matrix.astype(np.int64) if content is Content.counts else matrix,
    )


def from_predictions(
    y_true: Column,
    y_pred: Column,
    *,
    labels: Sequence[Label] | None,
    positive: Label | None,
    sample_ids: Column | None,
    sample_weight: Column | None,
    pointer: str,
) -> MatrixInput:
    """Actual and predicted labels, sample by sample. Without ``labels`` the classes are those that occur, sorted."""
    size = len(y_true)
    if size == 0:
        raise _refuse(f"{pointer}/y_true", "no_samples", "expected at least one sample, got none")
    for name, column in (("y_pred", y_pred), ("sample_ids", sample_ids), ("sample_weight", sample_weight)):
        if column is not None and len(column) != size:
            raise _refuse(
                f"{pointer}/{name}",
                "wrong_length",
                f"expected {size} entries as in y_true, got {len(column)}",
            )
    weights = None if sample_weight is None else _weights(sample_weight, f"{pointer}/sample_weight")
    if sample_ids is not None:
        check_unique(sample_ids, f"{pointer}/sample_ids")
    declared = None if labels is None else check_labels(labels, f"{pointer}/labels")
    coded = encode({"y_true": y_true, "y_pred": y_pred}, declared, pointer)
    check_class_count(len(coded.labels), pointer if declared is None else f"{pointer}/labels")
    counts = confusion_counts(coded.codes["y_true"], coded.codes["y_pred"], len(coded.labels), weights)
    if weights is not None:
        check_entries(counts, f"{pointer}/sample_weight")
    return MatrixInput(
        kind="predictions",
        labels=coded.labels,
        positive=positive_index(positive, coded.labels, f"{pointer}/positive"),
        content=Content.counts if weights is None else Content.weights,
        counts=counts,
        facts={"rows": size} if weights is not None else {},
    )


def _weights(column: Column, pointer: str) -> NDArray[np.float64]:
    for index, value in enumerate(column if isinstance(column, list) else ()):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _refuse(f"{pointer}/{index}", "not_a_number", f"expected a number, got {type(value).__name__}")
    weights = np.asarray(column, dtype=np.float64)
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        index = int(np.argmax(bad))
        raise _refuse(f"{pointer}/{index}", "bad_weight", f"expected a finite weight of 0 or more, got {weights[index]:g}")
    return weights


def check_unique(sample_ids: Column, pointer: str) -> None:
    """Ids that differ: pairing of two runs goes by them."""
    seen: dict[Any, int] = {}
    for index, identifier in enumerate(sample_ids):
        if identifier in seen:
            raise _refuse(
                f"{pointer}/{index}",
                "duplicate_sample_id",
                f"expected ids that differ, got {label_text(identifier)!r} at {seen[identifier]} and again here",
            )
        seen[identifier] = index


def pooled(folds: Sequence[MatrixInput], pointer: str) -> MatrixInput:
    """Folds of one kind and one set of labels as their sum."""
    first = folds[0]
    for index, fold in enumerate(folds[1:], start=1):
        where = f"{pointer}/folds/{index}"
        if fold.kind != first.kind:
            raise _refuse(f"{where}/kind", "mixed_folds", f"expected folds of one kind, {first.kind!r}, got {fold.kind!r}")
        if fold.labels != first.labels or fold.positive != first.positive:
            raise _refuse(
                where,
                "mixed_labels",
                f"expected the labels of the first fold, {list(first.labels)} in this order, got {list(fold.labels)}; "
                "give `labels` in every fold",
            )
        if (fold.content is Content.rates) != (first.content is Content.rates):
            raise _refuse(where, "mixed_folds", "expected folds that are all rates or all counts")
    if first.content is Content.rates:
        raise _refuse(
            f"{pointer}/folds/0", "rates_cannot_be_pooled", "expected counts: rates of folds of unknown size cannot be added"
        )
    whole = all(fold.content is Content.counts for fold in folds)
    stack = np.stack([fold.counts if whole else fold.counts.astype(np.float64) for fold in folds])
    return MatrixInput(
        kind="folds",
        labels=first.labels,
        positive=first.positive,
        content=Content.counts if whole else Content.weights,
        counts=stack.sum(axis=0),
        fold_counts=stack,
        facts={"fold_kind": first.kind},
    )
