"""Sums of probabilities beside outcomes, in bins and over all samples."""

from itertools import pairwise

import numpy as np

from app.kernel.metrics.families.calibration import expected_calibration_error
from app.kernel.numerics.arrays import Array
from app.kernel.samples.calibration import width_limits
from app.kernel.samples.scores import Forecasts, Scores, Stated
from app.kernel.streamed.along import Cuts, Levels, Reduced, Reduction

# Of all calibration errors.
BINS = int(expected_calibration_error.card.defaults["bins"])
# Upper limits of all bins of equal width but the highest.
FALLING = width_limits(BINS)
# Of each bin, rising, the score above which it begins.
LIMITS = FALLING[::-1]
# Cells of the order of highest probabilities.
_STEPS = 1000


def bins_of(cells: Reduced) -> Array:
    """Weight, weighted sum of scores and weight of members (3, b) in bins of equal width, from the lowest up, of cells
    that end at `LIMITS`.
    """
    places, weights = np.searchsorted(LIMITS, cells.lowest), cells.weights.sum(axis=0)
    return np.stack([np.bincount(places, one, BINS) for one in (weights, weights * cells.scores, cells.weights[1])])


class OutcomeSums:
    """Sums over probabilities beside outcomes, from some samples at a time.

    Attributes:
        clipped: As `Scores.clipped`.
        excess: As `Scores.excess_sums`.
        ends: (K, 2, 2) as `Scores.ends`.
    """

    def __init__(self, n_classes: int) -> None:
        self.clipped, self.excess, self.ends = 0, np.zeros(6), np.full((n_classes, 2, 2), [np.inf, -np.inf])
        self._sums, self._confident = np.zeros((n_classes, 6)), np.zeros(3)

    def add(self, scores: Scores) -> None:
        """Go on with more samples."""
        each = map(scores.forecasts, range(len(self._sums)))
        self._sums += [[float(one.squared_error), one.leaning, one.variance, *one.unsure] for one in each]
        self.clipped += scores.clipped
        self.excess += scores.excess_sums
        self._confident += scores.confident
        for end, beyond in enumerate((np.minimum, np.maximum)):
            self.ends[..., end] = beyond(self.ends[..., end], scores.ends[..., end])

    @property
    def confident(self) -> Stated:
        """As `Scores.confident`."""
        return _stated(*self._confident.tolist())

    def forecasts(self, code: int) -> Forecasts:
        """Forecasts of a class, as `Scores.forecasts`."""
        squared_error, leaning, variance, size, events, expected = self._sums[code].tolist()
        return Forecasts(np.asarray(squared_error), leaning, variance, _stated(size, events, expected))


def _stated(size: float, events: float, expected: float) -> Stated:
    return Stated(int(size), int(events), expected)


class TopSums:
    """Highest probabilities beside whether they are right, summed while cuts come from the highest down.

    ``parts`` are weight, weighted sum of probabilities and weight of what is right (3, b) in bins of equal weight, from
    the lowest up. Samples of one probability stay together, in the bin of the middle of them.
    """

    def __init__(self, weight: float) -> None:
        self._weight, self.parts = weight, np.zeros((3, BINS))
        self._levels, self.reduction = Levels(np.arange(1, _STEPS) * weight / _STEPS), Reduction(LIMITS)
        self._reached = 0.0

    def add(self, cuts: Cuts) -> None:
        """Go on with the next lower probabilities."""
        p, right, both = cuts.scores, cuts.members, cuts.members + cuts.others
        sums = self._reached + np.cumsum(both)
        self._reached = float(sums[-1])
        self.reduction.add(cuts, np.unique(self._levels.reached(sums)))
        stops = np.searchsorted((sums - 0.5 * both) * BINS, np.arange(1, BINS) * self._weight)
        for place, (start, stop) in enumerate(pairwise([0, *stops.tolist(), p.size])):
            own, part = both[start:stop], slice(start, stop)
            self.parts[:, BINS - 1 - place] += own.sum(), own @ p[part], right[part].sum()
