"""Rankings read off one order of both classes: no scores are made before they are asked for, and work is shared."""

from functools import cached_property

import numpy as np

from app.kernel.numerics.arrays import Array, lazy
from app.kernel.samples.complementary_order import ComplementaryOrder
from app.kernel.samples.rankings.counts import Positions
from app.kernel.samples.rankings.ranking import Ranking


class ComplementaryRanking(Ranking):
    """Samples by falling probability of one of two classes."""

    def __init__(self, order: ComplementaryOrder, code: int) -> None:
        self.order, self.code = order, code
        super().__init__(
            lambda: order.values(code), order.members(code), order.weights_of(code), distinct=order.distinct
        )

    def values_between(self, start: int, stop: int) -> Array:
        """Probabilities of some samples, without making all."""
        return self.order.values(self.code, start, stop)

    def above(self, limits: Array) -> Positions:
        """How many samples have a higher probability than each limit."""
        return self.order.above(self.code, limits)


class MirroredRanking(ComplementaryRanking):
    """Class 0 of an order without ties: what does not depend on the side is taken from the ranking of class 1."""

    def __init__(self, order: ComplementaryOrder, other: Ranking) -> None:
        super().__init__(order, 0)
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

    def __init__(self, order: ComplementaryOrder) -> None:
        self.order = order
        super().__init__(lambda: 1.0 - order.small, order.correct, order.weights, distinct=order.distinct)

    def values_between(self, start: int, stop: int) -> Array:
        """Confidence in some samples, without making all."""
        return 1.0 - self.order.small[start:stop]

    def above(self, limits: Array) -> Positions:
        """In how many samples the confidence is above each limit."""
        return np.searchsorted(self.order.small, 1.0 - limits, side="left")
