"""Calibration bins of a streamed ranking, of equal width or of equal weight."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from app.kernel.metrics.families.calibration import expected_calibration_error
from app.kernel.numerics.arrays import Array
from app.kernel.samples.calibration import width_limits
from app.kernel.samples.rankings import Positions, Ranking
from app.kernel.samples.scores import CONFIDENT, Excess, Forecasts, Stated
from app.kernel.streamed.along import Cuts, Levels, Reduced, Reduction, Side
from app.kernel.streamed.rows import NotStreamed

# Of all calibration errors.
BINS = int(expected_calibration_error.card.defaults["bins"])
_FALLING = width_limits(BINS)
# Of each bin, rising, the score above which it begins.
LIMITS = _FALLING[::-1]
_LOWEST = np.concatenate([[-np.inf], LIMITS])
# Cells of the order of highest probabilities.
_STEPS = 1000


class StreamedBins(Ranking):
    """A ranking of which bins are known, in their default number, and nothing else.

    Args:
        weight: Weight (..., b) of each bin, from the lowest score up.
        scores: Weighted sums of the scores.
        members: Weight of the members.
        by_width: Are they of equal width, or else of equal weight?
    """

    def __init__(self, weight: Array, scores: Array, members: Array, *, by_width: bool = True) -> None:
        self._falling = weight[..., ::-1], scores[..., ::-1], members[..., ::-1]
        self.weights, self.by_width = None, by_width

    def as_lists(self) -> list[list[float]]:
        """The three rows that it is made from."""
        return [side[::-1].tolist() for side in self._falling]

    @classmethod
    def from_lists(cls, stored: Sequence[Sequence[float]] | None) -> "StreamedBins | None":
        """From three such rows; None of None."""
        if stored is None:
            return None
        weight, scores, members = map(np.array, stored)
        return cls(weight, scores, members)

    def between(self, limits: Array) -> tuple[Array, Array, Array]:
        """Return the sums of bins between these limits, as ``Ranking.between``; only those that were made."""
        if not self.by_width or not np.array_equal(limits, _FALLING):
            raise NotStreamed(f"{BINS} bins of equal width were made, and no others")
        return self._falling

    def in_parts(self, parts: int) -> tuple[Array, Array, Array]:
        """Return the sums of bins of equal weight, as ``Ranking.in_parts``; only of the number that was made."""
        if self.by_width or parts != BINS:
            raise NotStreamed(f"{BINS} bins of equally many samples were made, and no others")
        return self._falling

    def __getattr__(self, name: str) -> Any:
        raise NotStreamed(f"{name} needs the samples of a ranking, which were streamed")


class BothBins(StreamedBins):
    """Bins of equal width, and those of equal weight beside them."""

    def __init__(self, widths: StreamedBins, parts: StreamedBins) -> None:
        self.weights, self.by_width, self._falling = None, True, widths._falling
        self.parts = parts

    def in_parts(self, parts: int) -> tuple[Array, Array, Array]:
        """Return the sums of bins of equal weight, as ``Ranking.in_parts``; only of the number that was made."""
        return self.parts.in_parts(parts)


class BinSums:
    """Sums in bins, while cuts come from the highest score down.

    Args:
        total: Weight of all samples, for bins of equal weight: samples of one score stay together, in the bin of the
            middle of them. None: bins are of equal width.
    """

    def __init__(self, total: float | None = None) -> None:
        self._total, self._reached = total, 0.0
        # Weight, weighted scores, and weight of members.
        self._sums = np.zeros((3, BINS))

    def __call__(self, cuts: Cuts) -> None:
        """Go on with the next lower scores."""
        ends = self._ends(cuts)
        for place, (stop, start) in enumerate(pairwise(ends.tolist())):
            if start == stop:
                continue
            p, held, others, _ = cuts.part(slice(start, stop))
            both = held + others
            self._sums[:, place] += both.sum(), both @ p, held.sum()

    def _ends(self, cuts: Cuts) -> Positions:
        """Positions (b + 1), falling, between which the cuts of each bin lie, from the lowest up."""
        if self._total is None:
            return np.append(cuts.scores.size - np.searchsorted(cuts.scores[::-1], _LOWEST, side="right"), 0)
        held = cuts.members + cuts.others
        reached = self._reached + np.cumsum(held)
        self._reached = float(reached[-1])
        wanted = np.arange(BINS) * self._total
        starts = np.searchsorted((reached - 0.5 * held) * BINS, wanted, side="left")
        return np.concatenate([[cuts.scores.size], starts[::-1]])

    def read(self) -> StreamedBins:
        """The bins, once all cuts were there."""
        return StreamedBins(*self._sums, by_width=self._total is None)


class ForecastSums:
    """Probabilities beside the outcomes, summed while cuts of a class come from the highest probability down.

    Args:
        members: Of the class.
        others: Those that are not.
    """

    def __init__(self, members: Side, others: Side) -> None:
        self._weight = members.weight + others.weight
        self._share = members.weight / self._weight
        # Squared errors, leanings and their variance, squares of frequencies about the share; then what is unsure.
        self._sums = np.zeros(7)

    def __call__(self, cuts: Cuts) -> None:
        """Go on with the next lower probabilities."""
        p, held, others, _ = cuts
        rest, lean, both = 1.0 - p, 1.0 - 2.0 * p, held + others
        away = held / both - self._share
        self._sums[:4] += (
            held @ (rest * rest) + others @ (p * p),
            held @ (rest * lean) - others @ (p * lean),
            both @ (lean * lean * p * rest),
            both @ (away * away),
        )
        low = slice(p.size - int(np.searchsorted(p[::-1], 0.5, side="right")), None)
        self._sums[4:] += both[low].sum(), held[low].sum(), both[low] @ p[low]

    def read(self) -> Forecasts:
        """The sums, once all cuts were there."""
        squared_error, leaning, variance, _, size, events, expected = self._sums.tolist()
        return Forecasts(np.asarray(squared_error), leaning, variance, Stated(int(size), int(events), expected))

    @property
    def resolution(self) -> float:
        """Variance of the frequency of the members over the distinct probabilities."""
        return float(self._sums[3] / self._weight)


class TopSums:
    """Highest probabilities beside whether they are right, summed while cuts come from the highest down.

    Args:
        weight: Of all samples.
    """

    def __init__(self, weight: float) -> None:
        self._levels, self._reduction = Levels(np.arange(1, _STEPS) * weight / _STEPS), Reduction(LIMITS)
        self._reached = 0.0
        self._stated = np.zeros(3)
        # Of weights: them, times probabilities, times what these are above the outcome; of their squares likewise.
        self._sums = np.zeros(6)

    def __call__(self, cuts: Cuts) -> None:
        """Go on with the next lower probabilities."""
        p, right, wrong, squares = cuts
        rest, both = 1.0 - p, right + wrong
        sums = self._reached + np.cumsum(both)
        self._reached = float(sums[-1])
        self._reduction.add(cuts, np.unique(self._levels.reached(sums)))
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
    def cells(self) -> Reduced:
        """The samples between some of the cuts."""
        return self._reduction.cells

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
