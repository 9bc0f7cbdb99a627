"""Costs of decisions: exact fractions, other metrics, the cheapest decision by trying all."""

from fractions import Fraction

import numpy as np
import pytest

from app.kernel.matrix.table import Table
from app.kernel.metrics.families.averages import error_rate
from app.kernel.metrics.families.decisions import cost_savings, expected_cost, minimum_cost, normalized_cost
from app.kernel.metrics.families.detection import net_benefit
from app.kernel.numerics.arrays import silently
from app.kernel.samples.scores import Scores
from tests.kernel.probability.problems import exact_tied_problem

COUNTS = np.array([[50, 7, 3], [4, 30, 6], [2, 1, 9]])
COSTS = ((0.0, 1.0, 4.0), (2.0, 0.5, 1.0), (10.0, 3.0, 0.0))


def test_by_the_definition_in_fractions() -> None:
    cells = [(int(COUNTS[i, j]), Fraction(COSTS[i][j])) for i in range(3) for j in range(3)]
    paid = sum((n * cost for n, cost in cells), Fraction(0))
    constant = min(sum((int(COUNTS[i].sum()) * Fraction(COSTS[i][j]) for i in range(3)), Fraction(0)) for j in range(3))
    table = Table(COUNTS)
    assert float(expected_cost(table, costs=COSTS)) == pytest.approx(float(paid / int(COUNTS.sum())), rel=1e-12)
    assert float(normalized_cost(table, costs=COSTS)) == pytest.approx(float(paid / constant), rel=1e-12)
    assert float(cost_savings(table, costs=COSTS)) == pytest.approx(1 - float(paid / constant), rel=1e-12)


def test_one_per_mistake_is_the_error_rate() -> None:
    table = Table(np.stack([COUNTS, 2 * COUNTS.T]))
    np.testing.assert_allclose(expected_cost(table), error_rate(table), rtol=1e-12)
    np.testing.assert_allclose(expected_cost(table, costs=((0, 1, 1), (1, 0, 1), (1, 1, 0))), error_rate(table))
    share = table.actual.max(axis=-1) / table.n
    np.testing.assert_allclose(normalized_cost(table), error_rate(table) / (1 - share), rtol=1e-12)


@pytest.mark.parametrize("threshold", [0.1, 0.25, 0.5, 0.8])
def test_costs_of_two_classes_are_net_benefit_turned_around(threshold: float) -> None:
    """Of treating none the net benefit is 0 and the cost the share of the class: the cost is the rest."""
    table = Table(np.array([[60, 15], [5, 20]]))
    costs = ((0.0, threshold / (1 - threshold)), (1.0, 0.0))
    with silently():
        benefit = float(net_benefit(table, threshold=threshold)[1])
    assert float(expected_cost(table, costs=costs)) == pytest.approx(0.25 - benefit, rel=1e-12)


def test_nothing_can_be_saved_where_a_constant_decision_is_free() -> None:
    with silently():
        for counts, costs in ((np.array([[5, 2], [0, 0]]), "zero_one"), (np.array([[5, 2], [1, 4]]), ((0, 3), (0, 1)))):
            assert np.isnan(normalized_cost(Table(counts), costs=costs))
            assert np.isnan(cost_savings(Table(counts), costs=costs))


@pytest.mark.parametrize(
    "costs", ["zero_one", COSTS, ((0, 1), (5, 1), (9, 1)), ((0, 2, 1, 1), (4, 0, 1, 3), (5, 5, 0, 2))]
)
def test_the_cheapest_decision_by_trying_all(costs: object) -> None:
    y, p, rows = exact_tied_problem(60, 3, 4)
    matrix = 1 - np.eye(3) if isinstance(costs, str) else np.array(costs)
    exact = [[Fraction(float(cost)) for cost in row] for row in matrix]
    paid = Fraction(0)
    for label, row in zip(y.tolist(), rows, strict=True):
        expected = [sum((row[k] * exact[k][j] for k in range(3)), Fraction(0)) for j in range(matrix.shape[1])]
        paid += exact[label][expected.index(min(expected))]
    assert float(minimum_cost(Scores(y, p), costs=costs)) == pytest.approx(float(paid / 60), rel=1e-12)
