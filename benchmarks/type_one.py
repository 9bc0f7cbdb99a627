"""How often paired tests call equal runs different: exactly where that can be counted, else by simulation.

Run ``python -m benchmarks.type_one``; prints Markdown tables. ``--replicates`` sets the precision of the simulated
ones: 2000 give a standard error of half a point.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from uuid import UUID

import numpy as np
from scipy.stats import binom

from app.domain.evaluation import DatasetRef, EvaluationRecord, ModelRef
from app.domain.identifiers import new_id
from app.domain.inputs.content import Content
from app.domain.inputs.samples import Samples
from app.kernel.compare.differences import permutation_p
from app.kernel.compare.paired import joint as joint_runs
from app.kernel.compare.paired.effects import PairedScore, paired_effects, rate_effects
from app.kernel.compare.paired.tests import mcnemar_mid_p
from app.kernel.matrix.table import confusion_counts
from app.kernel.metrics.catalogue import catalogue
from app.kernel.uncertainty.draws import generator
from app.services.compare.comparisons import AskedComparison, NewComparison, compare, understood
from app.services.runs.aligned import Runs
from app.services.runs.reading import KeptSamples
from benchmarks.coverage import print_table

ALPHA = 0.05
Z = 1.959964
# A permutation test keeps its level with any number of draws.
DRAWS = 400
# Runs, and how many of their items exactly one of two has right on average.
SIZES = (100, 1000)
DISCORDANT = (2, 5, 10, 20, 50)
METRICS = {"macro F1": "macro_f1", "H": "h_mean", "MCC": "mcc"}
DESIGNS = ((2, 100), (2, 400), (3, 100), (10, 25), (10, 100))
SCORED_DESIGNS = ((2, 50), (2, 200), (3, 70))
EXPRESSIONS = {
    "roc_auc@1": "DeLong",
    "log_loss": "paired t, log loss",
    "au_imcp": "paired t, AU(IMCP)",
    "roc_auc_ovr_macro": "influence, macro AUC",
    "roc_auc_ovo_macro": "influence, Hand-Till M",
    "top_k_accuracy(k=1)": "McNemar mid-p, top-1 accuracy",
    "average_precision@1": "bootstrap, average precision",
    "mean(h_mean, roc_auc@1)": "bootstrap, mean of H and AUC",
    "expected_calibration_error": "bootstrap, calibration error",
    "ks_statistic@1": "bootstrap, Kolmogorov-Smirnov",
}


def exact_sizes(items: int, discordant: float) -> tuple[float, float, float]:
    """Probability that McNemar's mid-p and exact test and Tango's reject equal accuracies: all outcomes added up."""
    counts = np.arange(items + 1)
    chances = binom.pmf(counts, items, discordant / items)
    found = np.zeros(3)
    for count in counts[chances > 1e-12]:
        first = np.arange(count + 1.0)
        exact = 2.0 * binom.cdf(np.minimum(first, count - first), count, 0.5)
        extreme = PairedScore(rate_effects(first, count - first, items)).score > Z
        rejects = np.stack([mcnemar_mid_p(first, count - first) < ALPHA, exact < ALPHA, extreme])
        found += chances[count] * (rejects @ binom.pmf(first, count, 0.5))
    return float(found[0]), float(found[1]), float(found[2])


def equal_runs(classes: int, size: int, random: np.random.Generator) -> joint_runs.JointCounts:
    """Two runs that are exchangeable and often right and wrong on the same items."""
    truth = np.repeat(np.arange(classes), size)
    hard = random.random(truth.size) < 0.25
    wrong = (truth + random.integers(1, classes, (2, truth.size))) % classes
    right = random.random((2, truth.size)) < np.where(hard, 0.5, 0.98)
    return joint_runs.combine(truth, np.where(right, truth, wrong), classes)


def errors_on_matrices(classes: int, size: int, replicates: int) -> list[tuple[str, float, float]]:
    """For tests of predictions, how many items were discordant and the share of equal pairs that each rejects."""
    random = generator(classes + size)
    metrics = {name: catalogue().of_matrices.by_name[key].compute for name, key in METRICS.items()}
    rejected, discordant = Counter[str](), 0.0
    for replicate in range(replicates):
        runs = equal_runs(classes, size, random)
        first, second = runs.correct()
        discordant += float(runs.counts @ (first ^ second)) / replicates
        p = PairedScore(paired_effects(runs, [*metrics.values()])).p
        for name, value in zip(metrics, p, strict=True):
            rejected[f"score and swaps, {name}"] += int(value < ALPHA)
        least = [lambda table: table.recall.min(axis=-1)]
        permuted = joint_runs.permute(runs, draws=399, random=generator(replicate))
        rejected["permutation, smallest recall"] += int(permutation_p(runs, least, permuted)[0] < ALPHA)
    return [(name, discordant, hits / replicates) for name, hits in rejected.items()]


def scored_pair(
    classes: int, size: int, random: np.random.Generator
) -> tuple[list[EvaluationRecord], dict[UUID, Samples]]:
    """Two exchangeable runs with probabilities that have much in common."""
    truth = np.repeat(np.arange(classes), size)
    shared = 1.2 * np.eye(classes)[truth] + random.normal(size=(truth.size, classes))
    records, outputs = [], {}
    for name in ("first", "second"):
        mass = np.exp(shared + 0.7 * random.normal(size=shared.shape))
        probabilities = mass / mass.sum(axis=1, keepdims=True)
        predicted = probabilities.argmax(axis=1)
        record = EvaluationRecord(
            id=new_id(),
            model=ModelRef(name),
            dataset=DatasetRef("d"),
            kind="probabilities",
            labels=tuple(map(str, range(classes))),
            content=Content.counts,
            counts=confusion_counts(truth, predicted, classes),
            revision="",
            values={},
        )
        records.append(record)
        outputs[record.id] = Samples(truth, predicted, probabilities, np.arange(truth.size))
    return records, outputs


def errors_on_scores(classes: int, size: int, replicates: int) -> list[tuple[str, float, float]]:
    """The share of equal pairs of probabilities that p calls different, and that the interval does."""
    random = generator(classes * size)
    by_p, by_interval = Counter[str](), Counter[str]()
    for replicate in range(replicates):
        records, outputs = scored_pair(classes, size, random)
        asked = NewComparison(
            evaluations=tuple(outputs), metrics=tuple(EXPRESSIONS), seed=replicate, draws=DRAWS, rope=0.0
        )
        runs = Runs.align(records)
        answer = compare(
            AskedComparison(asked, runs, understood(asked, runs)), KeptSamples.of(outputs), identifier=new_id()
        )
        for text, metric in answer.metrics.items():
            (found,) = metric.differences
            by_p[text] += int(found.p_value is not None and found.p_value < ALPHA)
            ends = (found.low, found.high)
            by_interval[text] += int(ends[0] is not None and ends[1] is not None and (ends[0] > 0 or ends[1] < 0))
    return [(name, by_p[text] / replicates, by_interval[text] / replicates) for text, name in EXPRESSIONS.items()]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=2000)
    replicates = parser.parse_args(arguments).replicates
    counted = [
        [items, discordant, *exact_sizes(items, discordant)]
        for discordant in DISCORDANT
        for items in SIZES
        if 2 * discordant <= items
    ]
    print_table(["items", "expected discordant", "McNemar mid-p", "McNemar exact", "Tango"], counted)
    print_table(
        ["test at 5 %", "K", "per class", "mean discordant", "rejects equal runs"],
        [
            [name, classes, size, f"{discordant:.0f}", share]
            for classes, size in DESIGNS
            for name, discordant, share in errors_on_matrices(classes, size, replicates)
        ],
    )
    print_table(
        ["test of probabilities at 5 %", "K", "per class", "p rejects equal runs", "interval excludes 0"],
        [
            [name, classes, size, by_p, by_interval]
            for classes, size in SCORED_DESIGNS
            for name, by_p, by_interval in errors_on_scores(classes, size, replicates)
        ],
    )


if __name__ == "__main__":
    main()
