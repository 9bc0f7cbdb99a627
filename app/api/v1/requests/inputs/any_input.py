"""The input of an evaluation as JSON: a union on ``kind``, and its way to the domain."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field

from app.api.bodies.parsing import Wire
from app.api.v1.requests.fields import LabelField
from app.api.v1.requests.inputs.columns import (
    CLASSES,
    GROUPS,
    MOST_LABELS,
    Entry,
    GroupIds,
    LabelColumn,
    Labels,
    Rows,
    SampleIds,
    ScoreColumn,
    WeightColumn,
)
from app.api.v1.requests.inputs.units import ClusteringInput, MultilabelInput, RankingInput, SetsInput
from app.domain.inputs.content import IGNORED_FACT
from app.domain.inputs.decisions import from_matrix_of
from app.domain.inputs.folds import pooled
from app.domain.inputs.ignored import TALLY, without_ignored
from app.domain.inputs.labels import MOST_CLASSES
from app.domain.inputs.matrices import MatrixInput, from_binary_counts, from_predictions
from app.domain.inputs.probabilities import SUM_TOLERANCE, Accompanying, from_probabilities, from_scores
from app.domain.inputs.samples import Tally

Decisions = Annotated[
    list[LabelField], Field(max_length=MOST_LABELS, json_schema_extra={**CLASSES, "uniqueItems": True})
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
# Of a row the first fault is said: a large matrix of nothing else would have a million.
MatrixRow = Annotated[list[Entry], Field(max_length=MOST_CLASSES, fail_fast=True, json_schema_extra=CLASSES)]


class ConfusionMatrixInput(Wire):
    """A confusion matrix of counts, weights or rates."""

    kind: Literal["confusion_matrix"]
    matrix: list[MatrixRow] = Field(
        max_length=MOST_CLASSES, description="K x K, non-negative; K x M with `decisions`.", json_schema_extra=CLASSES
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
    group_ids: GroupIds | None = Field(None, description=GROUPS)
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

    def _accompanying(self, columns: Mapping[str, Any], threshold: float | None, *, part: bool) -> Accompanying:
        return Accompanying(
            labels=self.labels,
            positive=self.positive,
            sample_ids=columns["sample_ids"],
            sample_weight=columns["sample_weight"],
            group_ids=columns["group_ids"],
            threshold=threshold,
            part=part,
        )


class PredictionsInput(_SamplesInput):
    """Actual and predicted labels, sample by sample."""

    kind: Literal["predictions"]
    y_pred: LabelColumn = Field(description="The predicted classes.")

    def to_domain(self, pointer: str, tally: Tally | None = None) -> MatrixInput:
        """The canonical form; with a ``tally`` every entry stands for many samples."""
        return self._of_samples(
            {"y_pred": self.y_pred, TALLY: tally},
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

    def to_domain(self, pointer: str, *, part: bool = False) -> MatrixInput:
        """The canonical form; of a ``part`` of the samples, it may be that all of them weigh nothing."""
        return self._of_samples(
            {"probabilities": self.probabilities},
            lambda columns: from_probabilities(
                columns["y_true"],
                columns["probabilities"],
                self._accompanying(columns, self.threshold, part=part),
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

    def to_domain(self, pointer: str, *, part: bool = False) -> MatrixInput:
        """The canonical form; of a ``part`` of the samples, it may be that all of them weigh nothing."""
        return self._of_samples(
            {"scores": self.scores},
            lambda columns: from_scores(
                columns["y_true"],
                columns["scores"],
                self._accompanying(columns, self.threshold, part=part),
                pointer=pointer,
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


AnyInput = Annotated[
    ConfusionMatrixInput
    | BinaryCountsInput
    | PredictionsInput
    | ProbabilitiesInput
    | ScoresInput
    | FoldsInput
    | MultilabelInput
    | RankingInput
    | ClusteringInput
    | SetsInput,
    Field(discriminator="kind"),
]
