"""The meaning of a matrix's entries, and the facts of an input beside its numbers."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Literal, NotRequired, TypedDict

# Doubles hold every whole number up to here; beyond it sums of counts would be rounded in silence.
LARGEST_TOTAL: Final = 2.0**53


class Content(StrEnum):
    """The meaning of a matrix's entries: numbers of samples, sums of weights, or rates."""

    counts = "counts"
    weights = "weights"
    rates = "rates"


class LabelFacts(TypedDict):
    """Files whose columns were joined by an id to data that was named; members as of that data.

    Attributes:
        on: The column of ids of the samples, and that of these files.
        unmatched: Rows of these files whose id no sample has.
    """

    uri: str
    format: str
    columns: NotRequired[dict[str, str | list[str]]]
    filter: NotRequired[str]
    on: list[str]
    rows: int
    unmatched: int
    files: int
    bytes: int
    version: NotRequired[str]
    digest: str


class DataFacts(TypedDict):
    """Data that was named, and not sent.

    Attributes:
        uri: As the request named it; so are `format`, `columns` and `filter`.
        rows: How many rows were read, after the filter.
        files: How many files there were.
        bytes: Size of all files together.
        sample_ids_unchecked: True where there are more rows than memory holds, so that the column `sample_id` was not
            read and may name a sample twice.
        version: Of a Delta table, or the snapshot of an Iceberg table, as digits.
        digest: SHA-256 of the paths, sizes and versions (moments of the last change, of HTTP the `ETag`) of the files;
            of a table also of its version.
        labels: Other files whose columns were joined.
    """

    uri: str
    format: str
    columns: NotRequired[dict[str, str | list[str] | dict[str, str]]]
    filter: NotRequired[str]
    rows: int
    files: int
    bytes: int
    sample_ids_unchecked: NotRequired[bool]
    version: NotRequired[str]
    digest: str
    labels: NotRequired[LabelFacts]


class SliceFacts(TypedDict):
    """A slice of the samples.

    Attributes:
        where: Its conditions.
        size: Samples or queries in it.
        of: All.
    """

    where: str
    size: int
    of: int


class InputFacts(TypedDict, total=False):
    """Facts of an input beside its matrix, as they are answered and stored.

    Attributes:
        rows: Samples that were sent, of inputs with probabilities, scores or weights.
        rule: How probabilities or scores became decisions.
        ties: Samples in which several classes were the most probable.
        threshold: The positive class was predicted from this value on; of folds with different thresholds all of them.
        threshold_assumed: The threshold was not given.
        outputs: Of labels: that they came with scores, which are no probabilities.
        renormalized: Rows of probabilities that were divided by their sum.
        sum_tolerance: How far the sum of a row could lie from 1 before it was divided by it, where that was said.
        fold_kind: The kind of input that every fold is.
        repeats: How often all samples were cross-validated, where that is known.
        repeats_mixed: True where the sample ids show that the folds of one repetition do not follow each other.
        n_groups: The groups that the samples came in.
        ignored: How many samples were left out, by ignored class; of a matrix the sum of its row.
        label_matrices: Of labels: by label a table of two by two, actual rows, absent before present.
        sample_weight: What each sample weighs, where all weigh the same: all else is as without weights.
        effective_samples: How many samples of equal weight would be worth as much for a mean as the weighted ones:
            Kish's (sum w)^2 / sum w^2.
        cutoffs: Of rankings: the k of the metrics at k in the report.
        relevant_from: Of rankings: the relevance from which an item counts as relevant, where it was said.
        relevant_items: Items that count as relevant: of a relevance above 0, or from `relevant_from` on.
        queries_without_relevant_items: They have no recall, average precision or rank.
        queries_without_retrieved_items: They were judged, and nothing was retrieved for them.
        queries_without_judgements: Something was retrieved for them and nothing judged; they are left out.
        not_retrieved: Items that were judged and not retrieved.
        unjudged: Items that were retrieved and not judged.
        decisions: Of a confusion matrix whose columns are no classes: what was decided, in the order of the columns.
        decision_matrix: The same matrix: rows are the actual classes, columns what was decided.
        clusters: Of clusterings: the names of the clusters, in the order of the columns.
        n_features: How many features the samples came with; 0 where it was distances.
        contingency: Numbers of samples, classes by clusters; where no classes are known there is none.
        cluster_sizes: How many samples each cluster has.
        exact_matches: Of regions and answers: how many items were predicted exactly.
        class_sizes: How many items each class has.
        data: Of data that was named by a reference: what was read.
        merged_from: Ids of the evaluations that it was merged of.
        slice: Where one slice alone is looked at: which.
    """

    rows: int
    rule: Literal["argmax", "threshold"]
    ties: int
    threshold: float | list[float]
    threshold_assumed: bool
    outputs: Literal["scores"]
    renormalized: int
    sum_tolerance: float
    fold_kind: str
    repeats: int
    repeats_mixed: bool
    n_groups: int
    ignored: dict[str, float]
    label_matrices: dict[str, list[list[float]]]
    sample_weight: float
    effective_samples: float
    cutoffs: list[int]
    relevant_from: float
    relevant_items: int
    queries_without_relevant_items: int
    queries_without_retrieved_items: int
    queries_without_judgements: int
    not_retrieved: int
    unjudged: int
    decisions: list[str]
    decision_matrix: list[list[float]]
    clusters: list[str]
    n_features: int
    contingency: list[list[int]]
    cluster_sizes: list[int]
    exact_matches: int
    class_sizes: list[int]
    data: DataFacts
    merged_from: list[str]
    slice: SliceFacts


# Names of facts that code asks for; `InputFacts` says what they are.
GROUPS_FACT = "n_groups"
IGNORED_FACT = "ignored"
WEIGHT_FACT = "sample_weight"
WEIGHTS_FACT = "effective_samples"
OUTPUTS_FACT = "outputs"
DATA_FACT = "data"
MERGED_FACT = "merged_from"
REPEATS_FACT = "repeats"
MIXED_FACT = "repeats_mixed"
DECISIONS_FACT = "decisions"
CLUSTERS_FACT = "clusters"
FEATURES_FACT = "n_features"
SLICE_FACT = "slice"


def why_not_saved(facts: Mapping[str, Any]) -> str:
    """Why the samples of an input are not saved that had some."""
    if MERGED_FACT in facts:
        return "it was merged of others"
    return "its data was named by a reference" if DATA_FACT in facts else "it was sent with the option retain=none"
