"""What the figures of the papers are drawn of: matrices in print, data of the authors, digits of scikit-learn."""

import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB

Array = NDArray[np.float64]
AUTHORS = Path(__file__).resolve().parents[2] / "tests" / "data" / "imcp"
# Aguilar-Ruiz (2025), sec. 6: class sizes of the example, and the three mixes of figure 2.
EXAMPLE = [[800, 0, 0, 0], [0, 600, 0, 0], [0, 0, 500, 0], [40, 24, 20, 16]]
MIXES = {"25, 25, 25, 25": (25, 25, 25, 25), "40, 30, 20, 10": (40, 30, 20, 10), "80, 10, 5, 5": (80, 10, 5, 5)}
# Aguilar-Ruiz & Michalak (2024), figure 2: (1, 2, 3) to the power of 6, times 100.
SIZES_OF_D = (100, 6_400, 72_900)


def mix(shares: tuple[int, ...], recall: float = 0.16) -> list[list[float]]:
    """A matrix of 10,000 samples in which the last class has a recall, and all others are right."""
    matrix = np.diag([100.0 * share for share in shares])
    matrix[-1, -1] *= recall
    matrix[-1, 0] = 100.0 * shares[-1] * (1.0 - recall)
    return [[float(one) for one in row] for row in matrix]


def binary(tpr: float, tnr: float, *, positive: float = 1000, negative: float = 1000) -> dict[str, Any]:
    """Counts of two classes with these rates."""
    tp, tn = round(tpr * positive), round(tnr * negative)
    return {"kind": "binary_counts", "tp": tp, "fn": positive - tp, "fp": negative - tn, "tn": tn}


def digits() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The digits 1 and 6 in noise, three of them positive for each negative: the test set by LDA and by the nearest
    centroid, and the training set by the latter, of which its cut is chosen.

    Wu & Cannistraci (2025), sec. 3.2 and 3.3, on SVHN, whose predictions are not published.
    """
    rng = np.random.default_rng(0)
    pictures, codes = load_digits(return_X_y=True)
    ones, sixes = np.flatnonzero(codes == 1), np.flatnonzero(codes == 6)
    chosen = rng.permutation(np.repeat(np.concatenate([ones[:60], sixes[:180]]), 10))
    x = pictures[chosen] + rng.normal(0.0, 24.0, (len(chosen), pictures.shape[1]))
    y = (codes[chosen] == 6).astype(int)
    train, test = slice(0, 1800), slice(1800, None)
    model = LinearDiscriminantAnalysis().fit(x[train], y[train])
    line = x[train][y[train] == 1].mean(axis=0) - x[train][y[train] == 0].mean(axis=0)
    line /= np.linalg.norm(line)
    return (
        _scores(y[test], model.decision_function(x[test]), 0.0),
        _scores(y[test], x[test] @ line),
        _scores(y[train], x[train] @ line),
    )


def _scores(y: NDArray[np.int_], values: Array, threshold: float | None = None) -> dict[str, Any]:
    return {
        "kind": "scores",
        "y_true": ["positive" if one else "negative" for one in y],
        "scores": values.round(6).tolist(),
        "positive": "positive",
        "sample_ids": list(range(len(y))),
        **({} if threshold is None else {"threshold": threshold}),
    }


def naive_bayes(name: str) -> dict[str, Any]:
    """A dataset of the authors (A, B or C of figure 2) by naive Bayes, ten folds."""
    file = next(AUTHORS.glob(f"{name}_exp-*"))
    with gzip.open(file, "rt") as text:
        rows = [row for row in csv.reader(text, delimiter="\t") if row][1:]
    y, x = np.array([row[0] for row in rows]), np.array([row[1:] for row in rows], dtype=float)
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    p = cross_val_predict(GaussianNB(), x, y, cv=folds, method="predict_proba")
    return _probabilities(y.tolist(), p, ["A", "B", "C"])


def seven_classes() -> dict[str, Any]:
    """The test data of the authors' package: 1,885 samples of 7 classes."""
    with gzip.open(AUTHORS / "test_results.csv.gz", "rt") as text:
        rows = np.array(list(csv.reader(text))[1:], dtype=float)
    return _probabilities([str(int(one)) for one in rows[:, 0]], rows[:, 1:], [str(one) for one in range(7)])


def nineteen() -> dict[str, Any]:
    """Two samples of class A, five of B and twelve of C, as in figure 5; their probabilities are not printed."""
    y = ["A"] * 2 + ["B"] * 5 + ["C"] * 12
    p = np.random.default_rng(5).dirichlet([1.0, 1.0, 1.0], len(y)) + 1.5 * np.array(
        [[one == label for label in "ABC"] for one in y]
    )
    return _probabilities(y, p, ["A", "B", "C"])


def one_sample() -> dict[str, Any]:
    """The example of the text: the truth is the first class, stated with 0.35."""
    return _probabilities(["A"], np.array([[0.35, 0.33, 0.32]]), ["A", "B", "C"])


def one_of_each(classes: int) -> dict[str, Any]:
    """A sample of each class, stated with a probability of a half."""
    labels = [str(one) for one in range(classes)]
    return _probabilities(labels, np.eye(classes) + 1.0 / (classes - 1), labels)


def _probabilities(y: list[str], p: Array, labels: list[str]) -> dict[str, Any]:
    rows = p / p.sum(axis=1, keepdims=True)
    return {"kind": "probabilities", "y_true": y, "labels": labels, "probabilities": rows.tolist()}
