"""The input of an evaluation as JSON: a union on ``kind``, and its way to the domain."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, PlainValidator, WithJsonSchema
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

from app.api.bodies.parsing import Wire
from app.api.v1.requests.fields import LABEL_TEXT, LabelField
from app.domain.errors import InvalidInput
from app.domain.inputs import clustering
from app.domain.inputs.content import IGNORED_FACT
from app.domain.inputs.decisions import from_matrix_of
from app.domain.inputs.folds import pooled
from app.domain.inputs.ignored import without_ignored
from app.domain.inputs.labels import CodedTexts
from app.domain.inputs.matrices import (
    LARGEST_TOTAL,
    MOST_CLASSES,
    MOST_SAMPLES,
    MatrixInput,
    from_binary_counts,
    from_predictions,
)
from app.domain.inputs.multilabel import Beside, from_label_probabilities, from_label_sets
from app.domain.inputs.names import LONGEST_NAME
from app.domain.inputs.probabilities import SUM_TOLERANCE, Accompanying, from_probabilities, from_scores
from app.domain.inputs.rankings import CUTOFFS, from_ranking

_GROUPS = (
    "One per sample: the patient, session or other group that it is one of, where samples are not independent. Every "
    "interval then counts groups, not samples."
)


def _column(value: Any) -> Any:
    if not isinstance(value, list | np.ndarray | CodedTexts):
        raise PydanticCustomError("list_type", "expected an array")
    if len(value) > MOST_SAMPLES:
        raise PydanticCustomError("too_many_samples", f"expected at most {MOST_SAMPLES} samples")
    return value


def _array(**facts: Any) -> WithJsonSchema:
    return WithJsonSchema({"type": "array", "minItems": 1, "maxItems": MOST_SAMPLES, **facts})


_WHOLE = {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}
# Entries of one type: integers sort by value, texts by alphabet.
_LABELS = {"anyOf": [{"items": one} for one in (LABEL_TEXT, _WHOLE, {"type": "boolean"})]}
_IDS = {
    "anyOf": [{"items": one} for one in ({"type": "string", "maxLength": LONGEST_NAME}, _WHOLE, {"type": "boolean"})]
}
# Checked as a whole in the domain: a validator per element would take seconds for ten million of them.
LabelColumn = Annotated[Any, PlainValidator(_column), _array(**_LABELS)]
SampleIds = Annotated[Any, PlainValidator(_column), _array(**_IDS, uniqueItems=True)]
GroupIds = Annotated[Any, PlainValidator(_column), _array(**_IDS)]
NumberColumn = Annotated[Any, PlainValidator(_column), _array(items={"type": "number"})]
WeightColumn = Annotated[Any, PlainValidator(_column), _array(items={"type": "number", "minimum": 0})]
Rows = Annotated[
    Any,
    PlainValidator(_column),
    _array(items={"type": "array", "items": {"type": "number", "minimum": 0}, "minItems": 2, "maxItems": MOST_CLASSES}),
]
ScoreColumn = Annotated[
    Any,
    PlainValidator(_column),
    _array(
        anyOf=[
            {"items": {"type": "number"}},
            {"items": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": MOST_CLASSES}},
        ]
    ),
]
_ROW_OF_LABELS = {"type": "array", "maxItems": MOST_CLASSES, "uniqueItems": True}
_ROW_OF_FLAGS = {"type": "array", "minItems": 2, "maxItems": MOST_CLASSES, "items": {"enum": [0, 1]}}
LabelRows = Annotated[
    Any,
    PlainValidator(_column),
    _array(
        anyOf=[
            {"items": {**_ROW_OF_LABELS, "items": LABEL_TEXT}},
            {"items": {**_ROW_OF_LABELS, "items": _WHOLE}},
            {"items": _ROW_OF_FLAGS},
        ]
    ),
]
# What the domain says of them, in its own words, where it does not hold.
_CLASSES: JsonDict = {"minItems": 2, "maxItems": MOST_CLASSES}
_FEW: JsonDict = {"minItems": 1, "maxItems": MOST_CLASSES}
_ENTRY: JsonDict = {"type": "number", "minimum": 0, "maximum": LARGEST_TOTAL}
# Far beyond any matrix: with fewer the domain says what is wrong with their number.
_MOST_LABELS = 10 * MOST_CLASSES
Labels = Annotated[
    list[LabelField],
    Field(
        max_length=_MOST_LABELS,
        description="The classes in the order of the matrix, all different.",
        json_schema_extra={**_CLASSES, "uniqueItems": True},
    ),
]
Decisions = Annotated[
    list[LabelField], Field(max_length=_MOST_LABELS, json_schema_extra={**_CLASSES, "uniqueItems": True})
]
Ignored = Annotated[
    list[LabelField],
    Field(
        max_length=MOST_CLASSES,
        description="Samples whose actual class is one of these are left out, and counted in `input.ignored`. Such a "
        "label is no class, unless a sample that is left is predicted as it or `labels` of samples name it: then it is "
        "a class without actual samples.",
    ),
]
Entry = Annotated[float, Field(json_schema_extra=_ENTRY)]
# Of a row the first fault is said: a large matrix of nothing else would have a million.
MatrixRow = Annotated[list[Entry], Field(max_length=MOST_CLASSES, fail_fast=True, json_schema_extra=_CLASSES)]


class ConfusionMatrixInput(Wire):
    """A confusion matrix of counts, weights or rates."""

    kind: Literal["confusion_matrix"]
    matrix: list[MatrixRow] = Field(
        max_length=MOST_CLASSES, description="K x K, non-negative; K x M with `decisions`.", json_schema_extra=_CLASSES
    )
    labels: Labels | None = Field(None, description='The K classes; "0" to "K-1" when left out.')
    orientation: Literal["actual_rows", "predicted_rows"] = Field(
        "actual_rows", description="What the rows are. Answers always have the actual classes in rows."
    )
    positive: LabelField | None = Field(
        None, description="The positive class, K = 2 only; the second label by default."
    )
    ignore: Ignored = Field(default_factory=list)
    normalized: bool = Field(default=False, description="The entries are rates, not counts: no intervals can be given.")
    decisions: Decisions | None = Field(
        None,
        description="What was decided, a name for each column, where these are not the classes, such as to treat, to "
        "test or to wait: the matrix may have any shape then. It has rates, and costs by `options.costs`.",
    )

    def to_domain(self, pointer: str) -> MatrixInput:
        """The canonical form."""
        return from_matrix_of(
            self.matrix,
            labels=self.labels,
            decisions=self.decisions,
            positive=self.positive,
            predicted_rows=self.orientation == "predicted_rows",
            normalized=self.normalized,
            ignore=self.ignore,
            pointer=pointer,
        )


class BinaryCountsInput(Wire):
    """The four counts of two classes."""

    kind: Literal["binary_counts"]
    tp: Entry = Field(description="True positives.")
    fn: Entry = Field(description="False negatives.")
    fp: Entry = Field(description="False positives.")
    tn: Entry = Field(description="True negatives.")
    negative: LabelField = Field("0", description="Name of the negative class.")
    positive: LabelField = Field("1", description="Name of the positive class.")

    def to_domain(self, pointer: str) -> MatrixInput:
        """The canonical form."""
        return from_binary_counts(
            tp=self.tp,
            fn=self.fn,
            fp=self.fp,
            tn=self.tn,
            negative=self.negative,
            positive=self.positive,
            pointer=pointer,
        )


class _SamplesInput(Wire):
    """What comes sample by sample, whatever was said of each."""

    y_true: LabelColumn = Field(description="The actual classes.")
    labels: Labels | None = Field(None, description="The classes; those that occur, sorted, when left out.")
    positive: LabelField | None = Field(
        None, description="The positive class, K = 2 only; the second label by default."
    )
    sample_ids: SampleIds | None = Field(None, description="One id per sample; runs are paired by them.")
    sample_weight: WeightColumn | None = Field(None, description="One weight per sample, 0 or more.")
    group_ids: GroupIds | None = Field(None, description=_GROUPS)
    ignore: Ignored = Field(default_factory=list)

    def _of_samples(
        self, columns: Mapping[str, Any], make: Callable[[Mapping[str, Any]], MatrixInput], pointer: str
    ) -> MatrixInput:
        """What is made of the columns, these and those that every such input has, without what is ignored."""
        columns = {
            **columns,
            "y_true": self.y_true,
            "sample_ids": self.sample_ids,
            "sample_weight": self.sample_weight,
            "group_ids": self.group_ids,
        }
        if not self.ignore:
            return make(columns)
        made, ignored = without_ignored(self.ignore, columns, make, pointer)
        return replace(made, facts={**made.facts, IGNORED_FACT: ignored})

    def _accompanying(self, columns: Mapping[str, Any], threshold: float | None) -> Accompanying:
        return Accompanying(
            labels=self.labels,
            positive=self.positive,
            sample_ids=columns["sample_ids"],
            sample_weight=columns["sample_weight"],
            group_ids=columns["group_ids"],
            threshold=threshold,
        )


class PredictionsInput(_SamplesInput):
    """Actual and predicted labels, sample by sample."""

    kind: Literal["predictions"]
    y_pred: LabelColumn = Field(description="The predicted classes.")

    def to_domain(self, pointer: str) -> MatrixInput:
        """The canonical form."""
        return self._of_samples(
            {"y_pred": self.y_pred},
            lambda columns: from_predictions(**columns, labels=self.labels, positive=self.positive, pointer=pointer),
            pointer,
        )


class ProbabilitiesInput(_SamplesInput):
    """Actual classes and the probabilities of all classes, sample by sample."""

    kind: Literal["probabilities"]
    probabilities: Rows = Field(description="n x K, columns in the order of `labels`; every row sums to 1.")
    threshold: float | None = Field(
        None,
        ge=0,
        le=1,
        description="K = 2: the positive class is decided for from this probability on. Without it the most probable "
        "class is, the first of equals.",
    )
    sum_tolerance: float = Field(SUM_TOLERANCE, ge=0, le=0.1, description="How far the sum of a row may lie from 1.")
    renormalize: bool = Field(default=False, description="Divide rows that do not sum to 1 by their sum.")

    def to_domain(self, pointer: str) -> MatrixInput:
        """The canonical form."""
        return self._of_samples(
            {"probabilities": self.probabilities},
            lambda columns: from_probabilities(
                columns["y_true"],
                columns["probabilities"],
                self._accompanying(columns, self.threshold),
                sum_tolerance=self.sum_tolerance,
                renormalize=self.renormalize,
                pointer=pointer,
            ),
            pointer,
        )


class ScoresInput(_SamplesInput):
    """Actual classes and scores that are no probabilities: one per sample for two classes, or one per class."""

    kind: Literal["scores"]
    scores: ScoreColumn = Field(
        description="Any real numbers: n of them, higher for the positive class, or n x K in the order of `labels`, "
        "each column higher for its class. Of these the highest decides, the first of equals. Metrics of the order "
        "have a value; what needs probabilities has none."
    )
    threshold: float | None = Field(
        None,
        description="The positive class is decided for from this score on; when left out 0.5 if all scores lie between "
        "0 and 1, and else 0. Not with a score for every class.",
    )

    def to_domain(self, pointer: str) -> MatrixInput:
        """The canonical form."""
        return self._of_samples(
            {"scores": self.scores},
            lambda columns: from_scores(
                columns["y_true"], columns["scores"], self._accompanying(columns, self.threshold), pointer=pointer
            ),
            pointer,
        )


SingleInput = Annotated[
    ConfusionMatrixInput | BinaryCountsInput | PredictionsInput | ProbabilitiesInput | ScoresInput,
    Field(discriminator="kind"),
]


class FoldsInput(Wire):
    """Cross-validation folds: inputs of one kind with the same labels."""

    kind: Literal["folds"]
    folds: list[SingleInput] = Field(min_length=1, max_length=1000, description="The folds, each an input.")
    repeats: int | None = Field(
        None,
        ge=1,
        le=500,
        description="How often all samples were cross-validated; the folds of one repetition follow each other. Seen "
        "from `sample_ids` when left out, where these are given.",
    )
    repeat_of_fold: list[Annotated[int, Field(ge=0, le=1000)]] | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description="In place of `repeats`: the number of its repetition for every fold, in any order.",
    )

    def to_domain(self, pointer: str) -> MatrixInput:
        """The canonical form: the sum of the folds, and each of them."""
        folds = (fold.to_domain(f"{pointer}/folds/{index}") for index, fold in enumerate(self.folds))
        return pooled(folds, pointer, self.repeats, self.repeat_of_fold)


_ROWS = "a list of labels for every sample, or a 0 or 1 for each of the `labels`"


class MultilabelInput(Wire):
    """Samples with any number of labels: those that they have, and those predicted or the probability of each."""

    kind: Literal["multilabel"]
    y_true: LabelRows = Field(description=f"The actual labels: {_ROWS}.")
    y_pred: LabelRows | None = Field(None, description=f"The predicted labels: {_ROWS}.")
    probabilities: Rows | None = Field(None, description="n x L in place of `y_pred`, in the order of `labels`.")
    thresholds: Annotated[float, Field(ge=0, le=1)] | list[Annotated[float, Field(ge=0, le=1)]] | None = Field(
        None,
        description="From which probability on a label is predicted: one for all or one for each; 0.5 by default.",
    )
    labels: Labels | None = Field(
        None, description='The labels; those that occur, sorted, or "0" to "L-1" for columns, when left out.'
    )
    sample_ids: SampleIds | None = Field(None, description="One id per sample; runs are paired by them.")
    sample_weight: WeightColumn | None = Field(None, description="One weight per sample, 0 or more.")
    group_ids: GroupIds | None = Field(None, description=_GROUPS)

    def to_domain(self, pointer: str) -> MatrixInput:
        """The canonical form."""
        beside = Beside(self.labels, self.sample_ids, self.sample_weight, self.group_ids)
        if self.probabilities is not None:
            if self.y_pred is not None:
                raise InvalidInput.at(
                    f"{pointer}/y_pred", "one_of", "expected either y_pred or probabilities, got both"
                )
            return from_label_probabilities(self.y_true, self.probabilities, self.thresholds, beside, pointer=pointer)
        if self.y_pred is None:
            raise InvalidInput.at(f"{pointer}/y_pred", "missing", "expected y_pred or probabilities, got neither")
        if self.thresholds is not None:
            raise InvalidInput.at(f"{pointer}/thresholds", "thresholds_need_probabilities", "expected none with y_pred")
        return from_label_sets(self.y_true, self.y_pred, beside, pointer=pointer)


class RankingInput(Wire):
    """Items that were ranked for queries, one entry per item, in any order."""

    kind: Literal["ranking"]
    query_ids: GroupIds = Field(description="The query of each item; runs are paired by them.")
    relevance: WeightColumn = Field(
        description="How relevant each item is, from 0 to 1,000; what is above 0 counts as relevant. Relevant items "
        "that were not retrieved belong here too, with one score below all others: they count as tied at the end."
    )
    scores: NumberColumn | None = Field(
        None, description="Any real numbers, higher for what comes first; equal scores count as all orders of them."
    )
    ranks: WeightColumn | None = Field(None, description="In place of `scores`, 1 for what comes first.")
    cutoffs: list[Annotated[int, Field(ge=1, le=10_000_000)]] | None = Field(
        None, min_length=1, max_length=20, description=f"The k of the metrics at k; {', '.join(map(str, CUTOFFS))}."
    )

    def to_domain(self, pointer: str) -> MatrixInput:
        """The canonical form."""
        return from_ranking(self.query_ids, self.relevance, self.scores, self.ranks, self.cutoffs, pointer=pointer)


Names = Annotated[list[LabelField], Field(max_length=_MOST_LABELS, json_schema_extra={**_FEW, "uniqueItems": True})]
ContingencyRow = Annotated[list[Entry], Field(max_length=MOST_CLASSES, fail_fast=True, json_schema_extra=_FEW)]
Points = Annotated[
    Any,
    PlainValidator(_column),
    _array(items={"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": MOST_CLASSES}),
]


class ClusteringInput(Wire):
    """A clustering: a table of classes by clusters, or the cluster of every sample with its class or its features."""

    kind: Literal["clustering"]
    contingency: list[ContingencyRow] | None = Field(
        None,
        max_length=MOST_CLASSES,
        description="Numbers of samples, classes x clusters, of any shape.",
        json_schema_extra=_FEW,
    )
    classes: Names | None = Field(None, description='Names of the rows; "0", "1", ... when left out.')
    clusters: Names | None = Field(None, description='Names of the columns; "0", "1", ... when left out.')
    y_true: LabelColumn | None = Field(None, description="The class of every sample, where it is known.")
    y_pred: LabelColumn | None = Field(None, description="The cluster of every sample.")
    features: Points | None = Field(
        None,
        description="n x d: where every sample lies, for measures of the shape of the clusters. In files the columns "
        "`feature.*`.",
    )
    sample_ids: SampleIds | None = Field(None, description="One id per sample; runs are paired by them.")
    group_ids: GroupIds | None = Field(None, description=_GROUPS)

    def to_domain(self, pointer: str) -> MatrixInput:
        """The canonical form."""
        columns = {"y_true": self.y_true, "y_pred": self.y_pred, "features": self.features}
        columns |= {"sample_ids": self.sample_ids, "group_ids": self.group_ids}
        names = {"classes": self.classes, "clusters": self.clusters}
        given = columns if self.contingency is not None else names
        both = next((name for name, value in given.items() if value is not None), None)
        if both is not None:
            raise InvalidInput.at(
                f"{pointer}/{both}",
                "one_of",
                "expected either contingency, classes and clusters or columns of samples, got something of both"
                if self.contingency is not None
                else "expected names of classes and clusters with a contingency only; samples name theirs themselves",
            )
        if self.contingency is not None:
            return clustering.from_contingency(self.contingency, self.classes, self.clusters, pointer=pointer)
        if self.y_pred is None:
            raise InvalidInput.at(f"{pointer}/y_pred", "missing", "expected contingency or y_pred, got neither")
        beside = clustering.Beside(self.features, self.sample_ids, self.group_ids)
        return clustering.from_clusters(self.y_true, self.y_pred, beside, pointer=pointer)


AnyInput = Annotated[
    ConfusionMatrixInput
    | BinaryCountsInput
    | PredictionsInput
    | ProbabilitiesInput
    | ScoresInput
    | FoldsInput
    | MultilabelInput
    | RankingInput
    | ClusteringInput,
    Field(discriminator="kind"),
]
