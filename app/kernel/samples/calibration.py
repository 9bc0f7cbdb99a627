"""Do the probabilities mean what they say? Bins over a ranking, what chance alone would give, and measures without
bins.

A ranking's scores are the probabilities and its members the samples for which the event happened: the class itself
for a class,
a correct prediction for the top label.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import erfc, sqrt

import numpy as np

from app.kernel.numerics.arrays import Array, ratio, silently, total
from app.kernel.samples.ranking import Positions, Ranking
from app.kernel.samples.scores import Scores

# A probability this near to the upper limit of a bin belongs to it: 0.1 + 0.2 lies in (0.2, 0.3].
_TOLERANCE = 1e-12
# Sums of more independent outcomes than this much variance are drawn from the normal distribution.
_NORMAL_FROM = 200.0
_DRAWN_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class Bins:
    """Weight, summed probabilities and weight of the events in each bin, from the highest bin down, each of shape
    (..., b).
    """

    weight: Array
    expected: Array
    observed: Array

    @property
    def error(self) -> Array:
        """Weighted mean of |observed - expected| frequency, shape (...)."""
        return ratio(np.abs(self.observed - self.expected).sum(axis=-1), self.weight.sum(axis=-1))

    @property
    def largest(self) -> Array:
        """Largest |observed - expected| frequency of a bin that is not empty, shape (...)."""
        with silently():
            gaps = np.abs(self.observed - self.expected) / self.weight
        filled = self.weight > 0
        return np.where(filled.any(axis=-1), np.where(filled, gaps, 0.0).max(axis=-1), np.nan)


@dataclass(frozen=True, slots=True)
class Chance:
    """A calibration error as it would come out were the probabilities right: mean and 95 % quantile over simulated
    outcomes.

    ``p_value`` is the share of simulations with at least the observed error, the observed one counted in.
    """

    observed: float
    mean: float
    upper: float
    p_value: float
    draws: int
    seed: int


def equal_width(ranking: Ranking, bins: int) -> Bins:
    """Bins (lo, hi] of equal width over [0, 1]; 0 belongs to the lowest."""
    return _binned(ranking, _width_starts(ranking, bins))


def equal_mass(ranking: Ranking, bins: int) -> Bins:
    """Bins of equal weight. Samples of one probability stay together, in the bin of the middle of their weight."""
    if ranking.weights is None or ranking.weights.ndim == 1:
        return _binned(ranking, _mass_starts(ranking, bins))
    rows = []
    for row in np.ndindex(ranking.weights.shape[:-1]):
        single = Ranking(ranking.values, ranking.members, ranking.weights[row])
        rows.append(_binned(single, _mass_starts(single, bins)))
    shape = (*ranking.weights.shape[:-1], bins)
    stacked = (
        np.stack([getattr(made, name) for made in rows]).reshape(shape) for name in ("weight", "expected", "observed")
    )
    return Bins(*stacked)


def _binned(ranking: Ranking, starts: Positions) -> Bins:
    return Bins(*ranking.slices(starts))


def _width_starts(ranking: Ranking, bins: int) -> Positions:
    limits = np.arange(bins - 1, 0, -1) / bins + _TOLERANCE
    return np.concatenate([[0], ranking.above(limits), [ranking.members.size]])


def _mass_starts(ranking: Ranking, bins: int) -> Positions:
    size = ranking.members.size
    if ranking.plain:
        inner = np.ceil(np.arange(1, bins) * (size / bins) - 0.5).astype(np.intp)
        return np.concatenate([[0], inner, [size]])
    ends = np.arange(size) if ranking.ends is None else ranking.ends
    reached = ends + 1.0 if ranking.weights is None else np.cumsum(ranking.weights).take(ends)
    middle = reached - 0.5 * np.diff(reached, prepend=0.0)
    cuts = np.searchsorted(middle * bins, np.arange(1, bins) * reached[-1], side="left")
    firsts = np.append(np.concatenate([[0], ends[:-1] + 1]), size)
    return np.concatenate([[0], firsts.take(cuts), [size]])


def chance_of(ranking: Ranking, starts: Positions, *, draws: int, rng: np.random.Generator) -> Array:
    """Calibration errors of simulated outcomes that follow the probabilities, shape (draws,).

    Bröcker & Smith (2007). Weights of shape (n,) only.
    """
    total_error = np.zeros(draws)
    for _, gaps in _gaps_by_chance(ranking, starts, draws, rng):
        total_error += gaps
    weight = float(ranking.values.size) if ranking.weights is None else float(ranking.weights.sum())
    return total_error / weight


def _gaps_by_chance(
    ranking: Ranking, starts: Positions, draws: int, rng: np.random.Generator
) -> Iterator[tuple[float, Array]]:
    """Weight of each bin, and |observed - expected| events of simulated outcomes, shape (draws,).

    Bins without a gap in any outcome are left out.
    """
    for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        p = np.clip(ranking.values[start:stop], 0.0, 1.0)
        weights = np.ones(p.size) if ranking.weights is None else ranking.weights[start:stop]
        variance = float((weights * weights) @ (p * (1.0 - p)))
        if weights.size == 0 or variance == 0.0:
            continue
        weight = float(weights.sum())
        if variance >= _NORMAL_FROM * float((weights * weights).max()):
            yield weight, np.abs(rng.normal(0.0, sqrt(variance), draws))
            continue
        expected, gaps = float(weights @ p), np.empty(draws)
        rows = max(1, _DRAWN_AT_ONCE // p.size)
        for first in range(0, draws, rows):
            outcomes = rng.random((min(rows, draws - first), p.size)) < p
            np.abs(outcomes @ weights - expected, out=gaps[first : first + rows])
        yield weight, gaps


def expected_by_chance(
    scores: Scores, *, bins: int = 15, adaptive: bool = False, draws: int = 1000, seed: int = 0
) -> Chance:
    """The top-label calibration error with the value it would have under perfect calibration.

    The error is never negative, so even perfect probabilities show one: only what exceeds this counts.

    Raises:
        ValueError: the scores carry a batch of weights.
    """
    _refuse_batch(scores)
    ranking = scores.top_label
    starts = _mass_starts(ranking, bins) if adaptive else _width_starts(ranking, bins)
    simulated = chance_of(ranking, starts, draws=draws, rng=np.random.default_rng(seed))
    return _chance(float(_binned(ranking, starts).error), simulated, seed)


def largest_by_chance(scores: Scores, *, bins: int = 15, draws: int = 1000, seed: int = 0) -> Chance:
    """The same for the maximum calibration error, which the bin with the fewest samples mostly decides.

    Raises:
        ValueError: the scores carry a batch of weights.
    """
    _refuse_batch(scores)
    ranking = scores.top_label
    starts = _width_starts(ranking, bins)
    simulated = np.zeros(draws)
    for weight, gaps in _gaps_by_chance(ranking, starts, draws, np.random.default_rng(seed)):
        np.maximum(simulated, gaps / weight, out=simulated)
    return _chance(float(_binned(ranking, starts).largest), simulated, seed)


def expected_by_chance_of_classes(scores: Scores, *, bins: int = 15, draws: int = 1000, seed: int = 0) -> Chance:
    """The same for the class-wise error. Classes are simulated apart: the mean is exact, the quantile approximate."""
    _refuse_batch(scores)
    rng = np.random.default_rng(seed)
    simulated, observed = np.zeros(draws), 0.0
    for ranking in scores.rankings:
        starts = _width_starts(ranking, bins)
        simulated += chance_of(ranking, starts, draws=draws, rng=rng)
        observed += float(_binned(ranking, starts).error)
    return _chance(observed / scores.n_classes, simulated / scores.n_classes, seed)


def _refuse_batch(scores: Scores) -> None:
    if scores.weights is not None and scores.weights.ndim > 1:
        raise ValueError("one vector of weights at a time")


def _chance(observed: float, simulated: Array, seed: int) -> Chance:
    draws = simulated.size
    reached = int(np.count_nonzero(simulated >= observed * (1.0 - _TOLERANCE)))
    return Chance(
        observed=observed,
        mean=float(simulated.mean()),
        upper=float(np.quantile(simulated, 0.95)),
        p_value=(1 + reached) / (1 + draws),
        draws=draws,
        seed=seed,
    )


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Brier score of one class against the rest = miscalibration - discrimination + uncertainty, each of shape (...).

    Without bins: the calibrated forecast is the isotonic regression of the outcomes (Dimitriadis, Gneiting & Jordan
    2021).
    """

    brier: Array
    miscalibration: Array
    discrimination: Array
    uncertainty: Array


def decompose(scores: Scores, code: int) -> Decomposition:
    """CORP decomposition of the binary Brier score of a class."""
    ranking = scores.ranking(code)
    hit = (scores.y == code).astype(np.float64)
    probability = scores.columns[code]
    brier = ratio(total(scores.sums_of((probability - hit) ** 2)), scores.n)
    positives, everyone = ranking.positives, ranking.positives + ranking.negatives
    uncertainty = ratio(positives * ranking.negatives, everyone * everyone)
    discrimination = np.empty(positives.shape)
    for row, (tp, fp) in zip(np.ndindex(positives.shape), ranking.hulls, strict=True):
        up, right = np.diff(tp), np.diff(fp)
        weight = up + right
        share = float(positives[row]) / float(everyone[row])
        # Variance of the calibrated forecast: what it tells beyond the share of the class.
        discrimination[row] = float(weight @ (up / weight - share) ** 2) / float(everyone[row])
    return Decomposition(brier, brier - uncertainty + discrimination, discrimination, uncertainty)


def recalibration(ranking: Ranking) -> tuple[Array, Array]:
    """Isotonic regression of the outcomes: falling calibrated values, and the weight that has each; for weights (n,)
    only.
    """
    ((tp, fp),) = ranking.hulls
    up, right = np.diff(tp), np.diff(fp)
    return up / (up + right), up + right


@dataclass(frozen=True, slots=True)
class Reliability:
    """Murphy's decomposition over distinct forecasts: Brier = reliability - resolution + uncertainty, each of shape
    (...).
    """

    reliability: Array
    resolution: Array
    uncertainty: Array


def murphy(scores: Scores, code: int) -> Reliability:
    """Decomposition of the binary Brier score of a class over the distinct values of its probability (Murphy 1973)."""
    ranking = scores.ranking(code)
    size = ranking.values.size
    ends = np.arange(size) if ranking.ends is None else ranking.ends
    starts = np.concatenate([[0], ends[:-1] + 1])
    weights = np.ones(size) if ranking.weights is None else ranking.weights
    weight = np.add.reduceat(weights, starts, axis=-1)
    hits = np.add.reduceat(weights * ranking.members, starts, axis=-1)
    everyone = weight.sum(axis=-1)
    share = ratio(hits.sum(axis=-1), everyone)
    frequency = np.where(weight > 0, ratio(hits, np.where(weight > 0, weight, 1.0)), 0.0)
    apart = np.vecdot(weight, (ranking.values.take(ends) - frequency) ** 2)
    spread = np.vecdot(weight, (frequency - share[..., None]) ** 2)
    return Reliability(ratio(apart, everyone), ratio(spread, everyone), share * (1.0 - share))


def spiegelhalter(scores: Scores, code: int) -> tuple[float, float]:
    """Spiegelhalter's Z for the probabilities of a class, and its two-sided p (1986). Unweighted.

    Returns:
        NaN twice where every probability is 0, 1/2 or 1, which leaves the statistic without variance.

    Raises:
        ValueError: the scores carry weights, for which the statistic has no known distribution.
    """
    if scores.weights is not None:
        raise ValueError("Spiegelhalter's Z is not defined for weighted samples")
    p, y = scores.columns[code], (scores.y == code).astype(np.float64)
    lean = 1.0 - 2.0 * p
    variance = float(np.vecdot(lean * lean, p * (1.0 - p)))
    if variance <= 0.0:
        return float("nan"), float("nan")
    z = float(np.vecdot(y - p, lean)) / sqrt(variance)
    return z, erfc(abs(z) / sqrt(2.0))
