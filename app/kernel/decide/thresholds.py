"""Best threshold of two classes for any metric expression, and thresholds that meet constraints with a guarantee.

Every distinct cut is one confusion matrix of a batch, so any expression of matrices can be the objective. No cut
divides tied scores.

Guarantee: each cut is tested for a broken constraint, in an order that does not depend on the outcome, and only while
each test rejects. So the cuts do not share the error: fixed sequences of Learn then Test (Angelopoulos, Bates, Candès,
Jordan & Lei 2021). For a recall or a specificity this is the umbrella algorithm of Neyman-Pearson classification (Tong,
Feng & Li 2018), and the error is exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from app.kernel.decide.rules import (
    EQUAL,
    Constraint,
    CountsOf,
    FoundRule,
    NoFeasibleRule,
    SearchedAgain,
    Wanted,
    evaluate,
    search_again,
)
from app.kernel.matrix.table import Table
from app.kernel.metrics.expression import Measure
from app.kernel.metrics.proportion import ConfusionCells, Rate
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.numerics.scipy_bridge import binomial_upper_tail
from app.kernel.samples.rankings import Positions, Ranking, cumulative
from app.kernel.samples.scores import Scores

# Starts of test sequences for constraints that are not monotone in the threshold, as predicted per actual positives.
# Two sequences leave each start, one in either direction, and share the error.
_STARTS = (0.5, 1.0, 3.0)
# Cuts that are tested by simulation, and draws for each cut.
_MOST_CUTS, _DRAWS = 200, 2000
_DRAWN_AT_ONCE = 200


def guaranteed(
    counts: Array, constraints: Sequence[Constraint], error: float, seed: int
) -> tuple[Mask, tuple[Constraint, ...]]:
    """Mask (g) of the cuts of two classes at which all constraints are met in the population, up to an error
    probability, and the constraints as they must hold on the data.

    Args:
        counts: (g, 2, 2) of independent samples at every cut, from predicting nothing to predicting everything.
        constraints: At least one, of one limit each, which gets its part of the error.
        error: Largest probability that a rule chosen among these cuts breaks a constraint in the population.
        seed: Seed of the simulation.

    Raises:
        NoFeasibleRule: no cut can be guaranteed.
    """
    allowed, needed = np.ones(len(counts), dtype=bool), []
    for constraint in constraints:
        values = evaluate(constraint.of.expression, counts)
        # What has no value meets nothing.
        kept = _kept(counts, constraint, error / len(constraints), seed) & ~np.isnan(values)
        if not kept.any():
            raise NoFeasibleRule(
                "no rule meets the constraints with the wanted guarantee: there are too few samples to show it"
            )
        allowed &= kept
        needed.append(
            replace(
                constraint,
                minimum=None if constraint.minimum is None else float(values[kept].min()),
                maximum=None if constraint.maximum is None else float(values[kept].max()),
            )
        )
    if not allowed.any():
        raise NoFeasibleRule("no rule meets all of the constraints with the wanted guarantee")
    return allowed, tuple(needed)


def _kept(counts: Array, constraint: Constraint, error: float, seed: int) -> Mask:
    """Mask (g) of the cuts at which one constraint is met, with the error for all of them together."""
    rate = _rate(constraint)
    chosen, expression = np.arange(len(counts)), constraint.of.expression
    if rate is not None and rate.by_truth and rate.among is not ConfusionCells.ALL:
        # Monotone in the threshold: test from the safer end until one cut fails.
        first, last = constraint.slack(evaluate(expression, counts[[0, -1]])).tolist()
        starts, own = chosen[[-1 if last > first else 0]], error
    else:
        chosen = np.unique(np.linspace(0, len(counts) - 1, min(_MOST_CUTS, len(counts))).astype(np.intp))
        predicted, members = counts[chosen].sum(axis=1), counts[0].sum(axis=1)
        # The class with more and more predictions from cut to cut.
        positive = int(predicted[-1, 1] > predicted[0, 1])
        starts = np.searchsorted(predicted[:, positive], members[positive] * np.array(_STARTS)).clip(
            max=len(chosen) - 1
        )
        own = error / (2 * starts.size)
    some, kept = counts[chosen], np.zeros(len(counts), dtype=bool)
    met = _simulated(some, constraint, own, seed) if rate is None else _tested(some, constraint, rate) <= own
    kept[chosen[_connected(met, starts)]] = True
    return kept


def _rate(constraint: Constraint) -> Rate | None:
    """Rate of which a constraint is a bound, if it is one."""
    expression = constraint.of.expression
    if not isinstance(expression, Measure) or (proportion := expression.metric.card.inference.proportion) is None:
        return None
    rate = proportion.at(2, expression.of if isinstance(expression.of, int) else None)
    return None if rate.counted else rate


def _tested(counts: Array, constraint: Constraint, rate: Rate) -> Array:
    """P-values (g) of the exact binomial test of a rate against its constraint."""
    hits, among = rate.counts(Table(counts))
    least = constraint.minimum is not None
    limit = constraint.minimum if least else constraint.maximum
    assert limit is not None  # noqa: S101 - it has one of the two
    bound = np.clip((limit - rate.line.offset) / rate.line.slope, 0.0, 1.0)
    # With a falling line, a lower limit of the value is one of the complement of the rate.
    turned = least != (rate.line.slope > 0)
    chance = np.full(hits.shape, 1.0 - bound if turned else bound)
    tail = binomial_upper_tail(among - hits if turned else hits, among, chance, 1.0 - chance)
    # A constraint that always holds needs no samples; without samples no other one is met.
    return np.where(chance == 0.0, 0.0, np.where(among > 0, tail, 1.0))


def _simulated(counts: Array, constraint: Constraint, error: float, seed: int) -> Mask:
    """Mask (g) of the cuts at which an expression meets its constraint with a p-value of at most ``error``, by draws of
    both recalls, shifted to the unfavourable side.

    For a single recall this is the exact binomial test: its lower limits are quantiles of Beta(x, n - x + 1). The
    p-value is the share of the draws that break the constraint, with one more counted. A cut stops once too many draws
    have broken it.
    """
    random = np.random.default_rng(seed)
    actual = counts.sum(axis=-1)
    right = np.diagonal(counts, axis1=-2, axis2=-1)
    shares = random.beta(actual[0, 1] + 0.5, actual[0, 0] + 0.5, _DRAWS)
    # One more answer counts, on the side that makes the constraint harder to meet.
    better = np.stack([_better_with(counts, code, constraint) for code in (0, 1)], axis=1)
    hits, misses = right + ~better, actual - right + better
    broken, open_ = np.zeros(len(counts), dtype=np.intp), np.arange(len(counts))
    most = error * (1.0 + _DRAWS) - 1.0
    for start in range(0, _DRAWS, _DRAWN_AT_ONCE):
        some = shares[start : start + _DRAWN_AT_ONCE]
        shape = (open_.size, 2, some.size)
        gammas = [random.standard_gamma(one[open_, :, None], shape) for one in (hits, misses)]
        recalls = gammas[0] / (gammas[0] + gammas[1])
        drawn = np.empty((open_.size, some.size, 2, 2))
        for code, share in ((0, 1.0 - some), (1, some)):
            drawn[..., code, code] = share * recalls[:, code]
            drawn[..., code, 1 - code] = share * (1.0 - recalls[:, code])
        values = evaluate(constraint.of.expression, (counts[0].sum() * drawn).reshape(-1, 2, 2))
        broken[open_] += np.count_nonzero(~constraint.keeps(values).reshape(open_.size, -1), axis=1)
        open_ = open_[broken[open_] <= most]
        if not open_.size:
            break
    found: Mask = broken <= most
    return found


def _better_with(counts: Array, code: int, constraint: Constraint) -> Mask:
    """Mask (g) of the cuts at which a higher recall of a class helps to meet the constraint."""
    step = 0.01 * counts[0, code].sum()
    found = []
    for sign in (-1.0, 1.0):
        moved = counts.copy()
        change = np.clip(moved[:, code, code] + sign * step, 0.0, moved[:, code].sum(axis=1)) - moved[:, code, code]
        moved[:, code, code] += change
        moved[:, code, 1 - code] -= change
        found.append(constraint.slack(evaluate(constraint.of.expression, moved)))
    return ~(found[1] < found[0])


def _connected(met: Mask, starts: NDArray[np.intp]) -> Mask:
    """Mask (g) of the cuts that are connected to a start by cuts that all meet the constraint."""
    # Each run of cuts that meet the constraint has a number.
    runs = np.cumsum(np.diff(met, prepend=met[:1]))
    kept: Mask = met & np.isin(runs, runs[starts[met[starts]]])
    return kept


# Most cuts per resample. More are thinned evenly, and the chosen one is always kept.
_CUTS_RESAMPLED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdRule(FoundRule[int]):
    """Rule that predicts the positive class for scores of at least ``threshold``.

    ``thresholds``, ``objectives`` and ``feasible`` (g + 1,) are those of every distinct cut, falling, from predicting
    nothing. ``required`` are the constraints as they had to hold on the data, tightened for a guarantee.
    """

    threshold: float
    thresholds: Array
    objectives: Array
    feasible: Mask
    required: tuple[Constraint, ...]

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """The middle 95 % of the thresholds found in resamples; None without any."""
        if self.again is None:
            return None, None
        low, high = np.quantile(self.thresholds[[*self.again.rules]], (0.025, 0.975)).tolist()
        return low, high


@dataclass(frozen=True, slots=True)
class CutMatrices:
    """Matrices (g + 1, 2, 2), rows actual, of all distinct cuts of ``ranking``, thresholds midway between the scores on
    both sides, and samples before each cut. ``positive`` is the class of its members.
    """

    thresholds: Array
    counts: Array
    bounds: Positions
    ranking: Ranking
    positive: int

    def at(self, bounds: Positions, times: Array) -> Array:
        """Matrices (..., b, 2, 2) where so many samples (b) are predicted as positive, the last time all, for
        multiplicities (..., n) of the samples in the order of the ranking.
        """
        ranking = self.ranking
        weights = times if ranking.weights is None else ranking.weights * times
        sides = ranking.members, ~ranking.members
        tp, fp = (cumulative(weights * side).take(bounds, axis=-1) for side in sides)
        return _matrices(tp, fp, self.positive)

    def of(self, inside: Mask | None) -> Array:
        """Matrices of some samples (n) alone, or of all."""
        return (
            self.counts if inside is None else self.at(self.bounds, inside.take(self.ranking.places).astype(np.float64))
        )

    def drawn(self, times: Array, bounds: Positions) -> CountsOf:
        """Matrices as by `at`, of some samples (n) alone, or of all."""
        whole = self.at(bounds, times)
        return lambda inside: whole if inside is None else self.at(bounds, times * inside.take(self.ranking.places))


def cut_matrices(scores: Scores, positive: int) -> CutMatrices:
    """Matrices at all thresholds of two classes, from predicting no sample as positive to predicting all.

    Of probabilities of 1, or of the largest number, no threshold is above, so that none predicts nothing.
    """
    ranking = scores.ranking(positive)
    cuts = ranking.cuts()
    values = cuts.thresholds[1:]
    between = 0.5 * values[:-1] + 0.5 * values[1:]
    # There is no number between adjacent floats: then the upper one is the cut.
    between = np.where(between > values[1:], between, values[:-1])
    with np.errstate(over="ignore"):
        thresholds = np.concatenate([[np.nextafter(values[0], np.inf)], between, values[-1:]])
    kept = thresholds <= (1.0 if scores.are_probabilities else np.finfo(np.float64).max)
    counts, bounds = _matrices(cuts.tp, cuts.fp, positive), np.concatenate([[0], ranking.last + 1])
    return CutMatrices(thresholds[kept], counts[kept], bounds[kept], ranking, positive)


def _matrices(tp: Array, fp: Array, positive: int) -> Array:
    """Matrices (..., 2, 2) from cumulative counts (..., g + 1) that end with the totals."""
    counts = np.empty((*tp.shape, 2, 2))
    negative = 1 - positive
    counts[..., positive, positive] = tp
    counts[..., positive, negative] = tp[..., -1:] - tp
    counts[..., negative, positive] = fp
    counts[..., negative, negative] = fp[..., -1:] - fp
    return counts


def _best(rated: Array, distances: Array) -> int:
    """Index of the highest rating; of equal ones the closest to the default."""
    top = float(rated.max())
    if top == -np.inf:
        raise NoFeasibleRule
    equal = rated == top if np.isinf(top) else rated >= top - EQUAL * max(1.0, abs(top))
    candidates = np.flatnonzero(equal)
    return int(candidates[np.argmin(distances[candidates])])


def search_threshold(
    scores: Scores,
    wanted: Wanted,
    *,
    positive: int = 1,
    default_threshold: float | None = None,
    guarantee: float | None = None,
) -> ThresholdRule:
    """Best threshold for an expression of the confusion matrix, over all distinct cuts at once.

    Args:
        scores: Two classes, weights (n,) or none.
        wanted: What is searched for.
        positive: The class predicted at and above the threshold.
        default_threshold: Of equally good rules the nearest one is taken; None is 0.5 for probabilities.
        guarantee: Probability with which the rule has to meet all constraints in the population; samples have to be
            independent.

    Raises:
        NoFeasibleRule: no cut is feasible.
    """
    if default_threshold is None and scores.are_probabilities:
        default_threshold = 0.5
    cuts = cut_matrices(scores, positive)
    values = wanted.values(cuts.of)
    allowed, required = wanted.feasible(values), tuple(wanted.constraints)
    if guarantee is not None:
        known, required = guaranteed(cuts.counts, wanted.constraints, 1.0 - guarantee, wanted.seed)
        allowed = allowed & known
    middle = default_threshold if default_threshold is not None else float(np.median(cuts.thresholds))
    distances = np.abs(cuts.thresholds - middle)
    chosen = _best(wanted.rated(values, allowed), distances)
    return ThresholdRule(
        threshold=float(cuts.thresholds[chosen]),
        values=values[:, chosen],
        counts=cuts.counts[chosen],
        thresholds=cuts.thresholds,
        objectives=values[0],
        feasible=allowed,
        again=_again(replace(wanted, constraints=required), cuts, chosen, values, distances),
        required=required,
    )


def _again(
    wanted: Wanted, cuts: CutMatrices, chosen: int, values: Array, distances: Array
) -> SearchedAgain[int] | None:
    """Repeat the search in resamples among cuts, whose values (1 + c, g + 1) are known on the data, and whose distances
    (g + 1) from the default decide between equally good ones.
    """
    states, members = np.arange(cuts.bounds.size), cuts.ranking.members
    if states.size > _CUTS_RESAMPLED:
        states = np.unique(np.append(np.linspace(0, states[-1], _CUTS_RESAMPLED).astype(np.intp), chosen))
    # The kept cuts end with the one that predicts everything.
    bounds, away = cuts.bounds[states], distances[states]

    def found_in(times: Array) -> tuple[int, Array]:
        here = wanted.values(cuts.drawn(times, bounds))
        place = _best(wanted.rated(here), away)
        return int(states[place]), here[:, place]

    def values_of(cut: int, times: Array | None) -> Array:
        return values[:, cut] if times is None else wanted.values(cuts.drawn(times, cuts.bounds[[cut, -1]]))[:, 0]

    apparent, sides = float(values[0, chosen]), (np.flatnonzero(~members), np.flatnonzero(members))
    return search_again(wanted, apparent, sides, np.random.default_rng(wanted.seed), found_in, values_of)
