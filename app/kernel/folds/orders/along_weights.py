"""What weights add up to along the cuts of a ranking, from the highest score down.

Weights are added up as whole numbers (`app.kernel.folds.weights.grid`). Of what they come to at a cut one float64 is
made in one way; products of such are rounded once and then added up without rounding.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple, Self

import numpy as np

from app.kernel.folds.entries import starts_of
from app.kernel.folds.orders.cut_by_cut import CutByCut, inserted
from app.kernel.folds.orders.points import KeptPoints, levels_of_weights
from app.kernel.folds.orders.stretches import Stretch
from app.kernel.folds.sums.bins import FoldedBins
from app.kernel.folds.sums.weighted_bins import WeightedBins
from app.kernel.folds.weights.grid import Digits, Grid
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.exact_sums import BLOCK, ExactSums, total_of, weighted_spread
from app.kernel.numerics.hull import STRETCH, rows_outside, upper_hull
from app.kernel.samples.rankings.cuts import Block

# Cuts whose sums are in memory together.
_PART = 1 << 16


class WeightedSide(NamedTuple):
    """Members of a class, or all others.

    Attributes:
        weight: In whole numbers.
        used: Samples with a weight above 0.
    """

    weight: int
    used: int


class WeightedCuts(NamedTuple):
    """Distinct scores (c), falling, and what members and others with each weigh (d, c); sums of the squared weights of
    members and of others (2, c).
    """

    scores: Array
    members: Digits
    others: Digits
    squares: Array

    def part(self, rows: slice) -> Self:
        """Some of them."""
        return self.__class__(self.scores[rows], self.members[:, rows], self.others[:, rows], self.squares[:, rows])


class Weighed(NamedTuple):
    """A stretch of samples with weights.

    Attributes:
        grids: For sums of weights, and of their squares.
    """

    stretch: Stretch
    grids: tuple[Grid, Grid]

    def sizes(self) -> tuple[int, int]:
        """What members and others weigh, in whole numbers."""
        found, grid = self.stretch.in_weights(), self.grids[0]
        digits = grid.digits(found.weights)
        members, whole = grid.total(digits[:, found.members]), grid.total(digits)
        return members, whole - members

    def cuts(self) -> WeightedCuts:
        """The cuts between them."""
        found, (grid, of_squares) = self.stretch.in_weights(), self.grids
        order = np.argsort(found.scores)[::-1]
        scores, members = found.scores.take(order), found.members.take(order)
        starts = starts_of(scores)
        weights = grid.digits(found.weights.take(order))
        squares = of_squares.digits(found.squares.take(order))
        sides = members, ~members
        return WeightedCuts(
            scores.take(starts),
            grid.added(weights * members, starts),
            grid.added(weights * ~members, starts),
            np.stack([of_squares.rounded(of_squares.added(squares * side, starts)) for side in sides]),
        )


class AlongWeights(CutByCut):
    """The cuts of one ranking of samples with weights.

    Args:
        grid: Of the weights.
        sides: Members and others.
        max_fpr: Where the partial area ends.
        quantiles: Of the scores of the members.
        n_classes: How many classes there are, which share the points of their curves.
        n_samples: All of them.
        binned: Are scores probabilities, which have bins?
        above: What members and others with higher scores than those that are added here weigh.
    """

    positives: Fraction
    negatives: Fraction

    def __init__(
        self,
        grid: Grid,
        sides: tuple[WeightedSide, WeightedSide],
        max_fpr: float,
        quantiles: tuple[float, ...],
        n_classes: int,
        n_samples: int,
        *,
        binned: bool = True,
        above: tuple[int, int] = (0, 0),
    ) -> None:
        weights = sides[0].weight, sides[1].weight
        sizes = grid.rounded_units(weights[0]), grid.rounded_units(weights[1])
        passed = grid.rounded_units(above[0]), grid.rounded_units(above[1])
        super().__init__(
            grid.fraction(weights[0]),
            grid.fraction(weights[1]),
            sizes,
            max_fpr,
            quantiles,
            KeptPoints(levels_of_weights(*sizes, n_samples, n_classes), passed),
            KeptPoints([np.zeros(0)] * 3),
        )
        self._grid, self._sides = grid, sides
        self._bins = WeightedBins() if binned else None
        self._reached = above
        # Of members, and of others: squared weights, and their products with twice the weight of the other side above
        # each, and with its square. In front the weight of members with twice that of the others above them.
        self._sums = ExactSums((7,))
        # Weight of the members within the largest rate, and the same products.
        self._inside = ExactSums((2,))
        self._hull = np.array([0, weights[0]], object), np.array([0, weights[1]], object)

    @property
    def twice_lost(self) -> Fraction:
        """Twice the weight of the pairs in which the other one has the higher score, ties once."""
        return self._sums.exact()[0]

    @property
    def area_inside(self) -> float:
        """Area in pairs under the cuts up to the largest false positive rate."""
        members, lost = self._inside.exact()
        return float(members * Fraction(self._max_fpr * self._sizes[1]) - lost / 2)

    @property
    def hull(self) -> tuple[Array, Array]:
        """Vertices (tp, fp) of the upper convex hull of the ROC curve."""
        tp, fp = (np.array([self._grid.rounded_units(units) for units in side.tolist()]) for side in self._hull)
        # Vertices that differ by less than is left of them are one.
        tp, fp = upper_hull(tp, fp)
        return np.ascontiguousarray(tp), np.ascontiguousarray(fp)

    def area_variance(self) -> float:
        """DeLong's variance of the area, linearised: members and others are parts of one sample drawn with replacement
        (Yao, Li & Graubard 2015). NaN without members or others.
        """
        if not self.positives or not self.negatives:
            return float("nan")
        lost, *sums = self._sums.exact()
        won = 2 * self.positives * self.negatives - lost
        sides = (lost, self.positives, self.negatives, sums[:3]), (won, self.negatives, self.positives, sums[3:])
        return float(
            sum(
                weighted_spread(total / own, squares, side.used) / (own * 2 * other) ** 2
                for (total, own, other, squares), side in zip(sides, self._sides, strict=True)
            )
        )

    def binned(self) -> FoldedBins | None:
        """Bins of equal width, of probabilities."""
        return None if self._bins is None else self._bins.read()

    def add(self, cuts: WeightedCuts) -> None:
        """Go on with the next lower scores."""
        for start in range(0, cuts.scores.size, _PART):
            self._add(cuts.part(slice(start, start + _PART)))

    def _take(self, other: Self) -> None:
        self._reached = other._reached
        if self._bins is not None and other._bins is not None:
            self._bins.merge(other._bins)
        self._sums.merge(other._sums)

    def _take_inside(self, other: Self) -> None:
        self._inside.merge(other._inside)

    def _add(self, cuts: WeightedCuts) -> None:
        grid = self._grid
        digits = [grid.cumulated(own, above) for own, above in zip(cuts[1:3], self._reached, strict=True)]
        before = [grid.rounded_units(above) for above in self._reached]
        self._reached = int(grid.units(digits[0][:, -1:])[0]), int(grid.units(digits[1][:, -1:])[0])
        reached = [np.concatenate([[first], grid.rounded(side)]) for first, side in zip(before, digits, strict=True)]
        tp, fp = reached[0][1:], reached[1][1:]
        held, others = grid.rounded(cuts.members), grid.rounded(cuts.others)
        self.points.add(cuts.scores, tp, fp)
        for start in range(0, tp.size, BLOCK):
            part = slice(start, start + BLOCK)
            if self._bins is not None:
                self._bins.add(cuts.scores[part], np.stack([others[part], held[part]]))
            above = reached[0][start : start + BLOCK + 1], reached[1][start : start + BLOCK + 1]
            self._add_block(cuts.scores[part], *above, held[part], cuts.squares[:, part])
        if self.positives and self.negatives:
            # What lies inside a hull of some of the points goes by rounded numbers; of what is left whole numbers tell.
            some = slice(None, None, STRETCH)
            kept = rows_outside(tp, fp, upper_hull(*inserted(self.hull, tp[some], fp[some])))
            left = (grid.units(side[:, kept]) for side in digits)
            self._hull = upper_hull(*inserted(self._hull, *left))

    def _add_block(self, scores: Array, tp: Array, fp: Array, held: Array, squares: Array) -> None:
        """Cuts (c) with what there is above them and above each next one (c + 1)."""
        twice = fp[1:] + fp[:-1], tp[1:] + tp[:-1]
        with_held = held * twice[0]
        rows = [with_held]
        for own, above in zip(squares, twice, strict=True):
            rows += [own, own * above, own * above * above]
        self._sums.add(np.stack(rows), total_of)
        at = np.flatnonzero(held)
        if at.size:
            # What is before a cut with members is what is after the last one.
            block = Block(*(side.take(at) for side in (tp[1:], fp[1:], tp[:-1], fp[:-1], held)))
            inside = self._look(scores.take(at), block, held.take(at))
            self._inside.add(np.stack([held, with_held]).take(at[:inside], axis=1), total_of)


def along_weighed(begun: Callable[..., AlongWeights], part: tuple[Weighed, tuple[int, int]]) -> AlongWeights:
    """What adds up along a stretch of the order, in any process.

    Args:
        begun: Makes it, told what members and others above weigh.
        part: The stretch, and these numbers.
    """
    stretch, above = part
    along = begun(above=above)
    along.add(stretch.cuts())
    return along
