"""What the decisions cost that cost least by the probabilities."""

from dataclasses import replace

import numpy as np

from app.kernel.metrics.card import Inputs, Orientation, Prevalence, Scope, metric
from app.kernel.metrics.conditions import NO_WEIGHT, NOT_PROBABILITIES
from app.kernel.metrics.costs import COSTS, Costs, matrix_of_costs
from app.kernel.metrics.parameters import MatrixOf
from app.kernel.numerics.arrays import Array, ratio, total
from app.kernel.samples.influence import Parameters, mean_of
from app.kernel.samples.losses import Codes
from app.kernel.samples.scores import Scores

_ANY_COSTS = replace(
    COSTS,
    description=f"{COSTS.description}; columns are what can be decided, the classes or anything else",
    matrix=MatrixOf.COSTS_OF_ANYTHING,
)


def cheapest_decisions(s: Scores, costs: Array) -> Codes:
    """For each sample (n) the decision whose expected cost by its probabilities is lowest, the first of equals.

    Args:
        s: Probabilities.
        costs: (K, M) of actual classes and decisions.
    """
    return np.asarray((s.probabilities @ costs).argmin(axis=1))


def _paid(s: Scores, parameters: Parameters) -> Array:
    costs = matrix_of_costs(parameters["costs"], s.n_classes)
    paid: Array = costs[s.y, cheapest_decisions(s, costs)]
    return paid


@metric(
    name="minimum-cost decision cost",
    scope=Scope.OVERALL,
    inputs=Inputs.PROBABILITIES,
    prevalence=Prevalence.SENSITIVE,
    formula=r"\frac{1}{n} \sum_i c_{y_i d_i}, \quad d_i = \arg\min_j \sum_k p_{ik} c_{kj}",
    sentence="Mean cost where every sample gets the decision whose expected cost by its probabilities is lowest.",
    range=(0.0, None),
    ideal=0.0,
    orientation=Orientation.LOWER,
    parameters=(_ANY_COSTS,),
    undefined=(NOT_PROBABILITIES, NO_WEIGHT),
    references=("elkan2001",),
    on_request=True,
    # Products of matrices are rounded by how many rows there are, and so is what costs as much as something else.
    influence=mean_of(_paid, is_mean=False),
)
def minimum_cost(s: Scores, costs: Costs = "zero_one") -> Array:
    if not s.are_probabilities:
        return np.full(s.n.shape, np.nan)
    return ratio(total(s.sums_of(_paid(s, {"costs": costs}))), s.n)
