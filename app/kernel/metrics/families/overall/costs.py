"""What decisions cost: any cost for every pair of actual and decided class."""

from functools import partial

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Orientation, Prevalence, Scope, metric
from app.kernel.metrics.conditions import NO_SAMPLES, ONE_ACTUAL_CLASS
from app.kernel.metrics.costs import COSTS, Costs, matrix_of_costs
from app.kernel.numerics.arrays import Array

_cost = partial(
    metric,
    scope=Scope.OVERALL,
    prevalence=Prevalence.SENSITIVE,
    range=(0.0, None),
    ideal=0.0,
    orientation=Orientation.LOWER,
    parameters=(COSTS,),
    on_request=True,
)


def _summed(t: Table, costs: Costs) -> Array:
    return np.asarray(np.sum(t.counts * matrix_of_costs(costs, t.n_classes), axis=(-2, -1)))


def _of_best_constant(t: Table, costs: Costs) -> Array:
    return np.asarray(np.min(t.actual @ matrix_of_costs(costs, t.n_classes), axis=-1))


@_cost(
    name="expected cost",
    formula=r"\frac{1}{n} \sum_{ij} n_{ij} c_{ij}",
    sentence="Mean cost of the decisions; without costs, the share of mistakes.",
    undefined=(NO_SAMPLES,),
    references=("elkan2001",),
)
def expected_cost(t: Table, costs: Costs = "zero_one") -> Array:
    return _summed(t, costs) / t.n


@_cost(
    name="normalised cost",
    formula=r"\frac{\sum_{ij} n_{ij} c_{ij}}{\min_j \sum_i n_{i\cdot} c_{ij}}",
    sentence="Cost of the decisions as a share of what it costs to decide always for the one class that is cheapest then; 1 and more is no use.",
    undefined=(NO_SAMPLES, ONE_ACTUAL_CLASS),
    references=("drummond2006",),
)
def normalized_cost(t: Table, costs: Costs = "zero_one") -> Array:
    return _relative(t, costs)


@_cost(
    name="cost savings",
    formula=r"1 - \frac{\sum_{ij} n_{ij} c_{ij}}{\min_j \sum_i n_{i\cdot} c_{ij}}",
    sentence="Share of the cost of the best constant decision that is saved; 0 and less is no use.",
    range=(None, 1.0),
    ideal=1.0,
    orientation=Orientation.HIGHER,
    undefined=(NO_SAMPLES, ONE_ACTUAL_CLASS),
    references=("drummond2006",),
)
def cost_savings(t: Table, costs: Costs = "zero_one") -> Array:
    return 1.0 - _relative(t, costs)


def _relative(t: Table, costs: Costs) -> Array:
    constant = _of_best_constant(t, costs)
    # Where a constant decision costs nothing nothing can be saved, however much the decisions cost.
    return _summed(t, costs) / np.where(constant > 0.0, constant, np.nan)
