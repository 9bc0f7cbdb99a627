"""Every class weight of a grid on the simplex: the objective as a surface, and the best trade-offs between recalls.

A point with weights w decides for the class with the highest weight times probability. What no other point of the grid
beats in one recall without losing in another is on the front of Pareto.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from app.kernel.decide.class_weights import confusion, decide
from app.kernel.decide.rules import Constraint, evaluate, feasible
from app.kernel.matrix.table import Table
from app.kernel.metrics.expression import Expression
from app.kernel.numerics.arrays import Array, Mask, silently
from app.kernel.samples.scores import Scores

# Recalls that are nearer than this are equal, reached by other sums.
_EQUAL = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class WeightSurface:
    """P rules.

    Attributes:
        weights: (P, K), positive, with sum 1, in lexicographic order.
        objectives: (P), NaN where there is no value.
        feasible: (P), are all constraints met?
        recalls: (P, K), NaN for a class without samples.
        front: (P), is no point better in one recall and worse in none?
        best: The feasible point with the best objective, the first of equal ones; None where there is none.
    """

    weights: Array
    objectives: Array
    feasible: Mask
    recalls: Array
    front: Mask
    best: int | None


def points_of(n_classes: int, steps: int) -> int:
    """How many points the grid of so many steps has: C(steps - 1, K - 1)."""
    return comb(steps - 1, n_classes - 1)


def simplex(n_classes: int, steps: int) -> Array:
    """Weights (P, K) that are positive multiples of 1 / steps with sum 1, in lexicographic order.

    Raises:
        ValueError: there are fewer steps than classes, so that some class would have no weight.
    """
    if steps < n_classes:
        raise ValueError(f"{n_classes} classes need as many steps, got {steps}")
    cuts = np.array(list(combinations(range(1, steps), n_classes - 1)), dtype=np.intp)
    ends = np.concatenate([np.zeros((len(cuts), 1)), cuts, np.full((len(cuts), 1), steps)], axis=1)
    weights: Array = np.diff(ends, axis=1) / steps
    return weights


def weight_surface(
    scores: Scores,
    objective: Expression,
    *,
    steps: int,
    constraints: Sequence[Constraint] = (),
    maximize: bool = True,
) -> WeightSurface:
    """All rules of a grid.

    Args:
        scores: Probabilities of two classes or more, weights (n) or none.
        objective: One value per matrix.
        steps: Weights are multiples of 1 / steps.
        constraints: What the best point has to meet.
        maximize: False when smaller is better.
    """
    weights = simplex(scores.n_classes, steps)
    counts = np.stack([confusion(scores, decide(scores, row)) for row in weights])
    with silently():
        objectives, recalls = evaluate(objective, counts), Table(counts).recall
    allowed = feasible(constraints, counts)
    rated = np.where(allowed & ~np.isnan(objectives), objectives if maximize else -objectives, -np.inf)
    place = int(rated.argmax())
    best = None if rated[place] == -np.inf else place
    return WeightSurface(weights, objectives, allowed, recalls, pareto_front(recalls), best)


def pareto_front(values: Array) -> Mask:
    """Which points (P, K) no other one beats in one value without losing in another; equal points stay together.

    What has no value in any point is left out of account.
    """
    known = values[:, ~np.isnan(values).all(axis=0)]
    distinct, members = np.unique(np.round(known / _EQUAL) * _EQUAL, axis=0, return_inverse=True)
    # Whatever beats a point has a larger sum.
    order = np.argsort(-distinct.sum(axis=1), kind="stable")
    front = np.zeros(len(distinct), dtype=bool)
    best = np.empty((0, distinct.shape[1]))
    for place in order:
        if not (best >= distinct[place]).all(axis=1).any():
            front[place] = True
            best = np.concatenate([best, distinct[place][None]])
    return front[members.ravel()]
