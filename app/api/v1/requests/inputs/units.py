"""Inputs that are more than a matrix of classes, as JSON: labels, rankings, clusterings, regions and answers."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import Field

from app.api.bodies.parsing import Wire
from app.api.v1.requests.fields import LabelField
from app.api.v1.requests.inputs.columns import (
    FEW,
    GROUPS,
    MOST_LABELS,
    Bags,
    Entry,
    Flags,
    GroupIds,
    LabelColumn,
    LabelRows,
    Labels,
    NumberColumn,
    Points,
    Rows,
    SampleIds,
    WeightColumn,
)
from app.domain.errors import InvalidInput
from app.domain.inputs.labels import MOST_CLASSES
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.units import clustering, overlaps
from app.domain.inputs.units.multilabel import Beside, from_label_probabilities, from_label_sets
from app.domain.inputs.units.rankings import CUTOFFS, from_ranking

_ROWS = "a list of labels for every sample, or a 0 or 1 for each of the `labels`"


class MultilabelInput(Wire):
    """Samples with any number of labels: those that they have, and those predicted or the probability of each."""

    kind: Literal["multilabel"]
    y_true: LabelRows = Field(description=f"The actual labels: {_ROWS}.")
    y_pred: LabelRows | None = Field(None, description=f"The predicted labels: {_ROWS}.")
    probabilities: Rows | None = Field(None, description="n x L in place of `y_pred`, in the order of `labels`.")
    thresholds: Annotated[float, Field(ge=0, le=1)] | list[Annotated[float, Field(ge=0, le=1)]] | None = Field(
        None,
        description="A label is predicted from this probability on: one for all or one for each; 0.5 by default.",
    )
    labels: Labels | None = Field(
        None, description='The labels; those that occur, sorted, or "0" to "L-1" for columns, when left out.'
    )
    sample_ids: SampleIds | None = Field(None, description="One id per sample; runs are paired by them.")
    sample_weight: WeightColumn | None = Field(None, description="One weight per sample, 0 or more.")
    group_ids: GroupIds | None = Field(None, description=GROUPS)

    def to_domain(self, pointer: str, *, part: bool = False) -> MatrixInput:
        """The canonical form; of a ``part`` of the samples, it may be that all of them weigh nothing."""
        beside = Beside(self.labels, self.sample_ids, self.sample_weight, self.group_ids, part)
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


Names = Annotated[list[LabelField], Field(max_length=MOST_LABELS, json_schema_extra={**FEW, "uniqueItems": True})]
ContingencyRow = Annotated[list[Entry], Field(max_length=MOST_CLASSES, fail_fast=True, json_schema_extra=FEW)]


class ClusteringInput(Wire):
    """A clustering: a table of classes by clusters, or the cluster of every sample with its class or its features."""

    kind: Literal["clustering"]
    contingency: list[ContingencyRow] | None = Field(
        None,
        max_length=MOST_CLASSES,
        description="Numbers of samples, classes x clusters, of any shape.",
        json_schema_extra=FEW,
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
    group_ids: GroupIds | None = Field(None, description=GROUPS)

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


class SetsInput(Wire):
    """Regions or answers: for each item what is there and what was predicted, as sizes or as lists."""

    kind: Literal["sets"]
    n_true: WeightColumn | None = Field(
        None, description="How much is there in each item: pixels, tokens, ids, or an area."
    )
    n_predicted: WeightColumn | None = Field(None, description="How much was predicted for it.")
    n_common: WeightColumn | None = Field(None, description="How much of it belongs to both.")
    y_true: Bags | None = Field(
        None,
        description="In place of these sizes: the tokens or ids of each item, each as often as it occurs. Their order "
        "is not looked at.",
    )
    y_pred: Bags | None = Field(None, description="Those predicted for it.")
    exact: Flags | None = Field(
        None,
        description="Whether each item was predicted exactly, where sizes do not say it, as with the order of tokens; "
        "when left out, true for items whose three sizes are equal.",
    )
    item_classes: LabelColumn | None = Field(
        None, description="The class of each item, for values of every class and means over classes."
    )
    sample_ids: SampleIds | None = Field(None, description="One id per item; runs are paired by them.")
    group_ids: GroupIds | None = Field(None, description=GROUPS)

    def to_domain(self, pointer: str) -> MatrixInput:
        """The canonical form."""
        beside = overlaps.Beside(self.exact, self.item_classes, self.sample_ids, self.group_ids)
        sizes = {"n_true": self.n_true, "n_predicted": self.n_predicted, "n_common": self.n_common}
        lists = {"y_true": self.y_true, "y_pred": self.y_pred}
        has_sizes = any(column is not None for column in sizes.values())
        other = next((name for name, column in lists.items() if has_sizes and column is not None), None)
        if other is not None:
            raise InvalidInput.at(f"{pointer}/{other}", "one_of", "expected either sizes or lists, got both")
        given: dict[str, Any] = sizes if has_sizes else lists
        absent = next((name for name, column in given.items() if column is None), None)
        if absent is not None:
            raise InvalidInput.at(
                f"{pointer}/{absent}",
                "missing",
                "expected n_true, n_predicted and n_common, or y_true and y_pred, for all items",
            )
        read: Callable[..., MatrixInput] = overlaps.from_sizes if has_sizes else overlaps.from_bags
        return read(*given.values(), beside, pointer=pointer)
