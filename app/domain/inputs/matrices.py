"""The one form of every input, a matrix of counts with its labels, and what is demanded of labels and entries.

Functions raise InvalidInput with pointers relative to the ``input`` object that they were given a pointer for.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import InvalidInput
from app.domain.inputs.columns import refuse_first
from app.domain.inputs.content import (
    DECISIONS_FACT,
    GROUPS_FACT,
    LARGEST_TOTAL,
    OUTPUTS_FACT,
    WEIGHT_FACT,
    WEIGHTS_FACT,
    Content,
)
from app.domain.inputs.labels import (
    MOST_CLASSES,
    Coded,
    Label,
    fault_of_name,
    label_text,
    shown,
    unknown_label,
)
from app.domain.inputs.samples import Samples
from app.kernel.matrix.table import confusion_counts
from app.kernel.metrics.card import Task

MOST_SAMPLES = 10_000_000
# Products of four margins stay far inside the range of doubles between these.
SMALLEST_ENTRY = 1e-15
# Kinds of input that say more of a sample than what was predicted.
_SCORES = "scores"
SCORED_KINDS = frozenset({"probabilities", _SCORES})


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
    def as_input(self) -> dict[str, Any]:
        """The members of an input by name, without what a class says besides."""
        return {name: getattr(self, name) for name in MatrixInput.__slots__}

    @property
    def known_samples(self) -> Samples:
        """Its samples. Raises ValueError where they are not known."""
        if self.samples is None:
            raise ValueError(f"expected {self.kind} with samples")
        return self.samples

    @property
    def weighed_samples(self) -> Samples:
        """Its samples with the weights that they came with, though these may be all the same. Raises as `known_samples`
        does.
        """
        samples, weight = self.known_samples, self.facts.get(WEIGHT_FACT)
        return samples if weight is None else replace(samples, weights=np.full(samples.size, weight))

    @property
    def task(self) -> Task | None:
        """Task of the input; None for classes, two or more."""
        # Kinds make inputs, and inputs know their kind.
        from app.domain.inputs.kinds import task_of

        return task_of(self.kind, self.facts)

    @property
    def decisions(self) -> Sequence[str] | None:
        """Names of the columns of the matrix where these are no classes; None where they are."""
        found: Sequence[str] | None = self.facts.get(DECISIONS_FACT)
        return found

    @property
    def n_samples(self) -> float:
        """Number of samples, queries or items: a count, or a sum of weights or rates."""
        from app.domain.inputs.kinds import units_of

        units = units_of(self.kind, self.facts)
        total: float = self.counts.sum().item() if units is None else units.size(self.counts)
        return total

    @property
    def is_scored(self) -> bool:
        """Did it come with probabilities or scores?"""
        return self.kind in SCORED_KINDS or self.facts.get("fold_kind") in SCORED_KINDS

    @property
    def is_ordered(self) -> bool:
        """Did it come with probabilities or scores of classes, or of labels, which orders and curves are made of?"""
        return self.is_scored or (self.task is not None and "rule" in self.facts)

    @property
    def has_scores(self) -> bool:
        """Did it come with scores of classes, or of labels, which are no probabilities?"""
        return _SCORES in (self.kind, self.facts.get("fold_kind"), self.facts.get(OUTPUTS_FACT))

    @property
    def n_rows(self) -> float:
        """Samples that came, whatever they weigh."""
        return float(self.facts.get("rows", self.n_samples) if self.is_weighted else self.n_samples)

    @property
    def is_grouped(self) -> bool:
        """Did its samples come in groups, so that they are not independent? Groups of one sample each are none."""
        # Weights may add up to the number of the groups.
        known = self.content is Content.counts or "rows" in self.facts
        return GROUPS_FACT in self.facts and not (known and self.facts[GROUPS_FACT] == self.n_rows)

    @property
    def counts_independent(self) -> bool:
        """Entries are numbers of independent samples, from which their sampling error follows."""
        return self.content is Content.counts and not self.is_grouped

    @property
    def groups(self) -> NDArray[Any] | None:
        """Groups (n) that its samples are in; None where they are independent, or groups are not known."""
        return self.samples.groups if self.is_grouped and self.samples is not None else None

    @property
    def unit_ids(self) -> NDArray[Any] | None:
        """Ids (n) of its samples or queries, which pair runs; None without any, or where they are not known."""
        return None if self.samples is None else self.samples.ids

    @property
    def came_weighed(self) -> bool:
        """Did its samples come with weights, though these may be all the same?"""
        return self.is_weighted or WEIGHT_FACT in self.facts

    @property
    def is_weighted(self) -> bool:
        """Do its samples have weights, from which the sampling error follows? Those that are all the same are none."""
        return WEIGHTS_FACT in self.facts


def check_labels(labels: Sequence[Label], pointer: str, *, fewest: int = 2) -> tuple[str, ...]:
    """Labels as text: at least two, or as few as may be, at most 1,000, all different."""
    texts = tuple(map(label_text, labels))
    check_class_count(len(texts), pointer, fewest=fewest)
    seen: set[str] = set()
    for index, text in enumerate(texts):
        if text in seen:
            raise InvalidInput.at(
                f"{pointer}/{index}", "duplicate_label", f"expected labels that differ, got {shown(text)} twice"
            )
        seen.add(text)
    return texts


def names_of(given: Sequence[Label] | None, count: int, what: str, pointer: str, *, fewest: int = 2) -> tuple[str, ...]:
    """Names of so many rows or columns: those that are given, else "0", "1" and so on.

    Raises:
        InvalidInput: they are not as many, or not as `check_labels` wants them.
    """
    if given is not None and len(given) != count:
        raise InvalidInput.at(pointer, "wrong_label_count", f"expected {count} {what}, got {len(given)}")
    return check_labels([str(place) for place in range(count)] if given is None else given, pointer, fewest=fewest)


def check_class_count(count: int, pointer: str, *, fewest: int = 2, most: int = MOST_CLASSES) -> None:
    """Refuse fewer than 2 or more than 1,000 classes; fewer or more are allowed for kinds that say so."""
    if count < fewest:
        raise InvalidInput.at(pointer, "too_few_classes", f"expected at least {fewest} classes, got {count}")
    if count > most:
        raise InvalidInput.at(pointer, "too_many_classes", f"expected at most {most} classes, got {count}")


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
        raise unknown_label(pointer, text, labels)
    return labels.index(text)


def check_entries(entries: NDArray[np.float64], pointer: str, where: Callable[..., str] | None = None) -> None:
    """Raises InvalidInput: entries (...) are negative, beyond what keeps the arithmetic exact, or all zero; ``where``
    as in `refuse_first`.
    """
    if entries.min() < 0:
        refuse_first(entries, entries < 0, pointer, "negative_entry", "expected 0 or more", where)
    with np.errstate(over="ignore"):
        largest = entries.sum()
    if largest == 0:
        raise InvalidInput.at(pointer, "no_samples", "expected at least one sample, got nothing but zeros")
    check_total(largest, pointer)
    small = (entries > 0) & (entries < SMALLEST_ENTRY)
    refuse_first(entries, small, pointer, "entry_too_small", f"expected 0 or at least {SMALLEST_ENTRY:g}", where)


def check_total(total: float, pointer: str) -> None:
    """Raises InvalidInput: entries add up to more than what keeps the arithmetic exact."""
    if total > LARGEST_TOTAL:
        raise InvalidInput.at(pointer, "total_too_large", f"expected entries that sum to at most 2^53, got {total:g}")


def whole_or_weights(matrix: NDArray[np.float64]) -> Content:
    """Counts when every entry is a whole number, weights otherwise."""
    return Content.counts if (matrix == np.floor(matrix)).all() else Content.weights


def class_counts(samples: Samples, n_classes: int) -> NDArray[Any]:
    """The matrix (K, K) of samples: int64 where none has a weight, else float64."""
    masses = samples.masses
    # Whole numbers, and sums of them, are exact as doubles.
    each = None if masses is None else masses.astype(np.float64, copy=False)
    counts = confusion_counts(samples.truth, samples.predicted, n_classes, each)
    return counts if samples.weights is not None else counts.astype(np.int64, copy=False)


def check_found_labels(coded: Coded, pointer: str, *, fewest: int = 2, most: int = MOST_CLASSES) -> None:
    """Raises InvalidInput: labels that were found in the data are not fit to be declared ones."""
    if len(coded.labels) == 1 < fewest:
        raise InvalidInput.at(
            pointer,
            "too_few_classes",
            f"expected at least 2 classes, got only {shown(coded.labels[0])}; name all classes in `labels`",
        )
    check_class_count(len(coded.labels), pointer, fewest=fewest, most=most)
    for code, text in enumerate(coded.labels):
        fault = fault_of_name(text)
        if fault is not None:
            name, found = next((name, codes == code) for name, codes in coded.codes.items() if (codes == code).any())
            raise InvalidInput.at(f"{pointer}/{name}/{int(np.argmax(found))}", "bad_label", f"{fault} in a label")
