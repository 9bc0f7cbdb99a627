"""The highest probability of each sample, and whether it is that of the actual class, in order.

Where rows are p and 1 - p the order of p says all of it: read from both ends as far as 1/2, each sample comes once.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np

from app.kernel.folds.keys import floor_key, mirrored
from app.kernel.folds.orders.along_weights import Weighed
from app.kernel.folds.orders.runs import Reader, Run
from app.kernel.folds.orders.stretches import Between, InOrder, between, placed
from app.kernel.folds.sums.bins import SMALL, FoldedBins, MassSums
from app.kernel.folds.sums.weighted_bins import WeightedMass
from app.kernel.folds.weights.grid import Grid
from app.kernel.folds.weights.totals import WeightTotals

# Of equals the first class is predicted: those of exactly 1/2 count from the other end.
_HALF, _ABOVE = floor_key(0.5), floor_key(float(np.nextafter(0.5, 1.0)))


def top_label_stretches(own: Sequence[Run], paired: Sequence[Run], budget: int) -> Iterator[Between]:
    """All samples by falling highest probability, members being those that are right, in stretches of bounded size.

    Args:
        own: Runs of highest probabilities.
        paired: Runs of the probabilities of class 1 of two, where that of class 0 is 1 minus it.
        budget: Bytes of memory, about.
    """
    readers = [Reader(run) for run in own]
    readers += [Reader(run, lowest=_ABOVE) for run in paired]
    readers += [Reader(run, mirrored, lowest=_HALF) for run in paired]
    return between(readers, budget)


def parts_of(stretches: Iterable[Between], n_samples: int, in_order: InOrder) -> FoldedBins:
    """Bins of equally many of so many samples along their order."""
    whole = MassSums(n_samples)
    for sums in in_order(partial(_of_stretch, n_samples), placed(stretches)):
        whole.merge(sums)
    return whole.read()


def weighted_parts_of(stretches: Iterable[Between], totals: WeightTotals, in_order: InOrder) -> FoldedBins:
    """Bins of equal weight along the order of samples that weigh so much."""
    grids = totals.grids()
    total = sum(grids[0].whole(weight) for weight in totals.by_class()[0])
    whole = WeightedMass(grids[0].rounded_units(total))
    weighed = (Weighed(stretch, grids) for stretch in stretches)
    for sums in in_order(partial(_of_weighed, grids[0], total), placed(weighed)):
        whole.merge(sums)
    return whole.read()


def _of_weighed(grid: Grid, total: int, part: tuple[Weighed, tuple[int, int]]) -> WeightedMass:
    stretch, above = part
    sums, cuts = WeightedMass(grid.rounded_units(total)), stretch.cuts()
    reached = grid.rounded(grid.cumulated(cuts.members + cuts.others, sum(above)))
    sides = np.stack([grid.rounded(side) for side in (cuts.others, cuts.members)])
    sums.add_cuts(cuts.scores, sides, np.concatenate([[grid.rounded_units(sum(above))], reached]))
    return sums


def _of_stretch(n_samples: int, part: tuple[Between, tuple[int, int]]) -> MassSums:
    stretch, above = part
    sums = MassSums(n_samples, sum(above))
    place = sums.place_of(sum(stretch.sizes()))
    found = None if place is None else stretch.in_any_order()
    if place is None or found is None or found.scores.min() < SMALL:
        sums.add_cuts(*stretch.cuts())
    else:
        # Nothing has to be sorted.
        sums.add_to(place, *found)
    return sums
