"""Two runs on the same samples: does what they predict of a class come true equally often?

The value is a share of what a run predicts, and the runs do not predict the class for the same samples, so McNemar's
test does not apply. Everything is elementwise: one entry per class.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.kernel.compare.paired.joint import Codes, JointCounts
from app.kernel.numerics.arrays import Array, silently
from app.kernel.numerics.special import chi_squared_upper_tail, student_cdf, student_quantile
from app.kernel.uncertainty.intervals import two_sided_z


@dataclass(frozen=True, slots=True, eq=False)
class PredictiveCounts:
    """Samples (...) that the first run only, the second only, or both put among the predicted ones, by whether that
    is right.
    """

    first_right: Array
    first_wrong: Array
    second_right: Array
    second_wrong: Array
    both_right: Array
    both_wrong: Array

    @classmethod
    def of(cls, joint: JointCounts, *, squares: bool = False) -> "PredictiveCounts":
        """Of the predictions of each class (K) by two runs; what samples weigh, or sums of their squared weights."""
        masses = joint.masses if not squares or joint.weights is None else joint.masses * joint.weights
        return cls(
            *(
                np.bincount(classes[some], weights=masses[some], minlength=joint.n_classes).astype(np.float64)
                for classes, some in _kinds(joint)
            )
        )

    @classmethod
    def of_groups(cls, joint: JointCounts, group: Codes, n_groups: int, classes: range) -> "PredictiveCounts":
        """The same (G, k) of each group, whose codes (P) are 0..G-1, for some classes (k)."""
        found, size, masses = [], len(classes), joint.masses
        for predicted, kind in _kinds(joint):
            some = kind & (predicted >= classes.start) & (predicted < classes.stop)
            places = group[some] * size + predicted[some] - classes.start
            counted = np.bincount(places, weights=masses[some], minlength=n_groups * size).astype(np.float64)
            found.append(counted.reshape(n_groups, size))
        return cls(*found)

    def of_absence(self, actual: Array, everything: Array | None = None) -> "PredictiveCounts":
        """The same of predictions that a sample is not of the class, which has so many samples (...) of all in the
        last axis, or of ``everything`` (..., 1).
        """
        rest = (actual.sum(axis=-1, keepdims=True) if everything is None else everything) - actual
        return PredictiveCounts(
            first_right=self.second_wrong,
            first_wrong=self.second_right,
            second_right=self.first_wrong,
            second_wrong=self.first_right,
            both_right=rest - self.first_wrong - self.second_wrong - self.both_wrong,
            both_wrong=actual - self.first_right - self.second_right - self.both_right,
        )

    def together(self) -> "PredictiveCounts":
        """Of all groups, which are the first axis."""
        return PredictiveCounts(*(one.sum(axis=0) for one in self.parts))

    @property
    def parts(self) -> tuple[Array, ...]:
        """In the order of the attributes."""
        return (
            self.first_right,
            self.first_wrong,
            self.second_right,
            self.second_wrong,
            self.both_right,
            self.both_wrong,
        )


def _kinds(joint: JointCounts) -> tuple[tuple[Codes, NDArray[np.bool_]], ...]:
    """What is predicted (P) of which combinations (P), in the order of the attributes of the counts."""
    (first, second), (first_right, second_right) = joint.predictions, joint.correct()
    same = first == second
    return (
        (first, ~same & first_right),
        (first, ~same & ~first_right),
        (second, ~same & second_right),
        (second, ~same & ~second_right),
        (first, same & first_right),
        (first, same & ~first_right),
    )


@dataclass(frozen=True, slots=True, eq=False)
class PredictiveValues:
    """Predictive values of two runs with the statistics that they are equal, each chi-squared with one degree of
    freedom; NaN where a run predicts nothing of the kind.

    Attributes:
        first: (...).
        second: (...).
        score: (...) generalised score statistic. Leisenring, Alonzo & Pepe (2000), as written by Kosinski (2013).
        weighted_score: (...) the weighted one, which is the score statistic of two shares where no sample is predicted
            by both runs; NaN where samples have weights or come in groups. Kosinski (2013).
        log_ratio: (...) log of first over second, NaN where one of them is 0.
        log_ratio_variance: (...) of it. Moskowitz & Pepe (2006).
        freedom: (...) degrees of Student's distribution of the logarithm; None where it is the normal one.
    """

    first: Array
    second: Array
    score: Array
    weighted_score: Array
    log_ratio: Array
    log_ratio_variance: Array
    freedom: Array | None = None

    @property
    def relative(self) -> Array:
        """Wald statistic (...) of the ratio on its logarithm. Moskowitz & Pepe (2006)."""
        return _quotient(self.log_ratio**2, self.log_ratio_variance)

    @property
    def relative_p(self) -> Array:
        """P (...) of it."""
        if self.freedom is None:
            return p_of(self.relative)
        return 2.0 * np.asarray(student_cdf(-np.sqrt(self.relative), self.freedom))

    def ratio_limits(self, level: float) -> tuple[Array, Array]:
        """Limits (...) of first over second."""
        z = two_sided_z(level) if self.freedom is None else student_quantile((1.0 + level) / 2.0, self.freedom)
        reach = z * np.sqrt(self.log_ratio_variance)
        return np.exp(self.log_ratio - reach), np.exp(self.log_ratio + reach)


def p_of(statistic: Array) -> Array:
    """P (...) of a statistic (...) with one degree of freedom, NaN of NaN."""
    return np.asarray(chi_squared_upper_tail(statistic, 1.0))


def predictive_values(
    counts: PredictiveCounts, squares: PredictiveCounts | None = None, groups: PredictiveCounts | None = None
) -> PredictiveValues:
    """Compare them; of samples with weights by the ``squares`` of these, of such as come in groups by the sums (G, ...)
    of each group.

    With n the numbers of predictions, v the values, w = n_2 / (n_1 + n_2), p the value of all predictions together, D
    whether one is right and z = (n_1 n_2 / (n_1 + n_2)) (v_1 - v_2), the generalised score statistic is z^2 over the
    sum over the samples of ((sum of w or w - 1 over its predictions) (D - p))^2; the weighted one is (v_1 - v_2)^2 over
    (1/n_1 + 1/n_2) times the mean over all predictions of (D - p)^2 where one run only predicts, else 0. In groups the
    squares are those of the sums over a group, and the logarithm has Student's distribution with G/(G-1) for its
    variance, G the groups with such predictions.
    """
    c, each = counts, counts if squares is None else squares
    independent = squares is None and groups is None
    with silently():
        right = c.first_right + c.both_right, c.second_right + c.both_right
        n = right[0] + c.first_wrong + c.both_wrong, right[1] + c.second_wrong + c.both_wrong
        total = n[0] + n[1]
        first, second = right[0] / n[0], right[1] / n[1]
        hit = (right[0] + right[1]) / total
        miss, share, gap = 1.0 - hit, n[1] / total, first - second
        rest, both = 1.0 - share, 2.0 * share - 1.0
        moves = share * miss, -share * hit, -rest * miss, rest * hit, both * miss, -both * hit
        alone = (each.first_right + each.second_right) * miss**2 + (each.first_wrong + each.second_wrong) * hit**2
        mean = alone / total * (1.0 / n[0] + 1.0 / n[1])
        positive = (first > 0) & (second > 0)
        variance = _square_sum(_log_moves(n, (first, second)), each, groups)
        freedom = None if groups is None else _present(groups) - 1.0
        if freedom is not None:
            variance = variance * (freedom + 1.0) / freedom
        return PredictiveValues(
            first=first,
            second=second,
            score=_quotient((n[0] * n[1] / total * gap) ** 2, _square_sum(moves, each, groups)),
            weighted_score=_quotient(gap**2, mean) if independent else np.full(gap.shape, np.nan),
            log_ratio=np.where(positive, np.log(first / second), np.nan),
            log_ratio_variance=np.where(positive, variance, np.nan),
            freedom=freedom,
        )


def _square_sum(moves: tuple[Array, ...], each: PredictiveCounts, groups: PredictiveCounts | None) -> Array:
    """Sum of squares (...) of what samples add, or all of a group together, by what a sample of each kind does."""
    if groups is None:
        return np.asarray(sum(count * move**2 for count, move in zip(each.parts, moves, strict=True)))
    added = np.zeros(groups.first_right.shape)
    for count, move in zip(groups.parts, moves, strict=True):
        added += count * move
    return np.asarray((added**2).sum(axis=0))


def _present(groups: PredictiveCounts) -> Array:
    """Groups (...) with predictions of the kind; NaN where that is one."""
    found = np.count_nonzero(np.sum(groups.parts, axis=0), axis=0).astype(np.float64)
    return np.where(found > 1, found, np.nan)


def _log_moves(n: tuple[Array, Array], values: tuple[Array, Array]) -> tuple[Array, ...]:
    """What each kind of sample adds to the difference of the logarithms, to first order."""
    hits = tuple((1.0 - value) / (size * value) for value, size in zip(values, n, strict=True))
    misses = tuple(1.0 / size for size in n)
    return hits[0], -misses[0], -hits[1], misses[1], hits[0] - hits[1], misses[1] - misses[0]


def _quotient(square: Array, variance: Array) -> Array:
    """A statistic; 0 where nothing differs and nothing varies."""
    with silently():
        return np.where((square == 0.0) & (variance == 0.0), 0.0, square / variance)
