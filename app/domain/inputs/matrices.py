"""What can be evaluated from counts or labels, brought to one form: a confusion matrix with its labels.

Every function here raises InvalidInput with pointers relative to the ``input`` object it was given a pointer for.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import InvalidInput
from app.domain.inputs.beside import group_facts, read_groups, read_ids, read_weights, weight_facts
from app.domain.inputs.content import GROUPS_FACT, IGNORED_FACT, LARGEST_TOTAL, WEIGHTS_FACT, Content
from app.domain.inputs.ignored import classes_left
from app.domain.inputs.kinds import DECISIONS_FACT, size_of, task_of
from app.domain.inputs.labels import (
    MOST_CLASSES,
    Coded,
    Column,
    Label,
    Numbers,
    check_lengths,
    encode,
    label_text,
    listed,
    shown,
)
from app.domain.inputs.names import fault_of_name
from app.domain.inputs.samples import Samples, Tally
from app.kernel.matrix.table import confusion_counts
from app.kernel.metrics.card import Task

MOST_SAMPLES = 10_000_000
# Products of four margins stay far inside the range of doubles between these.
SMALLEST_ENTRY = 1e-15
# Kinds of input that say more of a sample than what was predicted.
_SCORES = "scores"
SCORED_KINDS = frozenset({"probabilities", _SCORES})
_COUNT_NAMES = (("tn", "fp"), ("fn", "tp"))


@dataclass(frozen=True, slots=True, eq=False)
class MatrixInput:
    """An input in its canonical form.

    Attributes:
        kind: The kind it came as.
        labels: The K classes in the order of the matrix.
        positive: Index of the positive class, K = 2 only.
        content: What the entries are.
        counts: [K, K], rows actual; int64 for counts, float64 otherwise. What is more than a matrix of classes has
            another shape (`app.domain.inputs.kinds`).
        fold_counts: [F, K, K] of the folds that ``counts`` is the sum of.
        facts: Small facts of this kind of input to give back, as JSON.
        samples: What is known of each sample, where something is worth keeping: ids, probabilities, scores.
    """

    kind: str
    labels: tuple[str, ...]
    positive: int | None
    content: Content
    counts: NDArray[Any]
    fold_counts: NDArray[Any] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    samples: Samples | None = None

    @property
    def task(self) -> Task | None:
        """What is judged; None for classes, two or more."""
        return task_of(self.kind, self.facts)

    @property
    def decisions(self) -> Sequence[str] | None:
        """What the columns of the matrix are where they are no classes; None where they are."""
        found: Sequence[str] | None = self.facts.get(DECISIONS_FACT)
        return found

    @property
    def n_samples(self) -> float:
        """How many samples, or queries: a count, or a sum of weights or rates."""
        return size_of(self.kind, self.counts)

    @property
    def is_scored(self) -> bool:
        """Whether it came with probabilities or scores."""
        return self.kind in SCORED_KINDS or self.facts.get("fold_kind") in SCORED_KINDS

    @property
    def has_scores(self) -> bool:
        """Whether what it came with are scores, which are no probabilities."""
        return _SCORES in (self.kind, self.facts.get("fold_kind"))

    @property
    def is_grouped(self) -> bool:
        """Whether its samples came in groups, so that they are not independent."""
        return GROUPS_FACT in self.facts

    @property
    def unit_ids(self) -> NDArray[Any] | None:
        """Ids (n) of its samples or queries, which pair runs; None without any, or where they are not at hand."""
        return None if self.samples is None else self.samples.ids

    @property
    def is_weighted(self) -> bool:
        """Whether its samples have weights of their own, from which the sampling error follows."""
        return WEIGHTS_FACT in self.facts


def check_labels(labels: Sequence[Label], pointer: str, *, fewest: int = 2) -> tuple[str, ...]:
    """Labels as text: at least two, or as few as may be, at most 1,000, all different."""
    texts = tuple(label_text(label) for label in labels)
    check_class_count(len(texts), pointer, fewest=fewest)
    seen: set[str] = set()
    for index, text in enumerate(texts):
        if text in seen:
            raise InvalidInput.at(
                f"{pointer}/{index}", "duplicate_label", f"expected labels that differ, got {shown(text)} twice"
            )
        seen.add(text)
    return texts


def check_class_count(count: int, pointer: str, *, fewest: int = 2) -> None:
    """Between 2 and 1,000 classes, or fewer where that makes sense."""
    if count < fewest:
        raise InvalidInput.at(pointer, "too_few_classes", f"expected at least {fewest} classes, got {count}")
    if count > MOST_CLASSES:
        raise InvalidInput.at(pointer, "too_many_classes", f"expected at most {MOST_CLASSES} classes, got {count}")


def positive_index(positive: Label | None, labels: Sequence[str], pointer: str) -> int | None:
    """Index of the positive class: the second label by default for two classes, none beyond two."""
    if len(labels) != 2:
        if positive is not None:
            raise InvalidInput.at(
                pointer,
                "positive_needs_two_classes",
                f"expected no positive class with {len(labels)} classes: it is a choice for two classes only",
            )
        return None
    if positive is None:
        return 1
    text = label_text(positive)
    if text not in labels:
        raise InvalidInput.at(pointer, "unknown_label", f"expected one of {listed(labels)}, got {shown(text)}")
    return labels.index(text)


def check_entries(entries: NDArray[np.float64], pointer: str, where: Callable[..., str]) -> None:
    """Entries non-negative, within the range that keeps the arithmetic exact, not all zero.

    Args:
        entries: Of any shape.
        pointer: JSON pointer to all of them.
        where: Gives the pointer to one from its indices.
    """
    if entries.min() < 0:
        raise _refuse_entry(entries, entries < 0, where, "negative_entry", "expected 0 or more")
    with np.errstate(over="ignore"):
        largest = entries.sum()
    if largest == 0:
        raise InvalidInput.at(pointer, "no_samples", "expected at least one sample, got nothing but zeros")
    check_total(largest, pointer)
    small = (entries > 0) & (entries < SMALLEST_ENTRY)
    if small.any():
        raise _refuse_entry(entries, small, where, "entry_too_small", f"expected 0 or at least {SMALLEST_ENTRY:g}")


def check_total(total: float, pointer: str) -> None:
    """Raises InvalidInput: entries add up to more than what keeps the arithmetic exact."""
    if total > LARGEST_TOTAL:
        raise InvalidInput.at(pointer, "total_too_large", f"expected entries that sum to at most 2^53, got {total:g}")


def _refuse_entry(
    entries: NDArray[np.float64], bad: NDArray[np.bool_], where: Callable[..., str], code: str, expected: str
) -> InvalidInput:
    first = tuple(int(index) for index in np.argwhere(bad)[0])
    return InvalidInput.at(where(*first), code, f"{expected}, got {entries[first]:g}")


def _square(rows: Sequence[Sequence[float]], labels: Sequence[Label] | None, pointer: str) -> NDArray[np.float64]:
    count = len(rows)
    check_class_count(count, f"{pointer}/matrix")
    for index, row in enumerate(rows):
        if len(row) != count:
            raise InvalidInput.at(
                f"{pointer}/matrix/{index}",
                "not_square",
                f"expected {count} entries as there are {count} rows, got {len(row)}; name what was decided in "
                "`decisions` if the columns are no classes",
            )
    if labels is not None and len(labels) != count:
        raise InvalidInput.at(
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
    ignore: Sequence[Label] = (),
    pointer: str,
) -> MatrixInput:
    """A confusion matrix; whole numbers are counts, others weights, ``normalized`` ones rates.

    Of classes to ``ignore`` the row goes, and the column if nothing else is in it.
    """
    matrix = _square(rows, labels, pointer)
    check_entries(matrix, f"{pointer}/matrix", lambda row, column: f"{pointer}/matrix/{row}/{column}")
    texts = (
        check_labels(labels, f"{pointer}/labels") if labels is not None else tuple(str(k) for k in range(len(matrix)))
    )
    content = Content.rates if normalized else whole_or_weights(matrix)
    # A transposed view would be stored in the wrong order.
    actual = np.ascontiguousarray(matrix.T) if predicted_rows else matrix
    facts: dict[str, Any] = {}
    if ignore:
        actual, texts, facts[IGNORED_FACT] = classes_left(actual, texts, ignore, pointer)
        check_class_count(len(texts), f"{pointer}/ignore")
    return MatrixInput(
        kind="confusion_matrix",
        labels=texts,
        positive=positive_index(positive, texts, f"{pointer}/positive"),
        content=content,
        counts=actual.astype(np.int64) if content is Content.counts else actual,
        facts=facts,
    )


def whole_or_weights(matrix: NDArray[np.float64]) -> Content:
    """Counts when every entry is a whole number, weights otherwise."""
    return Content.counts if (matrix == np.floor(matrix)).all() else Content.weights


def from_binary_counts(
    *, tp: float, fn: float, fp: float, tn: float, negative: Label, positive: Label, pointer: str
) -> MatrixInput:
    """Four counts, as [[tn, fp], [fn, tp]]."""
    matrix = np.array([[tn, fp], [fn, tp]], dtype=np.float64)
    check_entries(matrix, pointer, lambda row, column: f"{pointer}/{_COUNT_NAMES[row][column]}")
    names = (label_text(negative), label_text(positive))
    if names[0] == names[1]:
        raise InvalidInput.at(
            f"{pointer}/positive", "duplicate_label", f"expected two different names, got {names[0]!r} twice"
        )
    content = whole_or_weights(matrix)
    return MatrixInput(
        kind="binary_counts",
        labels=names,
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
    sample_weight: Numbers | None,
    group_ids: Column | None = None,
    tally: Tally | None = None,
    pointer: str,
) -> MatrixInput:
    """Actual and predicted labels, sample by sample. Without ``labels`` the classes are those that occur, sorted.

    With a ``tally`` an entry stands for many samples that say the same, without ids; its weight is their sum then.
    """
    columns = {"y_pred": y_pred, "sample_ids": sample_ids, "group_ids": group_ids, "sample_weight": sample_weight}
    size = check_lengths(y_true, columns, pointer)
    weights = None if sample_weight is None else read_weights(sample_weight, f"{pointer}/sample_weight")
    ids = None if sample_ids is None else read_ids(sample_ids, f"{pointer}/sample_ids")
    groups = None if group_ids is None else read_groups(group_ids, f"{pointer}/group_ids")
    declared = None if labels is None else check_labels(labels, f"{pointer}/labels")
    coded = encode({"y_true": y_true, "y_pred": y_pred}, declared, pointer)
    if declared is None:
        check_found_labels(coded, pointer)
    # Whole numbers, and sums of them, are exact as doubles.
    each = tally.times.astype(np.float64) if weights is None and tally is not None else weights
    counts = confusion_counts(coded.codes["y_true"], coded.codes["y_pred"], len(coded.labels), each)
    if weights is not None:
        check_entries(counts, f"{pointer}/sample_weight", lambda *_: f"{pointer}/sample_weight")
    return MatrixInput(
        kind="predictions",
        labels=coded.labels,
        positive=positive_index(positive, coded.labels, f"{pointer}/positive"),
        content=Content.counts if weights is None else Content.weights,
        counts=counts if weights is not None else counts.astype(np.int64, copy=False),
        facts={
            **({"rows": size if tally is None else int(tally.times.sum())} if weights is not None else {}),
            **weight_facts(weights, tally),
            **group_facts(groups),
        },
        samples=None
        if ids is None and groups is None and weights is None
        else Samples(coded.codes["y_true"], coded.codes["y_pred"], None, ids, weights, groups=groups, tally=tally),
    )


def with_weights(source: MatrixInput, column: Numbers, pointer: str) -> MatrixInput:
    """An input that came without weights, with those of its samples (n), of which all may be 0.

    Raises:
        InvalidInput: one is no weight.
        ValueError: there are no samples.
    """
    samples, weights = source.samples, read_weights(column, pointer)
    if samples is None:
        raise ValueError("expected samples")
    counts = confusion_counts(samples.truth, samples.predicted, len(source.labels), weights)
    weighted = replace(samples, weights=weights)
    return replace(source, content=Content.weights, counts=counts, samples=weighted)


def check_found_labels(coded: Coded, pointer: str) -> None:
    """The same demands on labels that were found in the data as on declared ones."""
    if len(coded.labels) == 1:
        raise InvalidInput.at(
            pointer,
            "too_few_classes",
            f"expected at least 2 classes, got only {shown(coded.labels[0])}; name all classes in `labels`",
        )
    check_class_count(len(coded.labels), pointer)
    for code, text in enumerate(coded.labels):
        fault = fault_of_name(text)
        if fault is not None:
            name, found = next((name, codes == code) for name, codes in coded.codes.items() if (codes == code).any())
            raise InvalidInput.at(f"{pointer}/{name}/{int(np.argmax(found))}", "bad_label", f"{fault} in a label")
