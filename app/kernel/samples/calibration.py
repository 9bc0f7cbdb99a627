"""Calibration: bins over a ranking, decompositions without bins, and errors simulated under perfect calibration.

The scores of a ranking are the probabilities, and its members the samples with the event: membership of a class, or a
correct prediction for the top label.

Simulation follows Bröcker & Smith (2007). All bins, and all classes, of one simulated data set use one outcome per
sample.
"""

from dataclasses import dataclass
from math import erfc, sqrt

import numpy as np

from app.kernel.numerics.arrays import Array, ratio
from app.kernel.samples.rankings import Bins, Positions, Ranking
from app.kernel.samples.scores import Scores

# Tolerance at the upper limit of a bin: 0.1 + 0.2 lies in (0.2, 0.3].
TOLERANCE = 1e-12


def equal_width(ranking: Ranking, bins: int) -> Bins:
    """Bins (lo, hi] of equal width over [0, 1]; 0 belongs to the lowest."""
    return ranking.between(width_limits(bins))


def width_limits(bins: int) -> Array:
    """Upper limits (b - 1), falling, of all bins of equal width but the highest."""
    limits: Array = np.arange(bins - 1, 0, -1) / bins + TOLERANCE
    return limits


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Two decompositions of the Brier score of one class against the rest, each part of shape (...).

    Brier = miscalibration - discrimination + uncertainty, without bins: the calibrated forecast is the isotonic
    regression of the outcomes (Dimitriadis, Gneiting & Jordan 2021). Brier = reliability - resolution + uncertainty,
    over the distinct forecasts (Murphy 1973), which is uninformative where hardly any two are equal.
    """

    brier: Array
    miscalibration: Array
    discrimination: Array
    uncertainty: Array
    reliability: Array
    resolution: Array


def decompose(scores: Scores, code: int) -> Decomposition:
    """Both decompositions of the binary Brier score of a class."""
    ranking = scores.ranking(code)
    brier = ratio(scores.outcomes.squared_error[..., code], scores.n)
    positives, everyone = ranking.positives, ranking.positives + ranking.negatives
    uncertainty = ratio(positives * ranking.negatives, everyone * everyone)
    discrimination = np.empty(positives.shape)
    for row, (tp, fp) in zip(np.ndindex(positives.shape), ranking.hulls, strict=True):
        up, right = np.diff(tp), np.diff(fp)
        weight = up + right
        share = float(positives[row]) / float(everyone[row])
        # Variance of the calibrated forecast around the share of the class.
        discrimination[row] = float(weight @ (up / weight - share) ** 2) / float(everyone[row])
    return Decomposition(
        brier=brier,
        miscalibration=brier - uncertainty + discrimination,
        discrimination=discrimination,
        uncertainty=uncertainty,
        reliability=brier - uncertainty + ranking.resolution,
        resolution=ranking.resolution,
    )


def spiegelhalter(scores: Scores, code: int) -> tuple[float, float]:
    """Spiegelhalter's Z for the probabilities of a class, and its two-sided p (1986). Of samples without weights: with
    some it has no known distribution.

    Returns:
        NaN twice if every probability is 0, 1/2 or 1: then the statistic has no variance.
    """
    leaning, variance = float(scores.outcomes.leaning[code]), float(scores.outcomes.variance[code])
    if variance <= 0.0:
        return float("nan"), float("nan")
    z = leaning / sqrt(variance)
    return z, erfc(abs(z) / sqrt(2.0))


# Sums of more independent outcomes than this much variance are drawn from the normal distribution.
NORMAL_FROM = 200.0
_DRAWN_AT_ONCE = 1 << 20
# Samples, and their outcomes, per block: they fit in the second-level cache.
_BLOCK = 16384


@dataclass(frozen=True, slots=True)
class ErrorByChance:
    """Calibration error with its distribution under perfect calibration: mean and 95 % quantile over simulated
    outcomes.

    ``p_value`` is the share of simulations with at least the observed error, the observed one included.
    """

    observed: float
    mean: float
    upper: float
    p_value: float
    draws: int
    seed: int


def expected_by_chance(
    scores: Scores, *, bins: int = 15, adaptive: bool = False, draws: int = 1000, seed: int = 0
) -> ErrorByChance:
    """Top-label calibration error, with its distribution under perfect calibration.

    The error is never negative, so even perfect probabilities have one. Only the excess over it counts.
    """
    found, deviations = _top_label(scores, bins, draws, seed, adaptive=adaptive)
    return error_by_chance(float(found.error), np.abs(deviations).sum(axis=0) / found.weight.sum(), seed)


def largest_by_chance(scores: Scores, *, bins: int = 15, draws: int = 1000, seed: int = 0) -> ErrorByChance:
    """Maximum calibration error, with its distribution under perfect calibration. The bin with the fewest samples
    mostly decides it.
    """
    found, deviations = _top_label(scores, bins, draws, seed)
    filled = found.weight > 0
    gaps = np.abs(deviations[filled]) / found.weight[filled, None]
    return error_by_chance(float(np.abs(found.gaps_within).max()), gaps.max(axis=0), seed)


def expected_by_chance_of_classes(scores: Scores, *, bins: int = 15, draws: int = 1000, seed: int = 0) -> ErrorByChance:
    """Class-wise calibration error, with its distribution under perfect calibration.

    A simulated outcome counts for its own class and against all others.
    """
    rng = np.random.default_rng(seed)
    starts = [ranking.starts_between(width_limits(bins)) for ranking in scores.rankings]
    found = [equal_width(ranking, bins) for ranking in scores.rankings]
    observed = float(np.mean([of_class.error for of_class in found]))
    if scores.n_classes == 2:
        summed = _of_two_classes(scores, starts, draws, rng)
    else:
        summed = _of_classes(scores, bins, draws, rng)
    return error_by_chance(observed, summed / (scores.n_classes * float(found[0].weight.sum())), seed)


def _top_label(scores: Scores, bins: int, draws: int, seed: int, *, adaptive: bool = False) -> tuple[Bins, Array]:
    """Bins by the highest probability, and simulated deviations (b, draws) of the correct predictions in each."""
    ranking = scores.top_label
    starts = ranking.starts_of_parts(bins) if adaptive else ranking.starts_between(width_limits(bins))
    # Several errors share one simulation.
    simulated = (starts.tobytes(), draws, seed)
    if simulated not in ranking.simulated:
        ranking.simulated[simulated] = _deviations(ranking, starts, draws, np.random.default_rng(seed))
    return ranking.slices(starts), ranking.simulated[simulated]


def _deviations(ranking: Ranking, starts: Positions, draws: int, rng: np.random.Generator) -> Array:
    """Simulated weight of the members less its expectation, shape (b, draws), between consecutive positions."""
    found = np.zeros((starts.size - 1, draws))
    for row, start, stop in zip(found, starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        p = np.clip(ranking.values[start:stop], 0.0, 1.0)
        weights = ranking.each[start:stop]
        variance = float((weights * weights) @ (p * (1.0 - p)))
        if weights.size == 0 or variance == 0.0:
            continue
        if variance >= NORMAL_FROM * float((weights * weights).max()):
            row[:] = rng.normal(0.0, sqrt(variance), draws)
            continue
        expected = float(weights @ p)
        rows = max(1, _DRAWN_AT_ONCE // p.size)
        for first in range(0, draws, rows):
            outcomes = rng.random((min(rows, draws - first), p.size)) < p
            row[first : first + rows] = outcomes @ weights - expected
    return found


def _of_two_classes(scores: Scores, starts: list[Positions], draws: int, rng: np.random.Generator) -> Array:
    """Absolute deviations (draws,) summed over the bins of both classes.

    An excess of one class is a deficit of the other, and the order by one is the reverse of the order by the other. So
    deviations are drawn for the pieces that lie in one bin of each, and added up.
    """
    ranking = scores.ranking(1)
    sides = (starts[1], ranking.members.size - starts[0][::-1])
    pieces = np.unique(np.concatenate(sides))
    cumulative = np.zeros((pieces.size, draws))
    np.cumsum(_deviations(ranking, pieces, draws, rng), axis=0, out=cumulative[1:])
    summed = np.zeros(draws)
    for side in sides:
        summed += np.abs(np.diff(cumulative[np.searchsorted(pieces, side)], axis=0)).sum(axis=0)
    return summed


def _of_classes(scores: Scores, bins: int, draws: int, rng: np.random.Generator) -> Array:
    """Absolute deviations (draws,) summed over the bins of several classes, simulated sample by sample."""
    cells = scores.n_classes * bins
    deviations = np.zeros((draws, cells))
    for start in range(0, scores.n_samples, _BLOCK):
        part = slice(start, start + _BLOCK)
        columns = scores.columns[:, part]
        weights = scores.each[part]
        cell_of = ((columns * bins - bins * TOLERANCE).astype(np.intp) + np.arange(0, cells, bins)[:, None]).ravel()
        deviations -= np.bincount(cell_of, (columns * weights).ravel(), cells)
        reached, rows = np.cumsum(columns[:-1], axis=0), max(1, _BLOCK // weights.size)
        for first in range(0, draws, rows):
            some = deviations[first : first + rows]
            chosen = rng.random((len(some), weights.size))
            codes = sum((chosen >= limit for limit in reached), np.zeros(chosen.shape, dtype=np.intp))
            hit = cell_of.take(codes * weights.size + np.arange(weights.size))
            hit += np.arange(0, some.size, cells)[:, None]
            each = None if scores.weights is None else np.tile(weights, len(some))
            some += np.bincount(hit.ravel(), each, some.size).reshape(some.shape)
    summed: Array = np.abs(deviations).sum(axis=1)
    return summed


def error_by_chance(observed: float, simulated: Array, seed: int) -> ErrorByChance:
    """Observed error with the mean, quantile and p-value of simulated ones (draws)."""
    draws = simulated.size
    reached = int(np.count_nonzero(simulated >= observed * (1.0 - TOLERANCE)))
    return ErrorByChance(
        observed=observed,
        mean=float(simulated.mean()),
        upper=float(np.quantile(simulated, 0.95)),
        p_value=(1 + reached) / (1 + draws),
        draws=draws,
        seed=seed,
    )
