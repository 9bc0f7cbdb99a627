"""Rankings that are read off a fold: no scores are made before they are asked for; the two classes share their work."""

from functools import cached_property

import numpy as np

from app.kernel.numerics.arrays import Array, lazy
from app.kernel.samples.complementary_order import Fold
from app.kernel.samples.ranking import Positions, Ranking


class FoldedRanking(Ranking):
    """Samples by falling probability of one of two classes."""

    def __init__(self, fold: Fold, code: int) -> None:
        self.fold, self.code = fold, code
        super().__init__(lambda: fold.values(code), fold.members(code), fold.weights_of(code), distinct=fold.distinct)

    def values_between(self, start: int, stop: int) -> Array:
        """Probabilities of some samples, without making all."""
        return self.fold.values(self.code, start, stop)

    def above(self, limits: Array) -> Positions:
        """How many samples have a higher probability than each limit."""
        return self.fold.above(self.code, limits)


class MirroredRanking(FoldedRanking):
    """Class 0 of a fold without ties, beside that of class 1: what does not depend on the side is taken from there."""

    def __init__(self, fold: Fold, other: Ranking) -> None:
        super().__init__(fold, 0)
        self.other = other

    @lazy
    def wins(self) -> Array:
        """As of the other side: exchanging the classes reverses nothing but the order."""
        return self.other.wins

    @lazy
    def ks(self) -> Array:
        """As of the other side."""
        return self.other.ks

    @lazy
    def equal_error_rate(self) -> Array:
        """As of the other side."""
        return self.other.equal_error_rate

    @cached_property
    def hulls(self) -> list[tuple[Array, Array]]:
        """Those of the other side with the classes exchanged."""
        return [(fp[-1] - fp[::-1], tp[-1] - tp[::-1]) for tp, fp in self.other.hulls]


class TopLabelRanking(Ranking):
    """Samples by falling confidence; members are predicted rightly."""

    def __init__(self, fold: Fold) -> None:
        self.fold = fold
        super().__init__(lambda: 1.0 - fold.small, fold.correct, fold.weights, distinct=fold.distinct)

    def values_between(self, start: int, stop: int) -> Array:
        """Confidence in some samples, without making all."""
        return 1.0 - self.fold.small[start:stop]

    def above(self, limits: Array) -> Positions:
        """In how many samples the confidence is above each limit."""
        return np.searchsorted(self.fold.small, 1.0 - limits, side="left")
