"""The harmonic mean of recalls: bounds from weak classes, curves of equal means, spread of two rates around it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Annotated, Final

import numpy as np

from app.domain.asked import Limits, Share
from app.domain.errors import InvalidInput
from app.domain.inputs.labels import listed
from app.domain.members import LEFT_OUT, SPREAD, named, typed
from app.domain.wording import significant
from app.kernel.matrix.h_mean_bounds import (
    critical_recall,
    h_mean_upper_bound,
    isocurve_a,
    isocurve_g,
    isocurve_h,
    needed_recall,
    rounded_down,
)
from app.kernel.metrics.families.combinations import GPS_SD
from app.kernel.numerics.arrays import Array, geometric_mean, harmonic_mean, mean, silently

# Entries of a sweep: some milliseconds.
_MOST_SWEPT: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Isocurve:
    """All points with one value of a mean.

    Attributes:
        level: The value of the mean.
        tpr: Sensitivity at each false positive rate; `null` where none reaches the value.
    """

    level: float
    tpr: Array = field(metadata=typed(list[float | None]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Isocurves:
    """Curves of equal means of sensitivity and specificity through a point.

    Attributes:
        tpr: Sensitivity of the point.
        tnr: Its specificity.
        fpr: False positive rates, from 0 to 1.
    """

    tpr: float
    tnr: float
    fpr: Array = field(metadata=typed(list[float]))
    balanced_accuracy: Isocurve
    g_mean: Isocurve
    h_mean: Isocurve


def isocurves(tpr: float, tnr: float, steps: int) -> Isocurves:
    """The arithmetic, geometric and harmonic mean: Aguilar-Ruiz (2025), sec. 5 and figure 1."""
    point, fpr = np.array([tpr, tnr]), np.linspace(0.0, 1.0, steps)
    with silently():
        a, g, h = float(mean(point)), float(geometric_mean(point)), float(harmonic_mean(point))
    return Isocurves(
        tpr=tpr,
        tnr=tnr,
        fpr=fpr,
        balanced_accuracy=_within(a, isocurve_a(a, fpr)),
        g_mean=_within(g, isocurve_g(g, fpr)),
        h_mean=_within(h, isocurve_h(h, fpr)),
    )


def _within(level: float, tpr: Array) -> Isocurve:
    # A rate of 1 may come out a rounding above it.
    return Isocurve(level=level, tpr=np.where((tpr >= 0.0) & (tpr <= 1.0 + 1e-12), tpr, np.nan))


# Of two rates, at 1 and 1/3 (Property 4).
LARGEST: Final = 0.5 / sqrt(2.0)


def spreads(others: Sequence[float], farthest: float, points: int) -> tuple[Array, list[Array]]:
    """Return reciprocals of one rate, 1 or more, and the standard deviations of GPS over them, for each of the other.

    Martín De Diego et al. (2022), eq. 9 for two metrics, that is eq. 11, and fig. 1.

    Args:
        others: Reciprocals of the other rate.
        farthest: The largest reciprocal of the grid, which begins at 1; its points are apart by equal factors, and 3,
            where the spread is largest, is one of them.
        points: How many.
    """
    grid = np.union1d(np.geomspace(1.0, farthest, points), [3.0])
    return grid, [_spread(1.0 / grid, 1.0 / other) for other in others]


def region_from(level: float, points: int) -> tuple[Array, Array, Array]:
    """Return the region of two rates whose standard deviation is at least ``level``: reciprocals y of the higher rate,
    and the lowest and highest reciprocal x of the lower one. The region of the rates exchanged is its mirror image.

    Martín De Diego et al. (2022), eq. 11 set equal to the level c: with t = x/y and k = c y / (2 sqrt 2) it reads
    k (t + 1)^2 = t - 1, which has two solutions up to k = 1/8, where t is 3.

    Args:
        level: Above 0 and below 1 / (2 sqrt 2), the largest deviation that there is.
        points: How many y, apart by equal factors, from 1 to the last one that reaches the level.
    """
    y = np.geomspace(1.0, LARGEST / level, points)
    k = level * y * LARGEST
    # At the tip rounding may bring it below 0.
    root = np.sqrt(np.maximum(1.0 - 8.0 * k, 0.0))
    return y, y * (1.0 - 2.0 * k - root) / (2.0 * k), y * (1.0 - 2.0 * k + root) / (2.0 * k)


def spread_of_two(first: float, second: float) -> float:
    """Return the spread of two rates above 0 around their harmonic mean."""
    return float(_spread(np.array([first]), second)[0])


def _spread(first: Array, second: float) -> Array:
    with silently():
        return GPS_SD.compute(np.stack([first, np.full_like(first, second)], axis=-1))


_DECIMALS, _DIGITS = 4, 6


@dataclass(frozen=True, slots=True)
class CriticalRecall:
    """The recall that weak classes need for a target.

    Attributes:
        target: The H that is to be reached.
        critical_recall: Below it H stays under the target however good the others are; `null` when no H above the best
            recall can be reached at all.
        critical_recall_rounded: Rounded down, so that it never claims too much.
    """

    target: float
    critical_recall: float | None
    critical_recall_rounded: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallGrid:
    """Recalls that some classes are given, all the same.

    Attributes:
        classes: By index; the worst class, or the weak ones, by default.
        shares: Mixes of the classes whose accuracy is wanted, a number per class, in any unit.
    """

    classes: (
        Annotated[tuple[Annotated[int, Limits({"ge": 0})], ...], Limits({"min_length": 1, "max_length": 10_000})] | None
    ) = None
    start: Share = field(default=0.0, metadata=named("from"))
    end: Share = field(default=1.0, metadata=named("to"))
    steps: Annotated[int, Limits({"ge": 2, "le": 1000})] = 101
    shares: Sequence[Sequence[float]] = ()

    def check(self) -> None:
        """Refuse a sweep that does not go upwards, by ValueError."""
        if not self.start < self.end:
            raise ValueError("expected from to be smaller than to")

    def check_classes(self, count: int) -> None:
        """Refuse a sweep with too many values, or with classes that do not exist, by ValueError."""
        if count * self.steps > _MOST_SWEPT:
            raise ValueError(f"expected at most {_MOST_SWEPT} classes times steps, got {count} times {self.steps}")
        if self.classes is not None and max(self.classes) >= count:
            raise ValueError(f"expected classes below {count}, got {max(self.classes)}")
        if any(len(mix) != count for mix in self.shares):
            raise ValueError(f"expected {count} shares in every mix")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecallSweep:
    """The means of the recalls while some classes go through a range and the others stay as they are.

    Attributes:
        classes: The classes that are varied, by index.
        grid: Recalls of the classes that are varied.
        accuracy: For every mix of the classes that was given.
    """

    classes: Sequence[int]
    grid: Array = field(metadata=typed(list[float]))
    balanced_accuracy: Array = field(metadata=typed(list[float]))
    g_mean: Array = field(metadata=typed(list[float]))
    h_mean: Array = field(metadata=typed(list[float]))
    accuracy: Array | None = field(default=None, metadata=LEFT_OUT | typed(list[list[float]]))


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundsOfRecalls:
    """H of known recalls, and its bounds.

    Attributes:
        lower: The worst recall.
        upper: What the worst class alone allows, all others being as good as the best.
        weakest: Index of the worst recall.
        needed_recall: The recall that the worst class needs for the target while all others stay as they are; `null`
            without a target, or when 1 is not enough.
    """

    h_mean: float
    lower: float
    upper: float
    weakest: int
    message: str
    needed_recall: float | None
    critical: CriticalRecall | None = field(metadata=SPREAD)
    recall_sweep: RecallSweep | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundsOfWeakClasses:
    """Bounds of H from the recall of its weak classes.

    Attributes:
        weak: How many of the classes are weak.
        weak_recall: The recall of the weak classes at most.
        max_recall: The recall of the others at most.
        upper: H at most.
    """

    classes: int
    weak: int
    max_recall: float
    weak_recall: float | None = field(metadata=LEFT_OUT)
    upper: float | None = field(metadata=LEFT_OUT)
    critical: CriticalRecall | None = field(metadata=SPREAD)
    target_reachable: bool | None = field(metadata=LEFT_OUT)
    recall_sweep: RecallSweep | None = field(default=None, metadata=LEFT_OUT)
    message: str


def bounds_of_recalls(
    recalls: Sequence[float], target: float | None, sweep: RecallGrid | None = None
) -> BoundsOfRecalls:
    """The universal bounds, and what the worst class alone allows (Aguilar-Ruiz 2025, Proposition 1)."""
    count, worst, best = len(recalls), min(recalls), max(recalls)
    weakest = recalls.index(worst)
    others = [recall for index, recall in enumerate(recalls) if index != weakest]
    return BoundsOfRecalls(
        h_mean=0.0 if worst == 0 else count / sum(1 / recall for recall in recalls),
        lower=worst,
        upper=h_mean_upper_bound(classes=count, weak=1, weak_recall=worst, max_recall=best),
        weakest=weakest,
        message=f"H lies between the worst recall, {significant(worst, _DIGITS)}, and what the worst class alone "
        f"allows when all others are as good as the best, {significant(best, _DIGITS)}.",
        needed_recall=None if target is None else needed_recall(others, target),
        critical=_critical(count, 1, best, target),
        recall_sweep=None if sweep is None else recalls_swept(recalls, [weakest], sweep),
    )


def bounds_of_stored(
    labels: Sequence[str], rates: Array, target: float | None, sweep: RecallGrid | None
) -> BoundsOfRecalls:
    """Return the bounds for a matrix (K, K) whose rows are shares of the actual classes.

    Raises:
        InvalidInput: a class has no actual samples, so there is no H.
    """
    recalls: list[float] = np.diagonal(rates).tolist()
    missing = [label for label, recall in zip(labels, recalls, strict=True) if np.isnan(recall)]
    if missing:
        raise InvalidInput.at("", "no_actual_samples", f"there is no H: no actual samples of {listed(missing)}")
    return bounds_of_recalls(recalls, target, sweep)


def bounds_of_weak_classes(
    *,
    classes: int,
    weak: int,
    max_recall: float,
    weak_recall: float | None,
    target: float | None,
    sweep: RecallGrid | None = None,
) -> BoundsOfWeakClasses:
    """Return the largest H with weak classes of a recall of at most ``weak_recall``, and the recall that a target
    needs.
    """
    upper = None
    if weak_recall is not None:
        upper = h_mean_upper_bound(classes=classes, weak=weak, max_recall=max_recall, weak_recall=weak_recall)
    critical = _critical(classes, weak, max_recall, target)
    needed = None if critical is None else critical.critical_recall
    known = critical is not None and weak_recall is not None
    subject = f"{'one class' if weak == 1 else f'{weak} classes'} of {classes}"
    said = []
    if weak_recall is not None and upper is not None:
        said.append(
            f"With {subject} at a recall of at most {significant(weak_recall, _DIGITS)}, H is at most "
            f"{significant(upper, _DIGITS)} however good the others are."
        )
    if needed is not None and target is not None:
        said.append(
            f"With {subject} below a recall of {significant(rounded_down(needed, _DIGITS), _DIGITS)}, H stays below "
            f"{significant(target, _DIGITS)} however good the others are."
        )
    elif critical is not None:
        best = significant(max_recall, _DIGITS)
        said.append(f"No H above {best} can be reached: H is never above the best recall.")
    return BoundsOfWeakClasses(
        classes=classes,
        weak=weak,
        max_recall=max_recall,
        weak_recall=weak_recall,
        upper=upper,
        critical=critical,
        target_reachable=needed is not None and (weak_recall or 0.0) >= needed if known else None,
        recall_sweep=None if sweep is None else recalls_swept([max_recall] * classes, [*range(weak)], sweep),
        message=" ".join(said),
    )


def recalls_swept(recalls: Sequence[float], varied: Sequence[int], sweep: RecallGrid) -> RecallSweep:
    """Means of the recalls (K), in [0, 1], with some classes at each step of a range: ``varied``, by index, where the
    sweep names none.
    """
    classes = varied if sweep.classes is None else sorted(set(sweep.classes))
    grid = np.linspace(sweep.start, sweep.end, sweep.steps)
    rows = np.tile(np.array(recalls), (sweep.steps, 1))
    rows[:, classes] = grid[:, None]
    shares = np.array(sweep.shares, dtype=np.float64)
    with silently():
        return RecallSweep(
            classes=classes,
            grid=grid,
            balanced_accuracy=mean(rows),
            g_mean=geometric_mean(rows),
            h_mean=harmonic_mean(rows),
            accuracy=shares / shares.sum(axis=1, keepdims=True) @ rows.T if sweep.shares else None,
        )


def _critical(classes: int, weak: int, max_recall: float, target: float | None) -> CriticalRecall | None:
    if target is None:
        return None
    exact = critical_recall(classes=classes, weak=weak, max_recall=max_recall, target=target)
    return CriticalRecall(target, exact, None if exact is None else rounded_down(exact, _DECIMALS))
