"""What samples with labels add to the sampling error; witnesses are leaving each out, derivatives by steps, classes."""

import numpy as np
import pytest

from app.domain.expressions.expressions import parse
from app.kernel.matrix.table import LabelTable, Table, additive_variance, stack
from app.kernel.metrics.card import Inputs, Mean, Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import compute
from app.kernel.metrics.families.averages import macro_f1
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.samples.label_units import LabelPairs
from app.kernel.uncertainty.closed_forms import Headlines
from app.kernel.uncertainty.designs import Independent
from app.kernel.uncertainty.influence import LabelInfluences, cell_derivatives
from app.kernel.uncertainty.units import LabelUnits
from tests.bank import each

LABELS = ["a", "b", "c", "d", "e"]
SMOOTH = [
    "macro_f1",
    "balanced_accuracy",
    "g_mean",
    "h_mean",
    "micro_f_beta(beta=2)",
    "weighted_f1",
    "macro_precision",
    "gps_upm",
    "gps(recall@*, precision@b)",
    "mean(f1@a, mcc_ovr@c)",
]


def problem(size: int, seed: int = 0) -> tuple[Mask, Mask]:
    """Labels that go together, answered right most of the time."""
    random = np.random.default_rng(seed)
    common = random.random((size, 1)) < 0.4
    truth = random.random((size, len(LABELS))) < np.where(common, 0.6, 0.2)
    return truth, truth ^ (random.random(truth.shape) < 0.2)


def influences_of(truth: Mask, predicted: Mask) -> LabelInfluences:
    units = LabelUnits(truth, predicted)
    return LabelInfluences(units.subject(), units.n_units, truth.shape[1], units.pairs, units.designed(None, None))


def value_of(text: str, truth: Mask, predicted: Mask) -> float:
    expression = parse(text, LABELS, None, inputs={Inputs.MATRIX}, task=Task.MULTILABEL)
    return float(compute(expression, LabelUnits(truth, predicted).subject()))


def test_pairs_count_and_sum_as_loops_do() -> None:
    for labels in (1, 3, 4, 5, 8, 13):
        random = np.random.default_rng(labels)
        truth, predicted = (random.random((2, 37, labels)) < 0.4)[:]
        pairs, values = LabelPairs(truth, predicted), random.normal(size=(labels, 4))
        cell = 2 * truth + predicted
        assert pairs.counts().tolist() == [np.bincount(column, minlength=4).tolist() for column in cell.T]
        assert pairs.sums(values) == pytest.approx(values[np.arange(labels), cell].sum(axis=1), rel=1e-12)


@each("text", SMOOTH)
def test_leaving_samples_out_moves_values_as_influences_say(text: str) -> None:
    """The jackknife: n - 1 times the move is the influence, up to terms of the second order."""
    truth, predicted = problem(600)
    expression = parse(text, LABELS, None, inputs={Inputs.MATRIX}, task=Task.MULTILABEL)
    found = influences_of(truth, predicted).of_tables(expression)
    assert found is not None
    whole = value_of(text, truth, predicted)
    assert found.value == pytest.approx(whole, rel=1e-12)
    chosen = np.random.default_rng(1).choice(600, 40, replace=False)
    left_out = [whole - value_of(text, np.delete(truth, one, 0), np.delete(predicted, one, 0)) for one in chosen]
    scale = np.abs(found.influence).max()
    assert found.influence[chosen] == pytest.approx(left_out, abs=0.02 * scale)


@pytest.mark.parametrize("key", ["macro_f1", "balanced_accuracy", "g_mean", "h_mean"])
def test_derivatives_by_steps_are_those_of_the_cards(key: str) -> None:
    influences = influences_of(*problem(300, 2))
    metric = catalogue().of_matrices.by_name[key]
    expression = parse(key, LABELS, None, inputs={Inputs.MATRIX}, task=Task.MULTILABEL)
    by_steps = cell_derivatives(lambda table: metric.compute(table), influences.table)
    declared = influences.of_tables(expression)
    assert by_steps is not None
    assert declared is not None
    assert isinstance(influences.pairs, LabelPairs)
    summed = influences.pairs.sums(by_steps)
    factor = np.sqrt(300 / 299)
    assert factor * (summed - summed.mean()) == pytest.approx(
        declared.influence, abs=1e-6 * np.abs(declared.influence).max()
    )


def test_what_has_a_corner_has_no_derivatives() -> None:
    """The smaller of recall and precision of a label for which both are the same."""
    table = LabelTable.of(np.array([[[50.0, 10.0], [10.0, 30.0]], [[60.0, 5.0], [5.0, 30.0]]]))
    metric = catalogue().of_matrices.by_name["class_balance_accuracy"]
    assert cell_derivatives(lambda other: metric.compute(other), table) is None
    apart = LabelTable.of(np.array([[[50.0, 20.0], [10.0, 20.0]], [[60.0, 5.0], [15.0, 20.0]]]))
    assert cell_derivatives(lambda other: metric.compute(other), apart) is not None


def one_label_each(size: int = 400) -> tuple[Array, Mask, Mask]:
    """Samples with one label each and one prediction each: a matrix of classes, and the same as labels."""
    random = np.random.default_rng(5)
    y = random.choice(len(LABELS), size, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    p = np.where(random.random(size) < 0.7, y, random.integers(0, len(LABELS), size))
    matrix = np.zeros((len(LABELS), len(LABELS)))
    np.add.at(matrix, (y, p), 1.0)
    members = np.eye(len(LABELS), dtype=bool)
    return matrix, members[y], members[p]


def test_labels_that_exclude_each_other_have_the_limits_of_classes() -> None:
    matrix, truth, predicted = one_label_each()
    expected = {one.key: (one.low, one.high) for one in Headlines(Independent(Table(matrix))).overall[0]}
    found = influences_of(truth, predicted).recall_means(0.95)
    for mean, key in ((Mean.ARITHMETIC, "balanced_accuracy"), (Mean.GEOMETRIC, "g_mean"), (Mean.HARMONIC, "h_mean")):
        assert found[mean] == pytest.approx(expected[key], rel=1e-12)


def test_their_variances_are_those_of_classes() -> None:
    matrix, truth, predicted = one_label_each()
    gradient = macro_f1.card.inference.gradient
    assert gradient is not None
    expected = additive_variance(Table(matrix), stack([gradient(Table(matrix))]))
    linear = influences_of(truth, predicted).of_tables(
        parse("macro_f1", LABELS, None, inputs={Inputs.MATRIX}, task=Task.MULTILABEL)
    )
    assert linear is not None
    assert float(linear.influence @ linear.influence) == pytest.approx(float(expected[0]) * 400 / 399, rel=1e-10)


def test_labels_that_go_together_have_wider_limits_of_means() -> None:
    """Five copies of one label say no more than the label alone."""
    truth, predicted = (np.repeat(part[:, :1], 5, axis=1) for part in problem(1000))
    alone = influences_of(truth[:, :1], predicted[:, :1]).recall_means(0.95)
    assert influences_of(truth, predicted).recall_means(0.95)[Mean.HARMONIC] == pytest.approx(
        alone[Mean.HARMONIC], abs=0.005
    )


def test_a_label_that_is_always_missed_is_uncertain_all_the_same() -> None:
    truth, predicted = problem(200)
    truth[:, 4] = np.arange(200) < 6
    predicted[:, 4] = False
    influences = influences_of(truth, predicted)
    expression = parse("macro_f1", LABELS, None, inputs={Inputs.MATRIX}, task=Task.MULTILABEL)
    (move,) = influences.edge_moves(expression, 0.95)
    assert 0.02 < move < 0.2
