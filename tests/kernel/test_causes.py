"""Causes of differences: Shapley values by brute force in fractions, and derivatives by moving counts."""

from collections.abc import Callable
from fractions import Fraction
from itertools import permutations
from math import factorial

import numpy as np
import pytest

from app.kernel.causes import Sensitivities, Split, numeric, of_gradient, of_rate, split
from app.kernel.matrix.table import Table
from app.kernel.metrics.families.agreement import cohen_kappa
from app.kernel.metrics.families.averages import accuracy, macro_f1
from app.kernel.metrics.proportion import ACCURACY, ConfusionCells, Proportion
from app.kernel.numerics.arrays import Array

Matrix = list[list[Fraction]]


def one_split(
    counts: Array, functional: Callable[[Table], Array], sensitivities: Sensitivities | None = None
) -> Split | None:
    (found,) = split(counts, [(functional, sensitivities)])
    return found


def _precision(of: int) -> Callable[[Table], Array]:
    def found(table: Table) -> Array:
        values: Array = table.tp[..., of] / table.predicted[..., of]
        return values

    return found


def _exact_precision(of: int) -> Callable[[Matrix], Fraction]:
    return lambda matrix: matrix[of][of] / sum(row[of] for row in matrix)


def _exact_macro_f1(matrix: Matrix) -> Fraction:
    size = len(matrix)
    parts = [2 * matrix[k][k] / (sum(matrix[k]) + sum(row[k] for row in matrix)) for k in range(size)]
    return sum(parts, Fraction(0)) / size


def _by_brute_force(counts: Array, value: Callable[[Matrix], Fraction]) -> list[Fraction]:
    """Means over all orders in which shares and rows go from the second matrix to the first."""
    matrices = [[[Fraction(int(cell)) for cell in row] for row in one] for one in counts]
    size = len(matrices[0])

    def at(sides: list[int]) -> Fraction:
        total = sum(map(sum, matrices[sides[0]]))
        mixed: Matrix = []
        for k in range(size):
            share, row = sum(matrices[sides[0]][k], Fraction(0)) / total, matrices[sides[k + 1]][k]
            mixed.append([share * cell / sum(row, Fraction(0)) for cell in row])
        return value(mixed)

    found = [Fraction(0)] * (size + 1)
    for order in permutations(range(size + 1)):
        sides = [1] * (size + 1)
        for factor in order:
            before = at(sides)
            sides[factor] = 0
            found[factor] += at(sides) - before
    return [one / factorial(size + 1) for one in found]


@pytest.mark.parametrize(
    ("size", "functional", "exact"),
    [
        (2, _precision(1), _exact_precision(1)),
        (3, _precision(0), _exact_precision(0)),
        (3, macro_f1.compute, _exact_macro_f1),
        (4, _precision(2), _exact_precision(2)),
    ],
)
def test_parts_are_the_shapley_values_of_brute_force(
    size: int, functional: Callable[[Table], Array], exact: Callable[[Matrix], Fraction]
) -> None:
    counts = np.random.default_rng(size).integers(1, 60, (2, size, size)).astype(float)
    found = one_split(counts, functional)
    assert found is not None
    assert found.rows == tuple((k,) for k in range(size))
    assert found.values == pytest.approx([float(one) for one in _by_brute_force(counts, exact)], abs=1e-15)
    values = functional(Table(counts))
    assert found.values.sum() == pytest.approx(values[0] - values[1], abs=1e-15)


def test_two_classes_by_hand() -> None:
    """Precision, where a class goes from 9 % to 4 %, its recall from 4/5 to 3/4, and false alarms stay 1/10."""
    before = [[819, 91], [18, 72]]
    after = [[864, 96], [10, 30]]
    found = one_split(np.array([after, before], float), _precision(1))
    assert found is not None
    shares, others, own = found.values
    assert shares == pytest.approx(((1 / 4 - 72 / 163) + (5 / 21 - 135 / 317)) / 2, abs=1e-15)
    assert shares == pytest.approx(-1647125 / 8680728, abs=1e-15)
    assert own == pytest.approx(-120467 / 8680728, abs=1e-15)
    assert others == pytest.approx(0.0, abs=1e-15)
    assert found.values.sum() == pytest.approx(-697 / 3423, abs=1e-15)


def test_of_the_same_class_counts_the_shares_are_exactly_no_cause() -> None:
    counts = np.array([[[30.0, 3, 7], [5, 11, 1], [2, 2, 9]], [[29.0, 4, 7], [6, 8, 3], [1, 3, 9]]])
    found = one_split(counts, macro_f1.compute)
    assert found is not None
    assert found.values[0] == 0.0


def test_influences_are_what_counts_change() -> None:
    counts = np.random.default_rng(4).integers(5, 60, (2, 3, 3)).astype(float)
    counts[1, 0, 2] = 0.0
    found = one_split(counts, macro_f1.compute)
    assert found is not None
    assert found.influences is not None
    step = 1e-4
    for run, row, column in np.argwhere(counts > 0):
        moved = np.repeat(counts[None], 2, axis=0)
        moved[0, run, row, column] += step
        moved[1, run, row, column] -= step
        up, down = (_parts(one_split(one, macro_f1.compute)) for one in moved)
        assert found.influences[:, run, row, column] == pytest.approx((up - down) / (2 * step), abs=1e-6)
    assert (found.influences * counts).sum(axis=(-2, -1)) == pytest.approx(0.0, abs=1e-10)


def _parts(found: Split | None) -> Array:
    assert found is not None
    return found.values


def test_closed_forms_of_sensitivities_are_the_derivatives() -> None:
    matrices = np.random.default_rng(5).dirichlet(np.ones(16), 4).reshape(4, 4, 4)
    precision = Proportion(ConfusionCells.TP, ConfusionCells.PREDICTED)
    rate = precision.at(4, 2)
    assert of_rate(rate)(matrices) == pytest.approx(numeric([_precision(2)])(matrices)[0], abs=1e-9)
    for metric in (macro_f1, cohen_kappa):
        gradient = metric.card.inference.gradient
        assert gradient is not None
        slopes, found = numeric([metric.compute])(matrices)[0], of_gradient(gradient)(matrices)
        # Gradients in shares are known up to the same number in all cells.
        rest = found - slopes
        assert rest / matrices == pytest.approx((rest / matrices)[:, :1, :1] + np.zeros((4, 4, 4)), abs=1e-6)


def test_beyond_twelve_classes_the_rows_that_matter_least_are_one() -> None:
    random = np.random.default_rng(6)
    counts = random.integers(1, 30, (2, 15, 15)).astype(float)
    counts[1, 10:] = counts[0, 10:]
    found = one_split(counts, _precision(3), of_rate(Proportion(ConfusionCells.TP, ConfusionCells.PREDICTED).at(15, 3)))
    assert found is not None
    assert found.influences is not None
    assert [len(one) for one in found.rows] == [1] * 11 + [4]
    assert set(found.rows[-1]) <= {*range(10, 15)}
    assert found.values[-1] == pytest.approx(0.0, abs=1e-15)
    values = _precision(3)(Table(counts))
    assert found.values.sum() == pytest.approx(values[0] - values[1], abs=1e-14)


def test_rows_of_rare_classes_matter_as_little_as_their_share() -> None:
    """Of accuracy a row matters by its share times what its recall moves by: three rare classes go from all wrong to
    all right, eleven frequent ones from .8 to .9.
    """
    sizes = np.array([10.0] * 3 + [1000.0] * 11)
    recalls = np.array([[1.0] * 3 + [0.9] * 11, [0.0] * 3 + [0.8] * 11])
    wrong = (sizes * (1.0 - recalls) / 13)[..., None] * (1.0 - np.eye(14))
    counts = wrong + (sizes * recalls)[..., None] * np.eye(14)
    found = one_split(counts, accuracy.compute, of_rate(ACCURACY))
    assert found is not None
    assert found.rows[-1] == (0, 1, 2)


def test_a_class_that_one_matrix_lacks_leaves_no_parts_and_one_that_both_lack_is_no_factor() -> None:
    counts = np.array([[[30.0, 3, 0], [5, 11, 0], [0, 0, 0]], [[29.0, 4, 0], [6, 8, 0], [0, 0, 0]]])
    found = one_split(counts, _precision(0))
    assert found is not None
    assert found.rows == ((0,), (1,))
    counts[1, 2, 2] = 5.0
    assert np.isnan(_parts(one_split(counts, _precision(0)))).any()


def test_too_many_classes_for_mixtures_are_not_split() -> None:
    assert one_split(np.ones((2, 100, 100)), macro_f1.compute) is None
    assert (
        one_split(
            np.ones((2, 200, 200)),
            _precision(0),
            of_rate(Proportion(ConfusionCells.TP, ConfusionCells.PREDICTED).at(200, 0)),
        )
        is None
    )


def test_several_values_are_split_as_each_alone() -> None:
    counts = np.random.default_rng(8).integers(1, 60, (2, 3, 3)).astype(float)
    rate = of_rate(Proportion(ConfusionCells.TP, ConfusionCells.PREDICTED).at(3, 1))
    values = [(macro_f1.compute, None), (_precision(1), rate), (_precision(0), None)]
    for together, (functional, closed) in zip(split(counts, values), values, strict=True):
        alone = one_split(counts, functional, closed)
        assert together is not None
        assert alone is not None
        assert together.values == pytest.approx(alone.values, abs=1e-15)
        assert together.influences == pytest.approx(alone.influences, abs=1e-15)


@pytest.mark.slow
def test_limits_hold_the_parts_of_unpaired_and_paired_runs() -> None:
    """Coverage of normal limits by the influences, 3 classes of 2,000 samples."""
    random = np.random.default_rng(7)
    shares = np.array([[0.6, 0.3, 0.1], [0.5, 0.3, 0.2]])
    rows = np.array(
        [[[0.85, 0.1, 0.05], [0.1, 0.8, 0.1], [0.1, 0.2, 0.7]], [[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]]]
    )
    truth = _parts(one_split(shares[..., None] * rows, macro_f1.compute))
    held, replicates = np.zeros(4), 600
    for _ in range(replicates):
        counts = np.stack(
            [
                random.multinomial(2000, (s[:, None] * r).ravel()).reshape(3, 3)
                for s, r in zip(shares, rows, strict=True)
            ]
        ).astype(float)
        found = one_split(counts, macro_f1.compute)
        assert found is not None
        assert found.influences is not None
        error = np.sqrt((counts * found.influences**2).sum(axis=(-3, -2, -1)))
        held += np.abs(found.values - truth) <= 1.959964 * error
    assert held / replicates == pytest.approx(0.95, abs=0.035)
