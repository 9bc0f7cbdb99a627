"""Metrics of probabilities: the order of samples, their weights, and rankings read off one order of both classes."""

import numpy as np
import pytest

from app.domain.inputs.classified import decide
from app.kernel.metrics.card import Metric
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.scores import Scores
from tests.bank import each
from tests.kernel.probability.problems import Codes, softmax_problem, tied_problem

METRICS = catalogue().of_probabilities.metrics
METRIC = each("metric", METRICS, ids=lambda metric: metric.key)
PROBLEMS = {
    (classes, kind): make(120, classes, classes)
    for classes in (2, 3, 5)
    for kind, make in (("distinct", softmax_problem), ("tied", tied_problem))
}
# The curves of the authors' package are defined for plain samples only.
NO_WEIGHTS = {"au_mcp_trapezoid", "au_imcp_trapezoid", "roc_auc_standard_error"}


def compute(metric: Metric[Scores], y: Codes, p: Array, weights: Array | None = None) -> Array:
    """The value on arrays that nobody may write to."""
    y, p = y.copy(), p.copy()
    y.flags.writeable = p.flags.writeable = False
    with silently():
        return metric.compute(Scores(y, p, weights))


@METRIC
@each("problem", PROBLEMS, ids=str)
def test_the_order_of_the_samples_is_nothing(metric: Metric[Scores], problem: tuple[int, str]) -> None:
    y, p = PROBLEMS[problem]
    shuffled = np.random.default_rng(0).permutation(y.size)
    np.testing.assert_allclose(compute(metric, y[shuffled], p[shuffled]), compute(metric, y, p), rtol=1e-12, atol=1e-14)


@METRIC
@each("problem", PROBLEMS, ids=str)
def test_weights_count_as_replication(metric: Metric[Scores], problem: tuple[int, str]) -> None:
    """Also with weights of 0, which are samples that are not there."""
    if metric.key in NO_WEIGHTS:
        return
    y, p = PROBLEMS[problem]
    often = np.random.default_rng(1).integers(0, 4, y.size)
    weighted = compute(metric, y, p, often.astype(float))
    plain = compute(metric, np.repeat(y, often), np.repeat(p, often, axis=0))
    np.testing.assert_allclose(weighted, plain, rtol=1e-11, atol=1e-14)


def test_constant_scores_have_the_values_of_chance() -> None:
    scores = Scores(np.array([0, 1, 1, 0, 1]), np.full((5, 2), 0.5))
    by_name = {metric.key: metric.compute(scores) for metric in METRICS if metric.key != "au_imcp_trapezoid"}
    for key in ("roc_auc", "partial_roc_auc", "equal_error_rate"):
        np.testing.assert_allclose(by_name[key], 0.5)
    for key in ("ks_statistic", "roc_gini", "h_measure"):
        np.testing.assert_allclose(by_name[key], 0.0, atol=1e-15)
    np.testing.assert_allclose(by_name["average_precision"], [0.4, 0.6])
    assert by_name["roc_auc_ovo_macro"] == 0.5


@pytest.mark.parametrize(
    ("y", "p", "weights"),
    [
        ([0, 2], [[0.5, 0.5], [0.5, 0.5]], None),
        ([0, -1], [[0.5, 0.5], [0.5, 0.5]], None),
        ([0], [[0.5, 0.5], [0.5, 0.5]], None),
        ([], np.empty((0, 2)), None),
        ([0, 0], [[1.0], [1.0]], None),
        ([0, 0], [0.5, 0.5], None),
        ([0, 1], [[0.5, 0.5], [0.5, 0.5]], [1.0]),
    ],
)
def test_shapes_that_do_not_fit_are_refused(y: list[int], p: object, weights: object) -> None:
    with pytest.raises(ValueError, match=r"need|must"):
        Scores(y, p, weights)  # type: ignore[arg-type]


def test_shared_tops_are_counted_and_go_to_the_first_class() -> None:
    p = np.array([[0.4, 0.4, 0.2], [0.2, 0.4, 0.4], [0.5, 0.3, 0.2], [1 / 3, 1 / 3, 1 / 3]])
    scores = Scores([1, 1, 0, 2], p)
    assert scores.predicted.tolist() == [0, 1, 0, 0]
    codes, ties = decide(p)
    assert (codes.tolist(), ties) == (scores.predicted.tolist(), 3)
    assert scores.right.tolist() == [False, True, True, False]
    assert Scores([0, 1], [[0.5, 0.5], [0.5, 0.5]]).predicted.tolist() == [0, 0]
