"""Bands around curves: where the curve of the population runs, point by point or as a whole.

Curves of rates follow from simulated rates of both classes: a resample of few samples says that a rate near 1 is 1. A
reliability diagram in bins has the limits of a rate in each bin; an isotonic one is shown beside what calibrated
probabilities would look like (Bröcker & Smith 2007, Dimitriadis, Gneiting & Jordan 2021).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array, silently
from app.kernel.numerics.scipy_bridge import falling_means
from app.kernel.samples.calibration import equal_width, width_limits
from app.kernel.samples.rankings import Ranking
from app.kernel.uncertainty.designs import RECALL, DesignedRate, DesignedSums
from app.kernel.uncertainty.draws import generator
from app.kernel.uncertainty.groups import Grouping
from app.kernel.uncertainty.intervals import Limits, clopper_pearson, wilson

Codes = NDArray[np.intp]
# Points at which curves are held together.
_MOST_TOGETHER = 5000
# Simulated outcomes that are looked at in one go.
_AT_ONCE = 1 << 18
# From rates to the lowest and the highest curve (2, m) that they allow at the points asked for.
Envelope = Callable[["Rates"], Array]


class BandForm(StrEnum):
    """Coverage of a band: at each point, or of the whole curve."""

    POINTWISE = "pointwise"
    SIMULTANEOUS = "simultaneous"


@dataclass(frozen=True, slots=True)
class BandSettings:
    """Form and level of a band.

    Attributes:
        form: Each point for itself, or all of them together.
        level: Probability with which it holds each point, or the curve.
    """

    form: BandForm
    level: float


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates of a population at every cut of the samples.

    Attributes:
        tpr: (2, c) lowest and highest true positive rate at each cut, from the empty one on.
        fpr: (2, c) lowest and highest false positive rate.
        share: Of the class.
        thresholds: (c) falling, NaN for the empty cut.
    """

    tpr: Array
    fpr: Array
    share: float
    thresholds: Array


def tpr_between(fpr: Array) -> Envelope:
    """Lowest and highest true positive rates (2, m) at false positive rates (m)."""

    def read(rates: Rates) -> Array:
        last = np.searchsorted(rates.fpr[1], fpr, side="right") - 1
        first = np.minimum(np.searchsorted(rates.fpr[0], fpr, side="right"), rates.thresholds.size - 1)
        low = np.where(last < 0, 0.0, rates.tpr[0].take(last))
        # Where everything is predicted nothing is missed, in any population.
        return np.where(fpr >= 1.0, 1.0, np.stack([low, rates.tpr[1].take(first)]))

    return read


def fnr_between(fpr: Array) -> Envelope:
    """Lowest and highest false negative rates (2, m) at false positive rates (m)."""
    found = tpr_between(fpr)
    return lambda rates: 1.0 - found(rates)[::-1]


def precision_between(recall: Array) -> Envelope:
    """Lowest and highest precision (2, m) at recalls (m) by Bayes' rule; the highest is NaN at a recall of 0."""

    def read(rates: Rates) -> Array:
        last = np.searchsorted(rates.tpr[1], recall, side="left") - 1
        first = np.minimum(np.searchsorted(rates.tpr[0], recall, side="right"), rates.thresholds.size - 1)
        fpr = np.stack([rates.fpr[1].take(first), np.where(last < 0, 0.0, rates.fpr[0].take(last))])
        hits = rates.share * recall
        return hits / (hits + (1.0 - rates.share) * fpr)

    return read


def net_benefit_between(threshold: Array, prevalence: float | None) -> Envelope:
    """Net benefit (2, m) of acting from threshold probabilities (m) on, at a share of the class or at the population's.

    TP/n - FP/n t/(1-t), Vickers & Elkin (2006).
    """
    odds = threshold / (1.0 - threshold)

    def read(rates: Rates) -> Array:
        falling = rates.thresholds[1:]
        place = falling.size - np.searchsorted(falling[::-1], threshold, side="left")
        share = rates.share if prevalence is None else prevalence
        return share * rates.tpr[:, place] - (1.0 - share) * rates.fpr[::-1, place] * odds

    return read


def simulated_rates(ranking: Ranking, *, draws: int, seed: int, grouping: Grouping | None = None) -> Iterator[Rates]:
    """Rates of the populations of two classes, so many times.

    What every sample, or every group, stands for in its population is drawn, and what lies beyond the samples of a
    class: as much as one of them (the Bayesian bootstrap of Rubin 1981; for ROC curves Gu, Ghosal & Roy 2008). Half of
    the curves are the lowest and half the highest that this allows: a single rate of samples of one weight has the
    quantiles of the two beta distributions of Clopper and Pearson, mixed.

    Args:
        ranking: Samples of both classes, with some weight of each.
        draws: Number of populations.
        seed: Of the draws.
        grouping: Groups of the samples, in the order in which these came; None where they are independent.
    """
    random, masses, members = generator(seed), ranking.each, ranking.members
    cuts = Ranking(ranking.values, members).cuts()
    groups = np.arange(masses.size) if grouping is None else grouping.codes[ranking.places]
    sides = (members, cuts.tp.astype(np.intp)), (~members, cuts.fp.astype(np.intp))
    # The mass of one sample or group of a class, by mass.
    of_groups = [np.bincount(groups[side], masses[side]) for side, _ in sides]
    unit = np.array([np.square(one).sum() / one.sum() for one in of_groups])
    for _ in range(draws):
        drawn = random.standard_exponential(int(groups.max()) + 1)[groups] * masses
        sums = [np.concatenate([[0.0], np.cumsum(drawn[side])]).take(counts) for side, counts in sides]
        beyond = random.standard_exponential(2) * unit
        tpr, fpr = (np.stack([one, one + gap]) / (one[-1] + gap) for one, gap in zip(sums, beyond, strict=True))
        positives, negatives = [one[-1] for one in sums] + random.standard_gamma(0.5, 2) * unit
        yield Rates(tpr, fpr, positives / (positives + negatives), cuts.thresholds)


def band_around(curves: Iterable[Array], settings: BandSettings) -> Limits:
    """Limits (m) from heights (h, m) of simulated curves, NaN at points where not every one of them has a height."""
    with silently():
        drawn = np.concatenate([*curves])
    # A resample without the class, or without others, has no curve.
    drawn = drawn[np.isfinite(drawn).any(axis=1)]
    low, high = np.full((2, drawn.shape[1]), np.nan)
    known = np.isfinite(drawn).all(axis=0)
    if drawn.size and known.any():
        low[known], high[known] = read_band(drawn[:, known], settings)
    return low, high


def consistency_band(ranking: Ranking, *, draws: int, seed: int, at: Array, settings: BandSettings) -> Limits:
    """Return the band of the isotonic regression at probabilities (m), if all probabilities are right.

    A simultaneous band holds at all probabilities that occur, whichever of them are asked for; of very many at some
    thousands, evenly chosen by rank.

    Args:
        ranking: Falling probabilities of an event, without weights.
        draws: Simulated sets of outcomes.
        seed: Of the draws.
        at: Probabilities (m) that occur.
        settings: What is asked.
    """
    if settings.form is BandForm.POINTWISE:
        return read_band(consistent_curves(ranking, draws=draws, seed=seed, at=at), settings)
    occurring = ranking.values.take(ranking.last)
    chosen = np.linspace(0, occurring.size - 1, min(occurring.size, _MOST_TOGETHER)).astype(np.intp)
    points = np.union1d(occurring[chosen], at)
    low, high = _common_multiple(consistent_curves(ranking, draws=draws, seed=seed, at=points), settings.level)
    places = np.searchsorted(points, at)
    return low[places], high[places]


def _common_multiple(drawn: Array, level: float) -> Limits:
    """Limits (m), within 0 and 1, that hold a share of simulated curves (D, m) at all points at once.

    Each side is one multiple of what 1 % of the curves exceed there. A tail in common to all points, as of `read_band`,
    would lie beyond the outermost curve: an isotonic regression of 1,000 samples is flat over few of them.
    """
    middle = np.median(drawn, axis=0)
    above, below = np.maximum(drawn - middle, 0.0), np.maximum(middle - drawn, 0.0)
    # A point at which fewer than 1 % of the curves leave the middle has their root mean square.
    up, down = (
        np.maximum(np.quantile(side, 0.99, axis=0), np.sqrt(np.mean(side**2, axis=0))) for side in (above, below)
    )
    with silently():
        # 0 / 0: no curve is there on that side.
        reach = np.fmax(np.fmax.reduce(above / up, axis=1), np.fmax.reduce(below / down, axis=1))
    times = float(np.quantile(np.nan_to_num(reach), level, method="higher"))
    return np.maximum(middle - times * down, 0.0), np.minimum(middle + times * up, 1.0)


def consistent_curves(ranking: Ranking, *, draws: int, seed: int, at: Array) -> Array:
    """Isotonic regressions (D, m) of simulated outcomes, as `consistency_band` draws them."""
    random, n = generator(seed), ranking.values.size
    step = max(1, _AT_ONCE // n)
    ends = ranking.last
    starts, falling = np.concatenate([[0], ends[:-1] + 1]), ranking.values.take(ends)
    places = falling.size - 1 - np.searchsorted(falling[::-1], at, side="left")
    found = np.empty((draws, at.size))
    for start in range(0, draws, step):
        happened = random.random((min(step, draws - start), n)) < ranking.values
        sums = np.add.reduceat(happened, starts, axis=1, dtype=np.float64)
        found[start : start + step] = falling_means(sums, np.diff(starts, append=n).astype(np.float64))[:, places]
    return found


def bins_band(ranking: Ranking, bins: int, settings: BandSettings, grouping: Grouping | None = None) -> Limits:
    """Return limits of the observed frequency in those of so many bins of equal width that hold samples (m), from the
    lowest up: Wilson's of each, or those of Clopper and Pearson of all. NaN where all are in one group.

    All together hold at a Bonferroni level, far out in the tails, where Wilson's limits of few samples do not. Samples
    in weights or groups count as many as they are worth (Korn & Graubard 1998).

    Args:
        ranking: Falling probabilities of an event.
        bins: Number of all bins.
        settings: What is asked.
        grouping: Groups of the samples, in the order in which these came; None where they are independent.
    """
    found, pointwise = equal_width(ranking, bins), settings.form is BandForm.POINTWISE
    filled = np.flatnonzero(found.weight > 0)[::-1]
    level = settings.level if pointwise else 1.0 - (1.0 - settings.level) / filled.size
    if grouping is None and ranking.weights is None:
        hits, sizes = found.observed[filled], found.weight[filled]
    else:
        hits, sizes = _designed_bins(ranking, bins, filled, grouping).as_counts(level)
    return wilson(hits, sizes, level) if pointwise else clopper_pearson(hits, sizes, level)


def _designed_bins(ranking: Ranking, bins: int, filled: Codes, grouping: Grouping | None) -> DesignedRate:
    """Observed frequencies in the bins of these numbers (m), of samples in weights or in groups."""
    weights = ranking.each
    groups = np.arange(weights.size) if grouping is None else grouping.codes[ranking.places]
    per_weight = None if grouping is None else np.count_nonzero(weights) / float(weights.sum())
    # A bin is a label that its samples have: its recall is the share of those in which it is found.
    place = np.searchsorted(-width_limits(bins), -ranking.values, side="right")
    labels = ((place == one, ranking.members) for one in filled)
    return DesignedSums.of_groups(labels, groups, weights, per_weight).rates(RECALL)


def read_band(drawn: Array, settings: BandSettings) -> Limits:
    """Limits (m) from curves in resamples (D, m): quantiles, as far out as it takes for the form.

    Simultaneous: the same tail at every point, chosen so that as many curves lie within as a whole (Montiel Olea &
    Plagborg-Møller 2019, algorithm 2).
    """
    tail = (1.0 - settings.level) / 2.0
    if settings.form is not BandForm.POINTWISE:
        tail = min(tail, _common_tail(drawn, settings.level))
    low, high = np.quantile(drawn, [tail, 1.0 - tail], axis=0)
    return low, high


def _common_tail(drawn: Array, level: float) -> float:
    """The tail to leave out at every point so that a share of the curves (D, m) lies within at all points."""
    depth = np.ones(len(drawn))
    for values in drawn.T:
        rising = np.sort(values)
        # Shares of the curves that are at most as high, and at least as high.
        above = np.searchsorted(rising, values, side="right") / values.size
        below = 1.0 - np.searchsorted(rising, values, side="left") / values.size
        np.minimum(depth, np.minimum(above, below), out=depth)
    return max(0.0, float(np.quantile(depth, 1.0 - level, method="lower")) - 1.0 / len(drawn))
