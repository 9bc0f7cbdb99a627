"""Samples with many labels against scikit-learn: run with ``python -m benchmarks.multilabel``.

CPU time, medians of rounds in which both run once, one BLAS thread, one process. Ours starts from the same two tables
of 0 and 1 and makes the whole report: every metric of every label and over labels, their values with all labels equally
frequent, limits, findings. scikit-learn's is its classification report: precision, recall and F1 of every label, and
their micro, macro, weighted and samples averages.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import gc
import time
import warnings
from collections.abc import Callable
from statistics import median

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import classification_report

from app.domain.inputs.multilabel import Multilabel
from app.domain.options import Options
from app.kernel.metrics.card import Task
from app.services.estimates.run_data import RunData
from app.services.evaluate.questions import ask
from app.services.evaluate.sections.unit import unit_section

Tables = NDArray[np.int64]


def labelled(n: int, labels: int) -> tuple[Tables, Tables]:
    """Labels of very different frequency, that go together, and answers that are right most of the time."""
    random = np.random.default_rng(0)
    shares = np.geomspace(0.3, 0.005, labels)
    common = random.random((n, 1)) < 0.3
    truth = random.random((n, labels)) < np.where(common, np.minimum(2.0 * shares, 0.9), 0.6 * shares)
    wrong = random.random((n, labels)) < np.where(truth, 0.25, 0.3 * shares)
    return truth.astype(np.int64), (truth ^ wrong).astype(np.int64)


def ours(truth: Tables, predicted: Tables) -> object:
    source = Multilabel(y_true=truth, y_pred=predicted).read("")
    return unit_section(ask(source, Options()), Task.MULTILABEL, RunData(source))


def theirs(truth: Tables, predicted: Tables) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return classification_report(truth, predicted, output_dict=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    print("| ours: the whole report | against | ours, ms | theirs, ms | ratio |")
    print("| --- | --- | ---: | ---: | ---: |")
    for n, labels in ((10**5, 50), (10**5, 10), (10**4, 200)):
        data = labelled(n, labels)
        seconds: dict[Callable[[Tables, Tables], object], list[float]] = {ours: [], theirs: []}
        for number in range(rounds + 1):
            for run, taken in seconds.items():
                gc.collect()
                start = time.process_time()
                run(*data)
                if number:
                    taken.append(time.process_time() - start)
        mine, other = median(seconds[ours]), median(seconds[theirs])
        what = f"n = {n:.0e}, {labels} labels".replace("e+0", "e")
        print(
            f"| {what} | scikit-learn's classification report | {mine * 1e3:.1f} | {other * 1e3:.1f} | "
            f"{other / mine:.1f} |"
        )


if __name__ == "__main__":
    main()
