"""Sums of probabilities beside outcomes, in bins and over all samples."""

from itertools import pairwise

import numpy as np

from app.kernel.metrics.families.calibration import expected_calibration_error
from app.kernel.numerics.arrays import Array
from app.kernel.samples.calibration import width_limits
from app.kernel.samples.scores import CONFIDENT, Excess, Forecasts, Scores, Stated
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
        ends: (K, 2, 2) as `Scores.ends`.
    """

    def __init__(self, n_classes: int) -> None:
        self.clipped, self.ends = 0, np.full((n_classes, 2, 2), [np.inf, -np.inf])
        self._sums = np.zeros((n_classes, 6))

    def add(self, scores: Scores) -> None:
        """Go on with more samples."""
        each = map(scores.forecasts, range(len(self._sums)))
        self._sums += [[float(one.squared_error), one.leaning, one.variance, *one.unsure] for one in each]
        self.clipped += scores.clipped
        for end, beyond in enumerate((np.minimum, np.maximum)):
            self.ends[..., end] = beyond(self.ends[..., end], scores.ends[..., end])

    def forecasts(self, code: int) -> Forecasts:
        """Forecasts of a class, as `Scores.forecasts`."""
        squared_error, leaning, variance, size, events, expected = self._sums[code].tolist()
        return Forecasts(np.asarray(squared_error), leaning, variance, Stated(int(size), int(events), expected))


class TopSums:
    """Highest probabilities beside whether they are right, summed while cuts come from the highest down.

    ``parts`` are weight, weighted sum of probabilities and weight of what is right (3, b) in bins of equal weight, from
    the lowest up. Samples of one probability stay together, in the bin of the middle of them.
    """

    def __init__(self, weight: float) -> None:
        self._weight, self.parts = weight, np.zeros((3, BINS))
        self._levels, self.reduction = Levels(np.arange(1, _STEPS) * weight / _STEPS), Reduction(LIMITS)
        self._reached = 0.0
        self._stated = np.zeros(3)
        # Of weights: them, times probabilities, times what these are above the outcome; of their squares likewise.
        self._sums = np.zeros(6)

    def add(self, cuts: Cuts) -> None:
        """Go on with the next lower probabilities."""
        p, right, wrong, squares = cuts
        rest, both = 1.0 - p, right + wrong
        sums = self._reached + np.cumsum(both)
        self._reached = float(sums[-1])
        self.reduction.add(cuts, np.unique(self._levels.reached(sums)))
        stops = np.searchsorted((sums - 0.5 * both) * BINS, np.arange(1, BINS) * self._weight)
        for place, (start, stop) in enumerate(pairwise([0, *stops.tolist(), p.size])):
            own, part = both[start:stop], slice(start, stop)
            self.parts[:, BINS - 1 - place] += own.sum(), own @ p[part], right[part].sum()
        self._sums += (
            both.sum(),
            both @ p,
            wrong @ p - right @ rest,
            squares.sum(),
            squares[1] @ p - squares[0] @ rest,
            squares[1] @ (p * p) + squares[0] @ (rest * rest),
        )
        sure = slice(None, p.size - int(np.searchsorted(p[::-1], CONFIDENT, side="left")))
        self._stated += both[sure].sum(), right[sure].sum(), both[sure] @ p[sure]

    @property
    def confident(self) -> Stated:
        """Samples, of one weight, with much probability; the event is that they are right."""
        size, events, expected = self._stated.tolist()
        return Stated(int(size), int(events), expected)

    @property
    def excess(self) -> Excess:
        """Excess of the probabilities over the share that is right."""
        weight, stated, away, squares, own, spread = self._sums.tolist()
        gap = away / weight
        return Excess(
            stated / weight, gap, float(np.sqrt(max(spread - 2.0 * gap * own + gap * gap * squares, 0.0))) / weight
        )
