"""Curves of several classes as one: scikit-learn's micro and macro averages."""

import numpy as np
import pytest

from app.kernel.samples.curves import UndefinedCurve, macro_det, macro_roc, pooled, precision_recall, roc
from app.kernel.samples.scores import Scores
from tests.witnesses import sk

RANDOM = np.random.default_rng(3)
Y = RANDOM.integers(0, 4, 300)
LOGITS = np.round(RANDOM.normal(size=(300, 4)) + 1.2 * np.eye(4)[Y], 1)
P = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
WEIGHTS = RANDOM.integers(1, 4, 300).astype(float)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_micro_pools_all_decisions(weights: np.ndarray | None) -> None:
    from sklearn.preprocessing import label_binarize

    truth = label_binarize(Y, classes=range(4)).ravel()
    repeated = None if weights is None else np.repeat(weights, 4)
    made = pooled(Scores(Y, P, weights))
    curve = roc(made, 1)
    fpr, tpr, _ = sk.roc_curve(truth, P.ravel(), drop_intermediate=False, sample_weight=repeated)
    np.testing.assert_allclose(curve.x, fpr, atol=1e-12)
    np.testing.assert_allclose(curve.y, tpr, atol=1e-12)
    expected = sk.roc_auc_score(truth, P.ravel(), sample_weight=repeated)
    assert curve.area == pytest.approx(expected, rel=1e-12)
    precision, recall, _ = sk.precision_recall_curve(truth, P.ravel(), sample_weight=repeated)
    trapezoid = sk.auc(recall, precision)
    assert precision_recall(made, 1).area == pytest.approx(trapezoid, rel=1e-10)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_macro_is_the_mean_over_the_classes(weights: np.ndarray | None) -> None:
    curve = macro_roc(Scores(Y, P, weights))
    expected = sk.roc_auc_score(Y, P, multi_class="ovr", average="macro", sample_weight=weights)
    assert curve.area == pytest.approx(expected, rel=1e-12)
    assert np.trapezoid(curve.y, curve.x) == pytest.approx(expected, rel=1e-12)
    grid = np.linspace(0.001, 0.999, 57)
    means = np.zeros(grid.size)
    for code in range(4):
        fpr, tpr, _ = sk.roc_curve(code == Y, P[:, code], drop_intermediate=False, sample_weight=weights)
        means += np.interp(grid, fpr, tpr) / 4
    np.testing.assert_allclose(np.interp(grid, curve.x, curve.y), means, atol=1e-12)
    assert (curve.x[0], curve.y[0], curve.x[-1], curve.y[-1]) == (0.0, 0.0, 1.0, 1.0)
    turned = macro_det(Scores(Y, P, weights))
    np.testing.assert_array_equal(turned.y, 1 - curve.y)
    assert turned.area == pytest.approx(1 - expected, rel=1e-12)


def test_a_class_without_samples_has_no_curve() -> None:
    with pytest.raises(UndefinedCurve):
        macro_roc(Scores(np.where(Y == 3, 0, Y), P))
