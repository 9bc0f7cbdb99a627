"""Streamed samples drawn again.

What is left of them are cells: the members of a class, or the others, between two cuts of an order. All of a cell have
one score, their mean, and how many of each cell are in a resample is all that metrics need. Of independent samples
these numbers are multinomial, whatever lies in the cells. Groups are drawn in sets.
"""

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from app.kernel.matrix.table import Table, WeightedCounts, confusion_counts
from app.kernel.metrics.card import Inputs, Metric
from app.kernel.metrics.expression import Subject
from app.kernel.numerics.arrays import Array, lazy, silently
from app.kernel.samples.calibration import NORMAL_FROM, ErrorByChance, error_by_chance
from app.kernel.samples.losses import Codes
from app.kernel.samples.rankings import Ranking
from app.kernel.samples.scores import Scores
from app.kernel.streamed.bins import BINS, LIMITS
from app.kernel.streamed.scores import StreamedScores
from app.kernel.uncertainty.designs import Design, Grouped, Independent, Weighted
from app.kernel.uncertainty.draws import generator
from app.kernel.uncertainty.groups import GroupedCounts
from app.kernel.uncertainty.units import Units

# Sets of groups at most: the variance of what is drawn is off by 3.5 % of a standard deviation.
_SETS = 400


class Cells(Units):
    """Cells of independent samples, each of which stands for as many as it holds; or sets of groups, of which whole
    ones are drawn (random groups; Wolter 2007).

    Args:
        scores: Of two classes, with one sample for each cell.
        counts: Samples (n) of each cell, effective ones where they have weights; 1 for each set (S).
        by_class: Are the numbers of the classes those of actual classes, which can be taken as fixed?
        each: Weight (n) of one of these samples; None is 1. Of sets their weight (S, n) in the cells.
    """

    def __init__(self, scores: Scores, counts: Array, *, by_class: bool = True, each: Array | None = None) -> None:
        self.scores, self.counts, self.each = scores, counts, each
        self._of_sets = each is not None and each.ndim > 1
        # Two orders, and in each the cells of a set.
        width = 1 + 2 * scores.n_samples // counts.size if self._of_sets else 2
        strata, n_strata = (scores.y, 2) if by_class else (None, 1)
        super().__init__(counts.size, width, strata, n_strata, None if self._of_sets else counts)

    def subject(self, weights: Array | None = None) -> Subject:
        """The cells in weights (..., n), or those of sets in weights (..., S); None is as many as there are."""
        held = self.counts if weights is None else weights
        if self.each is not None:
            held = held @ self.each if self._of_sets else held * self.each
        return Subject({Inputs.PROBABILITIES: self.scores.with_weights(held)})

    def at_best_cut(self, n_samples: int) -> Design:
        """Design of the decisions at the cut where informedness of the members is largest, of so many samples."""
        scores: Scores = self.subject().parts[Inputs.PROBABILITIES]
        member, called = scores.y, scores.ranking(1).above_best_cut().astype(np.int64)
        if self.each is None:
            return Independent(Table(confusion_counts(member, called, 2, self.counts)))
        if not self._of_sets:
            held = self.counts * self.each
            return Weighted(WeightedCounts.of(member, called, held, 2, held * self.each, self.counts))
        sets = np.arange(self.n_units)
        of_each = np.repeat(sets, member.size), np.tile(member, sets.size), np.tile(called, sets.size)
        return Grouped(replace(GroupedCounts.gather(*of_each, 2, self.each.ravel()), n_samples=n_samples))


class _TopScores(Scores):
    """Samples of two classes of which the second are predictions that are right."""

    @lazy
    def top_label(self) -> Ranking:
        """The order of the second class."""
        return self.ranking(1)


def cells_of(scores: StreamedScores, code: int | None) -> Cells:
    """Cells of independent samples in the order of a class, or of the top label."""
    reduced = scores.cells(code)
    side, place = np.nonzero(reduced.weights)
    weights, values = reduced.weights[side, place], reduced.scores.take(place)
    # Which samples are right is as random as everything else.
    by_class = code is not None
    if scores.worth is None:
        return Cells(_made(scores, code, side, values), weights, by_class=by_class)
    squares = reduced.squares[side, place]
    counts, each = weights * weights / squares, squares / weights
    # As many samples of one weight as are worth as much, and the rest weighs nothing: so many are drawn as there are.
    used = [side.used for side in reversed(scores.both_sides(code))] if code is not None else [scores.whole.used]
    known = np.bincount(side, counts, 2) if by_class else [counts.sum()]
    counts = np.append(counts, np.maximum(np.subtract(used, known), 0.0))
    sides, more = np.append(side, np.arange(len(used))), np.zeros(len(used))
    of_cells = _made(scores, code, sides, np.append(values, more))
    return Cells(of_cells, counts, by_class=by_class, each=np.append(each, more))


def cells_of_groups(scores: StreamedScores, codes: Collection[int | None]) -> dict[int | None, Cells]:
    """Cells of groups in several such orders; the samples are read once."""
    n_sets = min(scores.n_groups, _SETS)
    # Which groups are in one set has nothing to do with what is in them.
    set_of = generator(0).permutation(scores.n_groups) % n_sets
    reduced = {code: scores.cells(code) for code in codes}
    held = {code: np.zeros(n_sets * own.weights.size) for code, own in reduced.items()}
    for part in scores.in_parts(scores.read_columns):
        some = scores.part(part)
        sets, weights = set_of.take(part["g"].astype(np.intp)), part.get("w")
        for code, own in reduced.items():
            if code is None:
                values, inside = some.confidence, some.predicted == some.y
            else:
                values, inside = some.columns[code], some.members(code)
            size = own.lowest.size
            place = (size - np.searchsorted(own.lowest[::-1], values, side="right")).clip(0, size - 1)
            held[code] += np.bincount((2 * sets + inside) * size + place, weights, held[code].size)
    found = {}
    for code, own in reduced.items():
        side, place = np.nonzero(own.weights)
        of_sets = held[code].reshape(n_sets, *own.weights.shape)[:, side, place]
        made = _made(scores, code, side, own.scores.take(place))
        found[code] = Cells(made, np.ones(n_sets), by_class=False, each=of_sets)
    return found


def _made(scores: StreamedScores, code: int | None, side: Codes, values: Array) -> Scores:
    if not scores.are_probabilities:
        return Scores.of_scores(side, values)
    return (_TopScores if code is None else Scores)(side, np.column_stack([1.0 - values, values]))


def simulated_by_chance(metric: Metric[Scores], observed: float, cells: Cells, draws: int, seed: int) -> ErrorByChance:
    """Return a calibration error beside that of perfect probabilities.

    Outcomes are drawn for all cells together that lie in the same bins: normal, with the variance of their
    probabilities, or where this is small binomial.
    """
    random, p = generator(seed), cells.scores.columns[1]
    each = np.ones(p.size) if cells.each is None else cells.each
    held = cells.counts * each
    below = np.argsort(p, kind="stable")
    part = np.empty(p.size)
    part[below] = np.floor(BINS * (np.cumsum(held[below]) - 0.5 * held[below]) / held.sum())
    bins = [part, *(np.searchsorted(LIMITS, side, side="left") for side in (p, 1.0 - p))]
    _, places = np.unique(np.stack(bins)[:, held > 0], axis=1, return_inverse=True)
    sums = (held, held * p, held * each, held * each * p * (1.0 - p))
    weights, first, squares, variances = (np.bincount(places, one[held > 0]) for one in sums)
    means, mass = first / weights, squares / weights
    # As many samples of one weight as are worth as much.
    sizes, shape = np.rint(weights / mass).astype(np.int64), (draws, weights.size)
    hits = random.binomial(sizes, means.clip(0.0, 1.0), shape) * mass
    large = variances >= NORMAL_FROM * mass * mass
    hits[:, large] = random.normal(first[large], np.sqrt(variances[large]), (draws, int(large.sum())))
    outcomes, both = np.repeat([0, 1], means.size), np.tile(means, 2)
    simulated = type(cells.scores)(
        outcomes, np.column_stack([1.0 - both, both]), np.concatenate([weights - hits, hits], axis=1)
    )
    with silently():
        return error_by_chance(observed, metric.compute(simulated), seed)
