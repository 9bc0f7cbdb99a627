"""Calibration bins of a streamed ranking, of equal width or of equal weight."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from app.kernel.metrics.families.calibration import expected_calibration_error
from app.kernel.numerics.arrays import Array
from app.kernel.samples.calibration import Excess, width_limits
from app.kernel.samples.rankings import Positions, Ranking
from app.kernel.streamed.along import Cuts
from app.kernel.streamed.rows import NotStreamed

# Of all calibration errors.
BINS = int(expected_calibration_error.card.defaults["bins"])
_FALLING = width_limits(BINS)
# Of each bin, rising, the score above which it begins, and its middle.
_LOWEST = np.concatenate([[-np.inf], _FALLING[::-1]])
_MIDDLES = (np.arange(BINS) + 0.5) / BINS
# Variances of scores below it are rounding.
_ROUNDING = 1e-14
_BLOCK = 1 << 16
_SIDES = np.arange(2.0)[:, None]


class Spreads(NamedTuple):
    """Scores of others and members in each bin, from the lowest up; every entry has shape (2, b).

    Attributes:
        counts: Effective numbers of samples.
        each: Weight of one of these; 1 where samples weigh the same, 0 where there are none.
        means: Of the scores.
        deviations: Their standard deviations.
    """

    counts: Array
    each: Array
    means: Array
    deviations: Array

    def excess(self) -> Excess:
        """By how much scores are above the share of members."""
        weights = self.counts * self.each
        total, off = float(weights.sum()), self.means - _SIDES
        gap = float((weights * off).sum()) / total
        squares = weights * self.each * ((off - gap) ** 2 + self.deviations**2)
        return Excess(float((weights * self.means).sum()) / total, gap, float(np.sqrt(squares.sum())) / total)


class StreamedBins(Ranking):
    """A ranking of which bins are known, in their default number, and nothing else.

    Args:
        weight: Weight (..., b) of each bin, from the lowest score up.
        scores: Weighted sums of the scores.
        members: Weight of the members.
        spreads: Of the scores in them; None where only the three above were kept.
        by_width: Are they of equal width, or else of equal weight?
    """

    def __init__(
        self, weight: Array, scores: Array, members: Array, spreads: Spreads | None = None, *, by_width: bool = True
    ) -> None:
        self._falling = weight[..., ::-1], scores[..., ::-1], members[..., ::-1]
        self.weights, self.spreads, self.by_width = None, spreads, by_width

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
        """As of a ``Ranking``, for the limits that were looked at."""
        if not self.by_width or not np.array_equal(limits, _FALLING):
            raise NotStreamed(f"{BINS} bins of equal width were made, and no others")
        return self._falling

    def in_parts(self, parts: int) -> tuple[Array, Array, Array]:
        """As of a ``Ranking``, for the number of bins that were looked at."""
        if self.by_width or parts != BINS:
            raise NotStreamed(f"{BINS} bins of equally many samples were made, and no others")
        return self._falling

    def __getattr__(self, name: str) -> Any:
        raise NotStreamed(f"{name} needs the samples of a ranking, which were streamed")


class BothBins(StreamedBins):
    """Bins of equal width, and those of equal weight beside them."""

    def __init__(self, widths: StreamedBins, parts: StreamedBins) -> None:
        self.weights, self.spreads, self.by_width, self._falling = None, widths.spreads, True, widths._falling
        self.parts = parts

    def in_parts(self, parts: int) -> tuple[Array, Array, Array]:
        """As of a ``Ranking``, for the number of bins that were looked at."""
        return self.parts.in_parts(parts)


class BinSums:
    """Sums in bins, while cuts come from the highest score down.

    Args:
        total: Weight of all samples, for bins of equal weight: samples of one score stay together, in the bin of the
            middle of them. None: bins are of equal width.
    """

    def __init__(self, total: float | None = None) -> None:
        self._total, self._reached = total, 0.0
        self._middles = _MIDDLES if total is None else np.full(BINS, 0.5)
        # Weights, their squares, both times distances of scores from a middle, squares times squared distances; each of
        # others and of members.
        self._sums = np.zeros((5, 2, BINS))

    def __call__(self, cuts: Cuts) -> None:
        """Go on with the next lower scores."""
        for start in range(0, cuts.scores.size, _BLOCK):
            self._add(cuts.part(slice(start, start + _BLOCK)))

    def _add(self, cuts: Cuts) -> None:
        ends = self._ends(cuts)
        for place, (stop, start) in enumerate(pairwise(ends.tolist())):
            if start == stop:
                continue
            part = cuts.part(slice(start, stop))
            away = part.scores - self._middles[place]
            weights, squares = np.stack([part.others, part.members]), part.squares[::-1]
            rows = (weights, squares, weights * away, squares * away, squares * away * away)
            for sums, row in zip(self._sums, rows, strict=True):
                sums[:, place] += row.sum(axis=1)

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
        weights, squares, leaning, own, spread = self._sums
        there = weights > 0
        safe, safe_squares = np.where(there, weights, 1.0), np.where(there, squares, 1.0)
        variance = spread / safe_squares - (own / safe_squares) ** 2
        spreads = Spreads(
            np.where(there, weights * weights / safe_squares, 0.0),
            np.where(there, squares / safe, 0.0),
            np.where(there, self._middles + leaning / safe, 0.0),
            np.sqrt(np.where(variance > _ROUNDING, variance, 0.0)),
        )
        scores = leaning + weights * self._middles
        return StreamedBins(weights.sum(axis=0), scores.sum(axis=0), weights[1], spreads, by_width=self._total is None)
