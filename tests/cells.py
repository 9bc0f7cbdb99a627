"""One small problem of every kind of input and design: two models on the same samples, as they are sent."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Json = dict[str, Any]
Random = np.random.Generator

DESIGNS = ("plain", "weights", "groups", "both")
GROUP = 4


def classes(random: Random, size: int) -> list[Json]:
    """Predictions of three classes."""
    truth = random.choice(3, size, p=(0.5, 0.3, 0.2))
    return [
        {"kind": "predictions", "y_true": truth.tolist(), "y_pred": said.tolist(), "labels": ["0", "1", "2"]}
        for said in (np.where(random.random(size) < wrong, random.integers(0, 3, size), truth) for wrong in (0.3, 0.4))
    ]


def probabilities(random: Random, size: int) -> list[Json]:
    """Probabilities of three classes."""
    truth = random.choice(3, size, p=(0.5, 0.3, 0.2))
    found = []
    for sharp in (1.2, 0.9):
        raw = np.exp(random.normal(0, 1, (size, 3)) + sharp * np.eye(3)[truth])
        rows = raw / raw.sum(axis=1, keepdims=True)
        found.append(
            {
                "kind": "probabilities",
                "y_true": truth.tolist(),
                "probabilities": rows.tolist(),
                "labels": ["0", "1", "2"],
            }
        )
    return found


def scores(random: Random, size: int) -> list[Json]:
    """Scores of two classes."""
    truth = (random.random(size) < 0.35).astype(int)
    return [
        {
            "kind": "scores",
            "y_true": truth.tolist(),
            "scores": (random.normal(0, 1, size) + sharp * truth).round(2).tolist(),
            "threshold": 0.7,
        }
        for sharp in (1.4, 1.1)
    ]


def multilabel(random: Random, size: int) -> list[Json]:
    """Label sets with probabilities."""
    members = random.random((size, 4)) < 0.4
    return [
        {
            "kind": "multilabel",
            "labels": ["a", "b", "c", "d"],
            "y_true": members.astype(int).tolist(),
            "probabilities": (1 / (1 + np.exp(-random.normal(0, 1, (size, 4)) - sharp * (members - 0.5)))).tolist(),
        }
        for sharp in (3.0, 2.4)
    ]


def clustering(random: Random, size: int) -> list[Json]:
    """Clusterings with known classes."""
    truth = random.integers(0, 3, size)
    return [
        {
            "kind": "clustering",
            "y_true": truth.tolist(),
            "y_pred": np.where(random.random(size) < wrong, random.integers(0, 4, size), truth).tolist(),
        }
        for wrong in (0.2, 0.3)
    ]


def ranking(random: Random, size: int) -> list[Json]:
    """Queries of eight items; sizes, ids, weights and groups are those of queries."""
    grades = np.where(random.random((size, 8)) < 0.6, 0, random.integers(1, 4, (size, 8)))
    grades[:, 0] = np.maximum(grades[:, 0], 1)
    return [
        {
            "kind": "ranking",
            "query_ids": np.repeat(np.arange(size), 8).tolist(),
            "relevance": grades.ravel().tolist(),
            "scores": (grades + random.normal(0, noise, grades.shape)).ravel().round(3).tolist(),
        }
        for noise in (1.6, 2.0)
    ]


def sets(random: Random, size: int) -> list[Json]:
    """Regions: pixels that are there, predicted, and both."""
    there = random.integers(5, 40, size)
    found = []
    for good in (0.8, 0.75):
        both = random.binomial(there, good)
        predicted = both + random.integers(0, 8, size)
        found.append(
            {
                "kind": "sets",
                "n_true": there.tolist(),
                "n_predicted": predicted.tolist(),
                "n_common": both.tolist(),
            }
        )
    return found


@dataclass(frozen=True)
class Cell:
    """A kind of input, with what is asked of it.

    Attributes:
        made: Two models on samples of some number.
        metrics: Asked of differences, gates and leaderboards: of each method one.
        designs: Which designs such samples can have.
    """

    made: Callable[[Random, int], list[Json]]
    metrics: Sequence[str]
    designs: Sequence[str] = DESIGNS


CELLS: dict[str, Cell] = {
    "predictions": Cell(
        classes,
        (
            "accuracy",
            "h_mean",
            "macro_f1",
            "mcc",
            "recall@2",
            "precision@0",
            "min(recall@*)",
            "gps(recall@*, precision@2)",
        ),
    ),
    "probabilities": Cell(
        probabilities,
        (
            "accuracy",
            "micro_average_precision",
            "class_reciprocal_rank",
            "log_loss",
            "roc_auc@1",
            "roc_auc_ovr_macro",
            "average_precision@2",
            "expected_calibration_error",
            "au_imcp",
        ),
    ),
    "scores": Cell(
        scores,
        ("balanced_accuracy", "roc_auc@1", "average_precision@1", "ks_statistic@1", "recall_at(specificity=0.8)@1"),
    ),
    "multilabel": Cell(
        multilabel,
        (
            "subset_accuracy",
            "weighted_average_precision",
            "micro_average_precision",
            "roc_auc_ovr_samples",
            "hamming_loss",
            "samples_f1",
            "macro_f1",
            "recall@b",
            "roc_auc_ovr_macro",
            "label_ranking_loss",
        ),
    ),
    "clustering": Cell(clustering, ("adjusted_rand", "v_measure", "purity"), DESIGNS),
    "ranking": Cell(
        ranking, ("ndcg_at_k(k=5)", "mean_reciprocal_rank", "hit_rate_at_k(k=1)", "precision_at_k(k=3)"), ("plain",)
    ),
    "sets": Cell(sets, ("samples_jaccard", "samples_f1", "pooled_f1"), ("plain", "groups")),
}


def designed(sources: Sequence[Json], design: str, random: Random, weights: NDArray[Any] | None = None) -> list[Json]:
    """The same samples with names, and with weights or groups of four where the design has them."""
    first = sources[0]
    of_queries = first["kind"] == "ranking"
    names = first["query_ids"] if of_queries else None
    size = len(set(names)) if names else len(first["n_true"] if first["kind"] == "sets" else first["y_true"])
    spread = np.asarray(names) if names else np.arange(size)
    beside: Json = {} if of_queries else {"sample_ids": [f"s{place}" for place in range(size)]}
    if design in ("weights", "both"):
        own = random.gamma(4.0, 0.25, size).round(3) + 0.01 if weights is None else weights
        beside["sample_weight"] = own[spread].tolist()
    if design in ("groups", "both"):
        beside["group_ids"] = [f"g{place // GROUP}" for place in spread.tolist()]
    return [{**source, **beside} for source in sources]
