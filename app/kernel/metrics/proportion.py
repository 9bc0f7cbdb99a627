"""Rates: metrics that are a number of samples divided by another.

Two metrics with the same samples above and below are one quantity under any name: for two classes the specificity of
one is the recall of the other, and an error rate is 1 less accuracy. ``Proportion.at`` brings both to one form, so that
they get the same limits and the same tests.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Flag, auto
from functools import cache
from typing import NamedTuple

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.samples.losses import Codes


class ConfusionCells(Flag):
    """Subset of the four cells of one class against the rest.

    Without a class, it refers to all classes together, where there are only right and wrong.

    Attributes:
        column: Name of the attribute of ``Table`` with their counts for every class, of those that have one.
    """

    column: str

    TP = auto()
    FN = auto()
    FP = auto()
    TN = auto()
    ACTUAL = TP | FN
    REST = FP | TN
    PREDICTED = TP | FP
    PREDICTED_REST = FN | TN
    RIGHT = TP | TN
    WRONG = FN | FP
    ALL = RIGHT | WRONG
    UNION = TP | WRONG

    def hold(self, actual: Codes, predicted: Codes, of: int | None) -> Mask:
        """Mask of the pairs of actual and predicted class that lie in these cells, for class ``of`` or, if None, for
        all together.
        """
        if of is None:
            cell = np.where(actual == predicted, ConfusionCells.TP.value, ConfusionCells.FN.value)
        else:
            found = np.where(predicted == of, ConfusionCells.TP.value, ConfusionCells.FN.value)
            cell = np.where(
                actual == of, found, np.where(predicted == of, ConfusionCells.FP.value, ConfusionCells.TN.value)
            )
        held: Mask = (cell & self.value) != 0
        return held

    def seen_from_the_rest(self) -> "ConfusionCells":
        """Cells with members and non-members exchanged."""
        return ConfusionCells(sum(other.value for one, other in _PLACES.items() if one in self))


ConfusionCells.TP.column = "tp"
ConfusionCells.FN.column = "fn"
ConfusionCells.FP.column = "fp"
ConfusionCells.TN.column = "tn"
ConfusionCells.ACTUAL.column = "actual"
ConfusionCells.REST.column = "rest"
ConfusionCells.PREDICTED.column = "predicted"
ConfusionCells.PREDICTED_REST.column = "predicted_rest"
ConfusionCells.RIGHT.column = "correct_ovr"
ConfusionCells.WRONG.column = "errors"
ConfusionCells.ALL.column = "n_each"
ConfusionCells.UNION.column = "union"
_PLACES = {
    ConfusionCells.TP: ConfusionCells.TN,
    ConfusionCells.FN: ConfusionCells.FP,
    ConfusionCells.FP: ConfusionCells.FN,
    ConfusionCells.TN: ConfusionCells.TP,
}


class LinearMap(NamedTuple):
    """Linear map from a rate to a value: ``offset + slope * rate``."""

    offset: float = 0.0
    slope: float = 1.0

    def __call__(self, rate: Array) -> Array:
        """Values of rates."""
        return self.offset + self.slope * rate

    def limits(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Limits of the value from those of the rate; a negative slope exchanges them."""
        return (self(low), self(high)) if self.slope >= 0.0 else (self(high), self(low))

    def of_complement(self) -> "LinearMap":
        """Line that gives the same value from 1 minus the rate."""
        return LinearMap(self.offset + self.slope, -self.slope)


ITSELF = LinearMap()


@dataclass(frozen=True, slots=True)
class Rate:
    """Rate of one class, or of all together, in its canonical form.

    Equal ``hits``, ``among`` and ``of`` mean the same quantity.

    Attributes:
        hits: Samples in the numerator.
        among: Samples in the denominator.
        of: The class, None for all together.
        line: Map from the rate to the metric.
        counted: The metric is the rate times the number of samples.
    """

    hits: ConfusionCells
    among: ConfusionCells
    of: int | None
    line: LinearMap = ITSELF
    counted: bool = False

    @property
    def by_truth(self) -> bool:
        """True if the actual classes alone determine the denominator, so that runs on the same samples share it."""
        return self.among in (ConfusionCells.ALL, ConfusionCells.ACTUAL, ConfusionCells.REST)

    def same_as(self, other: "Rate") -> bool:
        """True if both are rates of the same samples."""
        return (self.hits, self.among, self.of) == (other.hits, other.among, other.of)

    def counts(self, table: Table) -> tuple[Array, Array]:
        """Numerators and denominators (...) in matrices (..., K, K)."""
        if self.of is None:
            return table.correct, table.n
        hits, among = (getattr(table, cells.column)[..., self.of] for cells in (self.hits, self.among))
        return hits, among


# Share of right answers among all samples.
ACCURACY = Rate(ConfusionCells.RIGHT, ConfusionCells.ALL, None)


@dataclass(frozen=True, slots=True)
class Proportion:
    """Declaration of a metric as a rate, or as a line of a rate.

    Attributes:
        hits: Samples in the numerator, a part of ``among``.
        among: Samples in the denominator.
        line: Map from the rate to the metric for K classes, if it is not the rate itself.
        counted: The metric is the rate times the number of samples.
    """

    hits: ConfusionCells
    among: ConfusionCells
    line: Callable[[int], LinearMap] | None = None
    counted: bool = False

    @property
    def is_plain(self) -> bool:
        """True if the metric is the rate itself."""
        return self.line is None and not self.counted

    def at(self, n_classes: int, of: int | None = None) -> Rate:
        """Canonical rate of one of K classes, or of all: right answers before wrong ones, members
        before non-members.
        """
        line = ITSELF if self.line is None else self.line(n_classes)
        form = _preferred(self.hits, self.among, of if n_classes == 2 else None)
        return Rate(
            form.hits,
            form.among,
            form.of if n_classes == 2 else of,
            line.of_complement() if form.is_complement else line,
            self.counted,
        )


class _Form(NamedTuple):
    """One way to write a rate: numerator and denominator seen from one class, or the complement of the numerator."""

    hits: ConfusionCells
    among: ConfusionCells
    of: int | None
    is_complement: bool = False


@cache
def _preferred(hits: ConfusionCells, among: ConfusionCells, of: int | None) -> _Form:
    """Canonical one among all equivalent ways to write a rate; ``of`` is one of two classes, or None."""
    forms = [_Form(hits, among, of)]
    if of is not None:
        forms.append(_Form(hits.seen_from_the_rest(), among.seen_from_the_rest(), 1 - of))
    forms += [form._replace(hits=form.among & ~form.hits, is_complement=True) for form in forms]
    best = min(forms, key=_rank)
    together = of is not None and best.hits is ConfusionCells.RIGHT and best.among is ConfusionCells.ALL
    return best._replace(of=None) if together else best


def _rank(form: _Form) -> tuple[int, bool, int]:
    return -(form.hits & ConfusionCells.RIGHT).value.bit_count(), ConfusionCells.TP not in form.hits, form.of or 0
