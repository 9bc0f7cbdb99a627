"""Intervals and paired comparisons against scikit-learn: run with ``python -m benchmarks.comparison``.

CPU time, medians of rounds in which every contender runs once, one BLAS thread, one process.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import gc
import time
from collections.abc import Callable
from statistics import median
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics as sk

from app.domain.evaluation import DatasetRef, EvaluationRecord, ModelRef
from app.domain.identifiers import new_id
from app.domain.inputs.content import Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.options import IntervalChoice, Options
from app.kernel.matrix.table import confusion_counts
from app.kernel.metrics.catalogue import catalogue
from app.kernel.uncertainty.simulation import posterior_intervals
from app.services.compare.comparisons import AskedComparison, NewComparison, compare, understood
from app.services.evaluate.reports import evaluate
from app.services.ports.evaluations import SampleLabels
from app.services.runs.aligned import Runs
from app.services.runs.reading import KeptSamples

ROUNDS = 5
CLASSES = 10
RESAMPLES = 1000
DRAWS = 4000
Codes = NDArray[np.int64]
Metric = Callable[[Codes, Codes], float]
EXPRESSIONS = (
    "accuracy", "balanced_accuracy", "g_mean", "h_mean", "macro_f1", "macro_precision", "weighted_f1",
    "weighted_precision", "macro_jaccard", "mcc", "cohen_kappa", "micro_f_beta", "recall@1", "precision@1", "f1@1",
    "f1@2", "jaccard@1", "min(recall@*)", "gps(recall@*)", "gps(recall@*, precision@1)",
)  # fmt: skip


def labels(n: int, accuracy: float, seed: int = 0) -> tuple[Codes, Codes]:
    """Actual classes and predictions that are right that often, and otherwise anything."""
    random = np.random.default_rng(seed)
    truth = np.random.default_rng(99).integers(0, CLASSES, n)
    return truth, np.where(random.random(n) < accuracy, truth, random.integers(0, CLASSES, n))


def bootstrap_by_sklearn(truth: Codes, predicted: Codes, second: Metric, resamples: int) -> None:
    """A loop over resampled items for macro F1 and another metric, as it is usually written."""
    random = np.random.default_rng(0)
    values = np.empty((resamples, 2))
    for index in range(resamples):
        rows = random.integers(0, len(truth), len(truth))
        values[index, 0] = sk.f1_score(truth[rows], predicted[rows], average="macro")
        values[index, 1] = second(truth[rows], predicted[rows])
    np.quantile(values, [0.025, 0.975], axis=0)


def intervals_of_all(counts: NDArray[np.int64]) -> None:
    """Posterior intervals of all 151 matrix metrics, per class and overall."""
    functionals = [metric.compute for metric in catalogue().of_matrices.reported.metrics]
    posterior_intervals(counts.astype(np.float64), functionals, seed=0, draws=DRAWS)


def report_with_all(counts: NDArray[np.int64]) -> None:
    """The whole report of the service with intervals of everything."""
    source = MatrixInput("confusion_matrix", tuple(map(str, range(CLASSES))), None, Content.counts, counts)
    evaluate(source, Options(intervals=IntervalChoice.ALL))


def metrics_by_sklearn(truth: Codes, predicted: Codes) -> None:
    """What scikit-learn has of the twenty expressions, or the nearest to it: recalls where we take means of them."""
    sk.accuracy_score(truth, predicted)
    sk.balanced_accuracy_score(truth, predicted)
    for _ in ("g_mean", "h_mean", "min", "gps"):
        sk.recall_score(truth, predicted, average=None)
    sk.f1_score(truth, predicted, average="macro")
    sk.precision_score(truth, predicted, average="macro")
    sk.f1_score(truth, predicted, average="weighted")
    sk.precision_score(truth, predicted, average="weighted")
    sk.jaccard_score(truth, predicted, average="macro")
    sk.matthews_corrcoef(truth, predicted)
    sk.cohen_kappa_score(truth, predicted)
    sk.fbeta_score(truth, predicted, beta=1, average="micro")
    for metric in (sk.recall_score, sk.precision_score, sk.f1_score, sk.jaccard_score):
        metric(truth, predicted, labels=[1], average="macro")
    sk.f1_score(truth, predicted, labels=[2], average="macro")
    sk.precision_recall_fscore_support(truth, predicted)


def run_of(truth: Codes, predicted: Codes, name: str) -> EvaluationRecord:
    counts = confusion_counts(truth, predicted, CLASSES)
    return EvaluationRecord(
        id=new_id(),
        model=ModelRef(name),
        dataset=DatasetRef("d"),
        kind="predictions",
        labels=tuple(map(str, range(CLASSES))),
        content=Content.counts,
        counts=counts,
        revision="",
        values={},
    )


def paired(records: list[EvaluationRecord], samples: dict[UUID, SampleLabels]) -> None:
    """Two runs paired by sample id on twenty expressions: intervals, tests, probabilities."""
    asked = NewComparison(evaluations=tuple(record.id for record in records), metrics=EXPRESSIONS)
    runs = Runs.align(records)
    compare(AskedComparison(asked, runs, understood(asked, runs)), KeptSamples(samples), identifier=new_id())


def seconds(run: Callable[[], None], rounds: int) -> float:
    """Median CPU seconds, one round to warm up."""
    took = []
    for number in range(rounds + 1):
        gc.collect()
        start = time.process_time()
        run()
        if number or not rounds:
            took.append(time.process_time() - start)
    return median(took)


def main() -> None:
    truth, predicted = labels(10_000, 0.8)
    counts = confusion_counts(truth, predicted, CLASSES)
    ours = {
        f"intervals of all {len(catalogue().of_matrices.reported.metrics)} matrix metrics": seconds(
            lambda: intervals_of_all(counts), ROUNDS
        ),
        "the whole report with them": seconds(lambda: report_with_all(counts), ROUNDS),
    }
    print(f"K = {CLASSES}, n = 10,000: {DRAWS} posterior draws against a loop of {RESAMPLES} resamples.\n")
    print("| ours | ours, ms | scikit-learn, in a loop | ms | ratio |")
    print("| --- | ---: | --- | ---: | ---: |")
    others: dict[str, Metric] = {"balanced accuracy": sk.balanced_accuracy_score, "MCC": sk.matthews_corrcoef}
    for other, metric in others.items():

        def loop(metric: Metric = metric) -> None:
            # A tenth of the resamples, times ten: every one of them costs the same.
            bootstrap_by_sklearn(truth, predicted, metric, RESAMPLES // 10)

        theirs = 10 * seconds(loop, 3)
        for name, mine in ours.items():
            print(f"| {name} | {mine * 1e3:.0f} | macro F1 and {other} | {theirs * 1e3:.0f} | {theirs / mine:.0f} |")
    compare_paired()


def compare_paired() -> None:
    n = 1_000_000
    first, second = labels(n, 0.80, 1), labels(n, 0.82, 2)
    records = [run_of(*first, "first"), run_of(*second, "second")]
    ids = np.arange(n)
    samples = {record.id: SampleLabels(ids, *run) for record, run in zip(records, (first, second), strict=True)}

    def by_sklearn() -> None:
        metrics_by_sklearn(*first)
        metrics_by_sklearn(*second)

    theirs = seconds(by_sklearn, 1)
    mine = seconds(lambda: paired(records, samples), 3)
    print(f"\nTwo runs of {n:,} samples, paired by id, on {len(EXPRESSIONS)} expressions.\n")
    print("| ours: the whole comparison, s | scikit-learn: the values alone, once per run, s | ratio |")
    print("| ---: | ---: | ---: |")
    print(f"| {mine:.2f} | {theirs:.2f} | {theirs / mine:.1f} |")


if __name__ == "__main__":
    main()
