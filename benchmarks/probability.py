"""Probability reports against scikit-learn and imcp: run with ``python -m benchmarks.probability``.

CPU time, medians of rounds in which every contender runs once, one BLAS thread, one process.
"""

import os

os.environ.setdefault("MPLBACKEND", "Agg")

import gc
import time
from collections.abc import Callable
from statistics import median

import imcp
import numpy as np
from numpy.typing import NDArray
from sklearn import metrics as sk

from app.kernel.metrics.card import Scope, evaluate_table
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.families.imcp import au_imcp, au_imcp_trapezoid
from app.kernel.samples.scores import Scores

ROUNDS = 9
Codes = NDArray[np.int64]
Array = NDArray[np.float64]


def binary_sample(n: int, seed: int = 0) -> tuple[Codes, Array]:
    """A classifier of moderate quality, 30 % of class 1."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.3).astype(np.int64)
    p = 1.0 / (1.0 + np.exp(1.0 - rng.normal(size=n) - 1.2 * y))
    return y, np.column_stack([1.0 - p, p])


def multiclass_sample(n: int, n_classes: int, seed: int = 0) -> tuple[Codes, Array]:
    """Softmax of noise with the actual class lifted."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    logits = rng.normal(size=(n, n_classes))
    logits[np.arange(n), y] += 1.5
    p = np.exp(logits)
    return y, p / p.sum(axis=1, keepdims=True)


def report(y: Codes, p: Array) -> None:
    """Every probability metric of a report with its default parameters, for all classes."""
    scores, metrics = Scores(y, p), catalogue().of_probabilities.reported
    for scope in Scope:
        evaluate_table(scores, metrics.of_scope(scope))


def every_metric(y: Codes, p: Array) -> None:
    """Those too that have to be asked for."""
    scores = Scores(y, p)
    for scope in Scope:
        evaluate_table(scores, catalogue().of_probabilities.of_scope(scope))


def sklearn_binary(y: Codes, p: Array) -> None:
    score = p[:, 1]
    fpr, tpr, _ = sk.roc_curve(y, score)
    sk.auc(fpr, tpr)
    sk.precision_recall_curve(y, score)
    sk.average_precision_score(y, score)
    sk.log_loss(y, score)
    sk.brier_score_loss(y, score)


def sklearn_multiclass(y: Codes, p: Array) -> None:
    sk.roc_auc_score(y, p, multi_class="ovr")
    sk.roc_auc_score(y, p, multi_class="ovo")
    sk.average_precision_score(y, p)


def imcp_area(y: Codes, p: Array) -> float:
    # Its own *_score functions need a name that numpy 2.4 no longer has.
    x, height = imcp.imcp_curve(y, p)
    return float(np.trapezoid(height, x=x))


def imcp_step(y: Codes, p: Array) -> float:
    return float(au_imcp.compute(Scores(y, p)))


def imcp_trapezoid(y: Codes, p: Array) -> float:
    return float(au_imcp_trapezoid.compute(Scores(y, p)))


Contender = Callable[[Codes, Array], object]


def compare(y: Codes, p: Array, contenders: dict[str, Contender]) -> dict[str, float]:
    """Median CPU seconds of each, interleaved."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(ROUNDS + 1):
        for name, run in contenders.items():
            gc.collect()
            start = time.process_time()
            run(y, p)
            if number:
                seconds[name].append(time.process_time() - start)
    return {name: median(values) for name, values in seconds.items()}


def main() -> None:
    rows: list[tuple[str, str, float, float]] = []
    for size, sample, sklearn, other in (
        ("n = 1e6, K = 2", binary_sample(10**6), sklearn_binary, "scikit-learn ROC + PR + AP + log loss + Brier"),
        ("n = 1e5, K = 10", multiclass_sample(10**5, 10), sklearn_multiclass, "scikit-learn OvR + OvO AUC + macro AP"),
    ):
        took = compare(*sample, {"report": report, "every": every_metric, "theirs": sklearn})
        rows.append((f"{size}: all metrics of a report", other, took["report"], took["theirs"]))
        rows.append((f"{size}: those that are asked for as well", "the same", took["every"], took["theirs"]))
    for classes in (3, 10, 35):
        y, p = multiclass_sample(10**5, classes)
        took = compare(y, p, {"step": imcp_step, "trapezoid": imcp_trapezoid, "theirs": imcp_area})
        rows.append((f"n = 1e5, K = {classes}: AU(IMCP), step", "imcp curve + trapezoid", took["step"], took["theirs"]))
        rows.append((f"n = 1e5, K = {classes}: AU(IMCP), trapezoid", "the same", took["trapezoid"], took["theirs"]))
    print("| ours | against | ours, ms | theirs, ms | ratio |")
    print("| --- | --- | ---: | ---: | ---: |")
    for name, other, ours, theirs in rows:
        print(f"| {name} | {other} | {ours * 1e3:.2f} | {theirs * 1e3:.2f} | {theirs / ours:.1f} |")


if __name__ == "__main__":
    main()
