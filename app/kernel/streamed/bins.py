"""Sums of probabilities beside outcomes, in bins and over all samples."""

from itertools import pairwise

import numpy as np

from app.kernel.metrics.families.calibration import expected_calibration_error
from app.kernel.numerics.arrays import Array
from app.kernel.samples.calibration import width_limits
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
