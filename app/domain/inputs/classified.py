"""Samples of classes: the actual class of each, and the class that was predicted, probabilities or scores."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from app.domain.asked import LabelOf, Limits, Share
from app.domain.errors import InvalidInput
from app.domain.inputs.attributes import read_attributes
from app.domain.inputs.columns import Rows, check_finite, check_lengths, designed, samples_of
from app.domain.inputs.content import GROUPS_FACT, IGNORED_FACT, WEIGHT_FACT, Content
from app.domain.inputs.ignored import IGNORED, at_their_places, samples_left
from app.domain.inputs.kind import (
    ATTRIBUTES,
    LABELS,
    POSITIVE,
    SCORES,
    SHARES,
    AttributeColumns,
    Beyond,
    ClassNames,
    Facts,
    File,
    Ignored,
    Input,
    Spread,
    column,
    groups,
    ids,
    option,
    weights,
)
from app.domain.inputs.labels import Column, Numbers, encode, taken
from app.domain.inputs.matrices import (
    MatrixInput,
    check_class_count,
    check_entries,
    check_found_labels,
    check_labels,
    check_total,
    class_counts,
    names_of,
    positive_index,
)
from app.domain.inputs.samples import DecidedBy, Tally

SUM_TOLERANCE = 1e-6
MOST_TOLERANCE = 0.1
# Decimals by which rounding is known, and the relative rounding of 32-bit and of 16-bit numbers.
_DECIMALS: Final = (6, 5, 4, 3)
_SINGLE: Final = 2.0**-24
_HALF: Final = 2.0**-11
# The sum of many rounded numbers may lie further from 1, but then too much is lost to take it without a word.
_MOST_ROUNDING: Final = 0.01
_PERCENT = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifiedInput(Input):
    """Samples that have one class each.

    Attributes:
        tally: How many samples each entry stands for, where rows that say the same are one entry; predictions only.
        part: Are these some of the samples only, whose weights may add up to nothing?
    """

    in_folds: ClassVar[bool] = True

    y_true: Column = column(LABELS, "The actual classes.", File("y_true", needed=True), required=True)
    labels: ClassNames | None = option("The classes; those that occur, sorted, when left out.")
    positive: LabelOf | None = option(POSITIVE)
    sample_ids: Column | None = ids()
    sample_weight: Numbers | None = weights()
    group_ids: Column | None = groups()
    attributes: AttributeColumns | None = option(ATTRIBUTES)
    ignore: Ignored = option(IGNORED, ())
    tally: Tally | None = None
    part: bool = False

    def read(self, pointer: str) -> MatrixInput:
        """The matrix of the decisions and the samples, without those whose actual class is ignored."""
        if not self.ignore:
            return self._read(self.read_columns(pointer), pointer)
        size = check_lengths(self.given(), pointer)
        if self.attributes:
            # Those that are left out too: faults are told by their places among all.
            read_attributes(self.attributes, size, f"{pointer}/attributes")
        times = None if self.tally is None else self.tally.times
        rows, ignored = samples_left(self.ignore, self.y_true, times, pointer)
        left: ClassifiedInput = self
        if rows.size < size:
            columns = {name: taken(values, rows) for name, values in self.given().items()}
            beside = self.attributes and {name: taken(values, rows) for name, values in self.attributes.items()}
            tally = None if self.tally is None else self.tally.taken(rows)
            left = replace(self, **columns, attributes=beside, tally=tally)
        with at_their_places(rows, self.columns(), pointer):
            made = left._read(left.read_columns(pointer), pointer)
        return replace(made, facts={**made.facts, IGNORED_FACT: ignored})

    @abstractmethod
    def _read(self, read: Mapping[str, Any], pointer: str) -> MatrixInput:
        """The canonical form of all samples, of whose columns arrays were made."""

    def _truth(self, y_true: Column, width: int, pointer: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
        """Codes (n) of the actual classes and the labels, one for each column of probabilities or scores."""
        declared = None
        if self.labels is not None:
            declared = names_of(self.labels, width, f"labels for {width} columns", f"{pointer}/labels")
        coded = encode({"y_true": y_true}, declared, pointer)
        if declared is None:
            if len(coded.labels) != width:
                raise InvalidInput.at(
                    f"{pointer}/labels",
                    "labels_needed",
                    f"expected labels for {width} columns, since {len(coded.labels)} different ones occur in y_true",
                )
            check_found_labels(coded, pointer)
        return coded.codes["y_true"], coded.labels

    def _made(
        self,
        read: Mapping[str, Any],
        labels: tuple[str, ...],
        positive: int | None,
        truth: NDArray[np.int64],
        predicted: NDArray[np.int64],
        facts: dict[str, Any],
        pointer: str,
        outputs: NDArray[np.float64] | None = None,
    ) -> MatrixInput:
        attributes = read_attributes(self.attributes, truth.size, f"{pointer}/attributes") if self.attributes else None
        samples = samples_of(read, truth, predicted, outputs, tally=self.tally, attributes=attributes)
        counts, where = class_counts(samples, len(labels)), f"{pointer}/sample_weight"
        known = outputs is not None or attributes is not None or samples.labels is not None
        if samples.weights is not None and self.part:
            check_total(float(counts.sum()), where)
        elif samples.weights is not None:
            check_entries(counts, where, lambda *_: where)
        # How many groups there are, and what weights are worth, is known of all parts together.
        beside: Facts = {GROUPS_FACT: 0} if samples.groups is not None else {}
        if not self.part:
            samples, beside = designed(samples)
            counts = class_counts(samples, len(labels)) if WEIGHT_FACT in beside else counts
        return MatrixInput(
            kind=self.kind,
            labels=labels,
            positive=positive,
            content=Content.counts if samples.weights is None else Content.weights,
            counts=counts,
            facts={**facts, **beside},
            samples=samples if known else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictions(ClassifiedInput):
    """Actual and predicted labels, sample by sample."""

    kind: ClassVar[str] = "predictions"
    beyond: ClassVar[Beyond | None] = Beyond.COUNTED

    y_pred: Column = column(LABELS, "The predicted classes.", File("y_pred", needed=True), required=True)

    def _read(self, read: Mapping[str, Any], pointer: str) -> MatrixInput:
        declared = None if self.labels is None else check_labels(self.labels, f"{pointer}/labels")
        coded = encode({name: read[name] for name in ("y_true", "y_pred")}, declared, pointer)
        if declared is None:
            check_found_labels(coded, pointer)
        positive = positive_index(self.positive, coded.labels, f"{pointer}/positive")
        truth, predicted = coded.codes["y_true"], coded.codes["y_pred"]
        rows = truth.size if self.tally is None else int(self.tally.times.sum())
        facts = {"rows": rows} if "sample_weight" in read else {}
        return self._made(read, coded.labels, positive, truth, predicted, facts, pointer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probabilities(ClassifiedInput):
    """Actual classes and the probabilities of all classes, sample by sample."""

    kind: ClassVar[str] = "probabilities"
    beyond: ClassVar[Beyond | None] = Beyond.STREAMED_WITH_LABELS

    probabilities: Rows = column(
        SHARES,
        "n x K, columns in the order of `labels`; every row sums to 1.",
        File("probabilities", needed=True, spread=Spread.CLASSES),
        required=True,
    )
    threshold: Share | None = option(
        "K = 2: the positive class is decided for from this probability on. Without it the most probable class is, the "
        "first of equals."
    )
    sum_tolerance: Annotated[float, Limits({"ge": 0, "le": MOST_TOLERANCE})] = option(
        "How far the sum of a row may lie from 1.", SUM_TOLERANCE
    )
    renormalize: bool = option(
        "Divide rows that do not sum to 1 by their sum. Rounding to 3 to 6 decimals or to float16 needs no word.",
        default=False,
    )

    def _read(self, read: Mapping[str, Any], pointer: str) -> MatrixInput:
        where = f"{pointer}/probabilities"
        _check_of_classes(read["probabilities"], where)
        matrix, changed = shares_of_one(read["probabilities"], where, self.sum_tolerance, renormalize=self.renormalize)
        truth, labels = self._truth(read["y_true"], matrix.shape[1], pointer)
        if self.threshold is not None and len(labels) != 2:
            raise InvalidInput.at(
                f"{pointer}/threshold",
                "threshold_needs_two_classes",
                f"expected no threshold with {len(labels)} classes: it is a choice for two classes only",
            )
        positive = positive_index(self.positive, labels, f"{pointer}/positive")
        facts: dict[str, Any] = {"rows": truth.size, "rule": DecidedBy.ARGMAX.value}
        if self.threshold is None:
            predicted, facts["ties"] = decide(matrix)
        else:
            predicted = decide_by_threshold(matrix[:, positive or 0], self.threshold, positive or 0)
            facts |= {"rule": DecidedBy.THRESHOLD.value, "threshold": self.threshold}
        if self.renormalize or changed:
            facts["renormalized"] = changed
            if self.sum_tolerance != SUM_TOLERANCE:
                facts["sum_tolerance"] = self.sum_tolerance
        return self._made(read, labels, positive, truth, predicted, facts, pointer, matrix)

    @classmethod
    def options_of(cls, facts: Facts) -> dict[str, Any]:
        """Options of all kinds, and how rows were made to sum to 1."""
        renormalized = "renormalized" in facts
        # Where no row is divided by its sum it says nothing but that all of them passed.
        usual = SUM_TOLERANCE if renormalized else MOST_TOLERANCE
        choices = {"renormalize": renormalized, "sum_tolerance": facts.get("sum_tolerance", usual)}
        return super(Probabilities, cls).options_of({**facts, **choices})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores(ClassifiedInput):
    """Actual classes and scores that are no probabilities: one per sample for two classes, or one per class."""

    kind: ClassVar[str] = "scores"
    beyond: ClassVar[Beyond | None] = Beyond.STREAMED_WITH_LABELS

    scores: Rows = column(
        SCORES,
        "Any real numbers: n of them, higher for the positive class, or n x K in the order of `labels`, each column "
        "higher for its class. Of these the highest decides, the first of equals. Metrics of the order have a value; "
        "what needs probabilities has none.",
        File("score", needed=True, spread=Spread.CLASSES),
        required=True,
    )
    threshold: float | None = option(
        "The positive class is decided for from this score on; when left out 0.5 if all scores lie between 0 and 1, "
        "and else 0. Not with a score for every class."
    )

    def _read(self, read: Mapping[str, Any], pointer: str) -> MatrixInput:
        values = read["scores"]
        facts: dict[str, Any] = {"rows": len(values), "rule": DecidedBy.ARGMAX.value}
        if values.ndim > 1:
            if self.threshold is not None:
                raise InvalidInput.at(
                    f"{pointer}/threshold",
                    "threshold_needs_one_score",
                    "expected no threshold with a score for every class, of which the highest decides",
                )
            _check_of_classes(values, f"{pointer}/scores")
            truth, labels = self._truth(read["y_true"], values.shape[1], pointer)
            positive = positive_index(self.positive, labels, f"{pointer}/positive")
            predicted, facts["ties"] = decide(values)
            return self._made(read, labels, positive, truth, predicted, facts, pointer, values)
        truth, labels = self._truth(read["y_true"], 2, pointer)
        positive = positive_index(self.positive, labels, f"{pointer}/positive")
        threshold = self.threshold
        if threshold is None:
            threshold = assumed_threshold(float(values.min()), float(values.max()))
        predicted = decide_by_threshold(values, threshold, positive or 0)
        facts |= {"rule": DecidedBy.THRESHOLD.value, "threshold": threshold}
        if self.threshold is None:
            facts["threshold_assumed"] = True
        return self._made(read, labels, positive, truth, predicted, facts, pointer, values)


def shares_of_one(
    matrix: NDArray[np.float64], pointer: str, tolerance: float = SUM_TOLERANCE, *, renormalize: bool | None = None
) -> tuple[NDArray[np.float64], int]:
    """Probabilities in [0, 1] that sum to 1, and how many rows had to be divided by their sum for it.

    With ``renormalize`` all are; None: nobody can ask for that. Raises InvalidInput: a sum is further from 1 than
    rounding makes it, or a probability is out of range.
    """
    highest = np.inf if renormalize else 1.0
    low, high = float(matrix.min()), float(matrix.max())
    if low < -tolerance or high > highest + tolerance:
        row, place = _first((matrix < -tolerance) | (matrix > highest + tolerance))
        expected = "0 or more" if renormalize else "a probability between 0 and 1"
        in_percent = low >= 0.0 and abs(float(matrix[row].sum()) - _PERCENT) <= 1.0
        hint = "; if these are percent, divide them by 100" if in_percent else ""
        raise InvalidInput.at(
            f"{pointer}/{row}/{place}", "out_of_range", f"expected {expected}, got {matrix[row, place]:g}{hint}"
        )
    if low < 0.0 or high > highest:
        # Within the tolerance: rounding of whoever computed them.
        matrix = np.clip(matrix, 0.0, highest)
    with np.errstate(over="ignore"):
        sums = matrix @ np.ones(matrix.shape[1])
    if sums.min() <= 0.0:
        row = int(np.argmin(sums))
        raise InvalidInput.at(
            f"{pointer}/{row}", "all_zero_row", "expected probabilities that sum to 1, got nothing but zeros"
        )
    far = np.abs(sums - 1.0)
    wrong = far > tolerance
    count = int(np.count_nonzero(wrong))
    if not count:
        return matrix, 0
    refused = wrong.copy()
    if renormalize:
        refused = ~np.isfinite(sums)
    elif tolerance == SUM_TOLERANCE:
        refused[wrong] = far[wrong] > _rounding_of_sums(matrix[wrong])
    row = int(np.argmax(refused))
    if refused[row]:
        advice = "" if renormalize is None else "; `renormalize` divides every row by its sum"
        detail = f"expected probabilities that sum to 1 within {tolerance:g}, got {sums[row]:.9g}{advice}"
        raise InvalidInput.at(f"{pointer}/{row}", "row_sum", detail)
    return matrix / np.where(wrong, sums, 1.0)[:, None], count


def _rounding_of_sums(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distance from 1 (n) that the sums of rows (n, K) may have by the precision of their numbers: half a
    unit of the last decimal for each, or of a 16-bit number; 0 where they are more precise than either.
    """
    most = np.zeros(len(matrix))
    for decimals in _DECIMALS:
        scaled = matrix * 10.0**decimals
        # Numbers may have been 32-bit ones on their way.
        written = (np.abs(scaled - np.rint(scaled)) <= _SINGLE * 10.0**decimals).all(axis=1)
        most[written] = 0.5 * matrix.shape[1] * 10.0**-decimals
    halves = (matrix == matrix.astype(np.float16)).all(axis=1)
    most[halves] = np.maximum(most[halves], _HALF * matrix[halves].sum(axis=1))
    return np.minimum(most, _MOST_ROUNDING) * (1.0 + _SINGLE)


def _check_of_classes(matrix: NDArray[np.float64], pointer: str) -> None:
    """Refuse numbers (n, K) that are not finite, or not of two classes or more."""
    check_class_count(matrix.shape[1], pointer)
    check_finite(matrix, pointer)


def _first(bad: NDArray[np.bool_]) -> tuple[int, int]:
    row, place = np.unravel_index(int(np.argmax(bad)), bad.shape)
    return int(row), int(place)


def decide(scores: NDArray[np.float64]) -> tuple[NDArray[np.int64], int]:
    """Codes (n) of the most probable classes, or those of the highest scores, the first of equals, and how many rows
    had equals.
    """
    at_top = np.count_nonzero(scores == scores.max(axis=1, keepdims=True), axis=1)
    return scores.argmax(axis=1).astype(np.int64, copy=False), int(np.count_nonzero(at_top > 1))


def decide_by_threshold(scores: NDArray[np.float64], threshold: float, positive: int) -> NDArray[np.int64]:
    """Codes (n): the positive class from the threshold on, the other one below."""
    return np.where(scores >= threshold, positive, 1 - positive).astype(np.int64)


def assumed_threshold(lowest: float, highest: float) -> float:
    """The threshold of scores in a range where nobody gives one: 0.5 for scores in [0, 1], else 0."""
    return 0.5 if lowest >= 0.0 and highest <= 1.0 else 0.0
