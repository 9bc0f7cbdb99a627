"""Decision rules made from probabilities: the threshold or the class weights that are best for any metric expression.

Every distinct cut is one confusion matrix of a batch, so any expression over matrices can be the objective and no cut
inside tied
scores is ever considered. What is best on the data is too good to be true on new data: the optimism is estimated by
searching
again in resamples (Efron & Gong 1983; Harrell, Lee & Mark 1996).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from app.kernel.curves import cuts_of
from app.kernel.expression import Expression, compute, is_list
from app.kernel.numerics import Array, Mask
from app.kernel.ranking import Positions, Ranking
from app.kernel.scores import Codes, Scores
from app.kernel.table import Table

# Matrices evaluated at once.
_BATCH = 1 << 16
# A value this much below the best, relative, is as good: of those the rule nearest to the default is taken.
_EQUAL = 1e-12
# Cuts looked at in each resample; beyond that they are thinned evenly, and the chosen one is always among them.
_CUTS_RESAMPLED = 1000
# Candidate weights looked at for each class in each sweep.
_WEIGHTS_TRIED = 512


class Correction(StrEnum):
    """How to correct the value of a searched rule for having been searched."""

    NONE = "none"
    OPTIMISM = "optimism"
    B632 = "632"


class NoFeasibleRule(Exception):
    """No rule meets the constraints, or the objective has no value at any that does."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """Lower and upper limit, both allowed values, of an expression."""

    expression: Expression
    minimum: float | None = None
    maximum: float | None = None

    def met(self, table: Table) -> Mask:
        """Shape (...); where the expression has no value it is not met."""
        values = _scalar(self.expression, table)
        with np.errstate(invalid="ignore"):
            kept = ~np.isnan(values)
            if self.minimum is not None:
                kept &= values >= self.minimum - _EQUAL * abs(self.minimum)
            if self.maximum is not None:
                kept &= values <= self.maximum + _EQUAL * abs(self.maximum)
        return kept


@dataclass(frozen=True, slots=True)
class Corrected:
    """The value of the best rule less what the search itself contributed, over ``resamples`` of the data."""

    value: float
    optimism: float
    method: Correction
    resamples: int
    seed: int


@dataclass(frozen=True, slots=True)
class ThresholdRule:
    """Predict the positive class when its score is at least ``threshold``.

    ``thresholds``, ``objectives`` and ``feasible`` (g + 1,) are those of every distinct cut, falling, from predicting
    nothing.
    ``low`` and ``high`` are the middle 95 % of the thresholds found in the resamples, None without them.
    """

    threshold: float
    objective: float
    counts: Array
    default_threshold: float | None
    default_objective: float | None
    default_counts: Array | None
    thresholds: Array
    objectives: Array
    feasible: Mask
    corrected: Corrected | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class CutMatrices:
    """Matrices (g + 1, 2, 2), rows actual, of all distinct cuts, and thresholds midway between the scores they part.

    ``ranking`` and its distinct ``values`` (g,), falling, are what was cut.
    """

    thresholds: Array
    counts: Array
    values: Array
    ranking: Ranking


def cut_matrices(scores: Scores, positive: int) -> CutMatrices:
    """Everything a threshold can do to two classes, from predicting nothing as positive to predicting everything.

    Raises:
        ValueError: there are more than two classes, or a batch of weights.
    """
    if scores.n_classes != 2:
        raise ValueError("a threshold decides between two classes")
    ranking = scores.literal_ranking(positive)
    cuts = cuts_of(ranking)
    values = cuts.thresholds[1:]
    between = 0.5 * values[:-1] + 0.5 * values[1:]
    # Between neighbours of the number format nothing fits: the upper one is the cut then.
    between = np.where(between > values[1:], between, values[:-1])
    thresholds = np.concatenate([[np.nextafter(values[0], np.inf)], between, values[-1:]])
    return CutMatrices(thresholds, _matrices(cuts.tp, cuts.fp, positive), values, ranking)


def _matrices(tp: Array, fp: Array, positive: int) -> Array:
    """Matrices (..., 2, 2) of cumulative counts (..., g + 1) whose last entry is the total."""
    counts = np.empty((*tp.shape, 2, 2))
    negative = 1 - positive
    counts[..., positive, positive] = tp
    counts[..., positive, negative] = tp[..., -1:] - tp
    counts[..., negative, positive] = fp
    counts[..., negative, negative] = fp[..., -1:] - fp
    return counts


def _scalar(expression: Expression, table: Table) -> Array:
    if is_list(expression):
        raise ValueError("the expression gives one value per class: name a class, or take the mean or the minimum")
    return compute(expression, table)


def _evaluate(expression: Expression, counts: Array) -> Array:
    """Values (m,) of an expression on matrices (m, K, K), in pieces."""
    pieces = [_scalar(expression, Table(counts[i : i + _BATCH])) for i in range(0, counts.shape[0], _BATCH)]
    return np.concatenate(pieces)


def _feasible(constraints: Sequence[Constraint], counts: Array) -> Mask:
    kept = np.ones(counts.shape[0], dtype=bool)
    for constraint in constraints:
        for i in range(0, counts.shape[0], _BATCH):
            kept[i : i + _BATCH] &= constraint.met(Table(counts[i : i + _BATCH]))
    return kept


def _best(values: Array, allowed: Mask, closeness: Array, sign: float) -> int:
    """Index of the best allowed value; of equal ones the closest to the default."""
    usable = allowed & ~np.isnan(values)
    if not usable.any():
        raise NoFeasibleRule("no rule meets the constraints with a defined objective")
    signed = np.where(usable, sign * values, -np.inf)
    top = float(signed.max())
    equal = signed == top if np.isinf(top) else signed >= top - _EQUAL * max(1.0, abs(top))
    candidates = np.flatnonzero(equal)
    return int(candidates[np.argmin(closeness[candidates])])


def search_threshold(
    scores: Scores,
    objective: Expression,
    *,
    positive: int = 1,
    constraints: Sequence[Constraint] = (),
    default_threshold: float | None = None,
    maximize: bool = True,
    correction: Correction = Correction.OPTIMISM,
    resamples: int = 100,
    seed: int = 0,
) -> ThresholdRule:
    """The threshold that is best for an expression of the confusion matrix, over all distinct cuts at once.

    Args:
        scores: two classes, weights (n,) or none.
        objective: one value per matrix.
        positive: the class predicted at and above the threshold.
        constraints: all must be met.
        default_threshold: what the rule is compared with; 0.5 for probabilities when not given.
        maximize: False when smaller is better.
        correction: how to correct the value for the search.
        resamples: how many of them.
        seed: of the resamples.

    Raises:
        NoFeasibleRule: no cut will do.
        ValueError: more than two classes, or an objective with a value per class.
    """
    if default_threshold is None and scores.are_probabilities:
        default_threshold = 0.5
    cuts = cut_matrices(scores, positive)
    sign = 1.0 if maximize else -1.0
    values = _evaluate(objective, cuts.counts)
    allowed = _feasible(constraints, cuts.counts)
    middle = default_threshold if default_threshold is not None else float(np.median(cuts.thresholds))
    chosen = _best(values, allowed, np.abs(cuts.thresholds - middle), sign)
    default = None if default_threshold is None else _state(cuts.values, default_threshold)
    corrected, low, high = None, None, None
    if correction is not Correction.NONE:
        search = _Resampled(positive, objective, constraints, sign, cuts, chosen)
        corrected, low, high = search.correct(float(values[chosen]), correction, resamples, seed)
    return ThresholdRule(
        threshold=float(cuts.thresholds[chosen]),
        objective=float(values[chosen]),
        counts=cuts.counts[chosen],
        default_threshold=default_threshold,
        default_objective=None if default is None else float(values[default]),
        default_counts=None if default is None else cuts.counts[default],
        thresholds=cuts.thresholds,
        objectives=values,
        feasible=allowed,
        corrected=corrected,
        low=low,
        high=high,
    )


def _state(values: Array, threshold: float) -> int:
    """Which cut a threshold makes: the number of distinct scores, falling, at or above it."""
    return values.size - int(np.searchsorted(values[::-1], threshold, side="left"))


class _Resampled:
    """Searches again in bootstrap samples, drawn within the classes so that none is lost."""

    def __init__(
        self,
        positive: int,
        objective: Expression,
        constraints: Sequence[Constraint],
        sign: float,
        cuts: CutMatrices,
        chosen: int,
    ) -> None:
        self.objective, self.constraints, self.sign, self.positive = objective, constraints, sign, positive
        ranking = cuts.ranking
        size = ranking.members.size
        ends = np.arange(size) if ranking.ends is None else ranking.ends
        states = np.arange(ends.size + 1)
        if states.size > _CUTS_RESAMPLED:
            states = np.unique(np.append(np.linspace(0, ends.size, _CUTS_RESAMPLED).astype(np.intp), chosen))
        # Samples before each kept cut.
        self.bounds: Positions = np.concatenate([[0], ends + 1]).take(states)
        self.thresholds = cuts.thresholds.take(states)
        self.original = _evaluate(objective, cuts.counts[states])
        self.weights = np.ones(size) if ranking.weights is None else ranking.weights
        self.members = ranking.members
        self.sides = (np.flatnonzero(~ranking.members), np.flatnonzero(ranking.members))

    def _counts(self, times: Array) -> Array:
        """Matrices at the kept cuts when each sample occurs so many times."""
        weights = self.weights * times
        sums = [
            np.concatenate([[0.0], np.cumsum(weights * side)]).take(self.bounds)
            for side in (self.members, ~self.members)
        ]
        # The kept cuts end with the one that predicts everything.
        return _matrices(*sums, self.positive)

    def correct(self, apparent: float, method: Correction, resamples: int, seed: int) -> tuple[Corrected, float, float]:
        rng = np.random.default_rng(seed)
        middle = np.abs(self.thresholds - float(np.median(self.thresholds)))
        gaps, outside, found = [], [], []
        for _ in range(resamples):
            times = np.zeros(self.members.size)
            for side in self.sides:
                if side.size:
                    times[side] = np.bincount(rng.integers(0, side.size, side.size), minlength=side.size)
            counts = self._counts(times)
            values = _evaluate(self.objective, counts)
            try:
                best = _best(values, _feasible(self.constraints, counts), middle, self.sign)
            except NoFeasibleRule:
                continue
            found.append(float(self.thresholds[best]))
            gaps.append(float(values[best]) - float(self.original[best]))
            if method is Correction.B632:
                left_out = self._counts((times == 0).astype(np.float64))
                outside.append(float(_evaluate(self.objective, left_out[best : best + 1])[0]))
        if not found:
            raise NoFeasibleRule("no resample has a rule that meets the constraints")
        low, high = (float(value) for value in np.quantile(found, (0.025, 0.975)))
        if method is Correction.B632:
            value = (
                0.368 * apparent + 0.632 * float(np.nanmean(outside)) if not np.isnan(outside).all() else float("nan")
            )
        else:
            value = apparent - float(np.nanmean(gaps)) if not np.isnan(gaps).all() else float("nan")
        return Corrected(value, apparent - value, method, len(found), seed), low, high


@dataclass(frozen=True, slots=True)
class WeightRule:
    """Predict the class with the highest weight times probability, ties to the lowest index.

    Weights are scaled to a geometric mean of 1. ``evaluated`` counts the matrices that were looked at.
    """

    weights: Array
    objective: float
    counts: Array
    default_objective: float
    default_counts: Array
    evaluated: int
    corrected: Corrected | None


def decide(scores: Scores, weights: Array) -> Codes:
    """Predicted classes under class weights (K,)."""
    return np.argmax(scores.columns * weights[:, None], axis=0)


def confusion(scores: Scores, predicted: Codes) -> Array:
    """Confusion matrix (K, K), rows actual, by the weights (n,) of the samples."""
    classes = scores.n_classes
    return (
        np.bincount(scores.y * classes + predicted, scores.weights, classes * classes).reshape(classes, classes) * 1.0
    )


def search_weights(
    scores: Scores,
    objective: Expression,
    *,
    constraints: Sequence[Constraint] = (),
    maximize: bool = True,
    starts: int = 8,
    sweeps: int = 20,
    correction: Correction = Correction.NONE,
    resamples: int = 20,
    seed: int = 0,
) -> WeightRule:
    """Class weights for argmax of weight times probability that are best for an expression.

    One class after the other: with the weights of the others fixed, each sample changes sides at one value of the
    weight, so all
    rules along that line are matrices of one batch. Sweeps go on until none helps, from equal weights, from inverse
    prevalences
    and from random starts. A local search: the tests compare it with trying everything on small cases.

    Args:
        scores: any number of classes, weights (n,) or none.
        objective: one value per matrix.
        constraints: all must be met.
        maximize: False when smaller is better.
        starts: points to start from, at least one.
        sweeps: most sweeps over the classes from each.
        correction: how to correct the value for the search; NONE spares the resamples.
        resamples: how many of them.
        seed: of random starts and resamples.

    Raises:
        NoFeasibleRule: none was found.
        ValueError: scores that are no probabilities, a batch of weights, or an objective with a value per class.
    """
    if not scores.are_probabilities:
        raise ValueError("class weights need probabilities")
    if scores.weights is not None and scores.weights.ndim > 1:
        raise ValueError("one vector of weights at a time")
    search = _WeightSearch(scores, objective, constraints, 1.0 if maximize else -1.0)
    rng = np.random.default_rng(seed)
    best = search.run(rng, starts, sweeps)
    corrected = None
    if correction is not Correction.NONE:
        corrected = search.correct(best, rng, correction, resamples, starts=min(starts, 2), sweeps=sweeps, seed=seed)
    equal = confusion(scores, scores.predicted)
    return WeightRule(
        weights=best,
        objective=search.value(best),
        counts=confusion(scores, decide(scores, best)),
        default_objective=float(_scalar(objective, Table(equal))),
        default_counts=equal,
        evaluated=search.evaluated,
        corrected=corrected,
    )


class _WeightSearch:
    def __init__(self, scores: Scores, objective: Expression, constraints: Sequence[Constraint], sign: float) -> None:
        self.scores, self.objective, self.constraints, self.sign = scores, objective, constraints, sign
        self.evaluated = 0

    def value(self, weights: Array) -> float:
        """Objective of a rule."""
        return float(_scalar(self.objective, Table(confusion(self.scores, decide(self.scores, weights)))))

    def _rated(self, counts: Array) -> Array:
        """Signed objectives (m,), -inf where a constraint is not met or there is no value."""
        self.evaluated += counts.shape[0]
        values = self.sign * _evaluate(self.objective, counts)
        return np.where(_feasible(self.constraints, counts) & ~np.isnan(values), values, -np.inf)

    def run(self, rng: np.random.Generator, starts: int, sweeps: int) -> Array:
        """The best weights found from several starts."""
        classes = self.scores.n_classes
        weight = self.scores.class_weight
        inverse = 1.0 / np.maximum(weight, weight[weight > 0].min())
        points = [np.ones(classes), inverse, *np.exp(rng.normal(0.0, 1.0, (max(starts - 2, 0), classes)))]
        found = [self._climb(point, sweeps) for point in points[: max(starts, 1)]]
        rating, best = max(found, key=lambda pair: pair[0])
        if rating == -np.inf:
            raise NoFeasibleRule("no rule that meets the constraints with a defined objective was found")
        return best

    def _climb(self, start: Array, sweeps: int) -> tuple[float, Array]:
        weights = _normalised(start)
        rating = float(self._rated(confusion(self.scores, decide(self.scores, weights))[None])[0])
        for _ in range(sweeps):
            before = rating
            for code in range(self.scores.n_classes):
                improved, candidate = self._line(weights, code)
                if improved > rating:
                    # Recomputed as it will be applied: rounding may put a sample on the other side.
                    candidate = _normalised(candidate)
                    actual = float(self._rated(confusion(self.scores, decide(self.scores, candidate))[None])[0])
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
        each = np.ones(scores.n_samples) if scores.weights is None else scores.weights
        moved = np.zeros((ends.size + 1, classes, classes))
        moved[0] = np.bincount(scores.y * classes + rival, each, classes * classes).reshape(classes, classes)
        if ends.size:
            # Which matrix first shows the sample on the other side.
            step = np.searchsorted(ends, np.arange(usable), side="left") + 1
            picked = order[:usable]
            y, was, weight = scores.y.take(picked), rival.take(picked), each.take(picked)
            kept = step <= ends.size
            flat = moved.ravel()
            size = classes * classes
            for target, sign in ((was, -1.0), (np.full(usable, code), 1.0)):
                cells = step * size + y * classes + target
                flat += sign * np.bincount(cells[kept], weight[kept], flat.size)
            np.cumsum(moved, axis=0, out=moved)
        ratings = self._rated(np.maximum(moved, 0.0))
        best = int(ratings.argmax())
        changed = weights.copy()
        changed[code] = _between(limits, ends, best)
        return float(ratings[best]), changed

    def correct(
        self,
        weights: Array,
        rng: np.random.Generator,
        method: Correction,
        resamples: int,
        *,
        starts: int,
        sweeps: int,
        seed: int,
    ) -> Corrected:
        """The value of the rule less the optimism of the search."""
        apparent = self.value(weights)
        base = np.ones(self.scores.n_samples) if self.scores.weights is None else self.scores.weights
        members = [np.flatnonzero(self.scores.y == code) for code in range(self.scores.n_classes)]
        gaps, outside = [], []
        for _ in range(resamples):
            times = np.zeros(self.scores.n_samples)
            for side in members:
                if side.size:
                    times[side] = np.bincount(rng.integers(0, side.size, side.size), minlength=side.size)
            again = _WeightSearch(self.scores.with_weights(base * times), self.objective, self.constraints, self.sign)
            try:
                found = again.run(rng, starts, sweeps)
            except NoFeasibleRule:
                continue
            gaps.append(again.value(found) - self.value(found))
            if method is Correction.B632:
                left = self.scores.with_weights(base * (times == 0))
                outside.append(_WeightSearch(left, self.objective, (), self.sign).value(found))
        if not gaps:
            raise NoFeasibleRule("no resample has a rule that meets the constraints")
        if method is Correction.B632:
            value = 0.368 * apparent + 0.632 * float(np.nanmean(outside))
        else:
            value = apparent - float(np.nanmean(gaps))
        return Corrected(value, apparent - value, method, len(gaps), seed)


def _between(limits: Array, ends: Positions, state: int) -> float:
    """A weight that takes over the samples up to ``ends[state - 1]`` and no other: in the middle, by ratio, of two
    limits.
    """
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
    """Scaled to a geometric mean of 1."""
    scaled: Array = weights / np.exp(np.mean(np.log(weights)))
    return scaled
