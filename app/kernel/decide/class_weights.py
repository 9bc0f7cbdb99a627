"""Class weights for argmax of weight times probability that are best for any metric expression, and grids of them.

The grid on the simplex gives the objective as a surface and the best trade-offs between recalls. The Pareto front holds
the points that no other point beats in one recall without losing in another.
"""

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from app.kernel.decide.rules import CountsOf, FoundRule, NoFeasibleRule, Wanted, search_again
from app.kernel.matrix.table import Table, confusion_counts
from app.kernel.numerics.arrays import Array, Mask, silently
from app.kernel.samples.rankings import Positions
from app.kernel.samples.scores import Codes, Scores

# Candidate weights of each class in each sweep.
_WEIGHTS_TRIED = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightRule(FoundRule[Array]):
    """Rule that predicts the class with the highest weight times probability, ties to the lowest index. Weights (K) are
    scaled to a geometric mean of 1.
    """

    weights: Array


def decide(scores: Scores, weights: Array) -> Codes:
    """Predicted classes under class weights (K,)."""
    codes: Codes = np.argmax(scores.columns * weights[:, None], axis=0)
    return codes


def confusion(scores: Scores, predicted: Codes, inside: Mask | None = None) -> Array:
    """Confusion matrix (K, K), rows actual, with the weights (n,) of some samples (n) or of all."""
    y, weights = scores.y, scores.weights
    if inside is not None:
        y, predicted, weights = y[inside], predicted[inside], None if weights is None else weights[inside]
    return confusion_counts(y, predicted, scores.n_classes, weights).astype(np.float64)


def search_weights(scores: Scores, wanted: Wanted, *, starts: int = 8, sweeps: int = 20) -> WeightRule:
    """Best class weights for an expression, for argmax of weight times probability.

    Coordinate search: with the weights of the others fixed, each sample changes sides at one value of the weight of a
    class, so all rules along that line are matrices of one batch. Sweeps continue until none improves, from equal
    weights, from inverse prevalences and from random starts. The search is local; the tests compare it with exhaustive
    search on small cases.

    Args:
        scores: Any number of classes, weights (n,) or none.
        wanted: What is searched for.
        starts: Number of starts, at least one.
        sweeps: Most sweeps over the classes from each start.

    Raises:
        NoFeasibleRule: none was found.
    """
    search, rng = _WeightSearch(scores, wanted), np.random.default_rng(wanted.seed)
    best = search.run(rng, starts, sweeps)
    values = search.values(best)

    def on(times: Array) -> _WeightSearch:
        return _WeightSearch(scores.with_weights(scores.each * times), wanted)

    def found_in(times: Array) -> tuple[Array, Array]:
        there = on(times)
        found = there.run(rng, min(starts, 2), sweeps)
        return found, there.values(found)

    def values_of(weights: Array, times: Array | None) -> Array:
        return (search if times is None else on(times)).values(weights)

    sides = [np.flatnonzero(scores.y == code) for code in range(scores.n_classes)]
    return WeightRule(
        weights=best,
        values=values,
        counts=confusion(scores, decide(scores, best)),
        again=search_again(wanted, float(values[0]), sides, rng, found_in, values_of),
    )


class _WeightSearch:
    def __init__(self, scores: Scores, wanted: Wanted) -> None:
        self.scores, self.wanted = scores, wanted

    def _of(self, weights: Array) -> CountsOf:
        """The matrix (1, K, K) of a rule."""
        predicted = decide(self.scores, weights)
        return lambda inside: confusion(self.scores, predicted, inside)[None]

    def values(self, weights: Array) -> Array:
        """Values (1 + c) of a rule."""
        return self.wanted.values(self._of(weights))[:, 0]

    def _rated(self, counts_of: CountsOf) -> Array:
        return self.wanted.rated(self.wanted.values(counts_of))

    def run(self, rng: np.random.Generator, starts: int, sweeps: int) -> Array:
        """The best weights found from several starts."""
        classes = self.scores.n_classes
        weight = self.scores.actual
        inverse = 1.0 / np.maximum(weight, weight[weight > 0].min())
        points = [np.ones(classes), inverse, *np.exp(rng.normal(0.0, 1.0, (max(starts - 2, 0), classes)))]
        found = [self._climb(point, sweeps) for point in points[: max(starts, 1)]]
        rating, best = max(found, key=lambda pair: pair[0])
        if rating == -np.inf:
            raise NoFeasibleRule
        return best

    def _climb(self, start: Array, sweeps: int) -> tuple[float, Array]:
        weights = _normalised(start)
        rating = float(self._rated(self._of(weights))[0])
        for _ in range(sweeps):
            before = rating
            for code in range(self.scores.n_classes):
                improved, candidate = self._line(weights, code)
                if improved > rating:
                    # Recomputed as it will be applied: rounding may move a sample to the other side.
                    candidate = _normalised(candidate)
                    actual = float(self._rated(self._of(candidate))[0])
                    if actual > rating:
                        rating, weights = actual, candidate
            if not rating > before:
                break
        return rating, weights

    def _line(self, weights: Array, code: int) -> tuple[float, Array]:
        """Best rating along the weight of one class, and the weights there."""
        scores, classes = self.scores, self.scores.n_classes
        weighted = scores.columns * weights[:, None]
        weighted[code] = -1.0
        rival = np.argmax(weighted, axis=0)
        strongest = weighted[rival, np.arange(scores.n_samples)]
        with np.errstate(divide="ignore", invalid="ignore"):
            # The class takes over a sample when its weight exceeds this; never where its probability is 0.
            limit = strongest / scores.columns[code]
        limit[np.isnan(limit)] = np.inf
        order = np.argsort(limit)
        limits = limit.take(order)
        usable = int(np.searchsorted(limits, np.inf, side="left"))
        ends = (
            np.flatnonzero(np.append(limits[1:usable] != limits[: usable - 1], [True])) if usable else np.empty(0, int)
        )
        if ends.size > _WEIGHTS_TRIED:
            ends = ends.take(np.unique(np.linspace(0, ends.size - 1, _WEIGHTS_TRIED).astype(np.intp)))
        # First matrix with the sample on the other side.
        step = np.searchsorted(ends, np.arange(usable), side="left") + 1
        changing = step <= ends.size
        step, picked = step[changing], order[:usable][changing]

        def of(inside: Mask | None) -> Array:
            moved, size = np.zeros((ends.size + 1, classes, classes)), classes * classes
            moved[0] = confusion(scores, rival, inside)
            some = slice(None) if inside is None else inside.take(picked)
            at, here = picked[some], step[some]
            weight = None if scores.weights is None else scores.weights.take(at)
            flat, rows = moved.ravel(), here * size + scores.y.take(at) * classes
            flat -= np.bincount(rows + rival.take(at), weight, flat.size)
            flat += np.bincount(rows + code, weight, flat.size)
            np.cumsum(moved, axis=0, out=moved)
            return np.maximum(moved, 0.0)

        ratings = self._rated(of)
        if limits[0] == 0.0:
            # All others have a probability of 0 there: the class has the sample with any weight.
            ratings[0] = -np.inf
        best = int(ratings.argmax())
        changed = weights.copy()
        changed[code] = _between(limits, ends, best)
        return float(ratings[best]), changed


def _between(limits: Array, ends: Positions, state: int) -> float:
    """Weight that takes over the samples up to ``ends[state - 1]`` and no other: the geometric mean of two limits."""
    if ends.size == 0:
        return 1.0
    lower = float(limits[ends[state - 1]]) if state else 0.0
    after = int(ends[state - 1]) + 1 if state else 0
    upper = float(limits[after]) if after < limits.size else np.inf
    if lower == 0.0:
        return 0.5 * upper if np.isfinite(upper) else 1.0
    if not np.isfinite(upper):
        return 2.0 * lower
    return float(np.sqrt(lower) * np.sqrt(upper))


def _normalised(weights: Array) -> Array:
    """Weights scaled to a geometric mean of 1."""
    scaled: Array = weights / np.exp(np.mean(np.log(weights)))
    return scaled


# Recalls nearer than this are equal up to the order of summation.
_EQUAL = 1e-12


def simplex_size(n_classes: int, steps: int) -> int:
    """Number of points of the grid: C(steps - 1, K - 1)."""
    return comb(steps - 1, n_classes - 1)


def simplex(n_classes: int, steps: int) -> Array:
    """Weights (P, K) that are positive multiples of 1 / steps, of which there are K or more, with sum 1, in
    lexicographic order.
    """
    cuts = np.array(list(combinations(range(1, steps), n_classes - 1)), dtype=np.intp)
    ends = np.concatenate([np.zeros((len(cuts), 1)), cuts, np.full((len(cuts), 1), steps)], axis=1)
    weights: Array = np.diff(ends, axis=1) / steps
    return weights


def rules_on_grid(scores: Scores, wanted: Wanted, weights: Array) -> tuple[Array, Array]:
    """Values (1 + c, P) and recalls (P, K) of the rules with some weights (P, K); NaN where there is none.

    Args:
        scores: Probabilities of two classes or more, weights (n) or none.
        wanted: What is searched for.
        weights: Of the classes.
    """
    smallest = np.min_scalar_type(scores.n_classes)
    predicted = [decide(scores, row).astype(smallest) for row in weights]

    def of(inside: Mask | None) -> Array:
        return np.stack([confusion(scores, row, inside) for row in predicted])

    with silently():
        return wanted.values(of), Table(of(None)).recall


def pareto_front(values: Array) -> Mask:
    """Mask of the points (P, K) that no other point beats in one value without losing in another; equal points stay
    together.

    Columns that are NaN throughout are ignored.
    """
    known = values[:, ~np.isnan(values).all(axis=0)]
    distinct, members = np.unique(np.round(known / _EQUAL) * _EQUAL, axis=0, return_inverse=True)
    # A point that beats another has a larger sum.
    order = np.argsort(-distinct.sum(axis=1), kind="stable")
    front = np.zeros(len(distinct), dtype=bool)
    best = np.empty((0, distinct.shape[1]))
    for place in order:
        if not (best >= distinct[place]).all(axis=1).any():
            front[place] = True
            best = np.concatenate([best, distinct[place][None]])
    return front[members.ravel()]
