"""Do the probabilities mean what they say? Bins over a ranking, and measures without bins.

A ranking's scores are the probabilities and its members the samples for which the event happened: the class itself
for a class, a correct prediction for the top label.
"""

from dataclasses import dataclass
from math import erfc, sqrt
from typing import NamedTuple

import numpy as np

from app.kernel.numerics.arrays import Array, ratio, silently, total
from app.kernel.samples.rankings.counts import Positions
from app.kernel.samples.rankings.ranking import Ranking
from app.kernel.samples.scores import Scores

# A probability this near to the upper limit of a bin belongs to it: 0.1 + 0.2 lies in (0.2, 0.3].
TOLERANCE = 1e-12


class Excess(NamedTuple):
    """Mean of stated probabilities, by how much it is above the frequency of the events, and the standard error of
    that.
    """

    stated: float
    gap: float
    error: float


def excess_of_top_label(scores: Scores) -> Excess:
    """Of the probability of the predicted class, and how often it is right; one vector of weights at most."""
    weights = np.ones(scores.n_samples) if scores.weights is None else scores.weights
    above = scores.confidence - (scores.truth_rank == 0)
    stated, gap = (float(np.average(values, weights=weights)) for values in (scores.confidence, above))
    return Excess(stated, gap, float(np.sqrt(np.sum((weights * (above - gap)) ** 2)) / weights.sum()))


@dataclass(frozen=True, slots=True)
class Bins:
    """Weight, summed probabilities and weight of the events in each bin, from the highest bin down, each of shape
    (..., b).
    """

    weight: Array
    expected: Array
    observed: Array

    @property
    def gaps(self) -> Array:
        """Observed less expected frequency as a share of all weight, shape (..., b): they add up to the error."""
        return ratio(self.observed - self.expected, self.weight.sum(axis=-1, keepdims=True))

    @property
    def gaps_within(self) -> Array:
        """The same as a share of the weight of the bin, 0 where a bin is empty."""
        return ratio(self.observed - self.expected, np.where(self.weight > 0, self.weight, 1.0))

    def gaps_of(self, norm: str) -> Array:
        """Those of which the sum of sizes (l1) is the error, the root of the sum of squares (l2) the root mean square,
        and the largest (max) the largest, shape (..., b).
        """
        if norm == "l1":
            return self.gaps
        return self.gaps_within * np.sqrt(self._shares) if norm == "l2" else self.gaps_within

    @property
    def error(self) -> Array:
        """Weighted mean of |observed - expected| frequency, shape (...)."""
        return ratio(np.abs(self.observed - self.expected).sum(axis=-1), self.weight.sum(axis=-1))

    @property
    def root_mean_square(self) -> Array:
        """Root of the weighted mean of squared gaps between observed and expected frequency, shape (...)."""
        return np.asarray(np.sqrt(np.vecdot(self._shares, np.square(self.gaps_within))))

    @property
    def _shares(self) -> Array:
        return ratio(self.weight, self.weight.sum(axis=-1, keepdims=True))

    @property
    def largest(self) -> Array:
        """Largest |observed - expected| frequency of a bin that is not empty, shape (...)."""
        with silently():
            gaps = np.abs(self.observed - self.expected) / self.weight
        filled = self.weight > 0
        return np.where(filled.any(axis=-1), np.where(filled, gaps, 0.0).max(axis=-1), np.nan)


def equal_width(ranking: Ranking, bins: int) -> Bins:
    """Bins (lo, hi] of equal width over [0, 1]; 0 belongs to the lowest."""
    return Bins(*ranking.between(width_limits(bins)))


def equal_mass(ranking: Ranking, bins: int) -> Bins:
    """Bins of equal weight. Samples of one probability stay together, in the bin of the middle of their weight."""
    return Bins(*ranking.in_parts(bins))


def binned(ranking: Ranking, starts: Positions) -> Bins:
    """Bins between consecutive positions (b + 1)."""
    return Bins(*ranking.slices(starts))


def width_starts(ranking: Ranking, bins: int) -> Positions:
    """Positions (b + 1) between which the bins of equal width lie."""
    return ranking.starts_between(width_limits(bins))


def width_limits(bins: int) -> Array:
    """Upper limits (b - 1) of all of them but the highest, falling."""
    limits: Array = np.arange(bins - 1, 0, -1) / bins + TOLERANCE
    return limits


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Brier score of one class against the rest, taken apart in two ways, each part of shape (...).

    Brier = miscalibration - discrimination + uncertainty, without bins: the calibrated forecast is the isotonic
    regression of the outcomes (Dimitriadis, Gneiting & Jordan 2021). Brier = reliability - resolution + uncertainty,
    over the distinct forecasts (Murphy 1973), which says little where hardly any two are equal.
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
    # Forecasts that all differ are as far apart as the outcomes are from them.
    resolution = uncertainty if ranking.ends is None else _resolution(ranking)
    return Decomposition(
        brier=brier,
        miscalibration=brier - uncertainty + discrimination,
        discrimination=discrimination,
        uncertainty=uncertainty,
        reliability=brier - uncertainty + resolution,
        resolution=resolution,
    )


def _resolution(ranking: Ranking) -> Array:
    """Variance (...) of the frequency of the members over the distinct scores."""
    ends = ranking.last
    starts = np.concatenate([[0], ends[:-1] + 1])
    weights = np.ones(ranking.values.size) if ranking.weights is None else ranking.weights
    weight = np.add.reduceat(weights, starts, axis=-1)
    hits = np.add.reduceat(weights * ranking.members, starts, axis=-1)
    everyone = weight.sum(axis=-1)
    share = ratio(hits.sum(axis=-1), everyone)
    frequency = np.where(weight > 0, ratio(hits, np.where(weight > 0, weight, 1.0)), 0.0)
    return ratio(np.vecdot(weight, (frequency - share[..., None]) ** 2), everyone)


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
