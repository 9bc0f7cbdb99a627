"""Thresholds that meet constraints in the population with a stated probability, whatever is chosen among them.

Each cut is tested: is the constraint broken there? Cuts are tested in an order that does not depend on the outcome, and
only as long as each is rejected, so that no error has to be shared among them: fixed sequences of Learn then Test
(Angelopoulos, Bates, Candès, Jordan & Lei 2021). For a recall or a specificity this is the umbrella algorithm of
Neyman-Pearson classification (Tong, Feng & Li 2018), and the error is kept exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from app.kernel.decide.rules import Constraint, NoFeasibleRule, evaluate
from app.kernel.matrix.table import Table
from app.kernel.metrics.expression import Measure
from app.kernel.metrics.proportion import Cells, Rate
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.numerics.scipy_bridge import binomial_upper_tail

# Where sequences start for what does not rise or fall with the threshold: predicted positives over actual ones. Two
# sequences from each, one each way; their error is shared.
_STARTS = (0.5, 1.0, 3.0)
# Cuts that are tested by simulation, and draws for each.
_MOST_CUTS, _DRAWS = 200, 2000
_DRAWN_AT_ONCE = 200


@dataclass(frozen=True, slots=True, eq=False)
class Guaranteed:
    """Cuts (g) that may be chosen, and what the data have to show there: the constraints as they must hold on them."""

    allowed: Mask
    constraints: tuple[Constraint, ...]


def guaranteed(counts: Array, constraints: Sequence[Constraint], error: float, seed: int) -> Guaranteed:
    """Cuts of two classes at which all constraints are met in the population but for a probability.

    Args:
        counts: (g, 2, 2) of independent samples at every cut, from predicting nothing to predicting everything.
        constraints: At least one; each gets its part of the error.
        error: Largest probability that a constraint is broken in the population by a rule chosen among these cuts.
        seed: Of what is simulated.

    Raises:
        NoFeasibleRule: no cut can be guaranteed.
    """
    allowed, needed = np.ones(len(counts), dtype=bool), []
    for constraint in constraints:
        kept = _kept(counts, constraint, error / len(constraints), seed)
        if not kept.any():
            raise NoFeasibleRule(
                "no rule meets the constraints with the wanted guarantee: there are too few samples to show it"
            )
        allowed &= kept
        values = evaluate(constraint.expression, counts[kept])
        needed.append(
            replace(
                constraint,
                minimum=None if constraint.minimum is None else float(values.min()),
                maximum=None if constraint.maximum is None else float(values.max()),
            )
        )
    if not allowed.any():
        raise NoFeasibleRule("no rule meets all of the constraints with the wanted guarantee")
    return Guaranteed(allowed, tuple(needed))


def _kept(counts: Array, constraint: Constraint, error: float, seed: int) -> Mask:
    """Cuts (g) at which one constraint is met but for the error, all of them together."""
    rate = _rate(constraint)
    one_sided = (constraint.minimum is None) != (constraint.maximum is None)
    if rate is not None and one_sided and rate.by_truth and rate.among is not Cells.ALL:
        # Rises or falls with the threshold: from the safer end on until one cut fails.
        met = _tested(counts, constraint, rate) <= error
        values = rate.line(_share(counts[[0, -1]], rate))
        rising = constraint.slack(values)[1] > constraint.slack(values)[0]
        return np.logical_and.accumulate(met[::-1])[::-1] if rising else np.logical_and.accumulate(met)
    chosen = np.unique(np.linspace(0, len(counts) - 1, min(_MOST_CUTS, len(counts))).astype(np.intp))
    some = counts[chosen]
    kept = np.zeros(len(counts), dtype=bool)
    predicted, members = some.sum(axis=1), some[0].sum(axis=1)
    # The class of which more are predicted from cut to cut.
    positive = int(predicted[-1, 1] > predicted[0, 1])
    starts = np.searchsorted(predicted[:, positive], members[positive] * np.array(_STARTS)).clip(max=len(some) - 1)
    own = error / (2 * starts.size)
    met = _simulated(some, constraint, own, seed) if rate is None else _tested(some, constraint, rate) <= own
    kept[chosen[_connected(met, starts)]] = True
    return kept


def _rate(constraint: Constraint) -> Rate | None:
    """What a constraint is a rate of, if it is one."""
    expression = constraint.expression
    if not isinstance(expression, Measure) or (proportion := expression.metric.card.inference.proportion) is None:
        return None
    rate = proportion.at(2, expression.of if isinstance(expression.of, int) else None)
    return None if rate.counted else rate


def _share(counts: Array, rate: Rate) -> Array:
    hits, among = rate.counts(Table(counts))
    found: Array = np.divide(hits, among, out=np.full(hits.shape, np.nan), where=among > 0)
    return found


def _tested(counts: Array, constraint: Constraint, rate: Rate) -> Array:
    """P (g) of the exact binomial test that a rate breaks its constraint."""
    hits, among = rate.counts(Table(counts))
    p_values = np.zeros(len(counts))
    for limit, least in ((constraint.minimum, True), (constraint.maximum, False)):
        if limit is None:
            continue
        bound = np.clip((limit - rate.line.offset) / rate.line.slope, 0.0, 1.0)
        # A falling line makes the least of the value the most of the rate, which is the least of its complement.
        turned = least != (rate.line.slope > 0)
        chance = np.full(hits.shape, 1.0 - bound if turned else bound)
        tail = binomial_upper_tail(among - hits if turned else hits, among, chance, 1.0 - chance)
        # What is always kept needs no samples, and without samples nothing else is.
        p_values = np.maximum(p_values, np.where(chance == 0.0, 0.0, np.where(among > 0, tail, 1.0)))
    return p_values


def _simulated(counts: Array, constraint: Constraint, error: float, seed: int) -> Mask:
    """At which cuts (g) any expression breaks its constraint with at most this p, by draws of both recalls on the
    unfavourable side.

    Of a single recall this is the exact binomial test: Beta(x, n - x + 1) is what its lower limits come from. p is the
    share of the draws that break it, one more counted; a cut that has broken it too often already is drawn no further.
    """
    random = np.random.default_rng(seed)
    actual = counts.sum(axis=-1)
    right = np.diagonal(counts, axis1=-2, axis2=-1)
    shares = random.beta(actual[0, 1] + 0.5, actual[0, 0] + 0.5, _DRAWS)
    # One more answer counts, on the side that makes the constraint harder to keep.
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
        values = evaluate(constraint.expression, (counts[0].sum() * drawn).reshape(-1, 2, 2))
        broken[open_] += np.count_nonzero(~constraint.keeps(values).reshape(open_.size, -1), axis=1)
        open_ = open_[broken[open_] <= most]
        if not open_.size:
            break
    found: Mask = broken <= most
    return found


def _better_with(counts: Array, code: int, constraint: Constraint) -> Mask:
    """Is the constraint kept better (g) when more of a class are recognised?"""
    step = 0.01 * counts[0, code].sum()
    found = []
    for sign in (-1.0, 1.0):
        moved = counts.copy()
        change = np.clip(moved[:, code, code] + sign * step, 0.0, moved[:, code].sum(axis=1)) - moved[:, code, code]
        moved[:, code, code] += change
        moved[:, code, 1 - code] -= change
        found.append(constraint.slack(evaluate(constraint.expression, moved)))
    return ~(found[1] < found[0])


def _connected(met: Mask, starts: NDArray[np.intp]) -> Mask:
    """Cuts (g) that can be reached from some start by cuts that all are met."""
    # Runs of cuts that are met have one number each.
    runs = np.cumsum(np.diff(met, prepend=met[:1]))
    kept: Mask = met & np.isin(runs, runs[starts[met[starts]]])
    return kept
