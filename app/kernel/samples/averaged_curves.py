"""One ROC curve of several classes: all decisions about all classes pooled, or the mean of the curves."""

import numpy as np

from app.kernel.numerics.arrays import Array
from app.kernel.samples.curves import Curve, UndefinedCurve, cuts_of
from app.kernel.samples.scores import Scores


def pooled(scores: Scores) -> Scores:
    """Every class against the rest, all of them as one problem of n K samples (micro average): class 1 is "it is"."""
    truth = (scores.y[:, None] == np.arange(scores.n_classes)).ravel().astype(np.intp)
    values = scores.probabilities.ravel()
    weights = None if scores.weights is None else np.repeat(scores.weights, scores.n_classes)
    made = Scores(truth, np.column_stack([1.0 - values, values]), weights)
    made.are_probabilities = scores.are_probabilities
    return made


def macro_roc(scores: Scores) -> Curve:
    """Mean true positive rate of all classes at every false positive rate; the area is the mean of theirs.

    Raises:
        UndefinedCurve: a class has no samples, or there is no other.
    """
    curves = []
    for code in range(scores.n_classes):
        cuts = cuts_of(scores.ranking(code))
        if not cuts.positives or not cuts.negatives:
            raise UndefinedCurve("no_actual_samples", "a class has no actual samples, or all of them")
        curves.append((cuts.fp / cuts.negatives, cuts.tp / cuts.positives))
    x = np.unique(np.concatenate([fpr for fpr, _ in curves]))
    # Steps have two ends at one x.
    lower = _mean([np.interp(-x, -fpr[::-1], tpr[::-1]) for fpr, tpr in curves])
    upper = _mean([np.interp(x, fpr, tpr) for fpr, tpr in curves])
    points = np.stack([np.repeat(x, 2), np.column_stack([lower, upper]).ravel()])
    moves = np.append(True, (np.diff(points, axis=1) != 0).any(axis=0))
    x, y = points[:, moves]
    area = float(np.mean([scores.ranking(code).auc for code in range(scores.n_classes)]))
    return Curve(x, y, np.full(x.size, np.nan), area, ("false positive rate", "mean true positive rate"))


def macro_det(scores: Scores) -> Curve:
    """Mean false negative rate of all classes at every false positive rate. Raises as `macro_roc` does."""
    found = macro_roc(scores)
    assert found.area is not None  # noqa: S101 - it has one
    axes = (found.axes[0], "mean false negative rate")
    return Curve(found.x, 1.0 - found.y, found.thresholds, 1.0 - found.area, axes)


def _mean(values: list[Array]) -> Array:
    mean: Array = np.mean(values, axis=0)
    return mean
