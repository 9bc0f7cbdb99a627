"""All metrics at once, and why some have no value."""

import numpy as np
import pytest

from app.kernel.matrix.table import Table, at_equal_prevalence
from app.kernel.metrics.card import DIVISION_BY_ZERO, INFINITE, Explainer, Inputs, Scope, evaluate_table
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import silently
from tests.kernel.closeness import value_of
from tests.kernel.matrices import matrices

OF_A_MATRIX = [metric for metric in catalogue().of_matrices.metrics if metric.card.inputs is Inputs.MATRIX]
CLASS = [metric for metric in OF_A_MATRIX if metric.card.scope is Scope.CLASS]
OVERALL = [metric for metric in OF_A_MATRIX if metric.card.scope is Scope.OVERALL]


def test_rows_are_the_metrics_in_order() -> None:
    counts = matrices()["dense-3-0"]
    table = Table(counts)
    per_class, overall = evaluate_table(table, CLASS), evaluate_table(table, OVERALL)
    assert per_class.shape == (len(CLASS), 3)
    assert overall.shape == (len(OVERALL),)
    for row, metric in zip(per_class, CLASS, strict=True):
        assert (row == value_of(metric, counts)).all()
    for value, metric in zip(overall, OVERALL, strict=True):
        np.testing.assert_array_equal(value, value_of(metric, counts))


def test_a_shared_table_gives_the_same() -> None:
    table = Table(matrices()["accurate-5-0"])
    again = [evaluate_table(table, OVERALL) for _ in range(2)]
    assert (again[0] == again[1]).all()
    assert (evaluate_table(table, CLASS) == evaluate_table(Table(table.counts), CLASS)).all()


@pytest.mark.parametrize("batch", [(7,), (2, 3), (700,), (20, 40)])
def test_values_of_a_batch_are_those_of_each_matrix(batch: tuple[int, ...]) -> None:
    counts = np.random.default_rng(4).integers(0, 30, (*batch, 10, 10))
    table = Table(counts)
    per_class, overall = evaluate_table(table, CLASS), evaluate_table(table, OVERALL)
    assert per_class.shape == (len(CLASS), *batch, 10)
    assert overall.shape == (len(OVERALL), *batch)
    for where in (tuple(0 for _ in batch), tuple(-1 for _ in batch)):
        one = Table(counts[where])
        alone = evaluate_table(one, CLASS), evaluate_table(one, OVERALL)
        assert np.moveaxis(per_class, 0, len(batch))[where] == pytest.approx(
            alone[0], rel=1e-12, abs=1e-14, nan_ok=True
        )
        assert np.moveaxis(overall, 0, len(batch))[where] == pytest.approx(alone[1], rel=1e-12, abs=1e-14, nan_ok=True)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (1, 1), (4, 3, 2)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"shape \(..., K, K\)"):
        Table(np.ones(shape))


def test_a_gap_names_reason_and_classes() -> None:
    """Class 1 is never predicted, class 2 does not occur."""
    counts = np.array([[5, 0, 1], [4, 0, 1], [0, 0, 0]])
    metrics = catalogue().of_matrices.by_name
    explainer = Explainer(Table(counts))
    precision = explainer.explain(metrics["precision"], 1, float("nan"))
    assert precision.condition.code == "never_predicted"
    assert precision.culprits == (1,)
    macro = explainer.explain(metrics["macro_precision"], None, float("nan"))
    assert (macro.condition.code, macro.class_index, macro.culprits) == ("never_predicted", None, (1,))
    assert macro.condition.reason.format(label="b") == "class b is never predicted"
    balanced = explainer.explain(metrics["balanced_accuracy"], None, float("nan"))
    assert (balanced.condition.code, balanced.culprits) == ("no_actual_samples", (2,))


def test_gaps_of_a_report_are_its_missing_values() -> None:
    counts = matrices()["constant-3-0"]
    table = Table(counts)
    explainer = Explainer(table)
    for group in (CLASS, OVERALL):
        values = evaluate_table(table, group)
        gaps = list(explainer.gaps(group, values))
        assert len(gaps) == (~np.isfinite(values)).sum() > 0
        missing = np.argwhere(~np.isfinite(values))
        for gap, (position, *k) in zip(gaps, missing, strict=True):
            assert gap.metric is group[position]
            assert gap.class_index == (k[0] if k else None)


def test_infinite_values_are_told_from_undefined_ones() -> None:
    """No false alarm of class 0: LR+ is infinite there."""
    table = Table(np.array([[8, 2], [0, 10]]))
    metric = catalogue().of_matrices.by_name["likelihood_ratio_positive"]
    values = evaluate_table(table, [metric])
    assert values[0, 0] == np.inf
    (gap,) = Explainer(table).gaps([metric], values)
    assert gap.condition.code == "infinite"


def test_unforeseen_gaps_still_have_a_reason() -> None:
    """With parameters that no condition speaks of."""
    explainer = Explainer(Table(np.array([[8, 2], [1, 10]])))
    metric = catalogue().of_matrices.by_name["recall"]
    assert explainer.explain(metric, 0, float("nan")).condition is DIVISION_BY_ZERO
    assert explainer.explain(metric, 0, float("inf")).condition is INFINITE


def test_no_value_is_a_negative_zero() -> None:
    """JSON would show it as -0.0."""
    for counts in matrices().values():
        for metric in OF_A_MATRIX:
            values = np.atleast_1d(value_of(metric, counts))
            assert not np.signbit(values[values == 0]).any(), metric.key


def test_equal_prevalence_keeps_the_samples_and_evens_the_rows() -> None:
    counts = matrices()["dense-5-0"].astype(np.float64)
    even = at_equal_prevalence(counts)
    assert even.sum() == pytest.approx(counts.sum(), rel=1e-14)
    assert even.sum(axis=1) == pytest.approx(np.full(5, counts.sum() / 5), rel=1e-14)
    with silently():
        assert np.isnan(at_equal_prevalence(matrices()["empty_row-5-0"].astype(np.float64))).all()
