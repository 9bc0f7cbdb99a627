"""What decisions cost: any cost for every pair of actual and decided class."""

from functools import partial

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import OF_DECISIONS, Orientation, Prevalence, Scope, metric
from app.kernel.metrics.conditions import NO_SAMPLES, ONE_ACTUAL_CLASS
from app.kernel.metrics.costs import COSTS, Costs, matrix_of_costs, paid_in_all, relative_cost
from app.kernel.numerics.arrays import Array

_cost = partial(
    metric,
    scope=Scope.OVERALL,
    prevalence=Prevalence.SENSITIVE,
    range=(0.0, None),
    ideal=0.0,
    orientation=Orientation.LOWER,
    parameters=(COSTS,),
    also=OF_DECISIONS,
    on_request=True,
)


@_cost(
    name="expected cost",
    formula=r"\frac{1}{n} \sum_{ij} n_{ij} c_{ij}",
    sentence="Mean cost of the decisions; without costs, the share of mistakes.",
    undefined=(NO_SAMPLES,),
    references=("elkan2001",),
)
def expected_cost(t: Table, costs: Costs = "zero_one") -> Array:
    return paid_in_all(t.counts, matrix_of_costs(costs, t.n_classes)) / t.n


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
    return relative_cost(t.counts, t.actual, matrix_of_costs(costs, t.n_classes))
