"""Class shares as a request names them, for all classes of a run."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from app.domain.errors import InvalidInput
from app.domain.evaluation import EvaluationRecord
from app.domain.wording import significant
from app.kernel.matrix.prevalence import ShareRanges
from app.kernel.numerics.arrays import Array, Mask

_SUM_TOLERANCE = 1e-6
# Shares that sum to 1 within rounding are taken as they are.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class ClassSizes:
    """The K classes of a run, and how many samples (K) each has."""

    labels: tuple[str, ...]
    actual: Array

    @classmethod
    def of(cls, record: EvaluationRecord) -> "ClassSizes":
        """Those of one evaluation."""
        return cls(record.labels, record.counts.sum(axis=1).astype(np.float64))

    def index(self, label: str, pointer: str) -> int:
        """Place of a class.

        Raises:
            InvalidInput: there is none of that name.
        """
        if label not in self.labels:
            raise refused(pointer, "unknown_label", f"expected a class of the evaluation, got {label[:60]!r}")
        return self.labels.index(label)

    def refuse_shares_of_nothing(self, wanted: Mask, pointer: str) -> None:
        """No share (K) for a class without samples.

        Raises:
            InvalidInput: one has a share.
        """
        for index in np.flatnonzero(wanted & (self.actual == 0)):
            label = self.labels[int(index)]
            raise refused(
                f"{pointer}/{label}", "no_samples", f"expected no share of {label!r}: how it is predicted is unknown"
            )


def named_shares(classes: ClassSizes, named: Mapping[str, float], pointer: str) -> Array:
    """Shares (K) of all classes; those not named share the rest in the proportions that they have.

    Raises:
        InvalidInput: an unknown class, shares that do not sum to 1, or one given to a class without samples.
    """
    actual = classes.actual
    shares = np.full(actual.size, np.nan)
    for label, share in named.items():
        shares[classes.index(label, f"{pointer}/{label}")] = share
    missing = np.isnan(shares)
    given = float(shares[~missing].sum())
    rest = 1.0 - given
    if rest < -_SUM_TOLERANCE or (not missing.any() and abs(rest) > _SUM_TOLERANCE):
        raise refused(
            pointer, "shares_do_not_sum_to_one", f"expected shares that sum to 1, got {significant(given, 6)}"
        )
    if missing.any():
        kept = np.where(missing, actual, 0.0)
        if rest > _SUM_TOLERANCE and kept.sum() == 0:
            raise refused(pointer, "no_samples", "expected shares that sum to 1: no class without one has samples")
        scale = max(rest, 0.0) / kept.sum() if kept.sum() else 0.0
        shares = np.where(missing, kept * scale, shares)
    classes.refuse_shares_of_nothing(shares > 0, pointer)
    total = float(shares.sum())
    scaled: Array = shares if abs(total - 1.0) < _ROUNDING else shares / total
    return scaled


class NamedRanges:
    """Ranges of the shares of some classes; what they leave goes to all others in the proportions that these have.

    Raises:
        InvalidInput: an unknown class, a share for one without samples, or ranges in which no shares sum to 1.
    """

    def __init__(self, classes: ClassSizes, ranges: Mapping[str, tuple[float, float]]) -> None:
        pointer = "/prevalence_range"
        self._codes = [classes.index(label, f"{pointer}/{label}") for label in ranges]
        low, high = np.array(list(ranges.values())).T
        actual = classes.actual
        self._classes = actual.size
        given = np.zeros(actual.size)
        given[self._codes] = high
        classes.refuse_shares_of_nothing(given > 0, pointer)
        others = actual.copy()
        others[self._codes] = 0.0
        if low.sum() > 1.0 + _ROUNDING:
            raise refused(pointer, "shares_above_one", "expected ranges with lower ends that sum to at most 1")
        # Where the named classes are all that there are, the last of them has what the others leave.
        self._others = others / others.sum() if others.sum() else None
        if self._others is None and high.sum() < 1.0 - _ROUNDING:
            raise refused(
                pointer,
                "shares_do_not_sum_to_one",
                "expected ranges with upper ends that sum to at least 1, as they name all classes with samples",
            )
        rest = ([], []) if self._others is None else ([0.0], [1.0])
        self.bounds = ShareRanges(np.append(low, rest[0]), np.append(high, rest[1]))

    def shares(self, points: Array) -> Array:
        """Shares (G, K) of all classes at points (G, d) of the ranges."""
        left: Array = np.maximum(1.0 - points.sum(axis=1), 0.0)[:, None]
        if self._others is not None:
            found: Array = left * self._others
            found[:, self._codes] = points
            return found
        found = np.zeros((len(points), self._classes))
        found[:, self._codes] = np.column_stack([points, left])
        return found


def refused(pointer: str, code: str, detail: str) -> InvalidInput:
    """A fault of a member of the request."""
    return InvalidInput.at(pointer, code, detail)
