"""The threshold of two classes that is best for any metric expression.

Every distinct cut is one confusion matrix of a batch, so any expression over matrices can be the objective and no cut
inside tied scores is ever considered.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.kernel.decide.guarantee import guaranteed
from app.kernel.decide.rules import (
    EQUAL,
    Attempts,
    Constraint,
    Corrected,
    Correction,
    NoFeasibleRule,
    drawn_again,
    evaluate,
    feasible,
)
from app.kernel.metrics.expression import Expression
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.samples.curves import cuts_of
from app.kernel.samples.rankings.counts import Positions
from app.kernel.samples.rankings.cuts import cumulative
from app.kernel.samples.rankings.ranking import Ranking
from app.kernel.samples.scores import Scores

# Cuts looked at in each resample; beyond that they are thinned evenly, and the chosen one is always among them.
_CUTS_RESAMPLED = 1000
# Cuts, or samples, of the resamples that are looked at together.
_ENTRIES = 1 << 17


@dataclass(frozen=True, slots=True)
class ThresholdRule:
    """Predict the positive class when its score is at least ``threshold``.

    ``thresholds``, ``objectives`` and ``feasible`` (g + 1,) are those of every distinct cut, falling, from predicting
    nothing. ``low`` and ``high`` are the middle 95 % of the thresholds found in the resamples, ``optimism`` (m) is by
    how much the constraints are met too well; None without resamples. ``required`` are the constraints as they had to
    hold on the data, tightened where that was asked for.
    """

    threshold: float
    objective: float
    counts: Array
    default_threshold: float | None
    thresholds: Array
    objectives: Array
    feasible: Mask
    corrected: Corrected | None
    low: float | None
    high: float | None
    optimism: Array | None
    required: tuple[Constraint, ...]


@dataclass(frozen=True, slots=True)
class CutMatrices:
    """Matrices (g + 1, 2, 2), rows actual, of all distinct cuts, and thresholds midway between the scores they part.

    ``ranking`` is what was cut.
    """

    thresholds: Array
    counts: Array
    ranking: Ranking


def cut_matrices(scores: Scores, positive: int) -> CutMatrices:
    """Everything a threshold can do to two classes, from predicting nothing as positive to predicting everything.

    Raises:
        ValueError: there are more than two classes, or a batch of weights.
    """
    if scores.n_classes != 2:
        raise ValueError("a threshold decides between two classes")
    ranking = scores.ranking(positive)
    cuts = cuts_of(ranking)
    values = cuts.thresholds[1:]
    between = 0.5 * values[:-1] + 0.5 * values[1:]
    # Between neighbours of the number format nothing fits: the upper one is the cut then.
    between = np.where(between > values[1:], between, values[:-1])
    thresholds = np.concatenate([[np.nextafter(values[0], np.inf)], between, values[-1:]])
    return CutMatrices(thresholds, _matrices(cuts.tp, cuts.fp, positive), ranking)


def _matrices(tp: Array, fp: Array, positive: int) -> Array:
    """Matrices (..., 2, 2) of cumulative counts (..., g + 1) whose last entry is the total."""
    counts = np.empty((*tp.shape, 2, 2))
    negative = 1 - positive
    counts[..., positive, positive] = tp
    counts[..., positive, negative] = tp[..., -1:] - tp
    counts[..., negative, positive] = fp
    counts[..., negative, negative] = fp[..., -1:] - fp
    return counts


def _best(values: Array, allowed: Mask, distances: Array, sign: float) -> int:
    """Index of the best allowed value; of equal ones the closest to the default."""
    usable = allowed & ~np.isnan(values)
    if not usable.any():
        raise NoFeasibleRule("no rule meets the constraints with a defined objective")
    signed = np.where(usable, sign * values, -np.inf)
    top = float(signed.max())
    equal = signed == top if np.isinf(top) else signed >= top - EQUAL * max(1.0, abs(top))
    candidates = np.flatnonzero(equal)
    return int(candidates[np.argmin(distances[candidates])])


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
    guarantee: float | None = None,
) -> ThresholdRule:
    """The threshold that is best for an expression of the confusion matrix, over all distinct cuts at once.

    Args:
        scores: two classes, weights (n,) or none.
        objective: one value per matrix.
        positive: the class predicted at and above the threshold.
        constraints: all must be met.
        default_threshold: of equally good rules the one nearest to it is taken; 0.5 for probabilities when not given.
        maximize: False when smaller is better.
        correction: how to correct the value for the search.
        resamples: how many of them.
        seed: of the resamples.
        guarantee: probability with which the rule is to meet all constraints in the population; samples have to be
            independent.

    Raises:
        NoFeasibleRule: no cut will do.
        ValueError: more than two classes, or an objective with a value per class.
    """
    if default_threshold is None and scores.are_probabilities:
        default_threshold = 0.5
    cuts = cut_matrices(scores, positive)
    sign = 1.0 if maximize else -1.0
    values = evaluate(objective, cuts.counts)
    allowed, required = feasible(constraints, cuts.counts), tuple(constraints)
    if guarantee is not None:
        found = guaranteed(cuts.counts, constraints, 1.0 - guarantee, seed)
        allowed, required = allowed & found.allowed, found.constraints
    middle = default_threshold if default_threshold is not None else float(np.median(cuts.thresholds))
    chosen = _best(values, allowed, np.abs(cuts.thresholds - middle), sign)
    honest, low, high, optimism = None, None, None, None
    if correction is not Correction.NONE:
        search = _Resampled(positive, objective, required, sign, cuts, chosen)
        attempts, thresholds = search.attempts(correction, resamples, seed)
        honest, optimism = attempts.corrected(float(values[chosen]), correction, seed), attempts.optimism()
        low, high = (float(limit) for limit in np.quantile(thresholds, (0.025, 0.975)))
    return ThresholdRule(
        threshold=float(cuts.thresholds[chosen]),
        objective=float(values[chosen]),
        counts=cuts.counts[chosen],
        default_threshold=default_threshold,
        thresholds=cuts.thresholds,
        objectives=values,
        feasible=allowed,
        corrected=honest,
        low=low,
        high=high,
        optimism=optimism,
        required=required,
    )


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
        ends = ranking.last
        states = np.arange(ends.size + 1)
        if states.size > _CUTS_RESAMPLED:
            states = np.unique(np.append(np.linspace(0, ends.size, _CUTS_RESAMPLED).astype(np.intp), chosen))
        # Samples before each kept cut.
        self.bounds: Positions = np.concatenate([[0], ends + 1]).take(states)
        self.thresholds = cuts.thresholds.take(states)
        self.original = evaluate(objective, cuts.counts[states])
        self.kept = [evaluate(constraint.expression, cuts.counts[states]) for constraint in constraints]
        self.weights = np.ones(size) if ranking.weights is None else ranking.weights
        self.members = ranking.members
        self.sides = (np.flatnonzero(~ranking.members), np.flatnonzero(ranking.members))

    def _counts(self, times: Array) -> Array:
        """Matrices (..., g, 2, 2) at the kept cuts when each sample occurs so many times (..., n)."""
        weights = self.weights * times
        tp, fp = (cumulative(weights * side).take(self.bounds, axis=-1) for side in (self.members, ~self.members))
        # The kept cuts end with the one that predicts everything.
        return _matrices(tp, fp, self.positive)

    def attempts(self, method: Correction, resamples: int, seed: int) -> tuple[Attempts, list[float]]:
        """What the rules found in resamples are worth, and their thresholds."""
        rng = np.random.default_rng(seed)
        found, thresholds = Attempts(), []
        at_once = max(1, _ENTRIES // max(self.bounds.size, self.members.size))
        for start in range(0, resamples, at_once):
            size = min(at_once, resamples - start)
            times = np.stack([drawn_again(self.sides, self.members.size, rng) for _ in range(size)])
            thresholds += self._attempted(times, method, found)
        return found, thresholds

    def _attempted(self, times: Array, method: Correction, found: Attempts) -> list[float]:
        """The same of some resamples (d, n)."""
        middle = np.abs(self.thresholds - float(np.median(self.thresholds)))
        counts, thresholds = self._counts(times), []
        shape, matrices = counts.shape[:2], counts.reshape(-1, 2, 2)
        values = evaluate(self.objective, matrices).reshape(shape)
        held = [evaluate(constraint.expression, matrices).reshape(shape) for constraint in self.constraints]
        allowed = np.ones(shape, dtype=bool)
        for constraint, own in zip(self.constraints, held, strict=True):
            allowed &= constraint.keeps(own)
        for row in range(len(times)):
            try:
                best = _best(values[row], allowed[row], middle, self.sign)
            except NoFeasibleRule:
                continue
            thresholds.append(float(self.thresholds[best]))
            found.gaps.append(float(values[row, best]) - float(self.original[best]))
            found.kept.append([float(here[row, best] - own[best]) for here, own in zip(held, self.kept, strict=True)])
            if method is Correction.B632:
                left_out = self._counts((times[row] == 0).astype(np.float64))
                found.outside.append(float(evaluate(self.objective, left_out[best : best + 1])[0]))
        return thresholds
