"""One rate where another has a given value: brute force in fractions, scikit-learn's curves, published outputs."""

from fractions import Fraction

import numpy as np
import pytest

from app.kernel.samples.scores import Scores
from tests.bank import each
from tests.kernel.probability import exact
from tests.kernel.probability.problems import exact_tied_problem, softmax_problem, tied_problem, value
from tests.witnesses import sk

KEYS = {"recall_at": "specificity", "specificity_at": "recall", "precision_at": "recall"}


def found(scores: Scores, limit: float) -> list[np.ndarray]:
    return [value(key, scores, **{given: limit}) for key, given in KEYS.items()]


@each("classes", [2, 3, 5])
@each("limit", [Fraction(1, 10), Fraction(1, 3), Fraction(1, 2), Fraction(4, 5), Fraction(9, 10), Fraction(1)])
@each("kind", ["tied", "distinct"])
def test_by_trying_every_threshold(kind: str, limit: Fraction, classes: int) -> None:
    for seed in range(3):
        if kind == "tied":
            y, p, rows = exact_tied_problem(30, classes, seed)
        else:
            y, p = softmax_problem(30, classes, seed)
            rows = [[Fraction(float(entry)) for entry in row] for row in p]
        expected = [exact.rates_at(*exact.of_class(y.tolist(), rows, code), limit) for code in range(classes)]
        np.testing.assert_allclose(
            np.array(found(Scores(y, p), float(limit))).T, np.array(expected, dtype=float), rtol=1e-12
        )


@pytest.mark.parametrize("make", [softmax_problem, tied_problem])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [300, 9000])
def test_points_of_the_curves_of_scikit_learn(make: object, weighted: bool, n: int) -> None:
    y, p = make(n, 2, 4)  # type: ignore[operator]
    w = np.random.default_rng(0).gamma(1.0, size=n) if weighted else None
    fpr, tpr, _ = sk.roc_curve(y, p[:, 1], sample_weight=w, drop_intermediate=False)
    precision, recall, _ = sk.precision_recall_curve(y, p[:, 1], sample_weight=w)
    for limit in (0.05, 0.5, 0.8, 0.95):
        expected = [
            tpr[1.0 - fpr >= limit].max(), (1.0 - fpr)[tpr >= limit].max(), precision[:-1][recall[:-1] >= limit].max()
        ]  # fmt: skip
        np.testing.assert_allclose([one[1] for one in found(Scores(y, p, w), limit)], expected, rtol=1e-10)


def test_published_examples() -> None:
    """The outputs in the documentation of torchmetrics."""
    scores = Scores.of_scores([0, 1, 1, 1], [0.0, 0.5, 0.4, 0.1])
    assert value("specificity_at", scores, recall=0.5)[1] == 1.0
    assert value("recall_at", scores, specificity=0.5)[1] == 1.0
    precision = value("precision_at", Scores.of_scores([0, 1, 1, 0], [0.0, 0.5, 0.7, 0.8]), recall=0.5)[1]
    assert precision == pytest.approx(2 / 3)


def test_a_limit_that_is_reached_exactly_is_reached() -> None:
    """9 of 10 are 0.9, whichever way the double is written."""
    y, s = np.repeat([0, 1], 10), np.concatenate([np.arange(10.0), np.arange(10.0) + 0.5])
    scores = Scores.of_scores(y, s)
    for specificity in np.arange(0, 11) / 10:
        best = max(
            float((s[10:] >= t).mean()) for t in [*s, 99.0] if round(10 * (s[:10] < t).mean()) >= 10 * specificity
        )
        assert value("recall_at", scores, specificity=specificity)[1] == best
        best = max(
            float((s[:10] < t).mean()) for t in [*s, 99.0] if round(10 * (s[10:] >= t).mean()) >= 10 * specificity
        )
        assert value("specificity_at", scores, recall=specificity)[1] == best


def test_the_ends() -> None:
    y, p = softmax_problem(60, 2, 1)
    scores = Scores(y, p)
    assert value("recall_at", scores, specificity=0.0).tolist() == [1.0, 1.0]
    assert value("specificity_at", scores, recall=0.0).tolist() == [1.0, 1.0]
    all_alike = Scores(y, np.full((60, 2), 0.5))
    assert value("recall_at", all_alike, specificity=0.1).tolist() == [0.0, 0.0]
    assert value("specificity_at", all_alike, recall=0.1).tolist() == [0.0, 0.0]
    np.testing.assert_allclose(value("precision_at", all_alike)[1], y.mean())
