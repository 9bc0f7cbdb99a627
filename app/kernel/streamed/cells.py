"""Streamed samples drawn again.

What is left of them are cells: the samples of one class between two kept cuts, or in one bin. How many of each cell are
in a resample is all that points of curves at these cuts need. These numbers are multinomial, whatever lies in the
cells, so replicates are those of resampled samples and need none of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from app.kernel.metrics.card import Inputs, Metric
from app.kernel.metrics.expression import Subject
from app.kernel.numerics.arrays import Array, lazy, silently
from app.kernel.samples.calibration import NORMAL_FROM, ErrorByChance, error_by_chance
from app.kernel.samples.losses import Codes
from app.kernel.samples.rankings import Ranking
from app.kernel.samples.scores import Scores
from app.kernel.streamed.bins import StreamedBins
from app.kernel.streamed.rows import NotStreamed
from app.kernel.streamed.scores import StreamedScores
from app.kernel.uncertainty.draws import generator
from app.kernel.uncertainty.units import Units


def simulated_by_chance(
    metric: Metric[Scores], observed: float, cells: "Cells", draws: int, seed: int
) -> ErrorByChance:
    """A calibration error beside that of perfect probabilities.

    Raises:
        TypeError: the cells are none of bins.
    """
    if not isinstance(cells.scores, BinnedScores):
        raise TypeError("expected cells of bins")
    simulated = cells.scores.by_chance(cells.counts, cells.each, draws, generator(seed))
    with silently():
        return error_by_chance(observed, metric.compute(simulated), seed)


@dataclass(frozen=True, slots=True, eq=False)
class Cells(Units):
    """Cells of samples, each of which stands for as many as it holds.

    Attributes:
        scores: Of two classes, with one sample for each cell.
        counts: Samples (n) of each cell, effective ones where they have weights.
        by_class: Are the numbers of the classes those of actual classes, which can be taken as fixed?
        each: Weight (n) of one of these samples; None is 1.
    """

    scores: Scores
    counts: Array
    by_class: bool = True
    each: Array | None = None

    @property
    def n_units(self) -> int:
        """How many cells."""
        return self.counts.size

    @property
    def width(self) -> int:
        """Two orders."""
        return 2

    @property
    def strata(self) -> Codes:
        """Class (n) of each cell."""
        return self.scores.y if self.by_class else np.zeros_like(self.scores.y)

    @property
    def n_strata(self) -> int:
        """Of two classes."""
        return 2 if self.by_class else 1

    @property
    def multiplicities(self) -> Array:
        """Samples (n) of each cell."""
        return self.counts

    def subject(self, weights: Array | None = None) -> Subject:
        """The cells in weights (..., n); None is as many as each holds."""
        held = self.counts if weights is None else weights
        return Subject(
            {Inputs.PROBABILITIES: self.scores.with_weights(held if self.each is None else held * self.each)}
        )

    def part(self, chosen: Codes) -> Self:
        """Some of the cells, the others being empty."""
        kept = np.zeros_like(self.counts)
        kept[chosen] = self.counts[chosen]
        return type(self)(self.scores, kept, self.by_class, self.each)


class Draw(NamedTuple):
    """What a metric is computed of in resamples.

    Attributes:
        at: From how many classes there are and the class that is asked for (None is of all) to the class of which cells
            are drawn, and for which of the two classes of these it is computed. None where there is no joint draw: of
            more than two classes nobody knows how their orders belong together.
        cells: Those of a class.
    """

    at: Callable[[int, int | None], tuple[int, int | None] | None]
    cells: Callable[[StreamedScores, int], Cells]


def _at_cuts(n_classes: int, class_index: int | None) -> tuple[int, int | None] | None:
    # Of two classes one order is that of both.
    return (1, class_index) if n_classes == 2 else _at_class(n_classes, class_index)


def _at_class(n_classes: int, class_index: int | None) -> tuple[int, int | None] | None:
    if class_index is not None:
        return class_index, 1
    return (1, None) if n_classes == 2 else None


def _at_top(_: int, __: int | None) -> tuple[int, int | None]:
    return 0, None


def _cells_of_curve(scores: StreamedScores, code: int) -> Cells:
    if scores.n_classes == 2:
        return _cells_of_cuts(*_cuts_of_both(scores))
    points = scores.ranking(code).curve.points
    return _cells_of_cuts(np.array(points.tp, dtype=np.float64), np.array(points.fp, dtype=np.float64))


def _cells_of_median(scores: StreamedScores, code: int) -> Cells:
    """The members between ranks next to their median, by the lowest of their scores, and all others as one cell."""
    curve = scores.ranking(code).curve
    medians = curve.medians
    counts = np.append(np.diff(medians.tp, prepend=0.0), curve.others.weight)
    values, held = np.append(medians.thresholds, 0.0), np.flatnonzero(counts)
    rows = np.column_stack([1.0 - values, values])
    return Cells(Scores((np.arange(counts.size) < counts.size - 1)[held], rows[held]), counts[held])


def _cells_of_class(scores: StreamedScores, code: int) -> Cells:
    return _cells_of_bins(scores.ranking(code).bins, by_class=True)


def _cells_of_top_label(scores: StreamedScores, _: int) -> Cells:
    # Which samples are right is as random as everything else.
    return _cells_of_bins(scores.top_label_bins, by_class=False)


def _cells_of_parts(scores: StreamedScores, _: int) -> Cells:
    top_label = scores.top_label_bins
    return _cells_of_bins(None if top_label is None else top_label.parts, by_class=False)


def _cuts_of_both(scores: StreamedScores) -> tuple[Array, Array]:
    """Members of class 1 and of class 0 from each cut up that is kept for either class."""
    first, second = (scores.ranking(code).curve.points for code in (1, 0))
    positives, negatives = scores.actual[1], scores.actual[0]
    # What class 0 has below a cut class 1 has above it.
    tp = np.concatenate([np.array(first.tp), positives - np.array(second.fp)])
    fp = np.concatenate([np.array(first.fp), negatives - np.array(second.tp)])
    order = np.lexsort((fp, tp))
    tp, fp = tp.take(order), fp.take(order)
    # Scores that are equal for one class only, since 1 - p is rounded, are no cut of both.
    kept = fp >= np.maximum.accumulate(fp)
    return tp[kept], fp[kept]


def _cells_of_cuts(tp: Array, fp: Array) -> Cells:
    """Members and others between cuts, falling, by how many there are from each cut up."""
    counts = np.stack([np.diff(fp, prepend=0.0), np.diff(tp, prepend=0.0)])
    side, place = np.nonzero(counts)
    return Cells(Scores.of_scores(side, -place.astype(np.float64)), counts[side, place])


def _cells_of_bins(bins: StreamedBins | None, *, by_class: bool) -> Cells:
    """Each as two halves, a standard deviation above and below the mean: resampled, they move as the scores do."""
    if bins is None or bins.spreads is None:
        raise NotStreamed("bins of which only counts are left cannot be resampled")
    counts, each, means, deviations = bins.spreads
    # Of weighted samples there are as many as their effective number.
    lower = np.floor(counts / 2)
    halves = np.stack([lower, counts - lower])
    # Of odd numbers the halves differ, and so do their distances.
    aside = deviations * np.stack([-_root(halves[1], halves[0]), _root(halves[0], halves[1])])
    half, side, place = np.nonzero(halves)
    values = (means + aside)[half, side, place]
    scores = BinnedScores(side, values, place, means.shape[1], by_width=bins.by_width)
    same = bool((each[counts > 0] == 1.0).all())
    return Cells(scores, halves[half, side, place], by_class, None if same else each[side, place])


def _root(numerator: Array, denominator: Array) -> Array:
    return np.sqrt(numerator / np.where(denominator > 0, denominator, 1.0))


class BinnedScores(Scores):
    """Samples of two classes of which the bin is known, so that the scores may lie beside it.

    Args:
        y: Codes (n).
        scores: (n) of class 1.
        places: Bins (n), from the lowest score up.
        bins: How many.
        weights: (..., n).
        by_width: Are the bins of equal width, or else of equally many samples?
    """

    def __init__(
        self,
        y: Codes,
        scores: Array,
        places: Codes,
        bins: int,
        weights: ArrayLike | None = None,
        *,
        by_width: bool = True,
    ) -> None:
        super().__init__(y, np.column_stack([1.0 - scores, scores]), weights)
        self._places, self._bins, self._by_width = places, bins, by_width

    def with_weights(self, weights: ArrayLike | None) -> "BinnedScores":
        """The same samples weighted otherwise."""
        return BinnedScores(self.y, self.columns[1], self._places, self._bins, weights, by_width=self._by_width)

    def ranking(self, code: int) -> StreamedBins:
        """The bins of a class. Those of class 0 are those of class 1 from the other end."""
        places = self._places if code else self._bins - 1 - self._places
        inside = places[:, None] == np.arange(self._bins)
        weights = np.ones(self.n_samples) if self.weights is None else self.weights
        each = (np.ones(self.n_samples), self.columns[code], self.members(code).astype(np.float64))
        weight, scores, members = (weights @ (inside * values[:, None]) for values in each)
        return StreamedBins(weight, scores, members, by_width=self._by_width)

    @lazy
    def top_label(self) -> Ranking:
        """Class 1 are those that are right."""
        return self.ranking(1)

    def by_chance(self, counts: Array, each: Array | None, draws: int, random: np.random.Generator) -> "BinnedScores":
        """The bins with simulated outcomes, weights (draws, ...), were the probabilities right. They are binomial, by
        the mean probability of a bin; where they vary much normal, with the variance of its probabilities.

        Args:
            counts: Samples (n) of each cell.
            each: Weight (n) of one of these; None is 1.
            draws: How many simulations.
            random: Makes them.
        """
        inside = self._places[:, None] == np.arange(self._bins)
        unit = np.ones(counts.size) if each is None else each
        weights, first = (counts * unit * self.columns[1] ** power @ inside for power in range(2))
        there = np.where(weights > 0, weights, 1.0)
        means, mass = first / there, np.where(weights > 0, (counts * unit * unit @ inside) / there, 1.0)
        variances = counts * unit * unit * self.columns[1] * (1.0 - self.columns[1]) @ inside
        # As many samples of one weight as are worth as much.
        sizes = np.rint(weights / mass).astype(np.int64)
        shape = draws, self._bins
        hits = random.binomial(sizes, means.clip(0.0, 1.0), shape).astype(np.float64) * mass
        large = variances >= NORMAL_FROM * mass * mass
        hits[:, large] = random.normal(first, np.sqrt(np.where(large, variances, 0.0)), shape)[:, large]
        sides, places = np.repeat([0, 1], self._bins), np.tile(np.arange(self._bins), 2)
        both = np.concatenate([weights - hits, hits], axis=1)
        return BinnedScores(sides, np.tile(means, 2), places, self._bins, both, by_width=self._by_width)


AT_CUTS = Draw(_at_cuts, _cells_of_curve)
NEAR_MEDIAN = Draw(_at_class, _cells_of_median)
IN_BINS = Draw(_at_class, _cells_of_class)
IN_BINS_OF_TOP_LABEL = Draw(_at_top, _cells_of_top_label)
IN_PARTS_OF_TOP_LABEL = Draw(_at_top, _cells_of_parts)
